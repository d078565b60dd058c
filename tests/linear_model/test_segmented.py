"""Segmented regression: scikit-learn's numbers, the law where records move, and refusals."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable import Records, load
from erasable.cluster import QuantizedKMeans
from erasable.core.errors import (
    ArtifactError,
    InvalidDataError,
    InvalidParameterError,
    MagnitudeError,
    TooFewRecordsError,
)
from erasable.core.grid import PrecisionWarning
from erasable.linear_model import Ridge, SegmentedRegression
from erasable.linear_model._segmented import SegmentSums
from erasable.model_selection import leave_one_out
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.utils._checks.reach import Marks, traces
from erasable.utils.estimator_checks import parametrize_with_law_checks
from law_cases import check_law_of_variant, of_variants
from linear_model.least_squares import IDS, Case

VARIANTS = [SegmentedRegression(3, alpha=0.0, max_iter=2), SegmentedRegression(1)]


@parametrize_with_checks([SegmentedRegression(), VARIANTS[0]])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.thorough
@of_variants(parametrize_with_law_checks(VARIANTS, fast=True))
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


def pieces(n: int = 600, d: int = 3, targets: int = 1, seed: int = 0) -> Case:
    """Two or more lines that meet, over a uniform cube: clusters have no gaps between them."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.abs(X @ rng.normal(size=(d, targets)) - 0.3) + 0.01 * rng.normal(size=(n, targets))
    return Case(X, y[:, 0] if targets == 1 else y)


def fit(case: Case, model: Any, rows: Any = None) -> Any:
    rows = np.arange(len(case)) if rows is None else np.asarray(rows)
    return clone(model).fit(case.X[rows], case.y[rows], ids=IDS + rows)


def assert_same(model: Any, other: Any, case: Case) -> None:
    assert model.digest() == other.digest()
    assert model.labels_.tobytes() == other.labels_.tobytes()
    assert model.coef_.tobytes() == other.coef_.tobytes()
    assert model.predict(case.X).tobytes() == other.predict(case.X).tobytes()


# --------------------------------------------------------------------------- the numbers


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 20.0])
def test_each_segment_is_a_ridge_of_its_own_records(alpha: float, targets: int) -> None:
    case = pieces(targets=targets)
    model = fit(case, SegmentedRegression(5, alpha=alpha, random_state=0))
    kmeans = QuantizedKMeans(5, random_state=0).fit(case.X, ids=IDS + np.arange(600))
    assert model.labels_.tobytes() == kmeans.labels_.tobytes()
    assert model.cluster_centers_.tobytes() == kmeans.cluster_centers_.tobytes()
    assert model.n_iter_ == kmeans.n_iter_
    query = np.random.default_rng(1).random((400, 3))
    found, nearest = model.predict(query), kmeans.predict(query)
    for s in range(5):
        rows = model.labels_ == s
        other = sklearn.linear_model.Ridge(alpha).fit(case.X[rows], case.y[rows])
        np.testing.assert_allclose(model.coef_[s], other.coef_, atol=1e-6)
        np.testing.assert_allclose(model.intercept_[s], other.intercept_, atol=1e-6)
        wanted = other.predict(query[nearest == s])
        np.testing.assert_allclose(found[nearest == s], wanted, atol=1e-6)


def test_pieces_fit_what_one_line_cannot() -> None:
    case = pieces(n=2000)
    whole = Ridge(0.1).fit(case.X, case.y).score(case.X, case.y)
    model = fit(case, SegmentedRegression(12, alpha=0.1, random_state=0))
    assert model.score(case.X, case.y) > 0.97 > whole


def test_one_segment_is_a_ridge() -> None:
    case = pieces()
    model, ridge = fit(case, SegmentedRegression(1)), Ridge().fit(case.X, case.y)
    assert model.coef_[0].tobytes() == ridge.coef_.tobytes()
    assert model.predict(case.X).tobytes() == ridge.predict(case.X).tobytes()


