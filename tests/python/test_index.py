"""Subscripts of arrays: reading, writing, array.at, iteration. NumPy says what is right."""

import gc
import itertools

import mlx.core as mx
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")

SHAPE = (2, 3, 4, 5)


def numbers(shape, dtype=np.int32):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def as_mlx(index):
    """A subscript of NumPy with arrays of ours in place of NumPy's."""
    if isinstance(index, tuple):
        return tuple(as_mlx(i) for i in index)
    return mx.array(index) if isinstance(index, np.ndarray) else index


def same(ours, theirs):
    assert tuple(ours.shape) == theirs.shape
    assert np.array_equal(np.array(ours), theirs)


# ---- mixtures ----

PARTS = {
    "0": 0,
    "-1": -1,
    ":": slice(None),
    "1:": slice(1, None),
    "::2": slice(None, None, 2),
    "::-1": slice(None, None, -1),
    "None": None,
    "i": np.array([1, 0, 1]),
    "u": np.array([[1], [0]], dtype=np.uint8),
    "...": Ellipsis,
}


def mixtures():
    for length in (1, 2, 3):
        for names in itertools.product(PARTS, repeat=length):
            if names.count("...") <= 1:
                yield names


@pytest.mark.parametrize("first", PARTS)
def test_mixtures_read_and_write(first):
    """Everything that NumPy reads and writes, up to three subscripts."""
    seen = 0
    for names in mixtures():
        if names[0] != first:
            continue
        index = tuple(PARTS[n] for n in names)
        source = numbers(SHAPE)
        expected = source[index]
        array = mx.array(source)
        same(array[as_mlx(index)], expected)
        # Where a place is named twice, all its values are the same.
        values = (
            -1
            - np.arange(SHAPE[-1], dtype=np.int32)[-expected.shape[-1] if expected.ndim else -1 :]
        )
        values = values[:1] if not expected.ndim or expected.shape[-1] != SHAPE[-1] else values
        source[index] = values
        array[as_mlx(index)] = mx.array(values)
        same(array, source)
        seen += 1
    assert seen > 50


def test_values_take_the_shape_of_what_is_read():
    """Distinct values in every place, with every axis of size 1 that NumPy allows."""
    index = np.array([1, 0])
    pool = [index, slice(None), slice(1, None), slice(None, None, 2), 0, None]
    for parts in itertools.product(range(len(pool)), repeat=3):
        if 0 not in parts:
            continue
        key = tuple(pool[p] for p in parts)
        source = numbers(SHAPE)
        values = -1 - numbers(source[key].shape)
        for shaped in (values, values[None], values[..., :1], values[:1]):
            expected, array = source.copy(), mx.array(source)
            expected[key] = shaped
            array[as_mlx(key)] = mx.array(shaped)
            same(array, expected)


@pytest.mark.parametrize("step", [-7, -3, -2, -1, 1, 2, 3, 7])
def test_slices_are_cut_off_as_numpy_does(step):
    source = numbers((6,))
    array = mx.array(source)
    for start, stop in itertools.product([None, -9, -6, -2, 0, 1, 5, 6, 9], repeat=2):
        same(array[start:stop:step], source[start:stop:step])
        same(array[None, start:stop:step], source[None, start:stop:step])
        expected, copy = source.copy(), mx.array(source)
        expected[start:stop:step] = 77
        copy[start:stop:step] = 77
        same(copy, expected)


def test_lists_and_numpy_scalars():
    source = numbers((4, 3))
    array = mx.array(source)
    for index in ([0, 2], [[0, 1], [3, 2]], [-1], ([1, 2], 0), (slice(1, 3), [0, 2])):
        same(array[index], source[index])
    same(array[np.int64(2)], source[2])
    same(array[np.array(2)], source[2])
    same(array[np.uint8(1) : np.int32(3)], source[1:3])


