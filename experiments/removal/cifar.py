"""CIFAR-10 without cats: figure 3, its row of table 2, table 5 (left), tables 6 and 7.

Usage: ``python experiments/removal/cifar.py [--quick | --full] [--device cuda] [--minutes 20]``.
Outcomes of trainings are stored in `build/removal`, and are not trained again. What was not trained
for every seed when the minutes are over is not on the page. It needs torch.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib.util
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

import gaussians
import images
import numpy as np
import removal_page
from images import ALL, Job, Size, Store
from measured import SELECTIVE, Measured, Plan, between, missed, share, verdict
from shared import STYLES, command, data_sets, figures, line, spread

from erasable.core.errors import UnlearnableError

TARGET, ABLATED, AT_MOST = 0.2, 0.6, 0.25
PAPER_EPOCHS = 10
CURVES = ("Retrain", "NegGrad+", "SalUn", "FineTune")
OTHERS = ("NegGrad+, 1 epoch", "NegGrad+", "NegGrad+, 3 epochs", "SalUn, 1 epoch", "SalUn",
          "SalUn, 3 epochs", "FineTune", "NegGrad+ as printed", "SalUn as printed", "Scrub",
          "NewtonStep")  # fmt: skip
FEATURES = {"random": "random", "network": "lr-maha", "pixels": "lr-maha, pixels"}
CORESETS = ("random", "craig", "gradmatch", "ccs", "lr-maha")
PAPER_FIVE = {
    "random": {"Retrain": 80, "NegGrad+": 88, "SalUn": 68, "FineTune": 98},
    "coreset": {"Retrain": 75, "NegGrad+": 85, "SalUn": 75, "FineTune": 98},
    "selective": {"Retrain": 60, "NegGrad+": 70, "SalUn": 55, "FineTune": 88},
}
PAPER_SIX = {"random": "40.5 ± 2.5", "network": "21.6 ± 1.9", "pixels": "31.8 ± 2.0"}
PAPER_SEVEN = {"random": "39.2 ± 1.9", "craig": "36.3 ± 2.7", "gradmatch": "35.5 ± 4.2",
               "ccs": "40.9 ± 4.1", "lr-maha": "24.5 ± 1.4"}  # fmt: skip


TWO = ("random", "lr-maha")
REDUCED = Plan(
    "reduced", Size(side=16, width=16, n_epochs=3, batch_size=32), 3,
    (
        (("Retrain",), TWO, (1.0, 0.6)),
        (("NegGrad+", "SalUn"), (ALL,), (1.0,)),
        (("SalUn",), TWO, (0.6,)),
        (("Retrain",), TWO, (0.3,)),
        (("NegGrad+",), TWO, (0.6, 0.3)),
        (("SalUn",), TWO, (0.3,)),
        (OTHERS, (ALL,), (1.0,)),
        (("Retrain",), ("maha-mu2",), (0.3, 0.6)),
        (("Retrain", "NegGrad+", "SalUn"), TWO, (0.8,)),
        (("FineTune",), TWO, (0.6,)),
    ),
)  # fmt: skip
THREE = ("random", "coreset", "lr-maha")
AGAIN = Plan(
    "again", REDUCED.size, REDUCED.seeds,
    (
        (("Retrain",), THREE, (1.0, 0.6, 0.3, 0.8)),
        (("Retrain",), ("lr-maha, pixels", *CORESETS), (ABLATED,)),
        (("SalUn",), THREE, (1.0, 0.6, 0.3, 0.8)),
    ),
)  # fmt: skip
"""The coreset column of table 5, and tables 6 and 7."""
SHARES = tuple(round(0.05 * i, 2) for i in range(1, 21))
FULL = Plan(
    "full", Size(n_others=45_000), 30,
    (
        (CURVES, ("random", "coreset", *SELECTIVE), SHARES),
        (OTHERS, (ALL,), (1.0,)),
        (("Retrain",), tuple(FEATURES.values()) + CORESETS, (ABLATED,)),
    ),
)  # fmt: skip
QUICK = Plan(
    "quick", Size(side=8, width=8, n_epochs=3, batch_size=16, n_others=400), 2,
    ((("Retrain", "NegGrad+", "SalUn"), TWO, (0.6, 1.0)), (OTHERS, (ALL,), (1.0,))),
)  # fmt: skip


def methods(size: Size) -> dict[str, Any]:
    """Make the methods: of the paper's settings, but for their epochs."""
    from erasable.neural import approximate as ways

    found = {
        "Retrain": ways.Retrain(size.n_epochs),
        "FineTune": ways.FineTune(),
        "NegGrad+": ways.NegGradPlus(2),
        "SalUn": ways.SalUn(2),
        "NegGrad+, 1 epoch": ways.NegGradPlus(1),
        "NegGrad+, 3 epochs": ways.NegGradPlus(3),
        "SalUn, 1 epoch": ways.SalUn(1),
        "SalUn, 3 epochs": ways.SalUn(3),
        "NegGrad+ as printed": ways.WeightedFineTune(2),
        "SalUn as printed": ways.SaliencyReset(2),
        "Scrub": ways.Scrub(),
        "NewtonStep": ways.NewtonStep(),
    }
    return {name: each.set_params(batch_size=size.batch_size) for name, each in found.items()}


