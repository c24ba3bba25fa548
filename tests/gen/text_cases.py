#!/usr/bin/env python3
"""Writes tests/api/text_cases.def: what MLX prints for arrays and for the results of ops.

Needs the mlx package (any backend); the output is kept in the tree, so that the tests do not.
usage: text_cases.py > tests/api/text_cases.def

Every case is a C expression over the helpers of tests/api/text.c and the same in Python.
"""

import mlx.core as mx

mx.set_default_device(mx.cpu)

nan, inf = float("nan"), float("inf")
SPECIALS = [0.0, -0.0, 1.0, -1.5, 1e-5, 1e5, 123456.0, 1234567.0, 1e20, 3.14159265, 1 / 3, inf, -inf, nan,
            -2.0]


def iota(dtype, *shape):
    """0, 1, 2, ... as tests/api/text.c makes them."""
    n = 1
    for d in shape:
        n *= d
    return (mx.arange(n) if n else mx.zeros((0,), mx.int32)).reshape(shape).astype(dtype)


def special(dtype):
    return mx.array(SPECIALS, dtype=mx.float32).reshape(3, 5).astype(dtype)


def c64(*pairs):
    return mx.array([complex(a, b) for a, b in pairs])


DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64", "bfloat16", "complex64"]
SHAPES = [(), (0,), (1,), (3,), (6,), (7,), (1000,), (2, 3), (2, 0), (0, 2), (7, 2), (2, 7), (8, 9),
          (2, 2, 2), (1, 1, 1), (7, 7, 7), (3, 1, 8), (1, 2, 1, 2)]


def dt(name):
    return getattr(mx, "bool_" if name == "bool" else name)


def key(seed=0):
    return mx.random.key(seed)


