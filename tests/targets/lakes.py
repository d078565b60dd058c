"""Tables of visits for the tests of lakes, and another reader of all that is in their files."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED, json.dumps([place, n, names, before])],
        capture_output=True, text=True, env={"PYTHONPATH": str(Path(__file__).parent)},
    )  # fmt: skip
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr
    told: list[object] = json.loads(done.stdout)
    return told
