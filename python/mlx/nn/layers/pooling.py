"""Maxima and means of windows, with channels last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import mlx.core as mx
from mlx.nn.layers.base import Module


def _blocks(x: mx.array, window: Sequence[int]) -> mx.array:
    """Windows that follow one another without a gap or rest: a reshape does."""
    batch, *space, channels = x.shape
    split = [part for size, w in zip(space, window) for part in (size // w, w)]
    axes = range(1, len(split) + 1)
    x = x.reshape(batch, *split, channels)
    return x.transpose(0, *axes[::2], *axes[1::2], len(split) + 1)


def _windows(x: mx.array, window: Sequence[int], step: Sequence[int]) -> mx.array:
    """All windows: shape ``(batch, *places, *window, channels)``."""
    if x.ndim < 3:
        raise ValueError(
            "To extract sliding windows at least 1 spatial dimension (3 total) is needed"
            f" but the input only has {x.ndim} dimensions."
        )
    batch, *space, channels = x.shape
    if not len(space) == len(window) == len(step):
        raise ValueError(
            "To extract sliding windows the window shapes and strides must have the same number of"
            f" spatial dimensions as the signal but the signal has {len(space)} dims and the"
            f" window shape has {len(window)} and strides have {len(step)}."
        )
    if all(w == s and size % w == 0 for size, w, s in zip(space, window, step)):
        return _blocks(x, window)

    strides = [math.prod(x.shape[axis + 1 :]) for axis in range(x.ndim)]
    places = [(size - w) // s + 1 for size, w, s in zip(space, window, step)]
    steps = [stride * s for stride, s in zip(strides[1:-1], step)]
    return mx.as_strided(
        x,
        [batch, *places, *window, channels],
        [strides[0], *steps, *strides[1:-1], strides[-1]],
    )


class _Pool(Module):
    """What pooling layers share; subclasses set the number of axes, the function and the filler."""

    _count: int
    _function: Callable[..., mx.array]
    _filler: float

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
    ):
        """Make a layer.

        Args:
            kernel_size: Size of the window, one number or one for each axis.
            stride: Step of the window, likewise; by default windows follow one another.
            padding: How much is added on both sides, likewise: zeros for means, minus infinity for
                maxima.
        """
        super().__init__()
        self._kernel_size = self._numbers("kernel_size", kernel_size)
        self._stride = self._kernel_size if stride is None else self._numbers("stride", stride)
        self._padding = self._numbers("padding", padding)
        self._check("kernel_size", "positive", self._kernel_size, 1)
        self._check("stride", "positive", self._stride, 1)
        self._check("padding", "non-negative", self._padding, 0)

    def _numbers(self, name: str, value: int | Sequence[int]) -> tuple[int, ...]:
        """A number for each axis."""
        if isinstance(value, int):
            return (value,) * self._count
        if isinstance(value, (list, tuple)) and len(value) == self._count:
            return tuple(value)
        numbers = "1 integer" if self._count == 1 else f"{self._count} integers"
        raise ValueError(
            f"[{type(self).__name__}] '{name}' must be an integer or a tuple containing {numbers}"
        )

    def _check(self, name: str, kind: str, values: tuple[int, ...], least: int) -> None:
        if any(value < least for value in values):
            raise ValueError(f"[{type(self).__name__}] '{name}' must be {kind} but got {values}.")

    def _extra_repr(self) -> str:
        return f"kernel_size={self._kernel_size}, stride={self._stride}, padding={self._padding}"

    def __call__(self, x: mx.array) -> mx.array:
        if any(self._padding):
            widths = [(0, 0), *((p, p) for p in self._padding), (0, 0)]
            x = mx.pad(x, widths, constant_values=self._filler)
        axes = tuple(range(-self._count - 1, -1))
        return type(self)._function(_windows(x, self._kernel_size, self._stride), axes)


class _MaxPool(_Pool):
    _function = staticmethod(mx.max)
    _filler = -math.inf


class _AvgPool(_Pool):
    _function = staticmethod(mx.mean)
    _filler = 0


class MaxPool1d(_MaxPool):
    """Maxima of windows of sequences, shape ``NLC``."""

    _count = 1


class AvgPool1d(_AvgPool):
    """Means of windows of sequences, shape ``NLC``."""

    _count = 1


class MaxPool2d(_MaxPool):
    """Maxima of windows of images, shape ``NHWC``."""

    _count = 2


class AvgPool2d(_AvgPool):
    """Means of windows of images, shape ``NHWC``."""

    _count = 2


class MaxPool3d(_MaxPool):
    """Maxima of windows of volumes, shape ``NDHWC``."""

    _count = 3


class AvgPool3d(_AvgPool):
    """Means of windows of volumes, shape ``NDHWC``."""

    _count = 3
