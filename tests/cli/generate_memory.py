#!/usr/bin/env python3
"""How much memory `mlx generate` takes: weights and cache once, and not much besides.

usage: generate_memory.py MLX TOKENIZER SMALL_MODEL DEVICE...

Writes a model of some 400 MB with random weights and lets it answer a prompt of more than one chunk.
Two figures must stay below 1.15 x weights + cache + 200 MB: the peak that the command reports of its
arrays, and the peak of the process's resident memory. The second one also counts code and, with a device in software, all of
its memory, so that a second copy of the weights shows wherever it is made. On the GPU the driver and
its compiler are not counted: what the same command takes for SMALL_MODEL is subtracted.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, HEAD, VOCAB = 2048, 4096, 4, 16, 8, 128, 150000
GROUP = 128
PROMPT, TOKENS = "sea and sky " * 110, 4
SPARE = 200e6


def packed(rows, cols):
    """Shapes of a 4-bit matrix."""
    return {"weight": ("U32", (rows, cols // 8)), "scales": ("BF16", (rows, cols // GROUP)),
            "biases": ("BF16", (rows, cols // GROUP))}


def tensors():
    def matrix(name, rows, cols):
        for part, shape in packed(rows, cols).items():
            yield f"{name}.{part}", *shape

    yield from matrix("model.embed_tokens", VOCAB, HIDDEN)
    yield from matrix("lm_head", VOCAB, HIDDEN)
    yield "model.norm.weight", "BF16", (HIDDEN,)
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", "BF16", (HIDDEN,)
        yield at + "post_attention_layernorm.weight", "BF16", (HIDDEN,)
        for name, rows, cols in (("self_attn.q_proj", HEADS * HEAD, HIDDEN),
                                 ("self_attn.k_proj", KV_HEADS * HEAD, HIDDEN),
                                 ("self_attn.v_proj", KV_HEADS * HEAD, HIDDEN),
                                 ("self_attn.o_proj", HIDDEN, HEADS * HEAD),
                                 ("mlp.gate_proj", INNER, HIDDEN), ("mlp.up_proj", INNER, HIDDEN),
                                 ("mlp.down_proj", HIDDEN, INNER)):
            yield from matrix(at + name, rows, cols)
        yield at + "self_attn.q_norm.weight", "BF16", (HEAD,)
        yield at + "self_attn.k_norm.weight", "BF16", (HEAD,)


def content(rng, name, shape):
    """Random numbers; scales and biases center a matrix's weights around 0, norms are 1."""
    n = int(np.prod(shape))
    if name.endswith("_proj.weight") or name.endswith(("tokens.weight", "head.weight")):
        return rng.bytes(4 * n)
    value = 0.002 if name.endswith("scales") else -0.015 if name.endswith("biases") else 1.0
    return (np.full(n, value, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()


def write_model(folder, tokenizer):
    """Bytes of all weights."""
    config = {"model_type": "qwen3", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
              "intermediate_size": INNER, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "vocab_size": VOCAB,
              "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
              "tie_word_embeddings": False, "quantization": {"group_size": GROUP, "bits": 4}}
    with open(folder + "/config.json", "w", encoding="utf-8") as f:
        json.dump(config, f)
    shutil.copy(tokenizer, folder + "/tokenizer.json")
    header, at = {}, 0
    for name, dtype, shape in tensors():
        size = int(np.prod(shape)) * (4 if dtype == "U32" else 2)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    rng = np.random.default_rng(1)
    with open(folder + "/model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for name, _, shape in tensors():
            f.write(content(rng, name, shape))
    return at


def generate(mlx, folder, device, prompt):
    """What the command says, and its largest resident memory in bytes."""
    command = [mlx, "generate", "--model", folder, "--device", device, "--raw", "--prompt", prompt,
               "--max-tokens", str(TOKENS), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as p:
        said = p.stdout.read()
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit(f"mlx generate on {device}: exit code {p.returncode}")
    return json.loads(said), used.ru_maxrss * 1024


def main():
    mlx, tokenizer, small, *devices = sys.argv[1:]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        weights = write_model(folder, tokenizer)
        for device in devices:
            said, resident = generate(mlx, folder, device, PROMPT)
            driver = generate(mlx, small, device, "Hi")[1] if device == "gpu" else 0
            tokens = -(-(said["prompt_tokens"] + TOKENS) // 256) * 256
            cache = 2 * LAYERS * KV_HEADS * HEAD * 2 * tokens
            most = 1.15 * weights + cache + SPARE
            peak = said["peak_memory_gb"] * 1e9
            print(f"{device}: weights {weights / 1e6:.0f} MB, cache {cache / 1e6:.0f} MB, "
                  f"{said['prompt_tokens']} tokens of prompt; at most {most / 1e6:.0f} MB; arrays "
                  f"{peak / 1e6:.0f} MB, resident {resident / 1e6:.0f} MB, of which driver "
                  f"{driver / 1e6:.0f} MB")
            failed |= not weights < peak <= most or not resident - driver <= most
    sys.exit(failed)


if __name__ == "__main__":
    main()
