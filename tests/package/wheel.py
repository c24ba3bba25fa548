"""The wheel of the Python package: installed where nothing else is, it works and has what it needs.

usage: wheel.py BUILD

Ends with 77, and says why, where the tools for wheels could not be had.
"""

import glob
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

USE = """
import pathlib, sys
import mlx.core as mx, mlx.nn as nn, mlx.optimizers

mx.set_default_device(getattr(mx, sys.argv[1]))
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = mlx.optimizers.Adam(0.02)
x = mx.random.normal((64, 4), key=mx.random.key(1))
y = x.sum(axis=1, keepdims=True)
step = nn.value_and_grad(model, lambda m: ((m(x) - y) ** 2).mean())
losses = []
for _ in range(40):
    loss, gradients = step(model)
    optimizer.update(model, gradients)
    losses.append(loss.item())
assert losses[-1] < 0.3 * losses[0], losses
# Products and LAPACK are those of the library in the wheel, and no other one is there.
matrix = mx.random.normal((64, 64), key=mx.random.key(2))
u, s, v = mx.linalg.svd(matrix, stream=mx.cpu)
assert mx.allclose((u * s) @ v, matrix, atol=1e-3)
files = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()}
carried = [f for f in files if "openblas" in f or "cjson" in f]
assert len(carried) >= 2 and all("/mlx.libs/" in f for f in carried), carried
print(mx.__version__, mx.__file__)
"""

EDITED = "import mlx.core as mx, mlx.nn as nn; print(mx.__file__, nn.__file__)"

LAUNCHED = """
import mlx.core as mx
group = mx.distributed.init()
assert mx.distributed.all_sum(mx.array(1.0), stream=mx.cpu).item() == group.size() == 2
"""


def run(*command, **options):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode:
        print(*command, done.stdout, sep="\n")
        sys.exit(done.returncode)
    return done.stdout


def check_content(wheel):
    """A platform that says how old a C library may be, and everything that belongs in."""
    assert "-cp311-abi3-manylinux_" in wheel.name, wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for name in (
        "core.abi3.so",
        "core/__init__.pyi",
        "core/fast.pyi",
        "py.typed",
        "nn/__init__.py",
    ):
        assert f"mlx/{name}" in names, name
    for library in ("openblas", "cjson", "gfortran"):
        assert any(n.startswith(f"mlx.libs/lib{library}") for n in names), library
    assert not any(n.endswith(".pyc") or "__pycache__" in n for n in names), names
    assert not any("vulkan" in n.lower() for n in names if n.endswith(".so")), names


def clean_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_"))}


def check_installed(wheel, folder):
    """In a virtual environment, away from the source tree and from what the environment says."""
    python = folder / "venv/bin/python"
    run(sys.executable, "-m", "venv", str(folder / "venv"))
    run(str(python), "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(wheel))
    env = clean_environment()
    for device in ("cpu", "gpu"):
        said = run(str(python), "-c", USE, device, cwd=folder, env=env)
        assert str(folder) in said, said
    launch = folder / "venv/bin/mlx.launch"
    assert "--hostfile" in run(str(launch), "--help", cwd=folder, env=env)
    script = folder / "sum.py"
    script.write_text(LAUNCHED)
    env["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    run(str(launch), "-n", "2", str(script), cwd=folder, env=env, timeout=240)


def check_editable(build, folder):
    """An editable installation takes the Python files from where they are edited."""
    run(sys.executable, "-m", "venv", str(folder / "editable"))
    python = folder / "editable/bin/python"
    (packages,) = (folder / "editable/lib").glob("python*/site-packages")
    (tools,) = (build / "wheel-tools/lib").glob("python*/site-packages")
    (packages / "tools.pth").write_text(f"{tools}\n")
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    settings = f"build-dir={folder / 'build'}", f"cmake.define.MLX_PYTHON_FROM={build}"
    run(*install, *(f"--config-settings={s}" for s in settings), "-e", str(ROOT))
    said = run(str(python), "-c", EDITED, cwd=folder, env=clean_environment())
    core, layers = said.split()
    assert core.startswith(str(folder)) and layers == str(ROOT / "python/mlx/nn/__init__.py"), said


def main(build):
    build = pathlib.Path(build).resolve()
    out = build / "wheel-check"
    maker = [str(ROOT / "tools/make_wheel.sh"), str(build), str(out), f"MLX_PYTHON_FROM={build}"]
    made = subprocess.run(maker)
    if made.returncode:
        return made.returncode
    (wheel,) = map(pathlib.Path, glob.glob(str(out / "*.whl")))
    check_content(wheel)
    with tempfile.TemporaryDirectory() as folder:
        check_installed(wheel, pathlib.Path(folder))
        check_editable(build, pathlib.Path(folder))
    print(f"{wheel.name}: {wheel.stat().st_size >> 20} MiB")
    return 0


sys.exit(main(*sys.argv[1:]))
