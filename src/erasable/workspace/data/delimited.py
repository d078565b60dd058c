"""Text files with separators, read a block at a time.

The law kept here: the type of a column is that of the whole file, as if it were read at once,
wherever blocks begin. The fault of a file is described in one line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.core._arrow_files import CSV_NULLS, buffer_of, csv_reader
from erasable.core.arrays import Ints
from erasable.core.errors import SourceError
from erasable.workspace.data.cell_types import RULES, Rule, fitting
from erasable.workspace.data.column_types import parse_cells
from erasable.workspace.data.dialects import (
    HEAD,
    Dialect,
    byte_order_mark,
    conversion,
    describe_dialect,
    find_separator,
    kind_of_file,
    named_separator,
    why_not_utf8,
)
from erasable.workspace.data.files import check_there

_BLOCK = 1 << 24  # bytes of a CSV file that are parsed at once: no row may be longer
_CHUNK = 1 << 20
_NUMBER = r"^([+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?inf(inity)?))$"
_GROUPED = r"^[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}$"
BROKEN = (pa.ArrowException, OSError, ValueError, EOFError, zlib.error)
"""Errors that reading a damaged file raises."""
_PLAIN = r"^[+-]?([0-9]+(\{0}[0-9]*)?|\{0}[0-9]+)([eE][+-]?[0-9]+)?$"
_WRITTEN = r"^[+-]?[$€£]? ?([0-9]{1,3}([.,' ][0-9]{3})+([.,][0-9]+)?|[0-9]+([.,][0-9]+)?) ?[$€£%]?$"
_DAY = r"^[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}$"
_NEARLY = 0.9
_NAMED = 3  # columns of a remark
_SHOWN = 30  # characters of a cell


def csv_batches(
    path: Path, dialect: Dialect, text_columns: Iterable[str], *, typed: bool = True
) -> Iterator[pa.RecordBatch]:
    """Read a text file with a header; see `erasable.workspace.data.sources.Source.batches`.

    `dialect` is complete; see `settle_dialect`. All batches have one schema; the first may be
    empty, and has the columns. Unless `typed`, all columns stay text; otherwise a file of several
    blocks is read twice, to find types that suit all rows.
    """
    head = head_of(path)
    try:
        text = _opened(path, head, dialect)
        names = text.names()
        if any("\0" in name for name in names):
            raise misencoded(path, head)
        kinds = [pa.string()] * len(names)
        whole = None
        if typed:
            kinds, whole = _types(text, names, set(text_columns))
        if whole is None:
            yield _typed([pa.array([], pa.string())] * len(names), names, kinds, text)
        checked = False
        for block in text.blocks(names) if whole is None else [whole]:
            if not checked and _has_line_breaks(block):
                _check_quotes(path, text)
                checked = True
            yield _typed(block.columns, names, kinds, text)
    except SourceError:
        raise
    except BROKEN:
        raise _fault(path, head, text) from None


def _has_line_breaks(block: pa.RecordBatch) -> bool:
    """Tell whether a value has several lines, as after a quote that is not closed."""
    held = [column.buffers()[2] for column in block.columns]
    cells = [np.frombuffer(each, np.uint8) for each in held if each is not None]
    return any(bool(((each == 10) | (each == 13)).any()) for each in cells)


def _check_quotes(path: Path, text: _Text) -> None:
    """Refuse a file in which a quote is not closed where its value ends: Arrow would read on."""
    limit = csv.field_size_limit(_BLOCK)
    try:
        with text.opened() as lines:
            rows = csv.reader(lines, delimiter=text.separator, strict=True)
            row = 0
            try:
                for row, _ in enumerate(rows, start=1):  # noqa: B007
                    pass
            except csv.Error:
                raise _open_quote(path, row + 1) from None
    finally:
        csv.field_size_limit(limit)


def settle_dialect(
    path: Path,
    given: Dialect,
    known: Dialect,
    text_columns: Collection[str],
    types: Mapping[str, pa.DataType] | None,
) -> tuple[Dialect, list[str]]:
    """Find the dialect of a file: the given one, a certain one, or else the known one.

    `given` holds in any case, `known` where the file does not show another. Return a complete
    dialect, and remarks on what was found, a line each.
    """
    head = head_of(path)
    encoding = given.encoding or _encoding(path, head, known)
    delimiter, own = given.delimiter, None
    if delimiter is None:
        try:
            own, beginning = named_separator(
                head.decode(encoding, "replace").removeprefix("\ufeff")
            )
        except UnicodeError:  # of punycode, which replaces nothing
            raise _not_in(path, encoding) from None
        delimiter = own or find_separator(
            beginning, known.delimiter or ",", text_columns, types or (), is_cut=len(head) == HEAD
        )
    found = Dialect(delimiter, given.decimal or known.decimal, encoding)
    doubtful: list[str] = []
    if given.decimal is None and (delimiter, found.decimal) != (",", "."):
        with suppress(SourceError, *BROKEN):  # reading it will tell
            found, doubtful = _with_decimal(_opened(path, head, found), text_columns, types)
    said = describe_dialect(found, given.over(known))
    remarks = [f"{str(path)!r} is read with {said}, as it shows"] if said else []
    if own is not None and own == known.delimiter:
        remarks.append(f"{str(path)!r} begins with 'sep={own}', which is no record, and left out")
    if doubtful and types is None:
        remarks.append(
            f"{str(path)!r} holds numbers with commas in {', '.join(map(repr, doubtful))}, "
            "which may be decimals or not, and are text here; say --decimal ',' where they are"
        )
    return found, remarks


def _encoding(path: Path, head: bytes, known: Dialect) -> str:
    mark = byte_order_mark(head)
    if mark in ("utf-8", "utf-16"):
        return mark
    encoding = known.encoding or "utf-8"
    if encoding == "utf-8" or not _is_also_utf8(path):
        return encoding
    raise SourceError(
        f"{str(path)!r} is text in UTF-8, and the data set is read in {encoding}; expected one "
        "that cannot be both; say which it is with --encoding"
    )


def _is_also_utf8(path: Path) -> bool:
    """Tell whether a file is UTF-8 and not ASCII, so that it differs in another encoding."""
    decoder, plain = codecs.getincrementaldecoder("utf-8")(), True
    try:
        with open_unpacked(path) as file:
            while some := file.read(_CHUNK):
                plain &= some.isascii()
                decoder.decode(some)
            decoder.decode(b"", final=True)
    except BROKEN:
        return False
    return not plain


@dataclass(frozen=True, slots=True)
class _Text:
    """A text file in UTF-8, or its content in UTF-8 in memory."""

    source: Path | pa.Buffer
    dialect: Dialect
    skip: int
    """Lines before the names of columns: one if it names the separator."""

    @classmethod
    def of(cls, source: Path | pa.Buffer, head: bytes, dialect: Dialect) -> _Text:
        return cls(
            source, dialect, int(named_separator(head.decode("utf-8", "replace"))[0] is not None)
        )

    def names(self) -> list[str]:
        return list(csv_reader(self.source, self.separator, {}, _BLOCK, self.skip).schema.names)

    def blocks(
        self, names: Sequence[str], kind: pa.DataType | None = None
    ) -> Iterator[pa.RecordBatch]:
        types = dict.fromkeys(names, kind or pa.string())
        yield from csv_reader(self.source, self.separator, types, _BLOCK, self.skip)

    def opened(self) -> io.TextIOWrapper:
        """Open it for reading lines."""
        source = self.source
        raw = open_unpacked(source) if isinstance(source, Path) else io.BytesIO(source)
        text = io.TextIOWrapper(raw, "utf-8-sig", newline="")
        for _ in range(self.skip):
            text.readline()
        return text

    @property
    def separator(self) -> str:
        """The separator of columns."""
        return self.dialect.delimiter or ","


def _opened(path: Path, head: bytes, dialect: Dialect) -> _Text:
    encoding = dialect.encoding or "utf-8"
    if encoding == "utf-8":
        refuse_other_files(path, head)
        return _Text.of(path, head, dialect)
    mark = byte_order_mark(head)
    if mark is not None and not encoding.lower().replace("_", "-").startswith(mark):
        raise SourceError(
            f"{str(path)!r} begins with the mark of {mark.upper()}; expected text in {encoding}; "
            "leave --encoding out"
        )
    refuse_other_files(path, head, only_kinds=True)
    try:
        with open_unpacked(path) as raw, io.TextIOWrapper(raw, encoding, newline="") as text:
            parts = iter(lambda: text.read(_CHUNK), "")
            made = buffer_of(part.encode() for part in parts)
            return _Text.of(made, made[:HEAD].to_pybytes(), dialect)
    except UnicodeError:
        raise _not_in(path, encoding) from None
    except BROKEN:
        raise unreadable(path) from None


def _not_in(path: Path, encoding: str) -> SourceError:
    return SourceError(
        f"{str(path)!r} is not encoded in {encoding}; expected that in all of its lines; say "
        "another with --encoding"
    )


def open_unpacked(path: Path) -> BinaryIO:
    """Open a file, or the content that gzip has packed into it."""
    if path.name.lower().endswith(".gz"):
        return cast("BinaryIO", gzip.open(path))
    return path.open("rb")


def _with_decimal(
    text: _Text, text_columns: Collection[str], types: Mapping[str, pa.DataType] | None
) -> tuple[Dialect, list[str]]:
    """Find the decimal mark: another than the known one only where some column shows it.

    A number such as 1,234 shows nothing: it may be grouped. Where columns contradict each other,
    those with the other mark are returned.
    """
    names, usual = text.names(), text.dialect.decimal or "."
    other = "," if usual == "." else "."
    shown: dict[int, set[str]] = {
        at: set()
        for at, name in enumerate(names)
        if (name not in text_columns if types is None else _is_number(types.get(name)))
    }
    certain = False
    for block in text.blocks(names) if shown else ():
        for at in list(shown):
            cells = pc.utf8_trim(pc.unique(block.column(at)), " \t")
            cells = cells.filter(pc.invert(pc.is_in(cells, pa.array(list(CSV_NULLS)))))
            if not pc.all(pc.match_substring_regex(cells, _NUMBER), min_count=0).as_py():
                del shown[at]
                continue
            for mark in (usual, other):
                having = cells.filter(pc.match_substring(cells, mark))
                if len(having):
                    shown[at].add(mark)
                    grouped = pc.match_substring_regex(having, _GROUPED)
                    certain |= mark == other and not pc.all(grouped).as_py()
    found = [names[at] for at, marks in shown.items() if marks == {other}]
    if found and certain and {usual} not in shown.values():
        return replace(text.dialect, decimal=other), []
    return text.dialect, found


class NearlyNumbers:
    """Columns of a text file that became text, though nine of ten cells are numbers, or days.

    Numbers may be grouped, and have a sign of money or percent; days are as 05.03.2024. Empty
    cells do not count.

    >>> found = NearlyNumbers(Dialect(",", ".", "utf-8"))
    >>> found.add(pa.table({"price": ["$3", *["4.5"] * 9], "note": ["a"] * 10}), ["note"], 2)
    >>> found.told()
    "'price' (1 of 10 cells is no number, first '$3' in row 2)"
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        decimal = dialect.decimal or "."
        self._forms = [_PLAIN.format(decimal), _WRITTEN, _DAY, _NUMBER]
        self._counts: dict[str, Ints] = {}  # of cells, and of those in each form
        self._odd: dict[str, tuple[int, str]] = {}

    def add(self, table: pa.Table, besides: Collection[str], first: int) -> None:
        """Count more rows; `first` is the number of their first one."""
        for name in table.column_names:
            if name in besides or not pa.types.is_string(table[name].type):
                continue
            cells = pc.utf8_trim(table[name], " \t")
            there = pc.and_(pc.is_valid(cells), pc.invert(pc.is_in(cells, pa.array(CSV_NULLS))))
            fits = [pc.and_(there, pc.match_substring_regex(cells, each)) for each in self._forms]
            own = np.array([pc.sum(each).as_py() or 0 for each in (there, *fits)])
            self._counts[name] = self._counts.get(name, 0) + own
            if name not in self._odd and own[1] < own[0]:
                at = pc.index(pc.and_not(there, pc.fill_null(fits[0], False)), True).as_py()
                self._odd[name] = first + at, cells[at].as_py()

    def told(self) -> str:
        """Name the columns, their first such cell and the counts; "" for none."""
        found = []
        for name, (row, cell) in self._odd.items():
            n, plain, written, days, either = self._counts[name].tolist()
            # `settle_dialect` warns of these.
            commas = either == n and self._dialect.delimiter != "," and self._dialect.decimal == "."
            odd, are = n - plain, "is no number" if n - plain == 1 else "are no numbers"
            if max(plain, written) < _NEARLY * n:
                if days < _NEARLY * n:
                    continue
                odd, are = days, "are days of another form"
            if not commas:
                shown = cell if len(cell) <= _SHOWN else f"{cell[:_SHOWN]}..."
                found.append(
                    f"{name!r} ({odd:,} of {n:,} cells {are}, first {shown!r} in row {row:,})"
                )
        more = len(found) - _NAMED
        others = [f"{more} other{'s' if more > 1 else ''}"] if more > 0 else []
        return ", ".join([*found[:_NAMED], *others])


