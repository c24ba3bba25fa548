#!/usr/bin/env python3
"""Calls functions of mlx.core with drawn arguments and writes down what came of it.

usage: run.py OUTPUT [--seed S] [--calls N] [--functions NAME,...] [--device cpu|gpu]

Run it once with the interpreter that has MLX and once with the one that has the package under test;
compare.py reads both. Calls run in a process of their own, so that a crash is a result.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import signal
import subprocess
import sys

from draw import Array, Draw, build
from functions import ROWS, SMOOTH, UNBATCHED

MODES = ("vjp", "jvp", "vmap")
SECONDS = 30  # that a call may take


def drawn(seed: int, name: str, number: int):
    """The call: mode, arguments, named arguments, and the draw for what follows."""
    d = Draw(f"{seed}/{name}/{number}")
    args, kwargs = ROWS[name](d)
    mode = "value"
    if d.often(0.5):
        mode = d.pick([m for m in MODES if name in SMOOTH or m == "vmap"])
        if mode == "vmap" and name in UNBATCHED:
            mode = "value"
    return mode, list(args), dict(kwargs), d


def add_batches(args, d: Draw, inside: bool) -> list:
    """Gives some arrays an axis more, of 3, in front or inside; where it is, for each argument."""
    axes = [None] * len(args)
    arrays = [i for i, a in enumerate(args) if isinstance(a, Array)]
    for i in arrays:
        if not d.often(0.75) and i != arrays[0]:
            continue
        a = args[i]
        at = d.between(0, len(a.shape)) if inside else 0
        shape = (*a.shape[:at], 3, *a.shape[at:])
        args[i] = Array(a.dtype, shape, (a.values * 3)[: 3 * len(a.values)], a.layout)
        axes[i] = at
    return axes


def flat(results) -> list:
    if isinstance(results, (list, tuple)):
        return [x for part in results for x in flat(part)]
    return [results]


def function_of(mx, name: str):
    fn = mx
    for part in name.split("."):
        fn = getattr(fn, part)
    return fn


def call(mx, np, name: str, mode: str, args, kwargs, d: Draw) -> list:
    fn = function_of(mx, name)
    # An axis inside of a matrix would give it the same row twice.
    axes = add_batches(args, d, not name.startswith("linalg")) if mode == "vmap" else None
    places = [i for i, a in enumerate(args) if isinstance(a, Array)]
    if mode in ("vjp", "jvp"):
        places = [i for i in places if args[i].is_float or args[i].dtype == "complex64"]
    built = [build(mx, np, a) for a in args]
    named = {k: build(mx, np, v) for k, v in kwargs.items()}

    def of_places(*arrays):
        full = list(built)
        for i, a in zip(places, arrays):
            full[i] = a
        return [r for r in flat(fn(*full, **named)) if isinstance(r, mx.array)]

    inputs = [built[i] for i in places]
    if mode == "value" or not places:
        return flat(fn(*built, **named))
    if mode == "vmap":
        return flat(mx.vmap(of_places, in_axes=tuple(axes[i] for i in places))(*inputs))
    like = of_places(*inputs) if mode == "vjp" else inputs
    like = [build(mx, np, d.array("float32", x.shape, special=0)).astype(x.dtype) for x in like]
    return flat(getattr(mx, mode)(of_places, inputs, like)[1])


def as_data(mx, np, x):
    if not isinstance(x, mx.array):
        return repr(x)
    dtype = str(x.dtype).removeprefix("mlx.core.")
    host = np.array(x.astype(mx.float32) if dtype == "bfloat16" else x)
    return [dtype, list(host.shape), base64.b64encode(host.tobytes()).decode()]


def worker(calls, seed: int, device: str) -> None:
    """Two lines of JSON for each call: which it is, and what came of it."""
    import mlx.core as mx
    import numpy as np

    mx.set_default_device(getattr(mx, device))
    for name, number in calls:
        mode, args, kwargs, d = drawn(seed, name, number)
        print(f'"{name}/{number}/{mode}"', flush=True)
        signal.alarm(SECONDS)  # ends the process, which counts as a crash
        try:
            result = [as_data(mx, np, x) for x in call(mx, np, name, mode, args, kwargs, d)]
        except Exception as error:  # whatever it raises is the result
            classes = [c.__name__ for c in type(error).__mro__]
            result = {"error": classes[0], "classes": classes, "text": str(error)[:200]}
        print(json.dumps(result), flush=True)


def run(names, seed: int, calls: int, device: str) -> dict:
    """What the calls gave; a process that dies is started again behind the call that it died of."""
    results, done = {}, 0
    while done < len(names) * calls:
        command = [sys.executable, __file__, "-", "--seed", str(seed), "--calls", str(calls)]
        command += ["--functions", ",".join(names), "--device", device, "--worker", str(done)]
        child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        if len(lines) % 2:
            lines.append({"error": "crash", "text": str(child.returncode)})
        if not lines:
            sys.exit("the package cannot be imported")
        results.update(zip(lines[::2], lines[1::2]))
        done += len(lines) // 2
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=20, help="of each function")
    parser.add_argument("--functions", default=",".join(sorted(ROWS)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.functions.split(",")
    if options.worker is not None:
        calls = [(name, number) for name in names for number in range(options.calls)]
        worker(calls[options.worker :], options.seed, options.device)
        return
    results = run(names, options.seed, options.calls, options.device)
    data = {"seed": options.seed, "calls": options.calls, "results": results}
    with gzip.GzipFile(options.output, "wb", mtime=0) as file:
        file.write(json.dumps(data, separators=(",", ":")).encode())
    print(len(results), "calls")


if __name__ == "__main__":
    main()
