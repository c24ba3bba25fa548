#!/usr/bin/env bash
# Packs what a GPU machine needs to check this build: the command, the test programs with the files
# they read, and the libraries they load; the C library and its loader apart, for a machine whose own
# is older. Unpacked there, it runs with `gpu_check/check.sh`; nothing needs to be installed.
# usage: pack_gpu.sh BUILD ARCHIVE.tar.xz [PATTERN]: all tests, or those whose names match
set -eu
build=$1
archive=$2
here=$(cd "$(dirname "$0")" && pwd)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
out=$top/gpu_check

mkdir -p "$out/bin" "$out/lib" "$out/libc" "$out/tools" "$out/data/made" "$out/models"
"$here/gpu_plan.py" "$build" ${3+"$3"} >"$out/plan"
{
    echo mlx
    cut -f 7 "$out/plan" | tr ' ' '\n' | sed -n 's|^@/bin/||p'
} | sort -u >"$top/programs"
while read -r name; do
    case $name in
    mlx) program=$build/mlx ;;
    *) program=$build/tests/$name ;;
    esac
    strip -o "$out/bin/$name" "$program"
    ldd "$program"
done <"$top/programs" >"$top/linked"
for tool in spirv-val; do # what tests call
    strip -o "$out/tools/$tool" "$(command -v $tool)"
    ldd "$out/tools/$tool" >>"$top/linked"
done

# Everything the programs link, the Vulkan loader that they open, and the dynamic linker itself.
vulkan=$(ldconfig -p | awk '/libvulkan\.so\.1 / && /x86-64/ { print $NF; exit }')
{
    ldd "$vulkan" | cat - "$top/linked" | awk '$3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }'
    echo "$vulkan"
} | sort -u | while read -r library; do
    case $(basename "$library") in
    ld-linux* | libc.so* | libm.so* | libdl.so* | libpthread.so*) cp -L "$library" "$out/libc/" ;;
    *) cp -L "$library" "$out/lib/" ;;
    esac
done
strip --strip-unneeded "$out"/lib/*.so* 2>/dev/null || true

cp -r "$build"/generated/tests/{io,kernels,lm,tok_corpus.bin} "$out/data/made"
rm -f "$out"/data/made/io/*.lm_* # for fuzzing
cp -r "$here/../tests/data" "$out/data/stored"
cp -r "$here/../tests/cli" "$out/cli"
cut -f 7 "$out/plan" | tr ' ' '\n' | sed -n 's|^@/models/||p' | sort -u | while read -r model; do
    cp -r "$here/../models/$model" "$out/models/"
done
cp "$here/gpu_check.sh" "$out/check.sh"
cp "$here/../bench/beside_torch.py" "$out/"
# One window over programs that share most of their code.
tar -C "$top" -cf - gpu_check | xz -T1 --x86 --lzma2=preset=1,dict=256MiB >"$archive"
ls -l "$archive"
