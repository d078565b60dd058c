"""One spelling for every identity, so that 17, "17" and 17.0 are one subject.

The law kept here: `canonical` is idempotent, and what reads as the same identity becomes the same
text. A message never repeats a value: it may be somebody's name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised
from erasable.core.errors import InvalidIdsError

__all__ = ["KINDS", "canonical", "check_type", "kind_of"]

KINDS = ("id", "integer", "email", "exact")

_TYPE = re.compile(r"(?:[A-Za-z0-9_.-]+/)?(id|integer|email|exact)")
_LONGEST_TYPE = 64  # characters, as the ledger keeps them
_WHOLE = re.compile(r"(-?[1-9][0-9]*|-?0)(?:\.0+)?")  # a number as a program prints it
_PADDED = re.compile(r"([+-]?)0*([0-9]+)(?:\.0+)?")  # a number as a person may write it
_MOST_DIGITS = 1000
_TOO_LARGE = 10**_MOST_DIGITS


def check_type(type: str) -> str:
    """Return a type of identity, or say what is wrong with it.

    Raises
    ------
    InvalidParameterError
        It is not one of `KINDS`, alone or after a namespace and a slash.

    Examples
    --------
    >>> check_type("staff/email")
    'staff/email'
    """
    if isinstance(type, str) and len(type) <= _LONGEST_TYPE and _TYPE.fullmatch(type):
        return type
    shown = repr(type[:_LONGEST_TYPE]) if isinstance(type, str) else f"a {type.__class__.__name__}"
    raise errors.InvalidParameterError(
        f"{shown} is no type of identity; expected one of {', '.join(KINDS)}, alone or after a "
        f"namespace, as in 'staff/id', in {_LONGEST_TYPE} characters; name such a type"
    )


def kind_of(type: str) -> str:
    """Return what a type is without its namespace.

    Examples
    --------
    >>> kind_of("staff/id")
    'id'
    """
    return check_type(type).rpartition("/")[2]


def canonical(type: str, value: Any) -> str:
    """Return the one spelling of an identity.

    Parameters
    ----------
    type : str
        "id": a whole number, in whatever type or as text that a program printed ("17.0"), becomes
        its digits; other text is stripped and composed (NFC), so "007" and "A-7" stay.
        "integer": digits that may be padded; "007" becomes "7".
        "email": text, stripped, composed, case folded.
        "exact": text as it is, composed; whole numbers become their digits.
        A namespace and a slash may stand before each; they do not change the spelling.
    value : str, int, float, Decimal or a NumPy scalar

    Raises
    ------
    InvalidIdsError
        It is missing, empty, a boolean, or does not suit the type.

    Examples
    --------
    >>> [canonical("id", value) for value in (17, "17", 17.0, " 17.0 ", "007")]
    ['17', '17', '17', '17', '007']
    >>> canonical("email", " Alice@X.com")
    'alice@x.com'
    """
    kind = kind_of(type)
    if isinstance(value, str):
        spelled = _SPELLINGS[kind](_composed(value, type))
    elif kind == "email":
        raise _unfit(type, value, "text")
    else:
        spelled = _digits(value, type)
    if spelled is None:
        raise _unfit(type, value, "a whole number")
    if not spelled:
        raise InvalidIdsError(
            f"an identity of type {type!r} is empty; expected text or a whole number; "
            "leave it out, or make it null in the source"
        )
    return spelled


def _composed(value: str, type: str) -> str:
    text = unicodedata.normalize("NFC", value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _unfit(type, value, "text that is valid Unicode") from None
    return text


def _spell_id(text: str) -> str:
    text = text.strip()
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        return text
    return "0" if whole[1] == "-0" else whole[1]


def _spell_integer(text: str) -> str | None:
    text = text.strip()
    padded = _PADDED.fullmatch(text)
    if padded is None:
        return None if text else ""
    sign, digits = padded[1], padded[2].lstrip("0") or "0"
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def _spell_email(text: str) -> str:
    # Unicode's canonical caseless match: fold what is decomposed, and compose it again.
    folded = unicodedata.normalize("NFD", text.strip()).casefold()
    return unicodedata.normalize("NFC", folded)


_SPELLINGS: dict[str, Callable[[str], str | None]] = {
    "id": _spell_id,
    "integer": _spell_integer,
    "email": _spell_email,
    "exact": str,
}


def _digits(value: Any, type: str) -> str:
    """Spell a number; a float only where no other whole number rounds to it."""
    if value.__class__ is int:  # the two most frequent classes, without asking an abstract one
        whole = value
    elif value.__class__ is not float and not _is_number(value):
        raise _unfit(type, value, "text or a whole number")
    elif isinstance(value, Decimal) and not (value.is_finite() and value.adjusted() < _MOST_DIGITS):
        raise _unfit(type, value, "a whole number")
    elif value != value:
        raise _unfit(type, value, "a whole number, not NaN")
    elif not isinstance(value, Integral | Decimal) and value in (value + 1, value - 1):
        raise _unfit(type, value, "a whole number that floats hold exactly, or text")
    else:
        whole = int(value)
        if whole != value:
            raise _unfit(type, value, "a whole number")
    if not -_TOO_LARGE < whole < _TOO_LARGE:
        raise _unfit(type, value, f"at most {_MOST_DIGITS} digits")
    return str(whole)


def _is_number(value: Any) -> bool:
    return isinstance(value, Integral | Real | Decimal) and not isinstance(value, bool)


def _unfit(type: str, value: Any, expected: str) -> InvalidIdsError:
    return InvalidIdsError(
        f"an identity of type {type!r} is a {value.__class__.__name__} that cannot be one; "
        f"expected {expected}; correct it in the source, or name another type"
    )
