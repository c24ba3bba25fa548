#!/usr/bin/env bash
# Puts Python packages into a folder, as a virtual environment, for tests and checks that want a
# certain version. Fails, with a reason, where they cannot be had. Does nothing if the folder is
# complete.
#
# usage: get_packages.sh FOLDER [--no-deps] PACKAGE==VERSION...
set -eu

fail() {
    echo "get_packages.sh: $*" >&2
    exit 1
}

[ $# -ge 2 ] || fail "usage: get_packages.sh FOLDER [--no-deps] PACKAGE==VERSION..."
folder=$1
shift
[ -e "$folder/complete" ] && exit 0
echo "getting Python packages: $*"
rm -rf "$folder"
python3 -m venv "$folder" || fail "no virtual environments here"
"$folder/bin/python" -m pip install -q --disable-pip-version-check --timeout 20 --retries 1 "$@" ||
    fail "$* could not be installed"
for package; do
    case $package in
    -*) ;;
    *)
        name=${package%%==*}
        [ -x "$folder/bin/$name" ] || "$folder/bin/python" -c "import $name" ||
            fail "$package does not work here"
        ;;
    esac
done
touch "$folder/complete"
