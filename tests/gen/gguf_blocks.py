"""GGUF's quantized blocks: random ones, and what they mean according to NumPy.

Every function takes an array (blocks, bytes of a block) of uint8 and gives (blocks, elements) of
float32. tests/gen/check_against_gguf.py compares them with the Python package gguf.
"""

import numpy as np


def half(b, at):
    return np.ascontiguousarray(b[:, at:at + 2]).view("<f2").astype(np.float32)


def nibbles(q):
    """Low halves of all bytes, then high halves."""
    return np.concatenate([q & 15, q >> 4], axis=1).astype(np.int32)


def bits(b):
    """All bits of the bytes, from the low end."""
    return np.unpackbits(b, axis=1, bitorder="little").astype(np.int32)


def q4_0(b):
    return half(b, 0) * (nibbles(b[:, 2:]) - 8).astype(np.float32)


def q4_1(b):
    return half(b, 0) * nibbles(b[:, 4:]).astype(np.float32) + half(b, 2)


def q5_0(b):
    q = nibbles(b[:, 6:]) + 16 * bits(b[:, 2:6])
    return half(b, 0) * (q - 16).astype(np.float32)


def q5_1(b):
    q = nibbles(b[:, 8:]) + 16 * bits(b[:, 4:8])
    return half(b, 0) * q.astype(np.float32) + half(b, 2)


def q8_0(b):
    return half(b, 0) * b[:, 2:].view(np.int8).astype(np.float32)


NONLINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
                     np.float32)


def iq4_nl(b):
    return half(b, 0) * NONLINEAR[nibbles(b[:, 2:])]


def mxfp4(b):
    values = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], np.float32)
    values = np.concatenate([values, 0 - values])  # there is no negative zero
    scale = np.ldexp(np.float32(1), b[:, :1].astype(np.int32) - 127)
    return scale * values[nibbles(b[:, 1:])]


def planes(q, width):
    """(blocks, groups of 32 bytes, 32) to elements: first the lowest bits of a group's bytes, then
    the next ones."""
    shifts = np.arange(0, 8, width).reshape(1, 1, -1, 1)
    q = q.reshape(len(q), -1, 1, 32) >> shifts & (1 << width) - 1
    return q.reshape(len(q), -1).astype(np.int32)


def spread(per_group, n):
    return np.repeat(per_group, n, axis=1)


def q2_k(b):
    scale = half(b, 80) * (b[:, :16] & 15).astype(np.float32)
    low = half(b, 82) * (b[:, :16] >> 4).astype(np.float32)
    return spread(scale, 16) * planes(b[:, 16:80], 2).astype(np.float32) - spread(low, 16)


def q3_k(b):
    sc = b[:, 96:108].astype(np.int32)
    low = np.concatenate([sc[:, :8] & 15, sc[:, :8] >> 4], axis=1)
    high = np.concatenate([sc[:, 8:] >> s & 3 for s in (0, 2, 4, 6)], axis=1)
    scale = half(b, 108) * (low + 16 * high - 32).astype(np.float32)
    third = planes(b[:, :32], 1)
    q = planes(b[:, 32:96], 2) + 4 * third - 4
    return spread(scale, 16) * q.astype(np.float32)


def scales_and_minima(b):
    """8 six-bit pairs in 12 bytes."""
    a, c, d = (b[:, i:i + 4].astype(np.int32) for i in (4, 8, 12))
    scale = np.concatenate([a & 63, (d & 15) | a >> 6 << 4], axis=1)
    low = np.concatenate([c & 63, d >> 4 | c >> 6 << 4], axis=1)
    return half(b, 0) * scale.astype(np.float32), half(b, 2) * low.astype(np.float32)


def q4_k(b):
    scale, low = scales_and_minima(b)
    q = planes(b[:, 16:], 4).astype(np.float32)
    return spread(scale, 32) * q - spread(low, 32)


def q5_k(b):
    scale, low = scales_and_minima(b)
    q = planes(b[:, 48:], 4) + 16 * planes(b[:, 16:48], 1)
    return spread(scale, 32) * q.astype(np.float32) - spread(low, 32)


def q6_k(b):
    ql = b[:, :128].reshape(len(b), 2, 64)
    low = np.concatenate([ql & 15, ql >> 4], axis=2).reshape(len(b), 256).astype(np.int32)
    q = low + 16 * planes(b[:, 128:192], 2) - 32
    scale = half(b, 208) * b[:, 192:208].view(np.int8).astype(np.float32)
    return spread(scale, 16) * q.astype(np.float32)


def q8_k(b):
    scale = np.ascontiguousarray(b[:, :4]).view("<f4")
    return scale * b[:, 4:260].view(np.int8).astype(np.float32)


def iq4_xs(b):
    high = np.ascontiguousarray(b[:, 2:4]).view("<u2").astype(np.int32)
    low = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], axis=2).reshape(len(b), 8).astype(np.int32)
    scale = low + 16 * (high >> np.arange(0, 16, 2) & 3) - 32
    q = b[:, 8:].reshape(len(b), 8, 16)
    q = np.concatenate([q & 15, q >> 4], axis=2).reshape(len(b), 256)
    return spread(half(b, 0) * scale.astype(np.float32), 32) * NONLINEAR[q]


# name: number, elements and bytes of a block, where float16 numbers are, meaning
TYPES = {
    "Q4_0": (2, 32, 18, [0], q4_0),
    "Q4_1": (3, 32, 20, [0, 2], q4_1),
    "Q5_0": (6, 32, 22, [0], q5_0),
    "Q5_1": (7, 32, 24, [0, 2], q5_1),
    "Q8_0": (8, 32, 34, [0], q8_0),
    "Q2_K": (10, 256, 84, [80, 82], q2_k),
    "Q3_K": (11, 256, 110, [108], q3_k),
    "Q4_K": (12, 256, 144, [0, 2], q4_k),
    "Q5_K": (13, 256, 176, [0, 2], q5_k),
    "Q6_K": (14, 256, 210, [208], q6_k),
    "Q8_K": (15, 256, 292, [], q8_k),
    "IQ4_NL": (20, 32, 18, [0], iq4_nl),
    "IQ4_XS": (23, 256, 136, [0], iq4_xs),
    "MXFP4": (39, 32, 17, [], mxfp4),
}


def random_blocks(rng, name, n):
    """n blocks of random bytes with scales that are ordinary numbers."""
    _, _, size, halves, _ = TYPES[name]
    b = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for at in halves:
        b[:, at:at + 2] = rng.uniform(-0.2, 0.2, (n, 1)).astype("<f2").view(np.uint8)
    if name == "Q8_K":
        b[:, :4] = rng.uniform(-0.2, 0.2, (n, 1)).astype("<f4").view(np.uint8)
    if name == "MXFP4":
        b[:, 0] = rng.integers(105, 138, n)
    return b


def meaning(name, b):
    return TYPES[name][4](b)
