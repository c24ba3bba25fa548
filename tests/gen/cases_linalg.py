"""Rows of linear algebra. What is unique is compared with NumPy; factors that are unique only up to
signs are put together again by tests/ops/linalg.c."""

import numpy as np

from case_table import (CLOSE, EXACT, INTS, Arr, DtypeParam, Ints, Row, at_least_float, cast,
                        laid_out, promote, wide)
from cases_reduce import KEYS, erfinv, key_array, uniform
from cases_shape import LAYOUTS, draw

REAL = ["float32", "float64"]


def normal(rng, dtype, shape):
    x = rng.normal(0, 1, shape)
    return cast(x + 1j * rng.normal(0, 1, shape) if dtype == "complex64" else x, dtype)


def regular(rng, dtype, shape):
    """Square matrices far from singular ones."""
    return cast(normal(rng, dtype, shape) + 2 * shape[-1] * np.eye(shape[-1]), dtype)


def definite(rng, dtype, shape):
    x = wide(normal(rng, dtype, shape))
    return cast(x @ np.conj(np.swapaxes(x, -1, -2)) / shape[-1] + np.eye(shape[-1]), dtype)


def host(row):
    """On the CPU only."""
    row.host = True
    return row


def one(fn, a, value, params=(), dtype=None):
    t = dtype or a.dtype
    return host(Row(f"linalg_{fn}", [a], [(cast(value, t), t)], params, CLOSE, 10))


def transposed(x):
    return np.swapaxes(x, -1, -2)


# ---- factorizations and inverses ----

def lu_of(x):
    """LU in one matrix, pivots, the order of rows: of one matrix, with the largest pivots."""
    lu, (m, n) = x.copy(), x.shape
    pivots, rows = [], np.arange(m)
    for k in range(min(m, n)):
        p = k + int(np.argmax(np.abs(lu[k:, k])))
        lu[[k, p]], rows[[k, p]] = lu[[p, k]], rows[[p, k]]
        pivots.append(p)
        lu[k + 1:, k] /= lu[k, k]
        lu[k + 1:, k + 1:] -= np.outer(lu[k + 1:, k], lu[k, k + 1:])
    return lu, np.array(pivots, np.uint32), np.argsort(rows).astype(np.uint32)


def lu_rows_of(a):
    m, n = a.shape[-2:]
    k, batch = min(m, n), a.shape[:-2]
    parts = [lu_of(x) for x in wide(a.values).reshape(-1, m, n)]
    lu, pivots, order = ([p[i] for p in parts] for i in range(3))
    lu = np.array(lu).reshape(batch + (m, n))
    order = np.array(order, np.uint32).reshape(batch + (m,))
    pivots = np.array(pivots, np.uint32).reshape(batch + (k,))
    lower = np.tril(lu, -1)[..., :k] + np.eye(m, k)
    yield host(Row("linalg_lu_factor", [a], [(cast(lu, a.dtype), a.dtype), (pivots, "uint32")], [],
                   CLOSE, 10))
    yield host(Row("linalg_lu", [a], [(order, "uint32"), (cast(lower, a.dtype), a.dtype),
                                      (cast(np.triu(lu)[..., :k, :], a.dtype), a.dtype)], [], CLOSE,
                   10))


def square_rows_of(a, spd):
    """Of regular matrices, and of positive definite ones."""
    x, y = wide(a.values), wide(spd.values)
    n = a.shape[-1]
    if n:
        yield one("det", a, np.linalg.det(x))
        sign, size = np.linalg.slogdet(x)
        yield host(Row("linalg_slogdet", [a], [(cast(sign, a.dtype), a.dtype),
                                               (cast(size, a.dtype), a.dtype)], [], CLOSE, 1))
    for upper in (0, 1):
        factor = np.linalg.cholesky(y)
        yield one("cholesky", spd, transposed(factor) if upper else factor, [upper])
        triangle = np.triu(x) if upper else np.tril(x)
        yield one("tri_inv", a, np.linalg.inv(triangle), [upper])
        yield one("cholesky_inv", a, np.linalg.inv(transposed(triangle) @ triangle if upper
                                                   else triangle @ transposed(triangle)), [upper])
    yield one("inv", a, np.linalg.inv(x))
    for uplo in "LU":
        triangle = np.tril(y) if uplo == "L" else np.triu(y)
        mixed = Arr(cast(triangle + (np.triu(x, 1) if uplo == "L" else np.tril(x, -1)), a.dtype),
                    a.dtype)
        yield one("eigvalsh", mixed, np.linalg.eigvalsh(y), [uplo])


