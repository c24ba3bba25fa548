"""Rows of creation, views and data movement."""

import numpy as np

from case_table import (ALL, BITS, CLOSE, EXACT, FLOATS, INTS, Arr, DtypeParam, Ints, Row, carrier,
                        cast, laid_out, repeated)
from cases_elementwise import LARGE

LAYOUTS = ["row", "transposed", "sliced", "reversed", "offset", "broadcast", "column"]


def draw(rng, dtype, shape):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype == "complex64":
        return (rng.uniform(-2, 2, shape) + 1j * rng.uniform(-2, 2, shape)).astype(np.complex64)
    if dtype in INTS:
        return rng.integers(0, 100, shape).astype(dtype)
    return cast(rng.uniform(-4, 4, shape), dtype)


def sample(rng, dtype, shape):
    return repeated(lambda n: draw(rng, dtype, n), shape)


def same(fn, a, values, params=()):
    """The elements of a, moved about."""
    return Row(fn, [a], [(values, a.dtype)], params, BITS)


# ---- creation ----

def creation_rows(rng):
    for dtype in ALL:
        t = DtypeParam(dtype)
        yield Row("zeros", [], [(np.zeros((3, 5), carrier(dtype)), dtype)], [Ints([3, 5]), t], BITS)
        yield Row("ones", [], [(np.ones((3, 5), carrier(dtype)), dtype)], [Ints([3, 5]), t], BITS)
        like = Arr(sample(rng, dtype, (4, 3)), dtype, "transposed")
        yield Row("zeros_like", [like], [(np.zeros((4, 3), carrier(dtype)), dtype)], [], BITS)
        yield Row("ones_like", [like], [(np.ones((4, 3), carrier(dtype)), dtype)], [], BITS)
        value = Arr(cast(np.float64(3), dtype), dtype)
        three = cast(np.full((2, 7), 3.0), dtype)
        yield Row("full", [value], [(three, dtype)], [Ints([2, 7]), t], BITS)
        yield Row("eye", [], [(cast(np.eye(5, 4, 1), dtype), dtype)], [5, 4, 1, t], BITS)
        if dtype != "bool":
            yield Row("tri", [], [(cast(np.tri(5, 4, -1), dtype), dtype)], [5, 4, -1, t], BITS)
    for shape in ([], [0], [1], [0, 3], [70, 71]):
        yield Row("zeros", [], [(np.zeros(shape, np.float32), "float32")],
                  [Ints(shape), DtypeParam("float32")], BITS)
        yield Row("ones", [], [(np.ones(shape, np.int32), "int32")],
                  [Ints(shape), DtypeParam("int32")], BITS)
    for shape, layout in (((7,), "row"), ((2, 1), "row"), ((), "row"), ((2, 7), "transposed"),
                          ((2, 7), "sliced")):
        a = laid_out(sample(rng, "float32", shape), "float32", layout)
        full = np.broadcast_to(a.values, (2, 7))
        yield Row("full", [a], [(full, "float32")], [Ints([2, 7]), DtypeParam("float32")], BITS)
        yield Row("full", [a], [(cast(full, "float16"), "float16")],
                  [Ints([2, 7]), DtypeParam("float16")], BITS)
        yield Row("full_like", [Arr(sample(rng, "int32", (2, 7)), "int32"), a],
                  [(full, "float32")], [DtypeParam("float32")], BITS)
    for n, m, k in ((4, 4, 0), (3, 5, 2), (3, 5, -1), (3, 3, 7), (1, 1, 0), (40, 33, 3)):
        yield Row("eye", [], [(np.eye(n, m, k, np.float32), "float32")],
                  [n, m, k, DtypeParam("float32")], BITS)
        yield Row("tri", [], [(np.tri(n, m, k, np.float32), "float32")],
                  [n, m, k, DtypeParam("float32")], BITS)
    yield Row("identity", [], [(np.eye(6, dtype=np.float32), "float32")], [6, DtypeParam("float32")],
              BITS)


