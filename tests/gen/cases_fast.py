"""Rows of the fast ops: norms, rotary positions, attention."""

import numpy as np

from case_table import Arr, Row, cast, laid_out, promote, repeated, wide

HALVES = ["float16", "bfloat16"]
TYPES = ["float32"] + HALVES


def sample(rng, dtype, shape):
    return cast(repeated(lambda n: rng.normal(0, 1, n), shape), dtype)


# ---- norms ----


def f32_scale(dtype, out):
    """float64 is computed in float32; half types are rounded after every step."""
    return 3e6 if dtype == "float64" else float(np.max(np.abs(out), initial=0)) * 0.5


def norm_row(x, weight, bias, eps, centred):
    out_type = x.dtype
    if weight is not None:
        out_type = promote(out_type, weight.dtype)
        if bias is not None:
            out_type = promote(out_type, bias.dtype)
    v = wide(x.values)
    if centred:
        v = v - v.mean(-1, keepdims=True) if v.size else v
    with np.errstate(all="ignore"):
        factor = 1 / np.sqrt((v * v).mean(-1, keepdims=True) + np.float32(eps)) if v.size else 1
    out = cast(v * factor, out_type)
    if weight is not None:
        out = cast(wide(out) * wide(cast(weight.values, out_type)), out_type)
    if bias is not None:
        out = cast(wide(out) + wide(cast(bias.values, out_type)), out_type)
    fn, inputs = ("fast_layer_norm", [x, weight, bias]) if centred else ("fast_rms_norm", [x, weight])
    return Row(fn, inputs, [(out, out_type)], [float(eps)], scale=f32_scale(out_type, out))


def norm_rows(rng):
    def row(dtype, shape, layout="row", weight=True, bias=True, eps=1e-5, centred=False):
        x = laid_out(sample(rng, dtype, shape), dtype, layout)
        n = shape[-1:]
        w = Arr(sample(rng, dtype, n), dtype) if weight else None
        b = Arr(sample(rng, dtype, n), dtype) if bias and centred else None
        return norm_row(x, w, b, eps, centred)

    for centred in (False, True):
        for dtype in TYPES + ["float64"]:
            for shape in ((5,), (3, 64), (2, 3, 128), (4, 100), (1, 1024), (7, 33)):
                yield row(dtype, shape, centred=centred)
            yield row(dtype, (3, 40), weight=False, bias=False, centred=centred)
            yield row(dtype, (3, 40), weight=True, bias=False, centred=centred)
            yield row(dtype, (3, 40), weight=False, bias=True, centred=centred)
        for layout in ("transposed", "sliced", "reversed", "offset", "broadcast", "column"):
            for dtype in TYPES:
                yield row(dtype, (3, 4, 48), layout, centred=centred)
        for length in (1, 2, 7, 8, 255, 257, 2048, 4100, 20000):
            yield row("float32", (2, length), centred=centred)
            yield row("bfloat16", (2, length), centred=centred)
        for shape in ((0, 4), (3, 0), (0,)):
            if shape[-1]:
                yield row("float32", shape, centred=centred)
        yield row("float32", (2, 8), eps=1e-2, centred=centred)
    # dtypes of x and weights that differ
    for t, wt in (("float16", "float32"), ("bfloat16", "float16"), ("float32", "bfloat16"),
                  ("bfloat16", "float64")):
        x, w = Arr(sample(rng, t, (3, 24)), t), Arr(sample(rng, wt, (24,)), wt)
        b = Arr(sample(rng, wt, (24,)), wt)
        yield norm_row(x, w, None, 1e-5, False)
        yield norm_row(x, w, b, 1e-5, True)
    # weights that are not dense
    x = Arr(sample(rng, "float32", (3, 24)), "float32")
    for layout in ("sliced", "reversed", "offset"):
        w = laid_out(sample(rng, "float32", (24,)), "float32", layout)
        b = laid_out(sample(rng, "float32", (24,)), "float32", layout)
        yield norm_row(x, w, None, 1e-5, False)
        yield norm_row(x, w, b, 1e-5, True)


# ---- rotary positions ----


