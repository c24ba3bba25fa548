#!/usr/bin/env python3
"""What building a node of a graph costs in Python, beside another package called mlx.

usage: node_cost.py [--other PYTHON] [--rounds 9]

The expressions are built, not evaluated, on the CPU. With --other, an interpreter that has MLX
itself or an older wheel, the two take turns, and the table has both medians and their ratio.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

EXPRESSIONS = ["a + b", "a * 2", "mx.exp(a)", "a[1:3]", "a[0]", "x.reshape(-1, 4)", "a.sum(axis=0)"]
EXPRESSIONS += ["x @ x", "a.astype(mx.float16)", "mx.concatenate([a, b])", "mx.zeros((4, 4))"]

# The time of one evaluation of each expression: the least of a few batches, in nanoseconds.
MEASURE = """
import json, sys, timeit
import mlx.core as mx
mx.set_default_device(mx.cpu)
a, b, x = mx.zeros((8, 8)), mx.ones((8, 8)), mx.zeros((8, 8))
mx.eval(a, b, x)
times = {}
for expression in json.loads(sys.argv[1]):
    timer = timeit.Timer(expression, globals={'mx': mx, 'a': a, 'b': b, 'x': x})
    timer.timeit(2000)
    times[expression] = min(timer.repeat(5, 10000)) / 10000 * 1e9
print(json.dumps(times))
"""


def measure(python, env):
    command = [python, "-c", MEASURE, json.dumps(EXPRESSIONS)]
    return json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--other", help="the interpreter of the package to compare with")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    bare = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ours, others = [], []
    for _ in range(options.rounds):
        ours.append(measure(sys.executable, os.environ))
        if options.other:
            others.append(measure(options.other, bare))
    print(f"{'ns per node':24}{'here':>8}{'other':>8}{'ratio':>8}")
    for expression in EXPRESSIONS:
        row = [statistics.median(r[expression] for r in runs) for runs in (ours, others) if runs]
        ratio = f"{row[0] / row[1]:8.2f}" if others else ""
        print(f"{expression:24}" + "".join(f"{ns:8.0f}" for ns in row) + ratio)


if __name__ == "__main__":
    main()