def arange(start, stop, step, dtype):
    size = max(int(np.ceil((stop - start) / step)), 0)
    work = np.float32 if dtype in ("float16", "bfloat16") else carrier(dtype)
    first = cast(np.float64(start), dtype)
    delta = cast((cast(np.float64(start + step), dtype) - first).astype(work), dtype)
    i = np.arange(size)
    return cast(first.astype(work) + i.astype(work) * delta.astype(work), dtype)


def range_rows(_rng):
    for dtype in INTS + FLOATS:
        for start, stop, step in ((0, 10, 1), (3, 50, 7), (100, 20, -9), (5, 5, 1), (0, 100, 1)):
            if step < 0 and dtype.startswith("u"):
                continue
            yield Row("arange", [], [(arange(start, stop, step, dtype), dtype)],
                      [float(start), float(stop), float(step), DtypeParam(dtype)], EXACT)
    # Numbers beyond a dtype become what x86 makes of them.
    for start, dtype, low in ((-1e300, "int64", -2**63), (1e300, "int64", -2**63),
                              (1e300, "uint64", 0), (-1e300, "int32", -2**31),
                              (1e300, "int32", -2**31), (1e300, "int16", 0)):
        yield Row("arange", [], [(np.array([low], dtype), dtype)],
                  [start, start + 1e300, 1e300, DtypeParam(dtype)], EXACT)
    for start, stop, step in ((0, 1, 0.1), (-2.5, 3, 0.25), (1, -1, -0.125), (0, 5003, 1)):
        yield Row("arange", [], [(arange(start, stop, step, "float32"), "float32")],
                  [float(start), float(stop), float(step), DtypeParam("float32")])
    for dtype in ("float32", "float16", "bfloat16", "int32"):
        for start, stop, num in ((0, 10, 5), (-3, 7, 11), (5, -5, 4), (2, 9, 1), (1, 2, 0)):
            if dtype == "int32" and num in (4, 11):
                continue  # not whole numbers, or only nearly
            values = np.linspace(start, stop, num) if num else np.zeros(0)
            yield Row("linspace", [], [(cast(values, dtype), dtype)],
                      [float(start), float(stop), num, DtypeParam(dtype)],
                      scale=max(abs(start), abs(stop)))


def triangle_rows(rng):
    for n, k in ((-2**31, 0), (-2**31, -2**31), (2, -2**31), (2, 2**31 - 1)):
        yield Row("tri", [], [(np.full((max(n, 0), 3), k > 0, np.float32), "float32")],
                  [n, 3, k, DtypeParam("float32")], BITS)
    for fn, ref in (("tril", np.tril), ("triu", np.triu)):
        for dtype in ALL:
            a = Arr(sample(rng, dtype, (4, 6)), dtype)
            yield same(fn, a, ref(a.values, 1), [1])
        for layout in LAYOUTS:
            a = laid_out(sample(rng, "float32", (4, 6)), "float32", layout)
            yield same(fn, a, ref(a.values, 0), [0])
        a = Arr(sample(rng, "float32", (2, 3, 4)), "float32")
        for k in (-2, 0, 2):
            yield same(fn, a, ref(a.values, k), [k])


# ---- views ----

def reshape_rows(rng):
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (4, 6)), "float32", layout)
        for shape in ([24], [2, 12], [2, 2, 2, 3], [-1, 8], [4, 6], [1, 4, 1, 6]):
            yield same("reshape", x, x.values.reshape(shape), [Ints(shape)])
        yield same("flatten", x, x.values.reshape(-1), [0, -1])
        yield same("unflatten", x, x.values.reshape(4, 2, 3), [1, Ints([2, -1])])
    x = Arr(sample(rng, "int16", (2, 3, 4)), "int16", "transposed")
    yield same("flatten", x, x.values.reshape(6, 4), [0, 1])
    yield same("flatten", x, x.values.reshape(2, 12), [1, 2])
    yield same("unflatten", x, x.values.reshape(2, 3, 2, 2), [-1, Ints([2, 2])])
    for shape, to in (((0, 3), [3, 0]), ((1,), []), ((), [1, 1]), ((0,), [0, 5])):
        x = Arr(sample(rng, "float32", shape), "float32")
        yield same("reshape", x, x.values.reshape(to), [Ints(to)])
    x = Arr(sample(rng, "float32", ()), "float32")
    yield same("flatten", x, x.values.reshape(1), [0, -1])


