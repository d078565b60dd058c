"""How large the code base is, and how far a call travels in it.

``python benchmarks/house.py [FOLDER ...]`` prints a table with a column for each checkout: lines of
code (without blank lines, comments and docstrings), files, modules of less than 60 lines, and for
some calls the functions and files of erasable that they enter, and how deep they nest.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: str) -> int:
    """Count the lines of a module that are neither blank, nor comment, nor docstring."""
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            documentation.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - documentation)


def sizes(root: Path) -> dict[str, str]:
    """Return the sizes of the code base in a folder."""
    found = {}
    for part in ("src", "tests"):
        sources = [path.read_text() for path in sorted((root / part).rglob("*.py"))]
        found[f"{part}: lines of code"] = f"{sum(map(code_lines, sources)):,}"
        found[f"{part}: lines"] = f"{sum(len(s.splitlines()) for s in sources):,}"
        found[f"{part}: files"] = f"{len(sources):,}"
        if part == "src":
            short = sum(len(source.splitlines()) < 60 for source in sources)
            found["src: modules of less than 60 lines"] = str(short)
    return found


def followed(call: Callable[[], Any]) -> str:
    """Make a call; return which functions and files of erasable it entered, and how deep."""
    functions: set[Any] = set()
    depth = deepest = 0

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        if f"{os.sep}erasable{os.sep}" not in code.co_filename or "__pycache__" in code.co_filename:
            return
        if event == "call":
            functions.add(code)
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = {code.co_filename for code in functions}
    return f"{len(functions)} functions in {len(files)} files, {deepest} deep"


def hops() -> dict[str, str]:
    """Return how far some calls travel in the erasable that is imported."""
    import numpy as np
    import pandas as pd

    from erasable import Records
    from erasable.cluster import KMeans
    from erasable.linear_model import LogisticRegression
    from erasable.naive_bayes import GaussianNB
    from erasable.pipeline import make_pipeline
    from erasable.preprocessing import StandardScaler
    from erasable.workspace import Workspace

    X = np.random.default_rng(0).normal(size=(500, 4))
    y = (X[:, 0] > 0).astype(int)
    found = {}
    for model in (
        StandardScaler(),
        KMeans(n_clusters=4, random_state=0),
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ):
        model.fit(X, y)
        model.delete([1])
        name = type(model).__name__
        found[f"{name}.delete"] = followed(lambda model=model: model.delete([2]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y}).to_parquet(path)
        stored = Records.from_parquet(path, target="label")
        GaussianNB().fit(stored)
        found["GaussianNB.fit from Parquet"] = followed(lambda: GaussianNB().fit(stored))
        table = Path(folder) / "visits.csv"
        rows = [f"v{i},p{i // 3},{20 + i % 50},{i % 2}" for i in range(60)]
        table.write_text("\n".join(["visit,patient,age,sick", *rows]))
        workspace = Workspace.create(Path(folder) / "workspace")
        workspace.add_dataset("visits", table, id_column="visit", subjects=["patient:id"])
        workspace.fit(
            "risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick", features=["age"]
        )

        def erase() -> None:
            workspace.request(["p3"], type="id")
            workspace.process()

        found["request to receipt"] = followed(erase)
    return found


def main(folders: list[Path]) -> None:
    """Print the table."""
    columns = []
    for folder in folders:
        done = subprocess.run(
            [sys.executable, __file__, "--hops"], stdout=subprocess.PIPE, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(folder.resolve() / "src")},
        )  # fmt: skip
        columns.append(sizes(folder) | json.loads(done.stdout))
    print("| | " + " | ".join(map(str, folders)) + " |")
    print("|---" * (len(folders) + 1) + "|")
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--hops", action="store_true", help="print the hops as JSON")
    arguments = parser.parse_args()
    if arguments.hops:
        print(json.dumps(hops()))
    else:
        main(arguments.folders)
