#!/usr/bin/env bash
# Puts the Python package that the tokenizers are compared with into a folder, as a virtual
# environment: the test gen_tokenizers trains the tokenizers of the tests anew with it.
# Where it cannot be had the tests use what is in tests/data, which was made with this version.
#
# usage: get_tokenizers.sh FOLDER
set -eu
[ $# -eq 1 ] || { echo "usage: get_tokenizers.sh FOLDER" >&2 && exit 1; }
exec "$(dirname "$0")/get_packages.sh" "$1" --no-deps tokenizers==0.23.3
