"""mlx.nn.losses."""

import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from nn_support import check_close, check_gradient, values

A, B = values(4, 5), values(4, 5, seed=1)
POSITIVE = values(4, 5, seed=2, low=0.1)
PROBABILITIES = values(4, 5, seed=3, low=0.1, high=0.9)
SIGNS = np.sign(B)
INDICES = np.array([0, 4, 2, 1])


def log_softmax(x, axis=-1):
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def smooth_l1(d, beta):
    return np.where(np.abs(d) < beta, d**2 / (2 * beta), np.abs(d) - beta / 2)


def distance(x, y, axis, p, eps):
    return ((np.abs(x - y) ** p).sum(axis) + eps) ** (1 / p)


def cosine(x, y, axis):
    return (x * y).sum(axis) / np.sqrt((x**2).sum(axis) * (y**2).sum(axis))


BCE = -(
    PROBABILITIES * np.log(1 / (1 + np.exp(-A))) + (1 - PROBABILITIES) * np.log(1 / (1 + np.exp(A)))
)
GAUSSIAN = 0.5 * (np.log(POSITIVE) + (A - B) ** 2 / POSITIVE)

# The loss, its arrays, its other arguments, and what each loss is.
LOSSES = [
    (nn.losses.cross_entropy, (A, INDICES), {}, -log_softmax(A)[range(4), INDICES]),
    (nn.losses.cross_entropy, (A.T, INDICES), {"axis": 0}, -log_softmax(A)[range(4), INDICES]),
    (
        nn.losses.cross_entropy,
        (A, PROBABILITIES / PROBABILITIES.sum(-1, keepdims=True)),
        {},
        -(log_softmax(A) * PROBABILITIES / PROBABILITIES.sum(-1, keepdims=True)).sum(-1),
    ),
    (
        nn.losses.cross_entropy,
        (A, INDICES, POSITIVE[:, 0]),
        {"label_smoothing": 0.2},
        -POSITIVE[:, 0] * (0.8 * log_softmax(A)[range(4), INDICES] + 0.2 * log_softmax(A).mean(-1)),
    ),
    (nn.losses.binary_cross_entropy, (A, PROBABILITIES), {}, BCE),
    (nn.losses.binary_cross_entropy, (A, PROBABILITIES, POSITIVE), {}, BCE * POSITIVE),
    (
        nn.losses.binary_cross_entropy,
        (1 / (1 + np.exp(-A)), PROBABILITIES),
        {"with_logits": False},
        BCE,
    ),
    (nn.losses.l1_loss, (A, B), {}, np.abs(A - B)),
    (nn.losses.mse_loss, (A, B), {}, (A - B) ** 2),
    (nn.losses.nll_loss, (A, INDICES), {}, -A[range(4), INDICES]),
    (nn.losses.nll_loss, (A.T, INDICES), {"axis": 0}, -A[range(4), INDICES]),
    (nn.losses.gaussian_nll_loss, (A, B, POSITIVE), {}, GAUSSIAN),
    (
        nn.losses.gaussian_nll_loss,
        (A, B, POSITIVE),
        {"full": True},
        GAUSSIAN + 0.5 * math.log(2 * math.pi),
    ),
    (
        nn.losses.kl_div_loss,
        (log_softmax(A), log_softmax(B)),
        {},
        (np.exp(log_softmax(B)) * (log_softmax(B) - log_softmax(A))).sum(-1),
    ),
    (nn.losses.smooth_l1_loss, (A, B), {}, smooth_l1(A - B, 1)),
    (nn.losses.smooth_l1_loss, (A, B), {"beta": 0.3}, smooth_l1(A - B, 0.3)),
    (
        nn.losses.triplet_loss,
        (A, B, POSITIVE),
        {},
        np.maximum(distance(A, B, -1, 2, 1e-6) - distance(A, POSITIVE, -1, 2, 1e-6) + 1, 0),
    ),
    (
        nn.losses.triplet_loss,
        (A, B, POSITIVE),
        {"axis": 0, "p": 3, "margin": 0.5, "eps": 1e-3},
        np.maximum(distance(A, B, 0, 3, 1e-3) - distance(A, POSITIVE, 0, 3, 1e-3) + 0.5, 0),
    ),
    (nn.losses.hinge_loss, (A, SIGNS), {}, np.maximum(1 - A * SIGNS, 0)),
    (nn.losses.huber_loss, (A, B), {"delta": 0.3}, 0.3 * smooth_l1(A - B, 0.3)),
    (nn.losses.log_cosh_loss, (A, B), {}, np.log(np.cosh(A - B))),
    (nn.losses.cosine_similarity_loss, (A, B), {}, cosine(A, B, 1)),
    (nn.losses.cosine_similarity_loss, (A, B), {"axis": 0}, cosine(A, B, 0)),
    (
        nn.losses.margin_ranking_loss,
        (A, B, SIGNS),
        {"margin": 0.5},
        np.maximum(-SIGNS * (A - B) + 0.5, 0),
    ),
]


