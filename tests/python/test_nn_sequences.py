"""Recurrent layers, attention, transformers."""

import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from nn_support import HALVES, as_numpy, check_close, check_gradient, values


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def weights(layer, *names):
    """Weights by name; what is not there is zero."""
    arrays = (getattr(layer, name) for name in names)
    return [0.0 if array is None else np.array(array, np.float64) for array in arrays]


def run_rnn(layer, x, h=None, function=np.tanh):
    wx, wh, bias = weights(layer, "Wxh", "Whh", "bias")
    h = np.zeros(wh.shape[0]) if h is None else h
    states = []
    for i in range(x.shape[-2]):
        h = function(x[..., i, :] @ wx.T + h @ wh.T + bias)
        states.append(h)
    return np.stack(states, -2)


def run_gru(layer, x, h=None):
    wx, wh, b, bhn = weights(layer, "Wx", "Wh", "b", "bhn")
    size = layer.hidden_size
    h = np.zeros(size) if h is None else h
    states = []
    for i in range(x.shape[-2]):
        xr, xz, xn = np.split(x[..., i, :] @ wx.T + b, 3, -1)
        hr, hz, hn = np.split(h @ wh.T, 3, -1)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        n = np.tanh(xn + r * (hn + bhn))
        h = (1 - z) * n + z * h
        states.append(h)
    return np.stack(states, -2)


def run_lstm(layer, x, h=None, c=None):
    wx, wh, bias = weights(layer, "Wx", "Wh", "bias")
    h = np.zeros(layer.hidden_size) if h is None else h
    c = np.zeros(layer.hidden_size) if c is None else c
    states, cells = [], []
    for k in range(x.shape[-2]):
        i, f, g, o = np.split(x[..., k, :] @ wx.T + h @ wh.T + bias, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
        cells.append(c)
    return np.stack(states, -2), np.stack(cells, -2)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (2, 1, 3, 4)])
@pytest.mark.parametrize("layer, run", [(nn.RNN, run_rnn), (nn.GRU, run_gru)])
def test_recurrent(layer, run, shape, bias):
    module = layer(4, 5, bias=bias)
    x, h = values(*shape), values(*shape[:-2], 5, seed=1)
    check_close(module(mx.array(x)), run(module, x))
    check_close(module(mx.array(x), mx.array(h)), run(module, x, h))
    check_gradient(module, x, h)
    assert all(np.abs(np.array(w)).max() <= 5**-0.5 for w in module.parameters().values())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_lstm(shape, bias):
    module = nn.LSTM(4, 5, bias=bias)
    x = values(*shape)
    h, c = values(*shape[:-2], 5, seed=1), values(*shape[:-2], 5, seed=2)
    for state in ((), (h,), (h, c)):
        results = module(mx.array(x), *map(mx.array, state))
        for result, expected in zip(results, run_lstm(module, x, *state)):
            check_close(result, expected)
    check_close(module(mx.array(x), cell=mx.array(c))[1], run_lstm(module, x, None, c)[1])
    check_gradient(lambda x: module(x)[0], x)


def test_printed_recurrent():
    assert repr(nn.GRU(4, 5)) == "GRU(input_dims=4, hidden_size=5, bias=True)"
    assert repr(nn.LSTM(4, 5, False)) == "LSTM(input_dims=4, hidden_size=5, bias=False)"
    assert repr(nn.RNN(4, 5, nonlinearity=abs)) == (
        "RNN(input_dims=4, hidden_size=5, nonlinearity=<built-in function abs>, bias=True)"
    )


def test_nonlinearity():
    module = nn.RNN(4, 5, nonlinearity=lambda x: mx.maximum(x, 0))
    x = values(2, 3, 4)
    check_close(module(mx.array(x)), run_rnn(module, x, function=lambda x: np.maximum(x, 0)))
    with pytest.raises(ValueError) as error:
        nn.RNN(4, 5, nonlinearity=3)
    assert str(error.value) == "Nonlinearity must be callable. Current value: 3."


def linear(layer, x):
    return x @ np.array(layer.weight).T + (np.array(layer.bias) if "bias" in layer else 0)


def attend(module, q, k, v, mask=0):
    def heads(x):
        return x.reshape(*x.shape[:2], module.num_heads, -1).transpose(0, 2, 1, 3)

    q, k, v = (
        heads(linear(layer, x))
        for layer, x in (
            (module.query_proj, q),
            (module.key_proj, k),
            (module.value_proj, v),
        )
    )
    scores = np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + mask)
    y = scores / scores.sum(-1, keepdims=True) @ v
    return linear(module.out_proj, y.transpose(0, 2, 1, 3).reshape(*q.shape[0:1], q.shape[2], -1))


