#!/usr/bin/env bash
# Makes a wheel of the Python package that runs without what the build needed: auditwheel puts the
# libraries beside the extension (OpenBLAS with its Fortran, cJSON) and names the oldest C library that
# all of it works with. The Vulkan loader is none of them, it is opened at run time.
# Its tools are in BUILD/wheel-tools (tools/get_packages.sh); without them it fails, with 77.
#
# usage: make_wheel.sh BUILD OUT [CMake define]...
#   BUILD   build folder whose kernels are complete, and are taken
#   OUT     folder that gets the wheel, and nothing else
#   define  NAME=VALUE for the build of the extension; MLX_PYTHON_FROM=BUILD takes that of BUILD
set -eu

[ $# -ge 2 ] || { echo "usage: make_wheel.sh BUILD OUT [CMake define]..." >&2 && exit 2; }
build=$(cd "$1" && pwd)
tools=$build/wheel-tools
[ -e "$tools/complete" ] || { echo "skipped: no tools for wheels in $tools" && exit 77; }
rm -rf "$2"
mkdir -p "$2"
out=$(cd "$2" && pwd)
shift 2
cd "$(dirname "$0")/.."

# The build may have them from another one itself.
kernels=$(sed -n 's/^MLX_SPIRV_FROM:PATH=//p' "$build/CMakeCache.txt")
settings=("--config-settings=cmake.define.MLX_SPIRV_FROM=${kernels:-$build}")
for define; do
    settings+=("--config-settings=cmake.define.$define")
done
made=$(mktemp -d "$build/wheel.XXXXXX")
trap 'rm -rf "$made"' EXIT
PATH=$tools/bin:$PATH
export PATH
# The folder of the build stays: what did not change is not built again.
python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$made" \
    --config-settings="build-dir=$build/$(basename "$out")-build" "${settings[@]}" .
auditwheel repair -w "$out" "$made"/*.whl >"$made/log" 2>&1 || { cat "$made/log" >&2 && exit 1; }
ls "$out"/*.whl
