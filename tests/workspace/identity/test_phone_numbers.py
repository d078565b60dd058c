"""Telephone numbers of one subscriber are one identity, however they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.running import erasable
from erasable.core.errors import InvalidIdsError, InvalidParameterError
from erasable.workspace import Workspace
from erasable.workspace.identity.canonical import canonical, declared, former
from naming import named

SPELLINGS = [
    ("+491701234567", "DE", text)
    for text in (
        "0170 1234567", "0170/123-4567", "(0170) 123 45 67", "01701234567", "0049 170 1234567",
        "+49 (0)170 1234567", "+49-170-1234567", " +491701234567\n", "tel:+49-170-1234567",
        "\uff0b49 170 1234567", "+49\u200b170\u00a01234567", "1701234567",
        "tel:0170-1234567;phone-context=+49", "Tel. 0170 1234567",
    )
] + [
    ("+493012345678", "DE", "(030) 123 456 78"), ("+493012345678", "AT", "+49 30 12345678"),
    ("+12125550123", "US", "(212) 555-0123"), ("+12125550123", None, "+1 (212) 555-0123"),
    ("+390612345678", "IT", "06 1234 5678"), ("+442079460018", "GB", "020 7946 0018"),
    ("+33123456789", "FR", "01 23 45 67 89"), ("+18003569377", "US", "1-800-FLOWERS"),
    ("+493012345678;ext=7", "DE", "030 12345678 ext. 7"),
    ("+493012345678;ext=7", None, "tel:+49-30-12345678;ext=7"),
]  # fmt: skip


@pytest.mark.parametrize(("plain", "region", "text"), SPELLINGS, ids=named)
def test_it_has_one_spelling(plain: str, region: str | None, text: str) -> None:
    assert canonical("phone", text, region) == plain
    assert canonical("staff/phone", text, region) == plain
    assert canonical("phone", plain) == canonical("phone", plain, "JP") == plain
    assert former("phone", text) is None


@pytest.mark.parametrize("value", [1701234567, 1701234567.0], ids=named)
def test_numbers_of_a_table_are_read(value: float) -> None:
    assert canonical("phone", value, "DE") == "+491701234567"


@pytest.mark.parametrize(
    "value",
    ["0170 1234567", "0049 170 1234567", "1", "+", "+49", "abc", "+49 1", "Ann Bloggs", "n/a",
    "1e10",
     "+999 123456789", "0170 1234567, 0171 7654321", "ann@x.org", "+49 170 1234567 1234567 1234567",
     1701234567, 7.5, True, "-17"],
    ids=named,
)  # fmt: skip
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidIdsError, match="expected") as told:
        canonical("phone", value)
    assert "Bloggs" not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("value", "region", "plain"),
    [
        ("491701234567", "DE", None), (491701234567, "DE", None), ("0491 7012345", "DE",
        "+494917012345"), ("49 170 1234567", "DE", None), ("(49) 170/1234567", "DE", None),
        ("Tel. 49 170 1234567", "DE", None), ("49-170-1234567 ext. 7", "DE", None),
        ("1 212 555 0123", "US", "+12125550123"), ("(212) 555-0123", "US", "+12125550123"),
        ("12125550123", "US", "+12125550123"), ("3912345678", "IT", "+393912345678"),
        ("447911123456", "GB", "+447911123456"), ("+491701234567", "DE", "+491701234567"),
    ],
    ids=named,
)  # fmt: skip
def test_digits_that_may_lack_a_plus_are_refused(
    value: object, region: str, plain: str | None
) -> None:
    if plain is not None:
        assert canonical("phone", value, region) == plain
        return
    with pytest.raises(InvalidIdsError, match="country code"):
        canonical("phone", value, region)


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("+49 170 1234567 (mobil)", None), ("0170 1234567 mobil", "DE"), ("+49 17O 1234567", None),
        ("0170 12345-67 or so", "DE"), ("+49 30 123456 ext 5 ext 6", None),
        ("030 123456 home ext. 7", "DE"), ("+49 170 l234567", None), ("+49 (O)170 1234567", None),
    ],
    ids=named,
)  # fmt: skip
def test_letters_that_are_not_digits_are_refused(text: str, region: str | None) -> None:
    with pytest.raises(InvalidIdsError, match="expected a telephone number"):
        canonical("phone", text, region)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1-800-FLOWERS", "+18003569377"), ("Tel.: 1-800-FLOWERS ext 7", "+18003569377;ext=7"),
        ("+1 800 FLOWERS", "+18003569377"), ("(212) 555-0123 x5", "+12125550123;ext=5"),
        ("212-555-0123 #12", "+12125550123;ext=12"), ("Home: 212-555-0123", "+12125550123"),
    ],
    ids=named,
)  # fmt: skip
def test_letters_of_numbers_and_of_extensions_are_read(text: str, plain: str) -> None:
    assert canonical("phone", text, "US") == plain


def test_a_number_within_a_city_is_refused() -> None:
    with pytest.raises(InvalidIdsError, match="country code"):
        canonical("phone", "555-0123", "US")


@given(st.text(max_size=20), st.sampled_from(["DE", "US", "IT", None]))
def test_canonical_is_idempotent(text: str, region: str | None) -> None:
    try:
        once = canonical("phone", text, region)
    except InvalidIdsError:
        return
    assert canonical("phone", once) == canonical("phone", once, "FR") == once


@given(st.integers(10**7, 10**11), st.sampled_from(["DE", "US", "IT", "GB", "CI", "AR", "MX"]))
def test_numbers_are_the_same_with_and_without_the_country(number: int, region: str) -> None:
    try:
        once = canonical("phone", f"0{number}", region)
    except InvalidIdsError:
        return
    spaced = " ".join((once[:3], once[3:6], once[6:]))
    assert canonical("phone", spaced) == canonical("phone", once) == once


def test_declared_types() -> None:
    assert declared("phone") == ("phone", None)
    assert declared("staff/phone:DE") == ("staff/phone", "DE")
    for text in ("phone:UK", "phone:de", "phone:", "phone:DEU", "phone:DE:FR"):
        with pytest.raises(InvalidParameterError, match="two letters of ISO 3166"):
            declared(text)
    with pytest.raises(InvalidParameterError, match="names a region"):
        declared("email:DE")
    for text in ("fax:DE", "id/phone/x", 7, None):
        with pytest.raises(InvalidParameterError, match="no type of identity"):
            declared(text)  # type: ignore[arg-type]


# -- in a workspace --------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.create(tmp_path / "ws")
    german = tmp_path / "german.csv"
    german.write_text("n,call\n1,0170/1234567\n2,+33 1 23 45 67 89\n3,\n4,+49 (0)170 1234567\n")
    made.add_dataset("german", german, id_column="n", subjects=["call:phone:DE"])
    french = tmp_path / "french.csv"
    french.write_text("n,a:b\n1,01 23 45 67 89\n2,+49 170 1234567\n3,06 12 34 56 78\n")
    made.add_dataset("french", french, id_column="n", subjects=[("a:b", "phone:FR")])
    return made


def test_a_request_finds_a_number_in_every_country(workspace: Workspace) -> None:
    workspace.request(["tel:+49-170-1234567"])
    assert workspace.process().n_records == 3
    assert [each["n_records"] for each in workspace.datasets()] == [2, 2]
    types = {each["column"]: each["type"] for d in workspace.datasets() for each in d["subjects"]}
    assert types == {"call": "phone", "a:b": "phone"}
    shown = erasable("dataset", "list", folder=workspace.context.root).output
    assert "call:phone:DE" in shown
    assert "a:b:phone:FR" in shown


def test_nobody_comes_back_in_another_spelling(workspace: Workspace, tmp_path: Path) -> None:
    workspace.request(["+33 123456789"], type="phone")
    workspace.process()
    later = tmp_path / "later.csv"
    later.write_text("n,call\n7,0033 1 23 45 67 89\n8,0171 7654321\n")
    assert workspace.append("german", later).n_suppressed == 1
    later.write_text("n,a:b\n7,01-23-45-67-89\n8,01 71 76 54 32\n")
    assert workspace.append("french", later).n_suppressed == 1
    assert workspace.sync("french", later).n_records == 1


@pytest.mark.parametrize("number", ["0170 1234567", "01701234567", "(0170) 1234567"])
def test_a_request_without_a_country_code_is_not_told_no_match(
    workspace: Workspace, tmp_path: Path, number: str
) -> None:
    with pytest.raises(InvalidIdsError, match="country code, as in"):
        workspace.request([number])
    with pytest.raises(InvalidIdsError, match=r"country code, as in \+49"):
        workspace.request([number], type="phone")
    other = tmp_path / "other.csv"
    other.write_text(f'n,who\n1,"{number}"\n2,x\n')
    workspace.add_dataset("other", other, id_column="n", subjects=["who:id"])
    workspace.request([number])  # somebody of that id is known
    assert workspace.process().n_records == 1


def test_a_number_that_cannot_be_read_is_told_with_its_row(
    workspace: Workspace, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("n,call\n1,+49 170 1234567\n2,\n3,0170 1234567\n4,unknown\n")
    told = r"'call' has 2 values that cannot name a person in the rows up to 5, the first in row 4"
    with pytest.raises(InvalidIdsError, match=told) as error:
        workspace.add_dataset("bad", bad, id_column="n", subjects=["call:phone"])
    assert "0170" not in str(error.value)
    told = told.replace("2 values", "1 value").replace("row 4", "row 5")
    with pytest.raises(InvalidIdsError, match=told):
        workspace.add_dataset("bad", bad, id_column="n", subjects=["call:phone:DE"])


def test_an_id_may_be_a_number(tmp_path: Path) -> None:
    made = Workspace.create(tmp_path / "ids")
    source = tmp_path / "d.csv"
    source.write_text("call,n\n0170 1234567,1\n0171 1234567,2\n")
    made.add_dataset("d", source, id_column="call", subjects=["call:phone:DE"])
    made.request(["+49 171 1234567"])
    assert made.process().n_records == 1


def test_types_that_there_are_not(workspace: Workspace, tmp_path: Path) -> None:
    source = tmp_path / "german.csv"
    for subject, told in [
        ("call:phone:UK", "'UK'"),
        ("call:phone:", "''"),
        ("call:DE", "call:DE:id"),
    ]:
        with pytest.raises(InvalidParameterError, match=told):
            workspace.add_dataset("d", source, id_column="n", subjects=[subject])
