"""Columns that a model leaves out, and targets of others that it takes, are said by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.running import erasable, told

HEADER = "visit,patient,age,dose,sick,cost,note,day,seen,agrees\n"
NUMBERS = ["age", "dose", "sick", "cost", "agrees"]
NO_NUMBERS = {"note": "string", "day": "date32[day]", "seen": "timestamp[us]"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(
        f"v{i},p{i // 2},{20 + i},{i % 7 / 4},{i % 2},{i * 3},n{i},2026-01-{i % 28 + 1:02},"
        f"2026-01-01 09:{i % 60:02}:00,{'true' if i % 3 else 'false'}\n"
        for i in range(40)
    )
    (tmp_path / "visits.csv").write_text(HEADER + rows)
    told("init", folder=tmp_path)
    told("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "patient",
         folder=tmp_path)  # fmt: skip
    return tmp_path


def fit(folder: Path, name: str, estimator: str, *more: str) -> dict[str, Any]:
    line = ["model", "fit", name, "--dataset", "visits", "--estimator", estimator, *more]
    return told(*line, folder=folder)


@pytest.mark.parametrize("target", ["sick", "agrees", None])
def test_columns_of_no_numbers_are_named(folder: Path, target: str | None) -> None:
    estimator = "preprocessing.StandardScaler" if target is None else "naive_bayes.GaussianNB"
    more = [] if target is None else ["--target", target, "--prepare", "none"]
    made = fit(folder, "one", estimator, *more)
    assert made["features"] == [each for each in NUMBERS if each != target]
    assert made["left_out"] == list(NO_NUMBERS)
    (said,) = made["warnings"]
    assert "'note' (text), 'day' (date32[day]), 'seen' (timestamp[us])" in said
    shown = told("model", "show", "one", folder=folder)
    assert shown["left_out"] == NO_NUMBERS
    assert "left out    note, day, seen" in erasable("model", "show", "one", folder=folder).stdout


def test_a_person_is_told_on_standard_error(folder: Path) -> None:
    line = ["model", "fit", "one", "--dataset", "visits", "--estimator",
            "preprocessing.MinMaxScaler"]  # fmt: skip
    result = erasable(*line, folder=folder)
    assert result.stderr.startswith("warning: 'one' does not learn from 'note' (text)")
    assert "note" not in result.stdout


def test_a_model_of_documents_names_columns_of_numbers(folder: Path) -> None:
    made = fit(folder, "words", "feature_extraction.CountVectorizer")
    assert made["features"] == ["note"]
    assert "'age' (numbers)" in made["warnings"][0]
    assert set(made["left_out"]) == {*NUMBERS, "day", "seen"}


@pytest.mark.parametrize("target", ["cost", None])
def test_a_target_of_another_model_is_named(folder: Path, target: str | None) -> None:
    fit(folder, "risk", "naive_bayes.GaussianNB", "--target", "sick")
    fit(folder, "alike", "tree.DecisionTreeClassifier", "--target", "sick")
    estimator = "preprocessing.StandardScaler" if target is None else "linear_model.Ridge"
    made = fit(folder, "new", estimator, *([] if target is None else ["--target", target]))
    assert "sick" in made["features"]
    assert any(
        "'new' learns from 'sick', which is the target of 'alike', 'risk'" in each
        for each in made["warnings"]
    )
    shown = told("model", "show", "new", folder=folder)
    assert shown["others_targets"] == {"sick": ["alike", "risk"]}
    printed = erasable("model", "show", "new", folder=folder).stdout
    assert "sick (the target of alike, risk)" in printed


def test_nothing_is_said_of_what_was_named(folder: Path) -> None:
    """The negative control: who names the features, or has nothing else, is not warned."""
    fit(folder, "risk", "naive_bayes.GaussianNB", "--target", "sick")
    made = fit(folder, "new", "preprocessing.StandardScaler", "--features", "age,sick")
    assert made["warnings"] == []
    assert made["left_out"] == ["dose", "cost", "note", "day", "seen", "agrees"]
    same = fit(folder, "other", "naive_bayes.GaussianNB", "--target", "sick", "--features", "age")
    assert same["warnings"] == []
    assert told("model", "show", "other", folder=folder)["others_targets"] == {}


def test_retired_models_and_other_data_do_not_count(folder: Path) -> None:
    fit(folder, "risk", "naive_bayes.GaussianNB", "--target", "sick")
    told("model", "retire", "risk", folder=folder)
    made = fit(folder, "new", "preprocessing.StandardScaler")
    assert not any("the target of" in each for each in made["warnings"])
    told("dataset", "add", "more", "visits.csv", "--id", "visit", folder=folder)
    line = ["model", "fit", "far", "--dataset", "more", "--estimator", "naive_bayes.GaussianNB"]
    told(*line, "--target", "sick", folder=folder)
    made = fit(folder, "next", "preprocessing.MinMaxScaler")
    assert not any("the target of" in each for each in made["warnings"])


def test_all_numbers_leave_nothing_out(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("id,a,b\n" + "".join(f"{i},{i},{-i}\n" for i in range(9)))
    told("init", folder=tmp_path)
    told("dataset", "add", "plain", "plain.csv", "--id", "id", folder=tmp_path)
    line = ["model", "fit", "m", "--dataset", "plain", "--estimator", "preprocessing.MinMaxScaler"]
    made = told(*line, folder=tmp_path)
    assert (made["left_out"], made["warnings"]) == ([], [])


def test_a_program_is_handed_all_columns(folder: Path) -> None:
    line = ["model", "register", "ours", "--dataset", "visits", "--retrain", "cp {data} {out}"]
    made = told(*line, folder=folder)
    assert (made["left_out"], made["warnings"]) == ([], [])


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_an_index_is_no_feature_unless_it_is_named(tmp_path: Path, name: str) -> None:
    """pandas writes the index of a frame into a file, as a column without a name in CSV."""
    rows = "".join(f"{i},v{i},p{i // 2},{i % 7},{i % 2}\n" for i in range(30))
    (tmp_path / "visits.csv").write_text(f'{name},visit,"who, of all",age,sick\n{rows}')
    told("init", folder=tmp_path)
    told("dataset", "add", "visits", "visits.csv", "--id", "visit",
         "--subject", '"who, of all:id"', folder=tmp_path)  # fmt: skip
    made = fit(tmp_path, "one", "linear_model.Ridge", "--target", "sick")
    assert made["features"] == ["age"]
    (said,) = made["warnings"]
    assert f"does not learn from {name!r} (an index)" in said
    more = ["--target", "sick", "--features", f'"{name}", age']
    assert fit(tmp_path, "two", "linear_model.Ridge", *more)["features"] == [name, "age"]
    refused = erasable("model", "fit", "three", "--dataset", "visits", "--estimator",
                       "linear_model.Ridge", "--target", "sick", "--features", "",
                       folder=tmp_path)  # fmt: skip
    assert refused.exit_code == 2
    assert "features name no column; expected one or more" in refused.stderr
