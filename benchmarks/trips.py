"""How many files of the package a call passes through, and which.

    python benchmarks/trips.py                  the number of files of each call
    python benchmarks/trips.py --list scaler    the files of one call, with their functions

A reader who follows a call has to open each of these files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import erasable
from erasable import Records
from erasable.cluster import KMeans
from erasable.naive_bayes import GaussianNB
from erasable.preprocessing import StandardScaler

ROOT = Path(erasable.__file__).parent


def trace(call: Callable[[], Any]) -> dict[str, set[str]]:
    """Return the files that a call passes through, and the functions that it calls in them."""
    seen: dict[str, set[str]] = defaultdict(set)

    def note(frame: Any, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and ROOT in path.parents and frame.f_code.co_name != "<module>":
            seen[str(path.relative_to(ROOT))].add(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return what is traced; all of it was called once before, so that everything is imported."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 3
    path = folder / "records.parquet"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y, "id": np.arange(200)}).to_parquet(path)
    stored = Records.from_parquet(path, target="label", ids="id")
    scaler, clusters = StandardScaler().fit(X), KMeans(3, random_state=0).fit(X)
    scaler.delete([0])
    clusters.add(X[:1], ids=[1000])
    GaussianNB().fit(stored)
    return {
        "StandardScaler.delete": lambda: scaler.delete([1]),
        "GaussianNB.fit from Parquet": lambda: GaussianNB().fit(stored),
        "KMeans.add": lambda: clusters.add(X[:1], ids=[1001]),
    }


def main() -> None:
    """Trace the calls, and print what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--list", metavar="NAME", help="list the files of calls with this in their name"
    )
    wanted = parser.parse_args().list
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            seen = trace(call)
            print(f"{len(seen):4} files  {name}")
            if wanted and wanted.lower() in name.lower():
                for path, functions in sorted(seen.items()):
                    print(f"           {path}: {', '.join(sorted(functions))}")


if __name__ == "__main__":
    main()
