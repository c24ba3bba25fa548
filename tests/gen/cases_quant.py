"""Rows of quantized matrices: packing, unpacking, products."""

import numpy as np

from case_table import CLOSE, EXACT, Arr, DtypeParam, Row, cast, laid_out, promote, repeated
from cases_shape import LAYOUTS

TYPES = ["float32", "float16", "bfloat16"]
FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
FP_MODES = [("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]
AFFINE = [(bits, group) for bits in (1, 2, 3, 4, 5, 6, 8) for group in (32, 64, 128)]

# ---- the formats, in NumPy ----


def f32(x, dtype="float32"):
    """x rounded to a dtype, as float32."""
    return cast(np.asarray(x, np.float32), dtype).astype(np.float32)


def pack(codes, bits):
    """Little-endian bit stream of the last axis, as uint32 words."""
    bit = (codes[..., None].astype(np.uint64) >> np.arange(bits, dtype=np.uint64)) & 1
    bit = bit.reshape(codes.shape[:-1] + (-1, 32))
    return (bit << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32)


def unpack(words, bits):
    bit = (words[..., None] >> np.arange(32, dtype=np.uint32)) & 1
    bit = bit.reshape(words.shape[:-1] + (-1, bits))
    return (bit << np.arange(bits, dtype=np.uint32)).sum(-1)


def fp8_decode(codes):
    codes = np.asarray(codes, np.int64)
    e, m = codes >> 3 & 15, codes & 7
    v = np.where(e == 0, m * 2.0 ** -9, (1 + m / 8) * 2.0 ** (e - 7.0))
    return np.where(codes & 128, -v, v).astype(np.float32)


FP8 = fp8_decode(np.arange(127))


def fp8_encode(x):
    """Nearest of the 127 magnitudes, of two as near the even code."""
    magnitude = np.minimum(np.abs(np.asarray(x, np.float64)), 448.0)
    high = np.clip(np.searchsorted(FP8, magnitude), 0, 126)
    low = np.maximum(high - 1, 0)
    below, above = magnitude - FP8[low], FP8[high] - magnitude
    code = np.where((below < above) | ((below == above) & (low % 2 == 0)), low, high)
    return (code | np.where(np.signbit(x), 128, 0)).astype(np.uint8)


def quantize_affine(w, dtype, group, bits):
    if not w.size:
        none = np.zeros(w.shape[:-1] + (w.shape[-1] // group,), np.float32)
        return np.zeros(w.shape[:-1] + (w.shape[-1] * bits // 32,), np.uint32), none, none
    g = w.astype(np.float32).reshape(w.shape[:-1] + (-1, group))
    n, one = np.float32(2 ** bits - 1), np.float32(1)
    low = np.fmin.reduce(g, -1, initial=np.inf)
    high = np.fmax.reduce(g, -1, initial=-np.inf)
    if bits == 1:
        scale, bias = np.maximum(high - low, np.float32(1e-7)), low
    else:
        from_low = np.abs(low) > np.abs(high)
        scale = np.maximum((high - low) / n, np.float32(1e-7)) * np.where(from_low, one, -one)
        edge = np.where(from_low, low, high)
        q0 = np.rint(edge / scale)
        scale = np.where(q0 != 0, edge / np.where(q0 == 0, one, q0), scale)
        bias = np.where(q0 != 0, edge, np.float32(0))
    codes = np.nan_to_num(np.clip(np.rint((g - bias[..., None]) / scale[..., None]), 0, n))
    return pack(codes.reshape(w.shape), bits), cast(scale, dtype), cast(bias, dtype)


def nearest_fp4(x, dtype):
    distance = np.abs(f32(x[..., None] - FP4.astype(np.float32), dtype))
    return np.argmin(np.where(np.isnan(distance), np.inf, distance), -1)


def quantize_fp(w, dtype, mode, group, bits, global_scale):
    """A group with an infinity or a NaN has the largest scale there is, and these are the largest
    numbers of their sign; a NaN is positive."""
    whole = w.astype(np.float32).reshape(w.shape[:-1] + (-1, group))
    odd = ~np.isfinite(whole)
    g = np.where(odd, np.float32(0), whole)
    bad = odd.any(-1)
    scale = f32(np.abs(g).max(-1) / np.float32(6 if bits == 4 else 448), dtype)
    with np.errstate(all="ignore"):
        if mode == "nvfp4":
            factor = np.float32(1 if global_scale is None else np.float32(2688) / global_scale)
            code = np.where(bad, 0x7e, fp8_encode(scale * factor)).astype(np.uint8)
            g = f32(g / f32(fp8_decode(code), dtype)[..., None], dtype) * factor
            codes = nearest_fp4(g, "float32")
        else:
            m, e = np.frexp(scale)
            e = np.where(scale == 0, 0, np.where(m == 0.5, e - 1, e))
            e = np.where(bad, 128, e)
            code = (e + 127).astype(np.uint8)
            g = f32(g / f32(2.0 ** e.astype(np.float64), dtype)[..., None], dtype)
            codes = nearest_fp4(g, dtype) if bits == 4 else fp8_encode(g)
    most = np.where(whole < 0, *((15, 7) if bits == 4 else (0xfe, 0x7e)))
    codes = np.where(odd, most, codes)
    return pack(codes.reshape(w.shape), bits), code


def values_of(words, mode, bits):
    codes = unpack(words, bits)
    if mode == "affine":
        return codes.astype(np.float32)
    return fp8_decode(codes) if mode == "mxfp8" else FP4[codes].astype(np.float32)


def scale_of(code, mode):
    return fp8_decode(code) if mode == "nvfp4" else (2.0 ** (code.astype(np.float64) - 127))


def dequantize(words, scales, biases, mode, group, bits, dtype, global_scale=None):
    """Every step rounded to the dtype."""
    v = values_of(words, mode, bits).reshape(words.shape[:-1] + (-1, group))
    if mode == "affine":
        r = f32(f32(v * scales[..., None].astype(np.float32), dtype) +
                biases[..., None].astype(np.float32), dtype)
    else:
        s = f32(scale_of(scales, mode), dtype)
        if global_scale is not None:
            s = s * (global_scale / np.float32(2688))
        r = f32(v * s[..., None], dtype)
    return cast(r.reshape(words.shape[:-1] + (-1,)), dtype)


def exact_weights(words, scales, biases, mode, group, bits):
    v = values_of(words, mode, bits).astype(np.float64).reshape(words.shape[:-1] + (-1, group))
    if mode == "affine":
        v = v * scales[..., None].astype(np.float64) + biases[..., None].astype(np.float64)
    else:
        v = v * scale_of(scales, mode).astype(np.float64)[..., None]
    return v.reshape(words.shape[:-1] + (-1,))


# ---- rows ----


def numbers(rng, shape, dtype):
    """Groups of different size and place, a constant one, an all-negative one, zeros."""
    w = rng.normal(0, 1, shape) * np.exp(rng.normal(0, 1, shape[:-1] + (1,)))
    w[..., :32] -= 3
    w.reshape(-1, shape[-1])[0] = 0
    if w.size > 2 * shape[-1]:
        w.reshape(-1, shape[-1])[1] = 0.37
    return cast(w, dtype)


def beyond_numbers(rng, dtype):
    """Groups with infinities and NaN of both signs, alone and together, and one without."""
    w = rng.normal(0, 1, (8, 128))
    w[0, 5], w[1, 5], w[2, 5], w[3, 5] = np.nan, np.inf, -np.inf, -np.nan
    w[4, [5, 9]], w[5, [5, 9]], w[6] = [np.inf, np.nan], [np.nan, -np.inf], np.nan
    w[7, 100:] = np.inf
    return cast(w, dtype)


def quantize_row(x, mode, group, bits, global_scale=None, by_default=False):
    if mode == "affine":
        parts = quantize_affine(x.values, x.dtype, group, bits)
        out = list(zip(parts, ("uint32", x.dtype, x.dtype)))
    else:
        parts = quantize_fp(x.values, x.dtype, mode, group, bits, global_scale)
        out = list(zip(parts, ("uint32", "uint8")))
    scale = None if global_scale is None else Arr(global_scale, "float32")
    sizes = [0, 0] if by_default else [group, bits]
    return Row("quantize", [x, scale], out, [*sizes, mode], EXACT)


def quantize_rows(rng):
    for dtype in TYPES:
        x = Arr(numbers(rng, (6, 256), dtype), dtype)
        for bits, group in AFFINE:
            yield quantize_row(x, "affine", group, bits)
        yield quantize_row(x, "affine", 64, 4, by_default=True)
        for mode, group, bits in FP_MODES:
            yield quantize_row(x, mode, group, bits, by_default=dtype == "float32")
        yield quantize_row(x, "nvfp4", 16, 4, np.float32(37.5))
        odd = Arr(beyond_numbers(rng, dtype), dtype)
        for mode, group, bits in FP_MODES:
            yield quantize_row(odd, mode, group, bits)
        yield quantize_row(odd, "nvfp4", 16, 4, np.float32(37.5))
        with np.errstate(all="ignore"):
            for bits in (1, 4):
                yield quantize_row(odd, "affine", 32, bits)
    for layout in LAYOUTS:
        x = laid_out(numbers(rng, (3, 2, 96), "float32"), "float32", layout)
        yield quantize_row(x, "affine", 32, 5)
        yield quantize_row(x, "mxfp4", 32, 4)
    yield quantize_row(Arr(np.zeros((0, 64), np.float32), "float32"), "affine", 64, 4)
    yield quantize_row(Arr(np.zeros((3, 0), np.float32), "float32"), "affine", 64, 4)


def packed(rng, shape, dtype, mode, group, bits):
    """words, scales, biases of random numbers."""
    w = cast(repeated(lambda n: rng.normal(0, 1, n), shape, 65 * group), dtype)
    if mode == "affine":
        return quantize_affine(w, dtype, group, bits)
    return quantize_fp(w, dtype, mode, group, bits, None) + (None,)


def inputs_of(parts, dtype, mode, layouts=("row", "row", "row")):
    words, scales, biases = parts
    return [Arr(words, "uint32", layouts[0]),
            Arr(scales, dtype if mode == "affine" else "uint8", layouts[1]),
            None if biases is None else Arr(biases, dtype, layouts[2])]


def dequantize_row(parts, dtype, mode, group, bits, out, layout="row", global_scale=None):
    inputs = inputs_of(parts, dtype, mode, [layout] * 3)
    inputs.append(None if global_scale is None else Arr(global_scale, "float32"))
    made = dtype if mode == "affine" else out or "bfloat16"
    want = dequantize(*parts, mode, group, bits, made, global_scale)
    want = cast(want, out or made)
    return Row("dequantize", inputs, [(want, out or made)],
               [group, bits, mode, -1 if out is None else DtypeParam(out)],
               EXACT if global_scale is None else CLOSE)


def dequantize_rows(rng):
    for dtype in TYPES:
        for bits, group in AFFINE:
            parts = packed(rng, (5, 128), dtype, "affine", group, bits)
            yield dequantize_row(parts, dtype, "affine", group, bits, None)
        parts = packed(rng, (2, 3, 64), dtype, "affine", 64, 4)
        for out in TYPES:
            yield dequantize_row(parts, dtype, "affine", 64, 4, out)
        for mode, group, bits in FP_MODES:
            parts = packed(rng, (3, 64), dtype, mode, group, bits)
            yield dequantize_row(parts, dtype, mode, group, bits, dtype)
            yield dequantize_row(parts, dtype, mode, group, bits, None)
    for layout in LAYOUTS:
        if layout != "broadcast":
            parts = packed(rng, (3, 2, 96), "float32", "affine", 32, 6)
            yield dequantize_row(parts, "float32", "affine", 32, 6, None, layout)
    parts = packed(rng, (3, 64), "float32", "nvfp4", 16, 4)
    yield dequantize_row(parts, "float32", "nvfp4", 16, 4, "float32", "row", np.float32(37.5))


class Matrix:
    """A packed matrix with its exact numbers."""

    def __init__(self, rng, shape, dtype, how, layouts=("row", "row", "row")):
        self.mode, self.group, self.bits = how
        parts = packed(rng, shape, dtype, *how)
        self.inputs = inputs_of(parts, dtype, self.mode, layouts)
        self.exact = exact_weights(*parts, *how)
        self.dtype = dtype


def product_row(x, m, transpose, fn="quantized_matmul", indices=None, is_sorted=False):
    w = np.swapaxes(m.exact, -1, -2) if transpose else m.exact
    a = x.values.astype(np.float64)
    if x.values.ndim <= 2 < w.ndim:
        w = w.reshape((-1,) + w.shape[-2:])[0]
    if indices:
        left, right = np.broadcast_arrays(*(i.values for i in default_numbers(indices, a, w)))
        a = a.reshape((-1,) + a.shape[-2:])[left]
        w = w.reshape((-1,) + w.shape[-2:])[right]
    out = promote(x.dtype, m.dtype) if m.mode == "affine" else x.dtype
    scale = float((np.abs(a) @ np.abs(w)).max()) if a.size and w.size else 0.0
    params = [int(transpose), m.group, m.bits, m.mode]
    inputs = [x] + m.inputs
    if indices:
        inputs, params = inputs + list(indices), params + [int(is_sorted)]
    return Row(fn, inputs, [(cast(a @ w, out), out)], params, scale=scale)


def default_numbers(indices, a, w):
    for given, operand in zip(indices, (a, w)):
        batch = operand.shape[:-2]
        yield given or Arr(np.arange(int(np.prod(batch)), dtype=np.uint32).reshape(batch), "uint32")


def numbers_x(rng, shape, dtype, layout="row"):
    return laid_out(cast(repeated(lambda n: rng.normal(0, 1, n), shape), dtype), dtype, layout)


def all_formats():
    return [("affine", group, bits) for bits, group in AFFINE] + FP_MODES


def product_rows(rng):
    for n, how in enumerate(all_formats()):
        for transpose in (True, False):
            for rows in (1, 3):
                dtype = TYPES[(n + rows // 2 + transpose) % 3]
                m = Matrix(rng, (64, 256) if transpose else (96, 128), dtype, how)
                k = 256 if transpose else 96
                yield product_row(numbers_x(rng, (rows, k), dtype), m, transpose)
    for dtype in TYPES:
        for rows in (2, 4, 5, 8, 9, 16, 17, 33, 70):
            for transpose in (True, False):
                m = Matrix(rng, (160, 192), dtype, ("affine", 64, 4))
                x = numbers_x(rng, (rows, 192 if transpose else 160), dtype)
                yield product_row(x, m, transpose)
    for transpose in (True, False):
        m = Matrix(rng, (96, 128), "float16", ("affine", 32, 6))
        yield product_row(numbers_x(rng, (2, 70, 128 if transpose else 96), "float16"), m, transpose)
        m = Matrix(rng, (96, 128), "float32", ("nvfp4", 16, 4))
        yield product_row(numbers_x(rng, (133, 128 if transpose else 96), "float32", "sliced"), m,
                          transpose)
    for shape in ((1, 32), (7, 96), (33, 1120), (300, 2048), (5, 4160), (1000, 64)):
        for how in (("affine", 32, 4), ("affine", 32, 3), ("mxfp4", 32, 4)):
            m = Matrix(rng, shape, "bfloat16", how)
            yield product_row(numbers_x(rng, (shape[1],), "bfloat16"), m, True)
            yield product_row(numbers_x(rng, (2, shape[1]), "bfloat16"), m, True)
            yield product_row(numbers_x(rng, (shape[0],), "bfloat16"), m, False)
    m = Matrix(rng, (64, 128), "float16", ("affine", 64, 4))
    yield product_row(numbers_x(rng, (3, 128), "float32"), m, True)
    yield product_row(numbers_x(rng, (3, 128), "bfloat16"), m, True)
    yield product_row(numbers_x(rng, (0, 128), "float16"), m, True)


def layout_rows(rng):
    how = ("affine", 32, 4)
    for layout in LAYOUTS:
        for transpose in (True, False):
            m = Matrix(rng, (64, 64), "float32", how)
            yield product_row(numbers_x(rng, (3, 2, 64), "float32", layout), m, transpose)
            yield product_row(numbers_x(rng, (5, 64), "float16", layout), m, transpose)
            if layout != "broadcast":
                m = Matrix(rng, (64, 64), "float32", how, [layout] * 3)
                yield product_row(numbers_x(rng, (3, 64), "float32"), m, transpose)
    # batches: of x, of w, of both, broadcast either way
    for x, w in (((4, 3, 64), (64, 64)), ((4, 3, 64), (4, 64, 64)), ((2, 4, 3, 64), (4, 64, 64)),
                 ((2, 4, 1, 64), (2, 1, 64, 64)), ((4, 3, 64), (1, 64, 64)), ((1, 3, 64), (5, 64, 64)),
                 ((3, 64), (2, 64, 64)), ((64,), (2, 64, 64)), ((2, 2, 1, 64), (2, 2, 64, 64))):
        for transpose in (True, False):
            m = Matrix(rng, w, "bfloat16", how)
            yield product_row(numbers_x(rng, x, "bfloat16"), m, transpose)
    m = Matrix(rng, (3, 64, 64), "float32", ("affine", 64, 4))
    yield product_row(numbers_x(rng, (3, 5, 64), "float32", "transposed"), m, True)
    m = Matrix(rng, (3, 64, 64), "float32", ("mxfp8", 32, 8), ["sliced"] * 3)
    yield product_row(numbers_x(rng, (3, 5, 64), "float32", "sliced"), m, True)


def index_array(values, dtype="uint32", layout="row"):
    return laid_out(np.array(values, dtype), dtype, layout)


def gather_rows(rng):
    def row(x, m, transpose, left, right, is_sorted=False):
        return product_row(x, m, transpose, "gather_qmm", (left, right), is_sorted)

    for n, how in enumerate((("affine", 64, 4), ("affine", 32, 3), ("affine", 32, 8), *FP_MODES)):
        for transpose in (True, False):
            for dtype in (TYPES[n % 3], TYPES[(n + 1 + transpose) % 3]):
                m = Matrix(rng, (5, 64, 64), dtype, how)
                x = numbers_x(rng, (3, 2, 64), dtype)
                yield row(x, m, transpose, index_array([2, 0, 1, 1]), index_array([4, 4, 0, 2]))
    m = Matrix(rng, (5, 96, 64), "bfloat16", ("affine", 64, 4))
    x = numbers_x(rng, (7, 1, 1, 64), "bfloat16")  # one row for each pair, as mixtures have it
    yield row(x, m, True, None, index_array(rng.integers(0, 5, (7, 2))))
    yield row(x, m, True, index_array([[0], [6], [3]]), index_array([0, 1, 1, 4], "int32"), True)
    x = numbers_x(rng, (12, 1, 64), "bfloat16")
    yield row(x, m, True, None, index_array([0, 0, 0, 1, 1, 1, 1, 3, 3, 4, 4, 4]), True)
    yield row(numbers_x(rng, (5, 3, 64), "bfloat16"), m, True, index_array([4, 1, 1, 0, 2]), None)
    for layout in LAYOUTS:
        x = numbers_x(rng, (2, 2, 3, 64), "float32", layout)
        layouts = ["row" if layout == "broadcast" else layout] * 3
        m = Matrix(rng, (3, 64, 64), "float32", ("affine", 64, 4), layouts)
        yield row(x, m, True, index_array([3, 0], layout=layout), index_array([0, 2], layout=layout))
    yield row(numbers_x(rng, (2, 40, 64), "float16"), m, False, index_array([1, 0]),
              index_array([[0], [2]]))


# ---- both quantized ----

def quantized_values(x, dtype, how, global_scale):
    """What x stands for after packing, in float64."""
    words, scales = quantize_fp(x, dtype, *how, global_scale)
    v = exact_weights(words, scales, None, *how)
    return v if global_scale is None else v * (float(global_scale) / 2688)


def qqmm_row(x, w, how, is_packed, scales=(None, None), indices=None):
    """scales: of x and w as a whole; indices: of both, or None."""
    mode, group, bits = how
    a = quantized_values(x.values, x.dtype, how, scales[0])
    b = np.swapaxes(quantized_values(w.values, w.dtype, how, scales[1]), -1, -2)
    inputs = [x, w, None]
    if is_packed:
        words, codes = quantize_fp(w.values, w.dtype, *how, scales[1])
        inputs = [x, Arr(words, "uint32"), Arr(codes, "uint8")]
    whole = [None if v is None else Arr(np.float32(v), "float32") for v in scales]
    if indices:
        left, right = np.broadcast_arrays(*(i.values for i in indices))
        a, b = a.reshape((-1,) + a.shape[-2:])[left], b.reshape((-1,) + b.shape[-2:])[right]
        inputs += list(indices) + [None]
    else:
        inputs += whole
    scale = float((np.abs(a) @ np.abs(b)).max())
    return Row("gather_qqmm" if indices else "qqmm", inputs, [(cast(a @ b, x.dtype), x.dtype)],
               [group, bits, mode], scale=scale)


def qqmm_rows(rng):
    for how in FP_MODES:
        for dtype in TYPES:
            for is_packed in (True, False):
                for shape in ((1, 64), (64,), (7, 96), (2, 3, 64), (130, 128)):
                    w = numbers_x(rng, (24, shape[-1]), dtype)
                    yield qqmm_row(numbers_x(rng, shape, dtype), w, how, is_packed)
        for layout in ("transposed", "sliced", "reversed", "offset"):
            yield qqmm_row(numbers_x(rng, (6, 64), "float32", layout),
                           numbers_x(rng, (32, 64), "float32", layout), how, False)
        index = [Arr(np.array(v), "int32") for v in ([[0, 1, 1]], [[2], [0]])]
        for is_packed in (True, False):
            yield qqmm_row(numbers_x(rng, (2, 5, 64), "float32"),
                           numbers_x(rng, (3, 16, 64), "float32"), how, is_packed, (None, None), index)
    for dtype in TYPES:
        for is_packed in (True, False):
            x, w = numbers_x(rng, (5, 64), dtype), numbers_x(rng, (16, 64), dtype)
            largest = [np.float32(np.abs(v.values).max()) for v in (x, w)]
            yield qqmm_row(x, w, ("nvfp4", 16, 4), is_packed, largest)


def rows(rng):
    """(family, rows) pairs."""
    return [("quant", [*quantize_rows(rng), *dequantize_rows(rng), *product_rows(rng),
                       *layout_rows(rng), *gather_rows(rng)]),
            ("qqmm", [*qqmm_rows(rng)])]
