"""Rows of convolutions. The reference puts zeros between and around the elements of the input and adds
up the products tap by tap, in double precision."""

import itertools

import numpy as np

from case_table import (CLOSE, Arr, Ints, Row, cast, is_float, laid_out, promote, repeated,
                        wide)

TYPES = ["float32", "float16", "bfloat16", "float64"]


def per_axis(v, n, standard=1):
    v = [v] if isinstance(v, int) else list(v) or [standard]
    return v * (n if len(v) == 1 else 1)


def crop(x, lo, hi):
    """Padding below 0 takes away from the input."""
    cut = [slice(max(-a, 0), max(size - max(-b, 0), 0)) for a, b, size in zip(lo, hi, x.shape[1:])]
    return x[(slice(None), *cut)]


def dilate(x, steps):
    shape = [max(1 + d * (size - 1), 0) for d, size in zip(steps, x.shape[1:])]
    out = np.zeros([x.shape[0], *shape, x.shape[-1]], x.dtype)
    out[(slice(None), *(slice(None, None, d) for d in steps))] = x
    return out


def convolved(x, w, stride=1, lo=0, hi=0, kernel=1, dilation=1, groups=1, flip=False):
    n = x.ndim - 2
    stride, lo, hi = per_axis(stride, n), per_axis(lo, n, 0), per_axis(hi, n, 0)
    kernel, dilation = per_axis(kernel, n), per_axis(dilation, n)
    x, w = wide(x), wide(w)
    if flip:
        w = w[(slice(None), *[slice(None, None, -1)] * n)]
    x = np.pad(dilate(crop(x, lo, hi), dilation),
               [(0, 0), *((max(a, 0), max(b, 0)) for a, b in zip(lo, hi)), (0, 0)])
    size = [(x.shape[i + 1] - 1 - kernel[i] * (w.shape[i + 1] - 1)) // stride[i] + 1
            for i in range(n)]
    parts = w.shape[0] // groups, x.shape[-1] // groups
    out = np.zeros([x.shape[0], *size, w.shape[0]], np.result_type(x, w))
    for tap in itertools.product(*map(range, w.shape[1:-1])):
        at = [slice(t * k, t * k + (m - 1) * s + 1, s)
              for t, k, m, s in zip(tap, kernel, size, stride)]
        seen = x[(slice(None), *at)]
        for g in range(groups):
            o, c = (slice(g * p, (g + 1) * p) for p in parts)
            out[..., o] += seen[..., c] @ w[(o, *tap)].T
    return out


def transposed(x, w, stride, padding, dilation, output_padding, groups):
    n = x.ndim - 2
    lists = [per_axis(v, n) for v in (padding, dilation, output_padding)]
    lo = [d * (w.shape[i + 1] - 1) - p for i, (p, d, _) in enumerate(zip(*lists))]
    hi = [v + extra for v, extra in zip(lo, lists[2])]
    return convolved(x, w, 1, lo, hi, dilation, stride, groups, True)


def draw(rng, shape, dtype):
    x = rng.uniform(-1, 1, shape)
    if dtype == "complex64":
        return (x + 1j * rng.uniform(-1, 1, shape)).astype(np.complex64)
    return cast(x, dtype)


def operands(rng, shapes, dtypes=("float32", "float32"), layouts=("row", "row")):
    return [laid_out(repeated(lambda n, t=t: draw(rng, n, t), s), t, l)
            for s, t, l in zip(shapes, dtypes, layouts)]


def row(fn, arrays, out, params):
    dtype = promote(arrays[0].dtype, arrays[1].dtype)
    terms = max(arrays[1].values[0].size if arrays[1].values.size else 1, 1)
    scale = terms ** 0.5 / (1 if is_float(dtype) else 0.5)
    return Row(fn, arrays, [(cast(out, dtype), dtype)], params, CLOSE, scale)


def plain(fn, arrays, stride, padding, dilation, groups):
    """mlx_conv1d, 2d, 3d: three numbers for each axis, then the groups."""
    x, w = (a.values for a in arrays)
    n = x.ndim - 2
    lists = [per_axis(v, n) for v in (stride, padding, dilation)]
    out = convolved(x, w, lists[0], lists[1], lists[1], lists[2], 1, groups)
    return row(fn, arrays, out, [Ints(v) for v in lists] + [groups])


def general(arrays, stride=(1,), lo=(0,), hi=(0,), kernel=(1,), dilation=(1,), groups=1,
            flip=False):
    x, w = (a.values for a in arrays)
    out = convolved(x, w, stride, lo, hi, kernel, dilation, groups, flip)
    lists = [Ints(v) for v in (stride, lo, hi, kernel, dilation)]
    return row("conv_general", arrays, out, lists + [Ints([groups, int(flip)])])


