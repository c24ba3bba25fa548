"""mlx.utils: trees."""

from collections import namedtuple

import pytest
from mlx.utils import (
    tree_flatten,
    tree_map,
    tree_map_with_path,
    tree_merge,
    tree_reduce,
    tree_unflatten,
)

Pair = namedtuple("Pair", "first second")


class Mapping(dict):
    pass


TREE = {"a": [1, 2, {"b": 3, "c": (4, 5)}], "d": Pair(6, [7]), "e": [], "f": {}, "g": None}


def test_map_keeps_the_structure():
    assert tree_map(lambda x: x and x * 10, TREE) == {
        "a": [10, 20, {"b": 30, "c": (40, 50)}],
        "d": Pair(60, [70]),
        "e": [],
        "f": {},
        "g": None,
    }
    assert type(tree_map(lambda x: x, TREE)["d"]) is Pair
    assert type(tree_map(lambda x: x, Mapping(a=1))) is dict
    assert tree_map(lambda x: x + 1, 1) == 2


def test_map_takes_other_trees():
    other = {"a": [10, 20], "b": {"c": 30, "more": 40}}
    assert tree_map(lambda x, y: x + y, {"a": (1, 2), "b": {"c": 3}}, other) == {
        "a": (11, 22),
        "b": {"c": 33},
    }
    with pytest.raises(KeyError):
        tree_map(lambda x, y: x, {"a": 1}, {})


def test_map_with_own_leaves():
    found = []
    tree_map(found.append, TREE, is_leaf=lambda x: isinstance(x, (list, tuple)))
    assert found == [[1, 2, {"b": 3, "c": (4, 5)}], Pair(6, [7]), [], None]


def test_map_with_path():
    assert tree_map_with_path(lambda path, x: path, TREE) == {
        "a": ["a.0", "a.1", {"b": "a.2.b", "c": ("a.2.c.0", "a.2.c.1")}],
        "d": Pair("d.0", ["d.1.0"]),
        "e": [],
        "f": {},
        "g": "g",
    }
    assert tree_map_with_path(lambda path, x, y: (path, x, y), [1], [2], path="p") == [
        ("p.0", 1, 2)
    ]
    assert tree_map_with_path(lambda path, x: path, 3) is None


def test_flatten():
    pairs = [("a.0", 1), ("a.1", 2), ("a.2.b", 3), ("a.2.c.0", 4), ("a.2.c.1", 5)]
    pairs += [("d.0", 6), ("d.1.0", 7), ("g", None)]
    assert tree_flatten(TREE) == pairs
    assert tree_flatten(TREE, destination={}) == dict(pairs)
    kept = [("x", 0)]
    assert tree_flatten({"y": 1}, destination=kept) is kept
    assert kept == [("x", 0), ("y", 1)]
    assert tree_flatten({"y": [1]}, prefix=".x") == [("x.y.0", 1)]
    assert tree_flatten(5) == [("", 5)]
    assert tree_flatten({"a": [1], "b": 2}, is_leaf=lambda x: isinstance(x, list)) == [
        ("a", [1]),
        ("b", 2),
    ]
    with pytest.raises(ValueError, match="Destination should be either a list or a dictionary"):
        tree_flatten(TREE, destination=())


def test_unflatten():
    tree = {"a": [1, 2, {"b": 3}], "c": {"d": [4]}}
    assert tree_unflatten(tree_flatten(tree)) == tree
    assert tree_unflatten(tree_flatten(tree, destination={})) == tree
    assert tree_unflatten([("", 7)]) == 7
    assert tree_unflatten([]) == []
    # Missing indices become empty dictionaries, and the order of the pairs does not matter.
    assert tree_unflatten([("3.x", 1), ("1", 2)]) == [{}, 2, {}, {"x": 1}]
    # Not a list if a key is no number, or if two are the same number.
    assert tree_unflatten([("0", 1), ("x", 2)]) == {"0": 1, "x": 2}
    assert tree_unflatten([("1", 1), ("01", 2)]) == {"1": 1, "01": 2}


def test_reduce():
    assert tree_reduce(lambda a, b: a + b, [1, (2, {"x": 3})]) == 6
    assert tree_reduce(lambda a, b: a + [b], {"x": 1, "y": [2]}, []) == [1, 2]
    assert tree_reduce(lambda a, b: a + b, {}, 5) == 5
    assert tree_reduce(lambda a, b: a + b, []) is None
    assert tree_reduce(lambda a, b: a + len(b), [[1, 2], [3]], 0, lambda x: len(x) < 3) == 2


def test_merge():
    assert tree_merge({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}, "e": [4]}) == {
        "a": 1,
        "b": {"c": 2, "d": 3},
        "e": [4],
    }
    assert list(tree_merge({"z": 1, "a": 2}, {"m": 3})) == ["z", "a", "m"]
    assert tree_merge([1, {}], [{}, 2, 3]) == [1, 2, 3]
    assert tree_merge(Pair(1, None), Pair(None, 2)) == Pair(1, 2)
    assert tree_merge([1, [2]], [3, [4]], lambda a, b: a + b) == [4, [6]]
    assert tree_merge([], []) == []
    assert tree_merge(None, 3) == 3
    assert tree_merge(0, None) == 0


@pytest.mark.parametrize("a, b", [([1], [2]), ([1], {"a": 1}), (1, 2), (None, None)])
def test_merge_needs_a_function(a, b):
    with pytest.raises(ValueError, match="no merge function was provided"):
        tree_merge(a, b)


def test_merge_of_two_kinds():
    with pytest.raises(ValueError, match="Cannot merge dict with list"):
        tree_merge({}, [])
