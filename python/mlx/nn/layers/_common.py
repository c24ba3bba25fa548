"""What several layers share."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx


def uniform_around_zero(limit: float, *shape: int) -> mx.array:
    """Random values between -limit and limit, what most weights begin with."""
    return mx.random.uniform(low=-limit, high=limit, shape=shape)


def repeated(value: int | Sequence[int], count: int) -> Sequence[int]:
    """A number for each of some axes: a single one goes for all of them."""
    return (value,) * count if isinstance(value, int) else value
