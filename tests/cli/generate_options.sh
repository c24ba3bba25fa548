#!/usr/bin/env bash
# Options of `mlx generate`: their forms, what they may be, JSON with tokens and log-probabilities, and
# models by their name on Hugging Face's hub.
# usage: generate_options.sh MLX MODEL: a model that tells stories
set -u
mlx=$(realpath "$1")
model=$(realpath "$2")
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

wrong() { # WHAT
    echo "$1: $(cat "$folder/out" "$folder/err")"
    failed=1
}

run() { # ARGUMENTS...: into out and err
    "$mlx" generate --device cpu "$@" >"$folder/out" 2>"$folder/err"
}

same() { # ARGUMENTS...: the likeliest story
    run --model "$model" --prompt Hello --max-tokens 8 "$@" || wrong "$*"
    [ "$(cat "$folder/out")" = "$story" ] || wrong "another story with $*"
}

refuses() { # TEXT ARGUMENTS...
    local want=$1
    shift
    run --model "$model" --prompt Hello "$@" && wrong "$* is taken"
    head -1 "$folder/err" | grep -qF -- "$want" || wrong "$* does not say $want"
}

run --model "$model" --prompt Hello --max-tokens 8 || wrong "a story"
story=$(cat "$folder/out")
[ "$(wc -w <"$folder/out")" -ge 5 ] || wrong "no story"

# Forms.
same -m "$model" -p Hello
same --model="$model" --prompt=Hello --max-tokens=8 --temp=0
run -h && grep -q -- '-p, --prompt TEXT' "$folder/out" || wrong "-h"
refuses "--raw has no value" --raw=1
refuses "--temp cannot be" --temp=
refuses "unknown option --prompts=x" --prompts=x
refuses "unknown option -x" -x
refuses "--seed needs a value" --seed
refuses "--logprobs needs --json" --logprobs 1
refuses "--temp cannot be 1e30: it is a number from 0 to 1000000" --temp 1e30
refuses "--max-tokens cannot be 1.5: it is a whole number from 1 to 2147483647" --max-tokens 1.5
refuses "--seed cannot be -1: it is a whole number from 0 to 18446744073709551615" --seed -1
refuses "--device cannot be tpu: it is cpu or gpu" --device tpu
refuses "--stop cannot be empty: it is up to eight texts" --stop ""
for option in --temp --top-p --min-p --top-k --repetition-penalty --max-tokens --seed --logprobs; do
    for value in nan -nan inf -inf -1 -1e-45 x '' 1e300 0x1p999; do
        refuses "$option cannot be" --json "$option" "$value"
    done
done
refuses "--repetition-penalty cannot be" --repetition-penalty 0
refuses "--repetition-penalty cannot be" --repetition-penalty 1e-45
refuses "--max-tokens cannot be" --max-tokens 0

# However small, numbers mean what they say: no heat, only the likeliest token.
for value in 1e-3 1e-6 1e-30 1e-38 1e-40 1e-45 1e-300; do
    same --temp "$value"
    same --temp 1 --top-p "$value"
done
same --temp 1 --top-k 1
same --temp 1 --min-p 1
same --temp 1e-45 --min-p 1e-45 --top-k 2147483647 --repetition-penalty 1

# JSON.
run --model "$model" --prompt Hello --max-tokens 8 --json --logprobs 5 || wrong "--json"
python3 - "$folder/out" "$story" <<'PYTHON' || failed=1
import json, math, sys
d = json.load(open(sys.argv[1]))
assert d["text"] == sys.argv[2], d
assert len(d["token_ids"]) == d["generation_tokens"] == len(d["logprobs"]) == 8, d
assert len(d["prompt_token_ids"]) == d["prompt_tokens"], d
for token, entry in zip(d["token_ids"], d["logprobs"]):
    top = [t["logprob"] for t in entry["top"]]
    assert entry["id"] == token == entry["top"][0]["id"] and entry["logprob"] == top[0], entry
    assert len(top) == 5 and top == sorted(top, reverse=True), entry
    assert 0.01 < sum(map(math.exp, top)) < 1.00001, entry
PYTHON
ids=$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["token_ids"])' "$folder/out")
[ "$("$mlx" tokenize --model="$model" --decode "$ids")" = "$story" ] || wrong "the ids $ids"
run --model "$model" --prompt Hello --max-tokens 2 --json || wrong "--json alone"
grep -q token_ids "$folder/out" && ! grep -q logprobs "$folder/out" || wrong "--json alone"

# Names on the hub.
hub=$folder/cache/huggingface/hub/models--some--stories
mkdir -p "$hub/refs" "$hub/snapshots"
ln -s "$model" "$hub/snapshots/0123abc"
printf 0123abc >"$hub/refs/main"
cd "$folder" || exit 1
unset HF_HUB_CACHE HF_HOME XDG_CACHE_HOME
export HOME=$folder/nobody
XDG_CACHE_HOME=$folder/cache same --model some/stories
HF_HOME=$folder/cache/huggingface same --model some/stories
HF_HUB_CACHE=$folder/cache/huggingface/hub same --model some/stories
mv "$folder/cache" "$folder/.cache"
HOME=$folder same --model some/stories
HOME=$folder refuses "none of this name in $folder/.cache/huggingface/hub" --model other/stories
HOME=$folder refuses "a .gguf file" --model other/stories
refuses "there is no model some/stories" --model some/stories
refuses "there is no model ../some/stories" --model ../some/stories
printf '../../refs' >"$folder/.cache/huggingface/hub/models--some--stories/refs/main"
HOME=$folder refuses "none of this name" --model some/stories
(unset HOME && run --model some/stories --prompt x) && wrong "without HOME"
exit $failed
