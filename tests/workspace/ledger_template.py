"""Make ledgers by the statements of the first one: Alembic takes 50 ms for each, of a thousand.

And compile each statement once, not once for each workspace: that is a fifth of what it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Engine, event, inspect
from sqlalchemy.util import LRUCache

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

    made, compiled = Engine.__init__, _Compiled(5000)

    # `create_engine` takes the options that have a name here, such as PyIceberg's `echo`
    def make(
        self: Engine, pool: Any, dialect: Any, url: Any, echo: Any = None, **options: Any
    ) -> None:
        made(self, pool, dialect, url, echo=echo, **options)
        self.update_execution_options(compiled_cache=compiled)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "upgrade", repeat)
        patch.setattr(Engine, "__init__", make)
        yield


class _Compiled(LRUCache):  # type: ignore[type-arg]
    """Statements by what they say to a kind of database, instead of to one engine."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), value)
