#!/usr/bin/env bash
# Fails where clang-format would change a C file; --fix changes it. Tables (.def) are laid out by
# hand and left alone. Versions of clang-format differ in what they make of the same settings, so
# only the one named here has a say; where there is another one the check is skipped (77).
set -u
cd "$(dirname "$0")/.." || exit 1
version=14

format=""
for name in "clang-format-$version" clang-format; do
    "$name" --version 2>/dev/null | grep -q "version $version\." && format=$name && break
done
if [ -z "$format" ]; then
    echo "skipped: the format is that of clang-format $version, and here is" \
        "$(clang-format --version 2>/dev/null || echo none)"
    [ "${1:-}" = --fix ] && exit 1
    exit 77
fi

options=(--dry-run --Werror)
[ "${1:-}" = --fix ] && options=(-i)
find src include cli bench tests examples -name '*.[ch]' -print0 |
    xargs -0 -n 40 -P "$(nproc)" "$format" "${options[@]}" || {
    echo "not formatted (make format)"
    exit 1
}
