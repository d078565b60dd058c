"""Text files with semicolons and decimal commas, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.running import erasable, told

HEAD = "visit;patient;age;city;sick\n"
ROWS = "".join(f"v{n};p{n // 2};{20 + n},5;Köln;{n % 2}\n" for n in range(12))
SAID = ("--delimiter", ";", "--decimal", ",", "--encoding", "latin1")
ADD = ("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "patient")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    told("init", folder=tmp_path)
    (tmp_path / "visits.csv").write_text(HEAD + ROWS, encoding="utf-8")
    return tmp_path


def test_what_a_file_shows_is_told_in_one_line(folder: Path) -> None:
    added = erasable(*ADD, "--json", folder=folder)
    assert added.exit_code == 0
    assert added.stderr == (
        f"warning: '{folder}/visits.csv' is read with ';' between columns and decimal commas, as "
        "it shows\n"
    )
    shown = told("dataset", "show", "visits", folder=folder)
    assert shown["source"]["dialect"] == {"delimiter": ";", "decimal": ","}
    as_text = erasable("dataset", "show", "visits", folder=folder).stdout
    assert f"{folder}/visits.csv (delimiter ';', decimal ',')" in as_text
    assert "age (double)" in as_text


def test_what_is_said_is_kept(folder: Path) -> None:
    (folder / "visits.csv").write_text(HEAD + ROWS, encoding="latin1")
    refused = erasable(*ADD, folder=folder)
    assert refused.exit_code == 2
    assert "expected UTF-8; say `--encoding latin1`, or convert it" in refused.stderr
    assert erasable(*ADD, *SAID, folder=folder).stderr == ""
    for name, row in [("append", "v12;p6;1,234;Århus;1\n"), ("sync", "v12;p6;2;Århus;1\n")]:
        (folder / "more.csv").write_text(HEAD + row, encoding="latin1")
        done = erasable("dataset", name, "visits", "more.csv", folder=folder)
        assert (done.exit_code, done.stderr) == (0, "")
    given = ("--dataset", "visits", "--features", "age", "--target", "sick")
    (folder / "new.csv").write_text("visit;age\nn1;1,5\n")
    erasable("dataset", "sync", "visits", folder=folder)
    told("model", "fit", "m", *given, "--estimator", "naive_bayes.GaussianNB", folder=folder)
    assert told("model", "predict", "m", "new.csv", folder=folder)["n"] == 1
    (folder / "new.csv").write_text("visit|age\nn1|1.5\n")
    done = erasable("model", "predict", "m", "new.csv", "--delimiter", "|", folder=folder)
    assert done.exit_code == 0
    assert done.stderr.count("\n") == 1
    assert "is read with decimal points, as it shows" in done.stderr


@pytest.mark.parametrize(
    "said", [("--delimiter", ";;"), ("--delimiter", '"'), ("--decimal", "x"), ("--encoding", "hex")]
)
def test_what_is_no_dialect_is_one_line(folder: Path, said: tuple[str, str]) -> None:
    for line in (ADD, ("correct", "visits", "--file", "visits.csv")):
        if line is not ADD:
            erasable(*ADD, folder=folder)
        done = erasable(*line, *said, folder=folder)
        assert done.exit_code == 2
        assert done.stderr.count("\n") == 1
        assert f"is {said[1]!r}; expected " in done.stderr


@pytest.mark.filterwarnings("ignore::erasable.core.errors.DialectWarning")
def test_records_to_choose_from_have_a_dialect(folder: Path) -> None:
    (folder / "visits.csv").write_text(HEAD + ROWS, encoding="latin1")
    line = ("select", "visits.csv", "--id", "visit", "--k", "3", "--staying", "0.5")
    assert "--encoding latin1" in erasable(*line, folder=folder).stderr
    chosen = erasable(*line, *SAID, folder=folder)
    assert len(chosen.stdout.split()) == 3
