"""Memory that becomes arrays, arrays that others read: buffers, NumPy, DLPack, pickles."""

import array as stdlib_array
import copy
import ctypes
import gc
import os
import pickle
import threading

import mlx.core as mx
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")

DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 complex64".split()


# NumPy exchanges bool by DLPack from 1.25 on, and versioned capsules from 2.1 on.
NUMPY = tuple(map(int, np.__version__.split(".")[:2]))


def exchanges(dtype):
    return dtype != "bool" or NUMPY >= (1, 25)


def some(dtype, shape=(3, 4)):
    values = np.random.default_rng(0).uniform(0, 100, shape)
    return (values % 2 > 1 if dtype == "bool" else values.astype(dtype)).astype(dtype)


LAYOUTS = {
    "rows": lambda a: a,
    "transposed": lambda a: a.T,
    "stepped": lambda a: a[::2, 1:],
    "far": lambda a: a[:, :1],
    "one": lambda a: a[0, 0, ...],
    "empty": lambda a: a[:, :0],
    "stretched": lambda a: np.broadcast_to(a[:1], (5, 4)),
    "bigger": lambda a: np.tile(a, (40, 30))[::7, 3::50],
}


# ---- in ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_numpy_in_and_out(dtype, layout):
    source = LAYOUTS[layout](some(dtype))
    for ours in (
        mx.array(source),
        mx.asarray(source),
        mx.from_dlpack(source),
        mx.array(memoryview(source)),
    ):
        assert ours.dtype == getattr(mx, dtype if dtype != "bool" else "bool_")
        assert tuple(ours.shape) == source.shape
        by_dlpack = [np.from_dlpack(ours)] if exchanges(dtype) else []
        for theirs in (np.array(ours), np.asarray(ours), ours.__array__(), *by_dlpack):
            assert theirs.dtype == source.dtype
            assert np.array_equal(theirs, source)


def test_strides_stay_where_that_is_cheap():
    source = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (
        source.T,
        source[:, ::2],
        np.broadcast_to(source[:1], (3, 6)),
        source.astype(np.int16).T,
    ):
        assert memoryview(mx.array(view)).strides == view.strides
    assert memoryview(mx.array(source[:, :1])).strides == (4, 4)


@pytest.mark.parametrize("source", ["float64", "complex128"])
@pytest.mark.parametrize("wanted", [None, *DTYPES, "float64", "bfloat16"])
def test_doubles(source, wanted):
    values = np.array([0, 1, 2.75, 100, 3.14159265358979]).astype(source)
    ours = (
        mx.array(values)
        if wanted is None
        else mx.array(values, dtype=getattr(mx, wanted.replace("bool", "bool_")))
    )
    own = {"float64": "float32", "complex128": "complex64"}[source]
    assert str(ours.dtype) == f"mlx.core.{wanted or own}"
    if source == "float64" and wanted != "bfloat16":
        assert np.array_equal(np.array(ours), values.astype(wanted or own))
    elif source == "complex128" and wanted in (None, "complex64"):
        assert np.array_equal(np.array(ours), values.astype("complex64"))
    strided = np.stack([values, values])[:, ::2].T
    assert np.array_equal(np.array(mx.array(strided)), strided.astype(own))


def test_large_ints_of_doubles():
    values = np.array([2.0**53, -(2.0**62), 2.0**40 + 1])
    assert mx.array(values, dtype=mx.int64).tolist() == [2**53, -(2**62), 2**40 + 1]
    assert mx.array(np.array([2.0**63]), dtype=mx.uint64).tolist() == [2**63]
    assert mx.array(np.array([np.inf, -np.inf, np.nan, 1e300])).tolist()[:2] == [
        float("inf"),
        float("-inf"),
    ]


