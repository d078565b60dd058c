"""Many rows at once: those that are there stay as they are, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from contexts import make_context
from sqlalchemy import select

from erasable.workspace.ledger import bulk
from erasable.workspace.ledger.bulk import insert_missing
from erasable.workspace.ledger.schema import identity


def test_rows_that_are_there_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "AT_ONCE", 3)
    context, _ = make_context(tmp_path / "ws")
    tokens = [f"{i:032x}" for i in range(10)]

    def insert(some: list[str], subject: str) -> int:
        columns = {"token": some, "type": ["id"] * len(some), "subject": [subject] * len(some)}
        with context.ledger.transaction() as connection:
            return insert_missing(connection, identity, columns)

    assert insert(tokens[:7], "first") == 7
    assert insert(tokens[4:], "second") == 3
    assert insert([], "third") == 0
    with context.ledger.reading() as connection:
        found = {row.token: row.subject for row in connection.execute(select(identity))}
    assert found == {t: "first" if at < 7 else "second" for at, t in enumerate(tokens)}
