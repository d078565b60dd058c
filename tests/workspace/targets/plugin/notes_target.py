"""A target as another package would add it: a folder of notes, a file of JSON each."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from erasable.core.errors import SourceError
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings


class NotesTarget(RecordTarget):
    """A folder of notes. A file named "full" has it fail, and one named "kept" keep a copy.

    With KILLED_AT in the environment, the process kills itself at this step.
    """

    name = "notes"

    def __init__(self, place: str, settings: Settings) -> None:
        self.shown, self.settings = place, settings
        self._folder = Path(place.partition(":")[2])
        self._step = 0
        if not self._folder.is_dir():
            raise SourceError(f"{place!r} is no folder; expected one of notes")

    def batches(self) -> Iterator[Records]:
        """Return all notes."""
        self._count()
        paths = sorted(self._folder.glob("*.json"))
        read = [json.loads(path.read_text()) for path in paths]
        for subject in self.settings.subjects:
            is_there = any(subject.field in each for each in read)
            if read and not (is_there or self.settings.may_lack_subject):
                raise SourceError(f"no note has {subject.field!r}; expected it in some")
        names = {name for each in read for name in each}
        fields = {name: [each.get(name) for each in read] for name in names}
        yield Records([path.name for path in paths], fields)

    def delete(self, keys: Sequence[Any]) -> None:
        """Remove notes."""
        if (self._folder / "full").exists():
            raise SourceError(f"{self.shown!r} cannot be changed; expected room on the disk")
        for key in keys:
            self._count()
            path = self._folder / key
            if (self._folder / "kept").exists():
                (self._folder / "copy.bin").write_bytes(path.read_bytes())
            path.unlink(missing_ok=True)

    def compact(self) -> list[str]:
        """Do nothing: what is removed is gone."""
        self._count()
        return []

    def files(self) -> Iterable[Path]:
        """Return all files."""
        self._count()
        return [path for path in self._folder.rglob("*") if path.is_file()]

    def _count(self) -> None:
        self._step += 1
        if os.environ.get("KILLED_AT") == str(self._step):
            os.kill(os.getpid(), signal.SIGKILL)
