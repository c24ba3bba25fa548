"""Layers whose weights are quantized, and how models get them."""

from __future__ import annotations

import math
from collections.abc import Callable

import mlx.core as mx
from mlx.nn.layers._common import uniform_around_zero
from mlx.nn.layers.base import Module
from mlx.utils import tree_map_with_path

# Group size and bits of each mode, where they are not given.
_DEFAULTS = {
    "affine": (64, 4),
    "mxfp4": (32, 4),
    "nvfp4": (16, 4),
    "mxfp8": (32, 8),
}


def quantize(
    model: Module,
    group_size: int | None = None,
    bits: int | None = None,
    *,
    mode: str = "affine",
    quantize_input: bool = False,
    class_predicate: Callable[[str, Module], bool | dict] | None = None,
) -> None:
    """Replace layers of a model by quantized ones, in place.

    Args:
        model: The model.
        group_size, bits, mode: As in :func:`mlx.core.quantize`.
        quantize_input: Whether the layers quantize their inputs as well.
        class_predicate: Called with path and module: whether to quantize it, or a dictionary of
            the arguments of its ``to_quantized``. By default, whatever has this method.
    """

    def quantized(path: str, module: Module) -> Module:
        wanted = hasattr(module, "to_quantized")
        if class_predicate is not None:
            wanted = class_predicate(path, module)
        if not wanted:
            return module
        if not hasattr(module, "to_quantized"):
            raise ValueError(f"Unable to quantize model of type {type(module)}")
        if isinstance(wanted, bool):
            arguments = {"group_size": group_size, "bits": bits, "mode": mode}
            if quantize_input:
                arguments["quantize_input"] = True
        elif isinstance(wanted, dict):
            # Layers of others may not know this argument.
            arguments = {k: v for k, v in wanted.items() if v or k != "quantize_input"}
        else:
            raise ValueError(
                "``class_predicate`` must return a bool"
                " or a dict of parameters to pass to ``to_quantized``"
            )
        return module.to_quantized(**arguments)

    leaves = tree_map_with_path(quantized, model.leaf_modules(), is_leaf=Module.is_module)
    model.update_modules(leaves)


class _Quantized(Module):
    """How weights are quantized: ``weight`` packs integers, ``scales`` has a factor for each group.

    Modes with an offset have it in ``biases``.
    """

    def _set_mode(self, group_size: int | None, bits: int | None, mode: str) -> None:
        if mode not in _DEFAULTS:
            raise ValueError(
                f"Invalid quantization mode '{mode}'. Valid modes are: {', '.join(_DEFAULTS)}."
            )
        default_group_size, default_bits = _DEFAULTS[mode]
        self.group_size = group_size or default_group_size
        self.bits = bits or default_bits
        self.mode = mode

    @property
    def _quantization(self) -> dict:
        """The arguments of every function of mlx.core that has to do with quantization."""
        return {"group_size": self.group_size, "bits": self.bits, "mode": self.mode}

    def _set_weight(self, weight: mx.array) -> None:
        self.weight, self.scales, *biases = mx.quantize(weight, **self._quantization)
        self.biases = biases[0] if biases else None

    def _product(self, x: mx.array) -> mx.array:
        return mx.quantized_matmul(
            x,
            self["weight"],
            scales=self["scales"],
            biases=self.get("biases"),
            transpose=True,
            group_size=self.group_size,
            bits=self.bits,
            mode=self.mode,
        )

    def _mode_repr(self) -> str:
        return f"group_size={self.group_size}, bits={self.bits}, mode={self.mode}"


