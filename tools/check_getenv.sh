#!/usr/bin/env bash
# Settings are rows of gate.def: only gate.c reads the environment.
set -u
cd "$(dirname "$0")/.." || exit 1

if grep -rnE '\bgetenv *\(|\bsecure_getenv\b|\benviron\b' --include='*.[ch]' src include cli bench |
    grep -v '^src/base/gate\.c:'; then
    echo "read the environment through a row in src/base/gate.def"
    exit 1
fi
echo "the environment is read in gate.c only"
