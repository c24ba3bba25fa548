#!/usr/bin/env python3
"""Compares what run.py wrote of two packages, and prints a table by function.

usage: compare.py REFERENCE OTHER

Exit status 1 if something differs that `KNOWN` does not explain.
"""

from __future__ import annotations

import base64
import collections
import gzip
import json
import re
import sys

import numpy as np

# By dtype: relative and absolute tolerance; the absolute one counts in units of the largest result,
# or of the last number, where operands of about 1 cancel each other.
TOLERANCE = {
    "float32": (2e-5, 4e-6, 0.05),
    "complex64": (4e-5, 8e-6, 0.05),
    "float16": (1e-2, 1e-2, 0.5),
    "bfloat16": (4e-2, 4e-2, 0.5),
}

# Where MLX 0.32.4 and we differ on purpose: pattern of function/number/mode, what the difference
# looks like, why.
KNOWN = [
    (r".*", "reference: crash", "MLX does not survive the call"),
    (
        r"(bitwise_\w+|(left|right)_shift|logical_\w+|(not_)?equal|(greater|less)(_equal)?)/.*/vmap",
        "instead of",
        "MLX forgets or misreads an axis of a batch that only one operand of a binary op has",
    ),
    (r"divmod/.*/vmap", "a result instead of IndexError", "MLX reads an axis that it never wrote"),
    (r"conv.*/jvp", "a result instead of ValueError", "MLX has no tangents of convolutions"),
    (r"cumprod/.*/jvp", "a result instead of RuntimeError", "MLX has no tangents of cumprod"),
    (r"addmm/.*/jvp", "value", "MLX's tangents of addmm leave out alpha and beta"),
    (
        r"(to|from)_fp8/.*/vmap",
        "a result instead of ValueError",
        "MLX has no batches of 8-bit floats",
    ),
    (r"searchsorted/.*/vmap", "a result instead of", "MLX has no batches of sorted sequences"),
    (r"logsumexp/.*", "instead of inf", "MLX subtracts the largest of unsigned integers as such"),
    (
        r"(remainder|divmod|floor_divide)/.*",
        "False",
        "there is no remainder of bools divided by False",
    ),
    (
        r"(power|cumprod)/.*/vjp",
        "j",
        "MLX leaves out conjugates in gradients of complex powers and products",
    ),
    (r"logaddexp/.*/(vjp|jvp)", "value", "what is left of two large terms"),
    (r"hadamard_transform/.*/vjp", "value", "MLX does not transpose the factors of 20 and 28"),
    (r"linalg.norm/.*", "nan", "the least of no numbers"),
    (r"fft.irfft/.*/jvp", "instead of", "MLX forgets that an odd size was asked for"),
    (r"addmm/.*/vmap", "a result instead of ValueError", "MLX broadcasts no batch of c"),
    (r"argm(ax|in)/.*", "larger than max_size", "MLX keeps no dimension of a number"),
    (r"diag/.*/jvp", "a result instead of RuntimeError", "MLX has no tangents of scatters"),
    (r"median/.*", "start_axis must be", "MLX has no median over no axes"),
    (r"remainder/.*", r"0, 0\] instead of \[2, 0", "there is no remainder of a division by 0"),
    (r"linalg.*", "not yet supported on the GPU", "LAPACK is the CPU's, and MLX says the same"),
    (r"(max|min)/.*/jvp", "a result instead of ValueError", "MLX looks for the extreme of nothing"),
    (r"var/.*/jvp", "instead of nan", "tangents of nothing"),
    (
        r"fast.layer_norm/.*/vjp",
        "value 0.0",
        "MLX leaves the gradient of a bias without rows unset",
    ),
    (r"topk/.*", "value", "the order of topk's results is not defined"),
]


def load(path: str) -> dict:
    with gzip.open(path) as file:
        return json.load(file)


def values(part):
    dtype, shape, data = part
    host = {"bfloat16": "float32", "bool": "bool"}.get(dtype, dtype)
    return np.frombuffer(base64.b64decode(data), host).reshape(shape)


def difference(a, b) -> str | None:
    """What differs between two arrays, or other results."""
    if isinstance(a, str) or isinstance(b, str):
        return None if a == b else f"{a} instead of {b}"
    if a[:2] != b[:2]:
        return f"{b[0]}{b[1]} instead of {a[0]}{a[1]}"
    x, y = values(a), values(b)
    if a[0] not in TOLERANCE:
        return None if np.array_equal(x, y) else f"values: {y.tolist()} instead of {x.tolist()}"
    relative, absolute, least = TOLERANCE[a[0]]
    finite = np.isfinite(x)
    scale = float(np.abs(x[finite]).max()) if finite.any() else 0.0
    with np.errstate(all="ignore"):
        scale = min(max(scale, least), 1e30)
        same = np.isclose(y, x, relative, absolute * scale, equal_nan=True)
    if same.all():
        return None
    at = np.unravel_index(int(np.argmin(same)), same.shape)
    return f"value {y[at]} instead of {x[at]} at {tuple(int(i) for i in at)} of {x.shape}"


def compare(reference, other) -> str | None:
    broken = [isinstance(r, dict) for r in (reference, other)]
    if broken[0] and reference["error"] == "crash":
        return None if broken[1] and other["error"] == "crash" else "reference: crash"
    if all(broken):
        if reference["error"] in other["classes"]:
            return None
        words = [f"{r['error']} ({r['text']})" for r in (other, reference)]
        return f"{words[0]} instead of {words[1]}"
    if any(broken):
        words = [
            f"{r['error']}: {r['text']}" if isinstance(r, dict) else "a result"
            for r in (other, reference)
        ]
        return f"{words[0]} instead of {words[1]}"
    if len(reference) != len(other):
        return f"{len(other)} results instead of {len(reference)}"
    return next((d for d in map(difference, reference, other) if d), None)


def reason(call: str, text: str) -> str | None:
    return next((why for p, q, why in KNOWN if re.fullmatch(p, call) and re.search(q, text)), None)


def differences(reference: dict, other: dict):
    """For each call: its function, and a text and a reason where something differs, or None."""
    for call, expected in reference["results"].items():
        text = compare(expected, other["results"][call])
        yield call, text, text and reason(call, text)


def main() -> int:
    reference, other = load(sys.argv[1]), load(sys.argv[2])
    if any(reference[k] != other[k] for k in ("seed", "calls")):
        sys.exit("not the same calls")
    rows = collections.defaultdict(lambda: [0, 0, 0])
    explained = collections.Counter()
    for call, text, why in differences(reference, other):
        row = rows[call.split("/")[0]]
        row[0] += 1
        if why:
            row[1] += 1
            explained[why] += 1
        elif text:
            row[2] += 1
            print(f"{call}: {text}")
    print("| function | calls | explained | differ |\n|---|---|---|---|")
    for name, row in sorted(rows.items()):
        if row[1] or row[2]:
            print(f"| {name} |", " | ".join(map(str, row)), "|")
    total = [sum(row[i] for row in rows.values()) for i in range(3)]
    print("| all |", " | ".join(map(str, total)), "|")
    for why, n in explained.most_common():
        print(f"- {n}: {why}")
    return 1 if total[2] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
