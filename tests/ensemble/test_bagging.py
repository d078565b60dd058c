"""Bags against Poisson numbers by the definition, and scikit-learn fitted to each by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import poisson
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ensemble.learners import fitted, in_order, table
from erasable.core.errors import InvalidParameterError, TooFewRecordsError
from erasable.core.tape import Stream, Tape
from erasable.ensemble import BaggingClassifier, BaggingRegressor
from erasable.ensemble._allotment import Bags, chosen_columns, poisson_thresholds
from erasable.utils._checks.compare import assert_same


def times_in_bag(seed: int, owners: Any, bag: int, mean: float) -> Any:
    """How often each owner is in a bag: the quantile of its draw, by SciPy."""
    tape = Tape(seed)
    draws = tape.uniform(tape.record_keys(np.asarray(owners)), Stream.LEAF, bag)
    return poisson.ppf(draws, mean).astype(int)


@pytest.mark.parametrize("mean", [1.0, 0.5, 0.01])
def test_thresholds_are_those_of_poisson(mean: float) -> None:
    found = poisson_thresholds(mean)
    exact, term = [], math.exp(-mean)
    for events in range(found.size):
        exact.append(term)
        term *= mean / (events + 1)
    np.testing.assert_allclose(found, np.cumsum(exact), rtol=1e-15)
    assert (np.diff(found) > 0).all()
    assert 1.0 - found[-1] >= 0.0


def test_thresholds_do_not_depend_on_the_context_of_decimals() -> None:
    import decimal

    with decimal.localcontext() as context:
        context.prec = 3
        assert np.array_equal(poisson_thresholds(0.3), THRESHOLDS)


THRESHOLDS = poisson_thresholds(0.3)


@pytest.mark.parametrize(
    ("base", "weighs"),
    [(DecisionTreeClassifier(max_features=1), True), (KNeighborsClassifier(2), False)],
)
def test_every_bag_is_what_scikit_learn_makes_of_its_records(base: Any, weighs: bool) -> None:
    X, y, ids, groups = table(base)
    model = BaggingClassifier(base, 4, max_samples=0.6, random_state=5)
    model.fit(X, y, ids=ids, groups=groups)
    order = in_order(5, ids)
    votes: Any = 0.0
    for bag, mine in enumerate(model.estimators_):
        times = times_in_bag(5, groups, bag, 0.6)
        rows = order[times[order] > 0]
        tape = Tape(5).child("bag", bag)
        if weighs:
            plain = fitted(base, tape, X[rows], y[rows], sample_weight=times[rows])
        else:
            again = np.repeat(rows, times[rows])
            plain = fitted(base, tape, X[again], y[again])
        assert np.array_equal(mine.predict_proba(X), plain.predict_proba(X))
        columns = np.searchsorted(["ash", "elm", "oak"], plain.classes_.astype(str))
        share = np.zeros((60, 3))
        share[:, columns] = plain.predict_proba(X)
        votes = votes + share / 4
    np.testing.assert_allclose(model.predict_proba(X), votes, atol=1e-12)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("grouped", [True, False])
def test_a_deletion_is_a_refit(bootstrap: bool, grouped: bool) -> None:
    X, y, ids, groups = table(Ridge())
    groups = groups if grouped else None

    def fit(left: Any) -> Any:
        model = BaggingRegressor(
            KNeighborsRegressor(1), 5, max_samples=0.4, bootstrap=bootstrap, random_state=5
        )
        own = None if groups is None else groups[left]
        return model.fit(X[left], y[left], ids=ids[left], groups=own)

    model = fit(np.arange(60))
    before = dict(model._members)
    owner = (ids if groups is None else groups)[7]
    drawn = Tape(5).record_keys(np.array([owner]))
    rate = math.exp(-0.4) if bootstrap else 0.6
    touched = {bag for bag in range(5) if Tape(5).uniform(drawn, Stream.LEAF, bag)[0] >= rate}
    gone = ids[7:8] if groups is None else ids[groups == owner]
    assert model.delete(gone).counts == {"bags": len(touched)}
    for bag, member in model._members.items():
        assert (member is before[bag]) == (bag not in touched)
    assert_same(model, fit(np.flatnonzero(~np.isin(ids, gone))[::-1]), "from a refit", save=True)


def test_a_record_is_in_63_percent_of_the_bags() -> None:
    X, y, ids, _ = table(Ridge())
    model = BaggingRegressor(LinearRegression(), 40, random_state=5).fit(X, y, ids=ids)
    shares = [model.delete([each]).counts["bags"] / 40 for each in ids[:12]]
    assert abs(np.mean(shares) - (1 - math.exp(-1))) < 0.06
    whole = BaggingRegressor(LinearRegression(), 3, bootstrap=False, random_state=5)
    deletion = whole.fit(X, y, ids=ids).delete(ids[:1])
    assert (deletion.action, deletion.counts) == ("refit", {"bags": 3})


def test_bags_of_one_class_and_bags_without_records() -> None:
    X, y, ids, _ = table(LogisticRegression(), 12)
    model = BaggingClassifier(LogisticRegression(), 12, max_samples=0.1, random_state=5)
    model.fit(X, y, ids=ids)
    times = [times_in_bag(5, ids, bag, 0.1) for bag in range(12)]
    there = [bag for bag in range(12) if times[bag].any()]
    assert 0 < len(there) < 12
    assert list(model._members) == there
    assert any(len(set(y[times[bag] > 0])) == 1 for bag in there)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    lonely = np.flatnonzero(np.sum(times, axis=0) == 0)
    assert lonely.size
    deletion = model.delete(ids[lonely[:1]])
    assert (deletion.action, deletion.counts) == ("updated", {"bags": 0})


def test_no_bag_with_a_record_is_refused() -> None:
    X, y, ids, _ = table(LogisticRegression(), 12)
    model = BaggingClassifier(LogisticRegression(), 2, max_samples=0.1, random_state=5)
    model.fit(X, y, ids=ids)
    inside = sum(times_in_bag(5, ids, bag, 0.1) for bag in range(2)) > 0
    before = model.digest()
    with pytest.raises(TooFewRecordsError, match="no bag would hold a record"):
        model.delete(ids[inside])
    assert model.digest() == before
    fresh = BaggingClassifier(LogisticRegression(), 2, max_samples=0.1, random_state=5)
    with pytest.raises(TooFewRecordsError, match="no bag would hold a record"):
        fresh.fit(X[~inside], y[~inside], ids=ids[~inside])


def test_columns_are_chosen_by_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    X, y, ids, _ = table(Ridge())
    names = ["age", "bmi", "height"]
    frame = pandas.DataFrame(X, columns=names)
    model = BaggingRegressor(DecisionTreeRegressor(), 6, max_features=2, random_state=5)
    model.fit(frame, y, ids=ids)
    for bag, (mine, columns) in enumerate(
        zip(model.estimators_, model.estimators_features_, strict=True)
    ):
        draws = [
            Tape(5).uniform(np.array([Tape(5).key_of(n)], np.uint64), Stream.RACE, bag)[0]
            for n in names
        ]
        assert columns.tolist() == sorted(np.argsort(draws)[:2].tolist())
        assert mine.n_features_in_ == 2
    assert len({tuple(each.tolist()) for each in model.estimators_features_}) > 1
    turned = chosen_columns(Tape(5), names[::-1], 2, 0)
    assert {names[::-1][j] for j in turned} == {names[j] for j in model.estimators_features_[0]}
    model.delete(ids[:4])
    refit = BaggingRegressor(DecisionTreeRegressor(), 6, max_features=2, random_state=5)
    assert_same(model, refit.fit(frame.iloc[4:], y[4:], ids=ids[4:]), "on some columns", save=True)
    for wanted in (4, 9):
        with pytest.raises(InvalidParameterError, match=f"max_features={wanted}, and there are 3"):
            BaggingRegressor(max_features=wanted).fit(X, y)


def test_sparse_columns() -> None:
    X, y, ids, _ = table(Ridge())
    some = np.where(X > 1, X, 0.0)
    given = {"max_features": 2, "n_estimators": 3, "random_state": 5}
    sparse = BaggingRegressor(DecisionTreeRegressor(), **given).fit(csr_array(some), y, ids=ids)
    dense = BaggingRegressor(DecisionTreeRegressor(), **given).fit(some, y, ids=ids)
    np.testing.assert_allclose(sparse.predict(csr_array(some)), dense.predict(some))


def test_weights_of_records_multiply_those_of_bags() -> None:
    X, y, ids, _ = table(Ridge())
    w = np.arange(60) % 4 / 2.0
    model = BaggingRegressor(Ridge(), 3, random_state=5).fit(X, y, w, ids=ids)
    order, mean = in_order(5, ids), 0.0
    for bag in range(3):
        times = times_in_bag(5, ids, bag, 1.0) * w
        rows = order[times[order] > 0]
        tape = Tape(5).child("bag", bag)
        mean = (
            mean + fitted(Ridge(), tape, X[rows], y[rows], sample_weight=times[rows]).predict(X) / 3
        )
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-12)
    model.delete(ids[:6])
    refit = BaggingRegressor(Ridge(), 3, random_state=5).fit(X[6:], y[6:], w[6:], ids=ids[6:])
    assert_same(model, refit, "with weights", save=True)


def test_bags_by_rows_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: a bag drawn for the positions of rows."""

    def by_row(self: Bags, member: int, rows: Any) -> Any:
        return np.random.default_rng(member).poisson(1.0, 60)[rows]

    X, y, ids, _ = table(Ridge())
    monkeypatch.setattr(Bags, "_times", by_row)
    model = BaggingRegressor(Ridge(), 3, random_state=5).fit(X, y, ids=ids)
    model.delete(ids[:9])
    refit = BaggingRegressor(Ridge(), 3, random_state=5).fit(X[9:], y[9:], ids=ids[9:])
    assert model.digest() != refit.digest()
