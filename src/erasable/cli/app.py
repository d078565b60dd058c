"""All commands under one name. Each group registers its own in a module of its own."""

from __future__ import annotations

import typer

from erasable.cli import (
    backups,
    datasets,
    domains,
    evidence,
    models,
    moving,
    people,
    requests,
    selection,
    site,
    workers,
)
from erasable.cli.frame import Root

__all__ = ["app"]

app = typer.Typer(
    cls=Root,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Data deletion for machine learning: take a person out of every data set and model, "
    "and prove it.",
    epilog="Start with `erasable init`. Every command has --json, --workspace and --help.",
)


@app.callback()
def _options() -> None:
    """Have a group, even were there but one command."""


for group in (
    site, moving, backups, datasets, models, selection, requests, workers, domains, evidence,
    people,
):  # fmt: skip
    group.register(app)
