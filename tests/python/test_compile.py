"""Compiled functions: when they are traced, what they keep, what they read and write besides."""

import gc
import threading
import weakref

import mlx.core as mx
import numpy as np
import pytest


def counted(fn):
    def f(*args, **kwargs):
        f.calls += 1
        return fn(*args, **kwargs)

    f.calls = 0
    return f


def near(a, b):
    np.testing.assert_allclose(np.array(a), np.asarray(b), rtol=1e-5, atol=1e-6)


# ---- traces ----


def test_one_trace_for_each_shape_dtype_and_constant(device):
    f = counted(lambda a, k=1: mx.exp(a) * k)
    c = mx.compile(f)
    for args in (
        (mx.zeros(2),),
        (mx.zeros(3),),
        (mx.zeros(2, mx.float16),),
        (mx.zeros(2), 2),
        (mx.zeros(2), 2.0),
        (mx.zeros(2), mx.array(2.0)),
    ):
        before = f.calls
        for _ in range(3):
            near(c(*args), np.exp(0) * np.array(args[1:] or 1) * np.ones(args[0].shape))
        assert f.calls == before + 1


def test_structure_of_arguments_is_part_of_the_key():
    f = counted(lambda t: sum(t.values()) if isinstance(t, dict) else sum(t))
    c = mx.compile(f)
    x = mx.array(1.0)
    for _i, t in enumerate(([x, x], [x, x, x], (x,), {"a": x}, {"b": x}, [x, 1], [x, 1.0])):
        c(t)
        c(t)
    # MLX and we take lists and tuples of the same items for the same.
    assert f.calls == 7


def test_strings_none_and_large_ints_are_constants():
    c = mx.compile(lambda a, how, n: a + 1 if how == "one" else a + n % 7)
    x = mx.array(1)
    assert c(x, "one", None).item() == 2
    assert c(x, "two", 2**70).item() == 1 + 2**70 % 7
    assert c(x, "two", 2**70 + 1).item() == 1 + (2**70 + 1) % 7


def test_results_keep_their_containers():
    c = mx.compile(lambda a: {"x": [a, (a + 1,)], "n": None, "s": "text", "i": 3})
    for _ in range(2):
        out = c(mx.array(1))
        assert out["n"] is None and out["s"] == "text" and out["i"] == 3
        assert out["x"][0].item() == 1 and out["x"][1][0].item() == 2


def test_results_may_depend_on_shapes():
    c = mx.compile(lambda a: [a[i] for i in range(a.shape[0])])
    for n in (1, 3, 2, 3):
        assert len(c(mx.zeros(n))) == n


def test_keyword_arguments():
    c = mx.compile(lambda a, *, b: a - b)
    assert c(mx.array(3), b=mx.array(1)).item() == 2
    assert c(mx.array(1), b=mx.array(3)).item() == -2


def test_shapeless(device):
    c = mx.compile(lambda a, b: (a * b).sum(0, keepdims=True), shapeless=True)
    for n in (1, 2, 5, 3, 2):
        near(c(mx.ones((n, 3)), mx.full((n, 3), 2.0)), np.full((1, 3), 2.0 * n))


def test_gradients_and_batches_of_compiled_functions(device):
    c = mx.compile(lambda a: (a**3).sum())
    x = mx.array([1.0, 2.0])
    near(mx.grad(c)(x), [3, 12])
    near(mx.compile(mx.grad(c))(x), [3, 12])
    near(mx.compile(mx.vmap(lambda a: a * 2))(x), [2, 4])


def test_compiled_functions_call_each_other():
    inner = mx.compile(lambda a: {"y": a + 1})
    outer = mx.compile(lambda a: inner(a)["y"] * inner(a * 2)["y"])
    for v in (1.0, 2.0):
        assert outer(mx.array(v)).item() == (v + 1) * (2 * v + 1)


