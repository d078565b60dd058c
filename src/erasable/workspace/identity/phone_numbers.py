"""Telephone numbers, as phonenumbers reads them; no other module uses it."""

from __future__ import annotations

import re

import phonenumbers

import erasable.core.errors as errors

__all__ = ["check_region", "spell"]


def check_region(region: str) -> None:
    """Raise InvalidParameterError if a text is no country that has telephone numbers.

    >>> check_region("UK")
    Traceback (most recent call last):
    erasable.core.errors.InvalidParameterError: the country of telephone numbers is 'UK'; expected
    two letters of ISO 3166, as in DE or GB
    """
    if region not in phonenumbers.SUPPORTED_REGIONS:
        raise errors.InvalidParameterError(
            f"the country of telephone numbers is {region[:20]!r}; expected two letters of ISO "
            "3166, as in DE or GB"
        )


def spell(text: str, region: str | None) -> str | None:
    """Return a telephone number in E.164, with its extension; None if the text is no such number.

    Whether a number is in use is not asked: that changes, and its spelling must not. Digits that
    are a number of the region, and another with "+" before them, are refused. Letters stand for
    digits only where there is no number without them, as in 1-800-FLOWERS: phonenumbers takes the
    word after "0170 1234567 mobil" for digits, too, and leaves out the letter of "+49 17O 1234567".

    >>> spell("(030) 123456", "DE"), spell("+49 30 123456 ext. 7", None), spell("030 123456", None)
    ('+4930123456', '+4930123456;ext=7', None)
    """
    number = _parsed(text, region)
    if number is None or not _is_possible(number) or _may_lack_plus(text, number):
        return None
    if _has_other_letters(text, region, number.extension):
        return None
    found = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    return f"{found};ext={number.extension}" if number.extension else found


def _is_possible(number: phonenumbers.PhoneNumber) -> bool:
    return bool(phonenumbers.is_possible_number_with_reason(number) == _POSSIBLE)


def _may_lack_plus(text: str, number: phonenumbers.PhoneNumber) -> bool:
    digits = phonenumbers.normalize_digits_only(text)
    if "+" in text or not digits.startswith(str(number.country_code)):
        return False
    other = _parsed(f"+{_FIRST.sub('', text)}", None)
    return other is not None and other != number and bool(phonenumbers.is_valid_number(other))


def _has_other_letters(text: str, region: str | None, extension: str | None) -> bool:
    """Tell whether a text is a number without its letters, but for words before it."""
    body = _FIRST.sub("", text).partition(";")[0]
    if extension:
        body = re.sub(rf"\W*[^\W\d_]*\W*{extension}\W*$", "", body)
    plain = _LETTER.sub("", body)
    number = _parsed(plain, region) if plain != body else None
    return number is not None and _is_possible(number)


def _parsed(text: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None


_FIRST = re.compile(r"^[^+\d]*")
_LETTER = re.compile(r"[^\W\d_]")
_POSSIBLE = phonenumbers.ValidationResult.IS_POSSIBLE
