"""Rows of updates of slices, of slices with starts in arrays, and of tensordot."""

import numpy as np

from case_table import ALL, BITS, CLOSE, EXACT, FLOATS, INTS, Arr, Ints, Row, cast, laid_out, wide
from cases_shape import LAYOUTS, sample

REGIONS = [([1, 2], [4, 6], [1, 1]), ([0, 1], [5, 7], [2, 3]), ([4, 6], [-6, -8], [-1, -1]),
           ([-2, -3], [5, 7], [1, 1]), ([3, 5], [0, 1], [-2, -2]), ([0, 0], [5, 7], [1, 1]),
           ([2, 0], [3, 7], [1, 1]), ([2, 3], [2, 6], [1, 1])]

KINDS = [("slice_update", lambda old, new: new), ("slice_update_add", np.add),
         ("slice_update_prod", np.multiply), ("slice_update_max", np.maximum),
         ("slice_update_min", np.minimum)]


def index_of(region):
    return tuple(slice(*part) for part in zip(*region))


def update_row(fn, combine, x, update, region):
    want, index = np.array(x.values), index_of(region)
    new = cast(update.values, x.dtype)
    with np.errstate(over="ignore"):
        want[index] = cast(combine(want[index], new), x.dtype)
    is_product = x.dtype == "complex64" and fn.endswith("prod")
    return Row(fn, [x, update], [(want, x.dtype)], [Ints(part) for part in region],
               CLOSE if is_product else EXACT)


def update_rows(rng):
    for fn, combine in KINDS:
        for dtype in ALL:
            x = Arr(sample(rng, dtype, (5, 7)), dtype)
            yield update_row(fn, combine, x, Arr(sample(rng, dtype, (3, 4)), dtype), REGIONS[0])
            yield update_row(fn, combine, x, Arr(sample(rng, dtype, ()), dtype), REGIONS[1])
        for layout in LAYOUTS:
            x = laid_out(sample(rng, "float32", (5, 7)), "float32", layout)
            for region in REGIONS:
                shape = x.values[index_of(region)].shape
                update = laid_out(sample(rng, "float32", shape), "float32",
                                  layout if min(shape) else "row")
                yield update_row(fn, combine, x, update, region)
        x = Arr(sample(rng, "float32", (5, 7)), "float32")
        for shape, dtype in (((), "int32"), ((4,), "float32"), ((3, 1), "float16"), ((1,), "bool")):
            yield update_row(fn, combine, x, Arr(sample(rng, dtype, shape), dtype), REGIONS[0])
        x = Arr(sample(rng, "float16", (40, 64, 33)), "float16")
        update = Arr(sample(rng, "float16", (10, 64, 32)), "float16")
        yield update_row(fn, combine, x, update, ([5, 0, 0], [15, 64, 32], [1, 1, 1]))


def slices_at(start, axes, shape, size):
    at = [0] * len(shape)
    for axis, position in zip(axes, start):
        at[axis] = position
    return tuple(slice(a, a + n) for a, n in zip(at, size))


def dynamic_pair(x, start, axes, size, update):
    """Reading and writing the same slice."""
    index = slices_at(np.atleast_1d(start.values).astype(int), axes, x.shape, size)
    yield Row("slice_dynamic", [x, start], [(x.values[index], x.dtype)], [Ints(axes), Ints(size)],
              BITS)
    want = np.array(x.values)
    want[index] = cast(update.values, x.dtype)
    yield Row("slice_update_dynamic", [x, update, start], [(want, x.dtype)], [Ints(axes)], BITS)


def dynamic_rows(rng):
    for dtype in ALL:
        x = Arr(sample(rng, dtype, (5, 7)), dtype)
        start = Arr(np.array([1, 3], np.int32), "int32")
        yield from dynamic_pair(x, start, [0, 1], [2, 4], Arr(sample(rng, dtype, (2, 4)), dtype))
    for dtype in INTS:
        x = Arr(sample(rng, "float32", (6, 8, 4)), "float32")
        start = Arr(np.array([4, 3], dtype), dtype)
        yield from dynamic_pair(x, start, [1, 0], [2, 3, 4],
                                Arr(sample(rng, "float32", (2, 3, 4)), "float32"))
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (5, 7)), "float32", layout)
        start = laid_out(np.array([2, 2], np.int64), "int64", layout)
        update = laid_out(sample(rng, "float32", (2, 5)), "float32", layout)
        yield from dynamic_pair(x, start, [0, 1], [2, 5], update)
    x = Arr(sample(rng, "float16", (2, 3, 40, 16)), "float16")
    start = Arr(np.uint32(17), "uint32")
    yield from dynamic_pair(x, start, [-2], [2, 3, 5, 16],
                            Arr(sample(rng, "float16", (2, 3, 5, 16)), "float16"))
    x, none = Arr(sample(rng, "int8", (4, 6)), "int8"), Arr(np.zeros(0, np.int32), "int32")
    yield from dynamic_pair(x, none, [], [2, 6], Arr(sample(rng, "int8", (2, 6)), "int8"))
    x, start = Arr(sample(rng, "float32", (4, 6)), "float32"), Arr(np.array([2], np.int32), "int32")
    want = np.array(x.values)
    row = Arr(sample(rng, "float32", (6,)), "float32")
    want[2] = row.values
    yield Row("slice_update_dynamic", [x, row, start], [(want, "float32")], [Ints([0])], BITS)


def tensordot_rows(rng):
    for dtype in FLOATS + ["complex64"]:
        a, b = Arr(sample(rng, dtype, (3, 4, 5)), dtype), Arr(sample(rng, dtype, (5, 4, 2)), dtype)
        r = np.tensordot(wide(a.values), wide(b.values), ([2, 1], [0, 1]))
        yield Row("tensordot", [a, b], [(cast(r, dtype), dtype)], [Ints([2, 1]), Ints([0, 1])],
                  scale=80.0)
    for layout in LAYOUTS:
        a, b = (laid_out(sample(rng, "float32", s), "float32", layout)
                for s in ((3, 4, 5), (4, 5, 2)))
        for n in (0, 2):
            r = np.tensordot(wide(a.values), wide(b.values), n)
            yield Row("tensordot_axis", [a, b], [(cast(r, "float32"), "float32")], [n], scale=80.0)
        r = np.tensordot(wide(a.values), wide(b.values), ([-1], [1]))
        yield Row("tensordot", [a, b], [(cast(r, "float32"), "float32")], [Ints([-1]), Ints([1])],
                  scale=80.0)


def rows(rng):
    """(family, rows) pairs."""
    return [("move", [*update_rows(rng), *dynamic_rows(rng)]), ("matmul", [*tensordot_rows(rng)])]
