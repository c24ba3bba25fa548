#!/usr/bin/env bash
# Unpacks packages of a Debian release, with all that they depend on down to the C library, into
# FOLDER/root. They come from the mirror that the system's own apt uses; nothing of the system is
# touched. Does nothing if the folder is complete. Fails, with a reason: with 125 where packages cannot be
# had here, with 1 where something is wrong with them.
#
# usage: unpack_debian.sh FOLDER RELEASE ARCHITECTURE PACKAGE...
set -eu

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
    echo "unpack_debian.sh: $*" >&2
    exit 1
}

cannot() {
    echo "unpack_debian.sh: $*" >&2
    exit 125
}

[ $# -ge 4 ] || fail "usage: unpack_debian.sh FOLDER RELEASE ARCHITECTURE PACKAGE..."
mkdir -p "$1"
folder=$(cd "$1" && pwd)
release=$2
architecture=$3
shift 3
[ -e "$folder/complete" ] && exit 0

command -v apt-get >/dev/null || cannot "no apt-get here"
command -v dpkg-deb >/dev/null || cannot "no dpkg-deb here"
[ -r "$keyring" ] || cannot "no Debian archive keys here"

# The Debian mirror of this system: the site whose release file says it is Debian's main archive.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' 2>/dev/null |
    awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
[ -n "$mirror" ] || cannot "apt knows no Debian mirror here"

apt=$folder/apt
trap 'rm -rf "$apt"' EXIT

# A private apt: own lists, cache and settings, an empty package database. Of the system's settings
# only those about fetching (proxies) are taken over; its hooks are not.
make_private_apt() {
    rm -rf "$apt"
    mkdir -p "$apt"/etc/{none,preferences.d,sources.list.d} "$apt/lists/partial" \
        "$apt/cache/archives/partial"
    : >"$apt/status"
    echo "deb [signed-by=$keyring] $mirror $release main" >"$apt/etc/sources.list"
    {
        apt-config dump | grep '^Acquire::'
        cat <<SETTINGS
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
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

make_private_apt
export APT_CONFIG=$apt/apt.conf
apt-get -qq update || cannot "the packages of Debian $release cannot be listed"
apt-get -qq install -y --no-install-recommends --download-only "$@" ||
    cannot "the packages of Debian $release cannot be had: $*"

rm -rf "$folder/root"
mkdir -p "$folder/root"
for deb in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$deb" "$folder/root" || fail "$deb cannot be unpacked"
done
touch "$folder/complete"
