"""Regions of a map, and which of them are chosen: figures 20 to 22, for MI-S and for VR-S.

The paper's map is that of Singapore's traffic. Here regions are the cells of a grid over California
in which there is a block of houses; both coordinates are stretched to the same length.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from command import Part, say
from comparisons import Prepared
from data import data_sets
from figures import panel
from numpy.typing import NDArray
from simulations import Floats, Ints, Mask
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import euclidean_distances

from erasable.selection import Expected, SubsetSelector
from erasable.selection.staying import as_staying
from erasable.selection.utilities import Utility

SIDE, BORDER = 60.0, 30.0  # of the map, and where its left half ends
WIDTH = 0.4  # of a cell: about as many regions as in the paper
LENGTHS = np.array([5.0, 8.0])
NOISE = 0.1  # its variance; that of the signal is 1
ASSUMED = (NOISE, 1)
OTHERS = ((0.01, 1), (0.1, 1), (0.3, 1), (1.0, 1), (0.1, 2), (1.0, 2))
"""What the paper leaves to its code: the noise, and how large the map is, 1 for SIDE."""
K, MOST = 40, 100
EQUAL, UNEQUAL, LOWER = (0.6, 0.2), 0.5, (0.2, 0.4, 0.6)
SAMPLES, FEWER = {K: 10_000, MOST: 5_000}, 1_000  # to choose by; for other assumptions
STRIPS = ((0, 20), (20, 30), (30, 35), (35, 60))
SEED = 0
_CHUNK = 500
Make = Callable[[RBF, float], Utility]


@dataclass(frozen=True)
class Map:
    """Cells of a grid.

    Attributes
    ----------
    cells : ndarray of shape (n_regions, 2), int64
        Column and row of each.
    width : float
    """

    cells: Ints
    width: float

    @classmethod
    def read(cls, width: float = WIDTH) -> Map:
        """Read where the blocks of the California housing data are."""
        frame = pd.read_csv(data_sets.path("california_housing/cal_housing.csv.gz"))
        return cls.of(frame[["longitude", "latitude"]].to_numpy(np.float64), width)

    @classmethod
    def of(cls, places: Floats, width: float) -> Map:
        """Return the cells that hold a place, after both coordinates are stretched."""
        low, high = places.min(axis=0), places.max(axis=0)
        last = round(SIDE / width) - 1  # the largest coordinate is in the last cell
        cells = np.floor((places - low) / (high - low) * SIDE / width).astype(np.int64)
        return cls(np.unique(np.minimum(cells, last), axis=0), width)

    @property
    def points(self) -> Floats:
        """Return the centres of the regions."""
        return (self.cells + 0.5) * self.width

    @property
    def is_left(self) -> NDArray[np.bool_]:
        """Say which regions are left of the border."""
        return np.asarray(self.points[:, 0] < BORDER)

    def runs(self) -> list[list[int]]:
        """Return the cells row by row, neighbours together: row, first and last column."""
        runs: list[list[int]] = []
        for column, row in sorted(self.cells.tolist(), key=lambda cell: (cell[1], cell[0])):
            if runs and runs[-1][0] == row and runs[-1][2] == column - 1:
                runs[-1][2] = column
            else:
                runs.append([row, column, column])
        return runs


class GaussianLeft:
    """What is left of the information, or of the reduction of variance, for a selection.

    It is computed from whole matrices for each simulation: the kernel of who stays, with a row and
    column of the identity in place of each who has left.

    Parameters
    ----------
    K : ndarray of shape (n_regions, n_regions)
        The kernel.
    noise : float
    by_variance : bool
        Whether it is the reduction of variance, over all the regions.
    selected : ndarray of int64
    """

    def __init__(self, K: Floats, noise: float, by_variance: bool, selected: Ints) -> None:
        self.kernel = K[np.ix_(selected, selected)] / noise
        cross = K[selected]
        self.products = cross @ cross.T / noise if by_variance else None

    def __call__(self, stays: Mask) -> Floats:
        values, n = np.empty(len(stays)), len(self.kernel)
        for start in range(0, len(stays), _CHUNK):
            both = stays[start : start + _CHUNK, :, None] * stays[start : start + _CHUNK, None, :]
            left = np.eye(n) + both * self.kernel
            if self.products is None:
                values[start : start + _CHUNK] = np.linalg.slogdet(left)[1]
            else:
                solved = np.linalg.solve(left, both * self.products)
                values[start : start + _CHUNK] = np.trace(solved, axis1=1, axis2=2)
        return values


class Study:
    """One utility on one map.

    Parameters
    ----------
    name : str
        Of the conventional selection; that of the anticipating one is preceded by DA.
    make : callable
        Makes the utility for a kernel and a variance of the noise.
    of : Map
    by_variance : bool
    fewer : bool, default=False
        Whether to draw few samples, for a trial.
    """

    def __init__(
        self,
        name: str,
        make: Make,
        of: Map,
        by_variance: bool,
        *,
        fewer: bool = False,
    ) -> None:
        self.name, self.of, self.by_variance, self.fewer = name, of, by_variance, fewer
        self.make = make
        self.K = RBF(LENGTHS)(of.points)
        self.prepared: dict[Any, Utility] = {}
        self.made: dict[Any, Ints] = {}

    def select(self, k: int, staying: Any = 1.0, assumed: tuple[float, int] = ASSUMED) -> Ints:
        """Choose k regions, in the order of choice; once for each way to."""
        key = (k, np.asarray(staying).tobytes(), assumed)
        if key not in self.made:
            if assumed not in self.prepared:
                noise, size = assumed
                utility = self.make(RBF(LENGTHS / size), noise)
                self.prepared[assumed] = Prepared(utility, self.of.points, None)
            n_samples = SAMPLES[k] if assumed == ASSUMED else FEWER
            selector = SubsetSelector(
                self.prepared[assumed], k=k, staying=staying,
                objective=Expected(100 if self.fewer else n_samples), random_state=SEED,
            )  # fmt: skip
            self.made[key] = selector.fit(self.of.points).selected_
        return self.made[key]

    def lower(self, s: float) -> Floats:
        """Return staying probabilities: s left of the border, 1 on the right."""
        return np.where(self.of.is_left, s, 1.0)

    def left(self, selected: Ints, staying: Any) -> Floats:
        """Return the utility after departures that no selection was made by."""
        measure = GaussianLeft(self.K, NOISE, self.by_variance, selected)
        own = staying[selected] if isinstance(staying, np.ndarray) else staying
        n = 200 if self.fewer else SAMPLES[K]
        return measure(as_staying(own).sample(len(selected), n, random_state=SEED + 1))

    def compared(self, ours: Ints, plain: Ints, staying: Any) -> list[str]:
        """Return expected utilities of two selections, the difference, and its share."""
        both = [self.left(each, staying) for each in (ours, plain)]
        more = both[0] - both[1]
        error = float(np.std(more, ddof=1)) / len(more) ** 0.5
        return [
            *(f"{each.mean():,.2f}" for each in both),
            f"{more.mean():+.2f} ± {error:.2f}", f"{100 * more.mean() / both[1].mean():+.2f} %",
        ]  # fmt: skip

    def drawn(self, panels: list[tuple[str, dict[str, Ints]]], title: str) -> dict[str, Any]:
        """Return a figure of the map, with selections in each panel."""
        points = self.of.points.round(3)
        return {
            "kind": "map",
            "title": title,
            "width": self.of.width,
            "runs": self.of.runs(),
            "panels": [
                {"title": heading, "marks": {label: points[rows] for label, rows in marks.items()}}
                for heading, marks in panels
            ],
        }

    def spread(self, selected: Ints, plain: Ints) -> list[str]:
        """Return how the chosen lie.

        How many of them are chosen conventionally, too; and mean distances to the nearest of those,
        to the nearest other one, and to the middle of all the regions.
        """
        points = self.of.points
        shared = int(np.isin(selected, plain).sum())
        from_plain = euclidean_distances(points[selected], points[plain]).min(axis=1)
        apart = euclidean_distances(points[selected])
        np.fill_diagonal(apart, np.inf)
        middle = np.linalg.norm(points[selected] - points.mean(axis=0), axis=1)
        distances = (from_plain, apart.min(axis=1), middle)
        return [str(shared), *(f"{each.mean():.2f}" for each in distances)]


def maps(study: Study) -> dict[str, Any]:
    """Choose where all stay with one probability, and where the left half differs: both maps."""
    name, da, x0 = study.name, f"DA{study.name}", study.of.points[:, 0]
    plain = study.select(K)
    lie = [[name, "1", *study.spread(plain, plain)]]
    panels, worth = [], []
    for s in EQUAL:
        say(f"regions that stay with s = {s:g}")
        ours = study.select(K, s)
        panels.append((f"s = {s:g}", {name: plain, da: ours}))
        lie.append([da, f"{s:g}", *study.spread(ours, plain)])
        worth.append([f"all with s = {s:g}", *study.compared(ours, plain, s)])
    rng = np.random.default_rng(SEED)
    chance = [rng.choice(len(x0), K, replace=False) for _ in range(10)]
    spreads = np.array([study.spread(each, plain) for each in chance], dtype=np.float64)
    lie.append(["random", "", *(f"{mean:.2f}" for mean in spreads.mean(axis=0))])

    say(f"regions left of the line that stay with s = {UNEQUAL:g}")
    heading = f"s = {UNEQUAL:g} on the left, 1 on the right"
    staying = study.lower(UNEQUAL)
    ours = study.select(K, staying)
    worth.append([heading, *study.compared(ours, plain, staying)])
    sides = [
        [label, *(str(((x0[rows] >= low) & (x0[rows] < high)).sum()) for low, high in STRIPS)]
        for label, rows in ((name, plain), (da, ours))
    ]
    share = [np.mean((x0 >= low) & (x0 < high)) for low, high in STRIPS]
    sides.append(["of all the regions", *(f"{each:.0%}" for each in share)])
    heads = {
        "lie": [
            "selection", "s", f"chosen by {name}, too", f"to the nearest of {name}",
            "to the nearest other one", "to the middle",
        ],
        "sides": ["selection", *(f"x0 from {low} to {high}" for low, high in STRIPS)],
        "worth": ["who stays", f"expected utility of {da}", f"of {name}", "difference", "relative"],
    }  # fmt: skip
    rows = {"lie": lie, "sides": sides, "worth": worth}
    chosen = f"{K} regions chosen by {name} and {da}"
    return {
        "figures": {
            "20": study.drawn(panels, f"Figure 20: {chosen}, where all stay with probability s"),
            "21": study.drawn(
                [(heading, {name: plain, da: ours})],
                f"Figure 21: {chosen}, where those left of the line stay with probability "
                f"{UNEQUAL:g}, and the others always",
            ),
        },
        "notes": {key: {"head": head, "rows": rows[key]} for key, head in heads.items()},
    }


def counts(study: Study) -> dict[str, Any]:
    """Count the chosen left of the border by how many are chosen: figure 22."""
    totals = np.arange(1, MOST + 1)
    found: dict[float, Ints] = {}
    for s in (*LOWER, 1.0):
        say(f"up to {MOST} regions, s = {s:g} on the left")
        chosen = study.select(MOST, study.lower(s) if s < 1 else 1.0)
        found[s] = np.cumsum(study.of.is_left[chosen])
    lines = [
        {"label": f"s = {s:g}", "x": totals, "y": left, "error": np.zeros(MOST)}
        for s, left in found.items()
    ]
    title = (
        f"Figure 22: how many regions left of the line are chosen, by DA{study.name}, where they "
        "stay with probability s and the others always"
    )
    figure = {
        "kind": "lines", "title": title, "x": "regions chosen", "y": "of them left of the line",
        "panels": [panel(f"DA{study.name}", lines)], "columns": len(lines),
    }  # fmt: skip
    some = [20, 40, 60, 80, 100]
    rows = [
        [f"{s:g}", *(str(left[total - 1]) for total in some), *against(left, found[1.0])]
        for s, left in found.items()
    ]
    head = ["s", *(f"of {total}" for total in some), "fewer than for s = 1", "more", "more from"]
    return {"figures": {"22": figure}, "notes": {"lower": {"head": head, "rows": rows}}}


def against(left: Ints, plain: Ints) -> list[str]:
    """Return at how many totals there are fewer and more, and from where on there are more."""
    fewer, more = left < plain, left > plain
    last = np.flatnonzero(~np.append(False, more))[-1]  # of none chosen there are not more
    return [str(fewer.sum()), str(more.sum()), "never" if last == len(more) else str(last + 1)]


def others(study: Study) -> dict[str, Any]:
    """Choose with less noise and with more, and on a larger map."""
    name, x0, rows = study.name, study.of.points[:, 0], []
    low, some = LOWER[0], UNEQUAL
    for assumed in OTHERS:
        noise, size = assumed
        say(f"with a noise of {noise:g}, on a map of {size * SIDE:g}")
        plain = study.select(MOST, 1.0, assumed)
        both = [plain[:K], study.select(K, study.lower(some), assumed)]
        apart = [study.spread(each, each)[2]
                 for each in (plain[:K], study.select(K, EQUAL[1], assumed))]  # fmt: skip
        right = [int((x0[each] >= BORDER).sum()) for each in both]
        before = [int(((x0[each] >= STRIPS[1][0]) & (x0[each] < BORDER)).sum()) for each in both]
        left = study.of.is_left[study.select(MOST, study.lower(low), assumed)]
        counted = against(np.cumsum(left), np.cumsum(study.of.is_left[plain]))
        pairs = [" / ".join(map(str, pair)) for pair in (apart, right, before)]
        rows.append([f"{noise:g}", f"{size * SIDE:g}", *pairs, *counted])
    pair = f"{name} / DA{name}"
    head = [
        "noise", "map", f"to the nearest other one, s = {EQUAL[1]:g}: {pair}",
        f"right of the line, s = {some:g}: {pair}",
        f"x0 from {STRIPS[1][0]} to {STRIPS[1][1]}, s = {some:g}: {pair}",
        f"totals with fewer on the left, s = {low:g}", "with more", "more from",
    ]  # fmt: skip
    return {"notes": {"others": {"head": head, "rows": rows}}}


def parts_of(name: str, make: Make, by_variance: bool) -> dict[str, Part]:
    """Return what an experiment measures, for its command."""

    @functools.cache
    def study(quick: bool) -> Study:
        return Study(name, make, Map.read(2.5 if quick else WIDTH), by_variance, fewer=quick)

    def first(quick: bool) -> dict[str, Any]:
        of = study(quick)
        n = len(of.of.cells)
        return maps(of) | {
            "settings": {
                "data": f"{n:,} regions of California with a block of houses, in place of 2,506 "
                f"of Singapore: cells of {WIDTH:g} on a map of {SIDE:g} by {SIDE:g}; "
                f"{of.of.is_left.mean():.0%} of them are left of x0 = {BORDER:g}",
                "kernel": "squared exponential, length scales 5 and 8, variance 1",
                "noise": f"variance {NOISE:g}",
                "samples": f"{SAMPLES[K]:,} to choose {K} by, {SAMPLES[MOST]:,} for {MOST}, and "
                f"{FEWER:,} for the last table; expected utilities are means over {SAMPLES[K]:,} "
                "others",
            }
        }

    return {
        "maps": first,
        "counts": lambda quick: counts(study(quick)),
        "others": lambda quick: others(study(quick)),
    }
