"""Bring the tables of a ledger up to date, with Alembic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    from erasable.workspace.ledger.engine import Ledger

__all__ = ["upgrade"]


def upgrade(ledger: Ledger) -> None:
    """Run the migrations that a ledger has not had yet, in one transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with ledger.transaction() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
