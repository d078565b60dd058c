"""Operations: what is called when, and what is left when one fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from contexts import make_context
from sqlalchemy import Connection

import erasable.workspace.locking as locking
from erasable.core.errors import WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data.operation import Operation, carry_out
from erasable.workspace.locking import Claim

STEPS = ("plan", "prepare", "commit", "settle")


class Put(Operation[str]):
    """Puts a file, and a setting that names it; fails at a step, if one is named."""

    def __init__(
        self, context: Context, fails: str = "", error: type[BaseException] = WorkspaceError
    ) -> None:
        super().__init__(context)
        self.fails, self.error, self.names = fails, error, ["a"]
        self.called: list[str] = []

    def _at(self, step: str) -> None:
        self.called.append(step)
        if step == self.fails:
            raise self.error("it fails")

    def claim(self, connection: Connection) -> Claim:
        self._at("claim")
        return Claim.of(locking.models(self.names))

    def plan(self, connection: Connection) -> None:
        self._at("plan")

    def prepare(self) -> None:
        self.key = self.context.store.put("models/m", b"data").key
        self._at("prepare")

    def commit(self, connection: Connection) -> str:
        self.context.ledger.set(connection, "told", self.key)
        self._at("commit")
        return "done"

    def settle(self) -> None:
        self._at("settle")


def told(context: Context) -> object:
    with context.ledger.reading() as connection:
        return context.ledger.get(connection, "told")


def test_steps_are_called_in_order(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    operation = Put(context)
    assert carry_out(operation) == "done"
    assert operation.called == ["claim", "claim", *STEPS]
    assert told(context) == operation.key


@pytest.mark.parametrize("error", [WorkspaceError, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["claim", *STEPS])
def test_nothing_is_left_of_one_that_fails(
    tmp_path: Path, step: str, error: type[BaseException]
) -> None:
    context, _ = make_context(tmp_path / "ws")
    with pytest.raises(error, match="it fails"):
        carry_out(Put(context, step, error))
    assert (told(context) is not None) is (step == "settle")
    assert list(context.store.list()) == []  # no row of the ledger refers to this file
    assert carry_out(Put(context)) == "done"  # and the lock is free


def test_a_claim_that_changes_is_claimed_anew(tmp_path: Path) -> None:
    """What is to be done may be another after it was waited for."""
    context, _ = make_context(tmp_path / "ws")
    held: list[frozenset[str]] = []

    class Growing(Put):
        def claim(self, connection: Connection) -> Claim:
            if len(self.called) == 1:
                self.names = ["a", "b"]
            return super().claim(connection)

        def plan(self, connection: Connection) -> None:
            held.append(self.claim(connection).changes)
            super().plan(connection)

    operation = Growing(context)
    carry_out(operation)
    assert held == [frozenset(locking.models(["a", "b"]))]
    assert operation.called.count("plan") == 1
