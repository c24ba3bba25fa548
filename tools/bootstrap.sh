#!/usr/bin/env bash
# Makes sure that everything the build needs is installed. On Debian and its relatives missing
# packages are installed; where nothing is missing nothing is run and no network is needed.
set -eu

# Debian package               what it is for
packages='
gcc                            C compiler
g++                            compiles the public headers as C++ (check only)
binutils                       ld, objcopy, nm
cmake                          build
ninja-build                    build
pkg-config                     finds the libraries
python3                        build-time generators and checks
python3-numpy                  expected values of the op tests
python3-venv                   for the package that tokenizers are compared with
clang                          the tests with a second compiler and sanitizers
libclang-rt-dev                sanitizers and libFuzzer
llvm                           names of functions in what sanitizers report
clang-tidy                     lint
clang-format                   format check
glslc                          compiles the GLSL kernels
spirv-tools                    checks the compiled kernels
spirv-headers                  SPIR-V opcode names for the emitter
libvulkan-dev                  Vulkan headers and loader
mesa-vulkan-drivers            Vulkan drivers, with a software device
vulkan-validationlayers        validation layers for the tests
libopenblas-dev                matrix products on the CPU
libcjson-dev                   JSON: model settings, safetensors headers
zlib1g-dev                     compressed npz archives
libpcre2-dev                   patterns of tokenizers
libutf8proc-dev                Unicode normal forms for tokenizers
libedit-dev                    line editing of `mlx chat`
libcmocka-dev                  C unit tests
'
names=$(awk 'NF { print $1 }' <<<"$packages")

explain() {
    echo "mlx-vulkan needs these packages (Debian names) that are not installed:" >&2
    for name in $1; do
        awk -v n="$name" '$1 == n { print "    " $0 }' <<<"$packages" >&2
    done
}

if ! command -v dpkg-query >/dev/null; then
    # Not Debian: names differ, so the tools themselves are looked for.
    absent=""
    for tool in cc c++ clang clang-tidy cmake ninja pkg-config python3 clang-format glslc spirv-val; do
        command -v "$tool" >/dev/null || absent="$absent $tool"
    done
    for module in openblas libcjson zlib libpcre2-8 libutf8proc libedit cmocka; do
        pkg-config --exists "$module" 2>/dev/null || absent="$absent $module"
    done
    python3 -c "import numpy" 2>/dev/null || absent="$absent numpy"
    [ -z "$absent" ] && exit 0
    echo "bootstrap.sh: not found:$absent" >&2
    explain "$names"
    echo "Install their equivalents with your system's package manager, then run make again." >&2
    exit 1
fi

missing=""
for name in $names; do
    state=$(dpkg-query -W -f '${Status}' "$name" 2>/dev/null || true)
    case $state in
    *"ok installed") ;;
    *) missing="$missing $name" ;;
    esac
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    explain "$missing"
    echo "Run as root: apt-get install$missing" >&2
    exit 1
fi

echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # lists of words
if ! { $as_root apt-get update -q && $as_root apt-get install -qy --no-install-recommends $missing; }; then
    explain "$missing"
    echo "apt-get could not install them; install them by hand, then run make again." >&2
    exit 1
fi
