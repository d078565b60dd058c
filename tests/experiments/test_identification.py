"""Experiments on domains that have to be found, and that are looked for after their removal."""

from __future__ import annotations

from typing import Any

import identification
import membership
import numpy as np
import pytest
from membership import Parts
from scipy.sparse import csr_matrix

RNG = np.random.default_rng(40)


def test_labels_needed_are_counted_from_one() -> None:
    curve = np.array([0.0, 0.25, 0.5, 0.5, 0.75])
    assert identification.needed(curve, 0.25) == 2
    assert identification.needed(curve, 0.6) == 5
    assert identification.needed(curve, 0.8) == np.inf


def test_what_is_found_is_a_share_of_those_that_were_not_known() -> None:
    domain = np.zeros(400, dtype=bool)
    domain[:50] = True
    X = RNG.normal(size=(400, 3)) + 4 * domain[:, None]
    found = identification.recalls(X, domain, "sms", 0, 100)
    told, curve = found["density ratio"]
    assert len(told.rows) == 50
    assert curve[-1] == 1.0
    assert curve[0] in (0.0, 1 / 40)
    _, chance = found["random"]
    assert chance[-1] == pytest.approx(100 / 390, abs=0.15)
    assert identification.needed(curve, 0.8) < identification.needed(chance, 0.2)
    curves = {title: [values, values] for title, (_, values) in found.items()}
    made = identification.summary("sms", curves, 400, 40)
    assert made["notes"]["sms"]["rows"][0][-1] == f"{identification.needed(curve, 0.8):.0f}"
    assert made["notes"]["sms"]["rows"][2][-1] == "not reached"


def test_the_method_removes_the_first_of_the_order_wherever_they_lie(monkeypatch: Any) -> None:
    seen = []
    monkeypatch.setattr(membership, "learn", lambda X, y, seed: seen.append((X.toarray(), y, seed)))
    X = csr_matrix(np.eye(10))
    forget = X[[7, 8, 9, 2]]
    method = membership.removed(forget, np.array([3, 0, 1, 2]), 0.5)  # rows 2 and 7
    place = np.array([4, 2, 9, 0, 1, 3, 5, 7, 6, 8])
    method(X[place], place, np.flatnonzero(np.isin(place, [7, 8, 9, 2])), 5)
    rows, classes, seed = seen[0]
    assert classes.tolist() == [4, 9, 0, 1, 3, 5, 6, 8]
    assert (rows == np.eye(10)[classes]).all()
    assert seed == 5


def test_the_audit_removes_by_the_order(monkeypatch: Any) -> None:
    parts, seen = synthetic(60), []
    learn = membership.learn

    def watched(X: Any, y: Any, seed: int) -> Any:
        seen.append({membership.key(X[[j]]) for j in range(X.shape[0])})
        return learn(X, y, seed)

    monkeypatch.setattr(membership, "learn", watched)
    order = parts.orders["random"]
    membership.domain_shows(parts, order, 0.5, True)
    gone, left = ({membership.key(parts.forget[0][[j]]) for j in part} for part in
                  (order[:30], order[30:]))  # fmt: skip
    assert not any(gone & each for each in seen)
    assert {len(left & each) for each in seen} == {0, 30}  # of those that never had any, and others


def synthetic(n: int) -> Parts:
    """Return a domain that a model memorises, because its classes are random."""

    def read(count: int, shift: float) -> Any:
        rows = RNG.normal(size=(count, 200)) + shift
        return csr_matrix(rows), RNG.integers(0, 2, count)

    forget, fresh, retain, pool = read(n, 0.3), read(n, 0.3), read(n, 0.0), read(2 * n, 0.0)
    return Parts(forget, fresh, retain, pool, {"random": RNG.permutation(n)})


def test_records_that_are_kept_show_and_those_removed_do_not() -> None:
    parts = synthetic(120)
    order = parts.orders["random"]
    areas = {
        which: membership.records_show(parts, order, 0.5, which).groups[0].separation.area
        for which in ("kept", "removed")
    }
    assert areas["kept"] > 0.7
    assert abs(areas["removed"] - 0.5) < 0.15


def test_the_domain_shows_until_it_is_removed() -> None:
    parts = synthetic(60)
    order = parts.orders["random"]
    whole, some = (membership.domain_shows(parts, order, share, True) for share in (1.0, 0.2))
    assert whole.verdict == "not found"
    assert some.verdict == "found"
    areas = [report.groups[0].measures["U-LiRA AUC"] for report in (whole, some)]
    assert areas[0] < 0.65 < areas[1]
