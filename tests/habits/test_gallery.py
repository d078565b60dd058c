"""Scripts like those of scikit-learn's gallery run with our imports, and find what theirs find.

Each is run twice: as it is, and with the imports of scikit-learn in the place of ours. What it
found, in `scores`, agrees to its `tolerance`.
"""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from erasable.core.errors import PrecisionWarning

matplotlib.use("Agg")
GALLERY = Path(__file__).parent / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))
THEIRS = {
    "from erasable.feature_extraction import": "from sklearn.feature_extraction.text import",
    "from erasable.preprocessing import OneHotEncoder, SimpleImputer, StandardScaler": (
        "from sklearn.preprocessing import OneHotEncoder, StandardScaler\n"
        "from sklearn.impute import SimpleImputer"
    ),
    "from erasable.": "from sklearn.",
    ".to_sklearn()": "",
}
"""What becomes of a script, to be one of scikit-learn's."""


def of_scikit_learn(text: str) -> str:
    for ours, theirs in THEIRS.items():
        text = text.replace(ours, theirs)
    return text


def run(path: Path, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    np.random.seed(0)  # some draw from it where they name no seed
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive", UserWarning)
        # A value that is the mean is 1e-9, and not 0, after a scaler.
        warnings.filterwarnings("ignore", "1 skewed columns .'alcalinity_of_ash'", PrecisionWarning)
        warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn.metrics")
        exec(compile(text, path, "exec"), found)
    pyplot.close("all")
    return found


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_finds_what_scikit_learn_finds(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    theirs = of_scikit_learn(text)
    assert "from erasable" in text
    assert "erasable" not in theirs
    ours, known = run(path, text), run(path, theirs)
    assert ours["scores"].keys() == known["scores"].keys()
    for name, score in ours["scores"].items():
        assert score == pytest.approx(known["scores"][name], abs=ours["tolerance"]), name


def test_the_scripts_use_the_estimators_that_people_use_most() -> None:
    assert len(SCRIPTS) >= 13
    used = {
        alias.name
        for path in SCRIPTS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("erasable.")
        for alias in node.names
    }
    assert len(used) >= 20


def test_another_finding_is_told_apart() -> None:
    """A negative control: a script whose estimators were given other parameters."""
    path = GALLERY / "plot_tree_regression.py"
    text = path.read_text(encoding="utf-8")
    shallow = run(path, text.replace("max_depth=5", "max_depth=1").replace("() == 5", "() == 1"))
    difference = shallow["scores"]["deep"] - run(path, text)["scores"]["deep"]
    assert abs(difference) > shallow["tolerance"]
