"""Rows of reductions, softmax, matrix products and random numbers."""

import numpy as np

from case_table import (ALL, CLOSE, EXACT, FLOATS, INTS, Arr, DtypeParam, Ints, Row, at_least_float,
                        carrier, cast, laid_out, wide)
from cases_elementwise import LARGE, erfinv
from cases_shape import LAYOUTS, sample

# ---- reductions ----


def sum_dtype(t):
    if t == "bool" or t in ("int8", "int16", "int32"):
        return "int32"
    return "uint32" if t in ("uint8", "uint16", "uint32") else t


def logsumexp(x, axis, keepdims):
    top = np.max(x, axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(all="ignore"):
        out = np.log(np.sum(np.exp(x - top), axis, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, axis)


# name: result dtype of an input dtype, reference(x, axis, keepdims), dtypes
REDUCTIONS = {
    "sum": (sum_dtype, np.sum, ALL),
    "prod": (sum_dtype, np.prod, ALL),
    "min": (lambda t: t, np.min, ALL),
    "max": (lambda t: t, np.max, ALL),
    "all": (lambda t: "bool", np.all, ALL),
    "any": (lambda t: "bool", np.any, ALL),
    "mean": (at_least_float, np.mean, ALL),
    "logsumexp": (at_least_float, logsumexp, [t for t in ALL if t != "complex64"]),
}
NEEDS_ELEMENTS = ("min", "max")


def reduce_values(rng, name, dtype, shape):
    if name == "prod":
        if dtype in INTS:
            return rng.integers(1, 3, shape).astype(dtype)
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype == "complex64":
            return np.exp(1j * rng.uniform(-1, 1, shape)).astype(np.complex64)
        return cast(rng.uniform(0.8, 1.25, shape), dtype)
    if name in ("all", "any"):
        return cast(rng.uniform(0, 1, shape) < (0.9 if name == "all" else 0.1), dtype)
    return sample(rng, dtype, shape)


def magnitude(x, axis, name, out):
    """What an absolute error is measured by: the sum of what went into a result."""
    if name == "logsumexp":  # near zero it is a difference of numbers of this size
        return 1 + float(np.max(np.abs(wide(x)))) if np.all(np.isfinite(x)) else 0.0
    if name not in ("sum", "mean") or x.size == 0 or not (out in FLOATS or out == "complex64"):
        return 0.0
    total = np.max(np.sum(np.abs(wide(x)), axis))
    total = total / (x.size / np.size(np.sum(np.abs(wide(x)), axis))) if name == "mean" else total
    # Half types may be summed up in half precision, as MLX does.
    return total * (4 if out in ("float16", "bfloat16") else 0.2)


def reduce_result(name, x, dtype, axis, keepdims):
    out_type, ref, _ = REDUCTIONS[name]
    out = out_type(dtype)
    work = x
    if name in ("sum", "prod", "mean", "logsumexp"):
        work = wide(cast(x, out)) if out in FLOATS or out == "complex64" else cast(x, out)
    if name in ("sum", "prod") and work.dtype.kind in "iu":
        return ref(work, axis, dtype=work.dtype, keepdims=keepdims), out
    with np.errstate(all="ignore"):
        return cast(ref(work, axis, keepdims=keepdims), out), out


def reduce_row(name, a, axes, keepdims):
    """axes: None for all elements, an int, or a list."""
    axis = tuple(axes) if isinstance(axes, list) else axes
    if axis is None:
        axis = tuple(range(len(a.shape)))
        fn, params = name, [keepdims]
    elif isinstance(axes, int):
        fn, params = f"{name}_axis", [axes, keepdims]
    else:
        fn, params = f"{name}_axes", [Ints(axes), keepdims]
    out = reduce_result(name, a.values, a.dtype, axis, bool(keepdims))
    tolerance = EXACT if name in ("min", "max", "all", "any") else CLOSE
    return Row(fn, [a], [out], params, tolerance, magnitude(a.values, axis, name, out[1]))


def reduction_rows(rng):
    for name, (_, _, dtypes) in REDUCTIONS.items():
        for dtype in dtypes:
            a = Arr(reduce_values(rng, name, dtype, (5, 7)), dtype)
            yield reduce_row(name, a, None, 0)
            yield reduce_row(name, a, 0, 0)
            yield reduce_row(name, a, -1, 1)
        for layout in LAYOUTS:
            a = laid_out(reduce_values(rng, name, "float32", (3, 4, 5)), "float32", layout)
            for axes in (None, 0, 1, 2, [0, 2], [1, 2], [0, 1], [0, 1, 2]):
                yield reduce_row(name, a, axes, 0)
            yield reduce_row(name, a, [0, -1], 1)
        for shape, axes in (((), None), ((1,), 0), ((1, 5), 0), ((5003,), None), ((5003,), 0),
                            ((70, 71), 0), ((70, 71), 1), ((2, 3000), 1), ((3000, 2), 0),
                            ((4, 33, 3, 17), [1, 3]), ((4, 33, 3, 17), [0, 2]), ((2, 3, 4), [])):
            a = Arr(reduce_values(rng, name, "float32", shape), "float32")
            yield reduce_row(name, a, axes, 0)
        if name not in NEEDS_ELEMENTS + ("mean", "logsumexp"):
            for shape, axes in (((0, 3), 0), ((0, 3), None), ((3, 0), 0), ((0,), None)):
                a = Arr(reduce_values(rng, name, "float32", shape), "float32")
                yield reduce_row(name, a, axes, 0)


def large_rows(rng):
    a = Arr(reduce_values(rng, "sum", "float32", LARGE), "float32")
    yield reduce_row("sum", a, None, 0)
    yield reduce_row("max", a, 0, 0)
    for name, axes, layout in (("sum", 1, "transposed"), ("all", None, "row"), ("sum", 0, "row")):
        yield reduce_row(name, Arr(reduce_values(rng, name, "uint8", LARGE), "uint8", layout), axes,
                         0)
    yield softmax_row(Arr(sample(rng, "float16", LARGE), "float16"), -1, 1)


def special_rows(_rng):
    x = np.float32([[1, np.nan, 3], [np.inf, 2, -np.inf], [-0.0, 0.0, 5]])
    for name in ("min", "max", "sum"):
        for axes in (None, 0, 1):
            yield reduce_row(name, Arr(x, "float32"), axes, 0)
    y = np.float32([[-np.inf, -np.inf], [np.inf, 1], [1000, 1001], [-1000, -1001]])
    yield reduce_row("logsumexp", Arr(y, "float32"), 1, 0)
    for dtype in INTS:
        info = np.iinfo(dtype)
        z = np.array([info.min, info.max, 0, 1], dtype)
        for name in ("min", "max"):
            yield reduce_row(name, Arr(z, dtype), None, 0)


def spread_rows(rng):
    """Variance and standard deviation."""
    for name, ref in (("var", np.var), ("std", np.std)):
        for dtype in ("float32", "float16", "bfloat16", "int32", "uint8", "bool", "float64"):
            a = Arr(sample(rng, dtype, (5, 7)), dtype)
            out = at_least_float(dtype)
            for fn, axis, ddof in ((name, None, 0), (name + "_axis", 1, 0), (name + "_axis", 0, 1)):
                x = wide(cast(a.values, out))
                r = ref(x, axis, ddof=ddof)
                half = 4 if out in ("float16", "bfloat16") else 1
                params = [0, ddof] if axis is None else [axis, 0, ddof]
                yield Row(fn, [a], [(cast(r, out), out)], params,
                          scale=half * float(np.mean(x * x)))
        for layout in LAYOUTS:
            a = laid_out(sample(rng, "float32", (3, 4, 5)), "float32", layout)
            r = ref(wide(a.values), (0, 2), ddof=1, keepdims=True)
            yield Row(name + "_axes", [a], [(cast(r, "float32"), "float32")], [Ints([0, 2]), 1, 1],
                      scale=float(np.mean(wide(a.values) ** 2)))


def arg_rows(rng):
    for name, ref in (("argmin", np.argmin), ("argmax", np.argmax)):
        for dtype in ALL:
            a = Arr(sample(rng, dtype, (5, 7)), dtype)
            yield Row(name, [a], [(np.uint32(ref(a.values)), "uint32")], [0], EXACT)
            for axis in (0, -1):
                yield Row(name + "_axis", [a], [(ref(a.values, axis), "uint32")], [axis, 0], EXACT)
        for layout in LAYOUTS:
            x = np.round(sample(rng, "float32", (3, 4, 5)))  # with ties: the first one counts
            a = laid_out(x, "float32", layout)
            yield Row(name, [a], [(np.uint32(ref(a.values)), "uint32")], [0], EXACT)
            for axis in (0, 1, 2):
                r = np.expand_dims(ref(a.values, axis), axis)
                yield Row(name + "_axis", [a], [(r, "uint32")], [axis, 1], EXACT)
        for shape, axis in (((1,), 0), ((5003,), 0), ((70, 71), 0), ((70, 71), 1), ((2, 3000), 1)):
            a = Arr(sample(rng, "float32", shape), "float32")
            yield Row(name + "_axis", [a], [(ref(a.values, axis), "uint32")], [axis, 0], EXACT)
        for dtype in FLOATS + ["complex64"]:  # the first NaN wins, in either part of a number
            for shape in ((40, 7), (37, 130), (3, 5003)):
                x = np.round(sample(rng, dtype, shape))
                x[rng.random(shape) < 2 / shape[0]] = np.nan
                if dtype == "complex64":
                    x[rng.random(shape) < 2 / shape[0]] = complex(np.nan, 1)
                    x[rng.random(shape) < 2 / shape[0]] = complex(1, np.nan)
                a = Arr(x, dtype)
                for axis in (0, 1):
                    yield Row(name + "_axis", [a], [(ref(x, axis), "uint32")], [axis, 0], EXACT)
        for dtype in INTS + ["bool"]:
            ends = [np.iinfo(dtype).min, np.iinfo(dtype).max] if dtype in INTS else [0, 1]
            for x in (np.full(70, ends[0], dtype), np.full(70, ends[1], dtype),
                      np.array([*ends[::-1], *ends] * 9, dtype)):
                yield Row(name, [Arr(x, dtype)], [(np.uint32(ref(x)), "uint32")], [0], EXACT)
        a = Arr(sample(rng, "float32", (4, 5)), "float32")
        keep = np.full((1, 1), ref(a.values))
        yield Row(name, [a], [(keep, "uint32")], [1], EXACT)


def softmax(x, axis):
    x = x - np.max(x, axis, keepdims=True) if x.size else x
    e = np.exp(x)
    return e / np.sum(e, axis, keepdims=True)


def softmax_row(a, axes, precise):
    axis = tuple(range(len(a.shape))) if axes is None else axes
    axis = tuple(axis) if isinstance(axis, list) else axis
    out = at_least_float(a.dtype)
    r = softmax(wide(cast(a.values, out)), axis)
    scale = 2 * float(np.max(r)) if r.size and out in ("float16", "bfloat16") else 0
    if axes is None:
        fn, params = "softmax", [precise]
    elif isinstance(axes, int):
        fn, params = "softmax_axis", [axes, precise]
    else:
        fn, params = "softmax_axes", [Ints(axes), precise]
    return Row(fn, [a], [(cast(r, out), out)], params, scale=scale)


def softmax_rows(rng):
    for dtype in FLOATS + ["int32", "bool"]:
        a = Arr(sample(rng, dtype, (5, 37)), dtype)
        for precise in (0, 1):
            yield softmax_row(a, -1, precise)
    for layout in LAYOUTS:
        a = laid_out(sample(rng, "float32", (3, 4, 5)), "float32", layout)
        for axes in (None, 0, 1, 2, [0, 2], [1, 2]):
            yield softmax_row(a, axes, 0)
    for shape in ((1,), (1, 1), (3, 5003), (300, 33), (0, 4)):
        yield softmax_row(Arr(sample(rng, "float32", shape), "float32"), -1, 0)
    x = np.float32([[0, -np.inf, 1], [1000, 1000, -1000], [88, 89, 90]])
    yield softmax_row(Arr(x, "float32"), -1, 0)


# ---- matrix products ----

MATMUL_SHAPES = [((4, 5), (5, 6)), ((1, 5), (5, 6)), ((4, 5), (5, 1)), ((5,), (5,)), ((5,), (5, 6)),
                 ((4, 5), (5,)), ((3, 4, 5), (3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)),
                 ((3, 4, 5), (5, 6)), ((4, 5), (3, 5, 6)), ((3, 4, 5), (5,)), ((17, 33), (33, 65)),
                 ((64, 256), (256, 96)), ((2, 3000), (3000, 3)), ((1, 1000), (1000, 257)),
                 ((130, 40), (40, 1)), ((4, 0), (0, 6)), ((0, 5), (5, 6)), ((3, 0, 5), (3, 5, 6)),
                 ((1, 1), (1, 1))]


def product(a, b):
    return np.matmul(a, b) if a.size and b.size else np.zeros(
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), a.dtype)


def matmul_scale(a, b):
    r = product(np.abs(a), np.abs(b))
    return float(np.max(np.abs(r))) if r.size else 0.0


def matmul_row(a, b, fn="matmul"):
    x, y = wide(a.values), wide(b.values)
    return Row(fn, [a, b], [(cast(product(x, y), a.dtype), a.dtype)], [], scale=matmul_scale(x, y))


def matmul_rows(rng):
    for dtype in FLOATS + ["complex64"]:
        for sa, sb in MATMUL_SHAPES if dtype in ("float32", "float16") else MATMUL_SHAPES[:8]:
            a, b = Arr(sample(rng, dtype, sa), dtype), Arr(sample(rng, dtype, sb), dtype)
            yield matmul_row(a, b)
    for la in LAYOUTS:
        for lb in ("row", "transposed", "sliced"):
            a = laid_out(sample(rng, "float32", (9, 20)), "float32", la)
            b = laid_out(sample(rng, "float32", (20, 11)), "float32", lb)
            yield matmul_row(a, b)
    for la, lb in (("transposed", "row"), ("row", "transposed"), ("sliced", "broadcast")):
        a = laid_out(sample(rng, "float16", (2, 9, 20)), "float16", la)
        b = laid_out(sample(rng, "float16", (2, 20, 11)), "float16", lb)
        yield matmul_row(a, b)


def addmm_rows(rng):
    for dtype in ("float32", "float16", "bfloat16", "complex64"):
        for shape_c, alpha, beta in (((4, 6), 1.0, 1.0), ((6,), 0.5, 2.0), ((), 1.0, -1.0),
                                     ((4, 1), 2.0, 0.0)):
            c, a, b = (Arr(sample(rng, dtype, s), dtype) for s in (shape_c, (4, 5), (5, 6)))
            x, y, z = wide(a.values), wide(b.values), wide(c.values)
            r = alpha * (x @ y) + beta * z
            yield Row("addmm", [c, a, b], [(cast(r, dtype), dtype)], [alpha, beta],
                      scale=matmul_scale(x, y) * 4)
    for shape_a, shape_b, shape_c in (((3, 4, 5), (3, 5, 6), (6,)), ((3, 4, 5), (5, 6), (3, 4, 6)),
                                      ((5,), (5, 6), (6,)), ((4, 0), (0, 6), (4, 6)),
                                      ((65, 130), (130, 33), (33,))):
        c, a, b = (Arr(sample(rng, "float32", s), "float32") for s in (shape_c, shape_a, shape_b))
        x, y = wide(a.values), wide(b.values)
        r = 0.5 * product(x, y) + 3 * wide(c.values)
        yield Row("addmm", [c, a, b], [(cast(r, "float32"), "float32")], [0.5, 3.0],
                  scale=matmul_scale(x, y))
    # What is multiplied by zero is not read, so that no NaN comes of it; complex numbers are.
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        for m, k, n in ((4, 5, 6), (1, 70, 33), (65, 130, 66)):
            c, a, b = (Arr(sample(rng, dtype, s), dtype) for s in ((m, n), (m, k), (k, n)))
            nan = Arr(np.full((m, n), np.nan), dtype)
            x, y = wide(a.values), wide(b.values)
            yield Row("addmm", [nan, a, b], [(cast(2 * (x @ y), dtype), dtype)], [2.0, 0.0],
                      scale=matmul_scale(x, y) * 4)
            infinite = Arr(np.full((m, k), np.inf), dtype)
            yield Row("addmm", [c, infinite, b], [(cast(2 * wide(c.values), dtype), dtype)],
                      [0.0, 2.0])
            yield Row("addmm", [nan, infinite, b], [(np.zeros((m, n)), dtype)], [0.0, 0.0])
    for layout in LAYOUTS:
        c, a, b = (laid_out(sample(rng, "float32", s), "float32", layout)
                   for s in ((4, 6), (4, 5), (5, 6)))
        x, y = wide(a.values), wide(b.values)
        yield Row("addmm", [c, a, b], [(cast(x @ y + wide(c.values), "float32"), "float32")],
                  [1.0, 1.0], scale=matmul_scale(x, y))


def gather_mm_row(a, b, left, right, is_sorted=False):
    def numbered(x, given):
        batch = x.shape[:-2]
        return given.values if given else np.arange(int(np.prod(batch))).reshape(batch)

    x, y = wide(a.values), wide(b.values)
    left_at, right_at = np.broadcast_arrays(numbered(x, left), numbered(y, right))
    x, y = (m.reshape((int(np.prod(m.shape[:-2])),) + m.shape[-2:])[at]
            for m, at in ((x, left_at), (y, right_at)))
    return Row("gather_mm", [a, b, left, right], [(cast(product(x, y), a.dtype), a.dtype)],
               [int(is_sorted)], scale=matmul_scale(x, y))


# a, b, lhs_indices, rhs_indices
GATHER_MM = [((3, 4, 5), (6, 5, 7), [2, 0, 1, 1], [5, 5, 0, 3]),
             ((7, 1, 1, 40), (5, 40, 24), None, [[0, 4], [3, 3], [1, 2], [0, 1], [4, 4], [2, 2], [1, 0]]),
             ((4, 1, 64), (5, 64, 33), [[0], [3], [2]], [0, 4, 1, 1]),
             ((5, 3, 20), (5, 20, 9), [4, 1, 1, 0, 2], None), ((6, 20, 1), (2, 1, 300), None, [1, 0, 0, 1, 0, 1]),
             ((2, 3, 40, 48), (3, 2, 48, 50), [5, 0, 3], [1, 4, 4]), ((2, 70, 64), (3, 64, 96), [1, 0], [2, 0]),
             ((9, 4), (3, 4, 6), [0, 0, 0], [2, 0, 1]), ((2, 9, 16), (16, 2), [[1], [0]], 0),
             ((3, 4, 0), (2, 0, 5), [1, 2], [0, 1]), ((3, 4, 5), (2, 5, 6), np.zeros((0, 2), int), 1),
             ((3, 0, 5), (2, 5, 6), [1, 2], 1), ((2, 2, 9000), (2, 9000, 3), [1, 0, 1], [0, 1, 1])]


def gather_mm_rows(rng):
    def numbers(at, dtype="uint32", layout="row"):
        return None if at is None else laid_out(np.array(at, dtype), dtype, layout)

    for dtype in FLOATS:
        for sa, sb, left, right in GATHER_MM if dtype in ("float32", "float16") else GATHER_MM[:6]:
            a, b = Arr(sample(rng, dtype, sa), dtype), Arr(sample(rng, dtype, sb), dtype)
            yield gather_mm_row(a, b, numbers(left), numbers(right, "int32"))
    for la in LAYOUTS:
        for lb in LAYOUTS:
            a = laid_out(sample(rng, "float32", (2, 3, 4, 20)), "float32", la)
            b = laid_out(sample(rng, "float32", (3, 20, 11)), "float32", lb)
            yield gather_mm_row(a, b, numbers([5, 0, 3], "int64", lb), numbers([2, 2, 1], "uint8", la))
    a = laid_out(sample(rng, "bfloat16", (12, 1, 64)), "bfloat16", "row")
    b = laid_out(sample(rng, "bfloat16", (5, 64, 48)), "bfloat16", "transposed")
    yield gather_mm_row(a, b, None, numbers([0, 0, 0, 1, 1, 1, 1, 3, 3, 4, 4, 4]), True)
    a, b = (Arr(sample(rng, "float32", (1,) * 15 + (2, 1, 2, 3, 4)), "float32") for _ in range(2))
    b = Arr(b.values.reshape((1,) * 15 + (2, 1, 2, 4, 3)), "float32")
    yield gather_mm_row(a, b, numbers([3, 0]), numbers([1, 2]))


def inner_rows(rng):
    for sa, sb in (((5,), (5,)), ((3, 5), (5,)), ((3, 5), (4, 5)), ((2, 3, 5), (4, 5))):
        a, b = Arr(sample(rng, "float32", sa), "float32"), Arr(sample(rng, "float32", sb), "float32")
        r = np.inner(wide(a.values), wide(b.values))
        yield Row("inner", [a, b], [(cast(r, "float32"), "float32")], [], scale=20.0)
    for sa, sb in (((3,), (4,)), ((2, 3), (4,)), ((), (3,))):
        for dtype in ("float32", "int32"):
            a, b = Arr(sample(rng, dtype, sa), dtype), Arr(sample(rng, dtype, sb), dtype)
            yield Row("outer", [a, b], [(np.outer(a.values, b.values), dtype)], [], EXACT)


# ---- random numbers: threefry, bit for bit ----

MASK = 0xFFFFFFFF


def threefry(key, c0, c1):
    """Two words for a counter; c0 and c1 are arrays."""
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    ks = [int(key[0]), int(key[1]), int(key[0]) ^ int(key[1]) ^ 0x1BD11BDA]
    x = (c0.astype(np.uint64) + ks[0]) & np.uint64(MASK)
    y = (c1.astype(np.uint64) + ks[1]) & np.uint64(MASK)
    for block in range(5):
        for r in rotations[block % 2]:
            x = (x + y) & np.uint64(MASK)
            y = ((y << np.uint64(r)) | (y >> np.uint64(32 - r))) & np.uint64(MASK)
            y = y ^ x
        x = (x + np.uint64(ks[(block + 1) % 3])) & np.uint64(MASK)
        y = (y + np.uint64((ks[(block + 2) % 3] + block + 1) & MASK)) & np.uint64(MASK)
    return x.astype(np.uint32), y.astype(np.uint32)


def bits(key, n, width=4):
    """n numbers of width bytes."""
    words = (n * width + 3) // 4
    half, odd = words // 2, words % 2
    i = np.arange(half + odd, dtype=np.uint32)
    second = i + np.uint32(half + odd)
    if odd:
        second[half] = 0
    x, y = threefry(key, i, second)
    out = np.concatenate([x, y[:half]]) if words else np.zeros(0, np.uint32)
    return out.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[width])[:n]


