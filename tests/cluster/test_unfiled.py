"""Filing is an accelerator: a model is the same with it, without it, and with it from any point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans, _run

ESTIMATORS = [
    KMeans(3, random_state=0),
    KMeans(2, random_state=1, tol=1e-3, max_iter=40),
    QuantizedKMeans(3, random_state=2),
    DivideAndConquerKMeans(3, random_state=3),
]
GONE = [[3], [5], [8, 9, 11], [200], [201], *([i] for i in range(20, 60)), [70, 71]]


def deleted(estimator: Any, ready_from: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return the digests after each deletion, and whether the run was filed, or not, or both.

    What filing needs is compiled when it has been asked for so many times.
    """
    asked: list[Any] = []

    def at_hand(*calls: Any) -> bool:
        asked.append(calls)
        return len(asked) > ready_from

    monkeypatch.setattr(_run, "is_compiled", at_hand)
    model = estimator.fit(np.random.default_rng(0).normal(size=(300, 4)))
    digests, filed = [], set()
    for ids in GONE:
        model.delete(ids)
        digests.append(model.digest())
        filed.add(getattr(getattr(model._accelerator, "run", None), "_filed", None))
    return digests, filed


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_digests_are_those_of_filed_runs(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    always, filed = deleted(estimator, 0, monkeypatch)
    later, too = deleted(estimator, 4, monkeypatch)
    never, not_filed = deleted(estimator, 10**9, monkeypatch)
    assert always == later == never
    assert len(set(always)) == len(GONE)
    if filed != {None}:  # the negative control: they went different ways
        assert True in filed
        assert True in too
        assert not_filed == {False}


def test_a_run_that_is_read_does_not_wait(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each process deletes once, it would never be filed."""
    from erasable import load

    monkeypatch.setattr(_run, "is_compiled", lambda *calls: False)
    model = KMeans(3, random_state=0).fit(np.random.default_rng(0).normal(size=(300, 4)))
    model.delete([1])
    assert not model._accelerator.run._filed
    model.save(tmp_path / "model", records=True)
    again: Any = load(tmp_path / "model", True)
    again.delete([2])
    assert again._accelerator.run._filed
    model.delete([2])
    assert again.digest() == model.digest()
