#!/usr/bin/env bash
# Writes what the program knows about itself into the documents: the status table of README.md,
# between its two markers, docs/ops.md, docs/gates.md and docs/kernels.md.
# With --check changes nothing and fails if one is out of date.
# usage: gen_docs.sh BUILD [--check]
set -eu
build=$(cd "$1" && pwd)
check=${2:-}
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

begin='<!-- status: written by tools/gen_docs.sh -->'
end='<!-- end of status -->'
for marker in "$begin" "$end"; do
    grep -qxF -- "$marker" README.md || { echo "gen_docs.sh: README.md has no line '$marker'" >&2; exit 1; }
done

"$build/mlx" ops --summary >"$made/status"
awk -v begin="$begin" -v end="$end" -v table="$made/status" '
    $0 == end { inside = 0 }
    !inside { print }
    $0 == begin { inside = 1; while ((getline line < table) > 0) print line }
' README.md >"$made/README.md"
"$build/mlx" ops --markdown >"$made/ops.md"
"$build/mlx" gates --markdown >"$made/gates.md"
python3 tools/kernels_doc.py >"$made/kernels.md"

stale=0
for file in README.md docs/ops.md docs/gates.md docs/kernels.md; do
    if [ "$check" = --check ]; then
        diff -u "$file" "$made/$(basename "$file")" || stale=1
    else
        cp "$made/$(basename "$file")" "$file"
    fi
done
[ "$stale" -eq 0 ] || { echo "out of date: run tools/gen_docs.sh BUILD" >&2; exit 1; }