def axis_rows(rng):
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "int32", (2, 3, 4)), "int32", layout)
        yield same("transpose", x, x.values.transpose())
        yield same("transpose_axes", x, x.values.transpose(1, 2, 0), [Ints([1, 2, 0])])
        yield same("transpose_axes", x, x.values.transpose(0, 2, 1), [Ints([0, -1, 1])])
        yield same("moveaxis", x, np.moveaxis(x.values, 0, -1), [0, -1])
        yield same("swapaxes", x, np.swapaxes(x.values, 0, 2), [0, 2])
        yield same("expand_dims", x, np.expand_dims(x.values, 1), [1])
        yield same("expand_dims", x, np.expand_dims(x.values, -1), [-1])
        yield same("expand_dims_axes", x, np.expand_dims(x.values, (0, 2)), [Ints([0, 2])])
        one = laid_out(sample(rng, "int32", (1, 3, 1)), "int32", layout)
        yield same("squeeze", one, one.values.reshape(3))
        yield same("squeeze_axis", one, one.values.reshape(1, 3), [2])
        yield same("squeeze_axes", one, one.values.reshape(3), [Ints([0, -1])])
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        x = Arr(sample(rng, "float32", shape), "float32")
        one, two, three = np.atleast_1d(x.values), np.atleast_2d(x.values), np.atleast_3d(x.values)
        yield same("atleast_1d", x, one)
        yield same("atleast_2d", x, two)
        yield same("atleast_3d", x, three)


def broadcast_rows(rng):
    for shape, to in (((), [2, 3]), ((3,), [2, 3]), ((2, 1), [2, 3]), ((2, 1, 4), [5, 2, 3, 4]),
                      ((1,), [0]), ((2, 3), [2, 3])):
        x = Arr(sample(rng, "float32", shape), "float32")
        yield same("broadcast_to", x, np.broadcast_to(x.values, to), [Ints(to)])
    for layout in ("transposed", "sliced", "reversed"):
        x = laid_out(sample(rng, "float32", (2, 3)), "float32", layout)
        yield same("broadcast_to", x, np.broadcast_to(x.values, (4, 2, 3)), [Ints([4, 2, 3])])
    a, b, c = (Arr(sample(rng, t, s), t) for t, s in (("float32", (3, 1)), ("int32", (1, 4)),
                                                      ("bool", ())))
    yield Row("broadcast_arrays", [a, b, c],
              [(np.broadcast_to(v.values, (3, 4)), v.dtype) for v in (a, b, c)], [], BITS)


def handed_over_rows(rng):
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (3, 4)), "float32", layout)
        yield same("custom_vjp", x, -x.values)
        arrays = [laid_out(sample(rng, t, (2, 3)), t, layout)
                  for t in ("float32", "bfloat16", "int8")]
        yield Row("depends", arrays, [(v.values, v.dtype) for v in arrays], [], BITS)


def slice_rows(rng):
    cases = [([0, 0], [5, 7], [1, 1]), ([1, 2], [4, 6], [1, 1]), ([0, 1], [5, 7], [2, 3]),
             ([4, 6], [-6, -8], [-1, -1]), ([-2, -3], [5, 7], [1, 1]), ([3, 5], [0, 1], [-2, -2]),
             ([0, 0], [100, 100], [1, 1]), ([2, 3], [2, 6], [1, 1]), ([0, 6], [5, 2], [1, 1])]
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (5, 7)), "float32", layout)
        for start, stop, step in cases:
            index = tuple(slice(a, b, c) for a, b, c in zip(start, stop, step))
            yield same("slice", x, x.values[index], [Ints(start), Ints(stop), Ints(step)])
    for dtype in ALL:
        x = Arr(sample(rng, dtype, (5, 7)), dtype)
        yield same("slice", x, x.values[1:4, ::2], [Ints([1, 0]), Ints([4, 7]), Ints([1, 2])])


