"""mlx.optimizers."""

import math

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_flatten, tree_map, tree_unflatten

from nn_support import HALVES, check_close, values

RATE = 0.05


class Reference:
    """Optimizers in NumPy, in double precision: each a generator of steps for one parameter."""

    @staticmethod
    def sgd(w, momentum=0, weight_decay=0, dampening=0, nesterov=False):
        v = 0
        while True:
            g = (yield w) + weight_decay * w
            v = momentum * v + (1 - dampening) * g
            w = w - RATE * ((g + momentum * v if nesterov else v) if momentum else g)

    @staticmethod
    def rmsprop(w, alpha=0.99, eps=1e-8):
        v = 0
        while True:
            g = yield w
            v = alpha * v + (1 - alpha) * g**2
            w = w - RATE * g / (np.sqrt(v) + eps)

    @staticmethod
    def adagrad(w, eps=1e-8):
        v = 0
        while True:
            g = yield w
            v = v + g**2
            w = w - RATE * g / (np.sqrt(v) + eps)

    @staticmethod
    def adadelta(w, rho=0.9, eps=1e-6):
        v = u = 0
        while True:
            g = yield w
            v = rho * v + (1 - rho) * g**2
            d = np.sqrt(u + eps) / np.sqrt(v + eps) * g
            u = rho * u + (1 - rho) * d**2
            w = w - RATE * d

    @staticmethod
    def adam(w, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, bias_correction=False):
        m = v = t = 0
        b1, b2 = betas
        while True:
            g = yield w
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g**2
            c1, c2 = (1 - b1**t, 1 - b2**t) if bias_correction else (1, 1)
            w = w * (1 - RATE * weight_decay)
            w = w - RATE * (m / c1) / (np.sqrt(v / c2) + eps)

    @staticmethod
    def adamax(w, betas=(0.9, 0.999), eps=1e-8):
        m = v = 0
        b1, b2 = betas
        while True:
            g = yield w
            m = b1 * m + (1 - b1) * g
            v = np.maximum(b2 * v, np.abs(g))
            w = w - RATE * m / (v + eps)

    @staticmethod
    def lion(w, betas=(0.9, 0.99), weight_decay=0):
        m = 0
        b1, b2 = betas
        while True:
            g = yield w
            c = np.sign(b1 * m + (1 - b1) * g)
            m = b2 * m + (1 - b2) * g
            w = w * (1 - RATE * weight_decay) - RATE * c

    @staticmethod
    def muon(w, momentum=0.95, weight_decay=0.01, nesterov=True, ns_steps=5):
        v = 0
        while True:
            g = (yield w) + weight_decay * w
            v = momentum * v + (1 - momentum) * g
            x = (1 - momentum) * g + momentum * v if nesterov else v
            rate = RATE
            if w.ndim >= 2:
                shape = x.shape
                rate = RATE * max(1, shape[-2] / shape[-1]) ** 0.5
                x = x.reshape(shape[0], -1)
                x = x / (np.linalg.norm(x) + 1e-7)
                for _ in range(ns_steps):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
                x = x.reshape(shape)
            w = w - rate * x

    @staticmethod
    def adafactor(w, beta_1=None, weight_decay=0, scale=True, relative=True, warmup=False):
        row = column = v = m = t = 0
        while True:
            g = yield w
            t += 1
            rate = min(1e-6 * t if warmup else 1e-2, t**-0.5) if relative else RATE
            rate *= max(1e-3, np.sqrt((w**2).mean())) if scale else 1
            b2 = 1 - t**-0.8
            s = g**2 + 1e-30
            if w.ndim >= 2:
                row = b2 * row + (1 - b2) * s.mean(-1)
                column = b2 * column + (1 - b2) * s.mean(-2)
                v = row[..., None] * column[..., None, :] / row.mean(-1)[..., None, None]
            else:
                v = b2 * v + (1 - b2) * s
            d = g / np.sqrt(v)
            d = rate * d / max(1, np.sqrt((d**2).mean()))
            if beta_1 is not None:
                d = m = beta_1 * m + (1 - beta_1) * d
            w = w * (1 - weight_decay * rate) - d


