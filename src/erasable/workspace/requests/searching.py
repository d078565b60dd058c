"""Search for identities: the subject columns, and the types.

The law kept here: no answer is "no match" because an identity was looked for under types that it
could not be found under. Such a request is refused before it is taken in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from erasable.core.errors import InvalidIdsError
from erasable.workspace.context import Context
from erasable.workspace.data.catalogue import DataSet, all_datasets, record_type
from erasable.workspace.identity.canonical import canonical, check_type, kind_of
from erasable.workspace.identity.subjects import DEFAULT_TYPE, hashed, types_tried
from erasable.workspace.ledger.bulk import values_held
from erasable.workspace.ledger.schema import identity
from erasable.workspace.targets import catalogue

_ADDRESS, _TELEPHONE = "email", "phone"


def columns_searched(connection: Connection, types: Iterable[str]) -> list[dict[str, str]]:
    """Return the subject columns that identities of some types are looked for in.

    Each is a dict of dataset, column and type, sorted by the names of data sets.
    """
    return columns_of(all_datasets(connection), types)


def columns_of(datasets: Iterable[DataSet], types: Iterable[str]) -> list[dict[str, str]]:
    """Return what `columns_searched` does, for some data sets.

    >>> subjects = (("who", "id"), ("mail", "email"))
    >>> visits = DataSet(1, "visits", {}, "visit", subjects, (), 1, 1, None)
    >>> columns_of([visits], ["email", "staff/id"])
    [{'dataset': 'visits', 'column': 'mail', 'type': 'email'}]
    """
    wanted = set(types)
    return [
        {"dataset": known.name, "column": column, "type": kind}
        for known in datasets
        for column, kind in [*known.subjects, (known.id_column, record_type(known.name))]
        if kind in wanted
    ]


def check_types(
    context: Context, connection: Connection, values: Sequence[Any], type: str | None
) -> None:
    """Refuse identities that cannot be found, because no data set has their type.

    A type that is given has to be one of a data set, or of an identity known by a link; "id" is
    always allowed. Without a type, what looks like an address needs a data set with addresses, and
    what looks like a telephone number, where there are some, a country code.
    Raise InvalidIdsError, or InvalidParameterError if there is no such type.
    """
    datasets = all_datasets(connection)
    used = {kind for known in datasets for _, kind in known.subjects} | catalogue.types(connection)
    if type is not None:
        used |= {record_type(known.name) for known in datasets}
        if check_type(type) not in used | {DEFAULT_TYPE}:
            _check_known(
                context, connection, values, [type], datasets, f"the type {type!r} was named"
            )
        return
    from erasable.workspace.identity.value_formats import (  # late, as it takes Arrow
        addresses_among,
        telephones_among,
    )

    if any(kind_of(kind) == _TELEPHONE for kind in used):
        _check_telephones(context, connection, telephones_among(values))
    addresses = addresses_among(values)
    if not addresses:
        return
    for value in addresses:
        canonical(_ADDRESS, value)  # "a@x.org, b@x.org" is two people, and would be found as none
    if not any(kind_of(kind) == _ADDRESS for kind in used):
        kinds = [each for each in types_tried(connection, None) if kind_of(each) == _ADDRESS]
        n, several = len(addresses), len(addresses) > 1
        message = f"{n} of the identities look{'' if several else 's'} like an address"
        _check_known(
            context, connection, addresses, kinds, datasets, message if len(values) > 1 else
            "the identity looks like an address",
        )  # fmt: skip


def _check_telephones(context: Context, connection: Connection, values: Sequence[str]) -> None:
    """Refuse numbers without a country code that no other type knows: they would not be found."""
    for value in values:
        tried = hashed(context, value, types_tried(connection, None))
        may_be_found = any(kind_of(kind) == _TELEPHONE for kind in tried.values())
        if not may_be_found and not values_held(connection, identity.c.token, tried):
            raise InvalidIdsError(
                "an identity looks like a telephone number without a country code; expected one, "
                "as in +49 170 1234567; name its type with --type if it is another identity"
            )


def _check_known(
    context: Context,
    connection: Connection,
    values: Sequence[Any],
    kinds: Sequence[str],
    datasets: Sequence[DataSet],
    message: str,
) -> None:
    """Refuse values that are not known under types which no data set has, but links may."""
    tokens = {context.keys.token(kind, value): value for kind in kinds for value in values}
    known = {tokens[token] for token in values_held(connection, identity.c.token, tokens)}
    if len(known) < len(set(values)):
        in_use = [
            f"{kind} ({each.name}.{column})" for each in datasets for column, kind in each.subjects
        ]
        raise InvalidIdsError(
            f"{message}, and no data set has identities of that type; expected one of those in "
            f"use: {', '.join(in_use) or 'none'}; name it with --type (--type id takes an identity "
            "as it is spelled)"
        )
