#!/usr/bin/env bash
# Puts a newer glslc and spirv-val than the system's into a folder, for the kernels that need GLSL
# extensions Debian 12's compiler does not know (cooperative matrices, bfloat16).
#
# The programs come from a later Debian release, by the mirror that the system's own apt uses, with
# the loader and libraries of that release beside them; nothing else of the system is touched. The
# newest release that can be had is taken: bfloat16 needs forky, cooperative matrices need trixie.
# Fails, with a reason, where that is not possible. Does nothing if the folder is complete.
#
# usage: get_glslc.sh FOLDER
set -eu

releases="forky trixie"
packages="glslc spirv-tools"
programs="glslc spirv-val"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
    echo "get_glslc.sh: $*" >&2
    exit 1
}

[ $# -eq 1 ] || fail "usage: get_glslc.sh FOLDER"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -e "$folder/complete" ] && exit 0

command -v apt-get >/dev/null || fail "no apt-get here"
command -v dpkg-deb >/dev/null || fail "no dpkg-deb here"
[ -r "$keyring" ] || fail "no Debian archive keys here"

# The Debian mirror of this system: the site whose release file says it is Debian's main archive.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' 2>/dev/null |
    awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
[ -n "$mirror" ] || fail "apt knows no Debian mirror here"

apt=$folder/apt

# A private apt: own lists, own cache, an empty package database.
private_apt() {
    apt-get -qq -o Dir::State="$apt" -o Dir::State::Lists="$apt/lists" \
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/none" \
        -o Dir::Etc::preferencesparts="$apt/none" -o APT::Sandbox::User= \
        -o APT::Get::List-Cleanup=0 -o Debug::NoLocking=1 -o Acquire::Languages=none \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
        -o APT::Update::Error-Mode=any -o DPkg::Post-Invoke= -o APT::Update::Post-Invoke= \
        -o APT::Update::Post-Invoke-Success= "$@"
}

# Downloads the packages of a release and all that they depend on, down to the C library.
download() {
    rm -rf "$apt"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/none"
    : >"$apt/status"
    echo "deb [signed-by=$keyring] $mirror $1 main" >"$apt/sources.list"
    # shellcheck disable=SC2086 # a list of words
    private_apt update &&
        private_apt install -y --no-install-recommends --download-only $packages
}

unpack() {
    rm -rf "$folder/root" "$folder/bin"
    mkdir -p "$folder/root" "$folder/bin"
    for deb in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$deb" "$folder/root" || return 1
    done
    loader=$(find "$folder/root" -name 'ld-linux*.so.*' -type f | head -n 1)
    [ -n "$loader" ] || return 1
    libraries=$(find "$folder/root" -name '*.so.*' ! -type d -printf '%h\n' | sort -u | paste -sd:)
    for program in $programs; do
        cat >"$folder/bin/$program" <<WRAPPER
#!/bin/sh
exec "$loader" --library-path "$libraries" "$folder/root/usr/bin/$program" "\$@"
WRAPPER
        chmod +x "$folder/bin/$program"
        "$folder/bin/$program" --version >/dev/null || return 1
    done
}

for release in $releases; do
    echo "getting glslc of Debian $release"
    if download "$release" && unpack; then
        rm -rf "$apt"
        touch "$folder/complete"
        exit 0
    fi
done
rm -rf "$apt" "$folder/root" "$folder/bin"
fail "no later Debian release could be used"
