"""What is called with what: a row for each function of mlx.core that the differential test draws.

A row takes a `Draw` and gives the positional and the named arguments. Functions of one row share
how their arguments look. `SMOOTH` are those whose derivatives are compared, too.
"""

from __future__ import annotations

from draw import ALL, FLOATS, HALVES, REAL, WHOLE, Array, Draw, Dtype
from table import one, row

# ---- elementwise ----

row("abs square conj conjugate real imag reciprocal positive", smooth=True)(one(ALL))
row("negative", smooth=True)(one(ALL))
row("sin cos sigmoid erf exp sinh cosh tanh arctan arcsinh expm1 degrees radians", smooth=True)(
    one(REAL + ("complex64",))
)
row("log log2 log10 log1p sqrt rsqrt", smooth=True)(one(REAL + ("complex64",), "positive"))
row("arccos arcsin arctanh erfinv tan", smooth=True)(one(REAL + ("complex64",), "unit"))
row("arccosh", smooth=True)(one(FLOATS, "above_one"))
row("sign floor ceil trunc logical_not isfinite isinf isnan isneginf isposinf")(one(ALL))
row("stop_gradient", smooth=True)(one(ALL))
row("bitwise_invert")(one(WHOLE + ("bool_",)))
row("to_fp8")(one(HALVES))


@row("round")
def _(d: Draw):
    return [d.array()], {"decimals": d.between(-1, 2)} if d.often(0.5) else {}


row("add subtract multiply", smooth=True)(lambda d: (d.pair(), {}))
row("maximum minimum logaddexp arctan2", smooth=True)(lambda d: (d.pair(REAL), {}))
row("divide", smooth=True)(lambda d: (d.pair(values="positive"), {}))


@row("remainder floor_divide divmod")
def _(d: Draw):
    args = d.pair(REAL, "positive")
    if isinstance(args[1], Array) and args[1].dtype == "bool_":
        args[1].values = [True] * len(args[1].values)  # a whole number divided by 0 is anything
    return args, {}


row("power", smooth=True)(lambda d: (d.pair(FLOATS + ("complex64",), "positive"), {}))
row("equal not_equal greater greater_equal less less_equal logical_and logical_or logical_xor")(
    lambda d: (d.pair(), {})
)
row("bitwise_and bitwise_or bitwise_xor")(lambda d: (d.pair(WHOLE + ("bool_",)), {}))


@row("left_shift right_shift")
def _(d: Draw):
    a = d.array(WHOLE)
    return [a, Array(a.dtype, a.shape, [d.between(0, 6) for _ in a.values])], {}


@row("isclose allclose array_equal", batched=False)
def _(d: Draw):
    a = d.array()
    return [a, a if d.often(0.5) else d.array(a.dtype, a.shape)], {"equal_nan": d.often(0.5)}


@row("where", smooth=True)
def _(d: Draw):
    a = d.array()
    return [d.array("bool_", d.broadcastable(a.shape)), a, d.array(a.dtype, a.shape)], {}


@row("clip", smooth=True)
def _(d: Draw):
    a = d.array(REAL)
    return [a, d.pick((None, -1, 0.5)), d.pick((None, 1, 2.5))], {}


@row("nan_to_num")
def _(d: Draw):
    return [d.array(REAL, special=0.3)], {"nan": d.pick((0, 1.5)), "posinf": d.pick((None, 7.0))}


@row("astype", smooth=True)
def _(d: Draw):
    return [d.array(special=0), Dtype(d.pick(ALL))], {}


@row("view")
def _(d: Draw):
    return [d.array(WHOLE + ("float32", "float16")), Dtype(d.pick(WHOLE + ("float32",)))], {}


# ---- reductions, scans, sorting ----


@row("sum mean max min prod logsumexp var std", smooth=True)
def _(d: Draw):
    a = d.array(special=0)
    return [a], {"axis": d.axes(len(a.shape)), "keepdims": d.often(0.4)}


