"""Seals: keyed hashes, which cannot be made with write access to the ledger alone.

Every entry of the log has one, over its position and leaf: an entry that is appended or replaced
without the keys of the workspace is found. Files of a data set or model, and the settings that
others rely on, have one in the table `meta`, which is replaced when they change: the log does not
name them, because it outlasts an erasure.

Rows that are taken back to an earlier state together with their seals and entries pass for the
newest. Only a head of the log that is kept elsewhere shows that; see `log.verify_since`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, select

from erasable.workspace.evidence.context import Context
from erasable.workspace.evidence.formats import pack
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger import rows
from erasable.workspace.ledger.engine import settings
from erasable.workspace.ledger.schema import (
    SEAL,
    SEALED,
    dataset,
    dataset_version,
    fragment,
    model,
    model_version,
)

MARK = {"sealed": True}
"""The body of the first entry of a log."""

_NAMESPACE = "evidence-seal/exact"  # so that no seal is the token of an identity or of a text

TABLES = {"dataset": (dataset, dataset_version), "model": (model, model_version)}
"""Data sets and models, each with its versions."""

Newest = list[tuple[Row[Any], Row[Any] | None]]
"""Rows of data sets or models, each with its newest version, or None where it has none yet."""


def of_entry(keys: Keys, position: int, leaf: bytes) -> str:
    """Return the seal of an entry of the log."""
    return keys.token(_NAMESPACE, f"entry {position} {leaf.hex()}")


def of_setting(keys: Keys, name: str, value: Any) -> str:
    """Return the seal of a setting."""
    return keys.token(_NAMESPACE, f"setting {name} {pack(value).decode()}")


def of_step(keys: Keys, said: dict[str, Any]) -> str:
    """Return the seal of a worker's result."""
    return keys.token(_NAMESPACE, f"step {pack(said).decode()}")


def of_owed(keys: Keys, request: str, target: int, tokens: Any) -> str:
    """Return the seal of the people whom a request is still to take out of a target."""
    return keys.token(_NAMESPACE, f"owed {pack([request, target, tokens]).decode()}")


def put(context: Context, connection: Connection, thing: str, id: int | None = None) -> None:
    """Seal the list of files of a data set or a model, in the transaction that changes them.

    `thing` is "dataset" or "model"; without an id, all of them are sealed.
    """
    facts, _ = _THINGS[thing]
    for owner, seal in facts(context, connection, newest(connection, thing, id=id)).items():
        context.ledger.set(connection, f"{SEAL}{thing}:{owner}", seal)


def newest(
    connection: Connection, thing: str, *, name: str | None = None, id: int | None = None
) -> Newest:
    """Return the rows of data sets or models, by default of all, each with its newest version."""
    only = "name" if name is not None else "id" if id is not None else None
    wanted = {} if only is None else {"wanted": name if only == "name" else id}
    one, versions = _newest(thing, only)
    found = {getattr(row, f"{thing}_id"): row for row in connection.execute(versions, wanted)}
    owners = _ROWS[thing](connection) if one is None else connection.execute(one, wanted)
    return [(row, found.get(row.id)) for row in owners]


def every(connection: Connection, thing: str) -> Newest:
    """Return the rows of all data sets, models or targets, each with its newest version, if any."""
    if thing in TABLES:
        return newest(connection, thing)
    return [(row, None) for row in rows.targets(connection)]


def unsealed_files(
    context: Context, connection: Connection, thing: str, found: Newest
) -> list[str]:
    """Return the data sets or models whose files do not have their seal."""
    facts, label = _THINGS[thing]
    names = {row.id: f"{SEAL}{thing}:{row.id}" for row, _ in found}
    seals = settings(connection, names.values())
    made = facts(context, connection, found)
    return [
        f"{label} {row.name!r}: its files are not those that were written down"
        for row, _ in found
        if seals.get(names[row.id]) != made[row.id]
    ]


def unsealed_settings(context: Context, connection: Connection) -> list[str]:
    """Return the settings that were altered, removed or added."""
    found = settings(connection, _SETTINGS)
    made = {name: of_setting(context.keys, name, found[name]) for name in SEALED if name in found}
    return [
        f"the setting {name!r} is not what was written down"
        for name in sorted(SEALED)
        if found.get(f"{SEAL}{name}") != made.get(name)
    ]


# -- how they are made and kept --------------------------------------------------------------------


def _of_datasets(context: Context, connection: Connection, found: Newest) -> dict[int, str]:
    ids = [row.id for row, _ in found]
    files, versions = (_grouped(connection, ids, of) for of in ("files", "versions"))
    made = {}
    for row, _ in found:
        facts = {"id": row.id, "name": row.name, "files": files[row.id]}
        said = pack({**facts, "versions": versions[row.id]}).decode()
        made[row.id] = context.keys.token(_NAMESPACE, f"data set {said}")
    return made


def _grouped(connection: Connection, ids: Sequence[int], of: str) -> dict[int, list[Any]]:
    """Return the files, or the versions, of each of some data sets."""
    found: dict[int, list[Any]] = {id: [] for id in ids}
    only = {"wanted": ids[0]} if len(ids) == 1 else {}
    for row in connection.execute(_belonging(of, bool(only)), only).all():
        if row[0] in found:
            found[row[0]].append(row[1:])
    return found


def _of_models(context: Context, connection: Connection, found: Newest) -> dict[int, str]:
    made = {}
    for row, version in found:
        file = None if version is None else [version.key, version.sha256, version.salt]
        facts = {"id": row.id, "name": row.name, "number": row.version, "file": file}
        made[row.id] = context.keys.token(_NAMESPACE, f"model {pack(facts).decode()}")
    return made


_ROWS = {"dataset": rows.datasets, "model": rows.models}
_THINGS = {"dataset": (_of_datasets, "data set"), "model": (_of_models, "model")}
_SETTINGS = [*SEALED, *(f"{SEAL}{name}" for name in SEALED)]


# -- queries of the ledger -------------------------------------------------------------------------
#
# Each statement is made once: every transaction that takes requests in, and every model of a batch,
# needs them, and making and compiling one takes longer than the query.


@cache
def _newest(thing: str, only: str | None) -> tuple[Select[Any] | None, Select[Any]]:
    """Return the queries for a row, unless for all, and for newest versions."""
    table, versions = TABLES[thing]
    at = (versions.c[f"{thing}_id"] == table.c.id) & (versions.c.number == table.c.version)
    current = select(versions).join(table, at)
    if only is None:
        return None, current
    one = table.c[only] == bindparam("wanted")
    return select(table).where(one), current.where(one)


@cache
def _belonging(of: str, only_one: bool) -> Select[Any]:
    table, order, names = {
        "files": (
            fragment, fragment.c.id,
            ("id", "bucket", "since", "until", "key", "sha256", "n_records"),
        ),
        "versions": (dataset_version, dataset_version.c.number, ("number", "columns")),
    }[of]  # fmt: skip
    query = select(table.c.dataset_id, *(table.c[name] for name in names))
    if only_one:
        query = query.where(table.c.dataset_id == bindparam("wanted"))
    return query.order_by(table.c.dataset_id, order)
