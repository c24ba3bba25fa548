"""Reads the parts of a GGUF file that the teacher needs: metadata, F32, Q4_1 and Q8_0 tensors."""

import mmap
import struct

import numpy as np

_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_BLOCK = 32
# type id -> (name, values per block, bytes per block)
_TYPES = {0: ("F32", 1, 4), 3: ("Q4_1", _BLOCK, 20), 8: ("Q8_0", _BLOCK, 34)}


class _Reader:
    def __init__(self, data):
        self.data = data
        self.pos = 0

    def scalar(self, fmt):
        (value,) = struct.unpack_from(fmt, self.data, self.pos)
        self.pos += struct.calcsize(fmt)
        return value

    def string(self):
        size = self.scalar("<Q")
        raw = self.data[self.pos : self.pos + size]
        self.pos += size
        return bytes(raw).decode("utf-8")

    def value(self, kind):
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            item = self.scalar("<I")
            return [self.value(item) for _ in range(self.scalar("<Q"))]
        return self.scalar(_SCALARS[kind])


class Gguf:
    """meta: dict of the metadata; tensors: name -> (type name, shape row-major, raw bytes)."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        r = _Reader(data)
        if data[:4] != b"GGUF" or struct.unpack_from("<I", data, 4)[0] != 3:
            raise ValueError(f"{path}: not a GGUF file of version 3")
        r.pos = 8
        n_tensors, n_meta = r.scalar("<Q"), r.scalar("<Q")
        self.meta = {}
        for _ in range(n_meta):
            key = r.string()
            self.meta[key] = r.value(r.scalar("<I"))
        infos = []
        for _ in range(n_tensors):
            name = r.string()
            dims = [r.scalar("<Q") for _ in range(r.scalar("<I"))]
            infos.append((name, dims[::-1], r.scalar("<I"), r.scalar("<Q")))
        align = self.meta.get("general.alignment", 32)
        base = (r.pos + align - 1) // align * align
        self.tensors = {}
        for name, shape, kind, offset in infos:
            if kind not in _TYPES:
                raise ValueError(f"{path}: {name} has type {kind}, which is not read here")
            type_name, per_block, size = _TYPES[kind]
            count = int(np.prod(shape)) // per_block * size
            raw = np.frombuffer(data, np.uint8, count, base + offset)
            self.tensors[name] = (type_name, tuple(shape), raw)


def dequantize(type_name, shape, raw):
    """Returns the float32 values of a tensor as an array of the given shape."""
    if type_name == "F32":
        return raw.view(np.float32).reshape(shape)
    if type_name == "Q8_0":
        blocks = raw.reshape(-1, 34)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        return (blocks[:, 2:].view(np.int8).astype(np.float32) * scale).reshape(shape)
    if type_name == "Q4_1":
        blocks = raw.reshape(-1, 20)
        head = blocks[:, :4].copy().view(np.float16).astype(np.float32)
        codes = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
        return (codes.astype(np.float32) * head[:, :1] + head[:, 1:]).reshape(shape)
    raise ValueError(f"type {type_name} is not known")
