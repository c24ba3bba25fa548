#!/usr/bin/env python3
"""Functions in files that one package writes and another one reads.

usage: exchange.py write FOLDER OUTPUT [--seed S] [--calls N] [--functions NAME,...]
       exchange.py read FOLDER OUTPUT [...]

The calls are those of run.py. `write` traces each into a file of FOLDER and writes down what it
gives; `read` calls what the files hold. Run one with the interpreter that has MLX and the other one
with that which has the package under test, then the other way round; compare.py reads both outputs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys

from run import SECONDS, UNTRACED, as_data, drawn, flat, function
from table import ROWS


def path_of(folder: str, name: str, number: int) -> str:
    return os.path.join(folder, f"{name}-{number}.mlxfn")


def exchanged(mx, np, folder: str, how: str, name: str, number: int, seed: int):
    """What the call gives, as it is written or read."""
    mode, args, kwargs, d = drawn(seed, name, number)
    if mode == "compile":
        mode = "value"
    path = path_of(folder, name, number)
    fn, inputs = function(mx, np, name, mode, args, kwargs, d)
    if how == "read":
        return list(mx.import_function(path)(*inputs))
    if os.path.exists(path):
        os.remove(path)
    results = fn(*inputs)
    if any(not isinstance(r, mx.array) for r in results):
        return []  # not of arrays alone: no function for a file
    mx.eval(results)
    _, args, kwargs, d = drawn(seed, name, number)  # the call has used them up
    mx.export_function(path, function(mx, np, name, mode, args, kwargs, d)[0], *inputs)
    return flat(results)


def worker(calls, options) -> None:
    import mlx.core as mx
    import numpy as np

    mx.set_default_device(mx.cpu)
    for name, number in calls:
        if options.how == "read" and not os.path.exists(path_of(options.folder, name, number)):
            continue
        print(f'"{name}/{number}/{drawn(options.seed, name, number)[0]}"', flush=True)
        signal.alarm(SECONDS)
        try:
            results = exchanged(mx, np, options.folder, options.how, name, number, options.seed)
            result = [as_data(mx, np, x) for x in results]
        except Exception as error:  # whatever it raises is the result
            classes = [c.__name__ for c in type(error).__mro__]
            result = {"error": classes[0], "classes": classes, "text": str(error)[:200]}
        print(json.dumps(result), flush=True)


def run(calls, options) -> dict:
    """As that of run.py; calls without file are left out."""
    results, first = {}, 0
    while first < len(calls):
        command = [sys.executable, *sys.argv, "--worker", str(first)]
        child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        if len(lines) % 2:
            lines.append({"error": "crash", "text": str(child.returncode)})
        results.update(zip(lines[::2], lines[1::2]))
        if child.returncode == 0:
            break
        last = lines[-2].split("/")
        first = calls.index((last[0], int(last[1]))) + 1
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=("write", "read"))
    parser.add_argument("folder")
    parser.add_argument("output")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=5, help="of each function")
    parser.add_argument("--functions", default=",".join(sorted(set(ROWS) - UNTRACED)))
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    names = options.functions.split(",")
    calls = [(name, number) for name in names for number in range(options.calls)]
    if options.worker is not None:
        worker(calls[options.worker :], options)
        return
    data = {"seed": options.seed, "calls": options.calls, "results": run(calls, options)}
    with gzip.GzipFile(options.output, "wb", mtime=0) as file:
        file.write(json.dumps(data, separators=(",", ":")).encode())
    print(len(data["results"]), "calls")


if __name__ == "__main__":
    main()
