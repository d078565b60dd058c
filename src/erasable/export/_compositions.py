"""Exports of pipelines, column transformers, and of what `Refit` wraps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils import get_tags

from erasable.core._column_choice import Columns, positions
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
    return encoded_parts(source.state["params"][parameter])


# -- column transformers ---------------------------------------------------------------------------


def column_transformer(source: Source) -> ColumnTransformer:
    """Export the transformers, with the positions of their columns."""
    model = source.model
    there = Columns(model.n_features_in_, source.state["feature_names"])
    selected, parts, used = source.state.get("selected", {}), [], set()
    given = {name: part for name, part, _ in model.transformers}
    for name, (encoded, chosen) in _encoded(source, "transformers").items():
        columns = selected.get(name)
        if columns is None:
            columns = positions(decode_param(chosen), there, name)
        columns = list(map(int, columns))
        used.update(columns)
        if columns:
            part = _part(source, given[name], encoded, len(columns))
            parts.append((name, part, columns[0] if _reads_texts(part) else columns))
    n_left = model.n_features_in_ - len(used)
    rest = source.state["params"]["remainder"]
    return _fitted(
        source, parts, _part(source, model.remainder, rest, n_left) if n_left else "drop"
    )


def _part(source: Source, part: Any, encoded: Any, width: int) -> Any:
    """Export a part, which gets so many columns; `encoded` is what it was at `fit`."""
    if is_word(part):
        return encoded
    if isinstance(part, Erasable):
        return source.part(part)
    return made_ready(as_encoded(part, encoded), width)


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
        zeros = np.zeros((X.shape[0], self.width))
        return csr_array(zeros) if _makes_sparse(self.part, issparse(X)) else zeros


def _makes_sparse(part: Any, given: bool) -> bool:
    """Tell whether a fitted estimator makes a sparse table, of a sparse one if `given` is true."""
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
        sparse_threshold=source.state["params"].get("sparse_threshold", 1.0),
        verbose_feature_names_out=source.at_fit("verbose_feature_names_out"),
    )
    row: Any = np.zeros((1, model.n_features_in_))
    if source.held is not None and issparse(source.held.records.matrix):
        row = csr_array(row)  # without records, tables are dense
    made.fit(row)
    made.transformers, made.remainder = parts, rest
    made._remainder = (made._remainder[0], rest, made._remainder[2])
    made.transformers_ = [
        (name, part.part if isinstance(part, _Stub) else part, columns)
        for name, part, columns in made.transformers_
    ]
    return made
