#!/usr/bin/env python3
"""Writes files of every format that io reads, right and wrong ones, and what must come of them.

usage: io_files.py FOLDER

FOLDER receives the files, expected.bin with the bytes of all arrays in right files, and
io_files.inc with the tables that tests/unit/io_formats.c includes. The formats are written by hand
here, from their descriptions, so that nothing but NumPy is needed.
"""

import io
import json
import pathlib
import struct
import sys
import zipfile

import numpy as np

import gguf_blocks

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64", "bfloat16", "complex64"]
ST_NAMES = {"bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
            "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
            "float32": "F32", "bfloat16": "BF16", "complex64": "C64"}
SHAPES = [(3, 5), (), (0, 4), (7,), (2, 3, 4)]

rng = np.random.default_rng(11)


class Output:
    """The files and tables so far."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.arrays, self.texts, self.bad = [], [], []
        self.bytes = bytearray()

    def good(self, name, data, arrays, texts=()):
        """arrays: (name, dtype, values in row-major order)."""
        (self.folder / name).write_bytes(data)
        for key, dtype, values in arrays:
            self.arrays.append((name, key, dtype, values.shape, len(self.bytes)))
            self.bytes += values.tobytes()
        for key, value in texts:
            self.texts.append((name, key, value))

    def wrong(self, name, data, error):
        (self.folder / name).write_bytes(data)
        self.bad.append((name, error))

    def finish(self):
        (self.folder / "expected.bin").write_bytes(self.bytes)
        lines = ["/* Written by tests/gen/io_files.py. */",
                 "static const struct good_array good_arrays[] = {"]
        for name, key, dtype, shape, at in self.arrays:
            dims = ", ".join(map(str, shape)) or "0"
            lines.append(f'    {{ {quote(name)}, {quote(key)}, DT_{dtype.upper()}, '
                         f'{{ {len(shape)}, {{ {dims} }} }}, {at} }},')
        lines += ["};", "static const struct good_text good_texts[] = {"]
        lines += [f"    {{ {quote(n)}, {quote(k)}, {quote(v)} }}," for n, k, v in self.texts]
        lines += ["};", "static const struct bad_file bad_files[] = {"]
        lines += [f"    {{ {quote(n)}, {quote(e)} }}," for n, e in self.bad]
        lines += ["};", ""]
        (self.folder / "io_files.inc").write_text("\n".join(lines))


def quote(text):
    """A C string; octal escapes end after three digits, so that nothing runs on."""
    return '"' + "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else
                         "".join(f"\\{b:03o}" for b in c.encode()) for c in text) + '"'


def sample(dtype, shape):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype == "complex64":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)
    if dtype == "bfloat16":
        return rng.integers(0, 0x7f00, shape).astype(np.uint16)
    if dtype.startswith("float"):
        return np.asarray(rng.normal(size=shape)).astype(dtype)
    info = np.iinfo(dtype)
    return np.asarray(rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True))


# ---- safetensors ----

def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header, ensure_ascii=False).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def st_file(arrays, metadata=None, pad=0):
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, values in arrays:
        begin = len(data)
        data += values.tobytes()
        header[name] = {"dtype": ST_NAMES[dtype], "shape": list(values.shape),
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header, ensure_ascii=False).encode()
    return safetensors(text + b" " * (-len(text) % 8 + pad), data)


def safetensors_files(out):
    arrays = [(f"{t}.{i}", t, sample(t, s)) for t in ST_NAMES for i, s in enumerate(SHAPES)]
    arrays.sort(key=lambda a: -a[2].itemsize)
    texts = [("format", "pt"), ("quotes", '"\\/\b\n\t'), ("中", "é😀")]
    out.good("all.safetensors", st_file(arrays, dict(texts)), arrays, texts)
    out.good("odd.safetensors", st_file(arrays[::-1], pad=3), arrays[::-1])
    large = [("a", "float32", sample("float32", (300, 77))), ("b", "uint8", sample("uint8", (5,))),
             ("c", "float16", sample("float16", (70000,))), ("d", "uint8", sample("uint8", 66000))]
    out.good("large.safetensors", st_file(large), large)
    out.good("empty.safetensors", safetensors({}), [])
    out.good("null.safetensors", safetensors(b'{"__metadata__":null}'), [])
    raw = sample("uint8", (2, 4))
    for t in ("F8_E4M3", "F8_E8M0"):
        entry = {"dtype": t, "shape": [2, 4], "data_offsets": [0, 8]}
        out.good(f"{t}.safetensors", safetensors({"x": entry}, raw.tobytes()),
                 [("x", "uint8", raw)])
    entry = {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}
    out.good("truth.safetensors", safetensors({"x": entry}, b"\0\1\2\xff"),
             [("x", "bool", np.array([False, True, True, True]))])
    # Bytes that belong to no tensor: behind the last one, and before the second.
    entry = {"dtype": "U8", "shape": [2, 4]}
    out.good("behind.safetensors", safetensors({"a": {**entry, "data_offsets": [0, 8]}},
                                               raw.tobytes() + bytes(5)), [("a", "uint8", raw)])
    pair = {"a": {**entry, "data_offsets": [0, 8]}, "b": {**entry, "data_offsets": [11, 19]}}
    out.good("gap.safetensors", safetensors(pair, raw.tobytes() + bytes(3) + raw.tobytes()),
             [("a", "uint8", raw), ("b", "uint8", raw)])


def safetensors_errors(out):
    def wrong(name, data, error):
        out.wrong(f"{name}.safetensors", data, error)

    def tensor(name, entry, error, data=b"\0" * 16):
        base = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
        base = {k: v for k, v in {**base, **entry}.items() if v is not None}
        wrong(name, safetensors({"the tensor": base}, data), error)

    wrong("nothing", b"", "nothing.safetensors has only 0 bytes")
    wrong("seven", b"1234567", "has only 7 bytes")
    wrong("no_header", struct.pack("<Q", 0), "invalid header length 0")
    wrong("long_header", safetensors({}, length=100000000), "invalid header length 100000000")
    wrong("huge_header", safetensors({}, length=2**64 - 1), "invalid header length")
    wrong("cut_header", safetensors({}, length=3), "the header is 3 bytes long but")
    wrong("not_json", safetensors(b"{"), "line 1, column")
    wrong("list", safetensors([]), "the header is no object")
    wrong("deep", safetensors(b'{"a":' + b"[" * 9999), "nested too deeply")
    wrong("latin1", safetensors(b'{"\xe9":1}'), "not UTF-8")
    wrong("scalar_entry", safetensors({"x": 1}), "x: expected an object, found a number")
    wrong("metadata_list", safetensors({"__metadata__": []}), "__metadata__: expected an object")
    wrong("metadata_number", safetensors({"__metadata__": {"a": 1}}),
          "__metadata__.a: expected a string")
    tensor("no_dtype", {"dtype": None}, 'the tensor: "dtype" is missing')
    tensor("no_shape", {"shape": None}, 'the tensor: "shape" is missing')
    tensor("no_offsets", {"data_offsets": None}, 'the tensor: "data_offsets" is missing')
    tensor("number_dtype", {"dtype": 32}, "the tensor.dtype: expected a string")
    tensor("f64", {"dtype": "F64"}, "the tensor: unsupported dtype F64")
    tensor("text_shape", {"shape": "4"}, "the tensor.shape: expected an array")
    tensor("negative_shape", {"shape": [-4]}, "the tensor.shape: not a shape")
    tensor("wide_shape", {"shape": [2**31]}, "the tensor.shape: not a shape")
    tensor("half_shape", {"shape": [4.5]}, "the tensor.shape[0]: expected an integer, found 4.5")
    tensor("many_dims", {"shape": [1] * 33}, "the tensor.shape: not a shape")
    tensor("overflow", {"shape": [2**31 - 1] * 3}, "'the tensor' of")
    tensor("wrap", {"shape": [2**30, 2**30, 16]}, "the shape is too large")
    tensor("one_offset", {"data_offsets": [16]}, "must have exactly 2 entries")
    tensor("three_offsets", {"data_offsets": [0, 8, 16]}, "must have exactly 2 entries")
    tensor("reversed", {"data_offsets": [16, 0]}, "invalid data offsets (16, 0)")
    tensor("negative", {"data_offsets": [-16, 0]}, "invalid data offsets (-16, 0)")
    tensor("small", {"data_offsets": [0, 12]}, "Expecting 16 bytes")
    tensor("far", {"data_offsets": [2**53 - 16, 2**53]}, "exceeding the size of the file")
    tensor("cut", {}, "'the tensor' of", data=b"\0" * 15)
    entry = {"dtype": "U8", "shape": [8]}
    pair = {"a": {**entry, "data_offsets": [0, 8]}, "b": {**entry, "data_offsets": [4, 12]}}
    wrong("overlap", safetensors(pair, bytes(12)), "Tensor 'b' of")
    pair["b"]["data_offsets"] = [0, 8]
    wrong("same", safetensors(pair, bytes(8)), "overlap those of another")
    twice = b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},' \
            b'"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}'
    wrong("twice", safetensors(twice, bytes(2)), "holds tensor 'x' twice")


# ---- npy ----

def npy(header, data=b"", version=1, length=None):
    text = header if isinstance(header, bytes) else header.encode()
    n = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", n) \
        + text + data


def npy_of(values, order="C", version=1):
    f = io.BytesIO()
    np.lib.format.write_array(f, np.asarray(values, order=order), version=(version, 0))
    return f.getvalue()


def npy_files(out):
    for t in DTYPES:
        if t == "bfloat16":
            continue
        # The last one is large enough to be mapped.
        for i, shape in enumerate(SHAPES + [(130, 513)] * (t in ("uint8", "float16", "float64"))):
            values = sample(t, shape)
            for order, sign, version in (("C", "<", 1), ("F", ">", 2), ("F", "<", 3)):
                stored = values.astype(values.dtype.newbyteorder(sign))
                out.good(f"{t}_{i}_{version}.npy", npy_of(stored, order, version),
                         [("", t, values)])
    half = sample("bfloat16", (3, 4))
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': (3, 4), }\n"
    out.good("bfloat16.npy", npy(head % ("<V2", False), half.tobytes()), [("", "bfloat16", half)])
    out.good("bfloat16_t.npy", npy(head % ("|V2", True), half.T.tobytes()),
             [("", "bfloat16", half)])
    out.good("shuffled.npy", npy('{ "shape" :(2,3L) , "descr":\'i1\',"fortran_order":False}',
                                 bytes(range(6))),
             [("", "int8", np.arange(6, dtype=np.int8).reshape(2, 3))])
    out.good("more.npy", npy(head % ("|u1", False), bytes(range(20))),
             [("", "uint8", np.arange(12, dtype=np.uint8).reshape(3, 4))])


def npy_errors(out):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s}"
    right = head % ("<f4", "(2, 3)")

    def wrong(name, data, error):
        out.wrong(f"{name}.npy", data, error)

    wrong("nothing", b"", "Invalid header in")
    wrong("magic", b"\x93NUMPX" + npy(right)[6:], "does not begin as npy files do")
    wrong("version0", npy(right, version=0), "Unsupported npy format version 0")
    wrong("version4", npy(right, version=4), "Unsupported npy format version 4")
    wrong("cut_start", npy(right)[:9], "the file is too short")
    wrong("cut_header", npy(right)[:30], "longer than it can be")
    wrong("long_header", npy(right, version=2, length=1 << 30), "longer than it can be")
    wrong("zero", npy(b"{'descr'\0}"), "zero byte")
    wrong("no_dict", npy("[]"), "no dictionary")
    wrong("open_dict", npy(right[:-1]), "expected a comma")
    wrong("behind", npy(right + " x"), "something follows")
    wrong("no_colon", npy("{'descr' '<f4'}"), "expected a colon")
    wrong("no_quote", npy("{descr: '<f4'}"), "expected a quoted word")
    wrong("open_quote", npy("{'descr: "), "no end or is too long")
    wrong("missing", npy("{'descr': '<f4', 'shape': ()}"), "a key is missing")
    wrong("unknown", npy("{'x': 1}"), "unknown or repeated key")
    wrong("repeated", npy("{'descr': '<f4', 'descr': '<f4'}"), "unknown or repeated key")
    wrong("order", npy("{'fortran_order': 1}"), "neither True nor False")
    wrong("structure", npy("{'descr': [('a', '<f4')]}"), "Unsupported array protocol type-string")
    for t in ("<c16", "<U5", "|O", "<f16", "<i3", "", "<"):
        wrong(f"type_{t.strip('<|') or len(t)}", npy(head % (t, "()")), "type-string: " + t)
    for name, shape in (("list", "[2]"), ("negative", "(-1,)"), ("wide", "(2147483648,)"),
                        ("dims", "(" + "1, " * 33 + ")"), ("words", "(a,)"), ("joined", "(1 2)"),
                        ("open", "(1, ")):
        wrong(f"shape_{name}", npy(head % ("<f4", shape)), "Invalid header in")
    wrong("shape_product", npy(head % ("<f4", "(2147483647, 2147483647, 8)")), "too large")
    wrong("no_data", npy(right), "[load] ")
    wrong("cut_data", npy(right, bytes(23)), "the data end at")
    wrong("claims", npy(head % ("<f4", "(2147483647, 2000)"), bytes(9)), "the data end at")


# ---- npz ----

def npz(members, method=zipfile.ZIP_STORED, comment=b"", force_zip64=False):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", method) as z:
        z.comment = comment
        for name, data in members:
            with z.open(zipfile.ZipInfo(name), "w", force_zip64=force_zip64) as m:
                m._compress_type = method
                m.write(data)
    return f.getvalue()


def deflated(members):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in members:
            z.writestr(name, data)
    return f.getvalue()


def patched(data, at, new):
    return data[:at] + new + data[at + len(new):]


def npz_files(out):
    arrays = [(t, t, sample(t, (9, 11))) for t in DTYPES if t != "bfloat16"]
    arrays += [("zeros", "float32", np.zeros((50, 400), np.float32)),
               ("日本", "int8", sample("int8", (3,))), ("nil", "int16", sample("int16", (0, 2)))]
    members = [(name + ".npy", npy_of(v)) for name, _, v in arrays]
    out.good("stored.npz", npz(members), arrays)
    out.good("deflated.npz", deflated(members), arrays)
    out.good("comment.npz", npz(members, comment=b"PK\5\6" + b"x" * 30), arrays)
    out.good("wide.npz", npz(members, force_zip64=True), arrays)
    out.good("none.npz", npz([]), [])


def npz_errors(out):
    data = npy_of(np.arange(100, dtype=np.float32))
    one = npz([("the member.npy", data)])
    packed = deflated([("the member.npy", data)])
    central, end = one.rindex(b"PK\1\2"), one.rindex(b"PK\5\6")
    packed_central = packed.rindex(b"PK\1\2")

    def wrong(name, contents, error):
        out.wrong(f"{name}.npz", contents, error)

    def in_directory(name, at, fmt, value, error, base=one):
        start = central if base is one else packed_central
        wrong(name, patched(base, start + at, struct.pack(fmt, value)), error)

    wrong("nothing", b"", "its end record is missing")
    wrong("cut", one[:-1], "its end record is missing")
    wrong("text", b"This is no archive." * 9, "its end record is missing")
    wrong("directory_far", patched(one, end + 16, struct.pack("<I", 10**6)),
          "its directory lies outside")
    wrong("directory_long", patched(one, end + 12, struct.pack("<I", 10**6)),
          "its directory lies outside")
    wrong("directory_count", patched(one, end + 10, struct.pack("<H", 2)),
          "its directory lies outside")
    wrong("directory_entry", patched(one, central, b"PK\1\3"), "its directory is damaged")
    wrong("wide_count", patched(one, end + 10, b"\xff\xff"), "64-bit end record is missing")
    in_directory("name_length", 28, "<H", 9999, "its directory is damaged")
    in_directory("encrypted", 8, "<H", 1, "'the member.npy' of")
    in_directory("method", 10, "<H", 12, "neither none nor deflate")
    in_directory("checksum", 16, "<I", 1, "its checksum is wrong")
    in_directory("stored_size", 24, "<I", 5, "its size cannot be true")
    in_directory("member_far", 42, "<I", 10**6, "it lies outside")
    in_directory("member_long", 20, "<I", 10**6, "it lies outside")
    in_directory("wide_size", 24, "<I", 2**32 - 1, "its directory is damaged")
    in_directory("bomb", 24, "<I", 10**9, "its size cannot be true", packed)
    in_directory("too_small", 24, "<I", len(data) - 1, "its compressed data are damaged", packed)
    in_directory("too_large", 24, "<I", len(data) + 1, "its compressed data are damaged", packed)
    wrong("local", patched(one, 0, b"PK\1\1"), "its local header is damaged")
    wrong("local_name", patched(one, 26, b"\xff\xff"), "its local header is damaged")
    wrong("damaged", patched(packed, 60, b"\xff" * 30), "'the member.npy' of")
    two = npz([("a.npy", data), ("b.npy", data)])
    last = two.rindex(b"PK\1\2")
    wrong("overlap", patched(two, last + 42, struct.pack("<I", 20)), "it overlaps another member")
    wrong("twice", npz([("a.npy", data), ("b.npy", data)]).replace(b"b.npy", b"a.npy"),
          "holds tensor 'a' twice")
    wrong("other", npz([("a.txt", b"x")]), "'a.txt' of")
    wrong("broken", npz([("a.npy", b"x")]), "broken.npz(a.npy)")


# ---- GGUF ----

def text(s):
    data = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(data)) + data


def value(key, kind, data):
    return text(key) + struct.pack("<I", kind) + data


def listed(key, kind, n, data):
    return value(key, 9, struct.pack("<IQ", kind, n) + data)


def gguf(metadata, tensors, version=3, alignment=32, counts=None, tail=None):
    """tensors: (name, dimensions in GGUF's order, type, data, offset or None)."""
    counts = counts or (len(tensors), len(metadata))
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(metadata)
    data = b""
    for name, dims, kind, content, offset in tensors:
        at = len(data) if offset is None else offset
        head += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        head += struct.pack("<IQ", kind, at)
        data += content + bytes(-len(content) % alignment)
    whole = head + bytes(-len(head) % alignment) + data
    return whole if tail is None else whole[:tail]


def affine(name, blocks, rows):
    """Weights, scales and biases in MLX's layout."""
    q = gguf_blocks.nibbles(blocks[:, -16:]) if name != "Q8_0" else \
        blocks[:, 2:].astype(np.int32) ^ 0x80
    scale = np.ascontiguousarray(blocks[:, :2]).view("<f2")
    bias = {"Q4_0": (scale * np.float16(-8)), "Q8_0": (scale * np.float16(-128)),
            "Q4_1": np.ascontiguousarray(blocks[:, 2:4]).view("<f2")}[name]
    q = q.astype(np.uint8)
    if name != "Q8_0":
        q = q[:, 0::2] | q[:, 1::2] << 4
    return [(".weight", "uint32", np.ascontiguousarray(q).view("<u4").reshape(rows, -1)),
            (".scales", "float16", scale.reshape(rows, -1)),
            (".biases", "float16", bias.reshape(rows, -1))]


def gguf_files(out):
    plain = {0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64",
             30: "bfloat16"}
    tensors, arrays = [], []
    for kind, t in plain.items():
        for i, shape in enumerate([(3, 5), (7,), (2, 3, 4), (2, 1, 3, 5), (0, 3), ()]):
            v = sample(t, shape)
            tensors.append((f"{t}.{i}", shape[::-1], kind, v.tobytes(), None))
            arrays.append((f"{t}.{i}", t, v))
    double = sample("float64", (3, 3))
    tensors.append(("double", (3, 3), 28, double.tobytes(), None))
    arrays.append(("double", "float32", double.astype(np.float32)))
    out.good("plain.gguf", gguf([], tensors), arrays)
    out.good("plain2.gguf", gguf([], tensors, version=2), arrays)
    align = [value("general.alignment", 4, struct.pack("<I", 128))]
    out.good("aligned.gguf", gguf(align, tensors, alignment=128), arrays)

    tensors, arrays = [], []
    for name, (kind, elements, _, _, _) in gguf_blocks.TYPES.items():
        rows, per_row = 3, 2 * 256 // elements
        b = gguf_blocks.random_blocks(rng, name, rows * per_row)
        tensors.append((name + ".weight", (per_row * elements, rows), kind, b.tobytes(), None))
        if name in ("Q4_0", "Q4_1", "Q8_0"):
            arrays += [(name + suffix, t, v) for suffix, t, v in affine(name, b, rows)]
        else:
            v = gguf_blocks.meaning(name, b).astype(np.float16).reshape(rows, -1)
            arrays.append((name + ".weight", "float16", v))
    b = gguf_blocks.random_blocks(rng, "Q8_0", 2)
    tensors.append(("bare", (64,), 8, b.tobytes(), None))
    arrays += [("bare" + (s if s != ".weight" else ""), t, v.reshape(-1))
               for s, t, v in affine("Q8_0", b, 1)]
    out.good("quantized.gguf", gguf([], tensors), arrays)
    many = gguf_blocks.random_blocks(rng, "Q4_K", 3000)  # more than is decoded at a time
    v = gguf_blocks.meaning("Q4_K", many).astype(np.float16).reshape(3000, 256)
    out.good("many.gguf", gguf([], [("x", (256, 3000), 12, many.tobytes(), None)]),
             [("x", "float16", v)])

    metadata = [value("u8", 0, b"\7"), value("i8", 1, b"\xf9"), value("u16", 2, b"\x60\xea"),
                value("i16", 3, struct.pack("<h", -300)), value("u32", 4, b"\xff" * 4),
                value("i32", 5, struct.pack("<i", -70000)), value("f32", 6, struct.pack("<f", 1.5)),
                value("bool", 7, b"\2"), value("text", 8, text("héllo")),
                listed("u16s", 2, 3, struct.pack("<3H", 1, 2, 3)),
                listed("bools", 7, 3, b"\0\1\xff"),
                listed("texts", 8, 3, text("a") + text("") + text("中")),
                listed("none", 4, 0, b""), listed("no texts", 8, 0, b""),
                value("u64", 10, b"\0" * 7 + b"\x80"), value("i64", 11, struct.pack("<q", -2**40)),
                value("f64", 12, struct.pack("<d", 2.25)),
                listed("f64s", 12, 2, struct.pack("<2d", 0.1, -3))]
    out.good("metadata.gguf", gguf(metadata, []), [])


def gguf_errors(out):
    f32 = sample("float32", (8,)).tobytes()

    def wrong(name, data, error):
        out.wrong(f"{name}.gguf", data, error)

    def entry(name, metadata, error):
        wrong(name, gguf([metadata], [], tail=24 + len(metadata)), error)

    def tensor(name, error, dims=(8,), kind=0, data=f32, offset=None, **more):
        wrong(name, gguf([], [("the tensor", dims, kind, data, offset)], **more), error)

    wrong("nothing", b"", "the file ends early")
    wrong("magic", b"GGUX" + bytes(40), "does not begin as GGUF files do")
    wrong("version1", gguf([], [], version=1), "version 1 of the format")
    wrong("version9", gguf([], [], version=9), "version 9 of the format")
    wrong("big_endian", b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian files cannot")
    wrong("cut_counts", gguf([], [])[:20], "the file ends early")
    wrong("many_tensors", gguf([], [], counts=(2**60, 0)), "do not fit the file")
    wrong("many_entries", gguf([], [], counts=(0, 2**60)), "do not fit the file")
    wrong("one_missing", gguf([value("a", 0, b"\1")], [], counts=(0, 2), tail=38),
          "do not fit the file")
    entry("long_key", struct.pack("<Q", 2**63) + b"x" * 30, "longer than it can be")
    entry("zero_key", value(b"a\0b", 0, b"\1"), "a name holds a zero byte")
    entry("value_type", value("the key", 13, b"\0" * 9), "Metadata 'the key' of")
    entry("list_type", listed("the key", 13, 1, b"\0" * 9), "unknown type 13")
    entry("nested", listed("the key", 9, 1, bytes(30)), "1-layer")
    entry("long_text", value("the key", 8, struct.pack("<Q", 99)), "Metadata 'the key' of")
    entry("wrapping_text", value("the key", 8, struct.pack("<Q", 2**64 - 1)), "longer than it")
    entry("long_list", listed("the key", 4, 2**62, b"1234"), "does not fit the file")
    entry("long_texts", listed("the key", 8, 2**61, b"1234"), "does not fit the file")
    entry("cut_value", value("the key", 10, b"1"), "Metadata 'the key' of")
    wrong("key_twice", gguf([value("the key", 0, b"\1")] * 2, []), "the key is there twice")
    for n in (0, 3, 2**21):
        wrong(f"alignment_{n}", gguf([value("general.alignment", 4, struct.pack("<I", n))], []),
              "is no power of two")
    wrong("alignment_text", gguf([value("general.alignment", 8, text("x"))], []),
          "general.alignment")
    tensor("dims", "'the tensor' of", dims=(1,) * 9)
    tensor("wide", "is too large", dims=(2**40,))
    tensor("product", "the shape is too large", dims=(2**31 - 1,) * 3)
    tensor("empty_product", "the shape is too large", dims=(2**31 - 1,) * 3 + (0,), data=b"")
    tensor("type", "unknown type 77", kind=77)
    tensor("known_type", "tensors of type IQ2_XXS cannot be loaded", dims=(256,), kind=16)
    tensor("blocks", "Q4_0 needs a last dimension that is a multiple of 32", dims=(40,), kind=2)
    tensor("scalar_blocks", "Q4_K needs a last dimension", dims=(), kind=12)
    tensor("unaligned", "its offset 4 is not aligned", offset=4)
    tensor("far", "extend past the end of the file", offset=2**40)
    tensor("wrapping", "extend past the end of the file", offset=2**64 - 32)
    tensor("too_long", "extend past the end of the file", dims=(9,))
    tensor("quantized_long", "'the tensor' of", dims=(64,), kind=2)
    tensor("cut_name", "the file ends early", tail=54)
    two = [("a", (8,), 0, f32, 0), ("b", (8,), 0, f32, 0)]
    wrong("overlap", gguf([], two), "overlap those of another tensor")
    wrong("twice", gguf([], [("a", (8,), 0, f32, None)] * 2), "holds tensor 'a' twice")
    q = gguf_blocks.random_blocks(rng, "Q8_0", 1).tobytes()
    wrong("clash", gguf([], [("a.weight", (32,), 8, q, None), ("a.scales", (8,), 0, f32, None)]),
          "holds tensor 'a.scales' twice")


# ---- JSON: beginnings for the fuzz targets ----

def json_files(out):
    documents = [{}, [], [1, -2.5e3, 0.1, 1e300, "é😀", True, False, None],
                 {"model": {"vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]}, "x": "\"\\\n"},
                 {"x": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}]
    for i, d in enumerate(documents):
        (out.folder / f"document_{i}.json").write_text(json.dumps(d, ensure_ascii=i % 2 == 0))


def main():
    out = Output(sys.argv[1])
    for write in (safetensors_files, safetensors_errors, npy_files, npy_errors, npz_files,
                  npz_errors, gguf_files, gguf_errors, json_files):
        write(out)
    out.finish()


if __name__ == "__main__":
    main()
