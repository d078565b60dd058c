"""People leave a model of film ratings: one with thousands of ratings, one with twenty.

MovieLens has 100,836 ratings by 610 people, from 20 to 2,698 each. Boosted trees of scikit-learn
predict a rating from the year and the genres of the film; every fifth person is test data. The
others are in 16 shards, each person in one. A deletion of a person trains one shard again. Without
``groups`` every rating would be assigned separately, and a person with thousands would be in all
shards. The exit status is 1 if the model is not equal to a refit without these people.

It needs pandas, and the data: a folder ``movielens_small`` in the one that ERASABLE_DATA names.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_absolute_error

from erasable.ensemble import ShardedRegressor

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TREES = HistGradientBoostingRegressor(max_iter=30)
N_SHARDS = 16


def read_ratings() -> pd.DataFrame:
    """Read ratings, with the year and the genres of each film."""
    folder = Path(os.environ.get("ERASABLE_DATA") or DATA)
    if not folder.is_dir():
        sys.exit(f"no data at {folder}; set ERASABLE_DATA to the folder that holds it")
    folder = folder / "movielens_small"
    films = pd.read_csv(folder / "movies.csv.gz").set_index("movieId")
    known = films["genres"].str.get_dummies("|")
    known["year"] = films["title"].str.extract(r"\((\d{4})\)\s*$")[0].astype(float)
    ratings = pd.read_csv(folder / "ratings.csv.gz").drop(columns="timestamp")
    return ratings.join(known, on="movieId").drop(columns="movieId")


def fit(ratings: pd.DataFrame) -> ShardedRegressor:
    """Fit to ratings, whose groups are the people who gave them."""
    model = ShardedRegressor(TREES, n_shards=N_SHARDS, random_state=0)
    return model.fit(ratings.drop(columns="rating"), ratings["rating"], groups="userId")


def main() -> int:
    """Run the example; 0 if the digests were equal, 1 if not."""
    ratings = read_ratings()
    tests = ratings["userId"] % 5 == 0
    known, unseen = ratings[~tests], ratings[tests]
    X, truth = unseen.drop(columns=["rating", "userId"]), unseen["rating"]
    fit(known.iloc[:500])  # a rehearsal compiles the kernels, so that no time below counts it
    began = time.perf_counter()
    model = fit(known)
    fitting = time.perf_counter() - began
    print(f"{len(known)} ratings by {known['userId'].nunique()} people teach {N_SHARDS} shards.")
    print(f"  mean error in stars        {mean_absolute_error(truth, model.predict(X)):.4f}")
    print(f"  that of the mean rating    {(truth - known['rating'].mean()).abs().mean():.4f}")

    counts = known["userId"].value_counts()
    leavers = [int(counts.index[0]), int(counts[counts == counts.min()].index[0])]
    for leaver in leavers:
        held = (known["userId"] == leaver).to_numpy()
        shards = np.unique(model.shards_[held])
        deletion = model.delete(groups=[leaver], digest=False)
        known = known[~held]
        print(f"\nPerson {leaver} leaves with {held.sum()} ratings, all in {shards.size} shard.")
        print(f"  ratings read again         {deletion.rows_touched} of {len(known)}")
        took = f"{1e3 * deletion.seconds:.0f} ms, fitting all shards {1e3 * fitting:.0f} ms"
        print(f"  deletion                   {took}")

    crowd = counts.index[100:110].tolist()
    batch = model.delete(groups=crowd, digest=False)
    known = known[~known["userId"].isin(crowd)]
    never = fit(known)
    same = model.digest() == never.digest()
    print(f"\nTen more leave in one call, with {len(batch.ids)} ratings.")
    print(f"  shards that learned again  {batch.counts['shards']}, each once")
    print(f"  mean error in stars        {mean_absolute_error(truth, model.predict(X)):.4f}")
    equal = np.array_equal(model.predict(X), never.predict(X))
    print(f"  predictions of a refit     {'equal' if equal else 'DIFFERENT'}")
    print(f"  the model that has never seen the twelve: {'yes, by digest' if same else 'NO'}")
    return 0 if same and equal else 1


if __name__ == "__main__":
    sys.exit(main())
