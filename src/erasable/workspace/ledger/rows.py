"""Rows of all data sets and models; a transaction that only reads converts them once."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from erasable.workspace.ledger.engine import once
from erasable.workspace.ledger.schema import dataset, model

_DATASETS = select(dataset).order_by(dataset.c.name)
_MODELS = select(model).order_by(model.c.name)


@once
def datasets(connection: Connection) -> tuple[Row[Any], ...]:
    """Return the rows of all data sets, by name."""
    return tuple(connection.execute(_DATASETS))


@once
def models(connection: Connection) -> tuple[Row[Any], ...]:
    """Return the rows of all models, by name."""
    return tuple(connection.execute(_MODELS))
