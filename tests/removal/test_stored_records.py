"""Domains whose records lie in files or on workers: scores and frontiers are those of memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from erasable import Records
from erasable.core.errors import (
    DetachedError,
    InvalidDataError,
    InvalidIdsError,
    InvalidInputError,
)
from erasable.preprocessing import StandardScaler
from erasable.removal import (
    SCORES,
    Cost,
    Count,
    DensityRatio,
    DomainRemoval,
    MaxShift,
    MinRemoval,
    _covariance,
    _domain,
    _passes,
)
from erasable.removal.scores import CCS, MeanMargin
from simulated_workers import Simulated, even, spread

N, D, PARTS = 1300, 4, 13
RNG = np.random.default_rng(2)
FORGET = RNG.random(N) < 0.45
X = RNG.normal(size=(N, D)) * [1.0, 10.0, 0.1, 1.0] + FORGET[:, None] * 0.8 + [0.0, 1e6, 0.0, 1.0]
IDS = RNG.permutation(10 * N)[:N]
NAMES = [f"x{j}" for j in range(D)]
BY_PASSES = [name for name, each in SCORES.items() if each.by_passes]
FROM_MEMORY = [name for name, each in SCORES.items() if not each.by_passes]


def table(values: Any = X, ids: Any = IDS) -> pa.Table:
    columns = {f"x{j}": values[:, j] for j in range(values.shape[1])}
    others = {"id": ids, "label": np.zeros(len(ids), int), "person": ids}
    return pa.table({**columns, **others})


def remote(values: Any, ids: Any, cuts: Any, workers: Simulated, seed: Any = None) -> Records:
    """Return records on workers, which die now and then where there is a seed."""
    records = spread(table(values, ids), cuts, workers, [f"x{j}" for j in range(values.shape[1])])
    if seed is not None:
        workers.die(0.02, seed)
    return records


def in_files(values: Any, ids: Any, path: Path) -> Records:
    pq.write_table(table(values, ids), path, row_group_size=max(1, len(ids) // PARTS))
    names = [f"x{j}" for j in range(values.shape[1])]
    return Records.from_parquet(path, ids="id", features=names)


def fits(
    folder: Path, values: Any = X, ids: Any = IDS, forget: Any = FORGET, *, pairs: bool = True
) -> list[Any]:
    """Return ways to fit a removal to the same records: first that of arrays, by other code."""
    both = [(values[mask], ids[mask]) for mask in (forget, ~forget)]
    names = both[0][1]
    ways: list[Any] = [lambda removal: removal.fit(both[0][0], both[1][0], ids=names)]
    apart = [
        [Records(part, ids=own) for part, own in both],
        [in_files(*each, folder / f"{n}.parquet") for n, each in enumerate(both)],
        [remote(*each, even(len(each[1]), 5), Simulated(3), n) for n, each in enumerate(both)],
    ]
    ways += [lambda removal, pair=pair: removal.fit(*pair) for pair in apart if pairs]
    wholes = [
        Records(values, ids=ids), in_files(values, ids, folder / "a.parquet"),
        remote(values, ids, even(len(ids), PARTS), Simulated(3), 3),
    ]  # fmt: skip
    return ways + [lambda removal, all_=all_: removal.fit(all_, rows=forget) for all_ in wholes]


def told(removal: DomainRemoval) -> tuple[Any, ...]:
    """Return all that a removal says, in bytes."""
    frontier = removal.frontier_
    arrays = (
        removal.scores_, removal.order_, removal.selected_, removal.selected_ids_, frontier.alpha,
        frontier.epsilon, frontier.share,
    )  # fmt: skip
    reached = (removal.alpha_, removal.epsilon_, f"{removal.trust_}")
    return (*(each.tobytes() for each in arrays), *reached)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("score", BY_PASSES)
def test_what_is_found_is_that_of_memory(score: str, tmp_path: Path) -> None:
    for covariance in ("shared", "free"):
        removal = DomainRemoval(score, covariance=covariance, random_state=0)
        found = [told(fit(removal)) for fit in fits(tmp_path)]
        assert len(set(found)) == 1


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("covariance", ["shared", "free"])
def test_many_columns(covariance: str, tmp_path: Path) -> None:
    values, forget = RNG.normal(size=(60, 520)), np.arange(60) % 3 == 0
    removal = DomainRemoval("lr-cos", budget=6, covariance=covariance, random_state=0)
    found = [
        told(fit(removal)) for fit in fits(tmp_path, values, np.arange(60), forget, pairs=False)
    ]
    assert len(set(found)) == 1


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("budget", [MinRemoval(0.01), MaxShift(0.3), Count(7), 0.3])
def test_budgets(budget: Any, tmp_path: Path) -> None:
    removal = DomainRemoval("lr-maha", budget=budget, random_state=0)
    assert len({told(fit(removal)) for fit in fits(tmp_path)}) == 1


@pytest.mark.filterwarnings("ignore")
def test_costs_that_pass_records_over(tmp_path: Path) -> None:
    budget = Cost(RNG.uniform(1, 3, int(FORGET.sum())), budget=40.0)
    removal = DomainRemoval("norm", budget=budget, random_state=0)
    assert len({told(fit(removal)) for fit in fits(tmp_path)}) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_density_ratio_that_draws_what_it_learns_from(tmp_path: Path) -> None:
    for classifier in (None, GaussianNB()):
        score = DensityRatio(classifier, n_folds=3, max_train=400)
        removal = DomainRemoval(score, random_state=4)
        assert len({told(fit(removal)) for fit in fits(tmp_path, pairs=False)}) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_frontier_that_is_read_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    removal = DomainRemoval("lr-maha", random_state=0)
    at_once = {told(fit(removal)) for fit in fits(tmp_path, pairs=False)}
    monkeypatch.setattr(_passes, "_AT_HAND", 1)
    assert {told(fit(removal)) for fit in fits(tmp_path, pairs=False)} == at_once


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 60), max_size=12).map(sorted),
    score=st.sampled_from(["lr-maha", "cos-mu2", "coreset", "ccs"]),
    covariance=st.sampled_from(["shared", "free"]),
)
def test_partitions_do_not_show(seed: int, cuts: list[int], score: str, covariance: str) -> None:
    rng = np.random.default_rng(seed)
    values, forget = rng.normal(size=(60, 3)), rng.permutation(60) < 25
    removal = DomainRemoval(score, budget=5, covariance=covariance, random_state=0)
    wanted = told(removal.fit(values[forget], values[~forget], ids=np.arange(60)[forget]))
    records = remote(values, np.arange(60), cuts, Simulated(2))
    assert told(removal.fit(records, rows=forget)) == wanted


def test_values_that_are_not_rounded_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The negative control: sums of values off the grid, in blocks."""

    def unrounded(matrix: Any, origin: Any, quantum: Any) -> Any:
        yield (matrix - origin) / quantum

    monkeypatch.setattr(_covariance, "whole_blocks", unrounded)
    removal = DomainRemoval("maha-mu2", random_state=0)
    found = {fit(removal).scores_.tobytes() for fit in fits(tmp_path, pairs=False)}
    assert len(found) > 1


