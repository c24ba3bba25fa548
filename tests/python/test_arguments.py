"""How functions take their arguments, and what they say of themselves."""

import inspect
import math
import types

import mlx.core as mx
import numpy as np
import pytest

MODULES = [mx, mx.random, mx.linalg, mx.fast, mx.distributed, mx.metal, mx.cuda]
FUNCTIONS = [
    (m.__name__, n, f)
    for m in MODULES
    for n, f in vars(m).items()
    if isinstance(f, types.BuiltinFunctionType)
]


@pytest.mark.parametrize(
    "module, name, f", FUNCTIONS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_every_function_says_what_it_is(module, name, f):
    signature = inspect.signature(f)
    assert f.__module__ == module or name == "matrix_norm"
    assert (f.__doc__ and f.__doc__.strip().count("\n") >= 1) or module.endswith("metal")
    assert all(p.name.isidentifier() for p in signature.parameters.values())


@pytest.mark.parametrize(
    "module, name, f", FUNCTIONS, ids=lambda v: v if isinstance(v, str) else ""
)
@pytest.mark.parametrize(
    "wrong",
    [object(), "text", -7, 2**80, math.nan, None, [[]], {"a": 1}],
    ids=lambda v: type(v).__name__,
)
def test_wrong_arguments_are_exceptions(module, name, f, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of them are names of files
    if name in (
        "clear_cache",
        "set_default_device",
        "set_memory_limit",
        "set_cache_limit",
        "set_wired_limit",
        "seed",
        "set_printoptions",
        "printoptions",
    ):
        return
    for args in (
        [wrong],
        [wrong, wrong],
        [mx.ones((2, 2)), wrong],
        [mx.ones((2, 2)), mx.ones((2,)), wrong],
    ):
        for keywords in ({}, {"stream": wrong}, {"nothing": wrong}):
            try:
                f(*args, **keywords)
            except (TypeError, ValueError, IndexError, OverflowError, RuntimeError, RecursionError):
                pass


def test_keywords():
    a = mx.arange(6).reshape(2, 3)
    assert mx.sum(array=a).item() == 15 and mx.sum(a, keepdims=True, axis=1).shape == (2, 1)
    with pytest.raises(TypeError, match="no keyword argument a"):
        mx.exp(a=a)
    with pytest.raises(TypeError, match="no keyword argument strean"):
        mx.exp(a, strean=None)
    with pytest.raises(TypeError, match="axis twice"):
        mx.sum(a, 1, axis=1)
    with pytest.raises(TypeError, match="positional"):
        mx.exp(a, 1)
    with pytest.raises(TypeError, match="shape is missing"):
        mx.reshape(a)
    key = "".join(["ax", "is"])  # not the object that the names are
    assert mx.sum(a, **{key: 1}).tolist() == [3, 12]


def test_kinds():
    a = mx.arange(6).reshape(2, 3)
    assert mx.sum(a, axis=np.int64(1)).tolist() == mx.sum(a, axis=mx.array(1)).tolist() == [3, 12]
    assert mx.sum(a, axis=True).tolist() == [3, 12] and mx.sum(a, axis=(0, np.int8(1))).item() == 15
    assert mx.sum(a, axis=range(2)).item() == 15 and mx.sum(a, axis=[]).shape == (2, 3)
    assert (
        mx.addmm(
            mx.ones((1,)), mx.ones((1, 1)), mx.ones((1, 1)), alpha=2, beta=np.float32(3)
        ).item()
        == 5
    )
    for axis in (1.0, "0", [1.0], {0}):
        with pytest.raises(TypeError):
            mx.sum(a, axis=axis)
    for keepdims in (1, None, "x", np.bool_(True)):
        with pytest.raises(TypeError):
            mx.sum(a, keepdims=keepdims)
    with pytest.raises(IndexError) as error:
        mx.sum(a, axis=2)
    assert isinstance(error.value, ValueError)  # what other releases of MLX raise
    with pytest.raises(TypeError):
        mx.zeros((2,), float)
    with pytest.raises(OverflowError):
        mx.sum(a, axis=2**40)


def test_arrays_of_other_things():
    assert mx.exp(0.0).item() == 1 and mx.exp(np.zeros(2)).tolist() == [1, 1]
    for wrong in (None, "x", object(), {}):
        with pytest.raises(TypeError):
            mx.exp(wrong)


def test_signatures():
    assert str(inspect.signature(mx.sum)) == "(array, axis=None, keepdims=False, *, stream=None)"
    assert str(inspect.signature(mx.exp)) == "(a, /, *, stream=None)"
    assert str(inspect.signature(mx.eval)) == "(*args)"
    assert (
        str(inspect.signature(mx.array.sum))
        == "(self, /, axis=None, keepdims=False, *, stream=None)"
    )
    assert mx.conv2d.__doc__.startswith(
        "conv2d(input: array, weight: array, /, stride: int | tuple[int, int] = 1"
    )
