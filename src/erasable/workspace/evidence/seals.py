"""Seals: keyed hashes, which cannot be made with write access to the ledger alone.

Every entry of the log has one, over its position and leaf: an entry that is appended or replaced
without the keys of the workspace is found. What the log does not name, because it must not outlast
an erasure, has one in the table `meta`: which files are a data set, which file is a model, and the
settings that others rely on. It is replaced with what it is of.

What seals cannot do: rows that are taken back to an earlier state together with their seals and
entries pass for the newest. For that a head of the log is kept elsewhere; see `log.verify_since`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, select, update

from erasable.core.errors import EvidenceError, LedgerError
from erasable.workspace.context import Context
from erasable.workspace.evidence.wire import pack, unpack
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.engine import settings
from erasable.workspace.ledger.schema import (
    IN_USE,
    SEAL,
    SEALED,
    dataset,
    dataset_version,
    fragment,
    log_entry,
    model,
    model_version,
)

MARK = {"sealed": True}
"""The first entry of a log has it where every entry has a seal."""

_LATER = "log-sealed"  # the entry of a log whose earlier entries were sealed long after
_NAMESPACE = "evidence-seal/exact"  # so that no seal is the token of an identity or of a text


def of_entry(keys: Keys, position: int, leaf: bytes) -> str:
    """Return the seal of an entry of the log.

    Examples
    --------
    >>> from erasable.workspace.identity.keys import Keys
    >>> keys = Keys.new()
    >>> of_entry(keys, 3, b"leaf") == of_entry(keys, 4, b"leaf")
    False
    """
    return keys.token(_NAMESPACE, f"entry {position} {leaf.hex()}")


def of_setting(keys: Keys, name: str, value: Any) -> str:
    """Return the seal of a setting."""
    return keys.token(_NAMESPACE, f"setting {name} {pack(value).decode()}")


def of_step(keys: Keys, said: dict[str, Any]) -> str:
    """Return the seal of what a worker hands in."""
    return keys.token(_NAMESPACE, f"step {pack(said).decode()}")


def put(context: Context, connection: Connection, thing: str, id: int | None = None) -> None:
    """Seal of which files a data set or a model is, in the transaction that changes them.

    Parameters
    ----------
    context : Context
    connection : Connection
    thing : {"dataset", "model"}
    id : int, default=None
        By default all of them.
    """
    table, facts, _ = _THINGS[thing]
    query = select(table) if id is None else select(table).where(table.c.id == id)
    for owner, seal in facts(context, connection, connection.execute(query).all()).items():
        context.ledger.set(connection, f"{SEAL}{thing}:{owner}", seal)


def unsealed_files(
    context: Context, connection: Connection, thing: str, name: str | None = None
) -> list[str]:
    """Tell of data sets or models, by default of all, whose files are not those written down."""
    table, facts, label = _THINGS[thing]
    query = select(table).order_by(table.c.name)
    if name is not None:
        query = query.where(table.c.name == name)
    rows = connection.execute(query).all()
    seals = _kept(connection, [f"{thing}:{row.id}" for row in rows])
    made = facts(context, connection, rows)
    return [
        f"{label} {row.name!r}: its files are not those that were written down"
        for row in rows
        if seals.get(f"{thing}:{row.id}") != made[row.id]
    ]


def unsealed_settings(context: Context, connection: Connection) -> list[str]:
    """Tell of settings that were altered, removed or added."""
    values, seals = settings(connection, SEALED), _kept(connection, SEALED)
    made = {name: of_setting(context.keys, name, value) for name, value in values.items()}
    return [
        f"the setting {name!r} is not what was written down"
        for name in sorted(SEALED)
        if seals.get(name) != made.get(name)
    ]


# -- ledgers that were made before there were seals ------------------------------------------------


def sealed(connection: Connection) -> bool:
    """Tell whether every entry of the log has a seal, as the log itself says."""
    first = connection.execute(select(log_entry.c.body).where(log_entry.c.position == 0)).scalar()
    try:
        if first is not None and unpack(first, "it").get("sealed") is True:
            return True
    except EvidenceError:
        pass  # verify_log says so
    later = select(log_entry.c.position).where(log_entry.c.kind == _LATER).limit(1)
    return connection.execute(later).first() is not None


def seal_older(context: Context) -> None:
    """Seal a ledger that was made before there were seals, if all of it is what the log says.

    An entry of the log says so. Where the ledger does not hold, nothing is sealed: `erasable log
    verify` says why, and nothing that is in it is executed.
    """
    from erasable.workspace.evidence import consistency, log

    try:
        with context.ledger.reading() as connection:
            if sealed(connection):
                return
            size = log.next_position(context, connection)
    except LedgerError:  # verify_log says so
        return
    if log.verify_log(context) or consistency.compare_ledger_with_log(context):
        return
    with context.ledger.transaction() as connection:
        if not sealed(connection) and log.next_position(context, connection) == size:
            seal_all(context, connection)


def seal_all(context: Context, connection: Connection) -> None:
    """Seal entries, files and settings as they are, in the caller's transaction."""
    from erasable.workspace.evidence import log

    older = select(log_entry.c.position, log_entry.c.leaf).where(log_entry.c.seal.is_(None))
    for position, leaf in connection.execute(older).all():
        at = log_entry.c.position == position
        made = of_entry(context.keys, position, leaf)
        connection.execute(update(log_entry).where(at).values(seal=made))
    for thing in _THINGS:
        put(context, connection, thing)
    for name in sorted(SEALED):
        value = context.ledger.get(connection, name)
        if value is not None:
            seal = of_setting(context.keys, name, value)
            context.ledger.set(connection, f"{SEAL}{name}", seal)
    log.append(context, connection, _LATER, context.keys.key_id, {}, context.now())
    log.head(context, connection)


