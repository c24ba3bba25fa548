"""Values of arrays as numbers, lists and texts; properties."""

import gc
import weakref

import mlx.core as mx
import numpy as np
import pytest


def test_item():
    for value, dtype in [
        (True, mx.bool_),
        (3, mx.uint8),
        (-3, mx.int64),
        (2**63, mx.uint64),
        (1.5, mx.float16),
        (-0.25, mx.bfloat16),
        (1.5, mx.float64),
        (1 - 2j, mx.complex64),
    ]:
        a = mx.array([[0]], dtype) + mx.array(value if value != 2**63 else 2**62, dtype)
        a = a + a if value == 2**63 else a
        assert a.item() == value and type(a.item()) is type(value)
    with pytest.raises(ValueError, match="length-1"):
        mx.ones((2,)).item()


@pytest.mark.parametrize("bits", [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0x7BFF, 0xFC00])
def test_halves_bit_by_bit(bits):
    want = np.array([bits], np.uint16).view(np.float16)[0]
    got = mx.array([bits], mx.uint16).view(mx.float16).item()
    assert got == float(want) and np.signbit(got) == np.signbit(want)


def test_lists():
    n = np.arange(24).reshape(2, 3, 4)
    a = mx.array(n)
    assert a.tolist() == n.tolist() and a.T.tolist() == n.T.tolist()
    assert mx.broadcast_to(a, (2, 2, 3, 4)).tolist() == np.broadcast_to(n, (2, 2, 3, 4)).tolist()
    assert mx.zeros((0, 2)).tolist() == [] and mx.zeros((2, 0)).tolist() == [[], []]
    assert mx.array(3).tolist() == 3


def test_conversions():
    assert int(mx.array(2.7)) == 2 and float(mx.array([2])) == 2.0 and complex(mx.array(2)) == 2
    assert bool(mx.array(3)) and not mx.array([0.0]) and [1, 2, 3][mx.array(1)] == 2
    with pytest.raises(ValueError):
        bool(mx.ones((2,)))
    with pytest.raises(TypeError):
        float(mx.array(1j))
    with pytest.raises(TypeError):
        [1, 2][mx.array(1.0)]


def test_texts():
    assert repr(mx.array([1, 2])) == "array([1, 2], dtype=int32)"
    assert str(mx.array([[1.5], [2]])) == "array([[1.5],\n       [2]], dtype=float32)"
    assert repr(mx.array(True)) == "array(True, dtype=bool)"
    assert repr(mx.array([1 + 2j, 0 - 1.5j])) == "array([1+2j, 0-1.5j], dtype=complex64)"
    assert repr(mx.arange(8)) == "array([0, 1, 2, ..., 5, 6, 7], dtype=int32)"
    assert repr(mx.array([])) == "array([], dtype=float32)"
    assert (
        f"{mx.array(2.5):.2f} {mx.array(3)} {mx.array([1, 2])}"
        == "2.50 3 array([1, 2], dtype=int32)"
    )
    with pytest.raises(TypeError, match="format"):
        format(mx.ones((2,)), ".2f")


def test_print_options():
    a = mx.array([1.53456, 2])
    with mx.printoptions(precision=2):
        assert str(a) == "array([1.53, 2.00], dtype=float32)"
        assert mx.get_printoptions().precision == 2
    assert str(a) == "array([1.53456, 2], dtype=float32)"
    mx.set_printoptions(precision=3)
    assert str(mx.array([1.5 - 2j])) == "array([1.500-2.000j], dtype=complex64)"
    mx.set_printoptions()
    with pytest.raises(ValueError):
        mx.set_printoptions(10000)
    options = mx.PrintOptions(4)
    options.precision = 5
    assert options.precision == 5


def test_properties():
    a = mx.ones((2, 3, 4), mx.float16)
    assert (a.shape, a.ndim, a.size, a.itemsize, a.nbytes) == ((2, 3, 4), 3, 24, 2, 48)
    assert a.dtype == mx.float16 and a.dtype is mx.float16 and a.T.shape == (4, 3, 2)
    assert a.mT.shape == (2, 4, 3) and len(a) == 2
    assert mx.array([1 + 2j]).real.item() == 1 and mx.array([1 + 2j]).imag.item() == 2
    with pytest.raises(TypeError, match="0-dimensional"):
        len(mx.array(1))
    assert mx.matrix_transpose(a).shape == (2, 4, 3)
    for turn in (lambda x: x.mT, mx.matrix_transpose):
        with pytest.raises(ValueError, match="at least 2 dimensions"):
            turn(mx.ones((2,)))
    with pytest.raises(AttributeError):
        a.shape = (1,)


def test_weak_references():
    a = mx.ones((2,))
    r = weakref.ref(a)
    assert r() is a
    del a
    gc.collect()
    assert r() is None


def test_subclasses():
    class Sub(mx.array):
        pass

    s = Sub([1, 2])
    s.name = "x"
    assert s.name == "x" and isinstance(s, mx.array) and (s + 1).tolist() == [2, 3]
    assert type(s + 1) is mx.array and mx.exp(s).shape == (2,)


def test_what_was_not_initialized():
    a = mx.array.__new__(mx.array)
    for use in (
        lambda: a + 1,
        lambda: 1 + a,
        lambda: a.shape,
        lambda: mx.exp(a),
        lambda: a.sum(),
        lambda: -a,
        lambda: len(a),
        lambda: a.item(),
        lambda: a.tolist(),
    ):
        with pytest.raises((TypeError, ValueError)):
            use()
    assert "not initialized" in repr(a)
    a.__init__([1, 2])
    assert a.tolist() == [1, 2]
    a.__init__(a)
    assert a.tolist() == [1, 2]


def test_eval_of_trees():
    a, b, c = mx.ones((2,)) + 1, mx.ones((2,)) + 2, mx.ones((2,)) + 3
    mx.eval(a, [b, {"x": (c, None, 3, "text")}])
    mx.async_eval(a + 1, {"y": b + 1})
    mx.eval()
    assert c.tolist() == [4, 4]


def test_many_objects_come_and_go():
    before = mx.get_active_memory()
    arrays = [mx.array([float(i)]) for i in range(1000)]
    assert sum(a.item() for a in arrays) == 499500
    del arrays
    gc.collect()
    assert mx.get_active_memory() <= before + 1000
