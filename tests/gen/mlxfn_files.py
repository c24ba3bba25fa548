#!/usr/bin/env python3
"""Functions that MLX itself exports, with what it computes, for tests/unit/mlxfn.c.

usage: mlxfn_files.py write FOLDER            NAME.mlxfn and NAME.npz of every function
       mlxfn_files.py check FOLDER OTHERS     the .mlxfn files of OTHERS give what FOLDER's .npz say

Run by an interpreter that has mlx (0.32.4 wrote what lies in tests/data/mlxfn) and numpy; not part of
the build. An .npz holds calls: c0.in0, c0.in1, ... and c0.kw.NAME are arguments, c0.out0, ...
results.
"""

import pathlib
import sys

import mlx.core as mx

FUNCTIONS = {}
DTYPES = [mx.bool_, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.int8, mx.int16, mx.int32, mx.int64,
          mx.float16, mx.float32, mx.float64, mx.bfloat16, mx.complex64]


def function(*calls, shapeless=False):
    """A function and the calls that it is exported for: tuples of arrays, a dict at the end."""
    def add(fun):
        FUNCTIONS[fun.__name__] = (fun, calls, shapeless)
        return fun
    return add


def call_of(call):
    named = call[-1] if call and isinstance(call[-1], dict) else {}
    return (call[:-1] if named else call), named


def grid(*shape, low=-2.0, high=2.0, dtype=mx.float32):
    n = 1
    for d in shape:
        n *= d
    return mx.linspace(low, high, max(n, 2))[:n].reshape(shape).astype(dtype)


X, POSITIVE, UNIT = grid(2, 3), grid(2, 3, low=1.5, high=3), grid(2, 3, low=-0.9, high=0.9)
I, J = mx.array([[5, -7, 9]]), mx.array([[2], [3]])


@function((X, POSITIVE, UNIT))
def unary(x, p, u):
    z = x + 1j * p
    return [mx.abs(x), mx.arccos(u), mx.arccosh(p), mx.arcsin(u), mx.arcsinh(x), mx.arctan(x),
            mx.arctanh(u), mx.ceil(x), mx.conjugate(z), mx.cos(x), mx.cosh(x), mx.erf(x),
            mx.erfinv(u), mx.exp(x), mx.expm1(x), mx.floor(x), mx.imag(z), mx.log(p), mx.log2(p),
            mx.log10(p), mx.log1p(p), mx.logical_not(x > 0), mx.negative(x), mx.real(z), mx.round(x),
            mx.rsqrt(p), mx.sigmoid(x), mx.sign(x), mx.sin(x), mx.sinh(x), mx.sqrt(p), mx.square(x),
            mx.tan(u), mx.tanh(x), x.astype(mx.int8), x.astype(mx.bfloat16), mx.view(x, mx.uint16),
            mx.stop_gradient(x) + 1, mx.degrees(x), mx.isnan(x), mx.nan_to_num(x)]


