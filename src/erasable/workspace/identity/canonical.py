"""Canonical spelling of identities, so that 17, "17" and 17.0 are one subject.

The law kept here: `canonical` is idempotent, and spellings of one identity become one text. A
message never repeats a value: it may be a person's name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from numbers import Integral, Real
from typing import Any
from urllib.parse import unquote

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised
from erasable.core.errors import InvalidIdsError

_LONGEST_TYPE = 64  # characters, as the ledger keeps them
_WHOLE = re.compile(r"(-?[1-9][0-9]*|-?0)(?:\.0+)?")  # a number as a program prints it
_PADDED = re.compile(r"([+-]?)0*([0-9]+)(?:\.0+)?")  # a number as a person may write it
_MOST_DIGITS = 1000
_TOO_LARGE = 10**_MOST_DIGITS


def check_type(type: str) -> str:
    """Return a type: one of `TYPES`, or a namespace, a slash and a type, such as "staff/email".

    Raise InvalidParameterError for any other text.
    """
    if isinstance(type, str) and len(type) <= _LONGEST_TYPE and _TYPE.fullmatch(type):
        return type
    shown = repr(type[:_LONGEST_TYPE]) if isinstance(type, str) else f"a {type.__class__.__name__}"
    raise errors.InvalidParameterError(
        f"{shown} is no type of identity; expected one of {', '.join(TYPES)}, alone or after a "
        f"namespace, as in 'staff/id', in {_LONGEST_TYPE} characters; name such a type"
    )


def declared(text: str) -> tuple[str, str | None]:
    """Return the type and the region of a column of identities, such as "phone:DE".

    The region is that of numbers without a country code. Raise InvalidParameterError for a type or
    region that there is not, and for a region of another type.
    """
    type, colon, region = text.partition(":") if isinstance(text, str) else (text, "", "")
    if not colon:
        return check_type(type), None
    if not TYPES[kind_of(type)].has_region:
        raise errors.InvalidParameterError(
            f"{text[:_LONGEST_TYPE]!r} names a region; expected one for the type phone alone"
        )
    from erasable.workspace.identity import phone_numbers  # late: its tables take 0.1 s

    phone_numbers.check_region(region)
    return type, region


def kind_of(type: str) -> str:
    """Return a type without its namespace."""
    return _kind_of(type) if isinstance(type, str) else check_type(type)


@lru_cache(maxsize=256)  # it is asked for each value
def _kind_of(type: str) -> str:
    return check_type(type).rpartition("/")[2]


def is_record_type(type: str) -> bool:
    """Tell whether a type is that of records; see `data.catalogue.record_type`."""
    return type.startswith("record.")


def may_be_one_person(type: str, other: str) -> bool:
    """Tell whether identities side by side in one record are taken for one person's.

    They are if their types differ and their namespaces do not, as in ``who:id,mail:email``. Two of
    one type are two people's, and a namespace is a register of its own people.
    """
    return type != other and type.rpartition("/")[0] == other.rpartition("/")[0]


def canonical(type: str, value: Any, region: str | None = None) -> str:
    """Return the canonical spelling of an identity.

    For "id", a whole number, also as text that a program printed ("17.0"), becomes its digits, and
    other text is stripped, so "007" stays. For "integer", digits may be padded: "007" becomes "7".
    For "email", one address is stripped and case folded; "mailto:", a name before it and quotation
    marks go, and a domain is as people read it ("xn--bcher-kva.de" is "b\u00fccher.de"). For
    "phone", a number becomes that of E.164; without a country code it is of `region`, two letters.
    In these four, full-width and other compatible letters become the ordinary ones (NFKC), and
    characters that do not show go. For "exact", text stays as it is, composed. Raise
    InvalidIdsError if the value is missing, empty, a boolean, does not suit the type, or is several
    addresses.

    >>> [canonical("id", value) for value in (17, "17", 17.0, " 17.0 ", "007")]
    ['17', '17', '17', '17', '007']
    >>> canonical("email", " Alice@X.com")
    'alice@x.com'
    >>> canonical("email", "Alice <mailto:alice@\uff58.com>"), canonical("id", "17\u200b")
    ('alice@x.com', '17')
    >>> canonical("phone", "0170 123-4567", "DE"), canonical("phone", "tel:+49-170-1234567")
    ('+491701234567', '+491701234567')
    """
    known = TYPES[kind_of(type)]
    # The id of a record is not a person's: two that differ stay apart.
    if is_record_type(type) and known.before is not None:
        return _spelled(type, value, known.before)
    return _spelled(type, value, partial(known.spell, region=region) if region else known.spell)


def former(type: str, value: Any) -> str | None:
    """Return the spelling that earlier versions hashed, or None if it is the same.

    They only composed text (NFC) and folded the case of addresses. Their tokens are in data and on
    suppression lists.

    >>> former("id", "17\u200b") == "17\u200b", former("id", "17"), former("email", "Al <al@x.org>")
    (True, None, 'al <al@x.org>')
    """
    spell = TYPES[kind_of(type)].before
    if not isinstance(value, str) or spell is None or _is_plain(type, value):
        return None
    try:
        before = _spelled(type, value, spell)
    except InvalidIdsError:
        return None
    try:
        return None if before == canonical(type, value) else before
    except InvalidIdsError:
        return before


def _is_plain(type: str, value: str) -> bool:
    """Tell whether a text is spelled as ever, at a glance."""
    if kind_of(type) == "email":
        return _simple_address(value) is not None
    return value.isascii() and value.isprintable()


def _spelled(type: str, value: Any, spell: Callable[[str], str | None]) -> str:
    known = TYPES[kind_of(type)]
    if isinstance(value, str):
        spelled = spell(_composed(value, type))
    elif not known.takes_numbers:
        raise _unfit(type, value, "text")
    else:
        spelled = spell(_digits(value, type))
    if spelled is None:
        raise _unfit(type, value, known.expected)
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
    # Unicode's canonical caseless match: decompose, fold, and compose again.
    folded = unicodedata.normalize("NFD", text.strip()).casefold()
    return unicodedata.normalize("NFC", folded)


def _plain(text: str) -> str:
    """Return a text in ordinary letters, without characters that do not show."""
    if text.isascii() and text.isprintable():
        return text
    before = None
    while text != before:  # neighbours of a removed character may compose
        before = text
        text = unicodedata.normalize("NFKC", "".join(filter(_shows, text)))
    return text


def _shows(character: str) -> bool:
    kind = unicodedata.category(character)
    if kind in ("Cf", "Cc"):
        return character.isspace()
    return not any(first <= character <= last for first, last in _UNSEEN)


_UNSEEN = (
    ("\u034f", "\u034f"), ("\u115f", "\u1160"), ("\u17b4", "\u17b5"), ("\u180b", "\u180f"),
    ("\u3164", "\u3164"), ("\ufe00", "\ufe0f"), ("\uffa0", "\uffa0"),
    ("\U000e0100", "\U000e01ef"),
)  # fmt: skip
"""Characters that Unicode does not show (Default_Ignorable), without a category of their own."""


def _spell_address(text: str) -> str | None:
    simple = _simple_address(text)
    return _spell_any_address(text) if simple is None else simple


def _simple_address(text: str) -> str | None:
    """Return the spelling of most addresses, at a tenth of the cost; None of others."""
    plain = text.strip().lower() if text.isascii() else ""
    return plain if _SIMPLE.fullmatch(plain) and "xn--" not in plain else None


_SIMPLE = re.compile(r"[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*")


def _spell_any_address(text: str) -> str | None:
    before = None
    while text != before:
        before = text
        text = _plain(_spell_email(text)).strip().strip(",;").strip()
        if text.startswith("mailto:"):
            text = unquote(text.removeprefix("mailto:").partition("?")[0])
        for around in (_NAMED, _QUOTED):
            inner = around.fullmatch(text)
            if inner is not None:
                text = inner[1]
        local, at, domain = text.rpartition("@")
        text = f"{local}{at}{_spell_domain(domain)}" if at else text
    return None if "@" in text and _SEVERAL.search(text) else text


def _spell_domain(text: str) -> str:
    """Return a domain in the letters that people read, without the dot of the root."""
    labels = _STOPS.split(text)
    while len(labels) > 1 and not labels[-1]:
        del labels[-1]
    return ".".join(map(_unpunycoded, labels))


def _unpunycoded(label: str) -> str:
    """Return the text of a label such as "xn--bcher-kva"; return other labels unchanged."""
    if not label.startswith("xn--"):
        return label
    try:
        read = label.removeprefix("xn--").encode("ascii").decode("punycode")
        read.encode()
        read = "".join(filter(_shows, read))  # Persian and Indic domains hold joiners
    except (UnicodeError, OverflowError):
        return label
    # "xn--x-" is no other spelling of "x"
    return read if read.isprintable() and not read.isascii() else label


_STOPS = re.compile("[.\u3002\uff61]")  # IDNA: full stops of all scripts divide labels
_NAMED = re.compile(r"[^<>]*<([^<>]*@[^<>]*)>")  # Ann <ann@x.org>
_QUOTED = re.compile("['\"\u2018\u201c](.*@.*)['\"\u2019\u201d]", re.DOTALL)
_SEVERAL = re.compile(r"@.*@|[\s,;<>]", re.DOTALL)
BLANK = r"^[\s\p{Z}\p{Cf}\p{Cc}" + "".join(f"{first}-{last}" for first, last in _UNSEEN) + "]*$"
"""Regular expression (RE2) of text without a visible character, which identifies no person."""


def _spell_phone(text: str, region: str | None = None) -> str | None:
    plain = _plain(text).strip()
    if not plain:
        return ""
    from erasable.workspace.identity import phone_numbers  # late: its tables take 0.1 s

    return phone_numbers.spell(plain, region)


@dataclass(frozen=True, slots=True)
class IdentityType:
    """A type of identities: when two values are one."""

    name: str
    # from composed text: "" if it is empty, None if it is no identity of the type
    spell: Callable[..., str | None]
    same: str  # what is the same identity, for the documentation
    expected: str  # of a value, in messages
    before: Callable[[str], str | None] | None = None  # how earlier versions spelled it
    takes_numbers: bool = True
    has_region: bool = False  # whether a column may say how its values are read


TYPES = {
    each.name: each
    for each in (
        IdentityType(
            "id",
            lambda text: _spell_id(_plain(text)),
            '17, "17", 17.0; other text if equal without surrounding blanks',
            "text or a whole number",
            before=_spell_id,
        ),
        IdentityType(
            "integer",
            lambda text: _spell_integer(_plain(text)),
            'as `id`, and "007" is 7',
            "a whole number",
            before=_spell_integer,
        ),
        IdentityType(
            "email",
            _spell_address,
            "`Alice@X.com`, `alice@x.com`, `mailto:alice@x.com` and `Alice <alice@x.com>`, with or "
            "without surrounding blanks; `a@xn--bcher-kva.de` and `a@bücher.de`; several addresses "
            "in one value are refused",
            "one address",
            before=_spell_email,
            takes_numbers=False,
        ),
        IdentityType(
            "phone",
            _spell_phone,
            "`+49 170 1234567`, `tel:+49-170-1234567` and, with `phone:DE`, `0170/1234567`: one "
            "number of E.164, with or without surrounding blanks; numbers with other extensions "
            "are others",
            "a telephone number with its country code, as in +49 170 1234567 (a column may name "
            "the country of others, as in phone:DE)",
            has_region=True,
        ),
        IdentityType("exact", str, "only equal values", "text or a whole number", before=str),
    )
}
"""The types of identities, by name."""

_TYPE = re.compile(rf"(?:[A-Za-z0-9_.-]+/)?(?:{'|'.join(TYPES)})")


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
