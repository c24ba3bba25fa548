#!/usr/bin/env python3
"""Checks the model folders under models/: size, needed files, and tensors that fit the config."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_BYTES = 8_000_000
FILES = (
    "README.md",
    "LICENSE",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)
TYPE_BYTES = {"U32": 4, "BF16": 2, "F16": 2, "F32": 4}


def read_header(path):
    """Returns (header, number of data bytes) of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), len(data) - 8 - size


def tensor_faults(header, n_data):
    """Tensors must follow each other without gaps, each as long as its shape says."""
    spans = []
    for name, info in header.items():
        if name == "__metadata__":
            continue
        count = TYPE_BYTES[info["dtype"]]
        for n in info["shape"]:
            count *= n
        begin, end = info["data_offsets"]
        if end - begin != count:
            yield f"{name}: {end - begin} bytes for shape {info['shape']}"
        spans.append((begin, end))
    spans.sort()
    ends = [0] + [end for _, end in spans]
    if [begin for begin, _ in spans] != ends[:-1] or ends[-1] != n_data:
        yield "tensors do not cover the data"


def weight_shapes(config):
    """Name -> (rows, columns) of every matrix of the model."""
    dim, inner, head = (config[k] for k in ("hidden_size", "intermediate_size", "head_dim"))
    q, kv = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes = {"model.embed_tokens": (config["vocab_size"], dim)}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        for name, shape in (
            ("self_attn.q_proj", (q, dim)),
            ("self_attn.k_proj", (kv, dim)),
            ("self_attn.v_proj", (kv, dim)),
            ("self_attn.o_proj", (dim, q)),
            ("mlp.gate_proj", (inner, dim)),
            ("mlp.up_proj", (inner, dim)),
            ("mlp.down_proj", (dim, inner)),
        ):
            shapes[layer + name] = shape
    return shapes


def shape_faults(header, config):
    """Packed words, scales and biases of each matrix as the config has them."""
    group, bits = (config["quantization"][k] for k in ("group_size", "bits"))
    for name, (rows, columns) in weight_shapes(config).items():
        wanted = {"weight": columns * bits // 32, "scales": columns // group}
        wanted["biases"] = wanted["scales"]
        for part, width in wanted.items():
            info = header.get(f"{name}.{part}")
            if info is None or info["shape"] != [rows, width]:
                yield f"{name}.{part}: wanted shape {[rows, width]}"


def folder_faults(folder):
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        yield f"lacks {', '.join(missing)}"
        return
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    if size > MAX_BYTES:
        yield f"has {size} bytes, more than {MAX_BYTES}"
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    header, n_data = read_header(folder / "model.safetensors")
    yield from tensor_faults(header, n_data)
    yield from shape_faults(header, config)
    vocab = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    if sorted(vocab.values()) != list(range(config["vocab_size"])):
        yield "the tokenizer's ids are not those of the embedding"
    if "chat_template" not in json.loads((folder / "tokenizer_config.json").read_text("utf-8")):
        yield "no chat template"


def main():
    folders = sorted(p for p in (ROOT / "models").iterdir() if p.is_dir())
    faults = [f"{f.relative_to(ROOT)}: {fault}" for f in folders for fault in folder_faults(f)]
    for fault in faults:
        print(fault)
    if not folders:
        print("models/ has no model")
    return 1 if faults or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
