"""A place that a program of the user knows, as a target."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from erasable.core.errors import SourceError
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings

_AT_ONCE = 1_000  # records of a batch
_TIMEOUT = 3_600  # seconds that a program has for an answer
_UNSEEN = 3  # the status of a program that cannot see the files


class CommandTarget(RecordTarget):
    """Records that a program lists and deletes; ``command:PROGRAM ARGUMENTS``.

    The program is started without a shell, with one more argument that says what is asked:

    ============ =================================================================================
    ``list``     it prints all records, a line of JSON for each: ``{"key": ..., "fields": {...}}``
    ``delete``   it reads keys, a line of JSON for each; a key that is not there is no error
    ``compact``  it frees the room of deleted records, and prints why that is not all, if so:
                 a reason on each line
    ``files``    it prints the paths of all files to search, one on each line, or ends with
                 status 3 if they cannot be seen
    ============ =================================================================================

    Each ends with status 0. What it prints to its standard error is not repeated: it may hold
    values of people.

    Raises SourceError if the program is not found, fails, takes longer than an hour, or prints
    anything else, or if no record has a subject field.
    """

    def __init__(self, place: str, settings: Settings) -> None:
        """Ask for the records; nothing is changed."""
        self.settings = settings
        given = place.partition(":")[2]
        try:
            self._command = shlex.split(given)
        except ValueError:
            self._command = []
        if not self._command:
            raise SourceError(
                "a target of a command names no program, or has a quote that does not end; "
                "expected command:PROGRAM ARGUMENTS"
            )
        self.name = Path(self._command[0]).name
        self.shown = f"command:{self.name}"  # arguments may hold a password
        self._refuse_unknown()

    def batches(self) -> Iterator[Records]:
        """Return what the program lists."""
        lines = self._ask("list").splitlines()
        for at in range(0, len(lines), _AT_ONCE):
            found = [self._record(line) for line in lines[at : at + _AT_ONCE] if line.strip()]
            keys, documents = [key for key, _ in found], [fields for _, fields in found]
            yield Records.of_documents(keys, documents, self.settings.subjects)

    def delete(self, keys: Sequence[Any]) -> None:
        """Have the program delete records."""
        if keys:
            self._ask("delete", "".join(f"{json.dumps(key)}\n" for key in keys))

    def compact(self) -> list[str]:
        """Have the program free the room of deleted records."""
        return [line.strip() for line in self._ask("compact").splitlines() if line.strip()]

    def files(self) -> Iterable[Path] | None:
        """Return the files that the program names, None if it cannot see them."""
        found = self._run("files")
        if found.returncode == _UNSEEN:
            return None
        self._refuse_failed("files", found)
        paths = [Path(line) for line in found.stdout.splitlines() if line.strip()]
        if missing := next((path for path in paths if not path.is_file()), None):
            raise SourceError(
                f"{self.shown!r} files: there is no file {missing.name!r}; expected paths of files"
            )
        return paths

    def _record(self, line: str) -> tuple[Any, dict[str, Any]]:
        try:
            found = json.loads(line)
            key, fields = found["key"], found["fields"]
            if not isinstance(key, str | int) or not isinstance(fields, dict):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise SourceError(
                f"{self.shown!r} list: a line is no record; expected JSON on each line: "
                '{"key": text or integer, "fields": {...}}'
            ) from None
        return key, fields

    def _ask(self, verb: str, given: str = "") -> str:
        found = self._run(verb, given)
        self._refuse_failed(verb, found)
        return found.stdout

    def _run(self, verb: str, given: str = "") -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [*self._command, verb], input=given, capture_output=True, encoding="utf-8",
                timeout=_TIMEOUT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            came = f"did not end within {_TIMEOUT:,} seconds"
        except OSError as error:
            came = f"could not be started ({type(error).__name__})"
        except UnicodeDecodeError:
            came = "printed what is no UTF-8"
        raise SourceError(f"{self.shown!r} {verb}: the program {came}; expected one that answers")

    def _refuse_failed(self, verb: str, found: subprocess.CompletedProcess[str]) -> None:
        if found.returncode:
            raise SourceError(
                f"{self.shown!r} {verb}: the program ended with status {found.returncode}; "
                "expected 0"
            )
