"""Who only looks, beside a process at work, sees one state, or is told that it is busy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from contexts import visits, write_csv
from sqlalchemy import Connection

import erasable
from erasable.core.errors import NotInWorkspaceError, WorkspaceBusyError
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.store.artifacts import StoredArtifact


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.create(tmp_path / "ws")
    write_csv(tmp_path / "visits.csv", visits(60))
    made.add_dataset("visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"])
    made.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    return made


@pytest.mark.parametrize(
    "look",
    [
        lambda workspace, out: workspace.preview(["marker-patient-3"]),
        lambda workspace, out: workspace.preview(where="age < 30"),
        lambda workspace, out: workspace.subject("marker-patient-3"),
        lambda workspace, out: workspace.export("risk", out),
    ],
    ids=["preview", "preview of a condition", "subject", "export"],
)
def test_who_reads_files_that_may_go_waits_its_turn(
    workspace: Workspace, tmp_path: Path, look: Callable[[Workspace, Path], object]
) -> None:
    path, out = workspace.context.root, tmp_path / "out"
    other = Workspace(Context.open(path, wait=0.01))
    with (
        Context.open(path).lock(),
        pytest.raises(WorkspaceBusyError, match="another process is at work"),
    ):
        look(other, out)
    assert not out.exists()
    look(other, out)


def test_a_prediction_is_of_one_model_though_another_takes_its_place(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look into the ledger and the file, a whole batch is carried out."""
    pyarrow.csv.write_csv(pa.table(visits(60)), tmp_path / "new.csv")
    before = workspace.predict("risk", tmp_path / "new.csv")
    people = [f"marker-patient-{i}" for i in range(0, 20, 2)]
    other = Workspace.open(workspace.context.root)
    other.request(people)
    store, calls = workspace.context.store, []
    read = store.open

    def meanwhile(stored: StoredArtifact) -> bytes:
        if not calls:
            calls.append(stored)
            other.process()
        return read(stored)

    monkeypatch.setattr(store, "open", meanwhile)
    found = workspace.predict("risk", tmp_path / "new.csv")
    assert calls
    workspace.export("risk", tmp_path / "risk.model")
    now = erasable.load(tmp_path / "risk.model")
    columns = pyarrow.csv.read_csv(tmp_path / "new.csv").select([*now.feature_names_in_])
    assert found["prediction"].to_pylist() == now.predict(columns).tolist()
    assert found.column_names == before.column_names


def test_a_file_that_is_gone_for_good_is_told(workspace: Workspace, tmp_path: Path) -> None:
    for path in (workspace.context.root / "artifacts" / "models" / "risk").iterdir():
        path.unlink()
    with pytest.raises(NotInWorkspaceError, match="restore it from a backup"):
        workspace.predict("risk", tmp_path / "visits.csv")


@pytest.mark.parametrize("within", ["transaction", "reading", "holding"])
def test_keys_are_read_over_the_connection_that_is_open(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, within: str
) -> None:
    """With a second one two processes wait for each other: a purge is between the two."""
    context = Context.open(workspace.context.root)
    with getattr(context.ledger, within)() as connection:
        with monkeypatch.context() as patch:
            patch.setattr(context.ledger, "reading", None)
            assert context.keys.key_id == workspace.context.keys.key_id
        with context.ledger.looking() as again:
            assert again is connection
    with context.ledger.looking() as another:
        assert another is not connection
    context.ledger.close()


def test_no_command_opens_a_second_connection_within_the_first(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def counted(name: str) -> Callable[[Ledger], AbstractContextManager[Connection]]:
        real = getattr(Ledger, name)

        @contextmanager
        def inside(ledger: Ledger) -> Iterator[Connection]:
            assert not opened, f"{name} within {opened[-1]}"
            opened.append(name)
            try:
                with real(ledger) as connection:
                    yield connection
            finally:
                opened.pop()

        return inside

    for name in ("transaction", "reading", "holding"):
        monkeypatch.setattr(Ledger, name, counted(name))
    path = workspace.context.root
    (asked,) = Workspace.open(path).request(["marker-patient-1"])
    Workspace.open(path).hold(asked.id, "a reason")
    Workspace.open(path).resume(asked.id)
    Workspace.open(path).process()
    Workspace.open(path).request(["marker-patient-2"])
    Workspace.open(path).work(drain=True)
    Workspace.open(path).verify()
    Workspace.open(path).verify_log()
    Workspace.open(path).report(tmp_path / "page.html")
    Workspace.open(path).retire("risk")
    assert len(Workspace.open(path).requests()) == 2
