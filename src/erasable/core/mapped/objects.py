"""Conversion of objects to plain values and arrays, and back, for the file of an accelerator.

The law kept here: an object comes back with the same structure. Shared objects stay shared, and
views of an array stay views of it, so that a row that is overwritten in one place is overwritten in
all. Only hooks of our own classes are called; no foreign class is loaded.
"""

from __future__ import annotations

import base64
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from erasable.core._derived import Derived
from erasable.core.arrays import of_objects
from erasable.core.mapped.texts import Names, as_texts
from erasable.core.passes import Stored
from erasable.core.persistent import Persistent, UnsavableError, attributes_of
from erasable.core.row_arrays import Slot
from erasable.core.sparse import csr_of

__all__ = ["BlockBytes", "address_of", "put_together", "take_apart"]


class BlockBytes:
    """Slices of the bytes of a matrix, which is read block by block; forgotten rows are 0."""

    def __init__(self, matrix: Stored) -> None:
        self._matrix = matrix
        self._width = matrix.shape[1] * matrix.dtype.itemsize
        self.size = matrix.shape[0] * self._width
        self._last: tuple[int, NDArray[np.uint8]] | None = None

    def __getitem__(self, at: slice) -> NDArray[np.uint8]:
        """Copy some bytes, from `start` to `stop`, of as many blocks as these lie in."""
        starts = self._matrix.starts * self._width
        out = np.empty(at.stop - at.start, np.uint8)
        number = int(np.searchsorted(starts, at.start, side="right")) - 1
        done = 0
        while done < out.size:
            low = at.start + done - int(starts[number])
            part = self._block(number)[low : low + out.size - done]
            out[done : done + part.size] = part
            done += part.size
            number += 1
        return out

    def _block(self, number: int) -> NDArray[np.uint8]:
        if self._last is None or self._last[0] != number:
            matrix = self._matrix
            first, stop = matrix.starts[number : number + 2].tolist()
            values = (
                matrix.block(number, gaps=True) if stop > first else np.empty((0, 0), matrix.dtype)
            )
            if matrix.gone is not None:
                values[matrix.gone[first:stop]] = 0.0
            self._last = number, values.ravel().view(np.uint8)
        return self._last[1]


_PLAIN = (type(None), bool, int, float, str)
_SMALL = 1024  # bytes of an array that is stored among the plain values
_MANY = 256  # a longer array of objects is kept as its distinct values, and their numbers
_PACKAGES = ("erasable.", "sklearn.")


def take_apart(root: Any) -> tuple[Any, list[NDArray[np.uint8]]]:
    """Describe an object by values for JSON and by arrays of bytes.

    It is made of plain values, containers, arrays, and objects of classes of erasable, of which a
    `Persistent` says which attributes are kept; anything else raises UnsavableError. The arrays are
    the memory of those that own theirs, or `BlockBytes` of matrices that are stored elsewhere.
    """
    apart = _Apart()
    return apart.describe(root), apart.arrays


def put_together(description: Any, arrays: Sequence[NDArray[np.uint8]]) -> Any:
    """Make the object that `take_apart` described; its arrays are views of `arrays`."""
    together = _Together(arrays)
    made = together.make(description)
    for after_reading in together.hooks:
        after_reading()
    return made


