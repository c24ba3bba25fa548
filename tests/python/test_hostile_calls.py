"""Everything that mlx.core has is called with wrong values: an exception or a result, no crash.

MLX_HOSTILE_CALLS says how many calls, MLX_HOSTILE_SEED which ones. hostile_calls.py makes them, in
processes that are started anew behind a call that ends one.
"""

import os
import pathlib
import subprocess
import sys

import pytest

CALLS = int(os.environ.get("MLX_HOSTILE_CALLS", 2400))
SEED = os.environ.get("MLX_HOSTILE_SEED", "1")
SECONDS = 60  # without a new call
MAKER = pathlib.Path(__file__).with_name("hostile_calls.py")


def run_calls(device, first, count, folder):
    """The lines that the process told, how it ended and what it complained about."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-X", "faulthandler", "-B", str(MAKER), device, SEED]
    with open(folder / "told", "w+") as told, open(folder / "complaints", "w+") as complaints:
        process = subprocess.Popen(
            [*command, str(first), str(count)], stdout=told, stderr=complaints, cwd=folder
        )
        size = -1
        while True:
            try:
                ended = process.wait(SECONDS)
                break
            except subprocess.TimeoutExpired:
                before, size = size, os.fstat(told.fileno()).st_size
                if size == before:
                    process.kill()
                    process.wait()
                    ended = f"hangs for {SECONDS} s"
                    break
        told.seek(0)
        complaints.seek(0)
        return told.read().splitlines(), ended, complaints.read()


def faults(device, count, folder):
    """The calls that no caller should see, and how many gave results."""
    found, results, first = [], 0, 0
    while first < count and len(found) < 20:
        told, ended, complaints = run_calls(device, first, count - first, folder)
        last = told[-1].split() if told else ["none"]
        if last[0] == "done" and ended == 0:
            return found, results + int(last[1])
        found.append(f"{' '.join(last)} ({device}, seed {SEED}): {ended}\n{complaints[-3000:]}")
        if not last[0].isdigit():  # at the end of the process, or before the first call
            break
        results += (int(last[0]) - first) // 3
        first = int(last[0]) + 1
    return found, results


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_calls(device, tmp_path):
    found, results = faults(device, CALLS, tmp_path / "files")
    assert not found, "\n".join(found)
    assert results > CALLS // 5  # many reach what is behind the arguments
