"""Audits of models that programs of the user's made, asked by a command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import random_entry
from audit_scene import N, audits_of, erased, people
from contexts import make_context, write_csv

from erasable.core.errors import ErasableError
from erasable.workspace import Workspace

SAYS_THE_NEAREST = """
import csv, sys
def read(path):
    rows = list(csv.DictReader(open(path)))
    return [(float(row["dose"]), float(row["weight"]), row.get("sick")) for row in rows]
learned, lines = read(sys.argv[1]), ["no,yes"]
for x, y, _ in read(sys.argv[2]):
    near = min(learned, key=lambda each: (each[0] - x) ** 2 + (each[1] - y) ** 2)
    lines.append("0.1,0.9" if near[2] == "yes" else "0.9,0.1")
open(sys.argv[3], "w").write("\\n".join(lines))
"""


@pytest.fixture
def score(tmp_path: Path) -> str:
    (tmp_path / "score.py").write_text(SAYS_THE_NEAREST)
    return f"{sys.executable} {tmp_path / 'score.py'} {{model}} {{data}} {{out}}"


def made(tmp_path: Path, how: str = "residue_entry:train") -> Workspace:
    """Make a workspace with a model that a program made."""
    context, _ = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    write_csv(tmp_path / "visits.csv", people(0, N))
    write_csv(tmp_path / "fresh.csv", people(N, 2 * N))
    workspace.add_dataset("visits", tmp_path / "visits.csv", id_column="visit",
                          subjects=["patient"])  # fmt: skip
    if ":" in how:
        workspace.fit("near", how, datasets=["visits"])
    else:
        workspace.register("near", datasets=["visits"], retrain=how)
    return workspace


@pytest.mark.parametrize("kind", ["entry", "command"])
def test_what_a_program_knows_by_heart_is_found(tmp_path: Path, score: str, kind: str) -> None:
    as_text = (
        "import sys, pyarrow.csv as csv, pyarrow.parquet as pq; "
        "csv.write_csv(pq.read_table(sys.argv[1]), sys.argv[2])"
    )
    command = f'{sys.executable} -c "{as_text}" {{data}} {{out}}'
    workspace = made(tmp_path, command if kind == "command" else "residue_entry:train")
    options: dict[str, Any] = {"fresh": tmp_path / "fresh.csv", "ask": score, "target": "sick"}
    report = workspace.audit("near", **options, references=2)
    assert report.verdict == "found"
    assert {each.id for each in report.exposed} <= set(people(0, N)["visit"])
    assert audits_of(workspace)[-1]["verdict"] == "found"
    assert not list((tmp_path / "ws" / "scratch").glob("*"))


@pytest.mark.parametrize("keeps", [False, True])
def test_a_program_whose_file_differs_each_time(tmp_path: Path, score: str, keeps: bool) -> None:
    """The artifact is tested: one that kept the erased records is found, and another is not."""
    workspace = made(tmp_path, "random_entry:train")
    workspace.request([f"marker-patient-{i}" for i in range(2, 12)])
    if keeps:
        random_entry.KEPT.append(pa.table(people(0, 36)))
    request = erased(workspace, 2)
    assert not random_entry.KEPT
    asked: dict[str, Any] = {"deleted": request, "ask": score, "target": "sick"}
    with pytest.raises(ErasableError, match="with --ask"):
        workspace.audit("near", deleted=request)
    with pytest.raises(ErasableError, match="name it with --records"):
        workspace.audit("near", **asked)
    write_csv(tmp_path / "erased.csv", people(0, 36))
    report = workspace.audit("near", **asked, records=tmp_path / "erased.csv", level=0.2)
    assert (report.verdict == "found") == keeps


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "expected the command that asks it, --ask"),
        ({"ask": "cat {data} {out}", "target": "sick"}, r"expected \{model\} in it"),
        ({"ask": "cat {model} {out}", "target": "sick"}, r"expected \{data\} in it"),
        ({"ask": "cat {model}"}, "one of ask and target was given"),
        ({"ask": "cat {model} {data} {out}", "target": "ill"}, "no column 'ill'"),
        ({"ask": "false {model} {data} {out}", "target": "sick"}, "ended with 1"),
        ({"ask": "cp {model} {data} {out}", "target": "sick"}, "command ended with 1"),
    ],
)
def test_bad_input(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    workspace = made(tmp_path)
    before = len(workspace.log_entries())
    with pytest.raises(ErasableError, match=told):
        workspace.audit("near", fresh=tmp_path / "fresh.csv", **options)
    assert len(workspace.log_entries()) == before
    assert not list((tmp_path / "ws" / "scratch").glob("*"))


def test_an_estimator_has_scores_of_its_own(tmp_path: Path, score: str) -> None:
    workspace = made(tmp_path)
    workspace.fit("plain", "naive_bayes.GaussianNB", datasets=["visits"], target="sick",
                  features=["dose", "weight"])  # fmt: skip
    with pytest.raises(ErasableError, match="which is an estimator; expected none"):
        workspace.audit("plain", fresh=tmp_path / "fresh.csv", ask=score, target="sick")
