"""Tags of the inputs of estimators of scikit-learn; compositions lack those of their parts."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils import InputTags, TargetTags, get_tags

from erasable.core._column_choice import Columns, is_empty, positions
from erasable.refit._names import parts_of


def target_tags(estimator: Any) -> TargetTags:
    """Copy the tags of an estimator's targets, which are needed if any part needs them.

    Raise AttributeError, TypeError or ValueError if it is no estimator.
    """
    tags: TargetTags = deepcopy(get_tags(estimator).target_tags)
    tags.required |= any(get_tags(part).target_tags.required for part in _parts(estimator))
    return tags


def input_tags(estimator: Any) -> InputTags:
    """Copy the tags of an estimator's X.

    Raise AttributeError, TypeError or ValueError if it is no estimator.
    """
    head = get_tags(_head(estimator)).input_tags
    if head.string and not head.two_d_array:
        return deepcopy(head)
    tags: InputTags = deepcopy(get_tags(estimator).input_tags)
    inputs = [get_tags(part).input_tags for part in _parts(estimator)]
    tags.allow_nan = _takes_gaps(estimator)
    tags.categorical |= any(each.categorical or each.string for each in inputs)
    return tags


def unread_by(estimator: Any, columns: Columns) -> list[int]:
    """Return the positions of columns that a composition of scikit-learn does not look at."""
    steps = getattr(estimator, "steps", None)
    if steps is not None:
        active = [step for _, step in steps if step is not None and not isinstance(step, str)]
        return unread_by(active[0], columns) if active else []
    items = getattr(estimator, "transformers", None)
    if items is None or any(callable(chosen) for _, _, chosen in items):
        return []
    named = {
        name: [] if is_empty(chosen) else positions(chosen, columns, name)
        for name, _, chosen in items
    }
    read = {place for name, part, _ in items if not _drops(part) for place in named[name]}
    if not _drops(estimator.remainder):
        read |= set(range(columns.size)).difference(*named.values())
    return [place for place in range(columns.size) if place not in read]


def _drops(part: Any) -> bool:
    return isinstance(part, str) and part == "drop"


def _parts(estimator: Any) -> list[BaseEstimator]:
    return [part for part in parts_of(estimator) if isinstance(part, BaseEstimator)]


def _takes_gaps(estimator: Any) -> bool:
    """Tell whether NaN may come in: through steps that keep it, to one that can do with it."""
    steps = [each[1] for each in getattr(estimator, "steps", [])]
    for step in steps:
        if isinstance(step, BaseEstimator):
            if not _takes_gaps(step):
                return False
            if not isinstance(step, OneToOneFeatureMixin):
                return True
    for name in ("transformers", "transformer_list"):
        inner = [each[1] for each in getattr(estimator, name, [])]
        if inner:
            return any(_takes_gaps(each) for each in inner if isinstance(each, BaseEstimator))
    wrapped = getattr(estimator, "estimator", None)
    if isinstance(wrapped, BaseEstimator) and _takes_gaps(wrapped):
        return True
    return bool(steps) or bool(get_tags(estimator).input_tags.allow_nan)


def _head(estimator: Any) -> BaseEstimator:
    """Find the part of a composition that is given the records first."""
    for name in ("steps", "transformer_list"):
        named = [each[1] for each in getattr(estimator, name, [])]
        inner = [part for part in named if isinstance(part, BaseEstimator)]
        if inner:
            return _head(inner[0])
    wrapped = getattr(estimator, "estimator", None)
    return _head(wrapped) if isinstance(wrapped, BaseEstimator) else estimator
