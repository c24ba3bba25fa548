"""Trees: nested lists, tuples and dictionaries whose leaves are anything else, mostly arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any, overload

Leaf = Callable[[Any], bool] | None


def _entries(tree: Any, is_leaf: Leaf) -> Iterable[tuple[Any, Any]] | None:
    """Keys and subtrees of a node, None if it is a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    if isinstance(tree, dict):
        return tree.items()
    return enumerate(tree) if isinstance(tree, (list, tuple)) else None


def _sequence_like(model: list | tuple, values: Iterable) -> Any:
    """A sequence of the model's type; named tuples take their fields as separate arguments."""
    kind = type(model)
    return kind(*values) if hasattr(model, "_fields") else kind(values)


def _node_like(model: Any, entries: Iterable[tuple[Any, Any]]) -> Any:
    """A node of the model's kind with these keys and subtrees; dictionaries become plain ones."""
    if isinstance(model, dict):
        return dict(entries)
    return _sequence_like(model, (value for _, value in entries))


def tree_map(fn: Callable, tree: Any, *rest: Any, is_leaf: Leaf = None) -> Any:
    """A tree of the same structure with ``fn`` applied to every leaf.

    Args:
        fn: Called with a leaf of ``tree``, followed by what ``rest`` have in its place.
        tree: The tree that decides about the structure.
        rest: Trees that contain at least the keys of ``tree``.
        is_leaf: If given, a node for which it is true counts as a leaf.
    """
    entries = _entries(tree, is_leaf)
    if entries is None:
        return fn(tree, *rest)
    return _node_like(
        tree,
        (
            (key, tree_map(fn, child, *(other[key] for other in rest), is_leaf=is_leaf))
            for key, child in entries
        ),
    )


def tree_map_with_path(
    fn: Callable, tree: Any, *rest: Any, is_leaf: Leaf = None, path: Any = None
) -> Any:
    """As :func:`tree_map`, but the first argument of ``fn`` is the leaf's path.

    A path joins keys and indices by dots, as in ``"layers.0.weight"``; with ``path`` it begins
    there. Of a tree that is a leaf itself the path is ``path``.
    """
    entries = _entries(tree, is_leaf)
    if entries is None:
        return fn(path, tree, *rest)
    prefix = f"{path}." if path else ""
    return _node_like(
        tree,
        (
            (
                key,
                tree_map_with_path(
                    fn,
                    child,
                    *(other[key] for other in rest),
                    is_leaf=is_leaf,
                    path=f"{prefix}{key}",
                ),
            )
            for key, child in entries
        ),
    )


def _collect(tree: Any, prefix: str, is_leaf: Leaf, found: list[tuple[str, Any]]) -> None:
    """Append paths and leaves, depth first. The prefix has a dot more than the path."""
    entries = _entries(tree, is_leaf)
    if entries is None:
        found.append((prefix[1:], tree))
        return
    for key, child in entries:
        _collect(child, f"{prefix}.{key}", is_leaf, found)


@overload
def tree_flatten(
    tree: Any,
    prefix: str = "",
    is_leaf: Leaf = None,
    destination: list[tuple[str, Any]] | None = None,
) -> list[tuple[str, Any]]: ...


@overload
def tree_flatten(
    tree: Any, prefix: str = "", is_leaf: Leaf = None, *, destination: dict[str, Any]
) -> dict[str, Any]: ...


def tree_flatten(
    tree: Any,
    prefix: str = "",
    is_leaf: Leaf = None,
    destination: list[tuple[str, Any]] | dict[str, Any] | None = None,
) -> list[tuple[str, Any]] | dict[str, Any]:
    """The leaves of a tree with their paths, as pairs or as a dictionary.

    Args:
        tree: The tree.
        prefix: What all paths begin with; its first character, a dot, is dropped.
        is_leaf: If given, a node for which it is true counts as a leaf.
        destination: A list or dictionary to add to, and to return. A new list by default.
    """
    if destination is None:
        destination = []
    if not isinstance(destination, (list, dict)):
        raise ValueError("Destination should be either a list or a dictionary or None")
    found: list[tuple[str, Any]] = []
    _collect(tree, prefix, is_leaf, found)
    if isinstance(destination, list):
        destination.extend(found)
    else:
        destination.update(found)
    return destination


