"""SMS spam: figure 5, and its row of table 2.

Usage: ``python experiments/removal/sms.py [--quick]``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import domains
import gaussians
import joined
import numpy as np
import removal_page
from domains import Runs
from scipy.sparse import vstack
from shared import STYLES, Ranked, chosen, command, figures, line, spread
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

Make = Callable[[], Any]
"""Makes an estimator of scikit-learn's kind."""
SEEDS, FEW, TEST = 10, 2, 0.2
TARGET, STRONG, WEAK = 0.6, 100.0, 1.0
WORDS = {"max_features": 20_000, "ngram_range": (1, 2), "stop_words": "english"}
PAPERS = ("random", "cos-mu2", "lr-cos", "knn-ratio", "norm", "lr-maha", "density-ratio")
OTHERS = ("random", "maha-mu2", "coreset", "k-center", "craig", "gradmatch", "ccs")
GROUPS = {"the paper's, lr-maha, density ratio": PAPERS, "others": OTHERS}
QUICK = ("random", "cos-mu2", "lr-maha")


def split(seed: int, read: Any = domains.sms) -> tuple[Any, Any]:
    """Return places of messages to train on and to test on."""
    _, spam = domains.own(read(), "spam")
    return tuple(
        train_test_split(np.arange(len(spam)), test_size=TEST, stratify=spam, random_state=seed)
    )


def regression(penalty: float) -> Any:
    """Make the model, by C."""
    return LogisticRegression(C=penalty, solver="newton-cg", max_iter=1000)


def evaluation(
    rows: Any, tested: Any, spam: Any, penalty: float, make: Make | None = None
) -> domains.Evaluate:
    """Return what retrains without some spam: recall of spam, and share of ham taken for spam."""

    def evaluate(kept: Any) -> tuple[float, float]:
        if not len(kept):
            return 0.0, 0.0  # a model of one class
        X = vstack([rows.forget[kept], rows.retain], format="csr")
        y = np.repeat([1, 0], [len(kept), rows.retain.shape[0]])
        model = (make() if make else regression(penalty)).fit(X, y)
        said = model.predict(tested)
        return float(said[spam].mean()), float(said[~spam].mean())

    return evaluate


def relearning(
    texts: Any, spam: Any, train: Any, test: Any, make: Make | None = None
) -> domains.Evaluate:
    """Return what retrains the vectoriser, too, on what is left."""
    forget, retain = train[spam[train]], train[~spam[train]]

    def evaluate(kept: Any) -> tuple[float, float]:
        if not len(kept):
            return 0.0, 0.0
        left = np.concatenate([forget[kept], retain])
        vectoriser = TfidfVectorizer(**WORDS)
        X = vectoriser.fit_transform(texts[left])
        model = (make() if make else regression(STRONG)).fit(X, spam[left])
        said = model.predict(vectoriser.transform(texts[test]))
        return float(said[spam[test]].mean()), float(said[~spam[test]].mean())

    return evaluate


def measure(read: Any, names: Any, estimator: Make | None, seeds: int, shares: Any) -> Any:
    """Retrain along every order, with a weak penalty (C = 100) and with scikit-learn's.

    Returns
    -------
    strong, weak : Runs
        Both of the estimator, if one is given.
    """
    texts, spam = domains.own(read(), "spam")
    penalties = [STRONG] if estimator else [STRONG, WEAK]
    runs = {penalty: Runs(shares) for penalty in penalties}
    for seed in range(seeds):
        command.say(f"split {seed}")
        train, test = split(seed, read)
        vectoriser, rows = domains.vectorised(
            texts, train[spam[train]], train[~spam[train]], **WORDS
        )
        tested = vectoriser.transform(texts[test])
        found = domains.orders(rows, seed, names)
        if "coreset" in found:
            found["coreset, reversed"] = Ranked(found["coreset"].order[::-1])
        for name, order in found.items():
            for penalty in penalties:
                evaluate = evaluation(rows, tested, spam[test], penalty, estimator)
                runs[penalty].add(name, order, evaluate)
    return runs[STRONG], runs.get(WEAK, runs[STRONG])


