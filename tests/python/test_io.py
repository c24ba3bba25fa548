"""Files of arrays: all formats, as paths and as file objects."""

import io
import pathlib

import mlx.core as mx
import numpy as np
import pytest

DTYPES = [
    "bool_",
    "uint8",
    "int16",
    "uint32",
    "int64",
    "float16",
    "float32",
    "bfloat16",
    "complex64",
]


def array(name):
    return (mx.arange(12).reshape(3, 4) % 5).astype(getattr(mx, name))


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and mx.array_equal(a, b).item()


# ---- npy ----


@pytest.mark.parametrize("name", DTYPES)
def test_npy_of_every_dtype(device, tmp_path, name):
    a = array(name)
    mx.save(str(tmp_path / "a"), a)
    assert same(mx.load(str(tmp_path / "a.npy")), a)


def test_npy_goes_to_numpy_and_back(device, tmp_path):
    n = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for order in "CF":
        np.save(tmp_path / "n.npy", np.asarray(n, order=order))
        np.testing.assert_array_equal(np.array(mx.load(tmp_path / "n.npy")), n)
    for a in (mx.array(n).transpose(2, 0, 1), mx.array(n)[:, ::-2], mx.array(3.5)):
        mx.save(tmp_path / "m.npy", a)
        np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), np.array(a))


def test_loading_is_lazy(tmp_path):
    path = tmp_path / "a.npy"
    mx.save(path, mx.ones(3))
    a = mx.load(path)
    assert (a + 1).tolist() == [2] * 3


# ---- npz ----


@pytest.mark.parametrize(
    "save, numpy_save", [(mx.savez, np.savez), (mx.savez_compressed, np.savez_compressed)]
)
def test_npz(device, tmp_path, save, numpy_save):
    a, b = mx.ones((2, 3)), mx.arange(1000)
    save(str(tmp_path / "z"), a, b, named=b)
    for got in (mx.load(str(tmp_path / "z.npz")), np.load(tmp_path / "z.npz")):
        assert sorted(got) == ["arr_0", "arr_1", "named"]
        np.testing.assert_array_equal(np.array(got["named"]), np.array(b))
    numpy_save(tmp_path / "n.npz", x=np.array(a))
    assert same(mx.load(tmp_path / "n.npz")["x"], a)
    file = io.BytesIO()
    save(file, a, q=b)
    file.seek(0)
    got = mx.load(file, format="npz")
    assert same(got["arr_0"], a) and same(got["q"], b)
    file.seek(0)
    assert sorted(np.load(file)) == ["arr_0", "q"]


# ---- safetensors and GGUF ----


@pytest.mark.parametrize("name", DTYPES)
def test_safetensors(device, tmp_path, name):
    a = array(name)
    arrays, path = {"a.weight": a, "b": mx.array([], a.dtype)}, str(tmp_path / "s")
    mx.save_safetensors(path, arrays, {"key": "value"})
    got, metadata = mx.load(path + ".safetensors", return_metadata=True)
    assert metadata == {"key": "value"} and sorted(got) == sorted(arrays)
    assert all(same(got[k], arrays[k]) for k in arrays)
    mx.save_safetensors(path, arrays)
    assert mx.load(path + ".safetensors", return_metadata=True)[1] == {}


def test_gguf(tmp_path):
    path = str(tmp_path / "g.gguf")
    arrays = {"a": mx.arange(6, dtype=mx.float32).reshape(2, 3), "h": mx.ones(32, mx.float16)}
    metadata = {
        "text": "é",
        "list": ["a", "b"],
        "number": mx.array(3),
        "vector": mx.array([1.0, 2.0]),
    }
    mx.save_gguf(path, arrays, metadata)
    got, meta = mx.load(path, return_metadata=True)
    assert all(same(got[k], arrays[k]) for k in arrays)
    assert meta["text"] == "é" and meta["list"] == ["a", "b"]
    assert meta["number"].item() == 3 and meta["vector"].tolist() == [1, 2]
    mx.save_gguf(path, arrays)
    assert mx.load(path, return_metadata=True)[1] == {}


# ---- file objects ----


