"""What is ours: counters, settings, traces; and groups of one process."""

import json
import subprocess
import sys

import mlx.core as mx
import pytest


def test_counters_move_on_the_gpu():
    before = mx.vulkan.statistics()
    with mx.stream(mx.gpu):
        mx.eval(mx.exp(mx.arange(1000, dtype=mx.float32)))
    after = mx.vulkan.statistics()
    assert after["dispatches"] > before["dispatches"] and set(before) == set(after)
    assert mx.vulkan.is_available() and mx.vulkan.device_info(mx.gpu) == mx.device_info(mx.gpu)


def test_plans_tell_how_many_results_there_are():
    """A graph that differs from the last one in the number of results is not run like that one."""
    x = mx.array([[float(i)] * 64 for i in range(3)])
    with mx.stream(mx.gpu):
        for turned, mode, number in ((False, "affine", 3), (True, "nvfp4", 2), (True, "affine", 3)):
            parts = mx.quantize(x[:, ::-1] if turned else x[1:], mode=mode)
            mx.eval(parts[0])
            assert len([p.tolist() for p in parts]) == number


def test_settings():
    name = "MLX_VK_ENABLE_PLAN_CACHE"
    before = mx.vulkan.settings()[name]
    mx.vulkan.set_setting(name, False)
    assert mx.vulkan.settings()[name] == "0"
    mx.vulkan.set_setting(name)
    assert mx.vulkan.settings()[name] == "1" == before
    with pytest.raises(KeyError):
        mx.vulkan.set_setting("MLX_NO_SUCH", 1)
    with pytest.raises(ValueError):
        mx.vulkan.set_setting(name, "neither")


def test_trace(tmp_path):
    path = tmp_path / "trace.json"
    code = "import sys, mlx.core as mx; mx.vulkan.trace(sys.argv[1]); mx.eval(mx.ones(3) + 1)"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=120)
    assert json.loads(path.read_text())


def test_a_group_of_one(device):
    group = mx.distributed.init()
    x = mx.arange(4, dtype=mx.float32)
    assert (group.rank(), group.size()) == (0, 1)
    for name in ("all_sum", "all_max", "all_min", "all_gather", "sum_scatter"):
        for args in ({}, {"group": group}):
            assert getattr(mx.distributed, name)(x, **args).tolist() == [0, 1, 2, 3]
    for make in (
        lambda: mx.eval(mx.distributed.send(x, 0)),
        lambda: mx.eval(mx.distributed.recv((2,), mx.float32, 0)),
        lambda: mx.eval(mx.distributed.recv_like(x, 0, group=group)),
        lambda: group.split(0),
    ):
        with pytest.raises((ValueError, RuntimeError)):
            make()
    with pytest.raises(TypeError):
        mx.distributed.all_sum(x, group=3)
    with pytest.raises((ValueError, RuntimeError)):
        mx.distributed.init(strict=True)
    for backend in ("jaccl", "nccl", "ring"):
        assert mx.distributed.init(backend=backend).size() == 1
        with pytest.raises(RuntimeError):
            mx.distributed.init(backend=backend, strict=True)
    assert mx.distributed.init(backend="jaccl", all_gather_factory=print).size() == 1
    with pytest.raises(ValueError):
        mx.distributed.init(backend="mpi", all_gather_factory=print)
    with pytest.raises(TypeError):
        mx.distributed.init(backend="jaccl", all_gather_factory="print")
    assert isinstance(mx.distributed.is_available(), bool)
