"""Three patients withdraw from a clustering of 569, and each withdrawal is checked.

The measurements are scikit-learn's breast-cancer data. After every withdrawal another model is
fitted without the patient; the two must have the same digest. The exit status is 1 if they do not.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

from erasable.cluster import KMeans
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

WITHDRAWN = ("patient-0017", "patient-0203", "patient-0411")
REPEATS = 5
ROW = "{:<14}{:<11}{:>9}{:>12}{:>12}{:>9}"


def timed_fit(model: Any, X: np.ndarray, ids: np.ndarray) -> tuple[Any, float]:
    """Fit clones of a model; return the last one, and the median time in seconds."""
    seconds = []
    for _ in range(REPEATS):
        fresh = clone(model)
        start = time.perf_counter()
        fresh.fit(X, ids=ids)
        seconds.append(time.perf_counter() - start)
    return fresh, statistics.median(seconds)


def milliseconds(seconds: float) -> str:
    """Write a time in milliseconds."""
    return f"{1e3 * seconds:.2f} ms"


def main() -> int:
    """Run the demonstration; 0 if every digest was equal, 1 if not."""
    X = load_breast_cancer().data
    ids = np.array([f"patient-{number:04d}" for number in range(len(X))])
    pipeline = make_pipeline(StandardScaler(), KMeans(n_clusters=2, random_state=0))

    # A rehearsal compiles the kernels, so that no time below counts it.
    rehearsal = clone(pipeline).fit(X, ids=ids)
    for patient in WITHDRAWN:
        rehearsal.delete([patient], digest=False)
    model, seconds = timed_fit(pipeline, X, ids)

    print(f"{X.shape[0]} patients, {X.shape[1]} measurements each: scaled, then put in 2 clusters.")
    print(f"Training takes {milliseconds(seconds)}. Three patients withdraw, one by one.\n")
    print(ROW.format("withdrawn", "model was", "rows read", "deletion", "refit", "faster"))

    digests = []
    left = np.ones(len(ids), dtype=bool)
    for patient in WITHDRAWN:
        deletion = model.delete([patient], digest=False)
        left &= ids != patient
        refit, seconds = timed_fit(pipeline, X[left], ids[left])
        digests.append((patient, model.digest(), refit.digest()))
        faster = f"{seconds / deletion.seconds:.0f} x"
        times = milliseconds(deletion.seconds), milliseconds(seconds)
        print(ROW.format(patient, deletion.action, deletion.rows_touched, *times, faster))

    print("\nrows read: of patients who stay, once for each iteration that needed them again.")
    print(f"refit: training from nothing without the withdrawn, the median of {REPEATS}.")
    print("Compiling is not counted: all of it was done once before, untimed.")

    version = model.digest().rpartition(":")[0]
    print(f"\nIs it the model that never saw them? Digests ({version}):")
    for patient, deleted, refitted in digests:
        print(f"\n{patient}  {'equal' if deleted == refitted else 'DIFFERENT'}")
        print(f"  deleted  {deleted.rpartition(':')[2]}")
        print(f"  refit    {refitted.rpartition(':')[2]}")
    return 0 if all(deleted == refitted for _, deleted, refitted in digests) else 1


if __name__ == "__main__":
    sys.exit(main())
