"""The page of an audit: whole, on its own, and safe whatever an id is."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from erasable.audit import AuditReport, Exposed, Rate, ReportGroup
from erasable.audit._statistics import Separation, separate

VOID = {"meta", "line", "polyline"}
HOSTILE = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</td></table>", "'&amp;",
    "\u202egnp.exe", "a\nb\0c", "\ud800", 17,
]  # fmt: skip


class Reader(HTMLParser):
    """Demands that every tag that opens closes, in order; collects tags, references and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action") or name.startswith("on"):
                self.references.append(f"{name}={value}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text += data


@pytest.fixture
def report() -> AuditReport:
    source = np.random.default_rng(0)
    members, others = source.normal(1.0, 1.0, 300), source.normal(0.0, 1.0, 400)
    return AuditReport(
        "membership", "found", "The model reveals it.", "It does not say all.", judged="model",
        access="recipe and data", attack="RMIA, 4 references", level=0.05,
        plan=("an AUC of 0.6 is found",),
        groups=(
            ReportGroup("audited records", separate(members, others), {"mean rank": math.nan}),
            ReportGroup("control", separate(others[:200], others[200:])),
            ReportGroup("untested", None, {"distance": 0.25}),
        ),
        exposed=tuple(Exposed(each, 0.5) for each in HOSTILE),
        notes=("2 of the others were left out",), parameters={"gamma": 2.0}, seconds=1.25,
    )  # fmt: skip


def test_the_page_is_whole_and_says_all(report: AuditReport) -> None:
    page = report.to_html()
    found = Reader(page)
    said = (
        report.sentence, report.unsaid, *report.plan, *report.notes, "gamma", "1.25", "0.25",
        "RMIA, 4 references", "recipe and data", "untested",
    )  # fmt: skip
    assert all(each in found.text for each in said)
    assert found.text.index(report.sentence) < found.text.index(report.unsaid)
    assert page.startswith("<!doctype html>")


def test_it_refers_to_nothing_outside(report: AuditReport) -> None:
    page = report.to_html()
    found = Reader(page)
    assert found.references == []
    assert not {"script", "link", "img", "iframe", "object", "style src"} & set(found.tags)
    assert not re.search(r"url\(|@import|https?://", page)
    assert "prefers-color-scheme" in page


def test_ids_are_texts_and_nothing_else(report: AuditReport) -> None:
    found = Reader(report.to_html())
    for each in HOSTILE[:4]:
        assert str(each) in found.text
    assert r"\u202egnp.exe" in found.text
    assert r"a\nb\x00c" in found.text
    assert "17" in found.text
    report.to_html().encode()


def test_without_escapes_they_would_be_more(
    report: AuditReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jinja2.runtime.escape", str)  # which templates take from there
    one = replace(report, exposed=(Exposed("<script>alert(1)</script>", 0.5),))
    assert "script" in Reader(one.to_html()).tags
    with pytest.raises((AssertionError, IndexError)):
        Reader(replace(report, exposed=(Exposed("</td></table>", 0.5),)).to_html())


@pytest.mark.parametrize("field", ["sentence", "unsaid", "attack", "access", "plan", "notes"])
def test_every_text_is_escaped(report: AuditReport, field: str) -> None:
    hostile = "<script>x</script>"
    value = (hostile,) if field in ("plan", "notes") else hostile
    found = Reader(replace(report, **{field: value}).to_html())
    assert hostile in found.text
    assert "script" not in found.tags


def test_names_of_groups_and_parameters_are_escaped(report: AuditReport) -> None:
    name = '"><script>x</script>'
    groups = (ReportGroup(name, report.groups[0].separation, {name: 0.1}),)
    found = Reader(replace(report, groups=groups, parameters={name: name}).to_html())
    assert "script" not in found.tags
    assert found.references == []


def test_what_was_not_measured_is_no_number(report: AuditReport) -> None:
    rate = Rate(0.001, math.nan, math.nan, math.nan, math.nan, 1000)
    assert report.groups[0].separation is not None
    page = report.to_html()
    text = Reader(page).text
    assert "not measured (needs 1000 other records)" in text  # 400 are too few for 0.1 %
    assert "nan" not in text.lower()
    assert "nan" not in page[page.index("<svg") : page.index("</svg>")]
    assert str(rate).startswith("not measured")


def test_a_report_of_words_alone_has_a_page(report: AuditReport) -> None:
    bare = replace(report, groups=(), exposed=(), plan=(), notes=(), parameters={})
    found = Reader(bare.to_html())
    assert "table" not in found.tags
    assert "svg" not in found.tags
    assert report.sentence in found.text


def test_it_is_written_to_a_file(report: AuditReport, tmp_path: Path) -> None:
    page = report.to_html(tmp_path / "audit.html")
    assert (tmp_path / "audit.html").read_text("utf-8") == page


def test_a_curve_lies_where_it_should() -> None:
    """A curve that is known: half are found before anybody is suspected, all at a tenth."""
    found = separate([3.0] * 50 + [1.0] * 50, [1.0] * 10 + [0.0] * 90, rates=())
    (line,) = _drawn([("it", found)])
    left, bottom, top = 52.0, 314.0, 14.0
    half = top + 300.0 * -math.log10(0.5) / 3.0
    assert line[0] == pytest.approx((left, half), abs=0.1)
    assert line[-1] == pytest.approx((left + 300.0, top), abs=0.1)
    at_a_tenth = left + 300.0 * 2.0 / 3.0
    before = [y for x, y in line if x < at_a_tenth - 2.0]
    assert before == pytest.approx([half] * len(before), abs=0.1)
    assert min(x for x, y in line if y == pytest.approx(top, abs=0.1)) == pytest.approx(
        at_a_tenth, abs=2.0
    )
    assert max(y for _, y in line) <= bottom


def test_curves_are_few_points_whatever_they_come_of() -> None:
    source = np.random.default_rng(1)
    found = separate(source.normal(size=5000), source.normal(size=5000))
    assert len(found.curve) > 5000
    for line in _drawn([("a", found), ("b", found)]):
        assert 2 <= len(line) <= 200
        assert sorted(x for x, _ in line) == [x for x, _ in line]
        assert sorted((y for _, y in line), reverse=True) == [y for _, y in line]


def _drawn(groups: list[tuple[str, Separation]]) -> list[list[tuple[float, float]]]:
    report = AuditReport(
        "membership", "found", "It is.", "Not all.", judged="model", access="data", attack="A",
        level=0.05, groups=tuple(ReportGroup(*each) for each in groups),
    )  # fmt: skip
    page = report.to_html()
    root = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + len("</svg>")])
    assert root.find("title") is not None
    assert root.find("desc") is not None
    texts = ["".join(each.itertext()) for each in root.iter("text")]
    assert all(name in texts for name, _ in groups)
    return [
        [tuple(map(float, pair.split(","))) for pair in each.attrib["points"].split()]  # type: ignore[misc]
        for each in root.iter("polyline")
    ]
