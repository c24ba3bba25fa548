"""Linear layers, embeddings, containers, dropout, positions, activations."""

import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from nn_support import HALVES, check_close, check_gradient, values


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape, bias):
    layer = nn.Linear(4, 5, bias=bias)
    x = values(*shape)
    expected = x @ np.array(layer.weight).T + (np.array(layer.bias) if bias else 0)
    check_close(layer(mx.array(x)), expected)
    assert ("bias" in layer) == bias
    assert np.abs(np.array(layer.weight)).max() <= 0.5


@pytest.mark.parametrize("dtype", HALVES)
def test_linear_of_halves(dtype):
    layer = nn.Linear(4, 5)
    layer.set_dtype(dtype)
    x = mx.array(values(3, 4)).astype(dtype)
    expected = np.array(x.astype(mx.float32)) @ np.array(layer.weight.astype(mx.float32)).T
    expected = expected + np.array(layer.bias.astype(mx.float32))
    y = layer(x)
    assert y.dtype == dtype
    check_close(y, expected)


def test_same_seed_same_weights():
    weights = []
    for _ in range(2):
        mx.random.seed(5)
        weights.append(np.array(nn.Linear(7, 3).weight))
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear(bias):
    layer = nn.Bilinear(4, 3, 5, bias)
    x1, x2 = values(2, 6, 4), values(2, 6, 3, seed=1)
    expected = np.einsum("...i,oji,...j->...o", x1, np.array(layer.weight), x2)
    expected = expected + (np.array(layer.bias) if bias else 0)
    check_close(layer(mx.array(x1), mx.array(x2)), expected, 1e-4)
    assert repr(layer) == f"Bilinear(input1_dims=4, input2_dims=3, output_dims=5, bias={bias})"


def test_identity():
    x = mx.ones((2,))
    assert nn.Identity(1, two=2)(x) is x


def test_sequential():
    model = nn.Sequential(nn.Linear(4, 5), nn.relu, nn.Linear(5, 2), lambda x: x * 2)
    x = values(3, 4)
    first, last = (model.layers[i] for i in (0, 2))
    expected = np.maximum(x @ np.array(first.weight).T + np.array(first.bias), 0)
    expected = 2 * (expected @ np.array(last.weight).T + np.array(last.bias))
    check_close(model(mx.array(x)), expected)
    assert nn.Sequential()(3) == 3


def test_embedding():
    layer = nn.Embedding(10, 4)
    table = np.array(layer.weight)
    check_close(layer(mx.array([[1, 9], [0, 1]])), table[[[1, 9], [0, 1]]], 0)
    check_close(layer(mx.array(3)), table[3], 0)
    x = values(2, 4)
    check_close(layer.as_linear(mx.array(x)), x @ table.T)
    assert repr(layer) == "Embedding(10, 4)"
    assert abs(np.array(nn.Embedding(1000, 25).weight).std() - 0.2) < 0.01


@pytest.mark.parametrize(
    "layer, shape, together",
    [
        (nn.Dropout, (50, 40), ()),
        (nn.Dropout2d, (20, 5, 6, 30), (1, 2)),
        (nn.Dropout2d, (5, 6, 300), (0, 1)),
        (nn.Dropout3d, (20, 3, 4, 5, 30), (1, 2, 3)),
        (nn.Dropout3d, (3, 4, 5, 300), (0, 1, 2)),
    ],
)
def test_dropout(layer, shape, together):
    module = layer(0.25)
    assert repr(module) == f"{layer.__name__}(p=0.25)"
    x = mx.ones(shape)
    y = np.array(module(x))
    assert set(np.unique(y)) == {0, np.float32(1 / 0.75)}
    assert 0.6 < (y != 0).mean() < 0.9
    # What is dropped together is all zero or not at all.
    assert (y.min(axis=together) == y.max(axis=together)).all()
    np.testing.assert_array_equal(np.array(module.eval()(x)), 1)
    np.testing.assert_array_equal(np.array(layer(0.0)(x)), 1)


@pytest.mark.parametrize("p", [1, 1.5, -0.1])
@pytest.mark.parametrize("layer", [nn.Dropout, nn.Dropout2d, nn.Dropout3d])
def test_dropout_errors(layer, p):
    with pytest.raises(ValueError) as error:
        layer(p)
    assert str(error.value) == f"The dropout probability {p} is not in [0, 1)"


