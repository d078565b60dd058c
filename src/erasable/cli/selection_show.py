"""How a selection is printed: for people, for programs, and into files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from erasable.cli import show

if TYPE_CHECKING:
    from erasable.cli.selection_data import Given
    from erasable.cli.selection_run import Chosen

__all__ = ["as_text", "print_json", "print_summary"]

SHOWN = 12
"""Classes that are printed for people."""
NAMED = 10
"""Columns that are named for people."""

_NOTHING = 0.0005  # a share that would be printed as 0.0 %


def as_text(chosen: Chosen, id_column: str | None, path: str) -> str:
    r"""Return what is written into a file: ids, or, for .csv, what each added as well.

    Examples
    --------
    >>> from erasable.cli.selection_run import Chosen
    >>> as_text(Chosen(["v7", "v2"], [3.0, 1.5], [], [], {}, None), "visit", "chosen.csv")
    'visit,gain\nv7,3.0\nv2,1.5\n'
    """
    if Path(path).suffix == ".txt":
        return "".join(f"{each}\n" for each in chosen.ids)
    import csv
    import io

    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow([id_column or "row", "gain"])
    rows.writerows(zip(chosen.ids, map(repr, chosen.gains), strict=True))
    return written.getvalue()


def print_json(
    given: Given, chosen: Chosen, told: list[str], output: str | None, plot: str | None
) -> None:
    """Print one object; ids are in it where they went to no file."""
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


def print_summary(given: Given, chosen: Chosen, told: list[str]) -> None:
    """Print what was chosen of what, what it is worth, and who is chosen."""
    pairs = [("chosen", f"{len(chosen.ids):,} of {show.words(len(given.ids), 'record')}")]
    numbers = [name for name in given.features if name not in given.texts]
    if numbers:
        how = "scaled to mean 0 and standard deviation 1" if given.scaled else "as they are"
        pairs.append(("numbers", f"{_names(numbers)}; {how}"))
    if given.texts:
        pairs.append(("categories", _names(given.texts)))
    if given.left_out:
        why = "these are no numbers, and text has to be named with --features"
        pairs.append(("left out", f"{_names(given.left_out)}; {why}"))
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


def _names(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - NAMED:,} more" if len(columns) > NAMED else ""
    return f"{', '.join(columns[:NAMED])}{more}"


def _print_worth(chosen: Chosen) -> None:
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
