"""Convolutions, pooling, upsampling."""

import itertools

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.nn.layers.upsample import upsample_cubic, upsample_linear, upsample_nearest

from nn_support import HALVES, as_numpy, check_close, check_gradient, values


def numbers(value, count):
    return (value,) * count if isinstance(value, int) else tuple(value)


def convolved(x, weight, stride=1, padding=0, dilation=1, groups=1):
    """A convolution, window by window."""
    count = x.ndim - 2
    stride, padding, dilation = (numbers(v, count) for v in (stride, padding, dilation))
    x = np.pad(x, [(0, 0), *((p, p) for p in padding), (0, 0)])
    outputs, *window, inputs = weight.shape
    sizes = [
        (size - d * (w - 1) - 1) // s + 1
        for size, w, s, d in zip(x.shape[1:-1], window, stride, dilation)
    ]
    y = np.zeros((x.shape[0], *sizes, outputs))
    share = outputs // groups
    for place in itertools.product(*map(range, sizes)):
        part = x[
            (
                slice(None),
                *(
                    slice(p * s, p * s + d * (w - 1) + 1, d)
                    for p, s, d, w in zip(place, stride, dilation, window)
                ),
            )
        ]
        for g in range(groups):
            channels = slice(g * inputs, (g + 1) * inputs)
            own = slice(g * share, (g + 1) * share)
            y[(slice(None), *place, own)] = np.tensordot(
                part[..., channels], weight[own], (range(1, count + 2),) * 2
            )
    return y


CONVOLUTIONS = [
    (nn.Conv1d, (2, 9, 4), {"kernel_size": 3}),
    (nn.Conv1d, (2, 9, 4), {"kernel_size": 3, "stride": 2, "padding": 1, "groups": 2}),
    (nn.Conv1d, (2, 9, 4), {"kernel_size": 2, "dilation": 3, "bias": False}),
    (nn.Conv2d, (2, 7, 8, 4), {"kernel_size": 3}),
    (
        nn.Conv2d,
        (2, 7, 8, 4),
        {
            "kernel_size": (3, 2),
            "stride": (2, 1),
            "padding": (1, 0),
            "dilation": (1, 2),
            "groups": 2,
        },
    ),
    (nn.Conv2d, (1, 5, 5, 4), {"kernel_size": 1, "stride": 2, "bias": False}),
    (nn.Conv3d, (1, 4, 5, 6, 4), {"kernel_size": 2, "padding": 1}),
    (
        nn.Conv3d,
        (1, 4, 5, 6, 4),
        {"kernel_size": (1, 2, 3), "stride": (1, 2, 2), "dilation": (1, 1, 2)},
    ),
]


