"""reprlib chooses a function by the name of a type, and takes our arrays for those of the module
array. Arrays that are none of those get what any other object gets."""

import array as _array
import reprlib as _reprlib

_of_module_array = _reprlib.Repr.repr_array


def _repr_array(self, x, level):
    if isinstance(x, _array.array):
        return _of_module_array(self, x, level)
    return self.repr_instance(x, level)


_reprlib.Repr.repr_array = _repr_array
