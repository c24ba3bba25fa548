#!/usr/bin/env python3
"""Compares gguf_blocks.py with the Python package gguf, which must be installed.

Not part of the test run: the tests must not need anything from the network.
"""

import sys

import numpy as np
from gguf import GGMLQuantizationType, GGML_QUANT_SIZES, quants

import gguf_blocks


def main():
    rng = np.random.default_rng(1)
    bad = 0
    for name, (number, elements, size, _, _) in gguf_blocks.TYPES.items():
        kind = GGMLQuantizationType(number)
        assert (kind.name, GGML_QUANT_SIZES[kind]) == (name, (elements, size)), name
        if name == "Q8_K":  # the package can only describe it
            continue
        blocks = gguf_blocks.random_blocks(rng, name, 200)
        same = np.array_equal(gguf_blocks.meaning(name, blocks), quants.dequantize(blocks, kind))
        print(f"{name:7} {'equal' if same else 'DIFFERENT'}")
        bad += not same
    return 1 if bad else 0


sys.exit(main())
