"""Catalogue of models and their versions: rows of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from erasable.core.errors import (
    InvalidParameterError,
    LedgerError,
    NotInWorkspaceError,
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceServerError,
)
from erasable.workspace.context import Context
from erasable.workspace.data.gone_subjects import drop_unused
from erasable.workspace.evidence import entries, log, seals
from erasable.workspace.ledger import schema
from erasable.workspace.ledger.kinds import tampered
from erasable.workspace.models.training import software
from erasable.workspace.store.artifacts import StoredArtifact

NOT_THE_MODELS = (LedgerError, WorkspaceBusyError, WorkspaceDiskError, WorkspaceServerError)
"""Errors that come of the workspace, and say nothing of a model."""


@dataclass(frozen=True, slots=True)
class Model:
    """A row of the table `model`."""

    id: int
    name: str
    kind: str
    recipe: dict[str, Any]
    features: list[str] | None
    target: str | None
    datasets: list[int]
    state: str
    version: int
    hook: str | None
    created_at: datetime | None
    policy: str | None = None

    @property
    def is_live(self) -> bool:
        """Whether there is a model to delete from."""
        return self.state == "ready"


@dataclass(frozen=True, slots=True)
class Version:
    """A row of the table `model_version`."""

    model_id: int
    number: int
    cause: str
    dataset_versions: list[int]
    key: str | None
    sha256: str | None
    salt: str | None
    commitment: str | None
    algorithm: str
    software: dict[str, str]
    n_records: int
    seconds: float
    created_at: datetime | None
    superseded_at: datetime | None

    @property
    def stored(self) -> StoredArtifact:
        """The file of the model; NotInWorkspaceError if a newer version superseded it."""
        if self.key is None or self.sha256 is None:
            raise NotInWorkspaceError(
                f"version {self.number} of the model is gone; expected the newest"
            )
        return StoredArtifact(self.key, self.sha256)


def find_or_none(connection: Connection, name: str) -> Model | None:
    """Return the model of a name, None if there is none."""
    query = select(*_columns(schema.model, Model)).where(schema.model.c.name == name)
    row = connection.execute(query).first()
    return None if row is None else Model(*row)


def find(connection: Connection, name: str) -> Model:
    """Return the model of a name."""
    found = find_or_none(connection, name)
    if found is None:
        names = ", ".join(each.name for each in every(connection)) or "none"
        raise NotInWorkspaceError(f"there is no model {name!r}; expected one of: {names}")
    return found


def every(connection: Connection) -> list[Model]:
    """Return all models, by name."""
    query = select(*_columns(schema.model, Model)).order_by(schema.model.c.name)
    return [Model(*row) for row in connection.execute(query)]


def models_of(connection: Connection, datasets: Sequence[int]) -> list[Model]:
    """Return the models of any of some data sets, by name."""
    return [each for each in every(connection) if set(each.datasets) & set(datasets)]


def current(connection: Connection, model: Model) -> Version | None:
    """Return the version of a model that is in use, None if there is none (any more)."""
    query = select(*_columns(schema.model_version, Version)).where(
        schema.model_version.c.model_id == model.id,
        schema.model_version.c.number == model.version,
    )
    row = connection.execute(query).first() if model.version else None
    if row is None:
        return None
    found = Version(*row)
    if len(found.dataset_versions) != len(model.datasets):
        raise tampered("what does not belong there", schema.model_version.c.dataset_versions)
    return found


def _columns(table: Any, kind: type) -> list[Any]:
    return [getattr(table.c, field.name) for field in fields(kind)]


AT_ONCE, REFRESH, NEVER = "at-once", "refresh", "never"
POLICIES = (AT_ONCE, REFRESH, NEVER)


def policy_of(model: Model) -> str:
    """Return the policy of a model."""
    return model.policy or REFRESH


def stored_policy(policy: str) -> str | None:
    """Return a policy as the ledger keeps it: None for "refresh"."""
    if policy not in POLICIES:
        raise InvalidParameterError(
            f"the policy is {policy[:40]!r}; expected one of: {', '.join(POLICIES)}"
        )
    return None if policy == REFRESH else policy


def new_version(
    context: Context,
    connection: Connection,
    model_id: int,
    number: int,
    cause: str,
    artifact: StoredArtifact,
    **values: Any,
) -> None:
    """Record a version of a model, and supersede the one before."""
    supersede(context, connection, model_id)
    connection.execute(
        insert(schema.model_version).values(
            model_id=model_id, number=number, cause=cause, key=artifact.key,
            sha256=artifact.sha256, software=software(), created_at=context.now(), **values,
        )
    )  # fmt: skip
    at = schema.model.c.id == model_id
    connection.execute(update(schema.model).where(at).values(version=number))


def supersede(context: Context, connection: Connection, model_id: int) -> None:
    """Drop the file and the salt of the current version: its digest can no longer be checked.

    Its failures do not count for the next version.
    """
    versions = schema.model_version
    live = (versions.c.model_id == model_id) & versions.c.key.is_not(None)
    for key in connection.execute(versions.select().with_only_columns(versions.c.key).where(live)):
        connection.execute(insert(schema.garbage).values(key=key[0]))
    connection.execute(
        update(versions).where(live).values(
            key=None, sha256=None, salt=None, superseded_at=context.now()
        )
    )  # fmt: skip
    failed = (schema.failure.c.target == "model") & (schema.failure.c.target_id == model_id)
    connection.execute(delete(schema.failure).where(failed))


def retire(
    context: Context, connection: Connection, model_id: int, name: str, now: datetime
) -> None:
    """Retire a model, and drop data that only this model needed.

    Call `gone_subjects.tidy` for its data sets afterwards.
    """
    supersede(context, connection, model_id)
    at = schema.model.c.id == model_id
    connection.execute(update(schema.model).where(at).values(state="retired"))
    log_model(context, connection, "model-retired", name, now)
    for each in find(connection, name).datasets:
        drop_unused(context, connection, each)


def log_model(
    context: Context, connection: Connection, kind: str, name: str, now: datetime
) -> None:
    """Log the current state of a model, and seal its file, in the caller's transaction."""
    model = find(connection, name)
    version = current(connection, model)
    body = entries.model(context.keys, asdict(model), None if version is None else asdict(version))
    log.append(context, connection, kind, name, body, now)
    seals.put(context, connection, "model", model.id)
