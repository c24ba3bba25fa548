"""Transposed convolutions, with channels last: what convolutions do to gradients."""

from __future__ import annotations

import mlx.core as mx
from mlx.nn.layers._common import repeated
from mlx.nn.layers.convolution import Convolution


class _ConvTranspose(Convolution):
    _arguments = ("stride", "padding", "dilation", "output_padding")
    _printed = _arguments


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution of sequences, shape ``NLC``.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the output.
        kernel_size: Size of the window.
        stride: Step of the window in the output.
        padding: How much is cut off on both sides.
        dilation: Distance of neighbours in the window.
        output_padding: How much the output is longer at its end.
        bias: Whether to add a bias to every channel.
    """

    _axes = 1
    _function = staticmethod(mx.conv_transpose1d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        output_padding: int = 0,
        bias: bool = True,
    ):
        super().__init__()
        self._make(
            in_channels,
            out_channels,
            kernel_size,
            bias,
            padding=padding,
            dilation=dilation,
            stride=stride,
            output_padding=output_padding,
        )


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution of images, shape ``NHWC``.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the output.
        kernel_size: Size of the window, one number or one for each of H and W.
        stride: Step of the window in the output, likewise.
        padding: How much is cut off on both sides, likewise.
        dilation: Distance of neighbours in the window, likewise.
        output_padding: How much the output is longer at its end, likewise.
        bias: Whether to add a bias to every channel.
    """

    _axes = 2
    _function = staticmethod(mx.conv_transpose2d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple,
        stride: int | tuple = 1,
        padding: int | tuple = 0,
        dilation: int | tuple = 1,
        output_padding: int | tuple = 0,
        bias: bool = True,
    ):
        super().__init__()
        self._make(
            in_channels,
            out_channels,
            kernel_size,
            bias,
            padding=repeated(padding, 2),
            stride=repeated(stride, 2),
            dilation=dilation,
            output_padding=repeated(output_padding, 2),
        )


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution of volumes, shape ``NDHWC``.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the output.
        kernel_size: Size of the window, one number or one for each of D, H and W.
        stride: Step of the window in the output, likewise.
        padding: How much is cut off on both sides, likewise.
        dilation: Distance of neighbours in the window, likewise.
        output_padding: How much the output is longer at its end, likewise.
        bias: Whether to add a bias to every channel.
    """

    _axes = 3
    _function = staticmethod(mx.conv_transpose3d)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple,
        stride: int | tuple = 1,
        padding: int | tuple = 0,
        dilation: int | tuple = 1,
        output_padding: int | tuple = 0,
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
            output_padding=repeated(output_padding, 3),
        )
