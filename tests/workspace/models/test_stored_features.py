"""Models learn from the fragments of a workspace, block by block, what they learn from memory."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.running import erasable
from erasable.core.errors import InvalidDataError, WorkspaceError
from erasable.core.stored_table import StoredColumns
from erasable.workspace import Workspace
from erasable.workspace.store.accelerators import FOLDER

N, D = 9_000, 5
SMALL = 500_000
"""Bytes: more than a fragment takes, and less than all of them."""

MODELS = {
    "bayes": ("naive_bayes.GaussianNB", "sick"),
    "ridge": ("linear_model.Ridge", "cost"),
    "scaler": ("preprocessing.StandardScaler", None),
    "axes": ("decomposition.PCA", None),
    "nearest": ("neighbors.NearestCentroid", "sick"),
    "scaled": (
        "preprocessing.MinMaxScaler,preprocessing.StandardScaler,linear_model.Ridge",
        "cost",
    ),
    "clusters": ("cluster.KMeans", None),
    "scaled-clusters": ("preprocessing.StandardScaler,cluster.KMeans", None),
    "leaves": ("cluster.DivideAndConquerKMeans", None),
    "risk": ("linear_model.LogisticRegression", "sick"),
    "scaled-risk": ("preprocessing.RobustScaler,linear_model.LogisticRegression", "sick"),
    "signs": ("naive_bayes.BernoulliNB", "sick"),
    "waves": ("kernel.RandomFourierRidge", "cost"),
    "rounds": ("preprocessing.StandardScaler,ensemble.HistGradientBoostingClassifier", "sick"),
}
PARAMS = {
    "clusters": {"n_clusters": 3, "random_state": 0},
    "leaves": {"n_clusters": 3, "random_state": 0},
    "scaled-clusters": {"kmeans__n_clusters": 3, "kmeans__random_state": 0},
    "waves": {"n_components": 5, "gamma": 1e-4, "random_state": 0},
    "rounds": {
        "histgradientboostingclassifier__max_iter": 3,
        "histgradientboostingclassifier__random_state": 0,
    },
}

THEIRS = "sklearn.tree.DecisionTreeClassifier"


def write(path: Path, first: int = 0, n: int = N) -> None:
    rng = np.random.default_rng(first)
    visit = np.arange(first, first + n)
    columns: dict[str, Any] = {f"x{j}": rng.normal(size=n) * 10.0**j for j in range(D - 2)}
    columns |= {"age": rng.integers(20, 90, n), "smokes": rng.random(n) < 0.3}
    columns |= {"sick": rng.integers(0, 3, n), "cost": rng.normal(size=n)}
    names = {"visit": visit, "person": [f"marker-person-{i // 3}" for i in visit.tolist()]}
    pq.write_table(pa.table({**names, **columns}), path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    workspace = Workspace.create(folder / "ws")
    write(folder / "visits.parquet")
    path = folder / "visits.parquet"
    workspace.add_dataset("visits", path, id_column="visit", subjects=["person"])
    return folder


def fit(workspace: Workspace, *names: str, datasets: Sequence[str] = ("visits",)) -> None:
    features = [*(f"x{j}" for j in range(D - 2)), "age", "smokes"]
    for name in names:
        estimator, target = MODELS[name]
        workspace.fit(
            name, estimator, datasets=list(datasets), target=target, features=features,
            params=PARAMS.get(name),
        )  # fmt: skip


def copied(made: Path, to: Path, memory: int | None) -> Workspace:
    subprocess.run(["cp", "-r", made / "ws", to], check=True)
    return Workspace.open(to, memory=memory)


def files(workspace: Workspace, *names: str) -> list[bytes]:
    found = []
    for name in names:
        path = workspace.context.root / f"{name}.exported"
        workspace.export(name, path)
        found.append(path.read_bytes())
    return found


def test_fits_and_erasures_are_those_of_memory(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, memory = copied(made, tmp_path / "s", SMALL), copied(made, tmp_path / "m", None)
    blocks: list[int] = []
    right = StoredColumns.block

    def block(self: StoredColumns, number: int, columns: Any = None, **gaps: bool) -> Any:
        blocks.append(number)
        return right(self, number, columns, **gaps)

    monkeypatch.setattr(StoredColumns, "block", block)
    fit(memory, *MODELS)
    assert blocks == []
    fit(stored, *MODELS)
    assert len(set(blocks)) > 1
    assert files(stored, *MODELS) == files(memory, *MODELS)
    blocks.clear()
    for people in (["marker-person-7"], ["marker-person-8", "marker-person-2000"]):
        for workspace in (stored, memory):
            workspace.request(people)
            done = workspace.process()
            assert {each["treatment"] for each in done.treatments} == {"deleted"}
        assert files(stored, *MODELS) == files(memory, *MODELS)
    assert blocks == []  # they deleted from accelerators, as those that were fitted in memory do
    # Without accelerators, and with rows that were added.
    write(tmp_path / "more.parquet", N, 500)
    for workspace in (stored, memory):
        subprocess.run(["rm", "-r", workspace.context.root / FOLDER], check=True)
        workspace.request(["marker-person-11"])
        done = workspace.process()
        assert {each["treatment"] for each in done.treatments} <= {"deleted", "refitted"}
    assert blocks
    assert files(stored, *MODELS) == files(memory, *MODELS)
    for workspace in (stored, memory):
        workspace.append("visits", tmp_path / "more.parquet")
        fit(workspace, "bayes")
        workspace.request(["marker-person-3100"])
        workspace.process()
    assert files(stored, *MODELS) == files(memory, *MODELS)
    blocks.clear()
    assert {each.verdict for each in stored.verify()} == {"equal"}
    assert blocks
    for gone in ("7", "2000", "11", "3100"):
        marker = f"marker-person-{gone}".encode()
        found = subprocess.run(
            ["grep", "-rlaw", marker, stored.context.root], capture_output=True, check=False
        )
        assert found.stdout == b""


def test_what_is_appended_and_corrected_is_learned_as_in_memory(made: Path, tmp_path: Path) -> None:
    """Also without accelerators, where sums take the new records alone."""
    names = ("bayes", "ridge", "scaler", "axes", "risk", "clusters", "scaled")
    spaces = [copied(made, tmp_path / name, size) for name, size in (("s", SMALL), ("m", None))]
    write(tmp_path / "more.parquet", N, 500)
    treated = []
    for workspace in spaces:
        fit(workspace, *names)
        subprocess.run(["rm", "-r", workspace.context.root / FOLDER], check=True)
        change = workspace.append("visits", tmp_path / "more.parquet", update_models=True)
        treated.append({each["model"]: each["treatment"] for each in change.models})
    stored, memory = spaces
    assert treated[0].keys() == set(names)
    followed = ("bayes", "ridge", "scaler", "axes", "risk")
    assert {treated[0][name] for name in followed} == {"updated"}
    assert files(stored, *names) == files(memory, *names)
    for workspace in spaces:
        workspace.request(["marker-person-3100"])
        workspace.process()
        workspace.correct("visits", ids=[5, N + 7], values={"x0": 3.5})
        subprocess.run(["rm", "-r", workspace.context.root / FOLDER], check=True)
        done = workspace.process()
        assert {each["treatment"] for each in done.treatments} <= {"corrected", "refitted"}
    assert files(stored, *names) == files(memory, *names)
    assert {each.verdict for each in stored.verify()} == {"equal"}


def test_several_data_sets_are_read_fragment_by_fragment(tmp_path: Path) -> None:
    names = ("risk", "scaled-risk", "signs", "ridge")
    write(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet", N, 4_000)
    spaces = []
    for name, memory in (("s", SMALL), ("m", None)):
        made = Workspace.create(tmp_path / name)
        for part in "ab":
            path = tmp_path / f"{part}.parquet"
            made.add_dataset(part, path, id_column="visit", subjects=["person"])
        opened = Workspace.open(tmp_path / name, memory=memory)
        fit(opened, *names, datasets=["a", "b"])
        spaces.append(opened)
    stored, memory_ = spaces
    assert files(stored, *names) == files(memory_, *names)
    for people in (["marker-person-7"], ["marker-person-3001", "marker-person-4"]):
        for workspace in spaces:
            workspace.request(people)
            done = workspace.process()
            assert {each["treatment"] for each in done.treatments} == {"deleted"}
        assert files(stored, *names) == files(memory_, *names)
    assert {each.verdict for each in stored.verify()} == {"equal"}


def test_no_value_of_who_left_is_in_an_accelerator(made: Path, tmp_path: Path) -> None:
    """Also where the model deleted records that lie in fragments, and was kept afterwards."""
    workspace = copied(made, tmp_path / "ws", SMALL)
    fit(workspace, "ridge")
    subprocess.run(["rm", "-r", workspace.context.root / FOLDER], check=True)
    table = pq.read_table(made / "visits.parquet")
    values = [
        np.float64(each).tobytes() for each in table["x2"].to_numpy()[3 * 40 : 3 * 40 + 3].tolist()
    ]
    other = np.float64(table["x2"].to_numpy()[900]).tobytes()
    workspace.request(["marker-person-40"])
    workspace.process()
    (arrays,) = (workspace.context.root / FOLDER).glob("*/arrays")
    held = arrays.read_bytes()
    assert other in held  # the control: who stays is found so
    assert not any(each in held for each in values)


def test_a_gap_is_found_when_it_is_read(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    write(tmp_path / "visits.parquet")
    table = pq.read_table(tmp_path / "visits.parquet")
    gaps = [None, *table["age"].to_pylist()[1:]]
    table = table.set_column(table.column_names.index("age"), "age", pa.array(gaps, pa.int64()))
    pq.write_table(table, tmp_path / "visits.parquet")
    path = tmp_path / "visits.parquet"
    workspace.add_dataset("visits", path, id_column="visit", subjects=["person"])
    workspace.context.memory = SMALL
    with pytest.raises(InvalidDataError, match="NaN: 1 values in column 'age'"):
        fit(workspace, "ridge")
    assert workspace.models() == []


def test_who_cannot_learn_so_says_so_and_nothing_is_changed(made: Path, tmp_path: Path) -> None:
    workspace = copied(made, tmp_path / "ws", SMALL)
    with pytest.raises(WorkspaceError, match=f"expected at most --memory {SMALL}"):
        workspace.fit("theirs", THEIRS, datasets=["visits"], target="sick")
    workspace.context.memory = 1000
    with pytest.raises(
        WorkspaceError, match=r"a fragment of \d+ records takes (\d+) bytes"
    ) as told:
        fit(workspace, "ridge")
    workspace.context.memory = int(str(told.value).split("; give ")[1].split()[0])
    fit(workspace, "ridge")
    assert [each["name"] for each in workspace.models()] == ["ridge"]


def test_text_is_refused_for_what_it_is(made: Path, tmp_path: Path) -> None:
    """And not for the memory that it would take."""
    workspace = Workspace.create(tmp_path / "ws")
    table = pq.read_table(made / "visits.parquet")
    table = table.append_column("city", pa.array(["Bonn"] * N))
    pq.write_table(table, tmp_path / "visits.parquet")
    path = tmp_path / "visits.parquet"
    workspace.add_dataset("visits", path, id_column="visit", subjects=["person"])
    workspace.context.memory = SMALL
    with pytest.raises(InvalidDataError, match="text"):
        workspace.fit(
            "s", "preprocessing.StandardScaler", datasets=["visits"], features=["x0", "city"]
        )


def test_the_default_is_half_of_the_machine(made: Path, tmp_path: Path, monkeypatch: Any) -> None:
    from erasable.workspace.models import reading

    workspace = copied(made, tmp_path / "ws", None)
    monkeypatch.setattr(reading, "half_of_memory", lambda: SMALL)
    read: list[int] = []
    right = reading.features_of
    monkeypatch.setattr(reading, "features_of", lambda *given: read.append(1) or right(*given))
    fit(workspace, "ridge")
    assert read
    # In memory, unasked.
    workspace.fit("theirs", THEIRS, datasets=["visits"], target="sick")


@pytest.mark.parametrize(
    ("given", "code"), [("500kB", 0), ("2 GB", 0), ("lots", 2), ("-5MB", 2), ("0", 2)]
)
def test_the_command_line_takes_a_size(made: Path, tmp_path: Path, given: str, code: int) -> None:
    copied(made, tmp_path / "ws", None)
    words = ["model", "fit", "ridge", "--estimator", "linear_model.Ridge", "--target", "cost"]
    ran = erasable(*words, "--dataset", "visits", "--memory", given, folder=tmp_path / "ws")
    assert ran.exit_code == code, ran.output
