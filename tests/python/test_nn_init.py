"""mlx.nn.init."""

import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

# Rows, a window and columns: 4 * 6 inputs of each output, and 30 * 6 outputs of each input.
SHAPE = (300, 2, 3, 40)
FAN_IN, FAN_OUT = 40 * 6, 300 * 6

DISTRIBUTIONS = [
    (nn.init.normal(0.5, 2.0), {}, 0.5, 2.0, None),
    (nn.init.uniform(-1, 3), {}, 1, 4 / math.sqrt(12), (-1, 3)),
    (nn.init.glorot_normal(), {}, 0, math.sqrt(2 / (FAN_IN + FAN_OUT)), None),
    (nn.init.glorot_normal(), {"gain": 3.0}, 0, 3 * math.sqrt(2 / (FAN_IN + FAN_OUT)), None),
    (nn.init.glorot_uniform(), {}, 0, math.sqrt(2 / (FAN_IN + FAN_OUT)), "uniform"),
    (nn.init.he_normal(), {}, 0, math.sqrt(1 / FAN_IN), None),
    (nn.init.he_normal(), {"mode": "fan_out", "gain": 2.0}, 0, 2 / math.sqrt(FAN_OUT), None),
    (nn.init.he_uniform(), {}, 0, math.sqrt(1 / FAN_IN), "uniform"),
    (nn.init.he_uniform(), {"mode": "fan_out"}, 0, math.sqrt(1 / FAN_OUT), "uniform"),
]


@pytest.mark.parametrize("initializer, arguments, mean, deviation, limits", DISTRIBUTIONS)
def test_distributions(initializer, arguments, mean, deviation, limits):
    x = np.array(initializer(mx.zeros(SHAPE), **arguments))
    assert x.shape == SHAPE and x.dtype == np.float32
    assert abs(x.mean() - mean) < 0.02 * deviation
    assert abs(x.std() - deviation) < 0.02 * deviation
    if limits == "uniform":
        limits = (mean - math.sqrt(3) * deviation, mean + math.sqrt(3) * deviation)
    if limits:
        assert limits[0] - 1e-6 <= x.min() and x.max() <= limits[1] + 1e-6
    else:
        assert x.max() > mean + 3 * deviation


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
@pytest.mark.parametrize(
    "make",
    [
        lambda dtype: nn.init.constant(2.5, dtype),
        lambda dtype: nn.init.normal(dtype=dtype),
        lambda dtype: nn.init.uniform(dtype=dtype),
        nn.init.identity,
        nn.init.glorot_normal,
        nn.init.glorot_uniform,
        nn.init.he_normal,
        nn.init.he_uniform,
        lambda dtype: nn.init.sparse(0.5, dtype=dtype),
        lambda dtype: nn.init.orthogonal(dtype=dtype),
    ],
)
def test_types(make, dtype):
    x = make(dtype)(mx.zeros((6, 6)))
    assert x.dtype == dtype and x.shape == (6, 6)


def test_constants():
    assert nn.init.constant(2.5)(mx.zeros((2, 3))).tolist() == [[2.5] * 3] * 2
    assert nn.init.identity()(mx.zeros((2, 2))).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("sparsity, zeros", [(0.0, 0), (0.25, 10), (0.26, 11), (1.0, 40)])
def test_sparse(sparsity, zeros):
    x = np.array(nn.init.sparse(sparsity, mean=3.0, std=0.5)(mx.zeros((30, 40))))
    assert ((x == 0).sum(1) == zeros).all()
    if zeros < 40:
        assert abs(x[x != 0].mean() - 3) < 0.1


@pytest.mark.parametrize("shape", [(5, 5), (4, 7), (7, 4)])
def test_orthogonal(shape):
    x = np.array(nn.init.orthogonal(gain=2.0)(mx.zeros(shape)))
    product = x @ x.T if shape[0] <= shape[1] else x.T @ x
    np.testing.assert_allclose(product, 4 * np.eye(min(shape)), atol=1e-5)


def test_modules():
    model = nn.Sequential(nn.Linear(4, 5, bias=False), nn.Linear(5, 6, bias=False))
    model.apply(nn.init.constant(0.5))
    assert model.layers[1].weight.sum().item() == 15


@pytest.mark.parametrize(
    "initializer, arguments, message",
    [
        (
            nn.init.identity(),
            (mx.zeros((2, 3)),),
            "The input array must be a square matrix but got shape (2, 3).",
        ),
        (
            nn.init.glorot_normal(),
            (mx.zeros((3,)),),
            "Glorot / He initialization requires at least 2 dimensional input but input with"
            " 1 dimensions.",
        ),
        (
            nn.init.he_uniform(),
            (mx.zeros((3, 3)), "other"),
            "Invalid mode: other. Valid modes are: fan_in, fan_out",
        ),
        (
            nn.init.sparse(0.5),
            (mx.zeros((3,)),),
            "Only tensors with 2 dimensions are supported",
        ),
        (
            nn.init.orthogonal(),
            (mx.zeros((3, 3, 3)),),
            "Orthogonal initialization requires a 2D array but got a 3D array.",
        ),
    ],
)
def test_errors(initializer, arguments, message):
    with pytest.raises(ValueError) as error:
        initializer(*arguments)
    assert str(error.value) == message
