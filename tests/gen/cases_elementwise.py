"""Rows of unary, binary and ternary ops, of casts, and of the functions composed of them."""

import math

import numpy as np

from case_table import (ALL, BITS, CLOSE, DIVISION, EXACT, FLOATS, INTS, REAL, SIGNED, UNSIGNED, Arr,
                        DtypeParam, Row, at_least_float, carrier, cast, is_float, laid_out, promote,
                        repeated, wide)

COUNT = 77  # values of a plain row: odd, and more than a vector register holds
VIEWS = ["transposed", "sliced", "reversed", "offset", "broadcast", "column"]
# Elements that are no 32-bit words are moved in other ways; each is seen in another layout.
OTHER_WIDTHS = ["float16", "int8", "bool", "complex64", "int64", "bfloat16"]
LARGE = (523, 502)  # more elements than devices treat as few

TINY = {"float16": 6e-8, "float32": 1e-40, "float64": 5e-320, "bfloat16": 1e-40}
LARGEST = {"float16": 65504.0, "float32": 3.4028234e38, "float64": 1.7976931348623157e308,
           "bfloat16": 3.3895314e38}
NORMAL = {"float16": 6.104e-05, "float32": 1.1754944e-38, "float64": 2.2250738585072014e-308,
          "bfloat16": 1.1754944e-38}


# ---- values ----

def integers(rng, dtype, low=None, high=None):
    """Random integers of a dtype with its extremes in front."""
    info = np.iinfo(dtype)
    low = info.min if low is None else max(low, info.min)
    high = info.max if high is None else min(high, info.max)
    spread = [int(rng.integers(max(low, -1000), min(high, 1000), endpoint=True))
              for _ in range(COUNT)]
    front = [v for v in (0, 1, 2, -1, low, high, low + 1, high - 1) if low <= v <= high]
    return np.array((front + spread)[:COUNT], object).astype(dtype)


def reals(rng, dtype, domain):
    """Random values of a domain with its special values in front."""
    low, high, special = domain
    front = {"all": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, math.inf, -math.inf,
                     math.nan, LARGEST[dtype], -LARGEST[dtype], NORMAL[dtype], TINY[dtype],
                     -TINY[dtype]],
             "finite": [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-3, 100.0],
             "positive": [1.0, 0.5, 2.0, 1e-3, 100.0, math.inf, math.nan, LARGEST[dtype],
                          NORMAL[dtype]],
             "unit": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.999, -0.999, 1e-3, 1.5, math.nan],
             "none": []}[special]
    spread = rng.uniform(low, high, COUNT)
    spread[::5] = rng.uniform(low, high, len(spread[::5])) * 1e-3 if low <= 0 else spread[::5]
    return cast(np.array((front + list(spread))[:COUNT], np.float64), dtype)


def complexes(rng):
    front = [1, -1, 1j, -1j, 1 + 1j, -0.5 - 0.25j, 2 - 3j]
    spread = rng.uniform(-2, 2, COUNT) + 1j * rng.uniform(-2, 2, COUNT)
    return np.array((front + list(spread))[:COUNT], np.complex64)


def values(rng, dtype, domain):
    if dtype == "bool":
        return rng.integers(0, 2, COUNT).astype(bool)
    if dtype == "complex64":
        return complexes(rng)
    if dtype in INTS:
        low, high, special = domain
        bounded = special in ("unit", "finite", "positive", "none")
        return integers(rng, dtype, math.ceil(low) if bounded else None,
                        math.floor(high) if bounded else None)
    return reals(rng, dtype, domain)


def plain(rng, dtype, domain, n):
    """n values without the special ones."""
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if dtype == "complex64":
        return (rng.uniform(-2, 2, n) + 1j * rng.uniform(-2, 2, n)).astype(np.complex64)
    low, high, _ = domain
    if dtype in INTS:
        info = np.iinfo(dtype)
        return rng.integers(max(math.ceil(low), info.min), min(math.floor(high), info.max), n,
                            endpoint=True).astype(dtype)
    return cast(rng.uniform(low, high, n), dtype)


def grid(rng, dtype, domain, shape):
    return repeated(lambda n: plain(rng, dtype, domain, n), shape)


# ---- reference functions beyond NumPy's ----

def erfinv(x):
    def one(v):
        if math.isnan(v) or abs(v) > 1:
            return math.nan
        if abs(v) == 1:
            return math.copysign(math.inf, v)
        tail = 1 - abs(v)
        y = math.sqrt(max(-math.log(tail * (2 - tail)), 0.0)) if v else 0.0
        for _ in range(60):
            y += (math.erfc(y) - tail) / (2 / math.sqrt(math.pi) * math.exp(-y * y))
        return math.copysign(y, v)
    return np.vectorize(one, otypes=[np.float64])(x)


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) /
                    (1 + np.exp(-np.abs(x))))


