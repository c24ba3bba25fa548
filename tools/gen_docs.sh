#!/usr/bin/env bash
# Fills the status table of README.md, between its two markers, with `mlx ops --summary`.
# With --check changes nothing and fails if the table is out of date.
# usage: gen_docs.sh BUILD [--check]
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

begin='<!-- status: written by tools/gen_docs.sh -->'
end='<!-- end of status -->'
if ! grep -qxF -- "$begin" README.md || ! grep -qxF -- "$end" README.md; then
    echo "gen_docs.sh: README.md has no lines '$begin' and '$end'" >&2
    exit 1
fi

table=$(mktemp)
filled=$(mktemp)
trap 'rm -f "$table" "$filled"' EXIT
"$build/mlx" ops --summary >"$table"
awk -v begin="$begin" -v end="$end" -v table="$table" '
    $0 == end { inside = 0 }
    !inside { print }
    $0 == begin { inside = 1; while ((getline line < table) > 0) print line }
' README.md >"$filled"

if [ "${2:-}" = --check ]; then
    diff -u README.md "$filled" || { echo "run tools/gen_docs.sh $1"; exit 1; }
else
    cat "$filled" >README.md
fi
