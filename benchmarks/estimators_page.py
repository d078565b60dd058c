"""Writes docs/estimators.md, of the estimators and what was measured; prints which aims are met."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import forests_page
import shards_page
from data import ROOT
from forests import CASES as FORESTS
from results import NONE, table
from shards import CASES as SHARDED
from shards import COSTS as SHARD_COSTS
from twins import TREES, TWINS

import erasable
from erasable.core.params import class_path

PAGE = ROOT / "docs" / "estimators.md"

# What is kept, and what a deletion costs: n records, d features, k clusters, p features made,
# m values of a sparse record or documents' words.
COSTS: dict[str, tuple[str, str, str]] = {
    "BaggingClassifier": ("the fitted estimator of each bag",
                          "63 % of the bags learned again; of erasable's, a deletion in each",
                          "the same"),
    "BaggingRegressor": ("the fitted estimator of each bag",
                         "63 % of the bags learned again; of erasable's, a deletion in each",
                         "the same"),
    "BernoulliNB": ("exact counts per class", "O(d), sparse O(m)", "a whole class: O(n)"),
    "CategoricalNB": ("exact counts per class", "O(d)", "a column's largest code: O(n)"),
    "ColumnTransformer": ("that of its parts", "that of its parts", "that of its parts"),
    "CountVectorizer": ("vocabulary and counts", "O(m)", "a new table when a word goes: O(nm)"),
    "DBSCAN": ("the records", "O(d), and the lists of its neighbours",
               "half of them: the rest is copied, O(nd), and all lists"),
    "DecisionTreeClassifier": ("the tree", "one path, and nodes that grow again",
                               "a value that the root's split depends on: a refit"),
    "DecisionTreeRegressor": ("the tree", "one path, and nodes that grow again",
                              "the largest target: a refit"),
    "DivideAndConquerKMeans": ("a tree of k-means", "see benchmarks", "a leaf learned again"),
    "ExtraTreesClassifier": ("the trees", "one path in each, and nodes that grow again",
                             "a value that splits of roots depend on: these trees again"),
    "ExtraTreesRegressor": ("the trees", "one path in each, and nodes that grow again",
                            "the largest target: a refit"),
    "GaussianRandomProjection": ("nothing of the records", "O(1)", "O(1)"),
    "HistGradientBoostingClassifier": (
        "the trees, values in units", "one path in each, until one changes",
        "an edge, the start: a refit"),
    "HistGradientBoostingRegressor": (
        "the trees, values in units", "one path in each, until one changes",
        "an edge, the start: a refit"),
    "GaussianNB": ("exact moments per class", "O(d)", "a column's extreme: O(n) a column"),
    "ItemNeighbors": ("exact counts of items and pairs", "O(m^2 log d)",
                      "a pair without users: counts are copied, O(d^2)"),
    "KMeans": ("every iteration", "see benchmarks", "a seed: the races again"),
    "KNeighborsClassifier": ("the records", "O(d + log n)",
                             "half of them: the rest is copied, O(nd)"),
    "KNeighborsRegressor": ("the records", "O(d + log n)",
                            "half of them: the rest is copied, O(nd)"),
    "KernelDensity": ("the records", "O(d + log n)",
                      "half of them: the rest is copied, O(nd)"),
    "LinearRegression": ("exact second moments", "O(d^2); solving O(d^3)",
                         "a column's extreme: O(nd) a column"),
    "LinearSVC": ("the optimum, on a lattice", "O(d^2), and a comparison per record",
                  "records near the margin: more of the same"),
    "LinearSVR": ("the optimum, on a lattice", "O(d^2), and a comparison per record",
                  "records near the margin: more of the same"),
    "LogisticRegression": ("the optimum, on a lattice",
                           "O(d^2); published in one pass, O(nd)", "far-off records: more passes"),
    "MaxAbsScaler": ("largest magnitudes", "O(d), sparse O(m)", "a column's extreme: O(n)"),
    "MinMaxScaler": ("extremes", "O(d)", "a column's extreme: O(n)"),
    "MLPClassifier": (
        "weights and sums of each step",
        "the steps with the record, or from the first whose move changes", "all steps again"),
    "MLPRegressor": (
        "weights and sums of each step",
        "the steps with the record, or from the first whose move changes", "all steps again"),
    "MultinomialNB": ("exact sums per class", "O(d), sparse O(m)", "a column's extreme: O(n)"),
    "NadarayaWatson": ("the records", "O(d + log n)",
                       "half of them: the rest is copied, O(nd)"),
    "NearestCentroid": ("exact moments per class", "O(d)", "a column's extreme: O(n) a column"),
    "OneHotEncoder": ("categories and counts", "O(d)", "a category: later steps resume"),
    "OrdinalEncoder": ("categories and counts", "O(d)", "a category: codes above it shift"),
    "PCA": ("exact second moments", "O(d^2); solving O(d^3)",
            "a column's extreme: O(nd) a column"),
    "Pipeline": ("that of its steps", "that of its steps", "a step that learns again"),
    "QuantizedKMeans": ("every iteration", "see benchmarks", "a centroid that moves by a step"),
    "RandomForestClassifier": ("the trees", "one path in 63 %, and nodes that grow again",
                               "a value that splits of roots depend on: these trees again"),
    "RandomForestRegressor": ("the trees", "one path in 63 %, and nodes that grow again",
                              "the largest target: a refit"),
    "RandomFourierRidge": ("exact second moments of p features", "O(dp + p^2); solving O(p^3)",
                           "the same"),
    "Refit": ("the fitted estimator", "a refit", "a refit"),
    "Ridge": ("exact second moments", "O(d^2); solving O(d^3)",
              "a column's extreme: O(nd) a column"),
    "RobustScaler": ("quantiles", "O(d)", "a window of order statistics used up: O(n)"),
    "SegmentedRegression": ("k-means, and exact second moments per cluster",
                            "O(kd + d^2)", "centroids that move: records change clusters"),
    "ShardedClassifier": ("the fitted estimator of each shard",
                          "one shard learned again; of erasable's, a deletion in one",
                          "one shard; a batch: every shard of its records"),
    "ShardedRegressor": ("the fitted estimator of each shard",
                         "one shard learned again; of erasable's, a deletion in one",
                         "one shard; a batch: every shard of its records"),
    "SimpleImputer": ("the fill values", "O(d)", "the most frequent value: O(values)"),
    "SparseRandomProjection": ("nothing of the records", "O(1)", "O(1)"),
    "StandardScaler": ("exact moments", "O(d)", "a column's extreme: O(n) a column"),
    "TfidfVectorizer": ("vocabulary and counts", "O(m)", "all weights change with n: O(nm)"),
}  # fmt: skip

INTRO = """# What a deletion costs, estimator by estimator

