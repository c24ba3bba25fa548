"""A network with two layers learns to read digits that are drawn on the spot.

The digits have the seven segments of a pocket calculator, on 12 x 12 pixels, moved about, of
different brightness and with noise.

python digits.py [--device cpu] [--steps 200]
"""

import argparse
import functools

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

SIZE, BATCH = 12, 128
# Which segments a digit has: top, upper left, upper right, middle, lower left, lower right, bottom.
SEGMENTS = "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011".split()
# Rows and columns of each segment.
PLACES = [(0, 0, 1, 5), (0, 0, 4, 1), (0, 4, 4, 5), (3, 0, 4, 5)]
PLACES += [(3, 0, 7, 1), (3, 4, 7, 5), (6, 0, 7, 5)]


def glyphs():
    """The ten digits, each in a corner of its picture."""
    pictures = mx.zeros((10, SIZE, SIZE))
    for digit, segments in enumerate(SEGMENTS):
        for there, (top, left, bottom, right) in zip(segments, PLACES):
            if there == "1":
                pictures[digit, top:bottom, left:right] = 1.0
    return pictures


def samples(pictures, count):
    """Pictures of random digits and what they show."""
    labels = mx.random.randint(0, 10, (count,))
    down, right = mx.random.randint(0, 6, (2, count))
    # Pixel (r, c) of a moved picture is pixel (r - down, c - right) of the digit, round the edges.
    rows = (mx.arange(SIZE) - down[:, None]) % SIZE
    columns = (mx.arange(SIZE) - right[:, None]) % SIZE
    moved = pictures[labels[:, None, None], rows[:, :, None], columns[:, None, :]]
    light = mx.random.uniform(0.6, 1.0, (count, 1, 1))
    noise = 0.15 * mx.random.normal(moved.shape)
    return (moved * light + noise).reshape(count, -1), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    mx.set_default_device(getattr(mx, options.device))
    mx.random.seed(0)

    pictures = glyphs()
    model = nn.Sequential(nn.Linear(SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = optim.Adam(learning_rate=3e-3)

    def loss(model, x, labels):
        return nn.losses.cross_entropy(model(x), labels, reduction="mean")

    # Compiled: the graph of a step is built once. What it changes is told to the compiler.
    state = [model.state, optimizer.state, mx.random.state]

    @functools.partial(mx.compile, inputs=state, outputs=state)
    def step():
        value, gradients = nn.value_and_grad(model, loss)(model, *samples(pictures, BATCH))
        optimizer.update(model, gradients)
        return value

    for i in range(options.steps):
        value = step()
        mx.eval(value, state)
        if i % 50 == 0:
            print(f"step {i}: loss {value.item():.3f}")

    x, labels = samples(pictures, 1000)
    right = mx.mean(mx.argmax(model(x), axis=1) == labels)
    print(f"digits read rightly {right.item():.3f}")


if __name__ == "__main__":
    main()
