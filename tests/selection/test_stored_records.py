"""Selections from records in files and on workers: those from memory, to the last bit."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable import Records
from erasable.core.errors import (
    DetachedError,
    InvalidDataError,
    InvalidIdsError,
    InvalidInputError,
    InvalidParameterError,
    UnknownIdError,
)
from erasable.core.remote import Job
from erasable.preprocessing import StandardScaler
from erasable.selection import (
    BetaBinomial,
    Certain,
    CVaR,
    Groups,
    MutualInformation,
    NearestNeighbor,
    PerClass,
    SubsetSelector,
    Uniform,
)
from erasable.selection.utilities import _stored_nearest
from simulated_workers import Simulated, even, spread

N, D, K, PARTS = 650, 4, 8, 13
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D)) * [1.0, 3.0, 0.1, 1.0] + [0.0, 50.0, 0.0, -1.0]
LABELS = RNG.integers(0, 3, N)
IDS = RNG.permutation(10 * N)[:N]
NAMES = [f"x{j}" for j in range(D)]


def table(values: Any = X, ids: Any = IDS, labels: Any = LABELS) -> pa.Table:
    columns = {f"x{j}": values[:, j] for j in range(values.shape[1])}
    return pa.table({**columns, "id": ids, "label": labels, "person": ids})


def mortal() -> Simulated:
    workers = Simulated(3)
    workers.die(0.03, 1)
    return workers


def everywhere(folder: Path, classes: bool) -> list[Records]:
    """Return the records in memory, in files of 13 blocks, and on workers that die."""
    pq.write_table(table(), folder / "a.parquet", row_group_size=N // PARTS)
    target = "label" if classes else None
    workers = mortal()
    calm, workers.before, workers.after = workers.before, *2 * (lambda name, job: True,)
    remote = spread(table(), even(N, PARTS), workers, NAMES)
    workers.before = workers.after = calm
    if not classes:
        remote.y = None
    memory = Records(pd.DataFrame(X, columns=NAMES), LABELS if classes else None, ids=IDS)
    return [memory, Records.from_parquet(folder, ids="id", target=target, features=NAMES), remote]


def told(selector: SubsetSelector) -> tuple[Any, ...]:
    """Return all that a selection is, in bytes."""
    arrays = (selector.selected_, selector.selected_ids_, selector.held_, selector.gains_)
    return (*(each.tobytes() for each in arrays), selector.utility_, selector.n_evaluations_)


CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"metric": "sqeuclidean"}, {"staying": 0.6}),
    ({"metric": "cosine"}, {"staying": BetaBinomial(2.0, 1.0)}),
    ({}, {"staying": Uniform(2, K)}),
    ({"n_candidates": 90}, {"optimizer": "greedy"}),
    ({"n_candidates": 90}, {"optimizer": "stochastic", "n_jobs": 2}),
    ({}, {"optimizer": "random-greedy"}),
    ({"n_candidates": 90}, {"costs": RNG.uniform(0.5, 2.0, N)}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize(("utility", "params"), CASES)
def test_a_selection_is_that_of_memory(
    utility: dict[str, Any], params: dict[str, Any], classes: bool, tmp_path: Path
) -> None:
    if classes and isinstance(params.get("staying"), Uniform):
        params = {"staying": {0: 0.5, 1: 0.9, 2: 1.0}}
    held = IDS[[7, 30, 200]].tolist()
    found = []
    for records in everywhere(tmp_path, classes):
        selector = SubsetSelector(NearestNeighbor(**utility), k=K, random_state=3, **params)
        one = told(selector.fit(records))
        assert selector.value().value == pytest.approx(selector.utility_, rel=1e-12)
        assert selector.get_support().sum() == len(selector.selected_)
        assert IDS[selector.selected_].tolist() == selector.selected_ids_.tolist()
        two = told(selector.fit(records, selected=held))
        assert selector.held_.tolist() == [7, 30, 200]
        StandardScaler().fit(records).delete(IDS[[1, 7, 649]].tolist())
        if "costs" in params:
            selector.set_params(costs=np.delete(params["costs"], [1, 7, 649]))
        with pytest.raises(DetachedError, match="there were 650 records, and there are 647"):
            selector.value()
        three = told(selector.fit(records, selected=held[1:]))
        assert selector.held_.tolist() == [28, 198]
        found.append((one, two, three))
    assert found[0] == found[1] == found[2]
    left = np.delete(np.arange(N), [1, 7, 649])
    fresh = Records(X[left], LABELS[left] if classes else None, ids=IDS[left])
    assert found[0][2] == told(selector.fit(fresh, selected=held[1:]))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("staying", [1.0, 0.5, BetaBinomial(2.0, 1.0)])
@pytest.mark.parametrize("classes", [False, True])
def test_it_is_that_of_arrays_where_none_are_tied(metric: str, staying: Any, classes: bool) -> None:
    """Another implementation, which adds floats up."""
    selector = SubsetSelector(NearestNeighbor(metric), k=K, staying=staying)
    y = LABELS if classes else None
    wanted = selector.fit(X, y)
    chosen, gains, utility = wanted.selected_, wanted.gains_, wanted.utility_
    found = selector.fit(Records(X, y))
    assert found.selected_.tolist() == chosen.tolist()
    np.testing.assert_allclose(found.gains_, gains, rtol=1e-7)
    assert found.utility_ == pytest.approx(utility, rel=1e-10)
    assert found.utility_exact_
    assert found.utility_error_ == 0.0


def brute(values: Any, k: int) -> tuple[list[int], list[Fraction]]:
    """Choose by squared distances of whole numbers, in fractions, at every gain in each round."""
    whole = values.astype(int).tolist()
    apart = [
        [Fraction(sum((a - b) ** 2 for a, b in zip(x, z, strict=True))) for z in whole]
        for x in whole
    ]
    largest = max(max(row) for row in apart)
    none, chosen, gains = Fraction(0), [], []
    nearest = [largest] * len(whole)
    for _ in range(k):
        gain = {
            j: sum((max(old - new, none) for old, new in zip(nearest, apart[j], strict=True)), none)
            for j in range(len(whole))
            if j not in chosen
        }
        best = max(gain, key=lambda j: (gain[j], -j))
        chosen.append(best)
        gains.append(gain[best])
        nearest = [min(old, new) for old, new in zip(nearest, apart[best], strict=True)]
    return chosen, gains


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 40), max_size=12).map(sorted),
    n_workers=st.integers(1, 3),
    batch=st.integers(1, 50),
)
def test_ties_and_partitions(seed: int, cuts: list[int], n_workers: int, batch: int) -> None:
    """Whole numbers tie often; the record that comes first is chosen, as in plain arithmetic."""
    values = np.random.default_rng(seed).integers(0, 4, (40, 2)).astype(float)
    records = spread(
        table(values, np.arange(40), np.zeros(40, int)), cuts, Simulated(n_workers), ["x0", "x1"]
    )
    before, _stored_nearest._Batches.size = _stored_nearest._Batches.size, batch
    try:
        found = SubsetSelector(NearestNeighbor("sqeuclidean"), k=6).fit(records)
    finally:
        _stored_nearest._Batches.size = before
    chosen, gains = brute(values, 6)
    assert found.selected_.tolist() == chosen
    assert found.gains_.tolist() == [float(each) for each in gains]


def test_lazy_chooses_what_greedy_does() -> None:
    records = Records(X)
    for staying in (1.0, 0.5):
        both = [
            SubsetSelector(k=25, staying=staying, optimizer=each).fit(records)
            for each in ("lazy", "greedy")
        ]
        assert both[0].selected_.tolist() == both[1].selected_.tolist()
        assert both[0].gains_.tobytes() == both[1].gains_.tobytes()
        assert both[0].n_evaluations_ < both[1].n_evaluations_


def test_order_of_rows_and_size_of_blocks_do_not_show() -> None:
    order = RNG.permutation(N)
    found = []
    for rows in (np.arange(N), order):
        records = spread(table(X[rows], IDS[rows], LABELS[rows]), even(N, 4), Simulated(2), NAMES)
        selector = SubsetSelector(NearestNeighbor(n_candidates=50), k=K, random_state=0)
        selector.fit(records)
        found.append((selector.selected_ids_.tolist(), selector.gains_.tobytes()))
    assert found[0] == found[1]


def test_sums_that_round_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The negative control: units so fine that sums do not fit float64."""
    monkeypatch.setattr(_stored_nearest, "_WHOLE", 90)
    monkeypatch.setattr(_stored_nearest, "_FINEST", 52)
    found = [
        told(SubsetSelector(k=K, random_state=0).fit(records))
        for records in everywhere(tmp_path, False)
    ]
    assert len(set(found)) > 1


