"""Parameters of recipes: plain JSON, in which names of estimators stand for estimators.

The law kept here: a parameter is a value or the name of a public estimator of scikit-learn or
erasable; a named estimator is made anew, with parameters of its own, and nothing else of it runs.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator

from erasable.core.errors import InvalidParameterError
from erasable.core.estimator import Erasable
from erasable.core.ids import shorten
from erasable.core.params import class_path
from erasable.workspace.models.names import (
    closest,
    find_estimator,
    names_of_erasable,
    names_of_scikit_learn,
)

Params = Mapping[str, Any]
BETWEEN = re.compile(r"\s*(?:->|,)\s*")
"""Separator of the names of estimators that make a pipeline."""
SEED = "random_state"
_PEER = ("sklearn.", "erasable.neural.Network")
"""Prefixes of the names of estimators that are no models by themselves."""
_OURS = "erasable."
_INNER = "estimator"
_REFIT = "erasable.refit.Refit"
_GATHERED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_STRUCTURE = frozenset({"steps", "memory", "verbose", "transform_input"})


def parse_parameter(name: str, given: Any) -> Any:
    """Read a parameter as a user typed it: as JSON if possible, else as text.

    >>> parse_parameter("C", "0.5"), parse_parameter("max_depth", "None")
    (0.5, None)
    """
    if isinstance(given, BaseEstimator) or inspect.isclass(given):
        cls = given if inspect.isclass(given) else type(given)
        raise InvalidParameterError(
            f"{name} is the {cls.__name__} itself; expected its name, which a recipe can hold; "
            f"{closest(cls.__name__, names_of_scikit_learn())}"
        )
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return None if given == "None" else given


def build(paths: Sequence[str], params: Params, prefix: str = "") -> BaseEstimator:
    """Make an estimator, or a pipeline of several, with the parameters it cannot be made without.

    The pipeline is erasable's if all of them are.

    >>> build(["sklearn.multiclass.OneVsRestClassifier"], {"estimator": "sklearn.svm.SVC"})
    OneVsRestClassifier(estimator=SVC())
    """
    made = [(name, _new(path, params, inside)) for name, inside, path in steps_of(paths, prefix)]
    if len(made) == 1:
        return made[0][1]
    if all(isinstance(part, Erasable) for _, part in made):
        import erasable.pipeline  # late, because it imports most of the estimators

        return erasable.pipeline.Pipeline(made)
    from sklearn.pipeline import Pipeline

    return Pipeline(made)


def steps_of(paths: Sequence[str], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the steps of a pipeline: name, prefix of its parameters, and path.

    >>> list(steps_of(["cluster.KMeans"]))
    [('kmeans', '', 'cluster.KMeans')]
    >>> list(steps_of(["a.B", "c.D", "e.B"]))
    [('b-1', 'b-1__', 'a.B'), ('d', 'd__', 'c.D'), ('b-2', 'b-2__', 'e.B')]
    """
    last = [path.rpartition(".")[2].lower() for path in paths]
    again: dict[str, int] = {}
    for name, path in zip(last, paths, strict=True):
        again[name] = again.get(name, 0) + 1
        step = f"{name}-{again[name]}" if last.count(name) > 1 else name
        yield step, f"{prefix}{step}__" if len(last) > 1 else prefix, path


def is_refit(part: Any) -> bool:
    """Tell whether something is a `Refit`, without importing `erasable.refit`."""
    return isinstance(part, Erasable) and class_path(type(part)) == _REFIT