@row("any all median count_nonzero")
def _(d: Draw):
    a = d.array(REAL)
    return [a], {"axis": d.axes(len(a.shape)), "keepdims": d.often(0.4)}


@row("argmax argmin")
def _(d: Draw):
    a = d.array(REAL)
    axis = None if d.often(0.3) else d.axis(len(a.shape))
    return [a], {"axis": axis, "keepdims": d.often(0.4)}


@row("softmax", smooth=True)
def _(d: Draw):
    a = d.array(REAL, special=0)
    return [a], {"axis": d.axes(len(a.shape)), "precise": d.often(0.3)}


@row("cumsum cumprod logcumsumexp", smooth=True)
def _(d: Draw):
    a = d.array(REAL, d.shape(1), "unit", 0)
    kwargs = {"reverse": d.often(0.4), "inclusive": d.often(0.6)}
    return [a], {"axis": None if d.often(0.2) else d.axis(len(a.shape)), **kwargs}


@row("cummax cummin")
def _(d: Draw):
    a = d.array(("float32", "int32", "int8", "uint16"), d.shape(1), special=0)
    return [a], {"axis": d.axis(len(a.shape)), "reverse": d.often(0.4)}


@row("sort", smooth=True)
def _(d: Draw):
    a = d.array(REAL, d.shape(1))
    return [a], {"axis": None if d.often(0.2) else d.axis(len(a.shape))}


@row("argsort")
def _(d: Draw):
    a = d.array(REAL, d.shape(1))
    return [a], {"axis": None if d.often(0.2) else d.axis(len(a.shape))}


@row("topk")
def _(d: Draw):
    a = d.array(REAL, d.shape(1, 2), special=0)
    return [a, d.between(1, 3)], {"axis": d.axis(len(a.shape))}


@row("searchsorted")
def _(d: Draw):
    a = d.array(("float32", "int32"), (d.between(1, 9),), special=0)
    a.values.sort()
    a.layout = "row"
    return [a, d.array(a.dtype, special=0)], {"side": d.pick(("left", "right"))}


# ---- shapes ----


@row("reshape", smooth=True)
def _(d: Draw):
    a = d.array()
    shape = list(a.shape)
    if len(shape) > 1 and d.often(0.6):
        at = d.between(0, len(shape) - 2)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    if shape and d.often(0.4):
        shape[d.between(0, len(shape) - 1)] = -1
    if d.often(0.05):
        shape.append(3)
    return [a, shape], {}


@row("flatten", smooth=True)
def _(d: Draw):
    a = d.array()
    return [a, d.axis(len(a.shape)), d.axis(len(a.shape))] if d.often(0.6) else [a], {}


@row("unflatten", smooth=True)
def _(d: Draw):
    a = d.array(shape=(d.pick((4, 6)), 3))
    return [a, d.pick((0, -2, 0, 1)), d.pick(([2, -1], [-1, 2], [2, 2], [3, 2], [1, -1, 1]))], {}


@row("transpose permute_dims", smooth=True)
def _(d: Draw):
    a = d.array()
    axes = list(range(len(a.shape)))
    axes.sort(key=lambda _: d.random())
    if axes and d.often(0.05):
        axes[0] = axes[-1]
    return [a, axes] if d.often(0.7) else [a], {}


@row("swapaxes moveaxis", smooth=True)
def _(d: Draw):
    a = d.array()
    return [a, d.axis(len(a.shape)), d.axis(len(a.shape))], {}


@row("squeeze", smooth=True)
def _(d: Draw):
    a = d.array(shape=tuple(d.pick((1, 1, 2)) for _ in range(d.between(0, 4))))
    ones = [i for i, size in enumerate(a.shape) if size == 1]
    return [a], {} if d.often(0.3) else {"axis": d.pick((ones, ones[:1], d.axis(len(a.shape))))}


