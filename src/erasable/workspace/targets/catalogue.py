"""Targets of a workspace, as the ledger has them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from erasable.core import errors
from erasable.core.errors import NotInWorkspaceError
from erasable.workspace.identity import subjects as identities
from erasable.workspace.identity.canonical import declared
from erasable.workspace.ledger import rows
from erasable.workspace.targets.settings import Settings, Subject

ACTIONS = ("delete", "null", "mask")
IN_USE, REMOVED = "in use", "removed"
VARIABLE = "ERASABLE_TARGET_"

_USER = re.compile(
    r"(?<=://)(?:"
    r"[^/@#?]*:[^/#?]*@"
    r"|[^/@#?:\s]*:(?!\d+[/#?])[^@\s]*@)"  # SQLAlchemy takes passwords with "/", "#" and "?"
    r"|(?i:(?<=\Achroma\+http://)|(?<=\Achroma\+https://))[^/@#?]*@"  # a token of Chroma
)
_USER_OF_DATABASE = re.compile(
    r"(?i)\A((?:postgresql|mysql|mariadb)(?:\+\w+)?://)[^/@#?:\s]*:[^@\s]*@"
)  # also a password that begins like a port
_SECRET = re.compile(r"(?i)[?&][^=&#]*(?:pass|token|secret|key|credential)[^=&#]*=[^&#]*")
_OPTION = re.compile(
    r"(?i)(\s-[\w-]*(?:pass|token|secret|credential|api-?key|access-?key)[\w-]*(?:=|\s+))"
    r"(?:'[^']*'|\"[^\"]*\"|\S+)"
)  # of a program


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target of the workspace, as it was added."""

    id: int
    name: str
    place: str  # without credentials
    settings: Settings

    @property
    def variable(self) -> str:
        """The environment variable that has the place with its credentials."""
        return variable(self.name)


def in_use(connection: Connection) -> list[TargetRow]:
    """Return the targets, by name, without those that were removed."""
    return [_described(row) for row in rows.targets(connection) if row.state == IN_USE]


def find(connection: Connection, name: str) -> TargetRow:
    """Return a target by its name; raise NotInWorkspaceError without one."""
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
        raise errors.InvalidParameterError(
            f"the action is {str(action)[:40]!r}; expected one of {', '.join(ACTIONS)}"
        )
    if not columns:
        raise errors.InvalidParameterError(
            "no field says whose records there are; expected one or more; name them with "
            "--subject, as in mail:email (`erasable target scan` finds them)"
        )
    found = []
    for each in columns:
        name, colon, kind = each.partition(":")
        type_, region = declared(kind if colon else identities.DEFAULT_TYPE)
        found.append(Subject(name, type_, region))
    return Settings(tuple(found), action, tuple(keep), tuple(cascade), may_empty)


def variable(name: str) -> str:
    """Return the environment variable that has the place of a target with its credentials.

    >>> variable("shop-2")
    'ERASABLE_TARGET_SHOP_2'
    """
    return VARIABLE + re.sub(r"[^A-Z0-9]", "_", name.upper())


def without_credentials(place: str) -> str:
    """Return a place without passwords, and parameters that look like one.

    Of a program the options that look like one stay without their values.

    >>> without_credentials("postgresql://ann:secret@db/shop?sslkey=x&timeout=3")
    'postgresql://db/shop?timeout=3'
    >>> without_credentials("command:python store.py --api-key x notes")
    'command:python store.py --api-key ... notes'
    """
    if place.startswith("command:"):
        return _OPTION.sub(r"\1...", _USER.sub("", place))
    bare = _USER.sub("", _USER_OF_DATABASE.sub(r"\1", place))
    bare = _SECRET.sub(lambda match: match[0][0], bare)
    return re.sub(r"\?&+", "?", re.sub(r"&&+", "&", bare)).rstrip("?&")


def without_arguments(place: str) -> str:
    """Return a place without the arguments of a program, which may be a password.

    >>> without_arguments("command:python store.py --key x"), without_arguments("my files")
    ('command:python ...', 'my files')
    """
    program, space, _ = place.partition(" ")
    return f"{program} ..." if space and place.startswith("command:") else place


def spelled(settings: Settings) -> list[str]:
    """Return the subjects of a target as a user names them."""
    return [":".join(as_json(each).values()) for each in settings.subjects]


def as_json(subject: Subject) -> dict[str, str]:
    """Return a subject as the ledger keeps it."""
    kind = subject.type if subject.region is None else f"{subject.type}:{subject.region}"
    return {"field": subject.field, "type": kind}


def _described(row: Any) -> TargetRow:
    given = [f"{each['field']}:{each['type']}" for each in row.subjects]
    settings = settings_of(given, row.action, row.keep, row.cascade, may_empty=row.may_empty)
    return TargetRow(row.id, row.name, row.place, settings)
