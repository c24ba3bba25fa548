"""Random arguments, the same on every machine for the same seed.

A call is drawn without any array library: arrays are descriptions (`Array`), which `build` turns
into arrays of whatever package is under test. Only functions of random.Random that keep their
sequence from one Python to the next are used.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

HALVES = ("float32",) * 3 + ("float16", "bfloat16")  # what GPUs have
FLOATS = HALVES * 2 + ("float64",)
WHOLE = ("int32", "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64")
REAL = FLOATS + ("int32", "uint8", "int64", "bool_")
ALL = FLOATS + WHOLE + ("bool_", "complex64", "complex64")
SPECIAL = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-30, 3e4)

# How an array lies in memory; `build` knows.
LAYOUTS = ("row",) * 6 + ("transposed", "sliced", "stepped", "reversed", "offset", "broadcast")

# How the values of an array are drawn: limits of real parts, decimals.
RANGES = {
    "normal": (-3.0, 3.0, 3),
    "unit": (-0.95, 0.95, 3),
    "positive": (0.1, 4.0, 3),
    "above_one": (1.1, 4.0, 3),
    "small": (-1.0, 1.0, 2),
    "share": (0.0, 1.0, 3),
}


@dataclass
class Array:
    """An array to be built: its values in row-major order, and how it lies in memory."""

    dtype: str
    shape: tuple[int, ...]
    values: list
    layout: str = "row"
    batch: int | None = None  # the axis that a vmap runs over

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


@dataclass
class Dtype:
    name: str


class Draw(random.Random):
    """What calls are made of."""

    def pick(self, options):
        return options[int(self.random() * len(options))]

    def often(self, share: float) -> bool:
        return self.random() < share

    def between(self, low: int, high: int) -> int:
        """Both included."""
        return low + int(self.random() * (high - low + 1))

    def size(self) -> int:
        return 0 if self.often(0.02) else self.pick((1, 2, 3, 4, 5, 8))

    def shape(self, low: int = 0, high: int = 3) -> tuple[int, ...]:
        """Small, for many calls; now and then with an axis that more than one subgroup works on."""
        shape = [self.size() for _ in range(self.between(low, high))]
        if shape and self.often(0.03):
            shape[self.between(0, len(shape) - 1)] = self.pick((33, 64, 130))
        if len(shape) == 1 and self.often(0.02):
            shape[0] = 1030
        return tuple(shape)

    def axis(self, ndim: int) -> int:
        """Now and then one that is not there."""
        if self.often(0.04) or ndim == 0:
            return self.pick((ndim, -ndim - 1, ndim + 3))
        return self.between(-ndim, ndim - 1)

    def axes(self, ndim: int):
        """None, one, or several, rarely the same one twice."""
        kind = self.random()
        if kind < 0.25:
            return None
        if kind < 0.6 or ndim == 0:
            return self.axis(ndim)
        if self.often(0.05):
            return [0, 0]
        return [a - ndim * self.between(0, 1) for a in range(ndim) if self.often(0.5)]

    def values(self, dtype: str, n: int, kind: str, special: float) -> list:
        low, high, decimals = RANGES[kind]
        if dtype == "bool_":
            return [self.often(0.5) for _ in range(n)]
        if dtype == "complex64":
            return [
                complex(a, b)
                for a, b in zip(
                    self.values("float32", n, kind, special), self.values("float32", n, kind, 0)
                )
            ]
        if dtype in WHOLE:
            least = max(0 if dtype[0] == "u" else -20, int(low * 7), 1 if low > 0 else -20)
            return [self.between(least, max(20, least)) for _ in range(n)]
        return [
            (
                self.pick(SPECIAL)
                if special and self.often(special)
                else round(low + (high - low) * self.random(), decimals)
            )
            for _ in range(n)
        ]

    def array(self, dtypes=ALL, shape=None, values="normal", special=None) -> Array:
        dtype = dtypes if isinstance(dtypes, str) else self.pick(dtypes)
        shape = self.shape() if shape is None else tuple(shape)
        n = 1
        for size in shape:
            n *= size
        if special is None:
            special = 0.15 if self.often(0.15) else 0
        layout = self.pick(LAYOUTS)
        contents = self.values(dtype, n, values, special)
        if layout == "broadcast" and shape and n:
            contents = contents[: n // shape[0]] * shape[0]
        return Array(dtype, shape, contents, layout)

    def indices(self, shape, below: int, dtype: str | None = None) -> Array:
        """Positions along an axis of that many, counted from either end."""
        dtype = dtype or self.pick(("int32", "uint32", "int64", "uint8"))
        low = 0 if dtype[0] == "u" else -below
        n = 1
        for size in shape:
            n *= size
        return Array(
            dtype, tuple(shape), [self.between(low, max(below - 1, low)) for _ in range(n)]
        )

    def broadcastable(self, shape) -> tuple[int, ...]:
        """A shape that goes with another one; now and then it does not."""
        out = [1 if self.often(0.2) else size for size in shape]
        if self.often(0.2):
            out = out[self.between(0, len(out)) :]
        if out and self.often(0.03):
            out[-1] += 1
        return tuple(out)

    def pair(self, dtypes=ALL, values="normal") -> list:
        """Operands of a binary op: arrays, or an array and a number."""
        a = self.array(dtypes, values=values)
        if self.often(0.15):
            number = self.pick((2, 0.5, -1, True))
            return [a, number] if self.often(0.5) else [number, a]
        other = dtypes if self.often(0.2) else a.dtype
        return [a, self.array(other, self.broadcastable(a.shape), values)]


def build(mx, np, spec):
    """The array that is described, of the package under test."""
    if isinstance(spec, Dtype):
        return getattr(mx, spec.name)
    if isinstance(spec, (list, tuple)):
        return type(spec)(build(mx, np, part) for part in spec)
    if not isinstance(spec, Array):
        return spec
    host = {"bfloat16": "float32", "bool_": "bool"}.get(spec.dtype, spec.dtype)
    x = np.array(spec.values, dtype=host).reshape(spec.shape)
    target = getattr(mx, spec.dtype)

    def made(values):
        plain = np.array(values.tolist(), dtype=host).reshape(values.shape)
        return mx.array(plain).astype(target)

    if spec.layout == "transposed":
        return mx.transpose(made(x.T))
    if spec.layout == "sliced" and x.ndim:
        return made(np.repeat(x, 2, axis=-1))[..., ::2]
    if spec.layout == "stepped" and x.ndim:
        return made(np.repeat(x[::-1], 3, axis=0))[::-3]
    if spec.layout == "broadcast" and x.size and x.ndim:
        return mx.broadcast_to(made(x[:1]), x.shape)
    if spec.layout == "reversed" and x.ndim:
        return made(x[..., ::-1])[..., ::-1]
    if spec.layout == "offset" and x.ndim:
        return made(np.concatenate([x[:1], x]))[1:] if len(x) else made(x)
    return made(x)
