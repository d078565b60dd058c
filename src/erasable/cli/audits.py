"""`erasable audit`: test whether a model reveals its records, or has forgotten erased ones."""

from __future__ import annotations

from typing import Any

import typer

from erasable.cli import options, show
from erasable.cli.files import perhaps
from erasable.cli.frame import command, fail, opened, request_id
from erasable.cli.models import NAME
from erasable.cli.options import FOLDER, JSON, SEED, option

app = typer.Typer()


@command(app, "audit", example="erasable audit risk --fresh new.csv", panel="Evidence")
def audit(
    name: str = NAME,
    fresh: str | None = option(
        "DATASET_OR_FILE",
        "Records from the same source that the model has not learned from: another data set, or a "
        "source as for `dataset add`.",
    ),
    deleted: str | None = option(
        "REQUEST",
        "Test whether the model has forgotten what this request erased; without it, whether the "
        "model reveals the records that it has learned from, which needs --fresh.",
    ),
    records: str | None = option(
        "FILE",
        "With --deleted: the erased records, where the model forgets approximately. The workspace "
        "no longer has them.",
    ),
    attack: str | None = option("A", "On the records of a model: rmia, by default, or lira."),
    references: str | None = option(
        "N",
        "How many models are trained to compare with: by default 4 for rmia, 64 for lira, and as "
        "many as --level needs for a deletion.",
    ),
    level: str = option("P", "The probability of a false alarm.", default="0.05"),
    ask: str | None = option(
        "CMD",
        "Of a model that a program of yours made: the command that asks it, with {model}, its "
        "file, {data}, a CSV file of records, and {out}, where it writes a CSV file with the "
        "probability of each class, in the order of their names.",
    ),
    target: str | None = option("COLUMN", "With --ask: what the model predicts."),
    html: str | None = option(
        "FILE", "Write a page there, complete in itself. It names the most exposed records."
    ),
    seed: str = SEED,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Test whether a model reveals its records, or has forgotten those of a request."""
    drawn = options.whole(seed, "--seed", least=0)
    error = options.number(level, "--level")
    if error >= 1.0:
        fail(f"--level is {show.one_line(level)[:60]!r}; expected a probability below 1")
    n_models = None if references is None else options.whole(references, "--references")
    asked = None if deleted is None else request_id(deleted)
    with perhaps(html, folder) as place:
        found: Any = opened(folder).audit(
            name, fresh=fresh, deleted=asked, records=records, attack=attack,
            references=n_models, level=error, seed=drawn, ask=ask, target=target,
        )  # fmt: skip
        if place is not None:
            found.to_html(place)
    if show.printed(as_json, found.to_dict()):
        return
    for line in str(found).splitlines():
        show.line(line)
    if html is not None:
        show.line(f"wrote {show.one_line(html)}")
