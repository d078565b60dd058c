from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import InvalidParameterError
from erasable.workspace.requests.regulations import REGULATIONS, due, extended
from naming import named

# By hand, after Regulation 1182/71 Art. 3(2)(c): the same date of the last month, or its last day.
ONE_MONTH = [
    ((2026, 1, 15), (2026, 2, 15)),
    ((2026, 1, 28), (2026, 2, 28)),
    ((2026, 1, 29), (2026, 2, 28)),
    ((2026, 1, 31), (2026, 2, 28)),
    ((2024, 1, 29), (2024, 2, 29)),
    ((2024, 1, 31), (2024, 2, 29)),
    ((2000, 1, 31), (2000, 2, 29)),
    ((2100, 1, 31), (2100, 2, 28)),
    ((2024, 2, 29), (2024, 3, 29)),
    ((2026, 3, 31), (2026, 4, 30)),
    ((2026, 4, 30), (2026, 5, 30)),
    ((2026, 11, 30), (2026, 12, 30)),
    ((2026, 12, 1), (2027, 1, 1)),
    ((2026, 12, 31), (2027, 1, 31)),
]
TWO_FURTHER_MONTHS = [
    ((2026, 2, 28), (2026, 4, 28)),
    ((2026, 10, 31), (2026, 12, 31)),
    ((2026, 11, 30), (2027, 1, 30)),
    ((2026, 12, 31), (2027, 2, 28)),
    ((2027, 12, 31), (2028, 2, 29)),
]
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


def at(day: tuple[int, int, int]) -> datetime:
    return datetime(*day, 16, 30, 12, 345678, tzinfo=UTC)


@pytest.mark.parametrize("regulation", ["gdpr", "uk-gdpr"])
@pytest.mark.parametrize(("received", "expected"), ONE_MONTH, ids=named)
def test_gdpr_gives_one_month(regulation, received, expected):
    assert due(regulation, at(received)) == at(expected)


@pytest.mark.parametrize("regulation", ["gdpr", "uk-gdpr"])
@pytest.mark.parametrize(("first", "expected"), TWO_FURTHER_MONTHS, ids=named)
def test_gdpr_extends_by_two_months(regulation, first, expected):
    assert extended(regulation, at(first)) == at(expected)


@pytest.mark.parametrize(
    ("received", "expected"),
    [((2026, 1, 1), (2026, 2, 15)), ((2024, 2, 1), (2024, 3, 17)), ((2026, 12, 1), (2027, 1, 15))],
    ids=named,
)
def test_ccpa_gives_45_days(received, expected):
    assert due("ccpa", at(received)) == at(expected)


def test_ccpa_extends_to_90_days_in_all():
    assert extended("ccpa", due("ccpa", at((2026, 1, 1)))) == at((2026, 4, 1))


def test_no_regulation_sets_no_date():
    assert due("none", at((2026, 1, 1))) is None


@given(MOMENTS)
def test_gdpr_ends_in_the_next_month_on_the_same_date_or_its_last(received):
    answer = due("gdpr", received)
    assert (answer.year * 12 + answer.month) - (received.year * 12 + received.month) == 1
    assert answer.timetz() == received.timetz()
    last = monthrange(answer.year, answer.month)[1]
    assert answer.day == received.day or (answer.day == last < received.day)


@given(MOMENTS, st.sampled_from(["gdpr", "ccpa"]))
def test_extension_is_later_and_never_beyond_what_the_law_gives(received, regulation):
    first = due(regulation, received)
    last = extended(regulation, first)
    assert received < first < last
    assert last - received <= timedelta(days=92 if regulation == "gdpr" else 90)


def test_time_of_another_zone_counts_by_its_date_in_utc():
    received = datetime(2026, 2, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))  # 31 January, UTC
    assert due("gdpr", received) == datetime(2026, 2, 28, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize("regulation", ["GDPR", "", "hipaa", "x" * 500], ids=named)
def test_unknown_regulation_is_refused(regulation):
    for count in (due, extended):
        with pytest.raises(
            InvalidParameterError, match="expected one of gdpr, uk-gdpr, ccpa, none"
        ) as told:
            count(regulation, at((2026, 1, 1)))
        assert "\n" not in str(told.value)
        assert len(str(told.value)) < 200


def test_time_without_zone_is_refused():
    with pytest.raises(InvalidParameterError, match="no zone"):
        due("gdpr", datetime(2026, 1, 1))


def test_nothing_to_extend_without_regulation():
    with pytest.raises(InvalidParameterError, match="nothing to extend"):
        extended("none", at((2026, 1, 1)))


SOURCE = Path(__file__).parents[3] / "src" / "erasable"


def test_ledger_has_room_for_the_name_of_each():
    assert all(name == row.name and len(name) <= 8 for name, row in REGULATIONS.items())


def test_no_other_module_knows_a_regulation():
    """What any other names is the default, GDPR, and "none" for what the workspace itself asks."""
    others = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.html")]
    others.remove(SOURCE / "workspace" / "requests" / "regulations.py")
    rows = [row for name, row in REGULATIONS.items() if name not in ("gdpr", "none")]
    words = re.compile("|".join(f"{row.name}|{row.title}" for row in rows), re.IGNORECASE)
    assert [path for path in others if words.search(path.read_text(encoding="utf-8"))] == []
    compared = re.compile(r"regulation\b[^\n]*(==|!=|\bin\b) *[\[(\"']")
    assert [path for path in others if compared.search(path.read_text(encoding="utf-8"))] == []


def test_docs_have_a_sentence_about_each():
    page = (SOURCE.parents[1] / "docs" / "workspace.md").read_text(encoding="utf-8")
    listed = page.partition("When a request is due")[2].partition("\n\n")[2].partition("\n\n")[0]
    told = dict(re.findall(r"- `(.+)`: (.+)\.", listed))
    assert list(told) == list(REGULATIONS)
    for name, row in REGULATIONS.items():
        said = re.sub(r" \(.*?\)\)?", "", told[name])
        if row.due is None:
            assert said == "no due date"
        else:
            assert said == f"{row.due.words()}, and once {row.extension.words('further ')}"
            assert f"({row.title}" in told[name]
