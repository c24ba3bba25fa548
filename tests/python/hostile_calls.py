"""Calls everything that mlx.core has with whatever Python has; test_hostile_calls.py runs it.

usage: hostile_calls.py DEVICE SEED FIRST COUNT

What a call is follows from SEED and its number alone. Each is told on the standard output before
it is made, so that the last line says who is to blame for the end of the process. Results that are
small are evaluated and printed. Exceptions are fine unless they are SystemError or none that a
caller expects.
"""

import io
import os
import random
import re
import resource
import sys
import types

import mlx.core as mx
import numpy as np

SMALL = 1 << 14  # elements of a result that is evaluated
ROOM = 6 << 30  # bytes of address space besides what the libraries have
FINE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
# They do what they say, to the process or to all that comes after.
LEFT_OUT = {"mlx.core.disable_compile", "mlx.core.vulkan.set_setting"}
DTYPES = [v for v in vars(mx).values() if isinstance(v, mx.Dtype)]
NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    -2,
    5,
    7,
    31,
    64,
    100,
    2**15,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32,
    2**63 - 1,
]
NUMBERS += [-(2**63), 2**63, 2**64, 10**30, -(10**400), True, False, 0.5, -0.0, 1e-45, 1e300]
NUMBERS += [
    float("inf"),
    float("-inf"),
    float("nan"),
    1j,
    complex("nan+infj"),
    np.float16(2),
    np.int64(3),
]
WORDS = [
    "",
    "x",
    "cpu",
    "ij,jk->ik",
    "ii",
    "...i,i",
    "a->",
    "affine",
    "mxfp4",
    "mxfp8",
    "nvfp4",
    "causal",
]
WORDS += [
    "fro",
    "nuc",
    "ortho",
    "valid",
    "same",
    "constant",
    "edge",
    "linear",
    "out.npz",
    "out.npy",
]
WORDS += [
    "out.safetensors",
    "out.gguf",
    "out.mlxfn",
    "none",
    "\0",
    "a\0b",
    "ä",
    "\ud800",
    "9" * 5000,
]
SHAPES = [(), (1,), (4,), (0,), (2, 3), (3, 3), (4, 4), (0, 3), (2, 1, 3), (2, 3, 4), (1, 4, 4, 2)]
SHAPES += [(2, 2, 2, 2, 2), (1,) * 12, (32, 64), (2, 32)]


class Odd:
    """Answers every protocol with something else."""

    def __init__(self, rng):
        self.rng = rng

    def answer(self, *_args, **_keywords):
        return self.rng.choice(
            [
                5,
                -1,
                None,
                "x",
                (),
                [1, 2],
                self,
                2**70,
                1.5,
                mx.array([1, 2]),
                mx.array.__new__(mx.array),
            ]
        )

    def fail(self, *_args, **_keywords):
        raise self.rng.choice([KeyError, ValueError, RecursionError, ZeroDivisionError])(
            "of its own"
        )

    __index__ = __float__ = __int__ = __complex__ = __len__ = __bool__ = __hash__ = answer
    __mlx_array__ = __dlpack__ = __dlpack_device__ = __array__ = __fspath__ = __call__ = answer
    __eq__ = __lt__ = __add__ = __radd__ = __iter__ = __next__ = __getitem__ = answer
    __enter__ = keys = items = values = read = write = seek = tell = answer
    __exit__ = readinto = __buffer__ = __reduce__ = fail


class Word(str):
    __hash__ = None


class Number(int):
    def __index__(self):
        raise KeyError("no number")


class Row(list):
    def __len__(self):
        return 10**9


def knot():
    rows, table = [], {}
    rows += [rows, table]
    table["x"] = rows
    return rows


def deep(rng):
    value = rng.choice([1, (), mx.array(1)])
    for _ in range(rng.choice([40, 3000, 100_000])):
        value = [value]
    return value


class Shrinking:
    """Empties the list that it is in when it is asked for its value."""

    def __init__(self):
        self.rows = [1, self, mx.array(2), self, 3]

    def __index__(self):
        self.rows.clear()
        return 1

    __float__ = __index__


