"""One command for all experiments: it resumes, takes what is plugged in, and says what is missing.

A part is measured once for the same options and the same data.
"""

from __future__ import annotations

import gzip
import io
import json
import runpy
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import command
import data_sets
import domains
import images
import numpy as np
import pandas as pd
import papers
import pytest
import removal_page
import shared
import tidy
from sklearn.cluster import KMeans

from erasable.removal.scores import Norm

FILE = "sms_spam/SMSSpamCollection.tsv.gz"
DRAWN = {"gaussians": "frontiers", "mi-f": None, "nn-s": "points", "stability": "adversary"}
"""Experiments that read no data, and a part that takes a second or two; None: longer than that."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for data sets, with none in it."""
    monkeypatch.setattr(data_sets, "read", {})
    monkeypatch.setenv("ERASABLE_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def put(folder: Path, file: str, content: bytes) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(gzip.compress(content))


@pytest.fixture
def made(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An experiment in two parts; `measured` lists what they were given."""
    put(folder, FILE, b"one")
    own = SimpleNamespace(
        measured=[], stops=False, reads=False, out=tmp_path / "out", folder=folder
    )

    def part(name: str, quick: bool, **options: Any) -> dict[str, Any]:
        if name == "two" and own.stops:
            raise KeyboardInterrupt
        data_sets.path(FILE)
        own.measured.append((name, options))
        if own.reads and "data" in options:
            own.found = options["data"]()
        rows = [["a", "**1.5** ± 0.25", "-"], ["b", "2,000", "3 (`x`)"]]
        figure = {"kind": "lines", "title": "Drawn", "x": "budget", "y": "recall", "panels": [
            {"title": "", "lines": [shared.line("a", [0, 1], [[1.0, 2.0], [3.0, 4.0]])]}
        ]}  # fmt: skip
        return {
            "notes": {name: {"head": ["method", "metric", "other"], "rows": rows}},
            "figures": {name: figure},
        }

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["made", "--out", str(own.out), *words])
        parts = {
            name: lambda quick, name=name, **options: part(name, quick, **options)
            for name in ("one", "two")
        }
        takes = {"one": ("folder", "seeds", *command.EACH), "two": ("folder", "scores", "data")}
        return int(command.run("made", "Made up.", parts, removal_page, takes=takes))

    own.run = run
    return own


def names(made: Any) -> list[str]:
    return [name for name, _ in made.measured]


def test_after_an_interruption_only_the_rest_is_measured(made: Any) -> None:
    made.stops = True
    assert made.run("--quick") == 130
    assert names(made) == ["one"]
    made.stops = False
    assert made.run("--quick") == 0
    assert names(made) == ["one", "two"]
    assert made.run("--quick") == 0
    assert names(made) == ["one", "two"]


def test_other_options_or_data_are_measured_anew(made: Any) -> None:
    made.run("--quick")
    made.run("--full")
    assert names(made) == ["one", "two", "one", "two"]
    made.run("--full", "--seeds", "3")
    assert made.measured[4:] == [("one", {"seeds": 3})]
    made.run("--full", "--seeds", "3")
    made.run("--full", "--parts", "two")
    assert len(made.measured) == 5
    put(made.folder, FILE, b"two")
    made.run("--full", "--parts", "two")
    assert names(made)[5:] == ["two"]


def test_data_are_known_by_what_is_in_them(made: Any, tmp_path: Path) -> None:
    made.run("--quick")
    for name, content in (("same", b"one"), ("other", b"two")):
        put(tmp_path / name, FILE, content)
        made.run("--quick", "--data", str(tmp_path / name))
    assert names(made) == ["one", "two", "one", "two"]


def test_a_part_that_says_so_is_not_finished(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made.run("--quick")
    path = made.out / "parts" / "made.one.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["found"]["unfinished"] = True
    path.write_text(json.dumps(record), encoding="utf-8")
    made.run("--quick")
    assert names(made) == ["one", "two", "one"]


MINE = '''
class Mine:
    """Made without parameters."""

def score(forget, retain):
    return forget[:, 0]

def data():
    return [1], [2]

def broken():
    raise KeyError("no such")

def uneven():
    return [1, 2], [1, 2, 3]

def lists():
    return ["a", "b"], [True, False]
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of the user's in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine_of_tests.py"
    path.write_text(MINE, encoding="utf-8")
    yield path
    sys.modules.pop("mine_of_tests", None)


def test_a_score_data_a_utility_and_an_estimator_are_plugged_in(made: Any, mine: Path) -> None:
    made.run("--quick", "--scores", "lr-cos", "mine_of_tests:score", "--data", "mine_of_tests:data")
    ((part, options),) = made.measured
    assert part == "two"
    assert list(options["scores"]) == ["lr-cos", "score"]
    assert options["scores"]["lr-cos"] == "lr-cos"
    assert options["data"]() == ([1], [2])
    made.run("--quick", "--utilities", "mine_of_tests:Mine", "--estimators", "sklearn.svm:SVC",
             "sklearn.dummy:DummyClassifier")  # fmt: skip
    assert [each["estimator"].__name__ for _, each in made.measured[1:]] == [
        "SVC", "DummyClassifier"
    ]  # fmt: skip
    assert {each["utility"].__name__ for _, each in made.measured[1:]} == {"Mine"}
    result = json.loads((made.out / "made.json").read_text(encoding="utf-8"))
    assert set(result["figures"]) == {"one-Mine-SVC", "one-Mine-DummyClassifier"}


def test_what_raises_is_told_in_a_line(
    made: Any, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.reads = True
    words = ("--quick", "--data", "mine_of_tests:broken", "--scores", "norm")
    assert made.run(*words) == 1
    told = capsys.readouterr().err
    assert told.startswith("made: two failed: KeyError: 'no such' (mine_of_tests.py, line ")
    assert told.count("\n") == 1
    path = made.out / "parts" / "made.error.txt"
    assert str(path) in told
    assert "in broken" in path.read_text(encoding="utf-8")
    assert made.run(*words[:2], "mine_of_tests:uneven") == 1
    assert "shapes (2,), (3,); expected as many rows in each" in capsys.readouterr().err
    assert made.run(*words[:2], "mine_of_tests:lists") == 0
    assert [type(each) for each in made.found] == [np.ndarray] * 2


def test_what_was_given_is_on_the_page(made: Any, mine: Path) -> None:
    made.run("--quick", "--scores", "lr-cos", "mine_of_tests:score")
    page = (made.out / "made.md").read_text(encoding="utf-8")
    assert "- scores: lr-cos mine_of_tests:score" in page
    made.run("--quick")
    assert "- scores:" not in (made.out / "made.md").read_text(encoding="utf-8")


def test_help_has_the_options_that_an_experiment_takes(
    made: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        made.run("--help")
    told = " ".join(capsys.readouterr().out.split())
    assert "--seeds SEEDS how many seeds (of one)" in told
    assert "--scores" in told
    assert "--budgets" not in told


def test_help_after_a_name_is_that_of_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(papers, "run", lambda *each: given.append((each[0], each[2])) or (0, 1.0))
    for words in (["sms", "--help"], ["sms", "-h"], ["sms", "--seeds", "3", "--help"]):
        assert papers.main(words) == 0
    assert given == [("sms", ["--help"])] * 3
    with pytest.raises(SystemExit):
        papers.main(["--help"])
    assert len(given) == 3


def test_after_ctrl_c_no_further_experiment_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran_ = []
    monkeypatch.setattr(papers, "run", lambda *each: ran_.append(each[0]) or (130, 1.0))
    assert papers.main(["sms", "nn-h", "--out", str(tmp_path)]) == 130
    assert ran_ == ["sms"]
    assert "sms: interrupted: give the same command again" in capsys.readouterr().out


def test_data_of_another_form_are_refused() -> None:
    assert domains.own((np.array(["a", "b"]), [1, 0]), "spam")[1].tolist() == [True, False]
    with pytest.raises(ValueError, match="a tuple of 2; expected a tuple of texts, and whether"):
        domains.own((["a", "b"], [1, 0]), "toxic", "of the unwanted domain")
    with pytest.raises(ValueError, match="a dict; expected"):
        domains.own({}, "spam")


def test_budgets_are_numbers_or_shares() -> None:
    assert command.counts([20.0, 10.0], ()) == (10, 20)
    assert command.counts(None, range(3)) == (0, 1, 2)
    assert command.shares([0.5, 1.0]) == [0.5, 1.0]
    with pytest.raises(ValueError, match=r"--budgets: 0\.25; expected whole numbers"):
        command.counts([0.25], ())
    with pytest.raises(ValueError, match="--budgets: 25; expected shares"):
        command.shares([0.5, 25.0])


def test_which_score_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shared, "OWN", {})
    shared.chosen({"wrong": lambda forget, retain: forget[:, 0] * np.nan}, [])
    rows = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="3 of 3 numbers that are NaN") as raised:
        shared.ranked("wrong", rows, rows, 0)
    assert "or too large; " in command.failed(raised.value, "curves", tmp_path, "made")
    assert "; score wrong (" in command.failed(raised.value, "curves", tmp_path, "made")


def test_a_class_of_scores_is_made_without_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "OWN", {})
    shared.chosen({"Norm": Norm}, [])
    assert isinstance(shared.OWN["Norm"], Norm)


def test_flags_are_booleans_or_0_and_1() -> None:
    assert domains.flags([0, 1, 1], "spam").tolist() == [False, True, True]
    for wrong in (["spam", "ham"], [1, 2], [True, True]):
        with pytest.raises(ValueError, match=r"spam: .* expected a boolean for each text"):
            domains.flags(wrong, "spam")


def test_a_clustering_without_delete_is_fitted_again() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    own = command.plugged.Clustering(KMeans(3, n_init=1, random_state=0)).fit(X)
    assert own.delete([0, 5], digest=False).action == "refit"
    left = np.delete(X, [0, 5], axis=0)
    np.testing.assert_array_equal(
        own.cluster_centers_, KMeans(3, n_init=1, random_state=0).fit(left).cluster_centers_
    )
    assert (
        own.digest()
        == command.plugged.Clustering(KMeans(3, n_init=1, random_state=0)).fit(left).digest()
    )
    assert (
        own.digest()
        != command.plugged.Clustering(KMeans(3, n_init=1, random_state=0)).fit(X).digest()
    )


def test_what_is_plugged_in_is_measured_anew_when_it_changed(made: Any, mine: Path) -> None:
    words = ("--quick", "--scores", "mine_of_tests:score")
    for _ in range(2):
        made.run(*words)
    assert names(made) == ["two"]
    mine.write_text(MINE.replace("[:, 0]", "[:, 1]"), encoding="utf-8")
    made.run(*words)
    assert names(made) == ["two", "two"]


def test_a_score_of_the_users_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "OWN", {})
    scores = {"lr-cos": "lr-cos", "first": lambda forget, retain: forget[:, 0]}
    assert shared.chosen(scores, ["norm"]) == ["random", "lr-cos", "first"]
    assert shared.chosen(None, ["norm"]) == ["norm"]
    forget = np.array([[1.0], [3.0], [2.0]])
    assert shared.ranked("first", forget, forget, 0).order.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budgets", "1"], "no use for --budgets: one takes --data DIR, --seeds"),
        (["--parts", "two", "--seeds", "3"], "two takes --data DIR, --scores, --data module:name"),
        (["--scores", "lr-cosine"], "there is no 'lr-cosine'; expected density-ratio"),
        (["--scores", "mine_of_tests:scores"], "cannot be imported: module 'mine_of_tests' has"),
        (["--estimators", "no_such_module:x"], "No module named 'no_such_module'"),
        (["--data", "no-such-folder"], "no-such-folder is no folder"),
        (["--parts", "three"], "invalid choice: 'three'"),
        (["--parts", "two", "--seeds", "3", "--scores", "norm"], "no use for --seeds: two takes"),
        (["--seeds", "0"], "0; expected a whole number of 1 or more"),
        (["--budgets", "0"], "0; expected a number of records of 1 or more, or a share up to 1"),
        (["--budgets", "2.5"], "2.5; expected a number of records"),
        (["--store", "--quick"], "--store is for what the paper's settings give"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_line(
    made: Any, mine: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        made.run(*words)
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("made: ")
    assert said in told
    assert told.count("\n") == 1
    assert made.measured == []


def test_numbers_are_rows(made: Any) -> None:
    made.run("--quick")
    found = pd.read_parquet(made.out / "made.parquet")
    assert list(found) == list(tidy.COLUMNS)
    drawn = found[(found["source"] == "figure one") & (found["seed"] == 1)]
    assert drawn[["method", "metric", "budget", "value"]].to_numpy().tolist() == [
        ["a", "recall", 0.0, 3.0], ["a", "recall", 1.0, 4.0]
    ]  # fmt: skip
    notes = found[found["source"] == "note two"]
    assert notes[["method", "metric", "value"]].to_numpy().tolist() == [
        ["a", "metric", 1.5], ["b", "metric", 2000.0], ["b", "other", 3.0]
    ]  # fmt: skip
    assert notes["error"].tolist()[0] == 0.25
    assert set(found["part"]) == {"one", "two"}
    assert set(found["data"]) == {"sms_spam"}
    stored = json.loads((made.out / "made.json").read_text(encoding="utf-8"))
    assert "runs" not in stored["figures"]["one"]["panels"][0]["lines"][0]
    page = (made.out / "made.md").read_text(encoding="utf-8")
    for file in ("papers-made-one.svg", "papers-made-two.svg"):
        assert f"](figures/{file})" in page
        assert (made.out / "figures" / file).exists()


@pytest.mark.parametrize(
    ("text", "value", "error"),
    [
        ("-1.5", -1.5, None),
        ("+3.1 ± 0.2", 3.1, 0.2),
        ("1.77e+12", 1.77e12, None),
        ("40 %", 40, None),
    ],
)
def test_a_cell_is_a_number(text: str, value: float, error: float | None) -> None:
    assert tidy.parsed(text) == {"value": value, "error": error}


@pytest.mark.parametrize("text", ["-", "`a`", "4 of 5", "3 / 4", "1-D", ""])
def test_a_cell_of_words_is_none(text: str) -> None:
    assert tidy.parsed(text) is None


def ran(name: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the script of an experiment in this process; return its exit status."""
    path = papers.experiments()[name]
    monkeypatch.setattr(sys, "argv", [str(path), *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize("name", papers.experiments())
def test_an_experiment_runs_or_says_what_is_missing(
    name: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--quick", "--out", str(tmp_path / "out")]
    if name not in DRAWN:
        assert ran(name, words, monkeypatch) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"{name}: ")
        assert "is missing" in told
        assert told.count("\n") == 1
    elif DRAWN[name] is not None:
        assert ran(name, [*words, "--parts", DRAWN[name]], monkeypatch) == 0
        assert len(pd.read_parquet(tmp_path / "out" / f"{name}.parquet")) > 0


TEXTS = """
import numpy as np

def messages():
    rng = np.random.default_rng(0)
    spam = np.arange(120) % 4 == 0
    words = [["win prize cash now", "home soon love lunch"][not each] for each in spam]
    texts = [" ".join(rng.permutation(each.split())) + f" word{i % 9}" for i, each in
             enumerate(words)]
    return np.array(texts), spam

def by_length(forget, retain):
    return np.diff(forget.indptr)
"""


def test_an_experiment_takes_all_that_is_plugged_in(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts_of_tests.py").write_text(TEXTS, encoding="utf-8")
    words = ["--quick", "--out", str(tmp_path), "--data", "texts_of_tests:messages", "--seeds", "2"]
    words += ["--scores", "texts_of_tests:by_length", "--budgets", "0.25", "0.75", "--parts",
              "curves", "--estimators", "sklearn.naive_bayes:MultinomialNB"]  # fmt: skip
    assert ran("sms", words, monkeypatch) == 0
    found = pd.read_parquet(tmp_path / "sms.parquet")
    lines = found[found["source"] == "figure 5-MultinomialNB"]
    assert set(lines["method"]) == {"random", "by_length"}
    assert set(lines["budget"]) == {0.0, 25.0, 75.0, 100.0}
    assert set(lines["seed"]) == {0, 1}
    assert set(lines["data"]) == {"texts_of_tests:messages"}


RECORDS = """
import numpy as np

def records():
    labels = np.repeat([0, 1], 40)
    return np.random.default_rng(0).normal(labels[:, None], 0.1, (80, 2)), labels
"""


def test_a_clustering_and_records_of_the_users_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records_of_tests.py").write_text(RECORDS, encoding="utf-8")
    words = ["--quick", "--out", str(tmp_path), "--data", "records_of_tests:records"]
    words += ["--estimators", "sklearn.cluster:KMeans", "--budgets"]
    assert ran("k-means", [*words, "30"], monkeypatch) == 1
    assert "80 records in 2 clusters allow at most 29, and as many" in capsys.readouterr().err
    assert ran("k-means", [*words, "29"], monkeypatch) == 0
    found = json.loads((tmp_path / "k-means.json").read_text(encoding="utf-8"))
    ((model, *_, exact),) = found["notes"]["stream-records-KMeans"]["rows"]
    assert (model, exact) == ("KMeans", "yes")


def test_all_experiments_are_there_and_none_is_missed() -> None:
    there = papers.experiments()
    calling = {
        path
        for path in papers.HERE.glob("*/*.py")
        if "command.run(" in path.read_text(encoding="utf-8") and "__main__" in path.read_text()
    }
    assert set(there.values()) == calling
    assert len(there) >= 16
    assert all(papers.about(path) for path in there.values())


def test_a_name_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        papers.main(["nn-x"])
    assert stopped.value.code == 2
    assert "there is no nn-x; expected some of k-means," in capsys.readouterr().err


def test_experiments_are_run_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = []

    def run(name: str, path: Path, words: list[str]) -> tuple[int, float]:
        given.append((name, words))
        (tmp_path / f"{name}.md").write_text(f"## {name}\n", encoding="utf-8")
        tidy.frame([{"experiment": name}]).to_parquet(tmp_path / f"{name}.parquet")
        return {"sms": 2, "nn-s": 1}.get(name, 0), 1.0

    monkeypatch.setattr(papers, "run", run)
    words = ["nn-h", "sms", "--out", str(tmp_path)]
    assert papers.main([*words, "--seeds", "3"]) == 2
    expected = ["--quick", "--out", str(tmp_path), "--seeds", "3"]
    assert given == [("nn-h", expected), ("sms", expected)]
    assert "2 of 2: sms, SMS spam: figure 5" in capsys.readouterr().out
    assert papers.main(["--full", "nn-s", *words]) == 1
    page = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "- nn-s: failed with 1" in page
    found = pd.read_parquet(tmp_path / "results.parquet")
    assert sorted(found["experiment"]) == ["nn-h", "nn-s", "sms"]


def cifar_file(n: int, seed: int) -> tuple[bytes, Any, Any]:
    """Make a file of CIFAR-10's binary version; return it, its images and its classes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 256, (n, 32, 32, 3)).astype(np.uint8)
    y = np.arange(n) % 10
    planes = [
        bytes([label]) + b"".join(image[:, :, channel].tobytes() for channel in range(3))
        for label, image in zip(y, X, strict=True)
    ]
    return b"".join(planes), X, y


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def cifar_archive(path: Path) -> tuple[Any, Any, Any]:
    """Write an archive of few images; return those to train on, their classes, and test images."""
    made = [cifar_file(20, seed) for seed in range(6)]
    named = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    archive(path, {name: each[0] for name, each in zip(named, made, strict=True)})
    X, y = (np.concatenate([each[at] for each in made[:5]]) for at in (1, 2))
    return X, y, made[5][1]


def test_the_whole_of_cifar_is_read_from_its_archive(folder: Path, tmp_path: Path) -> None:
    (folder / "cifar10").mkdir()
    X, y, X_new = cifar_archive(folder / images.WHOLE)
    size = images.Size(n_others=45_000)
    found = images.read(size, 0)
    assert (len(found.cats), len(found.others)) == (10, 90)
    assert (len(found.more_cats), len(found.more_others)) == (2, 18)
    np.testing.assert_array_equal(found.others, images._rows(X[y != images.CAT], size))
    np.testing.assert_array_equal(found.classes, y[y != images.CAT])
    np.testing.assert_array_equal(found.more_cats, images._rows(X_new[[3, 13]], size))
    cats = {row.tobytes() for row in images._rows(X[y == images.CAT], size)}
    assert {row.tobytes() for row in found.cats} == cats
    with pytest.raises(data_sets.MissingDataError, match=r"cifar10_cat_subset\.npz is missing"):
        images.read(images.Size(), 0)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x01" * 3072, "expected a multiple of 3,073"), (b"", "has 0 bytes"),
     (b"\x0a" * 3073, "has a class 10; expected 0 to 9")],
)  # fmt: skip
def test_a_file_that_is_not_cifar_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = archive(tmp_path / "cifar.tar.gz", {"test_batch.bin": content})
    with pytest.raises(ValueError, match=said):
        data_sets.cifar_images(path, "test_batch.bin")
    with pytest.raises(SystemExit, match=r"has no data_batch_1\.bin; it has"):
        data_sets.cifar_images(path, "data_batch_1.bin")


def zipped(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


ROW = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male"
TRAIN = f"{ROW}, 2174, 0, 40, United-States, <=50K\n\n"
TEST = f"|1x3 Cross validator\n{ROW.replace('State-gov', '?')}, 0, 0, 40, Cuba, >50K.\n"


def test_data_are_packed_from_what_is_downloaded(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = zipped(tmp_path / "adult.zip", {"adult.data": TRAIN, "adult.test": TEST})
    assert data_sets.main(["pack", "adult", str(path)]) == 0
    assert "not d99d5b2c" in capsys.readouterr().out
    frame = pd.read_csv(folder / "adult" / "adult.csv.gz")
    assert frame["workclass"].tolist() == ["State-gov", "?"]
    assert frame["income"].tolist() == ["<=50K", ">50K"]
    assert frame["split"].tolist() == ["train", "test"]
    assert frame["hours-per-week"].tolist() == [40, 40]

    path = zipped(tmp_path / "sms.zip", {"readme": "", "SMSSpamCollection": "ham\tHi\r\n"})
    data_sets.main(["pack", "sms", str(path)])
    assert gzip.decompress((folder / FILE).read_bytes()) == b"ham\tHi\n"

    header = "id,comment_text," + ",".join(data_sets.LABELS)
    path = zipped(tmp_path / "train.csv.zip", {"train.csv": f'{header}\nx,"a\nb",1,0,0,0,0,0\n'})
    data_sets.main(["pack", "jigsaw", str(path)])
    frame = pd.read_csv(folder / "jigsaw_toxic" / "jigsaw_subset.csv.gz")
    assert frame[["text", "toxic", "natural"]].to_numpy().tolist() == [["a\nb", 1, 1]]

    with tarfile.open(tmp_path / "cal_housing.tgz", "w:gz") as tar:
        content = b"-122.230000,37.880000,41.000000,880.000000,129,322,126,8.325200,452600.0\n"
        member = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    data_sets.main(["pack", "housing", str(tmp_path / "cal_housing.tgz")])
    packed = gzip.decompress((folder / "california_housing/cal_housing.csv.gz").read_bytes())
    assert packed.split(b"\n")[1] == b"-122.23,37.88,41.0,880.0,129.0,322.0,126.0,8.3252,452600.0"

    arff = (
        '@relation w\n@attribute "user" numeric\n@attribute class { "A" }\n@data\n33,"A"\n?,"A"\n'
    )
    (tmp_path / "WISDM_ar_v1.1_transformed.arff").write_text(arff)
    data_sets.main(["pack", "wisdm", str(tmp_path / "WISDM_ar_v1.1_transformed.arff")])
    packed = gzip.decompress((folder / "wisdm_activity/wisdm_transformed.csv.gz").read_bytes())
    assert packed == b"user,class\n33,A\n,A\n"

    X, y, _ = cifar_archive(tmp_path / "cifar-10-binary.tar.gz")
    data_sets.main(["pack", "cifar10-cats", str(tmp_path / "cifar-10-binary.tar.gz")])
    with np.load(folder / images.PART) as found:
        np.testing.assert_array_equal(found["x_train"], X)
        np.testing.assert_array_equal(found["y_train"], y)
    data_sets.main(["pack", "cifar10", str(tmp_path / "cifar-10-binary.tar.gz")])
    assert images._stored(folder / images.WHOLE)[0].shape == (100, 32, 32, 3)
    capsys.readouterr()
    assert data_sets.main([]) == 1
    told = capsys.readouterr().out
    assert "adult/adult.csv.gz: there, with another checksum" in told
    assert "heart_disease/heart.csv.gz: missing" in told


def test_the_page_on_data_is_what_the_script_writes() -> None:
    assert data_sets.PAGE.read_text(encoding="utf-8") == data_sets.text()
