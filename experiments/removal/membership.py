"""Membership: whether a domain still shows in models after a removal by scores, on Jigsaw.

Usage: ``python experiments/removal/membership.py [--quick]``. The paper proposes an evaluation by
membership inference for future work.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import domains
import jigsaw
import numpy as np
import removal_page
from scipy.sparse import csr_matrix, vstack
from shared import command, spread
from sklearn.linear_model import LogisticRegression

from erasable.audit import audit_deletion_method, audit_membership

N_FORGET, N_FRESH, N_RETAIN, MODELS, SPLITS = 600, 300, 3000, 16, 3
SCORES, SHARES = ("random", "lr-maha", "density-ratio"), (0.3, 0.6, 0.9)
PENALTY = 10.0
GROUPS = {"deleted": "its records", "fresh": "others of the domain", "retained": "other comments"}


@dataclass(frozen=True)
class Parts:
    """Rows and classes of a domain to remove, of others of it, and of what is kept; and orders.

    Attributes
    ----------
    forget, fresh, retain, pool : tuple of (csr_matrix, ndarray)
        The pool has as many of the domain and as many others, for models to compare with.
    orders : dict of str to ndarray
        By score.
    """

    forget: tuple[Any, Any]
    fresh: tuple[Any, Any]
    retain: tuple[Any, Any]
    pool: tuple[Any, Any]
    orders: dict[str, Any]


def parts_of(seed: int, quick: bool) -> Parts:
    """Draw profane comments and others, and rank the profane ones by every score."""
    texts, toxic, profane = domains.jigsaw(jigsaw.MAIN.reading)
    rng = np.random.default_rng([seed, 41])
    of_domain, others = (rng.permutation(np.flatnonzero(each)) for each in (profane, ~profane))
    scale = 4 if quick else 1
    forget, fresh = np.split(of_domain[: (N_FORGET + N_FRESH) // scale], [N_FORGET // scale])
    retain, more = np.split(others[: 2 * N_RETAIN // scale], [N_RETAIN // scale])
    pool = np.concatenate([of_domain[(N_FORGET + N_FRESH) // scale :][: N_FORGET // scale], more])
    vectoriser, rows = domains.vectorised(texts, forget, retain, **jigsaw.WORDS)
    found = domains.orders(rows, seed, SCORES)

    def read(places: Any) -> tuple[Any, Any]:
        return csr_matrix(vectoriser.transform(texts[places])), toxic[places].astype(int)

    orders = {name: found[name].order for name in SCORES}
    return Parts(read(forget), read(fresh), read(retain), read(pool), orders)


def learn(X: Any, y: Any, seed: int) -> LogisticRegression:
    """Train the model."""
    return LogisticRegression(C=PENALTY, solver="liblinear", random_state=seed).fit(X, y)


def key(row: Any) -> bytes:
    """Return what tells a sparse row from others."""
    return bytes(row.indices.astype(np.int64).tobytes() + row.data.tobytes())


def removed(forget: Any, order: Any, share: float) -> Any:
    """Return the method that trains without the first records of an order, and keeps the others.

    The audit shuffles records, so that they are known by their values.
    """
    gone = {key(forget[[j]]) for j in order[: round(share * len(order))].tolist()}

    def method(X: Any, y: Any, deleted: Any, seed: int) -> Any:
        left = np.ones(X.shape[0], dtype=bool)
        left[[j for j in deleted.tolist() if key(X[[j]]) in gone]] = False
        return learn(X[left], y[left], seed)

    return method


def domain_shows(parts: Parts, order: Any, share: float, quick: bool) -> Any:
    """Audit: models after the removal against models that never had any record of the domain."""
    return audit_deletion_method(
        removed(parts.forget[0], order, share), parts.retain, parts.forget, recipe=learn,
        fresh=parts.fresh, n_models=8 if quick else MODELS, n_exchanges=99, control=share == 1,
        random_state=0,
    )  # fmt: skip


def records_show(parts: Parts, order: Any, share: float, which: str) -> Any:
    """Audit one model for membership: of the records removed, or of those of the domain kept."""
    count = round(share * len(order))
    gone, kept = order[:count], order[count:]
    X, y = parts.forget
    classes = np.concatenate([y[kept], parts.retain[1]])
    model = learn(vstack([X[kept], parts.retain[0]], format="csr"), classes, 0)
    asked = gone if which == "removed" else kept
    return audit_membership(
        model, (X[asked], y[asked]), parts.fresh, pool=parts.pool, recipe=learn, random_state=0,
    )  # fmt: skip


def of_records(quick: bool) -> dict[str, Any]:
    """Attack single models: are records of the domain, removed or kept, told from unseen ones?"""
    areas: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
    verdicts: dict[tuple[str, str, float], list[str]] = {}
    for seed in range(1 if quick else SPLITS):
        command.say(f"records, split {seed}")
        parts = parts_of(seed, quick)
        for which in ("removed", "kept"):
            for score in SCORES:
                for share in SHARES:
                    report = records_show(parts, parts.orders[score], share, which)
                    pair = [group.separation.area for group in report.groups]
                    areas.setdefault((which, score, share), []).append((pair[0], pair[1]))
                    verdicts.setdefault((which, score, share), []).append(report.verdict)
    rows = []
    for which in ("removed", "kept"):
        for score in SCORES:
            row = [f"{which}, by `{score}`"]
            for share in SHARES:
                mine, control = np.array(areas[which, score, share]).T
                found = sum(each == "found" for each in verdicts[which, score, share])
                row += [spread(mine, 2), spread(control, 2), f"{found} of {len(mine)}"]
            rows.append(row)
    head = ["records"]
    for share in SHARES:
        head += [f"{share:.0%} removed: AUC", "control", "found"]
    return {"notes": {"records": {"head": head, "rows": rows}}, "facts": {}, "settings": settings()}


def of_domain(quick: bool) -> dict[str, Any]:
    """Attack models of two kinds: does it show that they have learned from some of the domain?"""
    cases = [(score, share) for score in SCORES for share in SHARES] + [("any", 1.0)]
    areas: dict[tuple[str, float], list[list[float]]] = {case: [] for case in cases}
    verdicts: dict[tuple[str, float], list[str]] = {case: [] for case in cases}
    whole = []
    for seed in range(1 if quick else SPLITS):
        parts = parts_of(seed, quick)
        for case in cases:
            command.say(f"domain, split {seed}: {case}")
            score, share = case
            order = parts.orders[score if score != "any" else "random"]
            report = domain_shows(parts, order, share, quick)
            groups = {group.name: group.measures for group in report.groups}
            areas[case].append([groups[name]["U-LiRA AUC"] for name in GROUPS])
            verdicts[case].append(report.verdict)
            if share == 1:
                whole.append(groups["control, deleted nothing: deleted"]["U-LiRA AUC"])
    rows = [["nothing", "0", spread(whole, 2), "-", "-", "-"]]
    for case in cases:
        score, share = case
        found = sum(each == "found" for each in verdicts[case])
        name = "everything" if score == "any" else f"`{score}`"
        columns = [spread(column, 2) for column in np.array(areas[case]).T]
        rows.append([name, f"{100 * share:.0f}", *columns, f"{found} of {len(verdicts[case])}"])
    head = ["removed by", "%", *(f"AUC: {told}" if at == 0 else told
                                 for at, told in enumerate(GROUPS.values())), "found"]  # fmt: skip
    return {"notes": {"domain": {"head": head, "rows": rows}}, "facts": {}, "settings": settings()}


def settings() -> dict[str, str]:
    """Say what was done."""
    return {
        "data": f"Jigsaw: {N_FORGET} profane comments to remove, {N_FRESH} others of the domain "
        f"that no model has seen, {N_RETAIN:,} other comments; {SPLITS} draws",
        "model": f"logistic regression of who is toxic, C = {PENALTY:g}, on TF-IDF as in the "
        "experiment on Jigsaw; after a removal it is trained again without what was removed",
        "attacks": "RMIA on one model by `audit_membership`; U-LiRA on "
        f"{MODELS} models of each kind by `audit_deletion_method`",
    }


PARTS = {"records": of_records, "domain": of_domain}

if __name__ == "__main__":
    sys.exit(command.run("membership", __doc__, PARTS, removal_page, takes=("folder",)))
