#!/usr/bin/env bash
# Puts a newer glslc and spirv-val than the system's into a folder, for the kernels that need GLSL
# extensions Debian 12's compiler does not know (cooperative matrices, bfloat16).
#
# The programs come from a later Debian release, with the loader and libraries of that release beside
# them (unpack_debian.sh). The newest release that can be had is taken: bfloat16 needs forky,
# cooperative matrices need trixie. Does nothing if the folder is complete.
#
# usage: get_glslc.sh FOLDER
set -eu

releases="forky trixie"
packages="glslc spirv-tools"
programs="glslc spirv-val"

fail() {
    echo "get_glslc.sh: $*" >&2
    exit 1
}

[ $# -eq 1 ] || fail "usage: get_glslc.sh FOLDER"
tools=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -d "$folder/bin" ] && exit 0
command -v dpkg >/dev/null || fail "no dpkg here"

# A wrapper for each program, which starts it with the loader and libraries of its release.
wrap() {
    rm -rf "$folder/bin.new"
    mkdir -p "$folder/bin.new"
    loader=$(find "$folder/root" -name 'ld-linux*.so.*' -type f | head -n 1)
    [ -n "$loader" ] || return 1
    libraries=$(find "$folder/root" -name '*.so.*' ! -type d -printf '%h\n' | sort -u | paste -sd:)
    for program in $programs; do
        cat >"$folder/bin.new/$program" <<WRAPPER
#!/bin/sh
exec "$loader" --library-path "$libraries" "$folder/root/usr/bin/$program" "\$@"
WRAPPER
        chmod +x "$folder/bin.new/$program"
        "$folder/bin.new/$program" --version >/dev/null || return 1
    done
    mv "$folder/bin.new" "$folder/bin"
}

for release in $releases; do
    echo "getting glslc of Debian $release"
    # shellcheck disable=SC2086 # a list of words
    "$tools/unpack_debian.sh" "$folder" "$release" "$(dpkg --print-architecture)" $packages && wrap &&
        exit 0
    rm -rf "$folder/root" "$folder/bin.new" "$folder/complete"
done
fail "no later Debian release could be used"
