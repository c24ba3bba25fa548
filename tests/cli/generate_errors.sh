#!/usr/bin/env bash
# `mlx generate` says in one line on standard error what is wrong with a model or a prompt, writes
# nothing else, and ends with 1.
# usage: generate_errors.sh MLX MODEL TOKENIZER: a folder with config and weights, a tokenizer.json
set -u
mlx=$1
model=$2
tokenizer=$3
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fresh() { # a model to break
    rm -rf "$folder/m"
    cp -r "$model" "$folder/m"
    cp "$tokenizer" "$folder/m/tokenizer.json"
    chmod -R u+w "$folder/m"
}

edit() { # FILE PYTHON: changes the JSON document d
    python3 - "$folder/m/$1" "$2" <<'EOF'
import json, sys
with open(sys.argv[1]) as f:
    d = json.load(f)
exec(sys.argv[2])
with open(sys.argv[1], "w") as f:
    json.dump(d, f)
EOF
}

fill() { # TENSOR BYTE: overwrites all of it
    python3 - "$folder/m/model.safetensors" "$1" "$2" <<'EOF'
import json, struct, sys
with open(sys.argv[1], "r+b") as f:
    n = struct.unpack("<Q", f.read(8))[0]
    begin, end = json.loads(f.read(n))[sys.argv[2]]["data_offsets"]
    f.seek(8 + n + begin)
    f.write(bytes([int(sys.argv[3])]) * (end - begin))
EOF
}

