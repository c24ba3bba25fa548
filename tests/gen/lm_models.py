#!/usr/bin/env python3
"""Small language models of every architecture, and what transformers computes with them.

usage: lm_models.py write FOLDER EXPECTED     model folders and files, for the tests (NumPy alone)
       lm_models.py expect EXPECTED [NAME]... computes EXPECTED anew, all of it or some models
                                              (torch and transformers, or mlx-lm for models that
                                              only it knows)

Weights follow from a hash of their names and a seed, and are multiples of small powers of two that
float16 and bfloat16 hold exactly, so a model is the same numbers in every dtype. Packed weights are
random codes with scales and biases; the reference gets the numbers that they stand for.

The reference runs in float32 and without a cache. A seed is taken only if the likeliest token leads
by LEAD at every step, so that rounding does not decide between tokens.
"""
import json
import os
import struct
import sys

import numpy as np

import lm_gguf

TOKENS = 64
LEAD = 1e-3
PROMPTS = (1, 13, 270)  # tokens; the last one is longer than a step of the cache

BASE = dict(hidden_size=64, num_hidden_layers=2, intermediate_size=96, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=97, max_position_embeddings=1024, rms_norm_eps=1e-5,
            rope_theta=10000.0, tie_word_embeddings=True)
MOE = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, decoder_sparse_step=1)
FOUR = dict(group_size=32, bits=4)


def model(dtype, model_type, gguf=None, **changes):
    """gguf: the dtype that the model has as a GGUF file, for those that are written as one. None as a
    change: no such entry."""
    config = dict(BASE, model_type=model_type, **changes)
    return dict(dtype=dtype, gguf=gguf, config={k: v for k, v in config.items() if v is not None})


MODELS = {
    "qwen3": model("float32", "qwen3", gguf="float32", head_dim=32),
    "qwen3_bf16": model("bfloat16", "qwen3", head_dim=32, tie_word_embeddings=False),
    "qwen3_4bit": model("float32", "qwen3", head_dim=64, tie_word_embeddings=False,
                        quantization=dict(FOUR, lm_head=dict(group_size=64, bits=8))),
    "qwen3_4bit_bf16": model("bfloat16", "qwen3", head_dim=16, intermediate_size=128,
                             quantization=dict(group_size=64, bits=4)),
    "qwen3_moe": model("float32", "qwen3_moe", gguf="float32", head_dim=16, norm_topk_prob=True,
                       mlp_only_layers=[], **MOE),
    "qwen3_moe_4bit": model("float32", "qwen3_moe", head_dim=16, norm_topk_prob=False,
                            num_hidden_layers=3, mlp_only_layers=[1], tie_word_embeddings=False,
                            quantization=dict(FOUR), **MOE),
    "qwen2": model("float32", "qwen2", gguf="float32"),
    "qwen2_yarn": model("float32", "qwen2", gguf="float32", head_dim=16, rope_theta=None,
                        rope_parameters=dict(
        rope_type="yarn", rope_theta=20000.0, factor=4.0, original_max_position_embeddings=64)),
    "llama": model("float32", "llama", head_dim=48, tie_word_embeddings=False, attention_bias=True,
                   mlp_bias=True, num_key_value_heads=4),
    "llama_rope_llama3": model("float32", "llama", gguf="float32", head_dim=32, rope_scaling=dict(
        rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=128)),
    "llama_rope_linear": model("float32", "llama", gguf="float32",
                               rope_scaling=dict(type="linear", factor=2.5)),
    "llama_f16": model("float16", "llama", num_key_value_heads=1),
    "llama_window": model("float32", "llama", num_hidden_layers=3, sliding_window=20, layer_types=[
        "sliding_attention", "full_attention", "sliding_attention"]),
    "mistral": model("float32", "mistral", gguf="float32", tie_word_embeddings=False,
                     num_hidden_layers=3),
    "mistral_4bit": model("float32", "mistral", gguf="float16", quantization=dict(FOUR)),
}


# ---- weights ----

def hashed(name, seed, n):
    """n numbers of 32 bits: splitmix64 from a start that the name gives."""
    start = 14695981039346656037
    for byte in ("%s/%d" % (name, seed)).encode():
        start = (start ^ byte) * 1099511628211 % 2**64
    z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return ((z ^ z >> np.uint64(31)) >> np.uint64(32)).astype(np.int64)