OPTIMIZERS = [
    (optim.SGD, "sgd", {}, {}),
    (optim.SGD, "sgd", {"momentum": 0.9, "weight_decay": 0.1}, {}),
    (optim.SGD, "sgd", {"momentum": 0.9, "dampening": 0.3}, {}),
    (optim.SGD, "sgd", {"momentum": 0.9, "nesterov": True}, {}),
    (optim.RMSprop, "rmsprop", {}, {}),
    (optim.RMSprop, "rmsprop", {"alpha": 0.5, "eps": 1e-2}, {}),
    (optim.Adagrad, "adagrad", {}, {}),
    (optim.AdaDelta, "adadelta", {}, {}),
    (optim.AdaDelta, "adadelta", {"rho": 0.5, "eps": 1e-3}, {}),
    (optim.Adam, "adam", {}, {}),
    (optim.Adam, "adam", {"betas": [0.5, 0.9], "eps": 1e-3, "bias_correction": True}, {}),
    (optim.AdamW, "adam", {}, {"weight_decay": 0.01}),
    (optim.AdamW, "adam", {"weight_decay": 0.3, "bias_correction": True}, {}),
    (optim.Adamax, "adamax", {}, {}),
    (optim.Lion, "lion", {}, {}),
    (optim.Lion, "lion", {"betas": [0.5, 0.8], "weight_decay": 0.3}, {}),
    (optim.Muon, "muon", {}, {}),
    (optim.Muon, "muon", {"nesterov": False, "weight_decay": 0.0, "ns_steps": 3}, {}),
    (optim.Adafactor, "adafactor", {}, {}),
    (optim.Adafactor, "adafactor", {"beta_1": 0.9, "weight_decay": 0.1}, {}),
    (optim.Adafactor, "adafactor", {"warmup_init": True}, {"warmup": True}),
    (
        optim.Adafactor,
        "adafactor",
        {"relative_step": False, "scale_parameter": False},
        {"relative": False, "scale": False},
    ),
]


def parameters():
    return {
        "matrix": values(4, 6),
        "tall": values(6, 3, seed=1),
        "list": [values(5, seed=2), {"more": values(2, 3, 4, seed=3)}],
    }


@pytest.mark.parametrize("optimizer, reference, settings, differences", OPTIMIZERS)
def test_steps(optimizer, reference, settings, differences):
    arguments = {**settings, **differences}
    for name in ("warmup_init", "relative_step", "scale_parameter"):
        arguments.pop(name, None)
    run = getattr(Reference, reference)
    steps = tree_map(lambda w: run(w.astype(np.float64), **arguments), parameters())
    expected = tree_map(next, steps)
    o = optimizer(RATE, **settings)
    current = tree_map(mx.array, parameters())
    for i in range(4):
        gradients = tree_map(lambda w, i=i: np.sin(3 * w + i), parameters())
        current = o.apply_gradients(tree_map(mx.array, gradients), current)
        expected = tree_map(lambda s, g: s.send(g.astype(np.float64)), steps, gradients)
        tree_map(lambda w, e: check_close(w, e, 5e-4), current, expected)
        assert o.step.item() == i + 1
    mx.eval(o.state)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("optimizer, reference, settings, differences", OPTIMIZERS)
def test_types(optimizer, reference, settings, differences, dtype):
    o = optimizer(optim.cosine_decay(RATE, 10), **settings)
    current = tree_map(lambda w: mx.array(w).astype(dtype), parameters())
    new = o.apply_gradients(current, current)
    for tree in (new, {k: v for k, v in o.state.items() if k not in ("step", "learning_rate")}):
        assert {value.dtype for _, value in tree_flatten(tree)} <= {dtype}
    tree_map(lambda a, b: check_close(a, np.array(b.astype(mx.float32)), 0.5), new, current)


def test_update_of_models():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    model.layers[0].freeze()
    before = [np.array(layer.weight) for layer in model.layers]
    o = optim.SGD(0.5)
    _, gradients = nn.value_and_grad(model, lambda x: model(x).sum())(mx.ones((1, 2)))
    assert o.update(model, gradients) is None
    check_close(model.layers[0].weight, before[0], 0)
    gradient = np.array(gradients["layers"][1]["weight"])
    check_close(model.layers[1].weight, before[1] - 0.5 * gradient)


def test_state():
    o = optim.Adam(0.1)
    assert set(o.state) == {"step", "learning_rate"}
    assert o.step.dtype == mx.uint64
    o.init({"a": mx.ones((2,)), "b": [mx.ones((1,))]})
    state = o.state
    assert set(state["a"]) == {"m", "v"} and state["b"][0]["m"].shape == (1,)
    o.apply_gradients(*[{"a": mx.ones((2,))}] * 2)
    kept = state["a"]["m"]
    # More parameters can come, and keep what the others have.
    o.init({"a": mx.ones((2,)), "b": [mx.ones((1,)), {"c": mx.ones((3,))}], "d": (mx.ones((1,)),)})
    assert o.state is state and state["a"]["m"] is kept
    assert state["b"][1]["c"]["v"].shape == (3,) and isinstance(state["d"], tuple)


