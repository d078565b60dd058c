"""Subjects: the owners of tokens.

The law kept here: every token belongs to one subject, and a subject is nothing but a random name
for its tokens. When the tokens are forgotten, the name is gone with them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from erasable.core.errors import InvalidIdsError, NotInWorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import log
from erasable.workspace.identity.canonical import check_type
from erasable.workspace.ledger.bulk import in_parts, insert_missing, rows_in
from erasable.workspace.ledger.engine import setting
from erasable.workspace.ledger.schema import identity

DEFAULT_TYPE = "id"

_TYPES = "identity_types"  # the entry of `meta` that lists them
_OF_TOKENS = (
    select(identity)
    .where(identity.c.token.in_(bindparam("tokens", expanding=True)))
    .order_by(identity.c.token)
)


def ensure(context: Context, connection: Connection, identities: Iterable[tuple[str, str]]) -> int:
    """Make a subject of each new token; return how many were new.

    `identities` are pairs of token and type, in which a token may occur several times.
    """
    wanted = dict(identities)
    names = secrets.token_bytes(16 * len(wanted)).hex()
    n_new = insert_missing(
        connection,
        identity,
        {
            "token": list(wanted),
            "type": list(wanted.values()),
            "subject": [names[at : at + 32] for at in range(0, len(names), 32)],
        },
    )
    note_types(context, connection, wanted.values())
    return n_new


def candidates_of(
    context: Context, connection: Connection, values: Sequence[Any], types: Sequence[str]
) -> list[list[tuple[str, str]]]:
    """Return the identities that each value may be, as (type, token).

    Where a value is known under some types, these are returned; else all of `types` that it suits.
    Raise InvalidIdsError if it suits none, or belongs to different subjects under different types.
    """
    tried = []
    with context.progress("reading identities", len(values)) as advance:
        for some in in_parts(values):
            tried += [hashed(context, value, types) for value in some]
            advance(len(some))
    known = {row.token: row for row in _rows(connection, {t for each in tried for t in each})}
    return [_told_apart(each, known) for each in tried]


def _told_apart(tried: dict[str, str], known: dict[str, Row[Any]]) -> list[tuple[str, str]]:
    rows = [known[token] for token in sorted(tried) if token in known]
    if fit_two_people(rows):
        message = ", ".join(sorted(repr(row.type) for row in rows))
        raise InvalidIdsError(
            f"the identity belongs to different subjects, by its types {message}; expected one; "
            "name the type with --type, or link the subjects"
        )
    return [(row.type, row.token) for row in rows] or [(kind, t) for t, kind in tried.items()]


def fit_two_people(rows: Iterable[Any]) -> bool:
    """Tell whether rows of table `identity`, found by one value, are of two people.

    They are if types disagree. Under one type a value is one person's, however it was spelled.
    """
    owners: dict[str, set[str]] = {}
    for row in rows:
        owners.setdefault(row.type, set()).add(row.subject)
    first, *others = list(owners.values()) or [set()]
    return any(first.isdisjoint(other) for other in others)


def find(
    context: Context, connection: Connection, value: Any, type: str | None = None
) -> str | None:
    """Return the subject that a value identifies, or None; for errors see `candidates_of`."""
    (tried,) = candidates_of(context, connection, [value], types_tried(connection, type))
    rows = _rows(connection, [token for _, token in tried])
    return rows[0].subject if rows else None


def expand(connection: Connection, identities: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Return some tokens and all others of their subjects, as (type, token) sorted by token."""
    return expand_many(connection, [identities])[0]


