"""Records whose targets are chance, for audits in a workspace."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.workspace import Workspace

N = 240


def people(first: int, last: int) -> dict[str, list[Any]]:
    """Numbers with gaps and texts; the target is chance, so that only memory predicts it."""
    source = np.random.default_rng(7)
    x, y = source.normal(size=(1000, 3)).round(3), source.integers(0, 2, 1000)
    numbers = range(first, last)
    return {
        "visit": [f"v{i}" for i in numbers],
        "patient": [f"marker-patient-{i // 3}" for i in numbers],
        "age": [None if i % 9 == 0 else float(x[i, 0]) for i in numbers],
        "dose": [float(x[i, 1]) for i in numbers],
        "weight": [float(x[i, 2]) for i in numbers],
        "ward": [("north", "south")[i % 2] for i in numbers],
        "sick": [("no", "yes")[y[i]] for i in numbers],
    }


def audits_of(workspace: Workspace) -> list[dict[str, Any]]:
    return [each for each in workspace.log_entries() if each["kind"] == "model-audited"]


def erased(workspace: Workspace, n: int = 8) -> str:
    """Erase the records of some patients; return the request."""
    workspace.request([f"marker-patient-{i}" for i in range(1, n)])
    last = workspace.request(["marker-patient-0"])[0]
    workspace.process()
    return str(last.id)
