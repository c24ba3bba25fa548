"""mlx.nn.Module: state, filters, updates, weights in files, training."""

import copy
import gc
import pickle

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_flatten


class Model(nn.Module):
    """A module with everything that modules can hold."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.blocks = [nn.Linear(3, 3), {"norm": nn.LayerNorm(3)}]
        self.table = {"x": mx.zeros((2,)), "inner": nn.Linear(3, 2, bias=False)}
        self.scale = mx.ones((1,))
        self.pair = (1, 2)
        self._hidden = mx.ones((4,))
        self.number = 3

    def __call__(self, x):
        return self.table["inner"](self.blocks[0](self.first(x))) * self.scale


NAMES = ["first.weight", "first.bias", "blocks.0.weight", "blocks.0.bias"]
NAMES += ["blocks.1.norm.weight", "blocks.1.norm.bias", "table.x", "table.inner.weight", "scale"]


def names(tree):
    return [name for name, _ in tree_flatten(tree)]


def test_parameters():
    model = Model()
    assert names(model.parameters()) == NAMES
    assert names(model.trainable_parameters()) == NAMES
    assert model.state is model
    assert type(model.parameters()["first"]) is dict


def test_attributes():
    module = nn.Module()
    module.x = mx.ones((1,))
    assert "x" in module and "x" not in vars(module)
    module.x = 3
    assert "x" not in module and module.x == 3
    module.x = [mx.ones((1,))]
    assert "x" in module and "x" not in vars(module)
    del module.x
    assert not hasattr(module, "x")
    module.y = 1
    del module.y
    assert not hasattr(module, "y")
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'nothing'"):
        _ = module.nothing
    with pytest.raises(AttributeError):
        del module.nothing


def test_without_bias():
    layer = nn.Linear(2, 3)
    layer.bias = None
    assert "bias" not in layer and layer.bias is None
    assert layer(mx.ones((1, 2))).shape == (1, 3)


def test_modules():
    model = Model()
    found = dict(model.named_modules())
    assert found[""] is model
    assert found["blocks.1.norm"] is model.blocks[1]["norm"]
    assert set(found) == {"", "first", "blocks.0", "blocks.1.norm", "table.inner"}
    assert len(model.modules()) == 5
    assert all(nn.Module.is_module(module) for module in model.modules())
    assert set(names(model.children())) >= {"first.weight", "blocks.0.weight"}
    leaves = tree_flatten(model.leaf_modules(), is_leaf=nn.Module.is_module)
    assert [name for name, _ in leaves] == ["first", "blocks.0", "blocks.1.norm", "table.inner"]


def test_filters():
    model = Model()
    shapes = model.filter_and_map(nn.Module.valid_parameter_filter, lambda x: x.shape)
    assert shapes["first"] == {"weight": (3, 2), "bias": (3,)}
    weights = model.filter_and_map(
        lambda module, key, value: not isinstance(value, mx.array) or key.endswith("weight")
    )
    assert "bias" not in weights["first"] and "weight" in weights["first"]
    # In lists and dictionaries the place of what is left out stays.
    assert weights["table"]["x"] == {}
    lists = model.filter_and_map(
        lambda module, key, value: key == "blocks",
        is_leaf_fn=lambda module, key, value: isinstance(value, list),
    )
    assert lists == {"blocks": model.blocks}
    with pytest.raises(RuntimeError, match="Unexpected leaf found"):
        model.filter_and_map(lambda *_: True, is_leaf_fn=lambda *_: False)


def test_update():
    model = Model()
    assert model.update({"first": {"bias": mx.array([1.0, 2.0, 3.0])}}) is model
    np.testing.assert_array_equal(np.array(model.first.bias), [1, 2, 3])
    model.update({"blocks": [{}, {"norm": {"weight": mx.zeros((3,))}}], "table": {}})
    assert model.blocks[1]["norm"].weight.sum().item() == 0


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"none": mx.ones((1,))}, 'Module does not have parameter named "none".'),
        ({"first": {"bias": 3}}, "Received invalid type: int."),
        ({"first": 3}, "Received invalid type: int."),
        ({"blocks": [{}, {}, {}]}, "List index 2 is out of bounds for destination of length 2."),
        ("x", "Received invalid type: str."),
    ],
)
def test_update_errors(parameters, message):
    with pytest.raises(ValueError) as error:
        Model().update(parameters)
    assert str(error.value) == message
    Model().update(parameters, strict=False)


def test_apply():
    model = Model()
    assert model.apply(lambda x: x.astype(mx.float16)) is model
    assert {value.dtype for _, value in tree_flatten(model.parameters())} == {mx.float16}
    assert model._hidden.dtype == mx.float32

    def is_scale(module, key, value):
        return key == "scale"

    model.apply(lambda x: x * 5, is_scale)
    assert model.scale.item() == 5


def test_set_dtype():
    model = nn.Sequential(nn.Linear(2, 2))
    model.indices = mx.array([1, 2])
    model.set_dtype(mx.bfloat16)
    assert model.layers[0].weight.dtype == mx.bfloat16
    assert model.indices.dtype == mx.int32
    model.set_dtype(mx.float32, lambda dtype: dtype == mx.int32)
    assert model.indices.dtype == mx.float32
    assert model.layers[0].weight.dtype == mx.bfloat16
    model.set_dtype(mx.float16, None)
    assert model.indices.dtype == mx.float16


def test_update_modules():
    model = Model()
    new = nn.Linear(2, 3)
    assert model.update_modules({"first": new, "blocks": [{}, {"norm": nn.RMSNorm(3)}]}) is model
    assert model.first is new
    assert isinstance(model.blocks[1]["norm"], nn.RMSNorm)


@pytest.mark.parametrize(
    "modules, message",
    [
        ({"none": nn.ReLU()}, 'Module does not have sub-module named "none".'),
        ({"first": 3}, "Received invalid type: int."),
        ({"scale": nn.Linear(1, 1)}, "Received invalid type: Linear."),
        ({"blocks": [{}, {}, {}]}, "List index 2 is out of bounds for destination of length 2."),
    ],
)
def test_update_modules_errors(modules, message):
    with pytest.raises(ValueError) as error:
        Model().update_modules(modules)
    assert str(error.value) == message
    Model().update_modules(modules, strict=False)


def test_freeze():
    model = Model()
    assert model.freeze() is model
    assert names(model.trainable_parameters()) == []
    model.unfreeze(keys="bias")
    assert names(model.trainable_parameters()) == [n for n in NAMES if n.endswith("bias")]
    model.unfreeze()
    assert names(model.trainable_parameters()) == NAMES
    model.freeze(keys=["weight", "scale"])
    assert names(model.trainable_parameters()) == [
        n for n in NAMES if n.split(".")[-1] not in ("weight", "scale")
    ]
    model.unfreeze()
    model.freeze(recurse=False)
    left = names(model.trainable_parameters())
    assert "scale" not in left and "table.x" not in left and "first.weight" in left


@pytest.mark.parametrize("method", ["freeze", "unfreeze"])
def test_freeze_strictly(method):
    change = getattr(Model(), method)
    change(keys="bias", strict=True)
    change(keys="nothing")
    with pytest.raises(KeyError, match="Module doesn't contain member nothing."):
        change(keys="nothing", strict=True)
    with pytest.raises(KeyError, match="Module doesn't contain member bias."):
        change(keys="bias", strict=True, recurse=False)


def test_training_mode():
    model = Model()
    assert model.training
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.train()
    assert all(module.training for module in model.modules())
    with pytest.raises(AttributeError):
        model.training = False


@pytest.mark.parametrize("extension", [".npz", ".safetensors"])
def test_weights_in_files(tmp_path, extension):
    file = str(tmp_path / f"weights{extension}")
    model, other = Model(), Model()
    model.save_weights(file)
    assert other.load_weights(file) is other
    for (name, a), (other_name, b) in zip(
        tree_flatten(model.parameters()), tree_flatten(other.parameters())
    ):
        assert name == other_name
        np.testing.assert_array_equal(np.array(a), np.array(b))


def test_weights_in_other_files():
    with pytest.raises(ValueError) as error:
        Model().save_weights("weights.txt")
    assert str(error.value) == (
        "Unsupported file extension for weights.txt. Use '.npz' or '.safetensors'."
    )


WEIGHTS = [("weight", mx.ones((3, 2))), ("bias", mx.ones((3,)))]


@pytest.mark.parametrize(
    "weights, message",
    [
        (WEIGHTS[:1], "Missing 1 parameters: \nbias."),
        (
            [*WEIGHTS, ("y", mx.ones((1,))), ("x", mx.ones((1,)))],
            "Received 2 parameters not in model: \nx,\ny.",
        ),
        (
            [WEIGHTS[0], ("bias", 3)],
            "Expected mx.array but received <class 'int'> for parameter bias",
        ),
        (
            [WEIGHTS[0], ("bias", mx.ones((2,)))],
            "Expected shape (3,) but received shape (2,) for parameter bias",
        ),
    ],
)
def test_load_weights_strictly(weights, message):
    with pytest.raises(ValueError) as error:
        nn.Linear(2, 3).load_weights(weights)
    assert str(error.value) == message


def test_load_weights_loosely():
    layer = nn.Linear(2, 3)
    bias = np.array(layer.bias)
    layer.load_weights([WEIGHTS[0], ("more", mx.ones((1,)))], strict=False)
    assert layer.weight.sum().item() == 6
    np.testing.assert_array_equal(np.array(layer.bias), bias)
    layer.load_weights([], strict=False)
    assert "more" not in layer


def test_repr():
    assert repr(nn.Linear(2, 3)) == "Linear(input_dims=2, output_dims=3, bias=True)"
    model = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Sequential(nn.ReLU()), mx.tanh)
    assert repr(model) == (
        "Sequential(\n"
        "  (layers.0): Linear(input_dims=2, output_dims=3, bias=False)\n"
        "  (layers.1): Sequential(\n"
        "    (layers.0): ReLU()\n"
        "  )\n"
        ")"
    )


def test_copies():
    model = Model()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert names(other.parameters()) == NAMES
        other.freeze()
        assert names(model.trainable_parameters()) == NAMES
        other.scale = mx.array([7.0])
        assert model.scale.item() == 1


def test_no_cycles():
    """What is no longer used is free at once, without the collector."""
    gc.collect()
    gc.disable()
    try:
        model = Model()
        mx.eval(model.parameters())
        model.update_modules({}).freeze().unfreeze().train()
        model.load_weights(tree_flatten(model.parameters()))
        repr(model)
        del model
        assert gc.collect() == 0
    finally:
        gc.enable()
