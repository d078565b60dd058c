"""Users with many records leave, each with all of them in one call.

There are two data sets with people: voice recordings of 42 people with Parkinson's disease, from
which a ridge regression predicts its severity, and phone data of 36 people,
from which naive Bayes predicts their activity. In both, every fifth person is test data. The exit
status is 1 if a model is not equal to a refit without the user.

It needs pandas, and the data: folders ``parkinsons_telemonitoring`` and ``wisdm_activity`` in the
one that ERASABLE_DATA names.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import clone
from sklearn.metrics import accuracy_score, mean_absolute_error

from erasable.linear_model import Ridge
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REPEATS = 5


def read(path: str) -> pd.DataFrame:
    """Read a table."""
    folder = Path(os.environ.get("ERASABLE_DATA") or DATA)
    if not folder.is_dir():
        sys.exit(f"no data at {folder}; set ERASABLE_DATA to the folder that holds it")
    return pd.read_csv(folder / path)


def leave(
    model: Any,
    table: pd.DataFrame,
    target: pd.Series,
    user: str,
    measure: Callable[[Any, Any], float],
) -> bool:
    """Delete the user with the most records; print the results, and return whether it is exact.

    Parameters
    ----------
    model : estimator of erasable
        Unfitted.
    table : DataFrame
        Records, with a column of users.
    target : Series
    user : str
        Name of that column.
    measure : callable
        ``measure(truth, predictions)``.
    """
    seen = table[user] % 5 != 0
    test, truth = table[~seen].drop(columns=user), target[~seen]
    leaver = table.loc[seen, user].value_counts().index[0]
    others = seen & (table[user] != leaver)

    def fit(rows: pd.Series) -> Any:
        return clone(model).fit(table[rows], target[rows], groups=user)

    def score(model: Any) -> float:
        return measure(truth, model.predict(test))

    # A rehearsal compiles the kernels, so that no time below counts it.
    score(fit(seen))
    fit(seen).delete(groups=[leaver])
    model = fit(seen)
    before = score(model)
    deletion = model.delete(groups=[leaver], digest=False)
    after = score(model)
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        never = fit(others)
        seconds.append(time.perf_counter() - start)
    refit = statistics.median(seconds)
    same = model.digest() == never.digest()
    people = table.loc[seen, user].nunique()
    name = measure.__name__.replace("_", " ")
    print(f"  {seen.sum()} records of {people} people; {(~seen).sum()} of others test the model")
    print(f"  user {leaver} leaves with {len(deletion.ids)} records: {deletion.action}")
    print(f"  {name}: {before:.4f} before, {after:.4f} after, {score(never):.4f} by a refit")
    print(f"  deletion {1e3 * deletion.seconds:.2f} ms, refit {1e3 * refit:.2f} ms")
    print(f"  the model that has never seen the user: {'yes, by digest' if same else 'NO'}")
    return same


def main() -> int:
    """Run the example; 0 if the digests were equal, 1 if not."""
    print("Parkinson's disease: how severe is it (total UPDRS)?")
    voices = read("parkinsons_telemonitoring/parkinsons_updrs.csv.gz")
    severity = voices.pop("total_UPDRS")
    ridge = make_pipeline(StandardScaler(), Ridge(alpha=10.0))
    exact = leave(
        ridge, voices.drop(columns="motor_UPDRS"), severity, "subject#", mean_absolute_error
    )

    print("\nPhones in pockets: what are they doing?")
    moves = read("wisdm_activity/wisdm_transformed.csv.gz")
    activity = moves.pop("class")
    moves = moves.drop(columns="UNIQUE_ID").dropna(axis=1)  # three columns have gaps
    bayes = make_pipeline(StandardScaler(), GaussianNB())
    exact &= leave(bayes, moves, activity, "user", accuracy_score)
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