def test_other_buffers():
    assert mx.array(b"abc").tolist() == [97, 98, 99]
    assert mx.array(bytearray(b"abc")).dtype == mx.uint8
    for code, dtype in zip(
        "bBhHiIlLqQfd",
        "int8 uint8 int16 uint16 int32 uint32 int64 uint64 int64 uint64 float32 float32".split(),
    ):
        ours = mx.array(stdlib_array.array(code, [1, 2, 3]))
        assert str(ours.dtype) == f"mlx.core.{dtype}" and ours.tolist() == [1, 2, 3]
    assert mx.array((ctypes.c_int16 * 3)(1, 2, 3)).tolist() == [1, 2, 3]
    assert mx.array(memoryview(b"abcdef").cast("B", (2, 3)))[1].tolist() == [100, 101, 102]
    assert (
        mx.array(
            np.frombuffer(b"\0" + np.float32(1.5).tobytes(), np.uint8)[1:].view(np.float32)
        ).item()
        == 1.5
    )
    assert (
        mx.array(
            np.frombuffer(b"\0" + np.float64(1.5).tobytes(), np.uint8)[1:].view(np.float64)
        ).item()
        == 1.5
    )
    field = np.zeros(3, dtype=[("a", "i2"), ("b", "f4")])
    field["b"] = [1, 2, 3]
    assert mx.array(field["b"]).tolist() == [1, 2, 3]
    for value, dtype in (
        (np.float32(1.5), mx.float32),
        (np.int64(5), mx.int64),
        (np.bool_(True), mx.bool_),
    ):
        assert mx.array(value).dtype == dtype and mx.array(value).item() == value


def test_copies_are_copies():
    source = np.zeros(3, dtype=np.float32)
    made = mx.array(source), mx.asarray(source), mx.from_dlpack(source, copy=True)
    source[:] = 1
    assert all(a.tolist() == [0, 0, 0] for a in made)


def test_refusals():
    for bad in (
        np.array(["a"]),
        np.array([None]),
        np.array([1], dtype=">i4"),
        np.array([1], np.longdouble),
        stdlib_array.array("u", "ab"),
        np.zeros(2, dtype="i4,i4"),
    ):
        with pytest.raises(RuntimeError):
            mx.array(bad)
    for bad in (np.arange(3)[::-1], np.arange(6).reshape(2, 3)[:, ::-1]):
        with pytest.raises(ValueError):
            mx.array(bad)
    for bad in ([1], 5, "x", None):
        with pytest.raises(TypeError):
            mx.from_dlpack(bad)
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (2**31,), (0,))
    with pytest.raises(OverflowError):
        mx.array(huge)
    for value in ([1], mx.array([1]), np.zeros(1)):
        with pytest.raises(ValueError):
            mx.asarray(value, copy=False)
    with pytest.raises(TypeError):
        mx.asarray(None)


def test_asarray_gives_an_object_of_its_own():
    ours = mx.array([1, 2])
    other = mx.asarray(ours)
    other += 1
    assert ours.tolist() == [1, 2] and other.tolist() == [2, 3]
    assert mx.asarray(ours, mx.float16).dtype == mx.float16
    for copied in (mx.asarray(ours, copy=True), mx.from_dlpack(ours)):
        np.asarray(copied)[0] = 9
        assert ours.tolist() == [1, 2] and copied.tolist() == [9, 2]


class Known:
    def __init__(self, result):
        self.result = result

    def __mlx_array__(self):
        return self.result


def test_objects_that_know_their_array():
    assert mx.array(Known(mx.array([1, 2]))).tolist() == [1, 2]
    assert mx.asarray(Known(mx.array([1, 2])), mx.float32).dtype == mx.float32
    assert (mx.array([1, 2]) + Known(mx.array([3, 4]))).tolist() == [4, 6]
    with pytest.raises(TypeError):
        mx.array(Known([1, 2]))


def test_bfloat16_of_other_packages():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = np.array([[1.5, -2], [0, 3e38]], dtype=ml_dtypes.bfloat16)
    for view in (source, source.T, source[:, :1]):
        ours = mx.array(view)
        assert ours.dtype == mx.bfloat16
        assert np.array_equal(np.array(ours.astype(mx.float32)), view.astype(np.float32))
    assert mx.array(source, dtype=mx.float32).dtype == mx.float32


# ---- out ----


def test_buffers_out():
    ours = mx.array(np.arange(24, dtype=np.int16).reshape(2, 3, 4))
    view = memoryview(ours)
    assert (view.format, view.shape, view.strides, view.readonly) == (
        "h",
        (2, 3, 4),
        (24, 8, 2),
        False,
    )
    assert memoryview(ours.T).strides == (2, 8, 24)
    assert memoryview(ours[::-1]).strides == (-24, 8, 2)
    assert bytes(ours[:, 1, ::2]) == bytes(np.array(ours)[:, 1, ::2])
    assert bytes(mx.array(3)) == b"\3\0\0\0" and bytes(mx.array(True)) == b"\1"
    assert memoryview(mx.array([1], dtype=mx.bfloat16)).format == "bfloat16"
    assert memoryview(mx.zeros((0, 3))).shape == (0, 3)
    assert np.asarray(mx.zeros((0, 3))).shape == (0, 3)
    assert memoryview(mx.array(3)).tolist() == 3