def split_rows(rng):
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (4, 6)), "float32", layout)
        for n, axis in ((2, 0), (3, 1), (6, -1), (1, 0)):
            yield Row("split", [x], [(v, "float32") for v in np.split(x.values, n, axis)], [n, axis],
                      BITS)
        for at, axis in (([1, 3], 0), ([2], 1), ([0, 4], -1), ([3, 3], 1)):
            yield Row("split_sections", [x],
                      [(v, "float32") for v in np.split(x.values, at, axis)], [Ints(at), axis],
                      BITS)


def strided_rows(rng):
    x = Arr(sample(rng, "float32", (30,)), "float32")
    for shape, strides, offset in (([4, 5], [6, 1], 2), ([3, 3], [1, 2], 0), ([2, 3, 4], [0, 4, 1], 5),
                                   ([5], [-1], 10), ([3, 0], [1, 1], 0)):
        item = x.values.itemsize
        seen = np.lib.stride_tricks.as_strided(x.values[offset:], shape, [s * item for s in strides])
        yield same("as_strided", x, np.array(seen), [Ints(shape), Ints(strides), offset])
    # Strides that are missing are row-major ones, and those beyond the dimensions count for nothing.
    for shape, given, strides in (([2, 3], [1], [1, 1]), ([2, 3], [], [3, 1]),
                                  ([2, 3, 4], [2, 3], [2, 3, 1]), ([2, 3], [6, 2, 5], [6, 2])):
        seen = np.lib.stride_tricks.as_strided(x.values, shape, [s * 4 for s in strides])
        yield same("as_strided", x, np.array(seen), [Ints(shape), Ints(given), 0])


def copy_rows(rng):
    for dtype in ALL:
        for layout in ("row", "transposed", "sliced"):
            x = laid_out(sample(rng, dtype, (5, 7)), dtype, layout)
            yield same("copy", x, x.values)
            yield same("contiguous", x, x.values, [0])
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (3, 4, 5)), "float32", layout)
        yield same("contiguous", x, x.values, [0])
        yield same("contiguous", x, x.values, [1])
    for shape in ((), (0, 3), (1,), (70, 71), (6, 5, 4, 3, 2), (2, 1, 3, 1, 2, 2)):
        x = Arr(sample(rng, "float32", shape), "float32", "transposed")
        yield same("contiguous", x, x.values, [0])


def load_rows(rng):
    """Through an npy file; the last shape is large enough to be mapped."""
    for dtype in ALL:
        for shape, layout in (((5, 7), "row"), ((5, 7), "transposed"), ((3, 4, 5), "sliced"),
                              ((0, 3), "row"), ((), "row"), ((130, 513), "row"),
                              ((130, 513), "transposed")):
            x = laid_out(sample(rng, dtype, shape), dtype, layout)
            yield same("load", x, x.values)


# ---- movement ----

