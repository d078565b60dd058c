"""Networks in a workspace: images of people who leave, other machines, files that are not there."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from sqlalchemy import update  # noqa: E402

import erasable  # noqa: E402
from erasable.core.errors import WorkspaceError  # noqa: E402
from erasable.neural import Embedding  # noqa: E402
from erasable.workspace import Workspace  # noqa: E402
from erasable.workspace.ledger.schema import model as model_table  # noqa: E402
from neural import backbones  # noqa: E402

HOME = "neural.backbones"
N, PEOPLE = 300, 50
CHAIN = "neural.Embedding -> linear_model.LogisticRegression"


def pixels() -> Any:
    return np.random.default_rng(0).integers(1, 255, (N, 8, 8), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scans").mkdir()
    rows = ["id,who,age,scan,note,ill"]
    for i, each in enumerate(pixels()):
        np.save(tmp_path / "scans" / f"{i}.npy", each)
        rows.append(f"{i},p{i % PEOPLE},{20 + i},scans/{i}.npy,word{i % 7} seen,{i % 2}")
    (tmp_path / "scans.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


@pytest.fixture
def workspace(folder: Path) -> Workspace:
    made = Workspace.create(folder / "ws")
    made.add_dataset(
        "scans", folder / "scans.csv", id_column="id", subjects=["who"], files=["scan"]
    )
    return made


def fit(workspace: Workspace, name: str = "m", backbone: str = "images", **params: Any) -> None:
    given = {"embedding__backbone": f"{HOME}.{backbone}", "embedding__shape": [1, 8, 8], **params}
    workspace.fit(
        name, CHAIN, datasets=["scans"], features=["scan"], target="ill",
        params={key: value for key, value in given.items() if value is not None},
    )  # fmt: skip


def erase(workspace: Workspace, *people: str) -> dict[str, str]:
    workspace.request(list(people))
    done = workspace.process()
    assert {each.state for each in workspace.requests()} == {"completed"}
    return {each["model"]: each["treatment"] for each in done.treatments}


def verdicts(workspace: Workspace) -> dict[str, str]:
    return {each.model: each.verdict for each in workspace.verify()}


def files_with(folder: Path, wanted: bytes) -> list[str]:
    return [
        str(path) for path in folder.rglob("*") if path.is_file() and wanted in path.read_bytes()
    ]


def exported(workspace: Workspace, name: str = "m") -> Any:
    path = workspace.context.root.parent / f"{name}.model"
    workspace.export(name, path)
    return erasable.load(path, trusted=True)


def test_a_person_leaves_with_images_and_vectors(workspace: Workspace) -> None:
    fit(workspace)
    every, network = pixels(), Embedding(f"{HOME}.images", shape=(1, 8, 8))
    flat = every.reshape(N, -1).astype(float)
    vectors = network.fit(flat).transform(flat).astype(np.float32)
    gone = [3, 53, 103, 153, 203, 253]
    for i in gone:  # so they can be found
        assert files_with(workspace.context.root, every[i].tobytes())
        assert files_with(workspace.context.root, vectors[i].tobytes())
    assert erase(workspace, "p3") == {"m": "deleted"}
    for i in gone:
        assert files_with(workspace.context.root, every[i].tobytes()) == []
        assert files_with(workspace.context.root, vectors[i].tobytes()) == []
        assert files_with(workspace.context.root, flat[i].tobytes()) == []
    assert files_with(workspace.context.root, every[4].tobytes())
    assert verdicts(workspace) == {"m": "equal"}
    change = workspace.sync("scans")
    assert (change.n_suppressed, change.n_changed, change.n_added) == (6, 0, 0)
    assert files_with(workspace.context.root, every[3].tobytes()) == []


def test_a_model_of_a_workspace_is_one_by_hand(workspace: Workspace, folder: Path) -> None:
    from erasable.linear_model import LogisticRegression
    from erasable.pipeline import make_pipeline

    fit(workspace)
    erase(workspace, "p3")
    left = [i for i in range(N) if i % PEOPLE != 3]
    flat = pixels().reshape(N, -1)[left].astype(float)
    by_hand = make_pipeline(Embedding(f"{HOME}.images", shape=(1, 8, 8)), LogisticRegression())
    by_hand.fit(flat, [i % 2 for i in left])
    np.testing.assert_array_equal(exported(workspace).predict(flat), by_hand.predict(flat))
    told = workspace.predict("m", folder / "scans.csv").to_pydict()
    assert [told["prediction"][i] for i in left] == by_hand.predict(flat).tolist()


def test_texts_go_through_a_tokenizer(workspace: Workspace) -> None:
    params = {
        "embedding__backbone": f"{HOME}.words", "embedding__max_length": 6,
        "embedding__tokenizer": f"{HOME}.numbers_of_letters",
    }  # fmt: skip
    workspace.fit("t", CHAIN, datasets=["scans"], features=["note"], target="ill", params=params)
    assert erase(workspace, "p1", "p2") == {"t": "deleted"}
    assert verdicts(workspace) == {"t": "equal"}


def test_numbers_go_through_a_network(workspace: Workspace) -> None:
    params = {"embedding__backbone": f"{HOME}.moments"}
    workspace.fit("n", CHAIN, datasets=["scans"], target="ill", params=params)
    assert workspace.model("n")["features"] == ["age"]
    assert erase(workspace, "p5") == {"n": "deleted"}
    assert verdicts(workspace) == {"n": "equal"}


def test_backup_and_restore(workspace: Workspace, folder: Path) -> None:
    fit(workspace)
    workspace.back_up(folder / "backup", with_keys=True)
    for i in (3, 53):
        assert pixels()[i].tobytes() in (folder / "backup").read_bytes()
    erase(workspace, "p3")
    workspace.back_up(folder / "later", with_keys=True)
    for i in (3, 53):
        assert pixels()[i].tobytes() not in (folder / "later").read_bytes()
    workspace.context.ledger.close()
    Workspace.restore(folder / "later", folder / "again", suppressions=None)
    assert verdicts(Workspace.open(folder / "again")) == {"m": "equal"}


# -- other machines --------------------------------------------------------------------------------


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have the process be on another kind of machine."""
    return lambda: monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "OTHER")


