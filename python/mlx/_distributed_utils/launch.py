"""``mlx.launch``: runs a program as several processes, on this host or on others, by mpirun.

The processes find one another through MPI, see :func:`mlx.core.distributed.init`. The launchers of
Open MPI and of MPICH are known; others that take MPICH's arguments work, too.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mlx._distributed_utils.common import Hostfile, log, positive_number


class OpenMPI:
    """The arguments of Open MPI's mpirun."""

    @staticmethod
    def hosts(path: str) -> list[str]:
        # It refuses to work for root otherwise, who is all that there is in containers.
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [*as_root, "--hostfile", path]

    @staticmethod
    def variable(name: str, value: str) -> list[str]:
        return ["-x", f"{name}={value}"]

    @staticmethod
    def folder(path: str) -> list[str]:
        return ["--wdir", path]


class MPICH:
    """The arguments of MPICH's mpirun, which is called Hydra."""

    @staticmethod
    def hosts(path: str) -> list[str]:
        return ["-f", path]

    @staticmethod
    def variable(name: str, value: str) -> list[str]:
        return ["-genv", name, value]

    @staticmethod
    def folder(path: str) -> list[str]:
        return ["-wdir", path]


def _launcher(mpirun: str) -> type[OpenMPI] | type[MPICH]:
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True)
    return OpenMPI if "open mpi" in (version.stdout + version.stderr).lower() else MPICH


def _program(command: list[str], python: str | None, folder: str | None) -> list[str]:
    """The command, with an interpreter in front if one is given or a script needs one."""
    if python is not None:
        return [python, *command]
    script = Path(folder or ".", command[0])
    if script.is_file() and (script.suffix == ".py" or not os.access(script, os.X_OK)):
        return [sys.executable, *command]
    return command


def _variables(entries: list[str]) -> dict[str, str]:
    """``NAME=VALUE`` entries; a name alone stands for what it is here."""
    variables = {}
    for entry in entries:
        name, given, value = entry.partition("=")
        variables[name] = value if given else os.environ.get(name, "")
    columns, lines = shutil.get_terminal_size((0, 0))
    if columns > 0 and "COLUMNS" not in variables:
        # The processes have no terminal to ask.
        variables.update(COLUMNS=str(columns), LINES=str(lines))
    return variables


def _run(mpirun: str, hostfile: Hostfile, args: argparse.Namespace, command: list[str]) -> int:
    """Run mpirun and return its exit status."""
    launcher = _launcher(mpirun)
    with tempfile.NamedTemporaryFile(mode="w", prefix="mlx-hosts-") as file:
        # Both take a host that is there several times for as many places.
        file.writelines(f"{host.ssh_hostname}\n" for host in hostfile.hosts)
        file.flush()
        line = [mpirun, *launcher.hosts(file.name), "-n", str(len(hostfile.hosts))]
        for name, value in _variables(hostfile.envs + args.env).items():
            line += launcher.variable(name, value)
        if args.cwd:
            line += launcher.folder(args.cwd)
        for text in args.mpi_arg:
            line += shlex.split(text)
        line += _program(command, args.python, args.cwd)
        log(args.verbose, "Running", shlex.join(line))
        process = subprocess.Popen(line)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                # mpirun gets the signal as well, and ends the processes.
                continue


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlx.launch",
        description="Launch an MLX distributed program",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--print-python", action="store_true", help="print the Python that would be used, and exit"
    )
    parser.add_argument("--verbose", action="store_true", help="print the command that is run")
    parser.add_argument(
        "--hosts", default="127.0.0.1", help="names or addresses, separated by commas"
    )
    parser.add_argument(
        "--repeat-hosts", "-n", type=positive_number, default=1, help="processes on each host"
    )
    parser.add_argument("--hostfile", help="JSON file with the hosts, instead of --hosts")
    parser.add_argument("--backend", help="how processes communicate: mpi")
    parser.add_argument(
        "--env", action="append", default=[], help="NAME=VALUE in the processes; may be repeated"
    )
    parser.add_argument(
        "--mpi-arg", action="append", default=[], help="argument of mpirun; may be repeated"
    )
    parser.add_argument("--cwd", help="folder that the processes run in")
    parser.add_argument("--python", help="run the command with this Python")
    return parser


def _hostfile(args: argparse.Namespace) -> Hostfile:
    if args.hostfile is not None:
        return Hostfile.from_file(args.hostfile)
    return Hostfile.from_list(args.hosts, args.repeat_hosts)


def main() -> None:
    """The console script."""
    parser = _parser()
    args, command = parser.parse_known_args()
    if args.print_python:
        print(args.python or sys.executable)
        return
    if command and command[0].startswith("-") and command[0] != "--":
        parser.error(f"unrecognized argument: {command[0]}")
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        parser.error("No script is provided")
    try:
        hostfile = _hostfile(args)
    except ValueError as e:
        parser.error(str(e))
    backend = args.backend or hostfile.backend or "mpi"
    if backend != "mpi":
        parser.error(f"The backend should be mpi, the others are not there: {backend}")
    mpirun = shutil.which("mpirun") or shutil.which("mpiexec")
    if mpirun is None:
        parser.error("mpirun was not found, install Open MPI or MPICH")
    sys.exit(_run(mpirun, hostfile, args, command))


if __name__ == "__main__":
    main()
