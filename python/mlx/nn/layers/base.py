"""Module, which all layers and models derive from."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mlx.core as mx
from mlx.utils import tree_flatten, tree_unflatten

Filter = Callable[["Module", str, Any], bool]


class Module(dict):
    """A part of a neural network: parameters, other modules, and a function of both.

    Arrays, dictionaries (so modules, too), lists and tuples that are assigned to attributes are
    the module's state, kept in the dictionary that a module is; every other attribute is an
    ordinary one. Parameters are the arrays in that state, at any depth of modules, dictionaries
    and lists, whose name does not begin with an underscore::

        class MLP(nn.Module):
            def __init__(self, dims: int, hidden: int):
                super().__init__()
                self.up = nn.Linear(dims, hidden)
                self.down = nn.Linear(hidden, dims)

            def __call__(self, x):
                return self.down(nn.relu(self.up(x)))

        model = MLP(8, 32)
        mx.eval(model.parameters())
    """

    __call__: Callable

    def __init__(self):
        """Subclasses call this before they set an attribute."""
        self._no_grad = set()
        self._training = True

    @property
    def training(self) -> bool:
        """Whether the module is trained, see :meth:`train`."""
        return self._training

    @property
    def state(self) -> Module:
        """The module itself: its state as a tree, not a copy, for mx.compile and mx.eval."""
        return self

    def _extra_repr(self) -> str:
        """What stands between the parentheses when the module is printed."""
        return ""

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}({self._extra_repr()}"]
        for name, child in tree_flatten(self.children(), is_leaf=self.is_module):
            lines.append(textwrap.indent(f"({name}): {child!r}", prefix="  "))
        return "\n".join(lines) + ("\n)" if len(lines) > 1 else ")")

    # Only called for what is not an ordinary attribute. An absent name fails as with any object.
    def __getattr__(self, key: str) -> Any:
        value = self.get(key)
        return super().__getattribute__(key) if value is None else value

    def __setattr__(self, key: str, val: Any) -> None:
        # A name is either state or an ordinary attribute, never both.
        if not isinstance(val, (mx.array, dict, list, tuple)):
            super().__setattr__(key, val)
            self.pop(key, None)
            return
        if key not in self and hasattr(self, key):
            delattr(self, key)
        self[key] = val

    def __delattr__(self, name: str) -> None:
        if self.get(name) is None:
            super().__delattr__(name)
        else:
            del self[name]

    # Weights in files

    def load_weights(
        self, file_or_weights: str | list[tuple[str, mx.array]], strict: bool = True
    ) -> Module:
        """Take parameters from a file or from a list, and return the module.

        Args:
            file_or_weights: Path of an ``.npz`` or ``.safetensors`` file, or pairs of a
                parameter's path, such as ``"layers.0.weight"``, and an array.
            strict: Whether exactly the module's parameters must be there, in the same shapes.
        """
        weights = file_or_weights
        if isinstance(weights, str):
            weights = list(mx.load(weights).items())
        if strict:
            _check_weights(dict(weights), tree_flatten(self.parameters(), destination={}))
        if len(weights) != 0:
            self.update(tree_unflatten(weights), strict=False)
        return self

    def save_weights(self, file: str) -> None:
        """Write all parameters to a file, whose name ends in ``.npz`` or ``.safetensors``."""
        weights = tree_flatten(self.parameters(), destination={})
        if file.endswith(".npz"):
            mx.savez(file, **weights)
        elif file.endswith(".safetensors"):
            mx.save_safetensors(file, weights)
        else:
            raise ValueError(
                f"Unsupported file extension for {file}. Use '.npz' or '.safetensors'."
            )

    # What belongs to a module

    @staticmethod
    def is_module(value: Any) -> bool:
        """Whether a value is a module."""
        return isinstance(value, Module)

    @staticmethod
    def valid_child_filter(module: Module, key: str, value: Any) -> bool:
        """The filter of :meth:`children`."""
        return isinstance(value, (dict, list))

    @staticmethod
    def valid_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """The filter of :meth:`parameters`."""
        return isinstance(value, (dict, list, mx.array)) and not key.startswith("_")

    @staticmethod
    def trainable_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """The filter of :meth:`trainable_parameters`."""
        return Module.valid_parameter_filter(module, key, value) and key not in module._no_grad

    def filter_and_map(
        self,
        filter_fn: Filter,
        map_fn: Callable | None = None,
        is_leaf_fn: Filter | None = None,
    ) -> dict:
        """The part of the state that passes a filter, as plain dictionaries and lists.

        All three functions but ``map_fn`` get the module, the name in that module (``"a.b.0"`` for
        what lies in dictionaries and lists of the attribute ``a``) and the value.

        Args:
            filter_fn: Whether to keep the value. In a list ``{}`` takes the place of what is not
                kept, as it does in a dictionary that is no module.
            map_fn: What to do with a leaf; it stays as it is by default.
            is_leaf_fn: What a leaf is; by default what is no module, dictionary or list.
        """
        selection = _Selection(filter_fn, map_fn or _identity, is_leaf_fn or _is_no_container)
        return selection.of_module(self)

    def parameters(self) -> dict:
        """All parameters, as a tree."""
        return self.filter_and_map(self.valid_parameter_filter)

    def trainable_parameters(self) -> dict:
        """The parameters that are not frozen, as a tree."""
        return self.filter_and_map(self.trainable_parameter_filter)

    def children(self) -> dict:
        """The modules that this one holds directly, as a tree."""
        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=_is_child)

    def leaf_modules(self) -> dict:
        """The modules within this one that hold no others, as a tree."""
        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=_is_leaf_module)

    def apply_to_modules(self, apply_fn: Callable[[str, Module], Any]) -> Module:
        """Call a function with path and module, for this module (path ``""``) and all within it."""
        pending = [("", self)]
        while pending:
            path, module = pending.pop()
            apply_fn(path, module)
            prefix = f".{path}" if path else ""
            tree_flatten(module.children(), prefix, self.is_module, destination=pending)
        return self

    def modules(self) -> list[Module]:
        """This module and all within it."""
        return [module for _, module in self.named_modules()]

    def named_modules(self) -> list[tuple[str, Module]]:
        """This module and all within it, with their paths."""
        found: list[tuple[str, Module]] = []
        self.apply_to_modules(lambda path, module: found.append((path, module)))
        return found

    # Changing what it holds

    def update(self, parameters: dict, strict: bool = True) -> Module:
        """Replace parameters by those of a tree, which may have only some, and return the module.

        Args:
            parameters: A tree like that of :meth:`parameters`.
            strict: Whether names that the module does not have, and values that are no arrays,
                are errors.
        """
        _update_parameters(self, parameters, strict)
        return self

    def apply(
        self,
        map_fn: Callable[[mx.array], mx.array],
        filter_fn: Filter | None = None,
    ) -> Module:
        """Replace every parameter by a function of it, and return the module.

        Args:
            map_fn: For example ``lambda x: x.astype(mx.bfloat16)``.
            filter_fn: Which ones, see :meth:`filter_and_map`; all parameters by default.
        """
        return self.update(self.filter_and_map(filter_fn or self.valid_parameter_filter, map_fn))

    def update_modules(self, modules: dict, strict: bool = True) -> Module:
        """Replace modules within this one by those of a tree, and return the module.

        Args:
            modules: A tree like that of :meth:`children` or :meth:`leaf_modules`.
            strict: Whether names that are not there, and values that are no modules, are errors.
        """
        _update_modules(self, modules, strict)
        return self

    def set_dtype(
        self,
        dtype: mx.Dtype,
        predicate: Callable[[mx.Dtype], bool] | None = lambda x: mx.issubdtype(x, mx.floating),
    ) -> None:
        """Convert parameters to a type.

        Args:
            dtype: The new type.
            predicate: Which of the present types are converted: those of floating point numbers by
                default, all if it is None.
        """

        def convert(parameter: mx.array) -> mx.array:
            if predicate is None or predicate(parameter.dtype):
                return parameter.astype(dtype)
            return parameter

        self.apply(convert)

    # Training

    def freeze(
        self,
        *,
        recurse: bool = True,
        keys: str | list[str] | None = None,
        strict: bool = False,
    ) -> Module:
        """Exclude parameters from training, and return the module.

        Args:
            recurse: Whether the modules within this one are meant, too.
            keys: Names of parameters, for example ``"bias"``; all by default.
            strict: Whether a name that is nowhere is an error.
        """

        def freeze_one(module: Module, strict: bool) -> None:
            names = _own_parameter_names(module) if keys is None else _as_list(keys)
            _check_names([module], names, strict)
            module._no_grad.update(names)

        return self._change_frozen(freeze_one, recurse, keys, strict)

    def unfreeze(
        self,
        *,
        recurse: bool = True,
        keys: str | list[str] | None = None,
        strict: bool = False,
    ) -> Module:
        """Include parameters in training again; the arguments are those of :meth:`freeze`."""

        def unfreeze_one(module: Module, strict: bool) -> None:
            if keys is None:
                module._no_grad.clear()
                return
            _check_names([module], _as_list(keys), strict)
            module._no_grad.difference_update(_as_list(keys))

        return self._change_frozen(unfreeze_one, recurse, keys, strict)

    def _change_frozen(
        self,
        change: Callable[[Module, bool], None],
        recurse: bool,
        keys: str | list[str] | None,
        strict: bool,
    ) -> Module:
        if not recurse:
            change(self, strict)
            return self
        if keys is not None:
            # It is enough if one of the modules has the name.
            _check_names(self.modules(), _as_list(keys), strict)
            strict = False
        return self.apply_to_modules(lambda _, module: change(module, strict))

    def _set_training_mode(self, mode: bool) -> None:
        self._training = mode

    def train(self, mode: bool = True) -> Module:
        """Say whether this module and all within it are being trained, and return the module.

        Dropout and batch normalization, for example, do different things in training.
        """
        return self.apply_to_modules(lambda _, module: module._set_training_mode(mode))

    def eval(self) -> Module:
        """The same as ``train(False)``."""
        return self.train(False)


def _identity(value: Any) -> Any:
    return value


def _as_list(keys: str | list[str]) -> list[str]:
    return keys if isinstance(keys, list) else [keys]


def _is_no_container(module: Module, key: str, value: Any) -> bool:
    return not isinstance(value, (dict, list))


def _is_child(module: Module, key: str, value: Any) -> bool:
    return isinstance(value, Module)


def _is_leaf_module(module: Module, key: str, value: Any) -> bool:
    return isinstance(value, Module) and not tree_flatten(value.children())


def _own_parameter_names(module: Module) -> list[str]:
    """Paths of the parameters that lie in a module but in no module within it."""
    own = module.filter_and_map(
        lambda m, key, value: (
            not isinstance(value, Module) and m.valid_parameter_filter(m, key, value)
        )
    )
    return [name for name, _ in tree_flatten(own)]


def _check_names(modules: list[Module], names: list[str], strict: bool) -> None:
    if not strict:
        return
    for name in names:
        if not any(name in module for module in modules):
            raise KeyError(f"Module doesn't contain member {name}.")


def _check_weights(new: dict[str, Any], current: dict[str, mx.array]) -> None:
    """Errors unless the new weights have the names, types and shapes of the current ones."""
    if extra := sorted(new.keys() - current.keys()):
        names = ",\n".join(extra)
        raise ValueError(f"Received {len(extra)} parameters not in model: \n{names}.")
    if missing := sorted(current.keys() - new.keys()):
        names = ",\n".join(missing)
        raise ValueError(f"Missing {len(missing)} parameters: \n{names}.")
    for name, value in current.items():
        if not isinstance(new[name], mx.array):
            raise ValueError(
                f"Expected mx.array but received {type(new[name])} for parameter {name}"
            )
        if new[name].shape != value.shape:
            raise ValueError(
                f"Expected shape {value.shape} but received shape {new[name].shape}"
                f" for parameter {name}"
            )


class _Selection(NamedTuple):
    """The three functions of filter_and_map."""

    keeps: Filter
    convert: Callable
    is_leaf: Filter

    def of_module(self, module: Module) -> dict:
        return {
            key: self._convert(module, key, value)
            for key, value in module.items()
            if self.keeps(module, key, value)
        }

    def _convert(self, module: Module, key: str, value: Any) -> Any:
        if self.is_leaf(module, key, value):
            return self.convert(value)
        if isinstance(value, Module):
            return self.of_module(value)
        if isinstance(value, dict):
            return {k: self._within(module, f"{key}.{k}", v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._within(module, f"{key}.{i}", v) for i, v in enumerate(value)]
        raise RuntimeError("Unexpected leaf found while traversing the module")

    def _within(self, module: Module, key: str, value: Any) -> Any:
        """What stands in a dictionary or list of a module: nothing is left out there."""
        return self._convert(module, key, value) if self.keeps(module, key, value) else {}


def _invalid_type(value: Any) -> ValueError:
    return ValueError(f"Received invalid type: {type(value).__name__}.")


def _places(target: Any, new: Any, strict: bool, kind: str) -> Iterator[tuple[str | int, Any, Any]]:
    """Key, present value and new value of whatever both a tree and one with new values have."""
    if isinstance(new, dict):
        for key, value in new.items():
            if key in target:
                yield key, target[key], value
            elif strict:
                raise ValueError(f'Module does not have {kind} named "{key}".')
    elif isinstance(new, list):
        for i, value in enumerate(new):
            if i < len(target):
                yield i, target[i], value
            elif strict:
                raise ValueError(
                    f"List index {i} is out of bounds for destination of length {len(target)}."
                )
    elif strict:
        raise _invalid_type(new)


def _update_parameters(target: Any, new: Any, strict: bool) -> None:
    for key, present, value in _places(target, new, strict, "parameter"):
        if not isinstance(present, mx.array):
            _update_parameters(present, value, strict)
        elif strict and not isinstance(value, mx.array):
            raise _invalid_type(value)
        else:
            target[key] = value


def _update_modules(target: Any, new: Any, strict: bool) -> None:
    for key, present, value in _places(target, new, strict, "sub-module"):
        if isinstance(present, Module) and isinstance(value, Module):
            target[key] = value
        elif isinstance(present, (dict, list)):
            _update_modules(present, value, strict)
        elif strict and value != {}:
            raise _invalid_type(value)
