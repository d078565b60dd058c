"""Figures 23 to 25: a selection that anticipates deletions against one that does not, both judged
on the same draws of who stays, record by record. Nothing was chosen by these draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from command import say
from figures import line, panel
from simulations import Floats, Ints, Mask, Outcome
from threadpoolctl import threadpool_limits

from erasable.selection import Expected, SubsetSelector
from erasable.selection.staying import as_staying
from erasable.selection.utilities import Utility

Columns = Callable[[Mask], Floats]
"""Takes who stays, (n_simulations, n_selected); returns (n_simulations, n_counts)."""
Left = Mapping[str, Mapping[str, Floats]]
"""By who stays, and by selection: what is left, (n_simulations, n_counts)."""
ALL, SOME = "all stay", "stay by s"
BINS = np.linspace(0, 1, 11)
FRESH = 1000  # the seed of the draws that selections are judged by


def both(
    name: str, utility: Utility, X: Any, staying: Floats, k: int, n_samples: int, seed: int
) -> dict[str, Ints]:
    """Choose k records without and with anticipation; the first of the chosen are those for less.

    The lazy optimiser takes gains not to grow, which may be wrong for a reduction of variance.
    """
    chosen = {}
    for label, model in ((name, 1.0), (f"DA{name}", staying)):
        say(f"{k} chosen by {label}")
        selector = SubsetSelector(
            utility, k=k, staying=model, objective=Expected(n_samples), optimizer="lazy",
            random_state=seed,
        )  # fmt: skip
        chosen[label] = selector.fit(X).selected_
    return chosen


def left(
    what: str,
    measure_of: Callable[[Ints], Columns],
    chosen: Mapping[str, Ints],
    staying: Floats,
    n_simulations: int,
) -> dict[str, dict[str, Floats]]:
    """Measure what is left of selections where all stay, and where owners stay by s."""
    draws = as_staying(staying).sample(len(staying), n_simulations, random_state=FRESH)
    found: dict[str, dict[str, Floats]] = {ALL: {}, SOME: {}}
    with threadpool_limits(1):
        for label, rows in chosen.items():
            say(f"{what} after departures: {label}")
            measure = measure_of(rows)
            found[ALL][label] = measure(np.ones((1, len(rows)), dtype=bool))
            found[SOME][label] = measure(draws[:, rows])
    return found


def outcomes(values: Floats) -> list[Outcome]:
    """Describe each column."""
    return [Outcome.of(column) for column in values.T]


def lines_of(found: Left, counts: Sequence[int]) -> list[dict[str, Any]]:
    """Return a line for each selection, where all stay and where owners stay by s."""
    return [
        line(f"{label}, {who}", counts, outcomes(values))
        for who, by_label in found.items()
        for label, values in by_label.items()
    ]


def histogram(chosen: Mapping[str, Ints], staying: Floats) -> list[dict[str, Any]]:
    """Return the outlines of histograms: the share of records by their staying probability."""
    lines = []
    everybody = np.arange(len(staying))
    for label, rows in {"all records": everybody, **chosen}.items():
        s = staying[rows]
        shares = np.histogram(s, BINS)[0] / len(s)
        y = np.concatenate([[0.0], np.repeat(shares, 2), [0.0]])
        lines.append({"label": label, "x": np.repeat(BINS, 2), "y": y, "error": np.zeros(len(y))})
    return lines


def figure(
    title: str,
    metric: str,
    found: Sequence[Left],
    chosen: Mapping[str, Ints],
    staying: Floats,
    counts: Sequence[int],
) -> dict[str, Any]:
    """Return a figure of three panels: the metric, the utility, and who was chosen."""
    name, ours = list(chosen)[:2]
    styles = {
        f"{name}, {ALL}": ("#555555", "--"), f"{ours}, {ALL}": ("#0072b2", "--"),
        f"{name}, {SOME}": ("#555555", "-"), f"{ours}, {SOME}": ("#0072b2", "-"),
        "random, all stay": ("#d55e00", "--"), "random, stay by s": ("#d55e00", "-"),
        "all records": ("#999999", ":"), name: ("#555555", "-."), ours: ("#0072b2", "-."),
    }  # fmt: skip
    panels = [
        panel(title_of_panel, lines_of(each, counts), y)
        for each, title_of_panel, y in zip(
            found, ("metric", "utility"), (metric, "utility left"), strict=True
        )
    ]
    panels.append(panel("who was chosen", histogram(chosen, staying), "share") | {"x": "s"})
    return {
        "kind": "lines", "title": title, "x": "chosen", "y": metric, "panels": panels,
        "columns": 4, "styles": styles,
    }  # fmt: skip


def table(name: str, metric: str, found: Sequence[Left], counts: Sequence[int]) -> dict[str, Any]:
    """Return both selections by number chosen where owners stay by s, and their differences."""
    rows = []
    for at, k in enumerate(counts):
        row = [str(k)]
        for each, digits in zip(found[::-1], (2, 4), strict=True):
            ours, plain = (each[SOME][label][:, at] for label in (f"DA{name}", name))
            more = Outcome.of(ours - plain)
            row += [
                _number(ours.mean(), digits, ours.mean() > plain.mean()),
                _number(plain.mean(), digits, plain.mean() > ours.mean()),
                f"{more.mean:+,.{digits}f} ± {more.error:.{digits}f}",
            ]
        rows.append(row)
    head = ["chosen"]
    for what in ("utility", metric):
        head += [f"{what}: DA{name}", name, "difference"]
    return {"head": head, "rows": rows}


def _number(value: float, digits: int, bold: bool) -> str:
    text = f"{value:,.{digits}f}"
    return f"**{text}**" if bold else text


def facts(
    name: str,
    found: Sequence[Left],
    chosen: Mapping[str, Ints],
    staying: Floats,
    counts: Sequence[int],
) -> dict[str, Any]:
    """Return what the words name: for how many numbers chosen who is ahead, and by how much."""
    made: dict[str, Any] = {"n_counts": len(counts)}
    for key, each in zip(("metric", "utility"), found, strict=True):
        ours, plain = f"DA{name}", name
        more = outcomes(each[SOME][ours] - each[SOME][plain])
        ratio = [one.mean / one.error for one in more]
        made[f"{key}_won"] = sum(one.mean > 0 for one in more)
        made[f"{key}_sure"] = sum(one > 2 for one in ratio)
        made[f"{key}_lost"] = sum(one < -2 for one in ratio)
        made[f"{key}_least"] = f"{min(ratio):,.0f}"
        whole = (each[ALL][ours] - each[ALL][plain])[0]
        made[f"{key}_won_whole"] = int((whole > 0).sum())
        made[f"{key}_lost_whole"] = int((whole < 0).sum())
    utility = found[1][SOME]
    share = utility[f"DA{name}"].mean(axis=0) / utility[name].mean(axis=0) - 1
    made["share_least"] = f"{100 * share.min():.1f} %"
    made["share_most"] = f"{100 * share.max():.1f} %"
    made["mean_s"] = f"{staying.mean():.2f}"
    for key, label in (("ours", f"DA{name}"), ("plain", name)):
        made[f"{key}_mean_s"] = f"{staying[chosen[label]].mean():.2f}"
        made[f"{key}_least_s"] = f"{staying[chosen[label]].min():.2f}"
    return made
