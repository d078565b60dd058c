"""Sweeps of a metric over deletions, and what a target takes, against counts and enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from erasable import Records
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.naive_bayes import GaussianNB
from erasable.removal import DomainRemoval, RefitMetric, Sweep, deletions_needed, measure, sweep
from erasable.removal.scores import MeanDistance
from erasable.removal.sweeps import median_interval, reached

RNG = np.random.default_rng(0)
F, R = RNG.normal(size=(30, 2)), RNG.normal(size=(25, 2)) + 1.0
COUNTS = [0, 3, 10, 30]


def weight(kept: Any) -> float:
    return float((2.0 ** -np.asarray(kept)).sum())


def test_values_are_the_metric_of_what_an_order_keeps() -> None:
    order = RNG.permutation(30)
    found = sweep({"mine": order, "back": order[::-1]}, COUNTS, weight, seeds=2)
    for name, each in {"mine": order, "back": order[::-1]}.items():
        expected = [sum(2.0**-row for row in sorted(each[n:].tolist())) for n in COUNTS]
        np.testing.assert_allclose(found.values(name), [expected, expected])
        assert found.deletions(name).tolist() == [COUNTS, COUNTS]
    assert not np.allclose(found.values("mine"), found.values("back"))


def test_orders_are_those_of_domain_removal() -> None:
    names = ["random", "lr-maha", "density-ratio", "gradmatch", MeanDistance("cosine")]
    found = sweep(names, [0, 5, 12], weight, F, R, seeds=[4, 7])
    shown = [*names[:4], "MeanDistance(metric='cosine')"]
    assert found.scores == tuple(shown)
    for name, score in zip(shown, names, strict=True):
        for at, seed in enumerate([4, 7]):
            order = DomainRemoval(score, budget=12, random_state=seed).fit(F, R).order_
            expected = [weight(np.sort(order[n:])) for n in (0, 5, 12)]
            np.testing.assert_allclose(found.values(name)[at], expected)
    drawn = found.values("random")
    assert drawn[0, 1] != drawn[1, 1]


def test_without_a_metric_it_is_the_frontier() -> None:
    found = sweep("lr-maha", COUNTS, None, F, R, seeds=[1])
    frontier = DomainRemoval("lr-maha", random_state=1).fit(F, R).frontier_
    np.testing.assert_array_equal(found.values("lr-maha", "alpha")[0], frontier.alpha[COUNTS])
    np.testing.assert_array_equal(found.values("lr-maha", "epsilon")[0], frontier.epsilon[COUNTS])


def test_records_are_swept_where_they_lie() -> None:
    stored = sweep("lr-maha", COUNTS, None, Records(F), Records(R), seeds=1)
    arrays = sweep("lr-maha", COUNTS, None, F, R, seeds=1)
    assert stored.value.tolist() == arrays.value.tolist()
    with pytest.raises(InvalidInputError, match="looks at all records together"):
        sweep("k-center", COUNTS, None, Records(F), Records(R))


def test_a_metric_is_called_once_for_a_set() -> None:
    calls: list[tuple[int, ...]] = []

    def metric(kept: Any) -> float:
        calls.append(tuple(kept.tolist()))
        return 0.0

    sweep({"a": [0, 1, 2], "b": [0, 2, 1], "c": [1, 0, 2]}, [0, 1, 3], metric, seeds=3)
    assert sorted(calls) == [(), (0, 1, 2), (0, 2), (1, 2)]


def test_budgets_are_counts_and_shares() -> None:
    found = sweep({"a": range(30)}, [0.5, 3, 1.0, 0.1, 0], len, seeds=1)
    assert found.n_deleted.tolist() == [0, 3, 15, 30]
    default = sweep({"a": range(30)}, None, len, seeds=1)
    assert default.n_deleted.tolist() == list(range(0, 31, 3))


def test_columns_make_a_frame() -> None:
    metrics = lambda kept: {"n": len(kept), "w": weight(kept)}  # noqa: E731
    found = sweep({"a": range(30), "b": range(29, -1, -1)}, COUNTS, metrics, seeds=[5, 6])
    frame = pd.DataFrame(vars(found))
    assert len(frame) == 2 * 2 * 2 * len(COUNTS)
    b = frame[(frame.score == "b") & (frame.metric == "w") & (frame.seed == 6)]
    assert b.n_deleted.tolist() == COUNTS
    np.testing.assert_array_equal(b.value, found.values("b", "w")[1])
    assert (frame[frame.metric == "n"].value == 30 - frame[frame.metric == "n"].n_deleted).all()
    with pytest.raises(InvalidInputError, match="expected one of 'n', 'w'"):
        found.values("a")


def test_splits_are_joined() -> None:
    parts = [
        sweep({"a": range(n)}, [0.0, 0.5, 1.0], lambda kept, n=n: len(kept) / n, seeds=[n])
        for n in (10, 20)
    ]
    both = Sweep.join(parts)
    assert both.values("a").tolist() == [[1.0, 0.5, 0.0]] * 2
    assert both.deletions("a").tolist() == [[0, 5, 10], [0, 10, 20]]
    needed = deletions_needed("a", 0.25, both)
    assert needed.by_seed.tolist() == [7.5, 15.0]
    assert needed.shares.tolist() == [0.75, 0.75]
    for wrong in (parts[:1] * 2, [], [parts[0], 5], [parts[0], sweep({"b": [0, 1]}, [0], len)]):
        with pytest.raises(InvalidInputError, match="expected"):
            Sweep.join(wrong)


@pytest.mark.parametrize(
    ("values", "target", "n"),
    [
        ([1.0, 0.8, 0.4, 0.4, 0.0], 0.6, 0.375),
        ([1.0, 0.8, 0.4, 0.9, 0.0], 0.4, 0.5),
        ([0.5, 0.8, 0.4, 0.9, 0.0], 0.5, 0.0),
        ([1.0, 0.9, 0.9, 0.9, 0.7], 0.6, np.inf),
    ],
)
def test_where_a_curve_reaches_a_target(values: Any, target: float, n: float) -> None:
    at = np.linspace(0, 1, 5)
    assert reached(at, values, target) == pytest.approx(n)
    assert reached(at, -np.array(values), -target, rising=True) == pytest.approx(n)


@pytest.mark.parametrize("n", range(1, 13))
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_the_interval_of_a_median_is_exact(n: int, confidence: float) -> None:
    """Which values are below the median is any of 2**n patterns, all equally likely."""
    low, high, sure = median_interval(np.arange(n, dtype=float), confidence)
    j = int(low)
    assert high == n - 1 - j

    def coverage(j: int) -> float:
        below = [sum(each) for each in product((0, 1), repeat=n)]
        return float(np.mean([j < b < n - j for b in below]))

    assert sure == pytest.approx(coverage(j), abs=1e-12)
    if sure < confidence:
        assert j == 0
    # The control: one value further in, and it is no longer so sure.
    if j + 1 <= (n - 1) // 2:
        assert coverage(j + 1) < confidence


def test_what_a_target_takes() -> None:
    curves = {seed: [1.0, 1.0 - 0.1 * seed, 0.0] for seed in range(1, 8)}
    parts = [
        sweep({"a": range(4)}, [0, 2, 4], lambda kept, c=c: c[(4 - len(kept)) // 2], seeds=[s])
        for s, c in curves.items()
    ]
    found = deletions_needed("a", 0.5, Sweep.join(parts))
    # By hand: from (0, 1) to (2, 1 - s / 10), then to (4, 0).
    expected = [2 + 2 * (0.5 - 0.1 * s) / (1 - 0.1 * s) for s in range(1, 6)]
    expected += [0.5 * 20 / s for s in (6, 7)]
    np.testing.assert_allclose(found.by_seed, expected)
    assert found.n_deleted == pytest.approx(sorted(expected)[3])
    assert (found.low, found.high) == (min(found.by_seed), max(found.by_seed))
    assert found.confidence == pytest.approx(1 - 2 * 0.5**7)
    never = deletions_needed("a", -1.0, Sweep.join(parts))
    assert (never.n_deleted, never.high) == (np.inf, np.inf)
    assert "not by all" in str(never)
    each = deletions_needed("a", [0.5] * 6 + [1.0], Sweep.join(parts))
    assert each.by_seed[-1] == 0.0
    assert "n deleted" in found._repr_html_()


def test_a_refit_is_what_a_deletion_leaves() -> None:
    X, y = np.concatenate([F, R]), np.repeat(["spam", "ham"], [30, 25])
    fresh = {"all": (X + 0.1, y), "none": None}
    metric = RefitMetric(GaussianNB(), X, y, forget=y == "spam", groups=fresh, forget_label="spam")
    order = RNG.permutation(30)
    found = sweep({"a": order}, [0, 8, 20], metric, seeds=1)
    model, values = GaussianNB().fit(X, y), []
    for gone in (order[:0], order[:8], order[8:20]):
        model.delete(gone)
        values.append(measure(model, fresh, forget_label="spam")["all"])
    for name in ("accuracy", "predicted_forget", "log_loss"):
        assert found.values("a", f"all, {name}")[0].tolist() == [each[name] for each in values]
    assert found.metrics == tuple(f"all, {name}" for name in values[0])
    other = sweep({"a": order[::-1]}, [0, 8, 20], metric, seeds=1)
    assert other.values("a", "all, log_loss")[0, 1] != values[1]["log_loss"]


def test_a_classifier_of_one_class_predicts_it() -> None:
    X, y = np.concatenate([F, R]), np.repeat(["spam", "ham"], [30, 25])
    metric = RefitMetric(
        LogisticRegression(), X, y, forget=y == "spam", groups={"all": (X, y)}, forget_label="spam"
    )
    assert metric(np.arange(0))["all, predicted_forget"] == 0.0
    assert metric(np.arange(30))["all, predicted_forget"] > 0.3


def test_a_plot_has_a_line_and_a_band_for_each_score() -> None:
    found = sweep(["random", "lr-maha"], COUNTS, None, F, R, seeds=6)
    ax = found.plot("alpha")
    assert [line.get_label() for line in ax.lines] == ["random", "lr-maha"]
    assert ax.lines[0].get_ydata() == pytest.approx(np.median(found.values("random", "alpha"), 0))
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(found.values("random", "alpha").max())
    assert found.plot("epsilon", ax=ax) is ax
    assert len(ax.lines) == 4
    points = found.points("alpha")
    assert len(points) == 8
    assert "<th>median</th>" in found._repr_html_()


ORDER = {"a": list(range(30))}
SWEPT = sweep(ORDER, COUNTS, len)
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: sweep([], COUNTS, len), InvalidParameterError, "expected one or more, each under"),
    (lambda: sweep(["norm", "norm"], COUNTS, len, F), InvalidParameterError, "its own name"),
    (lambda: sweep({5: "norm"}, COUNTS, len, F), InvalidParameterError, "its own name"),
    (lambda: sweep("nrom", COUNTS, len, F), InvalidParameterError, "expected one of density-ratio"),
    (lambda: sweep({"a": [0.5, 1.5]}, COUNTS, len), InvalidParameterError, "or an order"),
    (lambda: sweep({"a": [0, 0]}, [0], len), InvalidInputError, "each row from 0 to 1 once"),
    (lambda: sweep({"a": [0, 1], "b": [0]}, [0], len), InvalidInputError, "from 0 to 1 once"),
    (lambda: sweep(ORDER, [31], len), InvalidParameterError, "whole numbers from 0 to 30"),
    (lambda: sweep(ORDER, [-0.1], len), InvalidParameterError, "or shares from 0.0"),
    (lambda: sweep(ORDER, [float("nan")], len), InvalidParameterError, "or shares from 0.0"),
    (lambda: sweep(ORDER, [True], len), InvalidParameterError, "or shares from 0.0"),
    (lambda: sweep(ORDER, 5, len), InvalidParameterError, "expected a list of numbers"),
    (lambda: sweep(ORDER, [], len), InvalidParameterError, "expected a list of numbers"),
    (lambda: sweep(ORDER, COUNTS, 5), InvalidParameterError, "expected a function of the rows"),
    (lambda: sweep(ORDER, COUNTS, lambda: 0), InvalidParameterError, r"called as metric\(kept\)"),
    (lambda: sweep(ORDER, COUNTS, lambda kept: None), InvalidInputError, "metric returned None"),
    (lambda: sweep(ORDER, COUNTS, lambda kept: np.nan), InvalidInputError, "a finite number"),
    (lambda: sweep(ORDER, COUNTS, lambda kept: {}), InvalidInputError, "a finite number"),
    (lambda: sweep(ORDER, COUNTS, lambda kept: {str(len(kept)): 1}), InvalidInputError, "same nam"),
    (lambda: sweep(ORDER, COUNTS, len, seeds=0), InvalidParameterError, "seeds=0"),
    (lambda: sweep(ORDER, COUNTS, len, seeds=[1, 1]), InvalidParameterError, "different whole"),
    (lambda: sweep(ORDER, COUNTS, len, seeds=[-1]), InvalidParameterError, "different whole"),
    (lambda: sweep(ORDER, COUNTS, len, seeds="ab"), InvalidParameterError, "different whole"),
    (lambda: sweep("norm", COUNTS, len), InvalidInputError, "no forget was given, and the score"),
    (lambda: sweep(ORDER, COUNTS), InvalidInputError, "no forget was given, and metric=None"),
    (lambda: sweep("lr-maha", COUNTS, len, F), InvalidInputError, "no retain was given, and the"),
    (lambda: sweep("norm", COUNTS, None, F), InvalidInputError, "and metric=None"),
    (lambda: sweep("norm", COUNTS, len, F * np.nan), InvalidDataError, "in forget: "),
    (lambda: deletions_needed("b", 0.5, SWEPT), InvalidInputError, "one of 'a'"),
    (lambda: deletions_needed("a", "x", SWEPT), InvalidParameterError, "target"),
    (lambda: deletions_needed("a", [1, 2], SWEPT), InvalidParameterError, "10 s"),
    (lambda: deletions_needed("a", 0.5, 5), InvalidInputError, "what `sweep` returned"),
    (
        lambda: deletions_needed("a", 0.5, SWEPT, confidence=1.0),
        InvalidParameterError, "confidence=1.0",
    ),
    (lambda: sweep(ORDER, COUNTS, len).plot(ax=5), InvalidParameterError, "expected Axes"),
    (lambda: sweep(ORDER, COUNTS, len).plot("b"), InvalidInputError, "expected one of 'metric'"),
    (
        lambda: RefitMetric(GaussianNB(), F, F[:, 0] > 0, forget=[1, 2], groups={}),
        InvalidInputError, "expected a mask",
    ),
    (
        lambda: RefitMetric(GaussianNB(), F, [1, 2], forget=F[:, 0] > 0, groups={}),
        InvalidDataError, "2 targets",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "told"), WRONG, ids=range(len(WRONG)))
def test_what_is_refused(call: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told) as error:
        call()
    assert "\n" not in str(error.value)
