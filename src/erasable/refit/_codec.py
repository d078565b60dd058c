"""Fitted attributes as plain values, and back: arrays, numbers, strings, and dicts of these.

A pickle would do, but for three things: its bytes change on a round trip, it runs what it names,
and it keeps what is no function of the data: times, addresses, counts of queries, the bytes
between the fields of compiled structures. So a fitted estimator is walked instead. Equal models
give equal trees, and a tree gives the model back.

Every value that is not plain is a dict that says what it is under ``"is"``. An object that is met a
second time is given by the number of its first time, so that it is shared again. Arrays are not:
whether two are one depends on which conversions had nothing to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.sparse import csc_array, csc_matrix, csr_array, csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from erasable.core.errors import ArtifactError, InvalidParameterError
from erasable.core.params import function_path
from erasable.refit import _objects
from erasable.refit._boosters import decode_booster, encode_booster, is_booster
from erasable.refit._names import Known, find, is_named, resolves

_PLAIN = (type(None), bool, int, float, str)
_SPARSE = {kind.__name__: kind for kind in (csc_array, csc_matrix, csr_array, csr_matrix)}
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_DICTS: dict[str, Any] = {"dict": dict, "Bunch": Bunch}
_SETS = {"set": set, "frozenset": frozenset}
_SEQUENCES: dict[str, Any] = {"list": list, "tuple": tuple, **_SETS}
_SPLINE = ("t", "c", "k", "extrapolate", "axis")
_INT64 = 2**63


def encode(value: Any, known: Known) -> Any:
    """Turn a fitted estimator into plain values: None, numbers, strings, arrays, dicts of these.

    Arrays are views where they can be. Raise InvalidParameterError for what has no plain copy.

    >>> decode(encode({"scale": [0.5, 2.0]}, {}), {})
    {'scale': [0.5, 2.0]}
    """
    try:
        return _Encoder(known).encode(value)
    except RecursionError:
        raise InvalidParameterError(
            f"a fitted {type(value).__name__} is nested too deeply to be kept; expected less than "
            "a thousand parts in a chain; use parameters that make it smaller"
        ) from None


def decode(tree: Any, known: Known) -> Any:
    """Turn what `encode` made back into an estimator, which shares its arrays.

    Raise ArtifactError if it names what no file may name.
    """
    return _Decoder(known).decode(tree)


class _Encoder:
    def __init__(self, known: Known) -> None:
        self.known = known
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # an address must not be used again meanwhile

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if isinstance(value, np.generic):
            return self._scalar(value)
        if kind in (tuple, set, frozenset):
            return self._items(value, kind.__name__)
        if is_named(value):
            return self._named(value)
        if isinstance(value, np.dtype) and value.names is None:
            return {"is": "dtype", "name": value.str}
        if kind in (slice, range):
            return {"is": kind.__name__, "ends": self.encode((value.start, value.stop, value.step))}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if kind is list:
            return self._items(value, "list")
        if kind is defaultdict or _DICTS.get(kind.__name__) is kind:
            return {
                "is": "dict" if kind is defaultdict else kind.__name__,
                "keys": self._items(list(value), "list"),
                "values": self._items(list(value.values()), "list"),
            }
        if kind.__name__ in _SPARSE and kind is _SPARSE[kind.__name__]:
            parts = {name: getattr(value, name) for name in ("data", "indices", "indptr")}
            return {"is": "sparse", "kind": kind.__name__, "shape": list(value.shape), **parts}
        if kind is BSpline:
            return {"is": "spline", **{n: self.encode(getattr(value, n)) for n in _SPLINE}}
        if id(value) in self._numbers:
            return {"is": "again", "number": self._numbers[id(value)]}
        self._numbers[id(value)] = len(self._numbers)
        self._alive.append(value)
        if kind in (np.random.RandomState, np.random.Generator):
            return self._generator(value)
        if is_booster(kind):
            return encode_booster(value)
        if kind is object or not resolves(kind, self.known):
            raise _objects.unkept(f"a {function_path(kind)}")
        if isinstance(value, BaseEstimator):
            return _objects.encode_estimator(value, self.encode)
        return _objects.encode_object(value, self.encode)

    def _named(self, value: Any) -> dict[str, Any]:
        if not resolves(value, self.known):
            raise _objects.unkept(f"the function {function_path(value)}")
        return {"is": "named", "name": function_path(value)}

    def _scalar(self, value: np.generic) -> dict[str, Any]:
        if value.dtype.kind in "OV":
            raise _objects.unkept(f"a {function_path(type(value))}")
        if isinstance(value, np.str_):
            return {"is": "word", "text": str(value)}
        return {"is": "scalar", "array": self._array(np.array(value))}

    def _items(self, value: Any, kind: str) -> dict[str, Any]:
        """Encode a sequence: as one array where all its items are of one plain type."""
        items = sorted(value, key=_order) if kind in _SETS else list(value)
        kinds = {type(item) for item in items}
        if len(kinds) == 1:
            (only,) = kinds
            if only is str:
                return {"is": kind, "of": "str", "items": _objects.object_array(items)}
            fits = only is float or only is bool
            fits |= only is int and all(-_INT64 <= item < _INT64 for item in items)
            if fits or (issubclass(only, np.generic) and np.dtype(only).kind in "biufc"):
                name = only.__name__ if fits else f"numpy.{only.__name__}"
                return {"is": kind, "of": name, "items": np.array(items, dtype=only)}
        return {"is": kind, "of": "parts", "parts": self._parts(items)}

    def _parts(self, items: list[Any]) -> dict[str, Any]:
        return {str(place): self.encode(item) for place, item in enumerate(items)}

    def _array(self, array: NDArray[Any]) -> Any:
        if isinstance(array, np.ma.MaskedArray):
            fill = np.array(array.fill_value, dtype=array.dtype)
            parts = {"data": array.data, "mask": np.ma.getmaskarray(array), "fill": fill}
            return {"is": "masked", **{name: self._array(part) for name, part in parts.items()}}
        if type(array) is not np.ndarray:
            if not isinstance(array, np.memmap):
                raise _objects.unkept(f"a {function_path(type(array))}")
            array = np.asarray(array)
        if array.dtype.kind in "UT":
            text = {"is": "text", "dtype": array.dtype.str if array.dtype.kind == "U" else "T"}
            return {**text, "array": array.astype(object)}
        if array.dtype.hasobject:
            if array.dtype != object:
                raise _objects.unkept(f"an array of {array.dtype}")
            items = array.reshape(-1).tolist()
            if all(type(item) in _PLAIN for item in items):
                return np.ascontiguousarray(array)
            return {"is": "objects", "shape": list(array.shape), "parts": self._parts(items)}
        if array.dtype.names is not None:
            return _fields(array)
        if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
            return {"is": "columns", "array": np.ascontiguousarray(array.T)}
        return np.asarray(array, order="C")

    def _generator(self, value: Any) -> dict[str, Any]:
        legacy = isinstance(value, np.random.RandomState)
        state = value.get_state(legacy=False) if legacy else value.bit_generator.state
        if state["bit_generator"] not in (_GENERATORS[:1] if legacy else _GENERATORS):
            raise _objects.unkept(f"a {state['bit_generator']}")
        return {"is": "generator", "legacy": legacy, "state": state}


class _Decoder:
    def __init__(self, known: Known) -> None:
        self.known = known
        self._made: list[Any] = []

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, Mapping):
            return tree
        kind = tree["is"]
        if kind in ("list", "tuple", *_SETS):
            return _SEQUENCES[kind](self._items(tree))
        if kind in _DICTS:
            pairs = zip(self._items(tree["keys"]), self._items(tree["values"]), strict=True)
            made = _DICTS[kind]()
            made.update(pairs)
            return made
        if kind == "again":
            return self._made[tree["number"]]
        if kind not in ("booster", "estimator", "generator", "object"):
            return self._leaf(tree)
        place = len(self._made)
        self._made.append(None)

        def started(made: Any) -> Any:
            self._made[place] = made
            return made

        if kind == "estimator":
            return _objects.decode_estimator(tree, self.decode, started, self.known)
        if kind == "booster":
            return started(decode_booster(tree))
        if kind == "object":
            return _objects.decode_object(tree, self.decode, started, self.known)
        return started(self._generator(tree))

    def _leaf(self, tree: Mapping[str, Any]) -> Any:
        kind = tree["is"]
        if kind == "sparse":
            parts = tree["data"], tree["indices"], tree["indptr"]
            return _SPARSE[tree["kind"]](parts, shape=tuple(tree["shape"]))
        if kind == "word":
            return np.str_(tree["text"])
        if kind == "scalar":
            return self._array(tree["array"])[()]
        if kind == "named":
            return find(tree["name"], self.known)
        if kind == "dtype":
            return np.dtype(tree["name"])
        if kind in ("slice", "range"):
            ends = self.decode(tree["ends"])
            return slice(*ends) if kind == "slice" else range(*ends)
        if kind == "spline":
            return BSpline.construct_fast(*(self.decode(tree[name]) for name in _SPLINE))
        return self._array(tree)

    def _items(self, tree: Mapping[str, Any]) -> list[Any]:
        of = tree["of"]
        if of == "parts":
            return self._decoded(tree["parts"])
        return list(tree["items"]) if of.startswith("numpy.") else tree["items"].tolist()

    def _decoded(self, parts: Mapping[str, Any]) -> list[Any]:
        return [self.decode(parts[str(place)]) for place in range(len(parts))]

    def _array(self, tree: Any) -> Any:
        if isinstance(tree, np.ndarray):
            return tree
        kind = tree["is"]
        if kind == "columns":
            return tree["array"].T
        if kind == "text":
            dtype = np.dtypes.StringDType() if tree["dtype"] == "T" else tree["dtype"]
            return tree["array"].astype(dtype)
        if kind == "masked":
            data, mask, fill = (self._array(tree[name]) for name in ("data", "mask", "fill"))
            return np.ma.MaskedArray(data, mask=mask, fill_value=fill[()])
        if kind == "structures":
            return _structures(tree)
        if kind == "objects":
            items = _objects.object_array(self._decoded(tree["parts"]))
            return items.reshape(tree["shape"])
        raise ArtifactError(
            f"the file holds a part of kind {kind!r}; expected one that this version knows; "
            "fit and save again"
        )

    def _generator(self, tree: Mapping[str, Any]) -> Any:
        state = tree["state"]
        if state["bit_generator"] not in _GENERATORS:
            raise ArtifactError(
                f"the file holds a generator {state['bit_generator']!r}; expected one of NumPy's; "
                "fit and save again"
            )
        if tree["legacy"]:
            made = np.random.RandomState(0)
            made.set_state(state)
            return made
        source = getattr(np.random, state["bit_generator"])(0)
        source.state = state
        return np.random.Generator(source)


def _fields(array: NDArray[Any]) -> dict[str, Any]:
    """Take structures apart: between their fields there may be anything."""
    fields: Mapping[str, Any] = array.dtype.fields or {}
    if any(kind.shape or kind.names for kind, *_ in fields.values()):
        raise _objects.unkept(f"an array of {array.dtype}")
    return {
        "is": "structures",
        "names": list(fields),
        "offsets": [int(offset) for _, offset, *_ in fields.values()],
        "size": array.dtype.itemsize,
        "fields": {name: np.asarray(array[name], order="C") for name in fields},
    }


def _structures(tree: Mapping[str, Any]) -> NDArray[Any]:
    fields = [tree["fields"][name] for name in tree["names"]]
    dtype = np.dtype(
        {
            "names": tree["names"],
            "formats": [field.dtype for field in fields],
            "offsets": tree["offsets"],
            "itemsize": tree["size"],
        }
    )
    made = np.zeros(fields[0].shape, dtype=dtype)
    for name, field in zip(tree["names"], fields, strict=True):
        made[name] = field
    return made


def _order(item: Any) -> tuple[str, Any]:
    return type(item).__name__, item if isinstance(item, _PLAIN) else repr(item)
