"""Moments and certificates of records that lie in files or on workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable import Records
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.preprocessing import StandardScaler
from erasable.removal import Moments, certificate, certificate_from_moments
from simulated_workers import Simulated, even, spread

N = 800
RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(0, 1, (N // 2, 3)), RNG.normal(1.5, 1, (N // 2, 3))])
FORGET = np.arange(N) < N // 2


def table() -> pa.Table:
    others = {"id": np.arange(N), "label": FORGET, "person": np.arange(N)}
    return pa.table({**{f"x{j}": X[:, j] for j in range(3)}, **others})


def everywhere(folder: Path) -> list[Records]:
    pq.write_table(table(), folder / "a.parquet", row_group_size=90)
    return [
        Records(pd.DataFrame(X, columns=["x0", "x1", "x2"]), ids=np.arange(N)),
        Records.from_parquet(folder, ids="id", features=["x0", "x1", "x2"]),
        spread(table(), even(N, 13), Simulated(3), ["x0", "x1", "x2"]),
    ]


def same(one: Moments, other: Moments) -> bool:
    assert one.scatter is not None
    return (one.n, one.mean.tobytes(), one.scatter.tobytes()) == (
        other.n, other.mean.tobytes(), np.asarray(other.scatter).tobytes(),
    )  # fmt: skip


def test_moments_are_those_of_memory(tmp_path: Path) -> None:
    memory, *others = everywhere(tmp_path)
    for mask in (None, FORGET, ~FORGET):
        found = Moments.of_records(memory, mask)
        plain = Moments.of(X, mask)
        assert found.n == plain.n
        np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found.scatter, plain.scatter, rtol=1e-6, atol=1e-5)
        assert all(same(Moments.of_records(each, mask), found) for each in others)
        assert not same(Moments.of_records(memory, RNG.permutation(FORGET)), found)


def test_a_removal_is_certified_by_passes(tmp_path: Path) -> None:
    """What is deleted from records by a model does not count any more."""
    deleted = np.flatnonzero(FORGET)[np.argsort(X[FORGET].sum(axis=1))[:150]]
    rows = np.isin(np.flatnonzero(FORGET), deleted)
    wanted = certificate(X[FORGET], X[~FORGET], rows, 0.05)
    for records in everywhere(tmp_path):
        forget, retain = (Moments.of_records(records, mask) for mask in (FORGET, ~FORGET))
        StandardScaler().fit(records).delete(deleted.tolist())
        refit = Moments.of_records(records)
        assert refit.n == N - 150
        found = certificate_from_moments(forget, retain, refit, 0.05)
        assert found.alpha == pytest.approx(wanted.alpha, rel=1e-5)
        assert found.epsilon == pytest.approx(wanted.epsilon, rel=1e-5)


def test_what_has_no_moments() -> None:
    with pytest.raises(InvalidDataError, match="hold text, or are sparse"):
        Moments.of_records(Records(["a", "b"]))
    with pytest.raises(InvalidInputError, match="expected a mask"):
        Moments.of_records(Records([[1.0], [2.0]]), np.array([0]))
