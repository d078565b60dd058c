"""What is printed for programs is JSON; what is printed for people is aligned."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

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
