"""Conditions on the columns of a data set: the scope of a request that names no person.

A condition is one of SQL: comparisons, ``in``, ``between``, ``like``, ``is null`` and columns of
booleans, joined by ``and``, ``or``, ``not`` and parentheses. The type of a column decides what its
literals mean. Numbers are compared exactly, text by code points, times in UTC. A comparison with a
missing value is unknown, and so is its negation; a record whose condition is unknown does not meet
it. ``= null`` and ``!= null`` are ``is null`` and ``is not null``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import SourceError
from erasable.workspace.data.column_types import WRONG, describe_type, parse_cells

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+)?")
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_UNKNOWN = pa.scalar(None, pa.bool_())

_Literal: TypeAlias = tuple[str, str]  # see `condition_syntax.Literal`


@dataclass(frozen=True, slots=True)
class _Test:
    """A test of the values of one column."""

    column: str
    operator: str  # of _OPERATORS, or "in", "matches", "null", "true", "all", "none" or "unknown"
    value: Any = None


@dataclass(frozen=True, slots=True)
class _Joined:
    """Conditions joined by "and" or "or", or the one that "not" negates."""

    operator: str
    parts: tuple[_Test | _Joined, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that suits a schema; `Condition.parse` reads one."""

    text: str
    tests: _Test | _Joined

    @classmethod
    def parse(cls, text: str, schema: pa.Schema, tokens: Collection[str] = ()) -> Condition:
        """Read a condition on columns of numbers, text, booleans, days or times.

        `tokens` are columns of tokens, with which no value can be compared.
        """
        from erasable.workspace.data import condition_syntax  # late: sqlglot takes 0.1 s

        def test(name: str, operator: str, literals: Sequence[_Literal]) -> _Test | _Joined:
            _check_column(name, schema, tokens)
            return _typed(name, operator, literals, schema.field(name).type)

        def join(operator: str, parts: Sequence[_Test | _Joined]) -> _Test | _Joined:
            return _Joined(operator, tuple(parts))

        return cls(text, condition_syntax.parse(text, schema.names, test, join))

    @property
    def columns(self) -> list[str]:
        """The columns that it tests, each once."""
        return list(dict.fromkeys(_columns(self.tests)))

    def mask(self, table: pa.Table) -> pa.BooleanArray:
        """Return, for each record, whether it meets the condition; never null."""
        met = pc.fill_null(_truth(self.tests, table), False)
        return met.combine_chunks() if isinstance(met, pa.ChunkedArray) else met


def _columns(tests: _Test | _Joined) -> Iterator[str]:
    if isinstance(tests, _Test):
        yield tests.column
        return
    for part in tests.parts:
        yield from _columns(part)


def _check_column(name: str, schema: pa.Schema, tokens: Collection[str]) -> None:
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


def _typed(
    name: str, operator: str, literals: Sequence[_Literal], kind: pa.DataType
) -> _Test | _Joined:
    """Give literals the type of their column."""
    if operator == "true":
        if not pa.types.is_boolean(kind):
            raise _unsuited(name, describe_type(kind), "an operator and a value")
        return _Test(name, "true")
    if operator == "null":
        return _Test(name, "null")
    if operator == "like":
        return _Test(name, "matches", _pattern(name, literals, kind))
    if operator == "in":
        return _one_of(name, [_compared(name, "=", each, kind) for each in literals])
    if operator == "between":
        signs = ((">=", literals[0]), ("<=", literals[1]))
        return _Joined("and", tuple(_compared(name, sign, each, kind) for sign, each in signs))
    if literals[0] == ("word", "null"):
        if operator not in ("=", "!="):
            raise SourceError(f"null came with {operator!r}; expected '=' or '!='")
        found = _Test(name, "null")
        return found if operator == "=" else _Joined("not", (found,))
    return _compared(name, operator, literals[0], kind)


def _one_of(name: str, tests: Sequence[_Test]) -> _Test | _Joined:
    """Join comparisons with "=" into one test, which takes the same time for any number of them."""
    values = [each.value for each in tests if each.operator == "="]
    others = [each for each in tests if each.operator != "="]
    if values:
        others.append(_Test(name, "in", pa.array(values, values[0].type)))
    return others[0] if len(others) == 1 else _Joined("or", tuple(others))


