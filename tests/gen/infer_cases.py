#!/usr/bin/env python3
"""Writes tests/unit/infer_cases.def: which dtype and shape MLX infers for each op.

Needs the mlx package (any backend); the output is kept in the tree, so that the tests do not.
usage: infer_cases.py > tests/unit/infer_cases.def
"""

import pathlib
import re

import mlx.core as mx

mx.set_default_device(mx.cpu)

DTYPES = [
    mx.bool_, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.int8, mx.int16, mx.int32, mx.int64,
    mx.float16, mx.float32, mx.float64, mx.bfloat16, mx.complex64,
]
LETTERS = "b1248acilhfdBz"  # one per dtype, in the order above

OPS = pathlib.Path(__file__).parents[2] / "src/ops"


def public_names(table, row):
    """The public functions in the rows of a table of src/ops."""
    return re.findall(rf"^{row}\((?:.*?, )??([a-z]\w*),", (OPS / table).read_text(), re.M)


UNARY = public_names("ops.def", "UNARY") + """round degrees radians reciprocal isnan isinf isfinite
isposinf isneginf nan_to_num stop_gradient zeros_like ones_like""".split()
BINARY = public_names("ops.def", "BINARY") + """floor_divide divmod isclose array_equal matmul inner
outer""".split()
REDUCE = public_names("reduce.def", "REDUCTION") + """mean var std logsumexp softmax argmax
argmin""".split()


def letter(fn):
    """The result's dtype as a letter, ! for an error."""
    try:
        out = fn()
    except (ValueError, RuntimeError, IndexError):
        return "!"
    out = out[0] if isinstance(out, (tuple, list)) else out
    return LETTERS[DTYPES.index(out.dtype)]


def dtype_rows():
    x = {d: mx.zeros((2, 2), dtype=mx.float32).astype(d) for d in DTYPES}
    for name in UNARY:
        f = getattr(mx, name)
        yield "UNARY", name, ["".join(letter(lambda: f(x[d])) for d in DTYPES)]
    yield "UNARY", "round_2", ["".join(letter(lambda: mx.round(x[d], 2)) for d in DTYPES)]
    for name in REDUCE:
        f = getattr(mx, name)
        yield "UNARY", name + "_last", ["".join(letter(lambda: f(x[d], axis=-1)) for d in DTYPES)]
        yield "UNARY", name + "_first", ["".join(letter(lambda: f(x[d], axis=0)) for d in DTYPES)]
    for name in BINARY:
        f = getattr(mx, name)
        yield "BINARY", name, [
            "".join(letter(lambda: f(x[d], x[e])) for e in DTYPES) for d in DTYPES
        ]


def pads(args):
    """low, high, axis triples as the three lists of mx.pad."""
    return [(args[i], args[i + 1]) for i in range(0, len(args), 2)]


def slice_of(a, args):
    """start, stop, step triples, with MLX's own meaning of negative values."""
    n = a.ndim
    index = tuple(slice(*(args[3 * i:3 * i + 3])) for i in range(n))
    return a[index]


def starts(n):
    return mx.zeros((n,), dtype=mx.int32)


