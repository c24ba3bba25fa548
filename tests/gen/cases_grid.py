"""Rows of windows, diagonals, rolled and combined elements, medians and random orders."""

import math

import numpy as np

from case_table import (ALL, BITS, EXACT, FLOATS, INTS, REAL, Arr, DtypeParam, Ints, Row,
                        at_least_float, cast, laid_out, promote, wide)
from cases_reduce import KEYS, bits, erfinv, key_array, uniform
from cases_shape import LAYOUTS, same, sample


def window_rows(_rng):
    for size in (-1, 0, 1, 2, 3, 10, 51, 1000):
        for name in ("bartlett", "blackman", "hamming", "hanning"):
            expected = getattr(np, name)(max(size, 0))
            # Near the ends what remains is the rounding of sines and cosines.
            yield Row(name, [], [(cast(expected, "float32"), "float32")], [size], scale=1.0)


def diagonal_rows(rng):
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (5, 4)), "float32", layout)
        for k in (-6, -5, -2, 0, 1, 3, 4):
            yield same("diag", x, np.diag(x.values, k), [k])
            yield same("diagonal", x, np.diagonal(x.values, k), [k, 0, 1])
            yield Row("trace", [x], [(np.trace(x.values, k), "float32")],
                      [k, 0, 1, DtypeParam("float32")], scale=8.0)
        v = laid_out(sample(rng, "float32", (6,)), "float32", layout)
        for k in (-2, 0, 3):
            yield same("diag", v, np.diag(v.values, k), [k])
    yield same("diag", Arr(np.zeros(0, np.float32), "float32"), np.zeros((2, 2)), [-2])
    for dtype in ALL:
        x = Arr(sample(rng, dtype, (3, 4, 5)), dtype)
        v = Arr(sample(rng, dtype, (4,)), dtype)
        yield same("diag", v, np.diag(v.values, 1), [1])
        for offset, axis1, axis2 in ((0, 0, 2), (-1, 2, 1), (1, -1, 0)):
            d = np.diagonal(x.values, offset, axis1, axis2)
            yield same("diagonal", x, d, [offset, axis1, axis2])
            if dtype != "bool":
                total = wide(d).sum(-1) if dtype in FLOATS else d.sum(-1)
                out = {"b": "int32", "i": "int32", "u": "uint32"}.get(
                    x.values.dtype.kind, dtype) if x.values.itemsize < 4 and dtype in INTS else dtype
                yield Row("trace", [x], [(cast(total, out), out)],
                          [offset, axis1, axis2, DtypeParam(dtype)], scale=8.0)
    x = Arr(sample(rng, "int8", (4, 4)), "int8")
    yield Row("trace", [x], [(np.float32(np.trace(x.values.astype(np.float32))), "float32")],
              [0, 0, 1, DtypeParam("float32")])


def roll_rows(rng):
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (3, 5)), "float32", layout)
        for shift in ([0], [1], [-4], [7, -100], [2 ** 31 - 1, -(2 ** 31)]):
            yield same("roll", x, np.roll(x.values, sum(shift)), [Ints(shift)])
            for axis in (0, -1):
                yield same("roll_axis", x, np.roll(x.values, sum(shift), axis), [Ints(shift), axis])
        for shift, axes in (([1, 2], [0, 1]), ([-1, 3, 9], [1, 0]), ([2, 3], [1, 1]), ([1], [])):
            yield same("roll_axes", x, np.roll(x.values, shift[:len(axes)], axes) if axes
                       else x.values, [Ints(shift), Ints(axes)])
    for dtype in ALL:
        x = Arr(sample(rng, dtype, (4, 3)), dtype)
        yield same("roll_axis", x, np.roll(x.values, 2, 0), [Ints([2]), 0])
    empty = Arr(np.zeros((0, 3), np.float32), "float32")
    yield same("roll", empty, empty.values, [Ints([2])])
    yield same("roll_axis", empty, empty.values, [Ints([2]), 0])
    scalar = Arr(np.float32(2), "float32")
    yield same("roll", scalar, scalar.values, [Ints([5])])