def curves(
    quick: bool,
    data: Any = domains.sms,
    scores: Any = None,
    estimator: Make | None = None,
    seeds: int | None = None,
    budgets: Any = None,
) -> dict[str, Any]:
    """Measure figure 5, and what every score needs."""
    names = chosen(scores, (*QUICK, "coreset") if quick else domains.EVERY)
    seeds = seeds or (FEW if quick else SEEDS)
    strong, weak = measure(data, names, estimator, seeds, domains.shares_of(quick, budgets))
    start = strong.curves("random", 0)[:, 0]
    best = strong.best(TARGET)
    head = ["score", "deleted for recall 0.6", "of random's", "false positives, points",
            "deleted for half the recall", "C = 1: for 0.6", "trust", "80 % of the score",
            "recall there"]  # fmt: skip
    rows = []
    for name in sorted(strong.names, key=lambda name: strong.needed(name, TARGET).mean()):
        needed = strong.needed(name, TARGET)
        rise = strong.at(name, 1, needed) - strong.curves(name, 1)[:, 0]
        default = strong.defaults(name)
        by_default = ["-", "-"]
        if not np.isnan(default).any():
            left = strong.at(name, 0, default).mean()
            by_default = [f"{100 * default.mean():.0f}", f"{left:.2f}"]
        rows.append([
            domains.told(name), *domains.needs(strong, name, TARGET), spread(rise, 2, 100),
            spread(strong.needed(name, start / 2), 1, 100),
            domains.needs(weak, name, TARGET)[0], strong.trust(name), *by_default,
        ])  # fmt: skip
    rise = strong.at(best, 1, strong.needed(best, TARGET)) - strong.curves(best, 1)[:, 0]
    half = strong.best(start / 2)
    short = [
        _short("recall 0.6", ("90", "70"), strong, best, TARGET),
        _short("half of the recall", ("90", "75"), strong, half, start / 2),
    ]
    there = "coreset, reversed" in strong.names
    needs = spread(strong.needed("coreset, reversed", TARGET), 1, 100) if there else "-"
    by_seed = strong.needed(best, TARGET) / strong.needed("random", TARGET)
    return {
        "settings": {
            "data": "5,574 messages, 747 of them spam; a fifth to test on; 10 splits",
            "features": "TF-IDF, 20,000 words and pairs at most, without English stop words; "
            "fitted to all messages to train on, and kept",
            "model": "logistic regression, C = 100; C = 1 beside it",
            "budgets": "steps of 5 %, with lines between",
        },
        "figures": {"5": _figure(strong, weak)},
        "notes": {
            "scores": {"head": head, "rows": rows},
            "short": {"head": gaussians.SHORT, "rows": short},
        },
        "facts": {
            "reversed": needs,
            "best": f"`{best}`",
            "best_needs": spread(strong.needed(best, TARGET), 1, 100),
            "random_needs": spread(strong.needed("random", TARGET), 1, 100),
            "ratio": f"{strong.ratio(best, TARGET):.2f}",
            "worst_ratio": f"{by_seed.max():.2f}",
            "elsewhere": f"{strong.chosen_elsewhere(TARGET):.2f}",
            "rise": f"{100 * rise.mean():+.2f}",
            "worst_rise": f"{100 * rise.max():+.2f}",
            "start": f"{start.mean():.2f}",
            "weak_start": f"{weak.curves('random', 0)[:, 0].mean():.2f}",
            "weak_random": spread(weak.needed("random", TARGET), 1, 100),
        },
    }


def _short(what: str, paper: Any, runs: Runs, best: str, target: Any) -> list[str]:
    ours = [runs.needed(name, target).mean() for name in ("random", best)]
    cells = [f"{100 * ours[0]:.0f}", f"{100 * ours[1]:.0f} (`{best}`)"]
    return ["SMS spam", what, *paper, *cells, f"{runs.ratio(best, target):.2f}"]


