#!/usr/bin/env bash
# tools/bootstrap.sh on systems that this one is not: os-release files and package managers are made
# up. Whether the names exist is known to the distributions only.
# usage: bootstrap.sh SCRIPT
set -u
script=$1
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$*" >&2
    failed=1
}

# system, lines of its os-release, family
systems='
debian12   ID=debian|VERSION_ID="12"                                   debian
debian13   ID=debian|VERSION_ID="13"                                   debian
ubuntu2404 ID=ubuntu|ID_LIKE=debian|VERSION_ID="24.04"                 debian
mint       ID=linuxmint|ID_LIKE="ubuntu,debian"                        debian
fedora     ID=fedora|VERSION_ID=43                                     fedora
rocky      ID="rocky"|ID_LIKE="rhel,centos,fedora"                     fedora
arch       ID=arch                                                     arch
manjaro    ID=manjaro|ID_LIKE=arch                                     arch
'

# One name of each kind: as elsewhere, another word, two for one, and the library with its headers.
wanted_debian="gcc g++ ninja-build libvulkan-dev glslc libcjson-dev libcmocka-dev clang-format"
wanted_fedora="gcc gcc-c++ ninja-build vulkan-headers vulkan-loader glslc cjson-devel libcmocka-devel clang-tools-extra"
wanted_arch="gcc ninja vulkan-headers vulkan-icd-loader shaderc cjson cmocka clang"
never_debian='-devel$'
never_fedora='-dev$|^lib.*[0-9]g?-dev'
never_arch='-dev$|-devel$|^python3'

check_list() { # system family
    local list wanted=wanted_$2 never=never_$2
    list=$("$script" --list --os-release "$folder/$1") || fail "$1: no list"
    for name in ${!wanted}; do
        grep -qx -e "$name" <<<"$list" || fail "$1: $name is missing in the list"
    done
    ! grep -Ex -e "${!never}" -e - <<<"$list" || fail "$1: names of another family"
    [ "$(sort <<<"$list" | uniq -d)" = "" ] || fail "$1: names come twice"
    for name in $("$script" --arm64 --list --os-release "$folder/$1"); do
        grep -qx -e "$name" <<<"$list" || echo "$name"
    done | grep -q qemu || fail "$1: --arm64 brings no qemu"
}

while read -r system lines family; do
    [ -n "$system" ] || continue
    tr '|' '\n' <<<"$lines" | sed '/LIKE/s/,/ /g' >"$folder/$system"
    check_list "$system" "$family"
done <<<"$systems"

# Package managers that know everything but the JSON library.
mkdir "$folder/bin"
cat >"$folder/bin/rpm" <<'RPM'
#!/bin/sh
[ "$3" != cjson-devel ]
RPM
cat >"$folder/bin/pacman" <<'PACMAN'
#!/bin/sh
shift
for name; do [ "$name" != cjson ] || { echo cjson; exit 127; }; done
PACMAN
chmod +x "$folder"/bin/*

check_message() { # system command
    local said
    said=$(PATH="$folder/bin:$PATH" "$script" --os-release "$folder/$1" 2>&1) &&
        fail "$1: nothing is missing"
    grep -qx "Run as root: $2" <<<"$said" || fail "$1: no '$2' in: $said"
    grep -q "JSON" <<<"$said" || fail "$1: not said what it is for: $said"
}

check_message fedora "dnf install cjson-devel"
check_message rocky "dnf install cjson-devel"
check_message arch "pacman -S --needed cjson"

# Elsewhere the tools are looked for by their own names.
echo ID=elsewhere >"$folder/elsewhere"
"$script" --list --os-release "$folder/elsewhere" 2>/dev/null && fail "elsewhere: a list"
# Nothing but the shell's own tools: compilers and libraries are not found.
mkdir "$folder/tools"
for tool in awk bash env head sed tr; do ln -s "$(command -v $tool)" "$folder/tools/$tool"; done
said=$(PATH=$folder/tools "$script" --os-release "$folder/elsewhere" 2>&1) &&
    fail "elsewhere: nothing is missing"
grep -q "not found:.* cmake.* openblas.* numpy" <<<"$said" || fail "elsewhere: $said"

exit $failed
