# What mlx.core.distributed has besides functions, for type checkers.

from typing import Any, Sequence

from mlx.core import Dtype, StreamOrDevice, array

class Group:
    """Processes that compute together. Made by init()."""

    def rank(self) -> int: ...
    def size(self) -> int: ...
    def split(self, color: int, key: int = -1) -> Group: ...