def test_disable_and_enable():
    f = counted(lambda a: a + 1)
    c = mx.compile(f)
    mx.disable_compile()
    try:
        for _ in range(3):
            assert c(mx.array(1)).item() == 2
        assert f.calls == 3
    finally:
        mx.enable_compile()
    c(mx.array(1))
    c(mx.array(1))
    assert f.calls == 4


# ---- what is read and written besides ----


def test_state_that_is_read_and_written(device):
    state = {"w": mx.array(1.0), "steps": [mx.array(0)], "name": "kept"}

    def step(x):
        state["w"] = state["w"] + x
        state["steps"][0] = state["steps"][0] + 1
        return state["w"] * 2

    f = counted(step)
    c = mx.compile(f, inputs=state, outputs=state)
    for i in range(1, 4):
        assert c(mx.array(2.0)).item() == (1 + 2 * i) * 2
        assert state["w"].item() == 1 + 2 * i and state["steps"][0].item() == i
    assert f.calls == 1 and state["name"] == "kept"
    state["w"] = mx.array(10.0)
    assert c(mx.array(2.0)).item() == 24


def test_state_in_tuples_and_a_new_key():
    cache = {}

    def f(x):
        cache["last"] = x * 2
        return x

    c = mx.compile(f, outputs=cache)
    for v in (1, 5):
        c(mx.array(v))
        assert cache["last"].item() == 2 * v


def test_random_state_is_read_and_written(device):
    c = mx.compile(
        lambda: mx.random.uniform(shape=(3,)), inputs=mx.random.state, outputs=mx.random.state
    )
    mx.random.seed(7)
    compiled = [c().tolist() for _ in range(3)]
    mx.random.seed(7)
    assert compiled == [mx.random.uniform(shape=(3,)).tolist() for _ in range(3)]
    assert compiled[0] != compiled[1]


def test_random_numbers_are_constants_without_the_state():
    c = mx.compile(lambda: mx.random.uniform(shape=(3,)))
    assert c().tolist() == c().tolist()


# ---- failures ----


def test_exceptions_leave_nothing_behind():
    state = [mx.array(1.0)]
    fail = [True]

    def f(x):
        y = state[0] + x
        if fail[0]:
            raise KeyError("mine")
        return y

    c = mx.compile(f, inputs=state)
    before = state[0]
    with pytest.raises(KeyError, match="mine"):
        c(mx.array(1.0))
    assert state[0] is before
    fail[0] = False
    assert c(mx.array(1.0)).item() == 2


@pytest.mark.parametrize("arg", [{1, 2}, b"bytes", object(), np.float32(1), 1j])
def test_what_is_no_argument(arg):
    with pytest.raises(ValueError):
        mx.compile(lambda a: a)(arg)


def test_what_compile_refuses():
    for make in (lambda: mx.compile(1), lambda: mx.compile(abs, shapeless=1)):
        with pytest.raises(TypeError):
            make()
    x = mx.array(1.0)
    with pytest.raises(ValueError):
        mx.compile(lambda a: a + x)(x)
    with pytest.raises(ValueError):
        mx.compile(lambda a: a.item())(x)


# ---- lifetimes and threads ----


def test_traces_go_with_the_function():
    class Result:
        pass

    thing = Result()
    gone = weakref.ref(thing)
    c = mx.compile(lambda a: (a, thing))  # noqa: F821 (deleted below)
    assert c(mx.array(1))[1] is thing
    del c, thing
    gc.collect()
    assert gone() is None


def test_memory_stays_flat_with_ever_new_functions_and_shapes():
    x = mx.ones((64, 64))
    mx.eval(x)
    base = None
    for i in range(40):
        c = mx.compile(lambda a: a @ a + i)
        mx.eval(c(x))
        del c
        if i == 5:
            base = mx.get_active_memory()
    assert mx.get_active_memory() <= base + 64 * 64 * 4 * 2


def test_threads_trace_for_themselves():
    f = mx.compile(lambda a: a * 2 + 1)
    wrong = []

    def work(v):
        for _ in range(50):
            if f(mx.array(v)).item() != 2 * v + 1:
                wrong.append(v)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