class Maker:
    """Makes values of all kinds, from a generator of random numbers."""

    def __init__(self, rng):
        self.rng = rng
        self.care = rng.choice([0.98, 0.75])  # how often a value has the type that is asked for
        self.favourite = rng.choice(SHAPES)  # so that arrays of a call often fit each other

    def shape(self):
        rng = self.rng
        if rng.random() < 0.8:
            return rng.choice(SHAPES)
        return tuple(
            rng.choice([0, 1, 3, -1, 2**20, 2**31 - 1, 2**33]) for _ in range(rng.randint(0, 5))
        )

    def array(self):
        rng = self.rng
        shape = self.favourite if rng.random() < self.care - 0.2 else rng.choice(SHAPES)
        made = mx.array(np.asarray(np.random.default_rng(rng.randint(0, 9)).integers(-3, 9, shape)))
        made = made.astype(rng.choice(DTYPES if rng.random() < 0.5 else [mx.float32, mx.int32]))
        view = rng.random()
        if view < 0.1:
            made = mx.broadcast_to(made, (3, *shape))
        elif view < 0.2:
            made = made.T
        elif view < 0.3 and shape and shape[0] > 1:
            made = made[::-1]
        elif view < 0.35:
            mx.eval(made)
        elif view > self.care:
            made = rng.choice([mx.array.__new__(mx.array), mx.zeros((2**20, 2**20))])
        return made

    def function(self):
        rng = self.rng
        value = self.anything(2) if rng.random() < 0.5 else None
        return rng.choice(
            [
                lambda *a, **k: a[0],
                lambda *a, **k: sum(x.sum() for x in a if isinstance(x, mx.array)),
                lambda *a, **k: value,
                lambda *a, **k: (list(a), k),
                lambda x: mx.exp(x).sum(),
                lambda x, y: (x * y, {"a": x}),
                lambda *a: a[0].item(),
                lambda *a: Odd(rng).fail(),
                mx.sum,
                mx.compile(mx.exp),
                mx.grad(mx.sum),
            ]
        )

    def scalar(self):
        return self.rng.choice(NUMBERS)

    def file(self):
        closed = io.BytesIO()
        closed.close()
        return self.rng.choice([io.BytesIO(), io.BytesIO(b"\x93NUMPY" * 9), io.StringIO(), closed])

    def nested(self, depth):
        return [self.anything(depth + 1) for _ in range(self.rng.randint(0, 4))]

    def exporter(self):
        exporter = mx.exporter("kept.mlxfn", mx.exp)
        if self.rng.random() < 0.5:
            exporter.close()
        return exporter

    def known(self, kind=None):
        """An object of one of mlx.core's classes, or a class."""
        rng = self.rng
        device = mx.Device(rng.choice([mx.cpu, mx.gpu]), rng.choice([0, 0, 7, -1]))
        makers = {
            mx.array: self.array,
            mx.Device: lambda: device,
            mx.DeviceType: lambda: rng.choice([mx.cpu, mx.gpu]),
            mx.Stream: lambda: mx.default_stream(rng.choice([mx.cpu, mx.gpu])),
            mx.ThreadLocalStream: lambda: mx.new_thread_local_stream(mx.cpu),
            mx.StreamContext: lambda: mx.stream(rng.choice([mx.cpu, mx.gpu, device])),
            mx.Dtype: lambda: rng.choice(DTYPES),
            mx.DtypeCategory: lambda: mx.inexact,
            mx.ArrayAt: lambda: mx.array([1, 2, 3]).at[
                rng.choice([0, 9, slice(None), self.array()])
            ],
            mx.ArrayIterator: lambda: iter(rng.choice([mx.array([1, 2]), mx.zeros((0, 3))])),
            mx.finfo: lambda: mx.finfo(rng.choice([mx.float32, mx.bfloat16])),
            mx.iinfo: lambda: mx.iinfo(mx.int8),
            mx.custom_function: lambda: mx.custom_function(self.function()),
            mx.FunctionExporter: self.exporter,
            mx.PrintOptions: lambda: mx.PrintOptions(rng.choice([-1, 0, 3, 100])),
            mx._PrintOptionsContext: lambda: mx.printoptions(precision=3),
            mx.distributed.Group: mx.distributed.init,
            mx.random._RandomState: lambda: mx.random.state,
        }
        if kind is None and rng.random() < 0.1:
            return rng.choice(list(makers))
        return makers.get(kind or rng.choice(list(makers)), self.array)()

    def odd(self):
        rng = self.rng
        return rng.choice(
            [
                lambda: Odd(rng),
                lambda: Word("x"),
                lambda: Number(3),
                lambda: Row([1, 2]),
                knot,
                lambda: deep(rng),
                lambda: Shrinking().rows,
                lambda: mx,
                lambda: b"ab",
                lambda: bytearray(8),
                lambda: memoryview(b"abcdefgh")[::-2],
                lambda: (i for i in range(3)),
                lambda: range(5),
                lambda: slice(*rng.choices([None, *NUMBERS], k=3)),
                lambda: np.zeros((2, 3), dtype=rng.choice(["f4", "i8", ">i4", "S3", "O", "M8[s]"])),
                lambda: np.zeros((4, 4))[::-1, ::2],
                lambda: types.SimpleNamespace(shape=(2,), dtype=mx.float32),
            ]
        )()

    def anything(self, depth=0):
        rng = self.rng
        ways = [self.array, self.array, self.scalar, self.scalar, self.shape, self.function]
        ways += [
            self.known,
            self.odd,
            self.file,
            lambda: None,
            lambda: ...,
            lambda: rng.choice(WORDS),
        ]
        if depth < 3:
            ways += [lambda: self.nested(depth), lambda: tuple(self.nested(depth))]
            ways += [lambda: {rng.choice(WORDS): self.anything(depth + 1) for _ in range(3)}]
        return rng.choice(ways)()

    def of_type(self, text):
        """A value as a signature asks for it."""
        rng = self.rng
        kinds = {
            "array": self.array,
            "scalar": self.scalar,
            "int": lambda: rng.choice([0, 1, 2, -1, 3, 32, 64]),
            "float": lambda: rng.choice([0.0, 1.0, -2.5, 1e30]),
            "bool": lambda: rng.random() < 0.5,
            "str": lambda: rng.choice(WORDS),
            "Dtype": lambda: rng.choice(DTYPES),
            "StreamOrDevice": lambda: rng.choice([None, None, None, mx.cpu, mx.gpu]),
            "Sequence[int]": lambda: rng.choice([*SHAPES, (0,), (1,), (-1,), (0, 1), (1, 0)]),
            "Sequence[array]": lambda: [self.array() for _ in range(rng.randint(0, 3))],
            "tuple[int, int]": lambda: rng.choices([0, 1, 2, 3], k=2),
            "tuple[int, int, int]": lambda: rng.choices([0, 1, 2, 3], k=3),
            "None": lambda: None,
            "object": rng.choice([self.anything, self.function, self.array, self.scalar]),
        }
        known = [k for k in text.split(" | ") if k in kinds]
        return kinds[rng.choice(known)]() if known else self.anything()

    def arguments(self, function, bound):
        """Positional and named arguments, most of them as the signature asks for them."""
        rng = self.rng
        given, named = [], {}
        parts = parameters(function)
        if bound and parts and parts[0][0] == "self":
            parts = parts[1:]
        only_named = False
        for name, kind, optional in parts:
            if name == "/":
                continue
            if name.startswith("*"):
                only_named = True
                given += [self.array() for _ in range(rng.randint(0, 2) if len(name) > 1 else 0)]
                continue
            if optional and rng.random() < 0.6:
                only_named = True
                continue
            value = self.of_type(kind) if rng.random() < self.care else self.anything()
            if only_named:
                named[name] = value
            else:
                given.append(value)
        if not parts or rng.random() < 0.08:
            given += [self.anything() for _ in range(rng.randint(0, 3))]
        if rng.random() < 0.03:
            named[rng.choice(WORDS)] = self.anything()
        return given, named


