"""A logistic regression adds up portions of records; what is not certain, all of them in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable.core import threads
from erasable.linear_model import LogisticRegression
from erasable.linear_model._newton import NewtonSolver


class Watched:
    """Where solvers end: the first, which is never believed here, and the one that decides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.first: set[bytes] = set()
        self.deciding: set[bytes] = set()
        search = NewtonSolver.find_lattice_point

        def watched(solver: Any, margin: float = 1.0) -> tuple[Any, bool]:
            values, certain = search(solver, margin)
            decides = margin == 1.0
            (self.deciding if decides else self.first).add(solver.theta.tobytes())
            return values, certain and decides

        monkeypatch.setattr(NewtonSolver, "find_lattice_point", watched)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_is_not_certain_is_summed_in_one_order(
    n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 5))
    y = np.digitize(X[:, 0] + rng.logistic(size=3000), [0.0, 1.5][: n_classes - 1])
    watched, digests = Watched(monkeypatch), set()
    for rows in (2**15, 500, 70):
        monkeypatch.setattr(threads, "ROWS", rows)
        for n_jobs in (1, 2, 3):
            model = LogisticRegression(n_jobs=n_jobs).fit(X, y)
            model.delete([5, 8])
            digests.add(model.digest())
    assert len(digests) == 1
    assert len(watched.deciding) == 2  # after the fit, and after the deletion
    assert len(watched.first) > 2  # the negative control: other portions, other last bits


def test_portions_predict_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    whole = model.predict_proba(X)
    monkeypatch.setattr(threads, "ROWS", 64)
    for n_jobs in (1, 2):
        model.set_params(n_jobs=n_jobs)
        np.testing.assert_allclose(model.predict_proba(X), whole, rtol=1e-14)
        assert (model.predict(X) == model.classes_[whole.argmax(axis=1)]).all()
