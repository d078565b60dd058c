"""Files of requests: a type, a reference and a date a line; an error says which line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.running import erasable, told

HEAD = "ticket,mail,kind,came"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "customers.csv").write_text("n,customer,mail\n1,17,ann@x.org\n2,18,bob@x.org\n")
    told("init", folder=tmp_path)
    told("dataset", "add", "customers", "customers.csv", "--id", "n", "--subject",
         "customer:id,mail:email", folder=tmp_path)  # fmt: skip
    return tmp_path


ALL = ("--column", "mail", "--column", "type=kind", "--column", "reference=ticket", "--column",
       "received=came")  # fmt: skip


def write(folder: Path, *lines: str, name: str = "asked.csv") -> None:
    (folder / name).write_text("".join(f"{each}\n" for each in lines), newline="")


def test_each_line_says_its_type_reference_and_date(folder: Path) -> None:
    write(
        folder, HEAD, 'T-1,"Ann <ann@x.org>",email,2026-03-31', "", "T-2,18,,2026-04-01T09:30",
        "T-3,18,id,", "T-3,18,id,",
    )  # fmt: skip
    foreseen = told("request", "--file", "asked.csv", *ALL, "--dry-run", folder=folder)
    assert (foreseen["n_records"], foreseen["n_unmatched"]) == (2, 0)
    taken = told("request", "--file", "asked.csv", *ALL, folder=folder)["requests"]
    assert [(e["reference"], e["received_at"][:16], e["types"]) for e in taken] == [
        ("T-1", "2026-03-31T00:00", ["email"]),
        ("T-2", "2026-04-01T09:30", ["email", "id"]),
        ("T-3", taken[2]["received_at"][:16], ["id"]),
    ]
    assert taken[0]["due_at"] < taken[1]["due_at"] < taken[2]["due_at"]
    assert told("process", folder=folder)["n_records"] == 2
    assert {e["reference"] for e in told("requests", folder=folder)["requests"]} == {
        "T-1", "T-2", "T-3",
    }  # fmt: skip
    assert "T-1" in erasable("requests", folder=folder).stdout
    assert erasable("log", "verify", folder=folder).exit_code == 0
    assert "T-1" not in erasable("log", "show", "--json", folder=folder).stdout


def test_tabs_and_standard_input_are_read(folder: Path) -> None:
    write(folder, "mail\tticket", "17\tT-1", name="asked.tsv")
    columns = ("--column", "mail", "--column", "reference=ticket")
    (taken,) = told("request", "--file", "asked.tsv", *columns, folder=folder)["requests"]
    assert taken["reference"] == "T-1"
    given = "mail,note\n18,\n"
    (taken,) = told("request", "--file", "-", "--column", "mail", folder=folder, stdin=given)[
        "requests"
    ]
    assert taken["reference"] is None


WRONG = {
    "no identity": (["T-1,17,id,", "T-2,,id,"], "line 3 of 'asked.csv': it names nobody"),
    "a short line": (["T-1,17,id,", "", "T-2,17"], "line 4 of 'asked.csv': it has 2 values"),
    "a date": (["T-1,17,id,31.3.2026"], "line 2 of 'asked.csv': received is '31.3.2026'"),
    "a day to come": (["T-1,17,id,", "T-2,17,id,2999-01-01"], "line 3 of 'asked.csv': received_at"),
    "no type": (["T-1,17,id,", "T-2,17,fax,"], "line 3 of 'asked.csv': 'fax' is no type"),
    "another type": (["T-1,17,id,", "T-2,x,integer,"], "line 3 of 'asked.csv': "),
    "no such value": (["T-1,a@x.org,email,", "T-2,,email,"], "line 3 of 'asked.csv': "),
    "two lines": (['"T-\n1",17,id,'], "line 2 of 'asked.csv': reference is empty, has several"),
    "a quote": (["T-1,17,id,", '"T-2,17,id,'], "line 3 of 'asked.csv': it is not CSV"),
    "nothing": ([], "'asked.csv' is empty"),
}


@pytest.mark.parametrize(("lines", "message"), WRONG.values(), ids=WRONG)
def test_an_error_says_which_line(folder: Path, lines: list[str], message: str) -> None:
    write(folder, HEAD, *lines)
    result = erasable("request", "--file", "asked.csv", *ALL, folder=folder)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert told("requests", folder=folder)["requests"] == []


@pytest.mark.parametrize("at", [1, 2, 17, 40])
def test_the_first_line_that_is_refused_is_found(folder: Path, at: int) -> None:
    lines = [str(i) for i in range(1, 41)]
    lines[at - 1] = "no number"
    lines[39] = "no number"
    write(folder, *lines, name="many.txt")
    told("dataset", "add", "old", "customers.csv", "--id", "n", "--subject", "customer:integer",
         folder=folder)  # fmt: skip
    for more in ((), ("--dry-run",)):
        result = erasable(
            "request", "--file", "many.txt", "--type", "integer", *more, folder=folder
        )
        assert f"line {at} of 'many.txt': an identity of type 'integer'" in result.stderr
        assert "no number" not in result.stderr


def test_the_first_line_may_be_behind_one_of_the_command_line(folder: Path) -> None:
    write(folder, "ann@x.org, bob@x.org", name="many.txt")
    result = erasable("request", "17", "--file", "many.txt", folder=folder)
    assert "line 1 of 'many.txt': " in result.stderr
    result = erasable("request", "ann@x.org, bob@x.org", "--file", "many.txt", folder=folder)
    assert "line" not in result.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--column", "mail"], "--column was given identity, and no --file"),
        (["--file", "asked.csv", "--column", "type=kind"], "--column was given type; expected"),
        (["--file", "asked.csv", "--column", "mail", "--column", "due=came"], "identity, due"),
        (
            ["--file", "asked.csv", "--column", "phone"],
            "has the column 'phone' 0 times; expected it once, among:",
        ),
        (["--file", "asked.csv", "--column", "a", "--column", "b"], "came before"),
        (["17", "--only", "--reach", "2"], "--only and --reach"),
        (["17", "--reach", "0"], "--reach is '0'; expected a whole number, 1 or more"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder: Path, given: list[str], message: str) -> None:
    write(folder, HEAD, "T-1,17,id,")
    result = erasable("request", *given, folder=folder)
    assert result.exit_code == 2
    assert message in result.stderr
