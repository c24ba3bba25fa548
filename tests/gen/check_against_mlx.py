#!/usr/bin/env python3
"""Runs the op cases through MLX itself, to see whether their expected values are MLX's.

usage: check_against_mlx.py PYTHON TABLE

PYTHON is an interpreter that has mlx and numpy, TABLE is what gen_cases.py wrote. Prints the rows
that differ and, at the end, how many agree. Not part of the build: MLX is no dependency.
"""

import collections
import math
import struct
import os
import subprocess
import sys
import tempfile
import zlib

DTYPES = ["bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64", "bfloat16", "complex64"]
# rtol by dtype, as in tests/ops/cases.c
RTOL = {"float16": 1e-3, "bfloat16": 1e-2, "float64": 1e-12}
ATOL = {"float16": 1e-7, "float64": 1e-15}


class Reader:
    def __init__(self, file):
        self.data, self.at = zlib.decompress(file[8:]), 0
        self.rows, size = self.take("II")
        self.arrays = len(self.data) - size

    def take(self, fmt):
        values = struct.unpack_from("<" + fmt, self.data, self.at)
        self.at += struct.calcsize("<" + fmt)
        return values if len(values) > 1 else values[0]

    def some(self, n, code):
        values = struct.unpack_from(f"<{n}{code}", self.data, self.at)
        self.at += struct.calcsize(f"<{n}{code}")
        return list(values)

    def text(self):
        n = self.take("H")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def array(self):
        """(dtype name, NumPy array; bfloat16 as its bits)"""
        import numpy as np
        code, ndim = self.take("BB")
        shape = self.some(ndim, "i")
        begin = self.arrays + self.take("I")
        name = DTYPES[code]
        kind = {"bool_": "bool", "bfloat16": "uint16"}.get(name, name)
        values = np.frombuffer(self.data, kind, math.prod(shape), begin)
        return name, values.reshape(shape)

    def param(self):
        kind = self.take("c")
        if kind == b"i":
            return self.some(self.take("H"), "q")
        return self.take("d") if kind == b"d" else self.text()


class Unreachable(Exception):
    """Python has no way to ask for this, or MLX's CPU none to answer."""


def load(mx, name, values):
    import numpy as np
    if name == "bfloat16":
        return mx.array(values).view(mx.bfloat16)
    return mx.array(np.array(values), dtype=getattr(mx, name))


def as_numpy(mx, a):
    """float64 or complex128 for floating results, else the integers themselves."""
    import numpy as np
    if a.dtype == mx.bfloat16:
        a = a.astype(mx.float32)
    x = np.array(a)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def apply_view(mx, a, kind, numbers):
    if kind == 0:
        return mx.transpose(a, numbers)
    if kind == 1:
        triples = [numbers[i:i + 3] for i in range(0, len(numbers), 3)]
        return a[tuple(slice(*t) for t in triples)]
    return mx.broadcast_to(a, numbers) if kind == 2 else mx.reshape(a, numbers)