def cases():
    for name in DTYPES:
        for shape in [(), (3,), (2, 3)]:
            c = "iota(MLX_%s, %s)" % (name.upper(), dims(shape))
            yield c, iota(dt(name), *shape)
    for shape in SHAPES:
        yield "iota(MLX_INT32, %s)" % dims(shape), iota(mx.int32, *shape)
    for name in ["float16", "float32", "bfloat16", "float64"]:
        yield "special(MLX_%s)" % name.upper(), special(dt(name))
    yield "complex_pairs((float[]){ 1, 2, 1, -2, 0, 0, -1.5, -0.0f, INFINITY, -INFINITY, 0, NAN }, 6)", \
        c64((1, 2), (1, -2), (0, 0), (-1.5, -0.0), (inf, -inf), (0, nan))
    yield "cast(special(MLX_FLOAT32), MLX_BOOL)", special(mx.float32).astype(mx.bool_)
    yield "call1(mlx_transpose, iota(MLX_FLOAT32, D(2, 3)))", iota(mx.float32, 2, 3).T
    yield "call1(mlx_negative, iota(MLX_INT8, D(3)))", -iota(mx.int8, 3)
    yield "call1(mlx_negative, iota(MLX_UINT8, D(3)))", -iota(mx.uint8, 3)

    # rounding and special values
    x = mx.array([-2.5, -1.5, -0.5, 0.5, 2.675, -7.125])
    c = "floats((float[]){ -2.5f, -1.5f, -0.5f, 0.5f, 2.675f, -7.125f }, 6)"
    yield "round_to(%s, 0)" % c, mx.round(x)
    yield "round_to(%s, 2)" % c, mx.round(x, 2)
    yield "round_to(%s, -1)" % c, mx.round(x, -1)
    yield "round_to(iota(MLX_INT32, D(5, 6)), -1)", mx.round(iota(mx.int32, 5, 6), -1)
    for f in ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "abs"]:
        yield "call1(mlx_%s, special(MLX_FLOAT32))" % f, getattr(mx, f)(special(mx.float32))
        yield "call1(mlx_%s, iota(MLX_INT32, D(2)))" % f, getattr(mx, f)(iota(mx.int32, 2))
    yield "call1(mlx_sign, iota(MLX_INT32, D(2)))", mx.sign(iota(mx.int32, 2))
    yield "nan_to_num(special(MLX_FLOAT32), false)", mx.nan_to_num(special(mx.float32))
    yield "nan_to_num(special(MLX_FLOAT16), true)", \
        mx.nan_to_num(special(mx.float16), nan=3, posinf=4, neginf=-4)
    yield "call1(mlx_degrees, iota(MLX_FLOAT32, D(4)))", mx.degrees(iota(mx.float32, 4))
    yield "call1(mlx_radians, iota(MLX_INT32, D(4)))", mx.radians(iota(mx.int32, 4))
    yield "call1(mlx_reciprocal, iota(MLX_INT32, D(4)))", mx.reciprocal(iota(mx.int32, 4))
    yield "is_close(special(MLX_FLOAT32), special(MLX_FLOAT32), false)", \
        mx.isclose(special(mx.float32), special(mx.float32))
    yield "is_close(special(MLX_FLOAT32), special(MLX_FLOAT32), true)", \
        mx.isclose(special(mx.float32), special(mx.float32), equal_nan=True)
    yield "is_close(special(MLX_FLOAT32), special(MLX_BFLOAT16), false)", \
        mx.isclose(special(mx.float32), special(mx.bfloat16))

    # two operands
    a, b = mx.array([-7, 7, -7, 7, 6]), mx.array([2, 2, -2, -2, 3])
    ca, cb = "ints((int[]){ -7, 7, -7, 7, 6 }, 5)", "ints((int[]){ 2, 2, -2, -2, 3 }, 5)"
    for f in ["floor_divide", "remainder", "divide", "power", "maximum", "bitwise_xor", "logical_and", "logaddexp",
              "arctan2", "not_equal", "outer"]:
        yield "call2(mlx_%s, %s, %s)" % (f, ca, cb), getattr(mx, f)(a, b)
    fa, fb = "cast(%s, MLX_FLOAT32)" % ca, "cast(%s, MLX_FLOAT32)" % cb
    for f in ["floor_divide", "remainder", "power", "inner", "divide"]:
        yield "call2(mlx_%s, %s, %s)" % (f, fa, fb), getattr(mx, f)(a.astype(mx.float32), b.astype(mx.float32))
    yield "part(mlx_divmod, %s, %s, 0)" % (ca, cb), mx.divmod(a, b)[0]
    yield "part(mlx_divmod, %s, %s, 1)" % (ca, cb), mx.divmod(a, b)[1]
    yield "part(mlx_divmod, %s, %s, 0)" % (fa, fb), mx.divmod(a.astype(mx.float32), b.astype(mx.float32))[0]
    yield "part(mlx_divmod, %s, %s, 1)" % (fa, fb), mx.divmod(a.astype(mx.float32), b.astype(mx.float32))[1]

    # creation
    for start, stop, num in [(0, 1, 5), (1, -1, 4), (0, 10, 1), (0, 1, 0), (0, 1, 7)]:
        for name in ["float32", "int32", "float16"]:
            yield "linspace(%d, %d, %d, MLX_%s)" % (start, stop, num, name.upper()), \
                mx.linspace(start, stop, num, dtype=dt(name))
    for start, stop, step in [(0, 5, 1), (5, 0, -2), (0.5, 3, 0.75), (1, 2, 0.3)]:
        for name in ["float32", "int32", "float16"]:
            yield "arange(%g, %g, %g, MLX_%s)" % (start, stop, step, name.upper()), \
                mx.arange(start, stop, step, dtype=dt(name))
    for n, m, k in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (2, 2, 5), (2, 2, -5), (2, 0, 0)]:
        yield "diagonal(mlx_eye, %d, %d, %d, MLX_FLOAT32)" % (n, m, k), mx.eye(n, m, k)
        yield "diagonal(mlx_tri, %d, %d, %d, MLX_INT32)" % (n, m, k), mx.tri(n, m, k, dtype=mx.int32)
        yield "triangle(mlx_tril, iota(MLX_INT32, D(3, 4)), %d)" % k, mx.tril(iota(mx.int32, 3, 4), k)
        yield "triangle(mlx_triu, iota(MLX_INT32, D(3, 4)), %d)" % k, mx.triu(iota(mx.int32, 3, 4), k)

    # movement
    m = iota(mx.int32, 2, 3)
    cm = "iota(MLX_INT32, D(2, 3))"
    for mode in ["constant", "edge", "reflect", "symmetric"]:
        for pads in [((1, 2), (0, 1)), ((0, 0), (2, 2)), ((0, 0), (0, 5)), ((3, 0), (7, 4))]:
            if mode == "constant":
                r = mx.pad(m, pads, constant_values=9)
            else:
                r = mx.pad(m, pads, mode=mode)
            yield 'pad(%s, (int[]){ %d, %d }, (int[]){ %d, %d }, "%s")' % (
                cm, pads[0][0], pads[1][0], pads[0][1], pads[1][1], mode), r
    yield "repeat(%s, 2, 0)" % cm, mx.repeat(m, 2, 0)
    yield "repeat(%s, 2, 1)" % cm, mx.repeat(m, 2, 1)
    yield "tile(%s, (int[]){ 2, 2 }, 2)" % cm, mx.tile(m, (2, 2))
    yield "tile(%s, (int[]){ 2, 1, 2 }, 3)" % cm, mx.tile(m, (2, 1, 2))
    for axis, idx in [(0, [1, 0, -1]), (1, [2, 2, -3, 0])]:
        yield "take(%s, ints((int[]){ %s }, %d), %d)" % (cm, ", ".join(map(str, idx)), len(idx), axis), \
            mx.take(m, mx.array(idx), axis)
    yield "slice2(%s, (int[]){ 1, 2 }, (int[]){ -3, -4 }, (int[]){ -1, -2 })" % cm, m[1:-3:-1, 2:-4:-2]
    yield "slice2(%s, (int[]){ 0, 1 }, (int[]){ 2, 9 }, (int[]){ 1, 1 })" % cm, m[0:2, 1:9]

    # reductions
    r = iota(mx.float32, 2, 3, 4)
    cr = "iota(MLX_FLOAT32, D(2, 3, 4))"
    for f in ["sum", "prod", "min", "max", "all", "any", "mean", "logsumexp", "softmax"]:
        # The package approximates exp on the CPU, which shows in small results.
        for axis in [1, 2] if f == "softmax" else [0, 1, 2]:
            yield "reduce(mlx_%s_axis, %s, %d, false)" % (f, cr, axis), getattr(mx, f)(r, axis=axis)
    for f in ["argmin", "argmax"]:
        yield "reduce(mlx_%s_axis, %s, 1, true)" % (f, cr), getattr(mx, f)(r, axis=1, keepdims=True)
    for ddof in [0, 1, 24]:
        yield "variance(mlx_var, %s, %d)" % (cr, ddof), mx.var(r, ddof=ddof)
        yield "variance(mlx_std, %s, %d)" % (cr, ddof), mx.std(r, ddof=ddof)
    yield "variance(mlx_var, complex_pairs((float[]){ 1, 2, 3, 4, -1, 5 }, 3), 0)", \
        mx.var(c64((1, 2), (3, 4), (-1, 5)))

    # products: vectors, batches, what broadcasts and what is merged
    for left, right in [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 2, 3), (3, 2)),
                        ((2, 2, 3), (3,)), ((2, 1, 3), (2, 3, 2)), ((2, 3), (2, 3, 2)), ((2, 0), (0, 2))]:
        c = "iota(MLX_FLOAT32, %s), iota(MLX_FLOAT32, %s)" % (dims(left), dims(right))
        yield "call2(mlx_matmul, %s)" % c, mx.matmul(iota(mx.float32, *left), iota(mx.float32, *right))
    for add, left, right in [((), (2, 3), (3, 2)), ((2,), (2, 3), (3, 2)), ((2,), (2, 2, 3), (3, 2)),
                             ((2,), (3,), (3, 2)), ((2,), (2, 3), (3,)), ((2, 1), (2, 2, 3), (3, 2)),
                             ((), (3,), (3,)), ((), (2, 2, 3), (3,))]:
        yield "addmm(iota(MLX_FLOAT32, %s), iota(MLX_FLOAT32, %s), iota(MLX_FLOAT32, %s))" % (
            dims(add), dims(left), dims(right)), \
            mx.addmm(iota(mx.float32, *add), iota(mx.float32, *left), iota(mx.float32, *right), 2, 3)
    yield "addmm(complex_pairs((float[]){ 1, 2 }, 1), iota(MLX_FLOAT32, D(2, 3)), iota(MLX_FLOAT32, D(3, 2)))", \
        mx.addmm(c64((1, 2)), iota(mx.float32, 2, 3), iota(mx.float32, 3, 2), 2, 3)
    yield "call2(mlx_inner, iota(MLX_FLOAT32, D(2, 3)), iota(MLX_FLOAT32, D(2, 2, 3)))", \
        mx.inner(iota(mx.float32, 2, 3), iota(mx.float32, 2, 2, 3))
    yield "call2(mlx_outer, iota(MLX_INT32, D(2, 2)), iota(MLX_INT32, D(3)))", \
        mx.outer(iota(mx.int32, 2, 2), iota(mx.int32, 3))

    # views with values
    v = iota(mx.int32, 2, 3, 2)
    cv = "iota(MLX_INT32, D(2, 3, 2))"
    yield "axes2(mlx_moveaxis, %s, 0, 2)" % cv, mx.moveaxis(v, 0, 2)
    yield "axes2(mlx_swapaxes, %s, 0, 1)" % cv, mx.swapaxes(v, 0, 1)
    yield "axes2(mlx_flatten, axes2(mlx_swapaxes, %s, 0, 1), 0, 1)" % cv, mx.flatten(mx.swapaxes(v, 0, 1), 0, 1)
    yield "strided(%s, D(3, 3), (int64_t[]){ 2, 1 }, 1)" % cv, mx.as_strided(v, (3, 3), (2, 1), 1)
    yield "strided(%s, D(2, 2), (int64_t[]){ -1, 0 }, 5)" % cv, mx.as_strided(v, (2, 2), (-1, 0), 5)
    yield "take(%s, iota(MLX_UINT8, D(2, 1)), 1)" % cv, mx.take(v, iota(mx.uint8, 2, 1), 1)
    yield "view_as(iota(MLX_FLOAT32, D(2, 2)), MLX_UINT16)", iota(mx.float32, 2, 2).view(mx.uint16)
    yield "view_as(iota(MLX_INT32, D(2, 4)), MLX_INT64)", iota(mx.int32, 2, 4).view(mx.int64)
    yield "joined(mlx_concatenate_axis, iota(MLX_INT32, D(1, 2)), iota(MLX_FLOAT16, D(2, 2)), 0)", \
        mx.concatenate([iota(mx.int32, 1, 2), iota(mx.float16, 2, 2)], 0)
    yield "joined(mlx_stack_axis, iota(MLX_INT32, D(2)), iota(MLX_INT32, D(2)), -1)", \
        mx.stack([iota(mx.int32, 2), iota(mx.int32, 2)], -1)
    yield "choose(iota(MLX_INT32, D(2, 1)), iota(MLX_FLOAT32, D(3)), iota(MLX_INT32, NO_DIMS))", \
        mx.where(iota(mx.int32, 2, 1), iota(mx.float32, 3), iota(mx.int32))
    yield "clip(iota(MLX_INT32, D(6)), 1.5f, 4)", mx.clip(mx.arange(6), mx.array(1.5), mx.array(4.0))

    # random numbers
    for shape in [(1,), (2,), (3,), (2, 3), (5, 5)]:
        for width in [1, 2, 4]:
            yield "bits(%s, %d)" % (dims(shape), width), bits(shape, width)
    for name in ["float32", "float16", "bfloat16"]:
        yield "uniform(D(2, 4), MLX_%s, -1, 3)" % name.upper(), \
            mx.random.uniform(-1, 3, (2, 4), dt(name), key())
        yield "normal(D(2, 4), MLX_%s, 0, 1)" % name.upper(), \
            mx.random.normal((2, 4), dt(name), key=key())
        yield "normal(D(2, 4), MLX_%s, 2, 0.5f)" % name.upper(), \
            mx.random.normal((2, 4), dt(name), 2, 0.5, key=key())
    yield "normal(D(3), MLX_COMPLEX64, 0, 1)", mx.random.normal((3,), mx.complex64, key=key())
    for name in ["int32", "uint8", "int64"]:
        yield "randint(D(3, 5), MLX_%s, 3, 40)" % name.upper(), \
            mx.random.randint(3, 40, (3, 5), dt(name), key())
    yield "bernoulli(D(2, 5), 0.5f)", mx.random.bernoulli(0.5, (2, 5), key())
    yield "bernoulli(D(2, 5), 1)", mx.random.bernoulli(1.0, (2, 5), key())
    yield "bernoulli(D(2, 5), 0)", mx.random.bernoulli(0.0, (2, 5), key())
    yield "split_keys(3)", mx.random.split(key(), 3)
    mx.random.seed(7)
    yield "sequence(7, 1)", mx.random.uniform(shape=(2,))
    yield "sequence(7, 2)", mx.random.uniform(shape=(2,))
    yield "sequence(7, 3)", mx.random.uniform(shape=(2,))


