"""Command `erasable select`: choose records to acquire, in view of later deletions."""

from __future__ import annotations

import contextlib
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

import erasable.cli.options as options
import erasable.cli.show as show
from erasable.cli.files import ids_text, perhaps
from erasable.cli.frame import command, opened
from erasable.cli.identities import gathered
from erasable.cli.options import (
    DECIMAL,
    DELIMITER,
    ENCODING,
    FILL,
    FOLDER,
    JSON,
    SEED,
    argument,
    option,
)  # fmt: skip

if TYPE_CHECKING:  # it imports scikit-learn
    from erasable.workspace.selection.choice import ChosenRecords

SHOWN = 12
"""Classes that are printed for people."""

_NOTHING = 0.0005  # a share that would be printed as 0.0 %


def print_json(chosen: ChosenRecords, output: str | None, plot: str | None) -> None:
    """Print one object; it has the ids if they were not written to a file."""
    show.print_json(
        {
            "n_records": chosen.n_records,
            "n_selected": len(chosen.ids),
            "selected": chosen.ids if output is None else [],
            **show.picked(chosen, "features", "left_out", "scaled", "history", "worth", "balance"),
            "output": output,
            "plot": plot,
        }
    )


def print_summary(chosen: ChosenRecords) -> None:
    """Print the choice, its value, and the classes that it has."""
    pairs = [("chosen", f"{len(chosen.ids):,} of {show.words(chosen.n_records, 'record')}")]
    numbers = [name for name in chosen.features if name not in chosen.texts]
    if numbers:
        how = "scaled to mean 0 and standard deviation 1" if chosen.scaled else "as they are"
        pairs.append(("numbers", f"{show.names(numbers)}; {how}"))
    if chosen.texts:
        pairs.append(("categories", show.names(chosen.texts)))
    if chosen.left_out:
        why = "these are no numbers, and text has to be named with --features"
        pairs.append(("left out", f"{show.names(chosen.left_out)}; {why}"))
    pairs += [("history", each) for each in chosen.history]
    show.facts(pairs)
    show.line()
    _print_worth(chosen)
    if chosen.balance:
        show.line()
        show.table(
            ["class", "in the data", "chosen", "of those who stay"],
            [
                (each.group, _share(each.n_data, each.share_data),
                 _share(each.n_selected, each.share_selected), f"{each.share_staying:.1%}")
                for each in chosen.balance[:SHOWN]
            ],
            right="in the data,chosen,of those who stay",
        )  # fmt: skip
        if len(chosen.balance) > SHOWN:
            show.line(f"... {len(chosen.balance) - SHOWN:,} more, chosen more often; see --json")
    show.line()


def _print_worth(chosen: ChosenRecords) -> None:
    worst = chosen.worth[0].worst is not None
    rows = [
        (
            each.selection, _value(each.expected, each.expected_error, each.expected_exact),
            *([_value(each.worst, each.worst_error, False)] if worst else []),
            _value(each.without_deletions, 0.0, True),
        )
        for each in chosen.worth
    ]  # fmt: skip
    columns = [
        "utility",
        "after deletions",
        *(["worst cases"] if worst else []),
        "if nobody leaves",
    ]
    show.table(columns, rows, right=",".join(columns[1:]))
    if len(chosen.worth) == 2:
        ours, theirs = chosen.worth
        after = f"{_change(ours.expected, theirs.expected)} after deletions"
        if ours.worst is not None and theirs.worst is not None:
            after = f"{_change(ours.worst, theirs.worst)} in the worst cases"
        now = _change(ours.without_deletions, theirs.without_deletions)
        show.line()
        show.line(f"to anticipate deletions yields {after}, {now} if nobody leaves")


def _change(ours: float, theirs: float) -> str:
    share = ours / theirs - 1 if theirs > 0 else float(ours > theirs)
    if abs(share) < _NOTHING:
        return "as much"
    return f"{abs(share):.1%} {'more' if share > 0 else 'less'}"


def _value(value: float | None, error: float | None, exact: bool) -> str:
    # Samples that are all alike have no error, and are samples all the same.
    number = f"{value:,.2f}" if abs(value or 0.0) >= 100 else f"{value:.4f}"
    return f"{number} (exact)" if exact else f"{number} ± {error:.2g}"


def _share(count: int, share: float) -> str:
    return f"{count:,} ({share:.1%})"


app = typer.Typer()


