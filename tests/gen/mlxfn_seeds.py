#!/usr/bin/env python3
"""Writes exported functions byte by byte, from the description of the format: right ones with what no
CPU-only MLX exports, and wrong ones, for tests/unit/mlxfn.c and the fuzz target.

usage: mlxfn_seeds.py FOLDER STORED

FOLDER receives the files; those of STORED, which MLX itself wrote, are copied there as seeds.
"""

import pathlib
import shutil
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 1, 6: 2, 7: 4, 8: 8, 9: 2, 10: 4, 11: 8, 12: 2, 13: 8}
UINT32, INT32, FLOAT32 = 3, 7, 10
GPU = 1


def u64(*v):
    return struct.pack(f"<{len(v)}Q", *v)


def i32(*v):
    return struct.pack(f"<{len(v)}i", *v)


def f32(*v):
    return struct.pack(f"<{len(v)}f", *v)


def flag(*v):
    return bytes(bool(x) for x in v)


def text(s):
    return u64(len(s)) + s.encode()


def ints(v):
    return u64(len(v)) + i32(*v)


def ids(v):
    return u64(len(v)) + u64(*v)


def dtype(t):
    return i32(t) + bytes([SIZES[t]])


def desc(shape, t=FLOAT32):
    return ints(shape) + dtype(t)


def node(name, reads, result, out, state=b"", device=0):
    """out: (shape, dtype) of the only result."""
    return (u64(result) + flag(1) + ids(reads) + i32(0, device, 0) + text(name) + state + u64(0) +
            desc(*out))


def many(name, reads, results, outs, state=b""):
    return (u64(results[0]) + flag(1) + ids(reads) + i32(0, 0, 0) + text(name) + state +
            u64(len(results) - 1) + ids(results) + u64(len(outs)) +
            b"".join(ints(s) for s, _ in outs) + u64(len(outs)) + b"".join(dtype(t) for _, t in outs))


def constant(number, shape, t, data):
    return u64(number) + flag(0, 1) + desc(shape, t) + data


def known(number, is_constant):
    return u64(number) + flag(0, is_constant)


def trace(inputs, entries, outputs, names=()):
    """inputs: (id, shape, dtype)"""
    return (u64(len(names)) + b"".join(map(text, names)) + ids([i for i, _, _ in inputs]) +
            u64(len(inputs)) + b"".join(desc(s, t) for _, s, t in inputs) + ids(outputs) +
            u64(len(entries)) + b"".join(entries))


def header(count=1, shapeless=False, metadata="words"):
    return text("0.32.4") + i32(count) + flag(shapeless) + text(metadata)


def file(*traces, shapeless=False):
    return header(len(traces), shapeless) + b"".join(traces)


X = (1, (1, 2, 3, 4), FLOAT32)
OUT = ((1, 2, 3, 4), FLOAT32)


def attention(lse=0):
    return trace([X, (2, (1, 2, 3, 4), FLOAT32), (3, (1, 2, 3, 4), FLOAT32)],
                 [node("ScaledDotProductAttention", [1, 2, 3], 4, OUT,
                       f32(0.5) + flag(1, 0, lse, 0))], [4])


def fast(device=0):
    """Norms with and without weights, rotary positions, attention."""
    w = (2, (4,), FLOAT32)
    return trace([X, w, (3, (4,), FLOAT32)], [
        constant(10, (), FLOAT32, f32(1)), constant(11, (), FLOAT32, f32(0)),
        constant(12, (), INT32, i32(5)),
        node("RMSNorm", [1, 2], 4, OUT, f32(1e-5), device),
        node("RMSNorm", [1, 10], 5, OUT, f32(1e-5), device),
        node("LayerNorm", [1, 2, 3], 6, OUT, f32(1e-5), device),
        node("LayerNorm", [1, 10, 11], 7, OUT, f32(1e-5), device),
        node("RoPE", [1, 12], 8, OUT, i32(4) + flag(0) + f32(10000, 1) + flag(1), device),
        node("ScaledDotProductAttention", [4, 5, 6], 9, OUT, f32(0.5) + flag(1, 0, 0, 0), device),
        known(1, 0),
    ], [4, 5, 6, 7, 8, 9])


def shared():
    """Two traces with one constant; a node with two results."""
    three = constant(7, (3,), FLOAT32, f32(1, 2, 3))
    one = trace([(1, (3,), FLOAT32)], [three, node("Add", [1, 7], 2, ((3,), FLOAT32))], [2])
    two = trace([(1, (1, 3), FLOAT32)],
                [known(7, 1), node("Reshape", [7], 3, ((1, 3), FLOAT32), ints((1, -1))),
                 node("Multiply", [1, 3], 2, ((1, 3), FLOAT32))], [2, 1])
    split = trace([(1, (4,), INT32)],
                  [many("Split", [1], [2, 3], [((1,), INT32), ((3,), INT32)], ints([1]) + i32(0))],
                  [3, 2])
    return [one, two, split]


