#!/usr/bin/env bash
# `mlx chat`: a line that begins with '/' is a command or is refused, and never goes to the model; a
# full context says how to go on.
# usage: chat.sh MLX MODEL: a model with a chat template and a context of 512 tokens
set -u
mlx=$1
model=$2
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# LINES OPTIONS...: a conversation of these lines, into out and err
talk() {
    ends_with 0 "$@"
}

fail() { # LINES OPTIONS...: the same, some of whose lines fail
    ends_with 1 "$@"
}

ends_with() { # CODE LINES OPTIONS...
    local want=$1 lines=$2 code
    shift 2
    printf "$lines" | "$mlx" chat --device cpu --model "$model" "$@" \
        >"$folder/out" 2>"$folder/err"
    code=$?
    [ $code -eq "$want" ] || wrong "exit code $code"
}

wrong() { # WHAT
    echo "$1"
    echo "stdout: $(cat "$folder/out")"
    echo "stderr: $(cat "$folder/err")"
    failed=1
}

has() { # FILE COUNT TEXT: so many lines with TEXT
    [ "$(grep -cF -- "$3" "$folder/$1")" -eq "$2" ] || wrong "wanted $2 lines in $1: $3"
}

lines() { # FILE COUNT
    [ "$(wc -l <"$folder/$1")" -eq "$2" ] || wrong "wanted $2 lines in $1"
}

fail '/reste\n/\n/help me\n/exit\nnot read\n'
lines out 0
lines err 3
has err 3 "is no command: /reset"
has err 1 "mlx: /reste is no command"

talk '/help\n/reset \n/exit\r\nnot read\n'
lines out 1
lines err 0
has out 1 "/reset"
has out 1 "/exit"
has out 1 "/help"

# A zero byte does not cut a text.
fail 'a\0b\n' --max-tokens 2
lines out 0
has err 1 "zero byte"

# A template that is wrong is refused before anything is said; --raw does without.
cp -r "$model" "$folder/other"
chmod -R u+w "$folder/other"
echo "{{ messages" >"$folder/other/chat_template.jinja"
if echo Hi | "$mlx" chat --device cpu --model "$folder/other" >"$folder/out" 2>"$folder/err"; then
    wrong "a wrong template is taken"
fi
has err 1 "--raw passes"
echo Hi | "$mlx" chat --device cpu --model "$folder/other" --raw --max-tokens 2 \
    >"$folder/out" 2>"$folder/err" || wrong "chat --raw"
lines err 0
[ -s "$folder/out" ] || wrong "no answer with --raw"

# What a template refuses is said, and not kept: the next line is the first again.
echo "{% if messages|length > 1 %}{{ raise_exception('One question only') }}{% endif %}
{{ messages[0].content }}" >"$folder/other/chat_template.jinja"
printf 'Hi\nHo\n/reset\nHo\n' | "$mlx" chat --device cpu --model "$folder/other" --max-tokens 2 \
    >"$folder/out" 2>"$folder/err" && wrong "a refused line is no failure"
has err 1 "One question only"
lines err 1

# A space before it makes a text of it.
talk ' /reste\n' --max-tokens 2
lines err 0
[ -s "$folder/out" ] || wrong "no answer"

long=$(printf 'once upon a time %.0s' {1..200})
fail "$long\n" --max-tokens 2
lines out 0
lines err 1
has err 1 "/reset forgets"

# An answer that runs into the end of the context; after /reset there is room again.
long=$(printf 'once upon a time %.0s' {1..124})
talk "$long\n/reset\nHi\n" --max-tokens 20
has err 1 "the context of 512 tokens is full; /reset"
lines err 1
exit $failed