# name: function of the arrays and the arguments; the C side has the same names
OPS = {
    "reshape": lambda a, v: mx.reshape(a[0], v),
    "flatten": lambda a, v: mx.flatten(a[0], v[0], v[1]),
    "unflatten": lambda a, v: mx.unflatten(a[0], v[0], v[1:]),
    "expand_dims": lambda a, v: mx.expand_dims(a[0], v),
    "squeeze": lambda a, v: mx.squeeze(a[0], v),
    "squeeze_all": lambda a, v: mx.squeeze(a[0]),
    "transpose": lambda a, v: mx.transpose(a[0], v),
    "transpose_all": lambda a, v: mx.transpose(a[0]),
    "moveaxis": lambda a, v: mx.moveaxis(a[0], v[0], v[1]),
    "swapaxes": lambda a, v: mx.swapaxes(a[0], v[0], v[1]),
    "broadcast_to": lambda a, v: mx.broadcast_to(a[0], v),
    "atleast_1d": lambda a, v: mx.atleast_1d(a[0]),
    "atleast_2d": lambda a, v: mx.atleast_2d(a[0]),
    "atleast_3d": lambda a, v: mx.atleast_3d(a[0]),
    "slice": lambda a, v: slice_of(a[0], v),
    "slice_dynamic": lambda a, v: mx.slice(a[0], starts(v[0]), v[1:1 + v[0]], v[1 + v[0]:]),
    "slice_update_dynamic": lambda a, v: mx.slice_update(a[0], a[1], starts(len(v)), v),
    "split": lambda a, v: mx.split(a[0], v[0], v[1]),
    "split_sections": lambda a, v: mx.split(a[0], v[1:], v[0]),
    "concatenate": lambda a, v: mx.concatenate(a, v[0]),
    "concatenate_flat": lambda a, v: mx.concatenate([x.flatten() for x in a], 0),
    "stack": lambda a, v: mx.stack(a, v[0]),
    "repeat": lambda a, v: mx.repeat(a[0], v[0], v[1]),
    "repeat_flat": lambda a, v: mx.repeat(a[0], v[0]),
    "tile": lambda a, v: mx.tile(a[0], v),
    "pad": lambda a, v: mx.pad(a[0], pads(v)),
    "pad_edge": lambda a, v: mx.pad(a[0], pads(v), mode="edge"),
    "take": lambda a, v: mx.take(a[0], mx.zeros(v[1:], dtype=mx.int32), v[0]),
    "take_flat": lambda a, v: mx.take(a[0], mx.zeros(v, dtype=mx.int32)),
    "add": lambda a, v: mx.add(a[0], a[1]),
    "where": lambda a, v: mx.where(a[0], a[1], a[2]),
    "broadcast_arrays": lambda a, v: mx.broadcast_arrays(*a),
    "matmul": lambda a, v: mx.matmul(a[0], a[1]),
    "addmm": lambda a, v: mx.addmm(a[0], a[1], a[2]),
    "inner": lambda a, v: mx.inner(a[0], a[1]),
    "outer": lambda a, v: mx.outer(a[0], a[1]),
    "tensordot": lambda a, v: mx.tensordot(a[0], a[1], [v[:len(v) // 2], v[len(v) // 2:]]),
    "tensordot_axis": lambda a, v: mx.tensordot(a[0], a[1], v[0]),
    "sum": lambda a, v: mx.sum(a[0], v[1:], keepdims=bool(v[0])),
    "sum_all": lambda a, v: mx.sum(a[0], keepdims=bool(v[0])),
    "max": lambda a, v: mx.max(a[0], v[1:], keepdims=bool(v[0])),
    "all": lambda a, v: mx.all(a[0], v[1:], keepdims=bool(v[0])),
    "mean": lambda a, v: mx.mean(a[0], v[1:], keepdims=bool(v[0])),
    "var": lambda a, v: mx.var(a[0], v[1:], keepdims=bool(v[0])),
    "logsumexp": lambda a, v: mx.logsumexp(a[0], v[1:], keepdims=bool(v[0])),
    "softmax": lambda a, v: mx.softmax(a[0], v),
    "argmax": lambda a, v: mx.argmax(a[0], v[1], keepdims=bool(v[0])),
    "argmax_all": lambda a, v: mx.argmax(a[0], keepdims=bool(v[0])),
    "arange": lambda a, v: mx.arange(v[0], v[1], v[2]),
    "linspace": lambda a, v: mx.linspace(v[0], v[1], v[2]),
    "eye": lambda a, v: mx.eye(v[0], v[1], v[2]),
    "tri": lambda a, v: mx.tri(v[0], v[1], v[2]),
    "tril": lambda a, v: mx.tril(a[0], v[0]),
    "full": lambda a, v: mx.full(v, a[0]),
    "array_equal": lambda a, v: mx.array_equal(a[0], a[1]),
    "random_bits": lambda a, v: mx.random.randint(0, 2, v),
    "split_num": lambda a, v: mx.random.split(mx.random.key(0), v[0]),
}

# op, shapes of the inputs, arguments
CASES = [
    ("reshape", [(2, 3)], (3, 2)), ("reshape", [(2, 3)], (-1,)), ("reshape", [(2, 3)], (2, -1)),
    ("reshape", [(2, 3)], (4, -1)), ("reshape", [(2, 3)], (-1, -1)), ("reshape", [(0, 3)], (-1, 3)),
    ("reshape", [(0, 3)], (-1, 0)), ("reshape", [()], (1, 1)), ("reshape", [(1, 1)], ()),
    ("reshape", [(2, 3)], (5,)), ("reshape", [(0,)], (0, 7)),
    ("flatten", [(2, 3, 4)], (0, -1)), ("flatten", [(2, 3, 4)], (1, 2)),
    ("flatten", [(2, 3, 4)], (-2, -1)), ("flatten", [(2, 3, 4)], (2, 1)),
    ("flatten", [(2, 3, 4)], (1, 1)), ("flatten", [(2, 3, 4)], (-9, 9)), ("flatten", [()], (0, -1)),
    ("flatten", [(2, 3, 4)], (3, 5)),
    ("unflatten", [(6, 4)], (0, 2, 3)), ("unflatten", [(6, 4)], (0, 2, -1)),
    ("unflatten", [(6, 4)], (-1, -1, 2)), ("unflatten", [(6, 4)], (0, 4, -1)),
    ("unflatten", [(6, 4)], (2, 2, 3)), ("unflatten", [(6, 4)], (0, 6)), ("unflatten", [(6, 4)], (0,)),
    ("expand_dims", [(2, 3)], (0,)), ("expand_dims", [(2, 3)], (-1,)),
    ("expand_dims", [(2, 3)], (0, 2)), ("expand_dims", [(2, 3)], (1, -1)),
    ("expand_dims", [(2, 3)], (0, 0)), ("expand_dims", [(2, 3)], (3,)), ("expand_dims", [()], (0,)),
    ("expand_dims", [(2,)], (-3,)),
    ("squeeze", [(1, 2, 1)], (0,)), ("squeeze", [(1, 2, 1)], (0, 2)),
    ("squeeze", [(1, 2, 1)], (-1,)), ("squeeze", [(1, 2, 1)], (1,)),
    ("squeeze", [(1, 2, 1)], (0, -3)), ("squeeze", [(1, 2, 1)], (3,)),
    ("squeeze_all", [(1, 2, 1)], ()), ("squeeze_all", [(2, 3)], ()), ("squeeze_all", [(1, 1)], ()),
    ("transpose", [(2, 3, 4)], (2, 0, 1)), ("transpose", [(2, 3, 4)], (-1, 0, 1)),
    ("transpose", [(2, 3, 4)], (0, 0, 1)), ("transpose", [(2, 3, 4)], (0, 1)),
    ("transpose", [(2, 3, 4)], (0, 1, 3)), ("transpose_all", [(2, 3, 4)], ()),
    ("transpose_all", [()], ()),
    ("moveaxis", [(2, 3, 4)], (0, 2)), ("moveaxis", [(2, 3, 4)], (-1, 0)),
    ("moveaxis", [(2, 3, 4)], (1, 1)), ("moveaxis", [(2, 3, 4)], (3, 0)),
    ("swapaxes", [(2, 3, 4)], (0, -1)), ("swapaxes", [(2, 3, 4)], (0, -4)),
    ("broadcast_to", [(3,)], (2, 3)), ("broadcast_to", [(2, 1)], (2, 3)),
    ("broadcast_to", [(2, 3)], (3,)), ("broadcast_to", [(2, 3)], (3, 3)),
    ("broadcast_to", [()], (0, 2)), ("broadcast_to", [(1,)], (0,)), ("broadcast_to", [(0,)], (1,)),
    ("atleast_1d", [()], ()), ("atleast_2d", [()], ()), ("atleast_2d", [(3,)], ()),
    ("atleast_3d", [()], ()), ("atleast_3d", [(3,)], ()), ("atleast_3d", [(2, 3)], ()),
    ("atleast_2d", [(2, 3, 4)], ()),
    ("slice", [(10,)], (0, 10, 1)), ("slice", [(10,)], (2, 8, 2)), ("slice", [(10,)], (8, 2, 1)),
    ("slice", [(10,)], (9, -11, -1)), ("slice", [(10,)], (-3, 100, 1)),
    ("slice", [(10,)], (100, -100, -3)), ("slice", [(10,)], (-100, 100, 7)),
    ("slice", [(10,)], (5, 5, -1)), ("slice", [(4, 6)], (1, 3, 1, 0, 6, 4)),
    ("slice", [(0,)], (0, 5, 1)), ("slice", [(10,)], (3, 4, 5)), ("slice", [(10,)], (2, 8, -1)),
    ("slice_dynamic", [(4, 6)], (1, 0, 2, 6)), ("slice_dynamic", [(4, 6)], (2, 1, -2, 1, 1)),
    ("slice_dynamic", [(4, 6)], (0, 4, 3)), ("slice_dynamic", [(4, 6)], (1, 0, 5, 6)),
    ("slice_dynamic", [(4, 6)], (1, 2, 2, 2)), ("slice_dynamic", [(4, 6)], (2, 0, -2, 2, 2)),
    ("slice_dynamic", [(4, 6)], (1, 0, 2)), ("slice_dynamic", [(4, 6)], (3, 0, 1, 1, 2, 2)),
    ("slice_dynamic", [(4, 6)], (1, 0, 0, 6)), ("slice_dynamic", [()], (0,)),
    ("slice_update_dynamic", [(4, 6), (2, 3)], (0, 1)),
    ("slice_update_dynamic", [(4, 6), (6,)], (0,)), ("slice_update_dynamic", [(4, 6), (3,)], (-1,)),
    ("slice_update_dynamic", [(4, 6), ()], (0, 1)), ("slice_update_dynamic", [(4, 6), (5, 6)], (0,)),
    ("slice_update_dynamic", [(4, 6), (1, 1)], (0, 2)),
    ("slice_update_dynamic", [(4, 6), (1, 1)], (1, -1)),
    ("slice_update_dynamic", [(4, 6), (0, 6)], (0,)),
    ("split", [(6, 4)], (3, 0)), ("split", [(6, 4)], (2, -1)), ("split", [(6, 4)], (4, 0)),
    ("split", [(6, 4)], (0, 0)), ("split", [(24,)], (12, 0)), ("split", [(6, 4)], (1, 2)),
    ("split_sections", [(6, 4)], (0, 2, 5)), ("split_sections", [(6, 4)], (0, 5, 2)),
    ("split_sections", [(6, 4)], (1, 2, 2)), ("split_sections", [(6, 4)], (0, 0, 9)),
    ("split_sections", [(6, 4)], (0, -2)), ("split_sections", [(6, 4)], (0,)),
    ("concatenate", [(2, 3), (4, 3)], (0,)), ("concatenate", [(2, 3), (2, 1)], (-1,)),
    ("concatenate", [(2, 3), (2, 1)], (0,)), ("concatenate", [(2, 3), (3,)], (0,)),
    ("concatenate", [(2, 3)], (0,)), ("concatenate", [(2, 3), (2, 3)], (2,)),
    ("concatenate", [(0, 3), (2, 3)], (0,)), ("concatenate_flat", [(2, 3), (4,), ()], ()),
    ("stack", [(2, 3), (2, 3)], (0,)), ("stack", [(2, 3), (2, 3)], (-1,)),
    ("stack", [(2, 3), (2, 3)], (3,)), ("stack", [(2, 3), (3, 2)], (0,)), ("stack", [(), ()], (0,)),
    ("repeat", [(2, 3)], (2, 0)), ("repeat", [(2, 3)], (3, -1)), ("repeat", [(2, 3)], (0, 1)),
    ("repeat", [(2, 3)], (1, 1)), ("repeat", [(2, 3)], (-1, 0)), ("repeat", [(2, 3)], (2, 2)),
    ("repeat_flat", [(2, 3)], (2,)),
    ("tile", [(2, 3)], (2,)), ("tile", [(2, 3)], (2, 1)), ("tile", [(2, 3)], (2, 3, 4)),
    ("tile", [()], (3, 2)), ("tile", [(2, 3)], (0, 1)), ("tile", [(2, 3)], (1, 1)),
    ("pad", [(2, 3)], (1, 2, 0, 0)), ("pad", [(2, 3)], (0, 0, 0, 0)), ("pad", [(2, 3)], (-1, 0, 0, 0)),
    ("pad_edge", [(2, 3)], (1, 2, 3, 0)), ("pad", [(0,)], (1, 1)),
    ("take", [(4, 5)], (0, 3)), ("take", [(4, 5)], (1, 2, 2)), ("take", [(4, 5)], (-1,)),
    ("take", [(4, 5)], (2, 1)), ("take", [(0, 5)], (0, 1)), ("take", [(0, 5)], (0, 0)),
    ("take_flat", [(4, 5)], (3, 3)),
    ("add", [(2, 3), (3,)], ()), ("add", [(2, 1), (1, 3)], ()), ("add", [(2, 3), (2,)], ()),
    ("add", [(0, 3), (1, 3)], ()), ("add", [(), ()], ()), ("add", [(5, 1, 4), (3, 1)], ()),
    ("where", [(2, 1), (3,), ()], ()), ("where", [(2,), (3,), ()], ()),
    ("broadcast_arrays", [(2, 1), (3,)], ()), ("broadcast_arrays", [(2,), (3,)], ()),
    ("broadcast_arrays", [(2, 1)], ()),
    ("matmul", [(2, 3), (3, 4)], ()), ("matmul", [(3,), (3, 4)], ()), ("matmul", [(2, 3), (3,)], ()),
    ("matmul", [(3,), (3,)], ()), ("matmul", [(5, 2, 3), (3, 4)], ()),
    ("matmul", [(5, 1, 2, 3), (6, 3, 4)], ()), ("matmul", [(2, 3), (4, 3)], ()),
    ("matmul", [(), (3,)], ()), ("matmul", [(5, 2, 3), (3,)], ()), ("matmul", [(3,), (5, 3, 4)], ()),
    ("matmul", [(0, 3), (3, 4)], ()), ("matmul", [(5, 2, 3), (4, 3, 2)], ()),
    ("matmul", [(2, 0), (0, 4)], ()), ("matmul", [(5, 0, 3), (3, 4)], ()),
    ("addmm", [(4,), (2, 3), (3, 4)], ()), ("addmm", [(), (2, 3), (3, 4)], ()),
    ("addmm", [(4,), (5, 2, 3), (3, 4)], ()), ("addmm", [(2, 4), (5, 2, 3), (3, 4)], ()),
    ("addmm", [(4,), (3,), (3, 4)], ()), ("addmm", [(2,), (2, 3), (3,)], ()),
    ("addmm", [(), (3,), (3,)], ()), ("addmm", [(3,), (2, 3), (3, 4)], ()),
    ("addmm", [(5, 1, 4), (5, 2, 3), (5, 3, 4)], ()), ("addmm", [(7, 2, 4), (2, 3), (3, 4)], ()),
    ("inner", [(2, 3), (4, 3)], ()), ("inner", [(3,), (3,)], ()), ("inner", [(), (3,)], ()),
    ("inner", [(2, 3), (4, 2)], ()), ("inner", [(2, 5, 3), (4, 3)], ()),
    ("tensordot", [(2, 3, 4), (4, 3, 5)], (2, 1, 0, 1)),
    ("tensordot", [(2, 3), (3, 4)], (-1, 0)), ("tensordot", [(2, 3), (4, 5)], (1, 0)),
    ("tensordot", [(2, 3), (4, 5)], ()), ("tensordot", [(2, 3), (3, 4)], (2, 0)),
    ("tensordot", [(2, 2), (2, 2)], (0, 0, 0, 1)), ("tensordot", [(0, 3), (3, 4)], (1, 0)),
    ("tensordot_axis", [(2, 3), (3, 4)], (1,)), ("tensordot_axis", [(2, 3), (2, 3)], (2,)),
    ("tensordot_axis", [(2, 3), (4, 5)], (0,)), ("tensordot_axis", [(2, 3), (3, 4)], (3,)),
    ("tensordot_axis", [(2, 3), (3, 4)], (-1,)), ("tensordot_axis", [(), ()], (0,)),
    ("outer", [(2, 3), (4,)], ()), ("outer", [(), (4,)], ()),
    ("sum", [(2, 3, 4)], (0, 1)), ("sum", [(2, 3, 4)], (1, 1)), ("sum", [(2, 3, 4)], (0, 0, -1)),
    ("sum", [(2, 3, 4)], (0, 1, 1)), ("sum", [(2, 3, 4)], (0, 3)), ("sum", [(2, 3, 4)], (0,)),
    ("sum", [(1, 3)], (0, 0)), ("sum", [(1, 3)], (1, 0)), ("sum", [(0, 3)], (0, 0)),
    ("sum_all", [(2, 3)], (0,)), ("sum_all", [(2, 3)], (1,)), ("sum_all", [()], (0,)),
    ("max", [(0, 3)], (0, 0)), ("max", [(0, 3)], (0, 1)), ("max", [(2, 3)], (0, -1)),
    ("all", [(0, 3)], (0, 0)), ("all", [(2, 3)], (0,)),
    ("mean", [(2, 3)], (0, 1)), ("mean", [(2, 3)], (0, 2)), ("mean", [(2, 3)], (1, 0, 1)),
    ("var", [(2, 3)], (0, 1)), ("var", [(2, 3)], (1, 0)),
    ("logsumexp", [(2, 3)], (0, 1)), ("logsumexp", [(2, 3)], (1, 0)),
    ("logsumexp", [(2, 3)], (0, 0, 1)), ("logsumexp", [(1, 3)], (0, 0, 1)),
    ("logsumexp", [(1, 3)], (1, 0, 1)), ("logsumexp", [(0, 3)], (0, 0)), ("logsumexp", [()], (0, 0)),
    ("logsumexp", [()], (0,)),
    ("softmax", [(2, 3)], (1,)), ("softmax", [(2, 3)], (0,)), ("softmax", [(0, 3)], (0,)),
    ("softmax", [()], (0,)), ("softmax", [(2, 3)], (2,)), ("softmax", [(2, 3)], (0, 1)),
    ("argmax", [(2, 3)], (0, 1)), ("argmax", [(2, 3)], (1, 0)), ("argmax", [(2, 3)], (0, 2)),
    ("argmax", [(1, 3)], (0, 0)), ("argmax", [(0, 3)], (0, 1)), ("argmax_all", [(2, 3)], (0,)),
    ("argmax_all", [(2, 3)], (1,)), ("argmax_all", [()], (0,)),
    ("arange", [], (0, 10, 3)), ("arange", [], (10, 0, -3)), ("arange", [], (0, 10, -1)),
    ("arange", [], (0, 10, 0)), ("arange", [], (5, 5, 1)),
    ("linspace", [], (0, 1, 5)), ("linspace", [], (0, 1, 1)), ("linspace", [], (0, 1, 0)),
    ("linspace", [], (0, 1, -1)),
    ("eye", [], (3, 4, 1)), ("eye", [], (0, 4, 0)), ("eye", [], (-1, 2, 0)), ("tri", [], (3, 4, -1)),
    ("tril", [(2, 3)], (0,)), ("tril", [(3,)], (0,)), ("tril", [(4, 2, 3)], (1,)),
    ("full", [()], (2, 3)), ("full", [(3,)], (2, 3)), ("full", [(3,)], (3, 2)), ("full", [()], ()),
    ("full", [()], (-1,)),
    ("array_equal", [(2,), (3,)], ()), ("array_equal", [(2,), (2,)], ()),
    ("random_bits", [], (2, 3)), ("random_bits", [], ()), ("split_num", [], (3,)),
]


def shape_text(shape):
    return "(" + ",".join(str(d) for d in shape) + ")"


def shape_rows():
    for name, shapes, args in CASES:
        inputs = [mx.zeros(s) for s in shapes]
        try:
            out = OPS[name](inputs, list(args))
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            expected = " ".join(shape_text(o.shape) for o in outs)
        except (ValueError, RuntimeError, IndexError, TypeError):
            expected = "!"
        yield name, " ".join(shape_text(s) for s in shapes), ",".join(map(str, args)), expected


print("/* What MLX", mx.__version__, "infers; written by tests/gen/infer_cases.py.")
print(" *")
print(" * DTYPES(op, result dtypes): one letter per operand dtype, in the order of dtype.def")
print(" * (%s), or per pair of them; ! is an error." % LETTERS)
print(" * SHAPES(op, input shapes, arguments, result shapes) */")
print()
for kind, name, rows in dtype_rows():
    if kind == "UNARY":
        print('DTYPES("%s", "%s")' % (name, rows[0]))
    else:
        print('DTYPES("%s",' % name)
        print("\n".join('       "%s"' % r for r in rows) + ")")
print()
for row in shape_rows():
    print('SHAPES("%s", "%s", "%s", "%s")' % row)
