"""Parameters of the constructor as part of a state: encoded as plain values, and decoded again.

`random_state` is left out, because the seed that was drawn from it is part of the state: a model
with ``random_state=None`` and its refit with that seed are the same model. So is what an estimator
names in ``_without_effect``, such as the number of threads.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from itertools import takewhile
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _param_validation as sklearn_validation

from erasable.core._column_choice import is_selector
from erasable.core.arrays import of_objects
from erasable.core.digest import state_root
from erasable.core.errors import ArtifactError, InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.unencodable import refuse_surrogates

_ESTIMATOR, _FUNCTION = "__estimator__", "__function__"
_SELECTOR, _TYPES = "__selector__", ("dtype_include", "dtype_exclude")
_TUPLE, _SLICE, _MAPPING = "__tuple__", "__slice__", "__mapping__"
_KEYS = (bool, int, float, str, np.generic)
_LOADABLE = ("erasable.", "sklearn.")
BOOSTED = frozenset(
    f"{library}.sklearn.{kind}"
    for library, kinds in {
        "lightgbm": ("LGBMClassifier", "LGBMRegressor"),
        "xgboost": ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"),
    }.items()
    for kind in kinds
)
"""Estimators of other libraries that a file may name; see `erasable.refit.Refit`."""
_UFUNCS = {"numpy": np, "scipy.special": scipy.special}
_COMPUTING = (
    "sklearn.cluster._kmeans.",
    "sklearn.feature_selection.",
    "sklearn.metrics.",
    "sklearn.preprocessing.",
    "sklearn.utils.extmath.",
)


def check_params(estimator: BaseEstimator) -> None:
    """Check parameters against ``_parameter_constraints``; a boolean does not count as a number."""
    constraints = estimator._parameter_constraints
    for name, value in estimator.get_params(deep=False).items():
        if name in constraints:
            _check_param(type(estimator).__name__, name, value, constraints[name])


def _check_param(owner: str, name: str, value: Any, constraints: Any) -> None:
    # scikit-learn takes True for 1; a plain object makes it raise the message instead.
    tried = object() if isinstance(value, bool) and _only_numbers(constraints) else value
    try:
        sklearn_validation.validate_parameter_constraints(
            {name: constraints}, {name: tried}, caller_name=owner
        )
    except sklearn_validation.InvalidParameterError as error:
        expected = str(error).partition(". Got ")[0]
        raise InvalidParameterError(
            f"{expected}. Got {shorten(value)} instead; pass another {name}"
        ) from None


def _only_numbers(constraints: Any) -> bool:
    if isinstance(constraints, str):
        return False
    return not any(
        sklearn_validation.make_constraint(constraint).is_satisfied_by(True)
        for constraint in constraints
        if not isinstance(constraint, sklearn_validation.Interval)
    )


def class_path(cls: type) -> str:
    """Return the path by which users import a class: its module up to the first private part."""
    parts = cls.__module__.split(".")
    public = list(takewhile(lambda part: not part.startswith("_"), parts))
    return ".".join([*(public or [cls.__module__]), cls.__name__])


def function_path(function: Any) -> str:
    """Return the path of a function: where it was defined, or where an elementwise one is found.

    >>> [function_path(each) for each in (np.log1p, np.mean, scipy.special.expit, str.split)]
    ['numpy.log1p', 'numpy.mean', 'scipy.special.expit', 'builtins.str.split']
    """
    name: str = getattr(function, "__qualname__", None) or function.__name__
    if isinstance(function, np.ufunc):
        homes = (home for home, at in _UFUNCS.items() if getattr(at, name, None) is function)
        return f"{next(homes, 'unknown')}.{name}"
    bound = not isinstance(getattr(function, "__self__", None), type | ModuleType | None)
    home = getattr(function, "__objclass__", function)  # str.split has no module
    return f"<{name}>" if bound else f"{home.__module__}.{name}"


def find_function(path: str) -> Any:
    """Import a function by its path; ArtifactError where it may do more than compute.

    A file must not choose what is run: elementwise functions of NumPy and SciPy, NumPy's types, and
    functions from those parts of scikit-learn that only compute are found.

    >>> find_function("numpy.save")
    Traceback (most recent call last):
    erasable.core.errors.ArtifactError: the model was made with the function numpy.save, ...
    """
    home, _, name = path.rpartition(".")
    found = None
    if home in _UFUNCS:
        found = getattr(_UFUNCS[home], name, None)
        scalar = isinstance(found, type) and issubclass(found, np.generic)
        found = found if scalar or isinstance(found, np.ufunc) else None
    elif f"{home}.".startswith(_COMPUTING) and ".tests." not in path:
        try:
            found = getattr(importlib.import_module(home), name, None)
        except ImportError:
            found = None
        own = isinstance(found, FunctionType) and found.__module__ == home
        found = found if own else None
    if found is None:
        raise ArtifactError(
            f"the model was made with the function {path}, which a file cannot carry; expected one "
            "of NumPy or scikit-learn that only computes; fit again where the function is at hand"
        )
    return found


def find_class(path: str) -> type[BaseEstimator]:
    """Import an estimator of erasable or scikit-learn by its public path; else ArtifactError.

    A file must not choose what is run.
    """
    module, _, name = path.rpartition(".")
    found = None
    if path.startswith(_LOADABLE) or path in BOOSTED:
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError:
            found = None
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise ArtifactError(
            f"the file holds a {path!r}; expected an estimator of erasable or scikit-learn; "
            "load a class of your own with MyEstimator.load(path), and install the library that "
            "it is from"
        )
    return found


def class_for(cls: type[Any], header: dict[str, Any]) -> type[Any]:
    """Find the class of the model in a file: `cls`, or one that inherits from it."""
    path = str(header["class"])
    if path == class_path(cls):
        return cls
    found = find_class(path)
    if not (issubclass(found, cls) and class_path(found) == path):
        raise ArtifactError(
            f"the file holds a {path}; expected a {cls.__name__}; load it with erasable.load(path)"
        )
    return found


def encode_params(estimator: BaseEstimator) -> dict[str, Any]:
    """Read an estimator's own parameters as plain values; estimators and functions become names.

    InvalidInputError: a parameter is something else, or text that UTF-8 cannot encode.
    """
    left_out = {"random_state", *getattr(estimator, "_without_effect", ())}
    # The constructor of a user's subclass may set what it does not take.
    ours = next((c for c in type(estimator).__mro__ if c.__module__.startswith("erasable.")), None)
    known = {} if ours is None else inspect.signature(ours).parameters
    set_by_it = {name: getattr(estimator, name) for name in known if hasattr(estimator, name)}
    return {
        name: _encode(name, value)
        for name, value in sorted({**set_by_it, **estimator.get_params(deep=False)}.items())
        if name not in left_out
    }


def decode_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Decode what `encode_params` returned; ArtifactError as in `find_function`."""
    return {name: decode_param(value) for name, value in params.items()}