def _is_number(kind: pa.DataType | None) -> bool:
    return kind is not None and bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _typed(
    columns: Sequence[pa.Array], names: Sequence[str], kinds: Sequence[pa.DataType], text: _Text
) -> pa.RecordBatch:
    decimal = text.dialect.decimal or "."
    parsed = [parse_cells(each, kind, decimal) for each, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(parsed, names=list(names))


def _types(
    text: _Text, names: Sequence[str], text_columns: Collection[str]
) -> tuple[list[pa.DataType], pa.RecordBatch | None]:
    """Find the types of all columns; return the whole file, too, where it has one block."""
    left: list[Sequence[Rule]] = [() if name in text_columns else RULES for name in names]
    decimal = text.dialect.decimal or "."
    whole = None
    for n, block in enumerate(text.blocks(names)):
        left = [
            fitting(rules, cells, decimal) for rules, cells in zip(left, block.columns, strict=True)
        ]
        whole = block if n == 0 else None
    return [rules[0].kind if rules else pa.string() for rules in left], whole


def _fault(path: Path, head: bytes, text: _Text) -> SourceError:
    """Return the error for a file that Arrow does not read: its first fault."""
    limit, row = csv.field_size_limit(_BLOCK), 0
    try:
        with text.opened() as lines:
            rows = filter(None, csv.reader(lines, delimiter=text.separator, strict=True))
            names = next(rows, None)
            if names is None:
                return SourceError(
                    f"{str(path)!r} is empty; expected a line of column names and records; "
                    "check that it is whole"
                )
            row = 1
            for row, cells in enumerate(rows, start=2):
                if len(cells) != len(names):
                    return SourceError(
                        f"{str(path)!r} has {len(cells)} columns in row {row}; expected "
                        f"{len(names)}; mend that row: a separator in a value needs quotes around "
                        "the value"
                    )
                if sum(map(len, cells)) > _BLOCK:
                    return SourceError(
                        f"{str(path)!r} has {_BLOCK >> 20} MB or more in row {row}; expected less"
                    )
    except UnicodeDecodeError:
        return misencoded(path, head)
    except csv.Error:
        return _open_quote(path, row + 1)
    except BROKEN:
        pass
    finally:
        csv.field_size_limit(limit)
    return unreadable(path)


def _open_quote(path: Path, row: int) -> SourceError:
    return SourceError(
        f"{str(path)!r} has a quote in row {row:,} that is not closed where its value ends, or a "
        f"value of {_BLOCK >> 20} MB; expected a quote, then a separator or the end of the row; "
        "mend it"
    )


def head_of(path: Path) -> bytes:
    """Read the beginning of the text in a file."""
    check_there(path)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
        if not path.name.lower().endswith(".gz"):
            return head
        if not head.startswith(b"\x1f\x8b"):
            raise SourceError(
                f"{str(path)!r} is not compressed by gzip; expected that, by its name; rename it, "
                "or compress it"
            )
        with gzip.open(path) as unpacked:
            return unpacked.read(HEAD)
    except SourceError:
        raise
    except BROKEN:
        raise unreadable(path) from None


def refuse_other_files(
    path: Path,
    head: bytes,
    what: str = "text with separators",
    *,
    only_kinds: bool = False,
    option: bool = True,
) -> None:
    """Refuse a file of another kind, or in UTF-16 or UTF-32; for `option` see `misencoded`."""
    found = kind_of_file(head)
    if found is not None:
        name, remedy = found
        raise SourceError(f"{str(path)!r} is {name}; expected {what}; {remedy}")
    # Text in UTF-16 has zeros, or a mark that is no UTF-8; some of it would be read all the same.
    wide = b"\0" in head or byte_order_mark(head) in ("utf-16", "utf-32")
    if wide and not only_kinds and why_not_utf8(head):
        raise misencoded(path, head, option=option)


def misencoded(path: Path, head: bytes, *, option: bool = True) -> SourceError:
    """Return the error for a file that is not in UTF-8; `option`: --encoding helps."""
    why = why_not_utf8(head, option=option) or (
        f"in some of its lines; expected that in all of them; {conversion('latin1', option=option)}"
    )
    return SourceError(f"{str(path)!r} is not encoded in UTF-8, {why}")


def unreadable(path: Path) -> SourceError:
    """Return the error for a file that is damaged, or may not be read."""
    return SourceError(
        f"{str(path)!r} cannot be read as a table; expected a text file, whole, that you may read; "
        "check its format and permissions"
    )
