"""Rows of products of which only parts count, and of the Hadamard transform."""

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


# ---- products of which only parts count ----

def expanded(mask, block, rows, cols):
    return np.repeat(np.repeat(mask, block, -2), block, -1)[..., :rows, :cols]


def masked_row(a, b, block, masks, tolerance=EXACT):
    """masks: of the result, of a, of b; None or an input."""
    out, lhs, rhs = (None if m is None else wide(m.values) for m in masks)
    x, y = wide(a.values), wide(b.values)
    if lhs is not None:
        x = x * expanded(lhs, block, *x.shape[-2:])
    if rhs is not None:
        y = y * expanded(rhs, block, *y.shape[-2:])
    z = x @ y
    if out is not None:
        z = z * expanded(out, block, *z.shape[-2:])
    return Row("block_masked_mm", [a, b, *masks], [(cast(z, a.dtype), a.dtype)], [block], tolerance,
               math.sqrt(x.shape[-1]))


def mask(rng, shape, dtype="bool", layout="row"):
    if dtype == "bool":
        return laid_out(rng.integers(0, 3, shape) > 0, "bool", layout)
    return laid_out(small_integers(rng, shape, dtype, -1, 2), dtype, layout)


def masked_rows(rng):
    for block in (32, 64):
        for m, n, k in ((64, 64, 64), (100, 130, 150), (1, 70, 40), (33, 1, 129), (256, 128, 192)):
            tm, tn, tk = (-(-d // block) for d in (m, n, k))
            for which in range(1, 8):
                for kind in ("bool", "float32"):
                    a = laid_out(small_integers(rng, (m, k)), "float32",
                                 ("row", "transposed", "sliced")[which % 3])
                    b = laid_out(small_integers(rng, (k, n)), "float32",
                                 ("transposed", "row", "reversed")[which % 3])
                    # A bool mask beside numbers becomes one.
                    masks = [mask(rng, (tm, tn), kind), mask(rng, (tm, tk), kind),
                             mask(rng, (tk, tn), kind if which != 7 else "bool", "transposed")]
                    yield masked_row(a, b, block, [v if which >> i & 1 else None
                                                   for i, v in enumerate(masks)])
    for dtype in ("float16", "bfloat16", "float64"):
        for kind in ("bool", dtype):
            a = Arr(small_integers(rng, (96, 160), dtype), dtype)
            b = Arr(small_integers(rng, (160, 72), dtype), dtype)
            yield masked_row(a, b, 32, [mask(rng, (3, 3), kind), mask(rng, (3, 5), kind),
                                        mask(rng, (5, 3), kind)])
    # Batches, over which masks and operands broadcast.
    a, b = (Arr(small_integers(rng, shape), "float32") for shape in ((2, 3, 40, 70), (3, 70, 66)))
    yield masked_row(a, b, 32, [mask(rng, (2, 1, 2, 3)), mask(rng, (3, 2, 3)), mask(rng, (3, 3))])
    yield masked_row(a, b, 64, [None, mask(rng, (2, 3, 1, 2), "float32"), None])
    # What is left out is not read.
    with_nan = small_integers(rng, (64, 64))
    with_nan[:32, 32:] = np.nan
    lhs, kept = np.array([[True, False], [True, True]]), np.where(np.isnan(with_nan), 0, with_nan)
    b = Arr(small_integers(rng, (64, 33)), "float32")
    yield Row("block_masked_mm", [Arr(with_nan, "float32"), b, None, Arr(lhs, "bool"), None],
              [(kept @ b.values, "float32")], [32], EXACT)


def segmented_row(a, b, segments, dtype="int32"):
    k = a.shape[1]
    parts = [wide(a.values)[:, min(f, k):max(min(e, k), f)] @ wide(b.values)[min(f, k):max(min(e, k), f)]
             for f, e in segments.reshape(-1, 2).tolist()]
    z = np.array(parts).reshape(*segments.shape[:-1], a.shape[0], b.shape[1])
    return Row("segmented_mm", [a, b, Arr(segments, dtype)], [(cast(z, a.dtype), a.dtype)],
               tolerance=EXACT)


def segmented_rows(rng):
    some = np.array([[0, 5], [5, 40], [40, 40], [40, 150], [7, 9], [90, 20], [0, 150]])
    for m, n in ((1, 1), (3, 70), (64, 64), (130, 40)):
        for left in LAYOUTS:
            right = LAYOUTS[-1 - LAYOUTS.index(left)]
            a = laid_out(small_integers(rng, (m, 150)), "float32", left)
            b = laid_out(small_integers(rng, (150, n)), "float32", right)
            yield segmented_row(a, b, some)
    for dtype in ("float16", "bfloat16", "float64"):
        for left in ("row", "transposed"):
            a = laid_out(small_integers(rng, (48, 160), dtype), dtype, left)
            yield segmented_row(a, Arr(small_integers(rng, (160, 32), dtype), dtype), some + 3)
    a, b = (Arr(small_integers(rng, shape), "float32") for shape in ((40, 5000), (5000, 24)))
    for segments in ([0, 5000], [[[0, 2500], [2500, 6000]], [[6000, 7000], [1, 4999]]]):
        yield segmented_row(a, b, np.array(segments), "uint32")


def rows(rng):
    """(family, rows) pairs."""
    return [("hadamard", [*hadamard_rows(rng)]),
            ("sparse", [*masked_rows(rng), *segmented_rows(rng)])]