class QuantizedEmbedding(_Quantized):
    """An :class:`Embedding` whose vectors are quantized. Its parameters are frozen.

    Args:
        num_embeddings: How many vectors.
        dims: Size of each.
        group_size, bits, mode: As in :func:`mlx.core.quantize`.
    """

    def __init__(
        self,
        num_embeddings: int,
        dims: int,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ):
        super().__init__()
        self._set_mode(group_size, bits, mode)
        self._set_weight(mx.random.normal(shape=(num_embeddings, dims), scale=math.sqrt(1 / dims)))
        self.num_embeddings = num_embeddings
        self.dims = dims
        self.freeze()

    def __call__(self, x: mx.array) -> mx.array:
        """The vectors of integers: shape ``x.shape + (dims,)``."""
        biases = self.get("biases")
        return mx.dequantize(
            self["weight"][x],
            scales=self["scales"][x],
            biases=None if biases is None else biases[x],
            **self._quantization,
        )

    def as_linear(self, x: mx.array) -> mx.array:
        """The products of ``x`` with all vectors."""
        return self._product(x)

    def _extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.dims}, {self._mode_repr()}"

    @classmethod
    def from_embedding(
        cls,
        embedding_layer: Module,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> QuantizedEmbedding:
        """An :class:`Embedding`, quantized."""
        layer = cls(*embedding_layer.weight.shape, group_size, bits, mode=mode)
        layer._set_weight(embedding_layer.weight)
        return layer


class QuantizedLinear(_Quantized):
    """A :class:`Linear` whose weight is quantized. Its parameters are frozen.

    Args:
        input_dims: Size of the last axis of the input.
        output_dims: Size of the last axis of the output.
        bias: Whether to add a bias, which is not quantized.
        group_size, bits, mode: As in :func:`mlx.core.quantize`.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ):
        super().__init__()
        self._set_mode(group_size, bits, mode)
        limit = math.sqrt(1 / input_dims)
        self._set_weight(uniform_around_zero(limit, output_dims, input_dims))
        if bias:
            self.bias = mx.zeros((output_dims,))
        self.freeze()

    def _extra_repr(self) -> str:
        shape = self.weight.shape
        return (
            f"input_dims={shape[1] * 32 // self.bits}, output_dims={shape[0]},"
            f" bias={'bias' in self}, {self._mode_repr()}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        y = self._product(x)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> QuantizedLinear:
        """A :class:`Linear`, quantized."""
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, False, group_size, bits, mode=mode)
        layer._set_weight(linear_layer.weight)
        if "bias" in linear_layer:
            layer.bias = linear_layer.bias
        return layer


class QQLinear(_Quantized):
    """A linear layer without bias that quantizes its input, too.

    In training the weight is kept as it is and quantized with every call; ``eval()`` quantizes it
    for good, ``train()`` turns it back, with the loss that this means.

    Args:
        input_dims: Size of the last axis of the input.
        output_dims: Size of the last axis of the output.
        group_size, bits, mode: As in :func:`mlx.core.quantize`; the mode is nvfp4 or mxfp8.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "nvfp4",
    ):
        super().__init__()
        self._set_mode(group_size, bits, mode)
        self.weight = uniform_around_zero(math.sqrt(1 / input_dims), output_dims, input_dims)
        self._quantized = False

    def _extra_repr(self) -> str:
        output_dims, input_dims = self.weight.shape
        if self.weight.dtype == mx.uint32:
            input_dims = input_dims * 32 // self.bits
        return f"input_dims={input_dims}, output_dims={output_dims}, {self._mode_repr()}"

    def quantize(self) -> None:
        """Quantize the weight, unless it is."""
        if not self._quantized:
            self.weight, self.scales = mx.quantize(self.weight, **self._quantization)
            self._quantized = True

    def dequantize(self) -> None:
        """Turn the weight back, if it is quantized."""
        if self._quantized:
            self.weight = mx.dequantize(self.weight, scales=self.scales, **self._quantization)
            del self.scales
            self._quantized = False

    def _set_training_mode(self, mode: bool) -> None:
        super()._set_training_mode(mode)
        if mode:
            self.dequantize()
        else:
            self.quantize()

    def __call__(self, x: mx.array) -> mx.array:
        return mx.qqmm(x, self["weight"], scales=self.get("scales"), **self._quantization)

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "nvfp4",
    ) -> QQLinear:
        """A :class:`Linear` without bias, with its weight and its training mode."""
        if linear_layer.get("bias") is not None:
            raise NotImplementedError("QQLinear does not support bias yet.")
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, group_size, bits, mode=mode)
        layer.weight = linear_layer.weight
        layer.train(linear_layer.training)
        return layer
