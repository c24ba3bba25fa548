# Toolchain for arm64 Linux from another machine: Debian's cross compiler, the libraries that
# tools/arm64.sh unpacked into MLX_SYSROOT, and qemu, which runs the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MLX_SYSROOT)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(MLX_CROSS_CXX aarch64-linux-gnu-g++) # of the checks
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "${MLX_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(lib "${MLX_SYSROOT}/usr/lib/aarch64-linux-gnu")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${MLX_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${lib}/pkgconfig:${lib}/openblas-pthread/pkgconfig")

# Drivers are listed by folder, and folders are those of this machine.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${MLX_SYSROOT}"
    -E VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.aarch64.json)
