"""Tables of a database: rows leave along foreign keys, or are overwritten, in one transaction.

The law kept here: what is done is what the dry run says, and nobody else's row is changed. No
better word is said of what is left on the disk than what was looked at.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from erasable.core.errors import SourceError
from erasable.workspace.data import databases
from erasable.workspace.targets import leaving, relations, schemas
from erasable.workspace.targets.layout import Layout, Owner, check_settings, layout_of
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.protocol import People, Plan, Settings, Subject, Target
from erasable.workspace.targets.relations import Key, RowPlan
from erasable.workspace.targets.residue import Found
from erasable.workspace.targets.servers import MysqlStorage, PostgresStorage
from erasable.workspace.targets.storages import SqliteStorage, Storage

_AT_ONCE = 10_000  # rows whose identities are compared at a time
_ATTEMPTS = 5  # where a database gives up one of two transactions, or rows have just left
_GAVE_WAY = ("40001", "40P01", 1213)  # of PostgreSQL and MySQL: two transactions were in the way
_MYSQL = ("mysql", "mariadb")
_DUCKDB = "erasable.workspace.targets.duckdb_file"  # which imports its client

T = TypeVar("T")
ByKey = dict[Key, Any]
"""Rows of a table by their keys, each with the identity that it was found by."""


class DatabaseTarget(Target):
    """A database that SQLAlchemy has a dialect for.

    The fields of its subjects are columns, as "customers.mail". Keys of a plan are by such a
    column: pairs of a primary key, and the value in the column.
    """

    def __init__(self, place: str, settings: Settings) -> None:
        check_settings(settings)
        self.settings = settings
        with ExitStack() as opened:
            self._engine, self.shown = opened.enter_context(databases.writable(place))
            self._opened = opened.pop_all()
        self._storage = _storage(self._engine)
        self._touched: dict[str, sa.Table] = {}  # whose rows were changed
        self._is_dangling = False  # see `Layout`

    def close(self) -> None:
        """Close the connections."""
        self._opened.close()

    def find(self, people: People) -> Plan:
        """Find the rows of people, change them, and take it back: it fails where `erase` would."""
        for _ in range(_ATTEMPTS):
            layout, wanted, names = self._run(partial(self._candidates, people), "read")
            self._is_dangling = layout.is_dangling
            plan = Plan()
            if not any(wanted.values()):
                return plan
            missing = self._run(partial(self._tried, layout, wanted, names, plan), "try")
            if not missing:
                return plan
        raise SourceError(
            f"{missing} rows of {self.shown!r} are not found again by their keys; expected one row "
            "for each; nothing was changed: a key is null, or not exact, or rows leave as fast as "
            "they are found (try it again)"
        )

    def erase(self, plan: Plan) -> None:
        """Change the rows that are still those people's, and rows that refer to them.

        In DuckDB that is a transaction for each table, those first that refer to others: it keeps
        to references that the same transaction has removed.
        """
        while plan and self._run(partial(self._erased, plan.keys), "change"):
            pass

    def compact(self) -> list[str]:
        """Have the database write its tables anew."""
        return self._storage.compact(self._tables())

    def scan(self, marks: Marks, living: Marks) -> Found:
        """Look for values in the rows and files of the database, as far as they can be seen."""
        return self._storage.scan(self._tables(), marks, living)

    def _run(self, work: Callable[[sa.Connection], T], what: str) -> T:
        """Do something in one transaction, which is taken back unless it is to "change"."""
        for attempt in range(_ATTEMPTS):
            try:
                with self._engine.connect() as connection:
                    connection = connection.execution_options(
                        only_reads=what == "read", keeps_foreign_keys=not self._is_dangling
                    )
                    if connection.dialect.name in _MYSQL:  # whose default locks gaps between rows
                        connection.execution_options(isolation_level="READ COMMITTED")
                    with connection.begin() as transaction:
                        found = work(connection)
                        if what != "change":
                            transaction.rollback()
                return found
            except OperationalError as error:
                if attempt + 1 < _ATTEMPTS and _gave_way(error):
                    continue
                raise _failed(self.shown, error) from None
            except SQLAlchemyError as error:
                raise _failed(self.shown, error) from None
        raise AssertionError

    def _candidates(
        self, people: People, connection: sa.Connection
    ) -> tuple[Layout, dict[Subject, ByKey], dict[tuple[Subject, Any], str]]:
        """Find rows, without a lock; and the people, by the identities of these rows."""
        layout = layout_of(connection, self.shown, self.settings)
        wanted: dict[Subject, ByKey] = {}
        names: dict[tuple[Subject, Any], str] = {}
        for owner in layout.owners:
            of = wanted.setdefault(owner.subject, {})
            key = schemas.key_of(owner.table)
            every = sa.select(*key, owner.column).where(owner.column.is_not(None))
            every = every.execution_options(stream_results=True)
            n_rows = n_named = 0
            with closing(connection.execute(every)) as result:
                while rows := result.fetchmany(_AT_ONCE):
                    _refuse_unreadable(rows, owner)
                    each = [(tuple(row[:-1]), owner.identity(row[-1])) for row in rows]
                    n_rows, n_named = (
                        n_rows + len(each),
                        n_named + sum(v is not None for _, v in each),
                    )
                    found = people.among({value for _, value in each} - {None}, owner.subject)
                    of.update((key, value) for key, value in each if value in found)
                    names.update(((owner.subject, value), name) for value, name in found.items())
            if n_rows and not n_named and not self.settings.may_lack_subject:
                raise SourceError(
                    f"no row has an identity at {owner.subject.field[:80]!r}; expected a path in "
                    "the JSON of its column"
                )
        return layout, wanted, names

    def _tried(
        self,
        layout: Layout,
        wanted: Mapping[Subject, ByKey],
        names: Mapping[tuple[Subject, Any], str],
        plan: Plan,
        connection: sa.Connection,
    ) -> int:
        """Make the plan of rows, and try it; return how many are not there by their keys."""
        n_missing = 0
        of_person: set[tuple[str, sa.Table, Key]] = set()
        chosen: dict[sa.Table, set[Key]] = {}
        for owner in layout.owners:
            asked = wanted[owner.subject]
            still = _still(connection, owner, asked)
            n_missing += len(asked) - len(still)
            chosen.setdefault(owner.table, set()).update(still)
            plan.keys.setdefault(owner.subject.field, []).extend(still.items())
            for key, value in still.items():
                of_person.add((names[owner.subject, value], owner.table, key))
        if n_missing:
            return n_missing
        for table in chosen:
            count = sa.select(sa.func.count()).select_from(table)
            plan.n_seen += connection.execute(count).scalar_one()
        for name, _, _ in of_person:
            plan.n_records[name] = plan.n_records.get(name, 0) + 1
        rows = self._rows(connection, layout, chosen)
        _count(plan, rows)
        changed = {*rows.leaving, *(link.child for link, _ in rows.detached)}
        plan.triggers = schemas.triggers_of(connection, changed)
        values = leaving.values_of(connection, layout, rows)
        tries = _takes_back(connection, changed)
        if tries:
            self._change(connection, layout, rows)
        values.drop_shared(connection, rows, has_left=tries)
        plan.living = leaving.living(connection, rows, values)
        plan.marks = values.marks(layout.owners, wanted)
        if connection.dialect.name == "postgresql":  # checks that wait for the end are made now
            connection.exec_driver_sql("set constraints all immediate")
        return 0

    def _erased(
        self, wanted: Mapping[str, Sequence[tuple[Key, Any]]], connection: sa.Connection
    ) -> bool:
        """Change the rows, or those of one table; tell whether there are more."""
        layout = layout_of(connection, self.shown, self.settings)
        chosen: dict[sa.Table, set[Key]] = {}
        for owner in layout.owners:
            still = _still(connection, owner, dict(wanted.get(owner.subject.field, ())))
            chosen.setdefault(owner.table, set()).update(still)
        every = self._rows(connection, layout, chosen)
        rows = relations.first_of(every) if connection.dialect.name == "duckdb" else every
        self._change(connection, layout, rows)
        for table in (*rows.leaving, *(link.child for link, _ in rows.detached)):
            self._touched[table.key] = table
        return rows != every

    def _rows(
        self, connection: sa.Connection, layout: Layout, chosen: dict[sa.Table, set[Key]]
    ) -> RowPlan:
        """Return all rows that leave or change with chosen ones, locked."""
        if self.settings.action == "delete":
            return relations.plan_rows(connection, layout.links, chosen, self.settings.cascade)
        tables = sorted((table for table in chosen if chosen[table]), key=lambda each: each.key)
        return RowPlan({table: relations.ordered(chosen[table]) for table in tables})

    def _change(self, connection: sa.Connection, layout: Layout, rows: RowPlan) -> None:
        if self.settings.action == "delete":
            relations.carry_out(connection, layout.links, rows)
            return
        for table, keys in rows.leaving.items():
            _overwrite(connection, table, keys, layout.overwritten[table])

    def _tables(self) -> list[sa.Table]:
        """Return the tables that were changed, or, where another attempt did so, may have been."""
        if not self._touched:
            found = self._run(
                lambda connection: layout_of(connection, self.shown, self.settings), "read"
            )
            self._touched = {table.key: table for table in found.touched}
        return [self._touched[name] for name in sorted(self._touched)]


def _storage(engine: sa.Engine) -> Storage:
    """Return the files of a database."""
    name, given = engine.dialect.name, engine.url.database
    if name == "sqlite":
        return SqliteStorage(Path(str(given)))
    if name == "postgresql":
        return PostgresStorage(engine)
    if name in _MYSQL:
        return MysqlStorage(engine)
    if name == "duckdb" and given not in (None, "", ":memory:"):
        found: Storage = import_module(_DUCKDB).DuckStorage(Path(str(given)))
        return found
    return Storage()


def _takes_back(connection: sa.Connection, tables: Collection[sa.Table]) -> bool:
    """Tell whether a change of tables can be tried, and taken back."""
    name = connection.dialect.name
    if name not in _MYSQL:
        return name in ("sqlite", "postgresql")
    asked = {"names": [table.name for table in tables]}
    return bool(connection.execute(_TRANSACTIONAL, asked).scalar_one() == len(tables))


_TRANSACTIONAL = sa.text(
    "select count(*) from information_schema.tables "
    "where table_schema = database() and table_name in :names and engine = 'InnoDB'"
).bindparams(sa.bindparam("names", expanding=True))


def _gave_way(error: DBAPIError) -> bool:
    """Tell whether the database gave up a transaction for another one."""
    codes = [getattr(error.orig, name, None) for name in ("sqlstate", "pgcode")]
    return any(code in _GAVE_WAY for code in [*codes, *getattr(error.orig, "args", ())[:1]])


def _failed(place: str, error: SQLAlchemyError) -> SourceError:
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return SourceError(
            f"the connection to {place!r} was lost; expected a server that stays; nothing was "
            "changed, or everything: a dry run tells which"
        )
    return SourceError(
        f"the rows at {place!r} could not be read or changed ({type(error).__name__}); expected a "
        "database that answers and that you may change; nothing was changed"
    )


def _refuse_unreadable(rows: Iterable[Any], owner: Owner) -> None:
    if any(isinstance(row[-1], databases.NotUnicode) for row in rows):
        raise SourceError(
            f"the column {owner.subject.field[:80]!r} has a text that is not UTF-8; expected "
            "identities that can be read; correct it, as whose it is cannot be told"
        )
    for row in rows:
        identity = owner.identity(row[-1])
        if isinstance(identity, list):
            raise SourceError(
                f"{owner.subject.field[:80]!r} has a list of identities in a row; expected one in "
                "each; name a place in the list, as in docs.data.users.0"
            )
        if identity is None and not owner.path:
            raise SourceError(
                f"the column {owner.subject.field[:80]!r} has a value of the type "
                f"{type(row[-1]).__name__}; expected texts, whole numbers, UUIDs, or bytes of a "
                "text or of a UUID; name another column"
            )


def _still(connection: sa.Connection, owner: Owner, wanted: ByKey) -> ByKey:
    """Return the rows that still have the value that they were found by; they are locked."""
    found: ByKey = {}
    n_rows = 0
    for row in relations.locked(connection, owner.table, wanted, owner.column):
        n_rows += 1
        key: Key = tuple(row[:-1])
        if (value := owner.identity(row[-1])) == wanted.get(key):
            found[key] = value
    if n_rows > len(wanted):
        raise SourceError(
            f"{n_rows} rows of table {owner.table.key!r} have the {len(wanted)} keys of the rows "
            "found; expected one for each; nothing was changed: it has tables that inherit its rows"
        )
    return found


def _count(plan: Plan, rows: RowPlan) -> None:
    """Write down how many rows of each table leave or change."""
    plan.changed = {table.key: len(keys) for table, keys in rows.leaving.items()}
    for link, keys in rows.detached:
        if keys != rows.leaving.get(link.child):  # not only to undo a circle
            names = ", ".join(column.name for column in link.emptied)
            plan.detached[f"{link.child.key}.{names}"] = len(keys)


def _overwrite(
    connection: sa.Connection, table: sa.Table, keys: Sequence[Key], columns: dict[str, bool]
) -> None:
    unique = _unique(table)
    same: dict[str, Any] = {
        name: sa.null() if is_null else leaving.MASK for name, is_null in columns.items()
    }
    each = [name for name, is_null in columns.items() if not is_null and name in unique]
    if not each:
        relations.change_rows(connection, table, keys, same)
        return
    for key in keys:
        own = {name: f"{leaving.MASK}-{secrets.token_hex(8)}" for name in each}
        relations.change_rows(connection, table, [key], {**same, **own})


def _unique(table: sa.Table) -> set[str]:
    """Return the columns that are in a unique index or constraint, also in its expressions."""
    found = {
        column.name
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint)
        for column in constraint.columns
    }
    unique: Iterable[sa.Index] = (index for index in table.indexes if index.unique)
    for part in (part for index in unique for part in index.expressions):
        found |= {column.name for column in table.columns if column.name in str(part)}
    return found
