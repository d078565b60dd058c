"""The soak of clusters finds what is broken."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import cluster_kills  # noqa: E402

from worker_processes import cluster_of  # noqa: E402

pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


def test_too_few_kills_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster_kills.main(["--kills", "4", "--minutes", "0"]) == 1
    assert "too few kills in time" in capsys.readouterr().out


def test_a_lost_worker_that_is_answered_for_by_another_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = cluster_kills.Aimed.ask

    def ask(self: Any, jobs: Any, aside: bool = False) -> Any:
        found = right(self, jobs, aside)
        for lost in jobs.keys() - found.keys():
            if type(jobs[lost]).__name__ == "RunPass" and found:
                found[lost] = next(iter(found.values()))
        return found

    monkeypatch.setattr(cluster_kills.Aimed, "ask", ask)
    assert cluster_kills.main(["--kills", "40", "--seed", "3"]) == 1
    assert "another digest" in capsys.readouterr().out


def test_a_driver_that_forgets_what_was_deleted_is_found(tmp_path: Path) -> None:
    folder = cluster_kills.written(tmp_path / "visits")
    with (
        cluster_of(2, tmp_path / "workers") as cluster,
        pytest.raises(cluster_kills.WrongError, match="a record whose deletion was acknowledged"),
    ):
        cluster_kills.kill_drivers(
            cluster, folder, 6, random.Random(0), time.monotonic() + 300, Counter(), listed=False
        )
