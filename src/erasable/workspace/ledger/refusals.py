"""Refusals of a PostgreSQL server, in one line: what came, what was expected, what to do.

No error message repeats a value: what a server says in its details holds some.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError

from erasable.core.errors import (
    ErasableError,
    LedgerError,
    WorkspaceBusyError,
    WorkspaceError,
    WorkspaceServerError,
)
from erasable.workspace.ledger.backend import broken, no_disk

WAIT = 30.0
"""Seconds that a transaction waits for another."""


@contextmanager
def explained(schema: str) -> Iterator[None]:
    """Turn errors of the server, or of the driver, inside the block into ours.

    They are WorkspaceServerError (no connection, or no right), WorkspaceBusyError (another process
    holds the ledger for too long), WorkspaceDiskError and LedgerError (`schema` holds no ledger, or
    a damaged one).
    """
    try:
        yield
    except ErasableError:
        raise
    except DBAPIError as error:
        raise _as_error(error.orig, schema, lost=error.connection_invalidated) from None
    except OSError as error:
        raise no_disk(error.strerror or str(error)) from None
    except Exception as error:
        if not type(error).__module__.startswith("psycopg"):
            raise
        raise _as_error(error, schema, lost=False) from None  # of a COPY, which is the driver's own


def _as_error(said: Any, schema: str, *, lost: bool) -> WorkspaceError:
    code = getattr(said, "sqlstate", None) or ""
    words = _first_line(said)
    if code in ("55P03", "40001", "40P01"):
        return WorkspaceBusyError(
            "another process is at work on the ledger; expected it to end within "
            f"{WAIT:.0f} seconds; run the command again"
        )
    if code[:2] in ("53", "58") and code != "53300":
        return no_disk(words)
    if code in ("42P01", "3F000"):
        return LedgerError(
            f"schema {schema!r} of the database holds no ledger; expected one; if `erasable init` "
            "or `workspace copy` was cut off run it again, else restore the database from a backup"
        )
    if code == "42501":
        return WorkspaceServerError(
            f"the database does not allow it ({words}); expected a role that may make the schema "
            f"{schema!r}, or owns it and its tables; grant that, or connect as another"
        )
    if code == "25006":
        return WorkspaceServerError(
            "the database can only be read; expected one that can be written to; connect to the "
            "primary server"
        )
    if code == "57014":
        return WorkspaceServerError(
            f"the database server ended a statement ({words}); expected it to be let run; run the "
            "command again, and ask the server's administrator if it is ended again"
        )
    if lost or code.startswith(("08", "57")):
        return WorkspaceServerError(
            f"the connection to the database was lost ({words}); expected it to last; a change "
            "that was under way is done or not, never half; run the command again"
        )
    if _is_refused(said, code):
        return _no_connection(words)
    if code.startswith("22") or type(said).__name__ == "DataError":
        return WorkspaceError(
            "the database cannot hold a value of this command; expected text without zero bytes "
            "and numbers that are finite"
        )
    return broken(words)


def _is_refused(said: Any, code: str) -> bool:
    """Tell whether there was a connection at all; what libpq says of that has no code."""
    return (
        code.startswith(("28", "3D"))
        or code == "53300"
        or (type(said).__name__ in ("OperationalError", "ConnectionTimeout") and not code)
    )


_REASONS = (
    (("password", "fe_sendauth"), "the right password",
     "give it in PGPASSWORD, or in the file .pgpass"),
    (("does not exist",), "a database and a role that are there",
     "make them, or correct the URL"),
    (("pg_hba",), "a server that lets this role in from here", "ask its administrator"),
    (("too many", "remaining connection"), "a server with connections to spare",
     "run the command again later"),
    (("starting up", "shutting down"), "a server that is up", "run the command again"),
)  # fmt: skip


def _no_connection(words: str) -> WorkspaceServerError:
    expected, remedy = "a server that can be reached", "start it, or correct the URL"
    for marks, *texts in _REASONS:
        if any(mark in words for mark in marks):
            expected, remedy = texts
            break
    return WorkspaceServerError(
        f"the database server cannot be used ({words}); expected {expected}; {remedy}"
    )


def _first_line(said: Any) -> str:
    """Return what was said without details and hints, which may hold values."""
    primary = getattr(getattr(said, "diag", None), "message_primary", None)
    lines = [line.strip() for line in str(primary or said).splitlines() if line.strip()]
    # Where several addresses were tried, the first says as much as all of them.
    kept = next((line for line in lines if "failed:" in line), lines[0] if lines else "no reason")
    return " ".join(kept.removeprefix("connection failed:").removeprefix("- ").split())
