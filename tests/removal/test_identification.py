"""The records of a domain, found with few labels: what is asked, and how much is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.removal import identify_domain

N, SIZE = 2000, 100
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
DOMAIN = np.zeros(N, dtype=bool)
DOMAIN[RNG.permutation(N)[:SIZE]] = True
X[DOMAIN] += 1.5
START = np.flatnonzero(DOMAIN)[:5]


class Oracle:
    """Labels records, and remembers which."""

    def __init__(self, domain: Any = DOMAIN) -> None:
        self.domain, self.calls = domain, []  # type: ignore[var-annotated]

    def __call__(self, rows: Any) -> Any:
        self.calls.append(rows.copy())
        return self.domain[rows]

    @property
    def asked(self) -> Any:
        return np.concatenate(self.calls)


@pytest.mark.parametrize("explore", ["density-ratio", "uncertainty", "random"])
@pytest.mark.parametrize("start", [START, ()])
def test_labels_are_spent_once_and_told(explore: str, start: Any) -> None:
    oracle = Oracle()
    found = identify_domain(
        X, oracle, 130, start=start, batch_size=40, explore=explore, random_state=0
    )
    assert [len(call) for call in oracle.calls] == [40, 40, 40, 10]
    assert found.asked.tolist() == oracle.asked.tolist()
    assert len(set(found.asked.tolist()) | set(start)) == 130 + len(start)
    assert (found.labels == DOMAIN[found.asked]).all()
    assert found.rows.tolist() == [*start, *found.asked[found.labels]]
    again = identify_domain(
        X, Oracle(), 130, start=start, batch_size=40, explore=explore, random_state=0
    )
    assert again.asked.tolist() == found.asked.tolist()
    assert (again.scores == found.scores).all()
    other = identify_domain(
        X, Oracle(), 130, start=start, batch_size=40, explore=explore, random_state=1
    )
    assert other.asked.tolist() != found.asked.tolist()


def test_a_density_ratio_finds_most_and_random_its_share() -> None:
    recall = {
        explore: np.mean([
            identify_domain(
                X, Oracle(), 150, start=START, explore=explore, random_state=seed
            ).labels.sum() / (SIZE - 5)
            for seed in range(5)
        ])
        for explore in ("density-ratio", "uncertainty", "random")
    }  # fmt: skip
    assert recall["density-ratio"] > 0.7
    assert recall["density-ratio"] >= recall["uncertainty"]
    assert recall["random"] == pytest.approx(150 / N, abs=0.04)
    # A domain that features do not show is found no better than at random.
    shuffled = np.random.default_rng(1).permutation(DOMAIN)
    start = np.flatnonzero(shuffled)[:5]
    found = identify_domain(X, Oracle(shuffled), 150, start=start, random_state=0)
    assert found.labels.sum() / (SIZE - 5) < 0.2


def test_scores_are_the_log_ratio_of_the_densities() -> None:
    # Of two Gaussians it is linear in x: the sum of features, but for a constant.
    found = identify_domain(X, Oracle(), 400, start=START, random_state=0)
    exact = 1.5 * X.sum(axis=1) - 5 * 1.5**2 / 2
    assert np.corrcoef(found.scores, exact)[0, 1] > 0.9
    rest = np.setdiff1d(np.arange(N), found.asked)
    assert DOMAIN[rest].mean() < 0.01


def test_sparse_rows_are_searched_as_dense_ones_are() -> None:
    sparse = csr_matrix(np.where(X > 1, X, 0.0))
    found = identify_domain(sparse, Oracle(), 200, start=START, random_state=0)
    assert found.labels.mean() > 3 * SIZE / N
    plain = LogisticRegression()
    dense, other = (
        identify_domain(each, Oracle(), 60, start=START, classifier=plain, random_state=0)
        for each in (sparse.toarray(), sparse)
    )
    assert dense.asked.tolist() == other.asked.tolist()
    assert found.asked[:60].tolist() != dense.asked.tolist()


def test_any_classifier_does() -> None:
    found = identify_domain(X, Oracle(), 100, start=START, classifier=LinearSVC(), random_state=0)
    assert found.labels.mean() > 5 * SIZE / N


def test_all_labels_find_all() -> None:
    some = np.flatnonzero(DOMAIN)[:5]
    found = identify_domain(X[:300], lambda rows: DOMAIN[rows], 300, random_state=0)
    assert sorted(found.rows.tolist()) == np.flatnonzero(DOMAIN[:300]).tolist()
    none = identify_domain(X[:300], lambda rows: np.zeros(len(rows), bool), 300, random_state=0)
    assert len(none.rows) == 0
    assert not none.scores.any()
    whole = identify_domain(
        X[some], lambda rows: np.ones(len(rows), bool), 4, start=[0], random_state=0
    )
    assert len(whole.rows) == 5


@pytest.mark.parametrize(
    ("change", "kind", "told"),
    [
        ({"n_labels": 0}, InvalidParameterError, "n_labels=0; expected a whole number from 1 to"),
        ({"n_labels": N - 4}, InvalidParameterError, "n_labels=1996"),
        ({"batch_size": 0}, InvalidParameterError, "batch_size=0"),
        (
            {"explore": "greedy"},
            InvalidParameterError,
            "explore='greedy'; expected one of 'density",
        ),
        ({"explore": None}, InvalidParameterError, "explore=None"),
        ({"classifier": LogisticRegression}, InvalidParameterError, "classifier="),
        ({"start": [0, 0]}, InvalidInputError, "start names 2 rows and 1 of them differ"),
        ({"start": [N]}, InvalidInputError, "start="),
        ({"label": lambda rows: DOMAIN[rows].astype(int)}, InvalidInputError, "label returned"),
        ({"label": lambda rows: DOMAIN}, InvalidInputError, "expected a boolean for each"),
        ({"X": np.full((4, 2), np.nan)}, InvalidInputError, "X"),
    ],
)
def test_bad_input(change: dict[str, Any], kind: type[Exception], told: str) -> None:
    given: dict[str, Any] = {"X": X, "label": Oracle(), "n_labels": 100, "start": START} | change
    with pytest.raises(kind) as caught:
        identify_domain(given.pop("X"), given.pop("label"), given.pop("n_labels"), **given)
    assert told in str(caught.value)
