"""Functions applied element by element, or along one axis, and modules that apply them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import mlx.core as mx
from mlx.nn.layers.base import Module

# The operations of a function become one, whatever the shape.
_fused = partial(mx.compile, shapeless=True)


@_fused
def sigmoid(x: mx.array) -> mx.array:
    """``1 / (1 + exp(-x))``."""
    return mx.sigmoid(x)


@_fused
def relu(x: mx.array) -> mx.array:
    """``max(x, 0)``."""
    return mx.maximum(x, 0)


@_fused
def relu2(x: mx.array) -> mx.array:
    """``max(x, 0) ** 2``."""
    return mx.square(mx.maximum(x, 0))


@_fused
def relu6(x: mx.array) -> mx.array:
    """``min(max(x, 0), 6)``."""
    return mx.minimum(mx.maximum(x, 0), 6.0)


@_fused
def leaky_relu(x: mx.array, negative_slope: float = 0.01) -> mx.array:
    """``max(negative_slope * x, x)``."""
    return mx.maximum(negative_slope * x, x)


@_fused
def log_softmax(x: mx.array, axis: int = -1) -> mx.array:
    """``x - log(sum(exp(x)))``, along an axis."""
    below = x - mx.stop_gradient(mx.max(x, axis=axis, keepdims=True))
    return below - mx.logsumexp(below, axis=axis, keepdims=True)


@_fused
def elu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return mx.where(x > 0, x, alpha * (mx.exp(x) - 1))


@_fused
def softmax(x: mx.array, axis: int = -1) -> mx.array:
    """``exp(x) / sum(exp(x))``, along an axis."""
    return mx.softmax(x, axis=axis)


@_fused
def softplus(x: mx.array) -> mx.array:
    """``log(1 + exp(x))``."""
    return mx.logaddexp(x, 0)


@_fused
def softsign(x: mx.array) -> mx.array:
    """``x / (1 + abs(x))``."""
    return mx.divide(x, 1 + mx.abs(x))


@_fused
def softshrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """``x`` moved by ``lambd`` towards zero, and zero where it is not that far away."""
    return mx.where(mx.abs(x) > lambd, x - mx.sign(x) * lambd, 0)


@_fused
def celu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """``max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)``."""
    return mx.maximum(x, 0.0) + alpha * (mx.exp(mx.minimum(x, 0.0) / alpha) - 1)


@_fused
def silu(x: mx.array) -> mx.array:
    """``x * sigmoid(x)``, also called swish."""
    return x * mx.sigmoid(x)


@_fused
def log_sigmoid(x: mx.array) -> mx.array:
    """``log(sigmoid(x))``."""
    return -softplus(-x)


@_fused
def gelu(x: mx.array) -> mx.array:
    """``x`` times the normal distribution's probability of less than ``x``."""
    return x * (1 + mx.erf(x / math.sqrt(2))) / 2


