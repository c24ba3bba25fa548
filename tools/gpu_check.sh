#!/usr/bin/env bash
# The whole check on a machine with a real GPU: tests, then benches, as tables. Runs inside a folder
# made by pack_gpu.sh. Uses the machine's Vulkan driver; where there is only NVIDIA's driver without
# an ICD file, writes one.
# usage: check.sh [info] [tests] [bench] [-- options of mlx bench]
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

parts=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    parts+=("$1")
    shift
done
[ "${1:-}" = -- ] && shift
[ ${#parts[@]} -gt 0 ] || parts=(info tests bench)

if ! ls /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json >/dev/null 2>&1; then
    cat >"$work/icd.json" <<JSON
{ "file_format_version": "1.0.0",
  "ICD": { "library_path": "libEGL_nvidia.so.0", "api_version": "1.4.312" } }
JSON
    export VK_ICD_FILENAMES=$work/icd.json VK_DRIVER_FILES=$work/icd.json
fi
export MLX_DEFAULT_DEVICE=gpu MLX_VK_CACHE_DIR=${MLX_VK_CACHE_DIR:-$work/cache}

# The machine's own C library, unless it is older than the one the programs were built with: then the
# carried loader runs them with the carried one.
export LD_LIBRARY_PATH=$here/lib
loader=()
if ! "$here/bin/mlx" --version >/dev/null 2>&1; then
    system=$(ldconfig -p | awk '/=> \// { print $NF }' | xargs -n1 dirname | sort -u | paste -sd:)
    loader=("$here/libc/ld-linux-x86-64.so.2" --library-path "$here/lib:$here/libc:$system")
fi

passed=0
failed=0
run_tests() {
    for program in "$here"/bin/unit_* "$here"/bin/ops_*; do
        [ -f "$program" ] || continue
        log=$work/$(basename "$program").log
        if timeout 300 "${loader[@]}" "$program" >"$log" 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED $(basename "$program") (exit code $?)"
            grep -aE 'ERROR|FAILED|mismatch' "$log" | head -${CHECK_LINES:-12}
        fi
    done
    echo "$passed passed, $failed failed"
}

for part in "${parts[@]}"; do
    echo "== $part"
    case $part in
    info) "${loader[@]}" "$here/bin/mlx" info ;;
    tests) run_tests ;;
    bench) "${loader[@]}" "$here/bin/mlx" bench "$@" ;;
    *) echo "check.sh: unknown part '$part'" >&2; exit 1 ;;
    esac
done
exit "$((failed > 0))"