def join_rows(rng):
    for dtype in ALL:
        parts = [Arr(sample(rng, dtype, (n, 4)), dtype) for n in (1, 3, 2)]
        whole = np.concatenate([p.values for p in parts], None)  # without an axis: flattened
        yield Row("concatenate", parts, [(whole, dtype)], [], BITS)
    for axis in (0, 1, -1):
        for layout in LAYOUTS:
            parts = [laid_out(sample(rng, "float32", (3, 4, 5)), "float32", k)
                     for k in ("row", layout)]
            whole = np.concatenate([p.values for p in parts], axis)
            yield Row("concatenate_axis", parts, [(whole, "float32")], [axis], BITS)
            pile = np.stack([p.values for p in parts], axis)
            yield Row("stack_axis", parts, [(pile, "float32")], [axis], BITS)
    a, b = Arr(sample(rng, "int32", (2, 3)), "int32"), Arr(sample(rng, "float32", (2, 3)), "float32")
    both = [cast(a.values, "float32"), b.values]
    yield Row("concatenate_axis", [a, b], [(np.concatenate(both), "float32")], [0], BITS)
    yield Row("stack", [a, b], [(np.stack(both), "float32")], [], BITS)
    empty = Arr(sample(rng, "float32", (0, 3)), "float32")
    yield Row("concatenate_axis", [empty, b], [(b.values, "float32")], [0], BITS)
    yield Row("concatenate_axis", [b], [(b.values, "float32")], [0], BITS)
    x = Arr(sample(rng, "float32", ()), "float32")
    yield Row("stack", [x, x, x], [(np.stack([x.values] * 3), "float32")], [], BITS)


def pad_rows(rng):
    for dtype in ALL:
        x, v = Arr(sample(rng, dtype, (3, 4)), dtype), Arr(cast(np.float64(1), dtype), dtype)
        r = np.pad(x.values, ((1, 2), (0, 3)), constant_values=v.values)
        yield Row("pad", [x, v], [(r, dtype)],
                  [Ints([0, 1]), Ints([1, 0]), Ints([2, 3]), "constant"], BITS)
    v = Arr(np.float32(7), "float32")
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (3, 4)), "float32", layout)
        r = np.pad(x.values, ((0, 0), (2, 1)), constant_values=7)
        yield Row("pad", [x, v], [(r, "float32")], [Ints([1]), Ints([2]), Ints([1]), "constant"],
                  BITS)
        edge = np.pad(x.values, ((1, 2), (2, 1)), "edge")
        yield Row("pad", [x, v], [(edge, "float32")],
                  [Ints([0, 1]), Ints([1, 2]), Ints([2, 1]), "edge"], BITS)
        r = np.pad(x.values, 2, constant_values=7)
        yield Row("pad_symmetric", [x, v], [(r, "float32")], [2, "constant"], BITS)
    x = Arr(sample(rng, "float32", (0, 2)), "float32")
    yield Row("pad", [x, v], [(np.full((3, 2), 7, np.float32), "float32")],
              [Ints([0]), Ints([1]), Ints([2]), "constant"], BITS)
    for mode in ("edge", "reflect", "symmetric"):  # an empty axis that stays as it is
        yield Row("pad", [x, v], [(np.zeros((0, 3), np.float32), "float32")],
                  [Ints([0, 1]), Ints([0, 0]), Ints([0, 1]), mode], BITS)
    for dtype in ("float32", "int16", "complex64"):  # no edge to repeat: zeros
        x = Arr(np.zeros((0, 2)), dtype)
        yield Row("pad", [x, v], [(np.zeros((3, 4)), dtype)],
                  [Ints([0, 1]), Ints([1, 1]), Ints([2, 1]), "edge"], BITS)
    x = Arr(sample(rng, "float32", (2, 3)), "float32")
    r = np.pad(x.values, 1, constant_values=4)
    for shape in ((1,), (5,), (4, 1), (4, 5), (3,), (1, 1, 2)):  # of several values the first
        for dtype, layout in (("float32", "row"), ("float32", "reversed"), ("int32", "sliced")):
            v = Arr(np.arange(4, 4 + np.prod(shape)).reshape(shape), dtype, layout)
            yield Row("pad", [x, v], [(r, "float32")],
                      [Ints([0, 1]), Ints([1, 1]), Ints([1, 1]), "constant"], BITS)