def test_those_who_need_rows_are_told():
    ours = mx.zeros((4, 4))
    read = open(os.devnull, "wb", buffering=0).write
    with pytest.raises(BufferError):
        read(ours.T[1:])
    assert read(ours) == 64


def test_views_outlive_what_happens_to_the_object():
    ours = mx.array([1, 2, 3])
    view, seen, tensor = memoryview(ours), np.asarray(ours), np.from_dlpack(ours)
    ours[0] = 100
    ours += 1
    mx.eval(ours)
    del ours
    gc.collect()
    junk = [mx.array([7, 7, 7]) + i for i in range(50)]
    mx.eval(junk)
    assert view.tolist() == seen.tolist() == tensor.tolist() == [1, 2, 3]


def test_writing_through_a_view():
    ours = mx.array([1, 2, 3])
    np.asarray(ours)[1] = 9
    assert ours.tolist() == [1, 9, 3]
    assert (ours + 1).tolist() == [2, 10, 4]


def test_bfloat16_is_nothing_for_numpy():
    ours = mx.array([1.5], dtype=mx.bfloat16)
    with pytest.raises(ValueError):
        np.array(ours)
    with pytest.raises(TypeError):
        ours.__array__()


# ---- DLPack ----


class Host:
    """What hands over a tensor in one way only."""

    def __init__(self, source, versions):
        self.source, self.versions = source, versions

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        if not self.versions and keywords:
            raise TypeError("no keywords")
        return self.source.__dlpack__(**keywords)


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize("dtype", filter(exchanges, DTYPES))
def test_dlpack_in(dtype, versions):
    source = some(dtype)
    for view in (source, source.T, source[1:, ::2]):
        for ours in (mx.from_dlpack(Host(view, versions)), mx.array(Host(view, versions))):
            assert np.array_equal(np.array(ours), view)
    assert np.array_equal(np.array(mx.array(source) * 0 + Host(source, versions)), source)


def test_capsules():
    ours = mx.array([[1, 2], [3, 4]])
    assert "dltensor_versioned" in repr(ours.__dlpack__(max_version=(1, 0)))
    assert "versioned" not in repr(ours.__dlpack__(max_version=(0, 8)))
    for keywords in (
        {},
        {"max_version": (1, 1)},
        {"copy": True},
        {"max_version": (1, 0), "copy": True, "stream": 1},
        {"dl_device": (1, 0)},
    ):
        capsule = ours.T.__dlpack__(**keywords)
        assert mx.from_dlpack(capsule).tolist() == [[1, 3], [2, 4]]
        with pytest.raises(ValueError):
            mx.from_dlpack(capsule)
    assert ours.__dlpack_device__() == (1, 0)
    for device in ((2, 0), (8, 0), (9, 0), (13, 0)):
        with pytest.raises(BufferError):
            ours.__dlpack__(dl_device=device)
    for bad in ({"dl_device": 1}, {"dl_device": ("a", 0)}, {"other": 1}):
        with pytest.raises(TypeError):
            ours.__dlpack__(**bad)
    with pytest.raises(TypeError):
        ours.__dlpack__(None)


def test_copies_of_capsules():
    ours = mx.array([1, 2, 3])

    class Copied:
        def __dlpack__(self, **keywords):
            return ours.__dlpack__(max_version=(1, 0), copy=True)

        def __dlpack_device__(self):
            return (1, 0)

    if NUMPY >= (2, 1):
        np.from_dlpack(Copied())[0] = 9
    else:
        mx.from_dlpack(Copied())
    assert ours.tolist() == [1, 2, 3]


