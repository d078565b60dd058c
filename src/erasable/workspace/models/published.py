"""Published models: rows of the ledger on their registries. No credential is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from erasable.workspace.context import Context
from erasable.workspace.models import catalogue

MODEL, DESIGN = "model", "design.json"
"""Files of the folder that is registered; `erasable.mlflow` asks for the first by this name."""


@dataclass(frozen=True, slots=True)
class Published:
    """A model that is published in a registry."""

    model: str
    to: str  # "mlflow:" and the name of the registered model
    tracking_uri: str | None  # None: MLFLOW_TRACKING_URI at each use
    delete_superseded: bool
    version: int | None  # of the model, that was registered last
    registered: str | None  # that version in the registry
    superseded: list[str]  # other versions of ours in the registry
    error: str | None  # of the last attempt
    log_size: int  # entries of the log at the last registration


def every(context: Context, connection: Connection) -> dict[str, Published]:
    """Return what is published, by the name of the model."""
    kept = context.ledger.get(connection, "published", [])
    return {each["model"]: Published(**each) for each in kept}


def record_published(
    context: Context, connection: Connection, targets: Iterable[Published]
) -> None:
    """Record where a model is published, or that it is not, in the caller's transaction.

    Versions that stay registered where it was published before are recorded, too.
    """
    kept = sorted(targets, key=lambda one: one.model)
    left = set(context.ledger.get(connection, "published_before", []))
    left |= {
        each.to
        for each in every(context, connection).values()
        if each.registered or each.superseded
    }
    left -= {each.to for each in kept}
    rows = [{name: getattr(each, name) for name in Published.__slots__} for each in kept]
    context.ledger.set(connection, "published", rows)
    context.ledger.set(connection, "published_before", sorted(left))


def is_due(connection: Connection, target: Published) -> bool:
    """Tell whether the registry lacks the newest version, or has one of a model that is retired."""
    model = catalogue.find_or_none(connection, target.model)
    if model is None:
        return False
    return target.version != (model.version if model.is_live else None)


def is_any_due(context: Context) -> bool:
    """Tell whether a registry lacks the newest version of a model."""
    with context.ledger.reading() as connection:
        return any(is_due(connection, each) for each in every(context, connection).values())


def listing(context: Context, connection: Connection) -> list[dict[str, Any]]:
    """Describe what is published: model, to, version, registered, behind, superseded, error."""
    return [
        {
            **{name: getattr(each, name) for name in ("model", "to", "version", "registered")},
            "behind": is_due(connection, each),
            "superseded": each.superseded,
            "error": each.error,
        }
        for each in sorted(every(context, connection).values(), key=lambda one: one.model)
    ]
