"""What the generators of case rows share: dtypes, layouts, rows, and the binary table they end in.

Values are held in NumPy arrays of a carrier type. bfloat16, which NumPy lacks, is carried as
float32 whose values are bfloat16 numbers; everything else is carried as itself.

The file is "MLXC", u32 bytes unpacked, and a zlib stream of the table, which is little endian: u32
rows, u32 bytes of data, the rows, zeros up to a multiple of 16, the data. text: u16 length, bytes.
array: u8 dtype, u8 ndim, i32 dims, u32 where it begins in the data, a multiple of 16; arrays with the
same bytes share them. A row:
    text family, text function, text note
    u8 inputs, each: u8 present, array, u8 views, each: u8 kind, u8 n, i32 x n
    u8 params, each: u8 kind, then i: u16 n, i64 x n | d: f64 | s: text
    u8 outputs, each: array
    u8 tolerance, f64 scale, u8 cpu only
"""

import math
import struct
import zlib

import numpy as np

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64", "bfloat16", "complex64"]
CODE = {name: i for i, name in enumerate(DTYPES)}

UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
SIGNED = ["int8", "int16", "int32", "int64"]
INTS = UNSIGNED + SIGNED
FLOATS = ["float16", "float32", "float64", "bfloat16"]
REAL = ["bool"] + INTS + FLOATS
ALL = REAL + ["complex64"]

# MLX's promotion, as hex digits in the order of DTYPES.
PROMOTION = ["0123456789ABCD", "1123466789ABCD", "2223477789ABCD", "3333488889ABCD",
             "44444AAAA9ABCD", "5678A56789ABCD", "6678A66789ABCD", "7778A77789ABCD",
             "8888A88889ABCD", "9999999999ABAD", "AAAAAAAAAAABAD", "BBBBBBBBBBBBBD",
             "CCCCCCCCCAABCD", "DDDDDDDDDDDDDD"]

# How a result is compared: within the dtype's tolerance; equal; equal with the sign of zeros; a
# quotient may be off by the few units in the last place that Vulkan allows a division.
CLOSE, EXACT, BITS, DIVISION = 0, 1, 2, 3


def promote(a, b):
    return DTYPES[int(PROMOTION[CODE[a]][CODE[b]], 16)]


def at_least_float(t):
    return t if t in FLOATS or t == "complex64" else promote(t, "float32")


def is_float(t):
    return t in FLOATS


def carrier(t):
    return np.dtype("float32" if t == "bfloat16" else t)


