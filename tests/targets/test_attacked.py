"""Attacks on the search for what people left: what they found stays mended."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from erasable.workspace.targets.catalogue import without_credentials
from erasable.workspace.targets.commands import CommandTarget
from erasable.workspace.targets.files import FilesTarget
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings, Subject
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED
from people import erased

ANN = "ann+lee@example.org"
SETTINGS = Settings((Subject("mail", "email"), Subject("other", "email")))


class Lines(RecordTarget):
    """Lines of JSON in a file."""

    name = shown = "lines"

    def __init__(self, path: Path, settings: Settings) -> None:
        self.settings, self._path = settings, path

    def batches(self) -> Iterator[Records]:
        rows = [json.loads(line) for line in self._path.read_text().splitlines()]
        fields = {name: [row.get(name) for row in rows] for name in ("mail", "other", "said")}
        yield Records(list(range(len(rows))), fields)

    def delete(self, keys: Sequence[Any]) -> None:
        lines = self._path.read_text().splitlines()
        kept = [line for at, line in enumerate(lines) if at not in keys]
        self._path.write_text("".join(f"{line}\n" for line in kept))

    def compact(self) -> list[str]:
        return []

    def files(self) -> Iterable[Path]:
        return [self._path]


def lines(folder: Path, *more: dict[str, Any]) -> Lines:
    rows = [{"mail": f"p{i}@example.org", "said": f"what person {i} said"} for i in range(12)]
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *more]))
    return Lines(path, SETTINGS)


@pytest.mark.parametrize(("said", "word"), [(ANN, NOT_PROVED), ("nobody", PURGED)])
def test_who_is_named_in_a_record_of_others_is_not_purged(
    tmp_path: Path, said: str, word: str
) -> None:
    of_ann = {"mail": ANN, "other": "p3@example.org", "said": "hello"}
    of_bob = {"mail": "bob@example.org", "said": said}
    _, verdict = erased(lines(tmp_path, of_ann, of_bob), ANN)
    assert verdict.word == word


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("GET /?mail=ann%2Blee%40example.org", NOT_PROVED),
        ("GET /?mail=ann%2blee%40example.org", NOT_PROVED),
        ("GET /?mail=bob%40example.org", PURGED),
    ],
)
def test_identities_in_urls_are_found(tmp_path: Path, text: str, word: str) -> None:
    others = "".join(f"p{i}@example.org,what person {i} said\n" for i in range(12))
    (tmp_path / "a.csv").write_text(f"mail,note\n{ANN},hello there\n{others}")
    (tmp_path / "access.log").write_text(text)
    settings = Settings((Subject("mail", "email"),))
    _, verdict = erased(FilesTarget(str(tmp_path), settings), ANN)
    assert verdict.word == word


@pytest.mark.parametrize(
    ("place", "kept"),
    [
        ("postgresql://ann:se/cret@db:5432/shop", "postgresql://db:5432/shop"),
        ("postgresql://ann:12/34@db/shop", "postgresql://db/shop"),
        ("postgresql://host:5432/shop", "postgresql://host:5432/shop"),
        ("mysql+pymysql://ann:1?2@db/shop", "mysql+pymysql://db/shop"),
        ("postgresql+psycopg://ann:#se?cret@db/shop", "postgresql+psycopg://db/shop"),
        ("chroma+http://secret@host:8000#docs", "chroma+http://host:8000#docs"),
        ("chroma+https://secret@host#docs", "chroma+https://host#docs"),
        ("chroma+http://ann:secret@host#docs", "chroma+http://host#docs"),
        ("redis://host:6379/0#user:*@x", "redis://host:6379/0#user:*@x"),
        ("redis://ann@host/0#user:*", "redis://ann@host/0#user:*"),
        ("sqlite:////data/a:b@c.db", "sqlite:////data/a:b@c.db"),
        ("command:ask http://host:80/x ann@x", "command:ask http://host:80/x ann@x"),
        ("command:ask http://ann:pw@host/x", "command:ask http://host/x"),
        ("command:ask --token=abc x", "command:ask --token=... x"),
        ("command:ask --db-password 'a b' x", "command:ask --db-password ... x"),
        ("command:ask --key mail", "command:ask --key mail"),
    ],
)
def test_no_credentials_are_kept(place: str, kept: str) -> None:
    assert without_credentials(place) == kept


def test_who_is_in_a_list_is_found(tmp_path: Path) -> None:
    path = tmp_path / "list.py"
    more = {"mail": ["bob@example.org", ANN], "said": "a long text of both"}
    rows = [{"mail": f"p{i}@example.org"} for i in range(12)]
    for at, row in enumerate([*rows, more]):
        (tmp_path / f"{at}.json").write_text(json.dumps({"key": at, "fields": row}))
    path.write_text(
        "import sys, pathlib\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "if sys.argv[1] == 'list':\n"
        "    print(*(each.read_text() for each in folder.glob('*.json')), sep='\\n')\n"
        "if sys.argv[1] == 'delete':\n"
        "    [(folder / f'{key.strip()}.json').unlink() for key in sys.stdin]\n"
        "if sys.argv[1] == 'files':\n"
        "    print(*folder.glob('*.json'), sep='\\n')\n"
    )
    settings = Settings((Subject("mail", "email"),))
    with CommandTarget(f"command:{sys.executable} {path}", settings) as target:
        plan, verdict = erased(target, ANN)
    assert (plan.n_records, verdict.word) == ({ANN: 1}, PURGED)
    assert not (tmp_path / "12.json").exists()
    (tmp_path / "13.json").write_text('{"key": 13, "fields": {"mail": [1, 2]}}')
    (tmp_path / "14.json").write_text('{"key": 14, "fields": {"mail": "eve@example.org"}}')
    with refused("expected a text"):
        erased(CommandTarget(f"command:{sys.executable} {path}", settings), ANN)


def test_values_in_values_are_looked_for() -> None:
    marks = Marks()
    nested = [{"said": "a long text"}, {"said": ("another text", [0.5, 1.5, 2.5, 3.5])}]
    assert marks.add(nested)
    assert len(marks) == 3
    assert marks.count({b"another text"}) == 1
    marks.drop([{"other": ["a long text"]}])
    assert (len(marks), marks.count({b"a long text"})) == (2, 0)
