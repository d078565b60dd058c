"""Every learner of erasable can be audited, and what is deleted in an audit is a refit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

from erasable.audit import LiRA, audit_membership, leave_one_out_influence
from erasable.audit._data import Sample
from erasable.audit._shadows import train_shadows
from erasable.audit._signals import signals_of
from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable
from law_instances import first_instances

LEARNERS = [each for each in first_instances() if is_classifier(each) or is_regressor(each)]


def records(estimator: Any, n: int = 72) -> tuple[Any, Any]:
    """Return counts, which every learner takes, and targets of its kind."""
    source = np.random.default_rng(0)
    X = source.integers(0, 15, (n, 4)).astype(float)
    noise = source.normal(size=n)
    return X, (X[:, 0] + 4 * noise > 7).astype(int) if is_classifier(estimator) else X[:, 0] + noise


def seeded(estimator: Any) -> Any:
    """Return a clone whose draws are the same each time."""
    model = clone(estimator)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, 7))


def has_scores(estimator: Any) -> bool:
    """Tell whether a learner says how sure it is."""
    X, y = records(estimator)
    model = seeded(estimator).fit(X, y)
    return is_regressor(model) or any(
        hasattr(model, name) for name in ("predict_proba", "decision_function")
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("estimator", LEARNERS, ids=lambda each: type(each).__name__)
def test_influence_and_pairs_are_refits(estimator: Erasable) -> None:
    X, y = records(estimator)
    model = seeded(estimator).fit(X, y)
    if not has_scores(estimator):
        with pytest.raises(InvalidInputError, match="signal="):
            leave_one_out_influence(model)
        return
    digest = model.digest()
    found = leave_one_out_influence(model, [0, 3])
    assert model.digest() == digest
    for row, change in zip((0, 3), found.changes, strict=True):
        left = np.arange(len(y)) != row
        fresh = seeded(estimator).fit(X[left], y[left], ids=np.flatnonzero(left))
        alone = Sample.read((X[[row]], y[[row]]), "record")
        told = [signals_of(each, alone, knows_all=False).logit[0] for each in (model, fresh)]
        assert change == told[0] - told[1]

    pool = Sample.read((X, y), "pool")

    def recipe(X: Any, y: Any, seed: int) -> Any:
        return seeded(estimator).fit(X, y)

    plain = train_shadows(recipe, pool, n_models=2, seed=1)
    shadows = train_shadows(seeded(estimator), pool, n_models=2, seed=1, paired=[0, 3])
    assert shadows.without is not None
    assert np.array_equal(plain.members, shadows.members)
    assert (~np.isnan(shadows.without)).sum() == shadows.members[:, [0, 3]].sum()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("estimator", LEARNERS, ids=lambda each: type(each).__name__)
def test_an_audit_runs_from_end_to_end(estimator: Erasable) -> None:
    X, y = records(estimator)
    if not has_scores(estimator):
        pytest.skip("it does not say how sure it is")
    model = seeded(estimator).fit(X[:36], y[:36])
    report = audit_membership(
        model, (X[:36], y[:36]), (X[36:], y[36:]), attack=LiRA(4), paired=True, random_state=0
    )
    assert report.verdict in ("found", "not found", "cannot tell")
    assert "<html" in report.to_html()
    assert report.to_json()
