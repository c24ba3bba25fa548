"""Rows of products of packed, masked, segmented and gathered matrices."""

from __future__ import annotations

import itertools

from draw import HALVES, Array, Draw, Dtype
from table import row

MODES = {"mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}


def packed(d: Draw, dtype: str, batch, rows: int, columns: int):
    """A packed matrix: its words, scales, biases, and what says how they are packed."""
    mode = d.pick(("affine", "affine", "affine", *MODES))
    group, bits = MODES.get(mode, (d.pick((32, 64)), d.pick((2, 3, 4, 5, 6, 8))))
    words = (*batch, rows, columns * bits // 32)
    n = rows * (columns * bits // 32)
    groups = (*batch, rows, columns // group)
    for size in batch:
        n *= size
    w = Array("uint32", words, [int(d.random() * 2**32) for _ in range(n)])
    if mode != "affine":
        w.values = [v & 0x77777777 for v in w.values]  # no number that is not one
        count = n * 32 // bits // group
        low, high = (118, 126) if mode != "nvfp4" else (40, 60)
        scales = Array("uint8", groups, [d.between(low, high) for _ in range(count)])
        biases = None
    else:
        scales = d.array(dtype, groups, "small", 0)
        biases = d.array(dtype, groups, "small", 0)
    how = {"group_size": group, "bits": bits, "mode": mode}
    return w, scales, biases, how


@row("dequantize", batched=False)
def _(d: Draw):
    w, scales, biases, how = packed(d, d.pick(HALVES), d.shape(0, 1), d.between(1, 4), 64)
    if d.often(0.3):
        how["dtype"] = Dtype(d.pick(("float32", "float16", "bfloat16", "int32")))
    return [w, scales, biases], how


@row("quantized_matmul", smooth=True, batched=False)
def _(d: Draw):
    dtype = d.pick(HALVES)
    transpose = d.often(0.6)
    rows, columns = d.pick(((32, 64), (8, 64), (64, 128)))
    w, scales, biases, how = packed(d, dtype, (), rows, columns)
    inner = columns if transpose else rows
    if d.often(0.04):
        inner += 1
    x = d.array(dtype, (*d.shape(0, 1), d.pick((1, 2, 5, 17)), inner), "small", 0)
    return [x, w, scales, biases, transpose], how


@row("gather_qmm", smooth=True, batched=False)
def _(d: Draw):
    dtype = d.pick(HALVES)
    n = d.between(1, 3)
    w, scales, biases, how = packed(d, dtype, (n,), 32, 64)
    x = d.array(dtype, (d.between(1, 3), d.between(1, 3), 64), "small", 0)
    shape = (d.between(1, 4),)
    left = d.pick((None, Array("uint32", shape, [d.between(0, x.shape[0] - 1)] * shape[0])))
    right = Array("uint32", shape, [d.between(0, n - 1) for _ in range(shape[0])])
    if left is None and shape[0] != x.shape[0]:
        x.shape, right.shape = (1, *x.shape[1:]), shape
        x.values = x.values[: x.shape[1] * 64]
        x.layout = "row"
    return [x, w, scales, biases, left, right, True], how


@row("gather_mm", smooth=True, batched=False)
def _(d: Draw):
    dtype = d.pick(HALVES)
    a = d.array(dtype, (d.between(1, 3), d.between(1, 4), 8), "small", 0)
    b = d.array(dtype, (d.between(1, 3), 8, d.between(1, 4)), "small", 0)
    shape = d.pick(((3,), (2, 2), (1,)))
    n = shape[0] * shape[-1] if len(shape) == 2 else shape[0]
    left, right = (
        Array("uint32", shape, sorted(d.between(0, x.shape[0] - 1) for _ in range(n)))
        for x in (a, b)
    )
    if d.often(0.1):
        left = None
    return [a, b, left, right], {}


@row("block_masked_mm", smooth=True, batched=False)
def _(d: Draw):
    block = d.pick((32, 64, 64, 16))
    m, k, n = (d.pick((32, 64, 40)) for _ in range(3))
    dtype = d.pick(("float32", "float32", "float16", "int32"))
    grid = [-(-size // block) for size in (m, k, n)]
    masks = [
        d.pick((None, d.array(d.pick(("bool_", dtype)), shape, "unit", 0)))
        for shape in ((grid[0], grid[2]), (grid[0], grid[1]), (grid[1], grid[2]))
    ]
    a, b = d.array(dtype, (m, k), "small", 0), d.array(dtype, (k, n), "small", 0)
    return [a, b, block, *masks], {}


@row("segmented_mm", batched=False)
def _(d: Draw):
    k = d.pick((8, 12))
    a = d.array(HALVES, (d.between(1, 4), k), "small", 0)
    b = d.array(a.dtype, (k, d.between(1, 4)), "small", 0)
    cuts = sorted(d.between(0, k) for _ in range(d.between(2, 4)))
    pairs = [end for pair in itertools.pairwise(cuts) for end in pair]
    return [a, b, Array("uint32", (len(pairs) // 2, 2), pairs)], {}


@row("qqmm gather_qqmm", batched=False)
def _(d: Draw):
    dtype = d.pick(("float32", "bfloat16", "float16"))
    x = d.array(dtype, (d.between(1, 4), 64), "normal", 0)
    w = d.array(dtype, (d.pick((8, 32)), 64), "normal", 0)
    return [x, w], {"mode": d.pick(("nvfp4", "mxfp8", "mxfp4", "affine"))}