def test_a_segment_without_records_predicts_what_all_records_do() -> None:
    """Only four different rows: the other clusters are duplicates, and lose all ties."""
    rng = np.random.default_rng(0)
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])[rng.integers(0, 4, 80)]
    case = Case(X, X @ [1.0, 2.0] + 0.1 * rng.normal(size=80))
    model = fit(case, SegmentedRegression(7, random_state=0))
    empty = sorted(set(range(7)) - set(model.labels_.tolist()))
    assert empty
    ridge = fit(case, Ridge())
    assert model.coef_[empty[0]].tobytes() == ridge.coef_.tobytes()
    assert model.intercept_[empty[0]] == ridge.intercept_
    used = model.labels_[0]
    assert model.coef_[used].tobytes() != ridge.coef_.tobytes()
    model.delete([IDS + 3])
    left = np.delete(np.arange(80), 3)
    assert_same(model, fit(case, SegmentedRegression(7, random_state=0), left), case)
    assert model.coef_[empty[0]].tobytes() == fit(case, Ridge(), left).coef_.tobytes()


@pytest.mark.parametrize("columns", [None, 1, 3])
def test_shapes(columns: int | None) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30 if columns is None else (30, columns))
    model = SegmentedRegression(2, random_state=0).fit(X, y)
    several = columns == 3
    assert model.coef_.shape == ((2, 3, 4) if several else (2, 4))
    assert model.intercept_.shape == ((2, 3) if several else (2,))
    assert model.predict(X).shape == ((30, 3) if several else (30,))


def test_a_row_is_predicted_by_itself() -> None:
    case = pieces()
    model = fit(case, SegmentedRegression(random_state=0))
    every = model.predict(case.X)
    assert [model.predict(row[None])[0] for row in case.X] == every.tolist()


