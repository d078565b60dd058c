from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from erasable.core.errors import InvalidIdsError, InvalidParameterError
from erasable.workspace.identity.canonical import TYPES, canonical, check_type, kind_of
from naming import named

SECRET = "Ann Bloggs"  # no message may repeat it
WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


@given(WHOLE)
@example(0)
@example(2**53 - 1)
def test_every_spelling_of_a_whole_number_agrees(number):
    spelled = str(number)
    same = [
        number, spelled, float(number), str(float(number)), f" {spelled}\t", f"{spelled}.000",
        Decimal(number), Decimal(f"{spelled}.00"), np.int64(number), np.float64(number),
        np.str_(spelled), Fraction(number),
    ]  # fmt: skip
    assume("e" not in str(float(number)))
    for kind in ("id", "integer"):
        assert {canonical(kind, value) for value in same} == {spelled}


@given(st.integers(0, 127))
def test_small_numpy_numbers_agree(number):
    kinds = (
        np.int8,
        np.uint8,
        np.int16,
        np.uint32,
        np.uint64,
        np.float16,
        np.float32,
        np.longdouble,
    )
    assert {canonical("id", kind(number)) for kind in kinds} == {str(number)}


@pytest.mark.parametrize("limit", [np.int8(127), np.int64(2**63 - 1), np.uint64(2**64 - 1)])
def test_largest_numpy_integers_do_not_overflow(limit):
    assert canonical("id", limit) == str(int(limit))


def test_whole_numbers_of_any_size_are_exact():
    assert canonical("id", 2**53 + 1) == str(2**53 + 1) != canonical("id", 2**53)
    assert canonical("id", Decimal(10**30 + 1)) == str(10**30 + 1)


@pytest.mark.parametrize(
    "value", [2.0**53, -(2.0**60), 1e300, np.float32(2**24), np.float16(2048)], ids=named
)
def test_floats_that_several_whole_numbers_round_to_are_refused(value):
    with pytest.raises(InvalidIdsError, match="floats hold exactly"):
        canonical("id", value)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("id", "007", "007"),
        ("id", "+7", "+7"),
        ("id", "7.50", "7.50"),
        ("id", "-0", "0"),
        ("id", -0.0, "0"),
        ("id", "-0.0", "0"),
        ("id", "-17.0", "-17"),
        ("id", "1e3", "1e3"),
        ("id", "\uff11\uff17", "17"),
        ("id", "  A-7\n", "A-7"),
        ("id", "Patient 7", "Patient 7"),
        ("id", "cafe\u0301", "caf\u00e9"),
        ("integer", "007", "7"),
        ("integer", " +007.0 ", "7"),
        ("integer", "-007", "-7"),
        ("integer", "-000", "0"),
        ("integer", "9" * 50, "9" * 50),
        ("email", " Alice@X.com ", "alice@x.com"),
        ("email", "STRASSE@X.DE", "strasse@x.de"),
        ("email", "straße@x.de", "strasse@x.de"),
        ("email", "CAFE\u0301@x.fr", "caf\u00e9@x.fr"),
        ("email", "\u0391\u03a3@x.gr", "\u03b1\u03c3@x.gr"),
        ("email", "\u03b1\u03c2@x.gr", "\u03b1\u03c3@x.gr"),
        ("email", "\u1fb3\u0323", "\u03b1\u0323\u03b9"),  # D145 of the Unicode Standard
        ("exact", " A ", " A "),
        ("exact", "17.0", "17.0"),
        ("exact", 17, "17"),
        ("exact", "e\u0301", "\u00e9"),
    ],
    ids=named,
)
def test_spellings_by_hand(kind, value, expected):
    assert canonical(kind, value) == expected
    assert canonical(f"staff/{kind}", value) == expected


@given(st.sampled_from(list(TYPES)), TEXT)
def test_canonical_is_idempotent(kind, text):
    try:
        once = canonical(kind, text)
    except InvalidIdsError:
        return
    assert canonical(kind, once) == once


