"""Rows of gathers and scatters by index arrays, and of scatters by masks."""

import numpy as np

from case_table import ALL, BITS, CLOSE, EXACT, FLOATS, INTS, Arr, Ints, Row, cast, laid_out, wide
from cases_shape import LAYOUTS, sample

KINDS = [("scatter", lambda old, new: new), ("scatter_add", np.add), ("scatter_prod", np.multiply),
         ("scatter_max", np.maximum), ("scatter_min", np.minimum)]


def starts(indices, axes, ndim):
    """(position, first element) of every slice."""
    indices = np.broadcast_arrays(*indices) if indices else []
    for at in np.ndindex(indices[0].shape if indices else ()):
        first = [0] * ndim
        for index, axis in zip(indices, axes):
            first[axis] = int(index[at])
        yield at, first


def regions(x, indices, axes, size):
    """(position, index of the slice of x), negative starts counted from the end."""
    for at, first in starts(indices, axes, x.ndim):
        first = [f + d if f < 0 else f for f, d in zip(first, x.shape)]
        yield at, tuple(slice(f, f + n) for f, n in zip(first, size))


# ---- gathers ----

def gather_row(x, indices, axes, size):
    values = [i.values.astype(np.int64) for i in indices]
    lead = np.broadcast_shapes(*[v.shape for v in values])
    out = np.zeros(lead + tuple(size), x.values.dtype)
    for at, region in regions(x.values, values, axes, size):
        out[at] = x.values[region]
    if len(indices) == 1 and axes[0] % 2:
        return Row("gather_single", [x, *indices], [(out, x.dtype)], [axes[0], Ints(size)], BITS)
    return Row("gather", [x, *indices], [(out, x.dtype)], [Ints(axes), Ints(size)], BITS)


def numbers(rng, dtype, low, high, shape, layout="row"):
    low = max(low, 0) if dtype.startswith("u") else low
    return laid_out(rng.integers(low, high, shape).astype(dtype), dtype, layout)


def gather_rows(rng):
    for dtype in ALL:
        x = Arr(sample(rng, dtype, (5, 6, 8)), dtype)
        yield gather_row(x, [numbers(rng, "int32", -5, 5, (4,))], [0], [1, 6, 8])
        yield gather_row(x, [numbers(rng, "uint8", 0, 5, (3, 2))], [1], [5, 1, 3])
    for kind in INTS:
        x = Arr(sample(rng, "float16", (6, 7)), "float16")
        yield gather_row(x, [numbers(rng, kind, -6, 6, (2, 1)), numbers(rng, kind, 0, 6, (3,))],
                         [0, 1], [1, 2])
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (4, 5, 6)), "float32", layout)
        at = numbers(rng, "int64", 0, 4, (3, 4), layout)
        yield gather_row(x, [at, numbers(rng, "int32", 0, 3, (4,), layout)], [2, 0], [2, 5, 1])
    x = Arr(sample(rng, "float32", (4, 5)), "float32")
    yield gather_row(x, [], [], [2, 3])
    yield gather_row(x, [numbers(rng, "int32", 0, 4, ())], [0], [1, 5])
    yield gather_row(x, [numbers(rng, "int32", 0, 4, (0,))], [0], [1, 5])
    yield gather_row(x, [numbers(rng, "int32", 0, 4, (3,))], [0], [1, 0])
    yield gather_row(Arr(np.float32(3), "float32"), [], [], [])
    yield gather_row(Arr(np.zeros((0, 5)), "float32"), [numbers(rng, "int32", 0, 4, (0,))], [0], [0, 5])


# ---- scatters ----

def scatter_row(fn, combine, x, indices, updates, axes):
    want, values = np.array(x.values), [i.values.astype(np.int64) for i in indices]
    is_half = x.dtype in ("float16", "bfloat16")
    want = want.astype(np.float32) if is_half else want
    lead = len(np.broadcast_shapes(*[v.shape for v in values]))
    new = cast(updates.values, x.dtype)
    with np.errstate(all="ignore"):
        for at, region in regions(x.values, values, axes, updates.shape[lead:]):
            want[region] = combine(want[region], new[at])
    want = cast(want, x.dtype)
    is_rounded = fn in ("scatter_prod", "scatter_add") and x.dtype in FLOATS + ["complex64"]
    tolerance = CLOSE if is_rounded else EXACT
    scale = 8.0 if is_rounded else 0.0
    if len(indices) == 1 and axes[0] % 2 == 0:
        return Row(f"{fn}_single", [x, updates, *indices], [(want, x.dtype)], [axes[0]], tolerance,
                   scale)
    return Row(fn, [x, updates, *indices], [(want, x.dtype)], [Ints(axes)], tolerance, scale)


