"""Gradients, products with the Jacobian, batches and checkpoints, through trees of arguments."""

import collections
import gc
import inspect
import sys
import weakref

import mlx.core as mx
import numpy as np
import pytest

Pair = collections.namedtuple("Pair", "a b")


def near(a, b):
    np.testing.assert_allclose(np.array(a), np.asarray(b), rtol=1e-5, atol=1e-6)


# ---- gradients ----


def test_grad_is_that_of_the_first_argument(device):
    x = mx.array([1.0, 2.0, 3.0])
    near(mx.grad(lambda a, b: (a * a * b).sum())(x, x), 2 * np.array([1.0, 4.0, 9.0]))


def test_value_and_grad_gives_both(device):
    value, grad = mx.value_and_grad(lambda a: (a**3).sum())(mx.array([1.0, 2.0]))
    near(value, 9)
    near(grad, [3, 12])


def test_gradients_come_in_the_containers_of_the_arguments():
    params = {"w": [mx.array(2.0), (mx.array(3.0),)], "p": Pair(mx.array(4.0), mx.array(5.0))}

    def f(p):
        return p["w"][0] * p["w"][1][0] + p["p"].a * p["p"].b

    grads = mx.grad(f)(params)
    assert list(grads) == ["w", "p"]
    assert type(grads["w"]) is list and type(grads["w"][1]) is tuple
    assert type(grads["p"]) is Pair
    assert [g.item() for g in (grads["w"][0], grads["w"][1][0], *grads["p"])] == [3, 2, 5, 4]


def test_argnums_and_argnames():
    x, y = mx.array(2.0), mx.array(5.0)

    def f(a, b):
        return a * b

    assert mx.grad(f, argnums=1)(x, y).item() == 2
    assert [g.item() for g in mx.grad(f, argnums=(1, 0))(x, y)] == [5, 2]
    none, named = mx.grad(f, argnames="b")(x, b=y)
    assert none is None and named["b"].item() == 2
    first, named = mx.grad(f, argnums=0, argnames=["b"])(x, b=y)
    assert first.item() == 5 and named["b"].item() == 2


def test_results_besides_the_value_are_kept():
    (value, extra), grad = mx.value_and_grad(lambda a: (a * a, {"twice": 2 * a, "text": "t"}))(
        mx.array(3.0)
    )
    assert value.item() == 9 and grad.item() == 6
    assert extra["twice"].item() == 6 and extra["text"] == "t"


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: mx.grad(3), TypeError),
        (lambda: mx.grad(abs, argnums=-1), ValueError),
        (lambda: mx.grad(abs, argnums=(0, 0)), ValueError),
        (lambda: mx.grad(abs, argnums=[]), ValueError),
        (lambda: mx.grad(abs, argnums=1.5), TypeError),
        (lambda: mx.grad(abs, argnames=[1]), TypeError),
        (lambda: mx.grad(lambda a: a, argnums=1)(mx.array(1.0)), ValueError),
        (lambda: mx.grad(lambda a: a, argnames="k")(mx.array(1.0)), ValueError),
        (lambda: mx.grad(lambda a: a)([mx.array(1.0), 2]), ValueError),
        (lambda: mx.grad(lambda a: 1.0)(mx.array(1.0)), ValueError),
        (lambda: mx.grad(lambda a: (a, a))(mx.array(1.0)), ValueError),
        (lambda: mx.value_and_grad(lambda a: ())(mx.array(1.0)), ValueError),
        (lambda: mx.value_and_grad(lambda a: (1, a))(mx.array(1.0)), ValueError),
        (lambda: mx.grad(lambda a: a)(mx.array([1.0, 2.0])), ValueError),
        (lambda: mx.grad(lambda a: mx.array(1.0))({}), ValueError),
    ],
)
def test_what_gradients_refuse(make, error):
    with pytest.raises(error):
        make()


def test_an_exception_comes_out_as_it_is_and_leaves_nothing():
    class Mine(Exception):
        pass

    x = mx.array(1.0)
    params = {"x": x, "list": [x]}

    def f(p):
        raise Mine("text")

    with pytest.raises(Mine, match="text"):
        mx.grad(f)(params)
    assert params["x"] is x and params["list"][0] is x


def test_tracers_do_not_stay_in_containers_but_what_is_written_does():
    x = mx.array(1.0)
    params = {"x": x, "state": x}

    def f(p):
        p["state"] = mx.array(7.0)
        return p["x"] * 2

    mx.grad(f)(params)
    assert params["x"] is x and params["state"].item() == 7


