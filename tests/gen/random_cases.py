#!/usr/bin/env python3
"""Writes a table of random calls with what MLX itself says of them.

usage: random_cases.py PYTHON OUTPUT ROWS SEED
       tests/ops_cases table=OUTPUT

PYTHON is an interpreter that has mlx and numpy. Calls are drawn from the functions below, with dtypes,
layouts and special values at random; ops_cases runs them on both devices. Not part of the build: MLX is
no dependency.
"""

import subprocess
import sys

FLOATING = ["float32", "float16", "bfloat16"]
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SPECIAL = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0]


def draw(rng, dtype, shape, special):
    from case_table import cast
    import numpy as np
    if dtype == "complex64":
        return (draw(rng, "float32", shape, special) +
                1j * draw(rng, "float32", shape, 0)).astype(np.complex64)
    if dtype in WHOLE:
        low = 0 if dtype.startswith("u") else -100
        return rng.integers(low, 100, shape).astype(dtype)
    x = np.round(rng.normal(0, 3, shape), int(rng.integers(0, 4)))
    x = np.where(rng.random(shape) < special, rng.choice(SPECIAL, shape), x)
    return cast(x, dtype)


def operand(rng, dtype, shape, special=0.0):
    from case_table import laid_out
    layouts = ["row", "transposed", "sliced", "reversed", "offset", "column"]
    return laid_out(draw(rng, dtype, shape, special), dtype, rng.choice(layouts))


def shape_of(rng, low=1):
    return tuple(int(rng.choice([1, 2, 3, 5, 8, 17, 40])) for _ in range(rng.integers(low, 4)))


def along_axis(rng):
    """Sorts, scans and positions of extremes along one axis."""
    shape = shape_of(rng)
    axis = int(rng.integers(0, len(shape)))
    fn = rng.choice(["sort_axis", "argsort_axis", "argmin_axis", "argmax_axis", "cummax", "cummin",
                     "logcumsumexp", "cumsum"])
    types = FLOATING + WHOLE + ["complex64"]
    if fn == "logcumsumexp":
        types = ["float32", "complex64"]
    if fn == "cumsum":
        types = ["float32", "int32"]
    dtype = rng.choice(types)
    # Of complex numbers MLX keeps or forgets a NaN depending on what follows it, and scans of half
    # types forget it where those of float32 do not.
    forgets = dtype == "complex64" or (fn.startswith("cum") and dtype != "float32")
    special = 0 if forgets or fn in ("logcumsumexp", "cumsum") else rng.choice([0, 0.2])
    x = operand(rng, dtype, shape, special)
    if fn in ("argmin_axis", "argmax_axis"):
        return fn, [x], [axis, int(rng.integers(0, 2))]
    if fn.startswith("cum") or fn.startswith("log"):
        return fn, [x], [axis, int(rng.integers(0, 2)), int(rng.integers(0, 2))]
    return fn, [x], [axis]


def quotients(rng):
    import numpy as np
    shape = shape_of(rng, 0)
    dtype = rng.choice(FLOATING + WHOLE)
    fn = rng.choice(["floor_divide", "remainder", "divmod"])
    a, b = operand(rng, dtype, shape, 0.1), operand(rng, dtype, shape, 0.1)
    if dtype in WHOLE:  # MLX ends the process
        b = type(b)(np.where(b.values == 0, 7, b.values).astype(dtype), dtype)
    return fn, [a, b], []


def packing(rng):
    bits = int(rng.choice([1, 2, 3, 4, 5, 6, 8]))
    group = int(rng.choice([32, 64, 128]))
    mode, group, bits = [("affine", group, bits), ("mxfp4", 32, 4), ("mxfp8", 32, 8),
                         ("nvfp4", 16, 4)][int(rng.choice([0, 0, 0, 0, 1, 2, 3]))]
    from case_table import Arr, cast
    dtype = str(rng.choice(FLOATING))
    w = Arr(cast(rng.normal(0, 2, (int(rng.integers(1, 6)), 128 * int(rng.integers(1, 3)))), dtype),
            dtype)
    return "quantize", [w, None], [group, bits, mode]


