"""The page that shows a workspace: whole, honest, and without anybody's name."""

from __future__ import annotations

import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sites import make_site, visits, write_csv

from erasable.core.errors import WorkspaceError
from erasable.workspace import Workspace

VOID = {"meta", "br", "link", "path", "use", "rect"}


class Balanced(HTMLParser):
    """Demands that every tag that opens closes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass


@pytest.fixture
def page(tmp_path: Path) -> str:
    site, clock = make_site(tmp_path / "ws")
    workspace = Workspace(site)
    write_csv(tmp_path / "visits.csv", visits(90))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    workspace.register("elsewhere", datasets=["visits"])
    workspace.request(["marker-patient-3", "nobody"])
    clock.at += timedelta(days=3)
    workspace.process()
    late = workspace.request(["marker-patient-5"])[0]
    workspace.hold(late.id, "<script>alert(1)</script>")
    clock.at += timedelta(days=60)
    workspace.verify()
    workspace.report(tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_it_shows_what_there_is(page: str) -> None:
    Balanced().feed(page)
    text = re.sub(r"<[^>]+>", " ", page)
    text = re.sub(r"\s+", " ", text)
    assert "1 past their due date" in text
    assert "2 completed requests" in text
    assert "3 records erased" in text
    assert "no match" in text
    assert "not covered" in text
    assert "GaussianNB" in text
    assert "equal" in text
    assert page.count("<svg") == 2


def test_it_needs_nothing_else_and_names_nobody(page: str) -> None:
    assert re.findall(r"(?:src|href)=[\"'](?!#)[^\"']+", page) == []
    assert "@import" not in page
    assert "<script" not in page
    assert "marker" not in page


def test_an_empty_workspace_has_a_page_too(tmp_path: Path) -> None:
    site, _ = make_site(tmp_path / "ws")
    workspace = Workspace(site)
    workspace.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    Balanced().feed(text)
    assert text.count("None yet.") == 3
    with pytest.raises(WorkspaceError, match="make it first"):
        workspace.report(tmp_path / "nowhere" / "page.html")
    assert workspace.status()["requests"] == {}
