"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlx.nn.layers.base import Module


class Sequential(Module):
    """Functions one after another, each applied to what the one before it returns.

    Args:
        modules: Modules or other functions of one argument.
    """

    def __init__(self, *modules: Callable[[Any], Any]):
        super().__init__()
        self.layers = list(modules)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x
