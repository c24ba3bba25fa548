"""Rows of the Hadamard transform."""

import math

import numpy as np

from case_table import CLOSE, EXACT, Arr, DtypeParam, Row, cast, is_float, laid_out, repeated, wide

LAYOUTS = ["row", "transposed", "sliced", "reversed", "offset", "broadcast", "column"]


def small_integers(rng, shape, dtype="float32", low=-3, high=3):
    return cast(repeated(lambda n: rng.integers(low, high, n, endpoint=True), shape), dtype)


def reals(rng, shape, dtype="float32"):
    return cast(repeated(lambda n: rng.uniform(-1, 1, n), shape), dtype)


# ---- Hadamard transform ----

# Rows of the matrices of Sloane's collection; bit q is set where element q is 1.
BASES = {
    1: [1],
    12: [0xffd, 0x554, 0xc37, 0x691, 0x0df, 0xa45, 0x373, 0x919, 0xdc3, 0x469, 0x70f, 0x1a5],
    20: [0x6cc21, 0xd1c42, 0xab884, 0x5f108, 0xb6610, 0x9c83e, 0x3945d, 0x7289b, 0xe5117, 0xca60f,
         0xf05ac, 0xe8b58, 0xd92b1, 0xba163, 0x7c2c6, 0x08592, 0x10b05, 0x2122a, 0x42074, 0x840c9],
    28: [0x3296181, 0x6528382, 0xc854704, 0x92a8e08, 0x2751c10, 0x4ca7820, 0x994b0c0, 0x4b980bc,
         0x9534178, 0x2a6c271, 0x54d8463, 0xa9b0847, 0x536500f, 0xa4ce01e, 0x7804cda, 0xf009935,
         0xe21326a, 0xc6224d5, 0x8e409ab, 0x1e81356, 0x3d0262d, 0x030ed66, 0x041dacd, 0x083b51b,
         0x1072ab6, 0x20e15ec, 0x41c2b59, 0x81856b3],
}


def hadamard(x):
    """The matrix of a base, times (Kronecker) one of a power of two."""
    n = x.shape[-1]
    base = next(m for m in BASES if n % m == 0 and (n // m) & (n // m - 1) == 0)
    v = x.reshape(*x.shape[:-1], base, n // base)
    h = 1
    while h < n // base:
        pairs = v.reshape(*v.shape[:-1], -1, 2, h)
        v = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]],
                     axis=-2).reshape(v.shape)
        h *= 2
    signs = np.array([[1 if row >> q & 1 else -1 for q in range(base)] for row in BASES[base]])
    return np.einsum("jq,...qi->...ji", signs, v).reshape(x.shape)


def hadamard_row(a, scale=None):
    out = a.dtype if is_float(a.dtype) else "float32"
    n = a.shape[-1] if a.shape else 1
    if n == 1 and scale in (None, 1.0):
        out = a.dtype
    factor = scale if scale is not None else (1 if out == "float64" else np.float32(1)) / math.sqrt(n)
    if out != "float64":
        factor = np.float32(factor)
    x = cast(a.values, out)
    y = (wide(x) if n == 1 else hadamard(wide(x))) * factor
    exact = scale is not None and not np.any(y != np.round(y)) and np.abs(y).max(initial=0) < 2048
    return Row("hadamard_transform", [a], [(cast(y, out), out)],
               [int(scale is not None), scale or 0.0], EXACT if exact else CLOSE, math.sqrt(n))


def hadamard_rows(rng):
    for base in BASES:
        for log2 in (0, 1, 2, 3, 4, 5, 7, 9):
            if base << log2 > 1:
                yield hadamard_row(Arr(small_integers(rng, (5, base << log2)), "float32"), 1.0)
    for n in (4096, 28 * 128, 28 * 256, 12 * 4096, 8192, 20 * 8192, 1 << 17):
        yield hadamard_row(Arr(small_integers(rng, (2, n), low=-1, high=1), "float32"), 1.0)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for n in (16, 24, 40, 112):
            yield hadamard_row(Arr(reals(rng, (3, n), dtype), dtype))
            yield hadamard_row(Arr(small_integers(rng, (3, n), dtype), dtype), 0.5)
    for dtype in ("bool", "int32", "uint8", "complex64"):
        yield hadamard_row(Arr(small_integers(rng, (3, 24), dtype, 0, 3), dtype))
    for layout in LAYOUTS:
        for shape in ((4, 64), (8, 12), (3, 2, 20)):
            yield hadamard_row(laid_out(small_integers(rng, shape), "float32", layout), 1.0)
    for shape in ((), (1,), (3, 1)):
        for scale in (None, 1.0, 2.0):
            yield hadamard_row(Arr(small_integers(rng, shape), "float32"), scale)
            yield hadamard_row(Arr(small_integers(rng, shape, "int32"), "int32"), scale)


def rows(rng):
    """(family, rows) pairs."""
    return [("hadamard", [*hadamard_rows(rng)])]
