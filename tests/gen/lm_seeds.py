#!/usr/bin/env python3
"""Writes seeds for the fuzz targets lm_config and lm_gguf: the configs of all small models with other
sizes, and tiny models as GGUF files.

usage: lm_seeds.py OUTPUT
"""
import json
import pathlib
import sys

import lm_gguf
import lm_models

TINY = dict(hidden_size=8, num_hidden_layers=2, intermediate_size=8, num_attention_heads=2,
            num_key_value_heads=1, head_dim=4, vocab_size=8, max_position_embeddings=64)
TINY_MOE = dict(num_experts=3, num_experts_per_tok=2, moe_intermediate_size=4)
PACKED = dict(hidden_size=64, intermediate_size=64, head_dim=32)


def tiny(config):
    sizes = dict(TINY, **(TINY_MOE if "num_experts" in config else {}))
    if "quantization" in config:
        sizes.update(PACKED)
    if "layer_types" in config:
        sizes.update(layer_types=config["layer_types"][:2], sliding_window=2)
    return dict(config, **sizes)


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, m in lm_models.MODELS.items():
        config = tiny(m["config"])
        text = json.dumps(config, separators=(",", ":")).encode()
        (folder / f"{name}.lm_config").write_bytes(text + bytes([0, 0, 0, 0]))
        if m["gguf"] and "quantization" not in config:
            tensors = lm_models.weights(dict(m, config=config), 1)[0]
            (folder / f"{name}.lm_gguf").write_bytes(lm_gguf.model_file(config, tensors))
    modes = dict(lm_models.MODELS["qwen3"]["config"], **dict(TINY, **PACKED))
    for mode, bits, group in ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16):
        modes.update(hidden_size=64, quantization=dict(mode=mode, bits=bits, group_size=group))
        (folder / f"{mode}.lm_config").write_text(json.dumps(modes))


if __name__ == "__main__":
    main()
