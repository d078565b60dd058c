"""What an installed wheel can do with nothing but what it requires: see `make wheel`.

Run by the interpreter into which the wheel was installed; ends with 1 where anything is wrong.
"""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

EXTRAS = {"psycopg", "fsspec", "s3fs", "mlflow", "torch", "pandas", "pytest"}


def main() -> int:
    """Try all of it; return the exit code."""
    import erasable

    where = Path(erasable.__file__).resolve()
    assert where.is_relative_to(Path(sys.prefix).resolve()), f"{where} is not the wheel's"
    there = {name for name in EXTRAS if importlib.util.find_spec(name)}
    assert not there, f"this environment is not bare: it has {', '.join(sorted(there))}"
    _fit_and_delete()
    with tempfile.TemporaryDirectory() as folder:
        _erase(Path(folder))
        _ask_for_extras(Path(folder))
    print(f"erasable {erasable.__version__} works in a bare environment")
    return 0


def _fit_and_delete() -> None:
    import numpy as np

    from erasable.linear_model import LogisticRegression
    from erasable.pipeline import make_pipeline
    from erasable.preprocessing import StandardScaler

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    model.delete([3, 7])
    rest = np.setdiff1d(np.arange(60), [3, 7])
    twin = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[rest], y[rest], ids=rest)
    assert model.digest() == twin.digest()


def _erase(folder: Path) -> None:
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visit", "patient", "age", "sick"])
        rows.writerows([f"v{i}", f"p{i // 3}", 20 + i % 50, i % 2] for i in range(60))
    for line in (
        "--version",
        "init",
        "dataset add visits visits.csv --id visit --subject patient:id",
        "model fit risk --estimator naive_bayes.GaussianNB --dataset visits --target sick "
        "--features age",
        "request p3 --type id",
        "process",
        "verify --retrain",
        "log verify",
        "report report.html",
        "status --json",
    ):
        code, told = _run(folder, *line.split())
        assert code == 0, f"{line}: {told}"


def _ask_for_extras(folder: Path) -> None:
    for line, extra in (
        ("init --workspace other --database postgresql://localhost/none", "postgres"),
        ("init --workspace other --store s3://none/there", "s3"),
        ("model publish risk --to mlflow:risk --tracking-uri http://localhost:1", "mlflow"),
    ):
        code, told = _run(folder, *line.split())
        assert code == 2, f"{line}: {told}"
        assert "pip install" in told, f"{line}: {told}"
        assert extra in told, f"{line}: {told}"


def _run(folder: Path, *line: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "erasable", *line],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
