"""The section "Measured" of docs/workspace.md, from what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workspace_mix import MODELS, N_FEATURES, WORDS_EACH

_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
_SHARED = (
    " Others used the machine meanwhile, so wall-clock times and requests per second are not "
    "meaningful and are omitted."
)
_REASONS = (
    "A deletion changes the inverse document frequencies, so that all texts get new weights and "
    "the regression after them has to converge again. So many records change the first round of "
    "boosting, or an edge of its bins, and it learns all rounds again. Every accelerator is read, "
    "and none is written: the next deletion of few records rebuilds it."
)
_BOOSTING = (
    "Both boostings have 40 rounds of 0.2, scikit-learn's with its 31 leaves, erasable's "
    "with `max_depth=9` and `n_thresholds=64`, with which [it predicts about as "
    "well](how-to/boosting.md#what-it-costs)."
)


def cpu_of(models: dict[str, dict[str, float]]) -> float:
    """Return the seconds of the processor that all models take."""
    return sum(each["cpu"] for each in models.values())


def section(runs: list[dict[str, Any]]) -> str:
    """Write it.

    Parameters
    ----------
    runs : list of dict
        As `workspace.measure` returns them, the largest last.
    """
    *smaller, found = runs
    backends = [each for each in _NAMES if each in found]
    refit = found["refit"]
    fits = cpu_of(refit["models"])
    data = refit["rewriting"]["cpu"] + refit["making"]["cpu"]
    rows = [
        f"| {name} | {' | '.join(shown)} |"
        for name, shown, _ in _totals(found, backends, fits, data)
    ]
    server = without = ""
    if "postgres" in backends:
        server = f"; PostgreSQL {found['server']} on the same machine, as it is installed"
        without = ", without the server's"
    lines = [
        "## Measured",
        "",
        "<!-- Written by benchmarks/workspace.py; do not edit. -->",
        "",
        f"{found['records']:,} records of {found['subjects']:,} people ({N_FEATURES} numbers, two "
        f"targets, a text of some {WORDS_EACH} words each), ten models, one thread. "
        f"{found['requests']:,} people, drawn at random, ask to be erased: "
        f"{found[backends[0]]['process']['records']:,} records, in one batch. The alternative "
        "without a workspace is to read the Parquet file, write it without these people "
        f"({data:.1f} s), and fit the ten models with scikit-learn, with the same parameters "
        f"({fits:.1f} s). Seconds are processor times. {_BOOSTING}",
        "",
        f"| | {' | '.join(_NAMES[each] for each in backends)} |",
        f"|---|{'---:|' * len(backends)}",
        *rows,
        "",
        *_why(found, backends),
        "",
        *_of_smaller(smaller),
        "The work of the batch beside the models is in the line before the last: it finds the "
        "records, rewrites the data, puts everything in place in one transaction, purges, and "
        "signs the receipts. The first model that needs a column reads it for the others."
        + (
            " Every model was then trained again on the remaining records, and is equal bit for "
            "bit."
            if "verify" in found
            else ""
        ),
        "",
        *_table(found, backends),
        "",
        f"{found['machine']}{server}. Every phase is a separate process; peaks are of the process"
        f"{without}.{_SHARED if found['shared'] else ''}",
        "",
    ]
    return "\n".join(lines)


def verdict(found: dict[str, Any]) -> str:
    """Say which aims are met."""
    backends = [each for each in _NAMES if each in found]
    fits = cpu_of(found["refit"]["models"])
    data = found["refit"]["rewriting"]["cpu"] + found["refit"]["making"]["cpu"]
    return "\n".join(
        f"{name}: {', '.join(shown)} ({aim})"
        for name, shown, aim in _totals(found, backends, fits, data)
        if aim
    )


def _totals(
    found: dict[str, Any], backends: list[str], fits: float, data: float
) -> Iterator[tuple[str, list[str], str]]:
    """Yield what was measured of all of it, for each backend, and the aim with its verdict."""
    most = found["clients"]
    rows = [
        (
            "time of the batch divided by that of scikit-learn's fits", "below 0.25", "{:.2f}",
            lambda b: b["process"]["cpu"] / fits, lambda value: value < 0.25,
        ),
        (
            "the same, divided by that of fits, reading and writing", "", "{:.2f}",
            lambda b: b["process"]["cpu"] / (fits + data), None,
        ),
        (
            "peak memory, fitting", "below 4 GiB", "{:.2f} GiB",
            lambda b: b["fit"]["peak_gib"], lambda value: value < 4,
        ),
        (
            "peak memory, the batch", "below 4 GiB", "{:.2f} GiB",
            lambda b: b["process"]["peak_gib"], lambda value: value < 4,
        ),
    ]  # fmt: skip
    on_the_wall = [
        (
            "the first, on the wall", "", "{:.2f}",
            lambda b: b["process"]["wall"] / sum(
                each["wall"] for each in found["refit"]["models"].values()
            ), None,
        ),
        (
            "requests acknowledged a second, ten in a transaction", "1,000", "{:,.0f}",
            lambda b: b["acknowledge_1"]["per_second"], lambda value: value >= 1000,
        ),
        (
            f"the same, {most} clients at once", "1,000", "{:,.0f}",
            lambda b: b[f"acknowledge_{most}"]["per_second"], lambda value: value >= 1000,
        ),
        (
            "`erasable status`", "0.7 s", "{:.2f} s",
            lambda b: b["start"]["status"], lambda value: value < 0.7,
        ),
    ]  # fmt: skip
    for name, aim, form, value_of, met in rows + ([] if found["shared"] else on_the_wall):
        shown, good = [], True
        for each in backends:
            try:
                value = value_of(found[each])
            except KeyError:  # it was left out
                shown.append("")
                continue
            shown.append(form.format(value))
            good &= met is None or met(value)
        yield name, shown, f"aim {aim}: {'met' if good else 'missed'}" if aim else ""


def _why(found: dict[str, Any], backends: list[str]) -> list[str]:
    """Say where the time of the batch goes."""
    batch = found[backends[0]]["process"]
    refit = {name: each["cpu"] for name, each in found["refit"]["models"].items()}
    share = {name: seconds / batch["cpu"] for name, seconds in batch["models"].items()}
    most = sorted(share, key=lambda name: -share[name])[:3]
    told = ", ".join(
        f"{_short(MODELS[name].recipe)} {share[name]:.0%} "
        f"({batch['models'][name] / refit[name]:.2f} of scikit-learn's fit)"
        for name in most
    )
    beside = 1 - sum(share.values())
    return [f"Where the batch's time goes: {told}; beside the models {beside:.0%}. {_REASONS}"]


def _of_smaller(runs: list[dict[str, Any]]) -> Iterator[str]:
    """Say what the batch takes with fewer records, a paragraph each."""
    for found in runs:
        batch = found["sqlite"]["process"]
        fits = cpu_of(found["refit"]["models"])
        beside = batch["cpu"] - sum(batch["models"].values())
        yield (
            f"With {found['records']:,} records of {found['subjects']:,} people, "
            f"{found['requests']:,} of whom ask, it is {batch['cpu'] / fits:.2f} of scikit-learn's "
            f"fits: {batch['cpu']:.1f} of {fits:.1f} s, {beside:.1f} s beside the models."
        )
        yield ""


def _table(found: dict[str, Any], backends: list[str]) -> list[str]:
    """Write what every model costs, and all of them."""
    first, refit = found[backends[0]], found["refit"]["models"]
    head = [f"batch, {_NAMES[each]}" for each in backends]
    lines = [
        f"| seconds | what a batch takes | fit | {' | '.join(head)} | scikit-learn's fit |",
        f"|---|---|---:|{'---:|' * len(backends)}---:|",
    ]
    for name, model in MODELS.items():
        batch = [f"{found[each]['process']['models'][name]:.2f}" for each in backends]
        lines.append(
            f"| {_short(model.recipe)} | {model.how} | {first['fit']['models'][name]['cpu']:.2f} "
            f"| {' | '.join(batch)} | {refit[name]['cpu']:.2f} |"
        )
    others, sums = [], []
    for each in backends:
        done = found[each]["process"]
        others.append(f"{done['cpu'] - sum(done['models'].values()):.2f}")
        sums.append(f"{done['cpu']:.2f}")
    total, fit = cpu_of(refit), cpu_of(first["fit"]["models"])
    lines.append(f"| beside the models | | | {' | '.join(others)} | |")
    lines.append(f"| all | | {fit:.2f} | {' | '.join(sums)} | {total:.2f} |")
    return lines


def _short(recipe: str) -> str:
    """Return the classes of a recipe."""
    return " → ".join(f"`{each.rpartition('.')[2]}`" for each in recipe.split(","))
