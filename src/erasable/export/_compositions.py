"""Exports of pipelines, column transformers, and of what `Refit` wraps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils import get_tags

from erasable.core._column_choice import Columns, is_empty, positions
from erasable.core.estimator import Erasable
from erasable.core.params import as_encoded, decode_param, encoded_parts
from erasable.export._neighbors import warn_of_records
from erasable.export._source import Source, is_word
from erasable.pipeline._stateless import made_ready, names_after, wants_width

_HOLDERS = ("n_samples_fit_", "support_vectors_", "X_train_")
"""Attributes of estimators of scikit-learn that hold records."""


def warn_of_held(source: Source, estimator: Any) -> None:
    """Warn if a fitted estimator of scikit-learn holds records, unless the caller knows."""
    for _, step in estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]:
        held = isinstance(step, KernelDensity) or any(hasattr(step, name) for name in _HOLDERS)
        if held:
            warn_of_records(source, type(step).__name__)


def refit(source: Source) -> Any:
    """Export a copy of the fitted estimator."""
    made = source.model.estimator_
    warn_of_held(source, made)
    return made


# -- pipelines -------------------------------------------------------------------------------------


def pipeline(source: Source) -> Pipeline:
    """Export the steps."""
    encoded = {name: rest[0] for name, rest in _encoded(source, "steps").items()}
    steps: list[tuple[str, Any]] = []
    for place, (name, step) in enumerate(source.model.steps):
        made = step
        if isinstance(step, Erasable):
            made = source.part(step)
        elif not is_word(step):
            made = made_ready(as_encoded(step, encoded[name]), _width_before(source, place, step))
            if source.names is not None and all(is_word(each) for _, each in steps):
                # Steps of erasable.pipeline are given arrays.
                made = Pipeline([("array", FunctionTransformer(np.asarray)), (name, made)])
        steps.append((name, made))
    return Pipeline(steps)


def _width_before(source: Source, place: int, step: Any) -> int:
    """Return the number of columns that a transformer gets, if it needs that number."""
    if not wants_width(step):
        return 0
    if hasattr(step, "n_features_in_"):
        return int(step.n_features_in_)
    before = [each for each in source.model.steps[:place] if not is_word(each[1])]
    names = [f"x{column}" for column in range(source.model.n_features_in_)]
    return len(names_after(before, np.array(names, dtype=object)))


def _encoded(source: Source, parameter: str) -> dict[str, Any]:
    """Return what followed the names of the parts at `fit`, as plain values."""
    return encoded_parts(source.model.state()["params"][parameter])


# -- column transformers ---------------------------------------------------------------------------


def column_transformer(source: Source) -> ColumnTransformer:
    """Export the transformers, with the positions of their columns."""
    model, state = source.model, source.model.state()
    there = Columns(model.n_features_in_, state["feature_names"])
    places: dict[str, Any] = {}
    for name, (_, columns) in _encoded(source, "transformers").items():
        chosen = decode_param(columns)
        found = state.get("selected", {}).get(name)
        places[name] = positions(chosen, there, name) if found is None else found.tolist()
    parts = [
        (name, _part(source, part, places[name]), places[name])
        for name, part, _ in model.transformers
        if not is_empty(places[name])
    ]
    used = {place for each in places.values() for place in each}
    left = [place for place in range(model.n_features_in_) if place not in used]
    rest = _part(source, model.remainder, left) if left else "drop"
    parts = [
        (name, part, columns[0] if _reads_texts(part) else columns) for name, part, columns in parts
    ]
    return _fitted(source, parts, rest)


def _part(source: Source, part: Any, columns: list[int]) -> Any:
    if is_word(part):
        return part
    if isinstance(part, Erasable):
        return source.part(part)
    return made_ready(part, len(columns))


def _reads_texts(part: Any) -> bool:
    return not is_word(part) and not get_tags(part).input_tags.two_d_array


class _Stub(TransformerMixin, BaseEstimator):
    """Stands for a fitted part while scikit-learn's column transformer is fitted."""

    def __init__(self, part: Any, width: int) -> None:
        self.part = part
        self.width = width

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return what the part would return, but for the values."""
        zeros = np.zeros((len(X), self.width))
        return csr_array(zeros) if _makes_sparse(self.part) else zeros


def _makes_sparse(part: Any, given: bool = False) -> bool:
    """Tell whether a fitted estimator of scikit-learn makes a sparse table."""
    if isinstance(part, Pipeline):
        for _, step in part.steps:
            given = _makes_sparse(step, given)
        return given
    if isinstance(part, ColumnTransformer):
        return bool(part.sparse_output_)
    if isinstance(part, OneHotEncoder):
        return bool(part.sparse_output)
    if is_word(part):
        return given
    projects = isinstance(part, ClassNamePrefixFeaturesOutMixin)  # such as PCA
    return _reads_texts(part) or (given and not projects)


def _fitted(source: Source, parts: list[tuple[str, Any, Any]], rest: Any) -> ColumnTransformer:
    """Fit scikit-learn's column transformer, and replace what stands for its parts."""
    model = source.model
    widths = {name: each.stop - each.start for name, each in model.output_indices_.items()}

    def stub(name: str, part: Any) -> Any:
        return part if is_word(part) else _Stub(part, widths[name])

    made = ColumnTransformer(
        [(name, stub(name, part), columns) for name, part, columns in parts],
        remainder=stub("remainder", rest),
        sparse_threshold=model.state()["params"].get("sparse_threshold", 1.0),
        verbose_feature_names_out=source.at_fit("verbose_feature_names_out"),
    )
    made.fit(np.zeros((1, model.n_features_in_)))
    made.transformers, made.remainder = parts, rest
    made._remainder = (made._remainder[0], rest, made._remainder[2])
    made.transformers_ = [
        (name, part.part if isinstance(part, _Stub) else part, columns)
        for name, part, columns in made.transformers_
    ]
    return made
