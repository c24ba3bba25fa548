#!/usr/bin/env bash
# Fails where black would change a file of the Python package or of its tests, or ruff has something
# to say about one; --fix changes them. Skipped (77) where the two are not: tools/get_packages.sh.
#
# usage: check_python.sh BUILD [--fix]
set -u
cd "$(dirname "$0")/.." || exit 1
tools=$1/lint/bin
[ -e "$1/lint/complete" ] || { echo "no black and ruff in $1/lint" && exit 77; }

folders=(bench python/mlx examples/python tests/python tests/differential tests/package)
format=(--check)
lint=()
if [ "${2:-}" = --fix ]; then
    format=()
    lint=(--fix)
fi
status=0
"$tools/black" -q -l 100 "${format[@]}" "${folders[@]}" || {
    echo "not formatted (tools/check_python.sh $1 --fix)"
    status=1
}
"$tools/ruff" check -q --no-cache --config python/ruff.toml "${lint[@]}" "${folders[@]}" ||
    status=1
exit $status
