"""Rights of a role in a schema of PostgreSQL, checked before a statement fails without them.

The server hides the tables of a schema from a role that may not use it, and VACUUM skips a table
that is not the role's own with a warning alone: neither may be left to the statement that meets it.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from erasable.core.errors import WorkspaceServerError

_WRITING = ("INSERT", "UPDATE", "DELETE")


def check(connection: Connection, schema: str) -> str:
    """Return the role of a connection if it may read the tables of a schema, and no more.

    It is empty if the role may write, or there are no tables.

    Raise WorkspaceServerError if the role may not read all of it, or may write to some tables and
    not to the rest.
    """
    there = connection.execute(_SCHEMA, {"schema": schema}).first()
    if there is None:
        return ""
    if not there.may_use:
        raise lacks(there.role, [f"the right USAGE on schema {schema!r}"])
    rows = connection.execute(_RIGHTS, {"schema": schema}).all()
    missing = [(row.what, _described(row)) for row in rows if not row.has]
    unread = [right for what, right in missing if what == "SELECT"]
    if unread:
        raise lacks(there.role, unread)
    if not any(row.has for row in rows if row.what in _WRITING):
        return str(there.role) if rows else ""
    if missing:
        raise lacks(there.role, [right for _, right in missing])
    return ""


def check_making(connection: Connection, schema: str) -> None:
    """Raise WorkspaceServerError unless the role may make tables in a schema.

    If the schema is missing, the role has to be able to make it.
    """
    there = connection.execute(_SCHEMA, {"schema": schema}).first()
    if there is not None:
        missing = [
            f"the right {right} on schema {schema!r}"
            for right, has in (("USAGE", there.may_use), ("CREATE", there.may_create))
            if not has
        ]
        if missing:
            raise lacks(there.role, missing)
        return
    found = connection.execute(_DATABASE).one()
    if not found.may_create:
        raise lacks(found.role, [f"the right CREATE on database {found.name!r}"])


def lacks(role: str, missing: list[str]) -> WorkspaceServerError:
    """Return the error that says what a role lacks.

    >>> str(lacks("ann", ["the right INSERT on table 'task'", "ownership of table 'task'"]))[:71]
    "the database role 'ann' lacks the right INSERT on table 'task' and 1 mo"
    """
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return WorkspaceServerError(
        f"the database role {role!r} lacks {missing[0]}{more}; expected one that owns the schema "
        "and all tables in it, or, to read alone, has USAGE on the schema and SELECT on every "
        "table; grant it, or connect as another"
    )


def _described(row: object) -> str:
    name, what, kind = row.name, row.what, row.kind  # type: ignore[attr-defined]
    if what == "ownership":
        return f"ownership of table {name!r}"
    return f"the right {what} on {kind} {name!r}"


_SCHEMA = text(
    "SELECT current_user::text AS role, has_schema_privilege(oid, 'USAGE') AS may_use, "
    "has_schema_privilege(oid, 'CREATE') AS may_create FROM pg_namespace WHERE nspname = :schema"
)

_DATABASE = text(
    "SELECT current_user::text AS role, current_database()::text AS name, "
    "has_database_privilege(current_database(), 'CREATE') AS may_create"
)

# VACUUM FULL takes the owner of the table or database, or, since PostgreSQL 17, MAINTAIN.
_RIGHTS = text(
    "WITH known AS (SELECT c.oid, c.relname, c.relkind, c.relowner FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema) "
    "SELECT relname::text AS name, 'table' AS kind, what, CASE "
    "WHEN what <> 'ownership' THEN has_table_privilege(oid, what) "
    "WHEN pg_has_role(relowner, 'USAGE') THEN true "
    "WHEN (SELECT pg_has_role(datdba, 'USAGE') FROM pg_database "
    "WHERE datname = current_database()) THEN true "
    "WHEN current_setting('server_version_num')::int >= 170000 "
    "THEN has_table_privilege(oid, 'MAINTAIN') ELSE false END AS has "
    "FROM known, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'ownership']) AS what "
    "WHERE relkind = 'r' UNION ALL "
    "SELECT relname::text, 'sequence', 'USAGE', has_sequence_privilege(oid, 'USAGE') "
    "FROM known WHERE relkind = 'S' ORDER BY 3, 1"
)
