#!/usr/bin/env bash
# Fails where clang-format would change a C file; --fix changes it. Tables (.def) are laid out by
# hand and left alone.
set -u
cd "$(dirname "$0")/.." || exit 1

mapfile -t files < <(find src include cli bench tests examples -name '*.[ch]' | sort)
if [ "${1:-}" = --fix ]; then
    exec clang-format -i "${files[@]}"
fi

bad=0
for file in "${files[@]}"; do
    if ! clang-format "$file" | diff -u --label "$file" --label "$file (formatted)" "$file" -; then
        bad=$((bad + 1))
    fi
done
echo "${#files[@]} files checked, $bad not formatted (make format)"
[ "$bad" -eq 0 ]
