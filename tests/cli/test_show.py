"""What is printed for programs is JSON; what is printed for people is aligned."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime

import pytest
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from erasable.cli import show


def test_json_has_no_constants_that_others_cannot_read(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    show.print_json({"a": [1.5, float("nan"), -float("inf")], "at": at, "name": "é"})
    printed = capsys.readouterr().out
    assert printed.isascii()
    found = json.loads(printed, parse_constant=pytest.fail)
    assert found == {"a": [1.5, None, None], "at": "2026-03-01T09:30:00+00:00", "name": "é"}


def test_json_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TypeError, match="object"):
        show.print_json({"a": object()})


def test_tables_are_aligned_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    show.table(["name", "records"], [("[red]a[/red]", "1"), (long, "1,000")], right="records")
    head, _, first, second = capsys.readouterr().out.splitlines()
    assert head.startswith("name ")
    assert head.rstrip().endswith("records")
    assert first.startswith("[red]a[/red] ")
    assert second.startswith(long)
    assert len(first) == len(second)


@pytest.mark.parametrize(
    ("cell", "shown"), [("a\nb", "a b"), ("\x1b[2Jx", r"\x1b[2Jx"), ("\u202ex", r"\u202ex")]
)
def test_no_cell_moves_the_cursor(
    cell: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show.table(["a"], [(cell,)])
    assert capsys.readouterr().out.splitlines()[-1].strip() == shown
    show.facts([("a", cell)])
    assert capsys.readouterr().out == f"a  {shown}\n"


def _by_rich(columns: list[str], rows: list[list[str]], right: str) -> str:
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        drawn.add_column(
            column, justify="right" if column in right.split(",") else "left", no_wrap=True
        )
    for row in rows:
        drawn.add_row(*map(Text, row))
    console = Console(file=io.StringIO(), width=2000)
    with console.capture() as captured:
        console.print(drawn, crop=False)
    return captured.get()


TABLES = [
    (["a"], [], ""),
    (["name", "records"], [], "records"),
    (["name", "records"], [["visits", "12"], ["x" * 120, "1,000"]], "records"),
    (["", "ü", "日本"], [["日本語", "", "e\u0301"], ["a", "long text", "👍"]], "ü"),
    (["a", "b"], [["[red]x[/red]", "on hold"], ["", "2026-03-01 (LATE: 1 day)"]], ""),
]


@pytest.mark.parametrize(("columns", "rows", "right"), TABLES)
def test_tables_are_laid_out_as_rich_does(
    columns: list[str], rows: list[list[str]], right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show.table(columns, rows, right=right)
    assert capsys.readouterr().out == _by_rich(columns, rows, right)


def test_a_terminal_has_styles_and_the_same_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for columns, rows, right in TABLES:
        stream = Terminal()
        monkeypatch.setattr("sys.stdout", stream)
        show.table(columns, rows, right=right)
        printed = stream.getvalue()
        assert "\x1b[1m" in printed
        assert re.sub(r"\x1b\[[0-9;]*m", "", printed) == _by_rich(columns, rows, right)
    assert "\x1b[1;31m2026" in printed
    assert "\x1b[33mon hold" in printed
