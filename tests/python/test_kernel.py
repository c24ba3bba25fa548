"""Kernels of one's own: mx.fast.vulkan_kernel."""

import os
import pathlib
import struct

import mlx.core as mx
import pytest

KERNELS = pathlib.Path(os.environ["TEST_KERNELS"])


@pytest.fixture(autouse=True)
def gpu():
    with mx.stream(mx.gpu):
        yield


def spirv(name):
    return mx.fast.vulkan_kernel(name, spirv=KERNELS / f"{name}.spv")


def scale_add(a, b, scale, **more):
    return spirv("scale_add")(
        inputs=[a, b],
        grid=(a.size, 1, 1),
        threadgroup=(32,),
        output_shapes=[a.shape],
        output_dtypes=[mx.float32],
        push_constants=struct.pack("fI", scale, a.size),
        **more,
    )[0]


def test_bindings():
    a, b = mx.arange(100, dtype=mx.float32), mx.ones(100)
    y = scale_add(a * 2, b, 3.0, specialization={1: 0.5})
    assert mx.array_equal(y + 1, a * 6 + 2.5)
    path = KERNELS / "scale_add.spv"
    assert mx.fast.vulkan_kernel("bytes", spirv=path.read_bytes()) is not None


def test_addresses():
    x = mx.arange(70, dtype=mx.float32)
    (y,) = spirv("addresses")(
        inputs=[x],
        groups=(2, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[mx.float32],
        push_constants=struct.pack("I", 70),
    )
    assert mx.array_equal(y, 2 * x)


def test_init_value_and_atomics():
    x = mx.arange(64, dtype=mx.uint32)
    (y,) = spirv("count")(
        inputs=[x], grid=(64,), output_shapes=[(8,)], output_dtypes=[mx.uint32], init_value=2
    )
    assert y.tolist() == [10] * 8


def test_glsl(capfd):
    kernel = mx.fast.vulkan_kernel(
        name="axpy",
        input_names=["x", "k"],
        output_names=["y"],
        source="uint i = gl_GlobalInvocationID.x; y[i] = T(twice(float(x[i])) * float(k[0]));",
        header="float twice(float v) { return 2.0 * v; }",
    )
    x = mx.arange(50, dtype=mx.float16)
    call = {
        "inputs": [x, 3.0],
        "template": [("T", mx.float16), ("unused", 4), ("flag", True)],
        "grid": (50, 1, 1),
        "threadgroup": (16, 1, 1),
        "output_shapes": [(50,)],
        "output_dtypes": [mx.float16],
        "verbose": True,
    }
    try:
        (y,) = kernel(**call)
    except RuntimeError as e:  # without libshaderc
        assert "glslc -fshader-stage=compute" in str(e)
        return
    assert mx.array_equal(y, x * 6)
    with pytest.raises(ValueError, match="does not compile"):
        mx.fast.vulkan_kernel("bad", [], ["y"], "y[0] = what;")(
            inputs=[], grid=(1,), output_shapes=[(1,)], output_dtypes=[mx.float32]
        )


def test_transformations():
    """Compiled functions, and a gradient by a custom function."""

    @mx.compile
    def twice(a):
        return scale_add(a, a, 1.0) * 1.5

    a = mx.arange(8, dtype=mx.float32)
    for _ in range(3):
        assert mx.array_equal(twice(a), 3 * a)

    @mx.custom_function
    def triple(a):
        return scale_add(a, a, 2.0)

    @triple.vjp
    def triple_vjp(primals, cotangent, output):
        return scale_add(cotangent, cotangent, 2.0)

    assert mx.grad(lambda v: triple(v).sum())(a).tolist() == [3] * 8
    with pytest.raises(Exception, match="VulkanKernel"):
        mx.grad(lambda v: scale_add(v, v, 2.0).sum())(a)


def test_export(tmp_path):
    path = str(tmp_path / "kernels.mlxfn")

    def f(a):
        (counts,) = spirv("count")(
            inputs=[a.astype(mx.uint32)],
            grid=(a.size,),
            output_shapes=[(8,)],
            output_dtypes=[mx.uint32],
            init_value=3,
        )
        return scale_add(a[::-1], a, 2.0, specialization={1: 1.5}), counts

    a = mx.arange(16, dtype=mx.float32)
    mx.export_function(path, f, a)
    y, counts = mx.import_function(path)(a)
    assert mx.array_equal(y, a[::-1] * 2 + a + 1.5)
    assert counts.tolist() == [5] * 8
    data = pathlib.Path(path).read_bytes()
    at = data.index(bytes.fromhex("03022307"))
    pathlib.Path(path).write_bytes(data[:at] + b"0123" + data[at + 4 :])
    with pytest.raises(ValueError, match="does not begin as SPIR-V does"):
        mx.import_function(path)


def test_streams():
    s = mx.new_stream(mx.gpu)
    a = mx.arange(1000, dtype=mx.float32)
    y = scale_add(a, a, 1.0, stream=s)
    z = mx.add(y, 1, stream=mx.cpu)
    assert mx.array_equal(z, 2 * a + 1)


def test_errors():
    a = mx.ones(4)
    with pytest.raises(ValueError, match="Only supports the GPU"):
        scale_add(a, a, 1.0, stream=mx.cpu)
    with pytest.raises(ValueError, match="Either source or spirv"):
        mx.fast.vulkan_kernel("none")
    with pytest.raises(ValueError, match="does not begin as SPIR-V does"):
        mx.fast.vulkan_kernel("none", spirv=b"0123" * 6)
    with pytest.raises(ValueError, match="Binding 0 is a uniform buffer"):
        spirv("uniform_block")
    with pytest.raises(Exception, match="no_such.spv"):
        spirv("no_such")
    with pytest.raises(TypeError):
        mx.fast.vulkan_kernel("names", [1], ["y"], "")
    kernel = spirv("scale_add")
    good = {"inputs": [a, a], "grid": (4,), "output_shapes": [(4,)], "output_dtypes": [mx.float32]}
    for change, error in (
        ({"inputs": 3}, TypeError),
        ({"output_shapes": 3}, TypeError),
        ({"output_dtypes": [3]}, TypeError),
        ({"output_dtypes": []}, ValueError),
        ({"grid": (1, 2, 3, 4)}, ValueError),
        ({"groups": (1,)}, ValueError),
        ({"template": [("x", "y")]}, ValueError),
        ({"specialization": {1: 2**40}}, ValueError),
        ({"specialization": 3}, TypeError),
        ({"push_constants": 3}, TypeError),
        ({"push_constants": b"12345678", "inputs": [a]}, ValueError),
    ):
        with pytest.raises(error):
            kernel(**{**good, **change})
    with pytest.raises(TypeError):
        kernel([a, a])
    with pytest.raises(TypeError):
        mx.fast._vulkan_kernel_call(3, **good)
