"""Frontiers of removal and preservation, beside a search of the whole family: figure 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, xlogy
from shared import exact_line, figures

from erasable.removal import (
    exponential_family_frontier,
    gaussian_divergence,
    gaussian_frontier,
)

LINES = {
    "least there can be": ("#d55e00", "-"),
    "search of the family": ("#000000", "."),
    "as the paper prints it": ("#0072b2", "--"),
    "all of the family": ("#bbbbbb", "-"),
}
N_ALPHA, N_DOTS = 60, 12


@dataclass(frozen=True)
class Family:
    """An exponential family with one parameter, given by its mean."""

    name: str
    means: tuple[float, float]
    divergence: Callable[[Any, Any], Any]
    natural: Callable[[float], float]
    places: Any


def _bernoulli(a: Any, b: Any) -> Any:
    return xlogy(a, a / b) + xlogy(1 - a, (1 - a) / (1 - b))


FAMILIES = (
    Family(
        "poisson", (2.0, 5.0), lambda a, b: b - a + a * np.log(a / b), np.log,
        np.exp(np.linspace(-8, 6, 2_000_001)),
    ),
    Family(
        "exponential", (1.0, 3.0), lambda a, b: np.log(b / a) + a / b - 1, lambda a: -1 / a,
        np.exp(np.linspace(-8, 9, 2_000_001)),
    ),
    Family(
        "bernoulli", (0.3, 0.6), _bernoulli, logit,
        expit(np.linspace(-14, 14, 2_000_001)),
    ),
)  # fmt: skip


def searched(family: Family, alpha: Any) -> tuple[Any, Any]:
    """Return the least epsilon for each alpha over two million parameters, and its mean."""
    first, second = family.means
    removal = family.divergence(first, family.places)
    cost = family.divergence(second, family.places)
    found = [int(np.argmin(np.where(removal >= a, cost, np.inf))) for a in alpha]
    return cost[found], family.places[found]


def printed(family: Family, alpha: Any, best: Any) -> Any:
    """Return the value in Theorem 4 (i), at its own lambda, for the best means."""
    first, second = family.means
    ratio = (best - second) / (best - first)
    slope = (family.natural(second) - family.natural(first)) * (second - first)
    return family.divergence(second, first) + alpha + slope / (ratio - 1)


def gaussian_searched(mu: float, alpha: Any, free: bool) -> Any:
    """Search means, and standard deviations where they are free, on grids that close in.

    Of N(0, 1) and N(mu, 1).
    """

    def divergence(centre: float, mean: Any, log_sd: Any) -> Any:
        return log_sd + (1 + (mean - centre) ** 2) / (2 * np.exp(2 * log_sd)) - 0.5

    found = []
    for target in alpha:
        mean, log_sd, wide, high = 3.0 * mu, 0.0, 3.5 * mu, 1.5 if free else 0.0
        best = np.inf
        for _ in range(7):
            means = mean + np.linspace(-wide, wide, 401)
            sds = log_sd + np.linspace(-high, high, 401 if free else 1)
            if not free:
                sds = np.zeros(1)
            grid = np.meshgrid(means, sds)
            cost = np.where(divergence(0.0, *grid) >= target, divergence(mu, *grid), np.inf)
            at = np.unravel_index(int(np.argmin(cost)), cost.shape)
            best = min(best, float(cost[at]))
            mean, log_sd = float(grid[0][at]), float(grid[1][at])
            wide, high = wide / 6, high / 6
        found.append(best)
    return np.array(found)


def figure_one() -> tuple[dict[str, Any], float]:
    """Draw the frontier for N(0, 1) and N(2, 1), and say how far a search is from it."""
    mu, top, off = 2.0, 9.0, 0.0
    alpha, dots = np.linspace(0, top, 181), np.linspace(0.25, top - 0.25, N_DOTS)
    centres = np.linspace(-1.0, np.sqrt(2 * top), 200)
    everything = exact_line("all of the family", centres**2 / 2, (centres - mu) ** 2 / 2)
    one, two = (0.0, 1.0), (mu, 1.0)
    panels = []
    for free in (False, True):
        if free:
            least, at = (
                exponential_family_frontier("gaussian", one, two, x) for x in (alpha, dots)
            )
        else:
            least, at = (gaussian_frontier(x, mu**2 / 2) for x in (alpha, dots))
        search = gaussian_searched(mu, dots, free)
        off = max(off, float(np.abs(search - at).max()))
        lines = [
            exact_line("least there can be", alpha, least),
            exact_line("search of the family", dots, search),
        ]
        title = "mean and variance free" if free else "variance known"
        panels.append(figures.panel(title, lines if free else [everything, *lines]))
    return {
        "kind": "lines",
        "title": "Figure 1: what removal costs at least, N(0, 1) against N(2, 1)",
        "x": "removal alpha, nats",
        "y": "shift epsilon, nats",
        "panels": panels,
        "styles": LINES,
    }, off


def figure_families() -> tuple[dict[str, Any], float, dict[str, float]]:
    """Draw other families; return how far the search is, and the printed value at 1.2 KL."""
    panels, off, told = [], 0.0, {}
    for family in FAMILIES:
        first, second = family.means
        apart = float(family.divergence(first, second))
        alpha = np.linspace(1.0, 2.5, N_ALPHA) * apart
        cost, best = searched(family, alpha)
        exact = exponential_family_frontier(family.name, first, second, alpha)
        off = max(off, float(np.abs(cost - exact).max()))
        at = np.array([1.2 * apart])
        there, where = searched(family, at)
        told[f"{family.name}_true"] = float(there[0])
        told[f"{family.name}_printed"] = float(printed(family, at, where)[0])
        dots = slice(2, None, N_ALPHA // N_DOTS)
        lines = [
            exact_line("least there can be", alpha, exact),
            exact_line("search of the family", alpha[dots], cost[dots]),
            exact_line("as the paper prints it", alpha[1:], printed(family, alpha, best)[1:]),
        ]
        title = f"{family.name}, means {first:g} and {second:g}"
        panels.append(figures.panel(title, lines, "shift epsilon, nats"))
    return (
        {
            "kind": "lines",
            "title": "Theorem 4 in other families, from alpha = KL(p1, p2) to 2.5 times as much",
            "x": "removal alpha, nats",
            "panels": panels,
            "styles": LINES,
        },
        off,
        told,
    )


KINDS: dict[str, tuple[str, float | None, Callable[[Any], Any]]] = {
    "Kullback-Leibler, nats": ("kl", None, lambda apart: apart**2 / 2),
    "Rényi of order 1/2, nats": ("renyi", 0.5, lambda apart: apart**2 / 4),
    "chi-squared": ("chi-squared", None, lambda apart: np.expm1(apart**2)),
    "Wasserstein": ("wasserstein", None, np.abs),
}
"""By title, the kind, its order, and it of means so far apart, at variance 1."""
KIND_MU, KIND_TIMES = 1.0, 1.5


def figure_kinds() -> tuple[dict[str, Any], dict[str, Any], float]:
    """Draw the frontier by other divergences; return also a table, and how far a search is.

    Of N(0, 1) and N(1, 1), up to four times their divergence.
    """
    panels, rows, off = [], [], 0.0
    places = np.linspace(-20, 20, 4_000_001)
    for title, (kind, order, formula) in KINDS.items():
        apart = gaussian_divergence((0.0, 1.0), (KIND_MU, 1.0), kind, order=order)
        removal, cost = formula(places), formula(places - KIND_MU)
        alpha = np.linspace(0.0, 4.0, 81) * apart
        exact = gaussian_frontier(alpha, apart, kind)
        dots = slice(2, None, 80 // N_DOTS)
        search = np.array([cost[removal >= a].min() for a in alpha[dots]])
        off = max(off, float(np.abs(search - exact[dots]).max()))
        lines = [
            exact_line("least there can be", alpha, exact),
            exact_line("search of the family", alpha[dots], search),
        ]
        panels.append(figures.panel(title, lines, "shift epsilon") | {"x": "removal alpha"})
        shares = [gaussian_frontier(t * apart, apart, kind) / apart for t in (KIND_TIMES, 2, 4)]
        rows.append([title, f"{apart:.4f}", *(f"{each:.4f}" for each in shares)])
    head = ["divergence", "of p1 and p2, D", f"cost at alpha = {KIND_TIMES:g} D, in D", "at 2 D",
            "at 4 D"]  # fmt: skip
    figure = {
        "kind": "lines",
        "title": "What removal costs at least, by other divergences, N(0, 1) against N(1, 1)",
        "x": "removal alpha",
        "across": 2,
        "panels": panels,
        "styles": LINES,
    }
    return figure, {"head": head, "rows": rows}, off
