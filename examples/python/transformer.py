"""A small transformer learns to write sequences backwards.

It is a language model: of "3 1 4 1 | 1 4 1 3" it sees the left side and writes the right one,
symbol by symbol. For that it has to find out where the symbol that it needs is.

python transformer.py [--device cpu] [--steps 300]
"""

import argparse
import functools

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

LENGTH, SYMBOLS, BATCH = 6, 8, 32
BAR = SYMBOLS  # between the two sides


class Block(nn.Module):
    def __init__(self, dims, heads):
        super().__init__()
        self.attention_norm = nn.RMSNorm(dims)
        self.attention = nn.MultiHeadAttention(dims, heads)
        self.mlp_norm = nn.RMSNorm(dims)
        self.mlp = nn.Sequential(nn.Linear(dims, 4 * dims), nn.GELU(), nn.Linear(4 * dims, dims))

    def __call__(self, x, mask):
        y = self.attention_norm(x)
        x = x + self.attention(y, y, y, mask)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    def __init__(self, layers=2, dims=32, heads=4):
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS + 1, dims)
        self.positions = nn.Embedding(2 * LENGTH + 1, dims)
        self.blocks = [Block(dims, heads) for _ in range(layers)]
        self.norm = nn.RMSNorm(dims)
        self.head = nn.Linear(dims, SYMBOLS + 1)

    def __call__(self, tokens):
        length = tokens.shape[1]
        x = self.symbols(tokens) + self.positions(mx.arange(length))
        mask = nn.MultiHeadAttention.create_additive_causal_mask(length)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def samples(count):
    left = mx.random.randint(0, SYMBOLS, (count, LENGTH))
    bar = mx.full((count, 1), BAR)
    return mx.concatenate([left, bar, left[:, ::-1]], axis=1)


def loss(model, tokens):
    """How surprised the model is by the right side."""
    logits = model(tokens[:, :-1])[:, LENGTH:]
    return nn.losses.cross_entropy(logits, tokens[:, LENGTH + 1 :], reduction="mean")


def write(model, tokens):
    """What the model writes behind the bar."""
    for _ in range(LENGTH):
        best = mx.argmax(model(tokens)[:, -1:], axis=-1)
        tokens = mx.concatenate([tokens, best], axis=1)
    return tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    mx.set_default_device(getattr(mx, options.device))
    mx.random.seed(0)

    model = Transformer()
    optimizer = optim.AdamW(learning_rate=3e-3)
    state = [model.state, optimizer.state]

    @functools.partial(mx.compile, inputs=state, outputs=state)
    def step(tokens):
        value, gradients = nn.value_and_grad(model, loss)(model, tokens)
        gradients, _ = optim.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        return value

    for i in range(options.steps):
        value = step(samples(BATCH))
        mx.eval(value, state)
        if i % 50 == 0:
            print(f"step {i}: loss {value.item():.3f}")

    wanted = samples(64)
    written = write(model, wanted[:, : LENGTH + 1])
    print(" ".join(map(str, written[0, :LENGTH].tolist())), end=" | ")
    print(" ".join(map(str, written[0, LENGTH + 1 :].tolist())))
    right = mx.mean(written[:, LENGTH + 1 :] == wanted[:, LENGTH + 1 :])
    print(f"symbols written rightly {right.item():.3f}")


if __name__ == "__main__":
    main()
