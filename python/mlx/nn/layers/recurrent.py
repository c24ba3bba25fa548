"""Layers with a state that goes from each element of a sequence to the next.

Inputs have the shape ``(length, input_size)`` or ``(..., length, input_size)``, states the shape
``(..., hidden_size)``. The results hold the states of all elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import mlx.core as mx
from mlx.nn.layers._common import uniform_around_zero
from mlx.nn.layers.activations import tanh
from mlx.nn.layers.base import Module


def _affine(x: mx.array, weight: mx.array, bias: mx.array | None) -> mx.array:
    return x @ weight.T if bias is None else mx.addmm(bias, x, weight.T)


def _elements(x: mx.array):
    """The elements of a sequence, one after another."""
    return (x[..., i, :] for i in range(x.shape[-2]))


class RNN(Module):
    """``h = nonlinearity(Wxh @ x + Whh @ h + bias)``.

    Args:
        input_size: Size of an element.
        hidden_size: Size of the state.
        bias: Whether to add a bias.
        nonlinearity: A function, tanh by default.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Callable | None = None,
    ):
        super().__init__()
        self.nonlinearity = nonlinearity or tanh
        if not callable(self.nonlinearity):
            raise ValueError(f"Nonlinearity must be callable. Current value: {nonlinearity}.")
        limit = 1.0 / math.sqrt(hidden_size)
        self.hidden_size = hidden_size
        self.Wxh = uniform_around_zero(limit, hidden_size, input_size)
        self.Whh = uniform_around_zero(limit, hidden_size, hidden_size)
        self.bias = uniform_around_zero(limit, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wxh.shape[1]}, hidden_size={self.hidden_size},"
            f" nonlinearity={self.nonlinearity}, bias={self.bias is not None}"
        )

    def __call__(self, x: mx.array, hidden: mx.array | None = None) -> mx.array:
        """All states, from an input and, if it is not zero, the state before it."""
        states = []
        for h in _elements(_affine(x, self.Wxh, self.bias)):
            if hidden is not None:
                h = mx.addmm(h, hidden, self.Whh.T)
            hidden = self.nonlinearity(h)
            states.append(hidden)
        return mx.stack(states, axis=-2)


class GRU(Module):
    """A gated recurrent unit.

    With the gates ``r`` and ``z``, sigmoids of affine maps of ``x`` and ``h``, the next state is
    ``(1 - z) * n + z * h``, where ``n = tanh(Wx_n @ x + b_n + r * (Wh_n @ h + bhn))``.

    Args:
        input_size: Size of an element.
        hidden_size: Size of the state.
        bias: Whether to add biases.

    The rows of ``Wx``, ``Wh`` and ``b`` are those of ``r``, ``z`` and ``n``, in this order.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        super().__init__()
        self.hidden_size = hidden_size
        limit = 1.0 / math.sqrt(hidden_size)
        self.Wx = uniform_around_zero(limit, 3 * hidden_size, input_size)
        self.Wh = uniform_around_zero(limit, 3 * hidden_size, hidden_size)
        self.b = uniform_around_zero(limit, 3 * hidden_size) if bias else None
        self.bhn = uniform_around_zero(limit, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size},"
            f" bias={self.b is not None}"
        )

    def _first(self, rz: mx.array, n: mx.array) -> mx.array:
        """The first state, where the one before is zero."""
        r, z = mx.split(mx.sigmoid(rz), 2, axis=-1)
        if self.bhn is not None:
            n = n + r * self.bhn
        return (1 - z) * mx.tanh(n)

    def _next(self, rz: mx.array, n: mx.array, hidden: mx.array) -> mx.array:
        h_rz, h_n = mx.split(hidden @ self.Wh.T, [2 * self.hidden_size], axis=-1)
        if self.bhn is not None:
            h_n = h_n + self.bhn
        r, z = mx.split(mx.sigmoid(rz + h_rz), 2, axis=-1)
        return (1 - z) * mx.tanh(n + r * h_n) + z * hidden

    def __call__(self, x: mx.array, hidden: mx.array | None = None) -> mx.array:
        """All states, from an input and, if it is not zero, the state before it."""
        rz, n = mx.split(_affine(x, self.Wx, self.b), [2 * self.hidden_size], axis=-1)
        states = []
        for element in zip(_elements(rz), _elements(n)):
            hidden = self._first(*element) if hidden is None else self._next(*element, hidden)
            states.append(hidden)
        return mx.stack(states, axis=-2)


class LSTM(Module):
    """A long short-term memory, with a cell ``c`` besides the state ``h``.

    With the gates ``i``, ``f``, ``o`` (sigmoids) and ``g`` (tanh), all of affine maps of ``x`` and
    ``h``, the next cell is ``f * c + i * g`` and the next state ``o * tanh(c)``.

    Args:
        input_size: Size of an element.
        hidden_size: Size of the state and of the cell.
        bias: Whether to add a bias.

    The rows of ``Wx``, ``Wh`` and ``bias`` are those of ``i``, ``f``, ``g`` and ``o``, in this
    order.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        super().__init__()
        self.hidden_size = hidden_size
        limit = 1.0 / math.sqrt(hidden_size)
        self.Wx = uniform_around_zero(limit, 4 * hidden_size, input_size)
        self.Wh = uniform_around_zero(limit, 4 * hidden_size, hidden_size)
        self.bias = uniform_around_zero(limit, 4 * hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size},"
            f" bias={self.bias is not None}"
        )

    def __call__(
        self, x: mx.array, hidden: mx.array | None = None, cell: mx.array | None = None
    ) -> tuple[mx.array, mx.array]:
        """All states and all cells, from an input and those before it, if they are not zero."""
        states, cells = [], []
        for gates in _elements(_affine(x, self.Wx, self.bias)):
            if hidden is not None:
                gates = mx.addmm(gates, hidden, self.Wh.T)
            i, f, g, o = mx.split(gates, 4, axis=-1)
            new = mx.sigmoid(i) * mx.tanh(g)
            cell = new if cell is None else mx.sigmoid(f) * cell + new
            hidden = mx.sigmoid(o) * mx.tanh(cell)
            states.append(hidden)
            cells.append(cell)
        return mx.stack(states, axis=-2), mx.stack(cells, axis=-2)
