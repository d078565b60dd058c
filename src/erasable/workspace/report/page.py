"""Page of the report: one file of HTML that needs nothing else."""

from __future__ import annotations

import io
import math
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from erasable.core import _pages
from erasable.core._optional import needs
from erasable.core.errors import TamperedError
from erasable.workspace.audits import auditing as audits
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue
from erasable.workspace.evidence import consistency, log, suppressions
from erasable.workspace.ledger.schema import measurement, model, task
from erasable.workspace.ledger.states import ANSWERED, OPEN, REFUSED
from erasable.workspace.ledger.treatments import ERASING, FITTED, REWRITTEN
from erasable.workspace.models import catalogue as model_rows
from erasable.workspace.models import overview as of_models
from erasable.workspace.models import verified
from erasable.workspace.requests import failures
from erasable.workspace.requests.intake import Request, listing
from erasable.workspace.requests.regulations import REGULATIONS
from erasable.workspace.requests.status import status
from erasable.workspace.store.own_files import refuse_own, write_for_user
from erasable.workspace.targets.catalogue import in_use, spelled, without_arguments

_REQUESTS, _ENTRIES = 200, 12


def gather(context: Context) -> dict[str, Any]:
    """Collect the data of the page; raise TamperedError if the ledger differs from the log."""
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
    if context.ledger.is_read_only:  # a copy shows its last signed head
        with context.ledger.reading() as connection:
            root = log.tree(connection).root().hex()
            unsigned = {"size": log.next_position(context, connection), "root": root}
            head = log.last_head(context, connection) or unsigned
    else:
        with context.ledger.transaction() as connection:
            head = log.head(context, connection)
    with context.ledger.reading() as connection:
        requests = listing(connection, None, now)
        entries = log.entries(connection, max(0, counts["log_size"] - _ENTRIES))
        return {
            "workspace": context.ledger.get(connection, "workspace"),
            "key_id": context.ledger.get(connection, "key_id"),
            "now": now,
            "status": counts,
            "n_open": sum(counts["requests"].get(state, 0) for state in OPEN),
            "requests": [_shown(each, now) for each in _most_urgent(requests)],
            "n_requests": len(requests),
            "completed": [_shown(each, now) for each in requests if each.state in ANSWERED],
            "erased": _erased(connection),
            "models": _models(connection, counts),
            "datasets": catalogue.datasets(connection),
            "targets": _targets(connection, counts),
            "waiting": _waiting(connection, counts),
            "verifications": verified.described(connection),
            "audits": _audits(connection),
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
        "regulation": REGULATIONS[each.regulation],
        **{name: getattr(each, name) for name in ("received_at", "due_at", "completed_at")},
        "extended": each.extended_at is not None,
        "matched": each.matched,
        "note": each.note,
        "late": each.is_late(now) and each.state not in REFUSED,
        "days_taken": (until - each.received_at).total_seconds() / 86400,
        "days_allowed": None
        if each.due_at is None
        else (each.due_at - each.received_at).total_seconds() / 86400,
        "days_left": None if each.due_at is None else (each.due_at - now).days,
    }


def _waiting(connection: Connection, counts: dict[str, Any]) -> list[dict[str, Any]]:
    """List tasks that failed or are behind; without the error, which may hold values."""
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
    rewrites = counted.where(measurement.c.kind == REWRITTEN.measured_as)
    return int(connection.execute(rewrites).scalar_one())


def _models(connection: Connection, counts: dict[str, Any]) -> list[dict[str, Any]]:
    costs: dict[tuple[str, str], list[tuple[float, int]]] = {}
    measured = select(
        model.c.name, measurement.c.kind, measurement.c.seconds, measurement.c.n_deleted
    )
    of_it = (measurement.c.model_id == model.c.id) & (measurement.c.at >= model.c.created_at)
    joined = measured.join(measurement, of_it)
    for one in connection.execute(joined.order_by(measurement.c.id)):
        costs.setdefault((one.name, one.kind), []).append((one.seconds, one.n_deleted))
    found = []
    for each in of_models.models(connection):
        name = each["name"]
        fits = [s for s, _ in costs.get((name, FITTED.measured_as), [])]
        erasures = [pair for kind in ERASING for pair in costs.get((name, kind), [])]
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


def _targets(connection: Connection, counts: dict[str, Any]) -> list[dict[str, Any]]:
    """Describe targets; count, by verdict, the requests that were carried out in each."""
    outcomes: dict[int, dict[str, int]] = {}
    of_targets = select(task.c.target_id, task.c.exactness, func.count()).where(
        task.c.target == "target", task.c.exactness.is_not(None)
    )
    grouped = of_targets.group_by(task.c.target_id, task.c.exactness)
    for id, verdict, n in connection.execute(grouped.order_by(task.c.exactness)):
        outcomes.setdefault(id, {})[verdict] = n
    return [
        {
            "name": each.name, "place": without_arguments(each.place),
            "action": each.settings.action, "subjects": spelled(each.settings),
            "waiting": counts["targets"].get(each.name, 0),
            "outcomes": outcomes.get(each.id, {}),
        }
        for each in in_use(connection)
    ]  # fmt: skip


