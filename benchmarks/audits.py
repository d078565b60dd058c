"""Audits: how often they raise a false alarm, and what they find.

``python benchmarks/audits.py`` writes benchmarks/results/audits.json, and the section "Measured" of
docs/how-to/audit.md from it; 20 minutes of one core. `--parts` measures some of it, `--quick` a
few audits of each, and writes nothing.

- ``alarms``: audits of exact deletions, each on data of its own; every alarm is a false one.
- ``undeleted``: models that claim to have deleted and have not, beside models that were trained
  again.
- ``gaussian``: attacks on a case whose best attack is known.
- ``forest``: offline RMIA of a forest on Adult.
- ``paired``: shadows paired by deletion, and by refits.
- ``networks``: methods by which networks forget about, on CIFAR-10; it needs torch.

Seconds are those of the processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import audit_attacks
import audit_networks
import numpy as np
import sklearn.ensemble
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.neighbors
from parts import ROOT, Found, run
from scipy.stats import binom, binomtest
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from erasable.audit import audit_deletion, audit_deletion_method
from erasable.ensemble import RandomForestClassifier
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsClassifier
from erasable.refit import Refit

PAGE = ROOT / "docs" / "how-to" / "audit.md"
LEVEL = 0.05


def gaussians(n: int, width: int, seed: int, numbers: bool = False) -> tuple[Any, Any]:
    """Draw records around the line between two classes; one of six labels is wrong, or noisy."""
    source = np.random.default_rng(seed)
    X = source.normal(size=(n, width))
    y = X[:, 0] + source.normal(scale=0.6, size=n)
    return X, y if numbers else (y > 0).astype(int)


def in_processes(work: Callable[[int], Any], n: int) -> list[Any]:
    """Do something for the numbers from 0, in two processes."""
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(work, range(n), chunksize=max(1, min(20, n // 4))))


# -- false alarms ---------------------------------------------------------------------------------

EXACT = {
    "`KNeighborsClassifier(3)`": KNeighborsClassifier(3),
    "`RandomForestClassifier`, 5 trees": RandomForestClassifier(5, max_depth=4),
    "`LogisticRegression`": LogisticRegression(),
    "`GaussianNB`": GaussianNB(),
    "`Ridge`": Ridge(),
}
"""Estimators that delete exactly."""


def _one_alarm(name: str, seed: int) -> Found:
    start = time.process_time()
    X, y = gaussians(60, 3, seed, numbers=name == "`Ridge`")
    report = audit_deletion_method(
        EXACT[name], (X[10:], y[10:]), (X[:10], y[:10]), n_models=6, n_exchanges=99,
        level=LEVEL, random_state=seed,
    )  # fmt: skip
    alone = {
        f"{attack}, {group}": report[group].measures[f"p value of {attack}"]
        for group in ("deleted", "most memorised")
        for attack in ("U-LiRA", "KLoM")
    }
    return {
        "p": report.parameters["p_value"], "control": report.parameters["p_value_of_control"],
        "verdict": report.verdict, "alone": alone, "seconds": time.process_time() - start,
    }  # fmt: skip


def alarms(quick: bool) -> Found:
    """Audit exact deletions; every alarm is a false one."""
    n = 20 if quick else 1000
    rows = []
    for name in EXACT:
        done = in_processes(partial(_one_alarm, name), n)
        n_alarms = sum(each["verdict"] == "found" for each in done)
        rows.append({
            "estimator": name, "audits": n, "alarms": n_alarms,
            "p_value": binomtest(n_alarms, n, LEVEL, alternative="greater").pvalue,
            "alone": {
                key: float(np.mean([each["alone"][key] <= LEVEL for each in done]))
                for key in done[0]["alone"]
            },
            "controls_found": sum(each["control"] <= LEVEL for each in done),
            "seconds": sum(each["seconds"] for each in done),
        })  # fmt: skip
        print(rows[-1], flush=True)
    return {"level": LEVEL, "rows": rows}


def _alarm_lines(of: Found) -> list[str]:
    lines = [
        "",
        f"**False alarms**: audits of a method that deletes exactly, at an error of "
        f"{100 * of['level']:g} %. Each audit has separate data: 50 records kept and 10 deleted, "
        "6 models that deleted and 6 trained without, each on its own part with its own seed.",
        "",
        "| estimator | audits | false alarms | more than the error allows, p | models that deleted "
        "nothing, found |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['estimator']} | {row['audits']:,} | {row['alarms']} "
        f"({100 * row['alarms'] / row['audits']:.1f} %) | {row['p_value']:.2f} "
        f"| {100 * row['controls_found'] / row['audits']:.0f} % |"
        for row in of["rows"]
    ]
    alone = [value for row in of["rows"] for value in row["alone"].values()]
    total = sum(row["seconds"] for row in of["rows"])
    n = of["rows"][0]["audits"]
    by_chance = binom.ppf(0.975, n, of["level"]) / n
    return [
        *lines,
        "",
        "An audit makes four tests and uses the smallest p-value times four, so that alarms are "
        f"rarer than the error allows. Single tests are below {of['level']:g} in "
        f"{100 * min(alone):.1f} to {100 * max(alone):.1f} % of the audits (with an error of "
        f"exactly {100 * of['level']:g} %, up to {100 * by_chance:.1f} % is within chance). The "
        f"last column is the power of such small audits. {total:,.0f} seconds.",
    ]


# -- models that have not deleted -----------------------------------------------------------------

# Learners, how many records and features they have, and how many records leave.
LEARNERS: dict[str, tuple[Any, int, int, int]] = {
    "nearest neighbour": (sklearn.neighbors.KNeighborsClassifier(1), 330, 10, 30),
    "forest, 10 trees": (sklearn.ensemble.RandomForestClassifier(10), 330, 10, 30),
    "boosting, 20 rounds, in `Refit`": (
        Refit(sklearn.ensemble.GradientBoostingClassifier(n_estimators=20, subsample=0.7)),
        330, 10, 30,
    ),
    "overfitted network, 32 units": (
        MLPClassifier((32,), alpha=0.0, learning_rate_init=0.01, max_iter=80), 330, 10, 30,
    ),
    "logistic regression, 200 features": (
        sklearn.linear_model.LogisticRegression(C=10.0, max_iter=500), 330, 200, 30,
    ),
    "naive Bayes, 2 features": (sklearn.naive_bayes.GaussianNB(), 2003, 2, 3),
}  # fmt: skip


class DeletesNothing:
    """Train with all records and call that a deletion."""

    def __init__(self, learner: Any) -> None:
        self._learner = learner

    def __call__(self, X: Any, y: Any, rows: Any, seed: int) -> Any:
        return seeded(self._learner, seed).fit(X, y)


class Retrains:
    """Train again without the records."""

    def __init__(self, learner: Any) -> None:
        self._learner = learner

    def __call__(self, X: Any, y: Any, rows: Any, seed: int) -> Any:
        return seeded(self._learner, seed).fit(np.delete(X, rows, axis=0), np.delete(y, rows))


def seeded(learner: Any, seed: int) -> Any:
    """Return an untrained copy with a seed."""
    model = clone(learner)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed % 2**31))


def _one_undeleted(name: str, seed: int) -> Found:
    learner, n, width, n_deleted = LEARNERS[name]
    X, y = gaussians(n, width, 10_000 + seed)
    deleted, kept = (X[:n_deleted], y[:n_deleted]), (X[n_deleted:], y[n_deleted:])
    found: Found = {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # networks stop before they converge
        start = time.process_time()
        for key, sets in (("undeleted", (X, y)), ("retrained", kept)):
            model = seeded(learner, 77 + seed).fit(*sets)
            if isinstance(learner, Refit) and key == "retrained":
                # Its digest says the answer; the test is asked, too.
                report = audit_deletion(model, kept, deleted, random_state=seed, proceed=True)
                found["digest"] = report.verdict
            else:
                report = audit_deletion(model, kept, deleted, random_state=seed)
            found[f"model, {key}"] = report.verdict
            found[f"model, {key}, p"] = report.parameters["p_value"]
        found["seconds of a model"] = (time.process_time() - start) / 2
        start = time.process_time()
        for key, method in (("undeleted", DeletesNothing), ("retrained", Retrains)):
            report = audit_deletion_method(
                method(learner), kept, deleted, recipe=learner, n_models=8, random_state=seed
            )
            found[f"method, {key}"] = report.verdict
            found[f"method, {key}, p"] = report.parameters["p_value"]
        found["seconds of a method"] = (time.process_time() - start) / 2
    return found


def undeleted(quick: bool) -> Found:
    """Audit models that have not deleted, and models that were trained again."""
    n = 2 if quick else 10
    rows = []
    for name, (_, n_records, width, n_deleted) in LEARNERS.items():
        done = in_processes(partial(_one_undeleted, name), n)
        row: Found = {
            "learner": name, "audits": n, "records": n_records, "features": width,
            "deleted": n_deleted,
        }  # fmt: skip
        for judged in ("model", "method"):
            for key in ("undeleted", "retrained"):
                row[f"{judged}, {key}"] = sum(each[f"{judged}, {key}, p"] <= LEVEL for each in done)
                row[f"{judged}, {key}, cannot tell"] = sum(
                    each[f"{judged}, {key}"] == "cannot tell" for each in done
                )
            row[f"seconds of a {judged}"] = float(
                np.mean([each[f"seconds of a {judged}"] for each in done])
            )
        row["equal by digest"] = sum(each.get("digest") == "equal" for each in done)
        rows.append(row)
        print(row, flush=True)
    return {"level": LEVEL, "rows": rows}


def _share(n_found: int, n: int) -> str:
    interval = binomtest(n_found, n).proportion_ci(0.95, "exact")
    return f"{n_found} of {n} ({100 * interval.low:.0f} to {100 * interval.high:.0f} %)"


def _undeleted_lines(of: Found) -> list[str]:
    lines = [
        "",
        f"**Models that have not deleted**, at an error of {100 * of['level']:g} %: the number of "
        "audits that found them, with a 95 % interval of the power. A model is compared with 39 "
        "refits; a method makes 8 models, which are compared with 8 retrained models. "
        "`again` are audits of retrained models, for which an alarm is false.",
        "",
        "| learner | records, deleted | model: found | again | cannot tell | method: found | again "
        "| cannot tell | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in of["rows"]:
        n = row["audits"]
        cells = [row["learner"], f"{row['records'] - row['deleted']:,}, {row['deleted']}"]
        for judged in ("model", "method"):
            cells += [
                _share(row[f"{judged}, undeleted"], n), f"{row[f'{judged}, retrained']}",
                f"{row[f'{judged}, undeleted, cannot tell']}"
                f" and {row[f'{judged}, retrained, cannot tell']}",
            ]  # fmt: skip
        seconds = (row[f"seconds of a {judged}"] for judged in ("model", "method"))
        cells.append(", ".join(f"{each:.1f}" for each in seconds))
        lines.append(f"| {' | '.join(cells)} |")
    equal = sum(row["equal by digest"] for row in of["rows"])
    return [
        *lines,
        "",
        f"`cannot tell` counts such verdicts of undeleted and of retrained models. For {equal} of "
        "the retrained models in `Refit` the digest gave the verdict before any test. The nearest "
        "neighbour, logistic regression and naive Bayes are the same at each refit, so that any "
        "difference in a model is found. Naive Bayes of 2,000 records hardly reveals three of them "
        "if each model is trained on its own part; if the audit of the method found nothing, its "
        "verdict was `cannot tell`.",
    ]


# -- the page -------------------------------------------------------------------------------------


def networks(quick: bool) -> Found:
    """Audit methods by which networks forget about; needs torch."""
    return audit_networks.cifar(quick)


PARTS: dict[str, Callable[[bool], Found]] = {
    "alarms": alarms, "undeleted": undeleted, "gaussian": audit_attacks.gaussian,
    "forest": audit_attacks.forest, "paired": audit_attacks.paired, "networks": networks,
}  # fmt: skip
LINES: dict[str, Callable[[Found], list[str]]] = {
    "alarms": _alarm_lines, "undeleted": _undeleted_lines, "gaussian": audit_attacks.gaussian_lines,
    "forest": audit_attacks.forest_lines, "paired": audit_attacks.paired_lines,
    "networks": audit_networks.lines,
}  # fmt: skip
"""What the page says of each part."""


def section(found: Found) -> str:
    """Write what was measured."""
    lines = [
        "## Measured",
        "",
        "<!-- Written by benchmarks/audits.py; do not edit. -->",
        "",
        "Seconds are processor times.",
    ]
    for part, told in LINES.items():
        if part in found:
            lines += told(found[part])
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    run("audits", PAGE, PARTS, section, __doc__)
