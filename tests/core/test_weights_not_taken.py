"""Weights that scikit-learn's estimators take and ours do not: one error says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.validation import has_fit_parameter

from erasable.cluster import KMeans
from erasable.core.errors import InvalidInputError
from erasable.neighbors import KNeighborsClassifier, NearestCentroid
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler

X, Y, WEIGHTS = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [1.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "model",
    [
        KMeans(2), NearestCentroid(), KNeighborsClassifier(1), make_pipeline(MinMaxScaler()),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_they_are_refused_with_advice(model: Any) -> None:
    assert not has_fit_parameter(model, "sample_weight")
    with pytest.raises(InvalidInputError, match=r"sample_weight.*expected none"):
        model.fit(X, Y, sample_weight=WEIGHTS)
    assert "_info" not in model.__dict__
    assert model.fit(X, Y).ids_.tolist() == [0, 1, 2, 3]


def test_they_are_refused_slice_by_slice() -> None:
    scaler = MinMaxScaler().partial_fit(X, ids=[1, 2, 3, 4], sample_weight=None)
    with pytest.raises(InvalidInputError, match=r"partial_fit was given sample_weight; .* Refit"):
        scaler.partial_fit([[2.0]], ids=[5], sample_weight=[2.0])
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        scaler.fit(X, weights=WEIGHTS)
