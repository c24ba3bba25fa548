#!/usr/bin/env bash
# Fails where clang-format would change a C file; --fix changes it. Tables (.def) are laid out by
# hand and left alone. Skipped (77) where there is no clang-format of the right version.
set -u
cd "$(dirname "$0")/.." || exit 1
format=$(tools/find_clang.sh clang-format) || exit $?

options=(--dry-run --Werror)
[ "${1:-}" = --fix ] && options=(-i)
find src include cli bench tests examples python -name '*.[ch]' -print0 |
    xargs -0 -n 40 -P "$(nproc)" "$format" "${options[@]}" || {
    echo "not formatted (make format)"
    exit 1
}
