"""Convolutions, with channels last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import mlx.core as mx
from mlx.nn.layers._common import repeated, uniform_around_zero
from mlx.nn.layers.base import Module


class Convolution(Module):
    """What convolutions share; a subclass sets how many axes they run over and the function.

    ``weight`` has the shape ``(out_channels, *kernel_size, in_channels // groups)``.
    """

    _axes: int
    _function: Callable[..., mx.array]
    # The function's arguments behind the weight, which are attributes, too, in the function's
    # order and in that in which they are printed.
    _arguments: tuple[str, ...] = ("stride", "padding", "dilation", "groups")
    _printed: tuple[str, ...] = _arguments

    def _make(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        bias: bool,
        **settings: int | Sequence[int],
    ) -> None:
        """Make the parameters and store the settings."""
        kernel = repeated(kernel_size, self._axes)
        in_channels //= settings.get("groups", 1)
        limit = math.sqrt(1 / (in_channels * math.prod(kernel[: self._axes])))
        self.weight = uniform_around_zero(limit, out_channels, *kernel, in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        for name, value in settings.items():
            setattr(self, name, value)

    def _extra_repr(self) -> str:
        out_channels, *kernel, in_channels = self.weight.shape
        in_channels *= getattr(self, "groups", 1)
        kernel_size = kernel[0] if self._axes == 1 else tuple(kernel)
        settings = "".join(f" {name}={getattr(self, name)}," for name in self._printed)
        return (
            f"{in_channels}, {out_channels}, kernel_size={kernel_size},{settings}"
            f" bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        settings = (getattr(self, name) for name in self._arguments)
        y = type(self)._function(x, self.weight, *settings)
        return y + self.bias if "bias" in self else y


def check_groups(in_channels: int, groups: int) -> None:
    """An error unless the groups divide the channels."""
    if in_channels % groups != 0:
        raise ValueError(
            f"The number of input channels ({in_channels}) must be"
            f" divisible by the number of groups ({groups})"
        )


class Conv1d(Convolution):
    """A convolution of sequences, shape ``NLC``.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the output.
        kernel_size: Size of the window.
        stride: Step of the window.
        padding: Zeros added on both sides.
        dilation: Distance of neighbours in the window.
        groups: Channels are convolved in this many separate groups.
        bias: Whether to add a bias to every channel.
    """

    _axes = 1
    _function = staticmethod(mx.conv1d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        super().__init__()
        check_groups(in_channels, groups)
        self._make(
            in_channels,
            out_channels,
            kernel_size,
            bias,
            padding=padding,
            dilation=dilation,
            stride=stride,
            groups=groups,
        )


class Conv2d(Convolution):
    """A convolution of images, shape ``NHWC``.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the output.
        kernel_size: Size of the window, one number or one for each of H and W.
        stride: Step of the window, likewise.
        padding: Zeros added on both sides, likewise.
        dilation: Distance of neighbours in the window, likewise.
        groups: Channels are convolved in this many separate groups.
        bias: Whether to add a bias to every channel.
    """

    _axes = 2
    _function = staticmethod(mx.conv2d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple,
        stride: int | tuple = 1,
        padding: int | tuple = 0,
        dilation: int | tuple = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        super().__init__()
        check_groups(in_channels, groups)
        self._make(
            in_channels,
            out_channels,
            kernel_size,
            bias,
            padding=repeated(padding, 2),
            stride=repeated(stride, 2),
            dilation=dilation,
            groups=groups,
        )


class Conv3d(Convolution):
    """A convolution of volumes, shape ``NDHWC``.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the output.
        kernel_size: Size of the window, one number or one for each of D, H and W.
        stride: Step of the window, likewise.
        padding: Zeros added on both sides, likewise.
        dilation: Distance of neighbours in the window, likewise.
        bias: Whether to add a bias to every channel.
    """

    _axes = 3
    _function = staticmethod(mx.conv3d)
    _arguments = _printed = ("stride", "padding", "dilation")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple,
        stride: int | tuple = 1,
        padding: int | tuple = 0,
        dilation: int | tuple = 1,
        bias: bool = True,
    ):
        super().__init__()
        self._make(
            in_channels,
            out_channels,
            kernel_size,
            bias,
            padding=repeated(padding, 3),
            stride=repeated(stride, 3),
            dilation=dilation,
        )
