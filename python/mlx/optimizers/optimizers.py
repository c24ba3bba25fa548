"""Optimizers: they change a model's parameters by the gradients of a loss.

An optimizer has one small dictionary of arrays for each parameter, in a tree of the parameters'
structure: its state, which can be saved and given to mx.compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.nn import Module
from mlx.utils import tree_flatten, tree_map, tree_merge, tree_reduce, tree_unflatten

__all__ = [
    "SGD",
    "AdaDelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "MultiOptimizer",
    "Muon",
    "Optimizer",
    "RMSprop",
    "clip_grad_norm",
]

Schedule = Callable[[mx.array], mx.array]
Rate = float | Schedule


def _require(holds: bool, what: str, value: float, bounds: str) -> None:
    if not holds:
        raise ValueError(f"{what} should be {bounds}, {value} was provided instead")


def _require_betas(name: str, betas: list[float]) -> None:
    for i, beta in enumerate(betas, 1):
        _require(0.0 <= beta < 1.0, f"{name} beta{i}", beta, "in [0, 1)")


def _mix(share: float, old: mx.array, new: mx.array) -> mx.array:
    """A running average of which the old value is this share."""
    return share * old + (1 - share) * new


def _grown(state: Any, parameters: Any) -> Any:
    """The state, with an empty dictionary for each parameter that has none yet."""
    if isinstance(parameters, dict):
        for key, child in parameters.items():
            state[key] = _grown(state[key], child) if key in state else _empty(child)
        return state
    if isinstance(parameters, (list, tuple)):
        known = [_grown(s, p) for s, p in zip(state, parameters)]
        return type(parameters)(known + [_empty(p) for p in parameters[len(known) :]])
    return state


def _empty(parameters: Any) -> Any:
    return tree_map(lambda _: {}, parameters)


class Optimizer:
    """The base of all optimizers.

    A subclass implements :meth:`init_single` and :meth:`apply_single`.

    Args:
        schedulers: Functions of the step by the name of what they set in the state, such as
            ``"learning_rate"``.
    """

    def __init__(self, schedulers: dict[str, Schedule] | None = None):
        self._initialized = False
        self._state: dict = {"step": mx.array(0, mx.uint64)}
        self._schedulers = dict(schedulers or {})

    def update(self, model: Module, gradients: dict) -> None:
        """Change a model's parameters by gradients, as :func:`mlx.nn.value_and_grad` has them.

        Nothing is computed until the parameters and the state are evaluated.
        """
        model.update(self.apply_gradients(gradients, model))

    def init(self, parameters: dict) -> None:
        """Make the state of all parameters that have none.

        The first update does it otherwise. What needs the state before that, such as mx.compile,
        calls it with ``model.trainable_parameters()``.
        """
        self._state = _grown(self._state, parameters)
        tree_map(lambda p, s: s or self.init_single(p, s), parameters, self._state)
        self._initialized = True

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Fill the empty state of one parameter."""
        raise NotImplementedError()

    def apply_gradients(self, gradients: dict, parameters: dict) -> dict:
        """New parameters, in a tree like that of the gradients.

        Args:
            gradients: A tree of gradients.
            parameters: A tree that has at least the parameters these belong to; a model, too.
        """
        if not self._initialized:
            self.init(gradients)
        for name, schedule in self._schedulers.items():
            self.state[name] = schedule(self.step)
        self.state["step"] = self.step + 1
        return tree_map(self.apply_single, gradients, parameters, self.state)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """The new value of one parameter; changes its state."""
        raise NotImplementedError()

    @property
    def state(self) -> dict:
        """The state: ``step``, ``learning_rate``, and the parameters' tree."""
        return self._state

    @state.setter
    def state(self, state: dict) -> None:
        self._initialized = False
        self._state = state

    @property
    def step(self) -> mx.array:
        """How many updates there were."""
        return self.state["step"]

    @property
    def learning_rate(self) -> mx.array:
        """The learning rate, that of the last update if there is a schedule."""
        return self.state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | mx.array) -> None:
        self.state["learning_rate"] = mx.array(learning_rate)

    def _maybe_schedule(self, name: str, param: Rate) -> None:
        """Put a number, or a schedule's first one, into the state."""
        if callable(param):
            self._schedulers[name] = param
            self.state[name] = param(self.step)
        else:
            self.state[name] = mx.array(param)

    def _rate_for(self, gradient: mx.array) -> mx.array:
        """The learning rate in the gradient's type, so that it does not change the parameter's."""
        return self.learning_rate.astype(gradient.dtype)


