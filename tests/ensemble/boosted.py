"""An oracle of boosting: plain Python over the records themselves, one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from erasable.tree._boosted._losses import Poisson, Squares

__all__ = ["oracle", "told"]

_ALL = 2**64 - 1
_LEFT, _RIGHT = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
_VALUE, _ORDER = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB
_VALUES = 254


def _mix(x: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = ((x ^ (x >> 33)) * factor) & _ALL
    return x ^ (x >> 33)


class _Tree:
    """One tree, of the records' gradients and Hessians."""

    def __init__(self, oracle: _Oracle, key: int, g: list[int], h: list[int]) -> None:
        self.oracle, self.g, self.h, self.values = oracle, g, h, {}
        limit = oracle.params["max_leaf_nodes"]
        ranges = [(0, len(edges)) for edges in oracle.edges]
        open_ = [self.node(key, list(range(len(g))), ranges, 0)]
        root, n_leaves = open_[0], 1
        while n_leaves < (limit or math.inf):
            able = [node for node in open_ if node["best"] is not None]
            if not able:
                break
            node = max(able, key=lambda node: (node["score"], node["key"]))
            open_.remove(node)
            node["children"] = self.split(node)
            open_ += node["children"]
            n_leaves += 1
        for leaf in open_:
            self.end(leaf)
        self.shape = self.describe(root)

    def sums(self, rows: list[int]) -> tuple[int, int, int]:
        return sum(self.g[r] for r in rows), sum(self.h[r] for r in rows), len(rows)

    def gain(self, left: list[int], right: list[int]) -> float:
        params, loss = self.oracle.params, self.oracle.loss
        if min(len(left), len(right)) < params["min_samples_leaf"]:
            return -1.0
        l2 = params["l2_regularization"] * loss.hessian_one
        (a, b, _), (c, d, _) = self.sums(left), self.sums(right)
        one, other = float(b) + l2, float(d) + l2
        both = (float(a) ** 2 * other + float(c) ** 2 * one) / (one * other)
        return both - float(a + c) * float(a + c) / (float(b + d) + l2)

    def node(self, key: int, rows: list[int], ranges: Any, depth: int) -> dict[str, Any]:
        oracle = self.oracle
        found: dict[str, Any] = {"key": key, "rows": rows, "ranges": ranges, "depth": depth}
        found |= {"best": None, "score": 0.0}
        if depth >= (oracle.params["max_depth"] or 64):
            return found
        order = _mix(key ^ _ORDER)
        for f, (low, high) in enumerate(ranges):
            gaps = [r for r in rows if oracle.codes[r][f] == 255]
            hashed = {e: _mix(oracle.hashes[f][e] ^ order) for e in range(low, high)}
            tried = sorted(hashed, key=hashed.__getitem__)[: oracle.params["n_thresholds"]]
            if gaps:
                hashed[_VALUES] = _mix(oracle.keys[f] ^ order)
                tried.append(_VALUES)
            # In the order in which ties are broken: gaps against values, then by edge.
            for edge in sorted(tried, key=lambda e: -1 if e == _VALUES else e):
                left = [r for r in rows if oracle.goes_left(r, f, edge)]
                values = [r for r in rows if r not in set(left) and r not in set(gaps)]
                sides = [(left, values + gaps, 0)]
                if gaps and edge != _VALUES:
                    sides.append((left + gaps, values, 1))
                place = (hashed[edge] >> 20) & 4095
                drawn = -math.log((place + 0.5) / 4096)
                for one, other, gaps_left in sides:
                    gained = self.gain(one, other)
                    score = (gained + oracle.loss.offset) * drawn**-0.3
                    if gained > 0.0 and score > found["score"] * (1 + 1e-12):
                        if not gaps:
                            gaps_left = int(2 * len(one) >= len(rows))
                        found |= {"score": score, "best": (f, edge, gaps_left)}
        return found

    def split(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        f, edge, gaps_left = node["best"]
        children = []
        for side, left in ((_LEFT, True), (_RIGHT, False)):
            rows = [
                r
                for r in node["rows"]
                if left
                == (
                    bool(gaps_left)
                    if self.oracle.codes[r][f] == 255
                    else self.oracle.goes_left(r, f, edge)
                )
            ]
            low, high = node["ranges"][f]
            if edge == _VALUES or self.oracle.categorical[f]:
                empty = left if edge != _VALUES else not left
                own = (low, low) if empty else (low, high)
            else:
                own = (low, edge) if left else (edge + 1, high)
            ranges = [*node["ranges"]]
            ranges[f] = own
            key = _mix((node["key"] + side) & _ALL)
            children.append(self.node(key, rows, ranges, node["depth"] + 1))
        return children

    def end(self, leaf: dict[str, Any]) -> None:
        g, h, _ = self.sums(leaf["rows"])
        params, loss = self.oracle.params, self.oracle.loss
        h_ = float(h) + params["l2_regularization"] * loss.hessian_one
        exact = 0.0 if h_ <= 0 else -float(g) * loss.step(params["learning_rate"]) / h_
        draw = (_mix(leaf["key"] ^ _VALUE) >> 11) * 2.0**-53
        most = 2**20
        if isinstance(loss, Poisson):
            most = max(1, int(2 * params["learning_rate"] / loss.unit))
        leaf["value"] = 0 if h_ <= 0 else math.floor(min(max(exact, -most), most) + draw)
        for r in leaf["rows"]:
            self.values[r] = leaf["value"]

    def describe(self, node: dict[str, Any]) -> Any:
        if "children" not in node:
            return node["value"]
        f, edge, gaps_left = node["best"]
        edges = self.oracle.edges[f]
        threshold = np.finfo(float).max if edge == _VALUES else edges[edge]
        equal = bool(self.oracle.categorical[f]) and edge != _VALUES
        return (f, threshold, gaps_left, equal, *map(self.describe, node["children"]))


class _Oracle:
    """What boosting learns of records without weights, none of them held out."""

    def __init__(self, model: Any, X: Any) -> None:
        self.params, self.loss = model.get_params(), model._loss
        d = X.shape[1]
        self.categorical = [f in (self.params["categorical_features"] or []) for f in range(d)]
        gaps = (X < 0) & np.array(self.categorical)  # as scikit-learn reads them
        X = np.where(gaps, np.nan, X)
        tape = model._tape.child("feature")
        self.keys = [tape.key_of(name) for name in model._call_columns()]
        most = self.params["max_bins"] - 1
        self.edges, self.hashes = [], []
        for f in range(d):
            values = {float(x) + 0.0 for x in X[:, f] if not math.isnan(x)}
            hashed = {x: _mix(int(np.float64(x).view(np.uint64)) ^ self.keys[f]) for x in values}
            kept = sorted(sorted(hashed, key=hashed.__getitem__)[:most])
            self.edges.append(kept)
            self.hashes.append([hashed[x] for x in kept])
        self.codes = [[self.code(f, row[f]) for f in range(d)] for row in X.tolist()]

    def code(self, f: int, x: float) -> int:
        if math.isnan(x):
            return 255
        if self.categorical[f]:
            return self.edges[f].index(x) if x in self.edges[f] else len(self.edges[f])
        return sum(edge < x for edge in self.edges[f])

    def goes_left(self, r: int, f: int, edge: int) -> bool:
        code = self.codes[r][f]
        if code == 255:
            return False
        return code == edge if self.categorical[f] and edge != _VALUES else code <= edge

    def learn(self, model: Any, y: Any) -> list[Any]:
        """Return the shapes of the trees, round by round."""
        n, m = len(self.codes), self.loss.start.size
        raws = [[int(start)] * n for start in self.loss.start]
        shapes = []
        for t in range(self.params["max_iter"] if m else 0):
            trees = []
            for k in range(m):
                pairs = [self.pair([raws[j][r] for j in range(m)], y[r], k) for r in range(n)]
                key = model._tape.child("tree", t, k).seed
                trees.append(_Tree(self, key, [g for g, _ in pairs], [h for _, h in pairs]))
            for k, tree in enumerate(trees):
                raws[k] = [min(max(raws[k][r] + tree.values[r], -(2**30)), 2**30) for r in range(n)]
            shapes += [tree.shape for tree in trees]
        return shapes

    def pair(self, raws: list[int], y: Any, k: int) -> tuple[int, int]:
        if isinstance(self.loss, Squares):
            return raws[0] * 1024 - y, 256
        unit = self.loss.unit
        if isinstance(self.loss, Poisson):
            rate = math.exp(min(max(raws[0], -int(16 / unit)), int(16 / unit)) * unit)
            away = int(rate * 65536 + 0.5) - y
            return min(max(away, -(2**34)), 2**34), min(max(1, int(rate * 32 + 0.5)), 2048)
        if len(raws) == 1:
            raw = min(max(raws[0], -int(16 / unit)), int(16 / unit)) * unit
            share, right = 1.0 / (1.0 + math.exp(-raw)), y == 1
        else:
            away = [min(max(raws) - raw, 2 * int(16 / unit)) * unit for raw in raws]
            share = math.exp(-away[k]) / math.fsum(math.exp(-each) for each in away)
            right = y == k
        hessian = max(1, int(share * (1.0 - share) * 1024 + 0.5))
        return int(share * 65536 + 0.5) - 65536 * int(right), hessian


def oracle(model: Any, X: Any, y: Any) -> list[Any]:
    """Return what the trees should be.

    `y` are classes by number, or numbers in ``2**-10`` units of the model; with the loss of
    Poisson, in ``2**-16`` of its scale.
    """
    return _Oracle(model, X).learn(model, y)


def told(model: Any) -> list[Any]:
    """Return what the trees of a model are."""
    return [_nested(flat) for flat in model._flats()]


def _nested(flat: Any) -> Any:
    node = iter(range(flat.features.size))
    split, leaf = iter(range(flat.thresholds.size)), iter(range(flat.values.size))

    def walk() -> Any:
        feature = int(flat.features[next(node)])
        if feature < 0:
            return int(flat.values[next(leaf)])
        place = next(split)
        flags = int(flat.flags[place])
        own = (feature, float(flat.thresholds[place]), flags & 1, bool(flags & 2))
        left = walk()
        return (*own, left, walk())

    return walk()
