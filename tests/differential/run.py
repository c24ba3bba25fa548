#!/usr/bin/env python3
"""Calls functions of mlx.core with drawn arguments and writes down what came of it.

usage: run.py OUTPUT [--seed S] [--calls N] [--functions NAME,...] [--device cpu|gpu]

Run it once with the interpreter that has MLX and once with the one that has the package under test;
compare.py reads both. Calls run in a process of their own, so that a crash is a result. MLX's CPU
calls a C++ compiler for each function it compiles; MLX_DISABLE_COMPILE=1 does without.
"""

from __future__ import annotations

import argparse
import base64
import functools
import gzip
import json
import signal
import subprocess
import sys

import functions  # noqa: F401  rows are added by importing
import functions_index  # noqa: F401
import functions_newer  # noqa: F401
import functions_other  # noqa: F401
import functions_products  # noqa: F401
from draw import Array, Draw, build
from table import HELPERS, ROWS, SMOOTH, UNBATCHED, UNTRACED

ONCE = ("vjp", "jvp", "vmap", "compile")
TWICE = ("vjp_vjp", "jvp_vjp", "vmap_vjp", "vmap_vmap", "checkpoint")
ALWAYS = ("vmap", "compile")  # of functions without derivatives, too
SECONDS = 120  # that a call may take, on a machine that has other work, too


def drawn(seed: int, name: str, number: int):
    """The call: mode, arguments, named arguments, and the draw for what follows."""
    d = Draw(f"{seed}/{name}/{number}")
    args, kwargs = ROWS[name](d)
    mode = "value"
    if d.often(0.5):
        mode = d.pick(ONCE if d.often(0.8) else TWICE)
        if name not in SMOOTH and mode not in ALWAYS:
            mode = "vmap"
        if name in (UNBATCHED if mode.startswith("vmap") else UNTRACED):
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
    if name in HELPERS:
        return functools.partial(HELPERS[name], mx)
    fn = mx
    for part in name.split("."):
        fn = getattr(fn, part)
    return fn


def derivative(mx, mode: str, fn, inputs, likes) -> list:
    """The derivative that the mode names, of fn at inputs; `likes` makes what goes in with it."""
    first, _, second = mode.partition("_")
    if mode == "checkpoint":
        fn, first = mx.checkpoint(fn), "vjp"
    if not second:
        like = likes(fn(*inputs) if first == "vjp" else inputs)
        return getattr(mx, first)(fn, inputs, like)[1]
    like = likes(fn(*inputs))
    if mode == "vmap_vjp":
        like = [mx.stack([x, x * 2]) for x in like]
        return mx.vmap(lambda *cotangents: mx.vjp(fn, inputs, list(cotangents))[1])(*like)

    def gradient(*x):
        return mx.vjp(fn, list(x), like)[1]

    return derivative(mx, first, gradient, inputs, likes)


def function(mx, np, name: str, mode: str, args, kwargs, d: Draw):
    """What is called: a function of arrays that gives arrays, and these arrays."""
    fn = function_of(mx, name)
    batches = []
    for _ in range({"vmap": 1, "vmap_vmap": 2}.get(mode, 0)):
        # An axis inside of a matrix would give it the same row twice.
        inside = mode == "vmap" and not name.startswith("linalg")
        batches.append(add_batches(args, d, inside))
    places = [i for i, a in enumerate(args) if isinstance(a, Array)]
    if mode not in ("value", "compile", "vmap", "vmap_vmap"):
        places = [i for i in places if args[i].is_float or args[i].dtype == "complex64"]
    built = [build(mx, np, a) for a in args]
    named = {k: build(mx, np, v) for k, v in kwargs.items()}
    inputs = [built[i] for i in places]

    def of_places(*arrays):
        full = list(built)
        for i, a in zip(places, arrays):
            full[i] = a
        results = flat(fn(*full, **named))
        if mode == "value" or not places:
            return results
        return [r for r in results if isinstance(r, mx.array)]

    def likes(arrays):
        return [
            build(mx, np, d.array("float32", x.shape, special=0)).astype(x.dtype) for x in arrays
        ]

    if mode == "value" or not places:
        return of_places, inputs
    if mode == "compile":
        return mx.compile(of_places), inputs
    for axes in batches:
        of_places = mx.vmap(of_places, in_axes=tuple(axes[i] for i in places))
    if batches:
        return of_places, inputs
    return lambda *arrays: flat(derivative(mx, mode, of_places, list(arrays), likes)), inputs


def call(mx, np, *drawn_call) -> list:
    fn, inputs = function(mx, np, *drawn_call)
    return flat(fn(*inputs))


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
