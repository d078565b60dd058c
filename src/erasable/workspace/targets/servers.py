"""Files of servers of PostgreSQL, MySQL and MariaDB: deleted rows leave them, and what is left."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import OID
from sqlalchemy.exc import SQLAlchemyError

from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.residue import Found
from erasable.workspace.targets.schemas import triggers_of
from erasable.workspace.targets.storages import Storage

_STATISTICS = sa.Table("pg_statistic", sa.MetaData(), schema="pg_catalog")
"""Which has some values of all columns, until they are analyzed anew."""


class _ServerStorage(Storage, ABC):
    """The files of a server, which writes its tables anew."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        """Have tables written anew."""
        reasons = []
        for name, table in self._named(tables):
            try:
                with self._engine.connect() as connection:
                    connection.execution_options(isolation_level="AUTOCOMMIT")
                    if not self._rewritten(connection, table):
                        reasons.append(f"this user may not have table {name!r} written anew")
            except SQLAlchemyError as error:
                reasons.append(f"table {name!r} was not written anew ({type(error).__name__})")
        return reasons

    def _named(self, tables: Sequence[sa.Table]) -> list[tuple[str, sa.Table]]:
        return [(table.key, table) for table in tables]

    def _kept(self, connection: sa.Connection, tables: Sequence[sa.Table]) -> list[str]:
        """Return what of the tables' rows the database itself may keep elsewhere."""
        triggers = triggers_of(connection, tables)
        return [f"triggers may have copied rows: {', '.join(triggers)}"] if triggers else []

    @abstractmethod
    def _rewritten(self, connection: sa.Connection, table: sa.Table) -> bool:
        """Have a table written anew; tell whether it was: without the right it is passed over."""


class MysqlStorage(_ServerStorage):
    """The files of a server of MySQL or MariaDB, which belong to it alone."""

    def _rewritten(self, connection: sa.Connection, table: sa.Table) -> bool:
        connection.exec_driver_sql("set lock_wait_timeout = 30")
        told = connection.exec_driver_sql(f"optimize table {_quoted(connection, table)}").fetchall()
        return not any(str(row[2]).lower() == "error" for row in told)

    def _kept(self, connection: sa.Connection, tables: Sequence[sa.Table]) -> list[str]:
        of_versions = set(connection.exec_driver_sql(_VERSIONED).scalars())
        kept = [table.key for table in tables if table.name in of_versions]
        return super()._kept(connection, tables) + [
            f"table {name!r} keeps old versions of its rows, until 'delete history'"
            for name in kept
        ]

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        """Say where values may be."""
        reasons = ["the server keeps changes in its undo and redo logs"]
        try:
            with self._engine.connect() as connection:
                reasons += self._kept(connection, tables)
                if connection.exec_driver_sql("select @@log_bin").scalar():
                    reasons.append("the server keeps changes in its binary log")
        except SQLAlchemyError:
            reasons.append("the server may keep changes in a binary log")
        return Found(reasons=[*reasons, "its files cannot be seen from here"])


_VERSIONED = (  # of MariaDB
    "select table_name from information_schema.tables "
    "where table_schema = database() and table_type = 'SYSTEM VERSIONED'"
)


class PostgresStorage(_ServerStorage):
    """The folder of a server of PostgreSQL, where it is on this machine and may be read."""

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        """Have tables written anew; indexes and statistics with them."""
        reasons = super().compact(tables)
        try:
            with self._engine.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT")
                connection.exec_driver_sql("checkpoint")
        except SQLAlchemyError:
            reasons.append("this user may not have the server write out what is in memory")
        return reasons

    def _named(self, tables: Sequence[sa.Table]) -> list[tuple[str, sa.Table]]:
        return [*super()._named(tables), (_STATISTICS.name, _STATISTICS)]

    def _kept(self, connection: sa.Connection, tables: Sequence[sa.Table]) -> list[str]:
        names = [_quoted(connection, table) for table in tables]
        views = connection.execute(_VIEWS, {"names": names}).scalars()
        kept = [f"materialized view {name!r} keeps rows until it is refreshed" for name in views]
        with_objects = [t.key for t in tables if any(isinstance(c.type, OID) for c in t.columns)]
        if with_objects and connection.exec_driver_sql(_HAS_OBJECTS).scalar():
            kept.append(
                f"large objects of {', '.join(with_objects)} stay, unless a trigger unlinks"
            )
        return super()._kept(connection, tables) + kept

    def _rewritten(self, connection: sa.Connection, table: sa.Table) -> bool:
        connection.exec_driver_sql("set lock_timeout = '30s'")
        before = _paths(connection, table)
        connection.exec_driver_sql(f"vacuum (full, analyze) {_quoted(connection, table)}")
        return before.isdisjoint(_paths(connection, table))

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        """Look in the files of the tables, and of the write-ahead log."""
        found = Found()
        try:
            with self._engine.connect() as connection:
                found.reasons += _elsewhere(connection) + self._kept(connection, tables)
                folder = _folder(connection)
                named = self._named(tables)
                paths = [(name, _paths(connection, table)) for name, table in named]
        except SQLAlchemyError as error:
            found.reasons.append(f"its files cannot be found ({type(error).__name__})")
            return found
        if folder is None:
            found.reasons.append("its files cannot be seen from here")
            return found
        gone, stay = marks.every(), living.every()
        there = set[bytes]()
        for name, of in paths:
            files = [file for path in sorted(of) for file in _parts(folder / path)]
            there |= _search(files, gone | stay, gone, f"table {name!r}", found)
        found.n_living = living.count(there)
        log = sorted((folder / "pg_wal").glob("[0-9A-F]" * 24))
        there |= _search(log, gone, gone, "the write-ahead log", found)
        found.n_left = marks.count(there)
        return found


