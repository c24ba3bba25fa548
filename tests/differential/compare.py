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
# or of the last number, where operands of about 1 cancel each other. MLX computes many functions of
# float64 in float32.
TOLERANCE = {
    "float64": (2e-5, 4e-6, 0.05),
    "float32": (2e-5, 4e-6, 0.05),
    "complex64": (4e-5, 8e-6, 0.05),
    "float16": (1e-2, 1e-2, 0.5),
    "bfloat16": (4e-2, 4e-2, 0.5),
}

# Where MLX 0.32.4 and we differ on purpose: pattern of function/number/mode, what the difference
# looks like, why.
KNOWN = [
    (r".*", "reference: crash", "MLX does not survive the call"),
    (r".*", "float64 is not supported on the GPU", "float64 is the CPU's, and MLX says the same"),
    (
        r"(bitwise_\w+|(left|right)_shift|logical_\w+|(not_)?equal|(greater|less)(_equal)?|x?or|and)"
        r"/.*/vmap",
        "instead of",
        "MLX forgets or misreads an axis of a batch that only one operand of a binary op has",
    ),
    (r"divmod/.*/vmap", "a result instead of IndexError", "MLX reads an axis that it never wrote"),
    (r"conv.*/jvp", "a result instead of ValueError", "MLX has no tangents of convolutions"),
    (
        r"conv_general/.*/vjp",
        r"\d\] instead of \w+\[",
        "MLX gives gradients of padded convolutions another shape than the input's",
    ),
    (
        r"(cum(ulative_)?)?prod/.*/jvp",
        "a result instead of RuntimeError",
        "MLX has no tangents of cumprod",
    ),
    (
        r"(gather_q?mm|quantized_matmul)/.*/jvp",
        "a result instead of",
        "MLX has no tangents of gathered and packed matrices",
    ),
    (
        r"at/.*/jvp",
        "a result instead of RuntimeError",
        "MLX has no tangents of products and extremes of parts",
    ),
    (r"assign/.*/jvp", "Cannot broadcast", "MLX's tangents of parts keep a dimension of 1"),
    (
        r"(gather_q?mm|block_masked_mm)/.*",
        "Currently only supports float32",
        "MLX's CPU has these products for float32 alone",
    ),
    (r"(gather_)?qqmm/.*", "NYI", "MLX's CPU has no products of two packed matrices"),
    (r"segmented_mm/.*", "value", "MLX's CPU misreads matrices of 16-bit floats"),
    (r"addmm/.*/jvp", "value", "MLX's tangents of addmm leave out alpha and beta"),
    (
        r"(to|from)_fp8/.*/vmap",
        "a result instead of ValueError",
        "MLX has no batches of 8-bit floats",
    ),
    (r"searchsorted/.*/vmap", "a result instead of", "MLX has no batches of sorted sequences"),
    (
        r"linalg.(tri_inv|cholesky_inv|solve_triangular)/.*/vmap",
        "value",
        "MLX forgets in batches that the matrix is triangular",
    ),
    (r"expand_dims/.*/vmap", "instead of", "MLX misplaces the batch behind several new axes"),
    (r"logsumexp/.*", "instead of", "MLX subtracts the largest of unsigned integers as such"),
    (
        r"(power|pow|cum(ulative_)?prod)/.*/vjp",
        "j|value",
        "MLX leaves out conjugates in gradients of complex powers and products",
    ),
    (r".*", r"nan\S*j\)? instead of .*inf", "products of infinite complex numbers"),
    (
        r"(logaddexp|logcumsumexp|fast.layer_norm)/.*",
        "value",
        "what is left of two large terms, and sums that MLX keeps in 16 bits",
    ),
    (r"hadamard_transform/.*/vjp", "value", "MLX does not transpose the factors of 20 and 28"),
    (r"linalg.norm/.*", "nan", "the least of no numbers"),
    (r"fft.irfft[2n]?/.*/jvp", "instead of", "MLX forgets that an odd size was asked for"),
    (r"fft.istft/.*/jvp", "Cannot broadcast|cannot be broadcast", "the same, within istft"),
    (r"fft.stft/.*", "must be used with row contiguous", "MLX reads pieces of rows alone"),
    (r"addmm/.*/vmap", "a result instead of ValueError", "MLX broadcasts no batch of c"),
    (r"argm(ax|in)/.*", "larger than max_size", "MLX keeps no dimension of a number"),
    (r"median/.*", "start_axis must be", "MLX has no median over no axes"),
    (r"dequantize/.*", "Cannot infer the shape", "MLX unpacks no empty matrix"),
    (
        r"(minmax|argmax|argmin)/.*/vmap",
        r"\d\] instead of",
        "MLX misplaces the batch of extremes of all, and of the second result",
    ),
    (
        r"(assign|at)/.*/value",
        r"Cannot broadcast array of shape \(1,",
        "MLX takes no vector of one where a subscript ends in an ellipsis",
    ),
    (r"block_masked_mm/.*/vjp", "value", "MLX misreads what lies reversed in gradients of masks"),
    (r"diag/.*/jvp", "scatter", "MLX has no tangents of scatters"),
    (r"(assign|at)/.*/vmap", "value", "MLX updates one of a batch where a subscript adds an axis"),
    (
        r"(assign|at)/.*/(vjp|jvp)",
        "a result instead of",
        "MLX has no derivatives of some updates, and loses the dtype of others",
    ),
    (
        r"conv_general/.*/vjp",
        "value|after padding cannot be smaller",
        "MLX pads gradients too little",
    ),
    (r"__init__/.*", "bad_cast", "MLX takes no number that does not fit the dtype"),
    (r"gather_qmm/.*/vjp", "Cannot unflatten", "MLX counts packed numbers for gradients twice"),
    (r"(de)?quantize/.*", "Not supported for float64", "there are no packed float64"),
    (r"hadamard_transform/.*", "Unsupported type", "MLX has none of float64"),
    (r"hadamard_transform/.*/vjp", "Only supports n", "MLX finds out when it needs the values"),
    (
        r"(linalg|random.multi).*",
        "not yet supported on the GPU",
        "LAPACK is the CPU's, and MLX says the same",
    ),
    (
        r"(max|min|linalg.norm)/.*/jvp",
        "a result instead of ValueError",
        "MLX looks for the extreme of nothing",
    ),
    (r"minmax/.*/vjp", "value", "MLX counts one of two results that are the input itself"),
    (r"(var|std)/.*/jvp", "instead of nan", "tangents of nothing"),
    (r"(all|any)/.*", "values: ", "MLX leaves the answer about nothing unset"),
    (r"prod/.*", "values?:? 1(.0)? instead", "MLX leaves the answer about nothing unset"),
    (r"(arccosh|acosh)/.*/(vjp|jvp)", "nan instead of", "there is no derivative below 1"),
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
    """Why: for the call, or for one of the transformations that its mode is made of. Methods and
    operators are like the functions of their names."""
    name, number, mode = re.sub(r"^(array|operator)\.", "", call).rsplit("/", 2)
    for part in mode.replace("checkpoint", "vjp").split("_"):
        for pattern, words, why in KNOWN:
            if re.fullmatch(pattern, f"{name}/{number}/{part}") and re.search(words, text):
                return why
    return None


def differences(reference: dict, other: dict):
    """For each call: its function, and a text and a reason where something differs, or None."""
    for call, expected in reference["results"].items():
        if call not in other["results"]:
            continue  # not exchanged: the writer had an error
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