def sign(x):
    if np.iscomplexobj(x):
        return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))
    return (x > 0).astype(np.int8) - (x < 0).astype(np.int8)  # 0 for NaN


# ---- unary ----

ANY = (-10, 10, "all")
FINITE = (-10, 10, "finite")
UNIT = (-1, 1, "unit")

# name: rule for the result's dtype, reference, domain, tolerance, dtypes.
# float: computed in at least float32; same: dtype stays; bool: result is bool.
UNARY = {
    "abs": ("abs", np.abs, ANY, BITS, ALL),
    "arccos": ("float", np.arccos, UNIT, CLOSE, ALL),
    "arccosh": ("float", np.arccosh, (1, 50, "positive"), CLOSE, ALL),
    "arcsin": ("float", np.arcsin, UNIT, CLOSE, ALL),
    "arcsinh": ("float", np.arcsinh, ANY, CLOSE, ALL),
    "arctan": ("float", np.arctan, ANY, CLOSE, ALL),
    "arctanh": ("float", np.arctanh, UNIT, CLOSE, ALL),
    "bitwise_invert": ("same", np.invert, ANY, EXACT, ["bool"] + INTS),
    "ceil": ("same", np.ceil, ANY, BITS, REAL),
    "conjugate": ("same", np.conj, ANY, BITS, ALL),
    "cos": ("float", np.cos, (-100, 100, "all"), CLOSE, ALL),
    "cosh": ("float", np.cosh, ANY, CLOSE, ALL),
    "degrees": ("float", np.degrees, ANY, CLOSE, REAL),
    "erf": ("float", erf, (-4, 4, "all"), CLOSE, REAL),
    "erfinv": ("float", erfinv, UNIT, CLOSE, REAL),
    "exp": ("float", np.exp, ANY, CLOSE, ALL),
    "expm1": ("float", np.expm1, ANY, CLOSE, REAL),
    "floor": ("same", np.floor, ANY, BITS, REAL),
    "imag": ("part", np.imag, ANY, EXACT, ALL),
    "isfinite": ("bool", np.isfinite, ANY, EXACT, ALL),
    "isinf": ("bool", np.isinf, ANY, EXACT, ALL),
    "isnan": ("bool", np.isnan, ANY, EXACT, ALL),
    "isneginf": ("bool", np.isneginf, ANY, EXACT, REAL),
    "isposinf": ("bool", np.isposinf, ANY, EXACT, REAL),
    "log": ("float", np.log, (0, 50, "all"), CLOSE, ALL),
    "log10": ("float", np.log10, (0, 50, "all"), CLOSE, ALL),
    "log1p": ("float", np.log1p, (-1, 50, "all"), CLOSE, ALL),
    "log2": ("float", np.log2, (0, 50, "all"), CLOSE, ALL),
    "logical_not": ("bool", np.logical_not, ANY, EXACT, ALL),
    "negative": ("same", np.negative, ANY, BITS, [t for t in ALL if t != "bool"]),
    "radians": ("float", np.radians, ANY, CLOSE, REAL),
    "real": ("part", np.real, ANY, EXACT, ALL),
    "reciprocal": ("float", lambda x: 1 / x, ANY, DIVISION, ALL),
    "rsqrt": ("float", lambda x: 1 / np.sqrt(x), (0, 50, "positive"), CLOSE, ALL),
    "sigmoid": ("float", sigmoid, ANY, CLOSE, REAL),
    "sign": ("same", sign, ANY, BITS, ALL),
    "sin": ("float", np.sin, (-100, 100, "all"), CLOSE, ALL),
    "sinh": ("float", np.sinh, ANY, CLOSE, ALL),
    "sqrt": ("float", np.sqrt, (0, 50, "all"), CLOSE, ALL),
    "square": ("same", np.square, ANY, EXACT, ALL),
    "stop_gradient": ("same", lambda x: x, ANY, BITS, ALL),
    "tan": ("float", np.tan, (-20, 20, "all"), CLOSE, ALL),
    "tanh": ("float", np.tanh, ANY, CLOSE, ALL),
}
KEEPS_INTEGERS = {"ceil", "floor", "conjugate", "real", "stop_gradient"}


