"""Layers that change the resolution of sequences, images and volumes, with channels last."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from typing import Literal

import mlx.core as mx
from mlx.nn.layers.base import Module

# For each place of the output along one axis: a place of the input, and the weight it has there.
Tap = tuple[mx.array, mx.array]
# Makes the taps of an axis from its size, its scale and align_corners.
Taps = Callable[[int, float, bool], list[Tap]]


def _check_scales(x: mx.array, scale_factor: Sequence[float]) -> None:
    if x.ndim - 2 != len(scale_factor):
        raise ValueError("A scale needs to be provided for each spatial dimension")


def _check_antialias(align_corners: bool, antialias: bool) -> None:
    if antialias and align_corners:
        raise ValueError(
            "[Upsample] antialias=True with align_corners=True is not supported."
            " Use align_corners=False for antialiased interpolation."
        )


def _along(x: mx.array, axis: int, count: int) -> mx.array:
    """A vector with the shape of one of `count` axes."""
    return x.reshape([-1 if i == axis else 1 for i in range(count)])


def _positions(size: int, scale: float, align_corners: bool) -> mx.array:
    """Where in the input the places of the output are, as real numbers."""
    out_size = int(scale * size)
    places = mx.arange(out_size, dtype=mx.float32)
    if align_corners:
        return places * ((size - 1) / max(out_size - 1, 1))
    # Both have the same middle.
    step = 1 / scale
    return places * step - ((out_size - 1) * step - size + 1) / 2


def _clamped(index: mx.array, size: int) -> mx.array:
    """Places beyond the border are those at the border."""
    return mx.clip(index, a_min=0, a_max=size - 1).astype(mx.uint32)


def _nearest(size: int, scale: float) -> mx.array:
    out_size = int(scale * size)
    places = mx.arange(out_size, dtype=mx.float32)
    if out_size > size:
        places = ((places + 0.5) * (size / out_size) - 0.5).round()
    else:
        places = places * (size / out_size)
    return places.astype(mx.uint32)


def _linear_taps(size: int, scale: float, align_corners: bool) -> list[Tap]:
    position = mx.clip(_positions(size, scale, align_corners), a_min=0, a_max=size - 1)
    left = mx.floor(position)
    weight = position - left
    right = mx.ceil(position)
    return [(left.astype(mx.uint32), 1 - weight), (right.astype(mx.uint32), weight)]


def _cubic_near(x: mx.array, a: float) -> mx.array:
    """The cubic convolution kernel at distances up to 1."""
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1


def _cubic_far(x: mx.array, a: float) -> mx.array:
    """The cubic convolution kernel at distances between 1 and 2."""
    return (((x - 5) * x + 8) * x - 4) * a


@partial(mx.compile, shapeless=True)
def _cubic_weights(position: mx.array, places: list[mx.array]) -> list[mx.array]:
    """Weights of the four places around a position, the outer ones first and last."""
    kernels = (_cubic_far, _cubic_near, _cubic_near, _cubic_far)
    return [kernel(mx.abs(position - p), -0.75) for kernel, p in zip(kernels, places)]


def _cubic_taps(size: int, scale: float, align_corners: bool) -> list[Tap]:
    position = _positions(size, scale, align_corners)
    left, right = mx.floor(position), mx.floor(position + 1)
    places = [left - 1, left, right, right + 1]
    weights = _cubic_weights(position, places)
    # This order of the sum is MLX's.
    return [(_clamped(places[i], size), weights[i]) for i in (1, 2, 0, 3)]


def _triangle(x: mx.array) -> mx.array:
    return mx.maximum(1.0 - x, 0.0)


def _smooth_cubic(x: mx.array) -> mx.array:
    far = mx.where(x <= 2.0, _cubic_far(x, -0.5), 0.0)
    return mx.where(x <= 1.0, _cubic_near(x, -0.5), far)


def _antialiased_taps(
    size: int,
    scale: float,
    align_corners: bool,
    kernel: Callable[[mx.array], mx.array],
    radius: float,
) -> list[Tap]:
    """Taps of a kernel that is as wide as what it makes smaller."""
    position = _positions(size, scale, align_corners)
    width = 1.0 / scale if scale < 1 else 1.0
    reach = math.ceil(radius * width)
    taps = []
    for k in range(-reach, reach + 1):
        place = mx.floor(position) + k
        weight = kernel(mx.abs(position - place) / width)
        # What is outside does not count.
        inside = (place >= 0) & (place < size)
        taps.append((place, mx.where(inside, weight, 0.0)))
    total = sum(weight for _, weight in taps)
    total = mx.where(total > 0, total, 1.0)
    return [(_clamped(place, size), weight / total) for place, weight in taps]


_linear_antialiased = partial(_antialiased_taps, kernel=_triangle, radius=1.0)
_cubic_antialiased = partial(_antialiased_taps, kernel=_smooth_cubic, radius=2.0)


def _interpolate(
    x: mx.array, scale_factor: Sequence[float], taps_of: Taps, align_corners: bool
) -> mx.array:
    """The sum over all combinations of the axes' taps, each with the product of their weights."""
    _check_scales(x, scale_factor)
    count = x.ndim - 2
    axes = [
        [(_along(i, axis, count), _along(w, axis, count)[..., None]) for i, w in taps]
        for axis, taps in enumerate(
            taps_of(size, scale, align_corners) for size, scale in zip(x.shape[1:-1], scale_factor)
        )
    ]
    terms = []
    for taps in product(*axes):
        index, weights = zip(*taps)
        terms.append(reduce(operator.mul, weights) * x[(slice(None), *index)])
    return sum(terms)


