"""Functions in files, and graphs as pictures."""

import io
import json

import mlx.core as mx
import numpy as np
import pytest


def test_export_and_import(device, tmp_path):
    path = str(tmp_path / "f.mlxfn")
    w = mx.array([1.0, 2.0])
    x = mx.array([3.0, 4.0])

    def f(a, *, scale):
        return mx.exp(a * w) * scale, a

    mx.export_function(path, f, x, scale=mx.array(2.0), metadata=json.dumps({"n": 1}))
    got, metadata = mx.import_function(path, return_metadata=True)
    assert json.loads(metadata) == {"n": 1}
    for out in (got(x, scale=mx.array(2.0)), got((x,), {"scale": mx.array(2.0)})):
        assert type(out) is tuple and len(out) == 2
        np.testing.assert_allclose(np.array(out[0]), 2 * np.exp([3, 8]), rtol=1e-5)
    with pytest.raises(ValueError):
        got(x)
    with pytest.raises(ValueError):
        got(mx.ones(3), scale=mx.array(2.0))


def test_arguments_as_list_and_dict(tmp_path):
    path, x = str(tmp_path / "f.mlxfn"), mx.array(2.0)
    mx.export_function(path, lambda a, b, *, k: a * b - k, [x, x], {"k": x})
    assert mx.import_function(path)(x, x, k=x)[0].item() == 2
    mx.export_function(path, lambda *, k: [k], {"k": x})
    assert mx.import_function(path)(k=x)[0].item() == 2
    mx.export_function(path, lambda: x + 1)
    assert mx.import_function(path)()[0].item() == 3


def test_names_may_be_of_the_call_alone(tmp_path):
    path, x = str(tmp_path / "f.mlxfn"), mx.array(2.0)
    mx.export_function(path, lambda a, b: a - b, x, x)
    f = mx.import_function(path)
    assert f(mx.array(5.0), z=x)[0].item() == 3 and f(b=mx.array(5.0), c=x)[0].item() == 3
    mx.export_function(path, lambda *, k: [k], k=x)
    with pytest.raises(ValueError):
        mx.import_function(path)(x)


def test_exporter_adds_graphs(device, tmp_path):
    path, x = str(tmp_path / "f.mlxfn"), mx.array([1.0])
    with mx.exporter(path, lambda *a, **k: a[0] if len(a) == 1 else a[0] * a[1]) as e:
        e(x)
        e(x, x)
        with pytest.raises(RuntimeError):
            e(x)
    with pytest.raises(RuntimeError):
        e(x, x, x)
    f = mx.import_function(path)
    assert f(x)[0].item() == 1 and f(x + 1, x + 2)[0].item() == 6
    assert mx.import_function(path, return_metadata=True)[1] == ""


