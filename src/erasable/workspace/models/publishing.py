"""Publishing of models: each new version becomes a version of a registered model.

The law kept here: a registry that fails never fails an erasure. The ledger says what the registry
has and lacks; the next `process` registers what it lacks. No credential is kept, and no identity is
published.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, select

import erasable.workspace.locking as locking
from erasable.core.errors import ErasableError, TamperedError, WorkspaceBusyError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import ledger_checks, log
from erasable.workspace.evidence.formats import unpack
from erasable.workspace.ledger.bulk import rows_in
from erasable.workspace.ledger.schema import log_entry, task
from erasable.workspace.ledger.treatments import FITTED
from erasable.workspace.models import catalogue, using
from erasable.workspace.models.deleting import design_of
from erasable.workspace.models.published import (
    DESIGN,
    MODEL,
    Published,
    every,
    is_due,
    record_published,
)
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.own_files import refuse_own

_SCHEME = "mlflow:"
_URI = "MLFLOW_TRACKING_URI"
_RECEIPTS = "receipts.json"


def publish(
    context: Context,
    name: str,
    to: str,
    *,
    tracking_uri: str | None = None,
    delete_superseded: bool = False,
) -> tuple[Published, list[str]]:
    """Register a model now, and after every update; see `Workspace.publish`."""
    registered = _name_of(to)
    uri = None if tracking_uri is None else _checked(context, tracking_uri)
    with context.lock([locking.PUBLISHING], reads=locking.models([name])):
        model, version, data = using.open_model(context, name)
        if design_of(model) is None:
            raise WorkspaceError(
                f"{name!r} was made by a program of its own; expected an estimator, which MLflow "
                f"can load; have a hook publish it: `erasable model fit {name} --hook CMD`"
            )
        with context.ledger.reading() as connection:
            size = _registered_last(connection, name, f"{_SCHEME}{registered}")
            if size is None:
                size = log.next_position(context, connection)
            before = every(context, connection).get(name)
        target = Published(
            name, f"{_SCHEME}{registered}", uri, delete_superseded, None, None, [], None, size
        )
        if before is not None and before.to == target.to:
            target = replace(
                target, version=before.version, registered=before.registered,
                log_size=before.log_size,
            )  # fmt: skip
        done, messages = _push(context, target)
        return done, using.cautions(context, model, version, data) + messages


def stop_publishing(context: Context, name: str) -> None:
    """Stop publishing a model; registered versions stay."""
    with context.lock([locking.PUBLISHING]), context.ledger.transaction() as connection:
        catalogue.find(connection, name)
        kept = every(context, connection)
        if kept.pop(name, None) is None:
            raise WorkspaceError(
                f"the model {name!r} is not published; expected one that is; `erasable status` "
                "lists them"
            )
        record_published(context, connection, kept.values())
        log.append(context, connection, "model-unpublished", name, {}, context.now())


def publish_due(context: Context) -> list[str]:
    """Register what registries lack; return faults and remarks, a line each.

    If another process is doing so, leave it to that one, or to the next `process`.
    """
    names = [each.model for each in _due(context)]
    if not names:
        return []
    try:
        # No erasure ends while a version from before it is on its way.
        with context.lock([locking.PUBLISHING], reads=locking.models(names)):
            return [
                line
                for each in _due(context)
                if each.model in names
                for line in _tell(context, each)
            ]
    except WorkspaceBusyError:
        return []


def _due(context: Context) -> list[Published]:
    with context.ledger.reading() as connection:
        return [each for each in every(context, connection).values() if is_due(connection, each)]


def _tell(context: Context, target: Published) -> list[str]:
    """Register one; return what has to be known."""
    try:
        return _push(context, target, anew=False)[1]
    except (TamperedError, WorkspaceBusyError):
        raise
    except ErasableError as error:
        line = " ".join(str(error).split())
        with context.ledger.transaction() as connection:
            kept = every(context, connection)
            kept[target.model] = replace(target, error=line)
            record_published(context, connection, kept.values())
        return [
            f"{target.model!r} was not published; MLflow has an older version, and the next "
            f"`process` tries again: {line}"
        ]


# -- how a version gets there ----------------------------------------------------------------------


def _push(context: Context, target: Published, *, anew: bool = True) -> tuple[Published, list[str]]:
    from erasable.workspace.models.mlflow_registry import Registry

    with context.ledger.reading() as connection:
        ledger_checks.check(context, connection)
        workspace = str(context.ledger.get(connection, "workspace"))
        model = catalogue.find(connection, target.model)
        size = log.next_position(context, connection)
        receipts = _receipts_since(connection, model.id, target.log_size)
    uri = target.tracking_uri or _from_environment(context)
    registry = Registry(_name_of(target.to), uri, workspace, target.model)
    registry.claim(make=anew or target.registered is None)
    number = registered = None
    if model.is_live:
        number = model.version
        registered = _register(context, registry, target, receipts)
    erased = bool(receipts)
    left = registry.supersede(registered, erased=erased, delete=target.delete_superseded)
    done = replace(
        target, version=number, registered=registered, superseded=left, error=None, log_size=size
    )
    with context.ledger.transaction() as connection:
        kept = every(context, connection)
        kept[target.model] = done
        record_published(context, connection, kept.values())
        said = {"to": done.to, "registered": registered, "superseded": left}
        log.append(context, connection, "model-published", target.model, said, context.now())
    return done, _remarks(done) if erased else []


def _register(
    context: Context, registry: Any, target: Published, receipts: list[dict[str, str]]
) -> str:
    model, version, data = using.open_model(context, target.model)
    design = design_of(model)
    assert design is not None
    commitment = str(version.commitment)
    if (known := registry.find(commitment)) is not None:
        return str(known)
    said = {
        "features": list(design.features), "target": design.target, "documents": design.documents,
    }  # fmt: skip
    with context.scratch() as folder:
        disk = Disk(folder)
        disk.write(f"data/{MODEL}", data)
        disk.write(f"data/{DESIGN}", json.dumps(said).encode())
        disk.write(f"data/{_RECEIPTS}", json.dumps(receipts, indent=2).encode())
        treatments = ",".join(sorted({each["treatment"] for each in receipts})) or FITTED.name
        tags = {
            "erasable.algorithm": version.algorithm,
            "erasable.key": context.keys.key_id,
            "erasable.treatment": treatments,
            "erasable.requests": str(len(receipts)),
            "erasable.receipt_sha256": _digest(receipts),
        }
        pushed: str = registry.push(
            folder / "data", folder / "saved", version.number, commitment, tags
        )
    return pushed


def _registered_last(connection: Connection, name: str, to: str) -> int | None:
    """Return where the log says that a model was registered there last, also long ago."""
    logged = connection.execute(
        select(log_entry.c.position, log_entry.c.body)
        .where(log_entry.c.kind == "model-published", log_entry.c.subject == name)
        .order_by(log_entry.c.position.desc())
    )
    return next((row.position for row in logged if unpack(row.body, "it").get("to") == to), None)


def _receipts_since(connection: Connection, model_id: int, since: int) -> list[dict[str, str]]:
    """Return request, treatment and digest of the receipts about a model, from a log position on.

    The digest is that of the statement, as in the log.
    """
    ended = connection.execute(
        select(log_entry.c.subject, log_entry.c.body)
        .where(log_entry.c.position >= since, log_entry.c.kind == "request-completed")
        .order_by(log_entry.c.position)
    )
    digests = {row.subject: str(unpack(row.body, "it").get("receipt")) for row in ended}
    of_model = select(task.c.request_id, task.c.treatment).where(
        task.c.target == "model", task.c.target_id == model_id
    )
    rows = rows_in(connection, of_model, task.c.request_id, digests)
    treatments = {row.request_id: str(row.treatment) for row in rows}
    return [
        {"request": id, "treatment": treatments[id], "sha256": digest}
        for id, digest in digests.items()
        if id in treatments
    ]


def _digest(receipts: list[dict[str, str]]) -> str:
    """Return the digest of the receipt, or, of several, that of the lines of theirs."""
    if len(receipts) == 1:
        return receipts[0]["sha256"]
    lines = "".join(f"{each['sha256']}\n" for each in receipts)
    return hashlib.sha256(lines.encode()).hexdigest() if receipts else "none"


def _remarks(done: Published) -> list[str]:
    """Say where the erased records are still learned from."""
    if done.superseded:
        return [
            f"versions {', '.join(done.superseded)} of {done.to} were trained on records that are "
            "erased here, and are still in MLflow: delete them there, or have that done: "
            f"`erasable model publish {done.model} --to {done.to} --delete-superseded`"
        ]
    return []


# -- where to --------------------------------------------------------------------------------------


def _name_of(to: str) -> str:
    name = to.removeprefix(_SCHEME)
    if not to.startswith(_SCHEME) or not name or len(name) > 200 or re.search(r"[/:\s]", name):
        raise WorkspaceError(
            f"{to[:60]!r} is no place to publish to; expected mlflow: and the name of a registered "
            "model, without '/', ':' and blanks; write mlflow:risk, say"
        )
    return name


def _from_environment(context: Context) -> str:
    found = os.environ.get(_URI)
    if not found:
        raise WorkspaceError(
            f"no tracking URI of MLflow is known; expected one; name it with --tracking-uri, or in "
            f"{_URI}"
        )
    return _absolute(context, found)


def _checked(context: Context, uri: str) -> str:
    """Return a URI that may be kept; a password is not repeated."""
    try:
        parts = urlsplit(uri)
        secret = parts.password is not None or "@" in parts.netloc
    except ValueError:
        parts, secret = None, False
    if secret:
        raise WorkspaceError(
            "the tracking URI holds a user or password; expected none, because it is kept; give "
            "them in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        )
    if parts is None or not parts.scheme:
        raise WorkspaceError(
            f"{uri[:60]!r} is no tracking URI; expected http://HOST:PORT, sqlite:///FILE or the "
            "like"
        )
    return _absolute(context, uri)


def _absolute(context: Context, uri: str) -> str:
    """Have a local store be the same wherever we are started, and outside of the workspace."""
    if not uri.startswith("sqlite:///"):
        return uri
    place = Path(uri.removeprefix("sqlite:///")).absolute()
    refuse_own(place, context.root)
    if place.resolve().is_relative_to(context.root):
        raise WorkspaceError(
            f"{str(place)!r} is in the folder of the workspace, where no erasure would reach what "
            "MLflow keeps; expected a place elsewhere"
        )
    return f"sqlite:///{place}"
