"""Rows of functions that releases of MLX have added."""

from __future__ import annotations

from draw import HALVES, REAL, Draw
from table import row


@row("fast.cross_entropy", smooth=True)
def _(d: Draw):
    x = d.array(("float32", "float64"), (*d.shape(0, 2), d.between(1, 9)), special=0)
    return [x, d.indices(x.shape[:-1], x.shape[-1], d.pick(("int32", "uint32", "int64")))], {}


@row("fast.gated_delta_update", batched=False)
def _(d: Draw):
    batch, steps = d.between(1, 2), d.pick((1, 3, 5, 70))
    keys, values = d.pick(((1, 1), (2, 2), (2, 4), (1, 3), (2, 3)))
    dtype = d.pick(HALVES)
    wide = d.pick((4, 8, 32))
    q, k = (d.array(dtype, (batch, steps, keys, wide), "small", 0) for _ in range(2))
    v = d.array(dtype, (batch, steps, values, d.pick((4, 8))), "small", 0)
    gamma, beta = (d.array(dtype, (batch, steps, values), "share", 0) for _ in range(2))
    args = [q, k, v, gamma, beta]
    if d.often(0.4):
        shape = (batch, values, v.shape[-1], wide)
        args.append(d.array(d.pick(("float32", dtype)), shape, "small", 0))
        if d.often(0.5):
            args.append(d.array("bool_", (batch, steps)))
    return args, {}


@row("unique", batched=False)
def _(d: Draw):
    a = d.array(REAL, special=0)
    names = ("return_index", "return_inverse", "return_counts")
    kwargs = {name: True for name in names if d.often(0.4)}
    if d.often(0.3):
        kwargs["fill_value"] = d.pick((0, 7, 2.5))
    return [a, d.pick((0, 1, 3, 8, 40, -1))], kwargs


# ---- Fourier transforms of pieces ----


@row("fft.stft", smooth=True, batched=False)
def _(d: Draw):
    n = d.pick((4, 8, 7, 16))
    x = d.array(("float32", "float32", "complex64", "float16"), (*d.shape(0, 1), 30), "small", 0)
    return [x], {
        "n_fft": n,
        **pieces(d, n),
        "pad_mode": d.pick(("reflect", "constant", "edge", "no")),
    }


@row("fft.istft", smooth=True, batched=False)
def _(d: Draw):
    n = d.pick((4, 8, 7, 16))
    x = d.array("complex64", (*d.shape(0, 1), n // 2 + 1, d.between(1, 6)), "small", 0)
    kwargs = pieces(d, n)
    if d.often(0.3):
        kwargs["length"] = d.between(0, 40)
    return [x], {**({} if d.often(0.3) else {"n_fft": n}), **kwargs}


def pieces(d: Draw, n: int) -> dict:
    kwargs = {"norm": d.pick(("backward", "ortho", "forward"))}
    wide = n
    if d.often(0.6):
        kwargs["hop_length"] = d.between(1, max(n // 2, 1))
    if d.often(0.3):
        kwargs["win_length"] = wide = d.between(1, n)
    if d.often(0.5):
        kwargs["window"] = d.array("float32", (wide + (d.often(0.05)),), "positive", 0)
    if d.often(0.5):
        kwargs["center"] = d.often(0.5)
    if d.often(0.3):
        kwargs["onesided"] = d.often(0.6)
    return kwargs
