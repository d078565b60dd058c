"""Who was erased after a backup was made is not in the workspace that is restored from it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import backends
import pytest
from contexts import scan, visits, write_csv
from crashes import MARKERS, make_workspace
from offsite_scene import GONE, Scene, make
from traces import tokens_in

from erasable.core.errors import (
    EvidenceError,
    NotInWorkspaceError,
    WorkspaceError,
    WorkspaceVersionError,
)
from erasable.workspace import Workspace
from erasable.workspace.backups import restore as restoring
from erasable.workspace.evidence import receipts
from erasable.workspace.models import using


@pytest.fixture(scope="module")
def made(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make(tmp_path_factory.mktemp("restore"))


@pytest.fixture
def scene(made: Scene, tmp_path: Path) -> Scene:
    """What is left when the workspace is lost, but for its keys."""
    scene = Scene(tmp_path)
    for path in (made.backup, made.keys, made.suppressions, made.head):
        place = tmp_path / path.relative_to(made.folder)
        place.parent.mkdir(exist_ok=True)
        shutil.copy(path, place)
    return scene


@pytest.fixture
def target(backend: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where the ledger of a restored workspace is: in the database that is tested."""
    if backend == "sqlite":
        return {}
    server = request.getfixturevalue("server")
    return {"database": server.url(server.database()), "schema": "ws"}


def test_nothing_is_left_of_who_was_erased_since(
    made: Scene, scene: Scene, target: dict[str, Any]
) -> None:
    assert scan(made.backup.parent, *GONE)  # so it can be found: in the backup
    tokens = set(Workspace.open(made.workspace).context.keys.tokens("id", GONE))
    assert all(token.encode() in made.backup.read_bytes() for token in tokens)
    workspace = scene.restore(**target)
    assert scan(scene.folder / "new", *GONE) == []
    kept_out = {each["token"] for each in workspace.suppressed()}
    assert tokens <= kept_out
    assert tokens_in(scene.folder / "new", tokens) == set()
    assert workspace.verify_log() == []
    assert {each.verdict for each in workspace.verify()} == {"equal"}


def test_the_models_are_those_of_the_workspace_that_was_lost(
    made: Scene, scene: Scene, target: dict[str, Any]
) -> None:
    """Two ways to the same: an erasure there, a restore here. The last request was not asked."""
    lost, workspace = Workspace.open(made.workspace), scene.restore(**target)
    workspace.process()  # what was pending in the backup
    counts = {each["name"]: each["n_records"] for each in lost.datasets()}
    assert {each["name"]: each["n_records"] for each in workspace.datasets()} == counts
    for model in ("range", "risk", "segments", "tree"):
        assert (
            using.open_model(workspace.context, model)[2]
            == using.open_model(lost.context, model)[2]
        )


@pytest.mark.soak
def test_new_records_of_theirs_are_kept_out(scene: Scene, target: dict[str, Any]) -> None:
    workspace = scene.restore(**target)
    columns = visits(9, start=900)
    columns["patient"] = [*GONE, *(f"somebody-{i}" for i in range(6))]
    write_csv(scene.folder / "more.csv", columns)
    assert workspace.append("visits", scene.folder / "more.csv").n_suppressed == 3


@pytest.mark.parametrize(
    ("source", "into"),
    [
        ("sqlite", "postgres"),
        pytest.param("postgres", "sqlite", marks=pytest.mark.soak),
        pytest.param("postgres", "postgres", marks=pytest.mark.soak),
    ],
)
@pytest.mark.backend("sqlite")
def test_from_either_database_into_either(
    source: str, into: str, server: Any, tmp_path: Path
) -> None:
    if source == "postgres":
        with backends.on(server):
            scene = make(tmp_path)
    else:
        scene = make(tmp_path)
    where = {} if into == "sqlite" else {"database": server.url(server.database())}
    workspace = scene.restore(**where)
    assert (workspace.context.ledger.engine.dialect.name == "postgresql") == (into == "postgres")
    with backends.on(server):  # which has files, too
        assert scan(tmp_path / "ws", *GONE) == scan(tmp_path / "new", *GONE) == []
    write_csv(tmp_path / "others.csv", visits(9, start=900))
    workspace.add_dataset("others", tmp_path / "others.csv", id_column="visit")
    assert workspace.verify_log() == []  # ids are counted on from the last


