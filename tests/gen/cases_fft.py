"""Rows of Fourier transforms: NumPy's, in double precision."""

import numpy as np

from case_table import ALL, CLOSE, EXACT, Arr, Ints, Row, cast, laid_out, repeated, wide

NORMS = ["backward", "ortho", "forward"]
PRIMES = [67, 71, 97, 127, 131, 257, 509, 1009]
ODD = [75, 77, 81, 91, 99, 105, 121, 125, 143, 169, 225, 243, 315, 625, 693, 945, 1001, 1155]
EVEN = [66, 72, 96, 98, 100, 110, 120, 130, 134, 144, 192, 200, 250, 254, 360, 384, 480, 500, 720,
        1000, 1018, 1080, 1536]
COMPLEX, REAL, HALF = ["fft", "ifft"], ["rfft"], ["irfft"]


def draw(rng, shape, dtype):
    if dtype == "complex64":
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(np.complex64)
    if dtype in ("float16", "float32", "float64", "bfloat16"):
        return cast(rng.uniform(-1, 1, shape), dtype)
    return cast(rng.integers(0, 2 if dtype == "bool" else 100, shape), dtype)


def operand(rng, shape, dtype="complex64", layout="row"):
    return laid_out(repeated(lambda n: draw(rng, n, dtype), shape), dtype, layout)


def transform(fn, a, n, axes, norm=0):
    """n and axes: lists, or numbers for the functions of one axis. Errors are compared with the mean
    square of the results or, where few of them stand out, with one unit in the largest one's last
    place."""
    kind = fn.rstrip("2n")
    many = fn != kind
    x = wide(a.values)
    if kind == "rfft" and np.iscomplexobj(x):
        x = x.real
    how = getattr(np.fft, kind + "n")
    lists = [n, axes] if many else [[n], [axes]]
    with np.errstate(all="ignore"):
        out = how(x, s=lists[0], axes=lists[1], norm=NORMS[norm])
    dtype = "float32" if kind == "irfft" else "complex64"
    size = np.abs(out)
    scale = max(np.sqrt(np.mean(size ** 2)) / 4, np.max(size) / 80) if out.size else 0
    params = [Ints(n), Ints(axes)] if many else [n, axes]
    return Row("fft_" + fn, [a], [(cast(out, dtype), dtype)], params + [norm], CLOSE, scale)


def of_size(rng, fn, n, lines=1, layout="row"):
    """A transform of n numbers of the last axis."""
    m = n // 2 + 1 if fn == "irfft" else n
    dtype = "float32" if fn == "rfft" else "complex64"
    return transform(fn, operand(rng, [lines, m], dtype, layout), n, -1)


def size_rows(rng):
    for n in list(range(1, 65)) + PRIMES + ODD + EVEN:
        for fn in COMPLEX + REAL + HALF:
            yield of_size(rng, fn, n, 1 + n % 3)


def power_rows(rng):
    for k in range(7, 17):
        for fn in COMPLEX + REAL + HALF:
            yield of_size(rng, fn, 2 ** k, 2 if k < 12 else 1)
    for n in (3 * 2 ** 9, 3 * 2 ** 12, 5 * 2 ** 11, 9 * 2 ** 10, 3 ** 8, 5 ** 6, 7 ** 4, 11 ** 3, 2 ** 13 + 1,
              4099, 2 * 4099, 2 ** 14 - 2, 10007):
        for fn in ("fft", "rfft", "irfft"):
            yield of_size(rng, fn, n)
    for n in (8, 64, 100, 512, 1024):
        for fn in COMPLEX + REAL + HALF:
            yield of_size(rng, fn, n, 37)


def argument_rows(rng):
    for fn in COMPLEX + REAL + HALF:
        for norm in range(3):
            for n in (5, 8, 3, 13, 16, 1):
                for axis in (0, 1, -1):
                    yield transform(fn, operand(rng, [8, 6, 5]), n, axis, norm)
    for fn in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
        dtype = "float32" if fn.startswith("rfft") else "complex64"
        a = operand(rng, [4, 6, 5], dtype)
        for norm in range(3):
            yield transform(fn, a, [6, 5], [-2, -1], norm)
            yield transform(fn, a, [8, 3], [0, 2], norm)
            yield transform(fn, a, [7, 9], [2, 0], norm)
        if fn.endswith("n"):
            yield transform(fn, a, [4, 6, 5], [0, 1, 2])
            yield transform(fn, a, [4, 6, 8], [2, 0, 1])
            yield transform(fn, a, [9], [1])
            yield transform(fn, operand(rng, [20, 50, 30], dtype), [32, 36, 34], [0, 1, 2])
    yield Row("fft_fftn", [a], [(a.values, a.dtype)], [Ints([]), Ints([]), 0], EXACT)
    for fn in COMPLEX + REAL + HALF:
        for dtype in ALL:
            yield transform(fn, operand(rng, [3, 12], dtype), 12, -1)


def layout_rows(rng):
    for layout in ("transposed", "sliced", "reversed", "offset", "broadcast", "column"):
        for fn in COMPLEX + REAL + HALF:
            dtype = "float32" if fn == "rfft" else "complex64"
            for axis in (0, 1, 2):
                a = operand(rng, [6, 16, 20], dtype, layout)
                yield transform(fn, a, a.shape[axis], axis)
            yield of_size(rng, fn, 64, 6, layout)
            if layout in ("transposed", "sliced"):
                yield of_size(rng, fn, 5000, 2, layout)
                yield transform(fn, operand(rng, [4100, 3], dtype, layout), 4100, 0)
                yield transform(fn, operand(rng, [4096, 2], dtype, layout), 8192, 0)
        yield transform("fft2", operand(rng, [3, 48, 36], "complex64", layout), [48, 36], [1, 2])
        yield transform("rfft2", operand(rng, [3, 48, 36], "float32", layout), [48, 36], [1, 2])
        yield transform("irfft2", operand(rng, [3, 48, 36], "complex64", layout), [48, 70], [1, 2])
    for fn in COMPLEX + REAL + HALF:
        yield transform(fn, operand(rng, [0, 4]), 4, -1)
        yield transform(fn, operand(rng, [0]), 4, -1)
        yield transform(fn, operand(rng, [3, 0]), 6, 1)


def frequency_rows(rng):
    for n in (1, 2, 5, 8, 101):
        for d in (1.0, 0.25, -3.0):
            for fn in ("fftfreq", "rfftfreq"):
                out = getattr(np.fft, fn)(n, d).astype(np.float32)
                yield Row("fft_" + fn, [], [(out, "float32")], [n, d], CLOSE)
    for shape in ([1], [7], [8], [3, 4, 5], [0, 3]):
        for axes in ([], [0], [-1], list(range(len(shape))), [0, 0]):
            for fn in ("fftshift", "ifftshift"):
                a = Arr(rng.integers(0, 99, shape), "int32")
                out = getattr(np.fft, fn)(a.values, axes)
                yield Row("fft_" + fn, [a], [(out, "int32")], [Ints(axes)], EXACT)


def rows(rng):
    return [("fft", list(size_rows(rng)) + list(frequency_rows(rng))),
            ("fft_large", list(power_rows(rng))),
            ("fft_args", list(argument_rows(rng)) + list(layout_rows(rng)))]