def updates_for(rng, dtype, x, indices, axes, size=None, layout="row"):
    lead = np.broadcast_shapes(*[i.shape for i in indices])
    size = size or [1 if i in axes else d for i, d in enumerate(x.shape)]
    return laid_out(sample(rng, dtype, lead + tuple(size)), dtype, layout)


def one_kind(rng, fn, combine):
    def row(x, indices, axes, size=None, dtype=None, layout="row"):
        updates = updates_for(rng, dtype or x.dtype, x, indices, axes, size, layout)
        return scatter_row(fn, combine, x, indices, updates, axes)

    for dtype in ALL:
        x = Arr(sample(rng, dtype, (5, 16)), dtype)
        # Whole rows and single elements, places that occur more than once among them.
        yield row(x, [numbers(rng, "int32", -5, 5, (7,))], [0])
        yield row(x, [numbers(rng, "int32", -2, 2, (40,)), numbers(rng, "int32", 0, 3, (40,))], [0, 1])
        yield row(x, [numbers(rng, "int32", 0, 16, (6,))], [1])
    for kind in INTS:
        x = Arr(sample(rng, "int32", (6, 7)), "int32")
        yield row(x, [numbers(rng, kind, -6, 6, (2, 1)), numbers(rng, kind, -3, 4, (3,))], [0, 1])
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (4, 5, 6)), "float32", layout)
        at = [numbers(rng, "int64", 0, 4, (3, 4), layout), numbers(rng, "int32", 0, 3, (4,), layout)]
        yield row(x, at, [2, 0], layout=layout)
        # Slices that are shorter, and that overlap.
        yield row(x, at, [2, 0], [2, 3, 3], layout=layout)
        yield row(x, at[:1], [1], [4, 2, 6], layout=layout)
    x = Arr(sample(rng, "float32", (4, 5)), "float32")
    yield row(x, [], [], [2, 3])
    yield row(x, [numbers(rng, "int32", 0, 4, ())], [0])
    yield row(x, [numbers(rng, "int32", 0, 4, (0,))], [0])
    yield row(x, [numbers(rng, "int32", 0, 4, (3,))], [0], [1, 0])
    yield row(x, [numbers(rng, "int32", 0, 4, (3,))], [0], dtype="int32")
    yield row(Arr(np.float32(3), "float32"), [], [])
    yield row(Arr(np.zeros((0, 5)), "float32"), [numbers(rng, "int32", 0, 4, (0,))], [0], [0, 5])


def many_rows(rng):
    """Many updates of few places: of halves, sums are rounded once."""
    few = Arr(np.zeros(3), "float16")
    at = Arr(np.arange(6000, dtype=np.int32) % 3, "int32")
    for fn, combine in KINDS:
        updates = Arr(np.ones((6000, 1)), "float16")
        yield scatter_row(fn, combine, few, [at], updates, [0])
        x, some = Arr(np.arange(500), "int32"), numbers(rng, "int32", 0, 20, (5000,))
        yield scatter_row(fn, combine, x, [some], Arr(sample(rng, "int32", (5000, 1)), "int32"), [0])
        x, rows = Arr(sample(rng, "bfloat16", (9, 64)), "bfloat16"), numbers(rng, "int32", 0, 3, (200,))
        if fn != "scatter_prod":
            updates = Arr(sample(rng, "bfloat16", (200, 1, 64)), "bfloat16")
            row = scatter_row(fn, combine, x, [rows], updates, [0])
            row.scale *= 20
            yield row


def outside_rows(rng):
    """What lies beyond an end is left out."""
    for fn, combine in KINDS:
        x, at = Arr(sample(rng, "int32", (4, 3)), "int32"), np.array([4, 1, -5, 1000, 0], np.int32)
        updates = Arr(sample(rng, "int32", (5, 1, 3)), "int32")
        row = scatter_row(fn, combine, x, [Arr(at[[1, 4]], "int32")],
                          Arr(updates.values[[1, 4]], "int32"), [0])
        row.inputs = [x, updates, Arr(at, "int32")]
        yield row


# ---- elements along an axis ----

def along_row(rng, fn, x, at, values, axis):
    common = np.broadcast_shapes(at.shape, values.shape)
    index = np.broadcast_to(at.values.astype(np.int64), common)
    but = list(np.broadcast_shapes([1 if i == axis else d for i, d in enumerate(x.shape)],
                                   [1 if i == axis else d for i, d in enumerate(common)]))
    but[axis] = x.shape[axis]
    want = np.array(np.broadcast_to(x.values, but))
    but[axis] = common[axis]
    index = np.broadcast_to(index, but)
    new = np.broadcast_to(cast(values.values, x.dtype), but)
    with np.errstate(all="ignore"):
        for place in np.ndindex(*but):
            to = list(place)
            to[axis] = index[place]
            old = want[tuple(to)]
            want[tuple(to)] = new[place] if fn == "put_along_axis" else cast(wide(old) + wide(new[place])
                              if x.dtype in FLOATS else old + new[place], x.dtype)
    is_sum = fn == "scatter_add_axis" and x.dtype in FLOATS + ["complex64"]
    return Row(fn, [x, at, values], [(want, x.dtype)], [axis], CLOSE if is_sum else EXACT,
               8.0 if is_sum else 0.0)


