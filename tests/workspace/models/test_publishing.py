"""A model is registered in MLflow after every fit and every erasure, by a real MLflow.

Its store is a database of SQLite with a registry, and a folder for files: no server.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pandas
import pytest
import yaml
from contexts import visits, write_csv

import erasable
from erasable.core.errors import (
    ArtifactError,
    InvalidDataError,
    MissingPackageError,
    NotInWorkspaceError,
    WorkspaceError,
    WorkspaceServerError,
)
from erasable.naive_bayes import GaussianNB
from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from erasable.workspace.evidence.envelope import peek
from erasable.workspace.models.mlflow_registry import LOADER
from erasable.workspace.models.published import DESIGN, MODEL

mlflow = pytest.importorskip("mlflow")
flavor = pytest.importorskip("erasable.mlflow")
package = pytest.importorskip("erasable.mlflow._flavor").package
served = pytest.importorskip("erasable.workspace.models.served")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


GONE = ["marker-patient-2", "marker-patient-7"]


@pytest.fixture
def uri(empty_mlflow: Path, tmp_path: Path) -> str:
    (tmp_path / "registry").mkdir()
    shutil.copy(empty_mlflow, tmp_path / "registry" / "mlflow.db")
    return f"sqlite:///{tmp_path}/registry/mlflow.db"


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    write_csv(folder / "visits.csv", visits(60))
    workspace = Workspace.create(folder / "ws")
    workspace.add_dataset("visits", folder / "visits.csv", id_column="visit", subjects=["patient"])
    workspace.fit(
        "risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick", prepare="none"
    )
    return folder


@pytest.fixture
def workspace(_made: Path, tmp_path: Path) -> Workspace:
    shutil.copytree(_made / "ws", tmp_path / "ws")
    shutil.copy(_made / "visits.csv", tmp_path)
    return Workspace.open(tmp_path / "ws")


def client(uri: str) -> Any:
    return mlflow.MlflowClient(uri, uri)


def versions(uri: str, name: str = "risk") -> dict[str, dict[str, str]]:
    """Return the tags of every version."""
    found = client(uri).search_model_versions(f"name='{name}'")
    return {str(each.version): dict(each.tags) for each in found}


def files(uri: str, version: str) -> Path:
    source = client(uri).get_model_version("risk", version).source
    return Path(unquote(urlsplit(source).path))


def current(uri: str) -> str:
    return str(client(uri).get_model_version_by_alias("risk", "current").version)


@pytest.mark.soak
def test_it_predicts_there_as_here_after_an_erasure_too(
    workspace: Workspace, uri: str, tmp_path: Path
) -> None:
    """In a fresh Python that knows MLflow alone; each erasure is a new version."""
    before, told = workspace.publish("risk", "mlflow:risk", tracking_uri=uri)
    assert (before.registered, before.version, told) == ("1", 1, [])
    workspace.request(GONE)
    done = workspace.process()
    assert current(uri) == "2"
    (warning,) = done.warnings
    assert "versions 1 of mlflow:risk were trained on records that are erased here" in warning
    tags = versions(uri)
    assert tags["1"]["erasable.superseded_by"] == "2"
    assert tags["1"]["erasable.trained_on_erased_records"] == "true"
    assert "erasable.superseded_by" not in tags["2"]
    new = tags["2"]
    assert new["erasable.commitment"] == workspace.model("risk")["commitment"]
    assert (new["erasable.requests"], new["erasable.treatment"]) == ("2", "deleted")
    digests = [
        hashlib.sha256(peek(json.loads(workspace.receipt(id))["envelope"])).hexdigest()
        for id in done.requests
    ]
    listed = json.loads((files(uri, "2") / "data" / "data" / "receipts.json").read_text())
    assert [each["sha256"] for each in listed] == digests
    said = hashlib.sha256("".join(f"{each}\n" for each in digests).encode()).hexdigest()
    assert new["erasable.receipt_sha256"] == said
    for path in (tmp_path / "registry").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert not any(marker.encode() in data for marker in GONE), path
    script = (
        "import json, sys, mlflow.pyfunc, pandas\n"
        "mlflow.set_tracking_uri(sys.argv[1])\n"
        "frame = pandas.read_csv(sys.argv[2])\n"
        "for which in ('1', '@current'):\n"
        "    name = 'models:/risk' + (which if which[0] == '@' else '/' + which)\n"
        "    print(json.dumps(mlflow.pyfunc.load_model(name).predict(frame).tolist()))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, uri, str(tmp_path / "visits.csv")],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    old, now = map(json.loads, ran.stdout.splitlines()[-2:])
    assert now == workspace.predict("risk", tmp_path / "visits.csv")["prediction"].to_pylist()
    assert len(old) == len(now) == 60
    status = workspace.status()
    assert "earlier versions of mlflow:risk" in status["unreached"]
    assert "earlier versions of mlflow:risk" in receipts.show(
        workspace.receipt(done.requests[0])
    )["out_of_reach"]  # fmt: skip
    (shown,) = status["published"]
    assert (shown["registered"], shown["superseded"], shown["behind"]) == ("2", ["1"], False)
    assert workspace.verify_log() == []
    saved = mlflow.models.Model.load(str(files(uri, "2") / "MLmodel"))
    assert saved.flavors["erasable"]["with_records"] is False
    needed = (files(uri, "2") / "requirements.txt").read_text()
    assert f"erasable[workspace]=={erasable.__version__}" in needed
    workspace.export("risk", tmp_path / "exported")
    ours = flavor.load_model(str(files(uri, "2")))
    assert ours.digest() == erasable.load(tmp_path / "exported").digest()


@pytest.mark.soak
def test_a_fit_registers_a_version_too(workspace: Workspace, uri: str) -> None:
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri)
    workspace.fit("risk")
    tags = versions(uri)
    assert sorted(tags) == ["1", "2"]
    assert "erasable.trained_on_erased_records" not in tags["1"]  # nobody was erased
    assert (tags["2"]["erasable.requests"], tags["2"]["erasable.receipt_sha256"]) == ("0", "none")
    assert workspace.process().warnings == []
    assert sorted(versions(uri)) == ["1", "2"]


@pytest.mark.soak
def test_superseded_versions_are_deleted_with_their_files(
    workspace: Workspace, uri: str, tmp_path: Path
) -> None:
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri, delete_superseded=True)
    before = files(uri, "1")
    kept = {path.relative_to(before) for path in before.rglob("*") if path.is_file()}
    assert Path("data/data/model") in kept
    workspace.request(GONE[:1])
    assert workspace.process().warnings == []
    assert sorted(versions(uri)) == ["2"]
    assert not before.exists() or not any(path.is_file() for path in before.rglob("*"))
    assert (files(uri, "2") / "data" / "data" / "model").is_file()
    told = workspace.status()["unreached"]
    assert "copies that were made of versions of mlflow:risk" in told
    assert "earlier versions of mlflow:risk" not in told


@pytest.mark.soak
def test_versions_of_others_are_neither_marked_nor_deleted(
    workspace: Workspace, uri: str, tmp_path: Path
) -> None:
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri, delete_superseded=True)
    client(uri).create_model_version("risk", source=str(tmp_path), tags={"by": "somebody else"})
    workspace.fit("risk")
    assert sorted(versions(uri)) == ["2", "3"]
    assert versions(uri)["2"] == {"by": "somebody else"}


@pytest.mark.soak
def test_a_retired_model_has_no_current_version(workspace: Workspace, uri: str) -> None:
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri)
    workspace.retire("risk")
    with pytest.raises(mlflow.exceptions.MlflowException):
        current(uri)
    assert versions(uri)["1"]["erasable.superseded_by"] == "none"
    assert not workspace.status()["published"][0]["behind"]


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.soak
def test_a_registry_that_fails_fails_no_erasure(
    workspace: Workspace, uri: str, tmp_path: Path
) -> None:
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri)
    (tmp_path / "registry" / "mlflow.db").rename(tmp_path / "registry" / "away.db")
    (tmp_path / "registry" / "mlflow.db").mkdir()
    (request,) = workspace.request(GONE[:1])
    done = workspace.process()
    assert done.requests == [request.id]
    (warning,) = done.warnings
    assert "was not published; MLflow has an older version" in warning
    assert "\n" not in warning
    (shown,) = workspace.status()["published"]
    assert shown["behind"]
    assert "MLflow cannot be reached" in shown["error"]
    workspace.request(GONE[1:])
    assert len(workspace.process().warnings) == 1
    (tmp_path / "registry" / "mlflow.db").rmdir()
    (tmp_path / "registry" / "away.db").rename(tmp_path / "registry" / "mlflow.db")
    (warning,) = workspace.process().warnings  # of the version that holds them
    assert "trained on records that are erased" in warning
    assert versions(uri)["2"]["erasable.requests"] == "2"  # of both batches
    assert workspace.status()["published"][0]["error"] is None
    assert workspace.process().warnings == []


@pytest.mark.soak
def test_a_version_that_was_registered_and_not_written_down(
    workspace: Workspace, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies in between: the next one finds it, and makes no second."""
    from erasable.workspace.models.mlflow_registry import Registry

    workspace.publish("risk", "mlflow:risk", tracking_uri=uri)

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    workspace.request(GONE)
    with monkeypatch.context() as patch:
        patch.setattr(Registry, "supersede", die)
        with pytest.raises(KeyboardInterrupt):
            workspace.process()
    assert sorted(versions(uri)) == ["1", "2"]
    workspace.process()
    assert sorted(versions(uri)) == ["1", "2"]
    assert current(uri) == "2"


