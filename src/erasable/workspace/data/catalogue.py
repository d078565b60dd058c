"""Catalogue of data sets: their rows in the ledger, and the records of a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select

from erasable.core.errors import NotInWorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.ledger import rows
from erasable.workspace.ledger.kinds import tampered
from erasable.workspace.ledger.schema import dataset as dataset_table
from erasable.workspace.ledger.schema import dataset_version, fragment
from erasable.workspace.ledger.schema import dataset_version as version_table

if TYPE_CHECKING:
    import pyarrow as pa


def datasets(connection: Connection) -> list[dict[str, Any]]:
    """Describe every data set, sorted by name.

    A description has name, version, n_records, source, id_column, subjects and created_at.
    """
    return [_row_described(connection, row) for row in rows.datasets(connection)]


def dataset(connection: Connection, name: str) -> dict[str, Any]:
    """Describe a data set, as `datasets` does, with its columns, versions and models."""
    row = connection.execute(select(dataset_table).where(dataset_table.c.name == name)).first()
    if row is None:
        find(connection, name)  # raises an error that names the data sets
        raise AssertionError
    v = dataset_version.c
    query = select(v.number, v.cause, v.n_records, v.n_suppressed, v.created_at)
    versions = connection.execute(query.where(v.dataset_id == row.id).order_by(v.number))
    return {
        **_row_described(connection, row),
        "columns": row.columns,
        "versions": [each._asdict() for each in versions],
        "models": [each.name for each in rows.models(connection) if row.id in each.datasets],
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


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set in the ledger."""

    id: int
    name: str
    source: dict[str, Any]  # without credentials
    id_column: str
    subjects: tuple[tuple[str, str], ...]  # (column, type); the first groups records
    columns: tuple[tuple[str, str], ...]  # (name, Arrow type)
    n_buckets: int
    version: int
    created_at: datetime | None
    # by subject column: the country of its telephone numbers that have no country code
    regions: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as Arrow has them."""
        import pyarrow as pa  # late: most of who asks for data sets reads none

        from erasable.workspace.data.arrays import type_of

        return pa.schema([(name, type_of(kind)) for name, kind in self.columns])

    @property
    def files(self) -> dict[str, list[int]]:
        """Shape of the arrays of each column that names files in its source."""
        return dict(self.source.get("files", {}))

    @property
    def id_as_subject(self) -> str | None:
        """Name of the subject column that the ids are copied to, where each names a person."""
        found: str | None = self.source.get("id_as_subject")
        return found

    @property
    def subject_columns(self) -> list[str]:
        """Names of the columns that hold tokens."""
        return [column for column, _ in self.subjects]


@dataclass(frozen=True, slots=True)
class FragmentRow:
    """A fragment in the ledger; see `erasable.workspace.ledger.schema.fragment`."""

    id: int
    bucket: int
    since: int
    until: int | None
    key: str
    sha256: str
    n_records: int

    def belongs_to(self, version: int) -> bool:
        """Tell whether a version holds the fragment."""
        return self.since <= version and (self.until is None or version < self.until)


def find(connection: Connection, name: str) -> DataSet:
    """Return the data set of a name."""
    row = connection.execute(select(dataset_table).where(dataset_table.c.name == name)).first()
    if row is None:
        names = ", ".join(each.name for each in all_datasets(connection)) or "none"
        raise NotInWorkspaceError(f"there is no data set {name!r}; expected one of: {names}")
    return _described(row)


def get(connection: Connection, dataset_id: int) -> DataSet:
    """Return the data set of an id."""
    query = select(dataset_table).where(dataset_table.c.id == dataset_id)
    row = connection.execute(query).first()
    if row is None:
        raise tampered(f"no data set {dataset_id}", dataset_table.c.id)
    return _described(row)


def all_datasets(connection: Connection) -> list[DataSet]:
    """Return all data sets, by name."""
    return [_described(row) for row in rows.datasets(connection)]


def record_type(dataset: str) -> str:
    """Return the type of tokens of the records of a data set, which no subject has.

    Examples
    --------
    >>> record_type("visits")
    'record.visits/id'
    """
    return f"record.{dataset}/id"


def fragment_rows(
    connection: Connection, dataset_id: int, version: int | None = None
) -> list[FragmentRow]:
    """Return the fragments of a version, or of all versions."""
    columns = [getattr(fragment.c, name) for name in FragmentRow.__slots__]
    found = connection.execute(
        select(*columns).where(fragment.c.dataset_id == dataset_id).order_by(fragment.c.id)
    )
    parts = [FragmentRow(*row) for row in found]
    return [part for part in parts if version is None or part.belongs_to(version)]


def read_version(
    context: Context,
    connection: Connection,
    dataset_id: int,
    version: int | None = None,
    columns: Sequence[str] | None = None,
    held: Mapping[str, pa.Table] | None = None,
) -> pa.Table:
    """Read a version of a data set, by default the newest.

    Subject columns hold tokens; the order of the records has no meaning. `held` maps keys to whole
    fragments that were read already.
    """
    known = get(connection, dataset_id)
    if version is not None:
        known = with_types_of(connection, known, version)
    return read_fragments(
        context, known, fragment_rows(connection, dataset_id, known.version), columns, held
    )


def read_fragments(
    context: Context,
    known: DataSet,
    found: Sequence[FragmentRow],
    columns: Sequence[str] | None = None,
    held: Mapping[str, pa.Table] | None = None,
) -> pa.Table:
    """Read fragments of a data set, in its types; see `read_version`."""
    import pyarrow as pa

    from erasable.workspace.data import fragments

    schema = known.schema
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    held = held or {}
    tables = [
        held[part.key].select(schema.names)
        if part.key in held
        else fragments.read(context, part.key, part.sha256, schema.names)
        for part in found
    ]
    return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in tables)])


def with_types_of(connection: Connection, known: DataSet, version: int) -> DataSet:
    """Return a data set with the types of a version, from which a model learned."""
    at = (version_table.c.dataset_id == known.id) & (version_table.c.number == version)
    columns = connection.execute(select(version_table.c.columns).where(at)).scalar()
    typed = tuple((each["name"], each["type"]) for each in columns or ())
    return replace(known, version=version, columns=typed or known.columns)


def _described(row: Any) -> DataSet:
    return DataSet(
        row.id, row.name, row.source, row.id_column,
        tuple((each["column"], each["type"]) for each in row.subjects),
        tuple((each["name"], each["type"]) for each in row.columns),
        row.n_buckets, row.version, row.created_at,
        {each["column"]: each["region"] for each in row.subjects if "region" in each},
    )  # fmt: skip