def test_saved_state(tmp_path):
    file = str(tmp_path / "state.safetensors")
    gradients = {"layers": [{"w": mx.array(values(3, 4))}, {"w": mx.array(values(2))}]}
    first = optim.AdamW(0.1)
    current = first.apply_gradients(gradients, gradients)
    mx.save_safetensors(file, tree_flatten(first.state, destination={}))
    second = optim.AdamW(0.7)
    second.state = tree_unflatten(list(mx.load(file).items()))
    for o in (first, second):
        assert abs(o.learning_rate.item() - 0.1) < 1e-7 and o.step.item() == 1
    results = [o.apply_gradients(gradients, current) for o in (first, second)]
    tree_map(lambda a, b: check_close(a, np.array(b), 0), *results)


def test_learning_rate():
    o = optim.SGD(lambda step: 0.5**step)
    w = {"w": mx.array([0.0])}
    for expected in (-1, -1.5, -1.75):
        w = o.apply_gradients({"w": mx.array([1.0])}, w)
        assert w["w"].item() == expected
    assert o.learning_rate.item() == 0.25
    o = optim.SGD(0.5)
    o.learning_rate = 0.25
    assert o.learning_rate.item() == 0.25
    assert o.apply_gradients({"w": mx.array([1.0])}, {"w": mx.array([0.0])})["w"].item() == -0.25


def test_own_optimizers():
    class Decay(optim.Optimizer):
        def __init__(self):
            super().__init__({"rate": lambda step: step + 1})

        def init_single(self, parameter, state):
            state["seen"] = mx.array(0)

        def apply_single(self, gradient, parameter, state):
            state["seen"] = state["seen"] + 1
            return parameter * self.state["rate"]

    o = Decay()
    w = {"w": mx.array([1.0])}
    for expected in (1, 2, 6):
        w = o.apply_gradients(w, w)
        assert w["w"].item() == expected
    assert o.state["w"]["seen"].item() == 3
    with pytest.raises(NotImplementedError):
        optim.Optimizer().apply_gradients(w, w)
    with pytest.raises(NotImplementedError):
        optim.Optimizer().apply_single(None, None, {})


def test_several_optimizers():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = tree_flatten(model.parameters(), destination={})
    parts = [optim.SGD(1.0), optim.SGD(2.0), optim.SGD(3.0)]
    o = optim.MultiOptimizer(
        parts, [lambda name, g: name.endswith("bias"), lambda name, g: g.shape == (1, 3)]
    )
    ones = tree_map(mx.ones_like, model.parameters())
    o.init(model.trainable_parameters())
    o.update(model, ones)
    rates = {
        "layers.0.weight": 3,
        "layers.0.bias": 1,
        "layers.1.weight": 2,
        "layers.1.bias": 1,
    }
    for name, w in tree_flatten(model.parameters()):
        check_close(w, np.array(before[name]) - rates[name])
    assert [s["step"].item() for s in o.state["states"]] == [1, 1, 1]
    o.learning_rate = 0.5
    assert o.learning_rate.item() == 0.5 and parts[2].learning_rate.item() == 0.5
    state = o.state
    o.state = state
    assert parts[1].state is state["states"][1]
    for wrong in ({}, {"states": []}):
        with pytest.raises(ValueError, match="Invalid state provided"):
            o.state = wrong
    with pytest.raises(ValueError, match="Given 0 filters but 1 needed."):
        optim.MultiOptimizer(parts[:2])
    alone = optim.MultiOptimizer([optim.SGD(1.0)])
    assert alone.apply_gradients({"w": mx.ones((1,))}, {"w": mx.ones((1,))})["w"].item() == 0


def test_a_part_without_parameters():
    o = optim.MultiOptimizer([optim.Adam(0.1), optim.SGD(1.0)], [lambda name, g: False])
    for _ in range(2):
        result = o.apply_gradients({"w": mx.ones((1,))}, {"w": mx.ones((1,))})
    assert result["w"].item() == 0