@row("expand_dims", smooth=True)
def _(d: Draw):
    a = d.array()
    return [a, d.pick((0, -1, [0, 2], [0, -1], len(a.shape), len(a.shape) + 2))], {}


@row("broadcast_to", smooth=True)
def _(d: Draw):
    shape = d.shape(1)
    return [d.array(shape=d.broadcastable(shape)), list(shape)], {}


@row("atleast_1d atleast_2d atleast_3d", smooth=True)
def _(d: Draw):
    return [d.array() for _ in range(d.between(1, 2))], {}


@row("broadcast_arrays")
def _(d: Draw):
    a = d.array()
    return [a, d.array(shape=d.broadcastable(a.shape))], {}


@row("meshgrid")
def _(d: Draw):
    arrays = [d.array(REAL, (d.between(1, 4),)) for _ in range(d.between(1, 3))]
    return arrays, {"sparse": d.often(0.5), "indexing": d.pick(("xy", "ij"))}


@row("concatenate concat stack", smooth=True, batched=False)
def _(d: Draw):
    a = d.array(shape=d.shape(1))
    arrays = [a] + [d.array(a.dtype, a.shape) for _ in range(d.between(0, 2))]
    return [arrays], {"axis": d.axis(len(a.shape))}


@row("split", smooth=True)
def _(d: Draw):
    a = d.array(shape=(d.pick((4, 6)), d.pick((4, 6))))
    return [a, d.pick((2, 3, [1, 3], [2], []))], {"axis": d.axis(2)}


@row("unstack", smooth=True)
def _(d: Draw):
    a = d.array(shape=d.shape(1))
    return [a], {"axis": d.axis(len(a.shape))}


@row("repeat", smooth=True)
def _(d: Draw):
    a = d.array()
    return [a, d.between(0, 3)], {"axis": None if d.often(0.3) else d.axis(len(a.shape))}


@row("tile", smooth=True)
def _(d: Draw):
    return [d.array(), d.pick((2, [2], [2, 1], [1, 2, 2], [1, 0]))], {}


@row("roll", smooth=True)
def _(d: Draw):
    a = d.array()
    return [a, d.between(-5, 5)], {"axis": None if d.often(0.3) else d.axis(len(a.shape))}


@row("flip", smooth=True)
def _(d: Draw):
    a = d.array()
    return [a], {"axis": d.axes(len(a.shape))}


@row("pad", smooth=True)
def _(d: Draw):
    a = d.array(shape=d.shape(1))
    widths = [[d.between(0, 2), d.between(0, 2)] for _ in a.shape]
    mode = d.pick(("constant", "constant", "edge", "reflect", "symmetric"))
    return [a, d.pick((1, [1, 2], widths))], {"mode": mode}


@row("diag diagonal trace", smooth=True)
def _(d: Draw):
    a = d.array(shape=d.shape(1, 2), special=0)
    return [a, d.between(-2, 2)], {}


@row("tril triu", smooth=True)
def _(d: Draw):
    return [d.array(shape=d.shape(1, 3)), d.between(-2, 2)], {}


@row("diff", smooth=True)
def _(d: Draw):
    a = d.array(shape=d.shape(1))
    return [a], {"n": d.between(0, 2), "axis": d.axis(len(a.shape))}


# ---- what is made of nothing ----


@row("arange", batched=False)
def _(d: Draw):
    args = [d.between(-3, 3), d.between(-5, 9), d.pick((1, 2, 0.5, -1))][: d.between(1, 3)]
    return args, {"dtype": Dtype(d.pick(FLOATS + WHOLE))} if d.often(0.4) else {}


@row("linspace", batched=False)
def _(d: Draw):
    return [d.between(-3, 3), d.between(-5, 9), d.between(0, 9)], {"endpoint": d.often(0.6)}


@row("eye tri", batched=False)
def _(d: Draw):
    return [d.between(0, 5), d.between(0, 5), d.between(-3, 3)], {}


@row("hanning hamming blackman bartlett", batched=False)
def _(d: Draw):
    return [d.between(0, 12)], {}