def test_file_objects(device, tmp_path):
    a = array("float32")
    for save, form in (
        (mx.save, "npy"),
        (lambda f, x: mx.save_safetensors(f, {"x": x}), "safetensors"),
    ):
        memory = io.BytesIO()
        save(memory, a)
        memory.seek(0)
        got = mx.load(memory, format=form)
        assert same(got["x"] if isinstance(got, dict) else got, a)
        path = tmp_path / ("f." + form)
        with open(path, "wb") as f:
            save(f, a)
        with open(path, "rb") as f, open(path, "rb", buffering=0) as raw:
            for file in (f, raw):
                got = mx.load(file)
                assert same(got["x"] if isinstance(got, dict) else got, a)


def test_several_arrays_in_one_file_object():
    memory = io.BytesIO()
    for v in (1.0, 2.0):
        mx.save(memory, mx.array([v]))
    memory.seek(0)
    assert mx.load(memory, format="npy").tolist() == [1]


class Broken(io.BytesIO):
    def readinto(self, buffer):
        raise KeyError("readinto")

    def write(self, data):
        raise KeyError("write")


def test_exceptions_of_file_objects_come_out():
    memory = io.BytesIO()
    mx.save(memory, mx.ones(3))
    for form in ("npy", "safetensors"):
        with pytest.raises(KeyError, match="readinto"):
            mx.load(Broken(memory.getvalue()), format=form)
    for save in (mx.save, lambda f, x: mx.save_safetensors(f, {"x": x})):
        with pytest.raises(KeyError, match="write"):
            save(Broken(), mx.ones(3))


# ---- what is refused ----


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda d: mx.load(3), ValueError),
        (lambda d: mx.load(str(d / "none")), ValueError),
        (lambda d: mx.load(str(d / "a.foo")), ValueError),
        (lambda d: mx.load(str(d / "none.npy")), RuntimeError),
        (lambda d: mx.load(str(d / "none.safetensors")), RuntimeError),
        (lambda d: mx.load(str(d / "none.npz")), ValueError),
        (lambda d: mx.load(str(d / "none.gguf")), ValueError),
        (lambda d: mx.load(str(d / "a.npy"), format="npz"), ValueError),
        (lambda d: mx.load(str(d / "a.npy"), return_metadata=True), ValueError),
        (lambda d: mx.load(io.BytesIO(b"")), AttributeError),
        (lambda d: mx.load(io.BytesIO(b"xx"), format="npy"), RuntimeError),
        (lambda d: mx.load(io.BytesIO(b"xx"), format="npz"), ValueError),
        (lambda d: mx.load(io.BytesIO(b"xx"), format="gguf"), ValueError),
        (lambda d: mx.save(3, mx.ones(1)), ValueError),
        (lambda d: mx.save(str(d / "b"), 1.0), TypeError),
        (lambda d: mx.save(io.StringIO(), mx.ones(1)), TypeError),
        (lambda d: mx.savez(str(d / "z"), mx.ones(1), arr_0=mx.ones(1)), ValueError),
        (lambda d: mx.savez(str(d / "z"), 1), TypeError),
        (lambda d: mx.savez(), TypeError),
        (lambda d: mx.save_safetensors(str(d / "s"), {"a": 1}), TypeError),
        (lambda d: mx.save_safetensors(str(d / "s"), {1: mx.ones(1)}), TypeError),
        (lambda d: mx.save_safetensors(str(d / "s"), {}, {"k": 1}), ValueError),
        (lambda d: mx.save_safetensors(str(d / "s"), {}, 1), TypeError),
        (lambda d: mx.save_safetensors(3, {}), ValueError),
        (lambda d: mx.save_gguf(io.BytesIO(), {}), ValueError),
        (lambda d: mx.save_gguf(str(d / "g"), {"a": mx.ones(1)}, {"k": 1}), TypeError),
        (lambda d: mx.save_gguf(str(d / "g"), {"a": mx.ones(1)}, {"k": ["a", 1]}), TypeError),
        (lambda d: mx.save(str(d / "no" / "such"), mx.ones(1)), RuntimeError),
    ],
)
def test_what_is_refused(tmp_path, make, error):
    mx.save(tmp_path / "a.npy", mx.ones(2))
    with pytest.raises(error):
        make(tmp_path)


def test_a_file_that_is_cut_off(tmp_path):
    path = tmp_path / "a.npy"
    mx.save(path, mx.ones(1000))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RuntimeError):
        mx.eval(mx.load(path))


def test_saving_over_a_file_that_is_loaded(tmp_path):
    path = pathlib.Path(tmp_path / "a.npy")
    mx.save(path, mx.ones(1000))
    a = mx.load(path)
    mx.save(path, mx.zeros(1000))
    assert a.sum().item() == 1000 and mx.load(path).sum().item() == 0