@given(st.characters(exclude_categories=("Cs",)), st.sampled_from(["email", "id", "exact"]))
def test_canonical_is_idempotent_on_every_character(character, kind):
    for text in (f"a{character}", f"{character}a", f"a{character}\u0345", f"{character}\u0301"):
        once = canonical(kind, text)
        assert canonical(kind, once) == once
        assert canonical(kind, unicodedata.normalize("NFD", text)) == once


@given(TEXT)
def test_case_of_an_email_does_not_matter(text):
    try:
        expected = canonical("email", text)
    except InvalidIdsError:
        shown = unicodedata.normalize("NFKC", text)
        letters = [each for each in shown if "FILLER" not in unicodedata.name(each, "")]
        assert "@" in shown or not any(map(str.isalnum, letters))  # several addresses, or none
        return
    # The dotless i is another letter than i, and the only one whose capital is that of another.
    plain = expected.replace("\u0131", "i")
    assert canonical("email", plain.upper().casefold()) == canonical("email", plain)
    assert canonical("email", unicodedata.normalize("NFD", text)) == expected


@given(TEXT, TEXT)
def test_exact_parts_whatever_differs_when_composed(one, other):
    equal = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
    assert (canonical("exact", one) == canonical("exact", other)) is equal


UNFIT = [
    None, float("nan"), float("inf"), -float("inf"), 17.5, True, False, np.bool_(True), np.nan,
    np.float32("inf"), pd.NA, pd.NaT, b"17", ["17"], {"a": 1}, object, 3j, Decimal("NaN"),
    Decimal("sNaN"), Decimal("Infinity"), Decimal("1.5"), Decimal("1E+5000"), 10**2000,
    -(10**2000), "", " \t\u2003", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["id", "integer", "email", "x/id"])
@pytest.mark.parametrize("value", UNFIT, ids=named)
def test_what_cannot_be_an_identity_is_refused(kind, value):
    with pytest.raises(InvalidIdsError) as told:
        canonical(kind, value)
    assert "\n" not in str(told.value)
    assert str(told.value).count(";") == 2


@pytest.mark.parametrize("kind", ["email", "integer"])
@pytest.mark.parametrize("value", [17, 17.0, Decimal(17)], ids=named)
def test_emails_are_text(kind, value):
    if kind == "email":
        with pytest.raises(InvalidIdsError, match="expected text"):
            canonical(kind, value)
    else:
        assert canonical(kind, value) == "17"


@pytest.mark.parametrize("value", ["seven", "7.5", "0x7", "7 7", "--7", "7.", "1e3", SECRET])
def test_integers_are_digits(value):
    with pytest.raises(InvalidIdsError, match="whole number") as told:
        canonical("integer", value)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    "type",
    ["", "ID", "telephone", "phone:DE", "a/b/id", "/id", "a b/id", "id/", "\u00e9/id", "id\n",
     "x" * 70 + "/id", "a\0/id", 7, None],
    ids=named,
)  # fmt: skip
def test_unknown_types_are_refused(type):
    for call in (check_type, kind_of, lambda t: canonical(t, SECRET)):
        with pytest.raises(InvalidParameterError, match="no type of identity") as told:
            call(type)
        assert "\n" not in str(told.value)
        assert SECRET not in str(told.value)


def test_types_may_stand_in_a_namespace():
    assert kind_of("record.visits-2/id") == "id"
    assert check_type("a" * 61 + "/id") == "a" * 61 + "/id"


def test_the_documentation_has_each_type():
    page = (Path(__file__).parents[3] / "docs" / "workspace.md").read_text()
    rows = re.findall(r"^\| `([a-z]+)`(?: \(the default\))? \| (.*) \|$", page, re.MULTILINE)
    assert dict(rows[: len(TYPES)]) == {each.name: each.same for each in TYPES.values()}
    assert [name for name, _ in rows[: len(TYPES)]] == list(TYPES)
