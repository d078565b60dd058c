"""Dialect of a text file of records: its separator, its decimal mark and its encoding."""

from __future__ import annotations

import codecs
import csv
import io
import re
import string
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised

HEAD = 1 << 16
"""Bytes at the beginning of a file that show its kind."""

_FILES = (
    (b"\x1f\x8b", "a gzip file", "add .gz to its name"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook (.xls)", "save it as CSV UTF-8"),
    (b"\xfd7zXZ\x00", "an xz file", "unpack it"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it"),
    (b"BZh", "a bzip2 file", "unpack it"),
    (b"PAR1", "a Parquet file", "name it .parquet"),
    (b"ARROW1\0", "an Arrow file", "write it as Parquet or CSV"),
    (b"SQLite format 3\0", "an SQLite database", "name a table of it, as sqlite:///shop.db#visits"),
)
_BZIP2 = b"1AY&SY"  # behind its level; text may begin with BZh, and with PAR1

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))


def kind_of_file(head: bytes) -> tuple[str, str] | None:
    """Name a file that is no text, by its first bytes, and the remedy; None if it may be text."""
    if head[:4] == b"PK\3\4":
        if b"xl/" in head or b"[Content_Types].xml" in head:
            return "an Excel workbook (.xlsx)", "save it as CSV UTF-8"
        return "a ZIP archive", "unpack it"
    for mark, name, remedy in _FILES:
        if head.startswith(mark):
            if mark == b"BZh" and head[4:10] != _BZIP2:
                return None
            if mark == b"PAR1" and b"\0" not in head:
                return None
            return name, remedy
    return None


def byte_order_mark(head: bytes) -> str | None:
    """Name the encoding whose mark a file begins with."""
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return "utf-8" if head.startswith(b"\xef\xbb\xbf") else None


def why_not_utf8(head: bytes, *, option: bool = False) -> str | None:
    r"""Say in which encoding text seems to be instead; None where it may be UTF-8.

    Where `option` is true, `--encoding` is advised.

    >>> why_not_utf8("visit,name\n".encode("utf-16"))
    'but in UTF-16; expected UTF-8; convert it, as with `iconv -f utf-16 -t utf-8`'
    >>> why_not_utf8(b"\xfc", option=True)
    'but in ...; expected UTF-8; say `--encoding latin1`, or convert it, as with `iconv ...'
    >>> why_not_utf8(b"visit,name\n") is None
    True
    """
    wide = _wide(head)
    if wide is not None:
        return f"but in {wide.upper()}; expected UTF-8; {conversion(wide, option=option)}"
    if _is_utf8(head):
        return None
    if _has(head, _CONTROLS):
        return "nor in another encoding of text; expected UTF-8; check what file it is"
    old = "windows-1252" if _has(head, bytes(range(0x80, 0xA0))) else "latin1"
    named = "an older encoding, such as Windows-1252 or Latin-1 (ISO 8859-1)"
    return f"but in {named}; expected UTF-8; {conversion(old, option=option)}"


