"""Deletions that learn again, because that is faster, come to the model of those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grammar import Writer
from twins import hold

from erasable.cluster import KMeans
from erasable.core.changes import Delta
from erasable.core.estimator import Erasable
from erasable.linear_model import Ridge
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.utils.estimator_checks import LAW_CHECKS, LAW_DATA_SETS
from law_instances import first_instances
from naming import named

CHECKS = [LAW_CHECKS["check_delete_equals_refit"], LAW_CHECKS["check_batch_split"]]


def numbers(n: int) -> Any:
    return np.round(np.random.default_rng(2).normal(size=(n, 3)) * 64) / 64


@pytest.mark.parametrize("check", CHECKS, ids=named)
@pytest.mark.parametrize("estimator", first_instances(), ids=named)
def test_every_estimator_may_learn_again(
    estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Erasable, "_follows", lambda *_: False)
    check(estimator, data_sets=[data for data in LAW_DATA_SETS if data.name == "separated"])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_compositions_keep_the_law_where_steps_learn_again_or_do_not(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step chooses by its name and the number of records, as if by chance."""

    follows = Erasable._follows

    def chance(self: Erasable, delta: Delta, n_records: int) -> bool:
        by_chance = (len(type(self).__name__) + delta.leaving.size + n_records) % 3 == 0
        return by_chance and follows(self, delta, n_records)

    monkeypatch.setattr(Erasable, "_follows", chance)
    for seed in range(first, first + 10):
        hold(Writer(seed).write())


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_many_records_make_it_learn_again(share: float) -> None:
    X = numbers(3000)
    model = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit(X)
    gone = np.arange(int(share * 3000))
    deletion = model.delete(gone.tolist())
    assert (deletion.counts.get("standardscaler.refits") == 1) == (share > 0.5)
    fresh = make_pipeline(StandardScaler(), KMeans(3, random_state=0))
    assert model.digest() == fresh.fit(X[gone.size :], ids=np.arange(gone.size, 3000)).digest()


def test_one_record_never_does(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Ridge().fit(numbers(40), numbers(40)[:, 0])
    monkeypatch.setattr(Erasable, "_relearn", lambda *_: pytest.fail("learned again"))
    model.delete([3])


def test_what_is_raised_meanwhile_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Ridge().fit(numbers(40), numbers(40)[:, 0])
    before, learn, failed = model.digest(), Ridge._fit_rows, []

    def fail_once(self: Ridge) -> None:
        if not failed:
            failed.append(True)
            raise MemoryError
        learn(self)

    monkeypatch.setattr(Erasable, "_follows", lambda *_: False)
    monkeypatch.setattr(Ridge, "_fit_rows", fail_once)
    with pytest.raises(MemoryError):
        model.delete([3])
    assert model.digest() == before
    assert model.delete([3]).action == "refit"
