"""What people who run workspaces expect of names, folders, exit codes and columns."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cli.running import erasable, rows_of, told
from erasable.core.errors import WorkspaceError
from erasable.workspace import Workspace
from naming import named


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "ws"
    path.mkdir()
    (path / "visits.csv").write_text(rows_of(0, 60))
    told("init", folder=path)
    told("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "patient",
         folder=path)  # fmt: skip
    return path


FIT = ("model", "fit", "risk", "--dataset", "visits", "--estimator", "naive_bayes.GaussianNB")


def test_init_takes_the_folder_as_an_argument(tmp_path: Path) -> None:
    assert erasable("init", "shop", folder=tmp_path).exit_code == 0
    assert Workspace.open(tmp_path / "shop").datasets() == []
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("given", [("",), ("--workspace", "")], ids=named)
def test_init_refuses_a_folder_without_a_name(tmp_path: Path, given: tuple[str, ...]) -> None:
    result = erasable("init", *given, folder=tmp_path)
    assert result.exit_code == 2
    assert "the name of the folder is empty" in result.stderr
    assert not any(tmp_path.iterdir())


def test_a_path_is_opened(folder: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"expected Workspace\.open"):
        Workspace(folder)  # type: ignore[arg-type]
    assert len(Workspace.open(folder).datasets()) == 1


def test_status_and_requests_show_what_is_late(folder: Path) -> None:
    assert erasable("status", "--check", folder=folder).exit_code == 0
    late = ("request", "patient-1", "--received", "2020-01-01")
    first, second = [
        told(*asked, folder=folder)["requests"][0]["id"]
        for asked in (late, ("request", "patient-2"))
    ]
    told("hold", second, "--reason", "in doubt", folder=folder)
    assert erasable("status", folder=folder).exit_code == 0
    assert erasable("status", "--check", folder=folder).exit_code == 1
    for state, expected in (("late", [first]), ("on_hold", [second]), ("pending", [first, second])):
        found = told("requests", "--state", state, folder=folder)["requests"]
        assert [each["id"] for each in found] == expected
    told("process", folder=folder)
    assert erasable("status", "--check", folder=folder).exit_code == 0
    assert told("requests", "--state", "late", folder=folder)["requests"] == []
    with pytest.raises(WorkspaceError, match=r"no state 'lat'.*expected some of.*late"):
        Workspace.open(folder).requests(["lat"])


def test_a_backup_makes_the_folder_that_ends_with_a_slash(folder: Path) -> None:
    told("backup", f"{folder.parent}/kept/", folder=folder)
    (made,) = (folder.parent / "kept").iterdir()
    assert made.name.startswith("erasable-")
    result = erasable("backup", f"{folder.parent}/no/kept/", folder=folder)
    assert result.exit_code == 2
    assert "expected a folder" in result.stderr
    assert not (folder.parent / "no").exists()
    (folder.parent / "file").write_text("")
    assert erasable("backup", f"{folder.parent}/file/", folder=folder).exit_code == 2
    assert (folder.parent / "file").read_text() == ""


def test_probabilities_have_columns_of_their_own(folder: Path) -> None:
    told(*FIT, "--target", "sick", folder=folder)
    plain = told("model", "predict", "risk", "visits.csv", folder=folder)["predictions"]
    found = told("model", "predict", "risk", "visits.csv", "--proba", folder=folder)["predictions"]
    assert [row["prediction"] for row in found] == [row["prediction"] for row in plain]
    names = [name for name in found[0] if name.startswith("probability_")]
    assert len(names) == 2
    for row in found:
        assert sum(row[name] for name in names) == pytest.approx(1)
        assert row[f"probability_{row['prediction']}"] == max(row[name] for name in names)
    told("model", "predict", "risk", "visits.csv", "--proba", "--output", "p.csv", folder=folder)
    with (folder / "p.csv").open() as file:
        assert names == [name for name in next(csv.reader(file)) if name.startswith("prob")]
    told("model", "fit", "groups", "--dataset", "visits", "--estimator", "cluster.KMeans",
         "-p", "n_clusters=2", folder=folder)  # fmt: skip
    result = erasable("model", "predict", "groups", "visits.csv", "--proba", folder=folder)
    assert result.exit_code == 2
    assert "no probabilities" in result.stderr


def test_a_retired_name_can_be_used_again(folder: Path) -> None:
    told(*FIT, "--target", "sick", folder=folder)
    told("model", "retire", "risk", folder=folder)
    told("dataset", "add", "more", "visits.csv", "--id", "visit", "--subject", "patient",
         folder=folder)  # fmt: skip
    told("model", "register", "risk", "--dataset", "visits", "--dataset", "more", folder=folder)
    assert (
        erasable("model", "register", "risk", "--dataset", "visits", folder=folder).exit_code == 2
    )
    assert erasable(*FIT, "--target", "sick", folder=folder).exit_code == 2  # trained elsewhere
    told("request", "patient-1", folder=folder)
    (treated,) = told("process", folder=folder)["models"]
    assert treated["treatment"] == "not covered"
    told("model", "retire", "risk", folder=folder)
    # It does not inherit what a retired model of that name was: no target is known.
    assert erasable(*FIT, folder=folder).exit_code == 2
    fitted = told(*FIT, "--target", "sick", folder=folder)
    assert fitted["version"] == 2
    assert erasable("verify", folder=folder).exit_code == 0
    assert erasable("log", "verify", folder=folder).exit_code == 0
    told("request", "patient-2", folder=folder)
    (treated,) = told("process", folder=folder)["models"]
    assert treated["treatment"] == "deleted"
    assert erasable("verify", folder=folder).exit_code == 0


def test_a_command_runs_in_any_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = tmp_path / "my scripts"
    scripts.mkdir()
    (scripts / "copy.py").write_text(
        "import shutil, sys\nif len(sys.argv) > 2:\n    shutil.copy(sys.argv[1], sys.argv[2])\n"
    )
    monkeypatch.chdir(scripts)
    found = Workspace.open(folder)
    found.register("rank", datasets=["visits"], retrain="python copy.py {data} {out}",
                   hook="python ./copy.py {model}")  # fmt: skip
    command = found.model("rank")["estimator"]
    assert command == f"python '{scripts}/copy.py' {{data}} {{out}}"
    monkeypatch.chdir(tmp_path)
    request = found.request(["patient-1"])[0]
    done = found.process()
    assert (done.requests, done.hooks, done.warnings) == ([request.id], ["rank"], [])
    (verdict,) = found.verify(retrain=True)
    assert verdict.verdict == "equal"
