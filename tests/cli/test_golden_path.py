"""From a file of patients to a receipt that a stranger checks, on scikit-learn's own data."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_breast_cancer

from cli.running import erasable, make_tiny, told

WITHDRAWN = ["patient-3", "patient-17", "patient-88"]
MODELS = ["groups", "naive", "risk", "tree"]


@dataclass(frozen=True)
class Done:
    """A workspace in which three people were erased, and what the commands said."""

    folder: Path
    foreseen: dict[str, Any]
    status: list[dict[str, Any]]
    taken: str
    processed: dict[str, Any]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("golden")
    write(folder / "visits.csv", range(569))
    run("init", folder=folder)
    run("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "patient",
        folder=folder)  # fmt: skip
    for line in (
        "groups --estimator preprocessing.StandardScaler,cluster.KMeans -p kmeans__n_clusters=3",
        "risk --estimator linear_model.LogisticRegression --target malignant -p C=0.5",
        "naive --estimator naive_bayes.GaussianNB --target malignant",
        "tree --estimator sklearn.tree.DecisionTreeClassifier --target malignant",
    ):
        run("model", "fit", *line.split(), "--dataset", "visits", folder=folder)
    people = "\n".join(WITHDRAWN)
    foreseen = told("request", "--dry-run", "--file", "-", folder=folder, stdin=people)
    status = [told("status", folder=folder)]
    taken = run("request", "--file", "-", folder=folder, stdin=people)
    status.append(told("status", folder=folder))
    processed = told("process", folder=folder)
    status.append(told("status", folder=folder))
    return Done(folder, foreseen, status, taken, processed)


@pytest.fixture
def folder(done: Done) -> Path:
    return done.folder


def write(path: Path, rows: Any) -> None:
    """Write visits of patients, three each, as CSV."""
    data = load_breast_cancer()
    lines = ["visit,patient,radius,texture,smoothness,malignant"]
    for i in rows:
        radius, texture, smoothness = data.data[i, [0, 1, 4]]
        lines.append(f"v{i},patient-{i // 3},{radius},{texture},{smoothness},{1 - data.target[i]}")
    path.write_text("\n".join(lines) + "\n")


def run(*args: str, folder: Path, stdin: str | None = None) -> str:
    result = erasable(*args, folder=folder, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_process_can_be_profiled(tmp_path: Path) -> None:
    run("init", folder=tmp_path)
    phases = told("process", "--profile", folder=tmp_path)["phases"]
    assert phases["starting, importing"] > 0.0
    assert "phases" not in told("process", folder=tmp_path)
    assert "starting, importing" in erasable("process", "--profile", folder=tmp_path).stdout


def test_models_are_prepared_in_threads(tmp_path: Path) -> None:
    run("init", folder=tmp_path)
    assert told("process", "--jobs", "2", folder=tmp_path)["models"] == []
    for given in ("0", "-1", "two"):
        result = erasable("process", f"--jobs={given}", folder=tmp_path)
        assert result.exit_code == 2
        assert f"--jobs is {given!r}; expected a whole number, 1 or more" in result.stderr


def test_a_dry_run_changes_nothing(done: Done) -> None:
    assert done.foreseen["n_records"] == 9
    assert done.status[0]["requests"] == {}


def test_requests_get_an_id_and_a_due_date(done: Done) -> None:
    assert len(set(re.findall(r"R-[0-9A-Z]{10}", done.taken))) == 3
    assert done.taken.count("days left)") == 3
    assert done.status[1]["requests"] == {"pending": 3}


def test_every_model_lets_go_of_them(done: Done) -> None:
    ids = re.findall(r"R-[0-9A-Z]{10}", done.taken)
    assert sorted(done.processed["completed"]) == sorted(ids)
    assert done.processed["n_records"] == 9
    assert {each["model"]: each["treatment"] for each in done.processed["models"]} == {
        "groups": "deleted", "naive": "deleted", "risk": "deleted", "tree": "refitted",
    }  # fmt: skip
    assert done.status[2]["requests"] == {"completed": 3}
    assert done.status[2]["n_records"] == 560
    completed = told("requests", "--state", "completed", folder=done.folder)["requests"]
    assert {each["id"]: each["matched"] for each in completed} == dict.fromkeys(ids, 3)


def test_the_models_equal_a_refit(folder: Path) -> None:
    verdicts = told("verify", folder=folder)
    assert verdicts["equal"] is True
    assert [each["model"] for each in verdicts["models"]] == MODELS
    assert {each["verdict"] for each in verdicts["models"]} == {"equal"}
    assert told("log", "verify", folder=folder) == {"holds": True, "problems": [], "remarks": []}


def test_a_stranger_checks_the_receipt(folder: Path, tmp_path: Path) -> None:
    request = told("requests", "--state", "completed", folder=folder)["requests"][0]["id"]
    run("receipt", "show", request, "--output", str(tmp_path / "receipt.json"), folder=folder)
    (tmp_path / "workspace.pub").write_text(run("key", folder=folder))
    args = ["receipt", "check", "receipt.json", "--key", "workspace.pub"]
    assert "holds" in run(*args, folder=tmp_path)
    found = told(*args, folder=tmp_path)
    assert found["request"] == request
    assert [each["name"] for each in found["says"]["models"]] != []
    assert "wrote receipt.html" in run(*args, "--html", "receipt.html", folder=tmp_path)
    run("receipt", "show", request, "--html", str(tmp_path / "shown.html"), folder=folder)
    page = (tmp_path / "receipt.html").read_text()
    assert f"Receipt {request}" in page
    assert (tmp_path / "shown.html").read_text() == page
    text = (tmp_path / "receipt.json").read_text()
    assert not any(person in text for person in WITHDRAWN)


def test_the_erased_do_not_come_back(folder: Path) -> None:
    write(folder / "again.csv", range(569))
    change = told("dataset", "sync", "visits", "again.csv", folder=folder)
    assert (change["n_records"], change["n_suppressed"]) == (560, 9)
    assert told("subject", "show", WITHDRAWN[0], folder=folder)["known"] is False
    assert len(told("suppress", "list", folder=folder)["suppressed"]) == 3


def test_predictions_can_be_written(folder: Path) -> None:
    found = told("model", "predict", "risk", "visits.csv", folder=folder)
    assert (found["n"], len(found["predictions"])) == (569, 569)
    shown = run("model", "predict", "risk", "visits.csv", folder=folder)
    assert "549 more" in shown
    run("model", "predict", "risk", "visits.csv", "--output", "risks.csv", folder=folder)
    assert len((folder / "risks.csv").read_text().splitlines()) == 570
    run("model", "predict", "risk", "visits.csv", "--output", "risks.parquet", folder=folder)
    assert (folder / "risks.parquet").read_bytes()[:4] == b"PAR1"


def test_a_head_that_was_kept_holds_later(folder: Path) -> None:
    run("log", "head", "--output", "head.json", folder=folder)
    request = told("request", "patient-50", "--regulation", "ccpa", folder=folder)["requests"][0]
    assert told("log", "verify", "--since", "head.json", folder=folder)["holds"] is True
    extended = told("extend", request["id"], "--reason", "many requests at once", folder=folder)
    assert "CCPA" in extended["notice"]
    assert extended["request"]["due_at"] > request["due_at"]
    assert told("hold", request["id"], "--reason", "who is it", folder=folder)["request"]["hold"]
    assert "on hold" in run("requests", folder=folder)
    (counted,) = [
        line for line in run("status", folder=folder).splitlines() if line.startswith("requests")
    ]
    numbers = [int(word) for word in counted.replace(",", " ").split() if word.isdigit()]
    assert sum(numbers) == len(told("requests", folder=folder)["requests"])
    assert not told("hold", request["id"], "--lift", folder=folder)["request"]["hold"]
    assert told("cancel", request["id"], folder=folder)["request"]["state"] == "cancelled"


def test_a_late_request_says_so(folder: Path) -> None:
    taken = told("request", "patient-60", "--received", "2025-01-31", folder=folder)["requests"][0]
    assert taken["due_at"].startswith("2025-02-28")
    assert "(LATE: " in run("requests", "--state", "pending", folder=folder)
    assert "LATE" in run("status", folder=folder)
    run("deny", taken["id"], "--reason", "a legal duty", folder=folder)


def test_one_page_shows_it_all(folder: Path) -> None:
    run("report", "report.html", folder=folder)
    page = (folder / "report.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert not any(person in page for person in WITHDRAWN)


def test_nothing_is_left_of_who_was_erased(folder: Path) -> None:
    for path in [*(folder / "artifacts").rglob("*"), *folder.glob("ledger.db*")]:
        if path.is_file():
            data = path.read_bytes()
            assert b"patient-" not in data, path
    stored = json.dumps(told("log", "show", folder=folder))
    assert not any(person in stored for person in WITHDRAWN)


def test_a_request_that_meets_nobody_is_told(tmp_path: Path) -> None:
    write(tmp_path / "visits.csv", range(30))
    run("init", folder=tmp_path)
    source = str(tmp_path / "visits.csv")
    run("dataset", "add", "visits", source, "--id", "visit", "--subject", "patient",
        folder=tmp_path)  # fmt: skip
    run("request", "patient-1", folder=tmp_path)
    assert "no match" not in run("process", folder=tmp_path)
    run("request", "patient-2", "Patient-3", folder=tmp_path)
    assert "no match for 1 of them" in run("process", folder=tmp_path)


def test_what_is_told_of_who_was_erased(tmp_path: Path) -> None:
    make_tiny(tmp_path)
    said = run("subject", "show", "patient-3", folder=tmp_path)
    assert said.startswith("nothing but a pseudonym on the suppression list is kept under this")
    assert "on the suppression list as id, since" in said
    (asked,) = told("request", "patient-3", folder=tmp_path)["requests"]
    said = run("process", folder=tmp_path)
    assert "later data is kept out, because they were erased before" in said
    listed = run("requests", "--state", "no_match", folder=tmp_path)
    assert asked["id"] in listed
    assert "no match" in listed
    receipt = run("receipt", "show", asked["id"], folder=tmp_path)
    assert "visits.patient (id), visits.mail (email)" in receipt
    unreached = told("receipt", "show", asked["id"], folder=tmp_path)["says"]["out_of_reach"]
    assert unreached
    assert f"out of reach: {'; '.join(unreached)}\n" in receipt
    said = run("request", "--dry-run", "nobody", folder=tmp_path)
    assert "no match for 1 request: looked for under the types email, id, in visits.patient" in said
