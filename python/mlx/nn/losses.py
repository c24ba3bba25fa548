"""Losses. ``reduction`` says what is returned: each loss ("none"), their mean or their sum."""

from __future__ import annotations

import math
from typing import Literal, get_args

import mlx.core as mx

Reduction = Literal["none", "mean", "sum"]


def _reduce(loss: mx.array, reduction: Reduction = "none") -> mx.array:
    if reduction not in get_args(Reduction):
        raise ValueError(f"Invalid reduction. Must be one of {get_args(Reduction)}.")
    if reduction == "none":
        return loss
    return mx.mean(loss) if reduction == "mean" else mx.sum(loss)


def _check_shapes(name: str, array: mx.array, other_name: str, other: mx.array) -> None:
    if array.shape != other.shape:
        raise ValueError(
            f"{name} shape {array.shape} does not match {other_name} shape {other.shape}."
        )


def _weighted(loss: mx.array, weights: mx.array | None) -> mx.array:
    if weights is None:
        return loss
    if weights.shape != loss.shape:
        raise ValueError(
            f"Weights with shape {weights.shape} is not the same as"
            f" output loss with shape {loss.shape}."
        )
    return loss * weights


def _picked(x: mx.array, index: mx.array, axis: int) -> mx.array:
    """The elements along an axis that have these indices."""
    return mx.take_along_axis(x, mx.expand_dims(index, axis), axis).squeeze(axis)


def _fused_cross_entropy_fits(
    logits: mx.array, targets: mx.array, axis: int, label_smoothing: float
) -> bool:
    return (
        hasattr(mx.fast, "cross_entropy")
        and mx.default_device() == mx.gpu
        and targets.ndim < logits.ndim
        and label_smoothing == 0
        and axis in (-1, logits.ndim - 1)
        and mx.issubdtype(logits.dtype, mx.floating)
        and mx.issubdtype(targets.dtype, mx.integer)
    )


