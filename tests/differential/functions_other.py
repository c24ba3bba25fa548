"""Rows of methods and operators of arrays, queries of dtypes, and what else no other file has."""

from __future__ import annotations

from draw import ALL, FLOATS, HALVES, REAL, WHOLE, Array, Draw, Dtype
from functions import key, well
from table import ROWS, SMOOTH, UNBATCHED, helper, one, row

# ---- methods and operators; aliases: drawn like the function of that name ----


def like(names: str, pattern: str) -> None:
    """Rows for what is another way to call a function."""
    for name in names.split():
        other, _, function = name.partition("=")
        ROWS[pattern.format(other)] = ROWS[function or other]
        for group in (SMOOTH, UNBATCHED):
            if (function or other) in group:
                group.add(pattern.format(other))


like(
    "abs all any argmax argmin astype conj cos cummax cummin cumprod cumsum diag diagonal exp"
    " flatten log log10 log1p log2 logcumsumexp logsumexp max mean min moveaxis prod reciprocal"
    " round rsqrt sin sqrt square std sum swapaxes var view split squeeze reshape transpose",
    "array.{}",
)
like(
    "acos=arccos acosh=arccosh asin=arcsin asinh=arcsinh atan=arctan atanh=arctanh"
    " atan2=arctan2 bitwise_left_shift=left_shift bitwise_right_shift=right_shift"
    " cumulative_prod=cumprod cumulative_sum=cumsum pow=power matrix_norm=linalg.norm"
    " empty_like=zeros_like",
    "{}",
)


def operator(sign: str):
    def call(mx, a, b):
        return {
            "+": lambda: a + b,
            "-": lambda: a - b,
            "*": lambda: a * b,
            "/": lambda: a / b,
            "//": lambda: a // b,
            "%": lambda: a % b,
            "**": lambda: a**b,
            "==": lambda: a == b,
            "!=": lambda: a != b,
            "<": lambda: a < b,
            "<=": lambda: a <= b,
            ">": lambda: a > b,
            ">=": lambda: a >= b,
            "&": lambda: a & b,
            "|": lambda: a | b,
            "^": lambda: a ^ b,
            "<<": lambda: a << b,
            ">>": lambda: a >> b,
            "@": lambda: a @ b,
        }[sign]()

    return call


OPERATORS = {
    "add": ("+", "add"),
    "subtract": ("-", "subtract"),
    "multiply": ("*", "multiply"),
    "divide": ("/", "divide"),
    "floor_divide": ("//", "floor_divide"),
    "remainder": ("%", "remainder"),
    "power": ("**", "power"),
    "equal": ("==", "equal"),
    "not_equal": ("!=", "not_equal"),
    "less": ("<", "less"),
    "less_equal": ("<=", "less_equal"),
    "greater": (">", "greater"),
    "greater_equal": (">=", "greater_equal"),
    "and": ("&", "bitwise_and"),
    "or": ("|", "bitwise_or"),
    "xor": ("^", "bitwise_xor"),
    "left_shift": ("<<", "left_shift"),
    "right_shift": (">>", "right_shift"),
    "matmul": ("@", "matmul"),
}
for word, (sign, function) in OPERATORS.items():
    helper(f"operator.{word}")(operator(sign))
    like(f"{word}={function}", "operator.{}")

row("array.T array.mT array.real array.imag")(lambda d: ([d.array(special=0)], {}))
row("array.nbytes array.itemsize", batched=False, traced=False)(
    lambda d: ([d.array(special=0)], {})
)
row("contents", batched=False, traced=False)(
    lambda d: ([d.array(special=0), d.pick(("tolist", "item"))], {})
)


@helper("contents")
def _(mx, a, how):
    return getattr(a, how)()


for name in ("T", "mT", "real", "imag", "nbytes", "itemsize"):
    helper(f"array.{name}")(lambda mx, a, name=name: getattr(a, name))


@helper("array.__init__")
def _(mx, values, dtype=None):
    return mx.array(values, dtype) if dtype else mx.array(values)


