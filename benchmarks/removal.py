"""What scoring a domain costs, and how little of it must be deleted for half of the removal.

Times are of one thread, as process time, over what NumPy takes to read the array once and to
multiply it by a matrix of 128 x 128; the least of several rounds. Memory is the peak of a process
of its own. Writes the tables of docs/removal.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from erasable.removal import SCORES, DomainRemoval
from erasable.removal._domain import reliability, spearman
from erasable.removal._frontier import trace
from erasable.removal._sets import Sets

PAGE = Path(__file__).resolve().parent.parent / "docs" / "removal.md"
BEGIN = "<!-- From here on written by benchmarks/removal.py. -->"
END = "<!-- Up to here. -->"
ROWS, WIDTH, ROUNDS = 1_000_000, 128, 3
SPLITS = (500_000, 900_000)
TIMED = ("mu2-distance", "cos-mu2", "lr-cos", "maha-mu2", "lr-maha", "density-ratio")
SEEDS, MANY = 20, 100
Curve = Callable[[Any, Any, Any], Any]


def _rows(n_forget: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = np.empty((ROWS, WIDTH), dtype=np.float32)
    rng.standard_normal(out=X, dtype=np.float32)
    X[n_forget:] += np.float32(0.05)
    return X[:n_forget], X[n_forget:]


def _seconds(call: Callable[..., Any], *arguments: Any) -> float:
    began = time.process_time()
    call(*arguments)
    return time.process_time() - began


def _rank(name: str, forget: Any, retain: Any) -> None:
    SCORES[name].rank(Sets(forget, retain), 0)


def _read_and_multiply(rows: Any, matrix: Any, out: Any) -> None:
    """Do it without new memory, which is what takes longest the first time."""
    rows.sum()
    np.matmul(rows, matrix, out=out)


def _warm(name: str, forget: Any, retain: Any) -> None:
    sets = Sets(forget[:2000], retain[:2000])
    ranking = SCORES[name].rank(sets, 0)
    trace(sets, ranking.order, ranking.weights)


def speed() -> list[str]:
    """Time every score by moments and the density ratio, in both splits."""
    lines = [
        f"| score | {' | '.join(f'{n:,} + {ROWS - n:,}' for n in SPLITS)} | whole fit | frontier |"
        " memory |",
        "|---|" + "---:|" * (len(SPLITS) + 3),
    ]
    matrix = np.random.default_rng(1).standard_normal((WIDTH, WIDTH), dtype=np.float32)
    found: dict[str, list[str]] = {name: [] for name in TIMED}
    rest: dict[str, list[str]] = {}
    for n_forget in SPLITS:
        forget, retain = _rows(n_forget)
        both = forget.base
        for name in TIMED:
            _warm(name, forget, retain)
        out = np.zeros_like(both)
        base, times = [], {name: [] for name in TIMED}
        for _ in range(ROUNDS):
            base.append(_seconds(_read_and_multiply, both, matrix, out))
            for name in TIMED:
                times[name].append(_seconds(_rank, name, forget, retain))
        for name in TIMED:
            found[name].append(f"{min(times[name]) / min(base):.2f}")
        del out
        if n_forget == SPLITS[0]:
            for name in TIMED:
                model = DomainRemoval(name, budget=0.1, random_state=0)
                fit = _seconds(model.fit, forget, retain) / min(base)
                frontier = _seconds(getattr, model, "frontier_") / min(base)
                rest[name] = [f"{fit:.2f}", f"{frontier:.2f}"]
        reference = min(base)
    for name in TIMED:
        command = [sys.executable, __file__, "--memory", name]
        more = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        row = [f"`{name}`", *found[name], *rest[name], f"{float(more):.0f} MiB"]
        lines.append(f"| {' | '.join(row)} |")
    text = (
        f"Times relative to {reference:.2f} s, in which NumPy reads {ROWS:,} x {WIDTH} float32 "
        f"once and multiplies them by {WIDTH} x {WIDTH}, in one thread. The columns are: scores "
        "and order for forget + retain records; for the first split a whole `fit` with `trust_`, "
        "the first access to `frontier_`, and the memory of scoring without its input."
    )
    return [text, "", *lines]


def _peak() -> float:
    status = Path("/proc/self/status").read_text()
    return float(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024


def memory(name: str) -> None:
    """Print how much the peak of this process rises, in MiB, while a score is computed."""
    forget, retain = _rows(SPLITS[0])
    _warm(name, forget, retain)
    before = _peak()
    SCORES[name].rank(Sets(forget, retain), 0)
    print(_peak() - before)


def neighbours() -> list[str]:
    """Time `knn-ratio` on 100,000 x 64."""
    rng = np.random.default_rng(0)
    forget, retain = (rng.standard_normal((50_000, 64), dtype=np.float32) for _ in range(2))
    took = _seconds(_rank, "knn-ratio", forget, retain)
    text = "`knn-ratio` of 50,000 + 50,000 x 64 float32 through scikit-learn's index: "
    return [f"{text}{took:.0f} s."]


def budgets() -> list[str]:
    """Time `gradmatch` at several budgets, over as many products of the records with a vector."""
    n, width = 50_000, 10
    rng = np.random.default_rng(0)
    forget, retain = (rng.standard_normal((n, width)) for _ in range(2))
    rows = np.column_stack([forget, np.ones(n)])
    lines = ["| budget | seconds | over NumPy's products |", "|---|---:|---:|"]
    _rank("gradmatch", forget[:100], retain[:100])
    for budget in (50, 500, 5_000, n):
        model = DomainRemoval("gradmatch", budget=budget, random_state=0)
        took = _seconds(model.fit, forget, retain)

        def multiply(times: int = budget) -> None:
            for place in range(times):
                rows @ rows[place]

        lines.append(f"| {budget:,} | {took:.1f} | {took / _seconds(multiply):.1f} |")
        print(lines[-1], flush=True)
    text = (
        f"`gradmatch` of {n:,} records x {width}: a whole `fit` in one thread, and its time "
        "divided by that of NumPy's products of all records with one vector per record of the "
        "budget."
    )
    return [text, "", *lines]


def mean_refit(forget: Any, retain: Any, order: Any) -> Any:
    """Return KL(N(0, I) || N(m, I)) at every budget: p1 is known, m is that of what is left."""
    total = forget.sum(axis=0) + retain.sum(axis=0)
    gone = np.concatenate([np.zeros((1, forget.shape[1])), np.cumsum(forget[order], axis=0)])
    left = len(forget) + len(retain) - np.arange(len(forget) + 1)
    return ((total - gone) ** 2).sum(axis=1) / left**2 / 2


def full_refit(forget: Any, retain: Any, order: Any) -> Any:
    """Return KL(N(0, I) || N(m, S)), both refitted, at every hundredth budget; lines between."""
    n, d = forget.shape
    at = np.linspace(0, n, 101).astype(int)
    alpha = []
    for budget in at:
        left = np.concatenate([forget[order[budget:]], retain])
        mean, spread = left.mean(axis=0), np.cov(left.T, bias=True)
        inverse = np.linalg.inv(spread)
        alpha.append(np.trace(inverse) + mean @ inverse @ mean - d + np.linalg.slogdet(spread)[1])
    return np.interp(np.arange(n + 1), at, np.array(alpha) / 2)


def edited_mixture(forget: Any, retain: Any, order: Any) -> Any:
    """Return KL(p1, p) of the densities themselves, without a refit, for `_modes`.

    A cut leaves nothing of p1 on one side; an order that is drawn leaves a share of it everywhere.
    """
    n, m = len(forget), len(retain)
    budget = np.arange(n + 1)
    inverse = np.exp(-_mode_ratio(forget))
    if order is None:
        kept = np.log((n - budget)[:, None] + m * inverse).mean(axis=1)
        return np.log(n - budget + m) - kept
    gone = np.concatenate([[0.0], np.cumsum(np.log(m * inverse[order]))])
    stays = np.log(n + m * inverse[order])
    kept = np.concatenate([np.cumsum(stays[::-1])[::-1], [0.0]])
    return np.log(n - budget + m) - (gone + kept) / n


def _mode_ratio(forget: Any) -> Any:
    x = forget[:, 0]
    return -(x**2) / 2 - np.logaddexp(-((x - 3) ** 2) / 2, -((x + 3) ** 2) / 2) + np.log(2)


def _gaussians(d: int, mu: float, spread: float = 1.0) -> Callable[[Any, int], Any]:
    def draw(rng: Any, n: int) -> Any:
        forget, retain = rng.normal(size=(n, d)), rng.normal(size=(n, d)) * spread
        retain[:, 0] += mu
        own = -(forget**2).sum(axis=1) / 2
        forget_at = forget.copy()
        forget_at[:, 0] -= mu
        return forget, retain, own + (forget_at**2).sum(axis=1) / 2 / spread**2

    return draw


def _modes(rng: Any, n: int) -> Any:
    forget, retain = rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    retain += rng.choice([-3.0, 3.0], size=(n, 1))
    return forget, retain, _mode_ratio(forget)


CASES: list[tuple[str, Any, Curve, int, int, str]] = [
    ("1-D, mu 0.5", _gaussians(1, 0.5), mean_refit, 1_000, MANY, "13.0 / 9.9 / 58.6"),
    ("1-D, mu 2.5", _gaussians(1, 2.5), mean_refit, 1_000, SEEDS, "37.4 / 37.4 / 58.6"),
    ("1-D, mu 5", _gaussians(1, 5.0), mean_refit, 1_000, SEEDS, "47.5 / 47.5 / 58.6"),
    ("10-D, mu 0.5", _gaussians(10, 0.5), mean_refit, 1_000, SEEDS, "36 / 10.4 / 60"),
    ("10-D, mu 0.5", _gaussians(10, 0.5), mean_refit, 20_000, 5, "36 / 10.4 / 60"),
    ("200-D, mu 0.5", _gaussians(200, 0.5), mean_refit, 1_000, SEEDS // 2, "53 / 10.4 / 59"),
    ("200-D, mu 0.5", _gaussians(200, 0.5), mean_refit, 20_000, 2, "53 / 10.4 / 59"),
    (
        "retain 1.5 x wider, 10-D",
        _gaussians(10, 0.5, 1.5),
        full_refit,
        1_000,
        SEEDS,
        "53 / 20 / 33",
    ),
    ("retain at -3 and 3, 1-D", _modes, edited_mixture, 1_000, SEEDS, "60 / 23 / 84"),
]


def shares() -> list[str]:
    """Find, for each case, what share of forget is to leave for half of the removal."""
    lines = [
        "| data | records of each | seeds | mu2-distance | density-ratio | known ratio | random |"
        " expected |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for title, draw, curve, n, seeds, design in CASES:
        found: dict[str, list[float]] = {}
        for seed in range(seeds):
            forget, retain, known = draw(np.random.default_rng(seed), n)
            sets = Sets(forget, retain)
            orders = {
                name: SCORES[name].rank(sets, seed).order
                for name in ("mu2-distance", "density-ratio", "random")
            }
            orders["known"] = np.argsort(-known, kind="stable")
            for name, order in orders.items():
                thinned = name == "random" and curve is edited_mixture
                alpha = curve(forget, retain, None if thinned else order)
                found.setdefault(name, []).append(100 * np.argmax(alpha >= alpha[-1] / 2) / n)
        cells = [
            f"{np.mean(found[name]):.1f} ± {np.std(found[name]) / np.sqrt(seeds):.1f}"
            for name in ("mu2-distance", "density-ratio", "known", "random")
        ]
        lines.append(f"| {title} | {n:,} | {seeds} | {' | '.join(cells)} | {design} |")
        print(lines[-1], flush=True)
    text = (
        "The table shows the percentage of forget to delete for half of the removal of deleting "
        "all of it, means over seeds with standard errors. *known ratio*: by the true densities. "
        "*expected*: for mu2-distance, the density ratio and random, from the simulations by which "
        "the scores were chosen, and which are not kept. Removal is `KL(p1, p)` with p1 known "
        "and p a refitted Gaussian of unit covariance; for the wider retain set one of free "
        "covariance; for two modes the remaining density, without a refit."
    )
    return [text, "", *lines]


def trust() -> list[str]:
    """Compare what one sample says of its order with how two samples agree."""
    lines = ["| score | retain | `trust_` | two samples |", "|---|---:|---:|---:|"]
    judged, n, d, seeds = 150, 150, 5, 60
    for name in ("mu2-distance", "lr-maha", "density-ratio"):
        for n_retain in (10, 30, 100, 400):
            rng = np.random.default_rng(n_retain)
            told, agree = [], []
            for _ in range(seeds):
                shared, scores = rng.normal(size=(judged, d)), []
                for _ in range(2):
                    forget = np.concatenate([shared, rng.normal(size=(n, d))])
                    sets = Sets(forget, rng.normal(size=(n_retain, d)) + 0.5 * np.eye(d)[0])
                    ranking = SCORES[name].rank(sets, int(rng.integers(2**32)))
                    told.append(reliability(sets, ranking, int(rng.integers(2**32))))
                    scores.append(ranking.scores[:judged])
                agree.append(spearman(*scores))
            cells = [f"{np.mean(x):.2f} ± {np.std(x) / np.sqrt(seeds):.2f}" for x in (told, agree)]
            lines.append(f"| `{name}` | {n_retain} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    text = (
        f"Gaussians in {d} dimensions, 0.5 apart, 300 records of forget, means of {seeds} pairs of "
        "samples with standard errors. *two samples*: Spearman's correlation of the scores of 150 "
        "records that both have."
    )
    return [text, "", *lines]


def write(name: str, lines: list[str]) -> None:
    """Put lines into the page, in the place of those that were there."""
    begin, end = BEGIN.replace("by", f"({name}) by"), END.replace("here", f"here ({name})")
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    wrapped = [line if line.startswith("|") else textwrap.fill(line, 100) for line in lines]
    text = "\n".join([begin, "", *wrapped, "", end])
    PAGE.write_text(re.sub(pattern, lambda _: text, page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    with threadpool_limits(1):
        if sys.argv[1:2] == ["--memory"]:
            memory(sys.argv[2])
        else:
            chosen = sys.argv[1:] or ["shares", "trust", "speed", "budgets"]
            if "shares" in chosen:
                write("shares", shares())
            if "trust" in chosen:
                write("trust", trust())
            if "speed" in chosen:
                write("speed", [*speed(), "", *neighbours()])
            if "budgets" in chosen:
                write("budgets", budgets())