def test_foreign_capsules():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_void_p,
    )

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int32),
            ("id", ctypes.c_int32),
            ("ndim", ctypes.c_int32),
            ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.c_void_p),
            ("strides", ctypes.c_void_p),
            ("offset", ctypes.c_uint64),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]

    data, shape = (ctypes.c_int32 * 6)(*range(6)), (ctypes.c_int64 * 2)(2, 2)

    def capsule(**changes):
        fields = {
            "data": ctypes.addressof(data),
            "device": 1,
            "ndim": 2,
            "code": 0,
            "bits": 32,
            "lanes": 1,
            "shape": ctypes.addressof(shape),
            "offset": 8,
        }
        tensor = Tensor(**(fields | changes))
        keep.append(tensor)
        return new(ctypes.addressof(tensor), b"dltensor", None)

    keep = []
    assert mx.from_dlpack(capsule()).tolist() == [[2, 3], [4, 5]]  # no strides: rows
    for changes in (
        {"device": 2},
        {"device": 8},
        {"device": 99},
        {"bits": 16, "code": 5},
        {"lanes": 4},
        {"code": 7},
        {"ndim": 65},
        {"ndim": -1},
    ):
        with pytest.raises(ValueError):
            mx.from_dlpack(capsule(**changes))
    with pytest.raises(ValueError):
        mx.from_dlpack(new(1, b"something", None))


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float16):
        tensor = torch.arange(6).reshape(2, 3).to(dtype)
        for view in (tensor, tensor.T):
            ours = mx.array(view)
            assert str(ours.dtype).split(".")[-1] == str(dtype).split(".")[-1]
            back = torch.from_dlpack(ours)
            assert back.dtype == dtype and torch.equal(back, view)
    with pytest.raises(ValueError):
        mx.from_dlpack(torch.ones(3, dtype=torch.complex32))


# ---- pickles and copies ----


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_pickles(dtype):
    ours = mx.array([[0, 1, 2], [3, 4, 5]]).astype(getattr(mx, dtype.replace("bool", "bool_")))
    for array in (ours, ours.T, ours[:, 1:], ours[0, 0]):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            back = pickle.loads(pickle.dumps(array, protocol=protocol))
            assert back.dtype == array.dtype and tuple(back.shape) == tuple(array.shape)
            assert mx.array_equal(back, array)
        for copied in (copy.copy(array), copy.deepcopy(array)):
            copied -= copied
            assert mx.array_equal(array, pickle.loads(pickle.dumps(array)))
    state = ours.__getstate__()
    assert isinstance(state[0], np.ndarray) and state[1] in range(14)


def test_bad_pickles():
    for state in (
        5,
        (),
        (np.zeros(2),),
        (np.zeros(2), 99),
        (np.zeros(2), -1),
        (None, 3),
        (np.zeros(2), "x"),
    ):
        with pytest.raises((ValueError, TypeError)):
            mx.array([1]).__setstate__(state)


def test_float64_stays():
    with mx.stream(mx.cpu):
        ours = mx.array([1.1, 2.2], dtype=mx.float64)
        assert pickle.loads(pickle.dumps(ours)).tolist() == [1.1, 2.2]
        assert np.asarray(ours).dtype == np.float64
    matrix = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(np.array(mx.array(matrix.T, dtype=mx.float64)), matrix.T)


# ---- memory and threads ----


def test_memory_stays():
    mx.eval(mx.zeros((4,)) + 1)
    before = mx.get_active_memory()
    for _ in range(300):
        ours = mx.array(np.ones((16, 16)))
        np.asarray(ours), memoryview(ours.T), ours.__dlpack__(), mx.from_dlpack(
            ours.__dlpack__(copy=True)
        )
        np.from_dlpack(ours), pickle.loads(pickle.dumps(ours)), mx.array(np.ones((16, 16)).T)
    del ours
    gc.collect()
    assert mx.get_active_memory() <= before + 4096


def test_threads():
    source = np.arange(1 << 18, dtype=np.int32)
    ours, wrong = mx.array(source), []

    def read():
        for _ in range(20):
            if not np.array_equal(np.asarray(ours), source):
                wrong.append(1)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_an_object_changes_while_others_read_it():
    """What a thread reads is one array or the other, whole."""
    ours, stop, wrong = mx.zeros((1 << 15,), dtype=mx.int32), [], []

    def read(how):
        while not stop:
            seen = how(ours)
            if len(set(seen)) != 1:
                wrong.append(seen)

    ways = (
        lambda a: a.tolist(),
        lambda a: memoryview(a).tolist(),
        lambda a: np.asarray(a).tolist(),
        lambda a: [a[0].item()],
        lambda a: np.from_dlpack(a).tolist(),
        lambda a: [str(a[3])],
    )
    threads = [threading.Thread(target=read, args=(how,)) for how in ways]
    for t in threads:
        t.start()
    for k in range(200):
        ours[...] = mx.full((1 << 15,), k, dtype=mx.int32)
        ours += 1
    stop.append(True)
    for t in threads:
        t.join()
    assert not wrong


def test_numpy_says_why_an_array_has_no_elements():
    with mx.stream(mx.cpu):
        failing = mx.quantize(mx.ones((2, 64)).astype(mx.float64))[0]
    for read in (lambda x: x.__array__(), np.array, memoryview, mx.array.tolist):
        with pytest.raises(RuntimeError, match="Not supported"):
            read(failing)
