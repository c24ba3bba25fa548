#!/usr/bin/env bash
# The whole check on a machine with a real GPU: tests, then benches, as tables. Runs inside a folder
# made by pack_gpu.sh. Uses the machine's Vulkan driver; where there is only NVIDIA's driver without
# an ICD file, writes one. The tests are those of ctest that the file `plan` there names, with the
# same arguments and settings; what was not run is said at the end.
# `repeat` is not part of the whole: whether rows of the bench read the same alone and after others;
# nor is `torch`: rows of the bench beside PyTorch's, where Python has it.
# usage: check.sh [info] [tests] [slow] [bench] [repeat] [-- options of mlx bench]
#        check.sh torch [-- options of beside_torch.py]
# CHECK_JOBS: tests at a time; CHECK_ONLY: a pattern of names; CHECK_LOGS: folder for what they print
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
[ ${#parts[@]} -gt 0 ] || parts=(info tests slow bench)

if ! cat /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json 2>/dev/null | grep -q .; then
    cat >"$work/icd.json" <<JSON
{ "file_format_version": "1.0.0",
  "ICD": { "library_path": "libEGL_nvidia.so.0", "api_version": "1.4.312" } }
JSON
    export VK_ICD_FILENAMES=$work/icd.json VK_DRIVER_FILES=$work/icd.json
fi
export MLX_VK_CACHE_DIR=${MLX_VK_CACHE_DIR:-$work/cache} TEST_DATA=$here/data

# The machine's own C library, unless it is older than the one the programs were built with: then the
# carried loader runs them with the carried one.
export LD_LIBRARY_PATH=$here/lib PATH=$PATH:$here/tools
loader=()
mlx=$here/bin/mlx
if ! "$mlx" --version >/dev/null 2>&1; then
    system=$(ldconfig -p | awk '/=> \// { print $NF }' | xargs -n1 dirname | sort -u | paste -sd:)
    loader=("$here/libc/ld-linux-x86-64.so.2" --library-path "$here/lib:$here/libc:$system")
    mlx=$work/mlx # for scripts
    printf '#!/bin/sh\nexec %s "$@"\n' "${loader[*]} $here/bin/mlx" >"$mlx"
    chmod +x "$mlx"
fi

logs=${CHECK_LOGS:-$work/logs}
mkdir -p "$logs" "$work/done"
has_layer=$(ls /usr/share/vulkan/explicit_layer.d/*validation* /etc/vulkan/explicit_layer.d/*validation* \
    2>/dev/null | head -n 1)

# ---- tests ----

run_one() { # NAME SECONDS FAILURE SETTINGS COMMAND
    local log=$logs/$1.log settings=() command=() word code began=$SECONDS
    for word in $4; do
        case $word in
        -) ;;
        MLX_VK_VALIDATE=*) [ -n "$has_layer" ] && settings+=("$word") ;;
        *) settings+=("$word") ;;
        esac
    done
    for word in $5; do
        [ "$word" = @/bin/mlx ] && word=$mlx
        command+=("${word/#@/$here}")
    done
    case ${command[0]} in "$here"/bin/*) command=("${loader[@]}" "${command[@]}") ;; esac
    (cd "$work" && env "${settings[@]}" timeout "$2" "${command[@]}") >"$log" 2>&1
    code=$?
    [ "$3" = - ] || ! grep -aqE "$3" "$log" || code=${code/#0/pattern}
    echo "$code" >"$work/done/$1"
    [ "$code" = 0 ] && code=passed || code=FAILED
    echo "$code $1 ($((SECONDS - began)) s)"
}

# Starts the tests of a part, CHECK_JOBS at a time; those that must be alone come last.
run_part() { # PART
    local kind name in seconds failure settings command running=0
    while IFS=$'\t' read -r kind name in seconds failure settings command; do
        [ "$kind" = run ] && [ "$in" = "$1" ] && is_wanted "$name" || continue
        while [ "$running" -ge "${CHECK_JOBS:-$(nproc)}" ]; do
            wait -n
            running=$((running - 1))
        done
        run_one "$name" "$seconds" "$failure" "$settings" "$command" </dev/null &
        running=$((running + 1))
    done <"$here/plan"
    wait
    while IFS=$'\t' read -r kind name in seconds failure settings command; do
        [ "$kind" = run ] && [ "$in" = "$1 alone" ] && is_wanted "$name" || continue
        run_one "$name" "$seconds" "$failure" "$settings" "$command" </dev/null
    done <"$here/plan"
}

is_wanted() {
    [[ $1 =~ ${CHECK_ONLY:-.} ]]
}

passed=0
failed=0
report() {
    local name code kind in rest
    for file in "$work"/done/*; do
        [ -f "$file" ] || continue
        name=$(basename "$file")
        read -r code <"$file"
        if [ "$code" = 0 ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED $name (exit code $code):"
            grep -aE 'ERROR|FAILED|mismatch|hazard|: error' "$logs/$name.log" |
                head -"${CHECK_LINES:-12}"
        fi
    done
    grep -aH 'SKIPPED *\]' "$logs"/*.log 2>/dev/null | sed 's|.*/||; s|\.log:| |; s|^|skipped |' |
        sort -u
    [ -n "$has_layer" ] || echo "without the validation layer, which is not installed here"
    while IFS=$'\t' read -r kind name in rest; do
        if [ "$kind" = leave ]; then
            echo "not run: $name ($in)"
        elif [ ! -f "$work/done/$name" ]; then
            echo "not run: $name (not asked for: part ${in% alone}, CHECK_ONLY '${CHECK_ONLY:-}')"
        fi
    done <"$here/plan"
    echo "$passed passed, $failed failed"
}

# ---- what the bench reads, alone and after other rows ----

# Lines of JSON, each with the name of its run in front, as a table of the rows read more than once,
# in microseconds (of models: for a token). Fails if a row differs by more than 5 %.
compare_readings() {
    awk -F '\t' '
        function get(key,    at, text) {
            at = index($2, "\"" key "\": ")
            if (!at)
                return ""
            text = substr($2, at + length(key) + 4)
            sub(/^"/, "", text)
            sub(/"?[,}].*/, "", text)
            return text
        }
        function row_name(    kind, size) {
            kind = get("case")
            size = get("m") "x" get("n") "x" get("k")
            if (get("test") != "")
                return "llm_" get("test") "_depth_" get("depth")
            if (kind == "quantized")
                return "quantized_" size "_" get("bits") "bit_g" get("group")
            if (kind != "product")
                return kind
            if (size == "4096x4096x4096" && get("transposed") == "false") # the same as of the table
                return "matmul_" get("dtype")
            return "product_" size "_" get("dtype") (get("transposed") == "true" ? "_nt" : "") \
                (get("batch") + 0 > 0 ? "_batched" : "")
        }
        function reading() {
            if (get("test") != "")
                return 1e6 / get("tokens_per_second")
            if (get("wall_us") != "")
                return get("gpu_us") + 0 > 0 ? get("gpu_us") : get("wall_us")
            return get("us")
        }
        {
            value = reading() + 0 # a number, not text that looks like one
            name = row_name()
            if (name == "" || value <= 0)
                next
            if (!(name in n))
                order[++rows] = name
            if (!n[name]++ || value < low[name])
                low[name] = value
            if (value > high[name])
                high[name] = value
            clock = get("clock")
            seen[name] = seen[name] sprintf("  %s %.2f", $1, value) (clock ? " (" clock ")" : "")
        }
        END {
            printf "%-36s %10s %10s %7s %-6s %s\n", "row", "shortest", "longest", "ratio", "steady",
                "readings, us (clock after it)"
            for (i = 1; i <= rows; i++) {
                name = order[i]
                if (n[name] < 2)
                    continue
                ratio = high[name] / low[name]
                differ += ratio > 1.05
                printf "%-36s %10.2f %10.2f %7.3f %-6s%s\n", name, low[name], high[name], ratio,
                    (ratio > 1.05 ? "no" : "yes"), seen[name]
                compared++
            }
            printf "%d rows compared, %d differ by more than 5 %%\n", compared, differ
            exit !compared || differ
        }' "$1"
}

# Each run begins with a GPU that was idle; in some of them other rows come before.
repeated_runs() {
    cat <<'RUNS'
all
fast --filter fast_
norm --filter fast_rms_norm_row
attention --filter fast_sdpa_256
softmax --filter softmax
matmul --filter matmul_
bf16 --filter matmul_bf16
latency --filter latency
products --filter products
quantized --filter quantized_1x
one_quantized --filter quantized_1x4096x1024
llm llm --random qwen3-0.6b-4bit-g128 --depth 0 --pp 512,2048
llm_again llm --random qwen3-0.6b-4bit-g128 --depth 0 --pp 2048,512
RUNS
}

repeat() { # OPTIONS OF MLX BENCH
    local readings=$logs/repeat.jsonl name options began
    [ $# -gt 0 ] || set -- --seconds 0.2
    : >"$readings"
    while read -r name options; do
        [[ $options = llm* ]] || options="$options $*"
        sleep 2
        began=$SECONDS
        # shellcheck disable=SC2086
        MLX_DEFAULT_DEVICE=gpu "$mlx" bench $options --json </dev/null >"$work/run" || return 1
        sed "s/^/$name\t/" "$work/run" >>"$readings"
        echo "$name: $(wc -l <"$work/run") lines, $((SECONDS - began)) s"
    done < <(repeated_runs)
    compare_readings "$readings"
}

needs_gpu() {
    MLX_DEFAULT_DEVICE=gpu "$mlx" info | grep -q '^in use: ' && return
    echo "check.sh: no Vulkan device" >&2
    exit 1
}

has_tests=
for part in "${parts[@]}"; do
    echo "== $part"
    case $part in
    info) MLX_DEFAULT_DEVICE=gpu "$mlx" info ;;
    tests | slow)
        needs_gpu
        run_part "$part"
        has_tests=yes
        ;;
    bench) MLX_DEFAULT_DEVICE=gpu "$mlx" bench "$@" ;;
    torch)
        needs_gpu
        python3 "$here/beside_torch.py" --mlx "$mlx" "$@" || failed=$((failed + 1))
        ;;
    repeat)
        needs_gpu
        repeat "$@" || failed=$((failed + 1))
        ;;
    *) echo "check.sh: unknown part '$part'" >&2; exit 1 ;;
    esac
done
[ -z "$has_tests" ] || report
exit "$((failed > 0))"
