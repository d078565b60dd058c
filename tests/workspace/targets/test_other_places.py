"""`erase_target` takes any place that a class of targets opens, and the log has two entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from erased_people import erased_from
from refusals import refused

from erasable.core.errors import SourceError
from erasable.workspace import Workspace
from erasable.workspace.targets import kinds
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings

PEOPLE = [f"marker{i}@example.org" for i in range(10)]


class Lines(RecordTarget):
    """A file with an address in each line."""

    name = "lines"
    fails = False

    def __init__(self, place: str, settings: Settings) -> None:
        self.path = Path(place.partition(":")[2])
        self.settings = settings
        self.shown = f"lines:{self.path.name}"

    def batches(self) -> Iterator[Records]:
        lines = self.path.read_text().splitlines()
        yield Records(lines, {"mail": lines})

    def delete(self, keys: Sequence[Any]) -> None:
        if self.fails:
            raise SourceError("the file is read-only; expected one that may be changed")
        lines = [line for line in self.path.read_text().splitlines() if line not in keys]
        self.path.write_text("\n".join(lines))

    def compact(self) -> list[str]:
        return []

    def files(self) -> Iterable[Path]:
        return [self.path]


class Entry:
    """An entry point."""

    value = "lines:Lines"

    @staticmethod
    def load() -> type[Lines]:
        return Lines


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    workspace = erased_from(tmp_path, {"mail": PEOPLE}, {"email": PEOPLE[:2]})
    (tmp_path / "list").write_text("\n".join([PEOPLE[0].upper(), *PEOPLE[1:]]))
    monkeypatch.setattr(
        kinds, "entry_points", lambda group, name: [Entry()] if name == "lines" else []
    )
    return workspace


def kinds_of(workspace: Workspace) -> list[str]:
    every = [entry["kind"] for entry in workspace.log_entries()]
    return [kind for kind in every if kind.startswith("target-")]


def test_people_leave_another_place(known: Workspace, tmp_path: Path) -> None:
    place = f"lines:{tmp_path / 'list'}"
    told = known.erase_target(place, ["mail:email"], dry_run=True)
    assert (told.changed, told.verdict, kinds_of(known)) == ({"lines": 2}, None, [])
    done = known.erase_target(place, ["mail:email"])
    assert (done.place, done.n_people, done.changed) == ("lines:list", 2, {"lines": 2})
    assert (done.verdict, done.reason) == ("purged", None)
    assert (tmp_path / "list").read_text().splitlines() == PEOPLE[2:]
    assert kinds_of(known) == ["target-started", "target-erased"]
    assert known.erase_target(place, ["mail:email"]).changed == {}
    assert known.verify_log() == []


def test_a_place_that_refuses(
    known: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lines, "fails", True)
    with refused("read-only"):
        known.erase_target(f"lines:{tmp_path / 'list'}", ["mail:email"])
    assert kinds_of(known) == ["target-started"]


def test_a_place_that_nothing_opens(known: Workspace) -> None:
    with refused("nothing opens 'nosuch'"):
        known.erase_target("nosuch:thing", ["mail:email"])
