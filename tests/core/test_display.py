"""What a notebook shows: tables in which every value is escaped, read again by a parser of HTML."""

from __future__ import annotations

import importlib
import json
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import erasable
from erasable.audit import AuditReport
from erasable.core.display import Listing, facts, table
from erasable.preprocessing import MinMaxScaler
from erasable.selection import balance
from pages import module_of

PAGE = module_of("docs", "twin_table")


class _Cells(HTMLParser):
    """The texts of the cells, and the tags that were met."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self._is_open = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        assert attrs == []
        self._is_open = tag in ("td", "th", "b", "p")
        if self._is_open:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_open = False

    def handle_data(self, data: str) -> None:
        if self._is_open:
            self.cells[-1] += data


PRINTABLE = st.text(st.characters(exclude_categories=["C", "Z"]))


@given(PRINTABLE, PRINTABLE)
def test_every_text_is_shown_as_it_is(name: str, value: str) -> None:
    shown = name.replace("_", " ")
    assert _Cells(facts(name, {name: value})).cells == ["", name, shown, value]
    assert _Cells(table([{name: value}])).cells == [shown, value]
    assert _Cells(facts(name, {name: value})).tags <= {"p", "b", "table", "tr", "th", "td"}


def test_what_cannot_be_seen_is_written_out() -> None:
    assert _Cells(table([{"id": "a\u202eb\0"}])).cells == ["id", "a\\u202eb\\x00"]


def test_a_report_of_a_deletion() -> None:
    model = MinMaxScaler().fit([[1.0], [2.0], [3.0]], ids=["a", "b", "c"])
    cells = _Cells(model.delete(["b"])._repr_html_()).cells
    assert "deleted 1 record" in cells
    assert cells[cells.index("exactness") + 1] == "bitwise"
    assert cells[cells.index("digest after") + 1] == model.digest()


def test_a_report_of_an_audit() -> None:
    report = AuditReport(
        "membership", "not found", "Nothing was <found>.", "Other attacks may find more.",
        judged="model", access="recipe and data", attack="RMIA, 4 references", level=0.05,
    )  # fmt: skip
    cells = _Cells(report._repr_html_()).cells
    assert "Nothing was <found>." in cells
    assert "Other attacks may find more." in cells


def test_a_long_list_says_how_many_there_are() -> None:
    rows = Listing({"n": i} for i in range(1000))
    assert len(_Cells(rows._repr_html_()).cells) < 100
    assert "940 more" in rows._repr_html_()
    assert _Cells(Listing[Any]()._repr_html_()).cells == ["none"]


def test_a_workspace_and_its_lists(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from erasable.workspace import Workspace

    (tmp_path / "v.csv").write_text("visit,patient,age,sick\n" + "".join(
        f"v{i},p{i // 2},{30 + i},{i % 2}\n" for i in range(40)
    ))  # fmt: skip
    workspace = Workspace.create(tmp_path / "ws")
    assert workspace.requests() == workspace.models() == []
    workspace.add_dataset("visits", tmp_path / "v.csv", id_column="visit", subjects=["patient"])
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    (request,) = workspace.request(["p7"])
    cells = _Cells(workspace._repr_html_()).cells
    assert cells[cells.index("records") + 1] == "40"
    assert cells[cells.index("requests") + 1] == "pending 1"
    assert "risk" in _Cells(workspace.models()._repr_html_()).cells
    assert request.id in _Cells(workspace.requests()._repr_html_()).cells
    assert "visits" in _Cells(workspace.datasets()._repr_html_()).cells
    assert repr(workspace) == f"Workspace({str(tmp_path / 'ws')!r})"
    workspace.process()
    receipt = workspace.receipt(request.id)
    cells = _Cells(receipt._repr_html_()).cells
    assert f"receipt of {request.id}" in cells
    assert cells[cells.index("outcome") + 1] == "erased"
    assert cells[cells.index("records") + 1] == "2"
    assert cells[-4:] == ["model", "risk", "2", "deleted"]
    assert "in-toto" in b64decode(json.loads(receipt)["envelope"]["payload"]).decode()
    choice = workspace.select(tmp_path / "v.csv", 4, 0.9, id_column="visit", target="sick")
    cells = _Cells(choice._repr_html_()).cells
    assert "chosen 4 of 40 records" in cells
    assert {"anticipating", "conventional"} <= {*cells}


def test_the_balance_of_a_selection() -> None:
    cells = _Cells(balance(["ill", "ill", "well", "well"], [0, 2, 3])._repr_html_()).cells
    assert cells[:3] == ["group", "n data", "n selected"]
    assert cells[7:10] == ["ill", "2", "1"]


# -- diagrams of estimators ------------------------------------------------------------------------


class _Boxes(HTMLParser):
    """The texts of boxes: names, and columns; not their parameters."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._boxes = self._hints = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._boxes += tag in ("label", "pre")
        self._hints += tag in ("a", "span")

    def handle_endtag(self, tag: str) -> None:
        self._boxes -= tag in ("label", "pre")
        self._hints -= tag in ("a", "span")

    def handle_data(self, data: str) -> None:
        if self._boxes and not self._hints and data.strip():
            self.texts.append(" ".join(data.split()))


def _shown(model: Any) -> list[str]:
    return _Boxes(model._repr_html_()).texts


def _compositions(library: str, rest: Any) -> Any:
    def of(module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"{library}.{module}"), name)

    scaler, pipe = of("preprocessing", "StandardScaler"), of("pipeline", "make_pipeline")
    parts = [("one", scaler(with_std=False), ["a"]), ("two", pipe(scaler(), "passthrough"), ["b"])]
    columns = of("compose", "ColumnTransformer")([*parts, ("gone", "drop", ["d"])], remainder=rest)
    return pipe(columns, of("linear_model", "Ridge")(alpha=2.0))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("rest", ["drop", "passthrough"])
def test_a_diagram_shows_the_steps_that_scikit_learn_shows(rest: Any) -> None:
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    ours, theirs = (_compositions(library, rest) for library in ("erasable", "sklearn"))
    assert _shown(ours) == _shown(theirs)
    assert {"one", "two", "['a']", "StandardScaler"} <= {*_shown(ours)}
    assert _shown(ours) != _shown(ours[:1])
    (ours.fit(frame, [1.0, 2.0, 3.0, 4.0]), theirs.fit(frame, [1.0, 2.0, 3.0, 4.0]))
    assert _shown(ours) == _shown(theirs)
    assert ("['c']" in _shown(ours)) is (rest == "passthrough")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", PAGE.twins())
def test_every_model_has_a_diagram(name: str, tmp_path: Path) -> None:
    model = PAGE.made(name, theirs=False)
    kind = type(model).__name__
    assert kind in _shown(model)
    model.fit(*PAGE.data_for(name)).delete([0])
    assert kind in _shown(model)
    model.save(tmp_path / "model")
    assert kind in _shown(erasable.load(tmp_path / "model"))
