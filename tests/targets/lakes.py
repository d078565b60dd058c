"""Tables of visits for the tests of lakes, and another reader of all that is in their files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from apart import run

LEAST, GREATEST = "00000-least@example.org", "zzzzz-greatest@example.org"
"""Two people who have the least and the greatest value of each column."""


_MAIL = re.compile(rf"person-\d{{6}}@example\.org|{re.escape(LEAST)}|{re.escape(GREATEST)}")


def mail(number: int) -> str:
    """Return an address of a person."""
    return f"person-{number:06}@example.org"


def visits(n_rows: int, n_people: int, first: int = 0) -> pa.Table:
    """Return visits of people, some of each, and one of the least and one of the greatest."""
    of = [(first + at) % n_people for at in range(n_rows)]
    mails = [mail(each) for each in of]
    spent = [1000.0 + each + at / n_rows for at, each in enumerate(of)]
    if first == 0:
        mails[0], mails[-1] = LEAST, GREATEST
        spent[0], spent[-1] = -77123456.12345, 99123456.98765
    return pa.table(
        {
            "visit": range(first, first + n_rows), "mail": mails, "spent": spent,
            "note": [f"seen by {each[:13]}" for each in mails],
        }
    )  # fmt: skip


def texts_in(folder: Path) -> dict[str, str]:
    """Return what each file says, decoded by other code than that under test."""
    return {
        str(path.relative_to(folder)): f"{path.relative_to(folder)} {_text(path)}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _text(path: Path) -> str:
    data = path.read_bytes()
    if data[:4] == b"PAR1":
        return f"{data.decode('latin-1')} {_of_parquet(path)}"
    if data[:4] == b"Obj\1":
        return b" ".join(_of_avro(data)).decode("latin-1")
    return data.decode("latin-1")


def _of_parquet(path: Path) -> str:
    opened = pq.ParquetFile(path)
    meta = opened.metadata
    told = [str(meta.metadata)]
    for group in range(meta.num_row_groups):
        for at in range(meta.num_columns):
            column = meta.row_group(group).column(at)
            if column.statistics is not None and column.statistics.has_min_max:
                told += [str(column.statistics.min), str(column.statistics.max)]
    for column in opened.read().columns:
        told += [str(value) for value in column.to_pylist()]
        if pa.types.is_dictionary(column.type):
            told += [str(word) for each in column.chunks for word in each.dictionary.to_pylist()]
    return "\n".join(told)


def _of_avro(data: bytes) -> Iterator[bytes]:
    """Return the header of a container of Avro, and its blocks unpacked."""
    at, codec = 4, b"null"
    while n := _number(data, at)[0]:
        at = _number(data, at)[1]
        for _ in range(n):
            key, at = _piece(data, at)
            value, at = _piece(data, at)
            codec = value if key == b"avro.codec" else codec
    at = _number(data, at)[1]
    yield data[:at]
    sync, at = data[at : at + 16], at + 16
    while at < len(data):
        at = _number(data, at)[1]
        block, at = _piece(data, at)
        yield zlib.decompress(block, -15) if codec == b"deflate" else block
        assert data[at : at + 16] == sync
        at += 16


def _piece(data: bytes, at: int) -> tuple[bytes, int]:
    n, at = _number(data, at)
    return data[at : at + n], at + n


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return (value >> 1) ^ -(value & 1), at


def left_in(folder: Path, wanted: Iterable[str]) -> dict[str, set[str]]:
    """Return which values of people are in which files."""
    chosen = set(wanted)
    known = all(_MAIL.fullmatch(each) for each in chosen)
    pattern = _MAIL if known else re.compile("|".join(map(re.escape, chosen)))
    found = {
        name: chosen.intersection(pattern.findall(text)) for name, text in texts_in(folder).items()
    }
    return {name: each for name, each in found.items() if each}


KILLED = """
import json, os, signal, sys
from erasable.workspace.store import crash_points
from erasable.workspace.targets.kinds import opened
from erasable.workspace.targets.protocol import Settings, Subject
from people import erased

place, n, names, before = json.loads(sys.argv[1])
seen = 0

def die(*_):
    global seen
    seen += 1
    if seen == n:
        os.kill(os.getpid(), signal.SIGKILL)

exec(before)
with crash_points.watch(die):
    plan, verdict = erased(opened(place, Settings((Subject("mail", "email"),))), *names)
print(json.dumps([seen, verdict.word, verdict.reason]))
"""


def killed_at(n: int, place: str, names: list[str], before: str = "") -> list[object] | None:
    """Erase people in another process, killed before its n-th effect; None if it was."""
    told = run(KILLED, json.dumps([place, n, names, before]))
    found: list[object] | None = None if told is None else json.loads(told)
    return found


# -- what tests of Delta and Iceberg have in common ------------------------------------------------

NAMES = ["o'hara\\x@example.org", 'say "hi"@example.org', "plain@example.org", None]
ODD = pa.table(
    {
        "Mail Address": NAMES, "Person": [{"Mail": each} for each in NAMES],
        "number": pa.array([1000001, 1000002, None, 1000004], pa.int32()),
    }
)  # fmt: skip
"""Values with quotes, and columns with spaces."""
OF_ODD = [("Mail Address", NAMES[0], 0), ("Person.Mail", NAMES[1], 1), ("number", 1000004, 3)]
"""Columns of `ODD`, each with a person in it, and the row."""


def without(table: pa.Table, row: int) -> list[Any]:
    """Return the rows of a table but one."""
    return [each for at, each in enumerate(table.to_pylist()) if at != row]


def check_overwritten(before: list[Any], after: list[Any], action: str) -> None:
    """Check that the first visit says nothing any more, and that others are as they were."""
    none = "erased" if action == "mask" else None
    assert after[0] == {"visit": 0, "mail": none, "spent": None, "note": none}
    assert after[1:] == before[1:]


def full(*_: Any, **__: Any) -> None:
    """Fail as a full disk does."""
    raise OSError(28, "No space left on device")


_APPENDS = """
import sys
import pyarrow as pa
for n, line in enumerate(sys.stdin):
    append(sys.argv[1], pa.table({"visit": range(10_000 + 5 * n, 10_005 + 5 * n),
        "mail": [f"new-{n}-{at}@example.org" for at in range(5)], "spent": [1.5] * 5,
        "note": pa.array([None] * 5, pa.string())}))
    print(n + 1, flush=True)
"""


class Writer:
    """Another process that appends five rows whenever it is told to.

    `append` is a function of that name, which takes the place and the rows.
    """

    def __init__(self, place: Path | str, append: str) -> None:
        self.n = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", append + _APPENDS, str(place)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def write(self) -> None:
        """Have five rows appended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.n += 1
        assert self.process.stdout.readline() == f"{self.n}\n"

    def close(self) -> None:
        """End the process."""
        self.process.communicate()
