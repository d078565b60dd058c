"""Catalogue of models and their versions: rows of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised
from erasable.core.errors import (
    LedgerError,
    NotInWorkspaceError,
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceServerError,
)
from erasable.workspace.ledger import rows, schema
from erasable.workspace.ledger.kinds import tampered
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
    row = connection.execute(select(schema.model).where(schema.model.c.name == name)).first()
    return None if row is None else Model(**row._asdict())


def find(connection: Connection, name: str) -> Model:
    """Return the model of a name."""
    found = find_or_none(connection, name)
    if found is None:
        names = ", ".join(each.name for each in every(connection)) or "none"
        raise NotInWorkspaceError(f"there is no model {name!r}; expected one of: {names}")
    return found


def every(connection: Connection) -> list[Model]:
    """Return all models, by name."""
    return [Model(**row._asdict()) for row in rows.models(connection)]


def models_of(connection: Connection, datasets: Sequence[int]) -> list[Model]:
    """Return the models of any of some data sets, by name."""
    return [each for each in every(connection) if set(each.datasets) & set(datasets)]


def current(connection: Connection, model: Model) -> Version | None:
    """Return the version of a model that is in use, None if there is none (any more)."""
    query = select(schema.model_version).where(
        schema.model_version.c.model_id == model.id,
        schema.model_version.c.number == model.version,
    )
    row = connection.execute(query).first() if model.version else None
    if row is None:
        return None
    found = Version(**row._asdict())
    if len(found.dataset_versions) != len(model.datasets):
        raise tampered("what does not belong there", schema.model_version.c.dataset_versions)
    return found


AT_ONCE, REFRESH, NEVER = "at-once", "refresh", "never"
POLICIES = (AT_ONCE, REFRESH, NEVER)


def policy_of(model: Model) -> str:
    """Return the policy of a model."""
    return model.policy or REFRESH


def stored_policy(policy: str) -> str | None:
    """Return a policy as the ledger keeps it: None for "refresh"."""
    if policy not in POLICIES:
        raise errors.InvalidParameterError(
            f"the policy is {policy[:40]!r}; expected one of: {', '.join(POLICIES)}"
        )
    return None if policy == REFRESH else policy
