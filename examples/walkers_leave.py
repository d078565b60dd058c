"""A walker leaves a forest of scikit-learn, which cannot delete, by means of shards.

36 people carried a phone in their pocket while they walked, jogged, sat and stood. Random trees of
scikit-learn predict their activity. Every fifth person is test data. The others are divided
among eight shards by person, and each shard has its own trees: a person is in
one shard, and a deletion trains only this shard again. The exit status is 1 if the model is not
equal to a refit without the walker.

It needs pandas, and the data: a folder ``wisdm_activity`` in the one that ERASABLE_DATA names.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from erasable import Refit
from erasable.ensemble import ShardedClassifier

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TREES = RandomForestClassifier(20)
REPEATS = 3


def read_moves() -> pd.DataFrame:
    """Read ten seconds of movement per row, without the three columns with gaps."""
    folder = Path(os.environ.get("ERASABLE_DATA") or DATA)
    if not folder.is_dir():
        sys.exit(f"no data at {folder}; set ERASABLE_DATA to the folder that holds it")
    path = folder / "wisdm_activity" / "wisdm_transformed.csv.gz"
    return pd.read_csv(path).drop(columns="UNIQUE_ID").dropna(axis=1)


def fit(model: Any, moves: pd.DataFrame) -> Any:
    """Fit to movements, with people as groups."""
    return model.fit(moves.drop(columns="class"), moves["class"], groups="user")


def fastest(model: Any, moves: pd.DataFrame) -> float:
    """Return the time of a fit, in seconds."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        fit(model, moves)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def main() -> int:
    """Run the example; 0 if the digests were equal, 1 if not."""
    moves = read_moves()
    tests = moves["user"] % 5 == 0
    known, unseen = moves[~tests], moves[tests]
    X, truth = unseen.drop(columns=["class", "user"]), unseen["class"]
    whole = fit(Refit(TREES, random_state=0), known)
    model = fit(ShardedClassifier(TREES, n_shards=8, random_state=0), known)
    sizes = np.bincount(model.shards_, minlength=8)
    print(f"{len(known)} records of {known['user'].nunique()} people; others test the model.")
    print(f"Records in the eight shards: {', '.join(map(str, sizes))}.")
    print(f"  right, one forest for all  {whole.score(X, truth):.4f}")
    print(f"  right, eight shards        {model.score(X, truth):.4f}")

    walker = int(known["user"].value_counts().index[0])
    mine = (known["user"] == walker).to_numpy()
    by_id = ShardedClassifier(TREES, n_shards=8, random_state=0)
    by_id.fit(known.drop(columns=["class", "user"]), known["class"])
    before, shards = set(by_id.shards_[mine].tolist()), set(model.shards_[mine].tolist())
    deletion = model.delete(groups=[walker], digest=False)
    others = known[known["user"] != walker]
    print(f"\nWalker {walker} leaves with {len(deletion.ids)} records.")
    print(f"  shards that hold them      {len(shards)}; without groups it would be {len(before)}")
    print(f"  shards that learned again  {deletion.counts['shards']}")
    refit = fastest(Refit(TREES, random_state=0), others)
    print(f"  deletion {1e3 * deletion.seconds:.0f} ms, one forest anew {1e3 * refit:.0f} ms")
    print(f"  right, afterwards          {model.score(X, truth):.4f}")

    never = fit(ShardedClassifier(TREES, n_shards=8, random_state=0), others)
    same = model.digest() == never.digest()
    print(f"  the model that has never seen the walker: {'yes, by digest' if same else 'NO'}")
    return 0 if same and len(shards) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
