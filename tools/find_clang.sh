#!/usr/bin/env bash
# Prints the name of a clang tool in the version that this project's checks are written for, since
# versions differ in what they make of the same settings. Where there is another one it says so and
# fails with 77, which is a check's way to be skipped.
# usage: find_clang.sh clang-format|clang-tidy
set -u
version=14

for name in "$1-$version" "$1"; do
    "$name" --version 2>/dev/null | grep -q "version $version\." && echo "$name" && exit 0
done
echo "skipped: the checks are those of $1 $version, and here is" \
    "$("$1" --version 2>/dev/null | grep -o 'version [0-9.]*' || echo none)" >&2
exit 77