@row("array.__init__", batched=False)
def _(d: Draw):
    leaf = d.pick((1, 2.5, True, 3j, -7, 2**31, 2**40, 1e300, d.array(special=0)))
    values = d.pick((leaf, [leaf, leaf], [[leaf], [leaf]], [], [1, 2.5], [True, 2], [[1], [2, 3]]))
    return [values, *([Dtype(d.pick(ALL))] if d.often(0.5) else [])], {}


@helper("conversions")
def _(mx, a):
    def of(fn):
        try:
            return repr(fn(a))
        except Exception as error:  # which it is, is the result
            return type(error).__name__

    return [of(fn) for fn in (len, bool, int, float, complex, repr, str, hash_of, list_of)]


def hash_of(a):
    return hash(a) == hash(a)


def list_of(a):
    return [x.shape for x in a]


@row("conversions", batched=False, traced=False)
def _(d: Draw):
    return [d.array(special=0.2 if d.often(0.3) else 0, shape=d.pick(((), (1,), d.shape())))], {}


# ---- dtypes ----


@row("result_type", batched=False)
def _(d: Draw):
    return [
        d.pick((Dtype(d.pick(ALL)), d.array(shape=(1,)), d.array(shape=())))
        for _ in range(d.between(1, 3))
    ], {}


@row("can_cast", batched=False)
def _(d: Draw):
    return [d.pick((Dtype(d.pick(ALL)), d.array(shape=(1,)))), Dtype(d.pick(ALL))], {}


KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating")


@row("isdtype", batched=False)
def _(d: Draw):
    kinds = (*KINDS, "complex floating", "numeric", "number", Dtype(d.pick(ALL)))
    return [Dtype(d.pick(ALL)), d.pick((d.pick(kinds), (d.pick(kinds), d.pick(kinds))))], {}


CATEGORIES = "complexfloating floating inexact signedinteger unsignedinteger integer number generic"


@row("issubdtype", batched=False)
def _(d: Draw):
    names = ALL + tuple(CATEGORIES.split())
    return [Dtype(d.pick(names)), Dtype(d.pick(names))], {}


@row("broadcast_shapes", batched=False)
def _(d: Draw):
    shape = d.shape()
    return [shape, *(d.broadcastable(shape) for _ in range(d.between(0, 2)))], {}


# ---- arrays made of others ----


@row("minmax", smooth=True)
def _(d: Draw):
    a = d.array(REAL, special=0)
    return [a], {"axis": d.axes(len(a.shape)), "keepdims": d.often(0.4)}


@row("as_strided", smooth=True)
def _(d: Draw):
    a = d.array(shape=(d.between(2, 4), 6), special=0)
    return [a], d.pick(
        (
            {"shape": [3, 2], "strides": [2, 1]},
            {"shape": [2, 3], "strides": [1, 1], "offset": 2},
            {"shape": [2, 2, 2], "strides": [0, 3, 1]},
            {"shape": [4], "strides": [-1], "offset": 5},
            {"shape": [3], "strides": [1, 1]},
            {"offset": 0},
        )
    )


@row("contiguous", smooth=True)
def _(d: Draw):
    return [d.array()], {"allow_col_major": d.often(0.5)}


@row("full_like")
def _(d: Draw):
    a = d.array()
    value = d.pick((2, 2.5, True, d.array(shape=d.broadcastable(a.shape))))
    return [a, value], {"dtype": Dtype(d.pick(ALL))} if d.often(0.4) else {}


@row("identity", batched=False)
def _(d: Draw):
    return [d.between(-1, 5)], {"dtype": Dtype(d.pick(ALL))} if d.often(0.5) else {}


@row("empty", batched=False)
def _(d: Draw):
    return [d.pick((list(d.shape()), 3))], {"dtype": Dtype(d.pick(ALL))} if d.often(0.5) else {}


row("matrix_transpose", smooth=True)(one(ALL))
row("asarray", batched=False)(lambda d: ([d.pick((2, [1.5, 2], d.array()))], {}))


@row("from_fp8", batched=False)
def _(d: Draw):
    shape = d.shape()
    n = 1
    for size in shape:
        n *= size
    codes = Array("uint8", shape, [d.between(0, 255) for _ in range(n)])
    return [codes], {"dtype": Dtype(d.pick(HALVES))} if d.often(0.6) else {}


