"""Display of a selection: for people, for programs, and into files."""

from __future__ import annotations

from erasable.cli import show
from erasable.workspace.selection.choice import Selection

SHOWN = 12
"""Classes that are printed for people."""

_NOTHING = 0.0005  # a share that would be printed as 0.0 %


def print_json(chosen: Selection, output: str | None, plot: str | None) -> None:
    """Print one object; ids are in it where they went to no file."""
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


def print_summary(chosen: Selection) -> None:
    """Print what was chosen of what, what it is worth, and who is chosen."""
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


def _print_worth(chosen: Selection) -> None:
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
