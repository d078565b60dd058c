"""Which models have changed since their hooks ran: a row of the ledger."""

from __future__ import annotations

from sqlalchemy import Connection

from erasable.workspace.models import catalogue
from erasable.workspace.site import Site

__all__ = ["due", "every", "hook_of", "owe", "settle"]

_NAME = "hooks_due"


def every(site: Site, connection: Connection) -> list[str]:
    """Return the models that have changed, by name."""
    names: list[str] = site.ledger.get(connection, _NAME, [])
    return names


def due(site: Site, connection: Connection) -> list[str]:
    """Return those of them that have a hook to run, still."""
    return [name for name in every(site, connection) if hook_of(connection, name) is not None]


def hook_of(connection: Connection, name: str) -> str | None:
    """Return the hook of a model; None where it has none, or there is no such model any more."""
    model = catalogue.known(connection, name)
    return model.hook if model is not None and model.is_live else None


def owe(site: Site, connection: Connection, name: str) -> None:
    """Write down that a model has changed, in the transaction that changes it."""
    before = every(site, connection)
    if name not in before:
        site.ledger.set(connection, _NAME, sorted([*before, name]))


def settle(site: Site, connection: Connection, name: str) -> None:
    """Write down that nothing is due for a model: its hook has ended well, or it is retired."""
    before = every(site, connection)
    left = [each for each in before if each != name]
    if left != before:
        site.ledger.set(connection, _NAME, left)
