"""People who are to be erased, as the workspace knows them: by the tokens of their identities."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from erasable.core.errors import InvalidIdsError
from erasable.workspace.context import Context
from erasable.workspace.identity import suppression
from erasable.workspace.identity.canonical import kind_of
from erasable.workspace.targets.protocol import Subject

BETWEEN = "|"  # requests in a name, of one person or of several who share a value
_ADDRESSES = re.compile(r"[\s,;<>\"']+")  # what is between addresses in one text


class Suppressed:
    """Everybody on the suppression list; see `protocol.People`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return the values that name a person on the list, each with the person's token."""
        tried = by_token(self._context, values, subject.type, subject.region)
        with self._context.ledger.reading() as connection:
            listed = suppression.suppressed(connection, tried)
        return _named(tried, listed)


class Asked:
    """People by given tokens, such as those of a request, each with a name."""

    def __init__(self, context: Context, tokens: Mapping[str, str]) -> None:
        self._context = context
        self._tokens = tokens

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return the values that name a person, each with the person's name."""
        tried = by_token(self._context, values, subject.type, subject.region)
        found: dict[Any, dict[str, None]] = {}
        for token in sorted(self._tokens.keys() & tried.keys()):
            for value in tried[token]:
                found.setdefault(value, {}).update(
                    dict.fromkeys(self._tokens[token].split(BETWEEN))
                )
        return {value: BETWEEN.join(names) for value, names in found.items()}


def by_token(
    context: Context, values: Iterable[Any], kind: str, region: str | None
) -> dict[str, list[Any]]:
    """Return the values by their tokens under a type; those that do not suit it have none.

    A text with several addresses has those of all.
    """
    found: dict[str, list[Any]] = {}
    for value in values:
        for token in _tokens(context, value, kind, region):
            found.setdefault(token, []).append(value)
    return found


def _named(tried: Mapping[str, list[Any]], wanted: Iterable[str]) -> dict[Any, str]:
    return {value: token for token in sorted(wanted) for value in tried[token]}


def _tokens(context: Context, value: Any, kind: str, region: str | None) -> Iterator[str]:
    if isinstance(value, UUID):
        value = str(value)
    try:
        yield context.keys.token(kind, value, region)
    except InvalidIdsError:
        if kind_of(kind) == "email" and isinstance(value, str):
            for part in _ADDRESSES.split(value):
                if "@" in part and part != value:
                    yield from _tokens(context, part, kind, region)
        return
    if (before := context.keys.former_token(kind, value)) is not None:
        yield before
