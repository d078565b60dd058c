"""A process of its own that does what it is told on standard input, and says so: JSON, by line.

It can be told to stop before a certain effect, and goes on when it is told to.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from contexts import visits, write_csv

from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.store import crash_points


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return dict(json.loads(line))


def stop_at(effect: str, nth: int) -> Any:
    left = nth

    def watch(passed: str, where: str) -> None:
        nonlocal left
        left -= passed == effect
        if left == 0 and passed == effect:
            say(event="stopped")
            hear()

    return watch


def do(workspace: Workspace, action: str, asked: dict[str, Any]) -> Any:
    if action == "process":
        return workspace.process().requests
    if action == "append":
        source = Path(asked["path"]).parent / f"more-{time.monotonic_ns()}.csv"
        write_csv(source, visits(9, start=900))
        return workspace.append("visits", source).n_added
    if action == "request":
        return [each.id for each in workspace.request(asked["values"])]
    if action == "fit":
        return workspace.fit("tree").version
    if action == "look":
        seen = workspace.requests(), workspace.status(), workspace.datasets(), workspace.models()
        return [{request.state for request in seen[0]} != set(), seen[1]["datasets"]]
    assert action == "verify"
    return sorted({each.verdict for each in workspace.verify()} | set(workspace.verify_log()))


def main() -> None:
    say(event="ready")
    while True:
        asked = hear()
        watch = stop_at(*asked["stop"]) if "stop" in asked else lambda effect, where: None
        began = time.monotonic()
        try:
            workspace = Workspace(Context.open(asked["path"], wait=asked.get("wait", 60)))
            say(event="started")
            with crash_points.watch(watch):
                told = do(workspace, asked["do"], asked)
            workspace.context.ledger.close()
            say(event="done", told=told, seconds=time.monotonic() - began)
        except Exception as error:
            say(event="failed", kind=type(error).__name__, message=str(error))


if __name__ == "__main__":
    main()
