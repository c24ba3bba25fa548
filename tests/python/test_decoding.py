"""Tokens one after the other, as programs for language models make them with mlx.core and mlx.nn: a
model of the shape of Qwen3 with packed weights, caches that grow in steps, the next token started
before the last one is read."""

import functools
import gc
import itertools
import pathlib
import time

import mlx.core as mx
import mlx.nn as nn
import pytest

WIDTH, HEADS, KV_HEADS, HEAD, LAYERS, VOCABULARY = 128, 2, 1, 64, 3, 256
ROOM = 256  # positions by which a cache grows
# What `mlx generate` takes for a token of such a model: norm and queries, keys and values;
# attention; its product; norm and gates; the product after them. And embedding, logits, choice.
DISPATCHES = 5 * LAYERS + 4


@functools.partial(mx.compile, shapeless=True)
def swiglu(gate, x):
    return nn.silu(gate) * x


class Cache:
    def __init__(self):
        self.keys = self.values = None
        self.offset = 0

    def update(self, keys, values):
        start, self.offset = self.offset, self.offset + keys.shape[2]
        if self.keys is None or self.offset > self.keys.shape[2]:
            room = (1, KV_HEADS, -(-keys.shape[2] // ROOM) * ROOM, HEAD)
            grown = []
            for old, new in ((self.keys, keys), (self.values, values)):
                more = mx.zeros(room, new.dtype)
                grown.append(more if old is None else mx.concatenate([old, more], axis=2))
            self.keys, self.values = grown
        self.keys[..., start : self.offset, :] = keys
        self.values[..., start : self.offset, :] = values
        return self.keys[..., : self.offset, :], self.values[..., : self.offset, :]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.k = nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.v = nn.Linear(WIDTH, KV_HEADS * HEAD, bias=False)
        self.o = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.q_norm, self.k_norm = nn.RMSNorm(HEAD), nn.RMSNorm(HEAD)
        self.rope = nn.RoPE(HEAD, base=10000)

    def __call__(self, x, mask, cache):
        batch, length, _ = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        q = self.q_norm(q.reshape(batch, length, HEADS, -1)).transpose(0, 2, 1, 3)
        k = self.k_norm(k.reshape(batch, length, KV_HEADS, -1)).transpose(0, 2, 1, 3)
        v = v.reshape(batch, length, KV_HEADS, -1).transpose(0, 2, 1, 3)
        q, k = self.rope(q, offset=cache.offset), self.rope(k, offset=cache.offset)
        k, v = cache.update(k, v)
        y = mx.fast.scaled_dot_product_attention(q, k, v, scale=HEAD**-0.5, mask=mask)
        return self.o(y.transpose(0, 2, 1, 3).reshape(batch, length, -1))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.gate = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.before, self.after = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def __call__(self, x, mask, cache):
        x = x + self.attention(self.before(x), mask, cache)
        y = self.after(x)
        return x + self.down(swiglu(self.gate(y), self.up(y)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = [Layer() for _ in range(LAYERS)]
        self.norm = nn.RMSNorm(WIDTH)

    def __call__(self, tokens, caches):
        x = self.embedding(tokens)
        mask = "causal" if tokens.shape[1] > 1 else None
        for layer, cache in zip(self.layers, caches):
            x = layer(x, mask, cache)
        return self.embedding.as_linear(self.norm(x))


def make_model():
    mx.random.seed(7)
    model = Model()
    model.set_dtype(mx.bfloat16)
    nn.quantize(model, 64, 4)
    mx.eval(model.parameters())
    return model


def likeliest(logprobs):
    return mx.argmax(logprobs, axis=-1)


def decode(model, prompt, count, choose=likeliest):
    """Yields so many tokens after the prompt."""
    stream = mx.new_stream(mx.default_device())
    caches = [Cache() for _ in range(LAYERS)]

    def step(tokens):
        with mx.stream(stream):
            logits = model(tokens[None], caches)[:, -1, :]
            logprobs = logits - mx.logsumexp(logits, keepdims=True)
            token = choose(logprobs)
            mx.async_eval(token, logprobs)
            return token, logprobs.squeeze(0)

    token, _ = step(mx.array(prompt))
    for _ in range(count):
        after, _ = step(token)
        mx.eval(token)
        yield token.item()
        token = after


def likely(logprobs):
    """One of the likeliest tokens, by chance."""
    dropped = mx.argpartition(-logprobs, kth=19, axis=-1)[..., 20:]
    return mx.random.categorical(mx.put_along_axis(logprobs, dropped, mx.array(-mx.inf), axis=-1))


# What comes besides: log-probabilities; with a choice by chance also the ops of that.
@pytest.mark.parametrize("choose, more", [(likeliest, 3), (likely, 22)])
def test_dispatches_of_a_token(choose, more):
    """No op is left to the CPU, and a token costs hardly more than where the graph is made in C."""
    before = mx.default_device()
    mx.set_default_device(mx.gpu)
    try:
        model = make_model()
        start = mx.vulkan.statistics()["cpu_tasks"]
        counts = [mx.vulkan.statistics() for _ in decode(model, [1, 2, 3], 12, choose)]
    finally:
        mx.set_default_device(before)
    steps = [b["dispatches"] - a["dispatches"] for a, b in itertools.pairwise(counts)]
    assert counts[-1]["cpu_tasks"] == start
    assert max(steps[4:]) <= DISPATCHES + more, steps


def test_same_tokens_on_both_devices():
    tokens = []
    before = mx.default_device()
    for device in (mx.cpu, mx.gpu):
        mx.set_default_device(device)
        model = make_model()
        model.set_dtype(mx.float32)
        tokens.append(list(decode(model, [1, 2, 3, 4], 8)))
    mx.set_default_device(before)
    assert tokens[0] == tokens[1] and len(tokens[0]) == 8


def resident():
    """Bytes of the process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def active_once_at(expected):
    """Active memory, as soon as it is what is expected: the last work of a stream may still run.
    Waits for other work meanwhile, which lets go of what has completed."""
    end = time.monotonic() + 60
    while (now := mx.get_active_memory()) > expected and time.monotonic() < end:
        time.sleep(0.05)
        mx.eval(mx.arange(3) + 1)
    return now


def test_memory_stays_as_it_is(device):
    """Thousands of tokens on the CPU, where they are cheap, hundreds on the GPU. Each text has a
    stream of its own, whose last step nobody waits for."""
    rounds, length = (20, 200) if device == "cpu" else (6, 60)
    model = make_model()
    weights = mx.get_active_memory()
    found = []
    for _ in range(rounds):
        list(decode(model, [1, 2, 3], length))
        gc.collect()
        found.append((active_once_at(weights), mx.get_cache_memory(), resident()))
    settled, last = found[rounds // 2], found[-1]
    assert last[0] <= weights and last[1] <= settled[1] + (1 << 20), (weights, found)
    assert last[2] <= settled[2] + (4 << 20), found
