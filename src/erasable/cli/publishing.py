"""`erasable model publish`: have a model registered where it is used."""

from __future__ import annotations

from typing import Annotated

import typer

from erasable.cli import show
from erasable.cli.frame import Folder, Json, command, opened


def register(group: typer.Typer) -> None:
    """Add the command to the group.

    Examples
    --------
    >>> group = typer.Typer()
    >>> register(group)
    >>> [each.name for each in group.registered_commands]
    ['publish']
    """

    @command(
        group,
        "publish",
        example="erasable model publish risk --to mlflow:risk --tracking-uri http://mlflow:5000",
    )
    def publish(
        name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the model.")],
        to: Annotated[
            str,
            typer.Option(
                metavar="mlflow:NAME",
                help="A registered model of MLflow, which is made. `none` ends it: what is "
                "registered stays.",
            ),
        ],
        tracking_uri: Annotated[
            str | None,
            typer.Option(
                metavar="URI",
                help="Of MLflow, without a password; by default what MLFLOW_TRACKING_URI says each "
                "time.",
            ),
        ] = None,
        delete_superseded: Annotated[
            bool,
            typer.Option(
                "--delete-superseded",
                help="Delete the versions before, and their files, whenever there is a new one.",
            ),
        ] = False,
        folder: Folder = ".",
        as_json: Json = False,
    ) -> None:
        """Register a model in MLflow, now and after every fit and erasure that changes it."""
        if to == "none":
            opened(folder).stop_publishing(name)
            if as_json:
                show.print_json({"model": name, "to": None})
                return
            show.line(f"{name} is published no longer; what is registered stays")
            return
        done, messages = opened(folder).publish(
            name, to, tracking_uri=tracking_uri, delete_superseded=delete_superseded
        )
        show.warn(messages)
        if as_json:
            show.print_json(
                {
                    "model": name, "to": done.to, "version": done.version,
                    "registered": done.registered, "superseded": done.superseded,
                    "warnings": messages,
                }
            )  # fmt: skip
            return
        show.line(f"{name} version {done.version} is version {done.registered} of {done.to}")
        if not delete_superseded:
            show.line("versions before the newest stay there, with what they learned")
