"""Hosts that programs are launched on."""

from __future__ import annotations

import ipaddress
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Host:
    """One process's place: a host is listed once for each process on it."""

    rank: int
    ssh_hostname: str
    ips: list[str]


@dataclass
class Hostfile:
    """A list of hosts, with what else a file of them may say."""

    hosts: list[Host]
    backend: str = ""
    envs: list[str] = field(default_factory=list)

    @classmethod
    def from_file(cls, hostfile: str | Path) -> Hostfile:
        """Read a JSON file: a list of ``{"ssh": name, "ips": [...]}``, or it under ``"hosts"``."""
        path = Path(hostfile)
        if not path.exists():
            raise ValueError(f"Hostfile {path} doesn't exist")
        try:
            data = json.loads(path.read_text())
            if isinstance(data, list):
                data = {"hosts": data}
            hosts = [Host(i, h["ssh"], h.get("ips", [])) for i, h in enumerate(data["hosts"])]
            return cls(hosts, data.get("backend", ""), data.get("envs", []))
        except Exception as e:
            raise ValueError(f"Failed to parse hostfile {path} ({e})") from e

    @classmethod
    def from_list(cls, hostlist: str, repeats: int = 1) -> Hostfile:
        """Names or addresses, separated by commas, each for a number of processes."""
        names = hostlist.split(",")
        if "" in names:
            raise ValueError("Hostname cannot be empty")
        places = [name for name in names for _ in range(repeats)]
        return cls([Host(i, name, _addresses(name)) for i, name in enumerate(places)])


def _addresses(name: str) -> list[str]:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return []
    return [name]


def positive_number(text: str) -> int:
    """A number of processes, for argparse."""
    number = int(text)
    if number <= 0:
        raise ValueError("Number should be positive")
    return number


def log(verbose: bool, *words: Any) -> None:
    """Say what is done, on the error output, if that was asked for."""
    if verbose:
        print("[INFO]", *words, file=sys.stderr)
