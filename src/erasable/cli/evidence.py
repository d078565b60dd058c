"""`erasable receipt` and `log`: what proves that it was done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli import show
from erasable.cli.files import load_json, load_bytes, write
from erasable.cli.frame import Group, Json, Where, command, fail, opened

__all__ = ["register"]

PANEL = "Evidence"
SHOWN = 50
"""Entries of the log that are printed, where no other number is asked for."""

Output = Annotated[
    str | None, typer.Option(metavar="F", help="Write it to a file, as it is to be handed out.")
]


def register(app: typer.Typer) -> None:
    """Add the groups to the app."""
    receipt = typer.Typer(cls=Group, help="Show receipts, and check them.")
    log = typer.Typer(cls=Group, help="Show the log, check it, and sign its head.")
    app.add_typer(receipt, name="receipt", rich_help_panel=PANEL)
    app.add_typer(log, name="log", rich_help_panel=PANEL)
    _register_receipt(receipt)
    _register_log(log)