# -- what the workspace says of it -----------------------------------------------------------------


def test_the_log_and_the_receipts_say_what_happened(
    made: Scene, scene: Scene, target: dict[str, Any]
) -> None:
    lost, workspace = Workspace.open(made.workspace), scene.restore(**target)
    head = json.loads(scene.head.read_text())
    (entry,) = [each for each in workspace.log_entries() if each["kind"] == "workspace-restored"]
    size = entry["position"]
    assert [each["kind"] for each in workspace.log_entries()[:size]] == [
        each["kind"] for each in lost.log_entries()[:size]
    ]
    assert (entry["log_size"], entry["head_size"]) == (size, head["size"])
    assert entry["head_root"] == head["root"]
    status = workspace.status()["restored"]
    assert (status["log_size"], status["head_size"]) == (size, head["size"])
    assert lost.status()["restored"] is None
    (told,) = workspace.verify_log(head)
    assert f"a backup with {size} entries was restored (entry {size}; a head of" in told
    gone = next(each for each in lost.requests(["completed"]) if each.matched)
    old = lost.receipt(gone.id)
    assert receipts.check(old, workspace.public_key).request == gone.id
    assert "restored" not in receipts.show(old)
    for request in workspace.requests(["completed"]):
        said = receipts.show(workspace.receipt(request.id))
        assert said["restored"]["position"] == size
        assert said["restored"]["head_size"] == head["size"]


@pytest.mark.soak
def test_the_next_batch_writes_outside_again(scene: Scene, target: dict[str, Any]) -> None:
    """Over the head that was taken in, and no other."""
    before = scene.head.read_text()
    workspace = scene.restore(**target)
    assert scene.head.read_text() == before
    with workspace.context.ledger.transaction() as connection:
        workspace.context.ledger.set(connection, "export", str(scene.head.parent))
    workspace.request(["marker-patient-031"])
    assert workspace.process().warnings == []
    assert workspace.verify_log(json.loads(scene.head.read_text())) == []
    scene.head.write_text(before)  # of a workspace that is in use elsewhere, say
    workspace.request(["marker-patient-032"])
    (warning,) = workspace.process().warnings
    assert "was not written over" in warning