def _figure(strong: Runs, weak: Runs) -> dict[str, Any]:
    panels = []
    for title, there in domains.grouped(GROUPS, strong.names).items():
        panels.append(figures.panel(title, strong.lines(there, 0), "recall of spam"))
    names = [name for name in PAPERS if name in strong.names]
    panels.append(figures.panel("C = 1", weak.lines(names, 0), "recall of spam"))
    falls = [
        line(name, 100 * strong.shares, 100 * strong.curves(name, 1))
        for name in ("random", "lr-maha", "density-ratio")
        if name in strong.names
    ]
    panels.append(figures.panel("C = 100", falls, "% of ham taken for spam"))
    return {
        "kind": "lines",
        "title": "Figure 5: SMS spam, against how much of the spam to train on is deleted",
        "x": "% of spam deleted",
        "across": 2,
        "columns": 4,
        "panels": panels,
        "styles": STYLES,
    }


def forgetting(
    quick: bool,
    data: Any = domains.sms,
    scores: Any = None,
    estimator: Make | None = None,
    seeds: int | None = None,
    budgets: Any = None,
) -> dict[str, Any]:
    """Measure the same where the vectoriser forgets what is deleted, too."""
    texts, spam = data()
    names = chosen(scores, QUICK if quick else domains.EVERY)
    runs = Runs(domains.shares_of(quick, budgets, np.linspace(0, 1, 11)))
    for seed in range(seeds or (FEW if quick else SEEDS)):
        command.say(f"split {seed}")
        train, test = split(seed, data)
        _, rows = domains.vectorised(texts, train[spam[train]], train[~spam[train]], **WORDS)
        for name, order in domains.orders(rows, seed, names).items():
            runs.add(name, order, relearning(texts, spam, train, test, estimator))
    best = runs.best(TARGET)
    rise = runs.at(best, 1, runs.needed(best, TARGET)) - runs.curves(best, 1)[:, 0]
    names = sorted(runs.names, key=lambda name: runs.needed(name, TARGET).mean())
    rows = [[f"`{name}`", *domains.needs(runs, name, TARGET)] for name in names]
    panels = [
        figures.panel(title, runs.lines(group, 0))
        for title, group in domains.grouped(GROUPS, runs.names).items()
    ]
    figure = {
        "kind": "lines",
        "title": "SMS spam where the vectoriser forgets, too",
        "x": "% of spam deleted",
        "y": "recall of spam",
        "columns": 4,
        "panels": panels,
        "styles": STYLES,
    }
    return {
        "figures": {"5f": figure},
        "notes": {
            "forgetting": {"head": ["score", "deleted for recall 0.6", "of random's"], "rows": rows}
        },
        "facts": {
            "forgetting_best": f"`{best}`",
            "forgetting_needs": spread(runs.needed(best, TARGET), 1, 100),
            "forgetting_random": spread(runs.needed("random", TARGET), 1, 100),
            "forgetting_ratio": f"{runs.ratio(best, TARGET):.2f}",
            "forgetting_elsewhere": f"{runs.chosen_elsewhere(TARGET):.2f}",
            "forgetting_rise": f"{100 * rise.mean():+.2f}",
        },
    }


def deleting(quick: bool, seeds: int | None = None) -> dict[str, Any]:
    """Delete from a pipeline of the library what the best score chooses, and refit beside it."""
    texts, spam = domains.sms()
    stored = removal_page.load().get("sms", {}).get("facts", {})
    best = stored.get("best", "`lr-maha`").strip("`")
    needed = float(stored.get("best_needs", "50").split()[0]) / 100
    found = []
    for seed in range(seeds or (1 if quick else SEEDS)):
        train, test = split(seed)
        _, rows = domains.vectorised(texts, train[spam[train]], train[~spam[train]], **WORDS)
        order = domains.orders(rows, seed, [best])[best].order
        gone = train[spam[train]][order[: round(needed * len(order))]]
        make = functools.partial(joined.pipeline, WORDS, C=STRONG)
        found.append(joined.deleted(make, texts, spam.astype(int), train, gone, test))
    return {"facts": joined.facts(found)}


PARTS = {"curves": curves, "forgetting": forgetting, "deleting": deleting}
PLUGGED = ("folder", "data", "scores", "estimators", "seeds", "budgets")
TAKES = {"curves": PLUGGED, "forgetting": PLUGGED, "deleting": ("folder", "seeds")}

if __name__ == "__main__":
    sys.exit(command.run("sms", __doc__, PARTS, removal_page, takes=TAKES))