def any_rows_of(a):
    """Of matrices of any shape."""
    x = wide(a.values)
    k = min(a.shape[-2:])
    yield one("pinv", a, np.linalg.pinv(x))
    values = np.linalg.svd(x, compute_uv=False) if k else np.zeros(a.shape[:-2] + (0,))
    yield one("svd", a, values, [0])
    yield from lu_rows_of(a)
    if x.size:  # LAPACK's reflectors, so that signs are its, too
        parts = [np.linalg.qr(m) for m in x.reshape((-1,) + x.shape[-2:])]
        q, r = (np.array([p[i] for p in parts]) for i in range(2))
        yield host(Row("linalg_qr", [a], [
            (cast(q.reshape(a.shape[:-2] + q.shape[1:]), a.dtype), a.dtype),
            (cast(r.reshape(a.shape[:-2] + r.shape[1:]), a.dtype), a.dtype)], [], CLOSE, 20))


def factor_rows(rng):
    for dtype in REAL:
        for shape in ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (3, 7, 7), (2, 1, 3, 3), (33, 33),
                      (0, 0), (2, 0, 0), (0, 3, 3), (70, 3, 3)):
            yield from square_rows_of(Arr(regular(rng, dtype, shape), dtype),
                                      Arr(definite(rng, dtype, shape), dtype))
        for shape in ((1, 1), (3, 3), (2, 5), (5, 2), (1, 4), (4, 1), (3, 4, 6), (2, 2, 6, 4),
                      (40, 30), (0, 2, 3)):
            yield from any_rows_of(Arr(normal(rng, dtype, shape), dtype))
    for layout in LAYOUTS:
        spd = laid_out(definite(rng, "float32", (3, 4, 4)), "float32", layout)
        yield from square_rows_of(laid_out(regular(rng, "float32", (3, 4, 4)), "float32", layout), spd)
        yield from any_rows_of(laid_out(normal(rng, "float32", (3, 4, 5)), "float32", layout))
    big = Arr(regular(rng, "float32", (90, 90)), "float32")
    yield one("inv", big, np.linalg.inv(wide(big.values)))
    yield from empty_factor_rows()
    yield from eigen_rows(rng)


def empty_factor_rows():
    for m, n in ((0, 3), (3, 0)):
        a = Arr(np.zeros((2, m, n), np.float32), "float32")
        rows = np.broadcast_to(np.arange(m), (2, m))
        zero = [(np.zeros((2,) + s, np.float32), "float32") for s in ((m, 0), (0, n), (n, m))]
        none = (np.zeros((2, 0), np.uint32), "uint32")
        yield host(Row("linalg_lu", [a], [(rows, "uint32"), zero[0], zero[1]], [], EXACT))
        yield host(Row("linalg_lu_factor", [a], [(a.values, "float32"), none], [], EXACT))
        yield host(Row("linalg_qr", [a], zero[:2], [], EXACT))
        yield host(Row("linalg_pinv", [a], zero[2:], [], EXACT))
        eye = [(np.broadcast_to(np.eye(k), (2, k, k)), "float32") for k in (m, n)]
        values = (np.zeros((2, 0), np.float32), "float32")
        yield host(Row("linalg_svd", [a], [eye[0], values, eye[1]], [1], EXACT))
    for dtype in REAL:
        a = Arr(np.zeros((3, 0, 0), dtype), dtype)
        yield one("det", a, np.ones(3))
        yield host(Row("linalg_slogdet", [a], [(np.ones(3), dtype), (np.zeros(3), dtype)], [], EXACT))


