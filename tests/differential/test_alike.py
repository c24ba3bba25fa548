"""Compiled functions give the bits that calling them gives, functions out of files the numbers, for
positions of fast.rope are inputs there."""

import re

import mlx.core as mx
import numpy as np
import pytest
from compare import compare as differs
from run import UNTRACED, as_data, derivative, drawn, function
from table import ROWS, SMOOTH

CALLS = 2
# What MLX writes into no file, and fused gradients, which MLX's CPU does not have.
NOT_IN_FILES = re.compile(
    "Unable to serialize primitive (BitwiseInvert|Contiguous|FromFP8|ToFP8|GatherQQMM|QQMatmul|LUF"
    "|SegmentedMM|LayerNormVJP|RMSNormVJP|ScaledDotProductAttentionVJP)$"
)


def result_of(fn, inputs):
    """The bits, or the text of the error."""
    try:
        return [as_data(mx, np, x) for x in fn(*inputs)]
    except Exception as error:  # whatever it raises is the result
        return str(error)


def ways(fn, inputs, path):
    yield "compiled", mx.compile(fn)
    yield "compiled twice", mx.compile(lambda *x: mx.compile(fn)(*x))

    def imported(*x):
        mx.export_function(path, fn, *x)
        return mx.import_function(path)(*x)

    yield "out of a file", imported


def drawn_function(name, number):
    _, args, kwargs, d = drawn(77, name, number)
    fn, inputs = function(mx, np, name, "value", args, kwargs, d)
    smooth = [x for x in inputs if mx.issubdtype(x.dtype, mx.inexact)]
    if name not in SMOOTH or len(smooth) != len(inputs) or number % 2:
        return fn, inputs

    def gradients(*x):
        def ones(arrays):
            return [mx.ones_like(a) for a in arrays]

        return derivative(mx, "vjp", fn, list(x), ones)

    return gradients, inputs


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_ways_to_call(device, tmp_path):
    mx.set_default_device(getattr(mx, device))
    found = []
    for name in sorted(set(ROWS) - UNTRACED):
        for number in range(CALLS):
            try:
                fn, inputs = drawn_function(name, number)
            except ValueError:
                continue  # float64 on a GPU
            plain = result_of(fn, inputs)
            if isinstance(plain, str) or any(isinstance(x, str) for x in plain):
                continue  # an error, or no function of arrays alone
            for way, other in ways(fn, inputs, str(tmp_path / "f.mlxfn")):
                got = result_of(other, inputs)
                if isinstance(got, str) and NOT_IN_FILES.search(got):
                    continue
                same = (
                    way == "out of a file" and not isinstance(got, str) and not differs(plain, got)
                )
                if got != plain and not same:
                    found.append(f"{name}/{number} {way}: {str(got)[:100]}, not {str(plain)[:100]}")
    assert not found, "\n".join(found)
