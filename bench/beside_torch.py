#!/usr/bin/env python3
"""The rows of `mlx bench` that PyTorch has too, measured by both one after the other, as a table.

usage: beside_torch.py [--mlx COMMAND] [--small] [--seconds S] [--rows NAME,...] [--device gpu|cpu]

Each row runs `mlx bench --json --filter NAME` in a process of its own, then the same work in
PyTorch in this one: on CUDA, timed by its events, if it is there, else on the CPU. Without PyTorch
its column is empty. Both repeat their work until the clocks are up and give medians; the ratio is
ours by theirs, as rates, so that more than 1 is faster. The last columns are what a row must reach
on an NVIDIA H200, as a rate or as a part of PyTorch's or of a copy's. --small: sizes for software
devices, to see that it works.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

try:
    import torch
except ImportError:
    torch = None

WIDTH, HIDDEN, HEADS, LAYERS, WORDS, BATCH, LENGTH = 768, 2048, 12, 12, 1 << 15, 8, 512
SMALL = 8 << 20  # the size that --small takes, at which fixed shapes are smaller, too


@dataclass
class Row:
    name: str  # of mlx bench
    unit: str
    scale: float  # of the unit
    megabytes: int  # of the large operands
    work: Callable  # bytes, elements or operations, of the size in bytes
    make: Callable  # (size, device) -> what PyTorch runs
    must: str  # part of what it is compared with, or a rate
    least: float


# ---- what PyTorch runs ----


def normal(*shape, device, dtype=None):
    return torch.randn(*shape, device=device, dtype=dtype or torch.float32)


def edge_of(size: int) -> int:
    """As mlx bench: the largest power of two whose square fits."""
    edge = 1
    while 16 * edge * edge <= size:
        edge *= 2
    return edge


def copy(size, device):
    x = normal(size // 4, device=device)
    half = x.numel() // 2
    return lambda: torch.cat([x[:half], x[half : 2 * half]])


def sort_rows(size, device):
    x = normal(edge_of(size), edge_of(size), device=device)
    return lambda: torch.sort(x, dim=1)[0]


def cumsum_rows(size, device):
    x = normal(edge_of(size), edge_of(size), device=device)
    return lambda: torch.cumsum(x, dim=1)


def gather_rows(size, device):
    x = normal(size // 2048, 1024, device=device, dtype=torch.bfloat16)
    at = torch.randint(0, len(x), (len(x),), device=device)
    return lambda: x[at]


def scatter_add(size, device):
    n = size // 2048
    places = n // 16 + 1
    table = normal(places, 1024, device=device, dtype=torch.bfloat16)
    rows = normal(n, 1024, device=device, dtype=torch.bfloat16)
    at = torch.randint(0, places, (n,), device=device)
    return lambda: torch.index_add(table, 0, at, rows)


def conv2d(size, device):
    x = normal(1 if size == SMALL else 32, 256, 56, 56, device=device, dtype=torch.bfloat16)
    w = normal(256, 256, 3, 3, device=device, dtype=torch.bfloat16)
    x, w = (a.to(memory_format=torch.channels_last) for a in (x, w))
    return lambda: torch.nn.functional.conv2d(x, w, padding=1)


def fft(size, device):
    lines = max(size // (8 << 20), 1)
    x = normal(lines, 1 << 20, device=device, dtype=torch.complex64)
    return lambda: torch.fft.fft(x)


def rms_norm(size, device):
    shapes = ((64 if size == SMALL else 8192, 8192), (8192,))
    x, w = (normal(*s, device=device, dtype=torch.bfloat16) for s in shapes)
    if hasattr(torch.nn.functional, "rms_norm"):
        return lambda: torch.nn.functional.rms_norm(x, (8192,), w, 1e-5)
    return lambda: x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5).to(x.dtype) * w


def layer_norm(size, device):
    shapes = ((64 if size == SMALL else 8192, 8192), (8192,), (8192,))
    x, w, b = (normal(*s, device=device, dtype=torch.bfloat16) for s in shapes)
    return lambda: torch.nn.functional.layer_norm(x, (8192,), w, b, 1e-5)


def mlp_step(size, device):
    del size
    shapes = ((1024, 1024), (1024,), (1024, 1024), (1024,), (256, 1024), (256, 1024))
    v = [normal(*s, device=device) for s in shapes]
    weights = [x.requires_grad_() for x in v[:4]]

    def step():
        hidden = torch.relu(torch.addmm(weights[1], v[4], weights[0]))
        loss = (torch.addmm(weights[3], hidden, weights[2]) - v[5]).square().mean()
        return torch.autograd.grad(loss, weights)

    return step


def rotated(x):
    """Rotary positions of (batch, heads, length, size)."""
    length, half = x.shape[-2], x.shape[-1] // 2
    steps = torch.arange(half, device=x.device, dtype=torch.float32)
    angle = torch.arange(length, device=x.device)[:, None] * 1e4 ** (-steps / half)
    c, s = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * c - b * s, a * s + b * c], -1)


def normed(x, w):
    if hasattr(torch.nn.functional, "rms_norm"):
        return torch.nn.functional.rms_norm(x, w.shape, w, 1e-6)
    return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6).to(x.dtype) * w


def layer(x, w, length):
    norm1, qkv, out, norm2, gate, up, down = w
    parts = (normed(x, norm1) @ qkv).split(WIDTH, -1)
    q, k, v = (p.view(-1, length, HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)
    attend = torch.nn.functional.scaled_dot_product_attention
    y = attend(rotated(q), rotated(k), v, is_causal=True)
    x = x + y.transpose(1, 2).reshape(x.shape) @ out
    h = normed(x, norm2)
    return x + (torch.nn.functional.silu(h @ gate) * (h @ up)) @ down


def transformer_step(size, device):
    layers, batch, length = (1, 1, 8) if size == SMALL else (LAYERS, BATCH, LENGTH)
    of_layer = [(WIDTH,), (WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH,), (WIDTH, HIDDEN)]
    of_layer += [(WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    shapes = of_layer * layers + [(WORDS, WIDTH), (WIDTH,), (WIDTH, WORDS)]
    weights = [
        (normal(*s, device=device, dtype=torch.bfloat16) * 0.02).requires_grad_() for s in shapes
    ]
    words, target = (torch.randint(0, WORDS, (batch * length,), device=device) for _ in range(2))

    def step():
        x = weights[-3][words]
        for i in range(layers):
            x = layer(x, weights[7 * i : 7 * i + 7], length)
        logits = normed(x, weights[-2]) @ weights[-1]
        loss = torch.nn.functional.cross_entropy(logits, target)
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, g in zip(weights, grads):
                w.sub_(g, alpha=1e-4)

    return step


# ---- the rows ----


def one(size):
    del size
    return 1.0


def square_bytes(size):
    return 8.0 * edge_of(size) ** 2


ROWS = [
    Row("copy", "TB/s", 1e12, 2048, lambda n: 2.0 * n, copy, "", 0),
    Row("sort_rows", "Gelem/s", 1e9, 512, lambda n: edge_of(n) ** 2, sort_rows, "rate", 8.0),
    Row("cumsum_rows", "TB/s", 1e12, 512, square_bytes, cumsum_rows, "rate", 2.0),
    Row("gather_rows", "TB/s", 1e12, 2048, lambda n: 2.0 * n, gather_rows, "copy", 0.7),
    Row("scatter_add", "TB/s", 1e12, 2048, lambda n: 1.125 * n, scatter_add, "copy", 0.7),
    Row("conv2d_bf16", "TFLOP/s", 1e12, 512, lambda _: 1.1838e11, conv2d, "torch", 0.4),
    Row(
        "fft_1m",
        "TFLOP/s",
        1e12,
        512,
        lambda n: 100.0 * (max(n >> 23, 1) << 20),
        fft,
        "torch",
        0.5,
    ),
    Row("fast_rms_norm", "TB/s", 1e12, 512, lambda _: 4.0 * 8192**2, rms_norm, "rate", 3.0),
    Row("fast_layer_norm", "TB/s", 1e12, 512, lambda _: 4.0 * 8192**2, layer_norm, "rate", 3.0),
    Row("mlp_step", "steps/s", 1.0, 512, one, mlp_step, "torch", 1 / 1.2),
    Row("transformer_step", "steps/s", 1.0, 512, one, transformer_step, "torch", 1 / 2),
]


# ---- measuring ----


def ours(options, row: Row, megabytes: int) -> float | None:
    """The rate of mlx bench, or None where it does not run the row on this device."""
    if options.small and row.name == "conv2d_bf16":
        return None  # has one size
    command = [
        *options.mlx.split(),
        "bench",
        "--json",
        "--filter",
        row.name,
        "--mb",
        str(megabytes),
    ]
    command += ["--seconds", str(options.seconds), "--device", options.device]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if out.returncode:
        print(f"{row.name}: {' '.join(command)} ended with {out.returncode}", file=sys.stderr)
        return None
    for line in map(json.loads, out.stdout.splitlines()):
        if line.get("case") == row.name:
            micro = line.get("us") or line.get("gpu_us") or line["wall_us"]
            return row.work(megabytes << 20) / (micro * 1e-6) / row.scale
    return None


def seconds_of(run, device: str) -> float:
    if device == "cpu":
        began = time.perf_counter()
        run()
        return time.perf_counter() - began
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    run()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) * 1e-3


def theirs(options, row: Row, megabytes: int) -> float | None:
    if torch is None:
        return None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    run = row.make(megabytes << 20, device)
    began, times = time.perf_counter(), []
    while time.perf_counter() - began < options.seconds or len(times) < 3:
        seconds_of(run, device)  # the clock comes up
        times.append(None)
    began, times = time.perf_counter(), []
    while time.perf_counter() - began < options.seconds or len(times) < 5:
        times.append(seconds_of(run, device))
    if device == "cuda":
        torch.cuda.empty_cache()
    return row.work(megabytes << 20) / statistics.median(times) / row.scale


def verdict(row: Row, rate, torchs, copied) -> str:
    against = {"rate": 1.0, "torch": torchs, "copy": copied}.get(row.must)
    if not row.must or not rate or not against:
        return ""
    return "yes" if rate >= row.least * against else "no"


def wanted(row: Row) -> str:
    if row.must == "rate":
        return f"{row.least:g} {row.unit}"
    return f"{row.least:.2f} x {row.must}" if row.must else ""


def shown(x) -> str:
    return f"{x:.4g}" if x else "-"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mlx", default="build/mlx", help="the command, which may have arguments")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rows", default=",".join(row.name for row in ROWS))
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    options = parser.parse_args()
    names = options.rows.split(",")
    unknown = set(names) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no rows: {', '.join(sorted(unknown))}")
    has = f"PyTorch {torch.__version__}" if torch else "no PyTorch"
    on = torch.cuda.get_device_name() if torch and torch.cuda.is_available() else "CPU"
    print(f"mlx bench on {options.device}; {has} on {on}\n")
    print(
        f"| {'row':16} | {'ours':>10} | {'PyTorch':>10} | {'unit':8} | {'ratio':>6} "
        f"| {'must reach':>14} | reached |"
    )
    print("|---|---|---|---|---|---|---|")
    copied, failed = None, 0
    for row in ROWS:
        if row.name not in names:
            continue
        megabytes = SMALL >> 20 if options.small else row.megabytes
        rate, other = ours(options, row, megabytes), theirs(options, row, megabytes)
        copied = rate if row.name == "copy" else copied
        ratio = f"{rate / other:.2f}" if rate and other else "-"
        print(
            f"| {row.name:16} | {shown(rate):>10} | {shown(other):>10} | {row.unit:8} "
            f"| {ratio:>6} | {wanted(row):>14} | {verdict(row, rate, other, copied):7} |",
            flush=True,
        )
        failed += rate is None and not options.small
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
