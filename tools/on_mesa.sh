#!/usr/bin/env bash
# Runs a command with the Vulkan drivers of another Debian release: its Mesa, loader, validation layer
# and C library are laid over /usr in a mount namespace of the command's own, so that programs that are
# built already, and what they start, find them without being told. The packages are unpacked under
# BUILD/drivers/RELEASE (unpack_debian.sh). Needs root, or user namespaces.
#
# Ends with 125 where the drivers cannot be had or laid over /usr here, and with the command's exit
# code otherwise.
#
# usage: on_mesa.sh BUILD RELEASE COMMAND [ARGUMENT...]
set -eu

packages="mesa-vulkan-drivers libvulkan1 vulkan-validationlayers"

fail() { # CODE WHAT
    echo "on_mesa.sh: $2" >&2
    exit "$1"
}

[ $# -ge 3 ] || fail 1 "usage: on_mesa.sh BUILD RELEASE COMMAND [ARGUMENT...]"
tools=$(cd "$(dirname "$0")" && pwd)
release=$2
mkdir -p "$1/drivers"
folder=$(cd "$1/drivers" && pwd)/$release
shift 2
command -v dpkg >/dev/null || fail 125 "no dpkg here"
# shellcheck disable=SC2086 # a list of words
"$tools/unpack_debian.sh" "$folder" "$release" "$(dpkg --print-architecture)" $packages ||
    fail $? "no drivers of Debian $release"

root=$folder/root/usr
namespace="unshare --mount"
[ "$(id -u)" -eq 0 ] || namespace="$namespace --map-current-user --keep-caps"
# The software device alone: drivers of the system's release would load libraries of the other one.
export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json
export VK_ICD_FILENAMES=$VK_DRIVER_FILES
$namespace mount -t overlay overlay -o "lowerdir=$root:/usr" /usr ||
    fail 125 "/usr cannot be overlaid here"
# shellcheck disable=SC2016 # expanded by the inner shell
exec $namespace sh -c 'mount -t overlay overlay -o "lowerdir=$1:/usr" /usr && shift && exec "$@"' \
    sh "$root" "$@"