def along_rows(rng):
    for fn in ("put_along_axis", "scatter_add_axis"):
        for dtype in ALL:
            x = Arr(sample(rng, dtype, (4, 9)), dtype)
            at = numbers(rng, "int32", -9, 9, (4, 6))
            yield along_row(rng, fn, x, at, Arr(sample(rng, dtype, (4, 6)), dtype), 1)
        for kind in INTS:
            x, at = Arr(sample(rng, "float32", (5, 4)), "float32"), numbers(rng, kind, 0, 5, (3, 4))
            yield along_row(rng, fn, x, at, Arr(sample(rng, "float32", (3, 4)), "float32"), 0)
        for layout in LAYOUTS:
            x = laid_out(sample(rng, "int32", (3, 4, 5)), "int32", layout)
            for axis in (0, 1, 2):
                shape = [7 if i == axis else d for i, d in enumerate(x.shape)]
                at = numbers(rng, "uint32", 0, x.shape[axis], shape, layout)
                values = laid_out(sample(rng, "int32", shape), "int32", layout)
                yield along_row(rng, fn, x, at, values, axis)
        x, at = Arr(sample(rng, "int32", (1, 6, 3)), "int32"), numbers(rng, "int64", 0, 6, (4, 2, 1))
        yield along_row(rng, fn, x, at, Arr(sample(rng, "int16", (1, 2, 3)), "int16"), 1)
        yield along_row(rng, fn, x, at, Arr(np.float32(2), "float32"), 1)
        empty = Arr(np.zeros((0, 3)), "float32")
        yield Row(fn, [empty, numbers(rng, "int32", 0, 3, (0, 2)), empty], [(empty.values, "float32")],
                  [1], EXACT)


# ---- masks ----

def masked_row(x, mask, values):
    rest = x.values.ndim - mask.values.ndim
    n = int(mask.values.sum())
    new = cast(values.values, x.dtype)
    new = new[:n] if values.values.ndim == rest + 1 else new
    want = np.array(x.values)
    want[mask.values] = np.broadcast_to(new, (n,) + x.shape[mask.values.ndim:])
    return Row("masked_scatter", [x, mask, values], [(want, x.dtype)], [], BITS)


def masked_rows(rng):
    def mask(shape, layout="row"):
        return laid_out(rng.random(shape) < 0.5, "bool", layout)

    for dtype in ALL:
        x = Arr(sample(rng, dtype, (6, 7)), dtype)
        yield masked_row(x, mask((6, 7)), Arr(sample(rng, dtype, (50,)), dtype))
        yield masked_row(x, mask((6,)), Arr(sample(rng, dtype, (6, 7)), dtype))
        yield masked_row(x, mask((6, 7)), Arr(sample(rng, dtype, ()), dtype))
    for layout in LAYOUTS:
        x = laid_out(sample(rng, "float32", (4, 5, 6)), "float32", layout)
        yield masked_row(x, mask((4, 5, 6), layout),
                         laid_out(sample(rng, "float32", (120,)), "float32", layout))
        yield masked_row(x, mask((4, 5), layout),
                         laid_out(sample(rng, "float32", (20, 6)), "float32", layout))
    x = Arr(sample(rng, "float32", (3, 4)), "float32")
    yield masked_row(x, Arr(np.bool_(True), "bool"), Arr(sample(rng, "int32", (3, 4)), "int32"))
    yield masked_row(x, Arr(np.zeros((3, 4)), "bool"), Arr(np.zeros(0), "float32"))
    yield masked_row(x, mask((3,)), Arr(sample(rng, "float32", (3, 1)), "float32"))
    yield masked_row(x, mask((3,)), Arr(sample(rng, "float32", (4,)), "float32"))
    yield masked_row(Arr(np.float32(3), "float32"), Arr(np.bool_(True), "bool"), Arr(np.float32(7), "float32"))
    yield masked_row(Arr(np.zeros((0, 2)), "float32"), Arr(np.zeros((0, 2)), "bool"),
                     Arr(np.zeros(0), "float32"))
    x = Arr(sample(rng, "int8", (90, 100)), "int8")
    yield masked_row(x, mask((90, 100)), Arr(sample(rng, "int8", (9000,)), "int8"))


def rows(rng):
    """(family, rows) pairs."""
    scatters = [row for fn, combine in KINDS for row in one_kind(rng, fn, combine)]
    return [("gather", [*gather_rows(rng)]),
            ("scatter", [*scatters, *many_rows(rng), *outside_rows(rng), *along_rows(rng),
                         *masked_rows(rng)])]
