"""Attention, and the encoders and decoders of transformers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.nn.layers.activations import relu
from mlx.nn.layers.base import Module
from mlx.nn.layers.dropout import Dropout
from mlx.nn.layers.linear import Linear
from mlx.nn.layers.normalization import LayerNorm
from mlx.nn.utils import checkpoint as checkpointed

Activation = Callable[[Any], Any]


class MultiHeadAttention(Module):
    """Attention of several heads: means of values, weighted by how keys match the queries.

    Args:
        dims: Size of queries and keys, of all heads together; the output's size, too.
        num_heads: Number of heads; it divides ``dims``.
        query_input_dims: Size of the queries given, ``dims`` by default.
        key_input_dims: Size of the keys given, ``dims`` by default.
        value_input_dims: Size of the values given, that of the keys by default.
        value_dims: Size of the values of all heads together, ``dims`` by default.
        value_output_dims: Size of the output, ``dims`` by default.
        bias: Whether the four linear maps have biases.
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        query_input_dims: int | None = None,
        key_input_dims: int | None = None,
        value_input_dims: int | None = None,
        value_dims: int | None = None,
        value_output_dims: int | None = None,
        bias: bool = False,
    ):
        super().__init__()
        if dims % num_heads != 0:
            raise ValueError(
                "The input feature dimensions should be divisible by the number of heads"
                f" ({dims} % {num_heads}) != 0"
            )
        key_input_dims = key_input_dims or dims
        value_dims = value_dims or dims
        self.num_heads = num_heads
        self.query_proj = Linear(query_input_dims or dims, dims, bias=bias)
        self.key_proj = Linear(key_input_dims, dims, bias=bias)
        self.value_proj = Linear(value_input_dims or key_input_dims, value_dims, bias=bias)
        self.out_proj = Linear(value_dims, value_output_dims or dims, bias=bias)

    def _heads(self, x: mx.array) -> mx.array:
        """(batch, length, dims) as (batch, heads, length, dims of a head)."""
        return mx.unflatten(x, -1, (self.num_heads, -1)).transpose(0, 2, 1, 3)

    def __call__(
        self,
        queries: mx.array,
        keys: mx.array,
        values: mx.array,
        mask: mx.array | str | None = None,
    ) -> mx.array:
        """Shapes ``(batch, length, size)``; a mask is added to the scores, or hides if boolean."""
        queries = self._heads(self.query_proj(queries))
        keys = self._heads(self.key_proj(keys))
        values = self._heads(self.value_proj(values))
        scale = math.sqrt(1 / queries.shape[-1])
        output = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale, mask=mask)
        return self.out_proj(output.transpose(0, 2, 1, 3).flatten(-2, -1))

    @staticmethod
    def create_additive_causal_mask(N: int, dtype: mx.Dtype = mx.float32) -> mx.array:
        """A mask of shape ``(N, N)`` that keeps a query from the keys behind it."""
        places = mx.arange(N)
        hidden = places[:, None] < places[None]
        return hidden.astype(dtype) * mx.finfo(dtype).min


class _Block(Module):
    """What the layers of encoders and decoders share: a residual connection around each part."""

    norm_first: bool

    def _residual(
        self, x: mx.array, part: Callable[[mx.array], mx.array], norm: LayerNorm
    ) -> mx.array:
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    def _mlp(self, x: mx.array, dropout: Dropout) -> mx.array:
        return self.linear2(dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Block):
    """Attention of a sequence to itself, followed by two linear maps.

    Args:
        dims: Size of an element.
        num_heads: Number of heads.
        mlp_dims: Size between the two linear maps, ``4 * dims`` by default.
        dropout: Probability of dropout.
        activation: The function between the two linear maps.
        norm_first: Whether normalization precedes each part, or follows it.
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
    ):
        super().__init__()
        mlp_dims = mlp_dims or dims * 4
        self.attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def __call__(self, x: mx.array, mask: mx.array | str | None) -> mx.array:
        """``x``: shape ``(batch, length, dims)``."""
        x = self._residual(x, lambda y: self.dropout1(self.attention(y, y, y, mask)), self.ln1)
        return self._residual(x, lambda y: self._mlp(y, self.dropout2), self.ln2)


class TransformerDecoderLayer(_Block):
    """Attention of a sequence to itself, then to another one, then two linear maps.

    The arguments are those of :class:`TransformerEncoderLayer`.
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
    ):
        super().__init__()
        mlp_dims = mlp_dims or dims * 4
        self.self_attention = MultiHeadAttention(dims, num_heads)
        self.cross_attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.ln3 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def __call__(
        self,
        x: mx.array,
        memory: mx.array,
        x_mask: mx.array | str | None,
        memory_mask: mx.array | str | None,
    ) -> mx.array:
        """``x`` and ``memory``: shape ``(batch, length, dims)``, each with its mask."""

        def to_itself(y: mx.array) -> mx.array:
            return self.dropout1(self.self_attention(y, y, y, x_mask))

        def to_memory(y: mx.array) -> mx.array:
            return self.dropout2(self.cross_attention(y, memory, memory, memory_mask))

        x = self._residual(x, to_itself, self.ln1)
        x = self._residual(x, to_memory, self.ln2)
        return self._residual(x, lambda y: self._mlp(y, self.dropout3), self.ln3)


