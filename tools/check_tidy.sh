#!/usr/bin/env bash
# clang-tidy over the sources; a warning fails. What follows paths through functions takes minutes,
# and products that are widened are mostly bounded: both come with `all`, as advice.
# Each version of clang-tidy has checks of its own, so only the one named here has a say; where there
# is another one the check is skipped (77).
# usage: check_tidy.sh BUILD [all]
set -u
build=$(cd "$1" && pwd) || exit 1
cd "$(dirname "$0")/.." || exit 1
version=14

tidy=""
for name in "clang-tidy-$version" clang-tidy; do
    "$name" --version 2>/dev/null | grep -q "version $version\." && tidy=$name && break
done
if [ -z "$tidy" ]; then
    echo "skipped: the checks are those of clang-tidy $version"
    exit 77
fi

options=(--quiet -p "$build" '--warnings-as-errors=*'
    '--checks=-clang-analyzer-*,-bugprone-implicit-widening-of-multiplication-result')
[ "${2:-}" = all ] && options=(--quiet -p "$build")
# Headers are seen through the files that include them.
grep -oE '"file": "[^"]*"' "$build/compile_commands.json" | cut -d'"' -f4 | sort -u |
    grep -E "^$PWD/(src|cli|bench|examples)/" |
    xargs -n 8 -P "$(nproc)" "$tidy" "${options[@]}" 2> >(grep -vE 'warnings? generated' >&2)
