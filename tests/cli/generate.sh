#!/usr/bin/env bash
# `mlx generate` on the GPU, watched: the validation layer has nothing to say and the hazard checker
# finds nothing in what was dispatched. The same seed tells the same story.
# usage: generate.sh MLX MODEL
set -u
mlx=$1
model=$2
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

story() { # NAME OPTIONS...
    local name=$1
    shift
    "$mlx" generate --model "$model" --device gpu --prompt "Tell me a story" --max-tokens 16 "$@" \
        >"$folder/$name" 2>"$folder/$name.err" || failed=1
    [ "$(wc -w <"$folder/$name")" -ge 8 ] || failed=1
    grep -q "^Generation: 16 tokens" "$folder/$name.err" || failed=1
    # With sanitizers the programs do without the layer.
    [ -z "${MLX_VK_VALIDATE:-}" ] || grep -q "validation messages: 0$" "$folder/$name.err" ||
        failed=1
    grep -q "hazards: 0 in [1-9][0-9]* dispatches" "$folder/$name.err" || failed=1
}

story greedy
story cold --temp 1e-45 # too small for what it divides
cmp "$folder/greedy" "$folder/cold" || failed=1
story drawn --temp 0.9 --top-p 0.95 --top-k 50 --repetition-penalty 1.1 --seed 5
story again --temp 0.9 --top-p 0.95 --top-k 50 --repetition-penalty 1.1 --seed 5
cmp "$folder/drawn" "$folder/again" || failed=1
[ $failed -eq 0 ] || cat "$folder"/*
exit $failed
