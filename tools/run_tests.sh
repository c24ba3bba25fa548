#!/usr/bin/env bash
# Runs ctest in a build folder and ends with the line "N passed, N failed".
# usage: run_tests.sh BUILD [ctest options]
# Tests with the label slow need minutes and much memory: they run with MLX_SLOW_TESTS=1.
set -u

build=$1
shift
jobs=$(nproc 2>/dev/null || echo 1)
log=$build/tests.log
[ "${MLX_SLOW_TESTS:-0}" = 1 ] || set -- -LE slow "$@"

ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$jobs" "$@" | tee "$log"
status=${PIPESTATUS[0]}

# ctest's own summary: "97% tests passed, 2 tests failed out of 60"
summary=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests\{0,1\} failed out of \([0-9]*\)$/\1 \2/p' "$log")
read -r failed total <<<"${summary:-0 0}"
if [ "$total" -eq 0 ]; then
    failed=1
    total=1
    status=1
fi
# What was skipped did not pass; the tests say why.
skipped=$(grep -c '\*\*\*Skipped' "$log")
if [ "$skipped" -gt 0 ]; then
    echo "$skipped skipped:"
    sed -n 's/^skipped: /    /p' "$build/Testing/Temporary/LastTest.log" | sort | uniq -c
fi
echo "$((total - failed - skipped)) passed, $failed failed"
exit "$status"
