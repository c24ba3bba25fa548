#!/usr/bin/env bash
# Puts the Python package that the tokenizers are compared with into a folder, as a virtual
# environment: the test gen_tokenizers trains the tokenizers of the tests anew with it.
# Fails, with a reason, where it cannot be had; the tests then use what is in tests/data. Does nothing
# if the folder is complete.
#
# usage: get_tokenizers.sh FOLDER
set -eu

package=tokenizers==0.23.3 # tests/data was made with this version

fail() {
    echo "get_tokenizers.sh: $*" >&2
    exit 1
}

[ $# -eq 1 ] || fail "usage: get_tokenizers.sh FOLDER"
[ -e "$1/complete" ] && exit 0
echo "getting the Python package $package"
rm -rf "$1"
python3 -m venv "$1" || fail "no virtual environments here"
"$1/bin/python" -m pip install -q --disable-pip-version-check --no-deps --timeout 20 --retries 1 \
    "$package" || fail "$package could not be installed"
"$1/bin/python" -c "import tokenizers" || fail "$package does not work here"
touch "$1/complete"
