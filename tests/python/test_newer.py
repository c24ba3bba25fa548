"""Functions that releases of MLX have added, against NumPy."""

import mlx.core as mx
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")


def same(got, want):
    assert got.shape == np.shape(want)
    np.testing.assert_array_equal(np.array(got), want)


def near(got, want, tolerance=1e-5):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.array(got), want, tolerance, tolerance * np.abs(want).max())


# ---- unique ----


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "float32", "float16"])
@pytest.mark.parametrize("size", [0, 1, 5, 13, 40])
def test_unique(dtype, size):
    a = np.random.default_rng(3).integers(0, 13, (7, 9)).astype(dtype)
    wanted = np.unique(a, return_index=True, return_inverse=True, return_counts=True)
    n = min(size, 13)
    parts = mx.unique(mx.array(a), size, True, True, True, fill_value=3)
    assert [p.dtype for p in parts[1:]] == [mx.uint32, mx.uint32, mx.int32]
    assert parts[0].dtype == getattr(mx, dtype)
    fills = (3, wanted[1][0], 0)
    for got, want, fill in zip((parts[0], parts[1], parts[3]), (*wanted[:2], wanted[3]), fills):
        same(got, np.r_[want[:n], np.full(size - n, fill)])
    same(parts[2], np.minimum(wanted[2].reshape(a.shape), max(size - 1, 0)))


def test_unique_one_and_several():
    a = mx.array([2, 1, 2, 3, 1])
    same(mx.unique(a, 5), [1, 2, 3, 1, 1])
    values, counts = mx.unique(a, 2, return_counts=True)
    same(values, [1, 2])
    same(counts, [2, 2])
    same(mx.unique(mx.array(5), 2, False, True)[1], 0)
    same(mx.unique(mx.zeros((2, 0)), 2, True, True, True, fill_value=4)[2], np.zeros((2, 0)))
    same(mx.unique(mx.array([True, False, True]), 2), [False, True])


def test_unique_of_what_is_not_a_number():
    a = mx.array([np.nan, 1, np.nan, -0.0, 0.0])
    values, index, inverse, counts = mx.unique(a, 5, True, True, True, mx.array([7]))
    same(values, [0, 1, np.nan, np.nan, 7])
    same(index, [3, 1, 0, 2, 3])
    same(inverse, [2, 1, 3, 0, 0])
    same(counts, [2, 1, 1, 1, 0])


def test_unique_transformed():
    a = mx.array([[1.0, 2.0, 1.0], [5.0, 5.0, 4.0]])
    same(mx.vmap(lambda x: mx.unique(x, 2))(a), [[1, 2], [4, 5]])
    same(mx.compile(lambda x: mx.unique(x, 3, True, True, True))(a[0])[2], [0, 1, 0])
    weights = mx.array([1.0, 2.0, 4.0, 8.0])
    same(mx.grad(lambda x: (weights * mx.unique(x, 4)).sum())(a[0]), [13, 2, 0])
    same(mx.grad(lambda x: (weights * mx.unique(x, 4, fill_value=9)).sum())(a[0]), [1, 2, 0])


@pytest.mark.parametrize(
    ("args", "named", "error"),
    [
        ((-1,), {}, ValueError),
        ((2,), {"fill_value": mx.array([1, 2])}, ValueError),
        ((2,), {"fill_value": "x"}, ValueError),
        ((2,), {"fill_value": [1]}, ValueError),
        ((), {}, TypeError),
        ((2.0,), {}, TypeError),
        ((2, None), {}, TypeError),
    ],
)
def test_unique_refuses(args, named, error):
    with pytest.raises(error):
        mx.unique(mx.array([1, 2]), *args, **named)


def test_unique_of_nothing_needs_a_fill_value():
    with pytest.raises(ValueError, match="fill value"):
        mx.unique(mx.zeros((0,)), 1)
    assert mx.unique(mx.zeros((0,)), 0).shape == (0,)