def cross_entropy(
    logits: mx.array,
    targets: mx.array,
    weights: mx.array | None = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    """The negative logarithm of the probability that the softmax of logits gives to the targets.

    Args:
        logits: Unnormalized logarithms of probabilities.
        targets: Indices of classes, in the shape of the logits without ``axis``, or probabilities
            of all classes in the same shape.
        weights: Factors of the losses.
        axis: The axis of the classes.
        label_smoothing: How much of the targets is spread over all classes, from 0 to less than 1.
        reduction: See the module.
    """
    if label_smoothing < 0 or label_smoothing >= 1:
        raise ValueError(f"Label smoothing must be in [0, 1), got {label_smoothing}.")
    shape = list(logits.shape)
    probabilities = targets.ndim == logits.ndim
    if not probabilities:
        shape.pop(axis)
    if targets.shape != tuple(shape):
        raise ValueError(
            f"Targets shape {targets.shape} does not match logits shape {logits.shape}."
        )

    if _fused_cross_entropy_fits(logits, targets, axis, label_smoothing):
        loss = mx.fast.cross_entropy(logits, targets).astype(logits.dtype)
        return _reduce(_weighted(loss, weights), reduction)

    logits = logits - mx.stop_gradient(mx.max(logits, axis=axis, keepdims=True))
    if probabilities:
        score = mx.sum(logits * targets, axis=axis)
    else:
        score = _picked(logits, targets, axis)
    normalizer = mx.logsumexp(logits, axis=axis)
    if label_smoothing > 0:
        spread = -logits.mean(axis=axis) * label_smoothing
        loss = normalizer - (1 - label_smoothing) * score + spread
    else:
        loss = normalizer - score
    return _reduce(_weighted(loss, weights), reduction)


def binary_cross_entropy(
    inputs: mx.array,
    targets: mx.array,
    weights: mx.array | None = None,
    with_logits: bool = True,
    reduction: Reduction = "mean",
) -> mx.array:
    """The negative logarithm of the probability given to targets that are 0 or 1.

    Args:
        inputs: Logits, or probabilities whose logarithms are then taken to be at least -100.
        targets: In the shape of the inputs.
        weights: Factors of the losses.
        with_logits: Whether the inputs are logits.
        reduction: See the module.
    """
    _check_shapes("Inputs", inputs, "targets", targets)
    if with_logits:
        loss = mx.logaddexp(0.0, inputs) - inputs * targets
    else:
        log_true = mx.clip(mx.log(inputs), a_min=-100, a_max=None)
        log_false = mx.clip(mx.log(1 - inputs), a_min=-100, a_max=None)
        loss = -(targets * log_true + (1 - targets) * log_false)
    return _reduce(_weighted(loss, weights), reduction)


def l1_loss(predictions: mx.array, targets: mx.array, reduction: Reduction = "mean") -> mx.array:
    """The absolute difference."""
    _check_shapes("Predictions", predictions, "targets", targets)
    return _reduce(mx.abs(predictions - targets), reduction)


def mse_loss(predictions: mx.array, targets: mx.array, reduction: Reduction = "mean") -> mx.array:
    """The square of the difference."""
    _check_shapes("Predictions", predictions, "targets", targets)
    return _reduce(mx.square(predictions - targets), reduction)


def nll_loss(
    inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none"
) -> mx.array:
    """The negative of the inputs at the targets.

    Args:
        inputs: Logarithms of probabilities.
        targets: Indices of classes, in the shape of the inputs without ``axis``.
        axis: The axis of the classes.
        reduction: See the module.
    """
    return _reduce(-_picked(inputs, targets, axis), reduction)


def gaussian_nll_loss(
    inputs: mx.array,
    targets: mx.array,
    vars: mx.array,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> mx.array:
    """The negative logarithm of the density of normal distributions at the targets.

    Args:
        inputs: Means.
        targets: In the shape of the inputs.
        vars: Variances, in the shape of the inputs.
        full: Whether to add the constant term.
        eps: The least variance.
        reduction: See the module.
    """
    _check_shapes("Inputs", inputs, "targets", targets)
    _check_shapes("Inputs", inputs, "vars", vars)
    variance = mx.maximum(vars, eps)
    loss = 0.5 * (mx.log(variance) + mx.square(targets - inputs) / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


def kl_div_loss(
    inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none"
) -> mx.array:
    """The divergence of one distribution from another, both as logarithms of probabilities.

    Args:
        inputs: The distribution predicted.
        targets: The one it should be.
        axis: The axis of the classes.
        reduction: See the module.
    """
    return _reduce(mx.sum(mx.exp(targets) * (targets - inputs), axis), reduction)


def smooth_l1_loss(
    predictions: mx.array,
    targets: mx.array,
    beta: float = 1.0,
    reduction: Reduction = "mean",
) -> mx.array:
    """``abs(d) - beta / 2`` of the difference ``d``, and ``d ** 2 / (2 * beta)`` below ``beta``."""
    _check_shapes("Predictions", predictions, "targets", targets)
    distance = mx.abs(predictions - targets)
    loss = mx.where(
        distance < beta, 0.5 * mx.square(distance) / beta, mx.abs(distance) - 0.5 * beta
    )
    return _reduce(loss, reduction)


def triplet_loss(
    anchors: mx.array,
    positives: mx.array,
    negatives: mx.array,
    axis: int = -1,
    p: int = 2,
    margin: float = 1.0,
    eps: float = 1e-6,
    reduction: Reduction = "none",
) -> mx.array:
    """How much nearer positives should be to their anchors, by ``margin`` less than negatives.

    Args:
        anchors, positives, negatives: Vectors along ``axis``.
        axis: The axis of the vectors.
        p: The distance is the p-norm of the difference.
        margin: See above.
        eps: Added below the root.
        reduction: See the module.
    """

    def distance(others: mx.array) -> mx.array:
        powers = mx.power(mx.abs(anchors - others), p).sum(axis)
        return mx.power(powers + eps, 1.0 / p)

    return _reduce(mx.maximum(distance(positives) - distance(negatives) + margin, 0), reduction)


def hinge_loss(inputs: mx.array, targets: mx.array, reduction: Reduction = "none") -> mx.array:
    """``max(0, 1 - inputs * targets)``, for targets of 1 and -1."""
    return _reduce(mx.maximum(1 - inputs * targets, 0), reduction)


def huber_loss(
    inputs: mx.array, targets: mx.array, delta: float = 1.0, reduction: Reduction = "none"
) -> mx.array:
    """Half the square of the difference, and linear where that is above ``delta``."""
    distance = mx.abs(inputs - targets)
    quadratic = mx.minimum(distance, delta)
    loss = 0.5 * quadratic**2 + delta * (distance - quadratic)
    return _reduce(loss, reduction)


def log_cosh_loss(inputs: mx.array, targets: mx.array, reduction: Reduction = "none") -> mx.array:
    """The logarithm of the hyperbolic cosine of the difference."""
    difference = inputs - targets
    return _reduce(mx.logaddexp(difference, -difference) - math.log(2), reduction)


def cosine_similarity_loss(
    x1: mx.array,
    x2: mx.array,
    axis: int = 1,
    eps: float = 1e-8,
    reduction: Reduction = "none",
) -> mx.array:
    """The cosine of the angle between vectors along ``axis``.

    ``eps`` is the least product of their lengths that they are divided by.
    """
    lengths = mx.linalg.norm(x1, axis=axis) * mx.linalg.norm(x2, axis=axis)
    return _reduce(mx.sum(x1 * x2, axis=axis) / mx.maximum(lengths, eps), reduction)


def margin_ranking_loss(
    inputs1: mx.array,
    inputs2: mx.array,
    targets: mx.array,
    margin: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    """``max(0, -targets * (inputs1 - inputs2) + margin)``.

    A target of 1 says that the first input should be the larger one, -1 that the second should.
    """
    if not inputs1.shape == inputs2.shape == targets.shape:
        raise ValueError(
            "The shapes of the arguments do not match. The provided shapes are"
            f" inputs1.shape={inputs1.shape}, inputs2.shape={inputs2.shape},"
            f" and targets.shape={targets.shape}."
        )
    return _reduce(mx.maximum(0, -targets * (inputs1 - inputs2) + margin), reduction)
