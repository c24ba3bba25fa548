#!/usr/bin/env bash
# Makes sure that everything the build needs is installed. On Debian, Ubuntu and their relatives
# missing packages are installed; on Fedora, Arch and theirs the message has their names. Where
# nothing is missing nothing is run and no network is needed.
#
# usage: bootstrap.sh [--arm64] [--list] [--os-release FILE]
#   --arm64       what `make arm64` needs besides
#   --list        prints the packages for this system and does nothing else
#   --os-release  says which system this is, for the tests (else: /etc/os-release)
set -eu

# A name per family of distributions; several are joined by commas, - means that another row brings
# it. Fedora calls the C library's zlib what its newer releases replace by zlib-ng, which provides it.
#
# Debian, Ubuntu           Fedora                          Arch                             what it is for
packages='
gcc                        gcc                             gcc                              C compiler
g++                        gcc-c++                         -                                compiles the public headers as C++ (check only)
binutils                   binutils                        binutils                         ld, objcopy, nm
cmake                      cmake                           cmake                            build
ninja-build                ninja-build                     ninja                            build
pkg-config                 pkgconf-pkg-config              pkgconf                          finds the libraries
python3                    python3                         python                           build-time generators and checks
python3-numpy              python3-numpy                   python-numpy                     expected values of the op tests
python3-dev                python3-devel                   -                                headers for the Python package
python3-pytest             python3-pytest                  python-pytest                    runs its tests
python3-venv               -                               -                                for the package that tokenizers are compared with
clang                      clang                           clang                            the tests with a second compiler and sanitizers
libclang-rt-dev            compiler-rt                     compiler-rt                      sanitizers and libFuzzer
llvm                       llvm                            llvm                             names of functions in what sanitizers report
clang-tidy                 clang-tools-extra               -                                lint
clang-format               -                               -                                format check
glslc                      glslc                           shaderc                          compiles the GLSL kernels
spirv-tools                spirv-tools                     spirv-tools                      checks the compiled kernels
spirv-headers              spirv-headers-devel             spirv-headers                    SPIR-V opcode names for the emitter
libvulkan-dev              vulkan-headers,vulkan-loader    vulkan-headers,vulkan-icd-loader Vulkan headers and loader
mesa-vulkan-drivers        mesa-vulkan-drivers             vulkan-swrast                    Vulkan drivers, with a software device
vulkan-validationlayers    vulkan-validation-layers        vulkan-validation-layers         validation layers for the tests
libopenblas-dev            openblas-devel                  openblas                         matrix products and LAPACK on the CPU
libcjson-dev               cjson-devel                     cjson                            JSON: model settings, safetensors headers
zlib1g-dev                 zlib-devel                      zlib                             compressed npz archives
libpcre2-dev               pcre2-devel                     pcre2                            patterns of tokenizers
libutf8proc-dev            utf8proc-devel                  libutf8proc                      Unicode normal forms for tokenizers
libedit-dev                libedit-devel                   libedit                          line editing of `mlx chat`
libcmocka-dev              libcmocka-devel                 cmocka                           C unit tests
openmpi-bin                openmpi                         openmpi                          MPI, whose library is opened at run time (tests)
mpich                      mpich                           -                                another MPI (tests)
'
arm64_packages='
gcc-aarch64-linux-gnu      gcc-aarch64-linux-gnu           aarch64-linux-gnu-gcc            compiles for arm64
g++-aarch64-linux-gnu      gcc-c++-aarch64-linux-gnu       -                                compiles the public headers as C++ (check only)
libc6-dev-arm64-cross      -                               -                                its start files
qemu-user                  qemu-user                       qemu-user                        runs arm64 programs
'

# Families: column of the table, IDs of os-release (of the system or of what it is like), which of
# some packages are missing, and what installs them.
families='
debian 1 debian,ubuntu             missing_deb    apt-get install
fedora 2 fedora,rhel,centos        missing_rpm    dnf install
arch   3 arch,archarm              missing_pacman pacman -S --needed
'

missing_deb() {
    for name; do
        case $(dpkg-query -W -f '${Status}' "$name" 2>/dev/null || true) in
        *"ok installed") ;;
        *) echo "$name" ;;
        esac
    done
}

missing_rpm() {
    for name; do
        rpm -q --whatprovides "$name" >/dev/null 2>&1 || echo "$name"
    done
}

missing_pacman() {
    pacman -T "$@" 2>/dev/null || true
}

os_release=/etc/os-release
table=$packages
list=false
while [ $# -gt 0 ]; do
    case $1 in
    --arm64) table=$packages$arm64_packages ;;
    --list) list=true ;;
    --os-release) os_release=$2 && shift ;;
    *) echo "bootstrap.sh: what is $1?" >&2 && exit 2 ;;
    esac
    shift
done

# The row of the family that the system, or one that it is like, belongs to.
find_family() {
    local ids
    ids=$(sed -n 's/^ID=//p; s/^ID_LIKE=//p' "$os_release" 2>/dev/null | tr -d "\"'")
    for id in $ids; do
        awk -v id="$id" 'NF { n = split($3, known, ","); for (i = 1; i <= n; i++)
            if (known[i] == id) { print; exit } }' <<<"$families"
    done | head -n 1
}

names_of() { # column
    awk -v column="$1" 'NF && $column != "-" { gsub(",", "\n", $column); print $column }' <<<"$table"
}

explain() { # column names
    local column=$1
    shift
    echo "mlx-vulkan needs these packages that are not installed:" >&2
    for name; do
        awk -v n="$name" -v column="$column" '
            index("," $column ",", "," n ",") {
                $1 = $2 = $3 = ""; sub(/^ +/, ""); printf "    %-26s %s\n", n, $0 }' <<<"$table" >&2
    done
}

# Names of packages are not known here, so the tools themselves are looked for.
look_for_tools() {
    local absent=""
    for tool in cc c++ clang clang-tidy cmake ninja pkg-config python3 clang-format glslc spirv-val; do
        command -v "$tool" >/dev/null || absent="$absent $tool"
    done
    for module in openblas libcjson zlib libpcre2-8 libutf8proc libedit cmocka; do
        pkg-config --exists "$module" 2>/dev/null || absent="$absent $module"
    done
    python3 -c "import numpy" 2>/dev/null || absent="$absent numpy"
    [ -z "$absent" ] && exit 0
    echo "bootstrap.sh: not found:$absent" >&2
    # shellcheck disable=SC2046 # a list of words
    explain 1 $(names_of 1)
    echo "These are Debian's names. Install their equivalents with your system's package manager," \
        "then run make again." >&2
    exit 1
}

read -r family column _ find_missing install <<<"$(find_family)" || true
if [ "$list" = true ]; then
    [ -n "$family" ] || { echo "bootstrap.sh: names of packages are not known here" >&2 && exit 1; }
    names_of "$column"
    exit 0
fi
[ -n "$family" ] || look_for_tools

# shellcheck disable=SC2046 # a list of words
mapfile -t missing < <($find_missing $(names_of "$column"))
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=sudo
[ "$(id -u)" -eq 0 ] && as_root=""
if [ "$family" != debian ] || { [ -n "$as_root" ] && ! command -v sudo >/dev/null; }; then
    explain "$column" "${missing[@]}"
    echo "Run as root: $install ${missing[*]}" >&2
    exit 1
fi

echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
if ! { $as_root apt-get update -q &&
    $as_root apt-get install -qy --no-install-recommends "${missing[@]}"; }; then
    explain "$column" "${missing[@]}"
    echo "apt-get could not install them; install them by hand, then run make again." >&2
    exit 1
fi
