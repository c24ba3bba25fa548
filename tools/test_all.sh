#!/usr/bin/env bash
# Builds and tests every configuration and ends with the line "N passed, N failed" over all of them;
# one that cannot be built counts as one failure. BUILD holds the first, which is built already, and
# gets a folder for each of the others, which are presets of CMakePresets.json. The first is also
# tested with newer drivers (drivers.sh).
# usage: test_all.sh BUILD JOBS [CMake options]
set -u
build=$(cd "$1" && pwd) || exit 1
jobs=$2
shift 2
cd "$(dirname "$0")/.." || exit 1

# preset, and the labels of the tests that it runs (none: all)
configurations="
dev
asan  unit|ops|api|cli|fuzz
tsan  unit
"

make_preset() { # preset folder [CMake options]
    echo "== $1"
    cmake --preset "$1" -B "$2" -DMLX_SPIRV_FROM="$build" "${@:3}" >"$2.log" 2>&1 &&
        cmake --build "$2" -j "$jobs" >>"$2.log" 2>&1 && return
    grep -vE '^\[[0-9]+/[0-9]+\]|^-- ' "$2.log" | tail -n 60
    echo "$1 cannot be built, see $2.log"
    return 1
}

. tools/counts.sh
while read -r preset labels; do
    [ -n "$preset" ] || continue
    folder=$build
    if [ "$preset" != dev ]; then
        folder=$build/$preset
        if ! make_preset "$preset" "$folder" "$@"; then
            count_failure "$preset is not tested"
            continue
        fi
    fi
    count tools/run_tests.sh "$folder" ${labels:+-L "$labels"}
done <<<"$configurations"
count tools/drivers.sh "$build" part

end_counts
