#!/usr/bin/env bash
# A real GGUF model that answers questions: the same tokens on both devices, and the right capital.
# usage: generate_gguf.sh MLX FILE
set -u
mlx=$1
file=$2
failed=0

answer() { # DEVICE QUESTION
    "$mlx" generate --model "$file" --device "$1" --prompt "$2" --max-tokens 32 2>/dev/null
}

# Wherever an answer might go on in two ways, these are several float16 steps apart, so that the order
# of a sum does not decide.
for question in "What is the capital of France?" "Count from one to ten." \
    "What is two plus two?"; do
    cpu=$(answer cpu "$question") || failed=1
    gpu=$(answer gpu "$question") || failed=1
    printf '%s\n%s\n' "$question" "$cpu"
    if [ -z "$cpu" ] || [ "$cpu" != "$gpu" ]; then
        echo "on the GPU: $gpu"
        failed=1
    fi
    case "$question $cpu" in
    *capital*Paris*) ;;
    *capital*) failed=1 ;;
    esac
done

# The other commands take the file as well.
text='The sea, naïve and 深い: 1234'
back=$("$mlx" tokenize --model "$file" --decode \
    "$("$mlx" tokenize --model "$file" --no-special "$text")") || failed=1
if [ "$back" != "$text" ]; then
    echo "tokenize: $back"
    failed=1
fi
"$mlx" bench llm --model "$file" --device cpu --pp 8 --tg 4 --depth 0 --repeat 1 || failed=1
exit $failed