def grid_rows(rng):
    vectors = [laid_out(sample(rng, t, (n,)), t, layout) for t, n, layout in
               (("float32", 3, "row"), ("int32", 4, "reversed"), ("float32", 2, "sliced"))]
    for n in (1, 2, 3):
        for indexing in ("xy", "ij"):
            for sparse in (False, True):
                grids = np.meshgrid(*(v.values for v in vectors[:n]), sparse=sparse,
                                    indexing=indexing)
                yield Row("meshgrid", vectors[:n],
                          [(g, v.dtype) for g, v in zip(grids, vectors)], [int(sparse), indexing],
                          BITS)
    for layout in LAYOUTS:
        a = laid_out(sample(rng, "float32", (2, 3)), "float32", layout)
        for shape in ((4,), (3, 2), (2, 1, 3), ()):
            b = Arr(sample(rng, "float32", shape), "float32")
            yield Row("kron", [a, b], [(np.kron(a.values, b.values), "float32")], [], BITS)
    for first, second in (("int8", "uint8"), ("float16", "int32"), ("complex64", "float32"),
                          ("bool", "bool"), ("bfloat16", "bfloat16")):
        t = promote(first, second)
        a, b = Arr(sample(rng, first, (2, 2)), first), Arr(sample(rng, second, (3,)), second)
        product = np.kron(cast(a.values, t), cast(b.values, t))
        yield Row("kron", [a, b], [(cast(product, t), t)], [])


def median_of(x, dtype, axes, keepdims):
    """As NumPy, in the dtype's own arithmetic."""
    kept = [i for i in range(x.ndim) if i not in axes]
    flat = x.transpose(kept + sorted(axes)).reshape([x.shape[i] for i in kept] + [-1])
    flat = np.sort(flat, -1)
    n, out = flat.shape[-1], at_least_float(dtype)
    m = cast(flat[..., n // 2], out)
    if n % 2 == 0:
        m = cast(cast(m + cast(flat[..., n // 2 - 1], out), out) * m.dtype.type(0.5), out)
    m = np.where(np.isnan(flat).any(-1), np.float32(np.nan), m)
    shape = [1 if i in axes else d for i, d in enumerate(x.shape)] if keepdims else m.shape
    return m.reshape(shape), out


def median_rows(rng):
    for dtype in REAL:
        x = Arr(sample(rng, dtype, (4, 5, 6)), dtype)
        for axes, keepdims in (([0], 0), ([1], 1), ([0, 2], 0), ([2, 1], 1), ([0, 1, 2], 0)):
            yield Row("median", [x], [median_of(x.values, dtype, axes, keepdims)],
                      [Ints(axes), keepdims], BITS)
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (4, 3)), "float32", layout)
        yield Row("median", [x], [median_of(x.values, "float32", [0], 0)], [Ints([-2]), 0], BITS)
    with_nan = np.float32([[1, np.nan, 3], [5, 4, 6], [np.inf, -np.inf, np.inf]])
    yield Row("median", [Arr(with_nan, "float32")], [median_of(with_nan, "float32", [1], 0)],
              [Ints([1]), 0], BITS)
    one = Arr(np.int32(7), "int32")
    yield Row("median", [one], [(np.float32(7), "float32")], [Ints([]), 0], BITS)


def order_rows(rng):
    for key in KEYS:
        k = key_array(key)
        for n in (0, 1, 2, 10, 1000):
            order = np.argsort(bits(key, n), kind="stable").astype(np.uint32)
            yield Row("random_permutation_arange", [k], [(order, "uint32")], [n], EXACT)
        for layout in ("row", "transposed", "sliced"):
            x = laid_out(sample(rng, "float32", (5, 7)), "float32", layout)
            for axis in (0, -1):
                order = np.argsort(bits(key, x.shape[axis]), kind="stable")
                yield Row("random_permutation", [x, k],
                          [(np.take(x.values, order, axis), "float32")], [axis], BITS)


def bounded_rows(_rng):
    erf = np.vectorize(math.erf)
    for key in KEYS:
        k = key_array(key)
        u = uniform(key, 101, np.nextafter(np.float32(-1), np.float32(0)), 1.0).astype(np.float64)
        laplace = np.sign(u) * np.log1p(-np.abs(u))
        for loc, scale in ((0.0, 1.0), (-2.0, 3.0)):
            yield Row("random_laplace", [k], [(cast(laplace * scale + loc, "float32"), "float32")],
                      [Ints([101]), DtypeParam("float32"), loc, scale], scale=8.0)
        for low, high in ((-1.0, 1.0), (0.5, 2.0)):
            root = math.sqrt(2)
            a, b = (float(np.float32(erf(v / root))) for v in (low, high))
            normal = root * erfinv(uniform(key, 101, a, b).astype(np.float64))
            yield Row("random_truncated_normal",
                      [Arr(np.float32(low), "float32"), Arr(np.float32(high), "float32"), k],
                      [(cast(np.clip(normal, low, high), "float32"), "float32")],
                      [Ints([101]), DtypeParam("float32")], scale=4.0)


def rows(rng):
    """(family, rows) pairs."""
    return [("grid", [*window_rows(rng), *diagonal_rows(rng), *roll_rows(rng), *grid_rows(rng),
                      *median_rows(rng)]),
            ("random", [*order_rows(rng), *bounded_rows(rng)])]