def special_calls(mx):
    """Functions whose Python form differs from (inputs, params) in order."""
    r = mx.random

    def dt(p):
        return getattr(mx, DTYPES[p[0]])

    def bits(i, p):
        # Python has no bits(); an even number of words is what split() gives.
        n = 1
        for d in p[0]:
            n *= d
        if p[1][0] != 4 or n % 2 or not n:
            raise Unreachable
        return mx.reshape(r.split(i[0], n // 2), p[0])

    def seeded(_i, _p):
        raise Unreachable

    def nan_to_num(i, p):
        return mx.nan_to_num(i[0], p[0], p[2] if p[1][0] else None, p[4] if p[3][0] else None)

    def index(i, p):
        return i[0][tuple(slice(*t) for t in zip(*p))]

    def updated(method):
        def update(i, p):
            at = tuple(slice(*t) for t in zip(*p))
            if method:
                return getattr(i[0].at[at], method)(i[1].astype(i[0].dtype))
            out = mx.array(i[0])
            out[at] = i[1].astype(out.dtype)
            return out
        return update

    def elements(i, p):
        n = 1
        for axis in p[0]:
            n *= i[0].shape[axis]
        return mx.array(1 / n if p[1][0] else n, dtype=dt(p[2]))

    def sizes(group, bits):
        return {"group_size": group[0] or None, "bits": bits[0] or None}

    def quantize(i, p):
        return mx.quantize(i[0], **sizes(*p[:2]), mode=p[2], global_scale=i[1])

    def dequantize(i, p):
        if i[3] is not None and p[3][0] != 10:
            raise Unreachable
        return mx.dequantize(*i[:3], **sizes(*p[:2]), mode=p[2], global_scale=i[3],
                             dtype=dt(p[3]) if p[3][0] >= 0 else None)

    def product(f, i, p, **how):
        """MLX's CPU adds up float16 in float16; its numbers are taken from float32."""
        if not i[0].size:  # a division by zero ends the process
            raise Unreachable
        how.update(transpose=bool(p[0][0]), **sizes(*p[1:3]), mode=p[3])
        out = f(*i, **how)
        if out.dtype != mx.float16:
            return out
        i = [a.astype(mx.float32) if a is not None and a.dtype == mx.float16 else a for a in i]
        return f(*i, **how).astype(out.dtype)

    def packed_product(i, p):
        return product(mx.quantized_matmul, i, p)

    def gathered_product(i, p):
        return product(mx.gather_qmm, i, p, sorted_indices=bool(p[4][0]))

    def gathered_matmul(i, p):
        if i[0].dtype != mx.float32:  # all that MLX's CPU has
            raise Unreachable
        return mx.gather_mm(*i, sorted_indices=bool(p[0][0]))

    def rope(i, p, offset, freqs):
        return mx.fast.rope(i[0], p[0][0], traditional=bool(p[1][0]),
                            base=p[3] if p[2][0] else None, scale=p[4], offset=offset, freqs=freqs)

    def attend(i, p):
        mask = "causal" if p[1] == "causal" else i[3]
        return mx.fast.scaled_dot_product_attention(*i[:3], scale=p[0], mask=mask, sinks=i[4])

    def from_file(i, _p):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.npy")
            mx.save(path, i[0])
            a = mx.load(path)
            mx.eval(a)
        return a

    def scan(f):
        return lambda i, p: f(i[0], axis=p[0][0], reverse=bool(p[1][0]), inclusive=bool(p[2][0]))

    # What MLX leaves in any order is put into the table's, which is that of a stable sort. Without
    # an axis the array is flattened.
    def partition(i, p):
        axis = p[1][0] if len(p) > 1 else None
        return mx.sort(mx.partition(i[0], p[0][0], axis), axis)

    def argpartition(i, p):
        a, axis = (i[0], p[1][0]) if len(p) > 1 else (mx.flatten(i[0]), 0)
        at = mx.sort(mx.argpartition(a, p[0][0], axis), axis)
        return mx.take_along_axis(at, mx.argsort(mx.take_along_axis(a, at, axis), axis), axis)

    def topk(i, p):
        axis = p[1][0] if len(p) > 1 else None
        best = mx.topk(i[0], p[0][0], axis)
        is_all = axis is not None and p[0][0] == i[0].shape[axis]
        return best if is_all else mx.sort(best, axis)

    def categorical(i, p, **how):
        return r.categorical(i[0], p[0][0], key=i[1], **how)

    return {
        "load": from_file,
        "cumsum": scan(mx.cumsum), "cumprod": scan(mx.cumprod), "cummax": scan(mx.cummax),
        "cummin": scan(mx.cummin), "logcumsumexp": scan(mx.logcumsumexp),
        "sort": lambda i, p: mx.sort(i[0], None), "argsort": lambda i, p: mx.argsort(i[0], None),
        "partition": partition, "partition_axis": partition,
        "argpartition": argpartition, "argpartition_axis": argpartition,
        "topk": topk, "topk_axis": topk,
        "take_along_axis": lambda i, p: mx.take_along_axis(*i, p[0][0]),
        "random_gumbel": lambda i, p: r.gumbel(p[0], dt(p[1]), i[0]),
        "random_categorical": categorical,
        "random_categorical_shape": lambda i, p: categorical(i, p, shape=p[1]),
        "random_categorical_num_samples": lambda i, p: categorical(i, p, num_samples=p[1][0]),
        "quantize": quantize, "dequantize": dequantize, "quantized_matmul": packed_product,
        "gather_qmm": gathered_product,
        "fast_rms_norm": lambda i, p: mx.fast.rms_norm(i[0], i[1], p[0]),
        "fast_layer_norm": lambda i, p: mx.fast.layer_norm(*i, p[0]),
        "fast_rope": lambda i, p: rope(i, p, p[5][0], i[1]),
        "fast_rope_dynamic": lambda i, p: rope(i, p, i[1], i[2]),
        "fast_scaled_dot_product_attention": attend,
        "random_seed": seeded, "nan_to_num": nan_to_num, "slice": index,
        "slice_update": updated(None), "slice_update_add": updated("add"),
        "slice_update_prod": updated("multiply"), "slice_update_max": updated("maximum"),
        "slice_update_min": updated("minimum"),
        "slice_dynamic": lambda i, p: mx.slice(*i, p[0], p[1]),
        "slice_update_dynamic": lambda i, p: mx.slice_update(*i, p[0]),
        "tensordot": lambda i, p: mx.tensordot(*i, p),
        "tensordot_axis": lambda i, p: mx.tensordot(*i, p[0][0]),
        "number_of_elements": elements,
        "round": lambda i, p: mx.round(i[0], p[0][0]),
        "astype": lambda i, p: i[0].astype(dt(p[0])),
        "view": lambda i, p: i[0].view(dt(p[0])),
        "isclose": lambda i, p: mx.isclose(*i, p[0], p[1], equal_nan=bool(p[2][0])),
        "allclose": lambda i, p: mx.allclose(*i, p[0], p[1], equal_nan=bool(p[2][0])),
        "array_equal": lambda i, p: mx.array_equal(*i, equal_nan=bool(p[0][0])),
        "zeros": lambda i, p: mx.zeros(p[0], dt(p[1])), "ones": lambda i, p: mx.ones(p[0], dt(p[1])),
        "full": lambda i, p: mx.full(p[0], i[0].astype(dt(p[1]))),
        "full_like": lambda i, p: mx.full_like(i[0], i[1], dtype=dt(p[0])),
        "eye": lambda i, p: mx.eye(p[0][0], p[1][0], p[2][0], dt(p[3])),
        "identity": lambda i, p: mx.identity(p[0][0], dt(p[1])),
        "tri": lambda i, p: mx.tri(p[0][0], p[1][0], p[2][0], dt(p[3])),
        "arange": lambda i, p: mx.arange(p[0], p[1], p[2], dt(p[3])),
        "linspace": lambda i, p: mx.linspace(p[0], p[1], p[2][0], dtype=dt(p[3])),
        "copy": lambda i, p: mx.array(i[0]),
        "contiguous": lambda i, p: mx.contiguous(i[0], bool(p[0][0])),
        "as_strided": lambda i, p: mx.as_strided(i[0], p[0], p[1], p[2][0]),
        "broadcast_arrays": lambda i, p: mx.broadcast_arrays(*i),
        "concatenate": lambda i, p: mx.concatenate(i, None), "stack": lambda i, p: mx.stack(i),
        "concatenate_axis": lambda i, p: mx.concatenate(i, p[0][0]),
        "stack_axis": lambda i, p: mx.stack(i, p[0][0]),
        "split": lambda i, p: mx.split(i[0], p[0][0], p[1][0]),
        "split_sections": lambda i, p: mx.split(i[0], p[0], p[1][0]),
        "pad": lambda i, p: pad(mx, i, p),
        "pad_symmetric": lambda i, p: mx.pad(i[0], p[0][0], p[1], i[1]),
        "take_axis": lambda i, p: mx.take(*i, axis=p[0][0]),
        "repeat": lambda i, p: mx.repeat(i[0], p[0][0]),
        "repeat_axis": lambda i, p: mx.repeat(i[0], p[0][0], p[1][0]),
        "tile": lambda i, p: mx.tile(i[0], p[0]),
        "reshape": lambda i, p: mx.reshape(i[0], p[0]),
        "broadcast_to": lambda i, p: mx.broadcast_to(i[0], p[0]),
        "unflatten": lambda i, p: mx.unflatten(i[0], p[0][0], p[1]),
        "gather_mm": gathered_matmul,
        "addmm": lambda i, p: mx.addmm(*i, p[0], p[1]),
        "divmod": lambda i, p: mx.divmod(*i),
        "random_key": lambda i, p: r.key(p[0][0]),
        "random_bits": bits,
        "random_split": lambda i, p: list(r.split(i[0])),
        "random_split_num": lambda i, p: r.split(i[0], p[0][0]),
        "random_uniform": lambda i, p: r.uniform(i[0], i[1], p[0], dt(p[1]), i[2]),
        "random_normal": lambda i, p: r.normal(p[0], dt(p[1]), p[2], p[3], i[0]),
        "random_normal_broadcast": lambda i, p: r.normal(p[0], dt(p[1]), i[0], i[1], i[2]),
        "random_multivariate_normal": lambda i, p: r.multivariate_normal(i[0], i[1], p[0], dt(p[1]),
                                                                         i[2]),
        "random_randint": lambda i, p: r.randint(i[0], i[1], p[0], dt(p[1]), i[2]),
        "random_bernoulli": lambda i, p: r.bernoulli(i[0], p[0], i[1]),
    }


def linalg_call(mx, fn, i, p):
    """All of a prefix: what Python tells apart by the type of an argument has suffixes in C."""
    name = fn.removeprefix("linalg_")
    if name.startswith("norm"):
        ord = () if name == "norm_l2" else (p.pop(0),)
        return mx.linalg.norm(i[0], *ord, axis=p[1] if p[0][0] else None, keepdims=bool(p[2][0]))
    if 0 in i[0].shape and name in ("inv", "tri_inv", "cholesky_inv", "lu", "lu_factor", "solve",
                                    "solve_triangular"):
        raise Unreachable  # MLX divides by their size
    if name == "solve_triangular":
        return mx.linalg.solve_triangular(*i, upper=bool(p[0][0]))
    plain = (v if isinstance(v, str) else v[0] if name == "cross" else bool(v[0]) for v in p)
    return getattr(mx.linalg, name)(*i, *plain)


def fft_call(mx, fn, i, p):
    name = fn.removeprefix("fft_")
    f = getattr(mx.fft, name)
    if name.endswith("freq"):
        return f(p[0][0], p[1])
    if name.endswith("shift"):
        return f(i[0], p[0])
    norm = ("backward", "ortho", "forward")[p[2][0]]
    if name.endswith("fft"):
        return f(i[0], p[0][0], p[1][0], norm=norm)
    return f(i[0], p[0], p[1], norm=norm)


def pad(mx, i, p):
    widths = [(0, 0)] * i[0].ndim
    for axis, low, high in zip(*p[:3]):
        widths[axis] = (low, high)
    return mx.pad(i[0], widths, p[3], i[1])


# Functions with a suffix in C that Python tells apart by the argument.
SUFFIXES = ("_axes", "_axis")
WITH_PRECISE = ("softmax",)


def plain_call(mx, fn, inputs, params):
    name = next((fn[:-5] for s in SUFFIXES if fn.endswith(s)), fn)
    f = getattr(mx, name)
    axis = {} if name == fn else {"axis": params.pop(0)}
    if "axis" in axis and fn.endswith("_axis"):
        axis["axis"] = axis["axis"][0]
    if name == "transpose" and axis:
        return f(inputs[0], axis["axis"])
    if name in ("sum", "prod", "min", "max", "all", "any", "mean", "logsumexp", "argmin", "argmax",
                "var", "std"):
        if not inputs[0].size:  # MLX's CPU may loop without end over an empty array
            raise Unreachable
        extra = {"ddof": params[1][0]} if name in ("var", "std") else {}
        return f(inputs[0], keepdims=bool(params[0][0]), **axis, **extra)
    if name in WITH_PRECISE:
        return f(inputs[0], precise=bool(params[0][0]), **axis)
    numbers = [p[0] if isinstance(p, list) else p for p in params]
    return f(*inputs, *axis.values(), *numbers)


def call(mx, special, fn, inputs, params):
    if fn.startswith("linalg_"):
        result = linalg_call(mx, fn, inputs, params)
        return list(result) if isinstance(result, (list, tuple)) else [result]
    if fn.startswith("fft_"):
        return [fft_call(mx, fn, inputs, params)]
    result = special[fn](inputs, params) if fn in special else plain_call(mx, fn, inputs, params)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def differs(mx, got, want, tolerance, scale):
    """What is wrong with one result, or None."""
    import numpy as np
    name, values = want
    if got.dtype != getattr(mx, name):
        return f"dtype {got.dtype}, table says {name}"
    expected = as_numpy(mx, load(mx, name, values))
    actual = as_numpy(mx, got)
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, table says {expected.shape}"
    if expected.dtype.kind not in "fc":
        bad = actual != expected
    else:
        rtol = 0 if tolerance in (1, 2) else RTOL.get(name, 1e-5)
        with np.errstate(all="ignore"):
            limit = rtol * (np.abs(expected) + scale) + (ATOL.get(name, 1e-8) if rtol else 0)
            bad = ~((np.abs(actual - expected) <= limit) | (actual == expected) |
                    (np.isnan(actual) & np.isnan(expected)))
        if tolerance == 2 and expected.dtype.kind == "f":
            bad |= (actual == 0) & (np.signbit(actual) != np.signbit(expected))
    if not bad.any():
        return None
    at = tuple(np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} differ, first at {at}: {actual[at]} for {expected[at]}"


def read_row(mx, reader):
    family, fn, note = reader.text(), reader.text(), reader.text()
    inputs = []
    for _ in range(reader.take("B")):
        a = None
        if reader.take("B"):
            a = load(mx, *reader.array())
            for _ in range(reader.take("B")):
                kind, n = reader.take("BB")
                a = apply_view(mx, a, kind, reader.some(n, "i"))
        inputs.append(a)
    params = [reader.param() for _ in range(reader.take("B"))]
    outputs = [reader.array() for _ in range(reader.take("B"))]
    tolerance, scale, _ = reader.take("BdB")
    return family, fn, note, inputs, params, outputs, tolerance, scale


def worker(table):
    import mlx.core as mx
    mx.set_default_device(mx.cpu)
    special = special_calls(mx)
    with open(table, "rb") as f:
        reader = Reader(f.read())
    agree, differ, unreachable = (collections.Counter() for _ in range(3))
    for _ in range(reader.rows):
        family, fn, note, inputs, params, outputs, tolerance, scale = read_row(mx, reader)
        try:
            results = call(mx, special, fn, inputs, params)
            problem = next(filter(None, (differs(mx, g, w, tolerance, scale)
                                         for g, w in zip(results, outputs))), None)
            if len(results) != len(outputs):
                problem = f"{len(results)} results, table has {len(outputs)}"
        except Unreachable:
            unreachable[family] += 1
            continue
        except Exception as e:  # whatever MLX raises is a difference
            problem = f"{type(e).__name__}: {str(e)[:100]}"
        (differ if problem else agree)[family] += 1
        if problem:
            print(f"{fn} {note}: {problem}")
    for family in sorted(agree | differ):
        print(f"{family:12} {agree[family]:5} agree {differ[family]:4} differ")
    print(f"{agree.total()} rows agree with MLX, {differ.total()} differ, {unreachable.total()} "
          "cannot be asked")


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        worker(sys.argv[2])
    else:
        sys.exit(subprocess.run([sys.argv[1], "-B", __file__, "--worker", sys.argv[2]],
                                check=False).returncode)