def _interpolate_in_turn(
    x: mx.array, scale_factor: Sequence[float], taps_of: Taps, align_corners: bool
) -> mx.array:
    """One axis after another, which takes fewer products."""
    _check_scales(x, scale_factor)
    count = x.ndim - 2
    for axis, scale in enumerate(scale_factor):
        x = sum(
            mx.take(x, index, axis=axis + 1) * _along(weight, axis, count)[..., None]
            for index, weight in taps_of(x.shape[axis + 1], scale, align_corners)
        )
    return x


def upsample_nearest(x: mx.array, scale_factor: tuple[float, ...]) -> mx.array:
    """The nearest neighbour of every place.

    Args:
        x: Shape ``(batch, ..., channels)``.
        scale_factor: A scale for each axis in between.
    """
    _check_scales(x, scale_factor)
    if tuple(map(int, scale_factor)) != scale_factor:
        count = x.ndim - 2
        places = (
            _along(_nearest(size, scale), axis, count)
            for axis, (size, scale) in enumerate(zip(x.shape[1:-1], scale_factor))
        )
        return x[(slice(None), *places)]

    # Whole scales repeat every element: a broadcast does.
    batch, *space, channels = x.shape
    thin, wide = [batch], [batch]
    for size, scale in zip(space, scale_factor):
        thin += [size, 1]
        wide += [size, int(scale)]
    x = mx.broadcast_to(x.reshape(*thin, channels), (*wide, channels))
    return x.reshape(batch, *(size * int(s) for size, s in zip(space, scale_factor)), channels)


def upsample_linear(
    x: mx.array,
    scale_factor: tuple[float, ...],
    align_corners: bool = False,
    antialias: bool = False,
) -> mx.array:
    """Means of neighbours, weighted by how near they are.

    Args:
        x: Shape ``(batch, ..., channels)``.
        scale_factor: A scale for each axis in between.
        align_corners: Whether the first and last places of input and output are the same.
        antialias: Whether all of the input counts where the output is smaller.
    """
    _check_antialias(align_corners, antialias)
    if antialias:
        return _interpolate_in_turn(x, scale_factor, _linear_antialiased, align_corners)
    if align_corners:
        return _interpolate(x, scale_factor, _linear_taps, align_corners)
    return _interpolate_in_turn(x, scale_factor, _linear_taps, align_corners)


def upsample_cubic(
    x: mx.array,
    scale_factor: tuple[float, ...],
    align_corners: bool = False,
    antialias: bool = False,
) -> mx.array:
    """Values of smooth curves through four neighbours along each axis.

    Args:
        x: Shape ``(batch, ..., channels)``.
        scale_factor: A scale for each axis in between.
        align_corners: Whether the first and last places of input and output are the same.
        antialias: Whether all of the input counts where the output is smaller.
    """
    _check_antialias(align_corners, antialias)
    if antialias:
        return _interpolate_in_turn(x, scale_factor, _cubic_antialiased, align_corners)
    return _interpolate(x, scale_factor, _cubic_taps, align_corners)


class Upsample(Module):
    """Changes the size of all axes but the first and the last, ``(batch, ..., channels)``.

    Args:
        scale_factor: What sizes are multiplied by, one number or one for each axis.
        mode: ``"nearest"``, ``"linear"`` or ``"cubic"``.
        align_corners: Whether the first and last places of input and output are the same. Otherwise
            their middles are.
        antialias: Whether all of the input counts where the output is smaller; not for nearest
            neighbours or aligned corners.
    """

    def __init__(
        self,
        scale_factor: float | tuple,
        mode: Literal["nearest", "linear", "cubic"] = "nearest",
        align_corners: bool = False,
        antialias: bool = False,
    ):
        super().__init__()
        if mode not in ("nearest", "linear", "cubic"):
            raise ValueError(f"[Upsample] Got unsupported upsampling algorithm: {mode}")
        if antialias and mode == "nearest":
            raise ValueError(
                "[Upsample] Antialiasing is not supported for nearest neighbor upsampling"
            )
        if isinstance(scale_factor, (list, tuple)):
            self.scale_factor = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor)
        _check_antialias(align_corners, antialias)
        self.mode = mode
        self.align_corners = align_corners
        self.antialias = antialias

    def _extra_repr(self) -> str:
        text = (
            f"scale_factor={self.scale_factor}, mode={self.mode!r},"
            f" align_corners={self.align_corners}"
        )
        return f"{text}, antialias=True" if self.antialias else text

    def __call__(self, x: mx.array) -> mx.array:
        count = x.ndim - 2
        if count <= 0:
            raise ValueError(
                "[Upsample] The input should have at least 1 spatial dimension which means it"
                f" should be at least 3D but {x.ndim}D was provided"
            )
        scales = self.scale_factor
        if not isinstance(scales, tuple):
            scales = (scales,) * count
        elif len(scales) != count:
            raise ValueError(
                "[Upsample] One scale per spatial dimension is required but"
                f" scale_factor={scales} and the number of spatial dimensions were {count}"
            )
        if self.mode == "nearest":
            return upsample_nearest(x, scales)
        interpolate = upsample_linear if self.mode == "linear" else upsample_cubic
        return interpolate(x, scales, self.align_corners, self.antialias)
