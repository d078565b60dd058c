"""Membership attacks: on a known case, on Adult, and paired by exact deletion; for `audits.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import sklearn.ensemble
from data import FOLDER
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

from erasable.audit import RMIA, LiRA, audit_membership
from erasable.audit._data import Sample
from erasable.audit._shadows import fit, train_shadows
from erasable.audit._signals import signals_of
from erasable.audit._statistics import separate
from erasable.ensemble import RandomForestClassifier
from erasable.linear_model import LogisticRegression
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsClassifier

Found = dict[str, Any]


@threadpool_limits.wrap(limits=1)
def gaussian(quick: bool) -> Found:
    """Compare LiRA with the best attack on the same score, where that is known.

    Two normal classes of 150 features, unit variances, 1,000 of 2,000 records learned from. The
    best attack knows the distributions of the log odds of each record, with and without: from
    500 models more, which no attacker has.
    """
    n_targets, n_known = (2, 200) if quick else (20, 500)
    makers = {
        "linear discriminant": partial(LinearDiscriminantAnalysis, solver="lsqr"),
        "naive Bayes": GaussianNB,
    }
    found: Found = {"targets": n_targets}
    for name, make in makers.items():
        rows = [_known_case(make, k, n_known) for k in range(n_targets)]
        found[name] = {
            attack: [
                float(np.mean([row[attack] for row in rows])),
                float(np.std([row[attack] for row in rows], ddof=1) / n_targets**0.5),
            ]
            for attack in rows[0]
        }
    return found


def _known_case(make: Callable[[], Any], k: int, n_known: int) -> dict[str, float]:
    """Return the area under the curve of each attack on one target."""
    n = 2000
    source = np.random.default_rng(k)
    y = np.arange(n) % 2

    def draw() -> Sample:
        X = source.normal(size=(n, 150)) + 0.1 * (2 * y - 1)[:, np.newaxis]
        return Sample.read((X, y), "pool")

    sample, pool = draw(), draw()
    inside = np.zeros(n, dtype=bool)
    inside[source.permutation(n)[: n // 2]] = True
    model = fit(make(), sample.take(np.flatnonzero(inside)), 0)

    def area(scores: Any) -> float:
        return separate(scores[inside], scores[~inside], rates=()).area

    told = signals_of(model, sample)
    known = train_shadows(make(), sample, n_models=n_known, seed=10_000 + k)
    with_, without = (
        _density(told.logit, known.logit, each) for each in (known.members, ~known.members)
    )
    found = {"best": area(with_ - without)}
    for online in (LiRA(64), LiRA(4)):
        shadows = train_shadows(make(), sample, n_models=online.n_models, seed=100 + k)
        found[str(online)] = area(online.scores(told, shadows, n))
    # References have not learned from the audited records, but from another 2,000.
    everything = pool.join(sample)
    for offline in (LiRA(4, online=False), RMIA(4)):
        told = signals_of(model, everything, temperature=offline.temperature)
        shadows = train_shadows(
            make(), pool, sample, n_models=4, seed=200 + k, temperature=offline.temperature
        )
        found[str(offline)] = area(offline.scores(told, shadows, n)[n:])
    return found


def _density(x: Any, logits: Any, members: Any) -> Any:
    """Return the log density of each record's log odds over some models, by kernels."""
    found = np.empty(x.size)
    for j in range(x.size):
        values = logits[members[:, j], j]
        width = 1.06 * values.std() * values.size**-0.2
        found[j] = np.log(norm.pdf(x[j], values, width).mean() + 1e-300)
    return found


def adult() -> tuple[Any, Any, Any]:
    """Read Adult: features as numbers, targets, and which records are of the official training."""
    table = pd.read_csv(FOLDER / "adult" / "adult.csv.gz")
    y = (table["income"] == ">50K").to_numpy().astype(int)
    X = table.drop(columns=["income", "split"])
    for name in X.select_dtypes(exclude="number").columns:
        X[name] = X[name].astype("category").cat.codes
    return X.to_numpy(float), y, (table["split"] == "train").to_numpy()


def forest(quick: bool) -> Found:
    """Audit a forest of 100 trees on Adult by offline RMIA, four references, two threads."""
    X, y, train = adult()
    if quick:
        X, y, train = X[::20], y[::20], train[::20]
    members, others = (X[train], y[train]), (X[~train], y[~train])
    found: Found = {}
    for name, made in (
        ("scikit-learn", sklearn.ensemble.RandomForestClassifier(random_state=0, n_jobs=2)),
        ("erasable", RandomForestClassifier(n_estimators=100, random_state=0, n_jobs=2)),
    ):
        model = made.fit(*members)
        start = time.perf_counter()
        report = audit_membership(model, members, others, random_state=0)
        found[name] = {
            "seconds": time.perf_counter() - start,
            **report["audited records"].to_dict()["separation"],
            "verdict": report.verdict,
            "control": report.groups[1].separation.area,
        }
    return found


