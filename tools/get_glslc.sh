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

# A private apt: own lists, cache and settings, an empty package database. Of the system's settings
# only those about fetching (proxies) are taken over; its hooks are not.
make_private_apt() {
    rm -rf "$apt"
    mkdir -p "$apt"/etc/{none,preferences.d,sources.list.d} "$apt/lists/partial" \
        "$apt/cache/archives/partial"
    : >"$apt/status"
    echo "deb [signed-by=$keyring] $mirror $1 main" >"$apt/etc/sources.list"
    {
        apt-config dump | grep '^Acquire::'
        cat <<SETTINGS
Dir::Etc "$apt/etc";
Dir::Etc::Parts "none";
Dir::State "$apt";
Dir::State::Lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Debug::NoLocking "1";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
SETTINGS
    } >"$apt/apt.conf"
}

# Downloads the packages of a release and all that they depend on, down to the C library.
download() {
    make_private_apt "$1"
    # shellcheck disable=SC2086 # a list of words
    APT_CONFIG=$apt/apt.conf apt-get -qq update &&
        APT_CONFIG=$apt/apt.conf apt-get -qq install -y --no-install-recommends \
            --download-only $packages
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
