"""Statements of receipts: in-toto statements about what was done for a request.

The format is https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md. Its subject is
the request, by the entry of the log that took it in, and every data set and model that was
changed, by a salted commitment to what is left of it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib import metadata
from typing import Any

from sqlalchemy import Connection

from erasable.workspace.evidence.formats import stamp
from erasable.workspace.ledger.engine import Ledger, settings
from erasable.workspace.ledger.treatments import UNCOVERED
from erasable.workspace.store.artifacts import ArtifactStore

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:erasable:receipt:v1"

OUT_OF_REACH = (
    "free blocks of the disk",
    "snapshots and backups of it",
    "archived logs of other programs",
    "the source of a data set",
)
"""Places beyond any workspace that may still hold a record; see `unreached`."""

_PACKAGES = ("erasable", "numpy", "scipy", "scikit-learn", "numba", "pyarrow")


def unreached(ledger: Ledger, store: ArtifactStore, connection: Connection) -> list[str]:
    """Return the places beyond the workspace that may still hold a record or a token."""
    kept = settings(connection, ("published", "published_before"))
    published = [
        f"copies that were made of versions of {each['to']}"
        if each["delete_superseded"]
        else f"earlier versions of {each['to']}"
        for each in kept.get("published", ())
    ]
    left = [
        f"versions of {to}, where it is published no longer"
        for to in kept.get("published_before", ())
    ]
    return [*OUT_OF_REACH, *ledger.backend.unreached, *store.unreached, *published, *left]


def statement(
    request: Any,
    tasks: Iterable[Any],
    known: Mapping[str, Mapping[int, Any]],
    datasets: Mapping[int, str],
    acknowledged: bytes,
    at: datetime,
    common: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the statement about a request.

    `request` and `tasks` are rows of the tables of these names, `known` has rows of "model",
    "dataset" and "target" by id, and `datasets` the commitments to the data sets as they are now,
    by id. `acknowledged` is the entry of the log that took the request in. `common` has
    out_of_reach, workspace, key and log.
    """
    tasks = sorted(tasks, key=lambda one: (one.target, one.target_id))
    changed = [
        _changed(one, known["dataset"][one.target_id], after=datasets[one.target_id])
        for one in tasks
        if one.target == "dataset"
    ]
    models = [
        _changed(
            one, known["model"][one.target_id],
            exactness=one.exactness, before=one.before, after=one.after,
        )
        for one in tasks
        if one.target == "model"
    ]  # fmt: skip
    outside = [
        {
            "name": known["target"][one.target_id].name, "verdict": one.exactness,
            "reason": one.reason, "records": one.n_records,
        }
        for one in tasks
        if one.target == "target"
    ]  # fmt: skip
    subject = [("request", request.id, sha256(acknowledged).hexdigest())]
    subject += [("dataset", one["name"], one["after"]) for one in changed]
    subject += [("model", one["name"], one["after"]) for one in models]
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": f"{kind}/{name}", "digest": {"sha256": digest}}
            for kind, name, digest in subject
            if digest is not None  # of a retired model, and of one not covered, there is none
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "request": request.id,
            "regulation": request.regulation,
            "types": request.types,  # under which an identity was looked for
            **_times(request, at),
            "matched": bool(request.matched),
            **_outcome(request),
            "searched": request.searched,  # the columns; of a condition there are none
            "followed": request.followed,  # how other identities of the person were found
            "records": request.matched or 0,
            "datasets": changed,
            "models": models,
            "targets": outside,  # places that people are erased from besides
            "not_covered": [one["name"] for one in models if one["treatment"] in UNCOVERED],
            "software": software(),
            **common,
        },
    }


def _outcome(request: Any) -> dict[str, Any]:
    """Return the outcome; of a correction the columns and data sets, without old or new values."""
    if request.corrects is None:
        return {"outcome": "erased" if request.matched else "no match"}
    done = "corrected" if request.matched else "nothing to correct"
    return {"outcome": done, "corrected": request.corrects}


def _times(request: Any, at: datetime) -> dict[str, Any]:
    left = None if request.due_at is None else (request.due_at - at).total_seconds() / 86400
    return {
        "received": stamp(request.received_at),
        "due": None if request.due_at is None else stamp(request.due_at),
        "extended": None if request.extended_at is None else stamp(request.extended_at),
        "completed": stamp(at),
        "in_time": None if left is None else left >= 0,
        "days_left": None if left is None else round(left, 2),  # negative: days late
    }


def _changed(one: Any, row: Any, **more: Any) -> dict[str, Any]:
    """Return what was done to a data set or a model."""
    return {
        "name": row.name,
        "version": row.version,
        "treatment": one.treatment,
        "records": one.n_records,
        "seconds": None if one.seconds is None else round(one.seconds, 3),
        **more,
    }


@cache
def software() -> dict[str, str]:
    """Return the versions of the software."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