# -- how they are made and kept --------------------------------------------------------------------


def _of_datasets(
    context: Context, connection: Connection, rows: Sequence[Row[Any]]
) -> dict[int, str]:
    files = _grouped(connection, rows, fragment, fragment.c.id, _OF_FRAGMENT)
    number = dataset_version.c.number
    versions = _grouped(connection, rows, dataset_version, number, ("number", "columns"))
    made = {}
    for row in rows:
        facts = {"id": row.id, "name": row.name, "files": files[row.id]}
        said = pack({**facts, "versions": versions[row.id]}).decode()
        made[row.id] = context.keys.token(_NAMESPACE, f"data set {said}")
    return made


def _grouped(
    connection: Connection, rows: Sequence[Row[Any]], table: Table, order: Any, names: Sequence[str]
) -> dict[int, list[list[Any]]]:
    """Return columns of what belongs to each of some data sets."""
    found: dict[int, list[list[Any]]] = {row.id: [] for row in rows}
    query = select(table.c.dataset_id, *(table.c[name] for name in names))
    if len(rows) == 1:
        query = query.where(table.c.dataset_id == rows[0].id)
    for owner, *values in connection.execute(query.order_by(table.c.dataset_id, order)):
        if owner in found:
            found[owner].append(values)
    return found


def _of_models(
    context: Context, connection: Connection, rows: Sequence[Row[Any]]
) -> dict[int, str]:
    query = select(model_version).join(model, IN_USE)
    if len(rows) == 1:
        query = query.where(model.c.id == rows[0].id)
    versions = {version.model_id: version for version in connection.execute(query)}
    made = {}
    for row in rows:
        version = versions.get(row.id)
        file = None if version is None else [version.key, version.sha256, version.salt]
        facts = {"id": row.id, "name": row.name, "number": row.version, "file": file}
        made[row.id] = context.keys.token(_NAMESPACE, f"model {pack(facts).decode()}")
    return made


_THINGS = {"dataset": (dataset, _of_datasets, "data set"), "model": (model, _of_models, "model")}
_OF_FRAGMENT = ("id", "bucket", "since", "until", "key", "sha256", "n_records")


def _kept(connection: Connection, names: Iterable[str]) -> dict[str, Any]:
    """Return the seals of files and settings that there are, by what they are of."""
    found = settings(connection, [f"{SEAL}{name}" for name in names])
    return {name.removeprefix(SEAL): seal for name, seal in found.items()}
