"""The soak of targets finds what is broken, and kills where it says."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import target_kills  # noqa: E402
from effects import FILES, Point, forked  # noqa: E402
from target_places import MAILS, TEXTS, N, Place, Row  # noqa: E402

from erasable.workspace.targets.protocol import (  # noqa: E402
    Records,
    RecordTarget,
    Settings,
    Target,
)

pytestmark = pytest.mark.soak


class Notes(RecordTarget):
    """A folder with two files: notes, and whose they are; it is erased from with care."""

    name = "notes"
    order = ("texts", "owners")  # a note without an owner could not be told to be anybody's

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.shown, self.folder, self.settings = str(folder), folder, settings

    def batches(self) -> Iterator[Records]:
        owners, texts = self._read("owners"), self._read("texts")
        keys = sorted(owners.keys() | texts.keys())
        fields = {"mail": [owners.get(key) for key in keys], "text": [*map(texts.get, keys)]}
        yield Records(keys, fields)

    def delete(self, keys: Sequence[Any]) -> None:
        for name in self.order:
            kept = {key: each for key, each in self._read(name).items() if key not in keys}
            self.write(self.folder / f"{name}.json", json.dumps(kept))

    def write(self, path: Path, text: str) -> None:
        beside = path.with_suffix(f".{os.getpid()}.new")
        beside.write_text(text)
        beside.replace(path)

    def compact(self) -> list[str]:
        for each in self.folder.glob("*.new"):
            each.unlink()
        return []

    def files(self) -> Iterable[Path]:
        return list(self.folder.iterdir())

    def _read(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / f"{name}.json").read_text()))


class OwnersFirst(Notes):
    """Deletes whose notes they are before the notes."""

    order = ("owners", "texts")


class InPlace(Notes):
    """Overwrites files where they are."""

    def write(self, path: Path, text: str) -> None:
        path.write_text(text)


class NotCleaned(Notes):
    """Leaves files that it was writing."""

    def compact(self) -> list[str]:
        return []


class Forgetful(Notes):
    """Takes others out, and puts them back."""

    def delete(self, keys: Sequence[Any]) -> None:
        every = self._read("texts")
        self.write(self.folder / "texts.json", "{}")
        super().delete(keys)
        kept = {key: each for key, each in every.items() if key not in keys}
        self.write(self.folder / "texts.json", json.dumps(kept))


class NotesPlace(Place):
    """Where such a target is."""

    has_vectors = False

    def __init__(self, kind: type[Notes], folder: Path) -> None:
        super().__init__("notes", folder)
        self._kind = kind

    @property
    def address(self) -> str:
        return str(self.folder)

    def opened(self) -> Target:
        return self._kind(self.folder, self.settings)

    def import_clients(self) -> None:
        """Import nothing."""

    def make(self) -> None:
        self.folder.mkdir()
        for name, values in (("owners", MAILS), ("texts", TEXTS)):
            held = {str(at): values[at] for at in range(N)}
            (self.folder / f"{name}.json").write_text(json.dumps(held))

    def read(self) -> list[Row]:
        return sorted(
            (int(key), value)
            for name in ("owners", "texts")
            for key, value in json.loads((self.folder / f"{name}.json").read_text()).items()
        )


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Notes, None),
        (OwnersFirst, "the verdict is 'deleted, not proved gone'"),
        (InPlace, "JSONDecodeError"),
        (NotCleaned, "more files or tables than without a kill: texts.#.new"),
        (Forgetful, "records of others are lost"),
    ],
)
def test_a_target_that_is_broken_is_found(
    tmp_path: Path, kind: type[Notes], told: str | None
) -> None:
    found = target_kills.run(NotesPlace(kind, tmp_path), tmp_path, 1, 20, 300.0)
    assert (found.n_kills, found.n_inside > 10) == (20, True)
    assert (not found.faults) if told is None else any(told in each for each in found.faults)


def test_a_process_is_killed_before_the_call_that_is_named(tmp_path: Path) -> None:
    def write() -> str:
        for at in range(9):
            (tmp_path / str(at)).write_text(str(at))
        return "written"

    output = tmp_path / "output"
    whole = forked(write, output, FILES)
    assert (whole.told, whole.error, whole.was_killed) == ("written", "", False)
    assert whole.calls == Counter({"openat": 9, "write": 9})
    for point, n_files, n_written in (
        (Point("openat", 4), 3, 3), (Point("write", 4), 4, 3), (Point("write", 10), 9, 9)
    ):  # fmt: skip
        for each in tmp_path.glob("[0-9]"):
            each.unlink()
        ended = forked(write, output, FILES, point)
        assert ended.was_killed == (point.number < 10)
        texts = [each.read_text() for each in tmp_path.glob("[0-9]")]
        assert (len(texts), sum(map(bool, texts))) == (n_files, n_written)


def test_what_a_process_raises_is_told(tmp_path: Path) -> None:
    ended = forked(lambda: [].pop(), tmp_path / "output", FILES)
    assert "IndexError: pop from empty list" in ended.error
    assert not ended.was_killed


def test_kills_are_drawn_by_the_seed() -> None:

    first, last = Counter({"write": 3}), Counter({"write": 9, "rename": 2})
    one, other = (
        [Point.drawn(first, last, random.Random(seed)) for _ in range(20)] for seed in (1, 1)
    )
    assert one == other
    drawn = random.Random(1)
    every = [Point.drawn(first, last, drawn) for _ in range(300)]
    assert {each.number for each in every if each.call == "write"} == set(range(4, 10))
    assert {each.number for each in every if each.call == "rename"} == {1, 2}
