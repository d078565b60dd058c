"""Models without some of their records, which are whole again afterwards."""

from __future__ import annotations

import copy
import re
import types
import weakref
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._changing import learn_anew
from erasable.core.arrays import Ints
from erasable.core.attachment import HeldRecords
from erasable.core.changes import Delta
from erasable.core.errors import TooFewRecordsError
from erasable.core.estimator import Erasable
from erasable.core.mapped.objects import base_of
from erasable.core.matrices import memory_of

__all__ = ["OpaqueError", "Snapshot", "each_without"]

_CONSTANT = (
    type(None), bool, int, float, complex, str, bytes, range, slice, frozenset, Enum, type,
    np.generic, np.dtype, np.ufunc, np.random.RandomState, np.random.Generator, re.Pattern,
    types.BuiltinFunctionType, types.ModuleType, weakref.ReferenceType,
)  # fmt: skip
"""What is not entered. A generator given as a seed is drawn from at `fit` alone."""

_CONTAINERS = (list, dict, set)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE, of all classes made by class statements
_POINTER = object.__basicsize__ // 2
_UNSET = object()


class OpaqueError(Exception):
    """A model holds an object that Python cannot inspect."""


class Snapshot:
    """What a model is, remembered in order to be put back any number of times.

    Parameters
    ----------
    model : object
        Everything that can be reached from it is remembered.
    records : HeldRecords
        Those that it holds, which a deletion that is not released does not change.

    Raises
    ------
    OpaqueError
        Something in it may change without Python seeing it: an object of compiled code.

    Examples
    --------
    >>> class Model:
    ...     def __init__(self):
    ...         self.count, self.sums, self.names = 2, np.array([1.0, 2.0]), ["a", "b"]
    >>> model = Model()
    >>> from erasable import Records
    >>> snapshot = Snapshot(model, Records([[0.0]]))
    >>> model.count, model.sums[0], model.names[:] = 1, 9.0, ["b"]
    >>> snapshot.restore()
    >>> model.count, model.sums, model.names
    (2, array([1., 2.]), ['a', 'b'])
    """

    def __init__(self, model: object, records: HeldRecords) -> None:
        self._arrays: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._lists: list[tuple[Any, Any]] = []
        self._mappings: list[tuple[Any, Any]] = []
        self._objects: list[tuple[Any, dict[str, Any]]] = []
        self._slots: list[tuple[Any, list[tuple[str, Any]]]] = []
        shared = [records, *vars(records).values()]
        self._seen = {id(thing): thing for thing in shared + _buffers(records)}
        self._walk(model)

    def restore(self) -> None:
        """Put everything back."""
        for thing, items in self._objects:
            attributes = thing.__dict__
            attributes.clear()
            attributes.update(items)
        for thing, values in self._slots:
            for name, value in values:
                if value is not _UNSET:
                    object.__setattr__(thing, name, value)
                elif hasattr(thing, name):
                    object.__delattr__(thing, name)
        for thing, items in self._lists:
            thing[:] = items
        for thing, items in self._mappings:
            thing.clear()
            thing.update(items)
        for array, content in self._arrays:
            np.copyto(array, content)

    # -- remembering ---------------------------------------------------------------------------

    def _walk(self, model: object) -> None:
        waiting = [model]
        while waiting:
            thing = waiting.pop()
            if isinstance(thing, np.ndarray):
                thing = base_of(thing)
            if isinstance(thing, _CONSTANT) or id(thing) in self._seen:
                continue
            self._seen[id(thing)] = thing
            if isinstance(thing, np.ndarray):
                if thing.flags.writeable:
                    self._arrays.append((thing, thing.copy(order="K")))
                if thing.dtype.hasobject:
                    waiting += thing.ravel().tolist()
            elif isinstance(thing, tuple):
                waiting += thing
            elif isinstance(thing, types.FunctionType | types.MethodType | partial):
                waiting += _inside_function(thing)
            else:
                waiting += self._remember(thing)

    def _remember(self, thing: Any) -> list[Any]:
        """Remember an object that can change, and return what it holds."""
        _refuse_opaque(thing)
        held: list[Any] = []
        if isinstance(thing, list):
            self._lists.append((thing, list(thing)))
            held += thing
        elif isinstance(thing, dict):
            self._mappings.append((thing, dict(thing)))
            held += thing.values()
        elif isinstance(thing, set):
            self._mappings.append((thing, set(thing)))
        attributes = getattr(thing, "__dict__", None)
        if attributes is not None:
            self._objects.append((thing, dict(attributes)))
            held += attributes.values()
        names = _slot_names(type(thing))
        if names:
            values = [(name, getattr(thing, name, _UNSET)) for name in names]
            self._slots.append((thing, values))
            held += [value for _, value in values if value is not _UNSET]
        return held