@threadpool_limits.wrap(limits=1)
def paired(quick: bool) -> Found:
    """Pair 100 records with 64 shadows by deletion, and by refitting every pair.

    On Adult, one thread. Some of the refits are made, held against the deletions to the last bit,
    and their mean stands for all.
    """
    X, y, _ = adult()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    n_pool, n_audited, n_models, n_refitted = (400, 10, 4, 5) if quick else (32_000, 100, 64, 40)
    pool = Sample.read((X[:n_pool], y[:n_pool]), "pool")
    makers: dict[str, Callable[[], Any]] = {
        "forest": lambda: RandomForestClassifier(n_estimators=20, random_state=0),
        "logistic regression": lambda: LogisticRegression(),
        "nearest neighbours": lambda: KNeighborsClassifier(n_neighbors=5),
    }
    found: Found = {}
    for name, make in makers.items():
        train_shadows(make(), pool, n_models=1, seed=5, paired=[0, 1, 2, 3])  # compiles
        start = time.process_time()
        train_shadows(make(), pool, n_models=n_models, seed=1)
        fits = time.process_time() - start
        start = time.process_time()
        both = train_shadows(make(), pool, n_models=n_models, seed=1, paired=np.arange(n_audited))
        deletions = time.process_time() - start - fits
        assert both.without is not None
        pairs = np.argwhere(both.members[:, :n_audited])
        source = np.random.default_rng(0)
        seeds = np.random.default_rng(1)
        seeds.random((n_models, n_pool))
        of_model = seeds.integers(2**32, size=n_models).tolist()
        start = time.process_time()
        for k, row in pairs[source.permutation(len(pairs))[:n_refitted]].tolist():
            left = np.flatnonzero(both.members[k])
            model = fit(make(), pool.take(left[left != row]), of_model[k])
            told = signals_of(model, pool.take([row]), knows_all=False).logit[0]
            assert told == both.without[k, row], (name, k, row)
        refits = (time.process_time() - start) / n_refitted * len(pairs)
        found[name] = {
            "pairs": len(pairs), "shadows": fits, "deletions": deletions, "refits": refits,
            "refitted": n_refitted,
        }  # fmt: skip
    return found


# -- the page --------------------------------------------------------------------------------------


def gaussian_lines(of: Found) -> list[str]:
    """Write what the known case showed."""
    cases = [name for name in of if name != "targets"]
    lines = [
        "",
        "**A known case**: two normal classes of 150 features, trained on 1,000 of 2,000 records; "
        f"mean area under the curve of {of['targets']} targets, ± the standard error. The "
        "best attack knows the distributions of each record's log odds, from 500 more models.",
        "",
        f"| attack | {' | '.join(cases)} |",
        f"|---|{'---:|' * len(cases)}",
    ]
    for attack in of[cases[0]]:
        cells = [f"{of[case][attack][0]:.3f} ± {of[case][attack][1]:.3f}" for case in cases]
        lines.append(f"| {attack} | {' | '.join(cells)} |")
    return lines


def forest_lines(of: Found) -> list[str]:
    """Write what the audit of forests showed."""
    lines = [
        "",
        "**A forest of 100 trees on Adult**, by RMIA with four references, two threads; half of "
        "the official test set is the pool. Seconds by the clock.",
        "",
        "| forest | seconds | AUC | at 1 % false positives | at 0.1 % | control |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in of.items():
        rates = [
            f"{100 * each['estimate']:.1f} % ({100 * each['low']:.1f} to {100 * each['high']:.1f})"
            for each in row["rates"]
        ]
        lines.append(
            f"| {name} | {row['seconds']:.0f} | {row['area']:.3f} | {' | '.join(rates)} "
            f"| {row['control']:.3f} |"
        )
    return lines


def paired_lines(of: Found) -> list[str]:
    """Write what pairs cost."""
    lines = [
        "",
        "**Pairs**: 100 records of Adult, deleted from each of 64 shadows that were trained on "
        "them (16,000 records each), and predicted; compared with training every pair again. One "
        f"thread. {next(iter(of.values()))['refitted']} of the refits were made, and agree to the "
        "last bit; their mean is used for all.",
        "",
        "| estimator | pairs | shadows | deletions | refits | refits / deletions |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {name} | {row['pairs']:,} | {row['shadows']:.1f} | {row['deletions']:.1f} "
        f"| {row['refits']:.0f} | {row['refits'] / row['deletions']:.1f} |"
        for name, row in of.items()
    ]
    return lines