@function((X, POSITIVE, I, J))
def binary(x, p, i, j):
    q, r = mx.divmod(i, j)
    return [x + p, mx.arctan2(x, p), i & j, i | j, i ^ j, i << j, i >> j, x / p, x == p, x != p,
            mx.array_equal(x, x, equal_nan=True), x > p, x >= p, x < p, x <= p,
            mx.logical_and(i, j), mx.logical_or(i, j), mx.logaddexp(x, p), mx.maximum(x, p),
            mx.minimum(i, j), x * p, mx.power(p, x), mx.power(i, j), i % j, x % p, x - p, q, r,
            i // j, mx.where(x > 0, x, p), mx.clip(x, -1, p)]


@function(tuple(grid(2, 2, low=0, high=3).astype(t) for t in DTYPES))
def dtypes(*inputs):
    """With constants of every dtype, numbers and arrays."""
    constants = [mx.array([[1, 0], [1, 1]]).astype(t) for t in DTYPES]
    ones = [mx.array(1).astype(t) for t in DTYPES]
    return [mx.where(c == o, a, o) for a, c, o in zip(inputs, constants, ones)]


@function((grid(2, 3, 4), mx.array(1)))
def views(x, at):
    a, b, c = mx.split(x, [1, 3], axis=-1)
    return [mx.as_strided(x, (3, 2), (2, 5), 3), mx.broadcast_to(x[:1], (5, 3, 4)),
            mx.expand_dims(x, [0, -1]), mx.flatten(x, 1), x.reshape(4, -1), x[:, 2:0:-1, 1:],
            a, b, c, mx.squeeze(x[:1], 0), x.transpose(2, 0, 1), mx.unflatten(x, 2, (2, -1)),
            mx.slice(x, at.reshape(1), (1,), (2, 2, 4)), x.swapaxes(0, 1), mx.moveaxis(x, 0, 2),
            mx.full((2, 2), x[0, 0, 0]), mx.arange(2, 9, 3), mx.arange(1.0, 2.0, 0.25),
            mx.tril(x[0]), x]


@function((grid(3, 4), mx.array([2, 0]), mx.array(1)))
def moves(x, at, start):
    y = mx.array(x)
    y[1:, ::2] = 7
    z = mx.slice_update(x, mx.zeros((2, 2)), start.reshape(1), (1,))
    return [mx.concatenate([x, x * 2], axis=-1), mx.stack([x, x]), x[at], x[at, at], x[:, at],
            mx.take(x, at, axis=-1), mx.take_along_axis(x, mx.array([[0], [1], [3]]), axis=-1),
            mx.pad(x, [(1, 0), (0, 2)], constant_values=3.0), mx.tile(x, (2, 1)), mx.repeat(x, 2, axis=0), y, z,
            mx.roll(x, 1, axis=1)]


@function((mx.array([-1.0, 0.5, 0.5, 2]), grid(2, 3), mx.array([[True, True, False], [True, False, True]])))
def ordered(s, x, b):
    return [mx.searchsorted(s, x), mx.searchsorted(s, x, side="right"), mx.cumprod(b, 1),
            mx.cummax(b, 0, reverse=True), mx.cummin(b, 1), mx.cumsum(b, 1, inclusive=False)]


@function((grid(4, 6), grid(2, 6)))
def turned(x, u):
    flipped, odd = x[::-1, ::-1], x[3:-9:-2, -2:0:-3]
    one, none = x[2:-9:-3, 1:2], x[1:3:-1]
    z = mx.array(x)
    z[::-2] = u
    w = z.at[1:-5:-1, 5:2:-2].add(2.0)
    slopes = mx.vjp(lambda a: mx.flip(a, 1)[1:, ::2], [x], [mx.ones((3, 3)) * u[0, 3:]])[1][0]
    return [flipped, odd, one, none, z, w, slopes]


@function((grid(3, 5)[:, ::-1], grid(3, 5) > 0))
def reductions(x, b):
    return [x.sum(), x.sum(-1), x.sum(0, keepdims=True), x.prod(1), x.min(0), x.max((0, 1)),
            b.all(1), b.any(0), b.sum(-1), mx.argmax(x, -1), mx.argmin(x), x.mean(-1), x.var(0),
            mx.logsumexp(x, -1), mx.softmax(x, -1), mx.softmax(x, -1, precise=True),
            mx.cumsum(x, -1), mx.cumprod(x, 0, reverse=True), mx.cummax(x, 1, inclusive=False),
            mx.cummin(x, 1), mx.sort(x, -1), mx.argsort(x, 0), mx.sort(mx.partition(x, 2, -1), -1),
            mx.argpartition(x, 0, -1)[:, :1], mx.sort(mx.topk(x, 2, axis=-1), -1),
            mx.median(x, axis=1)]


@function((grid(4, 3), mx.array([2, 0, 2]), grid(3, 3, low=1), mx.array([[1], [0], [2], [1]]), grid(4, 1)))
def scatters(a, i, u, j, v):
    return [a.at[i].add(u), a.at[i].maximum(u), a.at[i].minimum(u), a.at[i].multiply(u),
            a.at[i, mx.array([0, 1, 2])].add(u[0]), mx.put_along_axis(a, j, v, axis=1),
            mx.vjp(lambda x: mx.take_along_axis(x, j, 1), [a], [v])[1][0]]


@function((grid(3, 4), grid(4, 2), grid(3, 2), grid(2, 3, 4), grid(2, 4, 2)))
def products(a, b, c, batch_a, batch_b):
    lhs, rhs = mx.array([1, 0, 1]), mx.array([0, 0, 1])
    return [a @ b, mx.addmm(c, a, b, alpha=0.5, beta=2.0), batch_a @ batch_b, batch_a @ b,
            a @ b[:, 0], mx.gather_mm(batch_a, batch_b, lhs, rhs), mx.einsum("ij,jk->ki", a, b),
            mx.inner(a, a), mx.outer(a[0], b[0]), mx.tensordot(a, b, 1)]


@function((mx.array([[4.0, 1.0, 0.5], [1.0, 5.0, -1.0], [0.5, -1.0, 6.0]]), grid(3, 2)))
def factors(a, b):
    """What is unique of them, signs included."""
    la = mx.linalg
    q, r = la.qr(b)
    values, vectors = la.eigh(a)
    u, s, vt = la.svd(a)
    eigenvalues, columns = la.eig(a)
    return [la.cholesky(a), la.cholesky(a, upper=True), la.inv(a), la.tri_inv(a), q, r, values,
            vectors * vectors, la.eigvalsh(a, UPLO="U"), (u * s[None]) @ vt, la.pinv(b),
            la.cholesky_inv(a, upper=True), mx.abs(mx.sum(columns * columns, 0)),
            mx.sort(mx.real(eigenvalues)), mx.sort(mx.real(la.eigvals(a))), la.norm(b), la.cross(a, a + 1)]


@function((grid(2, 7, 4), grid(6, 3, 2), grid(1, 5, 4, 2), grid(3, 2, 3, 2)))
def convolutions(a, v, x, w):
    return [mx.conv1d(a, v, 2, 1, 1, 2), mx.conv2d(x, w, (2, 1), (1, 0), (1, 1)),
            mx.conv_transpose2d(x, w, 2, 1), mx.conv_general(x, w, 1, ([2, -1], [0, 1]), 1, 2, 1, True)]


@function((grid(3, 4, 6), grid(3, 7)))
def fouriers(x, y):
    f = mx.fft
    z = f.rfft2(x)
    return [f.fft(x, axis=1), f.ifft(z, 5, 0, norm="ortho"), z, f.irfft(y), f.irfft(y, 11),
            f.irfftn(z, [4, 7], [1, 2], norm="forward"), f.fftn(x, [4, 2, 6], [2, 0, 1]),
            f.ifftshift(f.fftshift(y), [0]), f.fftfreq(5), f.rfftfreq(6, 0.5)]


KEPT = mx.array([[True, False], [True, True]])


@function((grid(3, 24), grid(40, 33), grid(33, 35), KEPT, KEPT.astype(mx.float32) + 1))
def matrices(h, a, b, kept, factors):
    return [mx.hadamard_transform(h), mx.hadamard_transform(a[:, :20], 0.5),
            mx.block_masked_mm(a, b, 32, kept), mx.block_masked_mm(a, b, 32, None, kept, factors),
            mx.block_masked_mm(a, b, 64, kept[:1, :1], factors[:1, :1])]


W = grid(8, 64, low=-1, high=1)
MODES = [("affine", {"group_size": 32, "bits": 4}), ("affine", {"bits": 8}), ("mxfp4", {}),
         ("mxfp8", {}), ("nvfp4", {})]
PACKED = [mx.quantize(W, mode=mode, **kind) for mode, kind in MODES]
EXPERTS = mx.quantize(grid(3, 8, 64, low=-1, high=1))
mx.eval(PACKED, EXPERTS)


@function((grid(2, 64, low=-1), grid(2, 1, 64), mx.array([2, 0])))
def quantized(x, tokens, experts):
    out = []
    for (mode, kind), packed in zip(MODES, PACKED):
        out.append(mx.quantized_matmul(x, *packed, transpose=True, mode=mode, **kind))
        if mode == "affine":
            out.append(mx.dequantize(*packed, mode=mode, **kind))
    out.append(mx.gather_qmm(tokens, *EXPERTS, rhs_indices=experts))
    out.extend(mx.quantize(x, group_size=32))
    return out


@function((mx.random.key(7),))
def randoms(key):
    k = mx.random.split(key, 7)
    return [mx.random.uniform(shape=(2, 3), key=k[0]), mx.random.normal((3,), key=k[1]),
            mx.random.randint(0, 10, (5,), key=k[2]), mx.random.bernoulli(0.5, (6,), key=k[3]),
            mx.random.categorical(mx.zeros((2, 4)), key=k[4]), mx.random.gumbel((4,), key=k[5]),
            mx.random.truncated_normal(-1, 1, (4,), key=k[6])]


@function((X,), (X, X[:1]), (X, {"b": POSITIVE}), ({"a": X[0], "b": X[1]},), (X.astype(mx.float16),), ())
def signatures(*args, **named):
    y = mx.array([[1.0, 2.0, 3.0]])
    for a in args:
        y = y + a
    for k, v in named.items():
        y = y * v if k == "b" else y - v
    return [y, y.sum()]




@function((grid(3, 4), grid(4, 5), grid(5)), shapeless=True)
def shapeless(x, w, b):
    y = mx.maximum(x @ w + b, 0)
    y = y - y.mean(-1, keepdims=True)
    return [y * mx.rsqrt(y.var(-1, keepdims=True) + 1e-5), mx.softmax(y, -1), x.T, x.sum(),
            mx.flatten(y), mx.expand_dims(y, 0), mx.concatenate([x, x], 0), x.reshape(-1)]


SHAPELESS_MORE = {"shapeless": [(grid(2, 6), grid(6, 5), grid(5)), (grid(5, 2), grid(2, 3), grid(3))]}


def run(f, call):
    args, named = call_of(call)
    out = f(*args, **named)
    return list(out) if isinstance(out, (list, tuple)) else [out]


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (fun, calls, shapeless) in FUNCTIONS.items():
        path = str(folder / (name + ".mlxfn"))
        arrays = {}
        with mx.exporter(path, fun, shapeless=shapeless) as export:
            for call in calls:
                args, named = call_of(call)
                export(*args, **named)
        imported = mx.import_function(path)
        for i, call in enumerate(list(calls) + SHAPELESS_MORE.get(name, [])):
            args, named = call_of(call)
            arrays.update({f"c{i}.in{k}": a for k, a in enumerate(args)})
            arrays.update({f"c{i}.kw.{k}": a for k, a in named.items()})
            arrays.update({f"c{i}.out{k}": a for k, a in enumerate(run(imported, call))})
        mx.savez_compressed(str(folder / (name + ".npz")), **arrays)


def numbers(a):
    return a.astype(mx.complex64 if a.dtype == mx.complex64 else mx.float64, stream=mx.cpu)


def check_call(imported, arrays, i):
    mine = {k.split(".", 1)[1]: v for k, v in arrays.items() if k.startswith(f"c{i}.")}
    args = [mine[f"in{k}"] for k in range(len(mine)) if f"in{k}" in mine]
    named = {k[3:]: v for k, v in mine.items() if k.startswith("kw.")}
    want = [mine[f"out{k}"] for k in range(len(mine)) if f"out{k}" in mine]
    found = run(imported, tuple(args) + ((named,) if named else ()))
    assert len(found) == len(want)
    for k, (a, b) in enumerate(zip(found, want)):
        assert a.dtype == b.dtype and a.shape == b.shape, (k, a.dtype, a.shape, b.dtype, b.shape)
        tolerance = {mx.float16: 2e-3, mx.bfloat16: 2e-2}.get(a.dtype, 1e-5)
        assert mx.allclose(numbers(a), numbers(b), tolerance, tolerance, equal_nan=True), (k, a, b)


def check(folder, others):
    for path in sorted(others.glob("*.mlxfn")):
        arrays = mx.load(str(folder / (path.stem + ".npz")))
        calls = 1 + max(int(k[1:k.index(".")]) for k in arrays)
        imported = mx.import_function(str(path))
        for i in range(calls):
            try:
                check_call(imported, arrays, i)
            except (AssertionError, RuntimeError, ValueError) as e:
                print(f"{path.name}, call {i}: {e!r}")
        print(f"{path.name}: {calls} calls")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(pathlib.Path(sys.argv[2]))
    else:
        check(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