def unary_result(name, x, dtype):
    """(values, dtype) of a unary function of x."""
    rule, ref, _, _, _ = UNARY[name]
    with np.errstate(all="ignore"):
        if rule == "bool":
            return ref(x), "bool"
        if rule == "abs":
            out = "float32" if dtype == "complex64" else dtype
            return (x if dtype == "bool" else cast(ref(x), out)), out
        if rule == "part":
            if dtype != "complex64":
                return (x if name == "real" else np.zeros_like(x)), dtype
            return ref(x).astype(np.float32), "float32"
        if rule == "float":
            out = at_least_float(dtype)
            return cast(ref(wide(cast(x, out))), out), out
        if name in KEEPS_INTEGERS and not (is_float(dtype) or dtype == "complex64"):
            return x, dtype
        if dtype == "bool" and name in ("sign", "square"):
            return x, dtype
        return cast(ref(x), dtype), dtype


def unary_row(name, a):
    tolerance = UNARY[name][3]
    if a.dtype == "complex64" and name in ("square", "sign", "abs", "reciprocal"):
        tolerance = CLOSE
    return Row(name, [a], [unary_result(name, a.values, a.dtype)], tolerance=tolerance)


def drop_minimum(x):
    return np.where(x == np.iinfo(x.dtype).min, 1, x).astype(x.dtype)


def primary(dtypes):
    return next(t for t in ("float32", "int32", "bool") if t in dtypes)


def unary_rows(rng):
    for name, (_, _, domain, _, dtypes) in UNARY.items():
        for dtype in dtypes:
            x = values(rng, dtype, domain)
            if name in ("abs", "negative") and dtype in SIGNED:
                x = drop_minimum(x)
            yield unary_row(name, Arr(x, dtype))
        main = primary(dtypes)
        for layout in VIEWS:
            yield unary_row(name, laid_out(grid(rng, main, domain, (5, 7)), main, layout))
        for shape in ((), (1,), (0, 4), (3, 4, 5), (5003,)):
            yield unary_row(name, Arr(grid(rng, main, domain, shape), main))
        for i, dtype in enumerate(t for t in OTHER_WIDTHS if t in dtypes):
            yield unary_row(name, laid_out(grid(rng, dtype, domain, (5, 7)), dtype, VIEWS[i]))


def zero_rows():
    """Functions through zero keep the sign of a zero."""
    for name, (rule, ref, _, _, _) in UNARY.items():
        with np.errstate(all="ignore"):
            if rule != "float" or ref(np.zeros(1))[0] != 0:
                continue
        for dtype in FLOATS:
            a = Arr(cast(np.tile([0.0, -0.0], 17), dtype), dtype)
            yield Row(name, [a], [(a.values, dtype)], tolerance=BITS)


def large_angles(rng):
    """Arguments for which the reduction modulo pi needs more than the type's own digits."""
    x = cast(np.concatenate([rng.uniform(1e3, 1e5, 40), rng.uniform(-3e6, 3e6, 40)]), "float32")
    for name in ("sin", "cos", "tan"):
        yield unary_row(name, Arr(x, "float32"))


# ---- functions of one array with parameters ----

def round_rows(rng):
    for dtype in ["bool"] + INTS + FLOATS + ["complex64"]:
        x = values(rng, dtype, (-10, 10, "finite"))
        for decimals in (0, 2, -1):
            if decimals and dtype != "float32":
                continue
            out = dtype
            if decimals == 0:
                r = x if dtype not in FLOATS + ["complex64"] else np.round(x)
            else:
                scale = np.float32(10.0 ** decimals)
                r = np.round(x * scale) / scale
            yield Row("round", [Arr(x, dtype)], [(cast(r, out), out)], [decimals],
                      BITS if decimals == 0 else CLOSE)
    for layout in VIEWS:
        a = laid_out(grid(rng, "float32", ANY, (5, 7)), "float32", layout)
        yield Row("round", [a], [(np.round(a.values), "float32")], [0], EXACT)


def nan_to_num_rows(rng):
    for dtype in ("float32", "float16", "bfloat16", "int32"):
        x = values(rng, dtype, ANY)
        for nan, pos, neg in ((0.0, None, None), (7.0, 100.0, None), (-1.0, 50.0, -50.0)):
            r = x
            if is_float(dtype):
                with np.errstate(all="ignore"):
                    r = np.where(np.isnan(x), nan, x)
                    r = np.where(x == np.inf, LARGEST[dtype] if pos is None else pos, r)
                    r = np.where(x == -np.inf, -LARGEST[dtype] if neg is None else neg, r)
            params = [nan] + [v for o in (pos, neg)
                              for v in (int(o is not None), 0.0 if o is None else o)]
            yield Row("nan_to_num", [Arr(x, dtype)], [(cast(r, dtype), dtype)], params, EXACT)