def test_attention():
    module = nn.MultiHeadAttention(8, 2)
    q, k, v = values(2, 5, 8), values(2, 6, 8, seed=1), values(2, 6, 8, seed=2)
    check_close(module(*map(mx.array, (q, k, v))), attend(module, q, k, v), 1e-4)
    mask = values(5, 6, seed=3)
    y = module(*map(mx.array, (q, k, v, mask)))
    check_close(y, attend(module, q, k, v, mask), 1e-4)
    visible = mask > -1
    y = module(*map(mx.array, (q, k, v, visible)))
    check_close(y, attend(module, q, k, v, np.where(visible, 0, -np.inf)), 1e-4)
    check_gradient(module, q, k, v)


def test_attention_of_other_sizes():
    module = nn.MultiHeadAttention(8, 2, 6, 7, 5, 4, 9, bias=True)
    q, k, v = values(2, 5, 6), values(2, 3, 7, seed=1), values(2, 3, 5, seed=2)
    y = module(*map(mx.array, (q, k, v)))
    assert y.shape == (2, 5, 9)
    check_close(y, attend(module, q, k, v), 1e-4)
    with pytest.raises(ValueError, match="should be divisible by the number of heads"):
        nn.MultiHeadAttention(5, 2)


@pytest.mark.parametrize("dtype", [mx.float32, *HALVES])
def test_causal_mask(dtype):
    mask = nn.MultiHeadAttention.create_additive_causal_mask(4, dtype)
    assert mask.dtype == dtype
    hidden = as_numpy(mask) != 0
    np.testing.assert_array_equal(hidden, np.arange(4)[:, None] < np.arange(4))
    assert (mask[0, 1:] == mx.finfo(dtype).min).all().item()


def norm(layer, x):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * np.array(layer.weight) + np.array(
        layer.bias
    )


def mlp(layer, x):
    return linear(layer.linear2, np.maximum(linear(layer.linear1, x), 0))


def residual(layer, x, part, ln):
    return x + part(norm(ln, x)) if layer.norm_first else norm(ln, x + part(x))


def encode(module, x, mask):
    for layer in module.layers:
        x = residual(layer, x, lambda y: attend(layer.attention, y, y, y, mask), layer.ln1)
        x = residual(layer, x, lambda y: mlp(layer, y), layer.ln2)
    return norm(module.ln, x)


def decode(module, x, memory, mask, memory_mask):
    for layer in module.layers:
        x = residual(layer, x, lambda y: attend(layer.self_attention, y, y, y, mask), layer.ln1)
        x = residual(
            layer,
            x,
            lambda y: attend(layer.cross_attention, y, memory, memory, memory_mask),
            layer.ln2,
        )
        x = residual(layer, x, lambda y: mlp(layer, y), layer.ln3)
    return norm(module.ln, x)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_transformer(norm_first, checkpoint):
    module = nn.Transformer(8, 2, 2, 1, mlp_dims=12, norm_first=norm_first, checkpoint=checkpoint)
    module.apply(lambda w: mx.array(values(*w.shape, seed=w.size, low=-0.5, high=0.5)))
    source, target = values(2, 5, 8), values(2, 4, 8, seed=1)
    masks = values(5, 5, seed=2), values(4, 4, seed=3), values(4, 5, seed=4)
    memory = encode(module.encoder, source, masks[0])
    expected = decode(module.decoder, target, memory, masks[1], masks[2])
    check_close(module(*map(mx.array, (source, target, *masks))), expected, 5e-4)
    check_close(module.encoder(mx.array(source), None), encode(module.encoder, source, 0), 5e-4)
    check_gradient(lambda x: module(x, mx.array(target), None, None, None), source)


def test_gradients_of_checkpointed_transformers():
    gradients = []
    for checkpoint in (False, True):
        mx.random.seed(1)
        module = nn.TransformerEncoder(2, 8, 2, checkpoint=checkpoint)
        loss = nn.value_and_grad(module, lambda x: (module(x, None) ** 2).sum())
        gradients.append(loss(mx.array(values(1, 3, 8)))[1])
    first, second = (g["layers"][0]["linear1"]["weight"] for g in gradients)
    check_close(first, np.array(second), 1e-4)


def test_parts_of_transformers():
    encoder, decoder = nn.Linear(8, 8), nn.Linear(8, 8)
    module = nn.Transformer(8, 2, custom_encoder=encoder, custom_decoder=decoder)
    assert module.encoder is encoder and module.decoder is decoder
    layer = nn.TransformerEncoderLayer(8, 2, activation=nn.GELU())
    assert layer.linear1.weight.shape == (32, 8)
    assert isinstance(layer.activation, nn.GELU)
    assert nn.Transformer(8, 2).encoder.layers[5].norm_first


def test_dropout_in_transformers():
    module = nn.TransformerEncoder(1, 8, 2, dropout=0.5)
    x = mx.array(values(1, 3, 8))
    assert not mx.allclose(module(x, None), module(x, None)).item()
    module.eval()
    assert mx.array_equal(module(x, None), module(x, None)).item()
