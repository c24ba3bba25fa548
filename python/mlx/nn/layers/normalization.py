"""Layers that give their input mean 0 and variance 1, over different parts of it."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.nn.layers.base import Module


class _Norm(Module):
    """What normalizations share: a positive eps, and a weight and a bias for each feature."""

    def __init__(self, eps: float):
        super().__init__()
        if eps <= 0.0:
            raise ValueError(f"[{type(self).__name__}] 'eps' must be positive but got {eps}.")

    @property
    def _affine(self) -> bool:
        return "weight" in self

    def _scaled(self, x: mx.array) -> mx.array:
        return self.weight * x + self.bias if self._affine else x


class InstanceNorm(_Norm):
    """Normalizes every channel of every example.

    Args:
        dims: Number of channels, the last axis of an input ``(N, ..., C)``.
        eps: Added to the variance.
        affine: Whether to multiply by a weight and add a bias.
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = False):
        super().__init__(eps)
        if affine:
            self.weight = mx.ones((dims,))
            self.bias = mx.zeros((dims,))
        self.dims = dims
        self.eps = eps

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={self._affine}"

    def __call__(self, x: mx.array) -> mx.array:
        if x.ndim < 3:
            raise ValueError(
                "InstanceNorm expects inputs with at least 3 dimensions (N, ..., C)"
                f" but the input has {x.ndim} dimensions."
            )
        batch, *space, channels = x.shape
        # layer_norm works on the last axis and does not round in between.
        rows = mx.moveaxis(x, -1, 1).reshape(batch, channels, -1)
        rows = mx.fast.layer_norm(rows, None, None, self.eps)
        return self._scaled(mx.moveaxis(rows.reshape(batch, channels, *space), 1, -1))


class LayerNorm(_Norm):
    """Normalizes the last axis, then multiplies by ``weight`` and adds ``bias``.

    Args:
        dims: Size of the last axis.
        eps: Added to the variance.
        affine: Whether there is a weight.
        bias: Whether there is a bias; there is none without a weight.
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = True, bias: bool = True):
        super().__init__(eps)
        if affine:
            self.weight = mx.ones((dims,))
            if bias:
                self.bias = mx.zeros((dims,))
        self.eps = eps
        self.dims = dims

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={self._affine}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.layer_norm(x, self.get("weight"), self.get("bias"), self.eps)


class RMSNorm(_Norm):
    """Divides the last axis by the root of its mean square, then multiplies by ``weight``.

    Args:
        dims: Size of the last axis.
        eps: Added to the mean square.
    """

    def __init__(self, dims: int, eps: float = 1e-5):
        super().__init__(eps)
        self.weight = mx.ones((dims,))
        self.eps = eps

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.rms_norm(x, self["weight"], self.eps)


class GroupNorm(_Norm):
    """Normalizes groups of channels of every example.

    Args:
        num_groups: Number of groups; it divides ``dims``.
        dims: Number of channels, the last axis of the input.
        eps: Added to the variance.
        affine: Whether to multiply by a weight and add a bias, of each channel.
        pytorch_compatible: Whether a group is made of channels that follow one another. Otherwise
            group ``g`` has the channels ``g``, ``g + num_groups`` and so on.
    """

    def __init__(
        self,
        num_groups: int,
        dims: int,
        eps: float = 1e-5,
        affine: bool = True,
        pytorch_compatible: bool = False,
    ):
        super().__init__(eps)
        for what, count in (("groups", num_groups), ("features", dims)):
            if count <= 0:
                raise ValueError(f"The number of {what} ({count}) must be a positive integer.")
        if dims % num_groups != 0:
            raise ValueError(
                f"The number of features ({dims}) must be evenly divisible by"
                f" the number of groups ({num_groups})."
            )
        if affine:
            self.bias = mx.zeros((dims,))
            self.weight = mx.ones((dims,))
        self.num_groups = num_groups
        self.dims = dims
        self.eps = eps
        self.pytorch_compatible = pytorch_compatible

    def _extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.dims}, eps={self.eps}, affine={self._affine},"
            f" pytorch_compatible={self.pytorch_compatible}"
        )

    def _neighbours_normalized(self, x: mx.array) -> mx.array:
        groups = x.reshape(x.shape[0], -1, self.num_groups, x.shape[-1] // self.num_groups)
        groups = groups.transpose(0, 2, 1, 3)
        rows = groups.reshape(*groups.shape[:2], -1)
        rows = mx.fast.layer_norm(rows, eps=self.eps, weight=None, bias=None)
        return rows.reshape(groups.shape).transpose(0, 2, 1, 3).reshape(x.shape)

    def _strided_normalized(self, x: mx.array) -> mx.array:
        groups = x.reshape(x.shape[0], -1, self.num_groups)
        mean = mx.mean(groups, axis=1, keepdims=True)
        variance = mx.var(groups, axis=1, keepdims=True)
        return ((groups - mean) * mx.rsqrt(variance + self.eps)).reshape(x.shape)

    def __call__(self, x: mx.array) -> mx.array:
        if self.pytorch_compatible:
            return self._scaled(self._neighbours_normalized(x))
        return self._scaled(self._strided_normalized(x))


class BatchNorm(_Norm):
    """Normalizes every channel over the whole batch.

    Inputs are ``NC``, ``NLC`` or ``NHWC``. In training the statistics are those of the batch, and
    running averages of them are kept, which are used afterwards.

    Args:
        num_features: Number of channels, the last axis.
        eps: Added to the variance.
        momentum: How much of the running averages a batch replaces.
        affine: Whether to multiply by a weight and add a bias.
        track_running_stats: Whether to keep the averages; otherwise the statistics are always those
            of the batch. The averages are parameters that are never trained.
    """

    _statistics = ("running_mean", "running_var")

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ):
        super().__init__(eps)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = mx.ones((num_features,))
            self.bias = mx.zeros((num_features,))
        if track_running_stats:
            self.running_mean = mx.zeros((num_features,))
            self.running_var = mx.ones((num_features,))
            self._freeze_statistics()

    def _freeze_statistics(self) -> None:
        self.freeze(keys=list(self._statistics), recurse=False)

    def unfreeze(self, *args, **kwargs) -> Module:
        """As :meth:`Module.unfreeze`, but the running averages stay frozen."""
        super().unfreeze(*args, **kwargs)
        self._freeze_statistics()
        return self

    def _extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum},"
            f" affine={self._affine}, track_running_stats={self.track_running_stats}"
        )

    def _update_statistics(self, mean: mx.array, variance: mx.array) -> None:
        new = self.momentum
        self.running_mean = (1 - new) * self.running_mean + new * mean
        self.running_var = (1 - new) * self.running_var + new * variance

    def __call__(self, x: mx.array) -> mx.array:
        if not 2 <= x.ndim <= 4:
            raise ValueError(
                f"Expected input tensor to have 2, 3 or 4 dimensions, but got {x.ndim}"
            )
        if self.training and math.prod(x.shape[:-1]) == 1:
            raise ValueError("BatchNorm training requires more than one value per channel.")

        if self.track_running_stats and not self.training:
            mean, variance = self.running_mean, self.running_var
        else:
            axes = tuple(range(x.ndim - 1))
            mean, variance = mx.mean(x, axis=axes), mx.var(x, axis=axes)
            if self.track_running_stats:
                self._update_statistics(mean, mx.var(x, axis=axes, ddof=1))
        return self._scaled((x - mean) * mx.rsqrt(variance + self.eps))