@row("zeros ones", batched=False)
def _(d: Draw):
    return [list(d.shape())], {"dtype": Dtype(d.pick(ALL))} if d.often(0.5) else {}


@row("full", batched=False)
def _(d: Draw):
    shape = d.shape()
    return [list(shape), d.pick((2, 2.5, True, d.array(shape=d.broadcastable(shape))))], {}


@row("zeros_like ones_like")
def _(d: Draw):
    return [d.array()], {}


# ---- by index ----


@row("take", smooth=True)
def _(d: Draw):
    a = d.array(shape=tuple(d.between(1, 5) for _ in range(d.between(1, 3))))
    axis = d.between(-len(a.shape), len(a.shape) - 1)
    if d.often(0.3):
        return [a, d.between(0, a.shape[axis] - 1), axis], {}
    return [a, d.indices(d.shape(0, 2), a.shape[axis]), axis], {}


@row("take_along_axis", smooth=True)
def _(d: Draw):
    a = d.array(shape=tuple(d.between(1, 5) for _ in range(d.between(1, 3))))
    axis = d.between(-len(a.shape), len(a.shape) - 1)
    shape = list(a.shape)
    shape[axis] = d.between(1, 4)
    return [a, d.indices(shape, a.shape[axis])], {"axis": axis}


@row("put_along_axis", smooth=True)
def _(d: Draw):
    a = d.array(shape=tuple(d.between(3, 5) for _ in range(d.between(1, 2))))
    axis = d.between(-len(a.shape), len(a.shape) - 1)
    shape = list(a.shape)
    shape[axis] = 1  # places that are written twice have no one value
    return [a, d.indices(shape, a.shape[axis]), d.array(a.dtype, shape)], {"axis": axis}


@row("slice", smooth=True, batched=False)
def _(d: Draw):
    a = d.array(shape=(4, 5))
    return [a, d.indices((1,), 2, "int32"), [1], [4, d.between(1, 3)]], {}


# ---- products ----


def matrices(d: Draw):
    m, k, n = (d.pick((1, 2, 3, 8, 17)) for _ in range(3))
    batch = d.shape(0, 1)
    a, b = (*batch, m, k), (*d.broadcastable(batch), k, n)
    if d.often(0.15):
        a = (k,)
    if d.often(0.15):
        b = (k,)
    if d.often(0.04):
        b = (*b[:-1], b[-1] + 1)
    return a, b


@row("matmul", smooth=True)
def _(d: Draw):
    a, b = matrices(d)
    dtypes = FLOATS + ("complex64", "int32")
    x = d.array(dtypes, a, "small", 0)
    return [x, d.array(x.dtype, b, "small", 0)], {}


@row("addmm", smooth=True)
def _(d: Draw):
    a, b = (d.between(1, 5), 4), (4, d.between(1, 5))
    x = d.array(FLOATS, a, "small", 0)
    c = d.array(x.dtype, d.broadcastable((a[0], b[1])), "small", 0)
    return [c, x, d.array(x.dtype, b, "small", 0)], {
        "alpha": d.pick((1.0, 0.5)),
        "beta": d.pick((1.0, -2.0)),
    }


@row("inner outer kron", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS, d.shape(1, 2), "small", 0)
    return [x, d.array(x.dtype, x.shape, "small", 0)], {}


@row("vecdot", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS, d.shape(1, 3), "small", 0)
    return [x, d.array(x.dtype, x.shape, "small", 0)], {"axis": d.axis(len(x.shape))}


@row("tensordot", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS, (2, 3, 4), "small", 0)
    axes, shape = d.pick(
        ((1, (4, 5)), (2, (3, 4, 2)), ([[0], [1]], (3, 2)), ([[2, 0], [0, 1]], (4, 2)))
    )
    return [x, d.array(x.dtype, shape, "small", 0)], {"axes": axes}