def test_muon_makes_matrices_orthogonal():
    o = optim.Muon(1.0, momentum=0.0, weight_decay=0.0, nesterov=False)
    for shape in ((8, 8), (4, 8), (8, 4)):
        w = mx.zeros(shape)
        step = o.apply_gradients({"w": mx.array(values(*shape))}, {"w": w})["w"]
        scale = max(1, shape[0] / shape[1]) ** 0.5
        singular = np.linalg.svd(np.array(step), compute_uv=False) / scale
        assert 0.4 < singular.min() and singular.max() < 1.3
        o = optim.Muon(1.0, momentum=0.0, weight_decay=0.0, nesterov=False)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: optim.SGD(0.1, nesterov=True),
            "Nesterov momentum requires a momentum and zero dampening.",
        ),
        (
            lambda: optim.RMSprop(0.1, alpha=-1),
            "RMSprop alpha should be >=0, -1 was provided instead",
        ),
        (
            lambda: optim.RMSprop(0.1, eps=0),
            "RMSprop epsilon should be >0, 0 was provided instead",
        ),
        (
            lambda: optim.Adagrad(0.1, eps=-1),
            "Adagrad epsilon should be >0, -1 was provided instead",
        ),
        (
            lambda: optim.AdaDelta(0.1, rho=-1),
            "AdaDelta rho should be >=0, -1 was provided instead",
        ),
        (
            lambda: optim.AdaDelta(0.1, eps=0),
            "AdaDelta epsilon should be >0, 0 was provided instead",
        ),
        (
            lambda: optim.Adam(0.1, betas=[0.5, 1]),
            "Adam beta2 should be in [0, 1), 1 was provided instead",
        ),
        (
            lambda: optim.AdamW(0.1, eps=-1),
            "Adam epsilon should be >=0, -1 was provided instead",
        ),
        (
            lambda: optim.Lion(0.1, betas=[-1, 0]),
            "Lion beta1 should be in [0, 1), -1 was provided instead",
        ),
        (
            lambda: optim.clip_grad_norm({}, -1),
            "max_norm should be >=0, -1 was provided instead",
        ),
        (
            lambda: optim.step_decay(0.1, 0.5, 0),
            "step_size must be greater than 0, but got 0.",
        ),
        (
            lambda: optim.cosine_decay(0.1, 0),
            "decay_steps must be greater than 0, but got 0.",
        ),
        (
            lambda: optim.linear_schedule(0, 1, -1),
            "steps must be greater than 0, but got -1.",
        ),
        (lambda: optim.join_schedules([], []), "Must provide at least 1 schedule to join."),
        (
            lambda: optim.join_schedules([abs], [1, 2]),
            "Received 2 boundaries but expected 0.",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message


def joined(i):
    return 0.025 * i if i < 4 else 0.05 * (1 + math.cos(math.pi * min(i - 4, 5) / 5))


@pytest.mark.parametrize(
    "schedule, expected",
    [
        (optim.exponential_decay(0.1, 0.9), lambda i: 0.1 * 0.9**i),
        (optim.step_decay(0.1, 0.5, 3), lambda i: 0.1 * 0.5 ** (i // 3)),
        (optim.linear_schedule(0.1, 0.3, 4), lambda i: 0.1 + 0.05 * min(i, 4)),
        (
            optim.cosine_decay(0.1, 5, 0.02),
            lambda i: 0.02 + 0.04 * (1 + math.cos(math.pi * min(i, 5) / 5)),
        ),
        (
            optim.join_schedules(
                [optim.linear_schedule(0, 0.1, 4), optim.cosine_decay(0.1, 5)], [4]
            ),
            joined,
        ),
    ],
)
def test_schedules(schedule, expected):
    for i in range(12):
        assert abs(float(schedule(mx.array(i, mx.uint64))) - expected(i)) < 1e-6
        assert abs(float(schedule(mx.array(i, mx.int32))) - expected(i)) < 1e-6


def test_clip_grad_norm():
    gradients = {"a": mx.array([3.0, 0.0]), "b": [mx.array([[4.0]])]}
    clipped, norm = optim.clip_grad_norm(gradients, 1.0)
    assert abs(norm.item() - 5) < 1e-6
    check_close(clipped["a"], [0.6, 0], 1e-5)
    check_close(clipped["b"][0], [[0.8]], 1e-5)
    clipped, norm = optim.clip_grad_norm(gradients, 10.0)
    check_close(clipped["a"], [3, 0], 1e-6)


@pytest.mark.parametrize("dtype", HALVES)
def test_clip_grad_norm_of_halves(dtype):
    """Squares of these overflow in half precision."""
    gradients = [mx.full((4,), 300.0, dtype), mx.full((4,), 400.0, dtype)]
    clipped, norm = optim.clip_grad_norm(gradients, 100.0)
    assert abs(norm.item() - 1000) < 10
    assert clipped[0].dtype == dtype
    check_close(clipped[0], [30.0] * 4, 1e-2)
