#!/usr/bin/env bash
# Packs what a GPU machine needs to check this build: the command, the test programs, and the
# libraries they load; the C library and its loader apart, for a machine whose own is older. Unpacked there, it runs with `gpu_check/check.sh`; nothing needs to be installed.
# usage: pack_gpu.sh BUILD ARCHIVE.tar.xz
set -eu
build=$1
archive=$2
here=$(cd "$(dirname "$0")" && pwd)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
out=$top/gpu_check

mkdir -p "$out/bin" "$out/lib" "$out/libc"
programs=("$build/mlx")
for program in "$build"/tests/unit_* "$build"/tests/ops_*; do
    [ -f "$program" ] && [ -x "$program" ] && programs+=("$program")
done
for program in "${programs[@]}"; do
    strip -o "$out/bin/$(basename "$program")" "$program"
done

# Everything the programs link, the Vulkan loader that they open, and the dynamic linker itself.
loader=$(ldconfig -p | awk '/libvulkan\.so\.1 / && /x86-64/ { print $NF; exit }')
{
    for program in "${programs[@]}" "$loader"; do
        ldd "$program" | awk '$3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }'
    done
    echo "$loader"
} | sort -u | while read -r library; do
    case $(basename "$library") in
    ld-linux* | libc.so* | libm.so* | libdl.so* | libpthread.so*) cp -L "$library" "$out/libc/" ;;
    *) cp -L "$library" "$out/lib/" ;;
    esac
done
strip --strip-unneeded "$out"/lib/*.so* 2>/dev/null || true
cp "$here/gpu_check.sh" "$out/check.sh"
tar -C "$top" -cf - gpu_check | xz --lzma2=preset=1,dict=256MiB >"$archive" # one window over programs that share most of their code
ls -l "$archive"
