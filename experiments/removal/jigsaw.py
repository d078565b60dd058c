"""Jigsaw: toxic comments without the profane ones, figure 4, and its row of table 2.

Usage: ``python experiments/removal/jigsaw.py [--quick]``. The rows are those that are a random
sample of the whole data.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import domains
import gaussians
import joined
import numpy as np
import removal_page
from domains import Runs
from scipy.sparse import vstack
from shared import STYLES, Ranked, chosen, command, figures, spread
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

SEEDS, FEW, FEWER, TEST, TARGET, TIMES = 5, 2, 3, 0.3, 0.7, 5
WORDS = {"max_features": 40_000, "ngram_range": (1, 2), "sublinear_tf": True, "min_df": 5}
PAPERS = ("random", "cos-mu2", "lr-cos", "knn-ratio", "norm", "lr-maha", "density-ratio")
OTHERS = ("random", "maha-mu2", "coreset", "k-center", "craig", "gradmatch", "ccs", "toxic first")
FIVE = ("random", "cos-mu2", "lr-cos", "lr-maha", "density-ratio")
QUICK = ("random", "lr-cos")
GROUPS = {"the paper's, lr-maha, density ratio": PAPERS, "others": OTHERS}


@dataclass(frozen=True)
class Setup:
    """A reading of what the paper leaves open.

    Attributes
    ----------
    reading : {"start", "whole", "anywhere"}
        Where a keyword stands: at the start of a word, as a whole one, or anywhere.
    penalty : float
        C of the logistic regression.
    balanced : bool
        Whether toxic and other comments weigh the same.
    thinned : bool
        Whether as many comments of retain are drawn as five times what is left of forget.
    """

    reading: str = "start"
    penalty: float = 1.0
    balanced: bool = True
    thinned: bool = True

    def model(self) -> LogisticRegression:
        """Make the model."""
        weight = "balanced" if self.balanced else None
        return LogisticRegression(
            C=self.penalty, class_weight=weight, solver="newton-cg", max_iter=1000
        )


MAIN = Setup()
VARIANTS = {
    "as above": MAIN,
    "keywords as whole words": Setup(reading="whole"),
    "keywords anywhere, as in *class*": Setup(reading="anywhere"),
    "C = 10": Setup(penalty=10.0),
    "classes not balanced, C = 10": Setup(penalty=10.0, balanced=False),
    "all of retain": Setup(thinned=False),
    "all of retain, classes not balanced, C = 10": Setup("start", 10.0, False, False),
    "all of retain, whole words, not balanced, C = 10": Setup("whole", 10.0, False, False),
}


def split(setup: Setup, seed: int, read: Any = None) -> tuple[Any, Any, Any, Any, Any]:
    """Return texts, who is toxic and who profane, and places to train and to validate on."""
    found = read() if read else domains.jigsaw(setup.reading)
    texts, toxic, profane = domains.own(found, "toxic", "of the unwanted domain")
    train, test = train_test_split(
        np.arange(len(toxic)), test_size=TEST, stratify=2 * profane + toxic, random_state=seed
    )
    return texts, toxic, profane, train, test


def evaluation(
    setup: Setup,
    rows: Any,
    toxic: tuple[Any, Any],
    test: tuple[Any, Any],
    drawn: Any,
    make: Callable[[], Any] | None = None,
) -> domains.Evaluate:
    """Return what retrains: recall of toxic profane comments, F1 of others, and the former.

    Parameters
    ----------
    toxic : pair of ndarray
        Of forget and of retain.
    test : pair of pairs
        Rows and classes of profane comments, and of others.
    drawn : ndarray of int
        Rows of retain in the order in which they are drawn.
    make : callable, optional
        Makes an estimator in place of that of the setup.
    """

    def evaluate(kept: Any) -> tuple[float, float]:
        others = np.sort(drawn[: TIMES * len(kept)]) if setup.thinned else np.sort(drawn)
        X = vstack([rows.forget[kept], rows.retain[others]], format="csr")
        y = np.concatenate([toxic[0][kept], toxic[1][others]])
        if y.all() or not y.any():
            return 0.0, 0.0  # a model of one class
        model = (make or setup.model)().fit(X, y)
        profane, other = (model.predict(rows_) for rows_, _ in test)
        return float(profane[test[0][1]].mean()), float(f1_score(test[1][1], other))

    return evaluate


def measure(
    setup: Setup, seeds: int, names: Any, shares: Any, read: Any = None, make: Any = None
) -> tuple[Runs, dict[str, Any]]:
    """Retrain along every order; return also, by score and seed, who is toxic, in the order."""
    runs, toxics = Runs(shares), {}
    for seed in range(seeds):
        command.say(f"split {seed}")
        texts, toxic, profane, train, test = split(setup, seed, read)
        forget, retain = train[profane[train]], train[~profane[train]]
        vectoriser, rows = domains.vectorised(texts, forget, retain, **WORDS)
        parts = (test[profane[test]], test[~profane[test]])
        judged = tuple((vectoriser.transform(texts[part]), toxic[part]) for part in parts)
        rng = np.random.default_rng(seed)
        classes = (toxic[forget], toxic[retain])
        evaluate = evaluation(setup, rows, classes, judged, rng.permutation(len(retain)), make)
        found = domains.orders(rows, seed, names)
        by_label = np.argsort(-(classes[0] + rng.random(len(forget))), kind="stable")
        found["toxic first"] = Ranked(by_label)
        for name, order in found.items():
            runs.add(name, order, evaluate)
            toxics.setdefault(name, []).append(classes[0][order.order])
    return runs, toxics


def curves(
    quick: bool,
    data: Any = None,
    scores: Any = None,
    estimator: Any = None,
    seeds: int | None = None,
    budgets: Any = None,
) -> dict[str, Any]:
    """Measure figure 4, and what every score needs."""
    names = chosen(scores, QUICK if quick else domains.EVERY)
    seeds = seeds or (FEW if quick else SEEDS)
    runs, toxics = measure(MAIN, seeds, names, domains.shares_of(quick, budgets), data, estimator)
    start, first = runs.curves("random", 0)[:, 0], runs.curves("random", 1)[:, 0]
    best = runs.best(TARGET)
    rows = []
    for name in sorted(runs.names, key=lambda name: runs.needed(name, TARGET).mean()):
        needed = runs.needed(name, TARGET)
        toxic = [
            flags[: round(share * len(flags))].mean()
            for flags, share in zip(toxics[name], needed, strict=True)
        ]
        change = runs.at(name, 1, needed) - first
        rows.append([
            domains.told(name), *domains.needs(runs, name, TARGET),
            f"{100 * np.mean(toxic):.0f}", f"{change.mean():+.3f}",
            spread(runs.needed(name, start / 2), 1, 100), runs.trust(name),
        ])  # fmt: skip
    head = ["score", "deleted for recall 0.7", "of random's", "toxic among them, %",
            "F1 of others, change", "deleted for half the recall", "trust"]  # fmt: skip
    half = runs.best(start / 2)
    short = [
        _short("recall 0.7", ("94", "80"), runs, best, TARGET),
        _short("half of the recall", ("100", "85"), runs, half, start / 2),
    ]
    by_seed = runs.needed(best, TARGET) / runs.needed("random", TARGET)
    _, toxic, profane, *_ = split(MAIN, 0, data)
    return {
        "settings": {
            "data": f"{len(toxic):,} natural comments of 5 to 200 words, {toxic.mean():.1%} toxic; "
            "30 % to validate on; 5 splits",
            "unwanted domain": "comments in which a word starts with one of the paper's five "
            f"keywords: {profane.mean():.1%}, of which {toxic[profane].mean():.0%} are toxic; "
            f"of the others {toxic[~profane].mean():.1%}",
            "features": "TF-IDF, 40,000 words and pairs at most that are in 5 comments, 1 + log of "
            "counts; fitted to all comments to train on",
            "model": "logistic regression, C = 1, both classes weighing the same",
            "retain": "five times as many comments as are left of forget, drawn",
            "budgets": "steps of 5 %, with lines between",
        },
        "figures": {"4": _figure(runs)},
        "notes": {
            "scores": {"head": head, "rows": rows},
            "short": {"head": gaussians.SHORT, "rows": short},
        },
        "facts": {
            "best": f"`{best}`",
            "best_needs": spread(runs.needed(best, TARGET), 1, 100),
            "random_needs": spread(runs.needed("random", TARGET), 1, 100),
            "ratio": f"{runs.ratio(best, TARGET):.2f}",
            "worst_ratio": f"{by_seed.max():.2f}",
            "elsewhere": f"{runs.chosen_elsewhere(TARGET):.2f}",
            "start": f"{start.mean():.2f}",
            "first_f1": f"{first.mean():.2f}",
            "best_f1": f"{runs.at(best, 1, runs.needed(best, TARGET)).mean():.2f}",
            "random_f1": f"{runs.at('random', 1, runs.needed('random', TARGET)).mean():.2f}",
        },
    }


def _short(what: str, paper: Any, runs: Runs, best: str, target: Any) -> list[str]:
    ours = [runs.needed(name, target).mean() for name in ("random", best)]
    cells = [f"{100 * ours[0]:.0f}", f"{100 * ours[1]:.0f} (`{best}`)"]
    return ["Jigsaw", what, *paper, *cells, f"{runs.ratio(best, target):.2f}"]


def _figure(runs: Runs) -> dict[str, Any]:
    panels = []
    for which, axis in enumerate(("recall of toxic profane comments", "F1 of other comments")):
        for title, there in domains.grouped(GROUPS, runs.names).items():
            panels.append(figures.panel(title, runs.lines(there, which), axis))
    return {
        "kind": "lines",
        "title": "Figure 4: Jigsaw, against how many of the profane comments are deleted",
        "x": "% of profane comments deleted",
        "across": 2,
        "columns": 4,
        "panels": panels,
        "styles": STYLES,
    }


def variants(quick: bool, seeds: int | None = None) -> dict[str, Any]:
    """Measure what other readings of the paper give."""
    shares = domains.shares_of(quick)
    rows, panels = [], []
    for title, setup in list(VARIANTS.items())[: 3 if quick else None]:
        command.say(title)
        names = QUICK if quick else FIVE
        runs, _ = measure(setup, seeds or (1 if quick else FEWER), names, shares)
        start = runs.curves("random", 0)[:, 0]
        row = [title, f"{start.mean():.2f}", f"{runs.curves('random', 0)[:, -1].mean():.2f}"]
        for target in (np.full(len(start), TARGET), start / 2):
            best = runs.best(target)
            needs = [domains.needs(runs, name, target) for name in ("random", best)]
            row += [needs[0][0], f"{needs[1][0]} (`{best}`)" if needs[1][1] != "-" else "-"]
            row.append(needs[1][1])
        rows.append(row)
        if title in ("as above", *list(VARIANTS)[-3:]):
            panels.append(figures.panel(title.replace(", ", ",\n", 1), runs.lines(names, 0)))
    head = ["set-up", "recall before", "without forget", "for 0.7: random", "best", "ratio",
            "for half: random", "best", "ratio"]  # fmt: skip
    figure = {
        "kind": "lines",
        "title": "Jigsaw in other set-ups",
        "x": "% of profane comments deleted",
        "y": "recall of toxic profane comments",
        "across": 2,
        "columns": 5,
        "panels": panels,
        "styles": STYLES,
    }
    return {
        "figures": {"4v": figure},
        "notes": {"variants": {"head": head, "rows": rows}},
    }


def drop(quick: bool, seeds: int | None = None) -> dict[str, Any]:
    """Measure what the last deletions do to other comments, with few of retain and with all."""
    facts = {}
    for name, setup in {"thinned": MAIN, "whole": Setup(thinned=False)}.items():
        shares = np.array([0.0, 0.95, 1.0])
        runs, _ = measure(setup, seeds or (1 if quick else FEWER), ["random"], shares)
        before, near, after = runs.curves("random", 1).mean(axis=0)
        facts[f"{name}_f1"] = f"{before:.2f}"
        facts[f"{name}_f1_near"] = f"{near:.2f}"
        facts[f"{name}_f1_after"] = f"{after:.2f}"
    return {"facts": facts}


def deleting(quick: bool, seeds: int | None = None) -> dict[str, Any]:
    """Delete from a pipeline of the library what the best score chooses, and refit beside it."""
    stored = removal_page.load().get("jigsaw", {}).get("facts", {})
    best = stored.get("best", "`lr-cos`").strip("`")
    needed = float(stored.get("best_needs", "50").split()[0]) / 100
    found = []
    for seed in range(seeds or (1 if quick else SEEDS)):
        texts, toxic, profane, train, test = split(MAIN, seed)
        forget, retain = train[profane[train]], train[~profane[train]]
        _, rows = domains.vectorised(texts, forget, retain, **WORDS)
        order = domains.orders(rows, seed, [best])[best].order
        n_gone = round(needed * len(order))
        drawn = np.random.default_rng(seed).permutation(retain)
        first = np.concatenate([forget, drawn[: TIMES * len(forget)]])
        left = drawn[TIMES * (len(forget) - n_gone) : TIMES * len(forget)]
        gone = np.concatenate([forget[order[:n_gone]], left])
        make = functools.partial(joined.pipeline, WORDS, C=1.0, class_weight="balanced")
        judged = test[profane[test]]
        found.append(joined.deleted(make, texts, toxic.astype(int), first, gone, judged))
    return {"facts": joined.facts(found)}


PARTS = {"curves": curves, "variants": variants, "drop": drop, "deleting": deleting}
TAKES = {"curves": ("folder", "data", "scores", "estimators", "seeds", "budgets")}
TAKES |= dict.fromkeys(("variants", "drop", "deleting"), ("folder", "seeds"))

if __name__ == "__main__":
    sys.exit(command.run("jigsaw", __doc__, PARTS, removal_page, takes=TAKES))