# --------------------------------------------------------------------------- the law


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(4, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = {
        "uniform": rng.random((n, 2)),
        "skewed": np.exp(2 * rng.normal(size=(n, 2))),
        "offset": 1e9 + rng.normal(size=(n, 1)),
        "few": rng.integers(0, 3, size=(n, 2)).astype(np.float64),
    }[draw(st.sampled_from(["uniform", "skewed", "offset", "few"]))]
    y: Any = {
        "one": 1e3 * rng.normal(size=n),
        "two": np.exp(3 * rng.normal(size=(n, 2))),
        "whole": rng.integers(-9, 9, n),
    }[draw(st.sampled_from(["one", "two", "whole"]))]
    return Case(X, y)


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@given(data=st.data())
@settings(max_examples=examples(60))
def test_after_deletions_the_model_is_a_refit(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    case = data.draw(cases())
    kind = SegmentedRegression(data.draw(st.integers(1, 4)), alpha=0.5, random_state=7)
    model = fit(case, kind)
    order = data.draw(st.permutations(range(len(case))))
    start, refit = 0, None
    while start < len(order) - kind.n_segments:
        stop = data.draw(st.integers(start + 1, len(order) - kind.n_segments))
        rows, start = np.array(order[start:stop]), stop
        if data.draw(st.booleans()):
            model = pickle.loads(pickle.dumps(model))
        model.delete(IDS + rows, digest=data.draw(st.booleans()))
        refit = fit(case, kind, order[start:])
        left = np.sort(np.array(order[start:]))
        assert model.ids_.tolist() == (IDS + left).tolist()
        assert model.digest() == refit.digest()
        assert model.predict(case.X).tobytes() == refit.predict(case.X).tobytes()
    if refit is not None:
        folder = tmp_path_factory.mktemp("models")
        model.save(folder / "model")
        refit.save(folder / "refit")
        assert (folder / "model").read_bytes() == (folder / "refit").read_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_records_that_change_their_segment_are_moved(seed: int) -> None:
    case = pieces(n=1500, seed=seed)
    kind = SegmentedRegression(4, random_state=seed)
    model = fit(case, kind)
    moved, still, rows = 0, 0, np.random.default_rng(seed).permutation(1500)[:300]
    for row in rows.tolist():
        before = model.labels_[model.ids_ != IDS + row]
        deletion = model.delete([IDS + row], digest=False)
        if deletion.action != "refit":
            flips = np.count_nonzero(model.labels_ != before)
            assert deletion.counts["moved"] == flips
            moved, still = moved + flips, still + (flips == 0)
    assert moved > 0
    assert still > 150
    assert_same(model, fit(case, kind, np.setdiff1d(np.arange(1500), rows)), case)


def test_records_that_were_not_moved_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: sums that stay in the old segments are another model's."""
    case = pieces(n=1500)
    kind = SegmentedRegression(4, random_state=0)
    model = fit(case, kind)
    nothing = np.empty(0, dtype=np.int64)
    monkeypatch.setattr(SegmentSums, "relabel", lambda self, live, labels: (nothing, nothing))
    rows = np.random.default_rng(0).permutation(1500)[:300]
    for row in rows.tolist():
        model.delete([IDS + row], digest=False)
    monkeypatch.undo()
    refit = fit(case, kind, np.setdiff1d(np.arange(1500), rows))
    assert model.labels_.tobytes() == refit.labels_.tobytes()
    assert model.digest() != refit.digest()


@pytest.mark.parametrize("which", ["X", "y"])
def test_an_extreme_that_goes_changes_all_grids(which: str) -> None:
    case = pieces()
    if which == "X":
        case.X[40, 1] = 3.0
    else:
        case.y[40] = 1e3
    kind = SegmentedRegression(3, random_state=0)
    model = fit(case, kind)
    deletion = model.delete([IDS + 40])
    assert deletion.action == "refit"
    assert deletion.rows_touched >= 599
    assert_same(model, fit(case, kind, np.delete(np.arange(600), 40)), case)


def test_digests_follow_every_segment() -> None:
    """Hashes of segments are kept, and dropped where a record comes or goes."""
    case = pieces()
    kind = SegmentedRegression(3, random_state=0)
    model = fit(case, kind)
    model.digest()
    for row in range(0, 200, 10):
        model.delete([IDS + row])
        assert model.digest() == pickle.loads(pickle.dumps(model)).digest()


def test_behind_a_scaler_that_rarely_moves() -> None:
    case = pieces()
    X = case.X * [1.0, 1e3, 1e-3]
    kind = make_pipeline(
        StandardScaler(quantize=True, random_state=0), SegmentedRegression(6, random_state=0)
    )
    model = clone(kind).fit(X, case.y)
    actions = [model.delete([row]).action for row in range(20)]
    assert actions.count("updated") > 10
    fresh = clone(kind).fit(X[20:], case.y[20:], ids=np.arange(20, 600))
    assert model.digest() == fresh.digest()
    assert model.predict(X).tobytes() == fresh.predict(X).tobytes()


def test_leave_one_out() -> None:
    case = pieces(n=40)
    kind = SegmentedRegression(3, random_state=0)
    found = leave_one_out(fit(case, kind)).predictions
    for row in (0, 17, 39):
        left = np.delete(np.arange(40), row)
        assert found[row] == fit(case, kind, left).predict(case.X[[row]])[0]


@pytest.mark.parametrize("whole", [False, True])
def test_nothing_is_left_of_a_deleted_record(whole: bool) -> None:
    rng = np.random.default_rng(1234567)
    X = (2.0 * rng.integers(2**22, 2**23, size=(40, 2)) + 1.0) * rng.choice([-1.0, 1.0], (40, 1))
    y: Any = (2.0 * rng.integers(2**22, 2**23, size=40) + 1.0) * rng.choice([-1.0, 1.0], 40)
    X[5], y[17] = X[5] * 4.0, y[17] * 4.0  # extremes: grids change
    y = y.astype(np.int64) if whole else y
    ids = rng.integers(2**61, 2**62, size=40)
    marks = {row: Marks(int(ids[row]), (*map(float, X[row]), float(y[row]))) for row in (5, 17, 30)}
    records = Records(X, y, ids=ids)
    kind = SegmentedRegression(3, random_state=0)
    model, other = clone(kind).fit(records), clone(kind).fit(records)
    gone: list[int] = []
    for row, mark in marks.items():
        model.predict(X)
        assert traces(model, mark)
        model.delete(ids[[row]])
        late = clone(kind).fit(records)
        other.delete(ids[[row]])
        gone.append(row)
        left = np.delete(np.arange(40), gone)
        refit = clone(kind).fit(X[left], y[left], ids=ids[left])
        assert refit.digest() == model.digest() == late.digest()
        for each in gone:
            for one in (model, other, late):
                assert traces(one, marks[each]) <= traces(refit, marks[each])
        del late, one
        gc.collect()  # it holds the next record, too


def test_names_of_a_frame_reach_the_k_means() -> None:
    pandas = pytest.importorskip("pandas")
    case = pieces(n=100)
    frame = pandas.DataFrame(case.X, columns=["age", "height", "weight"])
    model = SegmentedRegression(3, random_state=0).fit(frame, case.y)
    kmeans = QuantizedKMeans(3, random_state=0).fit(frame)
    assert model.cluster_centers_.tobytes() == kmeans.cluster_centers_.tobytes()
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.delete([3])
    left = frame.drop(index=3)
    fresh = SegmentedRegression(3, random_state=0).fit(left, case.y[left.index])
    assert model.digest() == again.digest() == fresh.digest()


# --------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"n_segments": 0}, "n_segments"),
        ({"n_segments": 2.0}, "n_segments"),
        ({"alpha": -1.0}, "alpha"),
        ({"max_iter": 0}, "max_iter"),
        ({"random_state": "a"}, "random_state"),
    ],
)
def test_parameters_are_checked(params: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"The '{told}' parameter of Segmented"):
        SegmentedRegression(**params).fit([[1.0], [2.0]], [1.0, 2.0])


