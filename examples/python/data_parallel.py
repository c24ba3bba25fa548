"""Processes train one model together: each has samples of its own, and gradients are averaged.

mlx.launch -n 2 data_parallel.py [--device cpu] [--steps 100]
"""

import argparse

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.nn.utils import average_gradients

SAMPLES, FEATURES = 256, 16  # of each process


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    mx.set_default_device(getattr(mx, options.device))
    group = mx.distributed.init()  # of one process if nobody launched more

    # The same model everywhere, by the same seed, and different samples.
    mx.random.seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
    mx.eval(model.parameters())
    mx.random.seed(1 + group.rank())
    x = mx.random.normal((SAMPLES, FEATURES))
    y = mx.abs(x).sum(axis=1, keepdims=True)

    optimizer = optim.Adam(learning_rate=1e-2)
    step = nn.value_and_grad(model, lambda model: nn.losses.mse_loss(model(x), y))
    for _ in range(options.steps):
        value, gradients = step(model)
        optimizer.update(model, average_gradients(gradients))
        mx.eval(model.parameters(), optimizer.state, value)

    # What every process has is the same to the last bit.
    weight = model.parameters()["layers"][0]["weight"]
    highest, lowest = mx.distributed.all_max(weight), mx.distributed.all_min(weight)
    assert mx.array_equal(highest, lowest), "the models differ"
    value = mx.distributed.all_sum(value) / group.size()
    mx.eval(value)
    if group.rank() == 0:
        print(f"{group.size()} processes, mean loss {value.item():.4f}")


if __name__ == "__main__":
    main()