def eigen_rows(rng):
    for dtype in REAL + ["complex64"]:
        real = "float32" if dtype == "complex64" else dtype
        for shape in ((1, 1), (4, 4), (2, 6, 6)):
            a = Arr(definite(rng, dtype, shape), dtype)
            values = np.linalg.eigvalsh(wide(a.values))
            yield one("eigvalsh", a, values, ["L"], real)
            yield one("svd", a, values[..., ::-1], [0], real)
        # What needs no rotation: ascending numbers on the diagonal.
        diagonal = np.array([-2, -0.5, 1, 3])
        a = Arr(cast(np.diag(diagonal), dtype), dtype)
        eye = (cast(np.eye(4), dtype), dtype)
        yield host(Row("linalg_eigh", [a], [(cast(diagonal, real), real), eye], ["U"], CLOSE))
        # Of a triangle they are in order, too: LAPACK gets it transposed.
        a = Arr(cast(np.tril(normal(rng, dtype, (4, 4)), -1) + np.diag(diagonal), dtype), dtype)
        yield one("eigvals", a, diagonal, [], "complex64")
        a = Arr(cast(np.diag(diagonal), dtype), dtype)
        yield host(Row("linalg_eig", [a], [(cast(diagonal, "complex64"), "complex64"),
                                           (np.eye(4), "complex64")], [], CLOSE))


# ---- determinants of other dtypes ----

def det_rows(rng):
    for dtype in INTS + ["bool", "float16", "bfloat16"]:
        for n in (1, 2, 3):
            a = Arr(cast(rng.integers(0, 4, (2, n, n)), dtype), dtype)
            det = np.round(np.linalg.det(wide(a.values)))
            yield one("det", a, det, [], at_least_float(dtype))
    for n in (3, 4, 6):
        singular = np.ones((n, n), np.float32)
        singular[0] = 0
        a = Arr(np.array([singular, np.eye(n)[::-1]]), "float32")
        sign = -1.0 if n * (n - 1) // 2 % 2 else 1.0
        yield host(Row("linalg_det", [a], [(np.array([0, sign]), "float32")], [], CLOSE))
        yield host(Row("linalg_slogdet", [a], [(np.array([0, sign]), "float32"),
                                               (np.array([-np.inf, 0]), "float32")], [], CLOSE))
    a = Arr(np.eye(5, dtype=np.int32) * 2, "int32")
    yield one("det", a, 32, [], "float32")


# ---- systems ----

def solve_rows(rng):
    for dtype in REAL:
        for shape, right in (((3, 3), (3,)), ((3, 3), (3, 2)), ((1, 1), (1, 1)),
                             ((2, 4, 4), (2, 4, 3)), ((40, 40), (40, 5)), ((2, 4, 4), (1, 4, 1)),
                             ((0, 0), (0, 2)), ((3, 3), (3, 0))):
            a = Arr(regular(rng, dtype, shape), dtype)
            b = Arr(normal(rng, dtype, right), dtype)
            yield from systems(a, b)
    for layout in ("transposed", "sliced", "reversed"):
        yield from systems(laid_out(regular(rng, "float32", (2, 3, 3)), "float32", layout),
                           laid_out(normal(rng, "float32", (2, 3, 2)), "float32", layout))
    a = Arr(regular(rng, "float32", (3, 3)), "float32")
    yield from systems(a, Arr(rng.integers(0, 9, (3, 2)).astype(np.int32), "int32"))


def systems(a, b):
    t = promote(a.dtype, b.dtype)
    x, y = wide(a.values), wide(b.values)
    column = y[..., None] if y.ndim == 1 else y
    want = np.linalg.solve(x, np.broadcast_to(column, x.shape[:-1] + column.shape[-1:]))
    want = want[..., 0] if y.ndim == 1 else want
    yield host(Row("linalg_solve", [a, b], [(cast(want, t), t)], [], CLOSE, 10))
    for upper in (0, 1):
        triangle = np.triu(x) if upper else np.tril(x)
        want = np.linalg.inv(triangle) @ y
        yield host(Row("linalg_solve_triangular", [a, b], [(cast(want, t), t)], [upper], CLOSE, 10))


