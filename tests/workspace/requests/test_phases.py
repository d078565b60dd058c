"""Where the time of a process went: every phase has its seconds, and nobody else's."""

from __future__ import annotations

from pathlib import Path

from contexts import visits, write_csv

from erasable.workspace import Workspace
from erasable.workspace.requests.steps import measured, phase


def test_phases_add_up_and_end_with_the_block() -> None:
    with measured() as seconds:
        for _ in range(3):
            with phase("one"):
                pass
        with measured() as inner, phase("two"):
            pass
    with phase("three"):
        pass
    assert set(seconds) == {"one"}
    assert set(inner) == {"two"}
    assert seconds["one"] >= 0.0


def test_a_process_says_where_its_time_went(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    write_csv(tmp_path / "visits.csv", visits(60))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    workspace.request(["marker-patient-3"])
    done = workspace.process()
    assert {"finding records", "rewriting data", "model risk", "signing receipts"} <= set(
        done.phases
    )
    assert 0.0 < sum(done.phases.values()) <= 1.1 * done.seconds
