# What mlx.core.random has besides functions, for type checkers.

from typing import Iterator, Sequence

from mlx.core import Dtype, StreamOrDevice, array, float32, int32, scalar

class _RandomState:
    def __getitem__(self, index: int) -> array: ...
    def __iter__(self) -> Iterator[array]: ...
    def __len__(self) -> int: ...

state: _RandomState
