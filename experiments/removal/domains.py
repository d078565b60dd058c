"""Unwanted domains of text: read, ranked by every score, and retrained without."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import shared
from scipy.sparse import csr_array
from shared import Ranked, data_sets, ranked, spread
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from erasable.removal import Sweep, deletions_needed, sweep

SHARES, FEWER = np.linspace(0, 1, 21), np.linspace(0, 1, 6)
KEYWORDS = ("fuck", "shit", "damn", "bitch", "ass")
READINGS = {"start": r"\b(?:{})", "whole": r"\b(?:{})\b", "anywhere": r"(?:{})"}
COMPONENTS = 100

SPARSE = ("random", "cos-mu2", "lr-cos", "knn-ratio", "density-ratio", "coreset", "k-center")
SPARSE += ("craig", "ccs")
REDUCED = {
    "maha-mu2": "maha-mu2",
    "lr-maha": "lr-maha",
    "gradmatch": "gradmatch",
    "density-ratio, SVD": "density-ratio",
    "cos-mu2, SVD": "cos-mu2",
    "lr-cos, SVD": "lr-cos",
}
"""Scores of dense rows: covariances, and pursuits whose time grows with the columns."""
EVERY = (*SPARSE, "norm", *REDUCED)
CONTROLS = ("random", "toxic first", "coreset, reversed")

Evaluate = Callable[[Any], tuple[float, ...]]


@dataclass(frozen=True)
class Domains:
    """TF-IDF rows of length 1 of the unwanted and the wanted domain, and the former as they were.

    Attributes
    ----------
    forget, retain, plain : csr_array
    """

    forget: Any
    retain: Any
    plain: Any


def sms() -> tuple[Any, Any]:
    """Read messages, and which are spam."""
    path = data_sets.path("sms_spam/SMSSpamCollection.tsv.gz")
    frame = pd.read_csv(path, sep="\t", header=None, quoting=3)
    return frame[1].to_numpy(), (frame[0] == "spam").to_numpy()


def own(found: Any, *names: str) -> Any:
    """Return texts and flags, by names of what they say; anything else is refused."""
    if not isinstance(found, tuple) or len(found) != 1 + len(names):
        size = f" of {len(found)}" if isinstance(found, tuple) else ""
        raise ValueError(
            f"--data returned a {type(found).__name__}{size}; expected a tuple of texts, and "
            f"whether they are {' and '.join(names)}"
        )
    return found[0], *(flags(each, name) for each, name in zip(found[1:], names, strict=True))


def flags(values: Any, what: str) -> Any:
    """Return booleans; numbers are taken for them if they are 0 and 1, and both must be there."""
    given = np.asarray(values)
    if given.dtype.kind not in "biuf" or set(np.unique(given).tolist()) != {0, 1}:
        raise ValueError(
            f"{what}: {given.dtype} with values such as {given[:3].tolist()}; expected a boolean "
            "for each text, with some of both"
        )
    return given.astype(bool)


def jigsaw(reading: str) -> tuple[Any, Any, Any]:
    """Read natural comments of 5 to 200 words; which are toxic, and which are profane."""
    frame = pd.read_csv(data_sets.path("jigsaw_toxic/jigsaw_subset.csv.gz"))
    texts = frame["text"].astype(str)
    words = texts.str.split().str.len()
    chosen = (frame["natural"] == 1) & words.between(5, 200)
    texts = texts[chosen].to_numpy()
    pattern = re.compile(READINGS[reading].format("|".join(KEYWORDS)), re.IGNORECASE)
    profane = np.array([pattern.search(text) is not None for text in texts])
    return texts, (frame["toxic"] == 1)[chosen].to_numpy(), profane


def vectorised(texts: Any, forget: Any, retain: Any, **settings: Any) -> tuple[Any, Domains]:
    """Fit a vectoriser to the texts of both; return it, and their rows.

    Parameters
    ----------
    forget, retain : ndarray of int
        Places in texts.
    """
    both = np.concatenate([forget, retain])
    vectoriser = TfidfVectorizer(**settings).fit(texts[both])
    plain = TfidfVectorizer(**settings, norm=None).fit(texts[both])
    rows = [csr_array(vectoriser.transform(texts[part])) for part in (forget, retain)]
    return vectoriser, Domains(*rows, csr_array(plain.transform(texts[forget])))


def orders(domains: Domains, seed: int, names: Any = EVERY) -> dict[str, Ranked]:
    """Rank the forget set by scores; texts without a known word leave last.

    Of rows of length 1, ``mu2-distance`` orders as ``cos-mu2`` does, and is left out. ``norm`` is
    of rows that are not scaled to length 1.
    """
    full = np.flatnonzero(np.diff(domains.forget.indptr))
    empty = np.flatnonzero(np.diff(domains.forget.indptr) == 0)
    retain = domains.retain[np.flatnonzero(np.diff(domains.retain.indptr))]
    sets = (domains.forget[full], retain)
    plain = (domains.plain[full], domains.plain[full[:2]])
    if set(names) & set(REDUCED):
        reduce = TruncatedSVD(COMPONENTS, random_state=seed).fit(_both(*sets))
        dense = tuple(reduce.transform(rows) for rows in sets)
    found = {}
    for name in names:
        given = plain if name == "norm" else dense if name in REDUCED else sets
        each = ranked(REDUCED.get(name, name), *given, seed)
        order = np.concatenate([full[each.order], empty])
        found[name] = Ranked(order, each.trust, each.share * full.size / order.size)
    return found


def _both(*rows: Any) -> Any:
    from scipy.sparse import vstack

    return vstack(rows, format="csr")


def _named(values: tuple[float, ...]) -> dict[str, float]:
    return {str(place): value for place, value in enumerate(values)}


def shares_of(quick: bool, budgets: Any = None, shares: Any = SHARES) -> Any:
    """Return shares to delete: those given, with none and all; else fewer for a trial."""
    if budgets:
        return np.unique([0.0, *shared.command.shares(budgets), 1.0])
    return FEWER if quick else shares


def grouped(groups: Any, names: Any) -> dict[str, list[str]]:
    """Return groups of the names that there are, and those that are in none."""
    found = {title: [name for name in group if name in names] for title, group in groups.items()}
    known = {
        "coreset, reversed",
        *SPARSE,
        *REDUCED,
        *(n for group in groups.values() for n in group),
    }
    found["further"] = [name for name in names if name not in known]
    return {title: group for title, group in found.items() if group}


class Runs:
    """Curves of every score over seeds, and what is read from them."""

    def __init__(self, shares: Any = SHARES) -> None:
        self.shares = shares
        self.ranked: dict[str, list[Ranked]] = {}
        self._sweeps: dict[str, list[Sweep]] = {}

    def add(self, name: str, order: Ranked, evaluate: Evaluate) -> None:
        """Retrain along an order."""
        found = sweep(
            {name: order.order}, list(self.shares), lambda kept: _named(evaluate(kept)),
            seeds=[len(self.ranked.setdefault(name, []))],
        )  # fmt: skip
        self.ranked[name].append(order)
        self._sweeps.setdefault(name, []).append(found)

    @property
    def names(self) -> list[str]:
        """Scores, in the order in which they were added."""
        return list(self._sweeps)

    def curves(self, name: str, metric: int) -> Any:
        """Return an array of shape (seeds, shares)."""
        return Sweep.join(self._sweeps[name]).values(name, str(metric))

    def needed(self, name: str, target: Any) -> Any:
        """Return, by seed, the share to delete until the first metric falls to a target."""
        return deletions_needed(name, target, Sweep.join(self._sweeps[name]), metric="0").shares

    def at(self, name: str, metric: int, shares: Any) -> Any:
        """Return, by seed, a metric where as much is deleted as `shares` says."""
        runs = self.curves(name, metric)
        found = [
            np.interp(share, self.shares, run) for share, run in zip(shares, runs, strict=True)
        ]
        return np.array(found)

    def best(self, target: Any) -> str:
        """Return the score that needs least, other than controls."""
        names = [name for name in self.names if name not in CONTROLS]
        return min(names, key=lambda name: self.needed(name, target).mean())

    def ratio(self, name: str, target: Any) -> float:
        """Return what a score needs, as a share of what random needs."""
        return float(self.needed(name, target).mean() / self.needed("random", target).mean())

    def chosen_elsewhere(self, target: Any) -> float:
        """Return the ratio where, for each seed, the score is chosen on the other seeds."""
        needed = {name: self.needed(name, target) for name in self.names}
        mine, random = [], []
        for seed in range(len(needed["random"])):
            others = {
                name: np.delete(values, seed).mean()
                for name, values in needed.items()
                if name not in CONTROLS
            }
            mine.append(needed[min(others, key=others.__getitem__)][seed])
            random.append(needed["random"][seed])
        return float(np.mean(mine) / np.mean(random))

    def trust(self, name: str) -> str:
        """Return what the scores' orders are said to be worth."""
        value = float(np.mean([each.trust for each in self.ranked[name]]))
        return "-" if np.isnan(value) else f"{value:.2f}"

    def lines(self, names: Any, metric: int) -> list[dict[str, Any]]:
        """Make the lines of a panel."""
        x = 100 * self.shares
        return [shared.line(name, x, self.curves(name, metric)) for name in names]

    def defaults(self, name: str) -> Any:
        """Return, by seed, the share that the default budget takes."""
        return np.array([each.share for each in self.ranked[name]])


def needs(runs: Runs, name: str, target: Any) -> list[str]:
    """Write what a score needs, and what part of random's that is."""
    needed = runs.needed(name, target)
    ratio = "-" if not np.isfinite(needed).all() else f"{runs.ratio(name, target):.2f}"
    return [spread(needed, 1, 100), ratio]


def told(name: str) -> str:
    """Write a score's name as code, and that of a control in words."""
    return name if name in CONTROLS[1:] else f"`{name}`"
