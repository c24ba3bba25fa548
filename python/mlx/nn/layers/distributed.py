"""Layers whose parameters are shared out to several processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Any

import mlx.core as mx
from mlx.nn.layers._common import uniform_around_zero
from mlx.nn.layers.base import Module
from mlx.nn.layers.linear import Linear
from mlx.utils import tree_flatten, tree_map_with_path, tree_unflatten

Group = "mx.distributed.Group"
Segments = int | list
# Says along which axis a parameter is cut, and into which segments first; None leaves it whole.
Sharding = Callable[[str, mx.array], int | tuple[int, Segments] | None]


@lru_cache
def sum_gradients(group: Group) -> Callable[[mx.array], mx.array]:
    """A function that returns its argument, and whose gradient is the sum of all processes'."""
    if group.size() == 1:
        return lambda x: x

    @mx.custom_function
    def same(x):
        return x

    @same.vjp
    def same_vjp(x, cotangent, _):
        return mx.distributed.all_sum(cotangent, group=group)

    return same


def _segments_of(weight: mx.array, segments: Segments, axis: int) -> list[mx.array]:
    """Segments are a number of equal ones, indices to cut at, or these as parts of the whole."""
    if not isinstance(segments, int) and not isinstance(segments[0], int):
        segments = [int(part * weight.shape[axis]) for part in segments]
    return mx.split(weight, segments, axis=axis)


def _shard(parameters: dict, sharding: Sharding, group: Group | None = None) -> dict:
    """This process's part of a tree of parameters."""
    group = group or mx.distributed.init()

    def part(path: str, weight: Any) -> Any:
        cut = sharding(path, weight) if isinstance(weight, mx.array) else None
        if cut is None:
            return weight
        if isinstance(cut, int):
            cut = (cut, 1)
        elif not isinstance(cut, tuple):
            raise ValueError("The sharding function should return int or tuple[int, list]")
        axis, segments = cut
        mine = [
            mx.split(segment, group.size(), axis=axis)[group.rank()]
            for segment in _segments_of(weight, segments, axis)
        ]
        return mx.contiguous(mx.concatenate(mine, axis=axis))

    return tree_map_with_path(part, parameters)


def _outputs_cut(segments: Segments) -> Sharding:
    def cut(path: str, weight: mx.array) -> tuple[int, Segments]:
        if path.endswith("bias"):
            return -1, segments
        return max(weight.ndim - 2, 0), segments

    return cut


def _inputs_cut(segments: Segments) -> Sharding:
    def cut(path: str, weight: mx.array) -> tuple[int, Segments] | None:
        return None if path.endswith("bias") else (-1, segments)

    return cut


_SHARDINGS = {"all-to-sharded": _outputs_cut, "sharded-to-all": _inputs_cut}


def _check_sharding(sharding: str) -> None:
    if sharding not in _SHARDINGS:
        raise ValueError(
            f"Sharding type {sharding=} not supported, choose one of"
            " 'all-to-sharded' or 'sharded-to-all'"
        )


def shard_inplace(
    module: Module,
    sharding: str | Sharding,
    *,
    segments: Segments = 1,
    group: Group | None = None,
) -> None:
    """Replace a module's parameters by this process's part of them.

    Args:
        module: The module. That its calls work on parts is up to the caller.
        sharding: ``"all-to-sharded"`` cuts outputs, ``"sharded-to-all"`` cuts inputs. Or a function
            of path and parameter that returns the axis to cut, the axis and segments, or None.
        segments: Where a weight is several ones put together: how many equal ones, or where they
            end. Each of them is cut.
        group: The processes; all by default.
    """
    if isinstance(sharding, str):
        _check_sharding(sharding)
        sharding = _SHARDINGS[sharding](segments)
    module.update(_shard(module.parameters(), sharding, group))


def shard_linear(
    module: Module,
    sharding: str,
    *,
    segments: Segments = 1,
    group: Group | None = None,
) -> Module:
    """A layer with this process's part of the parameters of a linear or quantized linear layer.

    Args:
        module: The layer.
        sharding: ``"all-to-sharded"`` cuts outputs, ``"sharded-to-all"`` cuts inputs.
        segments: As in :func:`shard_inplace`.
        group: The processes; all by default.
    """
    _check_sharding(sharding)
    dense, quantized = {
        "all-to-sharded": (AllToShardedLinear, QuantizedAllToShardedLinear),
        "sharded-to-all": (ShardedToAllLinear, QuantizedShardedToAllLinear),
    }[sharding]
    if isinstance(module, Linear):
        return dense.from_linear(module, segments=segments, group=group)
    return quantized.from_quantized_linear(module, segments=segments, group=group)


class _OutputsCut(Module):
    """Every process has all of the input and computes a part of the output."""

    _sharding = staticmethod(_outputs_cut)

    def _local_sizes(self, input_dims: int, output_dims: int) -> tuple[int, int]:
        count = self.group.size()
        if output_dims % count != 0:
            raise ValueError(
                f"Cannot shard the output of size {output_dims} across {count} devices."
            )
        return input_dims, output_dims // count

    def _global_sizes(self, input_dims: int, output_dims: int) -> tuple[int, int]:
        return input_dims, output_dims * self.group.size()

    def __call__(self, x: mx.array) -> mx.array:
        return self._with_bias(sum_gradients(self.group)(x))


