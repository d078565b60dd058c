"""Operations: changes of a workspace, from a claim to the transaction that puts them in place.

The law kept here: an operation writes files beside those in use, and one transaction has the ledger
refer to them. Interrupted at any point, the workspace is as before or as after; files to which the
ledger does not refer are removed at once, or by the next operation if the process has died.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Generic, TypeVar

from sqlalchemy import Connection

from erasable.core import _interruptions
from erasable.core.errors import ErasableError
from erasable.workspace.context import Context
from erasable.workspace.data import gone_subjects
from erasable.workspace.locking import Claim
from erasable.workspace.locking.leases import OvertakenError

Result = TypeVar("Result", covariant=True)


class Operation(ABC, Generic[Result]):
    """A change of a workspace; `carry_out` calls its methods in the order they stand here."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.vacated: Iterable[int] | None = None
        """Data sets that may have lost files to this operation; None if nothing was replaced."""

    @abstractmethod
    def claim(self, connection: Connection) -> Claim:
        """Return what is to be changed and read. It is asked again once this is locked."""

    def plan(self, connection: Connection) -> None:
        """Look up what is to be done, and refuse what cannot be done. The claim is locked."""

    def prepare(self) -> None:
        """Write new files; nothing refers to them yet."""

    @abstractmethod
    def commit(self, connection: Connection) -> Result:
        """Have the ledger refer to the new files, in one transaction, and log it."""

    def settle(self) -> None:
        """Write what only a change in place may have, such as accelerators."""


def carry_out(operation: Operation[Result]) -> Result:
    """Carry out an operation; if it fails, nothing is changed, and its files are removed."""
    context = operation.context
    while True:
        with context.ledger.reading() as connection:
            claim = operation.claim(connection)
        with context.lock(claim.changes, reads=claim.reads):
            with context.ledger.reading() as connection:
                if operation.claim(connection) != claim:  # another operation was faster
                    continue
                operation.plan(connection)
            context.clean()
            try:
                operation.prepare()
                with context.ledger.transaction() as connection:
                    result = operation.commit(connection)
                operation.settle()
            except OvertakenError:
                raise
            except BaseException as error:
                _interruptions.release(error)
                with suppress(ErasableError):  # the next operation does it
                    _remove_replaced(operation)
                raise
            if operation.vacated is not None:
                _remove_replaced(operation)
            return result


def _remove_replaced(operation: Operation[object]) -> None:
    """Forget people without a record in the files that remain, and remove the other files."""
    if operation.vacated is not None:
        gone_subjects.tidy(operation.context, operation.vacated)
    operation.context.clean()