def test_empty_subscripts_and_arrays():
    array = mx.zeros((3, 0, 2))
    assert array[1].shape == (0, 2)
    assert array[:, :, 1].shape == (3, 0)
    assert array[mx.array([0, 2])].shape == (2, 0, 2)
    assert mx.zeros((3, 2))[mx.array([], dtype=mx.int32)].shape == (0, 2)
    full = mx.zeros((3, 2))
    full[1:1] = 5
    full[mx.array([], dtype=mx.int32)] = 5
    assert full.tolist() == [[0, 0]] * 3


def test_without_dimensions():
    array = mx.array(3)
    for index in (..., (), None, (None, ...)):
        same(array[index], np.array(3)[index])
    array[...] = 4
    assert array.item() == 4
    array[()] = 5
    assert array.item() == 5
    array[mx.array(True)] = 6
    assert array.item() == 6
    for index in (0, slice(None), mx.array(0)):
        with pytest.raises(ValueError):
            array[index]
        with pytest.raises(ValueError):
            array[index] = 1


# ---- errors ----

BAD = [
    (True, ValueError),
    (1.0, ValueError),
    ("x", ValueError),
    ({}, ValueError),
    ((0, 0, 0), ValueError),
    ((..., ...), ValueError),
    ((0, 1.0), ValueError),
    ((True, 0), ValueError),
    (((0, 1),), ValueError),
    (slice(None, None, 0), ValueError),
    (slice(1.0, None), ValueError),
    (slice(True, None), ValueError),
    (slice(2**40, None), ValueError),
    (2**40, ValueError),
    (np.array([0, 1]), ValueError),
    (mx.array([1.0]), ValueError),
    ([], ValueError),
    ((None,) * 100, ValueError),
    ((None,) * 31, ValueError),
]


@pytest.mark.parametrize("index, error", BAD, ids=range(len(BAD)))
def test_bad_subscripts(index, error):
    array = mx.zeros((2, 3))
    with pytest.raises(error):
        array[index]
    if index is not True and not (isinstance(index, tuple) and len(index) == 31):
        with pytest.raises(error):
            array[index] = 1
        with pytest.raises(error):
            array.at[index].add(1)
    assert array.shape == (2, 3)


def test_bool_arrays_are_not_read():
    array = mx.zeros((2, 3))
    for index in (mx.array([True, False]), [True, False], (mx.array([True, False]), 0)):
        with pytest.raises(ValueError):
            array[index]


def test_bad_values():
    array = mx.zeros((2, 3), dtype=mx.uint8)
    for value, error in [
        ([1, 2, 3], ValueError),
        ("x", ValueError),
        (None, TypeError),
        (300, ValueError),
        (-1, ValueError),
        (mx.zeros((2,)), ValueError),
        (mx.zeros((2, 3)), ValueError),
    ]:
        with pytest.raises(error):
            array[0] = value
    with pytest.raises(ValueError):
        array[:, None] = mx.zeros((2, 2, 3))
    with pytest.raises(AttributeError):
        del array[0]
    assert array.tolist() == [[0] * 3] * 2


def test_places_outside_change_nothing():
    array = mx.zeros((2, 3))
    array[7] = 1
    array[-7] = 1
    array[7, 0] = 1
    assert array.sum().item() == 0


# ---- writing ----


def test_an_object_gets_another_array():
    array = mx.array([1, 2, 3])
    alias, shared, view = array, array[...], array[1:]
    array[1] = 9
    assert alias is array and alias.tolist() == [1, 9, 3]
    assert shared.tolist() == [1, 2, 3] and view.tolist() == [2, 3]
    array[0] += 5
    array[1:] *= 2
    assert array.tolist() == [6, 18, 6]
    array[:2] = array[1:]
    assert array.tolist() == [18, 6, 6]


