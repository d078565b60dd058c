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

import copyreg
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.sparse import csc_array, csc_matrix, csr_array, csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from erasable.core.errors import ArtifactError, InvalidParameterError
from erasable.core.params import function_path
from erasable.refit._boosters import decode_booster, encode_booster, is_booster
from erasable.refit._names import CONSTRUCTED, Known, find, find_class, is_named, resolves

Encode = Callable[[Any], Any]

_NAMES, _VERSION, _RESULTS = "feature_names_in_", "_sklearn_version", "cv_results_"
# An address; how long a search took to fit the best candidate.
_HISTORY = (_VERSION, "_stop_words_id", "refit_time_")
_TREES = ("sklearn.neighbors._ball_tree", "sklearn.neighbors._kd_tree")
_QUERY_COUNTS = slice(7, 11)  # in the state of such a tree


def encode_estimator(estimator: BaseEstimator, encode: Encode) -> dict[str, Any]:
    """Encode the attributes of an estimator; names of features are kept apart."""
    state = estimator.__getstate__()
    if not isinstance(state, dict):
        raise _unkept(estimator)
    names = state.get(_NAMES)
    kept = {
        name: _without_times(value) if name == _RESULTS else value
        for name, value in sorted(state.items())
        if name not in (*_HISTORY, _NAMES)
    }
    return {
        "is": "estimator",
        "class": function_path(type(estimator)),
        "feature_names": None if names is None else [str(name) for name in names],
        "attributes": {name: encode(value) for name, value in kept.items()},
    }


def decode_estimator(
    tree: Mapping[str, Any], decode: Encode, started: Encode, known: Known
) -> BaseEstimator:
    """Make an estimator and give it its attributes."""
    cls = find_class(tree["class"], known)
    if not issubclass(cls, BaseEstimator):
        raise ArtifactError(
            f"the file names {tree['class']!r}; expected an estimator; fit and save again"
        )
    made = started(_blank(cls))
    state = {name: decode(value) for name, value in sorted(tree["attributes"].items())}
    if tree["feature_names"] is not None:
        state[_NAMES] = object_array(tree["feature_names"])
    if cls.__module__.startswith("sklearn."):
        state[_VERSION] = sklearn.__version__
    made.__setstate__(state)
    return made


def encode_object(value: Any, encode: Encode) -> dict[str, Any]:
    """Encode another object by its pickle; InvalidParameterError if that names code to run."""
    reduced: Any = value.__reduce_ex__(2)
    if isinstance(reduced, str) or any(part is not None for part in reduced[3:]):
        raise _unkept(value)
    make, args = reduced[:2]
    state = reduced[2] if len(reduced) > 2 else None
    cls = type(value)
    if make is cls and cls.__module__ in CONSTRUCTED:
        given: tuple[Any, ...] = args
    elif args and args[0] is cls and _only_makes(make):
        given = ()
        if getattr(make, "__name__", "").startswith("__pyx_unpickle_"):
            state = args[2] or state  # after a checksum of the fields
        elif len(args) > 1:
            raise _unkept(value)
    else:
        raise _unkept(value)
    if cls.__module__ in _TREES and isinstance(state, tuple):
        state = (*state[: _QUERY_COUNTS.start], 0, 0, 0, 0, *state[_QUERY_COUNTS.stop :])
    if not (state is None or isinstance(state, dict) or hasattr(cls, "__setstate__")):
        raise _unkept(value)
    return {
        "is": "object",
        "class": function_path(cls),
        "args": encode(given),
        "state": encode(state),
    }


def decode_object(tree: Mapping[str, Any], decode: Encode, started: Encode, known: Known) -> Any:
    """Make an object and give it its state; only what is made of numbers is made by a call."""
    cls = find_class(tree["class"], known)
    args = decode(tree["args"])
    if args and cls.__module__ not in CONSTRUCTED:
        raise ArtifactError(
            f"the file names {tree['class']!r} with arguments; expected a class of scikit-learn's "
            "compiled trees and losses; fit and save again"
        )
    made: Any = started(cls(*args) if cls.__module__ in CONSTRUCTED else _blank(cls))
    state = decode(tree["state"])
    if hasattr(cls, "__setstate__"):
        if state is not None:
            made.__setstate__(state)
    elif state is not None:
        made.__dict__.update(state)
    return made


def object_array(items: list[Any]) -> NDArray[Any]:
    """Put items into an array without looking into them."""
    made = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        made[place] = item
    return made


def _blank(cls: Any) -> Any:
    """Make an object without running its constructor."""
    return cls.__new__(cls)


def _only_makes(make: Any) -> bool:
    """Tell whether a function does nothing but make an object that is still blank."""
    if make is copyreg.__newobj__:  # type: ignore[attr-defined]
        return True
    name = getattr(make, "__name__", "")
    own = getattr(make, "__module__", "").startswith("sklearn.")
    return own and (name == "newObj" or name.startswith("__pyx_unpickle_"))


def _without_times(results: Any) -> Any:
    if not isinstance(results, dict):
        return results
    return {name: value for name, value in results.items() if not str(name).endswith("_time")}


def _unkept(value: Any) -> InvalidParameterError:
    return unkept(f"a {function_path(type(value))}")


def unkept(what: str) -> InvalidParameterError:
    """Make the error for something that an estimator holds."""
    return InvalidParameterError(
        f"the fitted estimator holds {what}, of which no plain copy can be made; expected arrays, "
        "numbers, text and objects of scikit-learn; wrap another estimator"
    )


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
    """
    try:
        return _Encoder(known).encode(value)
    except RecursionError:
        raise InvalidParameterError(
            f"a fitted {type(value).__name__} is nested too deeply to be kept; expected less than "
            "a thousand parts in a chain; use parameters that make it smaller"
        ) from None


def decode(tree: Any, known: Known) -> Any:
    """Decode an estimator that shares arrays; raise ArtifactError for forbidden names."""
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
            raise unkept(f"a {function_path(kind)}")
        if isinstance(value, BaseEstimator):
            return encode_estimator(value, self.encode)
        return encode_object(value, self.encode)

    def _named(self, value: Any) -> dict[str, Any]:
        if not resolves(value, self.known):
            raise unkept(f"the function {function_path(value)}")
        return {"is": "named", "name": function_path(value)}

    def _scalar(self, value: np.generic) -> dict[str, Any]:
        if value.dtype.kind in "OV":
            raise unkept(f"a {function_path(type(value))}")
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
                return {"is": kind, "of": "str", "items": object_array(items)}
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
                raise unkept(f"a {function_path(type(array))}")
            array = np.asarray(array)
        if array.dtype.kind in "UT":
            text = {"is": "text", "dtype": array.dtype.str if array.dtype.kind == "U" else "T"}
            return {**text, "array": array.astype(object)}
        if array.dtype.hasobject:
            if array.dtype != object:
                raise unkept(f"an array of {array.dtype}")
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
            raise unkept(f"a {state['bit_generator']}")
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
            return decode_estimator(tree, self.decode, started, self.known)
        if kind == "booster":
            return started(decode_booster(tree))
        if kind == "object":
            return decode_object(tree, self.decode, started, self.known)
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
            items = object_array(self._decoded(tree["parts"]))
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
        raise unkept(f"an array of {array.dtype}")
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
