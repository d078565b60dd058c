"""What was aimed at, what was measured, and whether the aim is met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import paper
import tables
from contenders import TITLES
from data import SOURCES
from results import NONE, Results, over, significant, table


@dataclass(frozen=True)
class Aim:
    """One aim; `met` is None where nothing was measured."""

    what: str
    aim: str
    measured: str
    met: bool | None


def _at_least(what: str, aim: float, values: list[float], unit: str) -> Aim:
    text = f"at least {aim:.3g}{unit}"
    if not values:
        return Aim(what, text, NONE, None)
    value = float(np.mean(values))
    return Aim(what, text, f"{significant(value)}{unit}", value >= aim)


def speedups(results: Results) -> Iterator[Aim]:
    """Yield the speed-ups over 1,000 refits."""
    for data, aims in paper.SPEEDUPS.items():
        for model, aim in aims.items():
            values = over(results.stream(data, model), lambda run: run["speedup"])
            what = f"{SOURCES[data].title}: {TITLES[model]}, speed-up"
            yield _at_least(what, aim, values, " x")
    for data, source in SOURCES.items():
        alone = over(results.stream(data, "kmeans"), lambda run: run["speedup"])
        behind = over(results.stream(data, "pipeline"), lambda run: run["speedup"])
        share = [float(np.mean(behind) / np.mean(alone))] if alone and behind else []
        what = f"{source.title}: {TITLES['pipeline']}, share of KMeans' speed-up"
        yield _at_least(what, paper.PIPELINE, share, "")


def next_speedups(results: Results) -> Iterator[Aim]:
    """Yield the next aim of KMeans."""
    for data, source in SOURCES.items():
        values = over(results.stream(data, "kmeans"), lambda run: run["speedup"])
        yield _at_least(f"{source.title}: KMeans, speed-up", paper.NEXT_SPEEDUP, values, " x")


def costs(results: Results) -> Iterator[Aim]:
    """Yield fits and batches."""
    for data, model in results.measured():
        cell = results.stream(data, model)
        assert cell is not None
        title = f"{SOURCES[data].title}: {TITLES[model]}"
        ratio = float(np.mean(tables.fit_ratio(cell)))
        aim, measured = f"at most {paper.FIT} of scikit-learn's", significant(ratio)
        yield Aim(f"{title}, fit", aim, measured, ratio <= paper.FIT)
        of_singles, of_fit = tables.batch_shares(cell, "fresh")
        met = of_singles <= paper.BATCH_OF_SINGLES or of_fit <= paper.BATCH_OF_FIT
        measured = f"{100 * of_singles:.1f} %, {100 * of_fit:.1f} %"
        aim = "at most 5 % of the singles or 15 % of a fit"
        yield Aim(f"{title}, one call for all", aim, measured, met)


def qualities(results: Results) -> Iterator[Aim]:
    """Yield losses over seeds."""
    for data, source in SOURCES.items():
        cell = results[f"quality-{data}"]
        for model in tables.OWN:
            aim = paper.quality_aim(data, model)
            what, text = (
                f"{source.title}: {TITLES[model]}, loss",
                f"at most {aim} of scikit-learn's",
            )
            value = tables.quality_ratio(cell, model)[0] if cell else float("nan")
            there = bool(np.isfinite(value))
            yield Aim(
                what, text, f"{value:.4f}" if there else NONE, value <= aim if there else None
            )
        if cell and cell["differences"]:
            worst = max(cell["differences"])
            what = f"{source.title}: KMeans, loss from the same seeds"
            aim = f"equal to {paper.SAME_SEEDS:g}"
            yield Aim(what, aim, f"differs by {worst:.1g}", worst <= paper.SAME_SEEDS)


def imports(results: Results) -> Iterator[Aim]:
    """Yield import time and compiling."""
    cell = results["imports"]
    if cell is None:
        return
    ours, theirs = (cell["import"][f"{name}.cluster"] for name in ("erasable", "sklearn"))
    measured = f"{ours:.2f} s against {theirs:.2f} s"
    aim = f"at most {paper.IMPORT} s on top of sklearn.cluster"
    yield Aim("import erasable.cluster", aim, measured, ours - theirs <= paper.IMPORT)
    compiled = cell["second process"]["compiled"]
    measured = f"{compiled} functions compiled"
    yield Aim("a second process", "compiles nothing", measured, compiled == 0)


def _word(met: bool | None) -> str:
    return {True: "met", False: "**missed**", None: "not measured"}[met]


def summary(results: Results) -> str:
    """Say in a few lines which aims are met."""
    groups = {
        "speed-ups": list(speedups(results)),
        "fits and batches": list(costs(results)),
        "quality": list(qualities(results)),
        "import and compiling": list(imports(results)),
    }
    lines = []
    for label, aims in groups.items():
        met, missed = ([a for a in aims if a.met is verdict] for verdict in (True, False))
        absent = len(aims) - len(met) - len(missed)
        text = f"- {label}: {len(met)} of {len(met) + len(missed)} aims met"
        lines.append(text + (f", {absent} not measured" if absent else ""))
        lines += [f"  - missed: {aim.what}: {aim.measured} ({aim.aim})" for aim in missed]
    further = list(next_speedups(results))
    reached = [a.what.partition(":")[0] for a in further if a.met]
    text = f"- the next aim, {paper.NEXT_SPEEDUP} x for KMeans everywhere, is reached on "
    lines.append(text + (", ".join(reached) if reached else "none of the data sets") + ".")
    return "\n".join(lines)


def aims_table(results: Results) -> str:
    """Write the issue of every aim."""
    aims = [*speedups(results), *qualities(results), *costs(results), *imports(results)]
    rows = [[aim.what, aim.aim, aim.measured, _word(aim.met)] for aim in aims]
    return table(["what", "aim", "measured", ""], rows, left=(0, 1, 3))
