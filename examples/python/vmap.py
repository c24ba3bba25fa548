"""Functions for one, made functions for many: gradients of single samples, and many models at once.

python vmap.py [--device cpu] [--steps 200]
"""

import argparse

import mlx.core as mx

MODELS, SAMPLES = 16, 128


def predict(parameters, x):
    """A network for one number, of which there are MODELS."""
    hidden = mx.tanh(x[:, None] * parameters["in"] + parameters["bias"])
    return hidden @ parameters["out"]


def loss(parameters, x, y):
    return mx.mean((predict(parameters, x) - y) ** 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    mx.set_default_device(getattr(mx, options.device))
    mx.random.seed(0)

    # Every model has a row of the parameters and of the samples; that is all that it knows.
    parameters = {name: mx.random.normal((MODELS, 32)) for name in ("in", "bias", "out")}
    x = mx.random.uniform(-2, 2, (MODELS, SAMPLES))
    y = mx.sin(2 * x)

    step = mx.vmap(mx.value_and_grad(loss))
    for _ in range(options.steps):
        values, gradients = step(parameters, x, y)
        parameters = {name: p - 0.02 * gradients[name] for name, p in parameters.items()}
        mx.eval(parameters, values)

    # The gradients of single samples: of one model, which is not mapped over, by many samples.
    one = {name: p[0] for name, p in parameters.items()}
    each = mx.vmap(mx.grad(loss), in_axes=(None, 0, 0))(one, x[0, :, None], y[0, :, None])
    together = mx.grad(loss)(one, x[0], y[0])
    assert mx.allclose(each["out"].mean(axis=0), together["out"], atol=1e-4)
    print("gradients of single samples", each["out"].shape)

    # All of them are asked, and the mean is better than each of them.
    x = mx.linspace(-2, 2, 101)
    answers = mx.vmap(predict, in_axes=(0, None))(parameters, x)
    print(f"mean loss of the models {mx.mean((answers - mx.sin(2 * x)) ** 2).item():.4f}")
    error = mx.mean((answers.mean(axis=0) - mx.sin(2 * x)) ** 2)
    print(f"loss of their mean {error.item():.4f}")


if __name__ == "__main__":
    main()