# ---- cross entropy ----


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(9,), (4, 9), (2, 3, 300)])
def test_cross_entropy(dtype, shape):
    r = np.random.default_rng(5)
    x = mx.array(r.normal(size=shape).astype(np.float32)).astype(getattr(mx, dtype))
    at = r.integers(0, shape[-1], shape[:-1])
    wide = np.array(x.astype(mx.float32)).astype(np.float64)
    picked = np.take_along_axis(wide, np.asarray(at)[..., None], -1)[..., 0]
    got = mx.fast.cross_entropy(x, mx.array(at))
    assert got.dtype == mx.float32
    near(got, np.log(np.exp(wide).sum(-1)) - picked)
    soft = np.exp(wide) / np.exp(wide).sum(-1, keepdims=True)
    grad = mx.grad(lambda x: mx.fast.cross_entropy(x, mx.array(at)).sum())(x)
    assert grad.dtype == x.dtype
    near(grad.astype(mx.float32), soft - np.eye(shape[-1])[at], 1e-2 if dtype[0] != "f" else 1e-3)


def test_cross_entropy_in_batches():
    x, at = mx.array([[1.0, 2, 3], [4, 5, 9]]), mx.array([0, 2])
    near(mx.vmap(mx.fast.cross_entropy)(x, at), np.array(mx.fast.cross_entropy(x, at)))


@pytest.mark.parametrize(
    ("logits", "targets"),
    [
        (mx.zeros((2, 3)), mx.array([0])),
        (mx.zeros((2, 3)), mx.array([[0], [1]])),
        (mx.zeros((2, 3)), mx.array([0.0, 1.0])),
        (mx.zeros((2, 3)), mx.array([True, False])),
        (mx.zeros((2, 3), mx.int32), mx.array([0, 1])),
        (mx.zeros((2, 3), mx.complex64), mx.array([0, 1])),
        (mx.array(1.0), mx.array(0)),
    ],
)
def test_cross_entropy_refuses(logits, targets):
    with pytest.raises(ValueError, match="cross_entropy"):
        mx.fast.cross_entropy(logits, targets)


# ---- Fourier transforms of pieces ----


def spectra(x, n, hop, window, onesided):
    at = np.arange(0, x.shape[-1] - n + 1, hop)[:, None] + np.arange(n)
    fft = np.fft.rfft if onesided else np.fft.fft
    return np.swapaxes(fft(x[..., at] * window), -1, -2)


