"""What the children do: steps of a command, or a look at a workspace."""

from __future__ import annotations

import gc
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import closing
from pathlib import Path
from typing import Any

from contexts import write_csv
from crashes import referred_to
from sqlalchemy import Connection, func
from sqlalchemy import select as query
from traces import compressed, numbers_in, texts_in, tokens_in

from erasable.core._arrow_files import parquet_table
from erasable.core.errors import ErasableError, WorkspaceServerError
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue
from erasable.workspace.evidence import log
from erasable.workspace.ledger.schema import (
    failure,
    garbage,
    lease,
    log_entry,
    model,
    model_version,
    receipt,
    request,
    step,
    suppression,
)
from erasable.workspace.requests.worker import Done
from erasable.workspace.store.artifacts import StoredArtifact

ONCE = ("request-acknowledged", "request-erased", "request-completed", "request-denied",
        "request-cancelled")  # fmt: skip
MODELS = {"risk": "visits", "segments": "visits", "tree": "visits", "range": "letters",
          "copy": "letters"}  # fmt: skip


def number_of(id: str) -> int:
    return int(id[2:])


def weight(id: str, revision: int) -> float:
    """A number that only this record, in this revision, has."""
    return 40.0123456789 + number_of(id) / 7 + revision / 1024


def write_rows(path: Path, dataset: str, rows: dict[str, list[str]], revision: int) -> None:
    """Write a source: what a record holds follows from its id, its people and the revision."""
    numbers = [number_of(id) for id in rows]
    owners = ["patient"] if dataset == "visits" else ["sender", "receiver"]
    people = {name: [who[i] for who in rows.values()] for i, name in enumerate(owners)}
    columns = {
        dataset[:-1]: list(rows),
        **people,
        "age": [20 + (i * 37) % 61 for i in numbers],
        "weight": [weight(id, revision) for id in rows],
        "note": [f"{id} of {' and '.join(who)}" for id, who in rows.items()],
        "sick": [i % 2 for i in numbers],
    }
    write_csv(path, columns)


def warm_up(folder: Path) -> None:
    """Do all of it once, so that children find modules and kernels loaded.

    Nothing of it stays open: a ledger must not be shared with a child.
    """
    rows = {
        "visits": {f"zr{i:06d}": [f"zp{i // 2:06d}"] for i in range(60)},
        "letters": {f"zr{i:06d}": [f"zp{i // 2:06d}", "zp000029"] for i in range(60, 70)},
    }
    create(folder / "ws", rows, folder)
    workspace = Workspace.open(folder / "ws")
    workspace.request(["zp000003"])
    workspace.request(where="visit = 'zr000009'", dataset="visits")
    workspace.correct("visits", ids=["zr000012"], values={"weight": 1.5})
    workspace.process()
    fresh = {f"zr{i:06d}": [f"zp{i:06d}"] for i in range(100, 140)}
    _audit(workspace, fresh, folder / "fresh.csv")
    verify_all(folder / "ws", {"zp000003"}, {"zr000009"}, 0, [workspace.head()])
    observe(folder / "ws", [f"zp{i:06d}" for i in range(60)], [])
    del workspace
    gc.collect()


def create(path: Path, rows: dict[str, dict[str, list[str]]], sources: Path) -> None:
    workspace = Workspace.create(path)
    for name, people in (("visits", ["patient"]), ("letters", ["sender", "receiver"])):
        write_rows(sources / f"{name}.csv", name, rows[name], 0)
        workspace.add_dataset(
            name, sources / f"{name}.csv", id_column=name[:-1], subjects=people
        )  # fmt: skip
    on: dict[str, Any] = {"datasets": ["visits"], "features": ["age", "weight"]}
    workspace.fit("risk", "naive_bayes.GaussianNB", target="sick", **on)
    workspace.fit("segments", "preprocessing.StandardScaler,cluster.KMeans", **on,
                  params={"kmeans__n_clusters": "2"})  # fmt: skip
    workspace.fit("tree", "sklearn.tree.DecisionTreeClassifier", target="sick", **on)
    workspace.fit("range", "preprocessing.MinMaxScaler", datasets=["letters"],
                  features=["weight"])  # fmt: skip
    workspace.register("copy", datasets=["letters"], retrain="cp {data} {out}")
    with closing(sqlite3.connect(sources / "others.db")) as base:  # each request looks there, too
        base.execute("create table people (who text primary key)")
        base.executemany("insert into people values (?)", [(f"stranger-{i}",) for i in range(20)])
        base.commit()
    workspace.add_target("others", f"sqlite:///{sources}/others.db", ["people.who:id"])


