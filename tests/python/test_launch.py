"""mlx.launch and ``python -m mlx``."""

import json
import os
import subprocess
import sys

import mlx.core as mx
import pytest
from mlx._distributed_utils.common import Hostfile

# Says what it was called with, and what is in the file of hosts.
LAUNCHER = """#!/bin/sh
if [ "$1" = --version ]; then echo "{version}"; exit; fi
printf '%s\\n' "$@"
while [ "$1" != -f ] && [ "$1" != --hostfile ]; do shift; done
echo hosts; cat "$2"
exit 7
"""


@pytest.fixture(params=["mpirun (Open MPI) 4.1.4", "HYDRA build details:"])
def mpi(request, tmp_path, monkeypatch):
    """A folder with an mpirun that runs nothing, first in the path."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(LAUNCHER.format(version=request.param))
    mpirun.chmod(0o755)
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return "Open MPI" in request.param


def launch(*arguments, env=None, **options):
    return subprocess.run(
        [sys.executable, "-m", "mlx._distributed_utils.launch", *arguments],
        # Not what libraries have put into the environment behind Python's back, as readline does.
        env=dict(os.environ) if env is None else env,
        capture_output=True,
        text=True,
        **options,
    )


def test_command(mpi):
    run = launch("-n", "2", "--env", "A=1 2", "--cwd", "/", "--mpi-arg=-x -y", "true", "-z")
    assert run.returncode == 7, run.stderr
    words, hosts = run.stdout.split("\nhosts\n")
    assert hosts == "127.0.0.1\n127.0.0.1\n"
    words = words.split("\n")
    if mpi:
        assert words[: words.index("--hostfile")] == ["--allow-run-as-root"] * (os.geteuid() == 0)
    variable = ["-x", "A=1 2"] if mpi else ["-genv", "A", "1 2"]
    folder = "--wdir" if mpi else "-wdir"
    assert words[words.index("-n") :] == [
        "-n",
        "2",
        *variable,
        folder,
        "/",
        "-x",
        "-y",
        "true",
        "-z",
    ]


def test_hosts(mpi, tmp_path):
    run = launch("--hosts", "one,two", "-n", "2", "true")
    assert run.stdout.endswith("hosts\none\none\ntwo\ntwo\n")
    file = tmp_path / "hosts.json"
    file.write_text(json.dumps({"hosts": [{"ssh": "a"}, {"ssh": "b"}], "envs": ["E=3"]}))
    run = launch("--hostfile", str(file), "--", "true")
    assert run.stdout.endswith("hosts\na\nb\n")
    assert ("E=3" if mpi else "-genv\nE\n3") in run.stdout


def test_scripts(mpi, tmp_path):
    (tmp_path / "script.py").write_text("")
    run = launch("script.py", "--option", cwd=tmp_path)
    assert f"\n{sys.executable}\nscript.py\n--option\n" in run.stdout
    run = launch("--python", "other", "script.py", cwd=tmp_path)
    assert "\nother\nscript.py\n" in run.stdout
    run = launch("--cwd", str(tmp_path), "script.py")
    assert f"\n{sys.executable}\nscript.py\n" in run.stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "No script is provided"),
        (["-n", "0", "true"], "argument --repeat-hosts/-n: invalid positive_number value: '0'"),
        (
            ["--backend", "ring", "true"],
            "The backend should be mpi, the others are not there: ring",
        ),
        (["--hosts", "a,,b", "true"], "Hostname cannot be empty"),
        (["--hostfile", "none.json", "true"], "Hostfile none.json doesn't exist"),
        (["--other", "true"], "unrecognized argument: --other"),
    ],
)
def test_errors(arguments, message):
    run = launch(*arguments)
    assert run.returncode == 2
    assert message in run.stderr


def test_without_mpi(tmp_path):
    run = launch("true", env={**os.environ, "PATH": str(tmp_path)})
    assert run.returncode == 2
    assert "mpirun was not found, install Open MPI or MPICH" in run.stderr


def test_hostfile(tmp_path):
    hosts = Hostfile.from_list("10.0.0.1,name", repeats=2).hosts
    assert [h.rank for h in hosts] == [0, 1, 2, 3]
    assert [h.ssh_hostname for h in hosts] == ["10.0.0.1", "10.0.0.1", "name", "name"]
    assert hosts[0].ips == ["10.0.0.1"] and hosts[2].ips == []
    file = tmp_path / "hosts.json"
    file.write_text('[{"ssh": "a", "ips": ["10.0.0.2"]}]')
    hostfile = Hostfile.from_file(file)
    assert hostfile.hosts[0].ips == ["10.0.0.2"] and hostfile.backend == ""
    file.write_text("{}")
    with pytest.raises(ValueError, match="Failed to parse hostfile"):
        Hostfile.from_file(file)


def test_print_python():
    assert launch("--print-python").stdout.strip() == sys.executable


def test_package():
    def run(*arguments):
        command = [sys.executable, "-m", "mlx", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert run("--version") == mx.__version__
    assert os.path.isdir(run("--cmake-dir"))
