"""Rows of all data sets, models and targets; a transaction that only reads converts them once."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from erasable.workspace.ledger.engine import once
from erasable.workspace.ledger.schema import dataset, model, target

_DATASETS = select(dataset).order_by(dataset.c.name)
_MODELS = select(model).order_by(model.c.name)
_TARGETS = select(target).order_by(target.c.name)


@once
def datasets(connection: Connection) -> tuple[Row[Any], ...]:
    """Return the rows of all data sets, by name."""
    return tuple(connection.execute(_DATASETS))


@once
def models(connection: Connection) -> tuple[Row[Any], ...]:
    """Return the rows of all models, by name."""
    return tuple(connection.execute(_MODELS))


@once
def targets(connection: Connection) -> tuple[Row[Any], ...]:
    """Return the rows of all targets, by name, also of those that were removed."""
    return tuple(connection.execute(_TARGETS))
