"""Initializers: functions that make an array like another one, for ``module.apply``.

For example ``layer.apply(nn.init.glorot_uniform())``. Only the shape of the other array counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import mlx.core as mx

Initializer = Callable[..., mx.array]


def constant(value: float, dtype: mx.Dtype = mx.float32) -> Initializer:
    """One value everywhere."""

    def initializer(a: mx.array) -> mx.array:
        return mx.full(a.shape, value, dtype=dtype)

    return initializer


def normal(mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """A normal distribution with this mean and standard deviation."""

    def initializer(a: mx.array) -> mx.array:
        return mx.random.normal(shape=a.shape, scale=std, loc=mean, dtype=dtype)

    return initializer


def uniform(low: float = 0.0, high: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """A uniform distribution from ``low`` to ``high``."""

    def initializer(a: mx.array) -> mx.array:
        return mx.random.uniform(low, high, a.shape, dtype=dtype)

    return initializer


def identity(dtype: mx.Dtype = mx.float32) -> Initializer:
    """The identity matrix, for square matrices."""

    def initializer(arr: mx.array) -> mx.array:
        if arr.ndim != 2 or arr.shape[0] != arr.shape[1]:
            raise ValueError(f"The input array must be a square matrix but got shape {arr.shape}.")
        return mx.eye(n=arr.shape[0], dtype=dtype)

    return initializer


def _fans(a: mx.array) -> dict[str, int]:
    """How many inputs an output of a layer has, and how many outputs an input.

    The layer's weight is ``(outputs, ..., inputs)``; in between are the axes of a window.
    """
    if a.ndim < 2:
        raise ValueError(
            "Glorot / He initialization requires at least 2 dimensional input but input with"
            f" {a.ndim} dimensions."
        )
    outputs, *window, inputs = a.shape
    return {"fan_in": inputs * math.prod(window), "fan_out": outputs * math.prod(window)}


def _fan(a: mx.array, mode: str) -> int:
    fans = _fans(a)
    if mode not in fans:
        raise ValueError(f"Invalid mode: {mode}. Valid modes are: {', '.join(fans)}")
    return fans[mode]


def glorot_normal(dtype: mx.Dtype = mx.float32) -> Initializer:
    """A normal distribution with the deviation ``gain * sqrt(2 / (fan_in + fan_out))``.

    ``gain`` is the second argument of the initializer.
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        std = gain * math.sqrt(2.0 / sum(_fans(a).values()))
        return mx.random.normal(shape=a.shape, scale=std, dtype=dtype)

    return initializer


def glorot_uniform(dtype: mx.Dtype = mx.float32) -> Initializer:
    """A uniform distribution within ``gain * sqrt(6 / (fan_in + fan_out))`` of zero.

    ``gain`` is the second argument of the initializer.
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        limit = gain * math.sqrt(6.0 / sum(_fans(a).values()))
        return mx.random.uniform(-limit, limit, a.shape, dtype=dtype)

    return initializer


def he_normal(dtype: mx.Dtype = mx.float32) -> Initializer:
    """A normal distribution with the deviation ``gain / sqrt(fan)``.

    ``mode``, ``"fan_in"`` or ``"fan_out"``, and ``gain`` are arguments of the initializer.
    """

    def initializer(
        a: mx.array, mode: Literal["fan_in", "fan_out"] = "fan_in", gain: float = 1.0
    ) -> mx.array:
        std = gain / math.sqrt(_fan(a, mode))
        return mx.random.normal(shape=a.shape, scale=std, dtype=dtype)

    return initializer


def he_uniform(dtype: mx.Dtype = mx.float32) -> Initializer:
    """A uniform distribution within ``gain * sqrt(3 / fan)`` of zero.

    ``mode``, ``"fan_in"`` or ``"fan_out"``, and ``gain`` are arguments of the initializer.
    """

    def initializer(
        a: mx.array, mode: Literal["fan_in", "fan_out"] = "fan_in", gain: float = 1.0
    ) -> mx.array:
        limit = gain * math.sqrt(3.0 / _fan(a, mode))
        return mx.random.uniform(-limit, limit, a.shape, dtype=dtype)

    return initializer


def sparse(
    sparsity: float, mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Initializer:
    """A normal distribution for matrices, with a share ``sparsity`` of each row set to zero."""

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2:
            raise ValueError("Only tensors with 2 dimensions are supported")
        rows, columns = a.shape
        zeros = math.ceil(sparsity * columns)
        order = mx.argsort(mx.random.uniform(shape=a.shape), axis=1)
        result = mx.random.normal(shape=a.shape, scale=std, loc=mean, dtype=dtype)
        result[mx.arange(rows)[:, None], order[:, :zeros]] = 0
        return result

    return initializer


def orthogonal(gain: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """A matrix with orthogonal rows, or columns, of length ``gain``."""

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2:
            raise ValueError(
                f"Orthogonal initialization requires a 2D array but got a {a.ndim}D array."
            )
        rows, columns = a.shape
        size = max(rows, columns)
        q, r = mx.linalg.qr(mx.random.normal(shape=(size, size)), stream=mx.cpu)
        # With these signs all rotations are equally likely.
        q = q * mx.sign(mx.diag(r))
        return (q[:rows, :columns] * gain).astype(dtype)

    return initializer
