"""Models of a workspace learn on the workers of a Dask cluster what they learn here."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

from cli.running import erasable
from erasable.core.errors import ClusterError
from erasable.core.remote import _dask
from erasable.core.remote._matrix import RemoteMatrix
from erasable.workspace import Workspace
from erasable.workspace.store.accelerators import FOLDER

N = 4_500
MODELS = {
    "bayes": ("naive_bayes.GaussianNB", "sick", {}),
    "scaled": ("preprocessing.MinMaxScaler,linear_model.Ridge", "cost", {}),
    "clusters": ("cluster.KMeans", None, {"n_clusters": 3, "random_state": 0}),
    "risk": ("linear_model.LogisticRegression", "sick", {}),
    "tree": ("sklearn.tree.DecisionTreeClassifier", "sick", {"random_state": 0}),
}


def write(path: Path, first: int = 0, n: int = N) -> None:
    rng = np.random.default_rng(first)
    visit = np.arange(first, first + n)
    columns: dict[str, Any] = {f"x{j}": rng.normal(size=n) * 10.0**j for j in range(3)}
    columns |= {"age": rng.integers(20, 90, n), "smokes": rng.random(n) < 0.3}
    columns |= {"sick": rng.integers(0, 3, n), "cost": rng.normal(size=n)}
    names = {"visit": visit, "person": [f"marker-person-{i // 3}" for i in visit.tolist()]}
    pq.write_table(pa.table({**names, **columns}), path)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, protocol="tcp",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster),
    ):  # fmt: skip
        yield cluster.scheduler_address


@pytest.fixture
def here(tmp_path: Path) -> Path:
    workspace = Workspace.create(tmp_path / "here")
    write(tmp_path / "visits.parquet")
    workspace.add_dataset("visits", tmp_path / "visits.parquet", id_column="visit",
                          subjects=["person"])  # fmt: skip
    return tmp_path / "here"


def fit(workspace: Workspace, *names: str) -> None:
    for name in names:
        estimator, target, params = MODELS[name]
        workspace.fit(
            name, estimator, datasets=["visits"], target=target, params=params,
            features=["x0", "x1", "x2", "age", "smokes"],
        )  # fmt: skip


def files(workspace: Workspace) -> list[bytes]:
    found = []
    for name in MODELS:
        path = workspace.context.root / f"{name}.exported"
        workspace.export(name, path)
        found.append(path.read_bytes())
    return found


def without_accelerators(workspace: Workspace) -> None:
    subprocess.run(["rm", "-rf", workspace.context.root / FOLDER], check=True)


def test_fits_and_erasures_are_those_of_here(
    here: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["cp", "-r", here, tmp_path / "there"], check=True)
    alone, on_cluster = Workspace.open(here), Workspace.open(tmp_path / "there", dask=address)
    passes: list[int] = []
    right = RemoteMatrix.run

    def run(self: RemoteMatrix, *rest: Any) -> Any:
        passes.append(1)
        return right(self, *rest)

    monkeypatch.setattr(RemoteMatrix, "run", run)
    fit(alone, *MODELS)
    assert not passes
    fit(on_cluster, *MODELS)
    assert passes
    assert files(on_cluster) == files(alone)
    for people, at_rest in ((["marker-person-7"], True), (["marker-person-8"], False)):
        passes.clear()
        for workspace in (alone, on_cluster):
            if not at_rest:
                without_accelerators(workspace)
            workspace.request(people)
            workspace.process()
        assert files(on_cluster) == files(alone)
        assert bool(passes) != at_rest  # an accelerator needs no cluster
    passes.clear()
    write(tmp_path / "more.parquet", N, 500)
    for workspace in (alone, on_cluster):
        workspace.append("visits", tmp_path / "more.parquet")
        fit(workspace, "bayes", "clusters")
        without_accelerators(workspace)
        workspace.request([f"marker-person-{i}" for i in range(500, 1400)])  # they fit again
        workspace.process()
    assert passes
    assert files(on_cluster) == files(alone)
    assert {each.verdict for each in on_cluster.verify()} == {"equal"}
    assert {each.verdict for each in alone.verify()} == {"equal"}
    found = subprocess.run(
        ["grep", "-rlawE", "marker-person-(7|8|1000)", on_cluster.context.root],
        capture_output=True, check=False,
    )  # fmt: skip
    assert found.stdout == b""


def test_the_command_line(here: Path, address: str) -> None:
    told = ["--workspace", str(here), "--dask", address]
    done = erasable(
        "model", "fit", "bayes", "--dataset", "visits", "--estimator", "naive_bayes.GaussianNB",
        "--target", "sick", "--features", "x0,x1", *told,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    erasable("request", "marker-person-5", "--workspace", str(here))
    assert erasable("process", *told).exit_code == 0
    assert erasable("verify", *told).exit_code == 0
    erasable("request", "marker-person-6", "--workspace", str(here))
    assert erasable("work", "--drain", *told).exit_code == 0
    assert erasable("verify", "--workspace", str(here)).exit_code == 0


def test_no_cluster_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dask, "_CONNECT", 0.5)
    with pytest.raises(ClusterError, match="no cluster answers at"):
        Workspace.open(here, dask="tcp://127.0.0.1:1")
    done = erasable("process", "--workspace", str(here), "--dask", "nowhere")
    assert done.exit_code == 2
    assert "no cluster answers at 'nowhere'" in done.output
