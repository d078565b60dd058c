"""Describe data sets from the ledger, for lists and pages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select

from erasable.workspace.ledger.schema import dataset as dataset_table
from erasable.workspace.ledger.schema import dataset_version, fragment, model


def datasets(connection: Connection) -> list[dict[str, Any]]:
    """Describe every data set, sorted by name.

    A description has name, version, n_records, source, id_column, subjects and created_at.
    """
    rows = connection.execute(select(dataset_table).order_by(dataset_table.c.name))
    return [_row_described(connection, row) for row in rows]


def dataset(connection: Connection, name: str) -> dict[str, Any]:
    """Describe a data set, as `datasets` does, with its columns, versions and models."""
    row = connection.execute(select(dataset_table).where(dataset_table.c.name == name)).first()
    if row is None:
        from erasable.workspace.data import catalogue

        catalogue.find(connection, name)  # says what there is
        raise AssertionError
    v = dataset_version.c
    query = select(v.number, v.cause, v.n_records, v.n_suppressed, v.created_at)
    rows = connection.execute(query.where(v.dataset_id == row.id).order_by(v.number))
    users = connection.execute(select(model.c.name, model.c.datasets).order_by(model.c.name))
    return {
        **_row_described(connection, row),
        "columns": row.columns,
        "versions": [each._asdict() for each in rows],
        "models": [each.name for each in users if row.id in each.datasets],
    }


def _row_described(connection: Connection, row: Any) -> dict[str, Any]:
    live = fragment.c.until.is_(None) | (fragment.c.until > row.version)
    query = select(func.coalesce(func.sum(fragment.c.n_records), 0)).where(
        fragment.c.dataset_id == row.id, live
    )
    return {
        "name": row.name,
        "version": row.version,
        "n_records": int(connection.execute(query).scalar_one()),
        **{name: getattr(row, name) for name in ("id_column", "subjects", "source", "created_at")},
    }
