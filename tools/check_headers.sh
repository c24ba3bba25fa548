#!/usr/bin/env bash
# Every public header compiles alone, as C11 and as C++17, without a warning.
# usage: check_headers.sh [C compiler [C++ compiler]]
set -u
cd "$(dirname "$0")/.." || exit 1

cc=${1:-cc}
cxx=${2:-c++}
bad=0
count=0
for header in include/mlx/c/*.h; do
    # The declaration keeps the unit from being empty where a header declares nothing here.
    unit=$(printf '#include "%s"\ntypedef int header_check;\n' "${header#include/}")
    for compile in "$cc -std=c11 -x c" "$cxx -std=c++17 -x c++"; do
        # shellcheck disable=SC2086 # a command and its options
        $compile -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only - <<<"$unit" || {
            echo "$header does not compile alone with: $compile"
            bad=$((bad + 1))
        }
    done
    count=$((count + 1))
done
echo "$count headers checked as C11 and C++17, $bad failures"
[ "$bad" -eq 0 ]
