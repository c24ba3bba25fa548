"""Finds the weights of a linear function from noisy samples, with nothing but mlx.core.

python linear_regression.py [--device cpu] [--steps 200]
"""

import argparse

import mlx.core as mx

SAMPLES, FEATURES, RATE = 1000, 20, 0.1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    mx.set_default_device(getattr(mx, options.device))
    mx.random.seed(0)

    true_weights = mx.random.normal((FEATURES,))
    x = mx.random.normal((SAMPLES, FEATURES))
    y = x @ true_weights + 0.01 * mx.random.normal((SAMPLES,))

    def loss(weights):
        return mx.mean((x @ weights - y) ** 2)

    gradient = mx.grad(loss)
    weights = mx.zeros((FEATURES,))
    for _ in range(options.steps):
        weights = weights - RATE * gradient(weights)
        mx.eval(weights)  # the graph of one step is run, and is gone

    error = mx.linalg.norm(weights - true_weights)
    print(f"error of the weights {error.item():.4f}")


if __name__ == "__main__":
    main()
