"""Rows of einsum: the subscripts of products, sums, diagonals, transpositions and their mixtures."""

import numpy as np

from case_table import BITS, Arr, Row, cast, laid_out, promote, wide
from cases_shape import sample

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 3, "i": 4, "j": 3, "k": 5, "l": 2, "m": 6, "A": 2,
         "n": 1}

# One operand: what is moved only is exact.
MOVED = ["ij->ij", "ij->ji", "abc->cab", "ba", "ii->i", "iji->ji", "aabb->ab", "...ij->...ji", "...",
         "i...->...i", "->", "Ab"]
SUMMED = ["ij->i", "ij->", "ii", "ii->", "abc->b", "aab->b", "...i->...", "i...->i", "iij"]
PRODUCTS = [
    "ij,jk->ik", "ij,jk", "ij,kj->ik", "ji,jk->ik", "ij,jk->ki", "ij,jk->", "ij,ij->", "ij,ij->ij",
    "ij,ij->i", "i,i->", "i,j->ij", "i,j->ji", "bij,bjk->bik", "bij,bjk->ikb", "bij,bjk->ik",
    "abc,cbd->ad", "abc,bad->dc", "ii,ij->j", "iij,jk->ik", "i,->i", ",i->i", ",->", "abcd,ed->abce",
    "...ij,...jk->...ik", "...ij,jk->...ik", "i...,i...->...", "a...b,b->a...", "nj,jk->nk",
    "in,nj->ij", "nij,bjk->nbik",
    "ij,jk,kl->il", "ij,jk,kl->li", "i,j,k->ijk", "ij,ij,ij->ij", "ij,ij,ij->", "abc,bd,ce->ade",
    "i,i,i->i", "bi,ij,bj->b", "ij,jk,kl,lm->im", "ij,jk,ik->", "ab,cd,eb,ad->ce",
    "ijk,ilm,njm,nlk,abc->", "...a,...b,...c->...abc",
]


def operands_of(rng, subscripts, dtype, layout, dots=(2, 3)):
    found = []
    for n, term in enumerate(subscripts.replace(" ", "").split("->")[0].split(",")):
        # The first operands have fewer axes behind their ellipsis than the last.
        extra = dots[1:] if n == 0 and "," in subscripts else dots
        letters = term.replace("...", "*")
        shape = [d for c in letters for d in (extra if c == "*" else (SIZES[c],))]
        found.append(laid_out(sample(rng, dtype, tuple(shape)), dtype, layout))
    return found


def row(subscripts, operands, dtype, tolerance=0):
    values = [wide(a.values) for a in operands]
    expected = np.einsum(subscripts, *values, optimize="greedy")
    bound = np.einsum(subscripts, *(np.abs(v) for v in values), optimize="greedy")
    return Row("einsum", operands, [(cast(expected, dtype), dtype)], [subscripts], tolerance,
               scale=float(np.max(np.abs(bound), initial=0)))


def rows(rng):
    """(family, rows) pairs."""
    return [("einsum", [*one_operand_rows(rng), *product_rows(rng), *broadcast_rows(rng)])]


def one_operand_rows(rng):
    for layout in ("row", "transposed", "sliced"):
        for subscripts in MOVED:
            yield row(subscripts, operands_of(rng, subscripts, "float32", layout), "float32", BITS)
        for subscripts in SUMMED:
            yield row(subscripts, operands_of(rng, subscripts, "float32", layout), "float32")
    for dtype in ("int32", "bool", "complex64", "bfloat16"):
        yield row("iij->ji", operands_of(rng, "iij->ji", dtype, "row"), dtype, BITS)


def product_rows(rng):
    for layout in ("row", "transposed", "sliced"):
        for subscripts in PRODUCTS:
            yield row(subscripts, operands_of(rng, subscripts, "float32", layout), "float32")
    for dtype in ("float16", "bfloat16", "complex64", "float64"):
        for subscripts in ("ij,jk->ik", "bij,bjk->bik", "i,j->ij", "ij , jk, kl -> il"):
            yield row(subscripts, operands_of(rng, subscripts, dtype, "row"), dtype)
    for first, second in (("int32", "float32"), ("float16", "bfloat16")):
        a = Arr(sample(rng, first, (4, 3)), first)
        b = Arr(sample(rng, second, (3, 5)), second)
        yield row("ij,jk->ik", [a, b], promote(first, second))
    whole = operands_of(rng, "ij,ij->ij", "int32", "row")
    yield row("ij,ij->ij", whole, "int32", BITS)


def broadcast_rows(rng):
    """Axes of size 1 take the size of the others with their letter; empty ones give zeros."""
    for subscripts, first, second in (("ij,ij->ij", (1, 3), (4, 1)), ("ij,jk->ik", (2, 1), (3, 4)),
                                      ("bij,bjk->bik", (1, 2, 3), (4, 3, 2)),
                                      ("...i,...i->...", (1, 2, 3), (4, 1, 3))):
        a, b = (Arr(sample(rng, "float32", s), "float32") for s in (first, second))
        stretched = []
        letters = subscripts.split("->")[0].replace("...", "xy").split(",")
        size = {}
        for term, v in zip(letters, (a, b)):
            for c, d in zip(term, v.shape):
                size[c] = max(size.get(c, 1), d)
        for term, v in zip(letters, (a, b)):
            stretched.append(Arr(np.broadcast_to(v.values, [size[c] for c in term]), "float32"))
        reference = row(subscripts, stretched, "float32")
        yield Row("einsum", [a, b], reference.outputs, [subscripts], scale=reference.scale)
    a, b = Arr(np.zeros((2, 0), np.float32), "float32"), Arr(np.zeros((0, 3), np.float32), "float32")
    yield Row("einsum", [a, b], [(np.zeros((2, 3), np.float32), "float32")], ["ij,jk->ik"], BITS)