class MultiOptimizer(Optimizer):
    """Several optimizers, each for a part of the parameters.

    Args:
        optimizers: The optimizers.
        filters: For all but the last one: a function of path and gradient that says whether the
            optimizer is for this parameter. The first that is true counts; the last optimizer has
            the rest.
    """

    def __init__(self, optimizers: list[Optimizer], filters: list = []):
        super().__init__()
        self._state = {}
        if len(filters) != len(optimizers) - 1:
            raise ValueError(f"Given {len(filters)} filters but {len(optimizers) - 1} needed.")
        self.optimizers = optimizers
        self.filters = [*filters, lambda *args, **kwargs: True]

    def _split(self, tree: dict) -> list[dict]:
        """Each optimizer's part of a tree."""
        if len(self.optimizers) == 1:
            return [tree]
        parts: list[list] = [[] for _ in self.optimizers]
        for path, value in tree_flatten(tree):
            chosen = next(i for i, fits in enumerate(self.filters) if fits(path, value))
            parts[chosen].append((path, value))
        return [tree_unflatten(part) if part else {} for part in parts]

    def init(self, parameters: dict) -> None:
        """Make the state of all optimizers."""
        for optimizer, part in zip(self.optimizers, self._split(parameters)):
            optimizer.init(part)

    def apply_gradients(self, gradients: dict, parameters: dict) -> dict:
        """New parameters, in a tree with the gradients' keys."""
        result: dict = {}
        for optimizer, part in zip(self.optimizers, self._split(gradients)):
            result = tree_merge(result, optimizer.apply_gradients(part, parameters))
        return result

    @property
    def state(self) -> dict:
        """The states of all optimizers, under ``"states"``."""
        return {"states": [optimizer.state for optimizer in self.optimizers]}

    @state.setter
    def state(self, state: dict) -> None:
        if "states" not in state or len(state["states"]) != len(self.optimizers):
            raise ValueError("Invalid state provided")
        for optimizer, part in zip(self.optimizers, state["states"]):
            optimizer.state = part

    @property
    def learning_rate(self) -> mx.array:
        """The learning rate of the first optimizer; setting it sets that of all."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | mx.array) -> None:
        for optimizer in self.optimizers:
            optimizer.learning_rate = learning_rate


class SGD(Optimizer):
    """Steps against the gradient, with momentum if it is given.

    Args:
        learning_rate: A number or a schedule.
        momentum: How much of the last step is kept.
        weight_decay: Times the parameter, added to the gradient.
        dampening: Part of the gradient that does not go into the momentum.
        nesterov: Whether the step looks ahead by the momentum.
    """

    def __init__(
        self,
        learning_rate: Rate,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening.")
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.dampening = dampening
        self.nesterov = nesterov

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """``v``: the last step."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        step = gradient
        if self.momentum > 0:
            new = (1 - self.dampening) * gradient if self.dampening > 0 else gradient
            v = state["v"] = self.momentum * state.get("v") + new
            step = gradient + self.momentum * v if self.nesterov else v
        return parameter - self._rate_for(gradient) * step


class RMSprop(Optimizer):
    """Divides the gradient by the root of a running average of its square.

    Args:
        learning_rate: A number or a schedule.
        alpha: How much of the average a step keeps.
        eps: Added to the root.
    """

    def __init__(self, learning_rate: Rate, alpha: float = 0.99, eps: float = 1e-8):
        super().__init__()
        _require(alpha >= 0.0, "RMSprop alpha", alpha, ">=0")
        _require(eps > 0.0, "RMSprop epsilon", eps, ">0")
        self._maybe_schedule("learning_rate", learning_rate)
        self.alpha = alpha
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """``v``: average of the gradient's square."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        v = state["v"] = _mix(self.alpha, state["v"], mx.square(gradient))
        return parameter - self._rate_for(gradient) * gradient / (mx.sqrt(v) + self.eps)


class Adagrad(Optimizer):
    """Divides the gradient by the root of the sum of all its squares so far.

    Args:
        learning_rate: A number or a schedule.
        eps: Added to the root.
    """

    def __init__(self, learning_rate: Rate, eps: float = 1e-8):
        super().__init__()
        _require(eps > 0.0, "Adagrad epsilon", eps, ">0")
        self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """``v``: sum of the gradient's squares."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        v = state["v"] = state["v"] + mx.square(gradient)
        return parameter - self._rate_for(gradient) * gradient / (mx.sqrt(v) + self.eps)


