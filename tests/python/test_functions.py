"""Functions of the tables against NumPy: each calls what it says, with its arguments in place."""

import mlx.core as mx
import numpy as np
import pytest

X = np.linspace(-0.9, 0.9, 12, dtype=np.float32).reshape(3, 4)
P = np.abs(X) + 1.5

UNARY = {
    "abs": X,
    "arccos": X,
    "arccosh": P,
    "arcsin": X,
    "arcsinh": X,
    "arctan": X,
    "arctanh": X,
    "ceil": P,
    "cos": X,
    "cosh": X,
    "degrees": X,
    "exp": X,
    "expm1": X,
    "floor": P,
    "isfinite": X,
    "isinf": X,
    "isnan": X,
    "isneginf": X,
    "isposinf": X,
    "log": P,
    "log10": P,
    "log1p": P,
    "log2": P,
    "logical_not": X,
    "negative": X,
    "positive": X,
    "radians": X,
    "reciprocal": P,
    "sign": X,
    "sin": X,
    "sinh": X,
    "sqrt": P,
    "square": X,
    "tan": X,
    "tanh": X,
    "conj": X,
    "conjugate": X,
    "real": X,
    "imag": X,
    "nan_to_num": X,
    "round": P,
}
BINARY = [
    "add",
    "arctan2",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "maximum",
    "minimum",
    "multiply",
    "not_equal",
    "power",
    "remainder",
    "subtract",
]
REDUCTIONS = ["sum", "prod", "min", "max", "all", "any", "mean", "var", "std", "median"]
METHODS = {"sum", "prod", "min", "max", "all", "any", "mean", "var", "std"}


def close(got, want):
    assert got.shape == np.shape(want)
    assert np.allclose(got.tolist(), want, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name, device):
    want = getattr(np, name)(UNARY[name])
    close(getattr(mx, name)(mx.array(UNARY[name])), want)
    if hasattr(mx.array, name) and name not in ("real", "imag"):
        close(getattr(mx.array(UNARY[name]), name)(), want)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name, device):
    close(getattr(mx, name)(mx.array(P), mx.array(P[:1] + 1)), getattr(np, name)(P, P[:1] + 1))
    close(getattr(mx, name)(mx.array(P), 2.0), getattr(np, name)(P, 2.0))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), [1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims, device):
    axes = tuple(axis) if isinstance(axis, list) else axis
    want = getattr(np, name)(P, axis=axes, keepdims=keepdims)
    close(getattr(mx, name)(mx.array(P), axis=axis, keepdims=keepdims), want)
    close(getattr(mx, name)(mx.array(P), axis, keepdims), want)
    if name in METHODS:
        close(getattr(mx.array(P), name)(axis, keepdims=keepdims), want)


