"""Identification: the records of a domain, found with few labels, on SMS spam and Jigsaw.

Usage: ``python experiments/removal/identification.py [--quick]``. The paper proposes it for future
work.
"""

from __future__ import annotations

import sys
from typing import Any

import domains
import jigsaw
import numpy as np
import removal_page
import sms
from shared import command, figures, line, spread
from sklearn.feature_extraction.text import TfidfVectorizer

from erasable.removal import identify_domain

SEEDS, FEW, KNOWN = 5, 2, 10
WAYS = {"density ratio": "density-ratio", "uncertainty": "uncertainty", "random": "random"}
LABELS = {"sms": (250, 500, 1000, 1500), "jigsaw": (500, 1000, 2000, 4000)}
BATCH = {"sms": 50, "jigsaw": 100}
SHARES = (0.5, 0.8)
STYLES = {
    "density ratio": ("#0072b2", "-"),
    "uncertainty": ("#009e73", "-"),
    "random": ("#555555", "-"),
    "no label in vain": ("#d55e00", ":"),
}


def recalls(X: Any, domain: Any, name: str, seed: int, n_labels: int) -> dict[str, Any]:
    """Return, by way to explore, the rows found, and the share found after each label.

    Ten records of the domain are known, drawn; what is found is a share of the others.
    """
    rng = np.random.default_rng([seed, 40])
    start = rng.permutation(np.flatnonzero(domain))[:KNOWN]
    found = {}
    for title, way in WAYS.items():
        told = identify_domain(
            X, lambda rows: domain[rows], n_labels, start=start, batch_size=BATCH[name],
            explore=way, random_state=seed,
        )  # fmt: skip
        found[title] = told, np.cumsum(told.labels) / (domain.sum() - KNOWN)
    return found


def needed(curve: Any, share: float) -> float:
    """Return how many labels find a share; infinity if all of them do not."""
    return float(np.argmax(curve >= share) + 1) if curve[-1] >= share else float("inf")


def summary(name: str, curves: dict[str, list[Any]], n: int, size: int) -> dict[str, Any]:
    """Make the table and the panel of shares found."""
    counts = [count for count in LABELS[name] if count <= len(curves["random"][0])]
    rows, lines = [], []
    for title, runs in curves.items():
        values = np.array(runs)
        cells = [spread(values[:, count - 1], 1, 100) for count in counts]
        wanted = [np.array([needed(run, share) for run in runs]) for share in SHARES]
        cells += [
            f"{each.mean():,.0f}" if np.isfinite(each).all() else "not reached" for each in wanted
        ]
        rows.append([title, *cells])
        at = np.arange(BATCH[name], len(values[0]) + 1, BATCH[name])
        lines.append(line(title, at, 100 * values[:, at - 1]))
    best = [f"{100 * min(1.0, count / size):.1f}" for count in counts]
    rows.append(["no label in vain", *best, *(f"{share * size:,.0f}" for share in SHARES)])
    lines.append(line("no label in vain", at, 100 * np.minimum(1.0, at / size)[None, :]))
    head = ["asked by", *(f"{count:,} labels: found, %" for count in counts)]
    head += [f"labels for {share:.0%}" for share in SHARES]
    facts = {f"{name}_records": f"{n:,}", f"{name}_domain": f"{size + KNOWN:,}"}
    figure = {
        "kind": "lines",
        "title": {"sms": "Spam found", "jigsaw": "Profane comments found"}[name]
        + " against labels asked for",
        "x": "labels",
        "panels": [figures.panel("", lines, "% of the domain found")],
        "styles": STYLES,
    }
    number = {"sms": "1", "jigsaw": "2"}[name]
    return {
        "figures": {number: figure},
        "notes": {name: {"head": head, "rows": rows}},
        "facts": facts,
    }


def spam(quick: bool) -> dict[str, Any]:
    """Find spam among messages to train on, delete it, and retrain."""
    texts, is_spam = domains.sms()
    n_labels = 300 if quick else LABELS["sms"][-1]
    curves: dict[str, list[Any]] = {title: [] for title in WAYS}
    after: dict[str, list[Any]] = {title: [] for title in WAYS}
    for seed in range(FEW if quick else SEEDS):
        command.say(f"split {seed}")
        train, test = sms.split(seed)
        vectoriser = TfidfVectorizer(**sms.WORDS)
        X, domain = vectoriser.fit_transform(texts[train]), is_spam[train]
        tested = vectoriser.transform(texts[test])
        rows = domains.Domains(X[domain], X[~domain], None)
        evaluate = sms.evaluation(rows, tested, is_spam[test], sms.STRONG)
        place = np.cumsum(domain) - 1
        for title, (told, curve) in recalls(X, domain, "sms", seed, n_labels).items():
            curves[title].append(curve)
            left = []
            for count in LABELS["sms"]:
                asked, labels = told.asked[:count], told.labels[:count]
                known = told.rows[: len(told.rows) - told.labels.sum()]
                gone = np.concatenate([known, asked[labels]])
                kept = np.setdiff1d(np.arange(domain.sum()), place[gone])
                left.append(evaluate(kept)[0])
            after[title].append(left)
    made = summary("sms", curves, len(domain), int(domain.sum()) - KNOWN)
    head = ["asked by", *(f"{count:,} labels" for count in LABELS["sms"])]
    rows = [
        [title, *(spread(column, 2) for column in np.array(runs).T)]
        for title, runs in after.items()
    ]
    made["notes"]["recall"] = {"head": head, "rows": rows}
    return made | {"settings": settings()}


def profane(quick: bool) -> dict[str, Any]:
    """Find profane comments."""
    texts, _, domain = domains.jigsaw(jigsaw.MAIN.reading)
    if quick:
        texts, domain = texts[:3000], domain[:3000]
    n_labels = 500 if quick else LABELS["jigsaw"][-1]
    X = TfidfVectorizer(**jigsaw.WORDS).fit_transform(texts)
    curves: dict[str, list[Any]] = {title: [] for title in WAYS}
    for seed in range(FEW if quick else SEEDS):
        command.say(f"seed {seed}")
        for title, (_, curve) in recalls(X, domain, "jigsaw", seed, n_labels).items():
            curves[title].append(curve)
    made = summary("jigsaw", curves, len(domain), int(domain.sum()) - KNOWN)
    return made | {"settings": settings()}


def settings() -> dict[str, str]:
    """Say what was done."""
    return {
        "known": f"{KNOWN} records of the domain, drawn; what is found is a share of all others",
        "batches": f"of {BATCH['sms']} labels for SMS spam, and of {BATCH['jigsaw']} for Jigsaw",
        "seeds": f"{SEEDS}; for SMS spam these are splits",
        "features": "TF-IDF, as in the experiments on these data sets",
    }


PARTS = {"sms": spam, "jigsaw": profane}

if __name__ == "__main__":
    sys.exit(command.run("identification", __doc__, PARTS, removal_page, takes=("folder",)))