<!-- Written by benchmarks/estimators.py from the code and benchmarks/results; do not edit. -->

Every estimator here is *bitwise* exact: after `delete` every bit of its state equals that of a
`fit` on the remaining records. `audit.equality(model)` checks this by fitting again.

**Adversarial deletions.** Somebody who has seen the model may ask for a deletion
(Ginart et al., appendix A.1, robust deletion). The bits are equal to a refit's for any deletions.
If training is deterministic, this is the whole claim, and it always holds. If training is random,
the *distributional* claim, that the model is distributed as one trained from scratch, needs
deletions chosen without knowledge of the tape; it does not hold against somebody who has seen the
model or knows the seed. The last column says which case applies.

**What a model still reveals.** A fixed hyperparameter contains nothing of the records; one that was
tuned on the records does. See [model selection](model-selection.md).
"""

MEASURED = """
## Measured

One thread; n records of d features. Deletions are of single random records. *bare*:
`delete([id], digest=False)`. *used*: with both digests, and the first access to the results
(coefficients, scales). *x*: the time of fitting scikit-learn's estimator again divided by that of a
deletion. *batch*: one call for 1,000, compared with 1,000 bare ones. *hurtful*: deletions chosen
for the worst case, at extremes of columns, rare values or the longest texts; mean and worst. *fit*:
our time divided by scikit-learn's.
"""

ASKED = """
### Asking lazy models

