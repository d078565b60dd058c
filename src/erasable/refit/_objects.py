"""Objects with attributes: fitted estimators, and what compiled code keeps in them.

What is no function of the data is left out here: addresses, times, and counts of the queries that
were asked.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from erasable.core.errors import ArtifactError, InvalidParameterError
from erasable.core.params import function_path
from erasable.refit._names import CONSTRUCTED, Known, find_class

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
    """Encode any other object by what it would put into a pickle.

    Raise InvalidParameterError if it can only be made by code that the pickle names.
    """
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
