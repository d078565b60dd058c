"""Gaussians: figures 1, 2 and 6, and the Gaussian rows of tables 2 and 5.

Usage: ``python experiments/removal/gaussians.py [--quick]``.
"""

from __future__ import annotations

import sys
from typing import Any

import frontiers
import influences
import numpy as np
import populations
import removal_page
from shared import STYLES, chosen, command, exact_line, figures, line, ranked, spread

from erasable.removal import SCORES, gaussian_frontier

N, SEEDS, FEW = 1_000, 20, 3
MUS = (0.5, 2.5, 5.0)
AT = np.arange(0, N + 1, 50)
TITLES = list(populations.CASES)
LARGE = {
    "10-D, mu 0.5": (100_000, 5),
    "200-D, mu 0.5": (50_000, 5),
    "retain 1.5 x wider, 10-D": (100_000, 3),
}  # records of each, and draws
SELECTIVE = ("mu2-distance", "density-ratio", "random")
QUICK = (*SELECTIVE, "lr-maha", "coreset")  # pursuits take a minute in 200 dimensions
PAPERS_OWN = ("random", "mu2-distance", "lr-maha", "knn-ratio", "norm", "density-ratio")
OTHERS = ("random", "coreset", "k-center", "craig", "gradmatch", "ccs")
TABLE_2 = {0.5: (65, 18), 5.0: (65, 50)}


