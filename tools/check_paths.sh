#!/usr/bin/env bash
# No file of the project names a folder of somebody's machine. Temporary files are made with
# mktemp, mkdtemp or mkstemp, and only such lines may name the folder for them.
set -u
cd "$(dirname "$0")/.." || exit 1

list_files() {
    git ls-files 2>/dev/null || find . -path './build*' -prune -o -type f -print
}

if list_files | tr '\n' '\0' | xargs -0 grep -InE '(^|[^A-Za-z0-9_.}])/(root|home|tmp|work)/' |
    grep -vE 'mk(d|s)?temp'; then
    echo "these lines name folders of one machine"
    exit 1
fi
echo "no machine paths"
