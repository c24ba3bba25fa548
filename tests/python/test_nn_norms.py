"""Normalizations."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_flatten

from nn_support import HALVES, as_numpy, check_close, check_gradient, values


def normalized(x, axes, eps=1e-5):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


def randomized(layer):
    """Other weights than ones and zeros, and what they are."""
    layer.apply(lambda x: mx.array(values(*x.shape, seed=x.size, low=0.5)))
    weight, bias = layer.get("weight"), layer.get("bias")
    return (
        1 if weight is None else np.array(weight),
        0 if bias is None else np.array(bias),
    )


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm(affine, bias):
    layer = nn.LayerNorm(6, affine=affine, bias=bias)
    weight, shift = randomized(layer)
    assert ("weight" in layer) == affine
    assert ("bias" in layer) == (affine and bias)
    for shape in ((6,), (4, 6), (2, 3, 6)):
        x = values(*shape)
        check_close(layer(mx.array(x)), normalized(x, -1) * weight + shift)
    check_gradient(layer, values(3, 6))
    assert repr(layer) == f"LayerNorm(6, eps=1e-05, affine={affine})"


def test_rms_norm():
    layer = nn.RMSNorm(6, eps=1e-3)
    weight, _ = randomized(layer)
    x = values(4, 6)
    check_close(layer(mx.array(x)), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3) * weight)
    check_gradient(layer, x)
    assert repr(layer) == "RMSNorm(6, eps=0.001)"


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(2, 5, 6), (2, 5, 4, 6), (2, 3, 4, 5, 6)])
def test_instance_norm(affine, shape):
    layer = nn.InstanceNorm(6, affine=affine)
    weight, bias = randomized(layer)
    x = values(*shape)
    expected = normalized(x, tuple(range(1, len(shape) - 1))) * weight + bias
    check_close(layer(mx.array(x)), expected, 1e-4)
    check_gradient(layer, x)
    assert repr(layer) == f"InstanceNorm(6, eps=1e-05, affine={affine})"


def test_instance_norm_of_large_halves():
    """Squares of these overflow in half precision, so that nothing may round in between."""
    x = (values(2, 64, 3) * 300 + 1000).astype(np.float16)
    y = nn.InstanceNorm(3)(mx.array(x))
    assert y.dtype == mx.float16
    check_close(y, normalized(x.astype(np.float64), 1), 1e-2)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("neighbours", [True, False])
def test_group_norm(affine, neighbours):
    layer = nn.GroupNorm(3, 6, affine=affine, pytorch_compatible=neighbours)
    weight, bias = randomized(layer)
    x = values(2, 5, 4, 6)
    # Axes of the groups and of the channels in them.
    split = x.reshape(2, 20, 3, 2) if neighbours else x.reshape(2, 20, 2, 3)
    expected = normalized(split, (1, 3) if neighbours else (1, 2)).reshape(x.shape)
    check_close(layer(mx.array(x)), expected * weight + bias, 1e-4)
    check_gradient(layer, x)
    assert repr(layer) == (
        f"GroupNorm(3, 6, eps=1e-05, affine={affine}, pytorch_compatible={neighbours})"
    )


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(8, 6), (4, 3, 6), (2, 3, 4, 6)])
def test_batch_norm(affine, shape):
    layer = nn.BatchNorm(6, momentum=0.25, affine=affine)
    weight, bias = (np.ones(6), np.zeros(6)) if affine else (1, 0)
    mean, variance = np.zeros(6), np.ones(6)
    axes = tuple(range(len(shape) - 1))
    for seed in range(3):
        x = values(*shape, seed=seed)
        check_close(layer(mx.array(x)), normalized(x, axes) * weight + bias, 1e-4)
        mean = 0.75 * mean + 0.25 * x.mean(axes)
        variance = 0.75 * variance + 0.25 * x.var(axes, ddof=1)
        check_close(layer.running_mean, mean)
        check_close(layer.running_var, variance)
    layer.eval()
    check_close(layer(mx.array(x)), (x - mean) / np.sqrt(variance + 1e-5), 1e-4)
    check_close(layer.running_mean, mean)
    assert repr(layer) == (
        f"BatchNorm(6, eps=1e-05, momentum=0.25, affine={affine}, track_running_stats=True)"
    )


def test_batch_norm_without_statistics():
    layer = nn.BatchNorm(6, track_running_stats=False)
    assert set(layer.parameters()) == {"weight", "bias"}
    x = values(8, 6)
    for mode in (True, False):
        check_close(layer.train(mode)(mx.array(x)), normalized(x, 0), 1e-4)


def test_statistics_are_never_trained():
    layer = nn.BatchNorm(6)
    for change in (layer.freeze, layer.unfreeze):
        change()
        assert "running_mean" not in layer.trainable_parameters()
        assert "running_var" not in layer.trainable_parameters()
    assert set(layer.trainable_parameters()) == {"weight", "bias"}
    assert set(layer.parameters()) == {"weight", "bias", "running_mean", "running_var"}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "layer, shape",
    [
        (nn.LayerNorm(6), (4, 6)),
        (nn.RMSNorm(6), (4, 6)),
        (nn.InstanceNorm(6, affine=True), (2, 9, 6)),
        (nn.GroupNorm(2, 6), (2, 9, 6)),
        (nn.BatchNorm(6), (16, 6)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_halves(layer, shape, dtype):
    layer.set_dtype(mx.float32)
    x = mx.array(values(*shape)).astype(dtype)
    expected = np.array(layer(x.astype(mx.float32)))
    layer.set_dtype(dtype)
    y = layer(x)
    assert y.dtype == dtype
    np.testing.assert_allclose(as_numpy(y), expected, atol=0.02 if dtype == mx.float16 else 0.1)


def test_errors():
    for layer in (nn.InstanceNorm, nn.LayerNorm, nn.RMSNorm, nn.BatchNorm):
        with pytest.raises(ValueError) as error:
            layer(4, eps=0)
        assert str(error.value) == f"[{layer.__name__}] 'eps' must be positive but got 0."
    for arguments, message in (
        ((0, 4), "The number of groups (0) must be a positive integer."),
        ((2, 0), "The number of features (0) must be a positive integer."),
        (
            (2, 3),
            "The number of features (3) must be evenly divisible by the number of groups (2).",
        ),
        ((2, 4, -1), "[GroupNorm] 'eps' must be positive but got -1."),
    ):
        with pytest.raises(ValueError) as error:
            nn.GroupNorm(*arguments)
        assert str(error.value) == message
    with pytest.raises(ValueError, match="at least 3 dimensions .* but the input has 2 dim"):
        nn.InstanceNorm(4)(mx.ones((2, 4)))
    for shape in ((4,), (1, 1, 1, 1, 4)):
        with pytest.raises(ValueError, match="to have 2, 3 or 4 dimensions, but got"):
            nn.BatchNorm(4)(mx.ones(shape))
    with pytest.raises(ValueError, match="requires more than one value per channel"):
        nn.BatchNorm(4)(mx.ones((1, 1, 4)))
    nn.BatchNorm(4).eval()(mx.ones((1, 4)))


def test_training_in_a_compiled_step():
    layer = nn.BatchNorm(3)
    step = mx.compile(lambda x: layer(x).sum(), inputs=layer.state, outputs=layer.state)
    x = values(5, 3)
    step(mx.array(x))
    check_close(layer.running_mean, 0.1 * x.mean(0))
    assert [name for name, _ in tree_flatten(layer.trainable_parameters())] == ["weight", "bias"]
