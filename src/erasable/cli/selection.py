"""`erasable select`: choose the records to acquire, in view of deletions to come."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from erasable.cli import selection_terms as terms
from erasable.cli import show
from erasable.cli.files import perhaps
from erasable.cli.frame import Json, Where, command, fail, opened

if TYPE_CHECKING:
    from erasable.cli.selection_data import Given

__all__ = ["register"]

OUTPUTS = (".txt", ".csv")
PLOTS = (".svg", ".png", ".pdf")
SCALES = ("standard", "none")
LARGE = 2**31
"""Bytes of similarities from which on there is something better."""


def register(app: typer.Typer) -> None:
    """Add the command to the app.

    Examples
    --------
    >>> app = typer.Typer()
    >>> register(app)
    >>> [each.name for each in app.registered_commands]
    ['select']
    """

    @command(
        app,
        "select",
        example="erasable select visits.csv --id visit --target sick --k 200 --staying 0.6",
        panel="Data and models",
    )
    def select(
        source: Annotated[
            str,
            typer.Argument(
                metavar="SOURCE",
                help="The records to choose from: a CSV or TSV file, a Parquet file or a folder "
                "of them, or the URL of a database, such as sqlite:///shop.db#visits.",
            ),
        ],
        k: Annotated[
            str,
            typer.Option(
                "-k",
                "--k",
                metavar="K",
                help="How many to choose; with --cost, for how much in all.",
            ),
        ],
        staying: Annotated[
            str,
            typer.Option(
                metavar="S",
                help="How likely owners are to stay: a probability (0.6; 1 anticipates no "
                "deletions); one for each class (yes=0.5,no=1); column:NAME, one for each record; "
                "how many of those held stay, uniform:LOW:HIGH or point:N; a probability that is "
                "uncertain, beta-binomial:ALPHA:BETA; or history:DATASET, what past requests to "
                "the workspace say (history:DATASET:2026-03-31, those since that day).",
            ),
        ],
        id_column: Annotated[
            str | None,
            typer.Option(
                "--id",
                metavar="COL",
                help="The column that names each record; by default rows are numbered from 0.",
            ),
        ] = None,
        subject: Annotated[
            str | None,
            typer.Option(
                metavar="COL",
                help="The column that says whose records they are: a person stays or leaves with "
                "all of them. By default each record does on its own.",
            ),
        ] = None,
        target: Annotated[
            str | None,
            typer.Option(metavar="COL", help="The column of classes, which is no feature."),
        ] = None,
        features: Annotated[
            str | None,
            typer.Option(
                metavar="A,B",
                help="Columns to compare records by; by default every numeric one but those that "
                "other options name. Text that is named is taken as categories.",
            ),
        ] = None,
        fill: Annotated[
            str | None,
            typer.Option(
                metavar="HOW",
                help="Fill gaps in features in, as an imputer does before a model: mean, median or "
                "most_frequent. By default gaps are refused.",
            ),
        ] = None,
        scale: Annotated[
            str,
            typer.Option(
                metavar="HOW",
                help="standard: numbers are brought to mean 0 and standard deviation 1, so that "
                "no column outweighs the others by its unit; none: they are taken as they are.",
            ),
        ] = "standard",
        utility: Annotated[
            str, typer.Option(metavar="U", help=f"What is sought: {', '.join(terms.UTILITIES)}.")
        ] = "nearest-neighbor",
        metric: Annotated[
            str | None,
            typer.Option(
                metavar="M",
                help="How nearest neighbors are found: euclidean (by default), sqeuclidean (its "
                "square, as in the paper), or cosine.",
            ),
        ] = None,
        n_neighbors: Annotated[
            str | None,
            typer.Option(
                "--n-neighbors",
                metavar="N",
                help="Keep the similarities to the N nearest alone: for tables whose pairs do not "
                "fit in memory.",
            ),
        ] = None,
        objective: Annotated[
            str,
            typer.Option(
                metavar="O",
                help="expected, or cvar:SHARE, the mean of that share of worst cases: cvar:0.2, "
                "which is sampled and takes far longer.",
            ),
        ] = "expected",
        samples: Annotated[
            str | None,
            typer.Option(
                metavar="N",
                help="How often it is drawn who stays, where there is no closed form; by default "
                "4,612 times.",
            ),
        ] = None,
        held: Annotated[
            str | None,
            typer.Option(
                metavar="F",
                help="A file with an id a line, - for standard input, of records of the table that "
                "are held already; they may be deleted, too.",
            ),
        ] = None,
        cost: Annotated[
            str | None,
            typer.Option(metavar="COL", help="The column of what each record costs; --k is paid."),
        ] = None,
        seed: Annotated[
            str, typer.Option(metavar="N", help="For what is drawn: the same, the same choice.")
        ] = "0",
        output: Annotated[
            str | None,
            typer.Option(
                metavar="FILE",
                help="Write the ids there, in the order of choice: .txt, an id a line; or .csv, "
                "with what each one added.",
            ),
        ] = None,
        plot: Annotated[
            str | None,
            typer.Option(
                metavar="FILE",
                help="Draw what the utility falls to as owners leave: .svg, .png or .pdf.",
            ),
        ] = None,
        where: Where = ".",
        as_json: Json = False,
    ) -> None:
        """Choose the records to acquire whose value survives the deletions to come; print ids."""
        from erasable.workspace.data.filling import check_fill

        _check_ending("--output", output, OUTPUTS)
        _check_ending("--plot", plot, PLOTS)
        if scale not in SCALES:
            fail(f"--scale is {show.one_line(scale)[:60]!r}; expected standard or none; name one")
        check_fill(fill)
        if utility not in terms.UTILITIES:
            terms.utility(utility, metric, n_neighbors, 1)
        if utility == "naive-bayes" and target is None:
            fail(
                "naive-bayes counts by class, and there is no --target; expected the column of "
                "classes; name it with --target"
            )
        budget = terms.whole(k, "--k") if cost is None else terms.number(k, "--k")
        drawn = terms.whole(seed, "--seed", least=0)
        goal = terms.objective(objective, samples)

        from erasable.cli import selection_data, selection_run, selection_show
        from erasable.cli.domain_terms import columns as columns_named
        from erasable.cli.identities import gathered

        before = [] if held is None else gathered([], held)
        columns = selection_data.Columns(
            id_column, subject, target, cost, terms.staying_column(staying),
            columns_named(features),
        )  # fmt: skip
        with perhaps(output, where) as ids_file, perhaps(plot, where) as plot_file:
            given = selection_data.read(
                source, columns, categories=utility == "naive-bayes", scaled=scale == "standard",
                fill=fill,
            )  # fmt: skip
            show.warn(given.told)
            if utility == "nearest-neighbor" and n_neighbors is None:
                _warn_of_size(given)
            worth = terms.utility(utility, metric, n_neighbors, given.X.shape[1])

            def past(name: str, since: datetime | None) -> Any:
                return opened(where).history(name, since=since)

            model, told = terms.Who(staying, past).model(given)
            chosen = selection_run.choose(
                given, before, utility=worth, k=budget, staying=model, objective=goal, seed=drawn
            )
            if ids_file is not None:
                ids_file.write_text(
                    selection_show.as_text(chosen, id_column, str(output)), encoding="utf-8"
                )
            if plot_file is not None:
                chosen.draw(plot_file, str(plot).rpartition(".")[2], drawn)
        if as_json:
            selection_show.print_json(given, chosen, told, output, plot)
            return
        with contextlib.redirect_stdout(sys.stdout if output is not None else sys.stderr):
            selection_show.print_summary(given, chosen, told)
            for path in filter(None, (output, plot)):
                show.line(f"wrote {show.one_line(path)}")
        if output is None:
            for each in chosen.ids:
                show.line(show.one_line(each))


def _check_ending(option: str, path: str | None, endings: tuple[str, ...]) -> None:
    if path is not None and not path.endswith(endings):
        fail(
            f"{option} is {show.one_line(path)[:60]!r}; expected a file that ends in "
            f"{', '.join(endings)}; name it so"
        )


def _warn_of_size(given: Given) -> None:
    counts = Counter(given.y or ["all"] * len(given.ids)).values()
    n_bytes = sum(8 * count**2 for count in counts)
    if n_bytes > LARGE:
        show.warn(
            [
                f"the similarities of all pairs take {n_bytes / 2**30:,.1f} GiB; --n-neighbors 64 "
                "keeps those to the nearest, and is faster"
            ]
        )