def astype_rows(rng):
    for source in ALL:
        for target in ALL:
            x = values(rng, source, (0, 100, "finite"))
            if source in FLOATS and target not in FLOATS + ["complex64", "bool"]:
                x = cast(np.abs(rng.uniform(0, 100, COUNT)), source)
            if source == "complex64" and target not in ("complex64", "bool"):
                x = (x.real + 2 + 1j * x.imag).astype(np.complex64)
            yield Row("astype", [Arr(x, source)], [(cast(x, target), target)],
                      [DtypeParam(target)], EXACT)
    for target in ("float32", "float16", "int32", "uint8"):
        for layout in VIEWS:
            a = laid_out(grid(rng, "float32", (0, 90, "none"), (5, 7)), "float32", layout)
            yield Row("astype", [a], [(cast(a.values, target), target)], [DtypeParam(target)],
                      EXACT)
    for dtype in FLOATS:  # every special value to every other floating type
        x = values(rng, dtype, ANY)
        for target in FLOATS:
            yield Row("astype", [Arr(x, dtype)], [(cast(x, target), target)],
                      [DtypeParam(target)], EXACT)


def view_rows(rng):
    pairs = [("float32", "int32"), ("int32", "float32"), ("uint8", "int8"), ("float32", "uint8"),
             ("uint8", "uint32"), ("int16", "int64"), ("int64", "uint16"), ("complex64", "float32"),
             ("float16", "uint16"), ("uint32", "uint32")]
    for source, target in pairs:
        views = [laid_out(grid(rng, source, (0, 100, "none"), (3, 8)), source, layout)
                 for layout in ("row", "transposed", "sliced", "offset")]
        if np.dtype(carrier(target)).itemsize < np.dtype(carrier(source)).itemsize:
            # The stride of an axis of one element is not the one of what it becomes.
            views += [laid_out(grid(rng, source, (0, 100, "none"), shape), source, layout)
                      for shape in ((5, 1), (1, 5, 1), (1, 1)) for layout in ("transposed", "sliced")]
        for a in views:
            seen = np.ascontiguousarray(a.values).view(carrier(target))
            yield Row("view", [a], [(seen, target)], [DtypeParam(target)], BITS)


# ---- 8-bit floats ----

def fp8_values():
    """What the codes 0 to 126 stand for; code 127 would be 480."""
    return np.array([(m if e == 0 else 8 + m) * 2.0 ** (max(e, 1) - 10)
                     for e in range(16) for m in range(8)])[:127]


def to_fp8(x):
    """The nearest code, even ones for ties; beyond 448 and for NaN 126. The sign is bit 7."""
    grid, sign = fp8_values(), np.signbit(x).astype(np.uint8) << 7
    with np.errstate(invalid="ignore"):
        v = np.where(np.isnan(x), np.inf, np.abs(x)).astype(np.float64)
    high = np.minimum(np.searchsorted(grid, v), 126)
    low = np.maximum(high - 1, 0)
    to_low, to_high = v - grid[low], grid[high] - v
    takes_low = (to_low < to_high) | ((to_low == to_high) & (low % 2 == 0))
    return sign | np.where((v <= 448) & takes_low, low, high).astype(np.uint8)


def from_fp8(x):
    values = np.append(fp8_values(), np.nan)[x & 127]
    return np.where(x & 128, -values, values)


def all_patterns(dtype):
    """Every number of a type of 16 bits."""
    bits = np.arange(1 << 16, dtype=np.uint32)
    if dtype == "float16":
        return bits.astype(np.uint16).view(np.float16)
    return (bits << 16).view(np.float32)


