"""Bodies of the entries of the log, about requests, data sets and models.

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
from datetime import datetime
from typing import Any

from erasable.workspace.evidence.commitments import commitment
from erasable.workspace.evidence.formats import pack, stamp
from erasable.workspace.identity.keys import Keys

STATES = {
    "request-acknowledged": ("pending",),
    "request-held": ("pending",),
    "request-started": ("in_progress",),
    "request-postponed": ("pending",),
    "request-erased": ("swapped", "purged"),
    "request-corrected": ("swapped", "purged"),
    "request-completed": ("completed",),
    "request-denied": ("denied",),
    "request-cancelled": ("cancelled",),
}
"""States that a request may be in after an entry, by kind. Other kinds do not change it."""

_COUNTED = ("n_added", "n_changed", "n_removed")
_OWN_TEXT = "evidence/exact"  # a namespace, so that no hash of a text is the token of an identity


def acknowledged(keys: Keys, row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the body for a request that was taken in (request-acknowledged).

    `row` is one of table `request`, with its salt.

    >>> from datetime import UTC, datetime
    >>> from erasable.workspace.identity.keys import Keys
    >>> at = datetime(2026, 11, 2, tzinfo=UTC)
    >>> row = {"regulation": "none", "received_at": at, "due_at": None, "hold": None, "type": "id",
    ...        "tokens": [["id", "5f"]], "condition": None, "salt": "00" * 32}
    >>> acknowledged(Keys.new(), row)
    {'corrects': None, 'due_at': None, 'hold': None, 'received_at':
     '2026-11-02T00:00:00.000000Z', 'reference': None, 'regulation': 'none', 'scope': '...',
     'types': None}
    """
    names = (
        "corrects", "due_at", "hold", "received_at", "reference", "regulation", "scope", "types",
    )  # fmt: skip
    return _some(keys, row, names)


def narrowed(keys: Keys, row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the body for a correction that lost erased records (request-narrowed)."""
    return _some(keys, row, ("scope",))


def changed(keys: Keys, row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the body for a request after a denial, cancellation, hold or extension."""
    return _some(keys, row, ("due_at", "extended_at", "extension", "hold", "reason"))


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


def _some(keys: Keys, row: Mapping[Any, Any], names: Iterable[str]) -> dict[str, Any]:
    whole = request(keys, defaultdict(lambda: None, row))
    return {name: whole[name] for name in names}


def _moment(at: datetime | None) -> str | None:
    return None if at is None else stamp(at)


def _keyed(keys: Keys, value: Any) -> str | None:
    """Hash a value of JSON under the workspace's secret."""
    return None if value is None else keys.token(_OWN_TEXT, pack(value).decode())
