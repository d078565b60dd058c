"""Estimators as plain JSON, and back: classes by name, parameters by value, parts nested.

The law kept here: the JSON holds values and names of public estimators of erasable and
scikit-learn, and no code; an estimator made of it is written alike.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from erasable.core.errors import ArtifactError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.params import class_path, find_function, function_path
from erasable.core.unencodable import refuse_surrogates
from erasable.workspace.models.names import closest, find_estimator

Node = dict[str, Any]
_CLASS, _PARAMS = "estimator", "params"
_PARTS = ("steps", "transformers", "transformer_list", "estimators")
"""Parameters that are lists of (name, part, ...)."""
_MARKS = frozenset({"number", "tuple", "slice", "mapping", "function"})
"""Names of the objects that stand for values which JSON does not have."""
_GATHERED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def write_estimator(estimator: BaseEstimator, where: str = "") -> Node:
    """Write an estimator as ``{"estimator": path, "params": {...}}``; its parts are written alike.

    Parameters with their default values, and what the estimator has learned, are not written.

    >>> from erasable.linear_model import Ridge
    >>> write_estimator(Ridge(alpha=2.0))
    {'estimator': 'erasable.linear_model.Ridge', 'params': {'alpha': 2.0}}
    """
    cls = type(estimator)
    path = class_path(cls)
    if not _names(path, cls):
        raise InvalidParameterError(
            f"{_told(where)} is a {cls.__module__}.{cls.__qualname__}; expected a public estimator "
            "of erasable or scikit-learn, which a recipe can name; write a Python function that "
            "fits it, and name that as module:function"
        )
    defaults = _defaults(cls)
    params = {
        name: _parameter(value, defaults[name], f"{where}{name}")
        for name, value in _ordered(estimator.get_params(deep=False), defaults)
        if not _is_same(value, defaults[name])
    }
    return {_CLASS: path, _PARAMS: params}


def read_estimator(node: Any, where: str = "") -> Any:
    """Make an unfitted estimator of what `write_estimator` returns, or a user typed.

    >>> read_estimator({"estimator": "linear_model.Ridge", "params": {"alpha": 2.0}})
    Ridge(alpha=2.0)
    """
    if not _is_node(node) or not isinstance(node.get(_PARAMS, {}), Mapping):
        raise InvalidParameterError(
            f"{_told(where)} is {shorten(node)}; expected {{{_CLASS!r}: the name of a class, "
            f"{_PARAMS!r}: its parameters}}"
        )
    cls, params = _find(node[_CLASS]), node.get(_PARAMS, {})
    defaults = _defaults(cls)
    for name in params:
        if name not in defaults:
            raise InvalidParameterError(
                f"there is no parameter {shorten(where + name)}; expected one of {node[_CLASS]}; "
                f"{closest(name, list(defaults))}"
            )
    missing = [n for n, default in defaults.items() if default is _NONE and n not in params]
    if missing:
        raise InvalidParameterError(
            f"{_told(where)} is a {node[_CLASS]} without {', '.join(missing)}; expected a value of "
            "each parameter that has none by default"
        )
    return cls(
        **{
            name: _value(name, given, defaults[name], f"{where}{name}")
            for name, given in params.items()
        }
    )


def chain(node: Node) -> list[str]:
    """Return the classes that learn one after another."""
    params = node.get(_PARAMS, {})
    parts = [each[1] for each in _items(params.get("steps"))]
    if node[_CLASS] == _REFIT and _is_node(params.get(_CLASS)):
        parts = [params[_CLASS]]
    return [path for part in parts if _is_node(part) for path in chain(part)] or [node[_CLASS]]


def by_columns(node: Node) -> dict[str, tuple[list[str], Any]]:
    """Return the steps and columns of a column transformer that comes first, by name.

    >>> from erasable.compose import make_column_transformer
    >>> from erasable.preprocessing import MinMaxScaler
    >>> by_columns(write_estimator(make_column_transformer((MinMaxScaler(), ["age"]))))
    {'minmaxscaler': (['erasable.preprocessing.MinMaxScaler'], ['age'])}
    """
    params = node.get(_PARAMS, {})
    first = [each[1] for each in _items(params.get("steps"))[:1]]
    if _is_node(params.get(_CLASS)):
        first = [params[_CLASS]]
    if first:
        return by_columns(first[0]) if _is_node(first[0]) else {}
    return {
        name: (chain(part) if _is_node(part) else [str(part)], rest[0] if rest else None)
        for name, part, *rest in _items(params.get("transformers"))
    }


def asked_columns(node: Node) -> list[str]:
    """Return the names of the columns of a column transformer that comes first."""
    given = [columns for _, columns in by_columns(node).values()]
    listed = [columns if isinstance(columns, list) else [columns] for columns in given]
    return list(dict.fromkeys(name for each in listed for name in each if isinstance(name, str)))


def settings(node: Node, where: str = "") -> dict[str, Any]:
    """Return the parameters that were set, except parts, by the names that `-p` takes.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> settings(write_estimator(make_pipeline(SVC(C=2.0))))
    {'svc__C': 2.0}
    """
    found: dict[str, Any] = {}
    for name, value in node.get(_PARAMS, {}).items():
        if name in _PARTS and isinstance(value, list):
            for each in _items(value):
                if _is_node(each[1]):
                    found |= settings(each[1], f"{where}{each[0]}__")
        elif _is_node(value):
            own = where if node[_CLASS] == _REFIT else f"{where}{name}__"
            found |= settings(value, own)
        else:
            found[f"{where}{name}"] = value
    return found


_REFIT = "erasable.refit.Refit"
_NONE = inspect.Parameter.empty


def _items(parts: Any) -> list[Any]:
    listed = isinstance(parts, list) and all(isinstance(each, list) and each[1:] for each in parts)
    return parts if listed else []


def _defaults(cls: type) -> dict[str, Any]:
    found = inspect.signature(cls).parameters.items()
    return {name: each.default for name, each in found if each.kind not in _GATHERED}


def _ordered(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, params[name]) for name in defaults if name in params]


def _names(path: str, cls: type) -> bool:
    try:
        return _find(path) is cls
    except InvalidParameterError:
        return False


def _find(path: str) -> type[BaseEstimator]:
    if path != _REFIT:
        return find_estimator(path)
    from erasable.refit import Refit  # late, where it is in use; names alone have it made around

    return Refit


def _told(where: str) -> str:
    return where.removesuffix("__") or "the estimator"


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if type(value) is not type(default) or not isinstance(value, bool | int | float | str | tuple):
        return False
    return value == default or (isinstance(value, float) and value != value and default != default)


def _parameter(value: Any, default: Any, where: str) -> Any:
    """Write a parameter: what its default tells apart from a list is a list."""
    prefix, _, name = where.rpartition("__")
    if name in _PARTS and isinstance(value, list | tuple):
        return [_part(each, f"{prefix}__" if prefix else "") for each in value]
    if isinstance(value, tuple) and isinstance(default, tuple):
        return [_write(each, where) for each in value]
    return _write(value, where)


def _part(item: Any, where: str) -> Any:
    """Write (name, part, ...): the part's parameters begin with the name."""
    if not isinstance(item, list | tuple) or len(item) < 2 or not isinstance(item[0], str):
        return _write(item, where)
    name, part, *rest = item
    inside = f"{where}{name}__"
    return [name, _write(part, inside), *(_write(each, f"{inside}columns") for each in rest)]