def draw(mu: float, seed: int) -> tuple[Any, Any]:
    """Draw records of N(0, 1) and of N(mu, 1)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, 1)), rng.normal(size=(N, 1)) + mu


def walks(mu: float, names: Any, seeds: int) -> dict[str, Any]:
    """Return, by score, alpha and epsilon at budgets: of shape (seeds, 2, budgets)."""
    found: dict[str, list[Any]] = {name: [] for name in names}
    for seed in range(seeds):
        forget, retain = draw(mu, seed)
        for name in names:
            order = ranked(name, forget, retain, seed).order
            pair = populations.known_gaussians(mu, order, forget, retain)
            found[name].append([curve[AT] for curve in pair])
    return {name: np.array(runs) for name, runs in found.items()}


def of_frontiers(quick: bool) -> dict[str, Any]:
    """Draw figure 1, and the frontiers of other families."""
    first, off = frontiers.figure_one()
    second, far, told = frontiers.figure_families()
    third, kinds, away = frontiers.figure_kinds()
    facts = {"frontier_off": f"{max(off, far):.0e}", "kinds_off": f"{away:.0e}"}
    facts |= {name: f"{value:.4f}" for name, value in told.items()}
    return {
        "figures": {"1": first, "1b": second, "1c": third},
        "notes": {"kinds": kinds},
        "facts": facts,
    }


def curves(quick: bool, scores: Any = None, seeds: int | None = None) -> dict[str, Any]:
    """Draw figures 2 and 6."""
    seeds = seeds or (FEW if quick else SEEDS)
    rows: list[list[Any]] = [[], [], []]
    facts: dict[str, str] = {}
    for mu in MUS:
        found = walks(mu, SELECTIVE, seeds)
        rows[0].append(_over_budget(f"mu = {mu:g}", found, 0))
        rows[1].append(_over_budget(f"mu = {mu:g}", found, 1))
        rows[2].append(_trade(f"mu = {mu:g}", found, mu))
        if mu == MUS[0]:
            half_off = len(AT) // 2
            facts = {
                f"epsilon_{name.replace('-', '_')}": f"{walk[:, 1, half_off].mean():.3f}"
                for name, walk in found.items()
            }
    two = {
        "kind": "lines",
        "title": "Figure 2: removal, shift, and one against the other, 20 draws",
        "x": "% of p1 deleted",
        "across": 3,
        "panels": [panel for row in rows for panel in row],
        "styles": STYLES | frontiers.LINES,
    }
    groups = {"the paper's, and the density ratio": PAPERS_OWN, "of forget alone": OTHERS}
    if scores is not None:
        groups = {"chosen": tuple(chosen(scores, ()))}
    found = walks(0.5, dict.fromkeys(name for group in groups.values() for name in group), seeds)
    panels = []
    for which in (0, 1):
        for title, names in groups.items():
            panels.append(_over_budget(title, {name: found[name] for name in names}, which))
    six = {
        "kind": "lines",
        "title": "Figure 6: all scores at mu = 0.5, 20 draws",
        "x": "% of p1 deleted",
        "across": 2,
        "columns": 4,
        "panels": panels,
        "styles": STYLES,
    }
    return {"figures": {"2": two, "6": six}, "facts": facts}


def _over_budget(title: str, found: dict[str, Any], which: int) -> dict[str, Any]:
    lines = [line(name, 100 * AT / N, runs[:, which]) for name, runs in found.items()]
    axis = ("removal alpha, nats", "shift epsilon, nats")[which]
    return dict(figures.panel(title, lines, axis))


def _trade(title: str, found: dict[str, Any], mu: float) -> dict[str, Any]:
    apart = mu**2 / 2
    lines = []
    for name, runs in found.items():
        alpha, epsilon = runs.mean(axis=0)
        lines.append(exact_line(name, alpha, epsilon))
    top = max(float(each["x"].max()) for each in lines)
    alpha = np.linspace(0, top, 61)
    dots = np.linspace(0.1, 1.0, 8) * top
    lines.append(exact_line("least there can be", alpha, gaussian_frontier(alpha, apart)))
    search = frontiers.gaussian_searched(mu, dots, free=False)
    lines.append(exact_line("search of the family", dots, search))
    return figures.panel(title, lines, "shift epsilon, nats") | {"x": "removal alpha, nats"}


def shares(quick: bool, scores: Any = None, seeds: int | None = None) -> dict[str, Any]:
    """Count what half of the removal takes: table 2, and what the design expects."""
    names = list(
        dict.fromkeys([*SELECTIVE, *chosen(scores, QUICK if quick else SCORES), "known ratio"])
    )
    found: dict[str, dict[str, list[float]]] = {}
    heads = []
    for title in TITLES:
        draws = seeds or (FEW if quick else max(SEEDS, populations.CASES[title][4]))
        command.say(f"{title}, {N:,} records of each")
        runs = [populations.half(title, N, seed, names) for seed in range(draws)]
        found[title] = {name: [run[name] for run in runs] for name in runs[0]}
        heads.append(f"{title} ({draws})")
    rows = []
    for name in names:
        cells = [found[title].get(name) for title in TITLES]
        text = ["-" if cell is None else spread(cell, 1, 100) for cell in cells]
        rows.append([f"`{name}`" if name in SCORES else name, *text])
    return {
        "settings": {
            "data": f"{N:,} records of p1 and of p2 each; {SEEDS} draws where no other number is",
            "model": "a Gaussian whose mean alone is refitted, but where said otherwise",
            "half of the removal": "half of `KL(p1, p)` after deleting all of p1, in each draw",
        },
        "notes": {
            "shares": {"head": ["score", *heads], "rows": rows},
            "one": _one_dimension(found, quick),
            "many": _many_dimensions(found, quick),
            "short": _short(found),
        },
        "facts": {"wide_random": f"{100 * populations.exact_wide_random():.1f}"}
        | _times_fewer({name: np.mean(runs) for name, runs in found["1-D, mu 0.5"].items()}),
    }


def _times_fewer(shares: dict[str, Any]) -> dict[str, str]:
    facts = {}
    for name in ("mu2-distance", "density-ratio"):
        told = name.replace("-", "_")
        facts[f"{told}_than_random"] = f"{shares['random'] / shares[name]:.1f}"
        facts[f"{told}_than_all"] = f"{1 / shares[name]:.1f}"
    return facts


def _one_dimension(found: Any, quick: bool) -> dict[str, Any]:
    rows = []
    for mu in MUS:
        title = f"1-D, mu {mu:g}"
        seeds = range(FEW if quick else SEEDS)
        runs = [populations.half_by_frontier(mu, N, seed, SELECTIVE) for seed in seeds]
        expected = populations.CASES[title][5].split(" / ")
        for name, asked in zip(SELECTIVE, expected, strict=True):
            told = [run[name] for run in runs]
            exact = f"{100 * populations.exact_half(name, mu):.1f}"
            row = [f"mu {mu:g}, `{name}`", asked, exact, spread(told, 1, 100)]
            rows.append([*row, _within(told, asked), spread(found[title][name], 1, 100)])
    head = ["data, score", "simulated", "exact", "by `frontier_`", "within 1.5", "p1 known"]
    return {"head": head, "rows": rows}


def _many_dimensions(found: Any, quick: bool) -> dict[str, Any]:
    rows = []
    for title in TITLES[3:]:
        n, count = LARGE.get(title, (N, 0))
        command.say(f"{title}, {n:,} records of each")
        if quick:
            n, count = min(n, 5_000), min(count, 1)
        runs = [populations.half(title, n, seed, SELECTIVE) for seed in range(count)]
        expected = populations.CASES[title][5].split(" / ")
        for name, asked in zip(SELECTIVE, expected, strict=True):
            small, large = found[title][name], [run[name] for run in runs]
            row = [f"{title}, `{name}`", asked, spread(small, 1, 100)]
            row += [spread(large, 1, 100) if large else "-", f"{n:,}" if large else "-"]
            rows.append([*row, _within(large or small, asked)])
    head = ["data, score", "expected", f"{N:,} of each", "many of each", "how many", "within 1.5"]
    return {"head": head, "rows": rows}


def _within(values: Any, expected: str) -> str:
    off = abs(100 * float(np.mean(values)) - float(expected))
    return "yes" if off <= 1.5 else f"no: by {off:.1f}"


def _short(found: Any) -> dict[str, Any]:
    rows = []
    for mu, paper in TABLE_2.items():
        shares = {name: np.mean(runs) for name, runs in found[f"1-D, mu {mu:g}"].items()}
        best = min((name for name in shares if name in SCORES), key=lambda name: shares[name])
        ours = [f"{100 * shares['random']:.0f}", f"{100 * shares[best]:.0f} (`{best}`)"]
        ours.append(f"{shares[best] / shares['random']:.2f}")
        rows.append([f"Gaussians, mu {mu:g}", "half of the removal", *map(str, paper), *ours])
    return {"head": SHORT, "rows": rows}


SHORT = ["data", "deleted, %, for", "paper: random", "selective", "random", "selective", "ratio"]
PARTS = {
    "frontiers": of_frontiers,
    "curves": curves,
    "shares": shares,
    "influence": influences.table_5,
    "certificates": influences.certificates,
}

if __name__ == "__main__":
    takes = dict.fromkeys(("curves", "shares"), ("scores", "seeds"))
    sys.exit(command.run("gaussians", __doc__, PARTS, removal_page, takes=takes))