def _buffers(records: HeldRecords) -> list[Any]:
    matrix = records.matrix
    held = [*memory_of(matrix), records.y, records.weights]
    held += [records.ids, records.groups]
    return [base_of(array) for array in held if array is not None]


def _inside_function(thing: Any) -> list[Any]:
    if isinstance(thing, types.MethodType):
        return [thing.__self__]
    if isinstance(thing, partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    cells = [cell.cell_contents for cell in thing.__closure__ or ()]
    return [*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]


def _refuse_opaque(thing: object) -> None:
    """Refuse instances that are larger than their attributes: compiled code keeps the rest."""
    kind = type(thing)
    base = next((each for each in _CONTAINERS if issubclass(kind, each)), object)
    # A class statement adds a pointer for each slot, for the attributes and for weak references.
    largest = base.__basicsize__ + (len(_slot_names(kind)) + 2) * _POINTER
    made = [each for each in kind.__mro__ if each not in (base, object)]
    if kind.__basicsize__ > largest or not all(each.__flags__ & _HEAP_TYPE for each in made):
        raise OpaqueError(f"a {kind.__module__}.{kind.__qualname__} cannot be looked into")


def _slot_names(kind: type) -> list[str]:
    names: list[str] = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def each_without(model: Erasable, parts: Iterable[Ints]) -> Iterator[Erasable]:
    """Yield a model without some records, for each part of them; it is whole again in between.

    Parameters
    ----------
    model : Erasable
        Fitted. No other code may use it meanwhile; what is yielded is valid until the next.
    parts : iterable of ndarray of int64
        Positions of live records.

    Yields
    ------
    Erasable
        Mostly `model` itself, and a copy of it where it cannot be put back.

    Raises
    ------
    TooFewRecordsError
        What would be left cannot be learned from.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0], [5.0], [7.0]])
    >>> parts = [np.array([3]), np.array([0, 1])]
    >>> [without.data_max_.tolist() for without in each_without(model, parts)]
    [[5.0], [7.0]]
    >>> model.data_max_, len(model.ids_)
    (array([7.]), 4)
    """
    held = model._attached()
    model._make_ready()
    try:
        snapshot = Snapshot(model, held.records)
    except OpaqueError:
        snapshot = None
    for rows in parts:
        _refuse(model, rows)
        if snapshot is None:
            copied = copy.deepcopy(model)
            copied.delete(held.records.ids[rows].tolist(), digest=False)
            yield copied
            continue
        # As in `Erasable.delete`, but no record is released: all of them come back.
        try:
            held.exclude(rows)
            if model._update(Delta(rows)) is None:
                learn_anew(model, held, model._map)
            model._info.settle(rows, None)
            yield model
        finally:
            snapshot.restore()


def _refuse(model: Erasable, rows: Ints) -> None:
    left = model._attached().n_live - rows.size
    minimum = model._minimum_records()
    if left < minimum:
        raise TooFewRecordsError(
            f"leaving out {rows.size} records would leave {left}; {type(model).__name__} needs at "
            f"least {minimum}; fit on more records, or in smaller groups"
        )
    model._check_deletion(rows)
