"""Files of models keep no hash of a deleted id: who knows the id could ask whether it was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from traces import numbers_in

from erasable import load
from erasable.core.lookup import HashIndex
from erasable.core.tape import Tape
from erasable.linear_model import Ridge
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from law_instances import first_instances
from naming import named
from suited_to_some import tables

N = 300
IDS, GROUPS = [f"visit-{n}" for n in range(N)], [f"person-{n // 3}" for n in range(N)]
GONE = {*IDS[:7], *GROUPS[:6]}  # the third person keeps two records


def _fitted(estimator: Any) -> Any:
    for X, y in tables(N):
        try:
            return clone(estimator).fit(X, y, ids=IDS, groups=GROUPS)
        except (ValueError, TypeError):
            continue
    return None


def _left(
    estimator: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[set[Any], set[Any]]:
    """Return the hashes of deleted ids and groups in files before the deletions, and after them."""
    keys: set[int] = set()
    own = Tape.record_keys

    def recorded(tape: Tape, ids: Any) -> Any:
        made = own(tape, ids)
        known = [each in GONE for each in ids.tolist()]
        keys.update(made[known].view(np.int64).tolist())
        return made

    with monkeypatch.context() as patched:
        patched.setattr(Tape, "record_keys", recorded)
        model = _fitted(estimator)
        if model is None:  # a learner of words behind a scaler, say
            pytest.skip("no records suit it")
        model.save(folder / "model", records=True)
        before = numbers_in(folder, keys)
        model = load(folder / "model", records=True)
        for gone in ({"ids": IDS[:3]}, {"groups": GROUPS[3:4]}, {"ids": IDS[6:7]}):
            model.delete(**gone)
        for name in ("model", "other"):
            model.save(folder / name, records=True)
    return before, numbers_in(folder, keys)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("behind", [False, True], ids=["alone", "behind a scaler"])
@pytest.mark.parametrize("estimator", first_instances(), ids=named)
def test_no_hash_of_a_deleted_id_is_left(
    estimator: Any, behind: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "accelerators"
    folder.mkdir()
    model = make_pipeline(StandardScaler(), estimator) if behind else estimator
    before, after = _left(model, folder, monkeypatch)
    assert before
    assert after == set()


@pytest.mark.soak
def test_an_index_that_forgets_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HashIndex, "forget", lambda *arguments: None)
    (tmp_path / "accelerators").mkdir()
    _, after = _left(Ridge(), tmp_path / "accelerators", monkeypatch)
    assert after