# ---- cross products ----

def cross_of(x, y, axis, t):
    """With a third element that is 0 where there is none."""
    parts = []
    for v in (x, y):
        v = np.moveaxis(v, axis, -1)
        third = np.zeros(v.shape[:-1] + (3 - v.shape[-1],), v.dtype)
        parts.append(np.concatenate([v, third], -1))
    (a, b, c), (d, e, f) = (np.moveaxis(p, -1, 0) for p in np.broadcast_arrays(*parts))
    with np.errstate(all="ignore"):
        return cast(np.moveaxis(np.array([b * f - c * e, c * d - a * f, a * e - b * d]), 0, axis), t)


def cross_rows(rng):
    def row(a, b, axis):
        t = promote(a.dtype, b.dtype)
        x, y = (wide(cast(v.values, t)) if t not in INTS else cast(v.values, t) for v in (a, b))
        return Row("linalg_cross", [a, b], [(cross_of(x, y, axis, t), t)], [axis],
                   EXACT if t in INTS else CLOSE, 0 if t in INTS else 20)

    for dtype in ["float16", "float32", "float64", "bfloat16", "complex64"] + INTS:
        for left, right in ((3, 3), (2, 3), (3, 2), (2, 2)):
            yield row(Arr(draw(rng, dtype, (4, left)), dtype), Arr(draw(rng, dtype, (4, right)), dtype),
                      -1)
    for layout in LAYOUTS:
        a = laid_out(draw(rng, "float32", (3, 2, 3)), "float32", layout)
        b = laid_out(draw(rng, "float32", (3, 2, 3)), "float32", layout)
        for axis in (0, 1, 2, -3):
            yield row(a, b, axis)
    for shapes in (((3,), (4, 3)), ((1, 5, 3), (4, 1, 2)), ((0, 3), (0, 2)), ((0, 3), (3,))):
        yield row(*(Arr(draw(rng, "float32", s), "float32") for s in shapes), -1)
    small = Arr(rng.integers(-4, 5, (5, 3)).astype(np.int32), "int32")
    yield row(small, Arr(draw(rng, "float16", (5, 3)), "float16"), 1)


# ---- norms ----

VECTOR_ORDERS = [0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.5, np.inf, -np.inf]
MATRIX_ORDERS = [1.0, -1.0, 2.0, -2.0, np.inf, -np.inf]


def options(axis, keepdims):
    """The parameters of axes that may be absent."""
    return [axis is not None, Ints(axis or []), keepdims]


def norm_value(x, ord, axis, keepdims):
    axis = tuple(range(x.ndim)) if axis is None else tuple(axis)
    if len(axis) == 1:
        return np.linalg.norm(x, ord, axis[0], keepdims)
    return np.linalg.norm(x, ord, axis, keepdims)


def norm_rows_of(a, axis, keepdims):
    x = wide(a.values)
    n = len(axis) if axis is not None else x.ndim
    t = at_least_float(a.dtype)
    size = 20 * max(1, x.size) if t in ("float16", "bfloat16") else 0
    if n in (1, 2):
        for ord in VECTOR_ORDERS if n == 1 else MATRIX_ORDERS:
            spectral = n == 2 and abs(ord) == 2
            if spectral and a.dtype not in REAL + ["complex64"]:
                continue
            # Of vectors the norm by squares is real.
            out = "float32" if t == "complex64" and n == 1 and ord == 2 else t
            row = Row("linalg_norm", [a], [(cast(norm_value(x, ord, axis, keepdims), out), out)],
                      [float(ord), *options(axis, keepdims)], CLOSE, 10 if spectral else size)
            yield host(row) if spectral else row
    real = "float32" if t == "complex64" else t
    if n == 2:
        for ord in ("fro", "f", "nuc"):
            if ord == "nuc" and a.dtype not in REAL + ["complex64"]:
                continue
            value = norm_value(x, ord[:3] if ord != "f" else "fro", axis, keepdims)
            row = Row("linalg_norm_matrix", [a], [(cast(value, real), real)],
                      [ord, *options(axis, keepdims)], CLOSE, 10 if ord == "nuc" else size)
            yield host(row) if ord == "nuc" else row
    if axis is None or n <= 2:
        axes = tuple(axis) if axis is not None else None
        value = np.sqrt(np.sum(np.abs(x) ** 2, axes, keepdims=bool(keepdims)))
        yield Row("linalg_norm_l2", [a], [(cast(value, real), real)], options(axis, keepdims), CLOSE,
                  size)


