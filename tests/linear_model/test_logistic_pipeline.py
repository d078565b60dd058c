"""Logistic regression behind other steps: maps of columns, and tables that change as a whole."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import TransformerMixin, clone

from effort import examples
from erasable import load
from erasable.core.changes import Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.errors import TooFewRecordsError
from erasable.core.estimator import Erasable
from erasable.core.records import Records
from erasable.core.rows import Rows
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler

SCALERS = [
    [StandardScaler()],
    [MinMaxScaler()],
    [StandardScaler(with_mean=False)],
    [StandardScaler(), MinMaxScaler((2.0, 3.0))],
    [StandardScaler(quantize=True, random_state=0)],
]
MODELS = [
    LogisticRegression(),
    LogisticRegression(50.0, fit_intercept=False),
    LogisticRegression(class_weight="balanced"),
]


def blobs(n_classes: int, offset: float = 1e6) -> tuple[np.ndarray, np.ndarray]:
    rng, n = np.random.default_rng(6), 150
    X = rng.normal(size=(n, 4)) * [1.0, 1e3, 1e-3, 5.0] + [5.0, 0.0, 0.01, offset]
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(4, n_classes))
    return X, np.argmax(score + rng.gumbel(size=score.shape), axis=1)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("scalers", SCALERS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_learns_what_scaled_records_teach(scalers: Any, model: Any, n_classes: int) -> None:
    # Without centring, scikit-learn has no digits for an offset.
    X, y = blobs(n_classes, 1e6 if getattr(scalers[0], "with_mean", True) else 10.0)
    ours = make_pipeline(*map(clone, scalers), clone(model)).fit(X, y)
    last = ours[-1]
    assert last._map is not None
    ours.delete([3, 70])
    left = np.delete(np.arange(150), [3, 70])
    scaled = X[left]
    for step in ours[:-1]:
        scaled = step.transform(scaled)
    params = {name: value for name, value in model.get_params().items() if name != "classes"}
    theirs = sklearn.linear_model.LogisticRegression(
        **{**params, "solver": "newton-cholesky", "tol": 1e-13, "max_iter": 10_000}
    ).fit(scaled, y[left])
    np.testing.assert_allclose(last.coef_, theirs.coef_, atol=2e-5)
    logits = ours.decision_function(X[left])
    tolerance = 1e-5 * (1 + np.abs(scaled).max())
    np.testing.assert_allclose(logits, theirs.decision_function(scaled), atol=tolerance)
    np.testing.assert_allclose(ours.predict_proba(X[left]), theirs.predict_proba(scaled), atol=1e-5)
    # The step itself, asked by anybody else, takes scaled rows.
    np.testing.assert_allclose(last.decision_function(scaled), logits, atol=tolerance)
    assert np.array_equal(last.predict(Rows(scaled)), ours.predict(X[left]))


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("scalers", SCALERS[:4], ids=repr)
def test_deletions_behind_a_map_are_refits(scalers: Any, model: Any, tmp_path: Path) -> None:
    X, y = blobs(3)
    pipeline = make_pipeline(*map(clone, scalers), clone(model)).fit(X, y)
    alive = np.ones(150, dtype=bool)
    rng = np.random.default_rng(0)
    for step in range(12):
        rows = rng.permutation(np.flatnonzero(alive))[: 1 if step % 4 else 5]
        if step == 5:
            rows = np.array([np.argmax(np.where(alive, X[:, 0], -np.inf))])
        pipeline.delete(rows, digest=step % 3 == 0)
        alive[rows] = False
        if step == 7:
            pipeline = pickle.loads(pickle.dumps(pipeline))
        if step in (0, 5, 6, 11):
            keep = rng.permutation(np.flatnonzero(alive))
            fresh = make_pipeline(*map(clone, scalers), clone(model)).fit(
                X[keep], y[keep], ids=keep
            )
            assert pipeline.digest() == fresh.digest()
    pipeline.save(tmp_path / "pipeline")
    again = load(tmp_path / "pipeline", Records(X[keep], y[keep], ids=keep))
    assert again.predict_proba(X).tobytes() == pipeline.predict_proba(X).tobytes()
    assert again.delete(keep[:1]).digest_after == pipeline.delete(keep[:1]).digest_after


# --------------------------------------------------------------------------- other tables


class Shares(TransformerMixin, Erasable):
    """Divide by the totals of all records, and drop the columns that have none.

    Every deletion changes every value, and some change the columns.
    """

    def _fit_rows(self) -> None:
        held = self._attached()
        self.totals_ = np.abs(held.records.matrix[held.live]).sum(axis=0)
        self.kept_ = np.flatnonzero(self.totals_ > 0)

    def _update(self, delta: Delta) -> Outcome:
        before = self.kept_
        self._fit_rows()
        place = {column: position for position, column in enumerate(before.tolist())}
        origin = np.array([place.get(c, -1) for c in self.kept_.tolist()], dtype=np.int64)
        self._change = TableChange(origin=origin)
        return Outcome("updated")

    def _state(self) -> dict[str, Any]:
        return {"totals": self.totals_}

    def _restore(self, state: dict[str, Any]) -> None:
        self.totals_ = state["totals"]
        self.kept_ = np.flatnonzero(self.totals_ > 0)

    def _reattach(self) -> None:
        self._accelerator = True

    def transform(self, X: Any) -> np.ndarray:
        matrix = self._read_matrix(X)
        return np.ascontiguousarray(
            100.0 * (matrix / np.maximum(self.totals_, 1e-9))[:, self.kept_]
        )


def counts(n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Words that few records have."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.15, size=(60, 12)).astype(float)
    X[:, 0] = rng.poisson(3, size=60)
    return X, rng.integers(0, n_classes, 60)


@given(st.integers(0, 2**31), st.sampled_from([2, 3]))
@settings(max_examples=examples(10))
def test_it_goes_on_with_a_table_that_has_changed(seed: int, n_classes: int) -> None:
    X, y = counts(n_classes, seed)
    model = make_pipeline(Shares(), LogisticRegression(5.0)).fit(X, y)
    width = model[-1].n_features_in_
    alive = np.ones(60, dtype=bool)
    order = np.random.default_rng(seed).permutation(60)
    for step, row in enumerate(order[:40]):
        try:
            deletion = model.delete([row], digest=step % 5 == 0)
        except TooFewRecordsError:
            break
        alive[row] = False
        assert deletion.action == "resumed"
        if step % 8 == 7:
            keep = np.flatnonzero(alive)
            fresh = make_pipeline(Shares(), LogisticRegression(5.0)).fit(X[keep], y[keep], ids=keep)
            assert model.digest() == fresh.digest()
            assert model.predict_proba(X).tobytes() == fresh.predict_proba(X).tobytes()
    assert model[-1].n_features_in_ <= width


DOCUMENTS = [
    f"{' '.join(words)} {'win cash now' if spam else 'see you soon'}"
    for spam, words in [
        (i % 3 == 0, np.random.default_rng(i).choice(list("abcdefghijklmnop"), 6).tolist())
        for i in range(60)
    ]
]
KINDS = np.array(["spam" if i % 3 == 0 else "ham" for i in range(60)], dtype=object)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_sender_leaves_a_spam_filter(C: float) -> None:
    pattern = r"(?u)\b\w+\b"
    model = make_pipeline(TfidfVectorizer(token_pattern=pattern), LogisticRegression(C))
    model.fit(DOCUMENTS, KINDS)
    twin = clone(model)
    for row in range(12):
        deletion = model.delete([row])
        assert deletion.action == "resumed"
    keep = np.arange(12, 60)
    twin.fit([DOCUMENTS[i] for i in keep], KINDS[keep], ids=keep)
    assert model.digest() == twin.digest()
    assert model.score(DOCUMENTS, KINDS) > 0.9
    again = pickle.loads(pickle.dumps(model))
    assert again.delete([12]).digest_after == model.delete([12]).digest_after
