"""Telephone numbers, as phonenumbers reads them; no other module uses it."""

from __future__ import annotations

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
    """Return a number as E.164 has it, with its extension, or None if it is none.

    Whether a number is in use is not asked: that changes, and its spelling must not. Digits that
    are a number of the region, and another with "+" before them, are refused.

    >>> spell("(030) 123456", "DE"), spell("+49 30 123456 ext. 7", None), spell("030 123456", None)
    ('+4930123456', '+4930123456;ext=7', None)
    """
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    if phonenumbers.is_possible_number_with_reason(number) != _POSSIBLE:
        return None
    if text[0] not in "+0" and text.isdecimal() and _may_lack_plus(text, number):
        return None
    found = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    return f"{found};ext={number.extension}" if number.extension else found


def _may_lack_plus(digits: str, number: phonenumbers.PhoneNumber) -> bool:
    if not digits.startswith(str(number.country_code)):
        return False
    try:
        other = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return False
    return other != number and phonenumbers.is_valid_number(other)


_POSSIBLE = phonenumbers.ValidationResult.IS_POSSIBLE
