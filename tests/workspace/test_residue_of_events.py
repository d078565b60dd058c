"""Whatever happens between a correction that waits and an erasure, nothing of who is gone stays."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from contexts import scan, visits, write_csv
from traces import numbers_in, tokens_in

from erasable.workspace import Workspace
from erasable.workspace.data import waiting_corrections
from erasable.workspace.models import versions

PERSON = "marker-patient-2"
WAS, TOLD = 61.1234567890123, 62.9876543210987
EVENTS = {
    "dropped": [False, True],
    "kept": [False, True],  # by a model that never follows
    "released": ["no", "retired", "fitted again", "fitted on others", "starved", "restored"],
    "end": ["no", "erased", "cancelled", "denied"],
}


def source(*, without: bool = False) -> dict[str, list[Any]]:
    made = visits(30)
    made["note"][7], made["weight"][7] = "was-marker", WAS
    made["sick"][6:9] = [0, 0, 0]
    if without:
        stays = [i for i, each in enumerate(made["patient"]) if each != PERSON]
        made = {name: [column[i] for i in stays] for name, column in made.items()}
    return made


def live(
    folder: Path, *, dropped: bool, kept: bool, released: str, end: str
) -> tuple[Workspace, bool, bool]:
    """Have all of it happen; return whether the records, and the correction, are to be gone."""
    workspace = Workspace.create(folder / "ws")
    write_csv(folder / "visits.csv", source())
    write_csv(folder / "others.csv", visits(20, start=100))
    for name in ("visits", "others"):
        workspace.add_dataset(name, folder / f"{name}.csv", id_column="visit", subjects=["patient"])
    model: dict[str, Any] = {"target": "sick", "features": ["age", "weight"]}
    workspace.fit("new", "naive_bayes.GaussianNB", datasets=["visits"], policy="at-once", **model)
    if kept:
        workspace.fit("old", "sklearn.linear_model.LogisticRegression", datasets=["visits"],
                      policy="never", **model)  # fmt: skip
    told = {"note": "told-marker", "weight": TOLD}
    request, _ = workspace.correct("visits", ids=["v7", "v20"], values=told, hold="in doubt")
    if dropped:
        write_csv(folder / "visits.csv", source(without=True))
        workspace.sync("visits")
    if released == "retired" and kept:
        workspace.retire("old")
    elif released == "fitted again" and kept:
        workspace.fit("old")
    elif released == "fitted on others" and kept:
        workspace.fit("old", datasets=["others"])
    elif released == "starved":  # no model learns from one person, who is never sick
        workspace.retire("new")
        workspace.request([f"marker-patient-{i}" for i in range(10) if i != 2])
        workspace.process()
    elif released == "restored":
        made = workspace.back_up(folder / "one.tar", with_keys=True)
        workspace.context.ledger.close()
        Workspace.restore(made.path, folder / "again", suppressions=None)
        workspace = Workspace.open(folder / "again")
    if end == "erased":
        workspace.request([PERSON])
    elif end == "cancelled":
        workspace.cancel(request.id)
    elif end == "denied":
        workspace.deny(request.id, "not so")
    workspace.process()  # which purges the ledger in any case
    needed = not dropped or (kept and released in ("no", "restored"))
    gone = end == "erased" or not needed
    return workspace, gone, end in ("cancelled", "denied")


def found(workspace: Workspace, *markers: str, numbers: set[float]) -> list[object]:
    path = workspace.context.root
    return [*scan(path, *markers), *numbers_in(path, numbers)]


def left(workspace: Workspace) -> tuple[list[object], list[object]]:
    """Return what is found of the person's records, and of what they told of these."""
    path = workspace.context.root
    tokens = {each for each in workspace.context.keys.tokens("id", [PERSON]) if each}
    data = [*found(workspace, "was-marker", PERSON, numbers={WAS}), *tokens_in(path, tokens)]
    with workspace.context.ledger.reading() as connection:
        files = [
            waiting_corrections.read(workspace.context, row)
            for row in waiting_corrections.waiting(connection)
        ]
    return data, [id for each in files for id in each["visit"].to_pylist() if id == "v7"]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("dropped", "kept", "released", "end"),
    [
        each
        for each in product(*EVENTS.values())
        if each[1] or each[2] in ("no", "starved", "restored")
    ],
)
def test_nothing_stays_of_who_is_gone(
    tmp_path: Path, dropped: bool, kept: bool, released: str, end: str
) -> None:
    workspace, gone, ended = live(tmp_path, dropped=dropped, kept=kept, released=released, end=end)
    data, told = left(workspace)
    assert (data == []) is gone
    assert (told == []) is (gone or ended)
    if gone and ended:
        assert found(workspace, "told-marker", numbers={TOLD}) == []
    assert workspace.verify_log() == []
    assert {each.verdict for each in workspace.verify()} <= {"equal", "retired"}


CASE: dict[str, Any] = {"dropped": True, "kept": True, "end": "erased"}


def test_without_narrowing_what_they_told_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_corrections, "narrow", lambda *given, **more: [])
    assert left(live(tmp_path, **CASE, released="fitted again")[0])[1] == ["v7"]


def test_without_letting_go_of_versions_their_records_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "drop_unused", lambda *given: 0)
    workspace, gone, _ = live(tmp_path, **{**CASE, "end": "no"}, released="retired")
    assert gone
    assert left(workspace)[0]
