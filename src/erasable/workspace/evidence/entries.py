"""Kinds of entries of the log, one row each, and the bodies of entries.

A body names columns of the ledger, so that `consistency` can compare them. It may leave out what
did not change. Values that could identify a person go in so that they can be compared with the
ledger and disclose nothing else:

- texts of an operator (a reason, a hold, a command) as keyed hashes, which no one can guess at
  without the workspace's keys;
- the scope of a request as a commitment under the request's own salt, which is destroyed with it;
- the people whom it keeps out as another; see `suppressions`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from erasable.workspace.evidence.commitments import commitment
from erasable.workspace.evidence.formats import pack, stamp
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.states import IN_PLACE

THINGS = {"request": "request", "dataset": "data set", "model": "model"}
"""What entries describe, in words."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of entry of the log; its name begins with what it is about."""

    name: str
    states: tuple[str, ...] = ()  # of its request, afterwards; () where it does not change
    columns: tuple[str, ...] = ()  # of the row of table `request` that its body holds
    describes: str = ""  # "all" of its data set or model, "new" where it is the first to do so
    is_about_list: bool = False  # it commits to the people whom its request keeps out


_ACKNOWLEDGED = (
    "corrects", "due_at", "hold", "received_at", "reference", "regulation", "scope", "types",
)  # fmt: skip
_ANSWERED = ("due_at", "extended_at", "extension", "hold", "reason")

KINDS = {
    each.name: each
    for each in (
        Kind("workspace"),
        Kind("workspace-restored"),
        Kind("log-sealed"),  # of earlier versions: they sealed the entries before it
        Kind("request-acknowledged", ("pending",), _ACKNOWLEDGED),
        Kind("request-held", ("pending",), _ANSWERED),
        Kind("request-extended", (), _ANSWERED),
        Kind("request-narrowed", (), ("scope",)),  # a correction lost erased records
        Kind("request-started", ("in_progress",)),
        Kind("request-postponed", ("pending",)),
        Kind("request-erased", IN_PLACE, is_about_list=True),
        Kind("request-corrected", IN_PLACE),
        Kind("request-completed", ("completed",)),
        Kind("request-denied", ("denied",), _ANSWERED),
        Kind("request-cancelled", ("cancelled",), _ANSWERED),
        Kind("suppression-released", is_about_list=True),
        Kind("suppression-imported", is_about_list=True),
        Kind("subjects-linked"),
        Kind("target-started"),
        Kind("target-erased"),
        Kind("dataset-added", describes="new"),
        Kind("dataset-appended", describes="all"),
        Kind("dataset-synced", describes="all"),
        Kind("model-fitted", describes="new"),
        Kind("model-registered", describes="new"),
        Kind("model-updated", describes="all"),
        Kind("model-changed", describes="all"),
        Kind("model-retired", describes="all"),
        Kind("model-audited"),
        Kind("model-published"),
        Kind("model-unpublished"),
    )
}
"""All kinds, by name."""


def describing(thing: str, *which: str) -> list[str]:
    """Return the kinds that describe a "dataset" or "model"; see `Kind.describes`."""
    about = [each for name, each in KINDS.items() if name.partition("-")[0] == thing]
    return [each.name for each in about if each.describes in which]


_COUNTED = ("n_added", "n_changed", "n_removed")
_OWN_TEXT = "evidence/exact"  # a namespace, so that no hash of a text is the token of an identity


