"""Subscripts and exchange with whatever Python has: an exception or a result, and nothing else."""

import os
import random
import subprocess
import sys

import mlx.core as mx
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")

EXPECTED = (
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    OverflowError,
    BufferError,
    RuntimeError,
    AttributeError,
)
BOUNDS = [None, None, 0, 1, -1, 2, -3, 100, -100, 2**31 - 1, -(2**31)]
LISTS = [[0, 1], [0], [[0], [1]], [True, False], [1.5], [], [-1, 2]]


class Meddling:
    """An int that changes the array that it is an index of."""

    def __init__(self, array):
        self.array = array

    def __index__(self):
        self.array[...] = mx.zeros(random.choice([(), (1,), (0, 2)]))
        return random.randint(-3, 3)


class Lying:
    def __index__(self):
        raise KeyError("no index")

    def __mlx_array__(self):
        return random.choice([5, mx.array.__new__(mx.array), mx.array(1), None])


class Offering:
    def __dlpack__(self, **keywords):
        return random.choice([5, mx.array([1, 2]).__dlpack__(**keywords), None])


def anything(array, depth=0):
    makers = [
        lambda: random.randint(-5, 5),
        lambda: None,
        lambda: ...,
        lambda: slice(*random.choices(BOUNDS, k=3)),
        lambda: slice(Meddling(array), Lying(), 2),
        lambda: mx.array(random.choice(LISTS)),
        lambda: random.choice(LISTS),
        lambda: np.array(random.choice(LISTS[:2])),
        lambda: random.choice([True, 1.5, "x", 1j, {}, b"ab", 2**40, -(2**31), np.int64(1)]),
        lambda: mx.array.__new__(mx.array),
        lambda: Meddling(array),
        lambda: Lying(),
        lambda: Offering(),
        lambda: array,
        lambda: [array, array],
        lambda: mx.zeros((random.randint(0, 3), random.randint(0, 3))),
        lambda: (
            tuple(anything(array, depth + 1) for _ in range(random.randint(0, 4)))
            if depth < 2
            else ()
        ),
    ]
    return random.choice(makers)()


def act(array):
    at = ["add", "subtract", "multiply", "divide", "maximum", "minimum"]
    ways = [
        lambda: array[anything(array)],
        lambda: array.__setitem__(anything(array), anything(array)),
        lambda: getattr(array.at[anything(array)], random.choice(at))(anything(array)),
        lambda: mx.array(anything(array)),
        lambda: mx.asarray(anything(array), copy=random.choice([None, True, False])),
        lambda: mx.from_dlpack(anything(array)),
        lambda: array.__setstate__(anything(array)),
        lambda: array.__dlpack__(max_version=anything(array), dl_device=anything(array)),
    ]
    return random.choice(ways)()


@pytest.mark.parametrize("seed", range(4))
def test_anything(seed):
    random.seed(seed)
    results = 0
    for _ in range(1500):
        array = mx.zeros(
            random.choice([(), (2,), (2, 3), (3, 2, 2), (0, 3)]),
            dtype=random.choice([mx.float32, mx.int8, mx.bool_, mx.complex64, mx.float16]),
        )
        try:
            made = act(array)
            if isinstance(made, mx.array):
                mx.eval(made)
            results += 1
        except EXPECTED:
            pass
    assert 100 < results < 1400  # of both kinds


class Long(list):
    """Says that it has more items than there are."""

    def __len__(self):
        return 1000


class Emptying:
    """Empties the list that it is an item of when it is asked for its value."""

    def __init__(self):
        self.items = [1, self, 2]

    def __index__(self):
        self.items.clear()
        return 1


@pytest.mark.parametrize(
    "call",
    [
        lambda items: mx.zeros((2, 3)).prod(axis=items),
        lambda items: mx.empty(items),
        lambda items: mx.pad(mx.zeros((2, 3)), items),
        lambda items: mx.pad(mx.zeros((2, 3)), [items, items]),
        lambda items: mx.conv_general(mx.zeros((1, 4, 2)), mx.zeros((1, 2, 2)), padding=items),
        lambda items: mx.fft.irfft2(mx.zeros((4, 4)), axes=items),
        lambda items: mx.concatenate(items),
        lambda items: mx.array(items),
        lambda items: mx.vmap(mx.exp, in_axes=items)(mx.zeros((2, 3))),
        lambda items: mx.grad(lambda x: x[0].sum())(items),
        lambda items: mx.compile(lambda x: x[0])(items),
    ],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: Long([mx.zeros((2,)), 1]),
        lambda: Long([0, 1]),
        lambda: Long(),
        lambda: Emptying().items,
    ],
)
def test_lists_that_lie(call, make):
    """What is read is what a list has, whatever it says and whoever changes it meanwhile."""
    try:
        mx.eval(call(make()))
    except EXPECTED:
        pass


def test_wrong_arguments_of_constructors():
    for kind in (mx.finfo, mx.iinfo, mx._PrintOptionsContext):
        with pytest.raises(TypeError):
            kind(x=mx.float32)
        with pytest.raises(TypeError):
            kind()
    with pytest.raises(TypeError, match="format_spec"):
        mx.array(1).__format__(5)


def test_the_gpu_runs():
    """Gathers, scatters and updates of slices are dispatches of the GPU."""
    code = """
import mlx.core as mx
mx.set_default_device(mx.gpu)
a, i = mx.zeros((64, 64)), mx.array([1, 2, 3])
mx.eval(a, i)
a[i] = 1.0
a[:, i] = 2.0
a[1:3, ::2] = 3.0
a[mx.array([True] * 64)] = 4.0
mx.eval(a[i], a[:, i, None], a.at[i].add(1.0), a)
"""
    env = os.environ | {"MLX_VK_STATS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    counts = [line.split() for line in done.stderr.splitlines()]
    dispatches = [int(words[0]) for words in counts if words[1:] == ["dispatches"]]
    assert dispatches and dispatches[0] >= 7
    assert "fallback" not in done.stderr
