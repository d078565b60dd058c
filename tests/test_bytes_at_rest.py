"""What the documentation says of the size of models on disk, against the files that they write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import RegressorMixin

from erasable.utils.discovery import all_estimators

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "saving.md"
ROW = re.compile(r"^\| (`\w+`.*) \| ([\d.]+) d \+ (\d+) \|$", re.MULTILINE)
SIZES = {
    name: (float(slope), int(constant))
    for names, slope, constant in ROW.findall(PAGE.read_text())
    for name in re.findall(r"`(\w+)`", names)
}
PARAMS: dict[str, dict[str, Any]] = {
    "DBSCAN": {"eps": 1e-6},
    "KMeans": {"n_clusters": 4, "random_state": 0},
    "QuantizedKMeans": {"n_clusters": 4, "random_state": 0},
    "RandomFourierRidge": {"n_components": 4, "random_state": 0},
}
N = 8192  # arrays end with a page
RNG = np.random.default_rng(3)


def _bytes_a_record(name: str, d: int, folder: Path, more: int = 0) -> float:
    kind = {found: cls for found, cls, _ in all_estimators()}[name]
    sizes = []
    for n in (N, 2 * N):
        X = RNG.integers(0, 4, size=(n, d)).astype(np.float64)
        if not name.endswith(("Encoder", "NB")):
            X += RNG.normal(size=X.shape)
        y = RNG.normal(size=n) if issubclass(kind, RegressorMixin) else np.arange(n) % 2
        path = folder / f"{name}-{d}-{n}"
        kind(**PARAMS.get(name, {})).fit(X, y).save(path, records=True)
        sizes.append(Path(f"{path}.records", "arrays").stat().st_size)
    return (sizes[1] - sizes[0]) / N + more


def _agrees(name: str, folder: Path, more: int = 0) -> bool:
    slope, constant = SIZES[name]
    return all(
        abs(_bytes_a_record(name, d, folder, more) - slope * d - constant) < 2.5 for d in (2, 6)
    )


@pytest.mark.parametrize("name", sorted(SIZES))
def test_a_record_takes_as_many_bytes_as_the_page_says(name: str, tmp_path: Path) -> None:
    assert _agrees(name, tmp_path)


def test_another_number_would_be_noticed(tmp_path: Path) -> None:
    assert not _agrees("PCA", tmp_path, more=4)
    assert len(SIZES) > 15
