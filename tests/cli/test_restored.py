"""`erasable suppress export` and `import`: a backup is restored, and brought up to date."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli.running import erasable, make_tiny, told


@pytest.fixture(scope="module")
def _restored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Erase patient-4 and patient-7 after a backup was made, and export the list of the erased."""
    folder = tmp_path_factory.mktemp("restored")
    (folder / "ws").mkdir()
    make_tiny(folder / "ws")
    shutil.copytree(folder / "ws", folder / "backup")
    told("request", "patient-7", folder=folder / "ws")
    told("process", folder=folder / "ws")
    said = run("suppress", "export", "--output", "../erased.json", folder=folder / "ws")
    assert said == "wrote ../erased.json: tokens, which say nothing without the keys\n"
    assert "patient" not in (folder / "erased.json").read_text()
    return folder


@pytest.fixture
def restored(_restored: Path, tmp_path: Path) -> Path:
    shutil.copytree(_restored, tmp_path / "all")
    return tmp_path / "all" / "backup"


def run(*args: str, folder: Path) -> str:
    result = erasable(*args, folder=folder)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_restored_backup_is_brought_up_to_date(restored: Path) -> None:
    assert told("subject", "show", "patient-7", folder=restored)["known"]
    said = run("suppress", "import", "../erased.json", folder=restored).splitlines()
    assert said[0] == "6 identities in the list: 4 new"
    # patient-4, and the mail
    assert said[1] == "2 identities with records here and an open request"
    assert said[2] == "opened 1 request to erase records that came back; run `erasable process`:"
    (pending,) = [
        each for each in told("requests", folder=restored)["requests"] if each["id"] == said[3]
    ]
    assert (pending["state"], pending["regulation"], pending["due_at"]) == ("pending", "none", None)
    run("process", folder=restored)
    assert not told("subject", "show", "patient-7", folder=restored)["known"]
    assert "looked for" in run("receipt", "show", said[3], folder=restored)
    assert run("log", "verify", folder=restored).startswith("the log holds")
    assert told("dataset", "sync", "visits", folder=restored)["n_suppressed"] == 6


def test_to_import_it_again_opens_nothing(restored: Path) -> None:
    first = told("suppress", "import", "../erased.json", folder=restored)
    assert (first["n_listed"], first["n_new"], len(first["requests"])) == (6, 4, 1)
    again = told("suppress", "import", "../erased.json", folder=restored)
    assert (again["n_new"], again["n_waiting"], again["requests"]) == (0, 4, [])
    said = run("suppress", "import", "../erased.json", folder=restored)
    assert "no request was opened" in said


def test_the_export_of_a_restored_backup_says_what_to_do(restored: Path) -> None:
    """The newest state, which a batch wrote outside, is not written over by an older one."""
    result = erasable("process", folder=restored)
    assert result.exit_code == 0
    assert "was not written over" in result.stderr
    assert "run `erasable suppress import`" in result.stderr
    listed = "../ws/elsewhere/suppression.json"
    assert len(told("suppress", "import", listed, folder=restored)["requests"]) == 1


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("gone.json", "there is no file 'gone.json'; expected a suppression list"),
        ("visits.csv", "holds no JSON object; expected a suppression list"),
        ("head.json", "the envelope cannot be read"),
        ("../other.json", "was made under another secret than this workspace's"),
    ],
)
def test_what_is_no_list_of_this_workspace(restored: Path, file: str, words: str) -> None:
    if file == "../other.json":
        run("init", "--workspace", str(restored.parent / "other"), folder=restored)
        run("suppress", "export", "--output", file, "--workspace", str(restored.parent / "other"),
            folder=restored)  # fmt: skip
    result = erasable("suppress", "import", file, folder=restored)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert words in line
    assert "; expected " in line


def test_types_are_told_to_whoever_asks(restored: Path) -> None:
    assert "looked for under the types email, id" in run("request", "patient-8", folder=restored)
    assert "looked for under the type email" in run(
        "request", "P9@example.org", "--type", "email", folder=restored
    )
    assert "looked for" not in run("request", "--where", "age < 3", folder=restored)
    said = run("subject", "show", "nobody", folder=restored)
    assert said == (
        "nothing is kept under this identity, as types email, id, in visits.patient (id), "
        "visits.mail (email), and the target clinic\n"
    )
