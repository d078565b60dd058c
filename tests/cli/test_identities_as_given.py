"""What a user gives is taken as it is: spaces, case and separators belong to the identity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.running import erasable, told
from erasable.cli import identities, options
from erasable.core.errors import InvalidIdsError

NAMES = ["alice", " alice", "alice ", " alice ", "\talice", "Alice", "ali\x0bce", "ali\u2028ce",
         "ali,ce", "ali\x85ce", "ali\x1cce"]  # fmt: skip
"""Eleven people, of type exact; `str.splitlines`, `strip` and `lower` take some for others."""


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"v{i},{_quoted(name)},{i}" for i, name in enumerate(NAMES)]
    (tmp_path / "visits.csv").write_bytes("\n".join(["visit,who,age", *rows, ""]).encode())
    told("init", folder=tmp_path)
    told("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "who:exact",
         folder=tmp_path)  # fmt: skip
    return tmp_path


def _n_records(folder: Path, name: str) -> int:
    (folder / "one.txt").write_bytes(f"{name}\n".encode())
    shown = told("subject", "show", "--file", "one.txt", "--type", "exact", folder=folder)
    return sum(shown["datasets"].values())


def _erased(folder: Path) -> list[str]:
    return [name for name in NAMES if not _n_records(folder, name)]


@pytest.mark.parametrize("end", ["\n", "\r\n", ""], ids=["lf", "crlf", "none"])
@pytest.mark.parametrize("n", [3, 6, 7])
def test_a_request_erases_the_one_that_the_line_names(folder: Path, n: int, end: str) -> None:
    (folder / "who.txt").write_bytes((NAMES[n] + end).encode())
    told("request", "--file", "who.txt", "--type", "exact", folder=folder)
    assert told("process", folder=folder)["n_records"] == 1
    assert _erased(folder) == [NAMES[n]]


def test_all_lines_of_a_file(folder: Path) -> None:
    wanted = NAMES[1:]
    (folder / "who.txt").write_bytes("\r\n".join([*wanted, "", "  ", ""]).encode())
    taken = told("request", "--file", "who.txt", "--type", "exact", folder=folder)["requests"]
    assert len(taken) == len(wanted)
    told("process", folder=folder)
    assert _erased(folder) == wanted


def test_who_is_let_in_again_is_the_one_that_the_line_names(folder: Path) -> None:
    (folder / "who.txt").write_bytes(b"alice\n alice \n")
    told("request", "--file", "who.txt", "--type", "exact", folder=folder)
    told("process", folder=folder)
    (folder / "one.txt").write_bytes(b" alice \n")
    told("suppress", "release", "--file", "one.txt", "--type", "exact", folder=folder)
    told("dataset", "sync", "visits", folder=folder)
    assert _erased(folder) == ["alice"]


def test_two_that_are_linked_are_those_of_the_lines(folder: Path) -> None:
    (folder / "two.txt").write_bytes(b" alice \nAlice\n")
    told("subject", "link", "--file", "two.txt", "--type", "exact", "--other-type", "exact",
         folder=folder)  # fmt: skip
    assert {name: _n_records(folder, name) for name in NAMES} == {
        name: 2 if name in (" alice ", "Alice") else 1 for name in NAMES
    }


@pytest.mark.parametrize("type_", ["id", "email"])
def test_other_types_spell_as_they_did(tmp_path: Path, type_: str) -> None:
    (tmp_path / "visits.csv").write_text("visit,who,age\nv1,p@x.org,3\nv2,q@x.org,4\n")
    told("init", folder=tmp_path)
    told("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", f"who:{type_}",
         folder=tmp_path)  # fmt: skip
    (tmp_path / "who.txt").write_text("\n  p@x.org \n \n")
    told("request", "--file", "who.txt", "--type", type_, folder=tmp_path)
    assert told("process", folder=tmp_path)["n_records"] == 1


def test_carriage_returns_within_lines_are_refused(folder: Path) -> None:
    (folder / "who.txt").write_bytes(b"alice\r alice \r")
    result = erasable("request", "--file", "who.txt", "--type", "exact", folder=folder)
    assert result.exit_code == 2
    assert "carriage returns within lines" in result.output
    assert "alice" not in result.output
    assert not told("requests", folder=folder)["requests"]


@pytest.mark.parametrize(
    "broken",
    [str.strip, str.lower, str.rstrip, lambda each: each.splitlines()[0]],
    ids=["strip", "lower", "rstrip", "splitlines"],
)
def test_the_names_tell_whoever_changes_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: Callable[[str], str]
) -> None:
    """A negative control: each change of a line makes two of the names one."""
    path = tmp_path / "who.txt"
    path.write_bytes("\n".join(NAMES).encode())
    assert identities.gathered([], str(path)) == NAMES
    right: Any = identities._lines
    monkeypatch.setattr(identities, "_lines", lambda file: [broken(each) for each in right(file)])
    assert identities.gathered([], str(path)) != NAMES


def test_a_file_of_blank_lines_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "who.txt"
    path.write_bytes(b" \r\n\n\t\n")
    with pytest.raises(InvalidIdsError, match="is empty"):
        identities.gathered([], str(path))


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    rows = [f"{' ' * (i % 2)}v{i // 2},{i},{['yes', ' yes', 'no '][i % 3]}" for i in range(12)]
    (tmp_path / "pool.csv").write_text("\n".join(["id,x,class", *rows, ""]))
    return tmp_path


def test_ids_that_are_held_are_those_of_the_lines(pool: Path) -> None:
    line = ["select", "pool.csv", "--id", "id", "--k", "11", "--staying", "1", "--held", "held.txt"]
    every = {f"{' ' * blank}v{i}" for i in range(6) for blank in range(2)}
    for held in (" v1", "v1"):
        (pool / "held.txt").write_text(f"{held}\n")
        assert set(told(*line, folder=pool)["selected"]) == every - {held}
    (pool / "held.txt").write_text("v1 \n")
    assert "in no row" in erasable(*line, folder=pool).stderr


def test_classes_are_those_of_the_column(pool: Path) -> None:
    line = ["select", "pool.csv", "--id", "id", "--k", "3", "--target", "class", "--staying"]
    told(*line, "yes=0.5, yes=0.9, no=1", folder=pool)
    two = erasable(*line, "yes=0.5,no=1", folder=pool)
    assert two.exit_code == 2
    assert "no probability" in two.stderr


LISTS = {
    "age": ["age"], "age,dose": ["age", "dose"], " age , dose ": ["age", "dose"],
    '"age"': ["age"], '" age","dose, mg"': [" age", "dose, mg"],
    'age, "a ""b""" ,c': ["age", 'a "b"', "c"], 'a"b,c': ['a"b', "c"], "a,,b": ["a", "", "b"],
    "": [], '""': [""], "a,": ["a", ""], '"a,b': ['"a', "b"], '"a" b,c': ['"a" b', "c"],
}  # fmt: skip


@pytest.mark.parametrize("text", LISTS)
def test_names_of_columns_may_have_commas_and_spaces(text: str) -> None:
    assert options.columns(text) == LISTS[text]


def test_every_column_of_a_table_can_be_named(tmp_path: Path) -> None:
    header = '"visit"," age","dose, mg","say ""x"""\n'
    (tmp_path / "visits.csv").write_text(
        header + "".join(f"v{i},{i},{i % 3},{i % 5}\n" for i in range(20))
    )
    told("init", folder=tmp_path)
    told("dataset", "add", "visits", "visits.csv", "--id", "visit", folder=tmp_path)
    names = '" age", "dose, mg","say ""x"""'
    wanted = [" age", "dose, mg", 'say "x"']
    fit = ["model", "fit", "m", "--dataset", "visits", "--estimator", "preprocessing.MinMaxScaler"]
    assert told(*fit, "--features", names, folder=tmp_path)["features"] == wanted
    select = ["select", "visits.csv", "--id", "visit", "--k", "3", "--staying", "1"]
    assert told(*select, "--features", names, folder=tmp_path)["features"] == wanted
