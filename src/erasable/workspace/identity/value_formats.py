"""Formats that identities look like: an address of electronic mail, or a telephone number.

The law kept here: a format decides nothing. It only shows where the user has to name a type,
because the default would tell spellings of one identity apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core.errors import InvalidIdsError
from erasable.workspace.identity.subjects import DEFAULT_TYPE
from erasable.workspace.ledger.kinds import is_unicode

_ADDRESS = (
    r"[^\s@<>,;:\"()]+(?:@|%40)[^\s@<>,;:\"().]+(?:\.[^\s@<>,;:\"().]+)*"
    r"\.[^\s@<>,;:\"().0-9][^\s@<>,;:\"().]+"
)
"""An address anywhere in a text, as in "Ann <ann@x.org>" or a list."""

_TELEPHONE = "|".join(
    (
        r"^\s*(?:tel:)?\+[0-9](?:[ ()./-]*[0-9]){6,14}\s*$",  # +49 170 1234567
        r"^\s*\(0[0-9]{1,5}\)[ /-]*[0-9](?:[ ./-]*[0-9]){3,9}\s*$",  # (030) 123456
        r"^\s*0[1-9][0-9]{0,4}[ /]+[0-9](?:[ ./-]*[0-9]){4,9}\s*$",  # 0170 1234567
        r"^\s*0[1-9][0-9]{1,4}-[0-9]{5,9}\s*$",  # 0170-1234567
        r"^\s*\(?[0-9]{3}\)?[ .-]+[0-9]{3}[ .-]+[0-9]{4}\s*$",  # (555) 010-4477
    )
)
_NATIONAL = rf"{_TELEPHONE}|^\s*0[0-9]{{6,14}}\s*$"
_INVISIBLE = r"[\p{Cf}\p{Cc}]"


class Looks:
    """Counts of texts in some columns that look like addresses or telephone numbers.

    >>> looks = Looks(["who", "call"])
    >>> looks.add(pa.table({"who": ["p1", "Ann@x.org"], "call": ["+1 555 010 4477", None]}))
    >>> looks.n_addresses, looks.telephones
    ({'who': 1, 'call': 0}, ['call'])
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.n_addresses = dict.fromkeys(columns, 0)
        self._n_telephones = dict.fromkeys(columns, 0)
        self._n_named = dict.fromkeys(columns, 0)

    def add(self, raw: pa.Table) -> None:
        """Count the texts of a batch, which has identities."""
        for column in self.n_addresses:
            values = raw[column]
            if pa.types.is_string(values.type):
                plain = _plain(values)
                self.n_addresses[column] += _n_like(plain, _ADDRESS)
                self._n_telephones[column] += _n_like(plain, _TELEPHONE)
            self._n_named[column] += len(values) - values.null_count

    @property
    def addresses(self) -> list[str]:
        """The columns that hold at least one address."""
        return [column for column, n in self.n_addresses.items() if n]

    @property
    def telephones(self) -> list[str]:
        """The columns most of whose values look like telephone numbers: a single id may, too."""
        return [column for column, n in self._n_telephones.items() if 2 * n > self._n_named[column]]


def addresses_among(values: Iterable[Any]) -> list[Any]:
    """Return the values that look like addresses, or hold one."""
    return _among(filter(_may_be_one, _texts(values)), _ADDRESS)


def telephones_among(values: Iterable[Any]) -> list[Any]:
    """Return the values that look like telephone numbers, with or without separators."""
    return _among(filter(is_unicode, _texts(values)), _NATIONAL)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))


def _among(values: Iterable[str], pattern: str) -> list[Any]:
    texts = list(values)
    if not texts:
        return []
    found = pc.match_substring_regex(_plain(pa.chunked_array([texts], pa.string())), pattern)
    return [text for text, looks in zip(texts, found.to_pylist(), strict=True) if looks]


def _may_be_one(text: str) -> bool:
    if text.isascii():
        return "@" in text or "%40" in text
    return is_unicode(text)  # other text is refused as an identity


def type_or_id(value: Any, type: str | None) -> str:
    """Return the type of an identity, by default "id".

    Raise InvalidIdsError if none was named and the identity looks like an address.
    """
    if type is None and addresses_among([value]):
        raise InvalidIdsError(
            "an identity looks like an address, and no type was named for it; expected one; name "
            "email, or id to take it as it is spelled"
        )
    return type or DEFAULT_TYPE


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts in ordinary letters, without characters that do not show."""
    return pc.utf8_normalize(pc.replace_substring_regex(values, _INVISIBLE, ""), "NFKC")


def _n_like(values: pa.ChunkedArray, pattern: str) -> int:
    found: int = pc.sum(pc.match_substring_regex(values, pattern)).as_py() or 0
    return found
