"""The model that is exported, with its parameters as they were at `fit`, and names of columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.pipeline import Pipeline

from erasable.core.attachment import Attachment

_NOT_EXPORTED = ("n_jobs", "random_state")
"""Parameters that say nothing of what was learned: they are the default ones in the export."""


@dataclass(frozen=True, eq=False)
class Source:
    """A fitted model that is exported."""

    model: Any
    at_fit: Callable[[str], Any]
    """Returns a parameter of the model as it was at `fit`."""
    held: Attachment | None
    """Its records; None where it was loaded without."""
    records: bool
    """Whether the caller knows that the exported estimator may hold records."""

    def shared(self, theirs: type[Any]) -> dict[str, Any]:
        """Return the parameters that a class of scikit-learn shares with the model's."""
        own, other = (inspect.signature(cls).parameters for cls in (type(self.model), theirs))
        return {
            name: self.at_fit(name) for name in own if name in other and name not in _NOT_EXPORTED
        }

    @cached_property
    def state(self) -> dict[str, Any]:
        """What the model has learned, a copy."""
        found: dict[str, Any] = self.model.state()
        return found

    @property
    def names(self) -> NDArray[Any] | None:
        """Names of the columns, where the model was fitted on a frame."""
        return getattr(self.model, "feature_names_in_", None)

    def part(self, model: Any) -> Any:
        """Export a part of the model."""
        return model.to_sklearn(records=self.records)


def set_names(estimator: Any, names: NDArray[Any] | None) -> None:
    """Have a fitted estimator of scikit-learn expect columns of these names, or none.

    What is inside an estimator, and gets the same columns, expects the same.
    """
    if names is not None and hasattr(estimator, "feature_names_in_"):
        return
    if isinstance(estimator, Pipeline):
        steps = (step for _, step in estimator.steps if not is_word(step))
        for first in [*steps][:1]:
            set_names(first, names)
        return
    if isinstance(estimator, ColumnTransformer):
        for _, part, columns in estimator.transformers_:
            if not is_word(part):
                set_names(part, None if names is None else np.atleast_1d(names[columns]))
    elif isinstance(estimator, VotingClassifier | VotingRegressor):
        for each in estimator.estimators_:
            set_names(each, names)
    if names is None:
        estimator.__dict__.pop("feature_names_in_", None)
    elif "n_features_in_" in estimator.__dict__ or hasattr(estimator, "estimators_"):
        estimator.__dict__["feature_names_in_"] = names.copy()


def is_word(step: Any) -> bool:
    """Tell whether a step is None, "passthrough" or "drop"."""
    return step is None or isinstance(step, str)