class _InputsCut(Module):
    """Every process has a part of the input; their products are added up."""

    _sharding = staticmethod(_inputs_cut)

    def _local_sizes(self, input_dims: int, output_dims: int) -> tuple[int, int]:
        count = self.group.size()
        if input_dims % count != 0:
            raise ValueError(
                f"The input of size {input_dims} cannot be sharded across {count} devices."
            )
        return input_dims // count, output_dims

    def _global_sizes(self, input_dims: int, output_dims: int) -> tuple[int, int]:
        return input_dims * self.group.size(), output_dims

    def __call__(self, x: mx.array) -> mx.array:
        y = mx.distributed.all_sum(self._product(x), group=self.group)
        return y + self["bias"] if "bias" in self else y


class _Dense(Module):
    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group: Group | None = None,
    ):
        super().__init__()
        self.group = group or mx.distributed.init()
        limit = math.sqrt(1.0 / input_dims)
        inputs, outputs = self._local_sizes(input_dims, output_dims)
        self.weight = uniform_around_zero(limit, outputs, inputs)
        if bias:
            self.bias = uniform_around_zero(limit, outputs)

    def _extra_repr(self) -> str:
        inputs, outputs = self._global_sizes(*reversed(self.weight.shape))
        return f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self}"

    def _product(self, x: mx.array) -> mx.array:
        return x @ self["weight"].T

    def _with_bias(self, x: mx.array) -> mx.array:
        if "bias" in self:
            return mx.addmm(self["bias"], x, self["weight"].T)
        return self._product(x)

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        *,
        segments: Segments = 1,
        group: Group | None = None,
    ) -> Module:
        """This process's part of a :class:`Linear`; ``segments`` as in :func:`shard_inplace`."""
        group = group or mx.distributed.init()
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, hasattr(linear_layer, "bias"), group)
        layer.update(_shard(linear_layer.parameters(), cls._sharding(segments), group))
        return layer


class _Quantized(Module):
    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        group: Group | None = None,
    ):
        super().__init__()
        self.group_size = group_size
        self.bits = bits
        self.mode = mode
        self.group = group or mx.distributed.init()
        inputs, outputs = self._local_sizes(input_dims, output_dims)
        weight = uniform_around_zero(math.sqrt(1.0 / input_dims), outputs, inputs)
        self.weight, self.scales, *biases = mx.quantize(weight, group_size, bits, mode=mode)
        self.biases = biases[0] if biases else None
        if bias:
            self.bias = mx.zeros((outputs,))
        self.freeze()

    def unfreeze(self, *args: Any, **kwargs: Any) -> Module:
        """Does nothing to the parameters, which are never trained."""
        super().unfreeze(*args, **kwargs)
        return self.freeze(recurse=False)

    def _extra_repr(self) -> str:
        outputs, words = self.weight.shape
        inputs, outputs = self._global_sizes(words * 32 // self.bits, outputs)
        return (
            f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self},"
            f" group_size={self.group_size}, bits={self.bits}, mode={self.mode}"
        )

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

    def _with_bias(self, x: mx.array) -> mx.array:
        y = self._product(x)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_quantized_linear(
        cls,
        quantized_linear_layer: Module,
        *,
        segments: Segments = 1,
        group: Group | None = None,
    ) -> Module:
        """This process's part of a :class:`QuantizedLinear`; as in :func:`shard_inplace`."""
        group = group or mx.distributed.init()
        source = quantized_linear_layer
        output_dims, words = source.weight.shape
        layer = cls(
            words * 32 // source.bits,
            output_dims,
            hasattr(source, "bias"),
            group_size=source.group_size,
            bits=source.bits,
            mode=getattr(source, "mode", "affine"),
            group=group,
        )
        layer.update(_shard(source.parameters(), cls._sharding(segments), group))
        return layer


class AllToShardedLinear(_OutputsCut, _Dense):
    """A :class:`Linear` of whose output every process computes a part, from the same input.

    Args:
        input_dims: Size of the last axis of the input.
        output_dims: Size of the output's last axis, of all processes together.
        bias: Whether to add a bias.
        group: The processes; all by default.
    """


class ShardedToAllLinear(_InputsCut, _Dense):
    """A :class:`Linear` of whose input every process has a part; all get the same output.

    Args:
        input_dims: Size of the input's last axis, of all processes together.
        output_dims: Size of the last axis of the output.
        bias: Whether to add a bias.
        group: The processes; all by default.
    """


class QuantizedAllToShardedLinear(_OutputsCut, _Quantized):
    """An :class:`AllToShardedLinear` whose weight is quantized. Its parameters are frozen.

    Args:
        input_dims: Size of the last axis of the input.
        output_dims: Size of the output's last axis, of all processes together.
        bias: Whether to add a bias.
        group_size, bits, mode: As in :func:`mlx.core.quantize`.
        group: The processes; all by default.
    """