def norm_values(rng, dtype, shape):
    """Small, so that squares of small integers fit."""
    if dtype in INTS or dtype == "bool":
        return rng.integers(1, 4, shape).astype(dtype)
    if dtype in ("float16", "bfloat16"):  # and so that powers of numbers do
        return cast(rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape), dtype)
    return draw(rng, dtype, shape)


def norm_rows(rng):
    for dtype in INTS + ["bool", "float16", "bfloat16", "float32", "float64", "complex64"]:
        for shape in ((7,), (3, 4)):
            for keepdims in (0, 1):
                yield from norm_rows_of(Arr(norm_values(rng, dtype, shape), dtype), None, keepdims)
    for layout in LAYOUTS:
        a = laid_out(draw(rng, "float32", (3, 4, 5)), "float32", layout)
        for i, axis in enumerate((None, [0], [-1], [1, 2], [2, 0], [0, -1])):
            yield from norm_rows_of(a, axis, i % 2)
    for axis in ([1], [2, 0]):
        yield from norm_rows_of(Arr(draw(rng, "float32", (3, 4, 5)), "float32"), axis, 1 - axis[0] % 2)
    yield from norm_rows_of(Arr(np.float32(-3), "float32"), None, 1)
    yield from norm_rows_of(Arr(draw(rng, "float32", (40, 300)), "float32"), [1], 0)
    empty = Arr(np.zeros((0, 3), np.float32), "float32")
    yield Row("linalg_norm", [empty], [(np.zeros(3), "float32")], [1.0, *options([0], 0)], EXACT)
    yield Row("linalg_norm_l2", [empty], [(np.float32(0), "float32")], options(None, 0), EXACT)


# ---- normal numbers of several dimensions ----

def root_of(cov):
    """The symmetric root."""
    values, vectors = np.linalg.eigh(wide(cov))
    return (vectors * np.sqrt(values)[..., None, :]) @ transposed(vectors)


def multivariate_rows(rng):
    for key in KEYS:
        for mean, cov, shape in (((3,), (3, 3), [5]), ((3,), (3, 3), []), ((4, 2), (2, 2), [4]),
                                 ((2,), (3, 2, 2), [3]), ((1, 2), (3, 2, 2), [2, 3])):
            m, c = draw(rng, "float32", mean), definite(rng, "float32", cov)
            to = np.broadcast_shapes(mean[:-1], cov[:-2], tuple(shape)) + mean[-1:]
            low = np.nextafter(np.float32(-1), np.float32(0))
            u = uniform(key, int(np.prod(to)), low, 1).astype(np.float64)
            z = np.sqrt(2) * erfinv(u).reshape(to)
            x = (z[..., None, :] @ root_of(c))[..., 0, :] + m
            yield host(Row("random_multivariate_normal",
                           [Arr(m, "float32"), Arr(c, "float32"), key_array(key)],
                           [(cast(x, "float32"), "float32")],
                           [Ints(shape), DtypeParam("float32")], CLOSE, 20))


def rows(rng):
    yield "linalg", [*factor_rows(rng), *det_rows(rng), *solve_rows(rng), *cross_rows(rng),
                     *norm_rows(rng), *multivariate_rows(rng)]
