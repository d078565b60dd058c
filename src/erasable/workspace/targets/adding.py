"""Targets as they are added, opened and removed.

The law kept here: a place is opened only as it was added, and no credential is in the ledger.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, update

from erasable.core.errors import WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, ledger_checks, log
from erasable.workspace.identity import subjects as identities
from erasable.workspace.ledger import rows
from erasable.workspace.ledger.schema import target, task
from erasable.workspace.models.names import check_name
from erasable.workspace.targets import kinds
from erasable.workspace.targets.catalogue import (
    IN_USE,
    REMOVED,
    TargetRow,
    as_json,
    find,
    in_use,
    variable,
    without_credentials,
)
from erasable.workspace.targets.protocol import Settings, Subject, Target

_LOCAL = re.compile(
    r"(?P<head>(?:iceberg:)?(?:sqlite|duckdb)(?:\+\w+)?:///"
    r"|(?:chroma|delta|faiss|lancedb|milvus|qdrant):)(?!//|:memory:|\w+://)"
    r"(?P<path>[^#?]+)(?P<rest>.*)"
)  # places with a path

_FILE_URL = re.compile(r"\A((?:[a-z]+:)?)file:/+")
_DRIVER = re.compile(r"(?<=[a-z])\+(?!https?:)\w+(?=:)")


class Nobody:
    """No person at all: to look whether a place can be read."""

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return none of the values."""
        return {}


def add(context: Context, name: str, place: str, settings: Settings) -> TargetRow:
    """Add a target that can be read.

    Raise WorkspaceError if there is another one of the name, or over the same records.
    """
    check_name(name, "target")
    place = absolute(place)
    bare = without_credentials(place)
    with context.ledger.reading() as connection:
        _refuse_double(connection, name, bare, settings)
    with kinds.opened(place, settings) as opened:
        opened.find(Nobody())
    values = {
        "state": IN_USE, "place": bare, "action": settings.action, "keep": list(settings.keep),
        "subjects": [as_json(each) for each in settings.subjects],
        "cascade": list(settings.cascade), "may_empty": settings.may_empty,
        "created_at": context.now(),
    }  # fmt: skip
    with context.ledger.transaction() as connection:
        ledger_checks.check(context, connection)
        _refuse_double(connection, name, bare, settings)
        if name in {row.name for row in rows.targets(connection)}:
            connection.execute(update(target).where(target.c.name == name).values(**values))
        else:
            connection.execute(insert(target).values(name=name, **values))
        identities.note_types(context, connection, [each.type for each in settings.subjects])
        _log(context, connection, "target-added", name)
        return find(connection, name)


def remove(context: Context, name: str) -> None:
    """Remove a target; raise WorkspaceError while a request is to be carried out there."""
    with context.ledger.transaction() as connection:
        ledger_checks.check(context, connection)
        known = find(connection, name)
        owed = select(task.c.request_id).where(
            task.c.target == "target", task.c.target_id == known.id, task.c.exactness.is_(None)
        )
        if waiting := list(connection.execute(owed).scalars()):
            are = "request is" if len(waiting) == 1 else "requests are"
            raise WorkspaceError(
                f"{len(waiting)} {are} still to be carried out in {name!r}, such as {waiting[0]}; "
                "expected none; `erasable process` carries them out, or give the target up for "
                f"them: `erasable target remove {name} --give-up`"
            )
        connection.execute(update(target).where(target.c.name == name).values(state=REMOVED))
        _log(context, connection, "target-removed", name)


def opened(known: TargetRow) -> Target:
    """Open a target, with the credentials of the environment."""
    given = os.environ.get(variable(known.name))
    if given is not None and without_credentials(given := absolute(given)) != known.place:
        raise WorkspaceError(
            f"{variable(known.name)} names another place than the target {known.name!r}; expected "
            f"{known.place!r} with its credentials"
        )
    return kinds.opened(given or known.place, replace(known.settings, may_lack_subject=True))


def absolute(place: str) -> str:
    """Return a place that names the same from every folder.

    >>> absolute("sqlite:////shop.db"), absolute("redis://host/0#user:*")
    ('sqlite:////shop.db', 'redis://host/0#user:*')
    """
    if kinds.kind_of(place) == "files":
        return place if "://" in place else str(Path(place).absolute())
    if kinds.kind_of(place) == "command":
        return _absolute_command(place)
    if (found := _LOCAL.fullmatch(place)) is None:
        return place
    return f"{found['head']}{Path(found['path']).absolute()}{found['rest']}"


def _absolute_command(place: str) -> str:
    """Return a command with full paths of the files and folders that its words name."""
    head, _, given = place.partition(":")
    try:
        words = shlex.split(given)
    except ValueError:
        return place  # which nothing opens
    named = [bool({".", "/"} & {*word}) and Path(word).exists() for word in words]
    if not any(named):
        return place
    pairs = zip(words, named, strict=True)
    full = [str(Path(word).absolute()) if is_path else word for word, is_path in pairs]
    return f"{head}:{shlex.join(full)}"


def _refuse_double(connection: Connection, name: str, place: str, settings: Settings) -> None:
    for each in in_use(connection):
        if each.name == name or variable(each.name) == variable(name):
            raise WorkspaceError(
                f"there is a target {each.name!r} already; expected another name; remove that one "
                "first to change it"
            )
        overlap = _overlap(_location(each.place), _location(place))
        if overlap and _tables(each.settings) & _tables(settings):
            raise WorkspaceError(
                f"the target {each.name!r} is over the same records; expected one target for them; "
                "remove it first, and name all subjects in one"
            )


def _location(place: str) -> str:
    """Return a place in one spelling: without links, drivers and slashes at its end.

    >>> _location("sqlite+pysqlite:////no/shop.db"), _location("delta:file:///no/../lake/")
    ('sqlite:////no/shop.db', 'delta:/lake')
    """
    place = _FILE_URL.sub(r"\1/", place)
    if kinds.kind_of(place) == "files" and "://" not in place:
        return str(Path(place).resolve())
    if (found := _LOCAL.fullmatch(place)) is not None:
        return f"{_DRIVER.sub('', found['head'])}{Path(found['path']).resolve()}{found['rest']}"
    return _DRIVER.sub("", place).rstrip("/")


def files_of(place: str) -> str:
    """Return what places have in common whose records are in the same files.

    >>> files_of("chroma:/index#docs") == files_of("chroma:/index#notes")
    True
    """
    return _location(place).partition("#")[0]


def _overlap(one: str, other: str) -> bool:
    """Return whether places in one spelling share records: the same, or folders in each other.

    >>> _overlap("s3://lake/notes/old", "s3://lake/notes"), _overlap("/lake2", "/lake")
    (True, False)
    """
    if one == other:
        return True
    inner, outer = max(one, other, key=len), min(one, other, key=len)
    are_files = kinds.kind_of(inner) == kinds.kind_of(outer) == "files"
    return are_files and inner.startswith(outer.rstrip("/") + "/")


def _tables(settings: Settings) -> set[str]:
    """Return the tables that subjects are of: of a database "customers", of others ""."""
    return {each.field.rpartition(".")[0] for each in settings.subjects}


def _log(context: Context, connection: Connection, kind: str, name: str) -> None:
    row = connection.execute(select(target).where(target.c.name == name)).one()
    body = entries.target(context.keys, row._asdict())
    log.append(context, connection, kind, name, body, context.now())