def parameters(function):
    """[(name, type, whether it has a default)] of the signature that a description begins with."""
    first = (getattr(function, "__doc__", None) or "").split("\n")[0]
    found = re.match(r"\w+\((.*)\)(?: -> |$)", first)
    parts = re.findall(r"((?:[^,\[\]]|\[[^\]]*\])+)", found[1]) if found else []
    split = [re.match(r"\s*([*/]?\w*)(?:: (.*?))?( = .*)?$", p) for p in parts]
    return [(m[1], m[2] or "", bool(m[3])) for m in split if m]


def targets():
    """[(name, function, whether it is a method)] of everything that can be called."""
    modules = [mx] + [m for m in vars(mx).values() if isinstance(m, types.ModuleType)]
    found = []
    for module in modules:
        for name, value in sorted(vars(module).items()):
            full = f"{module.__name__}.{name}"
            if callable(value) and full not in LEFT_OUT and not name.startswith("__"):
                found.append((full, value, False))
            if isinstance(value, type) and value.__module__.startswith("mlx"):
                for method in sorted(vars(value)):
                    if method not in ("__new__", "__doc__", "__module__"):
                        found.append((f"{full}.{method}", (value, method), True))
    return found


def make_call(maker, function, method):
    """What is called, as a function without parameters."""
    rng = maker.rng
    if method:
        kind, name = function
        own = maker.known(kind if rng.random() < 0.95 else None)
        attribute = vars(kind)[name]
        if not callable(attribute):  # a property
            ways = [lambda: getattr(own, name)] * 3
            ways += [lambda: setattr(own, name, maker.anything()), lambda: delattr(own, name)]
            return rng.choice(ways)
        if rng.random() < 0.9 and isinstance(own, kind):
            bound = getattr(own, name)
            given, named = maker.arguments(attribute, True)
            return lambda: bound(*given, **named)
        given, named = maker.arguments(attribute, False)
        return lambda: attribute(*given, **named)
    given, named = maker.arguments(function, False)
    if rng.random() < 0.7:
        return lambda: function(*given, **named)

    def rest(*arrays):
        return function(*arrays, *given[len(arrays) :], **named)

    def total(*arrays):
        return mx.sum(rest(*arrays).astype(mx.float32))

    arrays = [a for a in given if isinstance(a, mx.array)][:1]
    ways = [
        lambda: mx.grad(total)(*arrays),
        lambda: mx.vmap(rest, in_axes=rng.choice([0, -1, 1]))(*arrays),
        lambda: mx.compile(rest)(*arrays),
        lambda: mx.jvp(rest, arrays, arrays),
        lambda: mx.vmap(mx.grad(total))(*arrays),
        lambda: mx.grad(lambda *a: mx.grad(total)(*a).sum())(*arrays),
    ]
    return rng.choice(ways)


