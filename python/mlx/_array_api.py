"""What the array API standard asks a namespace of arrays for."""

import mlx.core as mx

_KINDS = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "integral": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "real floating": "float32 float64",
    "complex floating": "complex64",
    "numeric": "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64",
}


def _check_device(device):
    if device is not None and not isinstance(device, mx.Device):
        raise TypeError(f"A Device is wanted, not {type(device).__name__}.")


class NamespaceInfo:
    """The object that mlx.core.__array_namespace_info__() returns."""

    def capabilities(self):
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 10}

    def default_device(self):
        return mx.default_device()

    def default_dtypes(self, *, device=None):
        _check_device(device)
        return {
            "real floating": mx.float32,
            "complex floating": mx.complex64,
            "integral": mx.int32,
            "indexing": mx.int32,
        }

    def devices(self):
        return tuple(
            mx.Device(kind, i) for kind in (mx.cpu, mx.gpu) for i in range(mx.device_count(kind))
        )

    def dtypes(self, *, device=None, kind=None):
        _check_device(device)
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        if not isinstance(kinds, tuple) or not all(k in _KINDS for k in kinds):
            raise ValueError(f"Unsupported dtype kind: {kind!r}")
        names = {name for k in kinds for name in _KINDS[k].split()}
        if (device or mx.default_device()).type != mx.cpu:
            names.discard("float64")
        return {name: getattr(mx, "bool_" if name == "bool" else name) for name in sorted(names)}
