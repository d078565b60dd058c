"""Regions of a map: the utility left against scikit-learn, the grid, and what the page says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import figures
import numpy as np
import pytest
import regions
import report
from sklearn.gaussian_process import GaussianProcessRegressor

from erasable.selection import MutualInformation, VarianceReduction

RNG = np.random.default_rng(3)
PLACES = np.concatenate([RNG.random((400, 2)) * [7.0, 3.0], [[0.0, 0.0], [7.0, 3.0]]])
MAP = regions.Map.of(PLACES, 5.0)
SELECTED = RNG.permutation(len(MAP.cells))[:9]
STAYS = np.concatenate([RNG.random((12, 9)) < 0.6, np.zeros((1, 9), dtype=bool)])
NOISE = 0.3
RESULTS = report.load()


def kernel() -> Any:
    return regions.RBF(regions.LENGTHS, "fixed")


def variance_taken(stays: np.ndarray) -> float:
    """Return by how much a Gaussian process of scikit-learn is surer of all the regions."""
    rows = SELECTED[stays]
    if not len(rows):
        return 0.0
    process = GaussianProcessRegressor(kernel(), alpha=NOISE, optimizer=None)
    process.fit(MAP.points[rows], np.zeros(len(rows)))
    deviation = process.predict(MAP.points, return_std=True)[1]
    return float((1 - deviation**2).sum())


def information(stays: np.ndarray) -> float:
    """Return the sum of logarithms of eigenvalues."""
    K = kernel()(MAP.points[SELECTED[stays]]) if stays.any() else np.zeros((0, 0))
    return float(np.log1p(np.linalg.eigvalsh(K) / NOISE).sum())


@pytest.mark.parametrize(
    ("by_variance", "oracle"), [(True, variance_taken), (False, information)]
)  # fmt: skip
def test_the_utility_left_is_that_of_who_stays(
    by_variance: bool, oracle: Callable[[np.ndarray], float]
) -> None:
    K = kernel()(MAP.points)
    expected = np.array([oracle(stays) for stays in STAYS])
    assert expected[-1] == 0 < expected[0]
    found = regions.GaussianLeft(K, NOISE, by_variance, SELECTED)(STAYS)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    other = regions.GaussianLeft(K, 1.1 * NOISE, by_variance, SELECTED)(STAYS)
    assert np.abs(other - expected).max() > 0.01


def test_regions_are_the_cells_with_a_place() -> None:
    assert MAP.points.min() > 0
    assert MAP.points.max() < regions.SIDE
    scaled = PLACES / [7.0, 3.0] * regions.SIDE
    near = np.abs(scaled[:, None] - MAP.points).max(axis=2)
    assert (near.min(axis=1) <= 2.5 + 1e-9).all()
    assert (near.min(axis=0) <= 2.5 + 1e-9).all()
    assert (MAP.is_left == (MAP.cells[:, 0] < 6)).all()
    again = {(c, row) for row, first, last in MAP.runs() for c in range(first, last + 1)}
    assert again == set(map(tuple, MAP.cells.tolist()))
    assert len(MAP.runs()) < len(MAP.cells)


@pytest.fixture(scope="module", params=["MI", "VR"])
def study(request: pytest.FixtureRequest) -> regions.Study:
    if request.param == "MI":
        return regions.Study(
            "MI", lambda kernel, noise: MutualInformation(kernel, gamma=1 / noise), MAP, False,
            fewer=True,
        )  # fmt: skip
    return regions.Study(
        "VR", lambda kernel, noise: VarianceReduction(kernel, noise=noise), MAP, True, fewer=True
    )


def test_maps_show_what_is_chosen(study: regions.Study, tmp_path: Path) -> None:
    found = regions.maps(study)
    assert list(found["figures"]) == ["20", "21"]
    for figure in found["figures"].values():
        assert len({map_["title"] for map_ in figure["panels"]}) == len(figure["panels"])
        for each in figure["panels"]:
            for points in each["marks"].values():
                assert len(np.unique(points, axis=0)) == regions.K
                assert np.isin(points, MAP.points.round(3)).all()
    for row in found["notes"]["sides"]["rows"][:2]:
        assert sum(map(int, row[1:])) == regions.K
    files = figures.draw("mi-s", found, tmp_path)
    assert [(tmp_path / file).stat().st_size > 5000 for file in files] == [True, True]


def test_the_chosen_on_the_left_are_counted(study: regions.Study) -> None:
    found = regions.counts(study)
    (drawn,) = found["figures"]["22"]["panels"]
    for each, s in zip(drawn["lines"], (*regions.LOWER, 1.0), strict=True):
        chosen = study.select(regions.MOST, study.lower(s) if s < 1 else 1.0)
        left = MAP.points[chosen][:, 0] < regions.BORDER
        assert each["y"].tolist() == [left[:total].sum() for total in each["x"]]
    assert [row[5] for row in found["notes"]["lower"]["rows"]] == [
        str(each["y"][-1]) for each in drawn["lines"]
    ]


def test_fewer_and_more_are_told_apart() -> None:
    plain = np.array([1, 2, 3, 4, 5])
    assert regions.against(plain, plain) == ["0", "0", "never"]
    assert regions.against(np.array([0, 2, 4, 5, 6]), plain) == ["1", "3", "3"]
    assert regions.against(np.array([2, 3, 4, 5, 6]), plain) == ["0", "5", "1"]
    assert regions.against(np.array([2, 3, 4, 5, 5]), plain) == ["0", "4", "never"]


def numbers(name: str, note: str) -> list[dict[str, Any]]:
    """Return the rows of a stored table, each by the heads of its columns."""
    given = RESULTS[name]["notes"][note]
    return [dict(zip(given["head"], row, strict=True)) for row in given["rows"]]


def on_the_left(name: str) -> dict[str, np.ndarray]:
    """Return how many of the chosen are left of the line, by total, in figure 22."""
    (drawn,) = RESULTS[name]["figures"]["22"]["panels"]
    return {each["label"]: np.array(each["y"]) for each in drawn["lines"]}


def hardly_differs(name: str, s: int) -> bool:
    """Say whether a selection of figure 20 lies, and is worth, as the conventional one."""
    plain, *ours, random = numbers(name, "lie")
    row = ours[s]
    near, apart = f"to the nearest of {name[:2].upper()}", "to the nearest other one"
    return (
        float(row[near]) < 0.6 * float(random[near])
        and abs(float(row[apart]) / float(plain[apart]) - 1) < 0.1
        and float(numbers(name, "worth")[s]["relative"].removesuffix(" %")) < 1
    )


def right_is_preferred(name: str) -> bool:
    """Say whether more regions are chosen on the right in figure 21."""
    plain, ours, _ = (list(row.values()) for row in numbers(name, "sides"))
    return sum(map(int, ours[3:])) > sum(map(int, plain[3:]))


def test_what_the_page_says_of_information() -> None:
    assert hardly_differs("mi-s", 0)
    assert hardly_differs("mi-s", 1)
    assert right_is_preferred("mi-s")
    _, before, along, _ = (
        (int(a), int(b))
        for a, b in zip(*(list(row.values())[1:] for row in numbers("mi-s", "sides")[:2]),
                        strict=True)
    )  # fmt: skip
    assert along[1] > along[0]
    assert before[0] >= 2 * before[1] > 0
    left = list(on_the_left("mi-s").values())
    for fewer, more in pairwise(left):
        assert (fewer <= more).all()
        assert (fewer < left[-1]).mean() > 0.95
    for row in numbers("mi-s", "others"):
        assert row["with more"] == "0"
        plain, ours = map(int, row["right of the line, s = 0.5: MI / DAMI"].split(" / "))
        assert plain < ours
        assert (ours == regions.K) == (row["map"] == "120")


def test_what_the_page_says_of_variance() -> None:
    assert not hardly_differs("vr-s", 0)
    assert not hardly_differs("vr-s", 1)
    assert not right_is_preferred("vr-s")
    plain, moderate, low, _ = numbers("vr-s", "lie")
    for distance in ("to the nearest other one", "to the middle"):
        assert float(low[distance]) < float(moderate[distance]) < float(plain[distance])
    plain, ours, _ = numbers("vr-s", "sides")
    assert int(ours["x0 from 30 to 35"]) > int(plain["x0 from 30 to 35"])
    assert 0 < int(plain["x0 from 20 to 30"]) - int(ours["x0 from 20 to 30"]) < 4
    left = on_the_left("vr-s")
    for s in ("s = 0.2", "s = 0.4", "s = 0.6"):
        assert (left[s] <= left["s = 1"])[:10].all()
        assert (left[s] < left["s = 1"])[:10].sum() > 7
        assert (left[s] > left["s = 1"])[59:].all()
    assert left["s = 0.2"][-1] > left["s = 0.4"][-1] > left["s = 0.6"][-1]
    fewer = [(left[s] < left["s = 1"]).sum() for s in ("s = 0.2", "s = 0.4", "s = 0.6")]
    assert fewer == sorted(fewer, reverse=True)
    small, large = numbers("vr-s", "others")[:4], numbers("vr-s", "others")[4:]
    turns = [100 if row["more from"] == "never" else int(row["more from"]) for row in small]
    assert turns == sorted(turns)
    for row in small + large:
        plain_right, right = map(int, row["right of the line, s = 0.5: VR / DAVR"].split(" / "))
        assert (right > plain_right) == (row["map"] == "120")
