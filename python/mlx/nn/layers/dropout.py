"""Layers that set a part of their input to zero in training."""

from __future__ import annotations

import mlx.core as mx
from mlx.nn.layers.base import Module


class _Dropout(Module):
    """What is dropped as a whole has size 1 in the shape of the mask."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        if p < 0 or p >= 1:
            raise ValueError(f"The dropout probability {p} is not in [0, 1)")
        self._p_1 = 1 - p

    def _extra_repr(self) -> str:
        return f"p={1 - self._p_1}"

    def _mask_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def __call__(self, x: mx.array) -> mx.array:
        shape = self._mask_shape(x.shape)
        if self._p_1 == 1 or not self.training:
            return x
        mask = mx.random.bernoulli(self._p_1, shape)
        return mask * x * (1 / self._p_1)


class Dropout(_Dropout):
    """In training, sets elements to zero with probability ``p`` and divides others by ``1 - p``.

    Args:
        p: Probability, from 0 up to but not including 1.
    """


class _ChannelDropout(_Dropout):
    """Dropout of whole channels. The input is (batch,) + space + (channels,)."""

    _space: int

    def _mask_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        least = self._space + 1
        if len(shape) not in (least, least + 1):
            raise ValueError(
                f"Received input with {len(shape)} dimensions."
                f" Expected {least} or {least + 1} dimensions."
            )
        return (*shape[:-least], *(1,) * self._space, shape[-1])


class Dropout2d(_ChannelDropout):
    """:class:`Dropout` of whole channels of images, shape ``NHWC`` or ``HWC``.

    Args:
        p: Probability, from 0 up to but not including 1.
    """

    _space = 2


class Dropout3d(_ChannelDropout):
    """:class:`Dropout` of whole channels of volumes, shape ``NDHWC`` or ``DHWC``.

    Args:
        p: Probability, from 0 up to but not including 1.
    """

    _space = 3