def test_single_and_double_precision() -> None:
    narrow = X.astype(np.float32)
    removal = DomainRemoval("density-ratio", random_state=0)
    wanted = told(removal.fit(narrow[FORGET], X[~FORGET], ids=IDS[FORGET]))
    pair = Records(narrow[FORGET], ids=IDS[FORGET]), Records(X[~FORGET], ids=IDS[~FORGET])
    assert told(removal.fit(*pair)) == wanted


# -- certificates ----------------------------------------------------------------------------------


def test_certificates(tmp_path: Path) -> None:
    removal = DomainRemoval("lr-maha", budget=200, random_state=0)
    arrays, *others = (fit(removal).certificate_ for fit in fits(tmp_path))
    assert len(set(others)) == 1
    assert others[0].alpha == pytest.approx(arrays.alpha, rel=1e-5)
    assert others[0].epsilon == pytest.approx(arrays.epsilon, rel=1e-5)
    whole = DomainRemoval("norm", budget=1.0).fit(Records(X, ids=IDS), rows=FORGET)
    plain = DomainRemoval("norm", budget=1.0).fit(X[FORGET], X[~FORGET])
    assert whole.certificate_.alpha == pytest.approx(plain.certificate_.alpha, rel=1e-5)


# -- deletions -------------------------------------------------------------------------------------