_HAS_OBJECTS = "select exists (select from pg_largeobject_metadata)"
_VIEWS = sa.text("""
    with recursive own as (
        select cast(cast(each as regclass) as oid) as oid from unnest(cast(:names as text[])) each
        union
        select r.ev_class from own join pg_depend d
            on d.refobjid = own.oid and d.refclassid = cast('pg_class' as regclass)
            join pg_rewrite r
            on r.oid = d.objid and d.classid = cast('pg_rewrite' as regclass)
    )
    select c.relname from pg_class c join own using (oid) where c.relkind = 'm' order by 1
""")


def _quoted(connection: sa.Connection, table: sa.Table) -> str:
    return connection.dialect.identifier_preparer.format_table(table)


def _paths(connection: sa.Connection, table: sa.Table) -> set[str]:
    """Return the files of a table, its indexes, and long values, below the server's folder."""
    return set(connection.execute(_FILES, {"name": _quoted(connection, table)}).scalars())


_FILES = sa.text("""
    with own as (
        select cast(:name as regclass)::oid as oid
        union select relid::oid from pg_partition_tree(cast(:name as regclass))
    ), tables as (
        select oid from own
        union select reltoastrelid from pg_class where oid in (select oid from own)
    ), every as (
        select oid from tables
        union select indexrelid from pg_index where indrelid in (select oid from tables)
    )
    select pg_relation_filepath(oid) from every where pg_relation_filepath(oid) is not null
""")


def _folder(connection: sa.Connection) -> Path | None:
    """Return the folder of the server, if it is the one that lies here and may be read."""
    try:
        folder = Path(connection.exec_driver_sql("show data_directory").scalar_one())
        number = connection.exec_driver_sql(_NUMBER).scalar_one()
        with (folder / "global" / "pg_control").open("rb") as file:
            here = file.read(8)
    except (SQLAlchemyError, OSError):
        connection.rollback()
        return None
    return folder if int(number).to_bytes(8, "little") == here else None


_NUMBER = "select system_identifier from pg_control_system()"


def _elsewhere(connection: sa.Connection) -> list[str]:
    """Return where changes are kept besides the files of tables."""
    reasons = ["the server keeps changes in its write-ahead log, until it writes over its segments"]
    slots = list(connection.exec_driver_sql("select slot_name from pg_replication_slots").scalars())
    if slots:
        reasons.append(f"replication slots keep changes for others: {', '.join(sorted(slots))}")
    if connection.exec_driver_sql("show archive_mode").scalar_one() != "off":
        reasons.append("the write-ahead log is archived")
    return reasons


def _parts(path: Path) -> Iterator[Path]:
    """Return a file with its further segments, and those beside it that belong to it."""
    own = re.compile(rf"{path.name}(_[a-z]+)?(\.[0-9]+)?")
    try:
        yield from sorted(each for each in path.parent.iterdir() if own.fullmatch(each.name))
    except OSError:
        yield path  # which says so when it is read


def _search(
    files: Iterable[Path], marks: Collection[bytes], gone: set[bytes], name: str, found: Found
) -> set[bytes]:
    there = set[bytes]()
    for path in files:
        try:
            there |= residue.marks_in(path, marks)
        except FileNotFoundError:  # it was removed meanwhile
            continue
        except OSError as error:
            found.reasons.append(f"{name} could not be read ({type(error).__name__})")
            break
    if there & gone:
        found.where.append(name)
    return there
