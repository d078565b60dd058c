"""Files of SQLite: rows, free pages, and values that go on in other pages."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import numpy as np

from erasable.workspace.targets.inspection import Inspection, Undecodable

_PAGES = 256  # that are looked at at a time
_ROWS = 1_000
_SHORT = 64  # bytes of a text that is compared as well
_STORED = "select name from sqlite_master where type = 'table' and sql not like 'create virtual%'"
_BTREES = (2, 5, 10, 13)


def look_at_database(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
    """Look at the rows of all tables, and at values that lie in several pages, also free ones."""
    head = file.read(100)
    size = int.from_bytes(head[16:18], "big")
    size = 65_536 if size == 1 else size
    n_pages = file.seek(0, 2) // size
    free = _look_at_pages(file, 0, 0, size, n_pages, inspection)
    is_plain = not (free or int.from_bytes(head[36:40], "big"))
    inspection.is_compared &= is_plain
    _look_at_rows(file, path, inspection, depth)


def look_at_log(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
    """Look at values in several pages of a write-ahead log."""
    head = file.read(32)
    size = int.from_bytes(head[8:12], "big")
    inspection.is_compared = False
    if size in {1 << n for n in range(9, 17)}:
        n = (file.seek(0, 2) - 32) // (size + 24)
        _look_at_pages(file, 32, 24, size, n, inspection)


class _Pages:
    """Pages of a file, by their numbers; a log may have several of one number."""

    def __init__(self, file: BinaryIO, start: int, before: int, size: int, n: int) -> None:
        self.size, self.n = size, n
        self._file, self._start, self._before = file, start, before
        self._at: dict[int, list[int]] = {}
        self.goes_on = np.zeros(1, dtype=np.bool_)  # by number: whether a value goes on in it
        self._list()

    def some(self, first: int) -> np.ndarray:
        """Return pages that follow each other in the file, one a row."""
        width = self.size + self._before
        self._file.seek(self._start + first * width)
        data = self._file.read(min(_PAGES, self.n - first) * width)
        return np.frombuffer(data, dtype=np.uint8).reshape(-1, width)

    def beginnings(self, number: int, n: int) -> list[bytes]:
        """Return the first bytes of a value in a page, after the number of the next."""
        found = []
        for at in self._at.get(number, [number - 1] if not self._before else []):
            self._file.seek(self._start + at * (self.size + self._before) + self._before + 4)
            found.append(self._file.read(min(n, self.size - 4)))
        return found

    def _list(self) -> None:
        firsts, numbers = list[np.ndarray](), list[np.ndarray]()
        for first in range(0, self.n, _PAGES):
            rows = self.some(first)
            firsts.append(rows[:, self._before].copy())
            numbers.append(_big(rows[:, :4]) if self._before else np.arange(len(rows)) + first + 1)
        if not firsts:
            return
        kinds = np.concatenate(firsts)
        own = np.minimum(np.concatenate(numbers), 1 << 26)  # of a damaged log
        if self._before:
            for at, number in enumerate(own.tolist()):
                self._at.setdefault(number, []).append(at)
        self.goes_on = np.zeros(int(own.max()) + 1, dtype=np.bool_)
        self.goes_on[own[~np.isin(kinds, _BTREES)]] = True
        self.goes_on[:2] = False  # the first page is never one


def _look_at_pages(
    file: BinaryIO, start: int, before: int, size: int, n: int, inspection: Inspection
) -> bool:
    """Look across the borders of pages; return whether any has room that is not empty."""
    pages = _Pages(file, start, before, size, n)
    length = inspection.overlap
    has_room = bool(pages.goes_on.any())
    for first in range(0, n, _PAGES):
        rows = pages.some(first)[:, before:]
        for at, row in enumerate(rows):
            joined: list[bytes] = []
            for place, number in _followers(row, pages.goes_on):
                end = row[max(place - length, 0) : place].tobytes()
                joined += [end + each for each in pages.beginnings(number, length)]
            if joined:
                inspection.look_at(b"\0".join(joined))
            has_room = has_room or _has_room(row, 100 if first + at == 0 and not before else 0)
    return has_room


def _followers(row: np.ndarray, goes_on: np.ndarray) -> list[tuple[int, int]]:
    """Return where values may go on in another page, and in which.

    That page is named after the part of a value in a page of rows, and before it in another.
    """
    if not goes_on.any():
        return []
    if int(row[0]) not in _BTREES and row[:4].tobytes() != b"SQLi":
        number = int(_big(row[None, :4])[0])
        return [(row.size, number)] if number < goes_on.size and goes_on[number] else []
    numbers = _big(np.lib.stride_tricks.sliding_window_view(row, 4))
    near = np.flatnonzero(numbers < goes_on.size)
    near = near[goes_on[numbers[near]]]
    return list(zip(near.tolist(), numbers[near].tolist(), strict=True))


def _big(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.int64)
    found: np.ndarray = wide[:, 0] << 24 | wide[:, 1] << 16 | wide[:, 2] << 8 | wide[:, 3]
    return found


def _has_room(row: np.ndarray, head: int) -> bool:
    """Tell whether a page of rows has bytes that belong to none of them."""
    if int(row[head]) not in _BTREES:
        return True
    free, n_cells, content = (
        int(row[head + at]) << 8 | int(row[head + at + 1]) for at in (1, 3, 5)
    )
    first = head + (12 if row[head] in (2, 5) else 8) + 2 * n_cells
    return bool(free or row[head + 7] or row[first : content or 65_536].any())


def _look_at_rows(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
    """Look at the values of all rows, without the log, and without a change of the file."""
    try:
        with closing(_opened(file, path, depth)) as connection:
            connection.text_factory = bytes
            for (name,) in connection.execute(_STORED).fetchall():
                quoted = name.decode().replace('"', '""')
                rows = connection.execute(f'select * from "{quoted}"')
                columns = [each[0] for each in rows.description]
                told = connection.execute(f'pragma table_info("{quoted}")').fetchall()
                keys = {each[1].decode() for each in told if each[5]}
                while some := rows.fetchmany(_ROWS):
                    texts = [each for row in some for each in row if isinstance(each, bytes)]
                    inspection.look_at(b"\0".join(texts))
                    if inspection.has_named:
                        inspection.compare_rows(map(_compared, some), columns, keys)
                    elif inspection.has_exact:
                        inspection.compare({each for row in some for each in _compared(row)})
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise Undecodable(f"it is a damaged file of SQLite ({type(error).__name__})") from error


def _opened(file: BinaryIO, path: Path, depth: int) -> sqlite3.Connection:
    if depth == 0:
        return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    file.seek(0)
    connection = sqlite3.connect(":memory:")
    connection.deserialize(file.read())
    return connection


def _compared(row: tuple[object, ...]) -> list[object]:
    """Return the values of a row that are compared: numbers, and short texts."""
    return [
        (each.decode(errors="replace") if len(each) < _SHORT else None)
        if isinstance(each, bytes)
        else each
        for each in row
    ]