def do(
    workspace: Workspace, step: dict[str, Any], sources: Path, tell: Callable[[Any], None]
) -> Any:
    """Carry out a step; return what was acknowledged."""
    kind = step["do"]
    if kind == "work":
        return _work(workspace, tell)
    if kind == "request":
        named = {"where": step["where"], "dataset": "visits"} if "where" in step else {}
        made = workspace.request(step.get("values", ()), hold=step.get("hold"), **named)
        return [each.id for each in made]
    if kind == "correct":
        values = {"weight": weight(step["id"], step["revision"])}
        return [workspace.correct("visits", ids=[step["id"]], values=values)[0].id]
    if kind in ("append", "sync"):
        source = sources / f"{kind}.csv"
        write_rows(source, step["dataset"], step["rows"], step["revision"])
        updates = step.get("update", False)
        change = getattr(workspace, kind)(step["dataset"], source, update_models=updates)
        return [change.n_suppressed]
    if kind == "process":
        return workspace.process().requests
    if kind == "refresh":
        return [each["model"] for each in workspace.refresh(step["names"])[0]]
    if kind == "fit":
        return workspace.fit(step["name"]).version
    if kind in ("deny", "cancel", "hold"):
        return getattr(workspace, kind)(step["id"], "a reason").state
    if kind == "resume":
        return workspace.resume(step["id"]).state
    if kind == "verify":
        return [each.verdict for each in workspace.verify(step.get("names"))]
    if kind == "audit":
        return _audit(workspace, step["rows"], sources / "fresh.csv")
    assert kind == "head"
    return workspace.head()


def _audit(workspace: Workspace, rows: dict[str, list[str]], fresh: Path) -> str:
    """Audit a model; it may be retired, or have learned from too few records."""
    write_rows(fresh, "visits", rows, 0)
    try:
        return workspace.audit("risk", fresh=fresh, references=2).verdict
    except ErasableError as error:
        if isinstance(error, WorkspaceServerError):
            raise
        return "refused"


def _work(workspace: Workspace, tell: Callable[[Any], None]) -> list[str]:
    """Work until nothing is left to do; tell what went wrong; return what was completed."""
    completed: list[str] = []

    def hear(done: Done) -> None:
        if done.processed is not None:
            completed.extend(done.processed.requests)
        if done.failure is not None:
            tell({"failed": f"{done.failure.name}: {done.failure.error}"})

    while True:
        try:
            workspace.work(drain=True, poll=0.05, backoff=0.05, tell=hear)
            return completed
        except WorkspaceServerError as error:  # who does not drain would go on by itself
            tell({"trouble": str(error)})
            time.sleep(0.05)


# -- a look ----------------------------------------------------------------------------------------


def observe(path: Path, people: Sequence[str], heads: Sequence[Any]) -> dict[str, Any]:
    """Say what is in a workspace, and what is wrong with it."""
    workspace = Workspace.open(path)
    context = workspace.context
    names = dict(zip(context.keys.tokens("id", list(people)), people, strict=True))
    with context.ledger.reading() as connection:
        records = {}
        for known in catalogue.all_datasets(connection):
            columns = [known.id_column, *known.subject_columns]
            table = catalogue.read_version(context, connection, known.id, columns=columns)
            records[known.name] = {
                row[known.id_column]: [names[row[each]] for each in known.subject_columns]
                for row in table.to_pylist()
            }
        requests = {
            row["id"]: {
                "state": row["state"], "hold": row["hold"], "matched": row["matched"],
                "what": _what(context, row, names),
            }
            for row in connection.execute(query(request)).mappings()
        }  # fmt: skip
        kept_out = [
            names.get(t, "") for t in connection.execute(query(suppression.c.token)).scalars()
        ]
        problems = list(_repeated(connection))
        rows = {
            table.name: connection.execute(query(func.count()).select_from(table)).scalar()
            for table in (step, lease, failure, garbage)
        }
        models = dict(_models(context, connection))
    problems += workspace.verify_log(*heads[:1])
    for head in heads[1:]:
        problems += log.verify_since(context, head)
    return {
        "records": records, "requests": requests, "problems": problems,
        "out": sorted(name for name in kept_out if name), "n_out": len(kept_out),
        "orphans": _orphans(workspace), "rows": rows, "models": models,
    }  # fmt: skip


