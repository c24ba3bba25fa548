"""Gradients of models, and what training on several machines does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from itertools import accumulate
from typing import Any

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx.utils import tree_flatten, tree_map, tree_reduce, tree_unflatten


def _with_parameters(model: Module, fn: Callable) -> Callable:
    """The function with the model's parameters as its first argument."""

    def call(parameters: dict, *args: Any, **kwargs: Any) -> Any:
        model.update(parameters)
        return fn(*args, **kwargs)

    return call


def value_and_grad(model: Module, fn: Callable) -> Callable:
    """A function that returns what ``fn`` does and the gradient by the model's parameters.

    Args:
        model: The model; only parameters that are not frozen count.
        fn: A function that uses the model and returns a loss, or a tuple that begins with one.

    Returns:
        A function with the arguments of ``fn``. The gradient is a tree like
        ``model.trainable_parameters()``.
    """
    compute = mx.value_and_grad(_with_parameters(model, fn))

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, dict]:
        value, gradient = compute(model.trainable_parameters(), *args, **kwargs)
        return value, gradient

    return wrapped


def checkpoint(module: Module, fn: Callable | None = None) -> Callable:
    """A function whose gradient computes it again, so that nothing within it is kept.

    Args:
        module: The module whose parameters gradients are taken by.
        fn: The function; the module's call by default.
    """
    fn = module if fn is None else fn
    compute = mx.checkpoint(_with_parameters(module, fn))

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return compute(module.trainable_parameters(), *args, **kwargs)

    return wrapped


def _batches(arrays: list[mx.array], least_bytes: int) -> Iterator[list[mx.array]]:
    """Neighbours, until there is enough of them; the last batch has the rest."""
    batch, size = [], 0
    for array in arrays:
        batch.append(array)
        size += array.nbytes
        if size >= least_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def average_gradients(
    gradients: Any,
    group: mx.distributed.Group | None = None,
    all_reduce_size: int = 32 * 1024**2,
    communication_stream: mx.Stream | None = None,
) -> Any:
    """The mean of the gradients of all processes.

    Args:
        gradients: A tree of arrays, in the same shapes everywhere.
        group: The processes; all by default.
        all_reduce_size: Arrays are put together until they have this many bytes, as few large
            messages are faster than many small ones. With 0 each one is sent by itself.
        communication_stream: The stream to send on.
    """
    group = group or mx.distributed.init()
    count = group.size()
    if count == 1:
        return gradients

    def average(x: mx.array) -> mx.array:
        return mx.distributed.all_sum(x, group=group, stream=communication_stream) / count

    flat = tree_flatten(gradients)
    if not flat:
        return gradients
    arrays = [array for _, array in flat]
    if all_reduce_size <= 0 or any(a.dtype != arrays[0].dtype for a in arrays):
        return tree_map(average, gradients)

    averages = []
    for batch in _batches(arrays, all_reduce_size):
        ends = list(accumulate(array.size for array in batch))
        joined = average(mx.concatenate([array.reshape(-1) for array in batch]))
        parts = mx.split(joined, ends[:-1])
        averages += [part.reshape(array.shape) for part, array in zip(parts, batch)]
    return tree_unflatten([(path, average) for (path, _), average in zip(flat, averages)])


def clip_grad_norm_sharded(
    gradients: Any, max_norm: float, group: mx.distributed.Group | None = None
) -> tuple[Any, mx.array]:
    """Gradients of which every process has a part, scaled down to a norm of at most ``max_norm``.

    Args:
        gradients: A tree of this process's parts.
        max_norm: The largest norm of all parts of all processes together.
        group: The processes; all by default.

    Returns:
        The scaled gradients, and the norm before.
    """
    square = tree_reduce(lambda total, g: total + g.square().sum(), gradients, 0.0)
    norm = mx.sqrt(mx.distributed.all_sum(square, group=group))
    scale = mx.minimum(max_norm / (norm + 1e-6), 1.0)
    return tree_map(lambda g: g * scale, gradients), norm