@pytest.mark.parametrize(("n", "hop"), [(8, None), (7, 3), (16, 16), (5, 9)])
@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("mode", ["reflect", "constant", "edge", None])
def test_stft(n, hop, onesided, mode):
    r = np.random.default_rng(n)
    x, window = r.normal(size=(2, 40)).astype(np.float32), np.hanning(n - 1).astype(np.float32)
    whole = np.pad(x, ((0, 0), (n // 2, n // 2)), mode) if mode else x
    wide = np.r_[window, np.zeros(1)]  # (n - 1) in the middle of n
    named = {"center": False} if mode is None else {"pad_mode": mode}
    got = mx.fft.stft(mx.array(x), n, hop, window=mx.array(window), onesided=onesided, **named)
    assert got.dtype == mx.complex64
    near(got, spectra(whole, n, hop or n // 4, wide, onesided))


def test_stft_by_default():
    x = mx.arange(30).astype(mx.float32)
    assert mx.fft.stft(x).shape == (1025, 1)
    assert mx.fft.stft(x.astype(mx.complex64), 8).shape == (8, 16)
    padded = np.pad(np.array(x), 4, "reflect")
    short = np.r_[0, 0, np.ones(4), 0, 0]
    near(mx.fft.stft(x, 8, win_length=4), spectra(padded, 8, 2, short, True))
    near(mx.fft.stft(x, 8, norm="forward"), spectra(padded, 8, 2, np.ones(8), True) / 8)
    batch = mx.stack([x, x * 2])
    near(mx.vmap(lambda x: mx.fft.stft(x, 8))(batch), np.array(mx.fft.stft(batch, 8)))


@pytest.mark.parametrize(("n", "hop"), [(8, 2), (8, 4), (7, 2), (16, 4)])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("onesided", [True, False])
def test_istft_undoes_stft(n, hop, norm, onesided):
    x = np.random.default_rng(n).normal(size=(3, 64)).astype(np.float32)
    named = {"window": mx.array(np.hanning(n + 2)[1:-1].astype(np.float32)), "norm": norm}
    named["onesided"] = onesided
    piece = mx.fft.stft(mx.array(x), n, hop, **named)
    got = mx.fft.istft(piece, n, hop, length=64, **named)
    assert got.dtype == mx.float32
    covered = min(64, n + hop * (piece.shape[-1] - 1) - n // 2)
    near(got[:, :covered], x[:, :covered], 1e-4)


def test_istft_lengths():
    x = mx.arange(30).astype(mx.float32)
    pieces = mx.fft.stft(x, 8)
    near(mx.fft.istft(pieces), np.arange(30))
    near(mx.fft.istft(pieces, length=10), np.arange(10))
    near(mx.fft.istft(pieces, length=36), [*range(30), 28, 27, 26, 25, 0, 0])
    assert mx.fft.istft(pieces, length=-1).shape == (0,)
    assert mx.fft.istft(pieces, center=False).shape == (38,)
    assert mx.fft.istft(pieces, hop_length=9).shape == (135,)
    same(mx.fft.istft(pieces, window=mx.zeros(8)), np.zeros(30))


def test_pieces_have_gradients():
    x = mx.array(np.random.default_rng(1).normal(size=30).astype(np.float32))

    def loss(x):
        return (mx.fft.istft(mx.fft.stft(x, 8) * 2, 8) ** 2).sum()

    near(mx.grad(loss)(x), 8 * np.array(x), 1e-4)


@pytest.mark.parametrize(
    "named",
    [
        {"n_fft": 0},
        {"n_fft": 3},
        {"n_fft": 8, "hop_length": 0},
        {"n_fft": 8, "win_length": 9},
        {"n_fft": 8, "win_length": -1},
        {"n_fft": 8, "window": mx.ones((8, 1))},
        {"n_fft": 8, "norm": "x"},
    ],
)
def test_pieces_refuse(named):
    with pytest.raises(ValueError):
        mx.fft.stft(mx.zeros(30), **named)
    with pytest.raises(ValueError):
        mx.fft.istft(mx.zeros((5, 3), mx.complex64), **named)


def test_stft_refuses_what_is_short():
    for x in (mx.array(1.0), mx.zeros(0), mx.zeros((2, 0))):
        with pytest.raises(ValueError):
            mx.fft.stft(x, 8)
    with pytest.raises(ValueError):
        mx.fft.stft(mx.zeros(7), 8, center=False)
    with pytest.raises(ValueError):
        mx.fft.stft(mx.zeros(30), 8, pad_mode="no")
    for shape in ((5,), (5, 0), (1, 3)):
        with pytest.raises(ValueError):
            mx.fft.istft(mx.zeros(shape, mx.complex64))


# ---- the gated delta rule ----


def delta_rule(q, k, v, gamma, beta, state, mask=None):
    times = v.shape[2] // q.shape[2]
    q, k = np.repeat(q, times, 2), np.repeat(k, times, 2)
    steps = []
    for t in range(q.shape[1]):
        now = state * gamma[:, t, :, None, None]
        lack = (v[:, t] - (now * k[:, t, :, None]).sum(-1)) * beta[:, t, :, None]
        now = now + lack[..., None] * k[:, t, :, None]
        y = (now * q[:, t, :, None]).sum(-1)
        if mask is not None:
            here = mask[:, t, None, None]
            now, y = np.where(here[..., None], now, state), np.where(here, y, 0)
        state = now
        steps.append(y)
    return np.stack(steps, 1), state


def delta_inputs(steps, heads, of_values, dtype):
    r = np.random.default_rng(steps)
    shapes = ((2, steps, heads, 8),) * 2 + ((2, steps, of_values, 4),)
    arrays = [r.normal(size=s) / 2 for s in shapes]
    arrays += [r.uniform(0, 1, (2, steps, of_values)) for _ in range(2)]
    made = [mx.array(a.astype(np.float32)).astype(dtype) for a in arrays]
    return made, [np.array(a.astype(mx.float32)) for a in made]


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
@pytest.mark.parametrize(("steps", "heads", "of_values"), [(1, 2, 2), (5, 2, 4), (20, 1, 3)])
def test_gated_delta_update(dtype, steps, heads, of_values):
    made, plain = delta_inputs(steps, heads, of_values, dtype)
    tolerance = 1e-5 if dtype == mx.float32 else 1e-2
    none = np.zeros((2, of_values, 4, 8), np.float32)
    results = mx.fast.gated_delta_update(*made)
    assert [x.dtype for x in results] == [dtype, mx.float32]
    for got, want in zip(results, delta_rule(*plain, none)):
        near(got.astype(mx.float32), want, tolerance)
    state = np.random.default_rng(0).normal(size=none.shape).astype(np.float32)
    mask = np.random.default_rng(1).uniform(size=(2, steps)) < 0.7
    results = mx.fast.gated_delta_update(*made, mx.array(state), mx.array(mask))
    for got, want in zip(results, delta_rule(*plain, state, mask)):
        near(got.astype(mx.float32), want, tolerance)


def test_gated_delta_update_has_gradients():
    made, _ = delta_inputs(3, 2, 2, mx.float32)

    def loss(v):
        return mx.fast.gated_delta_update(*made[:2], v, *made[3:])[0].sum()

    step = mx.zeros_like(made[2])
    step[1, 0, 1, 2] = 1  # the results are linear in v
    near(mx.grad(loss)(made[2])[1, 0, 1, 2], np.array(loss(step)), 1e-4)


def test_gated_delta_update_refuses():
    made, _ = delta_inputs(3, 2, 2, mx.float32)
    for i in range(5):
        for bad in (made[i][0], made[i][:, :2], made[i][:, :0])[:: 1 if i else 2]:
            with pytest.raises(ValueError):
                mx.fast.gated_delta_update(*made[:i], bad, *made[i + 1 :])
    with pytest.raises(ValueError):
        mx.fast.gated_delta_update(*made, None, mx.ones((2, 2)))


# ---- sizes of buffers ----


def test_get_array_buffer_size():
    a, b = mx.zeros((1000,)), mx.zeros((3,), mx.uint8)
    mx.eval(a, b)
    part = a[10:20]
    mx.eval(part)
    size, small = mx.get_array_buffer_size(a), mx.get_array_buffer_size(b)
    assert size >= 4000 and small >= 3
    assert mx.get_array_buffer_size(a, part, [a]) == size
    assert mx.get_array_buffer_size([a, {"b": (b, 1, "text")}], None) == size + small
    assert mx.get_array_buffer_size() == mx.get_array_buffer_size(1, "text") == 0
    with pytest.raises(ValueError, match="evaluated"):
        mx.get_array_buffer_size(a, a + 1)


# ---- scales of matrices ----


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_gather_qmm_with_global_scales(dtype):
    r = np.random.default_rng(2)
    parts = [mx.array((r.normal(size=(8, 64)) * 9**i).astype(np.float32)) for i in range(3)]
    most = mx.stack([mx.abs(p).max() for p in parts])
    packed = [mx.quantize(p, mode="nvfp4", global_scale=m) for p, m in zip(parts, most)]
    w, scales = (mx.stack(list(x)) for x in zip(*packed))
    x = mx.array(r.normal(size=(2, 5, 64)).astype(np.float32)).astype(dtype)
    plain = [
        mx.dequantize(*p, mode="nvfp4", global_scale=m, dtype=mx.float32)
        for p, m in zip(packed, most)
    ]
    left, right = mx.array([1, 0, 1, 0]), mx.array([2, 0, 1, 2])
    got = mx.gather_qmm(x, w, scales, None, left, right, mode="nvfp4", global_scale=most)
    assert got.dtype == dtype
    for i, (a, b) in enumerate(zip(left.tolist(), right.tolist())):
        want = np.array(x[a].astype(mx.float32)) @ np.array(plain[b]).T
        near(got[i].astype(mx.float32), want, 1e-4 if dtype == mx.float32 else 1e-2)


def test_global_scales_refused():
    w, scales = mx.quantize(mx.ones((3, 8, 64)), mode="nvfp4")
    x, at = mx.ones((1, 2, 64)), mx.array([1])
    scale = mx.ones(3)
    for bad in (mx.array(1.0), mx.ones(2), mx.ones((3, 1)), scale.astype(mx.float16)):
        with pytest.raises(ValueError):
            mx.gather_qmm(x, w, scales, rhs_indices=at, mode="nvfp4", global_scale=bad)
    with pytest.raises(ValueError, match="indices"):
        mx.gather_qmm(x, w, scales, mode="nvfp4", global_scale=scale)
    w, scales = mx.quantize(mx.ones((3, 8, 64)), mode="mxfp4")
    with pytest.raises(ValueError, match="nvfp4"):
        mx.gather_qmm(x, w, scales, rhs_indices=at, mode="mxfp4", global_scale=scale)


def test_correction_is_another_word_for_ddof():
    a = mx.array([[1.0, 2, 4], [3, 3, 9]])
    near(mx.var(a, correction=1), np.var(np.array(a), ddof=1))
    near(mx.std(a, 1, ddof=2, correction=1), np.std(np.array(a), 1, ddof=1))
    near(a.var(axis=0, ddof=1, correction=0), np.var(np.array(a), 0))
    near(a.std(ddof=1, correction=None), np.std(np.array(a), ddof=1))