def of_request(keys: Keys, kind: str, row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the body of an entry that holds columns of a row of table `request`, with its salt.

    >>> from datetime import UTC, datetime
    >>> from erasable.workspace.identity.keys import Keys
    >>> row = {"due_at": datetime(2026, 11, 2, tzinfo=UTC), "salt": None}
    >>> of_request(Keys.new(), "request-held", row)
    {'due_at': '2026-11-02T00:00:00.000000Z', 'extended_at': None, 'extension': None, ...}
    """
    whole = request(keys, defaultdict(lambda: None, row))
    return {name: whole[name] for name in KINDS[kind].columns}


def erased(
    matched: int,
    tasks: Iterable[Mapping[Any, Any]],
    suppressed: str | None = None,
    searched: Sequence[Mapping[str, str]] | None = None,
    followed: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the body for a request that was carried out (request-erased, request-corrected).

    `matched` counts records, and `tasks` are the request's rows of table `task`. `suppressed` is
    the commitment to the people it keeps out, or None if it adds no token. `searched` names
    dataset, column and type of each column that was searched; for `followed` see
    `workspace.data.persons.Step`.
    """
    done = sorted(map(task, tasks), key=lambda one: (one["target"], one["target_id"]))
    said = {"suppressed": suppressed, "searched": searched, "followed": followed}
    return {"matched": matched, "tasks": done, **said}


def completed(at: datetime, receipt: str) -> dict[str, Any]:
    """Return the body for a request that was completed (request-completed).

    `receipt` is the SHA-256 of the statement in its receipt.
    """
    return {"completed_at": stamp(at), "receipt": receipt}


def dataset(keys: Keys, row: Mapping[Any, Any], version: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the body for a version of a data set (dataset-added, -appended, -synced).

    `row` and `version` are rows of tables `dataset` and `dataset_version`.
    """
    return {
        "source": _keyed(keys, row["source"]),
        **{name: row[name] for name in ("id_column", "subjects", "columns", "n_buckets")},
        **{name: version[name] for name in ("n_records", "n_suppressed", *_COUNTED)},
        "version": version["number"],
    }


def model(
    keys: Keys, row: Mapping[Any, Any], version: Mapping[Any, Any] | None = None
) -> dict[str, Any]:
    """Return the body for a model (model-fitted, -registered, -updated, -changed, -retired).

    `row` and `version`, the current one, are rows of tables `model` and `model_version`.
    """
    of_version = ("dataset_versions", "commitment", "algorithm", "software", "n_records")
    return {
        "recipe": _keyed(keys, row["recipe"]),
        "hook": _keyed(keys, row["hook"]),
        "made_by": row["kind"],  # every entry has a kind of its own
        **{name: row[name] for name in ("features", "target", "datasets", "state", "version")},
        "policy": row["policy"],
        **{name: None if version is None else version[name] for name in of_version},
    }


def audited(
    keys: Keys,
    version: int,
    commitment: str | None,
    report: Mapping[str, Any],
    request: str | None = None,
) -> dict[str, Any]:
    """Return the body for an audit of a model (model-audited).

    It names no columns of the ledger, since an audit does not change the model. `commitment` is to
    the model's digest, and `report` is what `erasable.audit.AuditReport.to_dict` returns. Only a
    keyed hash of it goes in, because it names records. `request` is the one whose deletion was
    audited.
    """
    told = ("question", "verdict", "judged", "access", "attack", "level")
    return {
        **{name: report[name] for name in told},
        "audited_version": version,
        "audited_commitment": commitment,
        "report": _keyed(keys, report),
        "request": request,
    }


def request(keys: Keys, row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return all values of a row of table `request` that entries may hold, but for its tasks."""
    scope = None
    if row["salt"] is not None:
        asked = {"tokens": row["tokens"], "condition": row["condition"], "type": row["type"]}
        values = {name: row[name] for name in ("corrects", "values_key", "values_sha256")}
        if any(value is not None for value in values.values()):
            asked |= values
        if row["reach"] is not None:
            asked["reach"] = row["reach"]
        text = pack(asked)
        try:
            scope = commitment(row["salt"], text.decode())
        except ValueError:
            scope = "under a salt that is none"
    elif any(row[name] is not None for name in ("tokens", "condition", "values_key")):
        scope = "without a salt"
    return {
        "regulation": row["regulation"],
        **{name: _moment(row[name]) for name in _MOMENTS},
        **{name: _keyed(keys, row[name]) for name in ("extension", "hold", "reason", "reference")},
        "scope": scope,
        **{name: row[name] for name in _AS_THEY_ARE},
    }


def task(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values of a row of table `task` that an entry holds."""
    return {name: row[name] for name in _TASK}


_MOMENTS = ("received_at", "due_at", "extended_at", "completed_at")
_AS_THEY_ARE = ("batch", "corrects", "followed", "matched", "searched", "types")
_TASK = ("target", "target_id", "treatment", "exactness", "n_records", "before", "after")


def _moment(at: datetime | None) -> str | None:
    return None if at is None else stamp(at)


def _keyed(keys: Keys, value: Any) -> str | None:
    """Hash a value of JSON under the workspace's secret."""
    return None if value is None else keys.token(_OWN_TEXT, pack(value).decode())