def test_files_that_were_not_registered_are_deleted(
    workspace: Workspace, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies before it registers them: no later erasure would reach them."""
    place = Path(unquote(urlsplit(uri).path)).parent / "mlflow-artifacts"

    def kept() -> int:
        return sum(path.is_file() for path in place.rglob(MODEL))

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    workspace.publish("risk", "mlflow:risk", tracking_uri=uri)
    assert kept() == 1
    experiment = client(uri).get_experiment_by_name("erasable").experiment_id
    others = client(uri).create_run(experiment).info.run_id  # not ours, and not ended
    workspace.request(GONE)
    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "create_model_version", die)
        with pytest.raises(KeyboardInterrupt):
            workspace.process()
    assert (sorted(versions(uri)), kept()) == (["1"], 2)
    workspace.process()
    assert (sorted(versions(uri)), kept()) == (["1", "2"], 2)
    assert (files(uri, "2") / "data" / "data" / MODEL).is_file()
    assert client(uri).get_run(others).info.lifecycle_stage == "active"


@pytest.mark.soak
def test_a_restored_workspace_publishes_its_own(
    workspace: Workspace, uri: str, tmp_path: Path
) -> None:
    """Both branches have a version 2 of the model, of other records."""
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri)
    workspace.back_up(tmp_path / "backup.tar")
    workspace.request(GONE)
    workspace.process()
    other = {"keys": tmp_path / "ws" / "keys.json", "suppressions": None}
    Workspace.restore(tmp_path / "backup.tar", tmp_path / "new", **other)
    assert sorted(versions(uri)) == ["1", "2"]  # a restore tells nobody
    restored = Workspace.open(tmp_path / "new")
    restored.request(GONE[:1])
    restored.process()
    assert current(uri) == "3"
    tags = versions(uri)
    assert tags["2"]["erasable.version"] == tags["3"]["erasable.version"] == "2"
    assert tags["2"]["erasable.superseded_by"] == "3"
    assert tags["3"]["erasable.commitment"] == restored.model("risk")["commitment"]


@pytest.mark.soak
def test_a_model_that_holds_records_is_told_of(workspace: Workspace, uri: str) -> None:
    workspace.fit("near", "neighbors.KNeighborsClassifier", datasets=["visits"], target="sick")
    _, (told,) = workspace.publish("near", "mlflow:near", tracking_uri=uri)
    assert "'near' holds records it was trained on" in told
    assert workspace.publish("risk", "mlflow:risk", tracking_uri=uri)[1] == []  # the control


@pytest.mark.soak
def test_a_name_that_is_taken(workspace: Workspace, uri: str) -> None:
    client(uri).create_registered_model("risk", tags={"team": "another"})
    with pytest.raises(WorkspaceError, match="did not make for this model"):
        workspace.publish("risk", "mlflow:risk", tracking_uri=uri)
    assert workspace.status()["published"] == []
    assert versions(uri) == {}


def test_a_server_that_is_away(workspace: Workspace) -> None:
    with pytest.raises(WorkspaceServerError, match="MLflow cannot be reached") as told:
        workspace.publish("risk", "mlflow:risk", tracking_uri="http://127.0.0.1:1")
    assert "\n" not in str(told.value)
    assert workspace.status()["published"] == []


def test_credentials_in_the_environment_are_not_told(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ann:zq-secret@127.0.0.1:1")
    with pytest.raises(WorkspaceServerError) as told:
        workspace.publish("risk", "mlflow:risk")
    assert "zq-secret" not in str(told.value)


def test_mlflow_is_not_installed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "mlflow":
            raise ModuleNotFoundError(name)
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingPackageError, match=r"pip install 'erasable\[mlflow\]'"):
        workspace.publish("risk", "mlflow:risk", tracking_uri="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("to", "uri", "match"),
    [
        ("risk", "http://127.0.0.1:1", "is no place to publish to"),
        ("mlflow:", "http://127.0.0.1:1", "is no place to publish to"),
        ("mlflow:a/b", "http://127.0.0.1:1", "is no place to publish to"),
        ("mlflow:risk", "http://ann:zq-secret@127.0.0.1:1", "holds a user or password"),
        ("mlflow:risk", "nonsense", "is no tracking URI"),
        ("mlflow:risk", None, "no tracking URI of MLflow is known"),
        ("mlflow:risk", "sqlite:///{ws}/mlflow.db", "is in the folder of the workspace"),
    ],
)
def test_what_cannot_be_published_to(
    workspace: Workspace, to: str, uri: str | None, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    named = uri and uri.format(ws=workspace.context.root)
    with pytest.raises(WorkspaceError, match=match) as told:
        workspace.publish("risk", to, tracking_uri=named)
    assert "zq-secret" not in str(told.value)
    assert "; expected " in str(told.value)
    assert workspace.status()["published"] == []


def test_models_that_cannot_be_published(workspace: Workspace) -> None:
    workspace.register("ours", datasets=["visits"], retrain="cp {data} {out}")
    with pytest.raises(WorkspaceError, match="made by a program of its own"):
        workspace.publish("ours", "mlflow:ours", tracking_uri="http://127.0.0.1:1")
    with pytest.raises(NotInWorkspaceError, match="there is no model"):
        workspace.publish("gone", "mlflow:gone", tracking_uri="http://127.0.0.1:1")
    with pytest.raises(WorkspaceError, match="is not published"):
        workspace.stop_publishing("risk")


@pytest.mark.soak
def test_it_is_published_no_longer(workspace: Workspace, uri: str) -> None:
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri)
    workspace.stop_publishing("risk")
    workspace.fit("risk")
    assert sorted(versions(uri)) == ["1"]
    assert workspace.status()["published"] == []
    workspace.publish("risk", "mlflow:risk", tracking_uri=uri)  # it is still ours
    assert sorted(versions(uri)) == ["1", "2"]


# -- what MLflow loads -----------------------------------------------------------------------------


@pytest.fixture
def data(workspace: Workspace, tmp_path: Path) -> Path:
    """The folder that is registered for a model."""
    folder = tmp_path / "data"
    folder.mkdir()
    workspace.export("risk", folder / MODEL)
    said = {"features": workspace.model("risk")["features"], "target": "sick", "documents": False}
    (folder / DESIGN).write_text(json.dumps(said))
    return folder


def test_tables_of_all_kinds(workspace: Workspace, data: Path, tmp_path: Path) -> None:
    model = workspace.model("risk")
    loaded = served._load_pyfunc(data)
    import pyarrow.csv

    table = pyarrow.csv.read_csv(tmp_path / "visits.csv")
    expected = workspace.predict("risk", tmp_path / "visits.csv")["prediction"].to_pylist()
    for given in (table, table.to_pandas(), table.to_pydict(), table.to_pylist()):
        assert loaded.predict(given).tolist() == expected
    with pytest.raises(InvalidDataError, match="lacks the columns"):
        loaded.predict(table.drop_columns(model["features"][:1]))
    with pytest.raises(InvalidDataError, match="was given a ndarray"):
        loaded.predict(table.to_pandas()[model["features"]].to_numpy())


def test_versions_that_were_registered_before_there_was_a_flavor(
    workspace: Workspace, data: Path, tmp_path: Path
) -> None:
    mlflow.pyfunc.save_model(
        str(tmp_path / "earlier"), loader_module="erasable.workspace.models.served",
        data_path=str(data), pip_requirements=["erasable==0.1.0"],
    )  # fmt: skip
    package(data, tmp_path / "now", LOADER)
    table = pandas.read_csv(tmp_path / "visits.csv")
    expected = workspace.predict("risk", tmp_path / "visits.csv")["prediction"].to_pylist()
    for name in ("earlier", "now"):
        loaded = mlflow.pyfunc.load_model(str(tmp_path / name))
        assert loaded.predict(table).tolist() == expected
    told = yaml.safe_load((tmp_path / "now" / "MLmodel").read_text())["flavors"]
    before = yaml.safe_load((tmp_path / "earlier" / "MLmodel").read_text())["flavors"]
    assert (sorted(before), sorted(told)) == (
        ["python_function"], ["erasable", "python_function"],
    )  # fmt: skip
    assert told["python_function"] == before["python_function"]


def test_a_published_model_that_is_another_is_refused(data: Path, tmp_path: Path) -> None:
    package(data, tmp_path / "saved", LOADER)
    other = GaussianNB().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert flavor.load_model(str(tmp_path / "saved")).digest() != other.digest()
    other.save(tmp_path / "saved" / "data" / "data" / MODEL)
    for load in (flavor.load_model, mlflow.pyfunc.load_model):
        with pytest.raises(ArtifactError, match="with which it was saved"):
            load(str(tmp_path / "saved"))