def split(key, n):
    return bits(key, 2 * n).reshape(n, 2)


def uniform(key, n, low, high, dtype="float32"):
    """In the arithmetic of the dtype, from 32 random bits each."""
    below_one = {"float32": np.float32(1 - 2.0 ** -24), "float16": np.float32(1 - 2.0 ** -11),
                 "bfloat16": np.float32(1 - 2.0 ** -8)}[dtype]
    u = bits(key, n).astype(np.float32) / np.float32(4294967296)
    u = cast(np.minimum(u, below_one), dtype).astype(np.float32)
    low, high = cast(np.float64(low), dtype), cast(np.float64(high), dtype)
    spread = cast(high.astype(np.float32) - low.astype(np.float32), dtype)
    scaled = cast(u * spread.astype(np.float32), dtype)
    return cast(scaled.astype(np.float32) + low.astype(np.float32), dtype)


KEYS = [(0, 0), (0, 42), (0xFFFFFFFF, 0xFFFFFFFF), (123456789, 987654321)]


def key_array(key):
    return Arr(np.array(key, np.uint32), "uint32")


def bits_rows(_rng):
    for key in KEYS:
        for n in (1, 2, 3, 5, 8, 1001):
            for width in (1, 2, 4):
                out = {1: "uint8", 2: "uint16", 4: "uint32"}[width]
                yield Row("random_bits", [key_array(key)], [(bits(key, n, width), out)],
                          [Ints([n]), width], EXACT)
        yield Row("random_bits", [key_array(key)], [(bits(key, 12).reshape(3, 4), "uint32")],
                  [Ints([3, 4]), 4], EXACT)
        yield Row("random_bits", [key_array(key)], [(bits(key, 0), "uint32")], [Ints([0]), 4], EXACT)
        pair = split(key, 2)
        yield Row("random_split", [key_array(key)], [(pair[0], "uint32"), (pair[1], "uint32")], [],
                  EXACT)
        for n in (1, 2, 5, 64):
            yield Row("random_split_num", [key_array(key)], [(split(key, n), "uint32")], [n], EXACT)
    for seed in (0, 7, 2 ** 33 + 5):
        key = np.array([seed >> 32, seed & MASK], np.uint32)
        yield Row("random_key", [], [(key, "uint32")], [seed], EXACT)
        # Without a key the thread's sequence: the state is row 0 of a split, row 1 is used.
        first = split(key, 2)
        second = split(first[0], 2)
        yield Row("random_seed", [], [(bits(first[1], 3), "uint32"), (bits(second[1], 3), "uint32")],
                  [seed], EXACT)