def transpose(fn, arrays, stride, padding, dilation, output_padding, groups):
    x, w = (a.values for a in arrays)
    n = x.ndim - 2
    lists = [per_axis(v, n) for v in (stride, padding, dilation, output_padding)]
    out = transposed(x, w, *lists, groups)
    return row(fn, arrays, out, [Ints(v) for v in lists] + [groups])


def shapes_of(n, size=9, c=4, o=6, k=3, groups=1, batch=2):
    """Sizes that differ between the axes."""
    x = [batch, *(size - i for i in range(n)), c]
    return x, [o, *(max(k - i, 1) for i in range(n)), c // groups]


def plain_rows(rng):
    for n, fn in ((1, "conv1d"), (2, "conv2d"), (3, "conv3d")):
        for dtype in TYPES:
            yield plain(fn, operands(rng, shapes_of(n, 7), (dtype, dtype)), 1, 1, 1, 1)
        for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 0, 1), (2, 3, 2)):
            yield plain(fn, operands(rng, shapes_of(n, 8)), stride, padding, dilation, 1)
    yield plain("conv2d", operands(rng, shapes_of(2)), (2, 1), (0, 2), (1, 3), 1)
    yield plain("conv3d", operands(rng, shapes_of(3)), (1, 2, 1), (2, 0, 1), (1, 1, 2), 1)
    # A product of matrices, and what is nearly one.
    for dtype in TYPES:
        yield plain("conv2d", operands(rng, shapes_of(2, 6, 16, 12, 1), (dtype,) * 2), 1, 0, 1, 1)
    yield plain("conv2d", operands(rng, shapes_of(2, 6, 16, 12, 1)), 2, 0, 1, 1)
    yield plain("conv1d", operands(rng, shapes_of(1, 6, 5, 3, 1)), 1, 1, 1, 1)
    # Weights, or their types, that do not fit are cast.
    for types in (("float16", "bfloat16"), ("float32", "int32"), ("float16", "float32"),
                  ("float32", "complex64")):
        arrays = operands(rng, shapes_of(1), types) if types[1] != "int32" else [
            Arr(draw(rng, shapes_of(1)[0], "float32"), "float32"),
            Arr(rng.integers(-3, 4, shapes_of(1)[1]).astype(np.int32), "int32")]
        yield plain("conv1d", arrays, 1, 1, 1, 1)
    yield plain("conv2d", operands(rng, shapes_of(2, 6, 4, 6, 3, 2), ("float32", "complex64")), 1,
                1, 1, 2)


def size_rows(rng):
    """Channels and positions around what kernels take at once."""
    for dtype in ("float32", "float16", "bfloat16"):
        for c, o in ((1, 1), (3, 64), (8, 8), (16, 33), (24, 40), (32, 64), (65, 17)):
            yield plain("conv2d", operands(rng, shapes_of(2, 8, c, o), (dtype,) * 2), 1, 1, 1, 1)
    yield plain("conv2d", operands(rng, ([2, 34, 33, 32], [64, 3, 3, 32])), 1, 1, 1, 1)
    yield plain("conv2d", operands(rng, ([1, 20, 21, 3], [32, 7, 7, 3])), 2, 3, 1, 1)
    yield plain("conv1d", operands(rng, ([1, 3000, 2], [3, 5, 2])), 2, 2, 1, 1)
    # Many taps, little else: what the gradient of weights is.
    yield plain("conv2d", operands(rng, ([4, 34, 34, 3], [8, 32, 32, 3])), 1, 0, 1, 1)
    yield plain("conv1d", operands(rng, ([2, 700, 8], [4, 690, 8])), 1, 0, 1, 1)


def group_rows(rng):
    for dtype in TYPES:
        for c, o, groups in ((4, 4, 4), (4, 8, 4), (8, 8, 2), (12, 6, 3), (64, 64, 64),
                             (10, 10, 10), (32, 64, 2)):
            for n, fn in ((1, "conv1d"), (2, "conv2d")):
                arrays = operands(rng, shapes_of(n, 7, c, o, 3, groups), (dtype,) * 2)
                yield plain(fn, arrays, 1 + (groups == 4), 1, 1, groups)
    yield general(operands(rng, shapes_of(2, 9, 12, 6, 3, 3)), (2,), (1, 3), (2, 0), (2,), (3,), 3,
                  True)
    yield general(operands(rng, shapes_of(1, 9, 16, 16, 3, 16)), (2,), (1,), (2,), (2,), (3,), 16,
                  True)


