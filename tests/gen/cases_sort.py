"""Rows of sorting, scans, gathering along an axis and drawing from distributions."""

import numpy as np

from case_table import (ALL, BITS, CLOSE, EXACT, FLOATS, INTS, Arr, DtypeParam, Ints, Row, cast,
                        laid_out, wide)
from cases_reduce import KEYS, key_array, uniform
from cases_shape import LAYOUTS, draw, sample

# Rows of one tile, of a few elements more, of several merges, of an odd number of runs.
LENGTHS = [1, 2, 3, 31, 64, 1000, 2048, 2049, 5000, 20000]

# ---- sorting ----


def stable_order(x, axis):
    """NaN comes last; complex numbers with a NaN in either part are NaN, whichever part it is."""
    if np.iscomplexobj(x):
        x = np.where(np.isnan(x), complex(np.nan, np.nan), x)
    return np.argsort(x, axis, kind="stable")


def sort_rows_of(a, axis, name="axis"):
    """All functions that sort, over one input."""
    order = stable_order(a.values, axis)
    ordered = np.take_along_axis(a.values, order, axis)
    n = a.shape[axis]
    yield Row(f"sort_{name}", [a], [(ordered, a.dtype)], [axis], BITS)
    yield Row(f"argsort_{name}", [a], [(order, "uint32")], [axis], EXACT)
    for kth in (0, n // 2, -1):
        yield Row(f"partition_{name}", [a], [(ordered, a.dtype)], [kth, axis], BITS)
        yield Row(f"argpartition_{name}", [a], [(order, "uint32")], [kth, axis], EXACT)
    for k in {0, 1, n // 3}:
        best = np.take(ordered, range(n - k, n), axis)
        yield Row(f"topk_{name}", [a], [(best, a.dtype)], [k, axis], BITS)
    yield Row(f"topk_{name}", [a], [(a.values, a.dtype)], [n, axis], BITS)


def flat_rows(a):
    values = a.values.reshape(-1)
    order = stable_order(values, 0)
    yield Row("sort", [a], [(values[order], a.dtype)], [], BITS)
    yield Row("argsort", [a], [(order, "uint32")], [], EXACT)
    yield Row("partition", [a], [(values[order], a.dtype)], [2], BITS)
    yield Row("argpartition", [a], [(order, "uint32")], [2], EXACT)
    yield Row("topk", [a], [(values[order][-3:], a.dtype)], [3], BITS)


def sort_rows(rng):
    for dtype in ALL:
        a = Arr(sample(rng, dtype, (5, 70)), dtype)
        yield from sort_rows_of(a, 1)
        yield from sort_rows_of(a, 0)
        yield from flat_rows(a)
        if dtype in INTS:
            info = np.iinfo(dtype)
            edges = np.array([0, 1, info.max, info.min, info.max - 1, info.min + 1, 5], dtype)
            yield from sort_rows_of(Arr(edges, dtype), 0)
    for layout in LAYOUTS:
        a = laid_out(sample(rng, "float32", (3, 4, 5)), "float32", layout)
        for axis in (0, 1, 2, -1):
            yield from sort_rows_of(a, axis)
        yield from flat_rows(a)
    for n in LENGTHS:
        for dtype in ("float32", "int64", "uint8", "complex64"):
            yield from sort_rows_of(Arr(draw(rng, dtype, (2, n)), dtype), 1)
    special = [np.nan, 1, -0.0, 0.0, np.inf, -np.inf, -1, np.nan, 0.0, -0.0, 1e-45, -1e-45]
    for dtype in FLOATS:
        yield from sort_rows_of(Arr(cast(np.float32(special), dtype), dtype), 0)
    parts = [1, np.nan, -0.0, 0.0, np.inf, -np.inf, -1, 2]
    numbers = np.array([complex(x, y) for x in parts for y in parts], np.complex64)
    yield from sort_rows_of(Arr(rng.permutation(numbers), "complex64"), 0)
    for shape in ((0,), (0, 3), (3, 0)):
        a = Arr(np.zeros(shape, np.float32), "float32")
        yield Row("sort_axis", [a], [(a.values, "float32")], [0], BITS)
        yield Row("argsort_axis", [a], [(np.zeros(shape, np.uint32), "uint32")], [0], EXACT)


# ---- scans ----

def log_add_exp(a, b):
    """Of complex numbers, which NumPy's cannot; the larger one first."""
    first = (a.real > b.real) | ((a.real == b.real) & (a.imag > b.imag))
    high, low = np.where(first, a, b), np.where(first, b, a)
    out = high + np.log1p(np.exp(low - high))
    return np.where(np.isinf(low.real) | np.isinf(high.real), high, out)


def cumulative(name, x, axis):
    if name == "logcumsumexp" and np.iscomplexobj(x):
        rows = list(np.moveaxis(x, axis, 0))
        for i in range(1, len(rows)):
            rows[i] = log_add_exp(rows[i - 1], rows[i])
        return np.moveaxis(np.array(rows).reshape(np.moveaxis(x, axis, 0).shape), 0, axis)
    if name == "logcumsumexp":
        return np.logaddexp.accumulate(x, axis)
    return {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum,
            "cummin": np.minimum}[name].accumulate(x, axis)


def identity(name, dtype):
    if name in ("cumsum", "cumprod"):
        return 0 if name == "cumsum" else 1
    if dtype == "bool":
        return name == "cummin"
    if dtype in INTS:
        return np.iinfo(dtype).min if name == "cummax" else np.iinfo(dtype).max
    if dtype == "complex64" and name != "logcumsumexp":
        return complex(np.inf, np.inf) if name == "cummin" else complex(-np.inf, -np.inf)
    return np.inf if name == "cummin" else -np.inf


def scan_row(name, a, axis, reverse, inclusive):
    out = "int32" if name == "cumsum" and a.dtype == "bool" else a.dtype
    x = cast(a.values, out)
    work = wide(x) if out in FLOATS or out == "complex64" else x
    work = np.flip(work, axis) if reverse else work
    with np.errstate(all="ignore"):
        y = cumulative(name, work, axis)
    if not inclusive:
        first = np.full_like(np.take(y, [0], axis), identity(name, out))
        y = np.concatenate([first, np.delete(y, -1, axis)], axis)
    y = np.flip(y, axis) if reverse else y
    exact = name in ("cummax", "cummin") or out in INTS or out == "bool"
    total = 0 if exact else float(np.max(np.sum(np.abs(wide(x)), axis), initial=0))
    if name == "logcumsumexp":
        total = 10
    return Row(name, [a], [(cast(y, out), out)], [axis, reverse, inclusive],
               EXACT if exact else CLOSE, total)


def scan_values(rng, name, dtype, shape):
    if name == "cumprod" and dtype in FLOATS + ["complex64"]:
        return cast(rng.uniform(0.9, 1.1, shape), dtype)
    return sample(rng, dtype, shape)


def zero_rows():
    """Signs of zeros: an inclusive scan begins with the first number, an exclusive one with +0. Rows and
    columns; rows of one chunk of a kernel and of several."""
    for dtype in FLOATS + ["complex64"]:
        for n in (1, 3, 5000):
            x = np.full((n, 2), complex(-0.0, -0.0) if dtype == "complex64" else -0.0)
            x[2 * n // 3:, 1] *= -1
            for reverse in (0, 1):
                ordered = x[::-1] if reverse else x
                for inclusive in (0, 1):
                    start = ordered if inclusive else np.concatenate([0 * x[:1] ** 2, ordered[:-1]])
                    y = np.cumsum(start, 0)
                    y = y[::-1] if reverse else y
                    for axis in (0, 1):
                        values, want = (x, y) if axis == 0 else (x.T, y.T)
                        yield Row("cumsum", [Arr(cast(values, dtype), dtype)],
                                  [(cast(want, dtype), dtype)], [axis, reverse, inclusive], BITS)
    for values in [-0.0], [-0.0, -np.inf], [-np.inf, -0.0]:
        for dtype in FLOATS:
            x = np.array([values, values]).T
            y = np.maximum.accumulate(x)
            for axis, a, want in (0, x, y), (1, x.T, y.T):
                yield Row("logcumsumexp", [Arr(cast(a, dtype), dtype)], [(cast(want, dtype), dtype)],
                          [axis, 0, 1], BITS)


def scan_rows(rng):
    yield from zero_rows()
    modes = [(0, 1), (0, 0), (1, 1), (1, 0)]
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        for dtype in ALL:
            if name == "logcumsumexp" and dtype not in FLOATS + ["complex64"]:
                continue
            a = Arr(scan_values(rng, name, dtype, (4, 33)), dtype)
            for reverse, inclusive in modes:
                yield scan_row(name, a, 1, reverse, inclusive)
            yield scan_row(name, a, 0, 0, 1)
        for layout in LAYOUTS:
            a = laid_out(scan_values(rng, name, "float32", (3, 4, 5)), "float32", layout)
            for axis in (0, 1, 2, -1):
                yield scan_row(name, a, axis, 0, 1)
            yield scan_row(name, a, 1, 1, 0)
        for n in (1, 2047, 2048, 2049, 10000):
            for dtype in ("float32", "complex64") if name in ("cummax", "cummin") else ("float32",):
                a = Arr(scan_values(rng, name, dtype, (2, n)), dtype)
                for reverse, inclusive in modes:
                    yield scan_row(name, a, 1, reverse, inclusive)
        special = np.float32([1, np.nan, 3, -np.inf, np.inf, 0])
        if name in ("cummax", "cummin"):
            yield scan_row(name, Arr(special, "float32"), 0, 0, 1)
            pairs = np.array([1 + 2j, 1 - 1j, 3 - 1j, 3 + 2j, -np.inf, 2, np.inf], np.complex64)
            for x in (pairs, pairs[::-1]):
                yield scan_row(name, Arr(x, "complex64"), 0, 0, 1)
    yield scan_row("cumsum", Arr(sample(rng, "int32", (1, 600_000)), "int32"), 1, 0, 0)
    yield scan_row("cumsum", Arr(np.zeros((0, 3), np.float32), "float32"), 1, 0, 1)


# ---- gathering along an axis ----

def along_rows(rng):
    for dtype in ALL:
        a = Arr(sample(rng, dtype, (4, 9)), dtype)
        at = rng.integers(-9, 9, (4, 6))
        yield Row("take_along_axis", [a, Arr(at.astype(np.int32), "int32")],
                  [(np.take_along_axis(a.values, at, 1), dtype)], [1], BITS)
    for kind in INTS:
        a = Arr(sample(rng, "float32", (5, 4)), "float32")
        at = rng.integers(0, 5, (3, 4)).astype(kind)
        yield Row("take_along_axis", [a, Arr(at, kind)],
                  [(np.take_along_axis(a.values, at.astype(np.int64), 0), "float32")], [0], BITS)
    for layout in LAYOUTS:
        a = laid_out(sample(rng, "float16", (3, 4, 5)), "float16", layout)
        for axis in (0, 1, -1):
            shape = list(a.shape)
            shape[axis] = 7
            at = laid_out(rng.integers(0, a.shape[axis], shape).astype(np.uint32), "uint32", layout)
            out = np.take_along_axis(a.values, at.values.astype(np.int64), axis)
            yield Row("take_along_axis", [a, at], [(out, "float16")], [axis], BITS)
    a, at = Arr(sample(rng, "int32", (1, 6, 3)), "int32"), rng.integers(0, 6, (4, 2, 1))
    out = np.take_along_axis(np.broadcast_to(a.values, (4, 6, 3)),
                             np.broadcast_to(at, (4, 2, 3)), 1)
    yield Row("take_along_axis", [a, Arr(at.astype(np.int64), "int64")], [(out, "int32")], [1], BITS)
    a = Arr(sample(rng, "float32", (3, 0)), "float32")
    yield Row("take_along_axis", [a, Arr(np.zeros((3, 0), np.int32), "int32")],
              [(a.values, "float32")], [1], BITS)


# ---- distributions ----

def gumbel(key, n):
    return -np.log(-np.log(uniform(key, n, 0.0, 1.0).astype(np.float64)))


def categorical_rows(rng):
    for key in KEYS:
        k = key_array(key)
        yield Row("random_gumbel", [k], [(cast(gumbel(key, 35).reshape(5, 7), "float32"), "float32")],
                  [Ints([5, 7]), DtypeParam("float32")], CLOSE, 4.0)
        # Several distributions: the largest sum of logit and noise.
        logits = rng.uniform(-3, 3, (6, 11)).astype(np.float32)
        best = np.argmax(gumbel(key, 66).reshape(6, 11) + logits, 1)
        yield Row("random_categorical", [Arr(logits, "float32"), k], [(best, "uint32")], [-1], EXACT)
        best = np.argmax(gumbel(key, 66).reshape(6, 11) + logits, 0)
        yield Row("random_categorical", [Arr(logits, "float32"), k], [(best, "uint32")], [0], EXACT)
        noise = gumbel(key, 2 * 66).reshape(2, 6, 11)
        yield Row("random_categorical_shape", [Arr(logits, "float32"), k],
                  [(np.argmax(noise + logits, -1), "uint32")], [-1, Ints([2, 6])], EXACT)
        noise = gumbel(key, 6 * 11 * 4).reshape(6, 11, 4)
        yield Row("random_categorical_num_samples", [Arr(logits, "float32"), k],
                  [(np.argmax(noise + logits[..., None], 1), "uint32")], [1, 4], EXACT)
        # One distribution: where a share of the total weight falls. Powers of two add up exactly.
        weights = np.array([1, 4, 2, 8, 1, 16], np.float64)
        u = uniform(key, 50, 0.0, 1.0).astype(np.float64) * weights.sum() / weights.max()
        starts = np.concatenate([[0], np.cumsum(weights / weights.max())[:-1]])
        found = np.searchsorted(starts, u, "right") - 1
        one = Arr(np.log(weights).astype(np.float32)[None], "float32")
        if np.min(np.abs(u[:, None] - starts[None, 1:])) > 1e-5:
            yield Row("random_categorical_shape", [one, k], [(found, "uint32")], [-1, Ints([50])],
                      EXACT)
    sure = np.full((1, 3000), -30.0, np.float32)
    sure[0, 1234] = 30
    yield Row("random_categorical", [Arr(sure, "float32"), k], [(np.array([1234]), "uint32")], [-1],
              EXACT)
    many = np.full((1, 60000), -np.inf, np.float32)
    many[0, 41234] = 0
    yield Row("random_categorical_shape", [Arr(many, "float32"), k],
              [(np.full(400, 41234), "uint32")], [-1, Ints([400])], EXACT)
    certain = np.float32([[0, np.inf, 1, np.inf]])
    certain[0, 3] = 2
    yield Row("random_categorical", [Arr(certain, "float32"), k], [(np.array([1]), "uint32")], [-1],
              EXACT)
    # With a NaN nothing has a place: of one distribution the last position, counted or by bisection,
    # and of several the NaN's own.
    for n, samples in (1, 3), (5, 3), (60000, 400):
        wrong = rng.uniform(-3, 3, (1, n)).astype(np.float32)
        wrong[0, n // 3] = np.nan
        yield Row("random_categorical_shape", [Arr(wrong, "float32"), k],
                  [(np.full(samples, n - 1), "uint32")], [-1, Ints([samples])], EXACT)
    several = np.float32([[0, np.nan, 1], [np.inf, 0, np.nan]])
    yield Row("random_categorical", [Arr(several, "float32"), k], [(np.array([1, 2]), "uint32")], [-1],
              EXACT)


def rows(rng):
    """(family, rows) pairs."""
    return [("sort", [*sort_rows(rng)]), ("scan", [*scan_rows(rng)]),
            ("gather_axis", [*along_rows(rng)]), ("categorical", [*categorical_rows(rng)])]
