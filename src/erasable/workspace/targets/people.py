"""People who are to be erased from a target, told by the keyed hashes of their identities."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from erasable.workspace.context import Context
from erasable.workspace.identity import suppression
from erasable.workspace.targets.protocol import Subject
from erasable.workspace.targets.scanning import tokens_under


class Asked:
    """People by their tokens, each with a name."""

    def __init__(self, context: Context, tokens: Mapping[str, str]) -> None:
        self._context, self._tokens = context, tokens

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return the values that name one of them."""
        found = {}
        for value in values:
            for token in tokens_under(self._context, value, subject.type, subject.region):
                if token in self._tokens:
                    found[value] = self._tokens[token]
        return found


class Suppressed:
    """Everybody on the suppression list, each by the token of the list."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return the values that name one of them."""
        tokens = {
            token: value
            for value in values
            for token in tokens_under(self._context, value, subject.type, subject.region)
        }
        with self._context.ledger.reading() as connection:
            listed = suppression.suppressed(connection, tokens)
        return {tokens[token]: token for token in listed}
