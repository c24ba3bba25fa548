"""The operators of arrays: dtypes of numbers beside them, values, what is refused."""

import decimal
import fractions
import operator

import mlx.core as mx
import numpy as np
import pytest

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
IN_PLACE = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ifloordiv,
    operator.imod,
    operator.ipow,
]

# dtype of the array, number, dtype of the result
WEAK = [
    (mx.bool_, True, mx.bool_),
    (mx.bool_, 1, mx.int32),
    (mx.bool_, 1.5, mx.float32),
    (mx.uint8, 200, mx.uint8),
    (mx.uint8, True, mx.uint8),
    (mx.int8, 2.5, mx.float32),
    (mx.int32, 2, mx.int32),
    (mx.int64, 2**40, mx.int64),
    (mx.int64, 2.5, mx.float32),
    (mx.uint64, 2, mx.uint64),
    (mx.float16, 2, mx.float16),
    (mx.float16, 1e10, mx.float16),
    (mx.bfloat16, 2.5, mx.bfloat16),
    (mx.float32, 2**40, mx.float32),
    (mx.float32, 1j, mx.complex64),
    (mx.float16, 1j, mx.complex64),
    (mx.complex64, 2.5, mx.complex64),
    (mx.int8, np.int64(2), mx.int8),
    (mx.int8, np.float32(2.5), mx.int8),
    (mx.float32, np.float64(2), mx.float32),
    (mx.int32, np.array([2.7, 3.2]), mx.int32),
]


@pytest.mark.parametrize("dtype, number, result", WEAK)
def test_weak_numbers(dtype, number, result):
    a = mx.array([1, 0], dtype)
    assert (a + number).dtype == result
    if not isinstance(number, (np.ndarray, np.generic)):
        assert (number + a).dtype == result
        assert mx.add(number, a).dtype == result
    assert mx.add(a, number).dtype == result


def test_numbers_alone():
    assert mx.add(1, 2).dtype == mx.int32 and mx.add(1.5, 2).item() == 3.5
    assert mx.add(2**40, 2).dtype == mx.int64 and mx.add(True, False).dtype == mx.bool_
    assert mx.add(1j, 2).item() == 2 + 1j


@pytest.mark.parametrize(
    "dtype, number",
    [(mx.int8, 128), (mx.int8, -129), (mx.uint8, -1), (mx.uint16, 65536), (mx.int32, 2**33)],
)
def test_numbers_that_do_not_fit(dtype, number):
    with pytest.raises(ValueError, match=f"Converting {number} to .* overflow"):
        mx.array([1], dtype) + number


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values(op, dtype, device):
    x = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    y = np.array([[2, 2, 3]], dtype)
    got, want = op(mx.array(x), mx.array(y)), op(x, y)
    assert np.allclose(got.tolist(), want)
    assert np.allclose(op(mx.array(x), 2).tolist(), op(x, 2))
    assert np.allclose(op(2, mx.array(x)).tolist(), op(2, x))


@pytest.mark.parametrize("op", BITS)
def test_bits(op, device):
    x, y = np.array([1, 6, 12], np.int32), np.array([3, 2, 1], np.int32)
    assert op(mx.array(x), mx.array(y)).tolist() == op(x, y).tolist()
    assert op(mx.array(x), 1).tolist() == op(x, 1).tolist()
    with pytest.raises(ValueError, match="Floating point"):
        op(mx.array([1.0]), 1)
    with pytest.raises(TypeError):
        op(1, mx.array(x))


@pytest.mark.parametrize("op", IN_PLACE)
def test_in_place(op):
    a = mx.array([4.0, 6.0])
    b, other = a, a + 0
    c = op(a, 2)
    assert c is a and b is a
    assert a.tolist() == op(np.array([4.0, 6.0]), 2).tolist()
    assert other.tolist() == [4, 6]


def test_in_place_and_dtypes():
    a = mx.array([1, 2])
    with pytest.raises(ValueError, match="In place division"):
        a /= 2
    a += 0.5
    assert a.dtype == mx.float32 and a.tolist() == [1.5, 2.5]
    a = mx.ones((2, 2))
    a @= mx.ones((2, 2))
    assert a.tolist() == [[2, 2], [2, 2]]


def test_one_operand():
    a = mx.array([1, -2])
    assert (-a).tolist() == [-1, 2] and (+a).tolist() == [1, -2] and abs(a).tolist() == [1, 2]
    assert (~a).tolist() == [-2, 1]
    with pytest.raises(ValueError):
        ~mx.array([1.0])
    with pytest.raises(ValueError, match="bool"):
        -mx.array([True])


def test_matmul():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    assert (mx.array(a) @ mx.array(b)).tolist() == (a @ b).tolist()
    with pytest.raises(TypeError):
        mx.array(a) @ 2
    with pytest.raises(TypeError):
        2 @ mx.array(a)
    with pytest.raises(ValueError, match="matmul"):
        mx.array(a) @ mx.array(a)


def test_what_says_which_number_it_is():
    class Sixteen:
        def __float__(self):
            return 16.0

    a = mx.array([1, 2])
    for other, value in ((fractions.Fraction(1, 2), 0.5), (Sixteen(), 16)):
        for found in (a + other, other + a):
            assert found.dtype == mx.complex64 and found.tolist() == [1 + value, 2 + value]
    a += decimal.Decimal(3)
    assert a.tolist() == [4, 5]


def test_what_is_no_operand():
    a = mx.ones((2,))
    for other in ([1, 2], "x", {1: 2}, object()):
        with pytest.raises(ValueError, match="Cannot perform addition"):
            a + other
        with pytest.raises(ValueError, match="Cannot perform less than"):
            a < other
    with pytest.raises(TypeError):
        a + None
    with pytest.raises(TypeError):
        mx.add(a, [1, 2])


def test_equality_with_others():
    a = mx.ones((2,))
    assert (a == "x") is False and (a != "x") is True
    assert (a == [1, 1]) is False
    with pytest.raises(TypeError):
        a == None  # noqa: E711
    assert hash(a) == hash(a) and len({a, a}) == 1


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match="broadcast"):
        mx.ones((2, 3)) + mx.ones((2, 2))


def test_power_has_no_modulus():
    with pytest.raises(TypeError):
        pow(mx.array([2]), 2, 3)
