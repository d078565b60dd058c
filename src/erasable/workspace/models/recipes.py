"""Recipes of models: plain JSON, made of what a user types.

The law kept here: a recipe holds names and values, never code and never a pickle; an estimator
that is made of it a second time learns the same, because the seeds are in it.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from erasable.core.errors import InvalidParameterError
from erasable.core.estimator import Erasable
from erasable.core.ids import shorten
from erasable.core.params import class_path
from erasable.workspace.models.names import find_estimator
from erasable.workspace.models.parameters import (
    BETWEEN,
    SEED,
    build,
    is_without,
    parse_parameter,
    set_params,
    steps_of,
)
from erasable.workspace.models.written import read_estimator, write_estimator

Recipe = dict[str, Any]
_ENTRY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_FILE = ".json"


def parse(estimator: Any, params: Mapping[str, Any] | None = None) -> Recipe:
    """Make a recipe of an estimator, or of several in a row.

    `estimator` is a dotted name (see `find_estimator`), or several joined by "->" or ",", which
    make a pipeline; an estimator object; a dict as `write_estimator` makes it; a recipe; or the
    path of a recipe, which ends in ".json". Estimators of scikit-learn that learn are refitted at
    each deletion. Parameters that are strings are read as JSON if possible; see `parameters`.

    >>> parse("cluster.KMeans", {"n_clusters": "3"})
    {'kind': 'estimator', 'estimator': ['erasable.cluster.KMeans'], 'params': {'n_clusters': 3}}
    >>> parse("preprocessing.StandardScaler -> linear_model.Ridge", {"ridge__alpa": "2"})
    Traceback (most recent call last):
    erasable.core.errors.InvalidParameterError: Ridge was given alpa; expected alpha, ...
    """
    if isinstance(estimator, os.PathLike) or (
        isinstance(estimator, str) and estimator.endswith(_FILE)
    ):
        estimator = _read(Path(estimator))
    if isinstance(estimator, Mapping) and isinstance(estimator.get("estimator"), list):
        estimator, params = _of_names(estimator, params)
    if not isinstance(estimator, str):
        return _parse_parts(estimator, params)
    names = [name for name in BETWEEN.split(estimator.strip()) if name]
    if not names:
        raise InvalidParameterError(
            "no estimator was named; expected one, such as linear_model.Ridge"
        )
    found = [(_path(name, find_estimator(name))) for name in names]
    recipe: Recipe = {
        "kind": "estimator",
        "estimator": found,
        "params": {name: parse_parameter(name, given) for name, given in (params or {}).items()},
    }
    model = make(recipe)
    kept = {name: each for name, each in recipe["params"].items() if not is_without(model, name)}
    return {**recipe, "params": kept}


def make(recipe: Mapping[str, Any]) -> Erasable:
    """Make the estimator of a recipe, not fitted.

    >>> make(parse("sklearn.svm.SVC", {"C": "0.5"}))
    Refit(estimator=SVC(C=0.5))
    """
    paths, params = recipe["estimator"], recipe["params"]
    model: Any
    if isinstance(paths, str):
        model, params = forgetting(read_estimator({"estimator": paths, "params": params})), {}
    elif all(path.startswith("sklearn.") for path in paths):
        model = _refit(build(paths, params))
    else:
        parts = [(name, build([path], params, prefix)) for name, prefix, path in steps_of(paths)]
        steps = [(name, part if _forgets(part) else _refit(part)) for name, part in parts]
        model = steps[0][1] if len(steps) == 1 else _in_a_row(steps)
    set_params(model, params)
    seeds = recipe.get("seeds")
    if seeds:
        model.set_params(**seeds)
    return model  # type: ignore[no-any-return]


def with_seeds(recipe: Mapping[str, Any], fitted: Erasable) -> Recipe:
    """Return a recipe with the seeds that a fit has drawn."""
    parts = {"": fitted, **fitted.get_params(deep=True)}
    seeds = {
        f"{name}__{SEED}".removeprefix("__"): int(part.seed_)
        for name, part in sorted(parts.items())
        if isinstance(part, Erasable) and hasattr(part, "seed_")
    }
    return {**recipe, "seeds": seeds}


def parse_entry(entry: str) -> Recipe:
    """Make a recipe of a Python function, written "module:function"."""
    if not _ENTRY.fullmatch(entry):
        raise InvalidParameterError(
            f"the entry point is {shorten(entry)}; expected module:function; name one that way"
        )
    return {"kind": "entry", "entry": entry}


def find_entry(entry: str) -> Callable[[Any], Any]:
    """Import the function of an entry point."""
    module, _, name = entry.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # What a module of the user's raises when it is imported.
        raise InvalidParameterError(
            f"the module {module!r} cannot be imported ({type(error).__name__}); expected one that "
            "Python finds; set PYTHONPATH, or mend it"
        ) from error
    if not callable(found):
        raise InvalidParameterError(f"the module {module!r} has no function {name!r}; expected one")
    return found  # type: ignore[no-any-return]


def parse_command(command: str) -> Recipe:
    """Make a recipe of a command that trains from a Parquet file and writes a model file."""
    missing = [word for word in ("{data}", "{out}") if word not in command]
    if missing:
        raise InvalidParameterError(
            f"the command lacks {' and '.join(missing)}; expected where the data come from and "
            'where the model goes; write it as "CMD {data} {out}"'
        )
    return {"kind": "command", "command": command}


def _parse_parts(given: Any, params: Mapping[str, Any] | None) -> Recipe:
    """Make a recipe of an estimator, or of how one is written."""
    if isinstance(given, Mapping):
        part = read_estimator(
            {name: given[name] for name in ("estimator", "params") if name in given}
        )
    elif isinstance(given, BaseEstimator):
        part = given
    else:
        raise InvalidParameterError(
            f"the estimator is {shorten(given)}; expected an estimator of erasable or "
            "scikit-learn, its name, or how `erasable model show` writes it"
        )
    node = write_estimator(part)
    if params:
        model = forgetting(read_estimator(node))
        set_params(model, {name: parse_parameter(name, value) for name, value in params.items()})
        node = write_estimator(model)
    recipe = {"kind": "estimator", **node}
    make(recipe)
    return recipe


def _of_names(
    recipe: Mapping[str, Any], params: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """Return names and parameters, as they are typed, of a recipe that is made of these."""
    names, own = recipe["estimator"], recipe.get("params", {})
    if not all(isinstance(name, str) for name in names) or not isinstance(own, Mapping):
        raise InvalidParameterError(
            f"the recipe is {shorten(dict(recipe))}; expected names of estimators and their "
            "parameters"
        )
    return ",".join(names), {**own, **(params or {})}


def _read(path: Path) -> dict[str, Any]:
    """Read a file of a recipe."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidParameterError(
            f"the recipe {str(path)!r} cannot be read ({error.strerror}); expected a file"
        ) from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "estimator" not in found:
        raise InvalidParameterError(
            f"the file {str(path)!r} holds no recipe; expected JSON as `erasable model show NAME "
            "--recipe` writes it"
        )
    return found


def forgetting(part: Any) -> Erasable:
    """Wrap in `Refit` what learns and cannot delete: an estimator, or steps of a pipeline.

    >>> from sklearn.svm import SVC
    >>> forgetting(SVC())
    Refit(estimator=SVC())
    """
    if not isinstance(part, Erasable):
        return _refit(part)
    if isinstance(getattr(part, "steps", None), list):
        part.set_params(
            steps=[
                (name, step if isinstance(step, str) or _forgets(step) else _refit(step))
                for name, step in part.steps
            ]
        )
    return part


def _path(name: str, cls: type[BaseEstimator]) -> str:
    if name.startswith("sklearn."):
        return name
    return class_path(cls)


def _refit(part: BaseEstimator) -> Erasable:
    from erasable.refit import Refit  # late, as the one below

    return Refit(part)


def _in_a_row(steps: list[tuple[str, Any]]) -> Erasable:
    from erasable.pipeline import Pipeline  # late, because it imports most of the estimators

    return Pipeline(steps)


def _forgets(part: BaseEstimator | None) -> bool:
    """Tell what needs no `Refit`: estimators of erasable, and those that learn nothing."""
    if part is None or isinstance(part, Erasable):
        return True
    return not get_tags(part).requires_fit