def round_bf16(x):
    """float32 values rounded to bfloat16, nearest even."""
    x = np.asarray(x, np.float32)
    bits = x.reshape(-1).view(np.uint32).astype(np.int64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    rounded = rounded.astype(np.uint32).view(np.float32).reshape(x.shape)
    return np.where(np.isnan(x), x, rounded)


def cast(x, t):
    """x converted to dtype t as MLX does: integers wrap, to bool is "not zero"."""
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        if t == "bool":
            return x != 0
        if np.iscomplexobj(x) and t != "complex64":
            x = x.real
        if t == "bfloat16":
            return round_bf16(x.astype(np.float32))
        return x.astype(carrier(t))


def raw(x, t):
    """The bytes of a row-major array of dtype t."""
    x = np.asarray(x, carrier(t)).reshape(-1)
    if t == "bfloat16":
        return (np.ascontiguousarray(x).view(np.uint32) >> 16).astype("<u2").tobytes()
    return x.tobytes()


REPEAT = 2039


def repeated(draw, shape, period=REPEAT):
    """draw(n) numbers as an array; a large one repeats them, which packs well. The period is prime:
    rows do not begin with the same number."""
    return np.resize(draw(min(math.prod(shape), period)), shape)


def wide(x):
    """For computing a reference: float64 or complex128."""
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


# ---- arrays and layouts ----

TRANSPOSE, SLICE, BROADCAST, RESHAPE = 0, 1, 2, 3


class Arr:
    """An input: logical values of a dtype, and how they are made from a dense array."""

    def __init__(self, values, dtype, layout="row"):
        self.dtype = dtype
        self.layout = layout
        self.values = np.asarray(values, carrier(dtype))
        self.base, self.views = LAYOUTS[layout](self.values)

    @property
    def shape(self):
        return self.values.shape


def lay_row(x):
    return x, []


def lay_transposed(x):
    axes = list(range(x.ndim))[::-1]
    return np.transpose(x, axes), [(TRANSPOSE, axes)]


def lay_sliced(x):
    """Every other element of something larger, from element 1 on."""
    base = np.full([2 * d + 1 for d in x.shape], x.reshape(-1)[0] if x.size else 0, x.dtype)
    base[tuple(slice(1, 2 * d + 1, 2) for d in x.shape)] = x
    return base, [(SLICE, [v for d in x.shape for v in (1, 2 * d + 1, 2)])]


def lay_reversed(x):
    base = x[tuple(slice(None, None, -1) for _ in x.shape)]
    # A stop before the first element: clamped to "run to the beginning".
    return base, [(SLICE, [v for d in x.shape for v in (d - 1 if d else 0, -d - 1, -1)])]


def lay_offset(x):
    """Row-major, but not at the start of the buffer."""
    base = np.concatenate([np.zeros(3, x.dtype), x.reshape(-1), np.zeros(2, x.dtype)])
    return base, [(SLICE, [3, 3 + x.size, 1]), (RESHAPE, list(x.shape))]


def lay_broadcast(x):
    """Axis 0 does not move; the values must not change along it."""
    return x[:1], [(BROADCAST, list(x.shape))]


def lay_column(x):
    """A column of a wider matrix: the last axis alone is strided."""
    base = np.zeros(x.shape + (3,), x.dtype)
    base[..., 1] = x
    steps = [v for d in x.shape for v in (0, d, 1)] + [1, 2, 1]
    return base, [(SLICE, steps), (RESHAPE, list(x.shape))]


def lay_heads(x):
    """[B, H, T, D] seen through an array of [B, T, H, D]."""
    return np.swapaxes(x, 1, 2), [(TRANSPOSE, [0, 2, 1, 3])]


def lay_cache(x):
    """The first part along the last but one axis of something longer."""
    base = np.ones(x.shape[:-2] + (x.shape[-2] + 5,) + x.shape[-1:], x.dtype)
    base[..., :x.shape[-2], :] = x
    return base, [(SLICE, [v for d in x.shape for v in (0, d, 1)])]


LAYOUTS = {"row": lay_row, "transposed": lay_transposed, "sliced": lay_sliced,
           "reversed": lay_reversed, "offset": lay_offset, "broadcast": lay_broadcast,
           "column": lay_column, "heads": lay_heads, "cache": lay_cache}


def laid_out(values, dtype, layout):
    """An input with this layout; a broadcast one repeats its first row."""
    values = np.asarray(values, carrier(dtype))
    if layout == "broadcast":
        values = np.ascontiguousarray(np.broadcast_to(values[:1], values.shape))
    return Arr(values, dtype, layout)


# ---- rows ----

class Row:
    """One call. params: lists of ints (i), doubles (d) and texts (s), in the order in which the
    function takes them. scale: magnitude of what was summed up, for an absolute tolerance."""

    def __init__(self, fn, inputs, outputs, params=(), tolerance=CLOSE, scale=0.0):
        self.fn = fn
        self.inputs = list(inputs)
        self.params = list(params)
        self.outputs = list(outputs)  # (values, dtype)
        self.tolerance = tolerance
        self.scale = float(scale)
        self.family = ""
        self.host = False  # there is no such op on a GPU

    @property
    def note(self):
        parts = []
        for a in self.inputs:
            if a is None:
                parts.append("-")
            else:
                dims = ",".join(map(str, a.shape))
                parts.append(f"{a.dtype}({dims}){'' if a.layout == 'row' else ' ' + a.layout}")
        return " ".join(parts + [str(p) for p in self.params])

    @property
    def cpu_only(self):
        types = [a.dtype for a in self.inputs if a is not None] + [t for _, t in self.outputs]
        return self.host or "float64" in types or any(p == CODE["float64"] for p in self.dtype_params())

    def dtype_params(self):
        return [p.code for p in self.params if isinstance(p, DtypeParam)]


class DtypeParam(int):
    """A dtype as a parameter: an int that knows what it is."""

    def __new__(cls, name):
        self = super().__new__(cls, CODE[name])
        self.code = CODE[name]
        return self


class Ints(list):
    """A list parameter; a bare int is a list of one."""


def put_text(out, text):
    data = text.encode()
    out.append(struct.pack("<H", len(data)) + data)


class Data:
    """The bytes of all arrays, each once."""

    def __init__(self):
        self.parts, self.size, self.begin = [], 0, {}

    def place(self, data):
        if data not in self.begin:
            self.begin[data] = self.size
            self.parts += [data, bytes(-len(data) % 16)]
            self.size += len(data) + -len(data) % 16
        return self.begin[data]


def put_array(out, data, values, dtype):
    out.append(struct.pack(f"<BB{values.ndim}iI", CODE[dtype], values.ndim, *values.shape,
                           data.place(raw(values, dtype))))


def put_param(out, p):
    if isinstance(p, str):
        out.append(b"s")
        put_text(out, p)
    elif isinstance(p, float):
        out.append(struct.pack("<cd", b"d", p))
    else:
        ints = list(p) if isinstance(p, (list, tuple)) else [int(p)]
        out.append(struct.pack(f"<cH{len(ints)}q", b"i", len(ints), *ints))


def put_row(out, data, row):
    for text in (row.family, row.fn, row.note):
        put_text(out, text)
    out.append(struct.pack("<B", len(row.inputs)))
    for a in row.inputs:
        out.append(struct.pack("<B", a is not None))
        if a is None:
            continue
        put_array(out, data, a.base, a.dtype)
        out.append(struct.pack("<B", len(a.views)))
        for kind, numbers in a.views:
            out.append(struct.pack(f"<BB{len(numbers)}i", kind, len(numbers), *numbers))
    out.append(struct.pack("<B", len(row.params)))
    for p in row.params:
        put_param(out, p)
    out.append(struct.pack("<B", len(row.outputs)))
    for values, dtype in row.outputs:
        put_array(out, data, np.asarray(values, carrier(dtype)), dtype)
    out.append(struct.pack("<BdB", row.tolerance, row.scale, row.cpu_only))


def write_table(path, rows):
    out, data = [], Data()
    for row in rows:
        put_row(out, data, row)
    head = struct.pack("<II", len(rows), data.size) + b"".join(out)
    table = b"".join([head, bytes(-len(head) % 16), *data.parts])
    with open(path, "wb") as f:
        f.write(struct.pack("<4sI", b"MLXC", len(table)) + zlib.compress(table))