def base_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def memory_of(base: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of a contiguous array, without copying it."""
    flat = base.ravel(order="K")
    if base.size and not np.shares_memory(flat[:1], base):
        raise UnsavableError("an array does not lie in one piece; expected one that does")
    return np.asarray(flat).view(np.uint8)


class _Apart:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no `id` is given twice
        self._bases: dict[int, Any] = {}
        self._texts: dict[int, Any] = {}
        self.arrays: list[Any] = []

    def describe(self, value: Any) -> Any:
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            return value
        if isinstance(value, Names):
            value = self._texts.setdefault(id(value.array), as_texts(value.array))
            self._alive.append(value)
        value = self._texts.get(id(value), value)
        if (number := self._numbers.get(id(value))) is not None:
            return ["again", number]
        number = self._numbers[id(value)] = len(self._numbers)
        self._alive.append(value)
        return self._describe(value, number)

    def _describe(self, value: Any, number: int) -> Any:
        kind = type(value)
        if kind is dict:
            pairs = [[self.describe(k), self.describe(v)] for k, v in value.items()]
            return ["dict", number, pairs]
        if kind in (list, tuple, set, frozenset):
            return [kind.__name__, number, [self.describe(each) for each in value]]
        if isinstance(value, np.ndarray):
            return self._array(value, number)
        if isinstance(value, Stored) and not value.lasting:
            return self._stored(value, number)
        if isinstance(value, np.generic):
            return ["scalar", number, value.dtype.str, base64.b64encode(value.tobytes()).decode()]
        if isinstance(value, bytes):
            name = "" if kind is bytes else _name_of(kind)
            return ["bytes", number, name, base64.b64encode(value).decode()]
        if isinstance(value, np.dtype) or (kind is type and issubclass(value, np.generic)):
            return ["dtype", number, isinstance(value, np.dtype), np.dtype(value).str]
        if kind is csr_array:
            parts = [self.describe(each) for each in (value.data, value.indices, value.indptr)]
            return ["csr", number, parts, list(value.shape)]
        if kind is object:
            return ["object", number]
        if kind is slice:
            limits = value.start, value.stop, value.step
            return ["slice", number, [self.describe(each) for each in limits]]
        if isinstance(value, np.ufunc) and value is getattr(np, name := value.__name__, None):
            return ["ufunc", number, name]
        return self._instance(value, number)

    def _instance(self, value: Any, number: int) -> Any:
        kind = type(value)
        if isinstance(value, tuple):  # a named one
            return ["named", number, _name_of(kind), [self.describe(each) for each in value]]
        attributes = (
            value._kept_attributes() if isinstance(value, Persistent) else attributes_of(value)
        )
        pairs = [[name, self.describe(each)] for name, each in attributes.items()]
        return ["instance", number, _name_of(kind), pairs]

    def _array(self, array: NDArray[Any], number: int) -> Any:
        shape = list(array.shape)
        if array.dtype == object:
            return self._objects(array, number)
        if array.dtype.kind not in "biufcSUmM":
            raise UnsavableError(f"an array of {array.dtype} cannot be kept")
        if array.size == 0:
            return ["empty", number, array.dtype.str, shape]
        base = base_of(array)
        offset = address_of(array) - address_of(base)
        place = ["view", number, array.dtype.str, shape, list(array.strides), offset]
        return [*place, self._base(base)]

    def _stored(self, matrix: Stored, number: int) -> Any:
        """Describe a matrix that is copied block by block, and comes back as an array."""
        if isinstance(matrix, Derived):
            raise UnsavableError("a table that is made of stored records cannot be kept")
        if matrix.dtype == object:
            return self._objects(matrix.whole(), number)
        shape, width = list(matrix.shape), matrix.dtype.itemsize
        strides = [shape[1] * width, width]
        self.arrays.append(BlockBytes(matrix))
        return ["view", number, matrix.dtype.str, shape, strides, 0, len(self.arrays) - 1]

    def _base(self, base: NDArray[Any]) -> Any:
        """Return the number of a base among the arrays; for a small one, also its bytes, once."""
        if (known := self._bases.get(id(base))) is not None:
            return known
        self._alive.append(base)
        if base.nbytes > _SMALL:
            self._bases[id(base)] = len(self.arrays)
            self.arrays.append(memory_of(base))
            return self._bases[id(base)]
        number = len(self._numbers)
        self._numbers[-1 - number] = number  # of its own: the array and its memory are two
        self._bases[id(base)] = ["again", number]
        return ["memory", number, base64.b64encode(memory_of(base).tobytes()).decode()]

    def _objects(self, array: NDArray[Any], number: int) -> Any:
        values = array.ravel().tolist()
        shape = list(array.shape)
        if array.size <= _MANY:
            return ["objects", number, shape, [self.describe(each) for each in values]]
        codes: dict[tuple[type, Any], int] = {}
        own = [codes.setdefault((type(each), _hashable(each)), len(codes)) for each in values]
        distinct = [values[place] for place in np.unique(own, return_index=True)[1].tolist()]
        told = [self.describe(each) for each in distinct]
        return ["coded", number, shape, told, self.describe(np.array(own, dtype=np.int32))]


class _Together:
    def __init__(self, arrays: Sequence[NDArray[np.uint8]]) -> None:
        self._arrays = arrays
        self._made: dict[int, Any] = {}
        self.hooks: list[Callable[[], None]] = []

    def make(self, told: Any) -> Any:
        if not isinstance(told, list):
            return told
        kind, first, *rest = told
        if kind == "again":
            return self._made[first]
        made = getattr(self, f"_make_{kind}")(first, *rest)
        self._made[first] = made
        return made

    def _make_dict(self, number: int, pairs: list[Any]) -> dict[Any, Any]:
        made = self._made[number] = dict[Any, Any]()
        for key, value in pairs:
            made[self.make(key)] = self.make(value)
        return made

    def _make_list(self, number: int, items: list[Any]) -> list[Any]:
        made = self._made[number] = list[Any]()
        made.extend(self.make(each) for each in items)
        return made

    def _make_tuple(self, number: int, items: list[Any]) -> tuple[Any, ...]:
        return tuple([self.make(each) for each in items])

    def _make_set(self, number: int, items: list[Any]) -> set[Any]:
        return {self.make(each) for each in items}

    def _make_frozenset(self, number: int, items: list[Any]) -> frozenset[Any]:
        return frozenset([self.make(each) for each in items])

    def _make_object(self, number: int) -> object:
        return object()

    def _make_slice(self, number: int, limits: list[Any]) -> slice:
        return slice(*[self.make(each) for each in limits])

    def _make_ufunc(self, number: int, name: str) -> np.ufunc:
        found = getattr(np, name, None)
        if not isinstance(found, np.ufunc):
            raise UnsavableError(f"NumPy has no function {name!r}")
        return found

    def _make_scalar(self, number: int, dtype: str, data: str) -> Any:
        return np.frombuffer(base64.b64decode(data), np.dtype(dtype))[0]

    def _make_bytes(self, number: int, name: str, data: str) -> bytes:
        kind: Any = class_of(name) if name else bytes
        made: bytes = kind(base64.b64decode(data))
        return made

    def _make_dtype(self, number: int, is_dtype: bool, name: str) -> Any:
        return np.dtype(name) if is_dtype else np.dtype(name).type

    def _make_csr(self, number: int, parts: list[Any], shape: list[int]) -> csr_array:
        data, indices, indptr = (self.make(each) for each in parts)
        return csr_of(data, indices, indptr, (shape[0], shape[1]))

    def _make_named(self, number: int, name: str, items: list[Any]) -> Any:
        return class_of(name)._make([self.make(each) for each in items])

    def _make_instance(self, number: int, name: str, pairs: list[Any]) -> Any:
        kind = class_of(name)
        lacking = _field_names(kind) - {attribute for attribute, _ in pairs}
        if lacking:
            raise UnsavableError(f"{name!r} has no {min(lacking)!r}; expected all of its fields")
        made = self._made[number] = object.__new__(kind)
        for attribute, value in pairs:
            object.__setattr__(made, attribute, self.make(value))
        if isinstance(made, Persistent):
            self.hooks.append(made._after_reading)
        return made

    def _make_empty(self, number: int, dtype: str, shape: list[int]) -> NDArray[Any]:
        return np.empty(shape, np.dtype(dtype))

    def _make_memory(self, number: int, data: str) -> NDArray[np.uint8]:
        held = bytearray(base64.b64decode(data))
        return Slot(len(held), np.uint8, held)

    def _make_view(
        self, number: int, dtype: str, shape: list[int], strides: list[int], offset: int, base: Any
    ) -> NDArray[Any]:
        memory = self._arrays[base] if isinstance(base, int) else self.make(base)
        if offset and isinstance(memory, Slot):
            memory.room = min(memory.room, offset)
        return np.ndarray(shape, np.dtype(dtype), memory, offset, strides)

    def _make_objects(self, number: int, shape: list[int], items: list[Any]) -> NDArray[Any]:
        return of_objects([self.make(each) for each in items]).reshape(shape)

    def _make_coded(
        self, number: int, shape: list[int], items: list[Any], codes: Any
    ) -> NDArray[Any]:
        distinct = of_objects([self.make(each) for each in items])
        found: NDArray[Any] = distinct[self.make(codes)].reshape(shape)
        return found


def class_of(name: str) -> Any:
    """Return a class of erasable or scikit-learn, or derived from one of erasable's.

    Raise UnsavableError for any other.
    """
    module, _, path = name.partition(":")
    try:
        if module.startswith(_PACKAGES):
            importlib.import_module(module)
        found: Any = sys.modules[module]  # no other module is imported
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, KeyError, AttributeError):
        raise UnsavableError(f"{name!r} is not there; expected a class of this version") from None
    if not isinstance(found, type):
        raise UnsavableError(f"{name!r} is no class")
    _name_of(found)
    return found


def _field_names(kind: type) -> set[str]:
    """Return the names of the fields of a data class of which files keep all."""
    chosen = issubclass(kind, Persistent) or not is_dataclass(kind)
    return set() if chosen else {each.name for each in fields(kind)}


def _name_of(kind: type) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    ours = any(base.__module__.startswith(_PACKAGES) for base in kind.__mro__)
    if not ours or "<locals>" in name:
        raise UnsavableError(f"an object of {kind.__module__}.{kind.__qualname__} cannot be kept")
    return name


def address_of(array: NDArray[Any]) -> int:
    """Return the address of the first value of an array."""
    return int(array.__array_interface__["data"][0])


def _hashable(value: Any) -> Any:
    """Return a key that tells values of a type apart; NaN does not equal itself."""
    return repr(value) if isinstance(value, float) else value
