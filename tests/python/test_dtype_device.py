"""Dtypes, devices, streams, memory, and what there is no more of."""

import copy
import pickle
import threading

import mlx.core as mx
import pytest

NAMES = [
    "bool_",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex64",
]


@pytest.mark.parametrize("i", range(len(NAMES)))
def test_dtypes(i):
    t = getattr(mx, NAMES[i])
    assert repr(t) == "mlx.core." + NAMES[i].rstrip("_") and hash(t) == i
    assert t == t and t != "float32" and t.size == mx.zeros((1,), t).itemsize
    assert pickle.loads(pickle.dumps(t)) is t and copy.deepcopy(t) is t


def test_no_new_dtypes():
    with pytest.raises(TypeError):
        mx.Dtype()


def test_promotion():
    assert mx.result_type(mx.int8, mx.uint8) == mx.int16
    assert mx.result_type(mx.uint64, mx.array(1, mx.int8)) == mx.float32
    assert mx.result_type(mx.float16, mx.bfloat16) == mx.float32
    assert mx.can_cast(mx.int32, mx.float32) and not mx.can_cast(mx.float32, mx.int32)
    for a in NAMES:
        for b in NAMES:
            x, y = getattr(mx, a), getattr(mx, b)
            with mx.stream(mx.cpu):
                assert mx.result_type(x, y) == (mx.zeros((1,), x) + mx.zeros((1,), y)).dtype, (a, b)
    for wrong in ((), (1,), (mx.int8, "x")):
        with pytest.raises(ValueError):
            mx.result_type(*wrong)


def test_categories():
    assert mx.issubdtype(mx.int8, mx.signedinteger) and mx.issubdtype(mx.signedinteger, mx.integer)
    assert mx.issubdtype(mx.bool_, mx.generic) and not mx.issubdtype(mx.bool_, mx.number)
    assert mx.issubdtype(mx.bfloat16, mx.floating) and not mx.issubdtype(mx.complex64, mx.floating)
    assert not mx.issubdtype(mx.floating, mx.float32) and mx.issubdtype(mx.float32, mx.float32)
    assert (
        repr(mx.floating) == "DtypeCategory.floating" and mx.DtypeCategory.floating is mx.floating
    )
    assert mx.isdtype(mx.int8, "integral") and mx.isdtype(mx.int8, (mx.int16, "signed integer"))
    assert not mx.isdtype(mx.bool_, "numeric") and mx.isdtype(mx.bool_, "bool")
    for wrong in ("x", 1, ("x",)):
        with pytest.raises(ValueError):
            mx.isdtype(mx.int8, wrong)


def test_limits():
    f = mx.finfo(mx.float16)
    assert (f.bits, f.max, f.min, f.eps, f.smallest_normal, f.dtype) == (
        16,
        65504,
        -65504,
        2**-10,
        2**-14,
        mx.float16,
    )
    assert mx.finfo(mx.complex64).dtype == mx.float32 and mx.finfo(mx.float64).eps == 2**-52
    assert repr(mx.finfo(mx.float32)) == "finfo(min=-3.40282e+38, max=3.40282e+38, dtype=float32)"
    i = mx.iinfo(mx.int8)
    assert (i.min, i.max, i.dtype) == (-128, 127, mx.int8) and mx.iinfo(mx.uint64).max == 2**64 - 1
    assert repr(i) == "iinfo(min=-128, max=127, dtype=int8)"
    with pytest.raises(ValueError):
        mx.finfo(mx.int32)
    with pytest.raises(ValueError):
        mx.iinfo(mx.bool_)


def test_devices():
    assert repr(mx.Device(mx.gpu, 1)) == "Device(gpu, 1)" and mx.Device(mx.cpu).type == mx.cpu
    assert mx.cpu == mx.Device(mx.cpu) == mx.cpu and mx.Device(mx.cpu) != mx.gpu
    assert repr(mx.cpu) == "DeviceType.cpu" and mx.cpu.value == 0 and mx.cpu is mx.DeviceType.cpu
    assert mx.is_available(mx.cpu) and mx.device_count(mx.cpu) == 1
    assert "device_name" in mx.device_info(mx.cpu) and mx.device_info() is not None
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    assert mx.default_device() == mx.cpu
    mx.set_default_device(before)
    for call in (
        mx.set_default_device,
        mx.default_stream,
        mx.new_stream,
        mx.is_available,
        mx.device_count,
        mx.Device,
        mx.stream,
    ):
        with pytest.raises(TypeError):
            call("cpu")


def test_streams():
    s = mx.new_stream(mx.cpu)
    assert s != mx.new_stream(mx.cpu) and s == s and s.device == mx.cpu
    assert repr(mx.default_stream(mx.cpu)).startswith("Stream(Device(cpu, 0), ")
    with mx.stream(s):
        assert mx.default_stream(mx.cpu) == s and mx.default_device() == mx.cpu
        a = mx.ones((3,)) + 1
    assert mx.default_stream(mx.cpu) != s
    assert mx.add(a, 1, stream=s).tolist() == [3, 3, 3] and mx.exp(a, stream=mx.cpu).shape == (3,)
    mx.synchronize(s)
    mx.synchronize()
    with pytest.raises(TypeError):
        mx.exp(a, stream="cpu")


def test_threads_wait_without_the_lock():
    """A thread that evaluates does not keep others from running."""
    a = mx.random.normal((700, 700), key=mx.random.key(0))
    done = []

    def work():
        with mx.stream(mx.cpu):
            x = mx.random.normal((700, 700), key=mx.random.key(1))
            for _ in range(3):
                x = x @ x * 0.01
            mx.eval(x)
            done.append(x.sum().item())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    mx.eval(a @ a)
    for t in threads:
        t.join()
    assert len(done) == 3


def test_memory():
    mx.reset_peak_memory()
    a = mx.ones((1000,)) + 1
    mx.eval(a)
    assert mx.get_peak_memory() >= 4000 and mx.get_active_memory() >= 4000
    before = mx.set_cache_limit(1 << 20)
    assert mx.set_cache_limit(before) == 1 << 20
    limit = mx.get_memory_limit()
    assert mx.set_memory_limit(limit) == limit
    mx.clear_cache()
    assert mx.get_cache_memory() == 0
    with pytest.raises(TypeError):
        mx.set_memory_limit(-1)


def test_metal_and_cuda(capfd):
    assert not mx.metal.is_available() and not mx.cuda.is_available()
    assert mx.metal.get_active_memory() == mx.get_active_memory()
    mx.metal.get_active_memory()
    assert capfd.readouterr().err.count("mx.metal.get_active_memory is deprecated") == 1


def test_array_api():
    info = mx.__array_namespace_info__()
    assert info.default_device() == mx.default_device() and mx.Device(mx.cpu) in info.devices()
    assert info.dtypes(kind="bool") == {"bool": mx.bool_}
    assert "float64" in info.dtypes(device=mx.Device(mx.cpu))
    with pytest.raises(ValueError):
        info.dtypes(kind="x")
