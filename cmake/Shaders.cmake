# SPIR-V modules: one per (row, dtype) of kernels.def, compiled with glslc, checked with spirv-val
# and embedded from a generated C file. Rows whose GLSL dialect this glslc does not know are left
# out, and configure says so.

set(kernel_dir "${PROJECT_SOURCE_DIR}/src/backend/vulkan/kernels")
set(kernel_out "${MLX_GENERATED}/kernels")
set(gen_kernels "${PROJECT_SOURCE_DIR}/tools/gen_kernels.py")
file(MAKE_DIRECTORY "${kernel_out}")
set(MLX_SPIRV_FROM "" CACHE PATH "Complete build of the same sources whose modules are taken")
set(spirv_dir "${kernel_out}")
if(MLX_SPIRV_FROM)
    set(spirv_dir "${MLX_SPIRV_FROM}/generated/kernels")
endif()

# A newer compiler put under a build folder by tools/get_glslc.sh wins over the system's.
set(MLX_GLSLC "" CACHE FILEPATH "GLSL compiler (empty: look for one)")
set(MLX_SPIRV_VAL "" CACHE FILEPATH "SPIR-V validator (empty: look for one)")
option(MLX_GET_GLSLC "Get a newer GLSL compiler where there is none under a build folder" OFF)
set(private_dirs "${PROJECT_BINARY_DIR}/toolchain/bin" "${PROJECT_BINARY_DIR}/../toolchain/bin"
    "${PROJECT_SOURCE_DIR}/build/toolchain/bin")
if(MLX_GET_GLSLC AND NOT MLX_GLSLC)
    find_program(newer_glslc glslc PATHS ${private_dirs} NO_DEFAULT_PATH NO_CACHE)
    if(NOT newer_glslc)
        execute_process(RESULT_VARIABLE failed COMMAND
            "${PROJECT_SOURCE_DIR}/tools/get_glslc.sh" "${PROJECT_SOURCE_DIR}/build/toolchain")
        if(NOT failed STREQUAL "0")
            message(STATUS "Going on with the system's glslc")
        endif()
    endif()
endif()
function(find_shader_tool out name override)
    find_program(tool ${name} PATHS ${private_dirs} NO_DEFAULT_PATH NO_CACHE)
    find_program(tool ${name} NO_CACHE REQUIRED)
    if(override)
        set(tool "${override}")
    endif()
    set(${out} "${tool}" PARENT_SCOPE)
endfunction()
find_shader_tool(glslc glslc "${MLX_GLSLC}")
find_shader_tool(spirv_val spirv-val "${MLX_SPIRV_VAL}")
message(STATUS "GLSL compiler: ${glslc}")

# Everything compiles for the floor of the runtime, Vulkan 1.2, except what only exists on newer
# devices: matrix kernels ask for SPIR-V 1.6, which promises them full subgroups.
set(glsl_flags -Werror "-I${kernel_dir}")
set(env_base vulkan1.2)
set(env_int_dot vulkan1.2)
set(env_coopmat vulkan1.3)
set(env_coopmat2 vulkan1.3)
set(env_bfloat16 vulkan1.3)

