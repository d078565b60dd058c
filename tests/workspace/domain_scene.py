"""A workspace with two domains in its data: shop and hobby messages, and visits of two wards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from erasable.removal import Coverage
from erasable.workspace import Workspace

__all__ = [
    "NORTH", "PLANS", "SHOP", "TEXTS", "bytes_of", "make", "opened_in", "plan_of", "read",
]  # fmt: skip

SHOP = "label == 'shop'"
NORTH = "ward == 'north'"
PLANS: list[dict[str, Any]] = [
    {"dataset": "messages", "where": SHOP, "budget": 20, "fresh": "fresh_messages.csv"},
    {"dataset": "messages", "keywords": ["offer*"], "column": "text", "budget": 0.5},
    {"dataset": "visits", "where": NORTH, "budget": Coverage(0.5), "fresh": "fresh_visits.csv"},
    {"dataset": "visits", "where": NORTH, "budget": 30.0, "cost": "dose", "score": "lr-maha"},
]
"""Removals of text and numbers: by a condition, keywords, shares of scores, and costs."""

OFFERS = [f"offer{i}" for i in range(12)]
HOBBY = [f"garden{i}" for i in range(12)]
BOTH = [f"word{i}" for i in range(12)]
TEXTS = 80
"""Messages of each domain."""


def messages(n: int, seed: int, prefix: str = "m") -> pa.Table:
    """Make n messages of a shop and n of gardeners, in a mixed order; some are copies."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, str]] = []
    for label, own in (("shop", OFFERS), ("hobby", HOBBY)):
        for _ in range(n):
            words = [*rng.choice(own, rng.integers(1, 4)), *rng.choice(BOTH, rng.integers(2, 6))]
            rows.append((label, " ".join(words)))
    rows[1] = rows[0]  # a copy
    order = rng.permutation(2 * n)
    return pa.table(
        {
            "id": [f"{prefix}{i}" for i in range(2 * n)],
            "label": [rows[i][0] for i in order],
            "text": [rows[i][1] for i in order],
            "minutes": [1 + int(i) % 5 for i in order],
        }
    )


def visits(n: int, seed: int, first: int = 0) -> pa.Table:
    """Make n visits to either of two wards, of patients with two visits each."""
    rng = np.random.default_rng(seed)
    ward = np.repeat(["north", "south"], n)
    age = np.concatenate([rng.normal(70, 9, n), rng.normal(45, 9, n)])
    dose = rng.normal(5, 1, 2 * n)
    order = rng.permutation(2 * n)
    sick = (age + 8 * dose + rng.normal(0, 6, 2 * n) > 96).astype(int)
    columns: dict[str, Any] = {
        "visit": np.arange(first, first + 2 * n),
        "patient": [f"patient-{(first + i) // 2}" for i in range(2 * n)],
        "ward": ward[order].tolist(),
        "age": age[order],
        "dose": dose[order],
        "sick": sick[order],
        "cost": (age + 3 * dose)[order],
    }
    return pa.table(columns)


def make(folder: Path) -> Workspace:
    """Make the workspace, and files of fresh records beside it."""
    tables = {
        "messages": messages(TEXTS, 0), "fresh_messages": messages(30, 1, "f"),
        "visits": visits(60, 2), "fresh_visits": visits(25, 3, 10_000),
    }  # fmt: skip
    for name, table in tables.items():
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")
    workspace = Workspace.create(folder / "ws")
    workspace.add_dataset("messages", folder / "messages.csv", id_column="id")
    workspace.add_dataset("visits", folder / "visits.csv", id_column="visit", subjects=["patient"])
    text = "feature_extraction.TfidfVectorizer->"
    texts: dict[str, Any] = {"datasets": ["messages"], "target": "label", "features": ["text"]}
    workspace.fit("bayes", f"{text}naive_bayes.MultinomialNB", **texts)
    workspace.fit("linear", f"{text}linear_model.LogisticRegression", **texts)
    numbers: dict[str, Any] = {"datasets": ["visits"], "features": ["age", "dose"]}
    scaled = "preprocessing.StandardScaler->"
    workspace.fit("sick", f"{scaled}linear_model.LogisticRegression", target="sick", **numbers)
    workspace.fit("value", "linear_model.Ridge", target="cost", **numbers)
    workspace.fit("groups", "cluster.KMeans", params={"n_clusters": "2"}, **numbers)
    workspace.fit("tree", "sklearn.tree.DecisionTreeClassifier", target="sick", **numbers)
    workspace.register("ranker", datasets=["visits"])
    return workspace


def bytes_of(folder: Path) -> dict[str, str]:
    """Hash every file of the workspace, and what its ledger says."""
    root = folder / "ws"
    found = {
        str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith("ledger.db")
    }
    with closing(sqlite3.connect(root / "ledger.db")) as ledger:
        found["ledger"] = sha256("\n".join(ledger.iterdump()).encode()).hexdigest()
    return found


def opened_in(folder: Path) -> Workspace:
    """Open the workspace of a folder."""
    return Workspace.open(folder / "ws")


def read(folder: Path, name: str) -> dict[str, Any]:
    """Return the columns of a source, in the order of its ids."""
    options = pyarrow.csv.ConvertOptions(column_types={"id": pa.string(), "visit": pa.string()})
    table = pyarrow.csv.read_csv(folder / f"{name}.csv", convert_options=options)
    return {n: table.sort_by(table.column_names[0])[n].to_numpy() for n in table.column_names}


def plan_of(workspace: Workspace, folder: Path, asked: dict[str, Any]) -> Any:
    """Plan one of `PLANS`."""
    asked = dict(asked)
    if "fresh" in asked:
        asked["fresh"] = str(folder / asked["fresh"])
    return workspace.plan_removal(asked.pop("dataset"), **asked)