def test_shapeless_export(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    mx.export_function(path, lambda a, b: mx.exp(a) * b, mx.ones(2), mx.ones(2), shapeless=True)
    f = mx.import_function(path)
    for n in (1, 2, 5):
        assert f(mx.zeros(n), mx.full((n,), 3.0))[0].tolist() == [3.0] * n


def mean_and_variance(x):
    return mx.mean(x, axis=0), mx.var(x), mx.std(x, axis=-1, ddof=1)


def updated(x, y):
    x = x + 0
    x[:, 1:] = y
    return x


def gradient(x, y):
    return mx.grad(lambda x, y: mx.square(x - y).mean(), argnums=(0, 1))(x, y)


@pytest.mark.parametrize(
    "f, shapes, others",
    [
        (lambda x: x * 2 + 1, [(2, 2)], [(3, 4)]),
        (lambda x, y: x + y, [(2, 3), (3,)], [(4, 5), (5,)]),
        (lambda x, y: x + y, [(2, 2), (2, 2)], [(1, 5), (4, 1)]),
        (lambda x, y: mx.where(x > 0, y, 0), [(2, 2), (2,)], [(3, 3), (3,)]),
        (lambda x, y: x @ y, [(4, 2, 2), (2, 3)], [(7, 3, 5), (5, 3)]),
        (lambda x, y: x @ y, [(4, 1, 2, 2), (5, 2, 3)], [(7, 1, 3, 2), (2, 2, 3)]),
        (lambda c, x, y: mx.addmm(c, x, y), [(3,), (2, 4), (4, 3)], [(5,), (6, 4), (4, 5)]),
        (lambda x: x.reshape(x.shape[0] * x.shape[1], -1), [(2, 3, 4)], [(2, 3, 8)]),
        (lambda x: x.swapaxes(0, 1).reshape(-1), [(3, 4)], [(2, 8)]),
        (lambda x: x + mx.zeros_like(x) + mx.full_like(x, 2.0), [(3, 4)], [(2, 8)]),
        (lambda x, y: mx.allclose(x, y), [(2, 4), (4,)], [(3, 5), (5,)]),
        (mean_and_variance, [(3, 4)], [(2, 8)]),
        (gradient, [(3, 4), (4,)], [(2, 8), (8,)]),
        (mx.vmap(lambda x, y: x * y, in_axes=(1, None)), [(3, 4), (3,)], [(5, 2), (5,)]),
        (mx.vmap(lambda x, y: mx.mean(x @ y)), [(2, 3, 4), (2, 4)], [(2, 5, 6), (2, 6)]),
        (lambda x: x[1], [(2, 3)], [(5, 8)]),
        (lambda x: mx.take(x, mx.array([1, 0]), axis=0), [(2, 3)], [(4, 8)]),
        (lambda x: mx.take(x, mx.array([1, 0]), axis=1), [(2, 3)], [(4, 8)]),
        (updated, [(2, 3), (2, 2)], [(5, 8), (5, 7)]),
        (lambda x, y: x.at[mx.array([1, 0])].add(y), [(2, 3), (3,)], [(4, 3), (3,)]),
        (lambda x: mx.split(x, 2, axis=1)[1], [(2, 4)], [(5, 4)]),
        (mx.grad(lambda x: mx.square(mx.split(x, 2, axis=1)[1]).sum()), [(2, 4)], [(5, 4)]),
        (lambda x: mx.pad(x, ((0, 0), (1, 2))), [(2, 3)], [(3, 8)]),
        (lambda x: mx.fft.rfft(x).abs(), [(2, 4)], [(5, 4)]),
        (lambda x: mx.hadamard_transform(x), [(2, 4)], [(5, 4)]),
    ],
)
def test_shapeless_export_of_sizes_that_follow(f, shapes, others, device, tmp_path):
    def arrays(shapes):
        return [mx.random.normal(s, key=mx.random.key(i)) for i, s in enumerate(shapes)]

    path = str(tmp_path / "f.mlxfn")
    mx.export_function(path, f, *arrays(shapes), shapeless=True)
    exported = mx.import_function(path)
    for sizes in (shapes, others):
        wanted = f(*arrays(sizes))
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for a, b in zip(exported(*arrays(sizes)), wanted, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "f, shape, other, op",
    [
        (lambda x: x[:, 1:], (2, 3), (2, 8), "Slice"),
        (lambda x: x[:, 1:], (2, 3), (5, 3), "Slice"),
        (lambda x: x[:, ::-1], (2, 3), (2, 8), "Slice"),
        (lambda x: mx.grad(lambda x: x[:, 1:].sum())(x), (2, 3), (2, 8), "Slice"),
        (lambda x: mx.split(x, 2, axis=1)[1], (2, 4), (2, 8), "Split"),
        (lambda x: x.at[:, 1:].add(1.0), (2, 3), (2, 8), "SliceUpdate Sum"),
        (lambda x: updated(x, mx.array(1.0)), (2, 3), (2, 8), "SliceUpdate"),
        (lambda x: x.at[mx.array([0, 1])].add(1.0), (2, 3), (2, 8), "Scatter Sum"),
        (lambda x: x.at[mx.array([0, 1])].maximum(1.0), (2, 3), (2, 8), "Scatter Max"),
        (lambda x: mx.as_strided(x, (2, 2), (1, 1), 0), (2, 3), (2, 8), "AsStrided"),
        (lambda x: mx.fft.fft(x, n=4), (2, 4), (2, 8), "FFT"),
        (lambda x: mx.hadamard_transform(x), (2, 4), (2, 8), "Hadamard"),
        (lambda x: x * mx.random.uniform(shape=x.shape), (1, 4), (2, 4), "RandomBits"),
    ],
)
def test_shapeless_export_of_sizes_that_do_not_follow(f, shape, other, op, tmp_path):
    path = str(tmp_path / "f.mlxfn")
    mx.random.seed(1)
    mx.export_function(path, f, mx.ones(shape), shapeless=True)
    exported = mx.import_function(path)
    assert exported(mx.ones(shape))[0].shape == f(mx.ones(shape)).shape
    with pytest.raises(ValueError) as e:
        exported(mx.ones(other))
    assert f"[Primitive::output_shapes] {op} cannot infer output shapes." in str(e.value)


def test_shapeless_export_of_sizes_that_do_not_fit(tmp_path):
    path, x = str(tmp_path / "f.mlxfn"), mx.ones((2, 3))
    mx.export_function(path, lambda x: mx.broadcast_to(x, (4, 2, 3)), x, shapeless=True)
    with pytest.raises(ValueError, match=r"Shapes \(2,8\) and \(4,2,3\) cannot be broadcast"):
        mx.import_function(path)(mx.ones((2, 8)))
    mx.export_function(path, lambda x: x.reshape(3, 2), x, shapeless=True)
    with pytest.raises(ValueError, match=r"Cannot reshape array of size 16 into shape \(3,2\)"):
        mx.import_function(path)(mx.ones((2, 8)))


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda p, x: mx.export_function(p, lambda a: {"a": a}, x), ValueError),
        (lambda p, x: mx.export_function(p, lambda a: 1, x), ValueError),
        (lambda p, x: mx.export_function(p, lambda a: a, 1), ValueError),
        (lambda p, x: mx.export_function(p, lambda a: a, [x, 1]), ValueError),
        (lambda p, x: mx.export_function(p, lambda a: a, x, k=1), ValueError),
        (lambda p, x: mx.export_function(p, lambda a: a, {"k": x}, k=x), ValueError),
        (lambda p, x: mx.export_function(p, lambda a: a, [x], [x], [x]), ValueError),
        (lambda p, x: mx.export_function(p, 3, x), TypeError),
        (lambda p, x: mx.export_function(None, abs, x), TypeError),
        (lambda p, x: mx.export_function(p), TypeError),
        (lambda p, x: mx.export_function(p, abs, x, metadata=3), TypeError),
        (lambda p, x: mx.export_function(p, abs, x, shapeless=3), TypeError),
        (lambda p, x: mx.export_function(p + "/no/f", lambda a: a, x), RuntimeError),
        (lambda p, x: mx.export_function(p, lambda a: 1 / 0, x), ZeroDivisionError),
        (lambda p, x: mx.import_function(p), RuntimeError),
        (lambda p, x: mx.import_function(3), TypeError),
        (lambda p, x: mx.exporter(p, 3), TypeError),
    ],
)
def test_what_is_refused(tmp_path, make, error):
    with pytest.raises(error):
        make(str(tmp_path / "f.mlxfn"), mx.array(1.0))