ADD = node("Add", [1, 1], 2, ((3,), FLOAT32))
ONE = (1, (3,), FLOAT32)
GOOD = file(trace([ONE], [ADD], [2]))

WRONG = {
    "empty": b"",
    "half": GOOD[:len(GOOD) // 2],
    "no_end": GOOD[:-1],
    "long_name": u64(1 << 62) + b"0.32.4",
    "many_traces": header(0x7fffffff) + trace([ONE], [ADD], [2]),
    "unknown": file(trace([ONE], [node("Frobnicate", [1], 2, ((3,), FLOAT32))], [2])),
    "unknown_state": file(attention(lse=1)),
    "other_shape": file(trace([ONE], [node("Add", [1, 1], 2, ((4,), FLOAT32))], [2])),
    "other_dtype": file(trace([ONE], [node("Add", [1, 1], 2, ((3,), INT32))], [2])),
    "unfit": file(trace([ONE, (3, (4,), FLOAT32)], [node("Add", [1, 3], 2, ((3,), FLOAT32))], [2])),
    "too_few_inputs": file(trace([ONE], [node("Add", [1], 2, ((3,), FLOAT32))], [2])),
    "no_inputs": file(trace([ONE], [node("Broadcast", [], 2, ((3,), FLOAT32), ints((3,)))], [2])),
    "from_itself": file(trace([ONE], [node("Abs", [2], 2, ((3,), FLOAT32))], [2])),
    "no_such_result": file(trace([ONE], [ADD], [9])),
    "twice": file(trace([ONE], [ADD, ADD], [2])),
    "negative": file(trace([(1, (-3,), FLOAT32)], [ADD], [2])),
    "huge": file(trace([(1, (1 << 30, 1 << 30, 1 << 30), FLOAT32)], [ADD], [1])),
    "huge_constant": file(trace([], [constant(1, (1 << 30, 4), FLOAT32, b"1234")], [1])),
    "many_dimensions": file(trace([(1, (1,) * 33, FLOAT32)], [ADD], [1])),
    "many_axes": file(trace([ONE], [node("Transpose", [1], 2, ((3,), FLOAT32), ints(range(40)))],
                            [2])),
    "many_nodes": file(trace([ONE], [ADD], [2]).replace(u64(1) + ADD, u64(1 << 60) + ADD)),
    "bad_axis": file(trace([ONE], [node("Sort", [1], 2, ((3,), FLOAT32), i32(7))], [2])),
    "bad_kind": file(trace([ONE], [node("Reduce", [1], 2, ((1,), FLOAT32), i32(9) + ints([0]))], [2])),
    "bad_dtype": file(trace([ONE], [node("AsType", [1], 2, ((3,), FLOAT32), i32(99) + b"\4")], [2])),
    "bad_size": file(trace([ONE], [node("AsType", [1], 2, ((3,), FLOAT32), i32(10) + b"\2")], [2])),
    "bad_device": file(trace([ONE], [node("Abs", [1], 2, ((3,), FLOAT32), device=9)], [2])),
    "more_results": file(trace([ONE], [many("Abs", [1], [2, 3], [((3,), FLOAT32)] * 2)], [2])),
    "more_reshaped": file(trace([ONE], [many("Reshape", [1], [2, 3], [((3,), FLOAT32)] * 2,
                                             ints((3,)))], [3])),
    "uneven_columns": file(trace([ONE], [node("Slice", [1], 2, ((3,), FLOAT32),
                                              ints([0]) + ints([3, 3]) + ints([1]))], [2])),
    "names": file(trace([ONE], [ADD], [2], ["b", "a"])),
    "more_names": file(trace([ONE], [ADD], [2], ["a", "b"])),
}

RIGHT = {"fast": file(fast()), "shared": file(*shared()), "plain": GOOD,
         "named": file(trace([ONE, (3, (3,), FLOAT32)], [node("Add", [1, 3], 2, ((3,), FLOAT32))], [2],
                             ["scale"]), shapeless=True)}


def main():
    folder, stored = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for path in stored.glob("*.mlxfn"):
        shutil.copy(path, folder / ("mlx_" + path.name))
    for name, data in RIGHT.items():
        (folder / f"right_{name}.mlxfn").write_bytes(data)
    for name, data in WRONG.items():
        (folder / f"wrong_{name}.mlxfn").write_bytes(data)
    rows = "".join(f'    "{name}",\n' for name in WRONG)
    (folder / "mlxfn_wrong.inc").write_text("/* Written by tests/gen/mlxfn_seeds.py. */\n"
                                            f"static const char *const wrong[] = {{\n{rows}}};\n")


main()