@pytest.mark.parametrize(
    "loss, arrays, settings, expected", LOSSES, ids=[row[0].__name__ for row in LOSSES]
)
def test_losses(loss, arrays, settings, expected):
    arrays = [np.asarray(a, np.int32 if a.dtype.kind == "i" else np.float32) for a in arrays]
    inputs = [mx.array(a) for a in arrays]
    tolerance = 1e-4
    check_close(loss(*inputs, reduction="none", **settings), expected, tolerance)
    check_close(loss(*inputs, reduction="mean", **settings), np.mean(expected), tolerance)
    check_close(loss(*inputs, reduction="sum", **settings), np.sum(expected), tolerance)
    check_gradient(
        lambda *x: loss(*x, reduction="none", **settings), *arrays, step=1e-3, tolerance=5e-2
    )
    with pytest.raises(ValueError) as error:
        loss(*inputs, reduction="other", **settings)
    assert str(error.value) == "Invalid reduction. Must be one of ('none', 'mean', 'sum')."


def test_default_reductions():
    a, b = mx.array(A), mx.array(B)
    for loss in (nn.losses.l1_loss, nn.losses.mse_loss, nn.losses.smooth_l1_loss):
        assert loss(a, b).shape == ()
    assert nn.losses.binary_cross_entropy(a, b).shape == ()
    assert nn.losses.gaussian_nll_loss(a, b, a).shape == ()
    for loss in (nn.losses.hinge_loss, nn.losses.huber_loss, nn.losses.log_cosh_loss):
        assert loss(a, b).shape == (4, 5)
    assert nn.losses.cross_entropy(a, mx.array(INDICES)).shape == (4,)


def test_extremes():
    logits = mx.array([[1e4, 0.0], [-1e4, 1e4]])
    check_close(nn.losses.cross_entropy(logits, mx.array([0, 1])), [0, 0], 0)
    check_close(nn.losses.cross_entropy(logits, mx.array([1, 0])), [1e4, 2e4], 0)
    sure = mx.array([0.0, 1.0])
    loss = nn.losses.binary_cross_entropy(sure, 1 - sure, with_logits=False, reduction="none")
    check_close(loss, [100, 100], 0)
    variance = nn.losses.gaussian_nll_loss(sure, sure, mx.zeros((2,)), eps=1.0)
    assert variance.item() == 0
    zeros = mx.zeros((2, 3))
    check_close(nn.losses.cosine_similarity_loss(zeros, zeros), [0, 0], 0)


def test_cross_entropy_of_halves():
    logits = mx.array(A).astype(mx.bfloat16)
    loss = nn.losses.cross_entropy(logits, mx.array(INDICES))
    assert loss.dtype == mx.bfloat16
    check_close(loss, -log_softmax(A)[range(4), INDICES])


SHORT = mx.array([0, 1])


@pytest.mark.parametrize(
    "loss, arguments, message",
    [
        ("cross_entropy", (SHORT,), "Targets shape (2,) does not match logits shape (4, 5)."),
        (
            "cross_entropy",
            (mx.array(A[:2]),),
            "Targets shape (2, 5) does not match logits shape (4, 5).",
        ),
        (
            "cross_entropy",
            (mx.array(INDICES), SHORT),
            "Weights with shape (2,) is not the same as output loss with shape (4,).",
        ),
        (
            "cross_entropy",
            (mx.array(INDICES), None, -1, 1.0),
            "Label smoothing must be in [0, 1), got 1.0.",
        ),
        (
            "binary_cross_entropy",
            (SHORT,),
            "Inputs shape (4, 5) does not match targets shape (2,).",
        ),
        (
            "binary_cross_entropy",
            (mx.array(A), SHORT),
            "Weights with shape (2,) is not the same as output loss with shape (4, 5).",
        ),
        ("l1_loss", (SHORT,), "Predictions shape (4, 5) does not match targets shape (2,)."),
        ("mse_loss", (SHORT,), "Predictions shape (4, 5) does not match targets shape (2,)."),
        (
            "smooth_l1_loss",
            (SHORT,),
            "Predictions shape (4, 5) does not match targets shape (2,).",
        ),
        (
            "gaussian_nll_loss",
            (mx.array(A), SHORT),
            "Inputs shape (4, 5) does not match vars shape (2,).",
        ),
        (
            "margin_ranking_loss",
            (mx.array(A), SHORT),
            "The shapes of the arguments do not match. The provided shapes are"
            " inputs1.shape=(4, 5), inputs2.shape=(4, 5), and targets.shape=(2,).",
        ),
    ],
)
def test_errors(loss, arguments, message):
    with pytest.raises(ValueError) as error:
        getattr(nn.losses, loss)(mx.array(A), *arguments)
    assert str(error.value) == message