def bits(shape, width):
    """The package does not expose bits: threefry by hand, as the contract describes it."""
    n = 1
    for d in shape:
        n *= d
    words = (n * width + 3) // 4
    half, odd = words // 2, words % 2
    out = [0] * words
    for i in range(half):
        out[i], out[i + half + odd] = threefry((0, 0), (i, i + half + odd))
    if odd:
        out[half] = threefry((0, 0), (half, 0))[0]
    raw = b"".join(w.to_bytes(4, "little") for w in out)[:n * width]
    values = [int.from_bytes(raw[i * width:(i + 1) * width], "little") for i in range(n)]
    return mx.array(values, dtype={1: mx.uint8, 2: mx.uint16, 4: mx.uint32}[width]).reshape(shape)


def threefry(k, count):
    mask = 0xFFFFFFFF
    ks = [k[0], k[1], k[0] ^ k[1] ^ 0x1BD11BDA]
    x, y = (count[0] + ks[0]) & mask, (count[1] + ks[1]) & mask
    for i in range(5):
        for r in [(13, 15, 26, 6), (17, 29, 16, 24)][i % 2]:
            x = (x + y) & mask
            y = ((y << r | y >> (32 - r)) & mask) ^ x
        x = (x + ks[(i + 1) % 3]) & mask
        y = (y + ks[(i + 2) % 3] + i + 1) & mask
    return x, y


def dims(shape):
    return "D(%s)" % ", ".join(map(str, shape)) if shape else "NO_DIMS"


def literal(text):
    lines = text.replace("\\", "\\\\").replace('"', '\\"').split("\n")
    return "\n     ".join('"%s%s"' % (l, "\\n" if i + 1 < len(lines) else "") for i, l in enumerate(lines))


print("/* What MLX", mx.__version__, "prints; written by tests/gen/text_cases.py.")
print(" * TEXT(expected, expression) */")
for c, value in cases():
    print("TEXT(%s,\n     %s)" % (literal(str(value)), c))
