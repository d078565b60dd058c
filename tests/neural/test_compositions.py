"""A frozen network among other steps: a deletion is a fit without the records, also at rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from sklearn.svm import SVC  # noqa: E402

from erasable.cluster import KMeans  # noqa: E402
from erasable.compose import ColumnTransformer  # noqa: E402
from erasable.ensemble import RandomForestClassifier  # noqa: E402
from erasable.linear_model import LogisticRegression, Ridge  # noqa: E402
from erasable.neural import Embedding  # noqa: E402
from erasable.pipeline import make_pipeline  # noqa: E402
from erasable.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler  # noqa: E402
from erasable.refit import Refit  # noqa: E402

N = 120
PIXELS = list(range(64))


def _images() -> Embedding:
    return Embedding("neural.backbones.images", shape=(1, 8, 8))


def _rows() -> Embedding:
    return Embedding("neural.backbones.any_width")


def _side_by_side() -> Any:
    scaled = ("scaled", StandardScaler(), [64])
    return ColumnTransformer(
        [("image", _images(), PIXELS), scaled, ("kind", OneHotEncoder(), [65])]
    )


def _nested() -> Any:
    part = make_pipeline(_images(), StandardScaler())
    return ColumnTransformer([("image", part, PIXELS)], remainder="passthrough")


COMPOSITIONS: dict[str, Callable[[], list[Any]]] = {
    "side by side": lambda: [_side_by_side(), LogisticRegression()],
    "nested": lambda: [_nested(), Ridge()],
    "behind a scaler that seldom changes": lambda: [MinMaxScaler(), _rows(), LogisticRegression()],
    "behind a scaler that always changes": lambda: [StandardScaler(), _rows(), Ridge()],
    "before a scaler": lambda: [_rows(), StandardScaler(), LogisticRegression()],
    "k-means": lambda: [_rows(), KMeans(3, random_state=0)],
    "forest": lambda: [_rows(), RandomForestClassifier(3, random_state=0)],
    "refit": lambda: [_rows(), Refit(SVC(), random_state=0)],
    "two": lambda: [_rows(), _rows(), Ridge()],
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_a_deletion_is_a_fit_without_the_records(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 66)), rng.integers(0, 2, N)
    X[:, 65] = rng.integers(0, 3, N)

    def fitted(gone: list[int]) -> Any:
        left = np.setdiff1d(np.arange(N), gone)
        return make_pipeline(*COMPOSITIONS[name]()).fit(X[left], y[left], ids=left)

    model = fitted([])
    whole = model.digest()
    model.delete([3])
    model.delete([50, 51])
    assert model.digest() == fitted([3, 50, 51]).digest() != whole
    model.save(tmp_path / "model", records=True)
    again = type(model).load(tmp_path / "model", True)
    assert again.delete([7]).digest_after == fitted([3, 7, 50, 51]).digest()