def distribution_rows(_rng):
    for key in KEYS:
        k = key_array(key)
        for dtype in ("float32", "float16", "bfloat16"):
            for low, high in ((0.0, 1.0), (-2.0, 5.0)):
                r = uniform(key, 101, low, high, dtype)
                yield Row("random_uniform", [Arr(np.float32(low), "float32"),
                                             Arr(np.float32(high), "float32"), k], [(r, dtype)],
                          [Ints([101]), DtypeParam(dtype)], EXACT)
        u = uniform(key, 101, np.nextafter(np.float32(-1), np.float32(0)), 1.0)
        normal = np.sqrt(2) * erfinv(u.astype(np.float64))
        yield Row("random_normal", [k], [(cast(normal, "float32"), "float32")],
                  [Ints([101]), DtypeParam("float32"), 0.0, 1.0])
        yield Row("random_normal", [k], [(cast(normal * 2 + 3, "float32"), "float32")],
                  [Ints([101]), DtypeParam("float32"), 3.0, 2.0], scale=3.0)
        loc, scale = np.float32([[-1], [2]]), np.float32([0.5, 1, 2])
        r = normal[:6].copy()
        six = uniform(key, 6, np.nextafter(np.float32(-1), np.float32(0)), 1.0)
        r = np.sqrt(2) * erfinv(six.astype(np.float64)).reshape(2, 3) * scale + loc
        yield Row("random_normal_broadcast", [Arr(loc, "float32"), Arr(scale, "float32"), k],
                  [(cast(r, "float32"), "float32")], [Ints([2, 3]), DtypeParam("float32")],
                  scale=3.0)
        whole = np.floor(uniform(key, 101, 3.0, 50.0)).astype(np.int32)
        yield Row("random_randint", [Arr(np.int32(3), "int32"), Arr(np.int32(50), "int32"), k],
                  [(np.clip(whole, 3, 49), "int32")], [Ints([101]), DtypeParam("int32")], EXACT)
        for p in (0.25, 0.9):
            limit = np.float32(p) * np.float32(4294967808.0)
            r = bits(key, 101).astype(np.float32) < limit
            yield Row("random_bernoulli", [Arr(np.float32(p), "float32"), k], [(r, "bool")],
                      [Ints([101])], EXACT)


def rows(rng):
    """(family, rows) pairs."""
    return [("large", [*large_rows(rng)]),
            ("reduce", [*reduction_rows(rng), *special_rows(rng), *spread_rows(rng)]),
            ("arg_reduce", [*arg_rows(rng)]),
            ("softmax", [*softmax_rows(rng)]),
            ("matmul", [*matmul_rows(rng), *addmm_rows(rng), *gather_mm_rows(rng), *inner_rows(rng)]),
            ("random", [*bits_rows(rng), *distribution_rows(rng)])]
