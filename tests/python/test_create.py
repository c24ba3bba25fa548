"""What array() makes of numbers, lists, arrays and buffers."""

import mlx.core as mx
import numpy as np
import pytest

NUMBERS = [
    (True, mx.bool_),
    (False, mx.bool_),
    (7, mx.int32),
    (-(2**31), mx.int32),
    (2**31, mx.int64),
    (-(2**40), mx.int64),
    (2.5, mx.float32),
    (1 + 2j, mx.complex64),
    (np.float64(2.5), mx.float32),
    (np.int8(3), mx.int8),
    (np.int64(3), mx.int64),
    (np.bool_(True), mx.bool_),
    (np.float16(1.5), mx.float16),
]
LISTS = [
    ([], mx.float32),
    ([True, False], mx.bool_),
    ([True, 2], mx.int32),
    ([1, 2**31], mx.int64),
    ([1, 2.5], mx.float32),
    ([1, 2j], mx.complex64),
    ([[1, 2], [3, 4]], mx.int32),
    (((1, 2), (3, 4)), mx.int32),
    ([[]], mx.float32),
    ([[[1.5]]], mx.float32),
]
DTYPES = [
    mx.bool_,
    mx.uint8,
    mx.uint16,
    mx.uint32,
    mx.uint64,
    mx.int8,
    mx.int16,
    mx.int32,
    mx.int64,
    mx.float16,
    mx.float32,
    mx.bfloat16,
    mx.complex64,
]


@pytest.mark.parametrize("value, dtype", NUMBERS)
def test_numbers(value, dtype):
    a = mx.array(value)
    assert a.dtype == dtype and a.shape == () and a.item() == value


@pytest.mark.parametrize("value, dtype", LISTS)
def test_lists(value, dtype):
    a = mx.array(value)
    assert a.dtype == dtype
    assert a.shape == np.array(value).shape
    assert a.tolist() == np.array(value).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0, 1, 3, True, 2.75, [1, 0, 3], [2.75, 0.0], [True, False]])
def test_dtype_wanted(value, dtype):
    a = mx.array(value, dtype)
    assert a.dtype == dtype
    b = mx.array(value).astype(dtype)
    assert a.tolist() == b.tolist()


def test_integers_that_do_not_fit_wrap():
    assert mx.array(300, mx.uint8).item() == 44
    assert mx.array(-1, mx.uint8).item() == 255
    assert mx.array([300, -1], mx.uint8).tolist() == [44, 255]
    assert mx.array(2**40 + 5, mx.int32).item() == 5


