"""Low-rank adaptation: a trained network learns something new with a few weights more.

The network knows sin(x). Its weights are frozen, and products of two thin matrices that are added
to them learn sin(x + 1); without these it still is what it was.

python lora.py [--device cpu] [--steps 400]
"""

import argparse
import math

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten

HIDDEN, RANK = 64, 4


class LoRALinear(nn.Module):
    """A linear layer and what is added to it: nothing at first, one of the factors is zero."""

    def __init__(self, linear, rank):
        super().__init__()
        outputs, inputs = linear.weight.shape
        self.linear = linear
        self.a = mx.random.normal((inputs, rank)) / math.sqrt(inputs)
        self.b = mx.zeros((rank, outputs))

    def __call__(self, x):
        return self.linear(x) + (x @ self.a) @ self.b


def train(model, function, steps):
    """Fits what is not frozen of a model; the last loss."""
    x = mx.linspace(-3, 3, 256)[:, None]
    y = function(x)
    optimizer = optim.Adam(learning_rate=1e-2)
    step = nn.value_and_grad(model, lambda model: nn.losses.mse_loss(model(x), y))
    for _ in range(steps):
        value, gradients = step(model)
        optimizer.update(model, gradients)
        mx.eval(value, model.parameters(), optimizer.state)
    return value.item()


def count(parameters):
    return sum(value.size for _, value in tree_flatten(parameters))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    mx.set_default_device(getattr(mx, options.device))
    mx.random.seed(0)

    layers = [nn.Linear(1, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(HIDDEN, 1))
    print(f"loss of sin(x) {train(model, mx.sin, options.steps):.5f}")

    model.freeze()
    model.layers = [
        LoRALinear(layer, RANK) if isinstance(layer, nn.Linear) else layer for layer in model.layers
    ]
    trained, all_of_them = count(model.trainable_parameters()), count(model.parameters())
    print(f"{trained} of {all_of_them} weights are trained")
    value = train(model, lambda x: mx.sin(x + 1), options.steps)
    print(f"loss of sin(x + 1) {value:.5f}")


if __name__ == "__main__":
    main()
