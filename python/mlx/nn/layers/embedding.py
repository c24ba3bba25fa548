"""Vectors for numbers."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx.nn.layers.quantized import QuantizedEmbedding


class Embedding(Module):
    """A table of vectors, looked up by their numbers.

    Args:
        num_embeddings: How many vectors.
        dims: Size of each.

    ``weight`` has the shape ``(num_embeddings, dims)`` and begins normally distributed with the
    variance ``1 / dims``.
    """

    def __init__(self, num_embeddings: int, dims: int):
        super().__init__()
        self.weight = mx.random.normal(shape=(num_embeddings, dims), scale=math.sqrt(1 / dims))

    def _extra_repr(self) -> str:
        return "{}, {}".format(*self.weight.shape)

    def __call__(self, x: mx.array) -> mx.array:
        """The vectors of integers: shape ``x.shape + (dims,)``."""
        return self.weight[x]

    def as_linear(self, x: mx.array) -> mx.array:
        """The products of ``x`` with all vectors: the last layer of models that reuse the table."""
        return x @ self.weight.T

    def to_quantized(
        self,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> QuantizedEmbedding:
        """This table quantized; the arguments are those of :func:`mlx.core.quantize`."""
        if quantize_input:
            raise ValueError("Quantized input is not supported.")
        return QuantizedEmbedding.from_embedding(self, group_size, bits, mode)