def small_arrays(value, depth=0):
    if isinstance(value, mx.array):
        return [value] if value.size <= SMALL else []
    if type(value) in (list, tuple) and depth < 4:
        return [a for part in value[:8] for a in small_arrays(part, depth + 1)]
    if type(value) is dict and depth < 4:
        return [a for part in value.values() for a in small_arrays(part, depth + 1)]
    return []


def use(maker, result):
    """Whatever comes out is looked at, and called if it can be."""
    if callable(result) and not isinstance(result, type):
        result = result(*[maker.anything() for _ in range(maker.rng.randint(0, 3))])
    arrays = small_arrays(result)
    mx.eval(arrays)
    for array in arrays[:3]:
        str(array)
        array.tolist()
    if not isinstance(result, mx.array) and len(arrays) < 8:
        repr(result)[:100]


def put_back(device):
    mx.set_default_device(device)
    mx.enable_compile()
    mx.set_memory_limit(4 << 30)
    mx.set_cache_limit(1 << 28)
    mx.set_printoptions(precision=-1)


def main(device, seed, first, count):
    device = getattr(mx, device)
    mx.eval(mx.zeros((4,), dtype=mx.float32) + 1)
    found = targets()
    if "libclang_rt.asan" not in os.environ.get("LD_PRELOAD", ""):
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    results = 0
    for number in range(int(first), int(first) + int(count)):
        rng = random.Random(f"{seed} {number}")
        put_back(device)
        name, function, method = found[number % len(found)]
        os.write(1, f"{number} {name}\n".encode())
        maker = Maker(rng)
        try:
            call = make_call(maker, function, method)
            use(maker, call())
            results += 1
        except FINE:
            pass
    put_back(device)
    os.write(1, f"done {results} of {count}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