def _write(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        refuse_surrogates([value], f"parameter {_told(where)} holds", InvalidParameterError)
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"number": repr(float(value))}
    if isinstance(value, np.generic):
        return _write(value.item(), where)
    if isinstance(value, BaseEstimator):
        return write_estimator(value, f"{_told(where)}__" if where else "")
    if isinstance(value, list):
        return [_write(each, where) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [_write(each, where) for each in value]}
    if isinstance(value, slice):
        return {"slice": [_write(each, where) for each in (value.start, value.stop, value.step)]}
    if isinstance(value, Mapping):
        items = {key: _write(each, where) for key, each in value.items()}
        if all(isinstance(key, str) for key in items) and not (_is_node(items) or _is_mark(items)):
            return items
        return {"mapping": [[_write(key, where), each] for key, each in items.items()]}
    if hasattr(value, "__array__"):
        return _write(np.asarray(value).tolist(), where)
    if callable(value) and hasattr(value, "__name__"):
        path = function_path(value)
        try:
            if find_function(path) is value:
                return {"function": path}
        except ArtifactError:
            pass
    kind = "a function" if inspect.isroutine(value) else f"a {type(value).__name__}"
    raise InvalidParameterError(
        f"{_told(where)} is {kind}, which a recipe cannot hold; expected numbers, texts, lists and "
        "estimators of these; pass what it comes to, or write a Python function that fits the "
        "model, and name that as module:function"
    )


def _value(name: str, given: Any, default: Any, where: str) -> Any:
    prefix, _, _ = where.rpartition("__")
    if name in _PARTS and default is _NONE:
        _check_parts(name, given, where)
        return [_read_part(each, f"{prefix}__" if prefix else "") for each in given]
    if isinstance(given, list) and isinstance(default, tuple):
        return tuple(_read(each, where) for each in given)
    return _read(given, where)


def _check_parts(name: str, given: Any, where: str) -> None:
    """Refuse what is no list of [name, part], or of [name, part, columns]."""
    length = 3 if name == "transformers" else 2
    for each in given if isinstance(given, list) and given else [given]:
        whole = isinstance(each, list) and len(each) == length and isinstance(each[0], str)
        if not whole or (length == 3 and each[2] is None):
            columns = ", columns" if length == 3 else ""
            raise InvalidParameterError(
                f"{_told(where)} holds {shorten(each)}; expected a list of [name, estimator"
                f"{columns}], as `erasable model show --recipe` prints them"
            )


def _read_part(item: list[Any], where: str) -> tuple[Any, ...]:
    inside = f"{where}{item[0]}__"
    return (item[0], *(_read(each, inside) for each in item[1:]))


def _read(given: Any, where: str) -> Any:
    if isinstance(given, list):
        return [_read(each, where) for each in given]
    if not isinstance(given, Mapping):
        return given
    if _is_node(given):
        return read_estimator(given, f"{_told(where)}__" if where else "")
    if not _is_mark(given):
        return {key: _read(each, where) for key, each in given.items()}
    ((mark, content),) = given.items()
    try:
        if mark == "number":
            return float(content)
        if mark == "function":
            return find_function(content)
        if mark == "mapping":
            return {_read(key, where): _read(each, where) for key, each in content}
        items = [_read(each, where) for each in content]
        return tuple(items) if mark == "tuple" else slice(*items)
    except (TypeError, ValueError, AttributeError, ArtifactError):
        raise InvalidParameterError(
            f"{_told(where)} is {shorten(dict(given))}; expected what `erasable model show` "
            f"writes as {mark!r}"
        ) from None


def _is_node(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(_CLASS), str) and set(value) <= {
        _CLASS, _PARAMS,
    }  # fmt: skip


def _is_mark(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in _MARKS
