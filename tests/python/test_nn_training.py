"""Gradients of models, and layers whose parameters are shared out to several processes."""

from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.nn.layers.distributed import shard_inplace, shard_linear, sum_gradients
from mlx.nn.utils import average_gradients, checkpoint, clip_grad_norm_sharded
from mlx.utils import tree_flatten, tree_map

from nn_support import check_close, values


def names(tree):
    return [name for name, _ in tree_flatten(tree)]


def test_value_and_grad():
    model = nn.Linear(3, 2)
    x, y = values(5, 3), values(5, 2, seed=1)

    def loss(x, y, *, power):
        """The loss."""
        error = model(x) - y
        return (error**power).sum(), error

    compute = nn.value_and_grad(model, loss)
    (value, error), gradient = compute(mx.array(x), mx.array(y), power=2)
    expected = x @ np.array(model.weight).T + np.array(model.bias) - y
    check_close(value, (expected**2).sum(), 1e-4)
    check_close(error, expected)
    check_close(gradient["weight"], 2 * expected.T @ x, 1e-4)
    check_close(gradient["bias"], 2 * expected.sum(0), 1e-4)
    assert compute.__doc__ == "The loss." and compute.__name__ == "loss"
    # The model has its own arrays again.
    check_close(model(mx.array(x)) - mx.array(y), expected)


def test_gradients_of_what_is_trained():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 1))
    model.layers[0].freeze()
    compute = nn.value_and_grad(model, lambda x: model(x).sum())
    _, gradient = compute(mx.array(values(5, 3)))
    assert names(gradient) == [
        "layers.1.weight",
        "layers.1.bias",
        "layers.2.weight",
        "layers.2.bias",
    ]


def test_checkpoint():
    layer = nn.Linear(3, 3)
    x = mx.array(values(2, 3))
    calls = []

    def function(x):
        calls.append(1)
        return mx.tanh(layer(x)).sum()

    value, gradient = nn.value_and_grad(layer, function)(x)
    calls.clear()
    other_value, other = nn.value_and_grad(layer, checkpoint(layer, function))(x)
    check_close(other_value, value.item(), 1e-5)
    check_close(other["weight"], np.array(gradient["weight"]), 1e-5)
    check_close(checkpoint(layer)(x), np.array(layer(x)))


def test_training_in_a_compiled_step():
    mx.random.seed(3)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = optim.Adam(optim.linear_schedule(0.0, 1e-2, 5))
    x = mx.array(values(64, 2))
    y = (x[:, :1] * x[:, 1:]).square()
    compute = nn.value_and_grad(model, lambda x, y: nn.losses.mse_loss(model(x), y))
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(x, y):
        loss, gradients = compute(x, y)
        optimizer.update(model, gradients)
        return loss

    losses = []
    for _ in range(200):
        losses.append(step(x, y).item())
    assert losses[-1] < 0.2 * losses[0]
    assert optimizer.step.item() == 200


@pytest.mark.parametrize("seed", [0, 1])
def test_training_repeats(seed):
    results = []
    for _ in range(2):
        mx.random.seed(seed)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = optim.SGD(0.1, momentum=0.9)
        compute = nn.value_and_grad(model, lambda x: (model(x) ** 2).mean())
        for _ in range(3):
            _, gradients = compute(mx.array(values(6, 4)))
            optimizer.update(model, gradients)
        results.append(np.array(model.layers[0].weight))
    np.testing.assert_array_equal(*results)


class Group:
    """One of several processes, for what is done to its part of the parameters."""

    def __init__(self, rank, size):
        self._rank, self._size = rank, size

    def rank(self):
        return self._rank

    def size(self):
        return self._size


@pytest.fixture
def in_turn(monkeypatch):
    """Sums of all processes are left to the tests, which run them one after another."""
    monkeypatch.setattr(mx.distributed, "all_sum", lambda x, **_: x)


def groups(size=4):
    return [Group(rank, size) for rank in range(size)]


# Segments, and where the outputs of a layer with 32 of them are then cut first.
SEGMENTS = [(1, []), (2, [16]), ([8, 24], [8, 24]), ([0.25], [8])]


def arranged(parts, cuts):
    """The whole, of parts of which each has a part of every segment."""
    sizes = np.diff([0, *cuts, 32]) // len(parts)
    split = [np.split(part, np.cumsum(sizes)[:-1], -1) for part in parts]
    return np.concatenate([s[i] for i in range(len(cuts) + 1) for s in split], -1)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("segments, cuts", SEGMENTS)
