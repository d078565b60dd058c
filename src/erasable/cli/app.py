"""All commands in one application; each group of commands is in a module of its own."""

from __future__ import annotations

from typing import Annotated

import typer

import erasable.cli.datasets as datasets
import erasable.cli.domains as domains
import erasable.cli.evidence as evidence
import erasable.cli.models as models
import erasable.cli.people as people
import erasable.cli.requests as requests
import erasable.cli.selection as selection
import erasable.cli.targets as targets
import erasable.cli.workers as workers
import erasable.cli.workspaces as workspaces
from erasable import __version__
from erasable.cli.frame import Root

app = typer.Typer(
    cls=Root,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Data deletion for machine learning: take a person out of every data set and model, "
    "and prove it.",
    epilog="Start with `erasable init`. Every command has --json, --workspace and --help.",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"erasable {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options of `erasable` itself."""


for group in (
    workspaces, datasets, models, selection, requests, workers, domains, evidence,
    people, targets,
):  # fmt: skip
    app.add_typer(group.app)