def test_other_reductions(device):
    a = mx.array(P)
    close(mx.var(a, axis=1, ddof=1), np.var(P, axis=1, ddof=1))
    close(mx.std(a, ddof=1), np.std(P, ddof=1))
    close(mx.logsumexp(a, axis=0), np.log(np.exp(P).sum(0)))
    close(mx.softmax(a, axis=-1, precise=True), np.exp(P) / np.exp(P).sum(-1, keepdims=True))
    close(mx.softmax(a), np.exp(P) / np.exp(P).sum())
    low, high = mx.minmax(a, axis=1, keepdims=True)
    close(low, P.min(1, keepdims=True))
    close(high, P.max(1, keepdims=True))
    for name in ("argmin", "argmax"):
        close(getattr(mx, name)(a), getattr(np, name)(P))
        close(getattr(mx, name)(a, axis=1), getattr(np, name)(P, axis=1))
        close(getattr(a, name)(1, keepdims=True), getattr(np, name)(P, axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans(name, device):
    a, want = mx.array(P), getattr(np, name)
    close(getattr(mx, name)(a), want(P))
    close(getattr(mx, name)(a, axis=0), want(P, axis=0))
    close(getattr(mx, name)(a, axis=1, reverse=True), want(P[:, ::-1], axis=1)[:, ::-1])
    close(getattr(a, name)(0), want(P, axis=0))
    assert getattr(mx, name)(a, axis=0, dtype=mx.float16).dtype == mx.float16


def test_more_scans(device):
    a = mx.array(X)
    close(mx.cummax(a, axis=1), np.maximum.accumulate(X, 1))
    close(mx.cummin(a), np.minimum.accumulate(X.ravel()))
    close(mx.logcumsumexp(a, axis=1), np.log(np.cumsum(np.exp(X), 1)))
    close(mx.cumsum(a, axis=1, inclusive=False)[..., 1:], np.cumsum(X, 1)[:, :-1])


def test_sorting(device):
    n = np.random.default_rng(1).permutation(24).reshape(4, 6).astype(np.float32)
    a = mx.array(n)
    for name in ("sort", "argsort"):
        close(getattr(mx, name)(a), getattr(np, name)(n))
        close(getattr(mx, name)(a, axis=0), getattr(np, name)(n, axis=0))
        close(getattr(mx, name)(a, axis=None), getattr(np, name)(n, axis=None))
    assert sorted(mx.topk(a, 2).tolist()[0]) == sorted(n[0])[-2:]
    assert (
        mx.split(mx.partition(a, 2, axis=1), [2, 3], 1)[1].tolist() == np.sort(n)[:, 2:3].tolist()
    )
    assert mx.argpartition(a, 2, axis=None).shape == (24,)


SHAPES = [
    (lambda m, a: m.reshape(a, (4, -1)), None),
    (lambda m, a: m.transpose(a), None),
    (lambda m, a: m.transpose(a, (2, 0, 1)), None),
    (lambda m, a: m.swapaxes(a, 0, -1), None),
    (lambda m, a: m.moveaxis(a, 0, 2), None),
    (lambda m, a: m.squeeze(m.expand_dims(a, 1)), None),
    (lambda m, a: m.squeeze(m.expand_dims(a, (0, -1)), axis=(0,)), None),
    (lambda m, a: m.broadcast_to(a, (5, 2, 3, 4)), None),
    (lambda m, a: m.repeat(a, 2, axis=1), None),
    (lambda m, a: m.repeat(a, 2), None),
    (lambda m, a: m.tile(a, (2, 1, 2)), None),
    (lambda m, a: m.tile(a, 2), None),
    (lambda m, a: m.roll(a, 2), None),
    (lambda m, a: m.roll(a, (1, 2), (0, 2)), None),
    (lambda m, a: m.roll(a, 1, (0, 2)), None),
    (lambda m, a: m.roll(a, (1, 2), 2), None),
    (lambda m, a: m.roll(a, (1, 2)), None),
    (lambda m, a: m.pad(a, 1), None),
    (lambda m, a: m.pad(a, [(1, 2), (0, 0), (3, 1)], constant_values=5), None),
    (lambda m, a: m.pad(a, ((1, 2),), mode="edge"), None),
    (lambda m, a: m.diagonal(a, 1, 1, 2), None),
    (lambda m, a: m.tril(a, 1), None),
    (lambda m, a: m.triu(a), None),
    (lambda m, a: m.trace(a), None),
    (lambda m, a: m.concatenate([a, a], axis=1), None),
    (lambda m, a: m.stack([a, a], axis=-1), None),
    (lambda m, a: m.concatenate((a, a), axis=None), None),
    (lambda m, a: m.take(a, m.array([1, 0]), axis=1), None),
    (lambda m, a: m.where(a > 3, a, 0), None),
    (lambda m, a: m.clip(a, 2, None), None),
    (lambda m, a: m.clip(a, None, 5), None),
    (lambda m, a: m.tensordot(a, a, [[0, 1], [0, 1]]), None),
    (lambda m, a: m.tensordot(a, m.transpose(a), 1), None),
    (lambda m, a: m.inner(a, a), None),
    (lambda m, a: m.outer(a, a), None),
    (lambda m, a: m.kron(a, a), None),
    (lambda m, a: m.einsum("ijk,ijl->kl", a, a), None),
    (lambda m, a: m.matmul(a, m.swapaxes(a, 1, 2)), None),
]


@pytest.mark.parametrize("i", range(len(SHAPES)))
def test_shapes(i, device):
    n = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    close(SHAPES[i][0](mx, mx.array(n)), SHAPES[i][0](np, n))


def test_shape_methods():
    a = mx.arange(24).reshape(2, 3, 4)
    assert a.reshape(6, -1).shape == a.reshape((6, -1)).shape == a.reshape([6, 4]).shape == (6, 4)
    assert a.reshape(24).shape == (24,) and mx.array([1]).reshape(()).shape == ()
    assert a.transpose().shape == (4, 3, 2) and a.transpose(1, 0, 2).shape == (3, 2, 4)
    assert a.transpose((1, 0, 2)).shape == (3, 2, 4) and a.flatten(1).shape == (2, 12)
    assert a.astype(mx.float16).dtype == mx.float16 and a.view(mx.uint8).shape == (2, 3, 16)
    assert [p.shape for p in a.split(2)] == [(1, 3, 4)] * 2
    assert [p.shape for p in a.split([1], axis=1)] == [(2, 1, 4), (2, 2, 4)]
    assert a.squeeze().shape == (2, 3, 4) and a.moveaxis(0, 1).shape == (3, 2, 4)
    assert mx.unflatten(a, 2, (2, -1)).shape == (2, 3, 2, 2)
    assert a.__array_namespace__() is mx
    with pytest.raises(TypeError):
        mx.reshape(a, 6)
    with pytest.raises(TypeError):
        a.reshape(2.0)


def test_lists_of_arrays():
    a, b = mx.array([1, 2]), mx.array([3])
    assert [x.shape for x in mx.broadcast_arrays(a, b)] == [(2,), (2,)]
    assert isinstance(mx.broadcast_arrays(a, b), tuple)
    assert [x.tolist() for x in mx.meshgrid(a, b, indexing="ij")] == [[[1], [2]], [[3], [3]]]
    assert mx.meshgrid(a, b, sparse=True)[0].shape == (1, 2)
    assert mx.atleast_2d(a).shape == (1, 2) and [x.shape for x in mx.atleast_3d(a, b)] == [
        (1, 2, 1),
        (1, 1, 1),
    ]
    assert mx.atleast_1d() == [] and isinstance(mx.divmod(a, 2), list)
    assert mx.broadcast_shapes((1, 2), [3, 1], ()) == (3, 2)
    assert mx.depends(a, b).tolist() == [1, 2] and len(mx.depends([a, b], [b])) == 2
    with pytest.raises(ValueError):
        mx.broadcast_shapes((2, 3), (4,))
    with pytest.raises(ValueError):
        mx.broadcast_shapes()
    with pytest.raises(TypeError):
        mx.concatenate([a, 1])
    with pytest.raises(TypeError):
        mx.stack(5)


def test_elements_by_position(device):
    a = mx.arange(6).reshape(2, 3)
    assert mx.take(a, 4).item() == 4 and mx.take(a, 1, axis=0).tolist() == [3, 4, 5]
    assert mx.take_along_axis(a, mx.array([[2], [0]]), axis=1).tolist() == [[2], [3]]
    assert mx.take_along_axis(a, mx.array([5]), axis=None).tolist() == [5]
    assert mx.put_along_axis(a, mx.array([[0], [1]]), mx.array(9), 1).tolist() == [
        [9, 1, 2],
        [3, 9, 5],
    ]
    assert mx.put_along_axis(a, mx.array([5]), mx.array(9), None).tolist() == [[0, 1, 2], [3, 4, 9]]
    assert mx.slice(a, mx.array([0, 1]), (0, 1), (2, 2)).tolist() == [[1, 2], [4, 5]]
    assert mx.slice_update(a, mx.array([[8]]), mx.array([1, 2]), (0, 1)).tolist() == [
        [0, 1, 2],
        [3, 4, 8],
    ]
    assert mx.as_strided(a, (2, 2), (1, 2), 1).tolist() == [[1, 3], [2, 4]]
    assert mx.as_strided(a, (3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(TypeError):
        mx.take(a, 2.5)


def test_convolutions(device):
    x, w = np.arange(5, dtype=np.float32), np.array([1, 2, -1], np.float32)
    for mode in ("full", "same", "valid"):
        close(mx.convolve(mx.array(x), mx.array(w), mode), np.convolve(x, w, mode))
        close(mx.convolve(mx.array(w[:2]), mx.array(x), mode), np.convolve(w[:2], x, mode))
    a, b = mx.ones((1, 4, 4, 2)), mx.ones((3, 2, 2, 2))
    assert mx.conv2d(a, b, 2).shape == mx.conv2d(a, b, (2, 2)).shape == (1, 2, 2, 3)
    assert mx.conv2d(a, b, padding=(1, 0), dilation=[1, 2]).shape == (1, 5, 2, 3)
    assert mx.conv_general(a, b, stride=[1, 2], padding=([1, 0], [0, 0])).shape == (1, 4, 2, 3)
    assert mx.conv_general(a, b, padding=1, flip=True).shape == (1, 5, 5, 3)
    with pytest.raises(TypeError):
        mx.conv2d(a, b, stride=(1, 2, 3))
    with pytest.raises(ValueError):
        mx.convolve(a, b)


def test_quantized(device):
    w = mx.random.normal((4, 64), key=mx.random.key(1))
    packed, scales, biases = mx.quantize(w, group_size=32, bits=8)
    back = mx.dequantize(packed, scales, biases, 32, 8)
    assert mx.allclose(back, w, atol=0.05).item()
    x = mx.ones((1, 64))
    assert mx.allclose(
        mx.quantized_matmul(x, packed, scales, biases, group_size=32, bits=8), x @ back.T, rtol=1e-3
    ).item()
    assert len(mx.quantize(w, mode="mxfp4", group_size=32, bits=4)) == 2


def test_linalg():
    mx.set_default_device(mx.cpu)
    n = np.array([[4.0, 1], [1, 3]], np.float32)
    a = mx.array(n)
    close(mx.linalg.cholesky(a), np.linalg.cholesky(n))
    close(mx.linalg.inv(a), np.linalg.inv(n))
    close(mx.linalg.det(a), np.linalg.det(n))
    _sign, log = mx.linalg.slogdet(a)
    close(log, np.linalg.slogdet(n)[1])
    q, r = mx.linalg.qr(a)
    close(q @ r, n)
    values, _ = mx.linalg.eigh(a)
    close(values, np.linalg.eigh(n)[0])
    assert len(mx.linalg.svd(a)) == 3
    close(mx.linalg.svd(a, compute_uv=False), np.linalg.svd(n)[1])
    assert isinstance(mx.linalg.lu(a), tuple)
    for order, axis in [
        (None, None),
        (2, None),
        ("fro", None),
        (1, 0),
        (float("inf"), 1),
        ("nuc", (0, 1)),
    ]:
        close(mx.linalg.norm(a, order, axis), np.linalg.norm(n, order, axis))
    close(mx.linalg.norm(a, keepdims=True), np.linalg.norm(n, keepdims=True))
    with pytest.raises(TypeError):
        mx.linalg.norm(a, [1])


def test_fast(device):
    x = mx.random.normal((1, 2, 3, 4), key=mx.random.key(0))
    w = mx.ones((4,))
    assert mx.allclose(
        mx.fast.rms_norm(x, w, 1e-5), x * mx.rsqrt(mx.mean(x * x, -1, True) + 1e-5)
    ).item()
    assert mx.fast.layer_norm(x, None, None, 1e-5).shape == x.shape
    one = mx.fast.rope(x, 4, traditional=False, base=10000.0, scale=1.0, offset=2)
    two = mx.fast.rope(x, 4, traditional=False, base=10000.0, scale=1.0, offset=mx.array(2))
    assert mx.allclose(one, two).item()
    for mask in (None, "causal", mx.ones((3, 3), mx.bool_)):
        assert mx.fast.scaled_dot_product_attention(x, x, x, scale=0.5, mask=mask).shape == x.shape
    with pytest.raises(ValueError, match="mask"):
        mx.fast.scaled_dot_product_attention(x, x, x, scale=0.5, mask="x")
    with pytest.raises(RuntimeError, match="Metal"):
        mx.fast.metal_kernel("k", ["a"], ["b"], "")(inputs=[])
    with pytest.raises(RuntimeError, match="CUDA"):
        mx.fast.cuda_kernel("k", ["a"], ["b"], "")


def test_random(device):
    key = mx.random.key(3)
    assert mx.random.split(key, 3).shape == (3, 2)
    for make in (
        lambda k: mx.random.uniform(-1, 1, (50,), key=k),
        lambda k: mx.random.normal((50,), key=k),
        lambda k: mx.random.randint(0, 9, (50,), key=k),
        lambda k: mx.random.bernoulli(0.3, (50,), k),
        lambda k: mx.random.gumbel((50,), key=k),
        lambda k: mx.random.laplace((50,), key=k),
        lambda k: mx.random.truncated_normal(-1, 1, (50,), key=k),
        lambda k: mx.random.categorical(mx.zeros((5, 9)), num_samples=10, key=k),
        lambda k: mx.random.permutation(50, key=k),
    ):
        assert make(key).tolist() == make(key).tolist() != make(mx.random.key(4)).tolist()
    mx.random.seed(5)
    first = mx.random.uniform().item()
    mx.random.seed(5)
    assert mx.random.uniform().item() == first
    assert mx.random.bernoulli(mx.array([0.0, 1.0])).tolist() == [False, True]
    assert mx.random.truncated_normal(mx.array([0.0, 1.0]), 2).shape == (2,)
    assert sorted(mx.random.permutation(mx.arange(5)).tolist()) == [0, 1, 2, 3, 4]
    assert mx.random.normal((2,), mx.float16, loc=mx.array([1.0, 2.0]), scale=0).dtype == mx.float16
    with pytest.raises(ValueError, match="At most one"):
        mx.random.categorical(mx.zeros((2, 3)), shape=(2,), num_samples=2)
    for seed in (-1, 1.5, 2**64):
        with pytest.raises(TypeError):
            mx.random.key(seed)


FFTS = [
    (lambda m, a: m.fft.fft(a), None),
    (lambda m, a: m.fft.fft(a, 6, 0, "ortho"), None),
    (lambda m, a: m.fft.ifft(a, axis=0), None),
    (lambda m, a: m.fft.rfft(a, n=3), None),
    (lambda m, a: m.fft.irfft(a), None),
    (lambda m, a: m.fft.irfft(a, 5, norm="forward"), None),
    (lambda m, a: m.fft.fft2(a), None),
    (lambda m, a: m.fft.ifft2(a, s=(3, 3), axes=(0, 1)), None),
    (lambda m, a: m.fft.rfft2(a), None),
    (lambda m, a: m.fft.irfft2(a), None),
    (lambda m, a: m.fft.fftn(a), None),
    (lambda m, a: m.fft.ifftn(a, axes=[0]), None),
    (lambda m, a: m.fft.rfftn(a, axes=(1, 0)), None),
    (lambda m, a: m.fft.irfftn(a), None),
    (lambda m, a: m.fft.fftshift(a), None),
    (lambda m, a: m.fft.ifftshift(a, axes=1), None),
]


@pytest.mark.parametrize("i", range(len(FFTS)))
def test_fourier_transforms(i, device):
    close(FFTS[i][0](mx, mx.array(P)), FFTS[i][0](np, P))


def test_fourier_frequencies_and_errors():
    close(mx.fft.fftfreq(5, 0.5), np.fft.fftfreq(5, 0.5))
    close(mx.fft.rfftfreq(5), np.fft.rfftfreq(5))
    a = mx.array(P)
    for wrong in (
        lambda: mx.fft.fft(a, norm="x"),
        lambda: mx.fft.fftn(a, s=(3,)),
        lambda: mx.fft.fftn(a, s=(3,), axes=(0, 1)),
        lambda: mx.fft.fftn(mx.array(1.0)),
        lambda: mx.fft.fft(a, n=0),
        lambda: mx.fft.fft(a, axis=5),
    ):
        with pytest.raises(ValueError):
            wrong()
    for wrong in (
        lambda: mx.fft.fft(a, norm=None),
        lambda: mx.fft.fftn(a, s=3),
        lambda: mx.fft.fft(a, axis=None),
    ):
        with pytest.raises(TypeError):
            wrong()