class _Stack(Module):
    """Layers of one kind one after another, and a normalization at the end."""

    _layer: type[_Block]

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ):
        """Make the layers.

        Args:
            num_layers: How many layers.
            dims: Size of an element.
            num_heads: Number of heads.
            mlp_dims: Size between the linear maps of a layer, ``4 * dims`` by default.
            dropout: Probability of dropout.
            activation: The function between the two linear maps.
            norm_first: Whether normalization precedes each part of a layer, or follows it.
            checkpoint: Whether gradients compute what is within a layer again, to save memory.
        """
        super().__init__()
        self.layers = [
            self._layer(dims, num_heads, mlp_dims, dropout, activation, norm_first)
            for _ in range(num_layers)
        ]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def _run(self, x: mx.array, *others: Any) -> mx.array:
        for layer in self.layers:
            x = (checkpointed(layer) if self.checkpoint else layer)(x, *others)
        return self.ln(x)


class TransformerEncoder(_Stack):
    """The encoder of a transformer: layers of :class:`TransformerEncoderLayer`."""

    _layer = TransformerEncoderLayer

    def __call__(self, x: mx.array, mask: mx.array | str | None) -> mx.array:
        """``x``: shape ``(batch, length, dims)``."""
        return self._run(x, mask)


class TransformerDecoder(_Stack):
    """The decoder of a transformer: layers of :class:`TransformerDecoderLayer`."""

    _layer = TransformerDecoderLayer

    def __call__(
        self,
        x: mx.array,
        memory: mx.array,
        x_mask: mx.array | str | None,
        memory_mask: mx.array | str | None,
    ) -> mx.array:
        """``x`` and ``memory``: shape ``(batch, length, dims)``, each with its mask."""
        return self._run(x, memory, x_mask, memory_mask)


class Transformer(Module):
    """An encoder and a decoder that attends to what it returns.

    Args:
        dims: Size of an element.
        num_heads: Number of heads.
        num_encoder_layers: Layers of the encoder.
        num_decoder_layers: Layers of the decoder.
        mlp_dims: Size between the linear maps of a layer, ``4 * dims`` by default.
        dropout: Probability of dropout.
        activation: The function between the two linear maps.
        custom_encoder: A module that takes the encoder's place.
        custom_decoder: A module that takes the decoder's place.
        norm_first: Whether normalization precedes each part of a layer, or follows it.
        checkpoint: Whether gradients compute what is within a layer again, to save memory.
    """

    def __init__(
        self,
        dims: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        custom_encoder: Any | None = None,
        custom_decoder: Any | None = None,
        norm_first: bool = True,
        checkpoint: bool = False,
    ):
        super().__init__()
        sizes = (dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(num_encoder_layers, *sizes)
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(num_decoder_layers, *sizes)
        self.encoder = custom_encoder
        self.decoder = custom_decoder

    def __call__(
        self,
        src: mx.array,
        tgt: mx.array,
        src_mask: mx.array | str | None,
        tgt_mask: mx.array | str | None,
        memory_mask: mx.array | str | None,
    ) -> mx.array:
        """``src`` and ``tgt``: shape ``(batch, length, dims)``, with their masks.

        ``memory_mask`` hides parts of what the encoder returns from the decoder.
        """
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)