def test_outputs_shared_out(in_turn, quantized, bias, segments, cuts):
    layer = nn.Linear(64, 32, bias=bias)
    layer = layer.to_quantized() if quantized else layer
    x = mx.array(values(3, 64))
    shards = [shard_linear(layer, "all-to-sharded", segments=segments, group=g) for g in groups()]
    check_close(mx.array(arranged([np.array(s(x)) for s in shards], cuts)), layer(x), 1e-4)
    kind = nn.QuantizedAllToShardedLinear if quantized else nn.AllToShardedLinear
    for shard in shards:
        assert type(shard) is kind
        assert repr(shard).startswith(f"{kind.__name__}(input_dims=64, output_dims=32, bias={bias}")
        assert not quantized or names(shard.unfreeze().trainable_parameters()) == []


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_inputs_shared_out(in_turn, quantized, bias):
    layer = nn.Linear(256, 32, bias=bias)
    layer = layer.to_quantized() if quantized else layer
    x = values(3, 256)
    total = 0
    kind = nn.QuantizedShardedToAllLinear if quantized else nn.ShardedToAllLinear
    for group, part in zip(groups(), np.split(x, 4, -1)):
        shard = shard_linear(layer, "sharded-to-all", group=group)
        assert type(shard) is kind
        assert f"input_dims=256, output_dims=32, bias={bias}" in repr(shard)
        total = total + shard(mx.array(part))
    if bias:
        # Everyone adds it, after the sum.
        total = total - 3 * layer.bias
    check_close(total, np.array(layer(mx.array(x))), 1e-4)


def test_new_shared_out_layers():
    group = Group(1, 4)
    assert nn.AllToShardedLinear(8, 12, group=group).weight.shape == (3, 8)
    assert nn.ShardedToAllLinear(8, 12, group=group).weight.shape == (12, 2)
    assert nn.QuantizedAllToShardedLinear(64, 32, group=group).weight.shape == (8, 8)
    assert nn.QuantizedShardedToAllLinear(256, 32, group=group).weight.shape == (32, 8)
    with pytest.raises(ValueError, match="Cannot shard the output of size 10 across 4 devices."):
        nn.AllToShardedLinear(8, 10, group=group)
    with pytest.raises(ValueError, match="input of size 10 cannot be sharded across 4 devices."):
        nn.ShardedToAllLinear(10, 8, group=group)


def test_shard_inplace():
    layer = nn.Linear(4, 8)
    weight, bias = np.array(layer.weight), np.array(layer.bias)
    shard_inplace(layer, "all-to-sharded", group=Group(1, 2))
    check_close(layer.weight, weight[4:], 0)
    check_close(layer.bias, bias[4:], 0)
    layer = nn.Linear(4, 8)
    weight, bias = np.array(layer.weight), np.array(layer.bias)
    shard_inplace(layer, "sharded-to-all", segments=2, group=Group(1, 2))
    check_close(layer.weight, weight[:, [1, 3]], 0)
    check_close(layer.bias, bias, 0)
    layer = nn.Conv1d(4, 8, 3)
    whole = np.array(layer.weight)
    shard_inplace(layer, lambda path, w: 0 if path == "weight" else None, group=Group(1, 2))
    check_close(layer.weight, whole[4:], 0)
    assert layer.bias.shape == (8,)
    with pytest.raises(ValueError, match="Sharding type sharding='other' not supported"):
        shard_inplace(layer, "other")
    with pytest.raises(ValueError, match="Sharding type sharding='other' not supported"):
        shard_linear(nn.Linear(2, 2), "other")
    with pytest.raises(ValueError, match="should return int or"):
        shard_inplace(layer, lambda path, w: "x", group=Group(0, 2))


def test_sum_gradients(monkeypatch):
    monkeypatch.setattr(mx.distributed, "all_sum", lambda x, **_: 3 * x)
    function = sum_gradients(Group(0, 3))
    assert mx.grad(lambda x: (function(x) * 2).sum())(mx.ones((2,))).tolist() == [6, 6]
    assert function(mx.ones((2,))).tolist() == [1, 1]
    one = sum_gradients(Group(0, 1))
    x = mx.ones((2,))
    assert one(x) is x


