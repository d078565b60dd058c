"""Those of a team: a worker, and a client that asks, appends and fits; they say what they did."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from contexts import write_csv

from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.requests.worker import Done

MODELS = {"risk": "visits", "scale": "visits", "tree": "visits", "lengths": "letters"}
WAIT = 240.0  # seconds that a command waits for others


def columns(dataset: str, client: int, numbers: list[int], people: list[str]) -> dict[str, Any]:
    """Return records, whose ids and values follow from the client and their numbers."""
    return {
        "id": [f"zr{client}x{i:05d}" for i in numbers],
        "person": people,
        "note": [f"said of {person}" for person in people],
        "age": [float(20 + (i * 37 + client) % 61) for i in numbers],
        "weight": [50.0 + (i * 7919 % 1000) / 13 for i in numbers],
        "sick": [i % 2 for i in numbers],
    }


def person(client: int, number: int) -> str:
    return f"zp{client}x{number:05d}"


def plan(client: int, n_rounds: int) -> list[dict[str, Any]]:
    """Say what a client does: each round brings four people, and asks for one of them.

    Every other time more of somebody's records come in after it was asked that they be erased.
    """
    steps: list[dict[str, Any]] = []
    names, datasets = sorted(MODELS), ["visits", "letters"]
    for i in range(n_rounds):
        people = [person(client, 4 * i + k) for k in range(4)]
        first, second = datasets[i % 2], datasets[(i + 1) % 2]
        numbers = list(range(10 * i, 10 * i + 8))
        steps.append({"append": first, "numbers": numbers, "people": people * 2})
        steps.append({"request": [people[i % 4]]})
        if i % 2:
            late = [10 * i + 8, 10 * i + 9]
            steps.append({"append": second, "numbers": late, "people": [people[i % 4], people[0]]})
        steps.append({"fit": names[(client + i) % len(names)]})
    return steps


def be_client(path: Path, client: int, n_rounds: int) -> dict[str, Any]:
    workspace = Workspace(Context.open(path, wait=WAIT))
    requests: list[str] = []
    for number, step in enumerate(plan(client, n_rounds)):
        if "append" in step:
            source = path.parent / f"more-{client}-{number}.csv"
            write_csv(source, columns(step["append"], client, step["numbers"], step["people"]))
            workspace.append(step["append"], source)
        elif "request" in step:
            requests += [each.id for each in workspace.request(step["request"])]
        else:
            workspace.fit(step["fit"])
    return {"requests": requests}


def be_worker(path: Path) -> dict[str, Any]:
    """Work until somebody says that it is enough."""
    done: dict[str, Any] = {"requests": [], "n_models": 0, "trouble": []}
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *given: stopped.set())

    def hear(one: Done) -> None:
        done["n_models"] += one.n_models
        done["requests"] += one.processed.requests if one.processed is not None else []
        if one.failure is not None or one.error is not None:
            done["trouble"].append(str(one.failure or one.error))

    Workspace(Context.open(path, wait=WAIT)).work(poll=0.05, tell=hear, stopped=stopped)
    return done
