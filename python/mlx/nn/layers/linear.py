"""Linear and bilinear maps."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx
from mlx.nn.layers._common import uniform_around_zero
from mlx.nn.layers.base import Module
from mlx.nn.layers.quantized import QQLinear, QuantizedLinear


class Identity(Module):
    """Returns its input. Arguments are taken and ignored, so that it can stand for any layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __call__(self, x: mx.array) -> mx.array:
        return x


class Linear(Module):
    """``x @ weight.T + bias``, over the last axis.

    Args:
        input_dims: Size of the last axis of the input.
        output_dims: Size of the last axis of the output.
        bias: Whether to add a bias.

    ``weight`` has the shape ``(output_dims, input_dims)``; it and ``bias`` begin uniformly random
    within ``1 / sqrt(input_dims)`` of zero.
    """

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        limit = math.sqrt(1.0 / input_dims)
        self.weight = uniform_around_zero(limit, output_dims, input_dims)
        if bias:
            self.bias = uniform_around_zero(limit, output_dims)

    def _extra_repr(self) -> str:
        shape = self.weight.shape
        return f"input_dims={shape[1]}, output_dims={shape[0]}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        # Names in the dictionary are found faster than attributes.
        if "bias" in self:
            return mx.addmm(self["bias"], x, self["weight"].T)
        return x @ self["weight"].T

    def to_quantized(
        self,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> QuantizedLinear | QQLinear:
        """This layer with quantized weights, a :class:`QuantizedLinear`.

        Args:
            group_size, bits, mode: As in :func:`mlx.core.quantize`.
            quantize_input: Whether the input is quantized as well, by a :class:`QQLinear`.
        """
        if not quantize_input:
            return QuantizedLinear.from_linear(self, group_size, bits, mode)
        if mode not in ("nvfp4", "mxfp8"):
            raise ValueError(
                "Quantized activations are only supported for 'nvfp4' and 'mxfp8' modes,"
                f" got {mode}."
            )
        return QQLinear.from_linear(self, group_size, bits, mode)


class Bilinear(Module):
    """``y[o] = sum over i, j of x1[i] * weight[o, j, i] * x2[j], + bias[o]``, over the last axes.

    Args:
        input1_dims: Size of the last axis of the first input.
        input2_dims: Size of the last axis of the second input.
        output_dims: Size of the last axis of the output.
        bias: Whether to add a bias.
    """

    def __init__(
        self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True
    ) -> None:
        super().__init__()
        limit = math.sqrt(1.0 / input1_dims)
        self.weight = uniform_around_zero(limit, output_dims, input2_dims, input1_dims)
        if bias:
            self.bias = uniform_around_zero(limit, output_dims)

    def _extra_repr(self) -> str:
        output, input2, input1 = self.weight.shape
        return (
            f"input1_dims={input1}, input2_dims={input2}, output_dims={output},"
            f" bias={'bias' in self}"
        )

    def __call__(self, x1: mx.array, x2: mx.array) -> mx.array:
        output, input2, input1 = self.weight.shape
        # First a plain product with all of x1, then one of x2 with a matrix for each row.
        matrices = x1.reshape(-1, input1) @ self.weight.reshape(output * input2, input1).T
        matrices = matrices.reshape(-1, output, input2).swapaxes(-2, -1)
        y = (x2.reshape(-1, 1, input2) @ matrices).squeeze(1)
        y = y.reshape(*x1.shape[:-1], output)
        return y + self.bias if "bias" in self else y