def test_chosen_records_are_deleted_and_the_next_choice_is_of_those_left(tmp_path: Path) -> None:
    removal = DomainRemoval("lr-maha", budget=50, random_state=0)
    for fit in (Records(X, ids=IDS), in_files(X, IDS, tmp_path / "b.parquet")):
        model = StandardScaler().fit(fit)
        chosen = removal.fit(fit, rows=FORGET).selected_ids_
        assert set(chosen.tolist()) <= set(IDS[FORGET].tolist())
        model.delete(chosen.tolist())
        with pytest.raises(DetachedError, match="there were 1300 records, and there are 1250"):
            _ = removal.certificate_
        left = ~np.isin(IDS, chosen)
        again = told(removal.fit(fit, rows=FORGET[left]))
        fresh = [X[left & FORGET], X[left & ~FORGET]]
        assert again == told(removal.fit(*fresh, ids=IDS[left & FORGET]))


def test_a_removal_holds_no_record() -> None:
    removal = DomainRemoval("lr-maha", random_state=0).fit(Records(X, ids=IDS), rows=FORGET)
    held = pickle.dumps(removal)
    assert not any(row.tobytes() in held for row in X[FORGET])
    again = pickle.loads(held)
    assert again.frontier_.alpha.tobytes() == removal.frontier_.alpha.tobytes()
    with pytest.raises(DetachedError, match="unpickled without its records"):
        _ = again.certificate_


# -- what it costs ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("score", BY_PASSES)
def test_how_often_records_are_read(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page says."""
    monkeypatch.setattr(_domain, "_AT_ONCE", 0)
    workers = Simulated(1)
    records = remote(X, IDS, even(N, PARTS), workers)

    def asked(call: Callable[[], Any]) -> tuple[int, int]:
        workers.asked.clear()
        call()
        return workers.asked["RunPass"], workers.asked["Fetch"]

    removal = DomainRemoval(score, random_state=0)
    passes, readings = asked(lambda: removal.fit(records, rows=FORGET))
    contrasts = not np.isnan(removal.trust_)
    assert 6 <= passes <= 12
    assert readings == (80 if score == "density-ratio" else 20 * contrasts)
    assert asked(lambda: removal.frontier_) == (2, 1)
    assert asked(lambda: removal.certificate_) == (6, 0)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", FROM_MEMORY)
def test_scores_that_look_at_all_records_together(score: str) -> None:
    with pytest.raises(InvalidInputError, match=r"looks at all records together.* lr-maha, "):
        DomainRemoval(score).fit(Records(X), rows=FORGET)


def test_names_of_features() -> None:
    frame = pd.DataFrame(X, columns=NAMES)
    removal = DomainRemoval("norm").fit(Records(frame), rows=FORGET)
    assert removal.feature_names_in_.tolist() == NAMES
    assert removal.n_features_in_ == D


@pytest.mark.parametrize(
    ("fit", "error", "message"),
    [
        (lambda d: d.fit(X, rows=FORGET), InvalidInputError, "are ndarray and NoneType, with rows"),
        (lambda d: d.fit(Records(X), X), InvalidInputError, "are Records and ndarray"),
        (lambda d: d.fit(X, Records(X)), InvalidInputError, "are ndarray and Records"),
        (
            lambda d: d.fit(Records(X), Records(X), rows=FORGET),
            InvalidInputError,
            "rows and retain",
        ),
        (lambda d: d.fit(Records(X), ids=IDS), InvalidInputError, "ids came beside Records"),
        (lambda d: d.fit(Records(X), rows=FORGET[:5]), InvalidInputError, "expected a mask"),
        (lambda d: d.fit(Records(X), rows=np.arange(N) < 1), InvalidInputError, "forget has 1 rec"),
        (lambda d: d.fit(Records(X), rows=FORGET | True), InvalidInputError, "retain has 0 rec"),
        (lambda d: d.fit(Records(["a", "b"]), rows=[True, False]), InvalidDataError, "hold text"),
        (
            lambda d: d.fit(Records(X, ids=IDS), Records(X, ids=IDS)),
            InvalidIdsError,
            "1300 ids are in forget and in retain",
        ),
        (
            lambda d: d.fit(Records(X), Records(X[:, :2])),
            InvalidDataError,
            "forget has the features 4 and retain 2",
        ),
        (
            lambda d: d.set_params(score=CCS(difficulty=len)).fit(Records(X), rows=FORGET),
            InvalidInputError,
            "looks at all records together",
        ),
        (
            lambda d: d.set_params(score=lambda a, b: a).fit(Records(X), rows=FORGET),
            InvalidInputError,
            "looks at all records together",
        ),
        (
            lambda d: d.set_params(score=MeanMargin()).fit(Records(X)),
            InvalidInputError,
            "no retain was given",
        ),
    ],
)
def test_bad_input(
    fit: Callable[[DomainRemoval], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fit(DomainRemoval("norm"))