def _models(context: Context, connection: Connection) -> Iterator[tuple[str, list[str] | None]]:
    """Yield each model with the records that it has learned from; None if it is retired."""
    of = (model_version.c.model_id == model.c.id) & (model_version.c.number == model.c.version)
    columns = model.c.name, model.c.state, model.c.datasets, model_version.c.dataset_versions
    for row in connection.execute(query(*columns).outerjoin(model_version, of)).all():
        if row.state == "retired" or row.dataset_versions is None:
            yield row.name, None
            continue
        ((dataset, number),) = zip(row.datasets, row.dataset_versions, strict=True)
        column = catalogue.get(connection, dataset).id_column
        table = catalogue.read_version(context, connection, dataset, number, [column])
        yield row.name, table[column].to_pylist()


def _what(context: Context, row: Any, names: dict[str, str]) -> str | None:
    if row["values_key"] is not None:
        data = context.store.open(StoredArtifact(row["values_key"], row["values_sha256"]))
        ids = parquet_table(data, None)["visit"].to_pylist()
        return f"correct {ids[0] if ids else 'none'}"  # of records that are erased, none is left
    if row["condition"] is not None:
        return str(row["condition"]["where"])
    return None if row["tokens"] is None else names[row["tokens"][0][1]]


def _repeated(connection: Any) -> Iterator[str]:
    count = func.count()
    again = (
        query(log_entry.c.kind, log_entry.c.subject)
        .where(log_entry.c.kind.in_(ONCE))
        .group_by(log_entry.c.kind, log_entry.c.subject)
        .having(count > 1)
    )
    for kind, subject in connection.execute(again):
        yield f"the log has {kind} of {subject} more than once"
    completed = query(count).select_from(request).where(request.c.state == "completed")
    n_receipts = connection.execute(query(count).select_from(receipt)).scalar()
    if connection.execute(completed).scalar() != n_receipts:
        yield f"{n_receipts} receipts do not suit the completed requests"


def _orphans(workspace: Workspace) -> list[str]:
    root = workspace.context.root
    strays = set(workspace.context.store.list()) ^ set(referred_to(workspace))
    strays |= {path.name for path in root.glob("**/.partial-*")}
    scratch = root / "scratch"
    return sorted(
        strays | ({path.name for path in scratch.iterdir()} if scratch.exists() else set())
    )


def residue(path: Path, people: set[str], records: set[str]) -> list[str]:
    """Return what is left of people and records, as text."""
    return sorted(texts_in(path, people | records))


def verify_all(
    path: Path,
    people: set[str],
    records: set[str],
    revisions: int,
    heads: Sequence[Any],
    retired: Set[str] = frozenset(),
) -> list[str]:
    """Verify every model and head, and look for tokens of people and numbers of records too.

    Of some models it is known that they are retired, and why.
    """
    workspace = Workspace.open(path)
    wrong = [
        f"model {each.model} is {each.verdict}: {each.detail}"
        for each in workspace.verify(retrain=True)
        if each.verdict != ("retired" if each.model in retired else "equal")
    ]
    for head in heads:
        wrong += workspace.verify_log(head)
    numbers = {weight(id, revision) for id in records for revision in range(revisions + 1)}
    wrong += [f"the number {each} is left" for each in numbers_in(path, numbers)]
    tokens = {token for token in workspace.context.keys.tokens("id", sorted(people)) if token}
    wrong += [f"the token {each} is left" for each in tokens_in(path, tokens)]
    return wrong + [f"{each} is compressed" for each in compressed(path)]