def test_fewer_records_than_segments() -> None:
    case = pieces(n=9)
    with pytest.raises(TooFewRecordsError, match="SegmentedRegression needs at least 10"):
        SegmentedRegression(10).fit(case.X, case.y)
    model = fit(case, SegmentedRegression(8, random_state=0))
    digest = model.digest()
    with pytest.raises(TooFewRecordsError, match="needs at least 8"):
        model.delete([IDS, IDS + 1])
    assert model.digest() == digest
    model.set_params(n_segments=2)
    with pytest.raises(TooFewRecordsError, match="needs at least 8"):
        model.delete([IDS, IDS + 1])
    model.delete([IDS])
    assert model.digest() == fit(case, SegmentedRegression(8, random_state=0), range(1, 9)).digest()


@pytest.mark.parametrize(
    ("y", "told"),
    [(None, "requires y"), (["a"] * 30, "strings"), (np.full(30, np.inf), "infinity")],
)
def test_targets_are_checked(y: Any, told: str) -> None:
    with pytest.raises(InvalidDataError, match=told):
        SegmentedRegression().fit(pieces(n=30).X, y)


def test_values_that_are_too_large_or_too_skewed() -> None:
    case = pieces(n=30)
    case.y[3] = 1e12
    with pytest.warns(PrecisionWarning, match=r"y\[0\]"):
        SegmentedRegression(random_state=0).fit(case.X, case.y)
    case.y[3] = 2.0**481
    with pytest.raises(MagnitudeError):
        SegmentedRegression(random_state=0).fit(case.X, case.y)


def test_other_records_are_refused(tmp_path: Path) -> None:
    case = pieces(n=60)
    fit(case, SegmentedRegression(3, random_state=0)).save(tmp_path / "model")
    ids = IDS + np.arange(60)
    assert load(tmp_path / "model", Records(case.X, case.y, ids=ids)).delete([IDS]).ids == [IDS]
    other, moved = case.y.copy(), case.X.copy()
    other[3] += 1.0
    moved[3] += 0.1
    for X, y, told in (
        (case.X, None, "no targets"),
        (case.X, other, "makes another"),
        (moved, case.y, "makes another"),
    ):
        with pytest.raises(ArtifactError, match=told):
            load(tmp_path / "model", Records(X, y, ids=ids))
