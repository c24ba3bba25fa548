#!/usr/bin/env bash
# `mlx tokenize` prints ids on one line and their text, and says in one line what is wrong.
# usage: tokenize.sh MLX TOKENIZERS
set -u
mlx=$1
tokenizers=$2
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$tokenizers/llama3.json" "$folder/tokenizer.json"

refuses() { # TEXT ARGUMENTS...
    local want=$1 text rc
    shift
    text=$("$mlx" "$@" 2>&1)
    rc=$?
    if [ $rc -ne 1 ] || [[ ${text%%$'\n'*} != *"$want"* ]]; then
        echo "$*: exit code $rc, text: $text"
        failed=1
    fi
}

text=$'Hello, wörld! 你好 <|eot_id|>\n  done'
ids=$("$mlx" tokenize --model "$folder" "$text") || failed=1
piped=$(printf '%s' "$text" | "$mlx" tokenize --model "$folder" -) || failed=1
plain=$("$mlx" tokenize --model "$folder" --no-special "$text") || failed=1
back=$("$mlx" tokenize --model "$folder" --decode "$plain") || failed=1
if [ "$ids" != "$piped" ] || [ "$ids" != "${ids%% *} $plain" ] || [ "$back" != "$text" ]; then
    echo "ids: $ids"
    echo "piped: $piped"
    echo "without special tokens: $plain"
    echo "back: $back"
    failed=1
fi

refuses "--model is missing" tokenize
refuses "TEXT is missing" tokenize --model "$folder"
refuses "unknown option --no-such-option" tokenize --model "$folder" --no-such-option x
refuses "unknown option -x" tokenize --model "$folder" -x
refuses "more than one TEXT: y" tokenize --model "$folder" x y
refuses "--decode has no value" tokenize --model "$folder" --decode=1 x
refuses "--no-special has no value" tokenize --model "$folder" x --no-special=
refuses "mlx info cannot be called with extra" info extra
refuses "mlx ops cannot be called with --summary=1" ops --summary=1
refuses "mlx ops cannot be called with --summary extra" ops --summary extra
refuses "mlx gates cannot be called with --markdowns" gates --markdowns
if [ "$("$mlx" tokenize --model="$folder" -- "--decode")" != \
    "$(printf -- --decode | "$mlx" tokenize -m "$folder" -)" ]; then
    echo "a text behind --"
    failed=1
fi
for command in info ops gates bench "bench llm" chat generate tokenize; do
    # shellcheck disable=SC2086
    if ! "$mlx" $command -h | grep -q "^usage: mlx $command" ||
        { [ "$command" != "bench llm" ] && ! "$mlx" help "$command" | grep -q "^usage: mlx $command"; }; then
        echo "mlx $command -h"
        failed=1
    fi
done
for list in 99999999999999 2147483647 127999999 -1 "1 -1" +1 "1 two 3" "1 2x" 1.5 0x10 "1;2"; do
    said=$("$mlx" tokenize --model "$folder" --decode "$list" 2>&1)
    rc=$?
    if [ $rc -ne 1 ] || [ "$(printf '%s\n' "$said" | grep -c 'is no token')" -ne 1 ] ||
        [ "$(printf '%s\n' "$said" | wc -l)" -ne 1 ]; then
        echo "tokenize --decode \"$list\": exit code $rc, text: $said"
        failed=1
    fi
done
if printf '1 \0 2' | "$mlx" tokenize --model "$folder" --decode - >"$folder/out" 2>&1; then
    echo "a zero byte among ids: $(cat "$folder/out")"
    failed=1
fi
listed=$("$mlx" tokenize --model "$folder" --decode "[${plain// /, }]") || failed=1
if [ "$listed" != "$text" ]; then
    echo "of a list in brackets: $listed"
    failed=1
fi
refuses "$folder/nothing" tokenize --model "$folder/nothing" x
rm "$folder/tokenizer.json"
if [ "$("$mlx" tokenize --model "$folder" x 2>&1 | wc -l)" -ne 1 ]; then
    echo "more than one line for a missing file"
    failed=1
fi
exit $failed
