"""Draw the records of a data set, and write some of them as any source of records may hold them.

What a file should be read as is known from how it was drawn, and not from any reader.
"""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["CSV", "FORMS", "GAPS", "KINDS", "Form", "Row", "Written", "drawn_names", "drawn_row"]

Row: TypeAlias = "dict[str, Any]"

GAPS = (
    "", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "null", "NULL", "nan", "NaN", "-nan",
    "-NaN", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip
"""What stands for a gap where a column is no text."""

TEXTS = (
    "007", "7", "1.50", "1,5", "0x1F", "1e5", "9007199254740993", "TRUE", "true", "NA", "null",
    "nan", "", " ", "2024-01-02", "2024-01-02 03:04:05", "10:15", "Köln", "a;b", "a,b", "a|b",
    "a\tb", 'say "x"', "two\nlines", " x ",
)  # fmt: skip
"""Texts in a column of text; most of them would be of another type alone."""

_BIG = 2**53 + 1
_DAY, _NOW = date(2024, 2, 29), datetime(2024, 1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Kind:
    """What a column holds.

    `first` is a value that says so where it is written with a separator; `draw` draws others, and
    `texts` lists how one is written as text. `wrong` is a text that is none, and `told` what the
    refusal says is expected.
    """

    type: pa.DataType
    first: Any
    draw: Callable[[Random], Any]
    texts: Callable[[Any], list[str]] = lambda value: [str(value)]
    wrong: str | None = None
    told: str = ""


def _float_texts(value: float) -> list[str]:
    return [repr(value), *([str(int(value))] if value.is_integer() and abs(value) < 1e9 else [])]


def _time_texts(value: time) -> list[str]:
    short = value.isoformat("auto")
    return [short, *([short[:5]] if not (value.second or value.microsecond) else [])]


KINDS = {
    "text": Kind(pa.string(), "A1", lambda rng: rng.choice(TEXTS)),
    "category": Kind(pa.string(), "grün", lambda rng: rng.choice(["grün", "rot", "blau"])),
    "truth": Kind(
        pa.bool_(), True, lambda rng: rng.random() < 0.5,
        lambda value: ["true", "True", "TRUE", "1"] if value else ["false", "False", "FALSE", "0"],
        "maybe", "true or false",
    ),
    "whole": Kind(
        pa.int64(), 7, lambda rng: rng.randint(-999, 999),
        lambda value: [str(value), f" {value}"], "7 or 8", "whole numbers",
    ),
    "big": Kind(
        pa.int64(), _BIG, lambda rng: rng.choice([-1, 1]) * rng.randint(_BIG, 2**63 - 1),
        wrong="9007199254740993x", told="whole numbers",
    ),
    "number": Kind(
        pa.float64(), 0.5,
        lambda rng: rng.choice([0.0, 1.0, -2.0, 0.1, 1.234, 1e300, -1e-9, rng.uniform(-99, 99)]),
        _float_texts, "1x", "numbers that floats hold",
    ),
    "day": Kind(
        pa.date32(), _DAY, lambda rng: _DAY + timedelta(rng.randint(-30_000, 30_000)),
        wrong="2024-02-30", told="days",
    ),
    "time": Kind(
        pa.time64("us"), time(10, 15),
        lambda rng: time(
            rng.randrange(24), rng.randrange(60), rng.choice([0, 7]), rng.choice([0, 250_000])
        ),
        _time_texts, "10:60", "times of day",
    ),
    "moment": Kind(
        pa.timestamp("us"), _NOW,
        lambda rng: _NOW + timedelta(seconds=rng.randint(-(10**9), 10**9)),
        lambda value: [value.isoformat(" "), value.isoformat("T")], "tomorrow", "times",
    ),
}  # fmt: skip
"""By name; a column is called by its kind and a number."""

_ID, _WHO, _LABEL = "id", "who", "y"
_TEXT_KINDS = ("text", "category")


def kind_of(name: str) -> Kind:
    """Return the kind of a column."""
    return KINDS["whole" if name == _LABEL else name.rstrip("0123456789")]


def drawn_names(rng: Random, kinds: Collection[str]) -> list[str]:
    """Draw the columns of a data set besides id and person; the label is one of them."""
    drawn = [f"{kind}{n}" for n, kind in enumerate(rng.choices(sorted(kinds), k=rng.randint(2, 5)))]
    names = ["category", *drawn, _LABEL]
    rng.shuffle(names)
    return names


def drawn_row(rng: Random, number: int, names: Sequence[str], *, first: bool = False) -> Row:
    """Draw a record; the `first` one shows of all columns what they hold."""
    row: Row = {_ID: number, _WHO: f"p{rng.randrange(4)}"}
    for name in names:
        kind = kind_of(name)
        gap = kind.type != pa.string() and name != _LABEL and rng.random() < 0.25
        row[name] = kind.first if first else None if gap else kind.draw(rng)
    row[_LABEL] = number % 2
    return row


@dataclass(frozen=True)
class Form:
    """A way to write records; `dialect` is of text files with separators."""

    ending: str
    delimiter: str = ""
    decimal: str = "."
    encoding: str = "utf-8"

    @property
    def usual(self) -> str:
        """What separates columns in a file of this name if nothing is said."""
        return "\t" if self.ending.startswith(".tsv") else ","


CSV = {
    "commas": Form(".csv", ","),
    "semicolons": Form(".csv", ";", ","),
    "bars": Form(".csv.gz", "|"),
    "tabs": Form(".csv", "\t", ",", "utf-16"),
    "latin": Form(".csv", ";", ",", "latin1"),
}
FORMS = {
    **CSV, "tsv": Form(".tsv", "\t"), "parquet": Form(".parquet"), "lines": Form(".jsonl"),
    "packed": Form(".ndjson.gz"), "database": Form(".db"),
}  # fmt: skip

NOT_FIRST = {"lines": ("day", "time", "moment"), "database": ("truth", "day", "time", "moment")}
"""Kinds that a form has no type of, so that a data set that begins with it has no such column."""


@dataclass(frozen=True)
class Written:
    """A source, and whether it shows beyond doubt what its decimal mark is."""

    source: str
    shows_decimal: bool


def write(
    folder: Path, rng: Random, form: str, rows: Sequence[Row], as_text: str | None = None
) -> Written:
    """Write records in any order; with a column that is written as text, in the order given."""
    said = FORMS[form]
    rows = list(rows) if as_text else rng.sample(rows, len(rows))
    names = rng.sample(list(rows[0]), len(rows[0]))
    place = folder / f"{rng.getrandbits(60):x}{said.ending}"
    if said.delimiter:
        return _write_separated(place, rng, said, rows, names, as_text)
    source = str(place)
    if form == "parquet":
        source = _write_parquet(place, rng, rows, names, as_text)
    elif form == "database":
        _write_database(place, rows, names, as_text)
        source = f"sqlite:///{place}#records"
    else:
        _write_lines(place, rng, rows, names, as_text)
    return Written(source, shows_decimal=False)


def _write_separated(
    place: Path,
    rng: Random,
    form: Form,
    rows: Sequence[Row],
    names: Sequence[str],
    as_text: str | None,
) -> Written:
    shows = False

    def cell(name: str, row: Row) -> str:
        nonlocal shows
        value = row[name]
        if name in (_ID, _WHO, as_text):
            return str(value)
        kind = kind_of(name)
        if value is None:
            return rng.choice(GAPS)
        texts = kind.texts(value)
        text = rng.choice(texts) if row[_ID] else texts[0]  # the first record shows its types
        if kind.type == pa.float64():
            whole, point, rest = text.partition(".")
            grouped = len(rest) == 3 and len(whole.lstrip("-")) <= 3 and whole.lstrip("-") != "0"
            shows |= bool(point) and not grouped
            text = text.replace(".", form.decimal)
        return text

    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    lines = [[cell(name, row) for name in names] for row in rows]
    opened = gzip.open if form.ending.endswith(".gz") else open
    end = rng.choice(["\n", "\r\n"])
    with opened(place, "wt", encoding=form.encoding, newline="") as file:
        writer = csv.writer(file, delimiter=form.delimiter, quoting=quoting, lineterminator=end)
        writer.writerows([names, *lines])
    return Written(str(place), shows)


def _write_parquet(
    place: Path,
    rng: Random,
    rows: Sequence[Row],
    names: Sequence[str],
    as_text: str | None,
) -> str:
    """Write one file, or a folder of them."""
    columns = []
    for name in names:
        kind = None if name == _ID else pa.string()
        if name not in (_ID, _WHO, as_text):
            kind = kind_of(name).type
        column = pa.array([row[name] for row in rows], kind)
        columns.append(column.dictionary_encode() if name == "category" else column)
    table = pa.table(columns, names=list(names))
    n_files = 1 if as_text else rng.randint(1, min(3, len(rows)))
    if n_files == 1:
        pq.write_table(table, place)
        return str(place)
    place.mkdir()
    for n in range(n_files):
        pq.write_table(table.take(list(range(n, len(rows), n_files))), place / f"{n}.parquet")
    return str(place)


def _plain(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    return value


def _write_lines(
    place: Path,
    rng: Random,
    rows: Sequence[Row],
    names: Sequence[str],
    as_text: str | None,
) -> None:
    def line(row: Row) -> str:
        cells = {name: _plain(row[name]) for name in names}
        if as_text:
            cells[as_text] = str(row[as_text])
        left_out = [name for name, value in cells.items() if value is None and rng.random() < 0.5]
        return json.dumps(
            {name: value for name, value in cells.items() if name not in left_out},
            ensure_ascii=rng.random() < 0.5,
        )

    data = "\n".join(map(line, rows)).encode() + rng.choice([b"", b"\n", b"\n\n"])
    place.write_bytes(gzip.compress(data) if place.suffix == ".gz" else data)


def _write_database(
    place: Path, rows: Sequence[Row], names: Sequence[str], as_text: str | None
) -> None:
    cells = [
        [str(row[name]) if name == as_text else _plain(row[name]) for name in names] for row in rows
    ]
    connection = sqlite3.connect(place)
    with connection:
        quoted = ", ".join(f'"{name}"' for name in names)
        connection.execute(f"create table records ({quoted})")
        marks = ", ".join("?" * len(names))
        connection.executemany(f"insert into records values ({marks})", cells)
    connection.close()
