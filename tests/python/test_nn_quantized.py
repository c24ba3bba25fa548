"""Layers with quantized weights."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_flatten

from nn_support import check_close, values

# Mode, arguments, and the group size and bits that come of them.
MODES = [
    ("affine", {}, 64, 4),
    ("affine", {"group_size": 32, "bits": 8}, 32, 8),
    ("mxfp4", {}, 32, 4),
    ("mxfp8", {}, 32, 8),
    ("nvfp4", {}, 16, 4),
]


def dequantized(layer):
    return np.array(
        mx.dequantize(
            layer.weight,
            layer.scales,
            layer.get("biases"),
            group_size=layer.group_size,
            bits=layer.bits,
            mode=layer.mode,
        ).astype(mx.float32)
    )


def names(tree):
    return [name for name, _ in tree_flatten(tree)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mode, arguments, group_size, bits", MODES)
def test_linear(mode, arguments, group_size, bits, bias):
    source = nn.Linear(128, 64, bias=bias)
    layer = nn.QuantizedLinear.from_linear(source, mode=mode, **arguments)
    x = values(3, 128)
    expected = x @ dequantized(layer).T + (np.array(source.bias) if bias else 0)
    check_close(layer(mx.array(x)), expected, 1e-4)
    assert np.abs(dequantized(layer) - np.array(source.weight)).max() < 0.02
    assert ("biases" in layer) == (mode == "affine")
    text = f"group_size={group_size}, bits={bits}, mode={mode})"
    assert repr(layer) == (f"QuantizedLinear(input_dims=128, output_dims=64, bias={bias}, {text}")
    other = source.to_quantized(mode=mode, **arguments)
    assert mx.array_equal(other.weight, layer.weight).item()


def test_parameters():
    layer = nn.QuantizedLinear(64, 32)
    assert names(layer.parameters()) == ["weight", "scales", "biases", "bias"]
    assert names(layer.trainable_parameters()) == []
    assert layer.weight.dtype == mx.uint32 and layer.weight.shape == (32, 8)
    layer.set_dtype(mx.float16)
    assert layer.weight.dtype == mx.uint32 and layer.scales.dtype == mx.float16
    # The bias of a layer that is quantized can still be trained.
    layer = nn.Linear(64, 32).to_quantized()
    assert names(layer.trainable_parameters()) == ["bias"]


@pytest.mark.parametrize("mode, arguments, group_size, bits", MODES)
def test_embedding(mode, arguments, group_size, bits):
    source = nn.Embedding(10, 64)
    layer = source.to_quantized(mode=mode, **arguments)
    table = dequantized(layer)
    indices = mx.array([[1, 9], [0, 1]])
    check_close(layer(indices), table[np.array(indices)])
    x = values(2, 64)
    check_close(layer.as_linear(mx.array(x)), x @ table.T, 1e-4)
    assert names(layer.trainable_parameters()) == []
    assert repr(layer) == (
        f"QuantizedEmbedding(10, 64, group_size={group_size}, bits={bits}, mode={mode})"
    )
    assert nn.QuantizedEmbedding(4, 64, mode=mode).weight.shape[0] == 4


class Unknown(nn.Module):
    pass


def model():
    return nn.Sequential(
        nn.Embedding(8, 64),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Sequential(nn.Linear(64, 32, bias=False)),
        Unknown(),
    )


def test_quantize():
    m = model()
    assert nn.quantize(m, group_size=32, bits=8) is None
    assert isinstance(m.layers[0], nn.QuantizedEmbedding)
    assert isinstance(m.layers[1], nn.QuantizedLinear)
    assert isinstance(m.layers[3].layers[0], nn.QuantizedLinear)
    assert m.layers[1].group_size == 32 and m.layers[1].bits == 8
    assert m.layers[3].layers[0](mx.ones((1, 64))).shape == (1, 32)


def test_quantize_some():
    m = model()
    nn.quantize(m, class_predicate=lambda path, layer: path == "layers.3.layers.0")
    assert isinstance(m.layers[1], nn.Linear)
    assert isinstance(m.layers[3].layers[0], nn.QuantizedLinear)

    def arguments(path, layer):
        if not isinstance(layer, nn.Linear):
            return False
        return {"mode": "mxfp8", "quantize_input": False} if path == "layers.1" else True

    m = model()
    nn.quantize(m, class_predicate=arguments)
    assert isinstance(m.layers[0], nn.Embedding)
    assert m.layers[1].mode == "mxfp8"
    assert m.layers[3].layers[0].mode == "affine"


def test_quantize_errors():
    with pytest.raises(ValueError, match="Unable to quantize model of type .*ReLU"):
        nn.quantize(model(), class_predicate=lambda path, layer: True)
    with pytest.raises(ValueError, match="must return a bool or a dict of parameters"):
        nn.quantize(model(), class_predicate=lambda path, layer: 3)
    with pytest.raises(ValueError, match="Invalid quantization mode 'other'. Valid modes are:"):
        nn.QuantizedLinear(64, 64, mode="other")
    with pytest.raises(ValueError, match="Quantized input is not supported."):
        nn.Embedding(4, 64).to_quantized(quantize_input=True)
    with pytest.raises(
        ValueError, match="only supported for 'nvfp4' and 'mxfp8' modes, got affine"
    ):
        nn.Linear(64, 64).to_quantized(quantize_input=True)
    with pytest.raises(NotImplementedError, match="QQLinear does not support bias yet."):
        nn.Linear(64, 64).to_quantized(mode="nvfp4", quantize_input=True)


@pytest.mark.parametrize("mode, group_size, bits", [("nvfp4", 16, 4), ("mxfp8", 32, 8)])
def test_quantized_inputs(mode, group_size, bits):
    source = nn.Linear(64, 32, bias=False)
    layer = source.to_quantized(mode=mode, quantize_input=True)
    text = (
        f"QQLinear(input_dims=64, output_dims=32, group_size={group_size}, bits={bits},"
        f" mode={mode})"
    )
    assert repr(layer) == text
    assert layer.weight is source.weight
    assert names(layer.trainable_parameters()) == ["weight"]
    layer.eval()
    assert names(layer.parameters()) == ["weight", "scales"]
    assert layer.weight.dtype == mx.uint32
    assert repr(layer) == text
    weight = dequantized(layer)
    packed = layer.weight
    layer.quantize()
    assert layer.weight is packed
    layer.train()
    assert names(layer.parameters()) == ["weight"]
    check_close(layer.weight, weight, 1e-6)
    # A layer that is not in training is quantized at once.
    other = nn.QQLinear.from_linear(source.eval(), mode=mode)
    assert mx.array_equal(other.weight, packed).item()


def test_gradient_through_quantized_layers():
    model = nn.Sequential(nn.Linear(64, 64), nn.QuantizedLinear(64, 8))
    x = values(2, 64)
    _, gradient = nn.value_and_grad(model, lambda x: model(x).sum())(mx.array(x))
    assert names(gradient) == ["layers.0.weight", "layers.0.bias"]
    expected = np.outer(dequantized(model.layers[1]).sum(0), x.sum(0))
    check_close(gradient["layers"][0]["weight"], expected, 1e-3)