def take_rows(rng):
    table = Arr(sample(rng, "float32", (6, 5)), "float32")
    for dtype in INTS:
        low = -6 if dtype.startswith("i") else 0
        i = Arr(rng.integers(low, 6, (3, 2)).astype(dtype), dtype)
        yield Row("take_axis", [table, i], [(np.take(table.values, i.values.astype(np.int64), 0), "float32")], [0],
                  BITS)
        yield Row("take", [table, i], [(np.take(table.values, i.values.astype(np.int64)), "float32")], [], BITS)
    for dtype in ALL:
        x = Arr(sample(rng, dtype, (6, 5)), dtype)
        i = Arr(rng.integers(0, 5, (7,)).astype(np.uint32), "uint32")
        yield Row("take_axis", [x, i], [(np.take(x.values, i.values.astype(np.int64), 1), dtype)], [1], BITS)
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (6, 5)), "float32", layout)
        i = laid_out(rng.integers(0, 5, (4, 3)).astype(np.int32), "int32", layout)
        yield Row("take_axis", [x, i], [(np.take(x.values, i.values.astype(np.int64), 0), "float32")], [0], BITS)
        yield Row("take_axis", [x, i], [(np.take(x.values, i.values.astype(np.int64), -1), "float32")], [-1], BITS)
        yield Row("take", [x, i], [(np.take(x.values, i.values.astype(np.int64)), "float32")], [], BITS)
    x = Arr(sample(rng, "float32", (500, 64)), "float32")
    i = Arr(rng.integers(0, 500, (100,)).astype(np.int32), "int32")
    yield Row("take_axis", [x, i], [(x.values[i.values], "float32")], [0], BITS)
    one, none = Arr(np.int32(3), "int32"), Arr(np.zeros(0, np.int32), "int32")
    yield Row("take_axis", [x, one], [(x.values[3], "float32")], [0], BITS)
    yield Row("take_axis", [x, none], [(x.values[:0], "float32")], [0], BITS)


def repeat_rows(rng):
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (2, 3)), "float32", layout)
        yield same("repeat", x, np.repeat(x.values, 3), [3])
        yield same("repeat_axis", x, np.repeat(x.values, 2, 0), [2, 0])
        yield same("repeat_axis", x, np.repeat(x.values, 2, -1), [2, -1])
        yield same("repeat_axis", x, np.repeat(x.values, 0, 1), [0, 1])
        yield same("tile", x, np.tile(x.values, (2, 2)), [Ints([2, 2])])
        yield same("tile", x, np.tile(x.values, (3,)), [Ints([3])])
        yield same("tile", x, np.tile(x.values, (2, 1, 2)), [Ints([2, 1, 2])])
    for dtype in ALL:
        x = Arr(sample(rng, dtype, (2, 3)), dtype)
        yield same("repeat_axis", x, np.repeat(x.values, 2, 1), [2, 1])
    x = Arr(sample(rng, "float32", (2, 3, 4)), "float32")
    for axes, inverted, dtype in (([0], 0, "int32"), ([0, -1], 0, "float32"), ([1, 2], 1, "float32"),
                                  ([], 0, "int64")):
        n = float(np.prod([x.shape[a] for a in axes]))
        yield Row("number_of_elements", [x], [(cast(np.float64(1 / n if inverted else n), dtype),
                                               dtype)], [Ints(axes), inverted, DtypeParam(dtype)],
                  CLOSE)


def large_rows(rng):
    for dtype, layout in (("uint8", "transposed"), ("uint8", "sliced"), ("float16", "transposed")):
        x = laid_out(sample(rng, dtype, LARGE), dtype, layout)
        yield same("contiguous", x, x.values, [0])


def rows(rng):
    """(family, rows) pairs."""
    return [("large", [*large_rows(rng)]),
            ("create", [*creation_rows(rng), *range_rows(rng), *triangle_rows(rng),
                        *load_rows(rng)]),
            ("view", [*reshape_rows(rng), *axis_rows(rng), *broadcast_rows(rng), *handed_over_rows(rng),
                      *slice_rows(rng),
                      *split_rows(rng), *strided_rows(rng)]),
            ("move", [*copy_rows(rng), *join_rows(rng), *pad_rows(rng), *take_rows(rng),
                      *repeat_rows(rng)])]