@pytest.mark.soak
def test_hooks_are_not_run_and_nothing_is_written_outside(tmp_path: Path) -> None:
    """A drill beside a workspace in use changes nothing of it."""
    workspace = Workspace.open(make_workspace(tmp_path))
    workspace.fit("risk", hook=f"touch {tmp_path}/called")
    with workspace.context.ledger.transaction() as connection:
        workspace.context.ledger.set(connection, "export", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    scene = Scene(tmp_path)
    workspace.back_up(scene.backup)
    workspace.process()
    assert (tmp_path / "called").exists()  # by the workspace itself
    (tmp_path / "called").unlink()
    before = {path.name: path.read_bytes() for path in (tmp_path / "elsewhere").iterdir()}
    scene.restore()
    assert not (tmp_path / "called").exists()
    assert {p.name: p.read_bytes() for p in (tmp_path / "elsewhere").iterdir()} == before


# -- requests that the backup knows of -------------------------------------------------------------


@pytest.mark.soak
def test_who_was_on_hold_in_the_backup_and_erased_since(
    scene: Scene, tmp_path: Path, target: dict[str, Any]
) -> None:
    folder = tmp_path / "held"
    folder.mkdir()
    workspace = Workspace.open(make_workspace(folder))
    held = next(each for each in workspace.requests() if "id" in (each.types or ()))
    workspace.hold(held.id, "identity in doubt")
    other = Scene(folder)
    other.suppressions.parent.mkdir()
    workspace.back_up(other.backup)
    workspace.resume(held.id)
    workspace.process()
    other.suppressions.write_text(json.dumps(workspace.suppression_list()))
    other.head.write_text(json.dumps(workspace.head()))
    restored = other.restore(**target)
    assert scan(folder / "new", *GONE) == []
    (found,) = [each for each in restored.requests() if each.id == held.id]
    assert (found.state, found.hold) == ("completed", None)


@pytest.mark.soak
def test_without_a_list_they_are_back_and_it_says_so(scene: Scene, target: dict[str, Any]) -> None:
    found = Workspace.restore(
        scene.backup, scene.folder / "new",
        **scene.given(suppressions=None, head=None, **target),
    )  # fmt: skip
    (told,) = found.warnings
    assert "whoever was erased after" in told
    assert "is back" in told
    workspace = Workspace.open(scene.folder / "new")
    assert scan(scene.folder / "new", *GONE)
    assert workspace.status()["restored"]["head_size"] is None
    (entry,) = [each for each in workspace.log_entries() if each["kind"] == "workspace-restored"]
    assert entry["list"] is None


@pytest.mark.soak
def test_a_list_that_is_older_than_the_head(made: Scene, scene: Scene) -> None:
    later = json.loads(scene.head.read_text())
    workspace = Workspace.open(made.workspace)
    workspace.request(["marker-patient-015"])
    head = workspace.head()
    assert head["size"] == later["size"] + 1
    found = Workspace.restore(scene.backup, scene.folder / "new", **scene.given(head=head))
    assert any("whoever was erased in between is back" in each for each in found.warnings)


# -- what is refused -------------------------------------------------------------------------------


def refused(
    scene: Scene, error: type[Exception], match: str, name: str = "new", **changes: Any
) -> None:
    """See that nothing is restored, and nothing there."""
    before = sorted(path.name for path in scene.folder.iterdir())
    with pytest.raises(error, match=match) as told:
        Workspace.restore(scene.backup, scene.folder / name, **scene.given(**changes))
    assert "\n" not in str(told.value)
    assert "; expected " in str(told.value)
    assert sorted(path.name for path in scene.folder.iterdir()) == before


def test_keys_list_and_head_of_another_workspace(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("other")
    other = Workspace.create(folder / "ws")
    refused(scene, EvidenceError, "keys are not those", keys=folder / "ws" / "keys.json")
    refused(scene, EvidenceError, "there is no key file", keys=folder / "none.json")
    refused(scene, EvidenceError, "holds no keys, and none were named", keys=None)
    refused(
        scene,
        EvidenceError,
        "^suppressions: .* another secret",
        suppressions=other.suppression_list(),
    )
    unread = "^suppressions: the envelope cannot be read"
    refused(scene, EvidenceError, unread, suppressions=scene.given()["head"])
    refused(scene, EvidenceError, "^head: the signature does not hold", head=other.head())
    refused(scene, EvidenceError, "^head: the envelope cannot be read", head={"size": 3})
    monkeypatch.setenv("ERASABLE_KEYS", str(folder / "ws" / "keys.json"))
    refused(scene, EvidenceError, "keys in ERASABLE_KEYS are not those that")
    monkeypatch.setenv("ERASABLE_KEYS", str(scene.keys))
    workspace = scene.restore(keys=None)
    assert not (workspace.context.root / "keys.json").exists()


def test_list_and_head_of_another_workspace_with_the_same_keys(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("twin") / "ws"
    folder.mkdir()
    shutil.copy(scene.keys, folder / "keys.json")
    twin = Workspace.create(folder)
    assert twin.public_key  # the same
    refused(scene, EvidenceError, "is of another workspace", suppressions=twin.suppression_list())
    refused(scene, EvidenceError, "head is of another workspace", head=twin.head())


def test_a_head_that_was_forged(scene: Scene) -> None:
    head = scene.given()["head"]
    refused(scene, EvidenceError, "something else than what was signed", head={**head, "size": 3})
    envelope = {**head["envelope"], "payload": head["envelope"]["payload"][:-4] + "AAAA"}
    refused(scene, EvidenceError, "signature does not hold|cannot be read", head=envelope)


@pytest.mark.soak
def test_a_head_of_another_branch(scene: Scene) -> None:
    """Both are signed by the workspace: one log went another way after a restore."""
    one, two = scene.restore("one"), scene.restore("two")
    one.request(["somebody"])
    two.request(["somebody else"])
    backup = scene.folder / "of_two.tar"
    two.back_up(backup)
    scene.backup = backup
    refused(scene, EvidenceError, "are not those of the head", head=one.head())
    scene.restore("three", head=two.head())


def test_a_folder_or_schema_that_is_in_use(scene: Scene, server: Any) -> None:
    (scene.folder / "full").mkdir()
    (scene.folder / "full" / "x").write_text("mine")
    (scene.folder / "file").write_text("mine")
    for name in ("full", "file", "ws", "missing/new"):
        refused(scene, WorkspaceError, "is in use|cannot be made", name)
    url = server.url(server.database())
    Workspace.create(scene.folder / "first", database=url, schema="team")
    refused(scene, WorkspaceError, "'team' of the database is in use", database=url, schema="team")
    assert Workspace.open(scene.folder / "first").verify_log() == []
    assert (scene.folder / "full" / "x").read_text() == "mine"


def test_a_backup_of_a_newer_version(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "REVISION", "0000")
    refused(scene, WorkspaceVersionError, "in the backup has revision")


@pytest.mark.soak
def test_what_fails_on_the_way_leaves_nothing(
    scene: Scene, target: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise WorkspaceError("the model 'tree' fails; expected one; mend it")

    monkeypatch.setattr(restoring.process, "process", fail)
    refused(scene, WorkspaceError, "'tree' fails", **target)
    monkeypatch.undo()
    assert scan(scene.restore(**target).context.root, *GONE) == []


@pytest.mark.soak
def test_an_empty_folder_stays_where_nothing_comes_of_it(scene: Scene) -> None:
    (scene.folder / "new").mkdir()
    refused(scene, EvidenceError, "cannot be read", head={"size": 3})
    assert list((scene.folder / "new").iterdir()) == []


@pytest.mark.soak
def test_a_model_that_cannot_be_trained_here_is_given_up(tmp_path: Path) -> None:
    path = make_workspace(tmp_path)
    workspace = Workspace.open(path)
    tool = tmp_path / "train"
    tool.write_text("#!/bin/sh\ncp $1 $2\n")
    tool.chmod(0o755)
    workspace.register("ours", datasets=["visits"], retrain=f"{tool} {{data}} {{out}}")
    scene = Scene(tmp_path)
    workspace.back_up(scene.backup)
    workspace.process()
    scene.suppressions.parent.mkdir()
    scene.suppressions.write_text(json.dumps(workspace.suppression_list()))
    scene.head.write_text(json.dumps(workspace.head()))
    tool.unlink()
    with pytest.raises(WorkspaceError, match="without the model: --retire ours") as told:
        scene.restore()
    assert "model retire" not in str(told.value)  # nobody can open it until then
    with pytest.raises(NotInWorkspaceError):
        scene.restore(retire=["missing"])
    restored = scene.restore(retire=["ours"])
    assert restored.model("ours")["state"] == "retired"
    assert scan(restored.context.root, *MARKERS) == []


@pytest.mark.soak
def test_keys_may_be_in_the_backup(made: Scene, scene: Scene) -> None:
    workspace = Workspace.open(made.workspace)
    scene.backup = scene.folder / "with_keys.tar"
    workspace.back_up(scene.backup, with_keys=True)
    secret = json.loads(made.keys.read_text())["secret"].encode()
    assert secret in scene.backup.read_bytes()
    assert secret not in made.backup.read_bytes()
    restored = scene.restore(keys=None, suppressions=workspace.suppression_list())
    assert restored.public_key == workspace.public_key
    assert (restored.context.root / "keys.json").stat().st_mode & 0o077 == 0
