"""Reads a model folder back and continues a text greedily, in float32 and without a cache.

    reference.py FOLDER TEXT [TOKENS]

Prints the new token ids as a JSON list. Independent of MLX: packed words, scales and biases are
taken apart here, so another engine's greedy tokens can be held against these.
"""

import json
import os
import sys

import numpy as np
import torch

from bpe import Bpe
from student import forward, logits, rope_table

_TYPES = {"U32": np.uint32, "BF16": np.uint16}


def read_safetensors(path):
    """Name -> array; bfloat16 becomes float32."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    out = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        array = np.frombuffer(data[begin:end], _TYPES[info["dtype"]]).reshape(info["shape"])
        if info["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        out[name] = array
    return out


def unpack(words, bits):
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return ((words[..., None] >> shifts) & (2**bits - 1)).reshape(words.shape[0], -1)


def load_folder(folder):
    """Returns (config, name -> float32 weight, tokenizer)."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        tok = json.load(file)
    group, bits = (config["quantization"][k] for k in ("group_size", "bits"))
    raw = read_safetensors(os.path.join(folder, "model.safetensors"))
    weights = {}
    for name, array in raw.items():
        if name.endswith((".scales", ".biases")):
            continue
        base = name.removesuffix(".weight")
        if base + ".scales" in raw:
            scale, bias = (np.repeat(raw[base + k], group, axis=1) for k in (".scales", ".biases"))
            array = unpack(array, bits).astype(np.float32) * scale + bias
        weights[name] = torch.from_numpy(np.ascontiguousarray(array))
    tokens = sorted(tok["model"]["vocab"], key=tok["model"]["vocab"].get)
    merges = [" ".join(m) for m in tok["model"]["merges"]]
    specials = [t["content"] for t in tok["added_tokens"]]
    return config, weights, Bpe(tokens, merges, specials, tok["model"]["ignore_merges"])


@torch.no_grad()
def greedy(config, weights, ids, count):
    table = rope_table(config, len(ids) + count, "cpu")
    ids = list(ids)
    for _ in range(count):
        hidden = forward(weights, config, torch.tensor([ids]), table)[:, -1]
        ids.append(int(logits(weights, hidden).argmax()))
    return ids[-count:]


def main(folder, text, count="64"):
    config, weights, bpe = load_folder(folder)
    print(json.dumps(greedy(config, weights, bpe.encode(text), int(count))))


if __name__ == "__main__":
    main(*sys.argv[1:])