def _audits(connection: Connection) -> list[dict[str, Any]]:
    """Describe the newest audit of each model, and what came of the model since."""
    newest = audits.newest_audits(connection)
    found = []
    for each in model_rows.every(connection):
        audit = newest.get(each.name)
        if audit is None:
            continue
        number = audit["audited_version"]
        followed = verified.requests_of(connection, each)
        since = [request for made, request in followed if made > number]
        is_in_use = each.is_live and each.version == number
        found.append({**audit, "since": since, "is_in_use": is_in_use, "state": each.state})
    return found


def _recipe(kind: str, estimator: str) -> str:
    if kind in ("command", "uncovered"):
        return "trained elsewhere" if kind == "uncovered" else "retrained by a command"
    return "" if kind == "entry" else estimator.replace(" -> ", " → ")


_INK, _QUIET, _GOOD, _LATE, _SLOW = "#1f2937", "#9ca3af", "#0f766e", "#b91c1c", "#cbd5e1"


def due_dates(completed: list[dict[str, Any]]) -> str | None:
    """Draw how long requests took against the time allowed, as SVG; None without due dates."""
    timed = [each for each in completed if each["days_allowed"] is not None]
    if not timed:
        return None
    figure, axes = _figure(2.6)
    timed.sort(key=lambda each: each["completed_at"])
    for late, colour, label in ((False, _GOOD, "in time"), (True, _LATE, "late")):
        some = [each for each in timed if each["late"] is late]
        if some:
            axes.scatter(
                [each["completed_at"] for each in some],
                [each["days_taken"] for each in some],
                s=26, color=colour, label=label, zorder=3, alpha=0.85, linewidths=0,
            )  # fmt: skip
    axes.scatter(
        [each["completed_at"] for each in timed],
        [each["days_allowed"] for each in timed],
        s=26, color=_QUIET, marker="_", label="allowed",
    )  # fmt: skip
    first, last = timed[0]["completed_at"], timed[-1]["completed_at"]
    margin = max((last - first) * 0.03, timedelta(days=2))
    axes.set_xlim(first - margin, last + margin)
    axes.axhline(0, color=_SLOW, linewidth=1)
    axes.set_ylim(0, 1.15 * max(max(e["days_allowed"], e["days_taken"]) for e in timed))
    axes.set_ylabel("days")
    axes.legend(frameon=False, fontsize=8, loc="upper right", ncols=3)
    figure.autofmt_xdate(rotation=0, ha="center")
    return _svg(figure)


def costs(models: list[dict[str, Any]]) -> str | None:
    """Draw the time of erasures against training, per model, as SVG; None if no model has both."""
    known = [each for each in models if each["fit_seconds"] and each["erase_seconds"]]
    if not known:
        return None
    known = known[::-1]
    figure, axes = _figure(0.7 + 0.5 * len(known))
    places = range(len(known))
    axes.barh(
        [p + 0.19 for p in places], [m["fit_seconds"] for m in known], 0.34,
        color=_SLOW, label="training",
    )  # fmt: skip
    axes.barh(
        [p - 0.19 for p in places], [m["erase_seconds"] for m in known], 0.34,
        color=_GOOD, label="erasing a batch",
    )  # fmt: skip
    axes.set_yticks(list(places), [m["name"] for m in known])
    axes.set_xscale("log")
    axes.set_xlim(
        *_decades([each[by] for each in known for by in ("fit_seconds", "erase_seconds")])
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel("seconds")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return _svg(figure)


def _decades(values: list[float]) -> tuple[float, float]:
    """Return the powers of ten around positive values, so that an axis has two labels or more."""
    least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**least, 10.0 ** max(most, least + 1)


def _figure(height: float) -> tuple[Any, Any]:
    with needs("plots", "a report with figures"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_SLOW)
    axes.tick_params(colors=_INK, labelsize=8, length=3)
    axes.yaxis.label.set_fontsize(8)
    axes.xaxis.label.set_fontsize(8)
    return figure, axes


def _svg(figure: Any) -> str:
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "erasable"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]


_NONE = "\N{EN DASH}"


def _seconds(value: float | None) -> str:
    if value is None:
        return _NONE
    for limit, unit, factor in ((1e-3, "µs", 1e6), (1.0, "ms", 1e3)):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


_FILTERS: dict[str, Any] = {
    "day": lambda at: _NONE if at is None else f"{at:%Y-%m-%d}",
    "minute": lambda at: _NONE if at is None else f"{at:%Y-%m-%d %H:%M} UTC",
    "seconds": _seconds,
    "count": lambda n: _NONE if n is None else f"{n:,}",
}


def render(context: Context) -> str:
    """Return the page."""
    shown = gather(context)
    return _pages.render(
        Path(__file__).with_name("page.html"),
        "a report",
        _FILTERS,
        **shown,
        due_dates=due_dates(shown["completed"]),
        costs=costs(shown["models"]),
    )


def write(context: Context, path: str | os.PathLike[str]) -> None:
    """Write the page to a file of the user's, which is replaced; see `write_for_user`."""
    refuse_own(path, context.root)
    write_for_user(path, context.root, render(context).encode())
