"""Loops that run for long hold as much memory at their end as at their beginning.

MLX_MEMORY_STEPS says how many rounds at most; a loop ends earlier when its time is over.
"""

import os
import subprocess
import sys
import textwrap

import pytest

STEPS = int(os.environ.get("MLX_MEMORY_STEPS", 10_000))
SECONDS = float(os.environ.get("MLX_MEMORY_SECONDS", 25))

# Rounds of step(), with the memory of process and device looked at after the first tenth, when all
# that is kept on purpose is there, and in the end.
MEASURE = """
import gc, sys, time
import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim

def memory():
    gc.collect()
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * 4096, mx.get_active_memory() + mx.get_cache_memory()

def measure(step, steps, seconds):
    start = time.monotonic()
    done, early = 0, None
    while done < steps and (done < 200 or time.monotonic() - start < seconds):
        step()
        done += 1
        if not early and (done >= steps // 10 or time.monotonic() - start > seconds / 4):
            early = done, *memory()
    process, device = memory()
    print(done - early[0], process - early[1], device - early[2])

mx.set_default_device(getattr(mx, sys.argv[1]))
steps, seconds = int(sys.argv[2]), float(sys.argv[3])
"""

TRAINING = """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = optim.Adam(1e-3)
x = mx.random.normal((32, 8))
step_of = nn.value_and_grad(model, lambda m: nn.losses.mse_loss(m(x), x.sum(1, keepdims=True)))

def step():
    value, gradients = step_of(model)
    optimizer.update(model, gradients)
    mx.eval(value, model.parameters(), optimizer.state)
    value.item()

measure(step, steps, seconds)
"""

COMPILED = """
import functools
model = nn.Linear(8, 1)
optimizer = optim.SGD(1e-3)
state = [model.state, optimizer.state, mx.random.state]

@functools.partial(mx.compile, inputs=state, outputs=state)
def compiled(x):
    value, gradients = nn.value_and_grad(model, lambda m: (m(x) ** 2).mean())(model)
    optimizer.update(model, gradients)
    return value

def step():
    mx.eval(compiled(mx.random.normal((16, 8))), state)

measure(step, steps, seconds)
"""

# A cache that is written at a position and grows now and then, and a token that is drawn and read
# while the next one is computed.
GENERATION = """
embedding, head = mx.random.normal((100, 16)), mx.random.normal((16, 100))
cache, position, token = mx.zeros((1, 2, 64, 8)), 0, mx.array([1])

def step():
    global cache, position, token
    if position == 256:
        cache, position = mx.zeros((1, 2, 64, 8)), 0
    if position == cache.shape[2]:
        cache = mx.concatenate([cache, mx.zeros((1, 2, 64, 8))], axis=2)
    x = embedding[token].reshape(1, 2, 1, 8)
    cache[:, :, position : position + 1] = x
    keys = cache[:, :, : position + 1]
    x = mx.fast.scaled_dot_product_attention(x, keys, keys, scale=0.3)
    following = mx.random.categorical(x.reshape(1, 16) @ head)
    mx.async_eval(following)
    token.item()
    token, position = following, position + 1

measure(step, steps, seconds)
"""

# Exceptions, transforms made anew, arrays that are pickled and printed, streams of threads.
MIXTURE = """
import copy, pickle, threading
a = mx.random.normal((8, 8))
wrong = [lambda: a @ mx.zeros((3,)), lambda: a.reshape(5), lambda: a[9.5], lambda: mx.sum({})]

def in_thread():
    with mx.stream(mx.new_thread_local_stream(mx.default_device())):
        mx.eval(a + 1)

def step():
    for call in wrong:
        try:
            call()
        except (ValueError, TypeError):
            pass
    grad = mx.grad(lambda x: (x * a).sum())
    mx.eval(mx.vmap(mx.exp)(grad(a)), mx.compile(lambda x: mx.sin(x) + 1)(a))
    str(a), a.tolist(), copy.deepcopy(a), pickle.loads(pickle.dumps(a)), memoryview(a)
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()

measure(step, steps // 10, seconds)
"""

LOOPS = {"training": TRAINING, "compiled": COMPILED, "generation": GENERATION, "mixture": MIXTURE}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_memory_stays(device, loop):
    steps = STEPS if device == "cpu" else STEPS // 10
    seconds = SECONDS if device == "cpu" else SECONDS / 2
    code = textwrap.dedent(MEASURE) + LOOPS[loop]
    done = subprocess.run(
        [sys.executable, "-c", code, device, str(steps), str(seconds)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    rounds, process, on_device = map(int, done.stdout.split())
    assert rounds >= 50
    # What allocators keep, once; a single lost node of a graph in each round would be more.
    assert process < (4 << 20) + 100 * rounds, done.stdout
    assert on_device < 1 << 20, done.stdout