def fp8_edges(dtype):
    """All codes, what lies halfway between them, the neighbours of both, and special values."""
    grid = np.append(fp8_values(), [480.0, 1e9, np.inf, np.nan, 1e-40])
    points = np.concatenate([grid, (grid[1:128] + grid[:127]) / 2]).astype(dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        x = np.concatenate([points, np.nextafter(points, np.array(np.inf, dtype)),
                            np.nextafter(points, np.array(0, dtype))])
    return np.concatenate([x, -x])


def fp8_rows(rng):
    codes = np.arange(256, dtype=np.uint8)
    inputs = [Arr(all_patterns(t), t) for t in ("float16", "bfloat16")]
    inputs += [Arr(fp8_edges(t), t) for t in ("float32", "float64")]
    inputs += [laid_out(grid(rng, t, ANY, (5, 7)), t, layout)
               for t in ("float32", "bfloat16") for layout in VIEWS]
    inputs += [Arr(grid(rng, "float32", ANY, shape), "float32") for shape in ((), (0, 4), LARGE)]
    for a in inputs:
        yield Row("to_fp8", [a], [(to_fp8(a.values), "uint8")], tolerance=EXACT)
    inputs = [laid_out(rng.integers(0, 256, (5, 7)), "uint8", layout) for layout in VIEWS]
    inputs += [Arr(rng.integers(0, 256, shape), "uint8") for shape in ((), (0, 4), LARGE)]
    for a in [Arr(codes, "uint8")] + inputs:
        for t in FLOATS if a.shape == (256,) else ["float16"]:
            yield Row("from_fp8", [a], [(from_fp8(a.values), t)], [DtypeParam(t)], BITS)


# ---- binary ----

def c_power(a, b):
    """Integer powers as repeated multiplication; a negative exponent gives 0 or stays undefined."""
    bits = a.dtype.itemsize * 8
    out = [pow(int(x), int(y), 1 << bits) if y >= 0 else 0 for x, y in zip(a.ravel(), b.ravel())]
    wrapped = np.array(out, object).reshape(a.shape)
    return wrap(wrapped, a.dtype)


def wrap(x, dtype):
    bits = dtype.itemsize * 8
    mask = (1 << bits) - 1
    flat = [int(v) & mask for v in x.ravel()]
    if dtype.kind == "i":
        flat = [v - (1 << bits) if v >> (bits - 1) else v for v in flat]
    return np.array(flat, object).astype(dtype).reshape(x.shape)


def floor_divide(a, b):
    """Of integers; complex quotients are not rounded."""
    if np.iscomplexobj(a):
        return np.divide(wide(a), wide(b))
    q = [int(x) // int(y) for x, y in zip(a.ravel(), b.ravel())]
    return wrap(np.array(q, object).reshape(a.shape), a.dtype)


def remainder(a, b):
    """The divisor's sign, but a zero has that of the dividend."""
    if a.dtype.kind != "f":
        return np.mod(a, b)
    r = np.fmod(a, b)
    return np.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


# name: rule, reference, domain, tolerance, dtypes
ARITHMETIC = [t for t in ALL if t != "bool"]
BINARY = {
    "add": ("same", np.add, ANY, EXACT, ARITHMETIC),
    "subtract": ("same", np.subtract, ANY, EXACT, ARITHMETIC),
    "multiply": ("same", np.multiply, ANY, EXACT, ARITHMETIC),
    "divide": ("float", np.divide, ANY, DIVISION, ALL),
    "floor_divide": ("same", floor_divide, (-50, 50, "none"), EXACT, INTS + FLOATS + ["complex64"]),
    "remainder": ("same", remainder, (-50, 50, "none"), CLOSE, INTS + FLOATS),
    "power": ("same", np.power, (-3, 3, "none"), CLOSE, INTS + FLOATS),
    "maximum": ("same", np.maximum, ANY, EXACT, REAL),
    "minimum": ("same", np.minimum, ANY, EXACT, REAL),
    "arctan2": ("float", np.arctan2, (-10, 10, "finite"), CLOSE, REAL),
    "logaddexp": ("float", np.logaddexp, (-20, 20, "finite"), CLOSE, REAL),
    "equal": ("bool", np.equal, (-3, 3, "all"), EXACT, ALL),
    "not_equal": ("bool", np.not_equal, (-3, 3, "all"), EXACT, ALL),
    "greater": ("bool", np.greater, (-3, 3, "all"), EXACT, ALL),
    "greater_equal": ("bool", np.greater_equal, (-3, 3, "all"), EXACT, ALL),
    "less": ("bool", np.less, (-3, 3, "all"), EXACT, ALL),
    "less_equal": ("bool", np.less_equal, (-3, 3, "all"), EXACT, ALL),
    "logical_and": ("logical", np.logical_and, (-1, 1, "all"), EXACT, ALL),
    "logical_or": ("logical", np.logical_or, (-1, 1, "all"), EXACT, ALL),
    "bitwise_and": ("same", np.bitwise_and, ANY, EXACT, ["bool"] + INTS),
    "bitwise_or": ("same", np.bitwise_or, ANY, EXACT, ["bool"] + INTS),
    "bitwise_xor": ("same", np.bitwise_xor, ANY, EXACT, ["bool"] + INTS),
    "left_shift": ("same", np.left_shift, (0, 7, "none"), EXACT, INTS),
    "right_shift": ("same", np.right_shift, (0, 7, "none"), EXACT, INTS),
}
COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")


def binary_result(name, x, y, dtype):
    """x and y are of the promoted dtype."""
    rule, ref, _, _, _ = BINARY[name]
    with np.errstate(all="ignore"):
        if rule in ("bool", "logical"):
            return ref(x, y), "bool"
        if rule == "float":
            out = at_least_float(dtype)
            return cast(ref(wide(cast(x, out)), wide(cast(y, out))), out), out
        if name == "power":
            if dtype in INTS:
                return c_power(x, y), dtype
            return cast(ref(wide(x), wide(y)), dtype), dtype
        if name == "floor_divide" and is_float(dtype):  # two steps, each rounded
            return cast(np.floor(cast(x / y, dtype)), dtype), dtype
        if name == "remainder" and dtype in ("float16", "bfloat16"):
            x, y = x.astype(np.float32), y.astype(np.float32)
        return cast(ref(x, y), dtype), dtype


def binary_row(name, a, b):
    dtype = promote(a.dtype, b.dtype)
    x, y = cast(a.values, dtype), cast(b.values, dtype)
    tolerance = BINARY[name][3]
    if dtype == "complex64" and name in ("multiply", "divide", "floor_divide"):
        tolerance = CLOSE
    # Near zero the logarithm is a difference of two numbers of about 1.
    scale = 1 if name == "logaddexp" else 0
    return Row(name, [a, b], [binary_result(name, x, y, dtype)], tolerance=tolerance, scale=scale)


def fit_second(name, y, dtype):
    """Keeps the second operand where the result is defined."""
    if name in ("floor_divide", "remainder"):
        return np.where(y == 0, np.array(3, y.dtype), y)
    if name == "power" and dtype in INTS:
        return np.abs(y)
    return y


def binary_values(rng, name, dtype, domain):
    x, y = values(rng, dtype, domain), values(rng, dtype, domain)
    if name in COMPARISONS and dtype in FLOATS:  # subnormals may count as zero on a device
        x = np.where(np.abs(x) < NORMAL[dtype], np.array(0, x.dtype), x)
        y = np.where(np.abs(y) < NORMAL[dtype], np.array(0, y.dtype), y)
    if name == "power" and dtype in FLOATS:
        x = np.abs(x)
    y = fit_second(name, rng.permutation(y), dtype)
    y[::6] = fit_second(name, x[::6], dtype)  # some equal pairs
    if name.endswith("_shift"):
        x = values(rng, dtype, (-100, 100, "finite"))
        y = (np.abs(y.astype(np.int64)) % (8 * y.dtype.itemsize)).astype(y.dtype)
    return x, y


LAYOUT_PAIRS = [("transposed", "row"), ("row", "transposed"), ("transposed", "transposed"),
                ("sliced", "reversed"), ("broadcast", "row"), ("offset", "column"),
                ("broadcast", "transposed")]
SHAPE_PAIRS = [((), ()), ((), (5, 7)), ((5, 7), ()), ((1,), (5, 7)), ((5, 1), (1, 7)),
               ((7,), (5, 7)), ((3, 1, 5), (4, 1)), ((0, 4), (4,)), ((0,), (1,)), ((5003,), (5003,)),
               ((41, 127), (127,))]
MIXED = [("float32", "int32"), ("float16", "bfloat16"), ("uint8", "int8"), ("uint32", "int32"),
         ("uint64", "int64"), ("bool", "int16"), ("float16", "int64"), ("complex64", "float32"),
         ("bool", "float32"), ("int8", "complex64")]


def binary_rows(rng):
    for name, (_, _, domain, _, dtypes) in BINARY.items():
        for dtype in dtypes:
            x, y = binary_values(rng, name, dtype, domain)
            yield binary_row(name, Arr(x, dtype), Arr(y, dtype))
        main = primary(dtypes)
        base = (0, 3, "none") if name == "power" else domain

        def operand(shape, second, dtype=main, base=base, name=name):
            v = grid(rng, dtype, base, shape)
            return fit_second(name, v, dtype) if second else v
        for la, lb in LAYOUT_PAIRS:
            yield binary_row(name, laid_out(operand((5, 7), False), main, la),
                             laid_out(operand((5, 7), True), main, lb))
        for sa, sb in SHAPE_PAIRS:
            yield binary_row(name, Arr(operand(sa, False), main), Arr(operand(sb, True), main))
        for i, dtype in enumerate(t for t in OTHER_WIDTHS if t in dtypes):
            yield binary_row(name, laid_out(operand((5, 7), False, dtype), dtype, VIEWS[i]),
                             laid_out(operand((5, 7), True, dtype), dtype, VIEWS[(i + 1) % 6]))
        for ta, tb in MIXED:
            if ta in dtypes and tb in dtypes and promote(ta, tb) in dtypes:
                small = (0, 2, "none")
                x = grid(rng, ta, small, (4, 5))
                y = fit_second(name, grid(rng, tb, small, (4, 5)), tb)
                yield binary_row(name, Arr(x, ta), Arr(y, tb))


def bool_rows(rng):
    """Arithmetic of two bools stays bool: any result but zero is true."""
    x, y = rng.integers(0, 2, (2, 40)).astype(bool)
    for name, ref in (("add", np.add), ("multiply", np.multiply), ("subtract", np.subtract)):
        r = ref(x.astype(np.int64), y.astype(np.int64)) != 0
        yield Row(name, [Arr(x, "bool"), Arr(y, "bool")], [(r, "bool")], tolerance=EXACT)


def divmod_rows(rng):
    for dtype in INTS + FLOATS:
        x = grid(rng, dtype, (-50, 50, "none"), (6, 7))
        y = fit_second("remainder", grid(rng, dtype, (-9, 9, "none"), (6, 7)), dtype)
        for la, lb in (("row", "row"), ("transposed", "row"), ("sliced", "reversed")):
            a, b = laid_out(x, dtype, la), laid_out(y, dtype, lb)
            yield divmod_row(a, b)
    yield Row("divmod", [Arr(np.int32([7, -7]), "int32"), Arr(np.int32(2), "int32")],
              [(np.int32([3, -4]), "int32"), (np.int32([1, 1]), "int32")])
    for dtype in FLOATS:  # quotients that lie close to whole numbers, and what has no remainder
        x, y = cast(rng.integers(-900, 900, (40, 7)) / 10, dtype), cast([[0.1], [-0.3], [3], [7]] * 10,
                                                                       dtype)
        yield divmod_row(Arr(x, dtype), Arr(y, dtype))
        edges = [0.0, -0.0, 1, -1, 6, -6, 7, np.inf, -np.inf, np.nan]
        a, b = (cast(v, dtype).reshape(-1) for v in np.meshgrid(edges, [2.0, -2.0, 3, 1, -1, np.inf,
                                                                        -np.inf]))
        with np.errstate(all="ignore"):
            yield Row("remainder", [Arr(a, dtype), Arr(b, dtype)],
                      [(cast(remainder(a, b), dtype), dtype)], tolerance=BITS)


def divmod_row(a, b):
    with np.errstate(all="ignore"):
        return Row("divmod", [a, b], [binary_result(name, a.values, b.values, a.dtype)
                                      for name in ("floor_divide", "remainder")])


# ---- ternary and tests of closeness ----

def where_rows(rng):
    for dtype in ALL:
        c = rng.integers(0, 2, COUNT).astype(bool)
        x, y = values(rng, dtype, ANY), values(rng, dtype, ANY)
        yield Row("where", [Arr(c, "bool"), Arr(x, dtype), Arr(y, dtype)],
                  [(np.where(c, x, y), dtype)], tolerance=BITS)
    shapes = [((5, 7), (5, 7), (5, 7)), ((5, 1), (7,), ()), ((), (5, 7), (5, 7)), ((0, 4), (4,), ()),
              ((7,), (5, 1), (5, 7))]
    for sc, sx, sy in shapes:
        c = rng.integers(0, 2, sc).astype(bool)
        x, y = grid(rng, "float32", ANY, sx), grid(rng, "float32", ANY, sy)
        yield Row("where", [Arr(c, "bool"), Arr(x, "float32"), Arr(y, "float32")],
                  [(np.where(c, x, y), "float32")], tolerance=BITS)
    for lc, lx, ly in (("transposed", "row", "sliced"), ("sliced", "reversed", "row"),
                       ("row", "broadcast", "transposed"), ("transposed",) * 3):
        c = laid_out(rng.integers(0, 2, (5, 7)).astype(bool), "bool", lc)
        x = laid_out(grid(rng, "float32", ANY, (5, 7)), "float32", lx)
        y = laid_out(grid(rng, "float32", ANY, (5, 7)), "float32", ly)
        yield Row("where", [c, x, y], [(np.where(c.values, x.values, y.values), "float32")],
                  tolerance=BITS)
    for tc, tx, ty in (("int32", "float32", "int32"), ("float32", "uint8", "int8")):
        c = grid(rng, tc, (-1, 1, "none"), (9,))
        x, y = grid(rng, tx, (0, 9, "none"), (9,)), grid(rng, ty, (0, 9, "none"), (9,))
        out = promote(tx, ty)
        yield Row("where", [Arr(c, tc), Arr(x, tx), Arr(y, ty)],
                  [(np.where(c != 0, cast(x, out), cast(y, out)), out)], tolerance=BITS)


def clip_rows(rng):
    for dtype in INTS + FLOATS:
        x = values(rng, dtype, ANY)
        low, high = cast(np.float64(2), dtype), cast(np.float64(5), dtype)
        for use_low, use_high in ((1, 1), (1, 0), (0, 1)):
            r = np.maximum(x, low) if use_low else x
            r = np.minimum(r, high) if use_high else r
            yield Row("clip", [Arr(x, dtype), Arr(low, dtype) if use_low else None,
                               Arr(high, dtype) if use_high else None], [(cast(r, dtype), dtype)],
                      tolerance=EXACT)
    a = laid_out(grid(rng, "float32", ANY, (5, 7)), "float32", "transposed")
    low, high = np.float32([[-1], [0], [1], [2], [-3]]), np.float32(3)
    yield Row("clip", [a, Arr(low, "float32"), Arr(high, "float32")],
              [(np.minimum(np.maximum(a.values, low), high), "float32")], tolerance=EXACT)


def isclose_rows(rng):
    x = np.float32([1, 1, np.nan, np.inf, np.inf, -np.inf, 0, 1e-9, 100, 1e10])
    y = np.float32([1, 1.00002, np.nan, np.inf, -np.inf, -np.inf, 1e-9, 0, 100.001, 1.00001e10])
    for equal_nan in (0, 1):
        r = np.isclose(x, y, 1e-5, 1e-8, bool(equal_nan))
        yield Row("isclose", [Arr(x, "float32"), Arr(y, "float32")], [(r, "bool")],
                  [1e-5, 1e-8, equal_nan], EXACT)
        yield Row("allclose", [Arr(x, "float32"), Arr(y, "float32")], [(np.bool_(r.all()), "bool")],
                  [1e-5, 1e-8, equal_nan], EXACT)
        yield Row("array_equal", [Arr(x, "float32"), Arr(x, "float32")],
                  [(np.bool_(equal_nan), "bool")], [equal_nan], EXACT)
    a = laid_out(grid(rng, "float32", ANY, (6, 5)), "float32", "transposed")
    b = Arr(a.values * np.float32(1 + 1e-6), "float32")
    yield Row("allclose", [a, b], [(np.bool_(True), "bool")], [1e-4, 1e-8, 0], EXACT)
    yield Row("isclose", [a, Arr(a.values[0], "float32")],
              [(np.isclose(a.values, a.values[0]), "bool")], [1e-5, 1e-8, 0], EXACT)
    i = np.int32([1, 2, 3])
    for other, equal in ((i, True), (np.int32([1, 2, 4]), False), (np.int32([1, 2]), False),
                         (np.float32([1, 2, 3]), True)):
        dtype = str(other.dtype)
        yield Row("array_equal", [Arr(i, "int32"), Arr(other, dtype)], [(np.bool_(equal), "bool")],
                  [0], EXACT)


def many_dims_rows(rng):
    for dtype in ("float32", "uint8"):
        for shape, layout in (((2, 3, 2, 3, 2), "transposed"), ((2, 1, 3, 2, 1, 4), "sliced"),
                              ((2, 2, 2, 2, 2, 2, 2, 2), "reversed")):
            a = laid_out(grid(rng, dtype, (0, 9, "none"), shape), dtype, layout)
            b = Arr(grid(rng, dtype, (0, 9, "none"), shape[-3:]), dtype)
            yield unary_row("square", a)
            yield binary_row("add", a, b)


def large_rows(rng):
    """Of small elements, to keep the table small."""
    a = Arr(grid(rng, "uint8", (0, 90, "none"), LARGE), "uint8")
    b = laid_out(grid(rng, "uint8", (0, 90, "none"), LARGE), "uint8", "transposed")
    yield binary_row("add", a, b)
    yield unary_row("exp", Arr(grid(rng, "float16", ANY, LARGE), "float16"))
    yield unary_row("negative", laid_out(grid(rng, "int8", ANY, LARGE), "int8", "reversed"))
    yield Row("astype", [a], [(cast(a.values, "float16"), "float16")], [DtypeParam("float16")],
              EXACT)


def rows(rng):
    """(family, rows) pairs."""
    return [("large", [*many_dims_rows(rng), *large_rows(rng)]),
            ("unary", [*unary_rows(rng), *large_angles(rng), *zero_rows(), *round_rows(rng),
                       *nan_to_num_rows(rng)]),
            ("cast", [*astype_rows(rng), *view_rows(rng), *fp8_rows(rng)]),
            ("binary", [*binary_rows(rng), *bool_rows(rng), *divmod_rows(rng)]),
            ("ternary", [*where_rows(rng), *clip_rows(rng), *isclose_rows(rng)])]
