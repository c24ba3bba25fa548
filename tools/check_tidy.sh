#!/usr/bin/env bash
# clang-tidy over the sources; a warning fails. What follows paths through functions takes minutes,
# and products that are widened are mostly bounded: both come with `all`, as advice.
# Skipped (77) where there is no clang-tidy of the right version.
# usage: check_tidy.sh BUILD [all]
set -u
build=$(cd "$1" && pwd) || exit 1
cd "$(dirname "$0")/.." || exit 1
tidy=$(tools/find_clang.sh clang-tidy) || exit $?

options=(--quiet -p "$build" '--warnings-as-errors=*'
    '--checks=-clang-analyzer-*,-bugprone-implicit-widening-of-multiplication-result')
[ "${2:-}" = all ] && options=(--quiet -p "$build")
# Headers are seen through the files that include them.
grep -oE '"file": "[^"]*"' "$build/compile_commands.json" | cut -d'"' -f4 | sort -u |
    grep -E "^$PWD/(src|cli|bench|examples|python)/" |
    xargs -n 8 -P "$(nproc)" "$tidy" "${options[@]}" 2> >(grep -vE 'warnings? generated' >&2)