def test_numbers_are_weak():
    for dtype in (mx.int32, mx.uint8, mx.float16, mx.bfloat16, mx.complex64, mx.bool_):
        array = mx.zeros((3,), dtype=dtype)
        array[0] = 1.5
        array[1] = True
        array[mx.array([2])] = 1
        assert array.dtype == dtype
    whole = mx.zeros((3,), dtype=mx.int32)
    whole[:] = mx.array(1.5)
    assert whole.dtype == mx.int32 and whole.tolist() == [1, 1, 1]
    whole[...] = mx.array(1.5)  # everything replaced: the values with their dtype, as in MLX
    assert whole.dtype == mx.float32


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "int64", "uint64", "float16", "float32", "complex64"]
)
def test_dtypes(dtype):
    source = numbers((4, 6)).astype(dtype)
    index = np.array([2, 0])
    for key in (index, (slice(None), index), (1, slice(4, None, -2)), 3):
        same(mx.array(source)[as_mlx(key)], source[key])
        expected, array = source.copy(), mx.array(source)
        expected[key] = source[key] * np.array(0, dtype=dtype)
        array[as_mlx(key)] = mx.array(source[key] * np.array(0, dtype=dtype))
        same(array, expected)


def test_views_of_views():
    source = numbers((6, 8, 3))
    for view in (lambda a: a[::-1, 2:, :], lambda a: a.T, lambda a: a[1:5, ::-2].T):
        ours, theirs = view(mx.array(source)), view(source)
        index = np.array([1, 0, 2])
        for key in (
            index,
            (slice(1, None), index),
            (slice(None), 1),
            (..., slice(None, None, -1)),
            (0, index),
        ):
            same(ours[as_mlx(key)], theirs[key])
            expected, array = theirs.copy(), view(mx.array(source))
            expected[key] = -1
            array[as_mlx(key)] = -1
            same(array, expected)


def test_masks():
    source = numbers((4, 3))
    rows, places = np.array([True, False, True, False]), source % 2 == 0
    for mask in (rows, places):
        for value in (7, mx.array(8), mx.array([1, 2, 3])):
            if mask is places and not isinstance(value, int) and value.ndim:
                continue
            expected, array = source.copy(), mx.array(source)
            expected[mask] = np.array(value)
            array[mx.array(mask)] = value
            same(array, expected)
    array = mx.array(source)
    array[mx.array(places)] = mx.arange(6) + 100
    expected = source.copy()
    expected[places] = np.arange(6) + 100
    same(array, expected)
    for mask, changed in (
        (True, True),
        (False, False),
        ([True, True, False, False], True),
        (rows, True),
    ):
        array = mx.array(source)
        array[mask] = -1
        assert (array.sum().item() != source.sum()) == changed


# ---- at ----

WAYS = {
    "add": (np.add, 3),
    "subtract": (np.subtract, 3),
    "multiply": (np.multiply, 3),
    "divide": (np.divide, 2),
    "maximum": (np.maximum, 9),
    "minimum": (np.minimum, 9),
}


@pytest.mark.parametrize("way", WAYS)
def test_at(way):
    function, value = WAYS[way]
    source = numbers((4, 3, 5), np.float32)
    index = np.array([1, 0, 1])
    keys = [
        0,
        slice(1, 3),
        (slice(None), 1),
        (0, slice(None, None, -1)),
        index,
        (slice(1, 3), index),
        (index, index),
        (index, None, 0),
        ...,
        None,
        (None, 2),
    ]
    for key in keys:
        expected = source.copy()
        if key is None:
            expected = function(expected, np.float32(value))
        else:
            function.at(expected, key, np.float32(value))
        array = mx.array(source)
        updated = getattr(array.at[as_mlx(key)], way)(value)
        assert np.allclose(np.array(updated), expected)
        same(array, source)
    updated = getattr(mx.array(source).at[0], way)(value=mx.array([value] * 5))
    expected = source.copy()
    expected[0] = function(expected[0], np.float32(value))
    assert np.allclose(np.array(updated), expected)