@command(
    app,
    "select",
    example="erasable select visits.csv --id visit --target sick --k 200 --staying 0.6",
    panel="Data and models",
)
def choose(
    source: str = argument(
        "SOURCE",
        "The records to choose from: a CSV or TSV file, JSON lines, a Parquet file or a folder of "
        "them, or the URL of a database, such as sqlite:///shop.db#visits.",
    ),
    k: str = option(
        "K", "How many to choose; with --cost, the total cost allowed.", "-k", "--k", default=...
    ),
    staying: str = option(
        "S",
        "How likely owners are to stay: a probability (0.6; 1 anticipates no deletions); one for "
        "each class (yes=0.5,no=1); column:NAME, one for each record; how many of those held stay, "
        "uniform:LOW:HIGH or point:N; a probability that is uncertain, beta-binomial:ALPHA:BETA; "
        "or history:DATASET, what past requests to the workspace say (history:DATASET:2026-03-31, "
        "those since that day).",
        default=...,
    ),
    id_column: str | None = option(
        "COL", "The column that names each record; by default rows are numbered from 0.", "--id"
    ),
    subject: str | None = option(
        "COL",
        "The column that says whose records they are: a person stays or leaves with all of "
        "them. By default each record stays or leaves on its own.",
    ),
    target: str | None = option("COL", "The column of classes; it is not a feature."),
    features: str | None = option(
        "A,B",
        "Columns to compare records by; by default all numeric columns, except those of other "
        "options. Text columns have to be named, and are categories.",
    ),
    fill: str | None = FILL,
    scale: str = option(
        "HOW",
        "standard: numbers are scaled to mean 0 and standard deviation 1, so that no column "
        "outweighs the others by its unit; none: they are used as they are.",
        default="standard",
    ),
    utility: str = option(
        "U",
        "The utility of a selection: nearest-neighbor, naive-bayes, mutual-information, "
        "variance-reduction.",
        default="nearest-neighbor",
    ),
    metric: str | None = option(
        "M",
        "The metric of nearest neighbors: euclidean (the default), sqeuclidean (its square, "
        "as in the paper), or cosine.",
    ),
    n_neighbors: str | None = option(
        "N",
        "Keep only the similarities to the N nearest neighbors: for tables whose pairs do not "
        "fit in memory.",
    ),
    objective: str = option(
        "O",
        "expected, or cvar:SHARE, the mean of that share of worst cases: cvar:0.2, which is "
        "sampled and takes far longer.",
        default="expected",
    ),
    samples: str | None = option(
        "N",
        "Samples of who stays, if there is no closed form; by default 4,612.",
    ),
    held: str | None = option(
        "F",
        "A file with the ids of records of the table that are held already, one a line; - for "
        "standard input. They may be deleted, too.",
    ),
    cost: str | None = option(
        "COL", "The column of the cost of each record; --k is the total cost allowed."
    ),
    seed: str = SEED,
    delimiter: str | None = DELIMITER,
    decimal: str | None = DECIMAL,
    encoding: str | None = ENCODING,
    output: str | None = option(
        "FILE",
        "Write the ids to a file, in the order of choice: .txt, an id a line; or .csv, with "
        "the gain of each.",
    ),
    plot: str | None = option("FILE", "Draw the utility as owners leave: .svg, .png or .pdf."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Choose records to acquire, in view of later deletions; print their ids."""
    options.check_files(output, plot)
    budget = options.whole(k, "--k") if cost is None else options.number(k, "--k")
    drawn = options.whole(seed, "--seed", least=0)
    nearest = None if n_neighbors is None else options.whole(n_neighbors, "--n-neighbors")
    n_samples = None if samples is None else options.whole(samples, "--samples", least=2)
    before = [] if held is None else gathered([], held)

    from erasable.workspace.data.dialects import Dialect
    from erasable.workspace.selection.choice import select

    def history(name: str, since: datetime | None) -> Any:
        return opened(folder).history(name, since=since)

    with perhaps(output, folder) as ids_file, perhaps(plot, folder) as plot_file:
        found = select(
            source, budget, staying, id_column=id_column, subject=subject, target=target,
            features=options.columns(features), fill=fill, scale=scale, utility=utility,
            metric=metric, n_neighbors=nearest, objective=objective, samples=n_samples,
            held=before, cost=cost, random_state=drawn, history=history,
            dialect=Dialect.of(delimiter, decimal, encoding),
        )  # fmt: skip
        if ids_file is not None:
            columns_of = (id_column or "row", "gain")
            ids_file.write_text(
                ids_text(str(output), found.ids, columns_of, found.gains), encoding="utf-8"
            )
        if plot_file is not None:
            found.draw(plot_file, format=str(plot).rpartition(".")[2], seed=drawn)
    if as_json:
        print_json(found, output, plot)
        return
    with contextlib.redirect_stdout(sys.stdout if output is not None else sys.stderr):
        print_summary(found)
        for path in filter(None, (output, plot)):
            show.line(f"wrote {show.one_line(path)}")
    if output is None:
        for each in found.ids:
            show.line(show.one_line(each))