def general_rows(rng):
    for n in (1, 2, 3):
        for flip in (False, True):
            yield general(operands(rng, shapes_of(n)), flip=flip)
            yield general(operands(rng, shapes_of(n, 6)), (2,), (1,), (3,), (2,), (3,), 1, flip)
        yield general(operands(rng, shapes_of(n)), (), (), (), (), ())
        yield general(operands(rng, shapes_of(n)), lo=(-1,), hi=(2,))
        yield general(operands(rng, shapes_of(n)), lo=(3,), hi=(-2,), dilation=(2,))
    for _ in range(60):
        n = int(rng.integers(1, 4))
        groups = int(rng.choice([1, 1, 2, 3])) if n < 3 else 1
        each = rng.integers(1, 9, 2) * groups
        x = [int(rng.integers(1, 4)), *map(int, rng.integers(3, 9, n)), int(each[0])]
        w = [int(each[1]), *map(int, rng.integers(1, 4, n)), int(each[0]) // groups]
        lists = [tuple(map(int, rng.integers(a, b, n))) for a, b in
                 ((1, 4), (-1, 4), (-1, 4), (1, 3), (1, 4))]
        sizes = [1 + lists[4][i] * (x[i + 1] + min(lists[1][i], 0) + min(lists[2][i], 0) - 1)
                 + max(lists[1][i], 0) + max(lists[2][i], 0) - lists[3][i] * (w[i + 1] - 1)
                 for i in range(n)]
        if min(sizes) < 1 or min(x[i + 1] + lists[1][i] + lists[2][i] for i in range(n)) < 1:
            continue
        dtype = str(rng.choice(TYPES[:3]))
        yield general(operands(rng, (x, w), (dtype,) * 2), *lists, groups, bool(rng.integers(2)))


def transpose_rows(rng):
    for n, fn in ((1, "conv_transpose1d"), (2, "conv_transpose2d"), (3, "conv_transpose3d")):
        for dtype in TYPES:
            yield transpose(fn, operands(rng, shapes_of(n, 5), (dtype,) * 2), 2, 1, 1, 0, 1)
        for params in ((1, 0, 1, 0), (2, 0, 1, 1), (3, 2, 2, 2), (1, 1, 1, 0)):
            yield transpose(fn, operands(rng, shapes_of(n, 6)), *params, 1)
    for c, o, groups in ((4, 4, 4), (6, 4, 2)):
        for n, fn in ((1, "conv_transpose1d"), (2, "conv_transpose2d")):
            yield transpose(fn, operands(rng, shapes_of(n, 5, c, o, 3, groups)), 2, 1, 1, 1, groups)
    yield transpose("conv_transpose2d", operands(rng, shapes_of(2)), (2, 3), (1, 0), (2, 1), (1, 2),
                    1)


def layout_rows(rng):
    layouts = ("row", "transposed", "sliced", "reversed", "offset", "broadcast", "column")
    for layout in layouts:
        for dtype in ("float32", "float16"):
            for pair in ((layout, "row"), ("row", layout), (layout, layout)):
                arrays = operands(rng, shapes_of(2, 6, 8, 8), (dtype,) * 2, pair)
                yield plain("conv2d", arrays, 1, 1, 1, 1)
        arrays = operands(rng, shapes_of(1, 9, 8, 8, 3, 8), layouts=(layout, layout))
        yield plain("conv1d", arrays, 1, 1, 1, 8)


def edge_rows(rng):
    yield plain("conv1d", operands(rng, ([0, 5, 2], [3, 2, 2])), 1, 1, 1, 1)
    yield plain("conv2d", operands(rng, ([0, 5, 5, 4], [4, 2, 2, 1])), 1, 1, 1, 4)
    # Of no channels, or of no input at all, the sum is zero.
    yield plain("conv1d", operands(rng, ([2, 5, 0], [3, 2, 0])), 1, 0, 1, 1)
    yield plain("conv1d", operands(rng, ([2, 0, 4], [3, 2, 4])), 1, 2, 1, 1)
    yield plain("conv1d", operands(rng, ([2, 5, 4], [0, 2, 4])), 1, 0, 1, 1)
    yield plain("conv1d", operands(rng, ([1, 1, 1], [1, 1, 1])), 1, 0, 1, 1)
    yield plain("conv1d", operands(rng, ([1, 4, 2], [3, 2, 2])), 1, 9, 5, 1)


def rows(rng):
    return [("conv", list(plain_rows(rng)) + list(size_rows(rng)) + list(group_rows(rng))),
            ("conv_general", list(general_rows(rng)) + list(layout_rows(rng)) + list(edge_rows(rng))),
            ("conv_transpose", list(transpose_rows(rng)))]
