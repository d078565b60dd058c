"""NN-F, the worst cases: Fashion-MNIST, figure 6b and table 13.

Usage: ``python experiments/selection/nn_f_risk.py [--quick]``.
"""

from __future__ import annotations

import sys
from typing import Any

import command
import comparisons
import nn_f
from simulations import NearestUtility, class_blocks

from erasable.selection import BetaBinomial

N_CLASS, K = 2000, 500
STAYING = BetaBinomial(4, 2)
ALPHAS = (0.2, 0.4, 0.6, 0.8)
SAMPLES, THRESHOLDS, RUNS, FRESH, BY_DELETIONS = 1000, 3, 20, 10_000, 500


def measure(quick: bool) -> dict[str, Any]:
    """Run the experiment."""
    samples, runs, fresh, by_deletions = (
        (50, 3, 200, 10) if quick else (SAMPLES, RUNS, FRESH, BY_DELETIONS)
    )
    case = nn_f.case_of(300 if quick else N_CLASS)
    blocks = class_blocks(case.X, case.y)
    worst = {
        "k": K,
        "staying": STAYING,
        "alphas": ALPHAS,
        "n_samples": samples,
        "n_thresholds": THRESHOLDS,
    }
    table = comparisons.risk_table(
        case, **worst, utility_left=lambda selected: NearestUtility(blocks, selected),
        n_runs=runs, n_fresh=fresh,
    )  # fmt: skip
    figure = comparisons.risk_figure(
        case, **worst, counts=range(0, 500, 40), n_simulations=by_deletions,
        title="Figure 6b: accuracy against the number of deletions, k = 500",
    )  # fmt: skip
    return {
        "settings": {
            "data": f"Fashion-MNIST: the first {N_CLASS:,} training images of each class to choose "
            "from, 10,000 test images for validation",
            "who stays": "of 500 chosen, a number by BetaBinomial(4, 2)",
            "CVaR": f"{samples:,} samples to choose by, {THRESHOLDS} thresholds; "
            f"judged in {runs} runs of {fresh:,} others",
        },
        "tables": {"13": table},
        "figures": {"6": figure},
        "facts": {"samples": f"{samples:,}"},
    }


if __name__ == "__main__":
    sys.exit(command.run("nn-f-risk", __doc__, {"worst": measure}, takes=("folder",)))