def rope_result(x, dims, traditional, base, scale, offset, freqs):
    """Angles in float32, everything else in float64."""
    n = dims // 2
    if freqs is None:
        inv = np.float32(np.float64(base) ** (-np.arange(n) / n))
    else:
        inv = np.float32(1) / np.float32(freqs)
    offset = np.broadcast_to(np.asarray(offset, np.int64).reshape(-1), x.shape[:1])
    t = np.arange(x.shape[-2])[None, :] + offset[:, None]  # (B, T)
    position = np.float32(t) * np.float32(scale)
    angle = wide(position[..., None] * inv)  # (B, T, n)
    angle = angle.reshape(angle.shape[:1] + (1,) * (x.ndim - 3) + angle.shape[1:])
    c, s = np.cos(angle), np.sin(angle)
    out = np.array(wide(x))
    if traditional:
        a, b = wide(x)[..., 0:dims:2], wide(x)[..., 1:dims:2]
        out[..., 0:dims:2], out[..., 1:dims:2] = a * c - b * s, a * s + b * c
    else:
        a, b = wide(x)[..., :n], wide(x)[..., n:dims]
        out[..., :n], out[..., n:dims] = a * c - b * s, a * s + b * c
    return out


def rope_row(x, dims, traditional=0, base=10000.0, scale=1.0, offset=0, freqs=None):
    """offset: an int, or an input."""
    is_array = isinstance(offset, Arr)
    out = rope_result(x.values, dims, traditional, base, scale,
                      offset.values if is_array else offset,
                      None if freqs is None else freqs.values)
    fn = "fast_rope_dynamic" if is_array else "fast_rope"
    inputs = [x] + ([offset] if is_array else []) + [freqs]
    params = [dims, traditional, int(freqs is None), float(base), float(scale)]
    params += [] if is_array else [offset]
    magnitude = 3e6 if x.dtype == "float64" else float(np.max(np.abs(out), initial=0))
    return Row(fn, inputs, [(cast(out, x.dtype), x.dtype)], params, scale=magnitude)


def rope_rows(rng):
    def x(dtype, shape, layout="row"):
        return laid_out(sample(rng, dtype, shape), dtype, layout)

    for dtype in TYPES + ["float64"]:
        for traditional in (0, 1):
            yield rope_row(x(dtype, (1, 4, 5, 64)), 64, traditional, offset=3)
            yield rope_row(x(dtype, (2, 3, 4, 64)), 32, traditional)
            yield rope_row(x(dtype, (2, 3, 10)), 6, traditional, scale=0.5)
            yield rope_row(x(dtype, (1, 2, 3, 80)), 80, traditional, base=500.0, offset=1000)
            yield rope_row(x(dtype, (2, 8, 1, 128), "heads"), 128, traditional, base=1e6, offset=77)
            yield rope_row(x(dtype, (2, 4, 6, 128), "heads"), 128, traditional, offset=-2)
    for layout in ("transposed", "sliced", "reversed", "offset", "column", "heads"):
        for dtype in TYPES:
            yield rope_row(x(dtype, (2, 3, 4, 16), layout), 16, offset=5)
            yield rope_row(x(dtype, (2, 3, 4, 16), layout), 8, 1, offset=5)
    yield rope_row(x("float32", (2, 2, 3, 4, 16), "transposed"), 16)
    yield rope_row(x("float32", (2, 2, 3, 4, 16)), 16, 1)
    yield rope_row(x("float32", (1, 300, 64)), 64)  # more positions than a table of turns holds
    yield rope_row(x("bfloat16", (1, 2, 300, 64)), 64, 1)
    yield rope_row(x("float32", (1, 2, 3, 2)), 2)
    yield rope_row(x("float32", (2, 0, 3, 8)), 8)
    for dtype in TYPES:
        freqs = Arr(np.float32(rng.uniform(1, 100, 32)), "float32")
        yield rope_row(x(dtype, (1, 2, 3, 64)), 64, freqs=freqs, offset=10)
        yield rope_row(x(dtype, (1, 2, 3, 64)), 64, 1, freqs=freqs, offset=10)
        freqs = laid_out(np.float32(rng.uniform(1, 100, 32)), "float32", "reversed")
        yield rope_row(x(dtype, (1, 2, 3, 64)), 64, freqs=freqs, scale=2.0)
        for t, n in (("int32", 2), ("uint32", 2), ("int64", 2), ("uint8", 1), ("int32", 1)):
            offset = Arr(np.arange(4, 4 + 3 * n, 3).astype(t), t)
            yield rope_row(x(dtype, (2, 3, 4, 64)), 64, offset=offset)
        offset = laid_out(np.int32([7, 11]), "int32", "reversed")
        yield rope_row(x(dtype, (2, 3, 4, 64), "heads"), 64, 1, offset=offset)
        offset = Arr(np.int32(9), "int32")
        yield rope_row(x(dtype, (2, 3, 4, 64)), 48, offset=offset, freqs=Arr(
            np.float32(rng.uniform(1, 100, 24)), "float32"))


