"""A projection before a model: a deletion equals a fit without the records, also from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from erasable import Records
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neural_network import MLPClassifier, MLPRegressor
from erasable.pipeline import make_pipeline
from erasable.random_projection import GaussianRandomProjection, SparseRandomProjection
from erasable.svm import LinearSVC, LinearSVR

N, GONE = 60, [3, 17, 41]
X = np.round(np.random.default_rng(4).normal(size=(N, 6)), 3)
Y = (X[:, 0] > X[:, 1]).astype(int)
PROJECTIONS = [GaussianRandomProjection, SparseRandomProjection]
FROM_FILES = [LinearSVC(), LinearSVR(), LogisticRegression(), Ridge(), GaussianNB()]
IN_MEMORY = [MLPClassifier(max_iter=3, random_state=1), MLPRegressor(max_iter=3, random_state=1)]


def chain(projection: Any, model: Any) -> Any:
    return make_pipeline(projection(n_components=3, random_state=0), clone(model))


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("model", [*FROM_FILES, *IN_MEMORY], ids=lambda each: type(each).__name__)
def test_a_deletion_is_a_fit_without_the_records(projection: Any, model: Any) -> None:
    kept = np.setdiff1d(np.arange(N), GONE)
    fitted = chain(projection, model).fit(X, Y, ids=range(N))
    before = fitted.digest()
    fitted.delete(GONE)
    assert fitted.digest() == chain(projection, model).fit(X[kept], Y[kept], ids=kept).digest()
    assert fitted.digest() != before  # the control


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("model", FROM_FILES, ids=lambda each: type(each).__name__)
def test_from_files_as_in_memory(projection: Any, model: Any, tmp_path: Path) -> None:
    table = pa.table({**{f"c{j}": X[:, j] for j in range(6)}, "id": np.arange(N), "y": Y})
    pq.write_table(table, tmp_path / "part.parquet", row_group_size=16)
    stored = Records.from_parquet(tmp_path, ids="id", target="y")
    memory = Records.from_parquet(tmp_path, ids="id", target="y").in_memory()
    models = [chain(projection, model).fit(records) for records in (stored, memory)]
    for each in models:
        each.delete(GONE)
    assert models[0].digest() == models[1].digest()
