"""Address of the ledger of a workspace: a file in its folder, or a schema of PostgreSQL.

A folder whose ledger is in PostgreSQL says so in `ledger.json`: URL and schema, never a password.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError

from erasable.core.errors import LedgerError, WorkspaceError
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.store.disk import Disk

PLACE = "ledger.json"
"""The file of a workspace that names the schema of its ledger in PostgreSQL."""

SCHEMA = "erasable"
"""The default schema."""

_VERSION = 1
_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_TAKEN = frozenset({"public", "information_schema"})
_SECRETS = frozenset({"password", "passfile", "sslpassword", "options"})


@dataclass(frozen=True, slots=True)
class Address:
    """A schema in a database of PostgreSQL."""

    url: str  # without a password
    schema: str

    @classmethod
    def parse(cls, url: str, schema: str | None = None) -> Address:
        """Check a URL and the name of a schema, as a user gives them.

        Raise WorkspaceError, which does not repeat the URL, if it cannot be used or holds a
        password.

        >>> Address.parse("postgresql://ann:secret@db.example/models")
        Traceback (most recent call last):
        erasable.core.errors.WorkspaceError: the URL of the database holds a password or ...
        """
        found = _url(url)
        if found.password is not None or _SECRETS & found.query.keys():
            raise WorkspaceError(
                "the URL of the database holds a password or options; expected none, because it is "
                "kept; give the password in PGPASSWORD, or in the file .pgpass"
            )
        name = SCHEMA if schema is None else schema
        if not _SCHEMA_NAME.fullmatch(name) or name in _TAKEN:
            raise WorkspaceError(
                f"{name[:60]!r} cannot be the schema of a workspace; expected one of its own, of "
                "lower-case letters, digits and '_'"
            )
        return cls(found.render_as_string(), name)

    @classmethod
    def of(cls, url: str | None, schema: str | None) -> Address | None:
        """Check the database that a user names, or return None if neither is given; see `parse`."""
        if url is not None:
            return cls.parse(url, schema)
        if schema is not None:
            raise WorkspaceError(
                f"the schema {schema[:60]!r} was named without a database; expected both; name the "
                "URL of the database, too, or neither"
            )
        return None

    @classmethod
    def read(cls, disk: Disk) -> Address | None:
        """Return the address in a workspace's folder, None if its ledger is a file."""
        if not disk.path(PLACE).is_file():
            return None
        try:
            said = json.loads(disk.read(PLACE))
            if said["version"] == _VERSION:
                return cls.parse(said["url"], said["schema"])
        except (ValueError, KeyError, TypeError, AttributeError, WorkspaceError):
            pass
        raise LedgerError(
            f"{PLACE!r} does not say where the ledger is; expected what `erasable init` wrote "
            "there, by this version or an older one; restore it from a backup"
        )

    def write(self, disk: Disk) -> None:
        """Write it into a workspace's folder."""
        said = {"version": _VERSION, "url": self.url, "schema": self.schema}
        disk.write(PLACE, json.dumps(said, indent=2).encode() + b"\n")

    def ledger(self) -> Ledger:
        """Return the ledger there."""
        return Ledger(self.url, self.schema)

    def check_free(self) -> Ledger:
        """Return the ledger to be made there; raise WorkspaceError if the schema is in use."""
        ledger = self.ledger()
        with ledger.reading() as connection:
            self.refuse_taken(connection)
            ledger.backend.check_making(connection)
        return ledger

    def refuse_taken(self, connection: Connection) -> None:
        """Raise WorkspaceError unless the schema is empty or missing; others may race for it."""
        from erasable.workspace.ledger.postgres import holds_tables

        if holds_tables(connection, self.schema):
            raise WorkspaceError(
                f"the schema {self.schema!r} of the database is in use, by another workspace or "
                "something else; expected one that is empty or not there; name another (--schema)"
            )


def _url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError, TypeError, AttributeError):
        raise _no_url() from None
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg") or not url.database:
        raise _no_url()
    return url.set(drivername="postgresql")


def _no_url() -> WorkspaceError:
    return WorkspaceError(
        "the URL of the database cannot be used; expected postgresql://USER@HOST:PORT/DATABASE; "
        "write special characters in it as %XX"
    )
