"""The examples run and learn what they are to learn, in fewer steps where the GPU is software."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import mlx.core as mx
import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples/python"
SOFTWARE = "llvmpipe" in str(mx.device_info(mx.gpu)["device_name"])

# name: steps on the CPU and on a software device, and what the last number must be below (above, if
# negative) after those.
CASES = {
    "linear_regression": (100, 100, 0.01, 0.01),
    "digits": (150, 60, -0.8, -0.3),
    "transformer": (250, 20, -0.9, -0.1),
    "lora": (150, 40, 0.01, 0.5),
    "custom_gradient": (100, 60, 0.001, 0.1),
    "vmap": (150, 100, 0.05, 0.1),
    "data_parallel": (60, 40, 2.0, 20.0),
}


def run(*command):
    env = os.environ | {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        env=env,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def last_number(text):
    return float(re.findall(r"-?\d+\.\d+", text)[-1])


def test_all_have_a_case():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(CASES)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("name", CASES)
def test_example(name, device):
    few = device == "gpu" and SOFTWARE
    steps, bound = CASES[name][few], CASES[name][2 + few]
    said = run(sys.executable, EXAMPLES / f"{name}.py", "--device", device, "--steps", str(steps))
    value = last_number(said)
    assert value > -bound if bound < 0 else value < bound, said


def test_processes():
    """One model in two processes is better than one with half of the samples."""
    if not shutil.which("mpirun"):
        pytest.skip("no mpirun here")
    launch = [sys.executable, "-m", "mlx._distributed_utils.launch", "-n", "2"]
    script = str(EXAMPLES / "data_parallel.py")
    said = run(*launch, script, "--device", "cpu", "--steps", "60")
    assert "2 processes" in said
    assert last_number(said) < 2.0, said
