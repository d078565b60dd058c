"""Traces of a record in a model: a search of every object and array that can be reached from it.

A trace is recognised whatever power of two it was scaled by (a grid, a mantissa in integers), as
text, as bytes in a buffer, and as the record's key on the model's own tape.
"""

from __future__ import annotations

import gc
import pickle
import types
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.tape import Tape
from erasable.utils._checks.compare import saved

_CLOSED = (
    type,
    types.ModuleType,
    types.CodeType,
    weakref.ReferenceType,
)


@dataclass(frozen=True)
class Marks:
    """Values by which a record is recognised."""

    record: int | str  # its id
    values: tuple[float, ...]  # odd whole numbers of at least 20 bits, see `data_sets.marked`
    keys: tuple[int, ...] = ()  # its 64-bit keys on the tapes of the model

    def known_to(self, model: Any) -> Marks:
        """Add the record's key on the tape of a model that draws."""
        seed = getattr(model, "seed_", None)
        if not isinstance(seed, int | np.integer):
            return self
        keys = Tape(int(seed)).record_keys(np.array([self.record], dtype=object))
        return Marks(self.record, self.values, (*self.keys, int(keys[0])))

    @property
    def mantissas(self) -> NDArray[np.float64]:
        """The values without sign and power of two."""
        return np.abs(np.frexp(np.array(self.values, dtype=np.float64))[0])

    @property
    def words(self) -> tuple[str, ...]:
        """The record in text."""
        return (str(self.record), *(str(int(abs(value))) for value in self.values))

    @property
    def patterns(self) -> tuple[bytes, ...]:
        """The record in a buffer."""
        whole = [key.to_bytes(8, "little") for key in self.keys]
        if isinstance(self.record, int):
            whole.append(self.record.to_bytes(8, "little", signed=True))
        else:
            whole.append(self.record.encode("utf-32-le"))
        for value in self.values:
            whole += [np.array(value, dtype=order).tobytes() for order in ("<f8", ">f8")]
            if np.float32(value) == value:
                whole.append(np.array(value, dtype="<f4").tobytes())
        return (*whole, *(word.encode() for word in self.words))


def reachable(root: object) -> Iterator[tuple[str, object]]:
    """Yield every object that can be reached from `root`, each once, with its path, "" for `root`.

    Classes, modules and weak references are not entered: their contents are not the object's.
    """
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [("", root)]
    alive: list[object] = []  # temporary objects must not hand their id to the next one
    while waiting:
        path, thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        alive.append(thing)
        yield path, thing
        waiting += _inside(path, thing)


def _inside(path: str, thing: object) -> list[tuple[str, object]]:
    if isinstance(thing, _CLOSED) or type(thing).__module__.split(".")[0] in ("numba", "llvmlite"):
        return []
    if isinstance(thing, np.ndarray):
        items = list(enumerate(thing.ravel().tolist())) if thing.dtype.hasobject else []
        base = [] if thing.base is None else [(f"{path}.base", thing.base)]
        return base + [(f"{path}.flat[{index}]", item) for index, item in items]
    if isinstance(thing, types.BuiltinFunctionType):
        return [(f"{path}.__self__", thing.__self__)]
    if isinstance(thing, types.FunctionType):
        held = [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, vars(thing)]
        return [(f"{path}.<function>", item) for item in held]
    if isinstance(thing, Mapping):
        found = [(f"{path}[{key!r}]", value) for key, value in list(thing.items())]
        found += [(f"{path}.keys()", key) for key in list(thing)]
    elif isinstance(thing, list | tuple):
        found = [(f"{path}[{index}]", item) for index, item in enumerate(thing)]
    else:
        named = getattr(thing, "__dict__", {})
        found = [(f"{path}.{name}", value) for name, value in named.items()]
    # All other references that the interpreter knows: slots, cells, queues, partial calls.
    # The last is walked first, so that named objects are reported by name.
    return [(f"{path}.<held>", other) for other in gc.get_referents(thing)] + found[::-1]


def _in_array(array: NDArray[Any], marks: Marks) -> bool:
    if array.dtype.kind in "iuf" and array.size:
        if array.dtype.kind in "iu":
            exact = [n for n in (marks.record, *marks.keys) if isinstance(n, int)]
            if any(array.dtype.itemsize == 8 and (array == n).any() for n in exact):
                return True
        with np.errstate(invalid="ignore"):
            mantissas = np.abs(np.frexp(array.astype(np.float64, copy=False))[0])
        if np.isin(mantissas, marks.mantissas).any():
            return True
    if array.dtype.names is not None:
        return any(_in_array(array[name], marks) for name in array.dtype.names)
    if array.dtype.kind == "O":
        return False  # its items are walked one by one
    buffer = array.tobytes()
    return any(pattern in buffer for pattern in marks.patterns)


def shows(thing: object, marks: Marks) -> bool:
    if isinstance(thing, np.ndarray):
        return _in_array(thing, marks)
    if isinstance(thing, bool | np.bool_ | None):
        return False
    if isinstance(thing, int | np.integer):
        return int(thing) in (marks.record, *marks.keys) or _in_number(float(thing), marks)
    if isinstance(thing, float | np.floating):
        return _in_number(float(thing), marks)
    if isinstance(thing, str):
        return any(word in thing for word in marks.words)
    if isinstance(thing, bytes | bytearray | memoryview):
        return any(pattern in bytes(thing) for pattern in marks.patterns)
    return False


def _in_number(value: float, marks: Marks) -> bool:
    return bool(np.isin(abs(float(np.frexp(value)[0])), marks.mantissas))


def traces(model: Any, marks: Marks) -> set[str]:
    """Return the places where a model, its state, its pickle or its file shows a record.

    They are such as "model._held.rows[3]", "state()['centers']", "the pickle".
    """
    marks = marks.known_to(model)
    pickled = pickle.dumps(model, protocol=5)
    roots: dict[str, object] = {"the pickle": pickled, "the bytes of save()": saved(model)}
    roots |= {"state()": model.state(), "model": model}
    found = {
        f"{name}{path}"
        for name, root in roots.items()
        for path, thing in reachable(root)
        if shows(thing, marks)
    }
    # The contents of a pickle may be compressed; the unpickled object is not.
    unpickled = pickle.loads(pickled)
    return found | {f"unpickled{p}" for p, t in reachable(unpickled) if shows(t, marks)}
