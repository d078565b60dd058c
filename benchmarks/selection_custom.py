"""What a custom utility takes one by one, by several records, and by a batch of states.

    python benchmarks/selection_custom.py            measure, store, and write the page
    python benchmarks/selection_custom.py --page     write the page from what is stored

One thread; processor time, the least of three rounds in which the ways take turns, so that all meet
the same machine. Similarities of 400 records to each other, the nearest of the chosen, as on the
page; 10 of them are chosen, all gains in each round. Writes the table of docs/extending/utility.md.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from erasable.selection import Custom, Expected, SubsetSelector

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "selection-custom.json"
PAGE = HERE.parent / "docs" / "extending" / "utility.md"
BEGIN = "<!-- From here on written (custom) by benchmarks/selection_custom.py. -->"
END = "<!-- Up to here (custom). -->"
N, K, ROUNDS, SAMPLES = 400, 10, 3, 200


class OneByOne:
    """A state with a gain for each record."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.best = X, np.zeros(X.shape[1])

    def gain(self, j: int) -> float:
        """Return what record j would add."""
        return float(np.maximum(self.X[j] - self.best, 0.0).sum())

    def add(self, j: int) -> None:
        """Add record j."""
        self.best = np.maximum(self.best, self.X[j])


class Several(OneByOne):
    """A state with gains of several records."""

    def gains(self, rows: Any) -> Any:
        """Return what each of some records would add."""
        return np.maximum(self.X[rows] - self.best, 0.0).sum(axis=1)


class Batched(Several):
    """A state of which there may be several in one object."""

    def batch(self, n: int) -> Any:
        """Return n states of no records."""
        return Batch(self.X, n)


class Batch:
    """States in one object."""

    def __init__(self, X: Any, n: int) -> None:
        self.X, self.best = X, np.zeros((n, X.shape[1]))

    def gains(self, rows: Any) -> Any:
        """Return what each of some records would add to each state."""
        return np.array([np.maximum(self.X[j] - self.best, 0.0).sum(axis=1) for j in rows]).T

    def add(self, j: int, stays: Any) -> None:
        """Add record j to some states."""
        self.best[stays] = np.maximum(self.best[stays], self.X[j])


WAYS = {"`gain(j)`": OneByOne, "`gains(rows)`": Several, "`gains(rows)` and `batch(n)`": Batched}
CASES = {"nobody leaves": 1.0, f"{SAMPLES} samples": 0.8}


def measure() -> dict[str, Any]:
    """Time every way in turns; the choices have to be the same."""
    places = np.random.default_rng(0).random((N, 2))
    X = np.exp(-np.linalg.norm(places[:, None] - places, axis=2))
    found: dict[str, Any] = {}
    for case, staying in CASES.items():
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        chosen: dict[str, list[int]] = {}
        for _ in range(ROUNDS):
            for way, start in WAYS.items():
                selector = SubsetSelector(
                    Custom(start), k=K, staying=staying, objective=Expected(SAMPLES), random_state=0
                )
                began = time.process_time()
                chosen[way] = selector.fit(X).selected_.tolist()
                seconds[way].append(time.process_time() - began)
        if len(set(map(tuple, chosen.values()))) > 1:
            raise SystemExit(f"{case}: the ways choose differently: {chosen}")
        found[case] = {way: min(each) for way, each in seconds.items()}
    return found


def write(found: dict[str, Any]) -> None:
    """Put the table into the page."""
    cases = list(found)
    lines = [f"| the state has | {' | '.join(cases)} |", "|---|" + "---:|" * len(cases)]
    first = next(iter(WAYS))
    for way in WAYS:
        cells = [f"{found[c][way]:.2g} s" for c in cases]
        if way != first:
            times = [found[c][first] / found[c][way] for c in cases]
            cells = [f"{cell} ({t:.2g} times faster)" for cell, t in zip(cells, times, strict=True)]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    text = (
        f"Seconds to choose {K} of {N} records, with every gain in each round; the choice is the "
        "same.\n\n" + "\n".join(lines)
    )
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    whole = f"{BEGIN}\n\n{text}\n\n{END}"
    PAGE.write_text(re.sub(pattern, lambda _: whole, page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    if "--page" not in sys.argv:
        with threadpool_limits(1):
            RESULTS.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    write(json.loads(RESULTS.read_text(encoding="utf-8")))
