"""Requests are taken in with few statements, which are made and compiled once.

An acknowledgement holds the ledger against the log before it writes anything. That took four fifths
of its time while each statement was made anew. What is executed is counted, since a test on times
would fail on a busy machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from contexts import visits, write_csv
from sqlalchemy import event, literal_column, select

from erasable.workspace import Workspace
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.ledger.schema import meta

MOST = 27
"""Statements of one acknowledgement, of however many requests: 26, and one to spare."""


class Effort(NamedTuple):
    """What a transaction took.

    Attributes
    ----------
    executed : int
        Statements.
    made : int
        Of these, made since the transaction before.
    compiled : int
        And compiled since then.
    """

    executed: int
    made: int
    compiled: int


class Counted:
    """A workspace whose statements are counted, transaction by transaction."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._people = iter(range(1000))
        self._executed = 0
        self._seen: list[Any] = []  # what is kept here has an id of its own
        self._compiled: list[Any] = []
        engine = workspace.context.ledger.engine
        event.listen(engine, "before_execute", lambda *each: self._seen.append(each[1]))
        event.listen(engine, "before_cursor_execute", self._note)
        for _ in range(2):  # whatever is made on first use
            self.request(10)

    def _note(self, *each: Any) -> None:
        if each[4].compiled is not None:  # else it is the driver's own, such as BEGIN
            self._executed += 1
            self._compiled.append(each[4].compiled)

    def request(self, n: int) -> Effort:
        """Take in n requests, in a transaction."""
        seen, compiled = set(map(id, self._seen)), set(map(id, self._compiled))
        n_seen, n_compiled, self._executed = len(self._seen), len(self._compiled), 0
        self.workspace.request([f"marker-patient-{next(self._people)}" for _ in range(n)])
        return Effort(
            self._executed,
            sum(id(each) not in seen for each in self._seen[n_seen:]),
            sum(id(each) not in compiled for each in self._compiled[n_compiled:]),
        )


def add(workspace: Workspace, number: int) -> None:
    """Add a data set, and a model of it."""
    folder = workspace.context.root.parent
    write_csv(folder / "visits.csv", visits(60))
    name = f"visits-{number}"
    workspace.add_dataset(name, folder / "visits.csv", id_column="visit", subjects=["patient"])
    workspace.fit(
        f"risk-{number}", "naive_bayes.GaussianNB", datasets=[name], features=["age"], target="sick"
    )


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    workspace = Workspace.create(tmp_path / "ws")
    add(workspace, 1)
    workspace.head()  # whose signature is checked, too
    yield Counted(workspace)
    workspace.context.ledger.close()


def test_requests_are_taken_in_with_few_statements(counted: Counted) -> None:
    ten = counted.request(10)
    assert 0 < ten.executed <= MOST
    assert counted.request(10) == ten
    assert counted.request(50).executed == ten.executed


def test_statements_are_made_and_compiled_once(counted: Counted) -> None:
    assert counted.request(10)[1:] == (0, 0)
    assert counted.request(7)[1:] == (0, 0)


def test_they_do_not_grow_with_data_sets_and_models(counted: Counted) -> None:
    one = counted.request(10)
    for number in (2, 3):
        add(counted.workspace, number)
    counted.request(10)  # all data sets are asked for by another statement than the only one
    assert counted.request(10) == one


def test_what_is_made_anew_is_counted(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a statement made each time, one compiled each time, a second look."""
    before = counted.request(10)
    right = ledger_checks.check

    def wasteful(context: Any, connection: Any, *others: Any) -> None:
        right(context, connection, *others)
        connection.execute(select(meta.c.name).where(meta.c.name == "workspace"))
        connection.execute(select(literal_column(f"{next(counted._people)}")))

    monkeypatch.setattr(ledger_checks, "check", wasteful)
    counted.request(10)
    assert counted.request(10) == (before.executed + 2, before.made + 2, before.compiled + 1)

    def twice(*given: Any) -> None:
        right(*given)
        right(*given)

    monkeypatch.setattr(ledger_checks, "check", twice)
    assert counted.request(10).executed > MOST