def test_gradients_nest():
    third = mx.grad(mx.grad(mx.grad(lambda a: a**4)))
    near(third(mx.array(2.0)), 48)


def test_evaluation_within_a_gradient():
    def f(a):
        b = a * a
        mx.eval(b)
        return b if b.item() > 0 else a

    assert mx.grad(f)(mx.array(3.0)).item() == 6


def test_functions_look_like_what_they_were_made_of():
    def f(a, b=2):
        """What f does."""
        return a * b

    f.mark = 3
    for made in (mx.grad(f), mx.value_and_grad(f), mx.vmap(f), mx.compile(f), mx.checkpoint(f)):
        assert (made.__name__, made.__doc__, made.mark) == ("f", "What f does.", 3)
        assert list(inspect.signature(made).parameters) == ["a", "b"]


def test_cycles_through_made_functions_are_collected():
    class Holder:
        pass

    for make in (mx.grad, mx.vmap, mx.compile, mx.checkpoint, mx.custom_function):
        holder = Holder()
        holder.fun = make(lambda a, holder=holder: a)
        gone = weakref.ref(holder)
        del holder
        gc.collect()
        assert gone() is None, make


def test_calls_do_not_leak_references():
    x = mx.array(2.0)
    tree = {"a": [x, (x,)], "b": x}
    f = mx.value_and_grad(lambda t: t["a"][0] * t["b"])
    g = mx.vmap(lambda t: t + 1)
    f(tree)
    before = [sys.getrefcount(o) for o in (x, tree, tree["a"], None)]
    for _ in range(200):
        f(tree)
        g(mx.ones(3))
    after = [sys.getrefcount(o) for o in (x, tree, tree["a"], None)]
    assert after[:3] == before[:3] and abs(after[3] - before[3]) < 20


# ---- vjp and jvp ----


def test_vjp_and_jvp(device):
    x, v = mx.array([1.0, 2.0]), mx.array([3.0, 4.0])
    outs, grads = mx.vjp(lambda a, b: [a * b, a], [x, v], [mx.ones(2), v])
    near(outs[0], [3, 8])
    near(grads[0], [6, 8])
    near(grads[1], [1, 2])
    outs, tangents = mx.jvp(mx.sin, (x,), (v,))
    near(tangents[0], np.cos([1, 2]) * [3, 4])


@pytest.mark.parametrize("fn", [mx.vjp, mx.jvp])
def test_what_products_refuse(fn):
    x = mx.array(1.0)
    for args in ((3, [x], [x]), (mx.sin, x, [x]), (mx.sin, [1.0], [x]), (lambda a: "a", [x], [x])):
        with pytest.raises(TypeError):
            fn(*args)
    with pytest.raises(ValueError):
        fn(mx.sin, [x], [x, x] if fn is mx.jvp else [mx.ones(3)])


# ---- vmap ----


def test_vmap_over_axes_and_trees(device):
    x = mx.arange(6, dtype=mx.float32).reshape(2, 3)
    near(mx.vmap(lambda a: a.sum())(x), [3, 12])
    near(mx.vmap(lambda a: a.sum(), in_axes=1)(x), [3, 5, 7])
    near(mx.vmap(lambda a, b: a + b, in_axes=(0, None))(x, x[0]), np.array(x) + np.array(x[0]))
    out = mx.vmap(
        lambda t: {"a": t["x"], "b": [t["x"].sum()]}, in_axes={"x": -1}, out_axes={"a": 1, "b": 0}
    )({"x": x})
    near(out["a"], np.array(x))
    near(out["b"][0], [3, 5, 7])


def test_vmap_nests_and_goes_with_gradients(device):
    x = mx.arange(6, dtype=mx.float32).reshape(2, 3)
    near(mx.vmap(mx.vmap(mx.grad(lambda a: a**3)))(x), 3 * np.array(x) ** 2)


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda x: mx.vmap(1), TypeError),
        (lambda x: mx.vmap(abs, in_axes=None), TypeError),
        (lambda x: mx.vmap(lambda a: a, in_axes=2)(x), IndexError),
        (lambda x: mx.vmap(lambda a: a, in_axes=2)(x), ValueError),
        (lambda x: mx.vmap(lambda a: a, out_axes=3)(x), IndexError),
        (lambda x: mx.vmap(lambda a: a, in_axes="0")(x), ValueError),
        (lambda x: mx.vmap(lambda a, b: a, in_axes=(0,))(x, x), ValueError),
        (lambda x: mx.vmap(lambda a, b: a, in_axes=[0, 0])(x, x), ValueError),
        (lambda x: mx.vmap(lambda a: a, in_axes={"y": 0})({"x": x}), ValueError),
        (lambda x: mx.vmap(lambda a: a)(1.0), ValueError),
        (lambda x: mx.vmap(lambda a: 1.0)(x), ValueError),
        (lambda x: mx.vmap(lambda a: a)(a=x), TypeError),
        (lambda x: mx.vmap(lambda a, b: a + b, in_axes=(0, 1))(x, x), ValueError),
        (lambda x: mx.vmap(lambda: x)(), ValueError),
    ],
)
def test_what_vmap_refuses(make, error):
    with pytest.raises(error):
        make(mx.ones((2, 3)))