def _indices(keys: Iterable[str]) -> dict[int, str] | None:
    """Keys by the number they are, None if one is no number or two are the same."""
    keys = list(keys)
    try:
        numbers = {int(key): key for key in keys}
    except ValueError:
        return None
    return numbers if len(numbers) == len(keys) else None


def tree_unflatten(tree: list[tuple[str, Any]] | dict[str, Any]) -> Any:
    """The tree that :func:`tree_flatten` made ``tree`` of.

    Levels whose keys are all numbers become lists, with ``{}`` for the indices that are missing;
    all others become dictionaries.
    """
    items = list(tree.items() if isinstance(tree, dict) else tree)
    if len(items) == 1 and items[0][0] == "":
        return items[0][1]

    branches: dict[str, list[tuple[str, Any]]] = {}
    for path, value in items:
        key, _, below = path.partition(".")
        branches.setdefault(key, []).append((below, value))

    numbers = _indices(branches)
    if numbers is None:
        return {key: tree_unflatten(branch) for key, branch in branches.items()}
    result: list[Any] = []
    for index in sorted(numbers):
        result.extend({} for _ in range(len(result), index))
        result.append(tree_unflatten(branches[numbers[index]]))
    return result


def tree_reduce(fn: Callable, tree: Any, initializer: Any = None, is_leaf: Leaf = None) -> Any:
    """All leaves joined from left to right by ``fn(so_far, leaf)``.

    The first leaf starts, unless an ``initializer`` is given, which is what empty trees give, too.
    """
    if is_leaf is not None and is_leaf(tree):
        children = None
    elif isinstance(tree, dict):
        children = tree.values()
    else:
        children = tree if isinstance(tree, (list, tuple)) else None
    if children is None:
        return tree if initializer is None else fn(initializer, tree)
    for child in children:
        initializer = tree_reduce(fn, child, initializer, is_leaf)
    return initializer


def _is_empty_node(tree: Any) -> bool:
    return isinstance(tree, (dict, list, tuple)) and not tree


def tree_merge(tree_a: Any, tree_b: Any, merge_fn: Callable | None = None) -> Any:
    """One tree with everything that is in either of two.

    Args:
        tree_a, tree_b: Trees. None and empty nodes give way to what the other one has.
        merge_fn: Called with both leaves where both trees have one. Without it that is an error.
    """
    empty_a, empty_b = _is_empty_node(tree_a), _is_empty_node(tree_b)
    if empty_a and empty_b:
        if type(tree_a) is not type(tree_b):
            raise ValueError(f"Cannot merge {type(tree_a).__name__} with {type(tree_b).__name__}")
        return type(tree_a)()
    nothing_a, nothing_b = empty_a or tree_a is None, empty_b or tree_b is None
    if nothing_a != nothing_b:
        return tree_b if nothing_a else tree_a

    if isinstance(tree_a, (list, tuple)) and isinstance(tree_b, (list, tuple)):
        pairs = zip_longest(tree_a, tree_b)
        return _sequence_like(tree_a, (tree_merge(a, b, merge_fn) for a, b in pairs))
    if isinstance(tree_a, dict) and isinstance(tree_b, dict):
        keys = {**tree_a, **tree_b}
        return {key: tree_merge(tree_a.get(key), tree_b.get(key), merge_fn) for key in keys}
    if merge_fn is None:
        raise ValueError(
            "Trees contain elements at the same locations but no merge function was provided"
        )
    return merge_fn(tree_a, tree_b)