# ---- attention ----

LOWEST = {"float16": -65504.0, "bfloat16": -3.3895313892515355e38, "float32": -3.4028234663852886e38,
          "float64": -1.7976931348623157e308}


def attention(q, k, v, scale, mask, sinks):
    """mask: None, bool or numbers of shape (B, H, Lq, Lk)."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(wide(k), group, 1), np.repeat(wide(v), group, 1)
    s = scale * wide(q) @ np.swapaxes(k, -1, -2)
    if mask is not None:
        s = np.where(mask, s, -1e300) if mask.dtype == bool else s + wide(mask)
    if sinks is not None:
        column = np.broadcast_to(wide(sinks)[None, :, None, None], s.shape[:3] + (1,))
        s = np.concatenate([column, s], -1)
    if s.shape[-1] == 0:
        return np.zeros(q.shape[:3] + v.shape[-1:])
    p = np.exp(s - s.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    return (p if sinks is None else p[..., 1:]) @ v


def causal(n_q, n_k):
    return np.arange(n_k)[None, :] <= np.arange(n_q)[:, None] + n_k - n_q


def sdpa_row(q, k, v, mode="", mask=None, sinks=None, scale=None):
    scale = float(np.float32(q.shape[-1] ** -0.5 if scale is None else scale))
    m = None
    if mode == "causal":
        m = causal(q.shape[2], k.shape[2])
    elif mask is not None:
        m = np.broadcast_to(mask.values, q.shape[:3] + (k.shape[2],))
    out_type = promote(promote(q.dtype, k.dtype), v.dtype)
    out = attention(q.values, k.values, v.values, scale, m, None if sinks is None else sinks.values)
    magnitude = 3e6 if out_type == "float64" else float(np.max(np.abs(v.values), initial=0))
    return Row("fast_scaled_dot_product_attention", [q, k, v, mask, sinks],
               [(cast(out, out_type), out_type)], [scale, mode], scale=magnitude)


def sdpa_rows(rng):
    def make(dtype, heads, lengths, dims, layouts=("heads", "cache", "cache"), batch=1):
        (h, n), (lq, lk), (d, dv) = heads, lengths, dims
        return (laid_out(sample(rng, dtype, (batch, h, lq, d)), dtype, layouts[0]),
                laid_out(sample(rng, dtype, (batch, n, lk, d)), dtype, layouts[1]),
                laid_out(sample(rng, dtype, (batch, n, lk, dv)), dtype, layouts[2]))

    def keep(shape):
        m = rng.uniform(0, 1, shape) < 0.7
        m[..., 0] = True
        return Arr(m, "bool")

    # Each combination is a kernel to build: one dtype sees all of them, the others their share.
    sizes = (64, 72, 80, 96, 112, 128, 192, 256, (192, 128), 16, 40, 33, (20, 36), 300)
    for dtype, chosen in (("float32", sizes), ("bfloat16", sizes[::2]), ("float16", sizes[1::4]),
                          ("float64", (64,))):
        for d in chosen:
            dims = d if isinstance(d, tuple) else (d, d)
            yield sdpa_row(*make(dtype, (4, 2), (1, 37), dims))
            yield sdpa_row(*make(dtype, (4, 2), (9, 20), dims), "causal")
    for dtype in ("float32", "bfloat16", "float64"):
        for mode in ("", "causal"):
            yield sdpa_row(*make(dtype, (2, 2), (3, 5), (64, 64), batch=2), mode)
            yield sdpa_row(*make(dtype, (8, 1), (2, 70), (64, 64), batch=2), mode)
            yield sdpa_row(*make(dtype, (6, 2), (33, 33), (32, 32)), mode)
            yield sdpa_row(*make(dtype, (2, 1), (70, 150), (64, 64)), mode)
            yield sdpa_row(*make(dtype, (4, 2), (1, 200), (128, 128)), mode)
        for shape in ((1, 1, 9, 20), (2, 1, 1, 20), (2, 4, 9, 20), (9, 20), (20,), (4, 1, 20)):
            q, k, v = make(dtype, (4, 2), (9, 20), (64, 64), batch=2)
            yield sdpa_row(q, k, v, "array", keep(shape))
            yield sdpa_row(q, k, v, "", Arr(sample(rng, dtype, shape), dtype))
            q, k, v = make(dtype, (4, 2), (1, 20), (64, 64), batch=2)
            shape = shape[:-2] + (1, 20) if len(shape) > 1 else shape
            yield sdpa_row(q, k, v, "", keep(shape))
        sinks = Arr(sample(rng, dtype, (4,)), dtype)
        yield sdpa_row(*make(dtype, (4, 2), (1, 50), (64, 64)), sinks=sinks)
        yield sdpa_row(*make(dtype, (4, 2), (12, 50), (64, 64)), "causal", sinks=sinks)
        yield sdpa_row(*make(dtype, (4, 2), (9, 20), (64, 64)), "array", keep((9, 20)), sinks)
        yield sdpa_row(*make(dtype, (4, 4), (9, 6), (64, 64)), "causal")  # rows without keys
        hidden = np.ones((9, 20), bool)
        hidden[3:5] = False  # rows that see nothing: the mean of the values
        yield sdpa_row(*make(dtype, (4, 2), (9, 20), (64, 64)), "", Arr(hidden, "bool"))
        yield sdpa_row(*make(dtype, (4, 2), (2, 20), (64, 64)), "", Arr(hidden[2:4], "bool"))
    for dtype in TYPES:
        for layouts in (("row", "row", "row"), ("transposed", "sliced", "reversed"),
                        ("offset", "offset", "column"), ("sliced", "heads", "heads")):
            for lengths in ((1, 40), (20, 40)) if dtype == "float32" else ((9, 40),):
                yield sdpa_row(*make(dtype, (4, 2), lengths, (64, 64), layouts), "causal")
        m = laid_out(sample(rng, dtype, (2, 4, 9, 20)), dtype, "transposed")
        yield sdpa_row(*make(dtype, (4, 2), (9, 20), (64, 64), batch=2), "", m)
        q, k, v = make(dtype, (4, 2), (3, 20), (64, 64))
        low = np.zeros((3, 20), np.float32)
        low[1, 4:] = -np.inf
        low[2, :7] = LOWEST[dtype]
        yield sdpa_row(q, k, v, "", Arr(low, dtype))
        yield sdpa_row(q, k, v, "", sinks=Arr(np.float32([30, -30, 0, 1]), dtype), scale=3.0)
        sinks = laid_out(sample(rng, dtype, (4,)), dtype, "reversed")
        yield sdpa_row(q, k, v, sinks=sinks)
        yield sdpa_row(*make(dtype, (2, 2), (0, 5), (16, 16)))
        yield sdpa_row(*make(dtype, (2, 1), (600, 600), (64, 64)), "causal")
        yield sdpa_row(*make(dtype, (2, 1), (1, 3000), (64, 64)), "causal")
    q, k, v = make("float32", (4, 2), (3, 20), (64, 64))
    half = Arr(sample(rng, "bfloat16", k.shape), "bfloat16")
    yield sdpa_row(q, half, v)
    yield sdpa_row(Arr(sample(rng, "float16", q.shape), "float16"), half,
                   Arr(sample(rng, "float16", v.shape), "float16"))


def rows(rng):
    yield "norm", list(norm_rows(rng))
    yield "rope", list(rope_rows(rng))
    yield "sdpa", list(sdpa_rows(rng))
