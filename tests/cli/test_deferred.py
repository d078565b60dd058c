"""What a command waits for when it starts: what it uses, and no more."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.running import TINY, erasable, rows_of, told
from erasable.cli import deferred

MODELS = (
    "cluster.KMeans", "linear_model.LogisticRegression", "linear_model.Ridge",
    "naive_bayes.GaussianNB", "ensemble.RandomForestClassifier",
)  # fmt: skip
UNUSED = {
    "alembic", "boto3", "erasable.audit", "erasable.pipeline", "erasable.refit", "erasable.removal",
    "erasable.selection", "erasable.utils", "IPython", "jinja2", "matplotlib", "mlflow", "narwhals",
    "numpy.f2py", "pandas", "polars", "psycopg", "pyarrow.dataset", "pyarrow.flight", "pycparser",
    "pydantic", "scipy.interpolate", "scipy.ndimage", "scipy.optimize", "scipy.special",
    "scipy.stats", "sklearn.cluster", "sklearn.decomposition", "sklearn.ensemble",
    "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.neighbors",
    "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm", "sklearn.tree",
    "sqlalchemy.dialects.postgresql", "yaml",
}  # fmt: skip
SCRIPT = """
import sys
from erasable.cli import run
from erasable.cli.deferred import is_waiting
try:
    run()
finally:
    names = [name for name in sys.modules if not is_waiting(name)]
    with open("modules.txt", "w") as file:
        file.write("\\n".join(names))
"""


def _executed(folder: Path, *args: str) -> set[str]:
    """Return the modules that a command has executed, in a process of its own."""
    line = [sys.executable, "-c", SCRIPT, *args]
    done = subprocess.run(
        line, cwd=folder, capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return set((folder / "modules.txt").read_text().splitlines())


def _workspace(folder: Path) -> None:
    (folder / "visits.csv").write_text(rows_of(0, TINY))
    told("init", folder=folder)
    columns = ["--id", "visit", "--subject", "patient"]
    told("dataset", "add", "visits", "visits.csv", *columns, folder=folder)


def _fit(folder: Path, name: str, estimator: str) -> None:
    target = [] if estimator == "cluster.KMeans" else ["--target", "sick"]
    given = ["--dataset", "visits", "--features", "age,dose", "--estimator", estimator, *target]
    result = erasable("model", "fit", name, *given, folder=folder)
    assert result.exit_code == 0, result.output


def test_a_deletion_imports_what_it_uses(tmp_path: Path) -> None:
    _workspace(tmp_path)
    for number, estimator in enumerate(MODELS):
        _fit(tmp_path, f"m{number}", estimator)
    asked = _executed(tmp_path, "request", "patient-3", "--type", "id")
    assert sorted(asked & {*UNUSED, "numba", "numpy", "pyarrow", "scipy", "sklearn"}) == []
    found = _executed(tmp_path, "process")
    assert sorted(found & UNUSED) == []
    assert {"numba", "pyarrow", "sklearn"} <= found


def test_a_pipeline_imports_none_of_the_transformers_of_scikit_learn(tmp_path: Path) -> None:
    _workspace(tmp_path)
    _fit(tmp_path, "m", "preprocessing.StandardScaler,linear_model.LogisticRegression")
    told("request", "patient-3", "--type", "id", folder=tmp_path)
    found = _executed(tmp_path, "process")
    assert "erasable.pipeline" in found
    assert sorted(found & (UNUSED - {"erasable.pipeline"})) == []


def test_what_a_refit_uses_is_executed(tmp_path: Path) -> None:
    _workspace(tmp_path)
    _fit(tmp_path, "m", "sklearn.tree.DecisionTreeClassifier")
    erasable("request", "patient-3", folder=tmp_path)
    found = _executed(tmp_path, "process")
    assert {"sklearn.tree", "scipy.stats", "erasable.refit"} <= found & UNUSED


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules, all of which are forgotten in the end."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield tmp_path
    for name in [each for each in sys.modules if each.partition(".")[0] in ("late", "broken")]:
        del sys.modules[name]


def test_a_module_is_executed_once_when_it_is_used(place: Path) -> None:
    (place / "late").mkdir()
    (place / "late" / "__init__.py").write_text(
        "import late\nfrom late import part\nvalue = [1]\nlate.seen = 2\n"
        "def __getattr__(name):\n"
        "    if name == 'made': return 3\n"
        "    raise AttributeError(name)\n"
    )
    (place / "late" / "part.py").write_text("own = 4\n")
    deferred.defer(["late"])
    import late  # type: ignore[import-not-found]

    assert importlib.import_module("late") is late
    assert deferred.is_waiting("late")
    assert late.__spec__.name == "late"
    assert deferred.is_waiting("late")
    assert (late.value, late.seen, late.made, late.part.own) == ([1], 2, 3, 4)
    assert not deferred.is_waiting("late")
    assert type(late) is type(sys)
    assert late is sys.modules["late"]
    assert late.__spec__.loader is late.__loader__ is not None
    assert not hasattr(late, "gone")


def test_a_submodule_has_its_package_executed_first(place: Path) -> None:
    (place / "late").mkdir()
    (place / "late" / "__init__.py").write_text("value = 1\n")
    (place / "late" / "part.py").write_text("from late import value\n")
    deferred.defer(["late"])
    from late.part import value  # type: ignore[import-not-found]

    assert value == 1
    assert not deferred.is_waiting("late")


def test_threads_find_all_of_it(place: Path) -> None:
    (place / "late.py").write_text("import time\nfirst = 1\ntime.sleep(0.2)\nlast = 2\n")
    deferred.defer(["late"])
    import late

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(late.last)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [2] * 4


def test_what_fails_fails_whenever_it_is_used(place: Path) -> None:
    (place / "broken.py").write_text("import nowhere_to_be_found\n")
    deferred.defer(["broken"])
    import broken  # type: ignore[import-not-found]

    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
            _ = broken.value
        assert deferred.is_waiting("broken")


def test_what_is_not_installed_is_not_there(place: Path) -> None:
    deferred.defer(["late"])
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("late")


def test_what_is_imported_stays(place: Path) -> None:
    (place / "late.py").write_text("value = 1\n")
    module = importlib.import_module("late")
    deferred.defer(["late"])
    assert importlib.import_module("late") is module
    assert not deferred.is_waiting("late")


def test_a_submodule_that_waits_has_its_packages_wait(place: Path) -> None:
    (place / "late").mkdir()
    (place / "late" / "__init__.py").write_text("first = 1\n")
    (place / "late" / "part.py").write_text("import late\nseen = late.first + 1\n")
    deferred.defer(["late", "late.part"])
    import late.part as part  # type: ignore[import-not-found]

    assert deferred.is_waiting("late")
    assert deferred.is_waiting("late.part")
    assert part.seen == 2
    assert not deferred.is_waiting("late")
    assert not deferred.is_waiting("late.part")


def test_another_submodule_has_the_package_executed_before_itself(place: Path) -> None:
    (place / "late").mkdir()
    (place / "late" / "__init__.py").write_text("order = ['package']\n")
    (place / "late" / "part.py").write_text("")
    (place / "late" / "other.py").write_text(
        "import sys\nsys.modules['late'].__dict__['order'].append('other')\n"
    )
    deferred.defer(["late", "late.part"])
    import late.part

    assert deferred.is_waiting("late")
    import late.other  # type: ignore[import-not-found]

    assert late.order == ["package", "other"]
    assert deferred.is_waiting("late.part")