def test_fully_shard(monkeypatch):
    mx.random.seed(0)
    whole = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    parts = [np.split(np.array(p), 2) for _, p in tree_flatten(whole.parameters())]
    rows = [mx.array(np.concatenate([p[r].reshape(1, -1) for p in parts], 1)) for r in range(2)]
    x = mx.array(values(3, 4))
    expected, gradient = nn.value_and_grad(whole, lambda x: (whole(x) ** 2).sum())(x)
    flat = [g for _, g in tree_flatten(gradient)]

    monkeypatch.setattr(mx.distributed, "all_gather", lambda x, **_: mx.concatenate(rows))
    # The same gradient everywhere: twice of it, of which there is a mean.
    monkeypatch.setattr(mx.distributed, "sum_scatter", lambda x, **_: 2 * x[1:])
    module = nn.fully_shard(whole, group=Group(1, 2))
    assert repr(module).startswith("FullyShardedModule(num_sharded_params=4\n")
    assert module.module.layers[0].weight.shape == (4, 4)
    value, shard = nn.value_and_grad(module, lambda x: (module(x) ** 2).sum())(x)
    check_close(value, expected.item(), 1e-4)
    for (name, part), g in zip(tree_flatten(shard), flat):
        assert name.startswith("module.layers.")
        check_close(part, np.split(np.array(g), 2)[1], 1e-4)
    # Each has its part again.
    assert module.module.layers[0].weight.shape == (4, 4)
    assert nn.fully_shard(module, group=Group(1, 2)) is module


def test_fully_shard_errors():
    layer = nn.Linear(4, 3)
    assert nn.fully_shard(layer, group=Group(0, 1)) is layer
    relu = nn.ReLU()
    assert nn.fully_shard(relu, group=Group(0, 2)) is relu
    with pytest.raises(ValueError) as error:
        nn.fully_shard(layer, group=Group(0, 2))
    assert str(error.value) == (
        "Cannot shard parameter 'weight' with shape (3, 4) across 2 devices:"
        " axis 0 must be divisible by 2."
    )
    module = nn.Module()
    module.scale = mx.array(1.0)
    with pytest.raises(ValueError, match="Cannot shard parameter 'scale' because it is a scalar."):
        nn.fully_shard(module, group=Group(0, 2))


def test_fully_sharded_embedding(monkeypatch):
    layer = nn.Embedding(4, 6)
    table = np.array(layer.weight)
    monkeypatch.setattr(
        mx.distributed, "all_gather", lambda x, **_: mx.array(table.reshape(2, -1)).astype(x.dtype)
    )
    module = nn.FullyShardedModule(layer, Group(0, 2), compute_dtype=mx.bfloat16)
    assert module(mx.array([3])).dtype == mx.bfloat16
    check_close(module.as_linear(mx.ones((1, 6), mx.bfloat16)), table.sum(1)[None], 0.1)
    assert layer.weight.dtype == mx.float32 and layer.weight.shape == (2, 6)


@pytest.mark.parametrize("size", [0, 1, 20, 1 << 20])
def test_average_gradients(monkeypatch, size):
    sent = []

    def all_sum(x, **_):
        sent.append(x.nbytes)
        return 6 * x

    monkeypatch.setattr(mx.distributed, "all_sum", all_sum)
    gradients = {"a": mx.array(values(2, 3)), "b": [mx.array(values(4)), mx.array(1.5)]}
    result = average_gradients(gradients, Group(0, 3), all_reduce_size=size)
    tree_map(lambda g, r: check_close(r, 2 * np.array(g)), gradients, result)
    assert sent == {20: [24, 20], 1 << 20: [44]}.get(size, [24, 16, 4])
    assert average_gradients({}, Group(0, 3)) == {}
    assert average_gradients(gradients, Group(0, 1)) is gradients
    # Those of different types are not put together.
    sent.clear()
    gradients["a"] = gradients["a"].astype(mx.float16)
    assert average_gradients(gradients, Group(0, 3))["a"].dtype == mx.float16
    assert sent == [12, 16, 4]


def test_clip_sharded(monkeypatch):
    monkeypatch.setattr(mx.distributed, "all_sum", lambda x, **_: 4 * x)
    gradients = {"a": mx.array([3.0]), "b": mx.array([4.0])}
    clipped, norm = clip_grad_norm_sharded(gradients, 1.0, Group(0, 4))
    assert abs(norm.item() - 10) < 1e-5
    check_close(clipped["b"], [0.4], 1e-5)
    clipped, _ = clip_grad_norm_sharded(gradients, 100.0, Group(0, 4))
    check_close(clipped["b"], [4.0], 1e-5)


def test_alone():
    """In a group of one, which is what there is without a launcher, all of it does nothing."""
    assert mx.distributed.init().size() == 1
    x = mx.array(values(2, 4))
    layer = nn.Linear(4, 6)
    for sharding in ("all-to-sharded", "sharded-to-all"):
        check_close(shard_linear(layer, sharding)(x), np.array(layer(x)))
    module = nn.FullyShardedModule(nn.Linear(4, 6))
    check_close(module(x), np.array(module.module(x)))
    _, gradient = nn.value_and_grad(module, lambda x: module(x).sum())(x)
    check_close(gradient["module"]["bias"], np.full(6, 2.0))
    gradients = {"a": x}
    assert average_gradients(gradients) is gradients
