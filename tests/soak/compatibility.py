"""Keep the law on the oldest versions that ``pyproject.toml`` allows: ``make compatibility``.

Installs the lower bound of each dependency into an environment of its own, and there trains every
estimator and deletes from it. The digests must be those of the newest versions, and the checks of
the law must pass.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("hypothesis", "pandas", "polars", "pytest", "pytest-xdist")
"""Of the extra ``dev``, what `tests/test_law.py` needs."""

CHECKS = (
    "clone_and_params", "delete_equals_refit", "float32_input", "load", "metadata_routing",
    "pandas", "pickle", "polars", "predicting_after_deletion",
)  # fmt: skip
"""Of the checks of the law, those in which other packages take part, and the law itself."""

WITH_WHEELS = (3, 12)
"""The last Python for which the oldest versions of NumPy and SciPy have wheels."""


def lowest(requirements: list[str]) -> dict[str, str]:
    """Return the lower bound of each requirement."""
    pattern = re.compile(r"([\w-]+)(?:\[.*\])?[>=]=([\d.]+)")
    found = {}
    for requirement in requirements:
        match = pattern.match(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no lower bound; expected 'name>=version'")
        found[match[1]] = match[2]
    return found


def pins() -> list[str]:
    """Return the requirements of a user, and of the tests run here, at their lowest versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    tools = lowest([each for each in extras["dev"] if not each.startswith("erasable[")])
    needs = [*project["dependencies"], *extras["workspace"]]
    versions = lowest(needs) | {name: tools[name] for name in TOOLS}
    return [f"{name}=={version}" for name, version in sorted(versions.items())]


def digests(*interpreters: tuple[Path, dict[str, str]]) -> list[Any]:
    """Return what `platform_digests.py` prints by each interpreter in its environment."""
    script = ROOT / "tests" / "platform_digests.py"
    running = [
        subprocess.Popen([python, script], env=environment, stdout=subprocess.PIPE, text=True)
        for python, environment in interpreters
    ]
    printed = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(1)
    return [json.loads(text.splitlines()[-1])["digests"] for text in printed]


def main(folder: Path, workers: int) -> int:
    """Compare the versions; return the exit code."""
    if sys.version_info[:2] > WITH_WHEELS:
        print(f"not run: it needs Python {WITH_WHEELS[0]}.{WITH_WHEELS[1]} or older")
        return 0
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *pins()]
    subprocess.run(install, check=True)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    here = {**os.environ, "PYTHONPATH": path}
    there = {**here, "NUMBA_CACHE_DIR": str(folder / "kernels")}
    new, old = digests((Path(sys.executable), here), (python, there))
    other = sorted(name for name in new.keys() | old.keys() if new.get(name) != old.get(name))
    print(f"{len(new)} digests of the newest and of the lowest versions: {len(other)} differ")
    for name in other:
        print(f"    {name}: {new.get(name)}, {old.get(name)}")
    law = [python, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider"]
    law += ["-k", " or ".join(CHECKS), "tests/test_law.py::test_law"]
    done = subprocess.run(law, cwd=ROOT, env=there, check=False)
    return 1 if other else done.returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "lowest")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    sys.exit(main(arguments.folder, arguments.workers))
