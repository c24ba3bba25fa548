#!/usr/bin/env bash
# Builds everything for arm64 on another machine and runs the tests under qemu, with one more: a story
# must have the words there that BUILD/mlx has here. Tests of the GPU say that they are skipped, and
# why, where arm64's software driver lacks something. Ends with the line "N passed, N failed".
#
# The libraries come from Debian, unpacked under BUILD/arm64; nothing of the system is touched.
# usage: arm64.sh BUILD JOBS [CMake options]
set -eu
build=$(cd "$1" && pwd)
jobs=$2
shift 2
cd "$(dirname "$0")/.."
release=bookworm
libraries="libc6-dev libopenblas-dev libcjson-dev zlib1g-dev libpcre2-dev libutf8proc-dev
    libedit-dev libcmocka-dev libvulkan-dev spirv-headers mesa-vulkan-drivers"
root=$build/arm64/sysroot/root
lib=usr/lib/aarch64-linux-gnu

# Links that mean the root folder of the system are made to mean this one. OpenBLAS is found by links
# that installing makes, not unpacking.
mend_links() {
    find "$root" -type l -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link target; do
        ln -sfrn "$root$target" "$link"
    done
    ln -sfr "$root/$lib"/openblas-pthread/libopenblas.so* "$root/$lib/"
}

# shellcheck disable=SC2086 # a list of words
tools/unpack_debian.sh "$build/arm64/sysroot" $release arm64 $libraries
mend_links

cmake -S . -B "$build/arm64/build" -G Ninja -DMLX_WERROR=ON -DMLX_SPIRV_FROM="$build" \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/arm64.cmake" -DMLX_SYSROOT="$root" "$@" >"$build/arm64/log"
cmake --build "$build/arm64/build" -j "$jobs"

. tools/counts.sh
# The most likely words, so that nothing hangs on the last bit of a number.
story() { # mlx
    "$1" generate --model models/story-13m-4bit --device cpu --temp 0 --max-tokens 120 \
        --prompt "Tell me a story about a brave little fox"
}

count tools/run_tests.sh "$build/arm64/build" -L 'unit|ops|api|cli'
count tools/run_tests.sh "$build/arm64/build" -R '^lint_(headers|symbols)$'
if cmp <(story "$build/mlx" 2>/dev/null) <(story "$build/arm64/build/tests/mlx" 2>/dev/null); then
    passed=$((passed + 1))
else
    count_failure "the story has other words on arm64"
fi
end_counts
