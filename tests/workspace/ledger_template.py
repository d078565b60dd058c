"""Make ledgers by the statements of the first one: Alembic takes 50 ms for each, of a thousand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from alembic import command
from sqlalchemy import event, inspect

__all__ = ["repeated"]

READS = ("SELECT", "PRAGMA")


@contextmanager
def repeated() -> Iterator[None]:
    """Record what the migrations write into an empty ledger, and write it into all others."""
    upgrade = command.upgrade
    recorded: dict[str, list[tuple[str, Any]]] = {}

    def repeat(config: Any, revision: str) -> None:
        connection = config.attributes["connection"]
        name = f"{connection.dialect.name} by {config.get_main_option('script_location')}"
        if revision != "head" or inspect(connection).has_table("alembic_version"):
            upgrade(config, revision)
        elif name in recorded:
            for statement, given in recorded[name]:
                connection.exec_driver_sql(statement, given or None)
        else:
            found: list[tuple[str, Any]] = []

            def note(_: Any, __: Any, statement: str, given: Any, ___: Any, ____: bool) -> None:
                if not statement.lstrip().upper().startswith(READS):
                    found.append((statement, given))

            event.listen(connection, "before_cursor_execute", note)
            try:
                upgrade(config, revision)
            finally:
                event.remove(connection, "before_cursor_execute", note)
            recorded[name] = found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "upgrade", repeat)
        yield
