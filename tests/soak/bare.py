"""What an installed wheel can do without extras, and with `erasable[workspace]`: see `make wheel`.

``python bare.py`` is for an environment with the wheel alone, ``python bare.py workspace`` for one
with the command line, too. Run by the interpreter into which the wheel was installed; ends with 1
where anything is wrong.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import os
import pkgutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 450  # megabytes
WORKSPACE = {
    "alembic", "cryptography", "filelock", "jinja2", "phonenumbers", "pyarrow", "rich",
    "securesystemslib", "sqlalchemy", "sqlglot", "typer",
}  # fmt: skip
OTHERS = {
    "PIL", "dask", "distributed", "fsspec", "lightgbm", "matplotlib", "mlflow", "pandas", "polars",
    "psycopg", "pytest", "s3fs", "torch", "xgboost",
}  # fmt: skip
WITHOUT = {"mlflow": "mlflow", "neural": "neural", "workspace": "workspace"}
"""Packages of erasable that cannot be imported without extras, and these extras."""


def main(extra: str = "") -> int:
    """Try all of it; return the exit code."""
    import erasable

    where = Path(erasable.__file__).resolve()
    assert where.is_relative_to(Path(sys.prefix).resolve()), f"{where} is not the wheel's"
    there = {name for name in WORKSPACE | OTHERS if importlib.util.find_spec(name)}
    expected = WORKSPACE if extra else set()
    assert there == expected, f"this environment has or lacks {sorted(there ^ expected)}"
    if extra:
        use_workspace()
    else:
        size = megabytes()
        assert size <= LIMIT, f"the environment takes {size:.0f} MB; expected {LIMIT} at most"
        use_library()
        print(f"{size:.0f} MB without bytecode and compiled kernels")
    print(f"erasable {erasable.__version__} works with {extra or 'nothing else'}")
    return 0


def megabytes() -> float:
    """Return the size of all that is installed, without bytecode, which pip may leave out."""
    files = Path(sysconfig.get_path("purelib")).rglob("*")
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc") / 1e6


# -- the library -----------------------------------------------------------------------------------


def use_library() -> None:
    """Import what there is, use some of it, and ask for what needs extras."""
    check_packages()
    fit_and_delete()
    check_kernels()
    audit_and_select()
    check_messages()
    used = (WORKSPACE | OTHERS) & sys.modules.keys()
    assert not used, f"imported without an extra: {sorted(used)}"


def check_packages() -> None:
    """Import every public package; those that need an extra have to say so."""
    import erasable

    for _, name, _ in pkgutil.iter_modules(erasable.__path__):
        if name in WITHOUT:
            asks_for(WITHOUT[name], lambda name=name: use_package(f"erasable.{name}"))
        elif name != "__main__":
            importlib.import_module(f"erasable.{name}")


def use_package(name: str) -> None:
    """Import a package, and all that it exports: some import it when it is named."""
    package = importlib.import_module(name)
    for exported in package.__all__:
        getattr(package, exported)


def asks_for(extra: str, use: Callable[[], object]) -> None:
    """Check that a use raises the error for a missing extra, which has the command to install."""
    from erasable.core.errors import MissingPackageError

    told = None
    try:
        use()
    except MissingPackageError as error:
        told = str(error)
    command = f"not installed; run `pip install 'erasable[{extra}]'`"
    assert told is not None, f"nothing asks for {extra}"
    assert told.endswith(command), f"{told} has not: {command}"


def fit_and_delete() -> None:
    """Delete from a pipeline, save and load it, and compare with a fit."""
    import numpy as np

    import erasable
    from erasable.linear_model import LogisticRegression
    from erasable.pipeline import make_pipeline
    from erasable.preprocessing import StandardScaler

    X, y = _records()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    model.delete([3, 7])
    rest = np.setdiff1d(np.arange(60), [3, 7])
    twin = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[rest], y[rest], ids=rest)
    assert model.digest() == twin.digest()
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        assert erasable.load(f"{folder}/model").digest() == twin.digest()


def check_kernels() -> None:
    """Use the kernels of the wheel, where it has some for this processor."""
    from erasable.core import _jit, _kernel_folders

    assert _kernel_folders.SHIPPED.is_dir() == bool(_kernel_folders.levels())
    if _kernel_folders.fitting():
        assert _jit.n_compiled() == 0, f"{_jit.n_compiled()} kernels were compiled"


def audit_and_select() -> None:
    """Audit a model and a command, select records, and remove a domain."""
    import numpy as np

    from erasable.audit import BlackBox, audit_membership, equality
    from erasable.naive_bayes import GaussianNB
    from erasable.removal import DomainRemoval
    from erasable.selection import SubsetSelector

    X, y = _records()
    model = GaussianNB().fit(X[:20], y[:20])
    model.delete([3])
    rest = np.setdiff1d(np.arange(20), [3])
    assert equality(model, GaussianNB().fit(X[rest], y[rest], ids=rest))
    audited = audit_membership(model, (X[rest], y[rest]), (X[20:], y[20:]), random_state=0)
    assert audited.verdict
    asks_for("workspace", audited.to_html)
    code = "import sys; n = len(open(sys.argv[1]).readlines()); out = open(sys.argv[2], 'w')"
    code += "; out.write('a' + n * chr(10)) if n < 1 else out.write(chr(10).join(['1'] * n))"
    box = BlackBox(f'{sys.executable} -c "{code}" {{data}} {{out}}', ["a"])
    assert box.predict_proba(X).shape == (60, 1)
    assert len(SubsetSelector(k=5).fit(X).selected_) == 5
    assert len(DomainRemoval(budget=5).fit(X[:20], X[20:]).selected_) == 5


def check_messages() -> None:
    """Ask for each thing that needs an extra."""
    from erasable import Records
    from erasable.removal import DomainRemoval
    from erasable.selection import NeuralVariance, plot_tradeoff

    X, _ = _records()
    removal = DomainRemoval(budget=5).fit(X[:20], X[20:])
    asks_for("parquet", lambda: Records.from_parquet("visits.parquet"))
    asks_for("dask", lambda: Records.from_dask(None))
    asks_for("neural", lambda: NeuralVariance(object()).problem(X))
    asks_for("plots", removal.plot)
    asks_for("plots", lambda: plot_tradeoff({"first": [0, 1]}, lambda left: float(left.sum())))
    code, told = _run(Path.cwd(), "--help")
    assert code == 2, told
    assert told == (
        "error: the command line needs typer, which is not installed; "
        "run `pip install 'erasable[workspace]'`\n"
    )


def _records() -> tuple[Any, Any]:
    import numpy as np

    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, (X[:, 0] > 0).astype(int)


# -- the command line ------------------------------------------------------------------------------


def use_workspace() -> None:
    """Run the example of README, other commands, and those that need more extras."""
    subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        _erase(Path(folder))
        _ask_for_extras(Path(folder))


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
        "status --json",
    ):
        code, told = _run(folder, *line.split())
        assert code == 0, f"{line}: {told}"


def _ask_for_extras(folder: Path) -> None:
    (folder / "scans.csv").write_text("scan,image\na,a.png\n")
    (folder / "a.png").write_bytes(_png())
    for line, extra in (
        ("init --workspace other --database postgresql://localhost/none", "postgres"),
        ("init --workspace other --store s3://none/there", "s3"),
        ("dataset add far s3://none/there --id visit", "objects"),
        ("dataset add scans scans.csv --id scan --files image", "images"),
        ("model publish risk --to mlflow:risk --tracking-uri http://localhost:1", "mlflow"),
        ("model fit net --dataset visits --estimator neural.Embedding", "neural"),
        ("report report.html", "plots"),
        ("verify --dask tcp://localhost:1", "dask"),
    ):
        code, told = _run(folder, *line.split())
        assert code == 2, f"{line}: {told}"
        assert f"pip install 'erasable[{extra}]'" in told, f"{line}: {told}"
        assert told.count("\n") == 1, f"{line}: {told}"


def _png() -> bytes:
    """Return an image of one gray pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"\0\7")), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _run(folder: Path, *line: str) -> tuple[int, str]:
    """Run the installed command; return its exit code and output."""
    command = Path(sysconfig.get_path("scripts")) / "erasable"
    done = subprocess.run(
        [command, *line], cwd=folder, capture_output=True, text=True, check=False, env=os.environ
    )
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