def shapes(c):
    """Modules of a config: (name, shape, has a bias), in MLX's names."""
    hidden, size = c["hidden_size"], c["intermediate_size"]
    dim = c.get("head_dim", hidden // c["num_attention_heads"])
    queries, keys = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim
    qkv = c.get("attention_bias", c["model_type"] == "qwen2")
    out = qkv and c["model_type"] != "qwen2"
    mlp = c.get("mlp_bias", False)
    yield "model.embed_tokens", (c["vocab_size"], hidden), False
    for i in range(c["num_hidden_layers"]):
        at = "model.layers.%d." % i
        yield at + "input_layernorm", (hidden,), False
        yield at + "post_attention_layernorm", (hidden,), False
        for part, rows in ("q", queries), ("k", keys), ("v", keys):
            yield at + "self_attn.%s_proj" % part, (rows, hidden), qkv
        yield at + "self_attn.o_proj", (hidden, queries), out
        if c["model_type"].startswith("qwen3"):
            yield at + "self_attn.q_norm", (dim,), False
            yield at + "self_attn.k_norm", (dim,), False
        if "num_experts" in c and i not in c["mlp_only_layers"]:
            n, size_i = c["num_experts"], c["moe_intermediate_size"]
            yield at + "mlp.gate", (n, hidden), False
            for part, rows, cols in (("gate", size_i, hidden), ("up", size_i, hidden),
                                     ("down", hidden, size_i)):
                yield at + "mlp.switch_mlp.%s_proj" % part, (n, rows, cols), False
        else:
            for part, rows, cols in (("gate", size, hidden), ("up", size, hidden),
                                     ("down", hidden, size)):
                yield at + "mlp.%s_proj" % part, (rows, cols), mlp
    yield "model.norm", (hidden,), False
    if not c["tie_word_embeddings"]:
        yield "lm_head", (c["vocab_size"], hidden), False


def packed(name, shape, seed, quant):
    """Codes in words, scales, biases, and the numbers that they stand for."""
    bits, group = quant["bits"], quant["group_size"]
    codes = hashed(name + ".weight", seed, int(np.prod(shape))).reshape(shape) % (1 << bits)
    groups = shape[:-1] + (shape[-1] // group,)
    count = int(np.prod(groups))
    scales = (4 + hashed(name + ".scales", seed, count).reshape(groups) % 8) / 2.0 ** (bits + 4)
    shift = (hashed(name + ".biases", seed, count).reshape(groups) % 3 - 1) / 64
    biases = shift - scales * (1 << (bits - 1))
    per_word = 32 // bits
    words = codes.reshape(shape[:-1] + (-1, per_word)).astype(np.uint32)
    words = (words << (np.arange(per_word, dtype=np.uint32) * bits)).sum(-1, dtype=np.uint32)
    numbers = codes * np.repeat(scales, group, -1) + np.repeat(biases, group, -1)
    return words, scales, biases, numbers


def weights(m, seed):
    """Tensors of the folder, and the numbers of the modules by name."""
    tensors, numbers = {}, {}
    quant = m["config"].get("quantization")
    for name, shape, has_bias in shapes(m["config"]):
        if len(shape) == 1:
            value = (64 + hashed(name, seed, shape[0]) % 128) / 128
        elif quant:
            words, scales, biases, value = packed(name, shape, seed, quant.get(name, quant))
            tensors.update({name + ".weight": words, name + ".scales": scales,
                            name + ".biases": biases})
        else:
            value = (hashed(name, seed, int(np.prod(shape))) % 255 - 127).reshape(shape) / 512
        numbers[name + ".weight"] = value
        tensors.setdefault(name + ".weight", value)
        if has_bias:
            bias = (hashed(name + ".bias", seed, shape[0]) % 255 - 127) / 256
            tensors[name + ".bias"] = numbers[name + ".bias"] = bias
    return tensors, numbers


def prompt(length, seed):
    return (hashed("prompt", seed, length) % BASE["vocab_size"]).tolist()


# ---- folders ----

def stored(value, dtype):
    """Bytes and type in the file."""
    if value.dtype == np.uint32:
        return value.astype("<u4").tobytes(), "U32"
    f32 = value.astype("<f4")
    if dtype == "float32":
        return f32.tobytes(), "F32"
    if dtype == "float16":
        return value.astype("<f2").tobytes(), "F16"
    words = f32.view("<u4")
    assert not (words & 0xFFFF).any()
    return (words >> 16).astype("<u2").tobytes(), "BF16"


def write_folder(folder, m, seed):
    os.makedirs(folder, exist_ok=True)
    if m["gguf"]:
        with open(folder + ".gguf", "wb") as f:
            f.write(lm_gguf.model_file(m["config"], weights(m, seed)[0]))
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(m["config"], f, indent=1)
    header, data, at = {}, [], 0
    for name, value in sorted(weights(m, seed)[0].items()):
        raw, kind = stored(np.ascontiguousarray(value), m["dtype"])
        header[name] = dict(dtype=kind, shape=list(value.shape), data_offsets=[at, at + len(raw)])
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


# ---- the reference ----

def fill(reference, numbers):
    import torch

    def tensor(name):
        return torch.tensor(numbers[name].astype(np.float32))

    for name, p in reference.named_parameters():
        if name.endswith("experts.gate_up_proj"):
            at = name.replace("experts.gate_up_proj", "switch_mlp.")
            value = torch.cat([tensor(at + "gate_proj.weight"), tensor(at + "up_proj.weight")], 1)
        elif name.endswith("experts.down_proj"):
            value = tensor(name.replace("experts.down_proj", "switch_mlp.down_proj.weight"))
        else:
            value = tensor(name)
        assert value.shape == p.shape, (name, value.shape, p.shape)
        with torch.no_grad():
            p.copy_(value)


def run(last_logits, ids):
    """Logits after the prompt, the likeliest tokens from there on, and their leads."""
    ids, first, leads = list(ids), None, []
    n = len(ids)
    for _ in range(TOKENS):
        logits = last_logits(ids)
        best = np.sort(logits)[-2:]
        leads.append(float(best[1] - best[0]))
        if first is None:
            first = logits
        if leads[-1] < LEAD:
            return None
        ids.append(int(logits.argmax()))
    return dict(tokens=n, logits=[float("%.8g" % x) for x in first], greedy=ids[n:],
                leads=[float("%.4g" % x) for x in leads])


def from_transformers(m):
    """A function from a seed to one from tokens to the logits behind the last."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    c = {k: v for k, v in m["config"].items() if k not in ("model_type", "quantization")}
    config = AutoConfig.for_model(m["config"]["model_type"], **c)
    reference = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()

    def last_logits(ids):
        with torch.no_grad():
            return reference(torch.tensor([ids]), use_cache=False).logits[0, -1].double().numpy()

    def with_seed(seed):
        fill(reference, weights(m, seed)[1])
        return last_logits

    return with_seed


def from_mlx_lm(m):
    """The same."""
    import tempfile
    from pathlib import Path

    import mlx.core as mx
    from mlx_lm.utils import load_model

    def with_seed(seed):
        with tempfile.TemporaryDirectory() as folder:
            write_folder(folder, dict(m, gguf=None), seed)
            reference, _ = load_model(Path(folder))
        return lambda ids: np.array(reference(mx.array([ids]))[0, -1].astype(mx.float32), np.float64)

    return with_seed


def expect_one(m):
    # Windows of single layers are mlx-lm's.
    with_seed = (from_mlx_lm if "layer_types" in m["config"] else from_transformers)(m)
    for seed in range(1, 1000):
        last_logits = with_seed(seed)
        results = []
        for length in PROMPTS:
            result = run(last_logits, prompt(length, seed))
            if result is None:
                break
            results.append(result)
        else:
            return dict(seed=seed, prompts=results)
    raise SystemExit("no seed gives leads of %g" % LEAD)


def expect(path, *names):
    os.environ["OMP_NUM_THREADS"] = "1"  # matrices are tiny
    out = {}
    if names:
        with open(path) as f:
            out = json.load(f)
    for name in names or MODELS:
        m = MODELS[name]
        out[name] = expect_one(m)
        print(name, "seed", out[name]["seed"], flush=True)
    with open(path, "w") as f:
        f.write("{\n")
        f.write(",\n".join('"%s": %s' % (n, json.dumps(v)) for n, v in out.items()))
        f.write("\n}\n")


def write(folder, path):
    with open(path) as f:
        expected = json.load(f)
    assert expected.keys() == MODELS.keys(), "the table has changed: run `expect`"
    for name, m in MODELS.items():
        write_folder(os.path.join(folder, name), m, expected[name]["seed"])
    # The prompts and the dtypes with what is expected, for the test to read.
    for name, e in expected.items():
        e.update(name=name, dtype=MODELS[name]["dtype"], gguf=MODELS[name]["gguf"])
        for p in e["prompts"]:
            p["prompt"] = prompt(p["tokens"], e["seed"])
    with open(os.path.join(folder, "models.json"), "w") as f:
        json.dump(list(expected.values()), f)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "write":
        write(*sys.argv[2:])
    elif len(sys.argv) >= 3 and sys.argv[1] == "expect":
        expect(*sys.argv[2:])
    else:
        sys.exit(__doc__)