# glsl_<need> says whether this glslc knows the dialect that a row needs, optimise_<need> how it
# compiles it: the optimiser of Ubuntu 24.04 does not survive products of cooperative matrices.
set(glsl_base ON)
set(optimise_base -O)
foreach(need int_dot coopmat coopmat2 bfloat16)
    set(glsl_${need} OFF)
    foreach(optimise -O -O0)
        execute_process(COMMAND "${glslc}" ${glsl_flags} "--target-env=${env_${need}}" ${optimise}
            -o "${MLX_GENERATED}/dialect.spv" "${PROJECT_SOURCE_DIR}/cmake/probes/${need}.comp"
            RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        if(failed STREQUAL "0")
            set(glsl_${need} ON)
            set(optimise_${need} ${optimise})
            break()
        endif()
    endforeach()
endforeach()

# add_spirv(out source env flags...): compiles and checks one module.
function(add_spirv out source env)
    add_custom_command(OUTPUT "${out}"
        COMMAND "${glslc}" ${glsl_flags} "--target-env=${env}" ${ARGN} -MD -MF "${out}.d" -MT "${out}" -o "${out}"
            "${source}"
        COMMAND "${spirv_val}" --target-env "${env}" --scalar-block-layout "${out}"
        DEPENDS "${source}" "${glslc}" DEPFILE "${out}.d" COMMENT "SPIR-V ${out}" VERBATIM)
endfunction()

file(GLOB kernel_table CONFIGURE_DEPENDS "${kernel_dir}/kernels.def")
file(GLOB kern_header CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backend/vulkan/ops/kern.h")
file(GLOB elementwise CONFIGURE_DEPENDS "${kernel_dir}/elementwise.comp")

# One line per module: id|dtype|name|file|needs|macros|addresses
set(modules)
if(kernel_table)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${kernel_table}"
        "${kernel_dir}/args.h" "${gen_kernels}")
    execute_process(COMMAND "${Python3_EXECUTABLE}" "${gen_kernels}" list "${kernel_table}"
            "${kernel_dir}/args.h"
        OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
    string(STRIP "${listed}" listed)
    string(REPLACE "\n" ";" modules "${listed}")
endif()

set(manifest "${kernel_out}/manifest.txt")
set(manifest_text "")
set(spirv_files)
set(left_out)
foreach(module IN LISTS modules)
    string(REPLACE "|" ";" module "${module}")
    list(GET module 0 id)
    list(GET module 1 dtype)
    list(GET module 2 name)
    list(GET module 3 file)
    list(GET module 4 needs)
    list(GET module 5 macros)
    list(GET module 6 addresses)
    if(NOT glsl_${needs})
        list(APPEND left_out "${name} (${needs})")
        continue()
    endif()
    separate_arguments(macros UNIX_COMMAND "${macros}")
    if(NOT dtype STREQUAL "-")
        string(TOUPPER "${dtype}" upper)
        list(APPEND macros "-DDT_NAME=${dtype}" "-DDT_${upper}=1")
    endif()
    if(NOT MLX_SPIRV_FROM)
        add_spirv("${spirv_dir}/${name}.spv" "${kernel_dir}/${file}" ${env_${needs}}
            ${optimise_${needs}} ${macros})
    endif()
    list(APPEND spirv_files "${spirv_dir}/${name}.spv")
    string(APPEND manifest_text "${id} ${dtype} ${addresses} ${spirv_dir}/${name}.spv\n")
endforeach()
if(left_out)
    list(JOIN left_out ", " left_out)
    message(STATUS "Kernels left out, this glslc does not know their GLSL: ${left_out}")
endif()
file(CONFIGURE OUTPUT "${manifest}" CONTENT "${manifest_text}" @ONLY)

add_custom_target(spirv DEPENDS ${spirv_files})
if(kern_header)
    add_custom_command(OUTPUT "${MLX_GENERATED}/kern_blobs.c"
        COMMAND "${Python3_EXECUTABLE}" "${gen_kernels}" embed "${manifest}"
            "${MLX_GENERATED}/kern_blobs.c"
        DEPENDS "${gen_kernels}" "${manifest}" ${spirv_files}
        COMMENT "Embedding SPIR-V modules" VERBATIM)
    target_sources(mlx_objs PRIVATE "${MLX_GENERATED}/kern_blobs.c")
endif()

# The library of elementwise functions that the run-time emitter copies from: compiled without
# optimisation, so that every function keeps its body and its name, with a main that calls them all.
if(elementwise)
    set(lib_text "${kernel_out}/elementwise.text.comp")
    set(lib_comp "${kernel_out}/elementwise.comp")
    set(lib_spv "${kernel_out}/elementwise.spv")
    set(lib_c "${MLX_GENERATED}/spirv_lib.c")
    set(gen_lib "${PROJECT_SOURCE_DIR}/tools/gen_spirv_lib.py")
    add_custom_command(OUTPUT "${lib_comp}"
        COMMAND "${glslc}" ${glsl_flags} "--target-env=${env_base}" -E -o "${lib_text}"
            "${elementwise}"
        COMMAND "${Python3_EXECUTABLE}" "${gen_lib}" main "${lib_text}" "${lib_comp}"
        DEPENDS "${gen_lib}" "${elementwise}" "${kernel_dir}/math.glsl" "${kernel_dir}/complex.glsl"
            "${kernel_dir}/fp8.glsl"
        COMMENT "Expanding the elementwise library" VERBATIM)
    add_spirv("${lib_spv}" "${lib_comp}" ${env_base} -O0)
    add_custom_command(OUTPUT "${lib_c}"
        COMMAND "${Python3_EXECUTABLE}" "${gen_lib}" pack "${lib_spv}" "${lib_c}"
        DEPENDS "${gen_lib}" "${lib_spv}" COMMENT "Packing the elementwise library" VERBATIM)
    target_sources(mlx_objs PRIVATE "${lib_c}")
endif()