def set_params(model: Any, params: Params) -> None:
    """Set the parameters of a model in place, by the names that users know them by.

    >>> from sklearn.ensemble import AdaBoostClassifier
    >>> model = AdaBoostClassifier()
    >>> set_params(model, {"estimator__C": 2, "estimator": "sklearn.svm.SVC"})
    >>> model
    AdaBoostClassifier(estimator=SVC(C=2))
    """
    for name in sorted(params, key=lambda name: name.count("__")):  # the outer before the inner
        known, valid = model.get_params(deep=True), _settable(model)
        owner, last = _owner(model, name)
        if is_without(model, name):
            owner.set_params(**{last: params[name]})  # which ignores it, or says what there is
            continue
        if name not in valid:
            raise InvalidParameterError(
                f"there is no parameter {shorten(name)}; expected one of the estimator; "
                f"{closest(name, list(valid))}"
            )
        full, value = valid[name], _value(name, params)
        if isinstance(known.get(full), tuple) and isinstance(value, list):
            value = tuple(value)
        model.set_params(**{full: value})


def is_without(model: Any, name: str) -> bool:
    """Tell whether an estimator of erasable has no such parameter: it ignores or refuses it."""
    owner, last = _owner(model, name)
    return isinstance(owner, Erasable) and not is_refit(owner) and last not in owner.get_params()


def _owner(model: Any, name: str) -> tuple[Any, str]:
    home, _, last = name.rpartition("__")
    return model.get_params(deep=True).get(home) if home else model, last


def _new(path: str, params: Params, prefix: str) -> BaseEstimator:
    cls = find_estimator(path)
    needed = [
        name
        for name, each in inspect.signature(cls).parameters.items()
        if each.default is each.empty and each.kind not in _GATHERED
    ]
    missing = [name for name in needed if f"{prefix}{name}" not in params]
    if missing == [_INNER]:
        raise InvalidParameterError(
            f"{path} is made of another estimator; expected the full name of one as the "
            f"parameter {prefix}{_INNER}; set {prefix}{_INNER}=sklearn.linear_model.SGDClassifier, "
            "say"
        )
    if missing:
        raise InvalidParameterError(
            f"{path} cannot be made without {', '.join(missing)}; expected an estimator that can, "
            "or a parameter of plain JSON; write the estimators that it is made of into a file, as "
            "`erasable model show --recipe` does, and name that with --estimator recipe.json"
        )
    return cls(**{name: _value(f"{prefix}{name}", params) for name in needed})


def _value(name: str, params: Params) -> Any:
    """Return the value of a parameter; where it names estimators, these."""
    value = params[name]
    paths = BETWEEN.split(value.strip()) if isinstance(value, str) else []
    inner = name.rpartition("__")[2] == _INNER
    if paths and all(path.startswith((*_PEER, _OURS) if inner else _PEER) for path in paths):
        return build(paths, params, f"{name}__")
    if inner and value is not None:
        known = [*names_of_scikit_learn(), *(f"{_OURS}{each}" for each in names_of_erasable())]
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected the full name of an estimator; "
            f"{closest(str(value), known) if paths else 'set sklearn.svm.SVC, say'}"
        )
    return value


def _settable(model: Any) -> dict[str, str]:
    """Map the names of parameters for users to those of the model.

    A `Refit` has no name for users: its estimator's parameters are those of the step. Seeds of
    estimators of scikit-learn, and of members, are left out: the estimator around them draws these.
    """
    known = {"": model, **model.get_params(deep=True)}
    hidden = [
        f"{name}__{_INNER}".removeprefix("__") for name, part in known.items() if is_refit(part)
    ]
    valid = {}
    for full, value in list(known.items())[1:]:
        home, _, last = full.rpartition("__")
        owner = known[home]
        member = _INNER in home.split("__")
        drawn = last == SEED and (member or not isinstance(owner, Erasable))
        # The steps of a pipeline are among its parameters, too.
        step = isinstance(value, BaseEstimator) and last not in owner.get_params(deep=False)
        structure = last in _STRUCTURE and hasattr(owner, "steps")
        if full in hidden or drawn or step or structure:
            continue
        name = full
        for inside in hidden:
            if full.startswith(f"{inside}__"):
                name = inside.removesuffix(_INNER) + full.removeprefix(f"{inside}__")
        valid[name] = full
    return valid
