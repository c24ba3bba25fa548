#!/usr/bin/env bash
# `mlx bench` says in one line what is wrong with an option, and its JSON says what was measured.
# usage: bench_options.sh MLX MODELS
set -u
mlx=$1
models=$2
failed=0

refuses() { # ARGUMENTS
    local text rc
    text=$("$mlx" bench "$@" 2>&1)
    rc=$?
    if [ $rc -ne 1 ] || [ "$(printf '%s\n' "$text" | wc -l)" -ne 1 ] || [ -z "$text" ]; then
        echo "bench $*: exit code $rc, text: $text"
        failed=1
    fi
}

for value in 0 -1 3.5 12x x '' nan 1e99; do
    for option in --mb --edge --one-shot; do
        refuses --device cpu "$option" "$value"
    done
done
for value in -1 x '' nan inf; do
    refuses --device cpu --seconds "$value"
done
refuses --device tpu
refuses --filter no_such_case
refuses --no-such-option 1
refuses no_such_command
refuses --json=1 --device cpu --mb 1 --seconds 0 --filter copy
refuses llm --json=1 --model "$models/qwen3_4bit"
refuses --mb

refuses llm
refuses llm --model
refuses llm --random no-such-shape
refuses llm --random qwen3-0.6b-4bit-g128 --model "$models/qwen3_4bit"
for value in 0 -1 x '' 8, 1,2,3,4,5,6,7,8,9 1e6; do
    for option in --pp --tg --repeat --chunk; do
        refuses llm --model "$models/qwen3_4bit" "$option" "$value"
    done
done

# More than the context, alone or together.
for options in "--pp 1025 --depth 0" "--tg 1025 --depth 0" "--depth 1024" "--pp 8 --tg 25 --depth 0,1000" \
    "--pp 25 --tg 8 --depth 1000,0"; do
    # shellcheck disable=SC2086
    refuses llm --device cpu --model "$models/qwen3_4bit" $options
    case $("$mlx" bench llm --device cpu --model "$models/qwen3_4bit" $options 2>&1) in
    *"the model's context has 1024") ;;
    *) echo "bench llm $options does not say the limit" && failed=1 ;;
    esac
done
refuses llm --device cpu --random qwen3-0.6b-4bit-g128 --depth 40960

case $("$mlx" bench --help) in
*"bench llm"*) ;;
*) echo "bench --help does not name bench llm" && failed=1 ;;
esac
# The whole name of a row is a filter.
for row in row_sum fast_rope_1 fast_rms_norm_row; do
    case $("$mlx" bench --device cpu --mb 1 --seconds 0 --json --filter $row) in
    *"{\"case\": \"$row\", "*) ;;
    *) echo "bench --filter $row does not measure it" && failed=1 ;;
    esac
done
# Targets are the GPU's.
text=$("$mlx" bench --device=cpu --mb=1 --seconds 0 --filter co 2>&1) || failed=1
case $text in
*target* | *reached* | *" yes"* | *" no"*) echo "bench --device cpu: $text" && failed=1 ;;
esac
json=$("$mlx" bench --device cpu --json --mb 1 --seconds 0 --filter copy) || failed=1
case $json in
*target*) echo "bench --device cpu --json: $json" && failed=1 ;;
esac
for key in version device driver megabytes case best_us spread warm_ms; do
    case $json in
    *"\"$key\": "*) ;;
    *) echo "no $key in: $json" && failed=1 ;;
    esac
done
json=$("$mlx" bench llm --model "$models/qwen3_4bit" --device cpu --json --pp 4 --tg 24 --depth 1000 \
    --repeat 1) || failed=1
if ! printf '%s\n' "$json" | python3 -c '
import json, sys
head, *rows = [json.loads(line) for line in sys.stdin]
assert {"version", "device", "driver", "chunk", "repeat"} < set(head), head
assert head["model"] == sys.argv[1], head
assert [r["test"] for r in rows] == ["pp4", "tg24"], rows
' "$models/qwen3_4bit"; then
    echo "bench llm --json: $json"
    failed=1
fi
# Models in a folder and in a file.
for model in qwen3_4bit mistral_4bit.gguf; do
    text=$("$mlx" bench llm --model "$models/$model" --device cpu --pp 4 --tg 2 --depth 0,3 --repeat 1) ||
        failed=1
    if [ "$(printf '%s\n' "$text" | grep -c '^[pt][pg][24] ')" -ne 4 ]; then
        echo "bench llm --model $model: $text"
        failed=1
    fi
done
exit $failed
