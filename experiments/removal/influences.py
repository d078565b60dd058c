"""Gaussians that are not refitted but stepped towards the refit, and what is certain of a refit.

Table 5, right half; and certificates beside Theorem 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import populations
from bounds import selective_removal_bounds
from shared import ranked, spread

from erasable.removal import certificate, influence_removal

N, SEEDS, FEW, MANY, MU, DELTA = 1_000, 20, 3, 400, 0.5, 0.05
SCORES = {
    "mu2-distance": ("15", "18"),
    "density-ratio": ("-", "-"),
    "random": ("61", "91"),
    "coreset": ("63", "93"),
}
DAMPED = (0.0, 0.01)
BUDGETS = (0, 50, 100, 200, 300, 500, 700, 900)


def _draw(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, 1)), rng.normal(size=(N, 1)) + MU


def first_budget(forget: Any, retain: Any, order: Any, target: float, damping: float) -> float:
    """Return the least share whose deletion by influence removes as much as that; else inf."""
    for budget in range(0, N + 1, 5):
        gone = order[:budget]
        found = influence_removal(forget, retain, gone, sigma=1.0, damping=damping)
        if float(found.mean[0]) ** 2 / 2 >= target:
            return budget / N
    return float("inf")


def table_5(quick: bool) -> dict[str, Any]:
    """Count what half of the removal takes, with a refit and with one step of influence."""
    shares: dict[str, list[list[float]]] = {name: [] for name in SCORES}
    whole = []
    for seed in range(FEW if quick else SEEDS):
        forget, retain = _draw(seed)
        for name in SCORES:
            order = ranked(name, forget, retain, seed).order
            alpha, _ = populations.known_gaussians(MU, order, forget, retain)
            target = alpha[-1] / 2
            line = [float(np.argmax(alpha >= target)) / N]
            line += [first_budget(forget, retain, order, target, d) for d in DAMPED]
            shares[name].append(line)
        step = influence_removal(forget, retain, np.arange(N), sigma=1.0)
        whole.append(float(step.mean[0]) ** 2 / 2 / alpha[-1])
    rows = []
    for name, paper in SCORES.items():
        columns = np.array(shares[name]).T
        cells = [paper[0], spread(columns[0], 1, 100), paper[1]]
        rows.append([f"`{name}`", *cells, *(spread(column, 1, 100) for column in columns[1:])])
    head = [
        "score", "paper: retraining", "refit", "paper: influence", "one step",
        f"one step, damping {DAMPED[1]:g}",
    ]  # fmt: skip
    facts = {"whole_step": f"{100 * np.mean(whole):.0f}"}
    return {"notes": {"influence": {"head": head, "rows": rows}}, "facts": facts}


def certificates(quick: bool) -> dict[str, Any]:
    """Put certificates of removal and shift beside Theorem 1, where mu2-distance deletes."""
    seeds = FEW if quick else MANY
    found = np.empty((len(BUDGETS), seeds, 4))
    for seed in range(seeds):
        forget, retain = _draw(seed)
        order = ranked("mu2-distance", forget, retain, seed).order
        alpha, epsilon = populations.known_gaussians(MU, order, forget, retain)
        for at, budget in enumerate(BUDGETS):
            sure = certificate(forget, retain, order[:budget], DELTA, sigma=1.0)
            found[at, seed] = alpha[budget], sure.alpha, epsilon[budget], sure.epsilon
    rows = []
    for budget, runs in zip(BUDGETS, found, strict=True):
        alpha, sure_alpha, epsilon, sure_epsilon = runs.mean(axis=0)
        bound = selective_removal_bounds(N, N, budget, MU**2 / 2, DELTA)
        row = [f"{100 * budget / N:.0f} %", f"{alpha:.3f}", f"{sure_alpha:.3f}"]
        row += [f"{bound.alpha.value:.2f}", f"{epsilon:.3f}", f"{sure_epsilon:.3f}"]
        rows.append([*row, f"{bound.epsilon.value:.2f}"])
    wrong = (found[..., 1] > found[..., 0]) | (found[..., 3] < found[..., 2])
    head = [
        "deleted", "alpha", "certified, at least", "Theorem 1", "epsilon", "certified, at most",
        "Theorem 1",
    ]  # fmt: skip
    facts = {"wrong": f"{int(wrong.any(axis=0).sum())} of {seeds}"}
    return {"notes": {"certificates": {"head": head, "rows": rows}}, "facts": facts}
