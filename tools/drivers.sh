#!/usr/bin/env bash
# Runs the tests of BUILD with the Mesa of later Debian releases (on_mesa.sh) and ends with the line
# "N passed, N failed" over all of them. part: those tests that a driver has the most to say in, a few
# minutes; where a release's drivers cannot be had, it is left out and the output says so. all:
# everything but the checks of the sources, and a release that cannot be had is a failure. Either way
# `mlx info` has to name another driver than without on_mesa.sh.
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

driver() { # [COMMAND...]: of the device in use, as mlx info sees it where the command runs it
    local text
    text=$("$@" "$build/mlx" info) || return
    sed -n 's/^in use: .*, driver //p' <<<"$text"
}

. tools/counts.sh
own=$(driver env VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json \
    VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.json)
for release in $releases; do
    echo "== Mesa of Debian $release"
    other=$(driver tools/on_mesa.sh "$build" "$release")
    status=$?
    if [ $status -eq 125 ] && [ "$what" = part ]; then
        echo "Mesa of Debian $release is left out"
    elif [ $status -ne 0 ]; then
        count_failure "the tests cannot run with the Mesa of Debian $release"
    elif [ -z "$other" ] || [ "$other" = "$own" ]; then
        count_failure "the driver is '$other', which is that of this system, not of Debian $release"
    else
        echo "the driver is $other"
        count tools/on_mesa.sh "$build" "$release" tools/run_tests.sh "$build" "${selection[@]}"
    fi
done
end_counts
