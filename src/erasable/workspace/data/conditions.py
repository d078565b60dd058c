"""Conditions on the columns of a data set: the scope of a request that names no person.

::

    condition = comparison {"and" comparison}
    comparison = column operator literal
    operator = "=" | "==" | "!=" | "<" | "<=" | ">" | ">="
    literal = quoted text | number | date | time | time of day | "true" | "false" | "null"

Numbers are compared exactly, text by code points, times in UTC. A null meets no comparison but
``= null``; a value meets ``!= null``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import SourceError
from erasable.workspace.data.column_types import WRONG, describe_type, parse_cells

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<operator>==|!=|<=|>=|=|<|>)
      | (?P<bare>[^\s'"=!<>]+)
    )""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+)?")
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_FORM = "expected `column operator literal [and ...]`, as in \"age >= 90 and city = 'Oslo'\""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One comparison with a typed value."""

    column: str
    operator: str  # or "all" (of the values) or "none", where the literal decides it
    value: Any


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that suits a schema; `Condition.parse` reads one."""

    text: str
    comparisons: tuple[_Comparison, ...]

    @classmethod
    def parse(cls, text: str, schema: pa.Schema, tokens: Collection[str] = ()) -> Condition:
        """Read a condition on columns of numbers, text, booleans, days or times.

        `tokens` are columns of tokens, with which no value can be compared.
        """
        words = _split(text)
        comparisons = []
        while True:
            (column, operator, literal), words = words[:3], words[3:]
            comparisons.append(_comparison(column, operator, literal, schema, tokens))
            if not words:
                return cls(text, tuple(comparisons))
            words = words[1:]

    def mask(self, table: pa.Table) -> pa.BooleanArray:
        """Return, for each record, whether it meets the condition; never null."""
        met = pa.repeat(pa.scalar(True), table.num_rows)
        for each in self.comparisons:
            met = pc.and_(met, _met(each, table[each.column]))
        return met.combine_chunks() if isinstance(met, pa.ChunkedArray) else met


_Word = tuple[str, str]  # its kind in _TOKEN, and its text without quotes


def _split(text: str) -> list[_Word]:
    """Cut a text into words: four for each comparison with its "and"."""
    words: list[_Word] = []
    rest = text.strip()
    while rest:
        found = _TOKEN.match(rest)
        if found is None:
            message = "a '!' without '='" if rest[0] == "!" else "a quote that does not end"
            raise SourceError(f"the condition has {message}; {_FORM}")
        kind, word = str(found.lastgroup), found[str(found.lastgroup)]
        if kind == "quoted":
            word = word[1:-1].replace(word[0] * 2, word[0])
        words.append((kind, word))
        rest = rest[found.end() :].lstrip()
    kinds = ("name", "operator", "literal", "and")
    for place, (kind, word) in enumerate(words):
        wanted = kinds[place % 4]
        fits = (kind == "operator") == (wanted == "operator")
        if not fits or (wanted == "and" and (kind, word.lower()) != ("bare", "and")):
            raise SourceError(
                f"the condition is no condition from its word {place + 1} on; {_FORM}"
            )
    if len(words) % 4 != 3:
        raise SourceError(f"the condition is empty, or breaks off; {_FORM}; complete it")
    return words


def _comparison(
    column: _Word, operator: _Word, literal: _Word, schema: pa.Schema, tokens: Collection[str]
) -> _Comparison:
    name, sign = column[1], "=" if operator[1] == "==" else operator[1]
    if schema.names.count(name) != 1:
        raise SourceError(
            f"the condition names a column {name[:60]!r}, which is not there; expected one of "
            f"{', '.join(map(repr, schema.names[:20]))}; correct it, with quotes around a name "
            "that has spaces"
        )
    if name in tokens:
        raise SourceError(
            f"column {name!r} is kept as tokens; expected another in a condition; "
            "pass the identity itself in the place of the condition"
        )
    if literal[0] == "bare" and literal[1].lower() == "null":
        if sign not in ("=", "!="):
            raise SourceError(f"null came with {sign!r}; expected '=' or '!='")
        return _Comparison(name, sign, None)
    return _typed(name, sign, literal, schema.field(name).type)


def _typed(name: str, sign: str, literal: _Word, kind: pa.DataType) -> _Comparison:
    quoted, word = literal[0] == "quoted", literal[1]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if not quoted:
            raise _unsuited(name, "text", "a literal in quotes")
        try:
            return _Comparison(name, sign, pa.scalar(word, kind))
        except (pa.ArrowException, UnicodeEncodeError):
            raise _unsuited(name, "text", "one that is valid Unicode") from None
    if pa.types.is_boolean(kind):
        if quoted or word.lower() not in ("true", "false") or sign not in ("=", "!="):
            raise _unsuited(name, "true and false", "one of these after '=' or '!='")
        return _Comparison(name, sign, pa.scalar(_WORDS[word.lower()]))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if quoted or not _NUMBER.fullmatch(word):
            raise _unsuited(name, "numbers", "a number without quotes")
        if pa.types.is_floating(kind):
            return _Comparison(name, sign, _float(name, word))
        return _whole(name, sign, word, kind)
    if pa.types.is_temporal(kind):
        return _Comparison(name, sign, _moment(name, word, kind))
    raise _unsuited(name, str(kind), "a column of numbers, text, booleans, days or times")


def _float(name: str, word: str) -> pa.Scalar:
    value = float(word)
    if not math.isfinite(value):
        raise _unsuited(name, "floats", "a number of at most 1.8e308")
    return pa.scalar(value, pa.float64())


def _whole(name: str, sign: str, word: str, kind: pa.DataType) -> _Comparison:
    """Compare integers with any number exactly: a float would round those above 2**53."""
    try:
        value = Decimal(word)
    except InvalidOperation:
        raise _unsuited(name, "integers", "a number that can be written out") from None
    bits = kind.bit_width
    least, most = (
        (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if pa.types.is_signed_integer(kind)
        else (0, 2**bits - 1)
    )
    if not least <= value <= most:
        always = sign == "!=" or ((sign[0] == "<") == (value > most) and sign != "=")
        return _Comparison(name, "all" if always else "none", None)
    below = math.floor(value)
    if value != below:
        if sign in ("=", "!="):
            return _Comparison(name, "none" if sign == "=" else "all", None)
        sign = "<=" if sign[0] == "<" else ">"
    return _Comparison(name, sign, pa.scalar(below, kind))


def _moment(name: str, word: str, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_time(kind):
        if not _CLOCK.fullmatch(word):
            raise _unsuited(name, "times of day", "a time of day, as in 10:15 or 10:15:30")
    elif not _MOMENT.fullmatch(word):
        raise _unsuited(name, "days or times", "a date, as in 2026-03-01, or with a time of day")
    elif pa.types.is_date(kind) and len(word) > len("2026-03-01"):
        raise _unsuited(name, "days", "a date without a time of day")
    plain = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
    try:
        return parse_cells(pa.array([word]), plain).cast(kind)[0]
    except WRONG:
        raise _unsuited(
            name, describe_type(kind).split(",")[0], "one of the calendar and clock"
        ) from None


def _met(each: _Comparison, column: pa.ChunkedArray) -> Any:
    if each.operator in ("all", "none"):
        return pc.and_(pc.is_valid(column), pa.scalar(each.operator == "all"))
    if each.value is None:
        return pc.is_null(column) if each.operator == "=" else pc.is_valid(column)
    return pc.fill_null(_OPERATORS[each.operator](column, each.value), False)


def _unsuited(name: str, holds: str, expected: str) -> SourceError:
    return SourceError(f"column {name!r} holds {holds}; expected {expected} to compare it with")
