"""Rows of what reads and writes by index: subscripts of arrays, `array.at`, partitions."""

from __future__ import annotations

from draw import ALL, FLOATS, REAL, Array, Draw
from table import helper, row

REACH = 5  # largest size of an axis that is indexed


@helper("subscript")
def _(mx, a, *parts):
    return a[parts if len(parts) != 1 else parts[0]]


@helper("assign")
def _(mx, a, value, *parts):
    a = mx.array(a)
    a[parts if len(parts) != 1 else parts[0]] = value
    return a


@helper("at")
def _(mx, a, value, how, *parts):
    return getattr(a.at[parts if len(parts) != 1 else parts[0]], how)(value)


@helper("partition")
def _(mx, a, kth, axis):
    """What each part holds, in order, for the order within a part is not defined."""
    p = mx.partition(a, kth, axis)
    return model_files_of(mx, p, kth, axis)


@helper("argpartition")
def _(mx, a, kth, axis):
    if axis is None:
        a, axis = mx.flatten(a), 0
    return model_files_of(mx, mx.take_along_axis(a, mx.argpartition(a, kth, axis), axis), kth, axis)


def model_files_of(mx, p, kth, axis):
    at = kth + p.shape[axis or 0] if kth < 0 else kth
    return [mx.sort(part, axis or 0) for part in mx.split(p, [at, at + 1], axis or 0)]


@row("array.__getitem__", smooth=True)
def _(d: Draw):
    a = target(d)
    return [a, d.pick((0, -1, slice(None, None, -1), slice(0, 2), None, ..., True, "a"))], {}


def sliced(d: Draw, size: int):
    """A slice of an axis, also one that is empty or reaches out of it."""
    kind = d.random()
    if kind < 0.25:
        return slice(None)
    step = d.pick((1, 1, 2, -1, -2, 3))
    ends = [None if d.often(0.4) else d.between(-size - 1, size + 1) for _ in range(2)]
    return slice(*ends, step)


def subscript(d: Draw, shape, unique: bool) -> tuple[list, tuple[int, ...]]:
    """Parts of a subscript; with `unique` no element is met twice."""
    parts, arrays = [], d.shape(0, 2)
    for size in shape[: d.between(0, len(shape))]:
        kind = d.random()
        if kind < 0.12:
            parts.append(None)
        if kind < 0.45:
            parts.append(sliced(d, size))
        elif kind < 0.65 or (unique and any(isinstance(p, Array) for p in parts)):
            parts.append(d.between(-size, size - 1))
        elif unique:
            order = sorted(range(size), key=lambda _: d.random())
            parts.append(Array(d.pick(("int32", "uint32")), (size,), order))
        else:
            parts.append(d.indices(d.broadcastable(arrays), size))
    if d.often(0.2):
        parts.append(...)
    return parts


def target(d: Draw, dtypes=ALL) -> Array:
    return d.array(dtypes, tuple(d.between(1, REACH) for _ in range(d.between(1, 3))), special=0)


@row("subscript", smooth=True)
def _(d: Draw):
    a = target(d)
    return [a, *subscript(d, a.shape, False)], {}


@row("assign", smooth=True)
def _(d: Draw):
    a = target(d)
    value = d.pick((2, d.array(d.pick((a.dtype, a.dtype, "float32")), (1,), special=0)))
    if d.often(0.3):
        value = d.array(a.dtype, d.broadcastable(a.shape), special=0)
        return [a, value, *d.pick(([slice(None)], [...]))], {}
    return [a, value, *subscript(d, a.shape, True)], {}


@row("at", smooth=True)
def _(d: Draw):
    a = target(d, REAL + ("complex64",))
    how = d.pick(("add", "subtract", "multiply", "divide", "maximum", "minimum"))
    value = d.pick((2, d.array(a.dtype, (1,), "positive", 0)))
    # Sums of whole numbers do not depend on the order, so places may be met several times.
    unique = a.dtype not in ("int32", "int64", "uint8") or how == "divide"
    return [a, value, how, *subscript(d, a.shape, unique)], {}


@row("partition argpartition", batched=False)
def _(d: Draw):
    a = d.array(FLOATS + ("int32", "uint8"), d.shape(1), special=0)
    axis = None if d.often(0.2) else d.axis(len(a.shape))
    size = len(a.values) if axis is None else a.shape[axis % len(a.shape)]
    return [a, d.between(-size, size) if d.often(0.1) else d.between(0, max(size - 1, 0)), axis], {}


@row("slice_update", smooth=True, batched=False)
def _(d: Draw):
    a = d.array(shape=(4, 5))
    axes = d.pick(([0], [1], [0, 1], [-1]))
    start = Array(d.pick(("int32", "uint32", "int64")), (len(axes),), [d.between(0, 1)] * len(axes))
    return [a, d.array(a.dtype, d.pick(((1, 1), (3, 4), (2, 4)))), start, axes], {}