def moves(rng):
    from case_table import Arr, Ints
    import numpy as np
    kind = int(rng.integers(0, 3))
    if kind == 0:
        source, target = rng.choice(["float32", "int64", "uint16", "complex64", "uint8"], 2)
        wide, narrow = np.dtype(source).itemsize, np.dtype(target).itemsize
        last = 1 if narrow <= wide else narrow // wide
        shape = shape_of(rng) + (last * int(rng.integers(1, 4)),)
        from case_table import DtypeParam
        return "view", [operand(rng, source, shape)], [DtypeParam(target)]
    shape = shape_of(rng)
    x = operand(rng, "float32", shape)
    axes = list(range(len(shape)))
    low, high = rng.integers(0, 4, (2, len(shape)))
    mode = rng.choice(["constant", "edge"])
    value = Arr(rng.normal(0, 1, shape_of(rng)).astype(np.float32), "float32")
    return "pad", [x, value], [Ints(axes), Ints(low.tolist()), Ints(high.tolist()), str(mode)]


def products(rng):
    from case_table import Arr
    m, k, n = (int(v) for v in rng.integers(1, 40, 3))
    dtype = rng.choice(["float32", "float32", "float16"])
    alpha, beta = (float(rng.choice([1.0, 0.0, 0.5])) for _ in range(2))
    alpha = alpha or (0.0 if dtype == "float32" else 1.0)  # half types multiply there by 0
    c = operand(rng, dtype, (m, n), 0.2 if beta == 0 else 0)
    return "addmm", [c, operand(rng, dtype, (m, k)), operand(rng, dtype, (k, n))], [alpha, beta]


KINDS = [along_axis, along_axis, quotients, packing, moves, products]


def make_row(mx, special, kind, rng):
    """A row, or None where MLX has no answer."""
    import numpy as np
    from case_table import CLOSE, EXACT, Row
    from check_against_mlx import DTYPES, Unreachable, apply_view, call, load
    fn, inputs, params = kind(rng)
    given = []
    for a in inputs:
        if a is None:
            given.append(None)
            continue
        base = np.array(a.base, order="C")
        x = load(mx, a.dtype, base) if a.dtype != "bfloat16" else mx.array(base).astype(mx.bfloat16)
        for view, numbers in a.views:
            x = apply_view(mx, x, view, numbers)
        given.append(x)
    lists = [list(p) if isinstance(p, list) else p if isinstance(p, (str, float)) else [int(p)]
             for p in params]
    try:
        results = call(mx, special, fn, given, lists)
        mx.eval(results)
    except (Unreachable, ValueError):
        return None
    outputs = []
    for r in results:
        name = next(d for d in DTYPES if getattr(mx, d) == r.dtype)
        values = np.array(r.astype(mx.float32) if name == "bfloat16" else r)
        outputs.append((values, "bool" if name == "bool_" else name))
    whole = fn in ("view", "pad", "quantize") or fn.startswith(("sort", "arg", "cumm"))
    scale = 200.0 if fn in ("addmm", "cumsum", "logcumsumexp") else 0.0
    return Row(str(fn), inputs, outputs, params, EXACT if whole else CLOSE, scale)


def worker(path, n, seed):
    import mlx.core as mx
    import numpy as np
    from case_table import write_table
    from check_against_mlx import special_calls
    mx.set_default_device(mx.cpu)
    special, rng, rows = special_calls(mx), np.random.default_rng(seed), []
    while len(rows) < n:
        row = make_row(mx, special, KINDS[len(rows) % len(KINDS)], rng)
        if row:
            row.family = "random"
            rows.append(row)
    write_table(path, rows)
    print(f"{n} calls with MLX {mx.__version__}")


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        worker(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        sys.exit(subprocess.run([sys.argv[1], "-B", __file__, "--worker", *sys.argv[2:]],
                                check=False).returncode)