class AdaDelta(Optimizer):
    """Makes steps about as large as those before, relative to the gradient's size.

    Args:
        learning_rate: A number or a schedule.
        rho: How much of the averages a step keeps.
        eps: Added below the roots.
    """

    def __init__(self, learning_rate: Rate, rho: float = 0.9, eps: float = 1e-6):
        super().__init__()
        _require(rho >= 0.0, "AdaDelta rho", rho, ">=0")
        _require(eps > 0.0, "AdaDelta epsilon", eps, ">0")
        self._maybe_schedule("learning_rate", learning_rate)
        self.rho = rho
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """``v`` and ``u``: averages of the squares of gradient and step."""
        state["v"] = mx.zeros_like(parameter)
        state["u"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        u = state["u"]
        v = state["v"] = _mix(self.rho, state["v"], mx.square(gradient))
        step = mx.sqrt(u + self.eps) / mx.sqrt(v + self.eps) * gradient
        state["u"] = _mix(self.rho, u, mx.square(step))
        return parameter - self._rate_for(gradient) * step


class Adam(Optimizer):
    """Running average of the gradient, divided by the root of that of its square.

    Args:
        learning_rate: A number or a schedule.
        betas: How much of the two averages a step keeps.
        eps: Added to the root.
        bias_correction: Whether to make up for the averages' beginning at zero.
    """

    def __init__(
        self,
        learning_rate: Rate,
        betas: list[float] = [0.9, 0.999],
        eps: float = 1e-8,
        bias_correction: bool = False,
    ):
        super().__init__()
        _require_betas("Adam", betas)
        _require(eps >= 0.0, "Adam epsilon", eps, ">=0")
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = betas
        self.eps = eps
        self.bias_correction = bias_correction

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """``m`` and ``v``: averages of the gradient and of its square."""
        state["m"] = mx.zeros_like(parameter)
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        rate = self._rate_for(gradient)
        b1, b2 = self.betas
        m = state["m"] = _mix(b1, state["m"], gradient)
        v = state["v"] = _mix(b2, state["v"], mx.square(gradient))
        if not self.bias_correction:
            return parameter - rate * m / (mx.sqrt(v) + self.eps)
        c1 = (rate / (1 - b1**self.step)).astype(gradient.dtype)
        c2 = mx.rsqrt(1 - b2**self.step).astype(gradient.dtype)
        return parameter - c1 * m / (mx.sqrt(v) * c2 + self.eps)


class AdamW(Adam):
    """:class:`Adam`, after the parameter has been made smaller by a part of itself.

    Args:
        learning_rate: A number or a schedule.
        betas: How much of the two averages a step keeps.
        eps: Added to the root.
        weight_decay: Times the learning rate: the part by which parameters become smaller.
        bias_correction: Whether to make up for the averages' beginning at zero.
    """

    def __init__(
        self,
        learning_rate: Rate,
        betas: list[float] = [0.9, 0.999],
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
    ):
        super().__init__(
            learning_rate=learning_rate,
            betas=betas,
            eps=eps,
            bias_correction=bias_correction,
        )
        self.weight_decay = weight_decay

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        smaller = parameter * (1 - self._rate_for(gradient) * self.weight_decay)
        return super().apply_single(gradient, smaller, state)


class Adamax(Adam):
    """:class:`Adam` with a running maximum of the gradient's absolute value for its square's root.

    Args:
        learning_rate: A number or a schedule.
        betas: How much of average and maximum a step keeps.
        eps: Added to the maximum.
    """

    def __init__(self, learning_rate: Rate, betas: list[float] = [0.9, 0.999], eps: float = 1e-8):
        super().__init__(learning_rate, betas, eps)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        b1, b2 = self.betas
        m = state["m"] = _mix(b1, state["m"], gradient)
        v = state["v"] = mx.maximum(b2 * state["v"], mx.abs(gradient))
        return parameter - self._rate_for(gradient) * m / (v + self.eps)


class Lion(Optimizer):
    """Steps by the sign of an average of gradient and momentum.

    All steps have the size of the learning rate, which should be some three to ten times smaller
    than Adam's.

    Args:
        learning_rate: A number or a schedule.
        betas: How much of the momentum counts for the step, and how much is kept.
        weight_decay: Times the learning rate: the part by which parameters become smaller.
    """

    def __init__(
        self, learning_rate: Rate, betas: list[float] = [0.9, 0.99], weight_decay: float = 0.0
    ):
        super().__init__()
        _require_betas("Lion", betas)
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = betas
        self.weight_decay = weight_decay

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """``m``: the momentum."""
        state["m"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        rate = self._rate_for(gradient)
        b1, b2 = self.betas
        m = state["m"]
        direction = mx.sign(_mix(b1, m, gradient))
        state["m"] = _mix(b2, m, gradient)
        if self.weight_decay > 0:
            parameter = (1 - rate * self.weight_decay) * parameter
        return parameter - rate * direction


def _rms(x: mx.array) -> mx.array:
    return mx.sqrt(mx.mean(mx.square(x)))


class Adafactor(Optimizer):
    """Adam's second average kept as one vector for rows and one for columns, to save memory.

    Args:
        learning_rate: A number or a schedule, for ``relative_step=False``.
        eps: Added to the gradient's square, and the least scale of a parameter.
        clip_threshold: The largest root mean square of a step before it is scaled.
        decay_rate: The averages keep ``1 - step ** decay_rate``.
        beta_1: How much of an average of the steps is kept; there is none by default.
        weight_decay: Times the learning rate: the part by which parameters become smaller.
        scale_parameter: Whether steps are relative to the parameter's root mean square.
        relative_step: Whether the learning rate is ``1 / sqrt(step)``, at most 0.01.
        warmup_init: Whether that limit grows with the steps, from 1e-6.
    """

    def __init__(
        self,
        learning_rate: Rate | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta_1: float | None = None,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ):
        super().__init__()
        if learning_rate is not None:
            self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps
        self.clip_threshold = clip_threshold
        self.decay_rate = decay_rate
        self.beta_1 = beta_1
        self.weight_decay = weight_decay
        self.scale_parameter = scale_parameter
        self.relative_step = relative_step
        self.warmup_init = warmup_init

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """``exp_avg_sq_row`` and ``_col``, or ``exp_avg_sq`` of vectors; ``exp_avg`` of steps."""
        if parameter.ndim >= 2:
            *rows, columns = parameter.shape
            state["exp_avg_sq_row"] = mx.zeros(rows, dtype=parameter.dtype)
            state["exp_avg_sq_col"] = mx.zeros((*rows[:-1], columns), dtype=parameter.dtype)
        else:
            state["exp_avg_sq"] = mx.zeros_like(parameter)
        if self.beta_1 is not None:
            state["exp_avg"] = mx.zeros_like(parameter)

    def _scaled_rate(self, parameter: mx.array) -> mx.array:
        """The learning rate of one parameter."""
        rms = _rms(parameter)
        if self.relative_step:
            limit = 1e-6 * self.step if self.warmup_init else 1e-2
            rate = mx.minimum(limit, mx.rsqrt(self.step))
        else:
            rate = self.learning_rate
        scale = mx.maximum(self.eps[1], rms) if self.scale_parameter else 1.0
        return scale * rate.astype(rms.dtype)

    def _normalized(self, gradient: mx.array, kept: mx.array, state: dict) -> mx.array:
        """The gradient divided by the root of the average of its square."""
        square = mx.square(gradient) + self.eps[0]
        if gradient.ndim < 2:
            average = state["exp_avg_sq"] = _mix(kept, state["exp_avg_sq"], square)
            return mx.rsqrt(average) * gradient
        row = _mix(kept, state["exp_avg_sq_row"], mx.mean(square, axis=-1))
        column = _mix(kept, state["exp_avg_sq_col"], mx.mean(square, axis=-2))
        state["exp_avg_sq_row"], state["exp_avg_sq_col"] = row, column
        return self._approximate_exp_moving_avg(row, column) * gradient

    def _approximate_exp_moving_avg(self, row: mx.array, column: mx.array) -> mx.array:
        """The root's inverse of the average that both stand for: outer product over mean."""
        row = mx.rsqrt(row / mx.mean(row, axis=-1, keepdims=True))
        return row[..., None] * mx.rsqrt(column)[..., None, :]

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        rate = self._scaled_rate(parameter)
        kept = 1.0 - (self.step**self.decay_rate).astype(rate.dtype)
        step = self._normalized(gradient, kept, state)
        step = rate * (step / mx.maximum(1.0, _rms(step) / self.clip_threshold))
        if self.beta_1 is not None:
            step = state["exp_avg"] = _mix(self.beta_1, state["exp_avg"], step)
        if self.weight_decay != 0:
            parameter = parameter + parameter * (-self.weight_decay * rate)
        return parameter - step


def _orthogonalized(x: mx.array, steps: int) -> mx.array:
    """About the nearest orthogonal matrix, by Newton-Schulz iterations.

    Their coefficients let small singular values grow fastest; large ones end somewhere between
    0.7 and 1.2.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.T
    x = x / (mx.linalg.norm(x, keepdims=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        polynomial = mx.addmm(b * gram, gram, gram, beta=1.0, alpha=c)
        x = mx.addmm(a * x, polynomial, x, beta=1.0, alpha=1.0)
    return x.T if tall else x


class Muon(Optimizer):
    """Steps by the momentum, made orthogonal where the parameter is a matrix.

    Parameters with more axes count as matrices with the first axis as rows; vectors get the
    momentum as it is. Embeddings, last layers and vectors are better left to another optimizer,
    see :class:`MultiOptimizer`.

    Args:
        learning_rate: A number or a schedule.
        momentum: How much of the momentum a step keeps.
        weight_decay: Times the parameter, added to the gradient.
        nesterov: Whether the step looks ahead by the momentum.
        ns_steps: Iterations that make a matrix orthogonal.
    """

    def __init__(
        self,
        learning_rate: Rate,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        nesterov: bool = True,
        ns_steps: int = 5,
    ):
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.ns_steps = ns_steps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """``v``: the momentum."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """See the class."""
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        v = state["v"] = _mix(self.momentum, state["v"], gradient)
        step = v
        if self.nesterov:
            step = gradient * (1 - self.momentum) + v * self.momentum

        rate = self._rate_for(gradient)
        if step.ndim >= 2:
            shape = step.shape
            matrix = step if step.ndim == 2 else step.reshape(shape[0], -1)
            step = _orthogonalized(matrix, self.ns_steps).reshape(shape)
            rate = rate * max(1, shape[-2] / shape[-1]) ** 0.5
        return parameter - rate * step


def clip_grad_norm(grads: Any, max_norm: float) -> tuple[Any, mx.array]:
    """Gradients scaled down to a norm of at most ``max_norm``, of all of them together.

    Args:
        grads: A tree of gradients.
        max_norm: The largest norm.

    Returns:
        The scaled gradients, in their types, and the norm before.
    """
    _require(max_norm >= 0, "max_norm", max_norm, ">=0")

    def square(g: mx.array) -> mx.array:
        # Squares of halves overflow.
        return (g.astype(mx.float32) if g.dtype == mx.float16 else g).square().sum()

    norm = mx.sqrt(tree_reduce(lambda total, g: total + square(g), grads, 0.0))
    scale = mx.minimum(max_norm / (norm + 1e-6), 1.0)

    def scaled(g: mx.array) -> mx.array:
        return (g * scale).astype(g.dtype) if mx.issubdtype(g.dtype, mx.floating) else g * scale

    return tree_map(scaled, grads), norm
