"""Ways to tell a model where in a sequence something is."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.nn.layers.base import Module


class RoPE(Module):
    """Rotary positions: turns pairs of features by an angle that grows with the position.

    Args:
        dims: How many features are turned; the rest stays.
        traditional: Whether a pair is two neighbours. Otherwise it is a feature of the first half
            and one of the second, which is faster.
        base: Of the geometric sequence of angles.
        scale: Positions are multiplied by it.
    """

    def __init__(
        self, dims: int, traditional: bool = False, base: float = 10000, scale: float = 1.0
    ):
        super().__init__()
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def _extra_repr(self) -> str:
        return f"{self.dims}, traditional={self.traditional}"

    def __call__(self, x: mx.array, offset: int | mx.array = 0) -> mx.array:
        """``x``: shape ``(..., length, features)``; ``offset``: position of the first one."""
        return mx.fast.rope(
            x,
            self.dims,
            traditional=self.traditional,
            base=self.base,
            scale=self.scale,
            offset=offset,
        )


class SinusoidalPositionalEncoding(Module):
    """Sines and cosines of a position at frequencies that form a geometric sequence.

    Args:
        dims: Size of the encoding, an even number: half of it sines, half cosines.
        min_freq: The lowest frequency.
        max_freq: The highest one, which comes first.
        scale: What the values are multiplied by, ``sqrt(2 / dims)`` by default.
        cos_first: Whether the cosines precede the sines.
        full_turns: Whether frequencies count turns, not radians.
    """

    def __init__(
        self,
        dims: int,
        min_freq: float = 0.0001,
        max_freq: float = 1,
        scale: float | None = None,
        cos_first: bool = False,
        full_turns: bool = False,
    ):
        super().__init__()
        if dims <= 0 or dims % 2 != 0:
            raise ValueError(
                "[SinusoidalPositionalEncoding] dims must be positive and even" f" but got {dims}."
            )
        half = dims // 2
        # From 1 down to 0; a single frequency is the highest.
        position = mx.array([1.0]) if half == 1 else 1 - mx.arange(0, half) / (half - 1)
        low, high = math.log(min_freq), math.log(max_freq)
        frequencies = mx.exp(position * (high - low) + low)
        # The underscore keeps it from being a parameter.
        self._sigmas = frequencies * (2 * math.pi) if full_turns else frequencies
        self.scale = (2 / dims) ** 0.5 if scale is None else scale
        self.cos_first = cos_first

    def __call__(self, x: mx.array) -> mx.array:
        """The encodings of positions: shape ``x.shape + (dims,)``."""
        angles = x[..., None] * self._sigmas
        parts = [mx.sin(angles), mx.cos(angles)]
        if self.cos_first:
            parts.reverse()
        y = mx.concatenate(parts, axis=-1)
        return y if self.scale == 1 else y * self.scale


def _alibi_slopes(num_heads: int) -> list[float]:
    """A geometric sequence for a power of two; others take every second of the next one's, too."""
    exponent = math.log2(num_heads)
    if exponent.is_integer():
        first = 2 ** (-(2 ** (3 - exponent)))
        return [first * first**i for i in range(num_heads)]
    power = 2 ** math.floor(exponent)
    return _alibi_slopes(power) + _alibi_slopes(2 * power)[::2][: num_heads - power]


class ALiBi(Module):
    """Attention with linear biases: scores fall with the distance, by a slope for each head."""

    @staticmethod
    def create_alibi_matrix(
        q_sequence_length: int,
        k_sequence_length: int,
        num_heads: int,
        offset: int = 0,
        dtype: mx.Dtype = mx.float32,
    ) -> mx.array:
        """The biases, of shape ``(1, num_heads, queries, keys)``.

        Args:
            q_sequence_length: Position behind the last query.
            k_sequence_length: Number of keys.
            num_heads: Number of heads.
            offset: Position of the first query.
            dtype: Type of the result.
        """
        queries = mx.arange(offset, q_sequence_length)
        keys = mx.arange(0, k_sequence_length)
        distances = mx.abs(queries[:, None] - keys[None, :])
        slopes = ALiBi.create_alibi_slope(num_heads=num_heads, dtype=dtype)
        return (-distances[None, None] * slopes).astype(dtype)

    @staticmethod
    def create_alibi_slope(num_heads: int, dtype: mx.Dtype = mx.float32) -> mx.array:
        """The slope of each head, of shape ``(num_heads, 1, 1)``."""
        return mx.array(_alibi_slopes(num_heads), dtype=dtype)[:, None, None]

    def __call__(
        self, attention_scores: mx.array, offset: int = 0, mask: mx.array | None = None
    ) -> mx.array:
        """Scores of shape ``(batch, heads, queries, keys)`` with biases, and the mask, added."""
        shape = attention_scores.shape
        biases = ALiBi.create_alibi_matrix(
            q_sequence_length=shape[-2] + offset,
            k_sequence_length=shape[-1],
            num_heads=shape[1],
            offset=offset,
            dtype=attention_scores.dtype,
        )
        return attention_scores + (biases if mask is None else biases + mask)