def test_a_callback_is_told_the_graph():
    told = []
    c, w = mx.array([1.0, 2.0]), mx.array([3.0, 4.0])

    def f(a, *, k):
        return mx.log(mx.abs(a - k)).astype(mx.int32), mx.softmax(w.reshape(1, 2), axis=-1)

    mx.export_function(told.append, f, c, k=c)
    assert [t["type"] for t in told[:4]] == ["inputs", "keyword_inputs", "outputs", "constants"]
    assert told[0]["inputs"] == [("A", (2,), mx.float32), ("B", (2,), mx.float32)]
    assert told[1]["keywords"] == [("k", "B")]
    assert [o[1:] for o in told[2]["outputs"]] == [((2,), mx.int32), ((1, 2), mx.float32)]
    nodes = {t["name"]: t for t in told[4:]}
    assert list(nodes)[:4] == ["Subtract", "Abs", "Log", "AsType"]
    assert nodes["Subtract"]["inputs"] == told[0]["inputs"] and nodes["Log"]["arguments"] == [2]
    assert nodes["AsType"]["arguments"] == [mx.int32]
    assert nodes["Softmax"]["arguments"] == [False]
    with pytest.raises(ZeroDivisionError):
        mx.export_function(lambda event: 1 / 0, f, c, k=c)
    with pytest.raises(ValueError):
        mx.export_function(told.append, f, c, k=c, metadata="text")


def test_dot(tmp_path):
    x = mx.array(1.0)
    text = io.StringIO()
    mx.export_to_dot(text, [x + 1, {"a": x * 2}], start=x)
    assert text.getvalue().startswith("digraph") and "start" in text.getvalue()
    mx.export_to_dot(str(tmp_path / "g.dot"), mx.exp(x))
    assert "Exp" in (tmp_path / "g.dot").read_text()
    for args in ((3, x), (io.StringIO(), 1)):
        with pytest.raises(ValueError):
            mx.export_to_dot(*args)