# ---- evaluation ----


def test_eval_takes_trees_and_ignores_what_is_no_array(device):
    x = mx.ones(3)
    y, z = x + 1, x + 2
    mx.eval(y, {"z": [z, None, 3, "s"]}, ())
    mx.async_eval([x + 3])
    assert y.tolist() == [2] * 3
    with pytest.raises(TypeError):
        mx.eval(a=x)


def test_trees_that_contain_themselves_end():
    tree = []
    tree.append(tree)
    with pytest.raises(RecursionError):
        mx.eval(tree)
    with pytest.raises(RecursionError):
        mx.grad(lambda t: t)(tree)


# ---- rules of one's own ----


def test_custom_rules(device):
    @mx.custom_function
    def f(x, y):
        return mx.sin(x) * y

    @f.vjp
    def f_vjp(primals, cotangent, output):
        _x, _y = primals
        return cotangent * 10, cotangent * 20

    @f.jvp
    def f_jvp(primals, tangents):
        return sum(t for t in tangents if t is not None) * 100

    @f.vmap
    def f_vmap(inputs, axes):
        assert axes == (0, None)
        return inputs[0] * 1000, 0

    x, y = mx.array(1.0), mx.array(2.0)
    near(f(x, y), np.sin(1) * 2)
    assert [g.item() for g in mx.grad(f, argnums=(0, 1))(x, y)] == [10, 20]
    assert mx.jvp(lambda a: f(a, y), [x], [x])[1][0].item() == 100
    near(mx.vmap(f, in_axes=(0, None))(mx.ones(2), y), [1000, 1000])


def test_the_only_argument_is_given_bare_and_keywords_as_such():
    seen = []

    @mx.custom_function
    def f(t, *, k):
        return {"out": t["a"] * k}

    @f.vjp
    def f_vjp(primals, cotangents, outputs, *, k):
        seen.append((list(primals), list(cotangents), list(outputs), k.item()))
        return {"a": cotangents["out"] * k}

    g = mx.grad(lambda a, k: f({"a": a}, k=k)["out"])(mx.array(2.0), mx.array(3.0))
    assert g.item() == 3 and seen == [(["a"], ["out"], ["out"], 3.0)]


def test_captured_arrays_have_no_gradient():
    def g(x, y):
        f = mx.custom_function(lambda a: a * y)
        f.vjp(lambda primal, cotangent, output: cotangent * 7)
        return f(x)

    x, y = mx.array(2.0), mx.array(3.0)
    assert mx.grad(g)(x, y).item() == 7
    assert mx.grad(g, argnums=1)(x, y).item() == 0


def test_exceptions_of_rules_come_out():
    f = mx.custom_function(lambda a: a * a)
    f.vjp(lambda p, c, o: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        mx.grad(f)(mx.array(1.0))
    f.vmap(lambda p, a: p)
    with pytest.raises(ValueError):
        mx.vmap(f)(mx.ones(2))


def test_checkpoint_computes_again(device):
    calls = []

    def f(a, scale=1.0):
        calls.append(1)
        return {"y": (mx.exp(a) * scale).sum(), "note": "kept"}

    out = mx.checkpoint(f)(mx.ones(2), scale=2.0)
    assert out["note"] == "kept"
    calls.clear()
    near(mx.grad(lambda a: mx.checkpoint(f)(a, scale=2.0)["y"])(mx.ones(2)), 2 * np.e * np.ones(2))
    assert len(calls) == 2


def test_stop_gradient_and_depends():
    x = mx.array(3.0)
    assert mx.grad(lambda a: a * mx.stop_gradient(a))(x).item() == 3
    assert mx.depends(x, mx.exp(x)).item() == 3
    assert [a.item() for a in mx.depends([x, x], [x])] == [3, 3]