@row("depends", smooth=True, batched=False)
def _(d: Draw):
    a = d.array(special=0)
    return [a, d.array()] if d.often(0.5) else [[a, d.array()], [d.array()]], {}


@row("einsum_path", batched=False)
def _(d: Draw):
    args, kwargs = ROWS["einsum"](d)
    return args, kwargs


@helper("einsum_path")
def _(mx, *args):
    return mx.einsum_path(*args)[0]


# ---- convolutions with every parameter ----


def several(d: Draw, dims: int, low: int, high: int):
    """A number for all dimensions, or one for each."""
    if d.often(0.5):
        return d.between(low, high)
    return [d.between(low, high) for _ in range(dims)]


@row("conv_general", smooth=True, batched=False)
def _(d: Draw):
    dims = d.pick((1, 1, 2, 2, 3))
    groups = d.pick((1, 1, 2))
    channels, out = groups * d.between(1, 3), groups * d.between(1, 2)
    dtype = d.pick(("float32", "float32", "float16", "bfloat16", "int32"))
    x = d.array(
        dtype, (d.between(1, 2), *(d.between(4, 7) for _ in range(dims)), channels), special=0
    )
    w = (out, *(d.between(1, 3) for _ in range(dims)), channels // groups)
    kwargs = {
        "stride": several(d, dims, 1, 3),
        "padding": several(d, dims, 0, 2),
        "kernel_dilation": several(d, dims, 1, 2),
        "input_dilation": several(d, dims, 1, 2),
        "groups": groups,
        "flip": d.often(0.4),
    }
    if d.often(0.3):
        kwargs["padding"] = ([d.between(0, 2)] * dims, [d.between(0, 2)] * dims)
    return [x, d.array(dtype, w, "small", 0)], kwargs


# ---- Fourier transforms ----


@row("fft.rfft2 fft.fft2 fft.irfft2 fft.ifft2 fft.fftn fft.rfftn fft.irfftn fft.ifftn", smooth=True)
def _(d: Draw):
    x = d.array(("float32", "complex64", "float16", "int32"), d.shape(2), "small", 0)
    kwargs = {"norm": d.pick(("backward", "ortho", "forward"))} if d.often(0.3) else {}
    if d.often(0.5):
        kwargs["axes"] = [d.axis(len(x.shape)) for _ in range(d.between(1, 2))]
        if d.often(0.5):
            kwargs["s"] = [d.between(1, 9) for _ in kwargs["axes"]]
    return [x], kwargs


# ---- factors of matrices: what has one answer only up to signs is put together again ----


def symmetric(d: Draw, n: int) -> Array:
    a = well(d, n)
    for i in range(n):
        for j in range(i):
            a.values[i * n + j] = a.values[j * n + i]
    return a


@row("linalg.cholesky linalg.cholesky_inv linalg.tri_inv", smooth=False)
def _(d: Draw):
    return [symmetric(d, d.between(1, 5)), d.often(0.4)], {}


@row("linalg.eigvalsh")
def _(d: Draw):
    return [symmetric(d, d.between(1, 5))], {"UPLO": d.pick(("L", "U"))}


@row("linalg.solve_triangular")
def _(d: Draw):
    n = d.between(1, 4)
    b = d.array("float32", d.pick(((n,), (n, 2), (n + 1, 1))), "small", 0)
    return [well(d, n), b], {"upper": d.often(0.5)}


@row("linalg.lu_factor linalg.lu", batched=False)
def _(d: Draw):
    return [well(d, d.between(1, 4))], {}


@helper("linalg.qr")
def _(mx, a):
    q, r = mx.linalg.qr(a)
    return [q @ r, mx.abs(r)]


@helper("linalg.svd")
def _(mx, a):
    u, s, v = mx.linalg.svd(a)
    k = s.shape[-1]
    return [(u[..., :k] * s[..., None, :]) @ v[..., :k, :], s, mx.linalg.svd(a, False)]


@helper("linalg.eigh")
def _(mx, a, uplo):
    w, v = mx.linalg.eigh(a, uplo)
    return [(v * w[..., None, :]) @ mx.swapaxes(v, -1, -2), w]


@helper("linalg.eig")
def _(mx, a):
    w, v = mx.linalg.eig(a)
    return [mx.abs(a @ v - v * w[..., None, :]) < 1e-4]


@row("linalg.qr linalg.svd linalg.eig linalg.eigvals", batched=False)
def _(d: Draw):
    shape = d.pick(((3, 3), (4, 2), (2, 4), (2, 3, 3), (1, 1), (3,), (0, 0)))
    return [d.array(d.pick(("float32", "float32", "int32")), shape, "small", 0)], {}


@helper("linalg.eigvals")
def _(mx, a):
    w = mx.linalg.eigvals(a)
    return [mx.sort(mx.abs(w), -1)]


@row("linalg.eigh", batched=False)
def _(d: Draw):
    return [symmetric(d, d.between(1, 5)), d.pick(("L", "U", "X"))], {}


@row("linalg.norm", smooth=True)
def _(d: Draw):
    x = d.array(FLOATS + ("int32", "complex64"), d.shape(1, 3), special=0)
    kwargs = {"keepdims": d.often(0.5)}
    kind = d.random()
    if kind < 0.25:
        return [x], kwargs
    if kind < 0.6:
        order = d.pick((1, 2, 2.5, 3, float("inf"), float("-inf"), 0, -1, "fro"))
        return [x, order], {"axis": d.axis(len(x.shape)), **kwargs}
    order = d.pick((None, 1, -1, float("inf"), float("-inf"), "fro", "f", 2, "nuc", 3))
    if len(x.shape) < 2:
        return [x, order], kwargs
    return [x, order], {"axis": [-2, -1], **kwargs}


# ---- random numbers with arrays of parameters ----


@row("random.multivariate_normal", batched=False)
def _(d: Draw):
    n = d.between(1, 3)
    return [d.array("float32", (n,), "small", 0), symmetric(d, n), [2]], {"key": key(d)}


@row("random.normal random.laplace", batched=False)
def _(d: Draw):
    kwargs = {"dtype": Dtype(d.pick(FLOATS)), "key": key(d)}
    if d.often(0.5):
        kwargs["loc"] = d.pick((0.5, -1.0))
    if d.often(0.5):
        kwargs["scale"] = d.pick((0.5, 2.0))
    return [list(d.shape())], kwargs


@row("random.uniform")
def _(d: Draw):
    low, high = d.pick(((0, 1), (-2.0, 3.5), (1, 1)))
    if d.often(0.4):
        low = d.array("float32", (d.pick((1, 3)),), "unit", 0)
        return [low, 2.0, [2, 3]], {"key": key(d)}
    return [low, high, list(d.shape())], {"dtype": Dtype(d.pick(FLOATS)), "key": key(d)}


@row("random.randint", batched=False)
def _(d: Draw):
    kwargs = {"key": key(d)}
    if d.often(0.6):
        kwargs["dtype"] = Dtype(d.pick(WHOLE + ("float32",)))
    return [d.between(-5, 0), d.between(1, 50), list(d.shape())], kwargs


@row("random.bernoulli", batched=False)
def _(d: Draw):
    if d.often(0.4):
        return [d.array("float32", (3,), "share", 0)], {"key": key(d)}
    return [d.pick((0.2, 0.7)), list(d.shape())], {"key": key(d)}


@row("random.categorical", batched=False)
def _(d: Draw):
    a = d.array(FLOATS, d.shape(1, 3), special=0)
    kwargs = {"axis": d.axis(len(a.shape))}
    if d.often(0.3):
        kwargs["num_samples"] = d.between(0, 4)
    return [a], {**kwargs, "key": key(d)}


@row("random.permutation", batched=False)
def _(d: Draw):
    x = d.pick((d.between(0, 9), d.array(shape=(5, 2))))
    return [x], {"key": key(d), **({"axis": d.between(-2, 1)} if d.often(0.3) else {})}
