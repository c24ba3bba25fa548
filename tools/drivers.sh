#!/usr/bin/env bash
# Runs the tests of BUILD with the Mesa of later Debian releases (on_mesa.sh) and ends with the line
# "N passed, N failed" over all of them. part: those tests that a driver has the most to say in, a few
# minutes; where a release's drivers cannot be had, it is left out and the output says so. all:
# everything but the checks of the sources, and a release that cannot be had is a failure.
# usage: drivers.sh BUILD part|all
set -u
build=$(cd "$1" && pwd) || exit 1
what=$2
cd "$(dirname "$0")/.." || exit 1

releases="trixie forky"
case $what in
part) selection=(-R '^ops_.*_vk$|^ops_cases_(unary|binary|reduce|quant|sdpa|norm|arg)|^unit_(fusion|spirv|vk_.*)$|^cli_generate$') ;;
all) selection=(-L 'unit|ops|api|cli') ;;
*) echo "drivers.sh: part or all, not $what" >&2 && exit 1 ;;
esac

passed=0
failed=0
for release in $releases; do
    echo "== Mesa of Debian $release"
    tools/on_mesa.sh "$build" "$release" true
    if [ $? -eq 125 ]; then
        echo "Mesa of Debian $release is left out"
        [ "$what" = part ] || failed=$((failed + 1))
        continue
    fi
    counts=$(tools/on_mesa.sh "$build" "$release" tools/run_tests.sh "$build" "${selection[@]}" \
        </dev/null | tee /dev/stderr | sed -n '$s/[^0-9]\+/ /gp')
    read -r p f <<<"${counts:-0 1}"
    passed=$((passed + p))
    failed=$((failed + f))
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