def _wide(head: bytes) -> str | None:
    if byte_order_mark(head) in ("utf-16", "utf-32"):
        return byte_order_mark(head)
    # Without a mark: of most characters all bytes but the lowest are zero.
    some = head[: min(len(head), 4096) // 4 * 4]
    if len(some) < 8:
        return None
    zeros = [some[at::4].count(0) * 4 / len(some) for at in range(4)]
    for name, lowest in (("utf-32le", [0]), ("utf-32be", [3]), ("utf-16le", [0, 2]),
                         ("utf-16be", [1, 3])):  # fmt: skip
        if all(zeros[at] < 0.1 if at in lowest else zeros[at] > 0.6 for at in range(4)):
            return name
    return None


def _has(head: bytes, some: bytes) -> bool:
    return len(head.translate(None, some)) < len(head)


def conversion(encoding: str, *, option: bool) -> str:
    """Return the advice for text in an encoding; see `why_not_utf8`."""
    said = f"say `--encoding {encoding}`, or " if option else ""
    return f"{said}convert it, as with `iconv -f {encoding} -t utf-8`"


def _is_utf8(head: bytes) -> bool:
    """Tell whether bytes are UTF-8; the end may cut a character."""
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end == len(head) and len(head) == HEAD
    return True


_TAB = ("tab", r"\t", "\t")
_NO_DELIMITER = frozenset(string.ascii_letters + string.digits + "\"'.+-\n\r\v\f")
_SEPARATORS = ",;\t|"
_FIRST_LINE = re.compile(r"\ufeff?\"?sep=([^\r\n])\"?\r?\n")
_NAMES = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form of a text file, as far as it is known; None where it is not."""

    delimiter: str | None = None  # between the columns
    decimal: str | None = None  # "." or ","
    encoding: str | None = None  # as Python calls it

    @classmethod
    def of(
        cls, delimiter: str | None = None, decimal: str | None = None, encoding: str | None = None
    ) -> Dialect:
        """Check the options of a user on the form of a text file."""
        if delimiter in _TAB:
            delimiter = "\t"
        elif delimiter is not None and not (len(delimiter) == 1 and _separates(delimiter)):
            _refuse(
                "delimiter", delimiter,
                "one character, no letter, digit, quote, point or sign, as ';', '|' or tab",
            )  # fmt: skip
        if decimal not in (None, ".", ","):
            _refuse("decimal mark", decimal, "'.' or ','")
        if encoding is not None:
            try:
                "a".encode(encoding).decode(encoding, "replace")
                if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
                    encoding = "utf-8"
            except (LookupError, ValueError):  # unknown, of bytes, or no name
                _refuse("encoding", encoding, "one that Python knows, as latin1 or utf-16-le")
        return cls(delimiter, decimal, encoding)

    @classmethod
    def kept(cls, source: Mapping[str, Any]) -> Dialect:
        """Return the dialect that a data set keeps; see `Source.to_json`."""
        said = source.get("dialect", {})
        return cls.of(*(said.get(name) for name in ("delimiter", "decimal", "encoding")))

    def over(self, known: Dialect) -> Dialect:
        """Return this dialect, with the entries of another where it has none."""
        own = (self.delimiter, self.decimal, self.encoding)
        others = (known.delimiter, known.decimal, known.encoding)
        return Dialect(*(a if a is not None else b for a, b in zip(own, others, strict=True)))

    def to_json(self) -> dict[str, str]:
        """Return the entries that were given, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _refuse(what: str, given: str | None, expected: str) -> NoReturn:
    raise errors.InvalidParameterError(f"the {what} is {str(given)[:40]!r}; expected {expected}")


UNSAID = Dialect()
"""The dialect without any entry."""


def named_separator(head: str) -> tuple[str | None, str]:
    r"""Return the separator that a first line names, as Excel writes and hides it, and the rest.

    >>> named_separator("sep=;\nid;price\n"), named_separator("id;price\n")
    ((';', 'id;price\n'), (None, 'id;price\n'))
    """
    found = _FIRST_LINE.match(head)
    if found is None or not _separates(found[1]):  # the name of a column, perhaps
        return None, head
    return found[1], head[found.end() :]


def _separates(character: str) -> bool:
    """Tell whether a character may be a separator."""
    return character == "\t" or (" " <= character <= "~" and character not in _NO_DELIMITER)


def find_separator(
    head: str, usual: str, needed: Collection[str], some_of: Collection[str], *, is_cut: bool
) -> str:
    r"""Find the separator of a text file where only one fits.

    The usual one fits if it gives the columns that are needed. Another one does if, besides, it
    gives two columns or more, and as many in each row. `head` is the beginning of the file, and
    `is_cut` says that the file is longer. All of `needed` have to be there, and one of `some_of`,
    if any; the usual separator is returned as well where none or several others fit.

    >>> find_separator("id;price\n1;2,5\n", ",", ["id"], [], is_cut=False)
    ';'
    >>> find_separator("id;a|b\n1;2|3\n", ",", [], [], is_cut=False)
    ','
    """

    def fits(rows: list[list[str]]) -> bool:
        names = set(rows[0]) if rows else set()
        known = names >= set(needed) and (not some_of or not names.isdisjoint(some_of))
        return bool(rows) and known

    read = {each: _rows(head, each, is_cut=is_cut) for each in {usual, *_SEPARATORS}}
    own = read.pop(usual)
    if fits(own) and (len(own[0]) > 1 or needed or some_of):
        return usual
    found = [
        each
        for each, rows in read.items()
        if fits(rows) and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
    ]
    return found[0] if len(found) == 1 else usual


def _rows(head: str, separator: str, *, is_cut: bool) -> list[list[str]]:
    try:
        lines = io.StringIO(head, newline="")
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:  # a quote that does not end, or a character that is none
        return []
    return rows[:-1] if is_cut and len(rows) > 1 else rows


def describe_dialect(found: Dialect, besides: Dialect) -> str:
    """Describe a dialect as far as it differs from a known one; empty if it does not."""
    parts = []
    if found.delimiter != besides.delimiter:
        between = _NAMES.get(found.delimiter or "", repr(found.delimiter))
        parts.append(f"{between} between columns")
    if found.decimal != besides.decimal:
        parts.append("decimal commas" if found.decimal == "," else "decimal points")
    if found.encoding != besides.encoding:
        parts.append(f"the encoding {(found.encoding or '').upper()}")
    return " and ".join(parts)
