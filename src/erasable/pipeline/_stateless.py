"""Transformers of scikit-learn that learn nothing from the records, and so can be steps.

Most of them declare it in their tags. Some need a fit, but use only the number of columns: they are
fitted on a row of zeros. Other transformers of scikit-learn have to be fitted again on the
remaining records, by `erasable.refit.Refit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import get_tags

from erasable.core._mixed import Mixed
from erasable.core.arrays import Values
from erasable.core.errors import ErasableError, InvalidInputError, UnsupportedStepError
from erasable.core.estimator import Erasable
from erasable.core.messages import refuse_no_columns
from erasable.core.params import class_path
from erasable.core.values import Accepts
from erasable.pipeline._tables import read_output

ADVICE = (
    "transform the data before the pipeline, or wrap the whole pipeline of scikit-learn: "
    "Refit(sklearn.pipeline.make_pipeline(...))"
)

_OF_WIDTH: Mapping[str, Callable[[Any], bool]] = {
    "sklearn.decomposition.SparseCoder": lambda step: True,
    "sklearn.impute.MissingIndicator": lambda step: step.features == "all",
    "sklearn.kernel_approximation.AdditiveChi2Sampler": lambda step: True,
    "sklearn.preprocessing.Binarizer": lambda step: True,
    "sklearn.preprocessing.Normalizer": lambda step: True,
    "sklearn.preprocessing.PolynomialFeatures": lambda step: True,
    "sklearn.preprocessing.SplineTransformer": lambda step: not isinstance(step.knots, str),
}
"""Transformers that need only the number of columns; with the parameters for which this holds."""


def wants_width(step: Any) -> bool:
    """Return whether a transformer learns from the number of columns alone."""
    check = _OF_WIDTH.get(class_path(type(step)))
    return check is not None and check(step)


def learns_nothing(step: Any) -> bool:
    """Return whether a transformer's output for a row depends on that row alone."""
    return not get_tags(step).requires_fit or wants_width(step)


def made_ready(step: Any, n_columns: int) -> Any:
    """Return a stateless transformer, fitted on zeros if it needs a fit."""
    if wants_width(step) and getattr(step, "n_features_in_", None) != n_columns:
        step.fit(np.zeros((2, n_columns)))
    return step


def check_steps(steps: Sequence[tuple[str, Any]]) -> None:
    """Refuse steps that cannot be part of a pipeline."""
    if not steps:
        raise InvalidInputError("The pipeline is empty; expected steps. Please add steps.")
    for place, (name, step) in enumerate(steps):
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        if isinstance(step, type) or not hasattr(step, "fit"):
            raise UnsupportedStepError(
                f"step {name!r} is {step!r}; expected an estimator or the string 'passthrough' "
                "(Last step of Pipeline should implement fit); pass an instance"
            )
        learns = isinstance(step, Erasable)
        if not learns and not learns_nothing(step):
            raise UnsupportedStepError(
                f"step {name!r} is a {type(step).__name__}, which learns from records and cannot "
                "delete them; expected an estimator of erasable, or a stateless transformer; use "
                f"its counterpart in erasable, {ADVICE}"
            )
        if not hasattr(step, "transform") and (place < len(steps) - 1 or not learns):
            raise UnsupportedStepError(
                f"step {name!r} is a {type(step).__name__}, which has no transform; "
                "All intermediate steps should be transformers; put it last, or leave it out"
            )


def names_after(steps: Iterable[tuple[str, Any]], names: NDArray[Any]) -> NDArray[Any]:
    """Return the names of the columns that steps make of the columns `names`.

    Raise InvalidInputError if a step takes other columns, or another number.
    """
    for name, step in steps:
        try:
            names = made_ready(step, len(names)).get_feature_names_out(names)
        except ValueError as error:
            told = f"step {name!r} cannot name its output: {error}"
            raise InvalidInputError(told) from None
    return names


def transformed(name: str, step: Any, rows: Values) -> Values:
    """Transform rows by a transformer that learns nothing.

    Raise UnsupportedStepError if it fails, InvalidDataError if its result is not a table of finite
    numbers with a row for each.
    """
    given = rows.objects() if isinstance(rows, Mixed) else rows
    if Accepts.of(step).documents:
        given = given[:, 0].tolist()
    try:
        made = made_ready(step, rows.shape[1]).transform(given)
    except (ErasableError, MemoryError):
        raise
    except Exception as error:
        kind = type(step).__name__
        refuse_no_columns(rows, kind)  # no earlier step has made names
        table = "sparse matrix" if issparse(rows) else f"table of {rows.dtype.name}"
        raise UnsupportedStepError(
            f"step {name!r}, a {kind}, cannot transform a {table} of {rows.shape[1]} columns "
            f"without names ({type(error).__name__}); expected a function of each row of such a "
            f"table; {ADVICE}"
        ) from error
    return read_output(name, made, rows)