def expand_many(
    connection: Connection, people: Sequence[Iterable[Sequence[str]]]
) -> list[list[tuple[str, str]]]:
    """Return the result of `expand` for each of many, in as many statements."""
    asked = [{token: type for type, token in identities} for identities in people]
    subjects = subjects_of(connection, {token for each in asked for token in each})
    owned: dict[str, dict[str, str]] = {}
    owners = set(subjects.values())
    for row in rows_in(connection, select(identity), identity.c.subject, owners):
        owned.setdefault(row.subject, {})[row.token] = row.type
    for each in asked:
        for subject in {subjects[token] for token in each if token in subjects}:
            each.update({token: of for token, of in owned[subject].items() if token not in each})
    return [[(each[token], token) for token in sorted(each)] for each in asked]


def hashed(context: Context, value: Any, types: Sequence[str]) -> dict[str, str]:
    """Map the tokens of a value, one for each type that it suits, to the types."""
    found, refusal = {}, None
    for type in types or [DEFAULT_TYPE]:
        try:
            found[context.keys.token(type, value)] = type
            before = context.keys.former_token(type, value)
            if before is not None:
                found[before] = type
        except InvalidIdsError as error:
            refusal = error
    if found or refusal is None:
        return found
    if len(types) < 2:
        raise refusal
    raise InvalidIdsError(
        f"an identity is a {value.__class__.__name__} that suits none of the types in use "
        f"({', '.join(types)}); expected one that does"
    )


def link(
    context: Context, value: Any, type: str | None, other: Any, other_type: str | None
) -> None:
    """Make two identities those of one subject.

    One of them may be new; it needs a type then. All tokens of both subjects belong to one from
    then on. The log has an entry without the identities. Raise NotInWorkspaceError if neither is
    known, or a new one has no type.
    """
    with context.ledger.transaction() as connection:
        found = find(context, connection, value, type), find(context, connection, other, other_type)
        if not any(found):
            raise NotInWorkspaceError(
                "neither identity is known here; expected one that a data set holds; "
                "add the data first, or correct the identities"
            )
        subjects = []
        for one, given, named in zip(found, (value, other), (type, other_type), strict=True):
            subjects.append(one or _known(context, connection, given, named))
        if subjects[0] != subjects[1]:
            connection.execute(
                update(identity)
                .where(identity.c.subject == subjects[1])
                .values(subject=subjects[0])
            )
            log.append(context, connection, "subjects-linked", "subjects", {}, context.now())


def types_in_use(connection: Connection) -> list[str]:
    """Return every type of identities in the ledger, in order."""
    return list(setting(connection, _TYPES, []))


def types_tried(connection: Connection, type: str | None) -> list[str]:
    """Return the types under which an identity is looked for: the given one, or those in use.

    By default it is "id". All types in use are returned, whether an identity suits them or not:
    they are shown to the user, and logged.
    """
    return [type] if type is not None else types_in_use(connection) or [DEFAULT_TYPE]


def note_types(context: Context, connection: Connection, types: Iterable[str]) -> None:
    """Add types to those of `types_in_use`."""
    before = types_in_use(connection)
    after = sorted({*before, *map(check_type, set(types))})
    if after != before:
        context.ledger.set(connection, _TYPES, after)


def subjects_of(connection: Connection, tokens: Iterable[str]) -> dict[str, str]:
    """Return the subjects of known tokens."""
    known = select(identity.c.token, identity.c.subject)
    rows = rows_in(connection, known, identity.c.token, tokens)
    return {row.token: row.subject for row in rows}


def _rows(connection: Connection, tokens: Iterable[str]) -> list[Row[Any]]:
    found: list[Row[Any]] = []
    for some in in_parts(sorted(tokens)):
        found += connection.execute(_OF_TOKENS, {"tokens": some})
    return found


def _known(context: Context, connection: Connection, value: Any, type: str | None) -> str:
    """Return the subject of a new identity, which needs its type."""
    if type is None:
        raise NotInWorkspaceError(
            "one of the identities is not known here; expected its type, to keep it under; "
            "name it with --type or --other-type"
        )
    token = context.keys.token(type, value)
    ensure(context, connection, [(token, type)])
    return str(
        connection.execute(select(identity.c.subject).where(identity.c.token == token)).scalar_one()
    )