@row("einsum", smooth=True, batched=False)
def _(d: Draw):
    text, shapes = d.pick(
        (
            ("ij,jk->ik", ((2, 3), (3, 4))),
            ("ij,ij->", ((2, 3), (2, 3))),
            ("bij,bjk,kl->bil", ((2, 2, 3), (2, 3, 2), (2, 4))),
            ("ii->i", ((3, 3),)),
            ("...i,i", ((2, 2, 3), (3,))),
            ("ij->ji", ((2, 3),)),
        )
    )
    return [text] + [d.array("float32", shape, "small", 0) for shape in shapes], {}


def convolution(dims: int):
    def draw(d: Draw):
        groups = d.pick((1, 1, 2))
        channels, out = groups * d.between(1, 3), groups * d.between(1, 2)
        x = d.array("float32", (d.between(1, 2), *([d.between(5, 7)] * dims), channels), "small", 0)
        w = (out, *([d.between(1, 3)] * dims), channels // groups)
        kwargs = {
            "stride": d.between(1, 2),
            "padding": d.between(0, 2),
            "dilation": d.between(1, 2),
            "groups": groups,
        }
        return [x, d.array("float32", w, "small", 0)], kwargs

    return draw


for dims in (1, 2, 3):
    row(f"conv{dims}d conv_transpose{dims}d", smooth=True, batched=False)(convolution(dims))


@row("convolve", smooth=True, batched=False)
def _(d: Draw):
    x = d.array("float32", (d.between(1, 9),), "small", 0)
    return [x, d.array("float32", (d.between(1, 5),), "small", 0)], {
        "mode": d.pick(("full", "same", "valid"))
    }


@row("hadamard_transform", smooth=True)
def _(d: Draw):
    return [d.array(FLOATS, (d.between(1, 3), d.pick((1, 2, 8, 12, 20, 32, 56, 3)))), 0.5], {}


# ---- fast ----


@row("fast.rms_norm", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS, (*d.shape(0, 2), 8), special=0)
    return [x, d.array(x.dtype, (8,), special=0) if d.often(0.8) else None, 1e-5], {}


@row("fast.layer_norm", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS, (*d.shape(0, 2), 8), special=0)
    w, b = (d.array(x.dtype, (8,), special=0) if d.often(0.8) else None for _ in range(2))
    return [x, w, b, 1e-5], {}


@row("fast.rope", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS, (2, d.between(1, 3), d.between(1, 4), 8), "small", 0)
    kwargs = {"traditional": d.often(0.5), "base": 10000.0, "scale": d.pick((1.0, 0.5))}
    return [x, d.pick((8, 4))], {**kwargs, "offset": d.between(0, 5)}


@row("fast.scaled_dot_product_attention", smooth=True)
def _(d: Draw):
    heads, kv = d.pick(((2, 2), (4, 2), (4, 1)))
    rows, keys = d.between(1, 4), d.between(4, 6)
    dtype = d.pick(FLOATS)
    q = d.array(dtype, (1, heads, rows, 8), "small", 0)
    k, v = (d.array(dtype, (1, kv, keys, 8), "small", 0) for _ in range(2))
    mask = d.pick(
        (None, "causal", d.array("bool_", (rows, keys)), d.array(dtype, (rows, keys), special=0))
    )
    if isinstance(mask, Array) and mask.dtype == "bool_":
        mask.values[::keys] = [True] * rows  # a row that sees nothing has no one answer
        mask.layout = "row"
    return [q, k, v], {"scale": 0.35, "mask": mask}


# ---- random numbers ----


def key(d: Draw) -> Array:
    return Array("uint32", (2,), [d.between(0, 2**31), d.between(0, 2**31)])


@row("random.uniform", batched=False)
def _(d: Draw):
    low, high = d.pick(((0, 1), (-2.0, 3.5), (1, 1)))
    return [low, high, list(d.shape())], {"dtype": Dtype(d.pick(FLOATS)), "key": key(d)}


@row("random.normal", batched=False)
def _(d: Draw):
    return [list(d.shape())], {"dtype": Dtype(d.pick(FLOATS)), "loc": 1.0, "key": key(d)}


@row("random.randint", batched=False)
def _(d: Draw):
    return [d.between(-5, 0), d.between(1, 50), list(d.shape())], {"key": key(d)}


row("random.bernoulli", batched=False)(
    lambda d: ([d.pick((0.2, 0.7)), list(d.shape())], {"key": key(d)})
)
row("random.truncated_normal", batched=False)(
    lambda d: ([-1.0, d.pick((0.5, 2.0)), list(d.shape())], {"key": key(d)})
)
row("random.gumbel random.laplace", batched=False)(lambda d: ([list(d.shape())], {"key": key(d)}))


@row("random.categorical", batched=False)
def _(d: Draw):
    return [d.array("float32", d.shape(1, 2), special=0)], {"key": key(d)}


@row("random.permutation", batched=False)
def _(d: Draw):
    return [d.pick((d.between(1, 9), d.array("float32", (5, 2))))], {"key": key(d)}


@row("random.split", batched=False)
def _(d: Draw):
    return [key(d), d.between(1, 4)], {}


@row("random.key", batched=False)
def _(d: Draw):
    return [d.between(0, 2**40)], {}


# ---- fft ----


@row("fft.fft fft.ifft fft.rfft fft.irfft", smooth=True)
def _(d: Draw):
    x = d.array(("float32", "float32", "complex64", "float16", "int32"), d.shape(1), "small", 0)
    kwargs = {"norm": d.pick(("backward", "ortho", "forward"))} if d.often(0.4) else {}
    if d.often(0.4):
        kwargs["n"] = d.between(1, 9)
    return [x], {"axis": d.axis(len(x.shape)), **kwargs}


@row("fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn fft.rfftn fft.irfftn", smooth=True)
def _(d: Draw):
    return [d.array(("float32", "complex64"), d.shape(2), "small", 0)], {}


@row("fft.fftshift fft.ifftshift")
def _(d: Draw):
    x = d.array(ALL, d.shape(1))
    return [x], {"axes": d.axes(len(x.shape))}


@row("fft.fftfreq fft.rfftfreq", batched=False)
def _(d: Draw):
    return [d.between(1, 9), d.pick((1.0, 0.5))], {}


# ---- linear algebra; what has one answer only up to signs is left to tests of its own ----


def well(d: Draw, n: int) -> Array:
    """A square matrix that is far from a singular one."""
    x = d.array("float32", (n, n), "small", 0)
    x.layout = "row"
    for i in range(n):
        x.values[i * n + i] += 4.0
    return x


row("linalg.inv linalg.pinv linalg.det linalg.slogdet", smooth=True)(
    lambda d: ([well(d, d.between(1, 4))], {})
)


@row("linalg.solve", smooth=True)
def _(d: Draw):
    n = d.between(1, 4)
    return [well(d, n), d.array("float32", (n, 2), "small", 0)], {}


@row("linalg.norm", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS + ("int32", "complex64"), d.shape(1, 2), special=0)
    if d.often(0.4):
        return [x], {"keepdims": d.often(0.5)}
    return [x, d.pick((1, 2.5, float("inf"), 0, -1))], {"axis": d.axis(len(x.shape))}


@row("linalg.cross", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS, (2, d.pick((3, 3, 2))), "small", 0)
    return [x, d.array(x.dtype, x.shape, "small", 0)], {}


# ---- packed weights ----


@row("quantize", batched=False)
def _(d: Draw):
    w = d.array(HALVES, (d.between(1, 3), 64), special=0)
    mode = d.pick(("affine", "affine", "mxfp4", "mxfp8", "nvfp4"))
    kwargs = {"group_size": d.pick((32, 64)), "bits": d.pick((2, 3, 4, 5, 6, 8))}
    return [w], {"mode": mode, **(kwargs if mode == "affine" else {})}
