"""Content of the page, gathered from the ledger in one look."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select

from erasable.core.errors import TamperedError
from erasable.workspace.audits import entries as audits
from erasable.workspace.context import Context
from erasable.workspace.data import overview
from erasable.workspace.evidence import consistency, log, suppressions
from erasable.workspace.ledger.schema import measurement, model, task
from erasable.workspace.models import overview as of_models
from erasable.workspace.requests import failures
from erasable.workspace.requests.intake import NO_MATCH, Request, listing
from erasable.workspace.requests.status import status

_REQUESTS, _ENTRIES = 200, 12
_ANSWERED = ("completed", NO_MATCH)


def gather(context: Context) -> dict[str, Any]:
    """Collect what the page shows; raise TamperedError if the ledger is not what the log says."""
    messages = consistency.compare_ledger_with_log(context) + suppressions.compare_list_with_log(
        context
    )
    if messages:
        raise TamperedError(
            f"the ledger was tampered with: {messages[0]}; expected what erasable wrote; no report "
            "was written, run `erasable log verify`, and restore the ledger from a backup"
        )
    now = context.now()
    counts = status(context)
    if context.ledger.is_read_only:  # a copy is told of as it was signed last
        with context.ledger.reading() as connection:
            root = log.tree(connection).root().hex()
            unsigned = {"size": log.next_position(context, connection), "root": root}
            head = log.last_head(context, connection) or unsigned
    else:
        with context.ledger.transaction() as connection:
            head = log.head(context, connection)
    with context.ledger.reading() as connection:
        requests = listing(connection)
        entries = log.entries(connection, max(0, counts["log_size"] - _ENTRIES))
        return {
            "workspace": context.ledger.get(connection, "workspace"),
            "key_id": context.ledger.get(connection, "key_id"),
            "now": now,
            "status": counts,
            "requests": [_shown(each, now) for each in _most_urgent(requests)],
            "n_requests": len(requests),
            "completed": [_shown(each, now) for each in requests if each.state in _ANSWERED],
            "erased": _erased(connection),
            "treatments": _treatments(connection),
            "models": _models(connection, counts),
            "datasets": overview.datasets(connection),
            "waiting": _waiting(connection, counts),
            "verification": context.ledger.get(connection, "verification"),
            "audits": audits.newest(connection),
            "head": head,
            "entries": entries[::-1],
        }


def _most_urgent(requests: list[Request]) -> list[Request]:
    """Put open requests first, then those ended last."""
    still = [each for each in requests if each.is_open]
    ended = [each for each in requests if not each.is_open]
    ended.sort(key=lambda each: each.completed_at or each.received_at, reverse=True)
    return (still + ended)[:_REQUESTS]


def _shown(each: Request, now: Any) -> dict[str, Any]:
    until = each.completed_at or now
    return {
        "id": each.id,
        "kind": each.kind,
        "state": each.label,
        "regulation": {"gdpr": "GDPR", "ccpa": "CCPA", "none": "none"}[each.regulation],
        **{name: getattr(each, name) for name in ("received_at", "due_at", "completed_at")},
        "extended": each.extended_at is not None,
        "matched": each.matched,
        "note": each.note,
        "late": each.is_late(now) and each.state not in ("denied", "cancelled"),
        "days_taken": (until - each.received_at).total_seconds() / 86400,
        "days_allowed": None
        if each.due_at is None
        else (each.due_at - each.received_at).total_seconds() / 86400,
        "days_left": None if each.due_at is None else (each.due_at - now).days,
    }


def _waiting(connection: Connection, counts: dict[str, Any]) -> list[dict[str, Any]]:
    """List what has failed or is behind; not why: an error may tell what a record holds."""
    found = []
    for each in failures.listing(connection):
        dead = each.state == "dead"
        found.append(
            {
                "what": f"{'data set' if each.target == 'dataset' else each.target} {each.name}",
                "state": "dead" if dead else "tried again", "attempts": each.attempts,
                "n_requests": each.n_requests, "say": "erasable tasks says why",
            }
        )  # fmt: skip
    again: dict[str, Any] = {
        "attempts": None,
        "n_requests": None,
        "say": "the next erasable process tries again",
    }
    found += [{"what": f"hook of {name}", "state": "due"} | again for name in counts["hooks_due"]]
    behind = [each for each in counts["published"] if each["behind"]]
    return found + [
        {"what": f"{each['model']} as {each['to']}", "state": "behind"} | again for each in behind
    ]


def _erased(connection: Connection) -> int:
    """Count erased records, each once: requests of one batch may share some."""
    counted = select(func.coalesce(func.sum(measurement.c.n_deleted), 0))
    return int(connection.execute(counted.where(measurement.c.kind == "rewrite")).scalar_one())


def _treatments(connection: Connection) -> dict[str, int]:
    counted = select(task.c.treatment, func.count()).where(task.c.target == "model")
    rows = connection.execute(counted.group_by(task.c.treatment))
    return {treatment: count for treatment, count in rows if treatment}


def _models(connection: Connection, counts: dict[str, Any]) -> list[dict[str, Any]]:
    costs: dict[tuple[str, str], list[tuple[float, int]]] = {}
    measured = select(
        model.c.name, measurement.c.kind, measurement.c.seconds, measurement.c.n_deleted
    )
    joined = measured.join(measurement, measurement.c.model_id == model.c.id)
    for one in connection.execute(joined.order_by(measurement.c.id)):
        costs.setdefault((one.name, one.kind), []).append((one.seconds, one.n_deleted))
    found = []
    for each in of_models.models(connection):
        name = each["name"]
        fits = [s for s, _ in costs.get((name, "fit"), [])]
        erasures = [
            pair for kind in ("delete", "refit", "retrain") for pair in costs.get((name, kind), [])
        ]
        found.append(
            {
                **{
                    key: each[key] for key in ("name", "kind", "version", "n_records", "commitment")
                },
                "estimator": _recipe(each["kind"], each["estimator"]),
                "state": each["state"],
                "staleness": each["staleness"],
                "fit_seconds": fits[-1] if fits else None,
                "erase_seconds": sum(s for s, _ in erasures) / len(erasures) if erasures else None,
                "n_batches": len(erasures),
                "n_erased": sum(n for _, n in erasures),
            }
        )
    return found


def _recipe(kind: str, estimator: str) -> str:
    if kind in ("command", "uncovered"):
        return "trained elsewhere" if kind == "uncovered" else "retrained by a command"
    return "" if kind == "entry" else estimator.replace(" -> ", " → ")