def test_candidates_that_do_not_depend_on_ids_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: those that come first."""

    def first(ids: Any, n_candidates: Any, held: Any, seed: int) -> Any:
        return np.arange(n_candidates)

    monkeypatch.setattr(_stored_nearest, "_drawn", first)
    with pytest.raises(AssertionError):
        test_order_of_rows_and_size_of_blocks_do_not_show()


def test_candidates_follow_ids_and_seed() -> None:
    records = Records(X, ids=IDS)
    drawn = [
        SubsetSelector(NearestNeighbor(n_candidates=30), k=20, random_state=seed)
        .fit(records)
        .selected_
        for seed in (0, 0, 1)
    ]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()


def test_a_class_may_have_no_candidate() -> None:
    """The classes of a staying model are those of all records, not of the candidates alone."""
    few = np.where(np.arange(N) == 0, "few", "many")  # one record of a class, which is not drawn
    records = Records(X, few, ids=IDS)
    utility = NearestNeighbor(n_candidates=30)
    given: dict[str, Any] = {"k": 8, "random_state": 0}

    def fit(staying: Any) -> tuple[list[int], float, float]:
        selector = SubsetSelector(utility, staying=staying, **given).fit(records)
        assert 0 not in selector._fitted.problem.places
        return selector.selected_.tolist(), selector.utility_, float(selector.value())

    alike = fit(0.6)
    assert fit({"few": 0.2, "many": 0.6}) == alike
    assert fit(PerClass({"few": Certain(), "many": 0.6})) == alike
    assert fit(np.where(few == "few", 0.2, 0.6)) == alike  # a probability for each record
    assert fit({"few": 0.6, "many": 0.2}) != alike  # the control
    for wrong, told in (({"many": 0.6}, "'few'"), ({"few": 1, "many": 1, "none": 1}, "'none'")):
        with pytest.raises(InvalidInputError, match=told):
            fit(wrong)
    with pytest.raises(InvalidInputError, match=f"30 probabilities for {N} records"):
        fit(np.full(30, 0.6))


# -- what it costs ---------------------------------------------------------------------------------


def test_about_a_pass_for_each_choice() -> None:
    workers = Simulated(2)
    records = spread(table(), even(N, PARTS), workers, NAMES)
    trips = workers.trips
    selector = SubsetSelector(k=40, random_state=0).fit(records)
    passes = selector._fitted.problem.n_passes
    assert 40 <= passes <= 80
    assert workers.trips - trips <= passes + 3
    assert selector.n_evaluations_ < 40 * N / 3


def test_a_loss_of_each_worker_is_made_up_for() -> None:
    workers = Simulated(2)
    records = spread(table(), even(N, PARTS), workers, NAMES)
    wanted = told(SubsetSelector(k=K, random_state=0).fit(records))
    jobs = {"done": 0}

    def every_third(name: str, job: Job) -> bool:
        jobs["done"] += 1
        return bool(jobs["done"] % 3)

    workers.after = every_third
    assert told(SubsetSelector(k=K, random_state=0).fit(records)) == wanted


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = everywhere(tmp_path, False)[1]
    monkeypatch.setattr(_stored_nearest, "_MOST_PAIRS", 1e6)
    with pytest.raises(InvalidInputError, match=r"650 candidates for 650 records take 2e\+06 mult"):
        SubsetSelector(k=2).fit(files)
    with pytest.raises(InvalidInputError, match="n_candidates=384 to NearestNeighbor"):
        SubsetSelector(k=2).fit(files)
    few = NearestNeighbor(n_candidates=100)
    assert SubsetSelector(few, k=2).fit(files).selected_.size == 2
    with pytest.raises(InvalidInputError, match=r"20 choices take 2e\+06 .*choose fewer"):
        SubsetSelector(few, k=20).fit(files)
    monkeypatch.setattr(_stored_nearest, "_MOST_READ", 1e4)
    with pytest.raises(InvalidInputError, match="k=2 reads the files of 650 records 2 times"):
        SubsetSelector(few, k=2).fit(files)
    monkeypatch.setattr(_stored_nearest, "_MOST_ROWS", 600)
    with pytest.raises(InvalidInputError, match="650 records; expected at most 600"):
        SubsetSelector(few, k=2).fit(files)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fit", "error", "message"),
    [
        (lambda r: SubsetSelector().fit(r, LABELS), InvalidInputError, "y came beside Records"),
        (lambda r: SubsetSelector().fit(r, ids=IDS), InvalidInputError, "ids came beside Records"),
        (lambda r: SubsetSelector(k=2).fit(r, selected=[-1]), UnknownIdError, "-1"),
        (lambda r: SubsetSelector(k=2).fit(r, selected=[True]), InvalidIdsError, "rows=mask"),
        (lambda r: SubsetSelector(k=2).fit(r, rows=[N]), InvalidInputError, "from 0 to 649"),
        (
            lambda r: SubsetSelector(MutualInformation()).fit(r),
            InvalidInputError,
            "MutualInformation compares records with each other in memory",
        ),
        (
            lambda r: SubsetSelector(NearestNeighbor("precomputed")).fit(r),
            InvalidParameterError,
            "expected a metric alone",
        ),
        (
            lambda r: SubsetSelector(NearestNeighbor(n_neighbors=3)).fit(r),
            InvalidParameterError,
            "expected a metric alone",
        ),
        (
            lambda r: SubsetSelector(NearestNeighbor(n_candidates=0)).fit(r),
            InvalidParameterError,
            "n_candidates=0; expected an integer of 1 or more",
        ),
        (
            lambda r: SubsetSelector(NearestNeighbor(n_candidates=5)).fit(X),
            InvalidParameterError,
            "n_candidates=5 with an array",
        ),
        (
            lambda r: SubsetSelector(k=2, staying=np.linspace(0.1, 1, N)).fit(r),
            InvalidInputError,
            "owners stay with different probabilities",
        ),
        (
            lambda r: SubsetSelector(k=2, staying=Groups(np.arange(N) // 2, 0.5)).fit(r),
            InvalidInputError,
            "decide for several",
        ),
        (
            lambda r: SubsetSelector(k=2, staying=0.5, objective=CVaR(0.5)).fit(r),
            InvalidInputError,
            "who stays would be drawn",
        ),
        (lambda r: SubsetSelector(k=2).fit(Records(["a b", "c"])), InvalidDataError, "hold text"),
        (
            lambda r: SubsetSelector(k=2).fit(Records([[1.0], [np.nan], [2.0]])),
            InvalidDataError,
            "NaN",
        ),
        (
            lambda r: SubsetSelector(k=1).fit(Records([[1e200], [-1e200]])),
            InvalidDataError,
            "beyond what float64 holds",
        ),
        (
            lambda r: SubsetSelector(k=2).fit(r).balance(LABELS),
            InvalidInputError,
            "the selector was fitted on Records",
        ),
    ],
)
def test_bad_input(fit: Callable[[Records], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fit(Records(X, ids=IDS))


def test_gaps_in_files_are_refused(tmp_path: Path) -> None:
    gaps = X.copy()
    gaps[500, 2] = np.nan
    pq.write_table(table(gaps), tmp_path / "a.parquet")
    records = Records.from_parquet(tmp_path, ids="id", features=NAMES)
    with pytest.raises(InvalidDataError, match="NaN"):
        SubsetSelector(k=2).fit(records)


def test_records_that_are_all_alike_and_one_that_is_alone() -> None:
    assert SubsetSelector(k=2).fit(Records(np.ones((5, 2)))).gains_.tolist() == [0.0, 0.0]
    found = SubsetSelector(k=1).fit(Records([[3.0]]))
    assert (found.selected_.tolist(), found.utility_) == ([0], 0.0)
    nobody = SubsetSelector(k=2, staying=0.0).fit(Records(X))
    assert (nobody.gains_.tolist(), nobody.utility_) == ([0.0, 0.0], 0.0)


def test_a_fitted_selector_holds_no_record(tmp_path: Path) -> None:
    """Neither in its pickle nor beside the records, where a deletion overwrites them."""
    records = Records(X, ids=IDS)
    selector = SubsetSelector(k=K).fit(records)
    assert not any(row.tobytes() in pickle.dumps(selector) for row in X[selector.selected_])
    held = selector.__dict__ | selector._fitted.problem.__dict__
    arrays = [each for each in held.values() if isinstance(each, np.ndarray)]
    assert not any(X[j, 0].tobytes() in each.tobytes() for j in range(N) for each in arrays)
    again = pickle.loads(pickle.dumps(selector))
    assert again.selected_ids_.tolist() == selector.selected_ids_.tolist()
    with pytest.raises(DetachedError, match="this was unpickled"):
        again.value()


def test_value_without_and_with_deletions_to_come() -> None:
    """Of a selection that was made, by arrays and by passes."""
    arrays, records = (SubsetSelector(k=K).fit(each) for each in (X, Records(X)))
    for staying in (None, 0.3, BetaBinomial(1.0, 2.0)):
        assert records.value(staying=staying).value == pytest.approx(
            arrays.value(staying=staying).value, rel=1e-9
        )
    np.testing.assert_allclose(records.distribution(n_samples=2), arrays.distribution(n_samples=2))
    curves = [each.tradeoff(n_deletions=[0, 2], random_state=0) for each in (arrays, records)]
    np.testing.assert_allclose(curves[0].mean, curves[1].mean)
