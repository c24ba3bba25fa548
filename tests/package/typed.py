"""What programs that are checked by mypy do with the package; tools/check_types.sh runs it on this.

A line with "type: ignore" is wrong, and mypy has to find it so.
"""

import functools
from collections.abc import Callable
from typing import Any, assert_type

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten, tree_map, tree_unflatten


def arrays() -> mx.array:
    a = mx.zeros((2, 3), dtype=mx.float16)
    b = mx.array([[1, 2, 3]], mx.int32) + 1.0
    assert_type(a.shape, tuple[int, ...])
    assert_type(a.dtype, mx.Dtype)
    assert_type(a.ndim, int)
    assert_type(a[0, ..., None, 1:2], mx.array)
    assert_type(2 * a - 1 / (b + 1) ** 2, mx.array)
    assert_type(-abs(a) // 3 % 2, mx.array)
    assert_type((a > 0) & ~(a == 1) | True, mx.array)
    assert_type(a @ b.T, mx.array)
    assert_type(a.at[0].add(1), mx.array)
    a += 1
    a @= mx.eye(3)
    a[0] = 5
    a[1, 1:] = b[0, 1:]
    for row in a:
        assert_type(row, mx.array)
    if a.sum() > 0 and len(a) > 1:
        print(float(a[0, 0]), int(a[0, 1]), bool(a[0, 0]), a.item(), a.tolist())
    return a.astype(mx.float32).reshape(-1, 2).transpose(1, 0).flatten().squeeze()


def functions(a: mx.array) -> None:
    assert_type(mx.conv2d(mx.zeros((1, 4, 4, 1)), mx.ones((1, 2, 2, 1)), stride=(1, 2)), mx.array)
    assert_type(mx.sum(a, axis=(0, 1), keepdims=True), mx.array)
    assert_type(mx.where(a > 0, a, 0.0), mx.array)
    assert_type(mx.concatenate([a, a], axis=0), mx.array)
    assert_type(mx.split(a, 2), list[mx.array])
    assert_type(mx.einsum("ij,jk->ik", a, a, stream=mx.cpu), mx.array)
    assert_type(mx.random.normal((2, 2), key=mx.random.key(0)), mx.array)
    assert_type(mx.linalg.norm(a, axis=-1), mx.array)
    assert_type(mx.fft.rfft(a, n=8), mx.array)
    assert_type(mx.fast.scaled_dot_product_attention(a, a, a, scale=0.5, mask="causal"), mx.array)
    assert_type(mx.fast.rms_norm(a, a[0], 1e-5), mx.array)
    assert_type(mx.stop_gradient(mx.softmax(a, axis=-1)), mx.array)
    assert_type(mx.get_active_memory(), int)
    assert_type(mx.distributed.init().rank(), int)
    mx.eval(a, {"a": [a]})
    mx.set_default_device(mx.gpu)
    mx.save_safetensors("file", {"a": a})
    mx.savez("file.npz", a, b=a)
    with mx.stream(mx.new_stream(mx.default_device())):
        mx.synchronize()
    mx.sum("text")  # type: ignore[arg-type]
    mx.reshape(a)  # type: ignore[call-arg]
    mx.no_such_function(a)  # type: ignore[attr-defined]
    mx.zeros((2,), dtype="float32")  # type: ignore[arg-type]
    a.shape = (2,)  # type: ignore[misc]


def transformations(a: mx.array) -> mx.array:
    square: Callable[[mx.array], mx.array] = mx.vmap(lambda x: x * x, in_axes=1)
    slope = mx.grad(lambda x: mx.sum(square(x)), argnums=(0,))
    values, tangents = mx.jvp(square, [a], [a])
    assert_type(values, list[mx.array])
    assert_type(tangents, list[mx.array])

    @functools.partial(mx.compile, inputs=[mx.random.state], outputs=[mx.random.state])
    def noisy(x: mx.array) -> mx.array:
        return x + mx.random.normal(x.shape)

    @mx.custom_function
    def rounded(x: mx.array) -> mx.array:
        return mx.round(x)

    @rounded.vjp
    def rounded_vjp(primals: mx.array, cotangents: mx.array, outputs: mx.array) -> mx.array:
        return cotangents

    return noisy(slope(a)) + rounded(a)


class Model(nn.Module):
    def __init__(self, dims: int):
        super().__init__()
        self.up = nn.Linear(dims, 4 * dims, bias=False)
        self.layers = [nn.LayerNorm(4 * dims), nn.Dropout(0.1)]
        self.down = nn.Linear(4 * dims, dims)

    def __call__(self, x: mx.array) -> mx.array:
        y = nn.gelu(self.up(x))
        for layer in self.layers:
            y = layer(y)
        return self.down(y)


def training(x: mx.array) -> dict[str, Any]:
    model = Model(8)
    optimizer = optim.AdamW(learning_rate=optim.cosine_decay(1e-3, 100), weight_decay=0.1)
    step = nn.value_and_grad(model, lambda m: nn.losses.mse_loss(m(x), x))
    loss, gradients = step(model)
    gradients, norm = optim.clip_grad_norm(gradients, 1.0)
    optimizer.update(model, gradients)
    mx.eval(loss, norm, model.parameters(), optimizer.state)
    halves = tree_map(lambda p: p.astype(mx.float16), model.parameters())
    for name, value in tree_flatten(halves):
        assert_type(name, str)
        print(name, value.shape)
    model.update(tree_unflatten(tree_flatten(halves)))
    return tree_flatten(halves, destination={})