def _compared(name: str, sign: str, literal: _Literal, kind: pa.DataType) -> _Test:
    written, word = literal
    if literal == ("word", "null"):
        return _Test(name, "unknown")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _Test(name, sign, pa.scalar(_text(name, literal), kind))
    if pa.types.is_boolean(kind):
        if written != "word" or sign not in ("=", "!="):
            raise _unsuited(name, "true and false", "one of these after '=' or '!='")
        return _Test(name, sign, pa.scalar(word == "true"))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if written != "number" or not _NUMBER.fullmatch(word):
            raise _unsuited(name, "numbers", "a number without quotes")
        if pa.types.is_floating(kind):
            return _Test(name, sign, _float(name, word))
        return _whole(name, sign, word, kind)
    if pa.types.is_temporal(kind):
        return _Test(name, sign, _moment(name, literal, kind))
    raise _unsuited(name, str(kind), "a column of numbers, text, booleans, days or times")


def _text(name: str, literal: _Literal) -> str:
    written, word = literal
    if written != "text":
        raise _unsuited(name, "text", "a literal in quotes")
    try:
        word.encode()
    except UnicodeEncodeError:
        raise _unsuited(name, "text", "one that is valid Unicode") from None
    return word


def _pattern(name: str, literals: Sequence[_Literal], kind: pa.DataType) -> str:
    r"""Return the regular expression (RE2) of a pattern of ``like``.

    >>> _pattern("t", [("text", "a_c%!%"), ("text", "!")], pa.string())
    '(?s)\\Aa.c.*\\x{25}\\z'
    """
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise _unsuited(name, describe_type(kind), "a column of text")
    pattern, *escapes = (_text(name, each) for each in literals)
    if any(len(each) != 1 for each in escapes):
        raise SourceError("the escape of 'like' is not one character; expected one")
    parts, rest = [], iter(pattern)
    for each in rest:
        if each in escapes:
            after = next(rest, "")
            if after not in ("%", "_", *escapes):
                raise SourceError(
                    "the escape of 'like' stands before another character; expected '%', '_' or "
                    "itself after it"
                )
            parts.append(_literally(after))
        else:
            parts.append({"%": ".*", "_": "."}.get(each) or _literally(each))
    found = rf"(?s)\A{''.join(parts)}\z"
    try:
        pc.match_substring_regex(pa.array([""]), found)
    except pa.ArrowException:
        raise _unsuited(name, "text", "a shorter pattern") from None
    return found


def _literally(character: str) -> str:
    return character if character.isalnum() else rf"\x{{{ord(character):x}}}"


def _float(name: str, word: str) -> pa.Scalar:
    value = float(word)
    if not math.isfinite(value):
        raise _unsuited(name, "floats", "a number of at most 1.8e308")
    return pa.scalar(value + 0.0, pa.float64())  # -0.0 is 0.0


def _whole(name: str, sign: str, word: str, kind: pa.DataType) -> _Test:
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
        return _Test(name, "all" if always else "none")
    below = math.floor(value)
    if value != below:
        if sign in ("=", "!="):
            return _Test(name, "none" if sign == "=" else "all")
        sign = "<=" if sign[0] == "<" else ">"
    return _Test(name, sign, pa.scalar(below, kind))


def _moment(name: str, literal: _Literal, kind: pa.DataType) -> pa.Scalar:
    word = literal[1] if literal[0] in ("moment", "text") else ""
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


def _truth(tests: _Test | _Joined, table: pa.Table) -> Any:
    """Return for each record whether it meets a condition; null where that is unknown."""
    if isinstance(tests, _Test):
        return _met(tests, table[tests.column])
    if tests.operator == "not":
        return pc.invert(_truth(tests.parts[0], table))
    joined = pc.and_kleene if tests.operator == "and" else pc.or_kleene
    return reduce(joined, (_truth(part, table) for part in tests.parts))


def _met(test: _Test, column: pa.ChunkedArray) -> Any:
    if test.operator == "null":
        return pc.is_null(column)
    if test.operator == "true":
        return column
    if test.operator == "matches":
        return pc.match_substring_regex(column, test.value)
    if test.operator == "in":
        if pa.types.is_floating(column.type):
            column = pc.add(column, 0.0)  # -0.0 is 0.0
        found = pc.is_in(column, test.value)
    elif test.operator in ("all", "none", "unknown"):
        found = pa.scalar({"all": True, "none": False}.get(test.operator), pa.bool_())
    else:
        return _OPERATORS[test.operator](column, test.value)
    return pc.if_else(pc.is_valid(column), found, _UNKNOWN)


def _unsuited(name: str, holds: str, expected: str) -> SourceError:
    return SourceError(f"column {name!r} holds {holds}; expected {expected} to compare it with")
