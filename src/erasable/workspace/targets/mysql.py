"""Tables of a server of MySQL or MariaDB: they are written anew; its files are not looked at."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.residue import Found


class MysqlStorage:
    """The files of a server, which belong to it alone."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        """Have tables written anew."""
        reasons = []
        for table in tables:
            try:
                with self._engine.connect() as connection:
                    connection.execution_options(isolation_level="AUTOCOMMIT")
                    name = connection.dialect.identifier_preparer.format_table(table)
                    connection.exec_driver_sql("set lock_wait_timeout = 30")
                    told = connection.exec_driver_sql(f"optimize table {name}").fetchall()
                if any(str(row[2]).lower() == "error" for row in told):
                    reasons.append(f"this user may not have table {table.key!r} written anew")
            except SQLAlchemyError as error:
                reasons.append(f"table {table.key!r} was not written anew ({type(error).__name__})")
        return reasons

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        """Say where values may be."""
        reasons = ["the server keeps changes in its undo and redo logs"]
        try:
            with self._engine.connect() as connection:
                if connection.exec_driver_sql("select @@log_bin").scalar():
                    reasons.append("the server keeps changes in its binary log")
        except SQLAlchemyError:
            reasons.append("the server may keep changes in a binary log")
        return Found(reasons=[*reasons, "its files cannot be seen from here"])


def takes_back(connection: sa.Connection, tables: Sequence[sa.Table]) -> bool:
    """Tell whether changes of all of these tables can be taken back."""
    names = [table.name for table in tables]
    query = sa.text(
        "select count(*) from information_schema.tables "
        "where table_schema = database() and table_name in :names and engine = 'InnoDB'"
    ).bindparams(sa.bindparam("names", expanding=True))
    return bool(connection.execute(query, {"names": names}).scalar_one() == len(names))
