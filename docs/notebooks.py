"""Pages of the site from the notebooks in ``docs/gallery``: scripts, run when the site is built.

A notebook of which a package is not installed is shown as it was run before, from the file of the
same name that ends in ``.ipynb``: ``python docs/notebooks.py network_audit`` runs it and writes
that file.
"""

from __future__ import annotations

import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter
from nbconvert.preprocessors import ExecutePreprocessor

GALLERY = Path(__file__).resolve().parent / "gallery"
STYLE = """\
figure.dpi: 150
axes.spines.top: False
axes.spines.right: False
axes.prop_cycle: cycler('color', ['00796b', 'e08214', '7f8c8d', '5e3c99', 'b2182b', '2166ac'])
"""
PANDAS = re.compile(r"<style scoped>.*?</style>\n| border=\"1\" class=\"dataframe\"", re.DOTALL)
QUIET = {"extra_arguments": ["--log-level=ERROR"], "record_timing": False}
COMPILING = "erasable: compiling kernels"  # which the first notebook of a fresh installation tells
DOWNLOADS = "Download it as a [notebook]({0}.ipynb) or as a [script]({0}.py).\n\n"


def run(script: Path) -> Any:
    """Run a script; return the notebook with its outputs."""
    notebook = jupytext.read(script)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "matplotlibrc").write_text(STYLE, encoding="utf-8")
        where = {"metadata": {"path": folder}}
        runner = ExecutePreprocessor(timeout=600, kernel_name="python3", **QUIET)
        runner.preprocess(notebook, where)
    for cell in notebook.cells:
        shown = cell.get("outputs", [])
        shown[:] = [each for each in shown if not each.get("text", "").startswith(COMPILING)]
    return notebook


def _sources(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells]


def executed(script: Path) -> Any:
    """Run a script, or read what it showed when its packages were installed."""
    stored = script.with_suffix(".ipynb")
    if not stored.exists() or find_spec("torch"):
        return run(script)
    notebook = nbformat.read(stored, as_version=4)
    if _sources(notebook) != _sources(jupytext.read(script)):
        raise PluginError(f"{stored.name} is older than {script.name}: see docs/notebooks.py")
    return notebook


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add a page, its figures and its downloads for each notebook."""
    scripts = sorted(GALLERY.glob("*.py"))
    with ThreadPoolExecutor(2) as threads:
        notebooks = list(threads.map(executed, scripts))
    for script, notebook in zip(scripts, notebooks, strict=True):
        uri = f"gallery/{script.stem}"
        text, resources = MarkdownExporter().from_notebook_node(
            notebook, {"unique_key": script.stem}
        )
        text = re.sub(r"^# .*\n+", rf"\g<0>{DOWNLOADS.format(script.stem)}", text, count=1)
        made = {f"{uri}.md": PANDAS.sub("", text)}
        figures = [f"gallery/{name}" for name in sorted(resources["outputs"])]
        made |= {f"gallery/{name}": figure for name, figure in resources["outputs"].items()}
        if figures:
            made[f"{uri}.png"] = made[figures[0]]
        if not script.with_suffix(".ipynb").exists():
            made[f"{uri}.ipynb"] = jupytext.writes(jupytext.read(script), fmt="ipynb")
        for name, content in made.items():
            files.append(File.generated(config, name, content=content))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        nbformat.write(run(GALLERY / f"{name}.py"), GALLERY / f"{name}.ipynb")