def test_dropout_shapes():
    with pytest.raises(ValueError, match="with 2 dimensions. Expected 3 or 4 dimensions."):
        nn.Dropout2d()(mx.ones((2, 3)))
    with pytest.raises(ValueError, match="with 3 dimensions. Expected 4 or 5 dimensions."):
        nn.Dropout3d().eval()(mx.ones((2, 3, 4)))


@pytest.mark.parametrize("traditional", [False, True])
@pytest.mark.parametrize("offset", [0, 5])
def test_rope(traditional, offset):
    dims, length = 8, 3
    x = values(1, 2, length, 10)
    position = 0.5 * (np.arange(length) + offset)
    angle = position[:, None] * 100.0 ** (-np.arange(dims // 2) / (dims // 2))
    even = (slice(0, dims, 2), slice(1, dims, 2))
    halves = (slice(0, dims // 2), slice(dims // 2, dims))
    a, b = even if traditional else halves
    expected = x.copy()
    expected[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
    expected[..., b] = x[..., a] * np.sin(angle) + x[..., b] * np.cos(angle)
    layer = nn.RoPE(dims, traditional=traditional, base=100, scale=0.5)
    check_close(layer(mx.array(x), offset=offset), expected)
    assert repr(layer) == f"RoPE(8, traditional={traditional})"


@pytest.mark.parametrize("cos_first", [False, True])
@pytest.mark.parametrize("dims", [2, 8])
def test_sinusoidal(dims, cos_first):
    half = dims // 2
    share = np.arange(half) / max(half - 1, 1)
    frequency = 2.0 ** (1 - share) * 0.01**share * 2 * np.pi
    x = values(3, 4)
    angle = x[..., None] * frequency
    parts = [np.sin(angle), np.cos(angle)]
    expected = np.concatenate(parts[::-1] if cos_first else parts, axis=-1)
    layer = nn.SinusoidalPositionalEncoding(
        dims, min_freq=0.01, max_freq=2, cos_first=cos_first, full_turns=True
    )
    check_close(layer(mx.array(x)), expected * math.sqrt(2 / dims), 1e-4)
    layer.scale = 1
    check_close(layer(mx.array(x)), expected, 1e-4)
    assert layer.parameters() == {}


@pytest.mark.parametrize("dims", [0, -2, 3])
def test_sinusoidal_errors(dims):
    with pytest.raises(ValueError, match="dims must be positive and even but got"):
        nn.SinusoidalPositionalEncoding(dims)


def test_alibi():
    slopes = np.array(nn.ALiBi.create_alibi_slope(8))
    np.testing.assert_allclose(slopes[:, 0, 0], 2.0 ** -np.arange(1, 9))
    slopes = np.array(nn.ALiBi.create_alibi_slope(3))
    np.testing.assert_allclose(slopes[:, 0, 0], [2**-4, 2**-8, 2**-2])
    scores, mask = values(2, 8, 3, 5), values(3, 5, seed=1)
    distance = np.abs(np.arange(2, 5)[:, None] - np.arange(5))
    expected = scores - distance * 2.0 ** -np.arange(1, 9)[:, None, None]
    check_close(nn.ALiBi()(mx.array(scores), offset=2), expected)
    check_close(nn.ALiBi()(mx.array(scores), 2, mx.array(mask)), expected + mask)
    assert nn.ALiBi()(mx.array(scores).astype(mx.float16)).dtype == mx.float16


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def softplus(x):
    return np.log1p(np.exp(x))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * (np.exp(x) - 1))


erf = np.vectorize(math.erf)

# The function, the module that applies it, and what they compute.
ACTIVATIONS = [
    (nn.sigmoid, nn.Sigmoid, sigmoid),
    (nn.relu, nn.ReLU, lambda x: np.maximum(x, 0)),
    (nn.relu2, nn.ReLU2, lambda x: np.maximum(x, 0) ** 2),
    (nn.relu6, nn.ReLU6, lambda x: np.clip(x, 0, 6)),
    (nn.leaky_relu, nn.LeakyReLU, lambda x: np.where(x > 0, x, 0.01 * x)),
    (nn.elu, nn.ELU, elu),
    (nn.softmax, nn.Softmax, softmax),
    (nn.softmin, nn.Softmin, lambda x: softmax(-x)),
    (nn.log_softmax, nn.LogSoftmax, lambda x: np.log(softmax(x))),
    (nn.softplus, nn.Softplus, softplus),
    (nn.softsign, nn.Softsign, lambda x: x / (1 + np.abs(x))),
    (nn.softshrink, nn.Softshrink, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    (nn.celu, nn.CELU, elu),
    (nn.silu, nn.SiLU, lambda x: x * sigmoid(x)),
    (nn.log_sigmoid, nn.LogSigmoid, lambda x: np.log(sigmoid(x))),
    (nn.gelu, nn.GELU, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    (nn.glu, nn.GLU, lambda x: x[..., :3] * sigmoid(x[..., 3:])),
    (nn.selu, nn.SELU, lambda x: 1.0507 * elu(x, 1.67326)),
    (nn.mish, nn.Mish, lambda x: x * np.tanh(softplus(x))),
    (nn.hardswish, nn.Hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (nn.hard_tanh, nn.HardTanh, lambda x: np.clip(x, -1, 1)),
    (nn.hard_shrink, nn.HardShrink, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    (nn.tanh, nn.Tanh, np.tanh),
]


@pytest.mark.parametrize(
    "function, module, expected", ACTIVATIONS, ids=[row[1].__name__ for row in ACTIVATIONS]
)
def test_activations(function, module, expected):
    for shape in ((6,), (4, 6), (2, 3, 6)):
        x = values(*shape, low=-8, high=8)
        check_close(function(mx.array(x)), expected(x.astype(np.float64)))
        check_close(module()(mx.array(x)), expected(x.astype(np.float64)))
    for dtype in HALVES:
        y = function(mx.array(values(4, 6)).astype(dtype))
        assert y.dtype == dtype
        check_close(y, expected(values(4, 6).astype(np.float64)))
    x = values(4, 6)
    check_gradient(function, np.where(np.abs(x) < 0.6, 0.7, x), step=1e-3)
    assert module().parameters() == {}
    assert repr(module()) == f"{module.__name__}()"


# Functions with an argument, the modules that have it, and what they compute.
WITH_ARGUMENTS = [
    (nn.leaky_relu, nn.LeakyReLU, 0.3, lambda x: np.where(x > 0, x, 0.3 * x)),
    (nn.elu, nn.ELU, 0.3, lambda x: elu(x, 0.3)),
    (nn.celu, nn.CELU, 0.3, lambda x: np.where(x > 0, x, 0.3 * (np.exp(x / 0.3) - 1))),
    (nn.softshrink, nn.Softshrink, 1.0, lambda x: np.sign(x) * np.maximum(np.abs(x) - 1, 0)),
    (nn.hard_shrink, nn.HardShrink, 1.0, lambda x: np.where(np.abs(x) > 1, x, 0)),
    (nn.glu, nn.GLU, 0, lambda x: x[:2] * sigmoid(x[2:])),
]


@pytest.mark.parametrize(
    "function, module, argument, expected",
    WITH_ARGUMENTS,
    ids=[row[1].__name__ for row in WITH_ARGUMENTS],
)
def test_activations_with_arguments(function, module, argument, expected):
    x = values(4, 6)
    check_close(function(mx.array(x), argument), expected(x))
    check_close(module(argument)(mx.array(x)), expected(x))


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.softmin])
def test_axis_of_activations(function):
    x = values(4, 6)
    expected = function(mx.array(x.T)).T
    check_close(function(mx.array(x), axis=0), np.array(expected), 1e-6)


def test_step():
    x = mx.array([-1.0, 0.0, 0.5, 2.0])
    assert nn.step(x).tolist() == [0, 1, 1, 1]
    assert nn.step(x, 0.5).tolist() == [0, 0, 1, 1]
    assert nn.Step(1.0)(x).tolist() == [0, 0, 0, 1]
    assert nn.step(x).dtype == mx.int32


def test_prelu():
    x = values(3, 4)
    for count in (1, 4):
        layer = nn.PReLU(count, 0.1)
        check_close(layer(mx.array(x)), np.where(x > 0, x, 0.1 * x))
        assert layer.parameters()["weight"].shape == (count,)


def test_approximations_of_gelu():
    x = values(1000, low=-6, high=6)
    exact = x * (1 + erf(x / math.sqrt(2))) / 2
    for approx, error in (("none", 1e-5), ("precise", 5e-4), ("tanh", 5e-4), ("fast", 0.021)):
        y = nn.GELU(approx)(mx.array(x))
        assert np.abs(np.array(y) - exact).max() < error
    check_close(nn.gelu_fast_approx(mx.array(x)), x * sigmoid(1.702 * x))
    with pytest.raises(ValueError) as error:
        nn.GELU("other")
    assert str(error.value) == (
        "The approximation should be in ['none', 'precise', 'tanh', 'fast']"
        " but 'other' was given"
    )
