"""The table that rows of functions go into."""

from __future__ import annotations

ROWS = {}
SMOOTH = set()
UNBATCHED = set()
UNTRACED = set()
HELPERS = {}


def row(names: str, smooth: bool = False, batched: bool = True, traced: bool = True):
    """Registers a row for functions, by their names in mlx.core. What reads the values of its
    arguments is not traced."""

    def register(fn):
        for name in names.split():
            ROWS[name] = fn
            if smooth:
                SMOOTH.add(name)
            if not batched:
                UNBATCHED.add(name)
            if not traced:
                UNTRACED.add(name)
        return fn

    return register


def helper(name: str):
    """Registers what a row calls where mlx.core has no such function; mlx.core is given first."""

    def register(fn):
        HELPERS[name] = fn
        return fn

    return register


def one(dtypes, values="normal"):
    return lambda d: ([d.array(dtypes, values=values)], {})