def test_another_machine_is_no_difference(workspace: Workspace, moved: Any) -> None:
    fit(workspace)
    workspace.fit("r", "linear_model.Ridge", datasets=["scans"], features=["age"], target="ill")
    moved()
    found = {each.model: each for each in workspace.verify()}
    assert (found["m"].verdict, found["r"].verdict) == ("other version", "equal")
    assert "made on another kind of machine" in found["m"].detail
    assert "OTHER" in found["m"].detail
    assert "\n" not in found["m"].detail


def test_on_another_machine_kept_vectors_serve(workspace: Workspace, moved: Any) -> None:
    fit(workspace)
    moved()
    assert erase(workspace, "p3") == {"m": "deleted"}
    assert verdicts(workspace) == {"m": "other version"}


def test_on_another_machine_a_model_without_vectors_is_fitted_again(
    workspace: Workspace, moved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(workspace)
    workspace.fit("r", "linear_model.Ridge", datasets=["scans"], features=["age"], target="ill")
    workspace.context.disk.remove_folder("accelerators")
    moved()
    assert erase(workspace, "p3", "p4") == {"m": "refitted", "r": "deleted"}
    assert verdicts(workspace) == {"m": "equal", "r": "equal"}
    assert erase(workspace, "p5") == {"m": "deleted", "r": "deleted"}
    assert exported(workspace)[0].platform_.processor == "OTHER"


def test_other_records_are_a_difference_wherever_they_come_from(moved: Any) -> None:
    from erasable.audit import equality

    X, y = np.random.default_rng(0).normal(size=(30, 64)), np.arange(30) % 2
    one = Embedding(f"{HOME}.images", shape=(1, 8, 8)).fit(X, y)
    moved()
    other = Embedding(f"{HOME}.images", shape=(1, 8, 8)).fit(X, y)
    assert equality(one, other).elsewhere
    other.delete([3])
    assert not equality(one, other).elsewhere


# -- what is not there, or is not what it was ------------------------------------------------------


def weights(path: Path, by: float = 0.0) -> str:
    network = backbones.images()
    with torch.no_grad():
        network[5].bias += by
    torch.save(network.state_dict(), path)
    return str(path)


def test_weights_that_were_changed_since_are_named(workspace: Workspace, folder: Path) -> None:
    fit(workspace, embedding__weights=weights(folder / "w.pt"))
    weights(folder / "w.pt", 1.0)
    (found,) = workspace.verify()
    assert found.verdict == "different"
    assert "network.weights" in found.detail
    assert erase(workspace, "p3") == {"m": "deleted"}  # of the vectors that are kept
    workspace.context.disk.remove_folder("accelerators")
    workspace.request(["p4"])
    before = sorted(path for path in workspace.context.root.rglob("*.parquet"))
    with pytest.raises(WorkspaceError, match="not those that the model was fitted with"):
        workspace.process()
    assert sorted(path for path in workspace.context.root.rglob("*.parquet")) == before
    assert {each.state for each in workspace.requests()} == {"completed", "pending"}
    weights(folder / "w.pt")
    workspace.process()
    assert verdicts(workspace) == {"m": "equal"}


def test_a_backbone_that_cannot_be_imported_is_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(workspace)
    workspace.context.disk.remove_folder("accelerators")
    monkeypatch.delattr(backbones, "images")
    workspace.request(["p4"])
    with pytest.raises(Exception, match="has no function 'images'"):
        workspace.process()
    assert [each.state for each in workspace.requests()] == ["pending"]


def test_the_ledger_does_not_choose_what_is_run(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes to the ledger alone cannot have a function called."""
    fit(workspace)
    workspace.request(["p4"])
    called: list[int] = []
    monkeypatch.setattr(backbones, "unmarked", lambda: called.append(1), raising=False)
    with workspace.context.ledger.transaction() as connection:
        recipe = dict(connection.execute(model_table.select()).one().recipe)
        recipe["params"] = {**recipe["params"], "embedding__backbone": f"{HOME}.unmarked"}
        connection.execute(update(model_table).values(recipe=recipe))
    workspace.context.disk.remove_folder("accelerators")
    for act in (workspace.process, workspace.verify, lambda: workspace.fit("m")):
        with pytest.raises(Exception, match="tampered"):
            act()
    assert called == []


def test_without_torch_a_model_is_not_verified_and_others_are(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(workspace)
    workspace.fit("r", "linear_model.Ridge", datasets=["scans"], features=["age"], target="ill")
    gone(monkeypatch)
    found = {each.model: each for each in workspace.verify()}
    assert (found["m"].verdict, found["r"].verdict) == ("other version", "equal")
    assert "erasable.neural needs torch, which is not installed" in found["m"].detail
    workspace.request(["p4"])
    with pytest.raises(Exception, match="needs torch, which is not installed"):
        workspace.process()
    assert [each.state for each in workspace.requests()] == ["pending"]
    monkeypatch.undo()
    workspace.process()
    assert verdicts(workspace) == {"m": "equal", "r": "equal"}


def gone(monkeypatch: pytest.MonkeyPatch) -> None:
    from erasable.workspace.models import names

    real = names.importlib.import_module

    def imported(name: str, package: str | None = None) -> Any:
        if name == "erasable.neural":
            raise ModuleNotFoundError(
                "erasable.neural needs torch, which is not installed; run ...", name="torch"
            )
        return real(name, package)

    monkeypatch.setattr(names.importlib, "import_module", imported)


def test_networks_that_learn_are_trained_again_or_forget_about(workspace: Workspace) -> None:
    """And about only where the method was named; then the receipt says so."""
    network = "erasable.neural.NetworkClassifier"
    given = {"datasets": ["scans"], "features": ["scan"], "target": "ill"}
    of_network = {"network": f"{HOME}.small_images", "shape": [1, 8, 8], "max_epochs": 2}
    workspace.fit("exact", network, params=of_network, **given)
    inner = {f"estimator__{name}": value for name, value in of_network.items()}
    about = {"estimator": network, "method": "SalUn", "method_params": {"n_epochs": 1}, **inner}
    workspace.fit("about", "neural.ApproximateNetwork", params=about, **given)
    assert verdicts(workspace) == {"exact": "equal", "about": "equal"}
    asked = workspace.request(["p3"])
    done = workspace.process()
    assert {each["model"]: (each["treatment"], each["exactness"]) for each in done.treatments} == {
        "exact": ("refitted", "bitwise"),
        "about": ("deleted", "approximate"),
    }
    assert verdicts(workspace) == {"exact": "equal", "about": "approximate"}
    envelope = json.loads(workspace.receipt(asked[0].id))["envelope"]
    body = json.loads(base64.b64decode(envelope["payload"]))
    told = str(body)
    assert "'approximate'" in told
    assert "'bitwise'" in told
    assert len(exported(workspace, "about").predict(pixels().reshape(N, -1))) == N
    assert {each["exactness"] for each in [*done.treatments]} == {"bitwise", "approximate"}
