"""Schedules: functions of the step, counted from 0, that take the place of a learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable

import mlx.core as mx

__all__ = [
    "cosine_decay",
    "exponential_decay",
    "join_schedules",
    "linear_schedule",
    "step_decay",
]

Schedule = Callable[[mx.array], mx.array]


def _check_steps(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} must be greater than 0, but got {value}.")


def exponential_decay(init: float, decay_rate: float) -> Schedule:
    """``init * decay_rate ** step``."""

    def schedule(step: mx.array) -> mx.array:
        return init * decay_rate**step

    return schedule


def step_decay(init: float, decay_rate: float, step_size: int) -> Schedule:
    """``init``, multiplied by ``decay_rate`` every ``step_size`` steps."""
    _check_steps("step_size", step_size)

    def schedule(step: mx.array) -> mx.array:
        return init * decay_rate ** (step // step_size)

    return schedule


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Schedule:
    """From ``init`` to ``end`` along half a cosine of ``decay_steps`` steps, then ``end``."""
    _check_steps("decay_steps", decay_steps)

    def schedule(step: mx.array) -> mx.array:
        angle = (math.pi / decay_steps) * mx.minimum(step, decay_steps)
        return end + 0.5 * (1.0 + mx.cos(angle)) * (init - end)

    return schedule


def join_schedules(schedules: list[Schedule], boundaries: list[int]) -> Schedule:
    """One schedule after another.

    Args:
        schedules: Each counts its own steps from 0.
        boundaries: The steps at which the second and the following ones begin.
    """
    if len(schedules) == 0:
        raise ValueError("Must provide at least 1 schedule to join.")
    if len(schedules) != len(boundaries) + 1:
        raise ValueError(
            f"Received {len(boundaries)} boundaries but expected {len(schedules) - 1}."
        )

    def schedule(step: mx.array) -> mx.array:
        value = schedules[0](step)
        for begin, following in zip(boundaries, schedules[1:]):
            value = mx.where(step < begin, value, following(step - begin))
        return value

    return schedule


def linear_schedule(init: float, end: float, steps: int) -> Schedule:
    """From ``init`` to ``end`` in ``steps`` equal steps, then ``end``."""
    _check_steps("steps", steps)

    def schedule(step: mx.array) -> mx.array:
        return mx.minimum(step, steps) * ((end - init) / steps) + init

    return schedule
