"""Pending hooks: the models that have changed since their hooks ran, in a row of the ledger."""

from __future__ import annotations

from sqlalchemy import Connection

from erasable.workspace.context import Context
from erasable.workspace.models import catalogue

_NAME = "hooks_due"


def due(context: Context, connection: Connection) -> list[str]:
    """Return the models that have changed and have a hook to run, by name."""
    return [name for name in _every(context, connection) if hook_of(connection, name) is not None]


def hook_of(connection: Connection, name: str) -> str | None:
    """Return the hook of a model; None where it has none, or there is no such model any more."""
    model = catalogue.known(connection, name)
    return model.hook if model is not None and model.is_live else None


def add(context: Context, connection: Connection, name: str) -> None:
    """Write down that a model has changed, in the transaction that changes it."""
    before = _every(context, connection)
    if name not in before:
        context.ledger.set(connection, _NAME, sorted([*before, name]))


def discard(context: Context, connection: Connection, name: str) -> None:
    """Write down that no hook of a model is due: it has ended well, or the model is retired."""
    before = _every(context, connection)
    left = [each for each in before if each != name]
    if left != before:
        context.ledger.set(connection, _NAME, left)


def _every(context: Context, connection: Connection) -> list[str]:
    names: list[str] = context.ledger.get(connection, _NAME, [])
    return names
