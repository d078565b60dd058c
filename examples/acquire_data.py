"""A clinic may pay for the records of 20 patients, and some of them will withdraw.

The measurements are scikit-learn's breast-cancer data; a third of the patients are test data. In an
earlier study, patients with a malignant tumour withdrew more often. Twenty of the other patients
are chosen in three ways: with this knowledge, as if everybody stayed, and at random. Then the
example repeatedly draws who withdraws, deletes them from each model, and tests the model. The exit
status is 1 if the first choice does not have the highest expected value after withdrawals, or if a
model after deletions is not equal to a refit.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from erasable.neighbors import KNeighborsClassifier
from erasable.selection import (
    NearestNeighbor,
    SubsetSelector,
    expected_utility,
    from_history,
)

K = 20
N_SIMULATIONS = 100
WITHDREW = {"malignant": 21, "benign": 7}
TOOK_PART = {"malignant": 30, "benign": 70}
ROW = "  {:<14}{:>10}{:>14}{:>12}{:>15}"


def fit(rows: np.ndarray, X: np.ndarray, y: np.ndarray) -> KNeighborsClassifier:
    """Fit to some patients, with rows as ids."""
    return KNeighborsClassifier(n_neighbors=1).fit(X[rows], y[rows], ids=rows)


def after(
    rows: np.ndarray, staying: Any, X: np.ndarray, y: np.ndarray, test: Any
) -> tuple[float, bool]:
    """Let patients withdraw; return the mean accuracy, and whether deletions were exact."""
    accuracies, exact = [], True
    drawn = staying.sample(len(rows), N_SIMULATIONS, labels=y[rows], random_state=0)
    for stays in drawn:
        if not stays.any():
            accuracies.append(0.0)  # no records remain
            continue
        model = fit(rows, X, y)
        model.delete(rows[~stays])
        exact &= model.digest() == fit(rows[stays], X, y).digest()
        accuracies.append(model.score(*test))
    return float(np.mean(accuracies)), exact


def main() -> int:
    """Run the example."""
    data = load_breast_cancer()
    X, y = StandardScaler().fit_transform(data.data), data.target_names[data.target]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    tests, rows = np.split(order, [len(y) // 3])
    X, y, test = X[rows], y[rows], (X[tests], y[tests])
    utility, staying = NearestNeighbor(), from_history(WITHDREW, TOOK_PART)

    anticipating = SubsetSelector(k=K, staying=staying).fit(X, y)
    selections = {
        "anticipating": anticipating.selected_,
        "conventional": SubsetSelector(k=K).fit(X, y).selected_,
        "random": rng.choice(len(y), K, replace=False),
    }
    print(f"{K} of {len(y)} patients are chosen. Withdrawals in an earlier study:")
    for label, n in WITHDREW.items():
        print(f"  {label:<10} {n} of {TOOK_PART[label]}")

    print("\nUtility, and accuracy of the nearest neighbor on others, now and after withdrawals:")
    print(ROW.format("", "utility", "after (exact)", "accuracy", "after (mean)"))
    worth, exact = {}, True
    for name, chosen in selections.items():
        given = {"rows": chosen, "X": X, "y": y, "utility": utility}
        now = expected_utility(**given).value
        worth[name] = expected_utility(**given, staying=staying).value
        whole = fit(chosen, X, y).score(*test)
        mean, same = after(chosen, staying, X, y, test)
        exact &= same
        print(ROW.format(name, f"{now:.0f}", f"{worth[name]:.0f}", f"{whole:.3f}", f"{mean:.3f}"))

    print("\nWho is chosen by the first:")
    for group in anticipating.balance():
        print(
            f"  {group.group:<10} {group.n_selected:>3} of {K}; {group.share_data:.0%} of all, "
            f"{group.share_selected:.0%} of the chosen, {group.share_staying:.0%} of who stays"
        )
    told = "yes, by digest, every time" if exact else "NO"
    print(f"\nIs each model after deletions equal to a refit? {told}")
    best = worth.pop("anticipating") > max(worth.values())
    return 0 if exact and best else 1


if __name__ == "__main__":
    sys.exit(main())
