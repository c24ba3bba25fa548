"""A function with a gradient of its own: rounding that lets gradients through.

Rounding has the gradient zero, so nothing can be learnt through it. The straight-through estimator
takes the gradient of the identity instead: weights are trained that are used rounded to few levels.

python custom_gradient.py [--device cpu] [--steps 100]
"""

import argparse

import mlx.core as mx

LEVELS = 8  # in a range of 1


@mx.custom_function
def quantize(x):
    return mx.round(x * LEVELS) / LEVELS


@quantize.vjp
def quantize_vjp(primals, cotangent, output):
    return cotangent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    mx.set_default_device(getattr(mx, options.device))
    mx.random.seed(0)

    # What is looked for can be written with these levels, so the loss can become zero.
    wanted = mx.round(mx.random.normal((16,)) * LEVELS) / LEVELS
    x = mx.random.normal((256, 16))
    y = x @ wanted

    def loss(weights):
        return mx.mean((x @ quantize(weights) - y) ** 2)

    step = mx.value_and_grad(loss)
    weights = mx.zeros((16,))
    for _ in range(options.steps):
        value, gradient = step(weights)
        weights = weights - 0.1 * gradient
        mx.eval(weights, value)

    print("wanted", wanted[:4].tolist(), "found", quantize(weights)[:4].tolist())
    print(f"loss with rounded weights {loss(weights).item():.5f}")


if __name__ == "__main__":
    main()