`fit` learns nothing; the first prediction builds an index. *first*: the first
prediction of one row, with the index. *row*: each of 1,000 rows predicted together. *digest*: the
first digest, which hashes every record.
"""


def _micro(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _times(value: float) -> str:
    return f"{value:,.0f} x" if value >= 100 else f"{value:.3g} x"


def _estimators() -> str:
    rows = []
    for name, cls, tags in erasable.all_estimators():
        kept, cost, worst = COSTS[name]
        blindly = "bits; distribution if chosen blindly"
        chooser = blindly if "random_state" in cls._get_param_names() else "always"
        if name == "StandardScaler":
            chooser = f"always; with `quantize=True` {blindly}"
        rows.append(
            [
                f"`{class_path(cls).removeprefix('erasable.')}`",
                tags["exactness"],
                kept,
                cost,
                worst,
                chooser,
            ]
        )
    head = ["estimator", "exactness", "kept", "a deletion", "at worst", "against adversaries"]
    return table(head, rows, left=range(6))


def _aims(name: str, cell: dict[str, Any]) -> list[tuple[str, bool]]:
    aims = TWINS[name].aims
    told = []
    for what, limit in aims.items():
        if what == "fit":
            value = cell["fit"] / cell["peer"]
            told.append((f"fit {value:.2f} of scikit-learn's, aim {limit:g}", value <= limit))
        elif what == "person":
            value = cell["person"] / cell["bare"]
            told.append((f"100 at once {value:.1f} single ones, aim {limit:g}", value <= limit))
        elif what.endswith("_us"):
            value = cell[what.removesuffix("_us")] * 1e6
            told.append((f"{what[:4]} {value:.0f} us, aim {limit:g}", value <= limit))
        else:
            value = cell["peer"] / cell[what.removesuffix("_x")]
            told.append((f"{what[:4]} {value:.1f} x, aim {limit:g}", value >= limit))
    return told


def write(folder: Path) -> None:
    """Write the page from the results in a folder."""
    cells = _measured(folder, TWINS)
    alone = _measured(folder, ["leave-one-out"]).get("leave-one-out")
    scores = _measured(folder, TREES, "scores-")
    forests = _measured(folder, FORESTS, "forests-")
    sharded = list(_measured(folder, SHARDED, "shards-").values())
    costs = list(_measured(folder, SHARD_COSTS, "shard-cost-").values())
    parts = [INTRO, _estimators()]
    if cells:
        some = next(iter(cells.values()))["environment"]
        parts.append(MEASURED)
        parts.append(f"{some['processor']}, Python {some['python']}, NumPy {some['numpy']}, "
                     f"scikit-learn {some['scikit-learn']}.\n")  # fmt: skip
        parts.append(_costs(cells))
        if alone is not None:
            parts.append(_alone(alone))
        parts.append("\n### Growth with n and with the share deleted (used)\n")
        parts.append(_growth(cells))
        parts.append("\n### Scores on the same five splits\n")
        parts.append(_scores(cells))
        if scores:
            titles = {name: twin.title for name, twin in TREES.items()}
            parts.append(forests_page.scores(scores, titles))
        parts.append(ASKED)
        parts.append(_asked(cells))
    if forests:
        parts.append(forests_page.section(forests))
    if sharded:
        parts.append(shards_page.comparisons(sharded))
    shards_page.write(sharded, costs)
    PAGE.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    print(f"wrote {PAGE}\n{_verdict(cells)}")


def _measured(folder: Path, names: Iterable[str], prefix: str = "") -> dict[str, Any]:
    """Read what has been measured, by name."""
    paths = {name: folder / f"estimator-{prefix}{name}.json" for name in names}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }


def _costs(cells: dict[str, Any]) -> str:
    rows = []
    for name, cell in cells.items():
        bare, used, peer = cell["bare"], cell["used"], cell["peer"]
        hurtful = cell["hurtful"]
        told = f"{_micro(hurtful['mean'])}, {_micro(hurtful['worst'])}"
        rows.append(
            [
                TWINS[name].title,
                f"{cell['n']:,} x {cell['d']}",
                _micro(bare),
                _times(peer / bare),
                _micro(used),
                _times(peer / used),
                f"{cell['batch'] / (1000 * bare):.1%}",
                told,
                _micro(hurtful["class"]) if "class" in hurtful else NONE,
                f"{cell['fit'] / peer:.2f}",
                "equal" if cell["law"] else "**BROKEN**",
            ]
        )
    head = ["estimator", "n x d", "bare", "x", "used", "x", "batch", "hurtful", "a whole class",
            "fit", "digest against a refit"]  # fmt: skip
    return table(head, rows, left=(0,))


def _verdict(cells: dict[str, Any]) -> str:
    told = [(name, *aim) for name, cell in cells.items() for aim in _aims(name, cell)]
    met = sum(good for *_, good in told)
    lines = [f"{met} of {len(told)} aims met."]
    lines += [f"- missed: {TWINS[name].title}: {what}" for name, what, good in told if not good]
    return "\n".join(lines)


def _alone(alone: dict[str, Any]) -> str:
    times = alone["n"] * alone["refit"] / alone["seconds"]
    return (
        f"\nLeaving each of {alone['n']:,} records out of a ridge regression, in turn, took "
        f"{alone['seconds']:.2f} s: {times:.0f} x faster than as many refits of "
        f"scikit-learn's; predictions differ by {alone['differs']:.1g} at most."
    )


def _growth(cells: dict[str, Any]) -> str:
    rows = []
    for name, cell in cells.items():
        by_size = {size: seconds for size, digest, seconds in cell["growth"] if digest}
        rows.append(
            [
                TWINS[name].title,
                *(_micro(by_size[s]) if s in by_size else NONE for s in (1e3, 1e4, 1e5)),
                *(_micro(seconds) for _, seconds in cell["shares"]),
            ]
        )
    head = ["estimator", "1,000", "10,000", "100,000", "0 % gone", "1 %", "5 %", "10 %", "20 %"]
    return table(head, rows, left=(0,))


def _scores(cells: dict[str, Any]) -> str:
    rows = []
    for name, cell in cells.items():
        if (scores := cell["accuracy"]) is not None:
            rows.append(
                [
                    TWINS[name].title,
                    f"{scores['ours']:.4f}",
                    f"{scores['theirs']:.4f}",
                    f"{scores['p']:.2f}",
                ]
            )
    return table(["estimator", "ours", "scikit-learn's", "p, paired"], rows, left=(0,))


def _asked(cells: dict[str, Any]) -> str:
    rows = [
        [
            TWINS[name].title,
            _micro(asked["first"]),
            _micro(asked["row"]),
            _micro(asked["peer_row"]),
            _micro(asked["digest"]),
        ]
        for name, cell in cells.items()
        if (asked := cell.get("asked")) is not None
    ]
    return table(["estimator", "first", "row", "scikit-learn's row", "digest"], rows, left=(0,))