class QuantizedShardedToAllLinear(_InputsCut, _Quantized):
    """A :class:`ShardedToAllLinear` whose weight is quantized. Its parameters are frozen.

    Args:
        input_dims: Size of the input's last axis, of all processes together.
        output_dims: Size of the last axis of the output.
        bias: Whether to add a bias.
        group_size, bits, mode: As in :func:`mlx.core.quantize`.
        group: The processes; all by default.
    """


def _cast(x: mx.array, dtype: mx.Dtype | None) -> mx.array:
    return x if dtype is None or x.dtype == dtype else x.astype(dtype)


def _gather_function(
    group: Group, shapes: list[tuple[int, ...]], compute_dtype: mx.Dtype | None
) -> Callable[[list[mx.array]], list[mx.array]]:
    """A function of all processes' parts that returns whole parameters of these shapes.

    All go in one message. The gradient of a part is the mean of the processes' gradients of it.
    """
    count = group.size()
    ends = list(accumulate(math.prod(shape) // count for shape in shapes))[:-1]
    part_shapes = [(shape[0] // count, *shape[1:]) for shape in shapes]

    def split(x: mx.array, shapes: Iterable[tuple[int, ...]]) -> list[mx.array]:
        return [p.reshape(shape) for p, shape in zip(mx.split(x, ends, axis=1), shapes)]

    @mx.custom_function
    def gather(parts: list[mx.array]) -> list[mx.array]:
        row = mx.concatenate([_cast(p.reshape(1, -1), compute_dtype) for p in parts], axis=1)
        return split(mx.distributed.all_gather(row, group=group), shapes)

    @gather.vjp
    def gather_vjp(parts, cotangents, _):
        rows = mx.concatenate([c.reshape(count, -1) for c in cotangents], axis=1)
        mean = mx.distributed.sum_scatter(rows, group=group) / count
        return [_cast(g, p.dtype) for g, p in zip(split(mean, part_shapes), parts)]

    return gather


def _is_shared_out(module: Module, key: str, value: Any) -> bool:
    """Parameters but for those of modules within that are shared out by themselves."""
    return not isinstance(value, FullyShardedModule) and Module.valid_parameter_filter(
        module, key, value
    )


class FullyShardedModule(Module):
    """A module of whose parameters every process keeps a part, and all of them during a call.

    Args:
        module: The module. The first axis of its parameters is cut.
        group: The processes; all by default.
        compute_dtype: What parameters are converted to for a call, if given.
    """

    def __init__(
        self,
        module: Module,
        group: Group | None = None,
        compute_dtype: mx.Dtype | None = None,
    ):
        super().__init__()
        group = group or mx.distributed.init()
        parameters = module.filter_and_map(_is_shared_out)
        flat = tree_flatten(parameters)
        for path, value in flat:
            _check_divisible(path, value, group.size())
        # An attribute proper: a list would be state, which mx.compile takes for an input.
        object.__setattr__(self, "_paths", [path for path, _ in flat])
        self._gather_fn = _gather_function(group, [a.shape for _, a in flat], compute_dtype)
        module.update(_shard(parameters, lambda path, weight: 0, group))
        self.module = module

    def _extra_repr(self) -> str:
        return f"num_sharded_params={len(self._paths)}"

    def _gathered_call(self, fn: Callable, *args: Any, **kwargs: Any) -> Any:
        parts = self.module.filter_and_map(_is_shared_out)
        whole = self._gather_fn([part for _, part in tree_flatten(parts)])
        self.module.update(tree_unflatten(list(zip(self._paths, whole))))
        try:
            return fn(*args, **kwargs)
        finally:
            self.module.update(parts)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._gathered_call(self.module, *args, **kwargs)

    def as_linear(self, *args: Any, **kwargs: Any) -> Any:
        """The same of an embedding's ``as_linear``."""
        return self._gathered_call(self.module.as_linear, *args, **kwargs)


def _check_divisible(path: str, parameter: mx.array, count: int) -> None:
    if parameter.ndim == 0:
        raise ValueError(f"Cannot shard parameter '{path}' because it is a scalar.")
    if parameter.shape[0] % count != 0:
        raise ValueError(
            f"Cannot shard parameter '{path}' with shape {parameter.shape} across {count}"
            f" devices: axis 0 must be divisible by {count}."
        )


def fully_shard(
    module: Module,
    *,
    group: Group | None = None,
    compute_dtype: mx.Dtype | None = None,
) -> Module:
    """The module as a :class:`FullyShardedModule`, or itself where there is nothing to cut.

    Args:
        module: The module. Modules within it that are shared out already stay as they are.
        group: The processes; all by default.
        compute_dtype: What parameters are converted to for a call, if given.
    """
    group = group or mx.distributed.init()
    if group.size() == 1 or isinstance(module, FullyShardedModule):
        return module
    wrapped = FullyShardedModule(module, group=group, compute_dtype=compute_dtype)
    return wrapped if wrapped._paths else module