@pytest.mark.parametrize("layer, shape, settings", CONVOLUTIONS)
def test_convolutions(layer, shape, settings):
    module = layer(4, 6, **settings)
    arguments = {k: v for k, v in settings.items() if k not in ("kernel_size", "bias")}
    x = values(*shape)
    expected = convolved(x, np.array(module.weight), **arguments)
    bias = settings.get("bias", True)
    assert ("bias" in module) == bias
    check_close(module(mx.array(x)), expected, 1e-4)
    if bias:
        module.bias = mx.array(values(6))
        check_close(module(mx.array(x)), expected + values(6), 1e-4)
    check_gradient(module, x)
    window = module.weight.shape[1:-1]
    groups = settings.get("groups", 1)
    assert module.weight.shape == (6, *window, 4 // groups)
    limit = (4 // groups * np.prod(window)) ** -0.5
    assert limit * 0.8 < np.abs(np.array(module.weight)).max() <= limit


@pytest.mark.parametrize(
    "layer, convolution, shape, settings",
    [
        (nn.ConvTranspose1d, mx.conv1d, (2, 5, 4), {"kernel_size": 3}),
        (
            nn.ConvTranspose1d,
            mx.conv1d,
            (2, 5, 4),
            {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
        ),
        (
            nn.ConvTranspose2d,
            mx.conv2d,
            (1, 4, 5, 4),
            {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "bias": False},
        ),
        (
            nn.ConvTranspose2d,
            mx.conv2d,
            (1, 4, 5, 4),
            {"kernel_size": 2, "dilation": 2, "stride": 2},
        ),
        (nn.ConvTranspose3d, mx.conv3d, (1, 3, 2, 3, 4), {"kernel_size": 2, "stride": 2}),
    ],
)
def test_transposed_convolutions(layer, convolution, shape, settings):
    """They are the gradients of convolutions whose weight has its first and last axis swapped."""
    module = layer(4, 6, **settings)
    x = mx.array(values(*shape))
    y = module(x)
    count = x.ndim - 2
    stride, padding, dilation, extra = (
        numbers(settings.get(name, default), count)
        for name, default in (
            ("stride", 1),
            ("padding", 0),
            ("dilation", 1),
            ("output_padding", 0),
        )
    )
    window = module.weight.shape[1:-1]
    sizes = [
        (size - 1) * s - 2 * p + d * (w - 1) + 1 + e
        for size, s, p, d, w, e in zip(shape[1:-1], stride, padding, dilation, window, extra)
    ]
    assert y.shape == (shape[0], *sizes, 6)
    weight = np.moveaxis(np.array(module.weight), 0, -1)
    weight = np.moveaxis(weight, -2, 0)
    # The gradient by z, which is linear in x, has no z in it.
    z = mx.zeros(y.shape)
    names = ("stride", "padding", "dilation")
    arguments = {name: settings[name] for name in names if name in settings}
    expected = mx.grad(lambda z: (convolution(z, mx.array(weight), **arguments) * x).sum())(z)
    check_close(y, np.array(expected), 1e-4)
    check_gradient(module, values(*shape))


def test_printed_convolutions():
    assert repr(nn.Conv1d(4, 6, 3, groups=2)) == (
        "Conv1d(4, 6, kernel_size=3, stride=1, padding=0, dilation=1, groups=2, bias=True)"
    )
    assert repr(nn.Conv2d(4, 6, 3, bias=False)) == (
        "Conv2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=(0, 0), dilation=1,"
        " groups=1, bias=False)"
    )
    assert repr(nn.Conv3d(4, 6, (1, 2, 3), 2)) == (
        "Conv3d(4, 6, kernel_size=(1, 2, 3), stride=(2, 2, 2), padding=(0, 0, 0), dilation=1,"
        " bias=True)"
    )
    assert repr(nn.ConvTranspose1d(4, 6, 3)) == (
        "ConvTranspose1d(4, 6, kernel_size=3, stride=1, padding=0, dilation=1,"
        " output_padding=0, bias=True)"
    )
    assert repr(nn.ConvTranspose2d(4, 6, 3, output_padding=1)) == (
        "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=(0, 0), dilation=1,"
        " output_padding=(1, 1), bias=True)"
    )


@pytest.mark.parametrize("layer", [nn.Conv1d, nn.Conv2d])
def test_groups_divide_channels(layer):
    with pytest.raises(ValueError) as error:
        layer(3, 4, 2, groups=2)
    assert str(error.value) == (
        "The number of input channels (3) must be divisible by the number of groups (2)"
    )


def pooled(x, function, window, stride, padding, filler):
    count = x.ndim - 2
    window, stride, padding = (numbers(v, count) for v in (window, stride, padding))
    x = np.pad(x, [(0, 0), *((p, p) for p in padding), (0, 0)], constant_values=filler)
    sizes = [(size - w) // s + 1 for size, w, s in zip(x.shape[1:-1], window, stride)]
    y = np.zeros((x.shape[0], *sizes, x.shape[-1]))
    for place in itertools.product(*map(range, sizes)):
        part = tuple(slice(p * s, p * s + w) for p, s, w in zip(place, stride, window))
        y[(slice(None), *place)] = function(
            x[(slice(None), *part)], axis=tuple(range(1, count + 1))
        )
    return y


POOLS = [
    (nn.MaxPool1d, nn.AvgPool1d, (2, 12, 3)),
    (nn.MaxPool2d, nn.AvgPool2d, (2, 12, 9, 3)),
    (nn.MaxPool3d, nn.AvgPool3d, (2, 6, 7, 6, 3)),
]


@pytest.mark.parametrize("largest, mean, shape", POOLS)
@pytest.mark.parametrize(
    "window, stride, padding",
    [(2, None, 0), (3, None, 0), (3, 2, 0), (3, 1, 1), (2, 3, 0), (1, 2, 0), (5, 2, 2)],
)
def test_pooling(largest, mean, shape, window, stride, padding):
    x = values(*shape)
    for layer, function, filler in ((largest, np.max, -np.inf), (mean, np.mean, 0)):
        expected = pooled(x, function, window, stride or window, padding, filler)
        module = layer(window, stride, padding)
        check_close(module(mx.array(x)), expected)
        # An input that is not laid out row by row.
        turned = np.swapaxes(x, 1, -1).copy()
        check_close(module(mx.array(turned).swapaxes(1, -1)), expected)
        assert module.parameters() == {}


def test_pooling_of_each_axis():
    x = values(2, 8, 9, 3)
    module = nn.MaxPool2d((2, 3), stride=(1, 2), padding=(0, 1))
    check_close(module(mx.array(x)), pooled(x, np.max, (2, 3), (1, 2), (0, 1), -np.inf))
    assert repr(module) == "MaxPool2d(kernel_size=(2, 3), stride=(1, 2), padding=(0, 1))"
    assert repr(nn.AvgPool1d(4)) == "AvgPool1d(kernel_size=(4,), stride=(4,), padding=(0,))"
    check_gradient(nn.AvgPool2d(3, 2, 1), x)
    check_gradient(nn.MaxPool2d(2), x, step=1e-3)


def test_pooling_errors():
    for arguments, message in (
        (("x",), "[AvgPool1d] 'kernel_size' must be an integer or a tuple containing 1 integer"),
        (
            (2, (1, 1)),
            "[AvgPool1d] 'stride' must be an integer or a tuple containing 1 integer",
        ),
        ((0,), "[AvgPool1d] 'kernel_size' must be positive but got (0,)."),
        ((1, 0), "[AvgPool1d] 'stride' must be positive but got (0,)."),
        ((1, 1, -1), "[AvgPool1d] 'padding' must be non-negative but got (-1,)."),
    ):
        with pytest.raises(ValueError) as error:
            nn.AvgPool1d(*arguments)
        assert str(error.value) == message
    with pytest.raises(ValueError, match="containing 3 integers"):
        nn.MaxPool3d((1, 2))
    with pytest.raises(ValueError, match="but the input only has 2 dimensions"):
        nn.MaxPool1d(2)(mx.ones((2, 3)))
    with pytest.raises(ValueError, match="has 1 dims and the window shape has 2"):
        nn.MaxPool2d(2)(mx.ones((2, 3, 4)))


def interpolated(x, axis, scale, weights_of):
    """One axis of x; `weights_of(position)` gives pairs of place and weight."""
    size = x.shape[axis]
    out = []
    for place in range(int(scale * size)):
        total = 0
        for index, weight in weights_of(place, size, int(scale * size)):
            total = total + weight * np.take(x, np.clip(index, 0, size - 1), axis)
        out.append(total)
    return np.stack(out, axis)


def position(place, size, out_size, scale, align_corners):
    if align_corners:
        return place * (size - 1) / max(out_size - 1, 1)
    return (place + 0.5 - out_size / 2) / scale + size / 2 - 0.5


def linear_weights(scale, align_corners):
    def weights(place, size, out_size):
        p = np.clip(position(place, size, out_size, scale, align_corners), 0, size - 1)
        low = int(np.floor(p))
        return [(low, 1 - (p - low)), (low + 1, p - low)]

    return weights


def cubic(x, a):
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0


def cubic_weights(scale, align_corners):
    def weights(place, size, out_size):
        p = position(place, size, out_size, scale, align_corners)
        low = int(np.floor(p))
        return [(i, cubic(p - i, -0.75)) for i in range(low - 1, low + 3)]

    return weights


def antialiased_weights(scale, kernel, radius):
    def weights(place, size, out_size):
        p = position(place, size, out_size, scale, False)
        width = max(1 / scale, 1)
        reach = int(np.ceil(radius * width)) + 1
        middle = int(np.floor(p))
        found = [
            (i, kernel((p - i) / width))
            for i in range(middle - reach, middle + reach + 1)
            if 0 <= i < size
        ]
        total = sum(w for _, w in found)
        return [(i, w / total) for i, w in found]

    return weights


SCALES = [((5,), (2,)), ((6,), (0.5,)), ((4, 5), (1.5, 2.5)), ((6, 5), (0.6, 2)), ((2, 3, 2), 3)]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes, scales", SCALES)
def test_upsampling(sizes, scales, mode, align_corners):
    x = values(2, *sizes, 3)
    scales = scales if isinstance(scales, tuple) else (scales,) * len(sizes)
    expected = x.astype(np.float64)
    make = {"linear": linear_weights, "cubic": cubic_weights}[mode]
    for axis, scale in enumerate(scales, 1):
        expected = interpolated(expected, axis, scale, make(scale, align_corners))
    module = nn.Upsample(scales, mode, align_corners)
    check_close(module(mx.array(x)), expected, 1e-4)
    check_gradient(module, x)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes, scales", SCALES)
def test_antialiased_upsampling(sizes, scales, mode):
    x = values(2, *sizes, 3)
    scales = scales if isinstance(scales, tuple) else (scales,) * len(sizes)
    kernel, radius = (lambda d: max(1 - abs(d), 0), 1)
    if mode == "cubic":
        kernel, radius = (lambda d: cubic(d, -0.5)), 2
    expected = x.astype(np.float64)
    for axis, scale in enumerate(scales, 1):
        expected = interpolated(expected, axis, scale, antialiased_weights(scale, kernel, radius))
    check_close(nn.Upsample(scales, mode, antialias=True)(mx.array(x)), expected, 1e-4)


def test_nearest_neighbours():
    x = values(2, 3, 4, 2)
    check_close(nn.Upsample((2, 3))(mx.array(x)), x.repeat(2, 1).repeat(3, 2), 0)
    check_close(nn.Upsample(1)(mx.array(x)), x, 0)
    line = mx.arange(6.0).reshape(1, 6, 1)
    assert nn.Upsample(0.5)(line).flatten().tolist() == [0, 2, 4]
    assert nn.Upsample(1.6)(line[:, :5]).flatten().tolist() == [0, 0, 1, 2, 2, 3, 4, 4]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_upsampling_of_halves(mode, dtype):
    x = mx.array(values(1, 4, 5, 2)).astype(dtype)
    module = nn.Upsample(2, mode)
    expected = np.array(module(x.astype(mx.float32)))
    np.testing.assert_allclose(as_numpy(module(x)), expected, atol=0.05)


def test_upsampling_errors():
    with pytest.raises(ValueError, match="Got unsupported upsampling algorithm: other"):
        nn.Upsample(2, "other")
    with pytest.raises(ValueError, match="Antialiasing is not supported for nearest"):
        nn.Upsample(2, antialias=True)
    with pytest.raises(ValueError, match="antialias=True with align_corners=True is not"):
        nn.Upsample(2, "linear", align_corners=True, antialias=True)
    with pytest.raises(ValueError, match="should be at least 3D but 2D was provided"):
        nn.Upsample(2)(mx.ones((2, 3)))
    with pytest.raises(ValueError, match="the number of spatial dimensions were 1"):
        nn.Upsample((2, 2))(mx.ones((1, 2, 3)))
    for function in (upsample_nearest, upsample_linear, upsample_cubic):
        with pytest.raises(ValueError, match="A scale needs to be provided for each"):
            function(mx.ones((1, 2, 2, 1)), (2.0,))


def test_printed_upsampling():
    assert repr(nn.Upsample(2)) == (
        "Upsample(scale_factor=2.0, mode='nearest', align_corners=False)"
    )
    assert repr(nn.Upsample((2, 3), "cubic", antialias=True)) == (
        "Upsample(scale_factor=(2.0, 3.0), mode='cubic', align_corners=False, antialias=True)"
    )
