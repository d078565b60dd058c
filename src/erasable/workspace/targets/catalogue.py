"""Targets of a workspace: their rows in the ledger, and their credentials in the environment.

The law kept here: a place is opened only as it was added, and no credential is in the ledger.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from erasable.core.errors import InvalidParameterError, NotInWorkspaceError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, ledger_checks, log
from erasable.workspace.identity import subjects as identities
from erasable.workspace.identity.canonical import declared
from erasable.workspace.ledger import rows
from erasable.workspace.ledger.schema import target, task
from erasable.workspace.models.names import check_name
from erasable.workspace.targets import kinds
from erasable.workspace.targets.protocol import Settings, Subject, Target

ACTIONS = ("delete", "null", "mask")
IN_USE, REMOVED = "in use", "removed"
VARIABLE = "ERASABLE_TARGET_"

_USER = re.compile(r"(?<=://)[^/@#?]*:[^/#?]*@")
_SECRET = re.compile(
    r"[?&][^=&#]*(?:pass|token|secret|key|credential)[^=&#]*=[^&#]*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target of the workspace, as it was added."""

    id: int
    name: str
    place: str  # without credentials
    settings: Settings


class Nobody:
    """No person at all: to look whether a place can be read."""

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return none of the values."""
        return {}


def in_use(connection: Connection) -> list[TargetRow]:
    """Return the targets, by name, without those that were removed."""
    return [_described(row) for row in rows.targets(connection) if row.state == IN_USE]


def find(connection: Connection, name: str) -> TargetRow:
    """Return a target; raise NotInWorkspaceError if there is none of the name."""
    known = in_use(connection)
    for each in known:
        if each.name == name:
            return each
    names = ", ".join(each.name for each in known) or "none"
    raise NotInWorkspaceError(
        f"there is no target {name[:60]!r}; expected one of: {names}; add it with `erasable target "
        "add`"
    )


def types(connection: Connection) -> set[str]:
    """Return the types of identities that targets have."""
    return {subject.type for each in in_use(connection) for subject in each.settings.subjects}


def settings_of(
    columns: Sequence[str],
    action: str = "delete",
    keep: Collection[str] = (),
    cascade: Collection[str] = (),
    *,
    may_empty: bool = False,
) -> Settings:
    """Return settings as a user names them: subjects as "mail:email"."""
    if action not in ACTIONS:
        raise InvalidParameterError(
            f"the action is {str(action)[:40]!r}; expected one of {', '.join(ACTIONS)}"
        )
    if not columns:
        raise InvalidParameterError(
            "no field says whose records there are; expected one or more; name them with "
            "--subject, as in mail:email (`erasable target scan` finds them)"
        )
    found = []
    for each in columns:
        name, colon, kind = each.partition(":")
        type_, region = declared(kind if colon else identities.DEFAULT_TYPE)
        found.append(Subject(name, type_, region))
    return Settings(tuple(found), action, tuple(keep), tuple(cascade), may_empty)


def add(context: Context, name: str, place: str, settings: Settings) -> TargetRow:
    """Add a target that can be read.

    Raise WorkspaceError if there is another one of the name, or over the same records.
    """
    check_name(name)
    bare = without_credentials(place)
    with context.ledger.reading() as connection:
        _refuse_double(connection, name, bare, settings)
    with kinds.opened(place, settings) as opened:
        opened.find(Nobody())
    values = {
        "state": IN_USE, "place": bare, "action": settings.action, "keep": list(settings.keep),
        "subjects": [_as_json(each) for each in settings.subjects],
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
            raise WorkspaceError(
                f"{len(waiting)} requests are still to be carried out in {name!r}, such as "
                f"{waiting[0]}; expected none; `erasable process` carries them out, or give the "
                f"target up for them: `erasable target remove {name} --give-up`"
            )
        connection.execute(update(target).where(target.c.name == name).values(state=REMOVED))
        _log(context, connection, "target-removed", name)


def opened(known: TargetRow) -> Target:
    """Open a target, with the credentials of the environment."""
    given = os.environ.get(variable(known.name))
    if given is not None and without_credentials(given) != known.place:
        raise WorkspaceError(
            f"{variable(known.name)} names another place than the target {known.name!r}; expected "
            f"{known.place!r} with its credentials"
        )
    return kinds.opened(given or known.place, known.settings)


def variable(name: str) -> str:
    """Return the environment variable that has the place of a target with its credentials.

    >>> variable("shop-2")
    'ERASABLE_TARGET_SHOP_2'
    """
    return VARIABLE + re.sub(r"[^A-Z0-9]", "_", name.upper())


def without_credentials(place: str) -> str:
    """Return a place without passwords, and parameters that look like one.

    >>> without_credentials("postgresql://ann:secret@db/shop?sslkey=x&timeout=3")
    'postgresql://db/shop?timeout=3'
    """
    bare = _SECRET.sub(lambda match: match[0][0], _USER.sub("", place))
    return re.sub(r"\?&+", "?", re.sub(r"&&+", "&", bare)).rstrip("?&")


def _refuse_double(connection: Connection, name: str, place: str, settings: Settings) -> None:
    for each in in_use(connection):
        if each.name == name or variable(each.name) == variable(name):
            raise WorkspaceError(
                f"there is a target {each.name!r} already; expected another name; remove that one "
                "first to change it"
            )
        if each.place == place and _tables(each.settings) & _tables(settings):
            raise WorkspaceError(
                f"the target {each.name!r} is over the same records; expected one target for them; "
                "remove it first, and name all subjects in one"
            )


def _tables(settings: Settings) -> set[str]:
    """Return the tables that subjects are of: of a database "customers", of others ""."""
    return {each.field.rpartition(".")[0] for each in settings.subjects}


def _log(context: Context, connection: Connection, kind: str, name: str) -> None:
    row = connection.execute(select(target).where(target.c.name == name)).one()
    body = entries.target(context.keys, row._asdict())
    log.append(context, connection, kind, name, body, context.now())


def spelled(settings: Settings) -> list[str]:
    """Return the subjects of a target as a user names them."""
    return [":".join(_as_json(each).values()) for each in settings.subjects]


def _as_json(subject: Subject) -> dict[str, str]:
    kind = subject.type if subject.region is None else f"{subject.type}:{subject.region}"
    return {"field": subject.field, "type": kind}


def _described(row: Any) -> TargetRow:
    given = [f"{each['field']}:{each['type']}" for each in row.subjects]
    settings = settings_of(given, row.action, row.keep, row.cascade, may_empty=row.may_empty)
    return TargetRow(row.id, row.name, row.place, settings)