def test_arrays_in_lists():
    a = mx.ones((2, 3))
    assert mx.array([a, a]).shape == (2, 2, 3)
    assert mx.array([mx.array(1), 2.5]).tolist() == [1, 2.5]
    assert mx.array([[mx.array(1), 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert mx.array([mx.array(1), 2.5], mx.int32).dtype == mx.int32
    assert mx.array([[mx.array([1.0]), [2.0]], [[3.0], mx.array([4.0])]]).shape == (2, 2, 1)
    with pytest.raises(ValueError, match="non-uniform"):
        mx.array([a, mx.ones((3,))])


def test_arrays_of_arrays():
    a = mx.array([1.5, 2.5])
    assert mx.array(a).tolist() == a.tolist()
    assert mx.array(a, mx.int32).tolist() == [1, 2]


@pytest.mark.parametrize(
    "dtype", ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "c8"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (2, 0, 3)])
def test_numpy(dtype, shape):
    n = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    a = mx.array(n)
    assert a.shape == shape and a.tolist() == n.tolist()
    assert str(a.dtype) == "mlx.core." + n.dtype.name


def test_numpy_doubles_become_floats():
    assert mx.array(np.ones(2)).dtype == mx.float32
    assert mx.array(np.ones(2), mx.float64).dtype == mx.float64
    assert mx.array(np.array([1 + 2j])).tolist() == [1 + 2j]


def test_numpy_layouts():
    n = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for view in (n.T, n[:, 1:, ::2], np.broadcast_to(n[:, :1], n.shape)):
        assert mx.array(view).tolist() == view.tolist()
    with pytest.raises(ValueError, match="negative strides"):  # as MLX has it
        mx.array(n[:, ::-1])


def test_bytes():
    assert mx.array(b"ab").tolist() == [97, 98]
    assert mx.array(memoryview(bytearray(b"ab"))).dtype == mx.uint8


def test_array_likes():
    class Like:
        def __mlx_array__(self):
            return mx.array([1, 2])

    assert mx.array(Like()).tolist() == [1, 2]
    assert (mx.array([1, 1]) + Like()).tolist() == [2, 3]
    assert mx.exp(Like()).shape == (2,)


WRONG = [
    (lambda: mx.array([[1], [2, 3]]), ValueError, "non-uniform"),
    (lambda: mx.array([1, [2]]), ValueError, "extra dimension"),
    (lambda: mx.array([[1], 2]), ValueError, "non-uniform"),
    (lambda: mx.array("a"), ValueError, "Invalid type str"),
    (lambda: mx.array(["a"]), ValueError, "Invalid type str"),
    (lambda: mx.array([1, None]), ValueError, "Invalid type NoneType"),
    (lambda: mx.array({1: 2}), ValueError, "Invalid type dict"),
    (lambda: mx.array(range(3)), ValueError, "Invalid type range"),
    (lambda: mx.array(None), TypeError, "val"),
    (lambda: mx.array(), TypeError, "val"),
    (lambda: mx.array(1, 2), TypeError, "dtype"),
    (lambda: mx.array(2**70), OverflowError, "64 bits"),
    (lambda: mx.array([2**63]), OverflowError, "64 bits"),
    (lambda: mx.array(np.array(["a"])), RuntimeError, "format"),
]


@pytest.mark.parametrize("make, error, text", WRONG)
def test_wrong(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_deep_lists_are_refused():
    deep = []
    for _ in range(100000):
        deep = [deep]
    with pytest.raises(ValueError, match="dimensions"):
        mx.array(deep)


def test_ranges():
    assert mx.arange(3).dtype == mx.int32 and mx.arange(3.0).dtype == mx.float32
    assert mx.arange(2**33, 2**33 + 2).tolist() == [2**33, 2**33 + 1]
    assert mx.arange(1, 5, 2).tolist() == [1, 3] and mx.arange(5, step=2).tolist() == [0, 2, 4]
    assert mx.arange(stop=3).tolist() == [0, 1, 2] and mx.arange(3, None, None).size == 3
    assert mx.arange(3, dtype=mx.uint8).dtype == mx.uint8
    assert mx.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert mx.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]
    for wrong in (
        lambda: mx.arange("a"),
        lambda: mx.arange(start=1, step=2),
        lambda: mx.arange(None, 3),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="bool"):
        mx.arange(True)


def test_filled():
    assert mx.zeros(3).tolist() == [0, 0, 0] and mx.zeros((), mx.int8).item() == 0
    assert mx.ones([2, np.int32(1)], mx.float16).tolist() == [[1], [1]]
    assert mx.zeros((2,), None).dtype == mx.float32
    assert mx.full((2,), 2).dtype == mx.int32 and mx.full((2,), 2.5).dtype == mx.float32
    assert mx.full((2,), 2.5, mx.float16).dtype == mx.float16
    assert mx.full((2, 2), mx.array([1, 2])).tolist() == [[1, 2], [1, 2]]
    assert mx.zeros_like(mx.ones((2,), mx.int8)).dtype == mx.int8
    assert mx.ones_like(mx.ones((2,)), mx.bool_).tolist() == [True, True]
    assert mx.full_like(mx.ones((2,)), 3, mx.int32).tolist() == [3, 3]
    assert mx.eye(2, 3, 1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert mx.empty is mx.zeros
    with pytest.raises(ValueError):
        mx.zeros(-1)
    with pytest.raises(OverflowError):
        mx.zeros((2**31,))


def test_asarray():
    a = mx.array([1, 2])
    assert mx.asarray(a).tolist() == mx.asarray([1, 2]).tolist() == [1, 2]
    assert mx.asarray(a, mx.float32).dtype == mx.float32


@pytest.mark.parametrize("values", [4, True, 4.5, [4, 8], [[True], [False]], [4.5, 8]])
def test_float64_of_python_numbers_on_every_device(values, device):
    a = mx.array(values, mx.float64)
    assert a.dtype == mx.float64
    with mx.stream(mx.cpu):
        assert (a + a).tolist() == (np.array(values, np.float64) * 2).tolist()
