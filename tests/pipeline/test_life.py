"""A pipeline's life: refusals, failures half-way, pickles, files, and what is left in them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.preprocessing
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

import erasable
from erasable.audit import equality, refit
from erasable.cluster import KMeans, QuantizedKMeans
from erasable.core.errors import (
    ArtifactError,
    DetachedError,
    InvalidDataError,
    InvalidInputError,
    TooFewRecordsError,
    UnknownIdError,
    UnsupportedStepError,
)
from erasable.core.records import Records
from erasable.linear_model import Ridge
from erasable.pipeline import Pipeline, make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from pipeline.small_steps import Failing, Rarity

X = np.random.default_rng(5).integers(-40, 41, size=(60, 4)) * np.array([1.0, 10.0, 0.5, 3.0])
IDS = [f"visit-{number}" for number in range(60)]


def scaled_kmeans() -> Pipeline:
    return make_pipeline(StandardScaler(), KMeans(3, random_state=0))


def on_a_table() -> Pipeline:
    return make_pipeline(MinMaxScaler(clip=True), KMeans(3, random_state=0))


KINDS = pytest.mark.parametrize("make", [scaled_kmeans, on_a_table])


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "error", "message"),
    [
        ([], InvalidInputError, "empty"),
        ([KMeans(2)], InvalidInputError, "expected a list of"),
        ([("a", StandardScaler()), ("a", KMeans())], InvalidInputError, "not unique"),
        ([("a__b", KMeans())], InvalidInputError, "must not contain __"),
        ([("steps", KMeans())], InvalidInputError, "conflict"),
        ([(3, KMeans())], InvalidInputError, "expected a list of"),
        ([("scaler", sklearn.preprocessing.StandardScaler()), ("k", KMeans())],
         UnsupportedStepError, "step 'scaler' is a StandardScaler, which learns .* cannot delete"),
        ([("pca", sklearn.decomposition.PCA(2)), ("k", KMeans())],
         UnsupportedStepError, "step 'pca' is a PCA"),
        ([("k", KMeans), ("s", StandardScaler())], UnsupportedStepError, "pass an instance"),
        ([("s", StandardScaler()), ("k", "kmeans")], UnsupportedStepError, "'passthrough'"),
        ([("s", StandardScaler()), ("k", object())], UnsupportedStepError, "implement fit"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_pipeline(steps: list[Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Pipeline(steps).fit(X)


def test_a_step_in_the_middle_must_transform() -> None:
    with pytest.raises(UnsupportedStepError, match="has no transform"):
        make_pipeline(Ridge(), KMeans(2)).fit(X)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: x - x.mean(axis=0), UnsupportedStepError, "other values when it is alone"),
        (lambda x: np.where(x > 0, np.nan, x), InvalidDataError, "made NaN or infinity"),
        (lambda x: x.sum(axis=1), InvalidDataError, "shape"),
        (lambda x: x[1:], InvalidDataError, "a row for each"),
        (lambda x: np.full(x.shape, "a"), InvalidDataError, "not a table of numbers"),
        (lambda x: __import__("scipy.sparse").sparse.csr_matrix(x), InvalidDataError, "sparse"),
    ],
)
def test_functions_that_are_refused(function: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        make_pipeline(FunctionTransformer(function), KMeans(2)).fit(X)


def test_a_fit_that_fails_leaves_every_step_as_it_was() -> None:
    pipeline = scaled_kmeans().fit(X, ids=IDS)
    digest, mean = pipeline.digest(), pipeline[0].mean_
    with pytest.raises(InvalidDataError):
        pipeline.fit(X * np.nan)
    pipeline.set_params(kmeans__n_clusters=40)
    with pytest.raises(TooFewRecordsError):
        pipeline.fit(X[:30])
    pipeline.set_params(kmeans__n_clusters=3)
    assert pipeline.digest() == digest
    assert np.array_equal(pipeline[0].mean_, mean)
    assert pipeline.delete(IDS[:3]).digest_before == digest
    assert equality(pipeline)


# -- deletions that fail ---------------------------------------------------------------------------


@KINDS
def test_a_deletion_that_is_refused_changes_nothing(make: Any) -> None:
    pipeline = make().fit(X, ids=IDS)
    digest = pipeline.digest()
    with pytest.raises(UnknownIdError):
        pipeline.delete([IDS[0], "visit-99"])
    with pytest.raises(TooFewRecordsError, match="needs at least 3"):
        pipeline.delete(IDS[:58])
    assert pipeline.digest() == digest
    pipeline.delete(IDS[:57])
    assert equality(pipeline)


def test_a_deletion_that_is_interrupted_changes_nothing() -> None:
    """The first step has forgotten already when the last one breaks off."""
    for first in (Rarity(), FunctionTransformer(np.abs), make_pipeline(Rarity())):
        pipeline = make_pipeline(first, Failing()).fit(np.rint(X), ids=IDS)
        digest = pipeline.digest()
        Failing.failures = 1
        with pytest.raises(KeyboardInterrupt):
            pipeline.delete(IDS[:5], digest=False)
        assert pipeline.digest() == digest
        assert pipeline.ids_.tolist() == IDS
        pipeline.delete(IDS[:5])
        assert equality(pipeline)


@KINDS
def test_a_step_refuses_to_delete_alone(make: Any) -> None:
    pipeline = make().fit(X, ids=IDS)
    digest = pipeline.digest()
    for step in (pipeline[0], pipeline[-1]):
        with pytest.raises(DetachedError, match="is a step of a pipeline"):
            step.delete([IDS[0]])
        with pytest.raises(DetachedError, match="is a step of a pipeline"):
            refit(step)
    assert pipeline.digest() == digest


@KINDS
def test_a_step_that_was_fitted_alone_is_noticed(make: Any) -> None:
    pipeline = make().fit(X, ids=IDS)
    pipeline[-1].fit(X[:20])
    pipeline[-1].delete([3])
    for ask in (lambda: pipeline.delete(IDS[:1]), lambda: pipeline.predict(X), pipeline.digest):
        with pytest.raises(NotFittedError, match="step 'kmeans' was replaced, or fitted on its"):
            ask()
    pipeline.fit(X, ids=IDS).delete(IDS[:1])
    pipeline.set_params(kmeans=KMeans(2))
    with pytest.raises(NotFittedError, match="was replaced"):
        pickle.dumps(pipeline)
    pipeline.steps.pop()
    with pytest.raises(NotFittedError, match="1 steps are here and 2 were fitted"):
        pipeline.delete(IDS[1:2])


def test_parameters_set_after_a_fit_concern_the_next_one() -> None:
    pipeline = on_a_table().fit(X, ids=IDS)
    pipeline.set_params(kmeans__n_clusters=7)
    again = pickle.loads(pickle.dumps(pipeline))
    highest = IDS[int(X[:, 0].argmax())]
    for model in (pipeline, again):
        assert model.delete([highest]).action == "refit"
        assert len(model[-1].cluster_centers_) == 3
    assert again.digest() == pipeline.digest()


# -- keeping ---------------------------------------------------------------------------------------


@KINDS
def test_a_pickle_holds_the_records_once_and_no_deleted_one(make: Any) -> None:
    table = np.random.default_rng(0).normal(size=(4000, 10))
    pipeline = make().fit(table)
    pipeline.delete(range(500))
    data = pickle.dumps(pipeline)
    assert len(data) < 1.3 * table[500:].nbytes
    assert not any(row.tobytes() in data for row in table[:500:50])
    again = pickle.loads(data)
    assert np.array_equal(again[-1].labels_, pipeline[-1].labels_)
    assert again[-1].ids_.tolist() == list(range(500, 4000))
    assert again.delete([600]).digest_after == pipeline.delete([600]).digest_after
    assert equality(again)


@KINDS
@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy])
def test_a_copy_lives_its_own_life(make: Any, copied: Any) -> None:
    pipeline = make().fit(X, ids=IDS)
    other = copied(pipeline)
    digest = pipeline.digest()
    other.delete(IDS[:9])
    assert pipeline.digest() == digest
    assert equality(other)
    assert pipeline.delete(IDS[:9]).digest_after == other.digest()


@KINDS
def test_a_step_in_a_pickle_of_its_own_predicts_and_holds_no_records(make: Any) -> None:
    table = np.random.default_rng(0).normal(size=(4000, 10))
    pipeline = make().fit(table)
    data = pickle.dumps(pipeline[-1])
    assert len(data) < table.nbytes / 4
    alone = pickle.loads(data)
    assert np.array_equal(alone.predict(table[:9]), pipeline[-1].predict(table[:9]))
    with pytest.raises(DetachedError):
        alone.delete([3])
    assert not hasattr(alone, "labels_")


@KINDS
def test_a_file_predicts_and_deletes_with_the_records(make: Any, tmp_path: Path) -> None:
    pipeline = make().set_params(kmeans__random_state=None).fit(X, ids=IDS)
    pipeline.delete(IDS[:5])
    pipeline.save(tmp_path / "model")
    alone = erasable.load(tmp_path / "model")
    assert np.array_equal(alone.predict(X), pipeline.predict(X))
    assert alone[-1].random_state == pipeline[-1].seed_
    with pytest.raises(DetachedError, match="without its records"):
        alone.delete(IDS[5:6])
    model = Pipeline.load(tmp_path / "model", Records(X[5:], ids=IDS[5:]))
    assert np.array_equal(model[-1].labels_, pipeline[-1].labels_)
    assert model.delete(IDS[5:20]).digest_after == pipeline.delete(IDS[5:20]).digest_after
    assert equality(model)
    with pytest.raises(ArtifactError, match="other"):
        Pipeline.load(tmp_path / "model", (X[5:] + 1.0, IDS[5:]))
    with pytest.raises(ArtifactError):
        KMeans.load(tmp_path / "model")


def test_a_file_of_a_mapped_step_takes_no_records(tmp_path: Path) -> None:
    """It would delete without following the scaler."""
    pipeline = scaled_kmeans().fit(X, ids=IDS)
    pipeline[-1].save(tmp_path / "step")
    assert np.array_equal(KMeans.load(tmp_path / "step").predict(X), pipeline[-1].predict(X))
    with pytest.raises(ArtifactError, match="was a step of a pipeline"):
        KMeans.load(tmp_path / "step", (X, IDS))


def test_a_function_is_not_loaded_from_a_file(tmp_path: Path) -> None:
    pipeline = make_pipeline(FunctionTransformer(np.abs), KMeans(3)).fit(X)
    pipeline.save(tmp_path / "model")
    assert Pipeline.load(tmp_path / "model").digest() == pipeline.digest()
    make_pipeline(FunctionTransformer(_halved), KMeans(3)).fit(X).save(tmp_path / "other")
    with pytest.raises(ArtifactError, match="_halved"):
        Pipeline.load(tmp_path / "other")


def _halved(table: np.ndarray) -> np.ndarray:
    return table / 2


@KINDS
def test_models_share_records(make: Any) -> None:
    records = Records(X, ids=IDS)
    pipeline, other = make().fit(records), QuantizedKMeans(3, random_state=0).fit(records)
    pipeline.delete(IDS[:4])
    assert records.matrix[0].any()
    assert equality(pipeline)
    other.delete(IDS[:4])
    assert not records.matrix[:4].any()
    assert not pipeline[-1]._held.records.matrix[:4].any()
    assert equality(other)


def test_a_clone_is_unfitted_and_refits_to_the_same() -> None:
    pipeline = scaled_kmeans().fit(X, ids=IDS)
    blank = clone(pipeline)
    with pytest.raises(NotFittedError):
        blank.predict(X)
    assert blank.fit(X, ids=IDS).digest() == pipeline.digest()
    assert blank[0] is not pipeline[0]
