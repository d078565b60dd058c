"""Tables with gaps: what refuses them says what fills them in, and then takes them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer

from cli.running import erasable, told

N = 60
AGE = [20 + i * 7 % 50 for i in range(N)]
DOSE = [i * 13 % 17 / 4 for i in range(N)]
KIND = ["abc"[i * i % 3] for i in range(N)]
GAPS = {"age": range(3, N, 11), "dose": range(5, N, 9), "kind": range(7, N, 13)}
SELECT = ["select", "pool.csv", "--id", "id", "--k", "9", "--staying", "0.8", "--features"]
REMOVE = ["remove-domain", "pool", "--where", "ward = 1", "--budget", "7"]


def table(*, text: bool = False) -> pd.DataFrame:
    frame = pd.DataFrame(
        {"id": [f"v{i}" for i in range(N)], "age": AGE, "dose": DOSE, "kind": KIND,
         "ward": [i % 2 for i in range(N)]}
    ).astype({"age": float})  # fmt: skip
    for name, rows in GAPS.items():
        if text or name != "kind":
            frame.loc[list(rows), name] = None
    return frame


def write(folder: Path, frame: pd.DataFrame) -> None:
    folder.mkdir(exist_ok=True)
    frame.to_csv(folder / "pool.csv", index=False, quoting=csv.QUOTE_MINIMAL)
    told("init", folder=folder)
    told("dataset", "add", "pool", "pool.csv", "--id", "id", folder=folder)


def imputed(frame: pd.DataFrame, fill: str, names: list[str]) -> pd.DataFrame:
    """Fill gaps by scikit-learn: the oracle."""
    made = frame.copy()
    for name in names:
        missing = np.nan if made[name].dtype.kind == "f" else None
        values = made[[name]].to_numpy().copy()
        values = values if missing is not None else values.astype(object)
        values[pd.isna(values)] = missing
        imputer = SimpleImputer(missing_values=missing, strategy=fill)
        made[name] = imputer.fit_transform(values)[:, 0]
    return made


@pytest.mark.parametrize("fill", ["mean", "median", "most_frequent"])
def test_what_is_filled_in_is_what_scikit_learn_fills_in(tmp_path: Path, fill: str) -> None:
    frame = table()
    write(tmp_path / "gaps", frame)
    write(tmp_path / "full", imputed(frame, fill, ["age", "dose"]))
    n_age, n_dose = (len(GAPS[name]) for name in ("age", "dose"))
    for words in (SELECT, [*REMOVE, "--features"]):
        line = [*words, "age,dose", "--output", "chosen.csv"]
        told(*line, folder=tmp_path / "full")
        told(*line, "--fill", fill, folder=tmp_path / "gaps")
        ours, plain = ((tmp_path / each / "chosen.csv").read_text() for each in ("gaps", "full"))
        assert ours == plain
        assert len(ours.splitlines()) in (10, 8)
        said = erasable(*line, "--fill", fill, folder=tmp_path / "gaps").stderr
        assert f"{n_age} of 60 records have a gap in 'age', filled in with its" in said
        assert f"{n_dose} of 60 records have a gap in 'dose'" in said
        none = erasable(*line, "--fill", fill, folder=tmp_path / "full").stderr
        assert "gap" not in none


@pytest.mark.parametrize("line", [[*SELECT, "age,dose"], [*REMOVE, "--features", "age,dose"]])
def test_gaps_are_refused_and_it_is_said_what_fills_them_in(
    tmp_path: Path, line: list[str]
) -> None:
    """The negative control: nothing is filled in that nobody asked for."""
    write(tmp_path, table())
    result = erasable(*line, folder=tmp_path)
    assert result.exit_code == 2
    assert "'age', 'dose'" in result.stderr
    assert "--fill median, as preprocessing.SimpleImputer does" in result.stderr
    wrong = erasable(*line, "--fill", "zero", folder=tmp_path)
    assert wrong.exit_code == 2
    assert "expected one of mean, median, most_frequent" in wrong.stderr


def test_text_is_filled_in_by_the_most_frequent_alone(tmp_path: Path) -> None:
    """From Parquet: in CSV, an empty text is a text."""
    frame = table(text=True)
    line = [SELECT[0], "pool.parquet", *SELECT[2:], "age,kind"]
    for name, made in (
        ("gaps", frame), ("full", imputed(frame, "most_frequent", ["age", "dose", "kind"]))
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        made.to_parquet(tmp_path / name / "pool.parquet")
    refused = erasable(*line, "--fill", "mean", folder=tmp_path / "gaps")
    assert "in 'kind'" in refused.stderr
    assert "--fill most_frequent" in refused.stderr
    ours = told(*line, "--fill", "most_frequent", folder=tmp_path / "gaps")
    assert ours["selected"] == told(*line, folder=tmp_path / "full")["selected"]


def test_gaps_in_what_is_no_feature_stay_refused(tmp_path: Path) -> None:
    frame = table(text=True)
    frame.loc[0, "id"] = None
    frame.to_parquet(tmp_path / "pool.parquet")
    select = [SELECT[0], "pool.parquet", *SELECT[2:]]
    result = erasable(*select, "ward", "--fill", "mean", folder=tmp_path)
    assert "in 'id'" in result.stderr
    assert "--fill" not in result.stderr
    line = [*select, "ward", "--target", "kind", "--fill", "most_frequent"]
    assert "in 'id', 'kind'" in erasable(*line, folder=tmp_path).stderr


def test_a_column_of_nothing_but_gaps_is_refused(tmp_path: Path) -> None:
    frame = table()
    frame["dose"] = np.nan
    write(tmp_path, frame)
    for line in ([*SELECT, "age,dose"], [*REMOVE, "--features", "age,dose"]):
        result = erasable(*line, "--fill", "mean", folder=tmp_path)
        assert result.exit_code == 2
        assert "the column 'dose' has nothing but gaps" in result.stderr


def test_the_data_set_stays_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, table())
    done = told(*REMOVE, "--features", "age,dose", "--fill", "mean", "--yes", folder=tmp_path)
    assert done["n_records"] == N
    line = ["model", "fit", "m", "--dataset", "pool", "--estimator", "preprocessing.SimpleImputer"]
    assert told(*line, "--features", "age,dose", folder=tmp_path)["n_records"] == N - 7
    refused = erasable("model", "fit", "n", "--dataset", "pool", "--estimator",
                       "cluster.KMeans", "--features", "age,dose", "--prepare", "none",
                       folder=tmp_path)  # fmt: skip
    assert "have gaps" in refused.stderr
