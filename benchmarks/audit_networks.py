"""Audits of methods by which networks forget about, on CIFAR-10; for `audits.py`. Needs torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from data import FOLDER

from erasable.audit import audit_deletion_method

Found = dict[str, Any]
CAT = 3
MEASURES = ("U-LiRA accuracy", "KLoM of halves", "its floor", "distance", "floor of the distance")


def images(n_others: int) -> tuple[Any, Any]:
    """Read cats, and some images of each other class, grey and of 16 x 16 pixels."""
    with np.load(FOLDER / "cifar10" / "cifar10_cat_subset.npz") as file:
        X, y = file["x_train"], file["y_train"].ravel()
    chosen = [np.flatnonzero(y == k)[: 4 * n_others if k == CAT else n_others] for k in range(10)]
    rows = np.sort(np.concatenate(chosen))
    grey = X[rows].mean(axis=3).reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4)) / 255.0
    return grey.reshape(rows.size, -1), y[rows]


def cifar(quick: bool) -> Found:
    """Audit methods by which networks forget a quarter of the cats.

    Among 300 images of each other class and 1,200 cats, of which 300 are to be forgotten and 300
    are in no model; ten epochs. `Retrain` is the control: it is exact, but for its seed.
    """
    from erasable.neural import NetworkClassifier
    from erasable.neural import approximate as ways

    n_others, epochs, n_models = (40, 2, 4) if quick else (300, 10, 16)
    X, y = images(n_others)
    cats = np.flatnonzero(y == CAT)
    gone, fresh = cats[:n_others], cats[n_others : 2 * n_others]
    kept = np.setdiff1d(np.arange(y.size), np.concatenate([gone, fresh]))

    def train(X: Any, y: Any, seed: int) -> Any:
        network = NetworkClassifier(
            "backbones.classes", shape=(1, 16, 16), max_epochs=epochs, random_state=seed
        )
        return network.fit(X, y)

    rows = []
    tried = {
        "Retrain": ways.Retrain(epochs), "FineTune": ways.FineTune(), "SalUn": ways.SalUn(),
        "NegGradPlus": ways.NegGradPlus(),
    }  # fmt: skip
    for name, way in tried.items():

        def method(X: Any, y: Any, deleted: Any, seed: int, way: Any = way) -> Any:
            left = np.setdiff1d(np.arange(len(y)), deleted)
            forget, retain = (X[deleted], y[deleted]), (X[left], y[left])
            way.set_params(random_state=seed)
            return way(train(X, y, seed), forget, retain)[0]

        report = audit_deletion_method(
            method, (X[kept], y[kept]), (X[gone], y[gone]), recipe=train,
            fresh=(X[fresh], y[fresh]), domain=y[kept] == CAT, n_models=n_models,
            control=name == "Retrain", level=0.1 if quick else 0.05, random_state=1,
        )  # fmt: skip
        told = report.to_dict()
        rows.append(
            {"method": name}
            | {key: told[key] for key in ("verdict", "sentence", "groups", "parameters", "seconds")}
        )
        print(name, report, flush=True)
    return {
        "records": int(kept.size + gone.size),
        "deleted": int(gone.size),
        "models": n_models,
        "rows": rows,
    }


def lines(of: Found) -> list[str]:
    """Write what audits of approximate methods showed."""
    told = [
        "",
        "**Approximate methods for networks**: a small network on CIFAR-10 (grey, 16 x 16 "
        f"pixels, {of['records']:,} images, of which {of['deleted']} cats are to be forgotten), "
        f"{of['models']} models that forgot, compared with {of['models']} that never had them. "
        "U-LiRA: the share of held-out models that the attack classifies correctly, 0.5 by chance. "
        "KLoM: the divergence of the margins of half of the models from those of retrained models. "
        "Its floor is the divergence between retrained models, which is high for so few models "
        "(published figures use 100).",
        "",
        "| method | verdict | group | U-LiRA | KLoM | floor | distance | floor |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in of["rows"]:
        for group in row["groups"]:
            of_group = group["measures"]
            cells = [_cell(of_group.get(name)) for name in MEASURES]
            told.append(
                f"| `{row['method']}` | {row['verdict']} | {group['name']} | {' | '.join(cells)} |"
            )
    found = [f"`{row['method']}`" for row in of["rows"] if row["verdict"] == "found"]
    rest = [f"`{row['method']}`" for row in of["rows"] if row["verdict"] != "found"]
    return [
        *told,
        "",
        f"Conclusions: {' and '.join(rest)} cannot be distinguished from models that never had the "
        f"records; {', '.join(found)} can. Accuracy does not show this: an average over "
        "forgotten and new cats hides the differences in single records, and so does the "
        "average over records (see the most memorised). If a method is detected on "
        "retained records, or on records that no model had, it has changed the whole model: this "
        "is also a trace of the deletion. If you have promised erasure, train again, or use an "
        "estimator that deletes exactly. If you use an approximate method, say so, and publish "
        "an audit of these records, because another request may give another result.",
    ]


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
