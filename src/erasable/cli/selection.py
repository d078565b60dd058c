"""`erasable select`: choose the records to acquire, in view of deletions to come."""

from __future__ import annotations

import contextlib
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from erasable.cli import selection_terms as terms
from erasable.cli import show
from erasable.cli.files import perhaps
from erasable.cli.frame import Json, Where, command, fail, opened

if TYPE_CHECKING:
    from erasable.cli.selection_data import Given
    from erasable.cli.selection_run import Chosen

__all__ = ["register"]

OUTPUTS = (".txt", ".csv")
PLOTS = (".svg", ".png", ".pdf")
SCALES = ("standard", "none")
SHOWN = 12
"""Classes that are printed for people."""

_NOTHING = 0.0005  # a share that would be printed as 0.0 %


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
                "--k", metavar="K", help="How many to choose; with --cost, for how much in all."
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
                help="How nearest neighbors are found: euclidean (by default) or cosine.",
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
                help="expected, or cvar:SHARE, the mean of that share of worst cases: cvar:0.2.",
            ),
        ] = "expected",
        samples: Annotated[
            str | None,
            typer.Option(
                metavar="N",
                help="How often it is drawn who stays, where there is no closed form.",
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
        _check_ending("--output", output, OUTPUTS)
        _check_ending("--plot", plot, PLOTS)
        if scale not in SCALES:
            fail(f"--scale is {show.one_line(scale)[:60]!r}; expected standard or none; name one")
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

        from erasable.cli import selection_data, selection_run
        from erasable.cli.identities import gathered

        before = [] if held is None else gathered([], held)
        columns = selection_data.Columns(
            id_column, subject, target, cost, terms.staying_column(staying),
            None if features is None else [each.strip() for each in features.split(",")],
        )  # fmt: skip
        with perhaps(output, where) as ids_file, perhaps(plot, where) as plot_file:
            given = selection_data.read(
                source, columns, categories=utility == "naive-bayes", scaled=scale == "standard"
            )
            worth = terms.utility(utility, metric, n_neighbors, given.X.shape[1])

            def past(name: str, since: datetime | None) -> Any:
                return opened(where).history(name, since=since)

            model, told = terms.Who(staying, past).model(given)
            chosen = selection_run.choose(
                given, before, utility=worth, k=budget, staying=model, objective=goal, seed=drawn
            )
            if ids_file is not None:
                ids_file.write_text(_as_text(chosen, id_column, str(output)), encoding="utf-8")
            if plot_file is not None:
                chosen.draw(plot_file, str(plot).rpartition(".")[2], drawn)
        if as_json:
            _print_json(given, chosen, told, output, plot)
            return
        with contextlib.redirect_stdout(sys.stdout if output is not None else sys.stderr):
            _print_summary(given, chosen, told)
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


def _as_text(chosen: Chosen, id_column: str | None, path: str) -> str:
    if Path(path).suffix == ".txt":
        return "".join(f"{each}\n" for each in chosen.ids)
    import csv
    import io

    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow([id_column or "row", "gain"])
    rows.writerows(zip(chosen.ids, map(repr, chosen.gains), strict=True))
    return written.getvalue()


def _print_json(
    given: Given, chosen: Chosen, told: list[str], output: str | None, plot: str | None
) -> None:
    show.print_json(
        {
            "n_records": len(given.ids),
            "n_selected": len(chosen.ids),
            "selected": chosen.ids if output is None else [],
            "features": given.features,
            "left_out": given.left_out,
            "scaled": given.scaled,
            "history": told,
            "worth": chosen.worth,
            "balance": chosen.balance,
            "output": output,
            "plot": plot,
        }
    )


def _print_summary(given: Given, chosen: Chosen, told: list[str]) -> None:
    pairs = [("chosen", f"{len(chosen.ids):,} of {show.words(len(given.ids), 'record')}")]
    pairs.append(("compared by", _features(given)))
    if given.left_out:
        names = ", ".join(given.left_out)
        pairs.append(
            ("left out", f"{names}: no numbers; text that --features names makes categories")
        )
    pairs += [("history", each) for each in told]
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


def _features(given: Given) -> str:
    n_texts = len(given.texts)
    n_numbers = len(given.features) - n_texts
    numbers = show.words(n_numbers, "column") + " of numbers"
    if given.scaled:
        numbers += ", scaled to mean 0 and standard deviation 1"
    texts = f"{show.words(n_texts, 'column')} of text, as categories"
    return "; ".join([numbers] * bool(n_numbers) + [texts] * bool(n_texts))


def _print_worth(chosen: Chosen) -> None:
    worst = chosen.worth[0].worst is not None
    rows = [
        (
            each.selection, _value(each.expected, each.expected_error),
            *([_value(each.worst, each.worst_error)] if worst else []),
            _value(each.without_deletions, 0.0),
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
        both = (ours.expected, theirs.expected), (ours.without_deletions, theirs.without_deletions)
        if worst:
            both = ((ours.worst or 0.0, theirs.worst or 0.0), both[1])
        told = [f"{_change(a, b)} {when}" for (a, b), when in zip(both, _WHEN[worst], strict=True)]
        show.line()
        show.line(f"to anticipate deletions yields {told[0]}, {told[1]}")


_WHEN = {
    False: ("after deletions", "if nobody leaves"),
    True: ("in the worst cases", "if nobody leaves"),
}


def _change(ours: float, theirs: float) -> str:
    share = ours / theirs - 1 if theirs > 0 else float(ours > theirs)
    if abs(share) < _NOTHING:
        return "as much"
    return f"{abs(share):.1%} {'more' if share > 0 else 'less'}"


def _value(value: float | None, error: float | None) -> str:
    number = f"{value:,.2f}" if abs(value or 0.0) >= 100 else f"{value:.4f}"
    return f"{number} (exact)" if not error else f"{number} ± {error:.2g}"


def _share(count: int, share: float) -> str:
    return f"{count:,} ({share:.1%})"
