"""Every question that a model can be asked without changing it, found by looking at its class."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sklearn.base import clone

from erasable import load
from erasable.audit import equality, refit
from erasable.core.errors import ErasableError
from erasable.core.estimator import Erasable

__all__ = ["NO_ANSWER", "Reader", "queries", "readers_of"]

Reader = Callable[[Any, Any, Any], Any]
"""A function of a model, a table that it can predict for, and targets."""

NO_ANSWER = (ErasableError, AttributeError, NotImplementedError, TypeError, ValueError)
"""What is raised where a model has no such answer."""

CHANGE = ("add", "correct", "delete", "fit", "load", "partial_fit", "replace", "save", "set_")
"""What the names of methods begin with that change a model, or read it from elsewhere."""

OF_ANY_MODEL = {"item": 0}
"""Other required arguments of methods, by their names."""


def _attribute(name: str) -> Reader:
    return lambda model, X, y: getattr(model, name)


def _method(name: str, required: list[str]) -> Reader:
    def call(model: Any, X: Any, y: Any) -> Any:
        values = {"X": X, "y": y, **OF_ANY_MODEL}
        made = getattr(model, name)(*(values[each] for each in required))
        return list(made) if inspect.isgenerator(made) else made

    return call


def _saved(model: Any, X: Any, y: Any) -> bytes:
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def _saved_to_a_path(model: Any, X: Any, y: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")


def _saved_with_records(model: Any, X: Any, y: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model", records=True)


OTHERS: dict[str, Reader] = {
    "save": _saved,
    "save to a path": _saved_to_a_path,
    "save with records": _saved_with_records,
    "load": lambda model, X, y: load(io.BytesIO(_saved(model, X, y))),
    "deepcopy": lambda model, X, y: copy.deepcopy(model),
    "pickle": lambda model, X, y: pickle.loads(pickle.dumps(model)),
    "clone": lambda model, X, y: clone(model),
    "repr": lambda model, X, y: repr(model),
    "refit": lambda model, X, y: refit(model),
    "equality": lambda model, X, y: equality(model),
}
"""What is asked of any model otherwise than by a method without arguments."""


def queries(frame: Any) -> Any:
    """Return the first rows of a frame as models are asked about them: a column alone as a list."""
    few = frame[:5].copy()
    return few.iloc[:, 0].tolist() if few.shape[1] == 1 else few


def readers_of(model: Erasable) -> dict[str, Reader]:
    """Return the readers of a fitted model by their names."""
    return dict(_found(model))


def _found(model: Erasable) -> Iterator[tuple[str, Reader]]:
    cls = type(model)
    for name in sorted({*vars(model), *dir(cls)}):
        if name.startswith("_") or name in model.get_params(deep=False):
            continue
        static = inspect.getattr_static(model, name)
        if name in vars(model) or isinstance(static, property):
            yield name, _attribute(name)
        elif callable(value := getattr(model, name, None)) and not name.startswith(CHANGE):
            parameters = inspect.signature(value).parameters.values()
            required = [each.name for each in parameters if each.default is each.empty]
            known = {"X", "y", *OF_ANY_MODEL}
            assert known >= {*required}, f"unknown parameters of {cls.__name__}.{name}"
            yield name, _method(name, required)
    yield from OTHERS.items()