write_tensor() { # NAME FILE: one number
    python3 - "$1" "$2" <<'EOF'
import json, struct, sys
head = json.dumps({sys.argv[1]: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
with open(sys.argv[2], "wb") as f:
    f.write(struct.pack("<Q", len(head)) + head + bytes(4))
EOF
}

# TEXT ARGUMENTS...: fails with a line that has TEXT in it
says() {
    local want=$1 rc
    shift
    timeout 60 "$mlx" generate --device cpu --max-tokens 4 "$@" >"$folder/out" 2>"$folder/err"
    rc=$?
    if [ $rc -ne 1 ] || [ -s "$folder/out" ] || [ "$(wc -l <"$folder/err")" -ne 1 ] ||
        ! grep -qF -- "$want" "$folder/err"; then
        echo "generate $*: exit code $rc, wanted \"$want\""
        echo "stdout: $(cat "$folder/out")"
        echo "stderr: $(cat "$folder/err")"
        failed=1
    fi
}

m=$folder/m
says "no model" --model "$folder/nothing" --prompt x
mkdir "$m"
says "config.json" --model "$m" --prompt x
echo "this is no model" >"$folder/file.gguf"
says "file.gguf" --model "$folder/file.gguf" --prompt x

fresh
rm "$m/config.json"
says "config.json" --model "$m" --prompt x
printf '{"model_type": ' >"$m/config.json"
says "config.json" --model "$m" --prompt x

fresh
edit config.json 'd["model_type"] = "gpt_neox"'
says "gpt_neox" --model "$m" --prompt x
says "qwen3, qwen3_moe, qwen2, llama, mistral" --model "$m" --prompt x

fresh
edit config.json 'd["model_type"] = "gpt_neox"'
rm "$m/tokenizer.json"
says "gpt_neox" --model "$m" --prompt x

fresh
edit config.json 'del d["hidden_size"]'
says "hidden_size" --model "$m" --prompt x
fresh
edit config.json 'd["num_key_value_heads"] = 3'
says "num_key_value_heads" --model "$m" --prompt x
fresh
edit config.json 'd["intermediate_size"] *= 2'
says "the shape" --model "$m" --prompt x
fresh
edit config.json 'd["quantization"]["bits"] = 8'
says "the shape" --model "$m" --prompt x
fresh
edit config.json 'd["num_hidden_layers"] += 1'
says "has no tensor" --model "$m" --prompt x
fresh
edit config.json 'd["rope_scaling"] = {"rope_type": "longrope"}'
says "longrope" --model "$m" --prompt x

# Files that are none: nobody writes into the FIFO, and the device has no end.
for file in config.json tokenizer.json model.safetensors model-2.safetensors generation_config.json \
    tokenizer_config.json chat_template.jinja; do
    fresh
    rm -f "$m/$file"
    mkfifo "$m/$file"
    says "$file: not a regular file" --model "$m" --prompt x
    rm -f "$m/$file"
    ln -s /dev/zero "$m/$file"
    says "$file: not a regular file" --model "$m" --prompt x
done
mkfifo "$folder/fifo.gguf"
says "fifo.gguf: not a regular file" --model "$folder/fifo.gguf" --prompt x

# Numbers that make no sense, and sizes that nothing could hold.
while read -r text; do
    fresh
    edit config.json "d.update($text)"
    says "${text%%=*}: " --model "$m" --prompt x
done <<'END'
num_hidden_layers=20000000
num_attention_heads=0
head_dim=2**31-2
vocab_size=-1
rms_norm_eps=-1e300
rope_theta=0
rope_theta=-1e4
max_position_embeddings=0
hidden_act="gelu"
use_sliding_window=True
layer_types=["full_attention", "sliding_attention"]
quantize_activations=True
model_file="model.py"
END
fresh
edit config.json 'd["rope_scaling"] = {"type": "linear", "factor": 0}'
says "rope_scaling.factor: 0 is not between" --model "$m" --prompt x

# Tensors that nothing reads.
fresh
edit config.json 'd["num_hidden_layers"] -= 1'
says "tensors that a qwen3 of this config does not read: model.layers.1." --model "$m" --prompt x

# Every model*.safetensors counts, whatever an index says: tensors twice, tensors that nothing reads.
fresh
cp "$m/model.safetensors" "$m/model-2.safetensors"
says "model.embed_tokens" --model "$m" --prompt x
fresh
write_tensor model.mast.weight "$m/model_more.safetensors"
says "does not read: model.mast.weight" --model "$m" --prompt x

# Weights that are NaN, so that no token is likelier than another.
fresh
fill model.norm.weight 255
for temp in 0 0.8; do
    says "the model computes no numbers" --model "$m" --raw --prompt x --temp $temp
    says "the model computes no numbers" --model "$m" --raw --prompt x --temp $temp --json --logprobs 2
done

fresh
rm "$m/model.safetensors"
says "model.safetensors" --model "$m" --prompt x
head -c 1000 "$model/model.safetensors" >"$m/model.safetensors"
says "model.safetensors" --model "$m" --prompt x

fresh
rm "$m/tokenizer.json"
says "tokenizer.json" --model "$m" --prompt x
fresh
edit tokenizer.json 'del d["model"]'
says "model" --model "$m" --prompt x
fresh
edit tokenizer.json 'del d["model"]["merges"]'
says "merges" --model "$m" --prompt x
fresh
edit tokenizer.json 'd["model"]["type"] = "Unigram"'
says "Unigram" --model "$m" --prompt x

fresh
edit config.json 'd["max_position_embeddings"] = 8'
says "8 of the context's 8 are free" --model "$m" --prompt "one two three four five six seven eight nine ten"
fresh
says "no tokens" --model "$m" --raw --prompt ""

# A chat template that is wrong is not left out silently, and what one refuses is said.
fresh
printf '%s' "{{ bos_token }}{{ '<start_of_turn>' + messages[0]['role' }}" >"$m/chat_template.jinja"
says "line 1 of the template" --model "$m" --prompt x
says "--raw" --model "$m" --system y --prompt x
if ! "$mlx" generate --device cpu --max-tokens 4 --model "$m" --raw --prompt x >"$folder/out" 2>&1; then
    echo "--raw with a wrong chat template: $(cat "$folder/out")"
    failed=1
fi
printf '%s' "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}
{% endif %}{{ messages[-1].content }}{{ x + 1 }}" >"$m/chat_template.jinja"
says "System role not supported" --model "$m" --system y --prompt x
says "line 2 of the template: 'x' is undefined" --model "$m" --prompt x
says "expected an object" --model "$m" --prompt x --chat-template-config '[1]'
if ! "$mlx" generate --device cpu --max-tokens 4 --model "$m" --chat-template-config '{"x": 1}' \
    --prompt x >"$folder/out" 2>&1; then
    echo "--chat-template-config: $(cat "$folder/out")"
    failed=1
fi
rm "$m/chat_template.jinja"
printf 'Once\0upon' >"$folder/zero"
says "zero byte" --model "$m" --prompt - <"$folder/zero"
says "zero byte" --model "$m" --raw --prompt - <"$folder/zero"

# An answer that cannot be written, where there is such a device.
for option in --raw --json; do
    [ -c /dev/full ] || break
    "$mlx" generate --device cpu --max-tokens 4 --model "$m" --prompt x "$option" \
        >/dev/full 2>"$folder/err"
    rc=$?
    if [ $rc -ne 1 ] || ! grep -q "cannot be written" "$folder/err"; then
        echo "generate $option to a full disk: exit code $rc, $(cat "$folder/err")"
        failed=1
    fi
done
exit $failed
