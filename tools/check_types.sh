#!/usr/bin/env bash
# Fails where mypy finds something wrong with the examples in Python or with tests/package/typed.py, by the
# stubs of BUILD. Skipped (77) where mypy or the stubs are not: tools/get_packages.sh.
#
# usage: check_types.sh BUILD
set -u
cd "$(dirname "$0")/.." || exit 1
mypy=$1/types/bin/mypy
[ -e "$1/types/complete" ] || { echo "skipped: no mypy in $1/types" && exit 77; }
[ -e "$1/python/mlx/core/__init__.pyi" ] || { echo "skipped: no stubs in $1/python" && exit 77; }

# What is wrong within the package's own files is no concern of those who use them.
MYPYPATH=$1/python "$mypy" --cache-dir "$1/types/cache" --follow-imports silent --no-error-summary \
    --namespace-packages --explicit-package-bases --check-untyped-defs --warn-unused-ignores \
    examples/python/*.py tests/package/typed.py
