"""`erasable backup` and `restore`: a person who was erased after the backup stays erased."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.running import erasable, make_tiny, told


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Back up, erase patient-7, and lose the workspace but for its keys."""
    folder = tmp_path_factory.mktemp("backups")
    (folder / "ws").mkdir()
    make_tiny(folder / "ws")
    made = told("backup", "../monday.tar", folder=folder / "ws")
    assert (made["path"], made["with_keys"]) == (str(folder / "monday.tar"), False)
    told("request", "patient-7", folder=folder / "ws")
    told("process", folder=folder / "ws")
    shutil.copytree(folder / "ws" / "elsewhere", folder / "elsewhere")
    shutil.copy(folder / "ws" / "keys.json", folder)
    shutil.rmtree(folder / "ws")
    return folder


@pytest.fixture
def folder(_made: Path, tmp_path: Path) -> Path:
    shutil.copytree(_made, tmp_path / "all")
    return tmp_path / "all"


GIVEN = [
    "--keys", "keys.json", "--suppressions", "elsewhere/suppression.json",
    "--head", "elsewhere/head.json",
]  # fmt: skip


def test_it_is_restored_without_who_was_erased_since(folder: Path) -> None:
    result = erasable("restore", "monday.tar", "--to", "new", *GIVEN, folder=folder)
    assert result.exit_code == 0, result.output
    assert "erased again: 4 records, by 2 requests" in result.stdout  # patient-4 was pending
    assert "cannot be shown to follow" in result.stderr
    assert not told("subject", "show", "patient-7", folder=folder / "new")["known"]
    assert told("subject", "show", "patient-8", folder=folder / "new")["known"]
    assert "restored" in erasable("status", folder=folder / "new").stdout
    assert erasable("log", "verify", folder=folder / "new").exit_code == 0
    told("target", "remove", "clinic", "--give-up", folder=folder / "new")  # nobody has its file
    told("process", folder=folder / "new")
    requests = told("requests", folder=folder / "new")["requests"]
    lines = [
        erasable("receipt", "show", each["id"], folder=folder / "new").stdout
        for each in sorted(requests, key=lambda each: each["completed_at"] or "")
        if each["state"] == "completed"
    ]
    assert ["this log goes its own way" in each for each in lines] == [False, True, True]
    since = erasable("log", "verify", "--since", "../elsewhere/head.json", folder=folder / "new")
    assert since.exit_code == 1
    assert "a backup with" in since.stdout


@pytest.mark.soak
def test_to_programs(folder: Path) -> None:
    found = told("restore", "monday.tar", "--to", "new", *GIVEN, folder=folder)
    assert found["equal"]
    assert (found["n_records"], len(found["requests"])) == (4, 2)
    assert {each["verdict"] for each in found["models"]} == {"equal", "not covered"}
    assert "patient" not in json.dumps(found)


def test_without_a_list_it_has_to_be_said(folder: Path) -> None:
    line = ["restore", "monday.tar", "--to", "new", "--keys", "keys.json"]
    for more in ([], ["--no-suppressions", "--suppressions", "elsewhere/suppression.json"]):
        result = erasable(*line, *more, folder=folder)
        assert result.exit_code == 2
        assert "were both given, or neither; expected one" in result.stderr
        assert not (folder / "new").exists()
    result = erasable(*line, "--no-suppressions", folder=folder)
    assert result.exit_code == 0
    assert "is back, in the data and in every model" in result.stderr
    assert told("subject", "show", "patient-7", folder=folder / "new")["known"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["monday.tar", "missing.tar"], "there is no backup 'missing.tar'"),
        (["monday.tar", "keys.json"], "a header has another form"),
        (["keys.json", "gone.json"], "there is no key file"),
        (["elsewhere/suppression.json", "gone.json"], "there is no file 'gone.json'"),
        (
            ["elsewhere/suppression.json", "elsewhere/head.json"],
            "suppressions: the envelope cannot",
        ),
        (["elsewhere/head.json", "elsewhere/suppression.json"], "head: the envelope holds another"),
        (["new", "elsewhere"], "is in use; expected a folder that is empty"),
    ],
)
def test_what_is_refused(folder: Path, changes: list[str], words: str) -> None:
    line = ["restore", "monday.tar", "--to", "new", *GIVEN]
    was, now = changes
    result = erasable(*[now if each == was else each for each in line], folder=folder)
    assert result.exit_code == 2
    (error,) = result.stderr.splitlines()
    assert words in error
    assert not (folder / "new").exists()