def train(plan: Plan, store: Store, device: str, minutes: float, workers: int) -> None:
    """Train what is not stored, first all that others begin with, until the time is over."""
    until = time.monotonic() + 60 * minutes
    jobs = [each for each in plan.jobs() if each not in store]
    begin = [each for each in jobs if each.method == "first"]
    for some in (begin, [each for each in jobs if each.method != "first"]):
        if not some or time.monotonic() > until:
            continue
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            given = (plan.size, store.methods, device, until)
            waiting = {pool.submit(_trained, each, *given): each for each in some}
            for done in as_completed(waiting):
                found = done.result()
                if found is not None:
                    store.add(waiting[done], found)
                    command.say(f"{waiting[done]}: cats {found['cats']:.3f}")


def _trained(
    job: Job, size: Size, methods: dict[str, Any], device: str, until: float
) -> dict[str, float] | None:
    if time.monotonic() > until:
        return None
    try:
        return images.outcome(size, job, methods, device)
    except UnlearnableError as error:
        command.say(f"{job}: {error}")
        return None


def five(found: Measured, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Make table 5, left; `more` are scores between random and the selective one."""
    rows = []
    for method in CURVES:
        best = found.selective(method, TARGET)
        if best is None:
            continue
        values = found.resampled(method, ("random", *more, best), TARGET)
        needs = [
            f"{share(found.needed(method, score, TARGET))} ({between(drawn)})"
            for score, drawn in zip(("random", *more, best), values.T, strict=True)
        ]
        theirs = [str(PAPER_FIVE[column][method]) for column in ("random", *more, "selective")]
        rows.append([method, *theirs, *needs, f"`{best}`", verdict(values[:, [0, -1]])])
    head = ["method", "paper: random", *more, "selective", "random", *more, "selective", "score",
            "selective needs less, of resamples"]  # fmt: skip
    return {"head": head, "rows": rows}


def costs(found: Measured) -> dict[str, Any]:
    """Make the table of all methods that forget every cat, held against training again."""
    rows = []
    for method in ("Retrain", *OTHERS):
        if not found.has(method, ALL, 1.0):
            continue
        part = found.at(method, ALL, 1.0, "of_retraining").mean()
        ten = part * found.plan.size.n_epochs / PAPER_EPOCHS
        row = [method, f"{part:.2f}", f"{ten:.2f}", "yes" if ten <= AT_MOST else "no"]
        for what in ("cats", "forget", "others"):
            mine, other = found.at(method, ALL, 1.0, what), found.at("Retrain", ALL, 1.0, what)
            row.append(spread(mine, 1, 100))
            if method != "Retrain":
                row.append(missed(mine, other))
            else:
                row.append("-")
        rows.append(row)
    head = ["method", "gradients, of `Retrain`'s", "of 10 epochs", "at most a quarter",
            "other cats, %", "off", "cats that left, %", "off", "other classes, %",
            "off"]  # fmt: skip
    return {"head": head, "rows": rows}


def ablation(found: Measured, names: dict[str, str], paper: dict[str, str]) -> dict[str, Any]:
    """Make table 6 or 7: accuracy on cats with 60 % of them deleted."""
    rows = [
        [name, paper[name], spread(found.at("Retrain", score, ABLATED), 1, 100)]
        for name, score in names.items()
        if found.has("Retrain", score, ABLATED)
    ]
    return {"head": ["chosen by", "paper, %", "accuracy on cats, %"], "rows": rows}


def ablations(found: Measured) -> dict[str, Any]:
    """Make tables 6 and 7."""
    names = {name: name for name in CORESETS}
    return {
        "six": ablation(found, FEATURES, PAPER_SIX),
        "seven": ablation(found, names, PAPER_SEVEN),
    }


def curves_of(found: Measured) -> dict[str, Any]:
    """Make figures 3 and 5."""
    titles = {"cats": "cats", "others": "other nine classes"}
    three = [
        figures.panel(title, _lines(found, "Retrain", what), "accuracy")
        for what, title in titles.items()
    ]
    there = [method for method in CURVES if found.scores(method)]
    many = [figures.panel(method, _lines(found, method, "cats"), "accuracy") for method in there]
    common = {"kind": "lines", "x": "% of cats deleted", "columns": 4, "styles": STYLES}
    title = "Accuracy against how many of the cats are deleted"
    return {
        "3": common | {"title": f"Figure 3: {title.lower()}", "across": 2, "panels": three},
        "5": common | {"title": f"{title}, by method", "across": max(len(many), 1),
                       "panels": many},
    }  # fmt: skip


def _lines(found: Measured, method: str, what: str) -> list[dict[str, Any]]:
    lines = []
    for score in found.scores(method):
        shares, runs = found.curve(method, score, what)
        lines.append(line(score, 100 * shares, runs))
    return lines


def short(found: Measured, start: float) -> dict[str, Any]:
    """Make the rows at the head of the page."""
    rows = []
    for what, target, theirs in (
        ("half of the accuracy", start / 2, ("80", "50")), ("accuracy 20 %", TARGET, ("80", "60"))
    ):  # fmt: skip
        best = found.selective("Retrain", target)
        if best is None:
            continue
        needs = [found.needed("Retrain", score, target) for score in ("random", best)]
        ours = [share(needs[0]), f"{share(needs[1])} (`{best}`)"]
        rows.append(["CIFAR-10", what, *theirs, *ours, _ratio(needs)])
    return {"head": gaussians.SHORT, "rows": rows}


def _ratio(needs: list[float]) -> str:
    random, best = needs
    return f"{best / random:.2f}" if np.isfinite(needs).all() and random > 0 else "-"


def summary(plan: Plan, store: Store) -> dict[str, Any]:
    """Make the experiment's result of what is stored."""
    found = Measured(plan, store)
    size = plan.size
    done = sum(each in store for each in plan.jobs())
    start = found.at("first", ALL, 0.0)
    others = found.at("first", ALL, 0.0, "others")
    gone = found.at("Retrain", ALL, 1.0, "others")
    label = "the paper's network" if plan.name == FULL.name else "**reduced**"
    took = sum(store[each].get("seconds", 0.0) for each in plan.jobs() if each in store)
    measured = ", ".join(f"{100 * each:.0f}" for each in found.curve("Retrain", "random")[0])
    return {
        "settings": {
            "data": "all: 5,000 images of each class, and 10,000 test images to judge by"
            if plan.name == FULL.name
            else f"1,000 cats and {size.n_others:,} images of the other nine classes to train "
            "on; the other 4,000 cats and 897 test images of the other classes to judge by. The "
            "paper has 5,000 of each class, and 10,000 test images",
            "size": f"{label}: {size.side} x {size.side} pixels, blocks of {size.width}, "
            f"{2 * size.width} and {4 * size.width} channels, {size.n_epochs} epochs, "
            f"{plan.seeds} seeds; {done} of {len(plan.jobs())} planned trainings. The paper: "
            "32 x 32, 32, 64 and 128, 10 epochs, 30 seeds",
            "training": f"Adam, rate 0.001, as in the paper; batches of {size.batch_size} in "
            "trainings and methods. The paper: 128",
            "features": "what the network that learned from all images makes before its last layer",
            "budgets": f"{measured} % with `Retrain`, with lines between",
        },
        "figures": curves_of(found),
        "notes": {
            "five": five(found),
            "costs": costs(found),
            "short": short(found, start.mean()),
        },
        "facts": {
            "start": spread(start, 1, 100),
            "others_start": spread(others, 1, 100),
            "others_gone": spread(gone, 1, 100),
            "seeds": str(plan.seeds),
        }
        | {
            f"salun_{score.partition('-')[0]}": spread(found.at("SalUn", score, ABLATED), 1, 100)
            for score in TWO
            if found.has("SalUn", score, ABLATED)
        },
        "seconds": {"all": round(took)},
    }  # fmt: skip


def measure(
    options: argparse.Namespace, quick: bool, seeds: int | None = None, budgets: Any = None
) -> dict[str, Any]:
    """Train what is not stored yet, and sum up."""
    plan = QUICK if quick else FULL if options.full else REDUCED
    plan = dataclasses.replace(plan, seeds=seeds or plan.seeds)
    if budgets:
        plan = dataclasses.replace(
            plan, tiers=((("Retrain",), TWO, (*command.shares(budgets), 1.0)),)
        )
    data_sets.path(plan.size.file)  # workers would miss it later
    store = Store(images.STORE / f"cifar-{plan.name}.jsonl", plan.size, methods(plan.size))
    train(plan, store, options.device, options.minutes, options.workers)
    found = Measured(plan, store)
    if not (found.has("first", ALL, 0.0) and found.has("Retrain", ALL, 1.0)):
        sys.exit(f"{store.path.name} lacks trainings that all others are held against; go on later")
    unfinished = any(job not in store for job in plan.jobs())
    return summary(plan, store) | ({"unfinished": True} if unfinished else {})


def coresets(options: argparse.Namespace, quick: bool) -> dict[str, Any]:
    """Train for the coreset column of table 5, and for tables 6 and 7."""
    plan = QUICK if quick else FULL if options.full else AGAIN
    store = Store(images.STORE / f"cifar-{plan.name}.jsonl", plan.size, methods(plan.size))
    train(plan, store, options.device, options.minutes, options.workers)
    found = Measured(plan, store)
    took = sum(store[each].get("seconds", 0.0) for each in plan.jobs() if each in store)
    made = five(found, () if quick else ("coreset",))
    return {"notes": {"coreset": made, **ablations(found)}, "seconds": {"coresets": round(took)}}


def main() -> int:
    """Read what only this command has, and leave the rest to all of them."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--workers", type=int, default=2)
    options, sys.argv[1:] = parser.parse_known_args()
    if importlib.util.find_spec("torch") is None:
        print("cifar: torch is missing: `make neural` installs it", file=sys.stderr)
        return 2
    parts = {"all": measure, "coresets": coresets}
    given = {name: functools.partial(part, options) for name, part in parts.items()}
    takes = {"all": ("folder", "seeds", "budgets"), "coresets": ("folder",)}
    more = {"full": options.full}
    return int(command.run("cifar", __doc__, given, removal_page, takes=takes, more=more))


if __name__ == "__main__":
    sys.exit(main())
