"""What the tests of mlx.nn and mlx.optimizers share."""

import mlx.core as mx
import numpy as np

# Rounding of each type, for results of a few operations.
TOLERANCE = {mx.float32: 2e-5, mx.float16: 4e-3, mx.bfloat16: 3e-2}
HALVES = (mx.float16, mx.bfloat16)


def values(*shape, seed=0, low=-2.0, high=2.0):
    """The same random numbers in every run."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def as_numpy(x):
    """An array's values; bfloat16, which NumPy does not have, as float32."""
    return np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def check_close(actual, expected, tolerance=None):
    """Values, shapes, and that the type is one of floating point numbers if it was expected."""
    if tolerance is None:
        tolerance = TOLERANCE.get(actual.dtype, 0)
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(
        as_numpy(actual).astype(np.float64), expected, rtol=tolerance, atol=tolerance
    )


def check_gradient(fn, *inputs, step=1e-2, tolerance=2e-2):
    """The gradient by the first input against differences, along a random direction."""
    arrays = [mx.array(x) for x in inputs]
    direction = values(*inputs[0].shape, seed=99)

    def total(*arrays):
        y = fn(*arrays)
        return (y * mx.cos(mx.arange(y.size).reshape(y.shape))).sum()

    gradient = mx.grad(total)(*arrays)
    assert gradient.shape == arrays[0].shape
    above, below = (
        total(arrays[0] + sign * step * mx.array(direction), *arrays[1:]).item() for sign in (1, -1)
    )
    along = (np.array(gradient) * direction).sum()
    np.testing.assert_allclose(along, (above - below) / (2 * step), rtol=tolerance, atol=tolerance)
