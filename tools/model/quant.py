"""MLX's affine quantisation of groups along the last axis, in torch and float32."""

import torch

GROUP, BITS = 64, 4


def quantize_groups(flat):
    """flat [n * GROUP] float32 -> codes [n, GROUP], scale [n, 1], bias [n, 1], all float32.

    The edge of larger magnitude is met exactly: it is the bias, and zero is then a code.
    """
    groups = flat.view(-1, GROUP)
    top = 2**BITS - 1
    low, high = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
    scale = ((high - low) / top).clamp(min=1e-7)
    low_is_edge = low.abs() > high.abs()
    scale = torch.where(low_is_edge, scale, -scale)
    edge = torch.where(low_is_edge, low, high)
    steps = torch.round(edge / scale)
    scale = torch.where(steps != 0, edge / torch.where(steps != 0, steps, 1), scale)
    bias = torch.where(steps != 0, edge, 0)
    codes = torch.round((groups - bias) / scale).clamp(0, top)
    return codes, scale, bias


def fake_quantize(flat):
    """The values that a 4-bit model with bfloat16 scales and biases computes with."""
    codes, scale, bias = quantize_groups(flat)
    scale, bias = (t.to(torch.bfloat16).float() for t in (scale, bias))
    return (codes * scale + bias).view(-1)


def pack(codes):
    """Codes [rows, columns] -> uint32 words [rows, columns / 8], first value in the low bits."""
    shifts = torch.arange(0, 32, BITS)
    words = codes.to(torch.int64).view(codes.shape[0], -1, 32 // BITS) << shifts
    return words.sum(-1).numpy().astype("uint32")