@_fused
def gelu_approx(x: mx.array) -> mx.array:
    """:func:`gelu`, by a tangent: less than 0.0005 away for -6 < x < 6."""
    return 0.5 * x * (1 + mx.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@_fused
def gelu_fast_approx(x: mx.array) -> mx.array:
    """:func:`gelu`, as ``x * sigmoid(1.702 * x)``: less than 0.021 away for -6 < x < 6."""
    return x * mx.sigmoid(1.702 * x)


def glu(x: mx.array, axis: int = -1) -> mx.array:
    """The first half of ``x`` along an axis, times the sigmoid of the second."""
    value, gate = mx.split(x, indices_or_sections=2, axis=axis)
    return value * mx.sigmoid(gate)


@_fused
def step(x: mx.array, threshold: float = 0.0) -> mx.array:
    """1 where ``x >= threshold``, 0 elsewhere, as integers."""
    return mx.where(x >= threshold, 1, 0)


@_fused
def selu(x: mx.array) -> mx.array:
    """``1.0507 * elu(x, 1.67326)``."""
    return elu(x, 1.67326) * 1.0507


@_fused
def prelu(x: mx.array, alpha: mx.array) -> mx.array:
    """``max(0, x) + alpha * min(0, x)``."""
    return mx.maximum(0, x) + alpha * mx.minimum(0, x)


@_fused
def mish(x: mx.array) -> mx.array:
    """``x * tanh(softplus(x))``."""
    return x * mx.tanh(softplus(x))


@_fused
def hardswish(x: mx.array) -> mx.array:
    """``x * min(max(x + 3, 0), 6) / 6``."""
    return x * mx.minimum(mx.maximum(x + 3, 0), 6) / 6


@_fused
def hard_tanh(x: mx.array, min_val: float = -1.0, max_val: float = 1.0) -> mx.array:
    """``min(max(x, min_val), max_val)``."""
    return mx.minimum(mx.maximum(x, min_val), max_val)


@_fused
def hard_shrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """``x`` where its absolute value is above ``lambd``, zero elsewhere."""
    return mx.where(mx.abs(x) > lambd, x, 0)


@_fused
def softmin(x: mx.array, axis: int = -1) -> mx.array:
    """``softmax(-x)``."""
    return mx.softmax(-x, axis=axis)


def tanh(x: mx.array) -> mx.array:
    """The hyperbolic tangent."""
    return mx.tanh(x)


class _Activation(Module):
    """A module whose call is one function of its input."""

    _function: Callable[[mx.array], mx.array]

    def __call__(self, x: mx.array) -> mx.array:
        return type(self)._function(x)


class Sigmoid(_Activation):
    """Applies :func:`sigmoid`."""

    _function = staticmethod(sigmoid)


class Mish(_Activation):
    """Applies :func:`mish`."""

    _function = staticmethod(mish)


class ReLU(_Activation):
    """Applies :func:`relu`."""

    _function = staticmethod(relu)


class ReLU2(_Activation):
    """Applies :func:`relu2`."""

    _function = staticmethod(relu2)


class ReLU6(_Activation):
    """Applies :func:`relu6`."""

    _function = staticmethod(relu6)


class Softmax(_Activation):
    """Applies :func:`softmax` along the last axis."""

    _function = staticmethod(softmax)


class Softmin(_Activation):
    """Applies :func:`softmin` along the last axis."""

    _function = staticmethod(softmin)


class Softplus(_Activation):
    """Applies :func:`softplus`."""

    _function = staticmethod(softplus)


class Softsign(_Activation):
    """Applies :func:`softsign`."""

    _function = staticmethod(softsign)


class SiLU(_Activation):
    """Applies :func:`silu`."""

    _function = staticmethod(silu)


class LogSoftmax(_Activation):
    """Applies :func:`log_softmax` along the last axis."""

    _function = staticmethod(log_softmax)


class LogSigmoid(_Activation):
    """Applies :func:`log_sigmoid`."""

    _function = staticmethod(log_sigmoid)


class Tanh(_Activation):
    """Applies :func:`tanh`."""

    _function = staticmethod(tanh)


class Hardswish(_Activation):
    """Applies :func:`hardswish`."""

    _function = staticmethod(hardswish)


class SELU(_Activation):
    """Applies :func:`selu`."""

    _function = staticmethod(selu)


class HardTanh(_Activation):
    """Applies :func:`hard_tanh`, between -1 and 1."""

    _function = staticmethod(hard_tanh)


class GLU(Module):
    """Applies :func:`glu`.

    Args:
        axis: The axis that is halved.
    """

    def __init__(self, axis: int = -1):
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        return glu(x=x, axis=self.axis)


class LeakyReLU(Module):
    """Applies :func:`leaky_relu`.

    Args:
        negative_slope: The slope below zero.
    """

    def __init__(self, negative_slope: float = 0.01):
        super().__init__()
        self._negative_slope = negative_slope

    def __call__(self, x: mx.array) -> mx.array:
        return leaky_relu(x, self._negative_slope)


class ELU(Module):
    """Applies :func:`elu`.

    Args:
        alpha: The negative of what it tends to.
    """

    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        return elu(x, self._alpha)


class CELU(Module):
    """Applies :func:`celu`.

    Args:
        alpha: The negative of what it tends to.
    """

    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        return celu(x, self._alpha)


class Softshrink(Module):
    """Applies :func:`softshrink`.

    Args:
        lambd: How far values are moved.
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        return softshrink(x, self.lambd)


class HardShrink(Module):
    """Applies :func:`hard_shrink`.

    Args:
        lambd: Up to here values become zero.
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        return hard_shrink(x, self.lambd)


class Step(Module):
    """Applies :func:`step`.

    Args:
        threshold: From here on it is 1.
    """

    def __init__(self, threshold: float = 0.0):
        super().__init__()
        self.threshold = threshold

    def __call__(self, x: mx.array) -> mx.array:
        return step(x, self.threshold)


class PReLU(Module):
    """Applies :func:`prelu` with a slope below zero that is trained.

    Args:
        num_parameters: 1, or the number of features, each of which then has a slope of its own.
        init: What slopes begin with.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25):
        super().__init__()
        self.weight = mx.full([num_parameters], init)

    def __call__(self, x: mx.array) -> mx.array:
        return prelu(x, self.weight)


# The functions that GELU's argument stands for.
_GELUS = {
    "none": gelu,
    "precise": gelu_approx,
    "tanh": gelu_approx,
    "fast": gelu_fast_approx,
}


class GELU(Module):
    """Applies :func:`gelu`, or an approximation.

    Args:
        approx: ``"none"``, ``"precise"`` or ``"tanh"`` for :func:`gelu_approx`, ``"fast"`` for
            :func:`gelu_fast_approx`.
    """

    def __init__(self, approx: str = "none"):
        super().__init__()
        if approx not in _GELUS:
            raise ValueError(
                f"The approximation should be in {list(_GELUS)} but '{approx}' was given"
            )
        self._approx = approx

    def __call__(self, x: mx.array) -> mx.array:
        return _GELUS[self._approx](x)
