"""Types of the columns of text files, which follow from the spelling of their cells.

The law kept here: a column has the first type of `RULES` that all of its cells fit, or is text.
Neither the order of the cells nor where blocks begin matters. A cell that fits a type is parsed as
this type by `erasable.workspace.data.column_types.parse_cells`, and no other is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core._arrow_files import CSV_NULLS
from erasable.workspace.data.column_types import FALSE, LONG_WHOLE, TRUE, exact_as_float

_FIRST = 100  # cells of a block that are looked at before all of them
_WHOLE = r"^-?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NO_NUMBER = r"(?i)^[+-]?(inf(inity)?|nan(\([0-9a-z_]*\))?)$"
_LEAP_YEAR = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAY = (
    r"([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    rf"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_HOUR, _MINUTE, _SECOND = r"([01][0-9]|2[0-3])", r":[0-5][0-9]", r":[0-5][0-9](\.[0-9]{1,%d})?"
_ZONE = r"(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_LIMITS = ("9223372036854775807", "9223372036854775808", "18446744073709551615")
_NEAR_YEARS = r"^(16(7[89]|[89])|1[789]|2([01]|2([0-5]|6[01])))"  # 1678 to 2261
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rule:
    """A type, and whether all of some cells fit it.

    `fit` takes cells that are no gaps, each once, and the decimal mark.
    """

    kind: pa.DataType
    fit: Callable[[pa.StringArray, str], bool]


def fitting(rules: Sequence[Rule], cells: pa.StringArray, decimal: str) -> list[Rule]:
    """Return those of some rules that all cells fit; gaps fit each.

    >>> [each.kind for each in fitting(RULES, pa.array(["007", "NA", "1"]), ".")]
    [DataType(int64), DataType(uint64), DataType(double)]
    """
    for some in (cells[:_FIRST], cells):
        if not rules:
            break
        found = pc.unique(some)
        found = found.filter(pc.invert(pc.is_in(found, pa.array(list(CSV_NULLS)))))
        rules = [each for each in rules if each.fit(found, decimal)]
    return list(rules)


def _all(fits: pa.BooleanArray) -> bool:
    return bool(pc.all(fits, min_count=0).as_py())


def _match(cells: pa.StringArray, pattern: str) -> bool:
    return _all(pc.match_substring_regex(cells, pattern))


def _are_whole(cells: pa.StringArray, decimal: str, *, signed: bool) -> bool:
    cells = pc.utf8_trim(cells, " \t")
    negative = pc.starts_with(cells, "-")
    if not _match(cells, _WHOLE) or not (signed or not pc.any(negative, min_count=0).as_py()):
        return False
    digits = pc.utf8_ltrim(pc.utf8_ltrim(cells, "-"), "0")
    limits = pc.if_else(negative, _LIMITS[1], _LIMITS[0] if signed else _LIMITS[2])
    n, most = pc.utf8_length(digits), pc.utf8_length(limits)
    within = pc.or_(pc.less(n, most), pc.and_(pc.equal(n, most), pc.less_equal(digits, limits)))
    return _all(within)


def _are_booleans(cells: pa.StringArray, decimal: str) -> bool:
    return _all(pc.is_in(cells, pa.array([*TRUE, *FALSE])))


def _are_times(cells: pa.StringArray, decimal: str, *, form: str, fine: bool = False) -> bool:
    cells = pc.utf8_trim(cells, " \t")
    if not _match(cells, f"^{form}$"):
        return False
    if not fine:
        return True
    far = cells.filter(pc.invert(pc.match_substring_regex(cells, _NEAR_YEARS)))
    return all(map(_has_nanoseconds, far.to_pylist()))


def _has_nanoseconds(time: str) -> bool:
    """Tell whether a time is one of those from 1677 to 2262 that nanoseconds in 64 bits hold."""
    if not "1677" <= time < "2263":
        return False
    at = datetime.fromisoformat(time)
    fraction = re.search(r"\.([0-9]+)", time)
    since = at.replace(tzinfo=at.tzinfo or UTC, microsecond=0) - _EPOCH
    seconds = since // timedelta(seconds=1)
    nanoseconds = int(fraction[1].ljust(9, "0")) if fraction else 0
    return seconds > -(2**63) // 10**9 and seconds * 10**9 + nanoseconds < 2**63


def _are_numbers(cells: pa.StringArray, decimal: str) -> bool:
    cells = pc.utf8_trim(cells, " \t")
    if decimal != ".":
        if pc.any(pc.match_substring(cells, "."), min_count=0).as_py():
            return False
        cells = pc.replace_substring(cells, decimal, ".")
    cells = cells.filter(pc.invert(pc.match_substring_regex(cells, _NO_NUMBER)))
    if not _match(cells, _NUMBER):
        return False
    long = cells.filter(pc.match_substring_regex(cells, LONG_WHOLE))
    return _all(pc.is_finite(cells.cast(pa.float64()))) and exact_as_float(long)


def _moments(digits: int, *, zoned: bool) -> str:
    clock = rf"[ T]{_HOUR}({_MINUTE}({_SECOND % digits})?)?"
    return f"{_DAY}{clock}{_ZONE}" if zoned else f"{_DAY}({clock})?"


_TIME = f"{_HOUR}{_MINUTE}({_SECOND % 6})?"
RULES = (
    Rule(pa.null(), lambda cells, decimal: not len(cells)),
    Rule(pa.int64(), partial(_are_whole, signed=True)),
    Rule(pa.uint64(), partial(_are_whole, signed=False)),
    Rule(pa.bool_(), _are_booleans),
    Rule(pa.date32(), partial(_are_times, form=_DAY)),
    Rule(pa.time64("us"), partial(_are_times, form=_TIME)),
    Rule(pa.timestamp("us"), partial(_are_times, form=_moments(6, zoned=False))),
    Rule(pa.timestamp("us", "UTC"), partial(_are_times, form=_moments(6, zoned=True))),
    Rule(pa.timestamp("ns"), partial(_are_times, form=_moments(9, zoned=False), fine=True)),
    Rule(pa.timestamp("ns", "UTC"), partial(_are_times, form=_moments(9, zoned=True), fine=True)),
    Rule(pa.float64(), _are_numbers),
)
"""The types of columns besides text, in the order in which they are tried."""