def keep_objects(estimator: BaseEstimator, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are only named by `params`, where they are still what these name.

    `params` is what `encode_params` returned earlier. Estimators are copied, because a later
    ``set_params`` must not reach them.
    """
    kept: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=False).items():
        names_only = isinstance(value, BaseEstimator) or callable(value)
        if names_only and name in params and is_encoded(value, params[name]):
            kept[name] = clone(value) if isinstance(value, BaseEstimator) else value
    return kept


def as_encoded(estimator: BaseEstimator, encoded: Mapping[str, Any]) -> BaseEstimator:
    """Copy an estimator as it was when it was encoded, whatever was set since.

    ArtifactError: a parameter that plain values only name was set since.
    """
    if is_encoded(estimator, encoded):
        return clone(estimator)
    return decode_param(encoded)


def is_encoded(value: Any, encoded: Any) -> bool:
    """Tell whether a value is encoded as `encoded`."""
    return state_root({"": _encode("", value)}) == state_root({"": encoded})


def encoded_parts(encoded: list[Any]) -> dict[str, list[Any]]:
    """Read, from an encoded list of (name, estimator, ...), what follows each name."""
    items = [item[_TUPLE] if isinstance(item, Mapping) else item for item in encoded]
    return {name: rest for name, *rest in items}


def _encode(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _encodable(name, value)
    if isinstance(value, np.number | np.bool_):
        return float(value) if isinstance(value, np.longdouble) else _encode(name, value.item())
    if isinstance(value, np.ndarray):
        return _encode_cells(name, value) if value.dtype.kind in "OUT" else value.copy()
    if isinstance(value, tuple):
        return {_TUPLE: [_encode(name, item) for item in value]}
    if isinstance(value, list):
        return [_encode(name, item) for item in value]
    if isinstance(value, slice):
        return {_SLICE: [_encode(name, end) for end in (value.start, value.stop, value.step)]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {_encodable(name, key): _encode(name, item) for key, item in value.items()}
    if isinstance(value, Mapping) and all(isinstance(key, _KEYS) for key in value):
        pairs = [[_encode(name, key), _encode(name, item)] for key, item in value.items()]
        return {_MAPPING: sorted(pairs, key=lambda pair: (type(pair[0]).__name__, pair[0]))}
    if isinstance(value, BaseEstimator):
        return {_ESTIMATOR: class_path(type(value)), "params": encode_params(value)}
    if value is float or value is int or isinstance(value, np.dtype):
        return {_FUNCTION: f"numpy.{np.dtype(value).name}"}
    if is_selector(value):
        types = {each: _encode_types(name, getattr(value, each)) for each in _TYPES}
        return {_SELECTOR: {"pattern": _encode(name, value.pattern), **types}}
    if isinstance(value, np.ufunc) or (callable(value) and hasattr(value, "__qualname__")):
        return {_FUNCTION: function_path(value)}
    if hasattr(value, "__array__"):
        return _encode(name, np.array(value))
    raise InvalidInputError(
        f"parameter {name} is a {type(value).__name__}; expected a number, a string, an array, an "
        "estimator, a function, or a list or dict of these, so that it can be part of a digest; "
        "pass one of these"
    )


def _encode_types(name: str, types: Any) -> Any:
    """Encode types of columns by the names that pandas takes for them."""
    if types is None or isinstance(types, str):
        return _encode(name, types)
    if isinstance(types, list | tuple):
        return [_encode_types(name, each) for each in types]
    if isinstance(types, type) and issubclass(types, np.generic):
        return types.__name__
    known = {bool: "bool", int: "int", float: "float", object: "object", str: "str"}
    if isinstance(types, type) and types in known:
        return known[types]
    if isinstance(types, type) and types.__name__ == "CategoricalDtype":
        return "category"
    return str(types)


def _encode_cells(name: str, array: NDArray[Any]) -> NDArray[Any]:
    cells = [_encode(name, cell) for cell in array.reshape(-1).tolist()]
    if any(isinstance(cell, list | dict | np.ndarray) for cell in cells):
        raise InvalidInputError(
            f"parameter {name} is an array of other things than numbers and strings; expected "
            "these, or a list, so that it can be part of a digest"
        )
    return of_objects(cells).reshape(array.shape).astype(array.dtype)


def _encodable(name: str, text: str) -> str:
    refuse_surrogates([text], f"parameter {name} holds", InvalidParameterError)
    return text


def decode_param(value: Any) -> Any:
    """Decode one parameter; see `decode_params`."""
    if isinstance(value, list):
        return [decode_param(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if _TUPLE in value:
        return tuple(decode_param(item) for item in value[_TUPLE])
    if _SLICE in value:
        return slice(*value[_SLICE])
    if _MAPPING in value:
        return {key: decode_param(item) for key, item in value[_MAPPING]}
    if _ESTIMATOR in value:
        return find_class(value[_ESTIMATOR])(**decode_params(value["params"]))
    if _SELECTOR in value:
        from sklearn.compose import make_column_selector  # late, as few models have one

        return make_column_selector(**value[_SELECTOR])
    if _FUNCTION in value:
        return find_function(value[_FUNCTION])
    return {key: decode_param(item) for key, item in value.items()}
