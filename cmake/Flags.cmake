# Compiler flags for every target of the project.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# Assertions guard invariants of our own, so they stay on in everything but a release.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Contraction is off because fused and unfused evaluation must give the same bits. The system
# interface is defined empty, so that a file which defines it again in the usual way does not clash.
add_compile_options(-ffp-contract=off -fno-math-errno)
add_compile_definitions(_GNU_SOURCE=)

# For processors of all kinds, but not as GCC's default tunes for them: that copies and clears small
# structures with string instructions, which took a tenth of the time of building and encoding a graph.
include(CheckCCompilerFlag)
check_c_compiler_flag(-mtune=skylake MLX_HAS_MTUNE_SKYLAKE)
if(MLX_HAS_MTUNE_SKYLAKE)
    add_compile_options(-mtune=skylake)
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wundef -Wmissing-prototypes -Wstrict-prototypes -Wvla)
# Zero is the default of what a params struct or a table row leaves out.
add_compile_options(-Wno-missing-field-initializers)
if(CMAKE_C_COMPILER_ID MATCHES Clang)
    add_compile_options(-Wshorten-64-to-32)
endif()
if(MLX_WERROR)
    add_compile_options(-Werror)
endif()

if(MLX_SANITIZE)
    add_compile_options(-fsanitize=${MLX_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${MLX_SANITIZE})
endif()
