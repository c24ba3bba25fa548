#!/usr/bin/env python3
"""One decode step of mlx-lm's models, exported by MLX itself, for tests/ops/lm_steps.c.

usage: lm_steps.py FOLDER [NAME...]      NAME.mlxfn and NAME.npz of every model

Run by an interpreter that has mlx-lm (0.32.2 and mlx 0.32.4 wrote what lies in tests/data/steps); not
part of the build. A model is small, with random 4-bit weights. Its step takes a token and the keys and
values of each layer with room for more of them, and gives the logits and the keys and values after it,
which is the graph that mlx_lm.generate evaluates for every token. The .npz is as mlxfn_files.py writes
it; its second call has the results of the same step in float32.
"""

import importlib
import pathlib
import sys

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import make_prompt_cache

ROOM = 64
PROMPT = [3, 17, 101, 5, 44]
SIZES = {
    "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 128,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 512,
    "tie_word_embeddings": True, "rope_scaling": None,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
           "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}
# What each model's config.json has besides.
MODELS = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "qwen3_moe": EXPERTS,
    "gemma3_text": {"sliding_window": 512, "sliding_window_pattern": 2, "query_pre_attn_scalar": 64},
    "phi3": {"head_dim": 32},
    "starcoder2": {"norm_epsilon": 1e-5, "norm_eps": 1e-5},
}


def model_of(name):
    module = importlib.import_module("mlx_lm.models." + name)
    config = {**SIZES, "model_type": name, **MODELS[name]}
    model = module.Model(module.ModelArgs.from_dict(config))
    weights = [(k, mx.random.normal(v.shape, scale=0.05) + (v if v.ndim == 1 else 0))
               for k, v in nn.utils.tree_flatten(model.parameters())]
    model.load_weights([(k, v.astype(mx.bfloat16)) for k, v in weights])
    nn.quantize(model, 64, 4)
    model.eval()
    return model


def started(model):
    """A cache that has seen the prompt, with room."""
    cache = make_prompt_cache(model)
    for c in cache:
        c.step = ROOM
    mx.eval(model(mx.array([PROMPT]), cache=cache))
    return cache


def in_float32(tree):
    return nn.utils.tree_map(lambda a: a.astype(mx.float32) if a.dtype == mx.bfloat16 else a, tree)


def step_of(model, cache):
    offset = len(PROMPT)

    def step(token, *state):
        for i, c in enumerate(cache):
            c.keys, c.values, c.offset = state[2 * i], state[2 * i + 1], offset
        logits = model(token, cache=cache)[:, -1, :]
        logits = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        return [mx.argmax(logits, axis=-1), logits] + [a for c in cache for a in (c.keys, c.values)]

    return step


def write(folder, name):
    mx.random.seed(7)
    model = model_of(name)
    cache = started(model)
    inputs = [mx.array([[9]])] + [mx.array(a) for c in cache for a in (c.keys, c.values)]
    mx.eval(inputs)
    step = step_of(model, cache)
    path = str(folder / (name + ".mlxfn"))
    mx.export_function(path, step, *inputs)
    out = mx.import_function(path)(*inputs)
    arrays = {f"c0.in{i}": a for i, a in enumerate(inputs)}
    arrays.update({f"c0.out{i}": a for i, a in enumerate(out)})
    model.update(in_float32(model.parameters()))
    arrays.update({f"c1.out{i}": a for i, a in enumerate(step(*in_float32(inputs)))})
    mx.savez_compressed(str(folder / (name + ".npz")), **arrays)
    print(name, out[0].item(), pathlib.Path(path).stat().st_size)


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv[1])
    FOLDER.mkdir(parents=True, exist_ok=True)
    for NAME in sys.argv[2:] or MODELS:
        write(FOLDER, NAME)