def test_at_keeps_what_it_started_with():
    array = mx.array([1, 2, 3])
    at = array.at
    array[0] = 100
    assert at[1].add(5).tolist() == [1, 7, 3]
    assert at[2].add(5).tolist() == [1, 2, 8]


def test_at_errors():
    array = mx.zeros((3,))
    with pytest.raises(ValueError):
        array.at.add(1)
    with pytest.raises(ValueError):
        array.at[mx.array([True, False, True])].add(1)
    for arguments, keywords in (((), {}), ((1, 2), {}), ((1,), {"value": 2}), ((), {"other": 2})):
        with pytest.raises(TypeError):
            array.at[0].add(*arguments, **keywords)
    with pytest.raises(TypeError):
        type(array.at)()


# ---- iteration ----


@pytest.mark.parametrize("n", [0, 1, 3, 9, 10, 25])
def test_iteration(n):
    source = numbers((n, 2))
    array = mx.array(source)
    walk = iter(array)
    assert iter(walk) is walk
    array[...] = -1
    for ours, theirs in zip(walk, source, strict=True):
        same(ours, theirs)
    assert next(walk, None) is None
    assert len(array) == n
    assert list(mx.array(source[:, 0]).tolist()) == [x.item() for x in mx.array(source[:, 0])]


def test_iteration_without_dimensions():
    for function in (iter, len, list):
        with pytest.raises(TypeError):
            function(mx.array(1))
    assert 2 in mx.array([1, 2])
    a, b = mx.array([[1, 2], [3, 4]])
    assert a.tolist() == [1, 2] and b.tolist() == [3, 4]


# ---- hostile callers ----


class Meddler:
    """An index that changes the array while it is read."""

    def __init__(self, array, value=0):
        self.array, self.value = array, value

    def __index__(self):
        self.array[...] = mx.zeros((1,) * 5)
        return self.value


class Failing:
    def __index__(self):
        raise KeyError("no")


def test_arrays_may_change_under_a_subscript():
    for make in (
        lambda m: m,
        lambda m: slice(m, None),
        lambda m: (0, m),
        lambda m: (m, slice(m, None, m), m),
        lambda m: (mx.array([0]), m),
        lambda m: (m, mx.array([1])),
    ):
        for value in (0, 1, 5):
            array = mx.zeros((4, 4, 4))
            for act in (
                lambda: array[make(Meddler(array, value))],
                lambda: array.__setitem__(make(Meddler(array, value)), 1),
                lambda: array.at[make(Meddler(array, value))].add(1),
            ):
                try:
                    act()
                except (ValueError, IndexError):
                    pass
            mx.eval(array)


def test_exceptions_of_subscripts_come_out():
    array = mx.zeros((4, 4))
    for index in (Failing(), slice(Failing(), None), (0, Failing()), (mx.array([0]), Failing())):
        with pytest.raises(KeyError):
            array[index]
        with pytest.raises(KeyError):
            array[index] = 1
        with pytest.raises(KeyError):
            array.at[index].add(1)


def test_arrays_without_value():
    empty = mx.array.__new__(mx.array)
    for act in (
        lambda: empty[0],
        lambda: empty.__setitem__(0, 1),
        lambda: empty.at,
        lambda: iter(empty),
        lambda: len(empty),
        lambda: mx.zeros((2,))[empty],
    ):
        with pytest.raises((ValueError, TypeError)):
            act()


def test_memory_stays():
    array, index = mx.zeros((64, 64)), mx.array([1, 2, 3])
    mx.eval(array)
    before = mx.get_active_memory()
    for _ in range(300):
        array[1:3], array[index, None, ::2], array.at[index].add(1), list(array[:5])
        array[index] = 1.0
        array[0, ..., ::2] = 2.0
        mx.eval(array)
    gc.collect()
    assert mx.get_active_memory() <= before + 4096
