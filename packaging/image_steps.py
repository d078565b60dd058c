"""Run the steps of the Dockerfile's first stage in a folder, where there is no engine for images.

The base image, and the second stage, which makes a user, are not tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Step(NamedTuple):
    """An instruction of a Dockerfile."""

    name: str
    argument: str


def steps(text: str) -> list[Step]:
    r"""Return the instructions of a Dockerfile.

    >>> steps("# made here\nFROM a AS b\nRUN c \\\n && d\n")
    [Step(name='FROM', argument='a AS b'), Step(name='RUN', argument='c   && d')]
    """
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [Step(*line.split(" ", 1)) for line in joined.splitlines() if line.strip()]


def first_stage(found: list[Step]) -> list[Step]:
    """Return the steps after the first FROM, up to the next one."""
    places = [place for place, step in enumerate(found) if step.name == "FROM"]
    return found[places[0] + 1 : places[1]]


def run_steps(dockerfile: Path, context: Path, folder: Path) -> Iterator[str]:
    """Run the first stage below a folder, and the program that it makes; yield what is wrong."""
    build, prefix = folder / "build", folder / "prefix"
    build.mkdir(parents=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    for step in first_stage(steps(dockerfile.read_text(encoding="utf-8"))):
        if step.name in ("ENV", "ARG"):
            environment |= dict(each.split("=", 1) for each in step.argument.split())
            environment["PREFIX"] = str(prefix)
        elif step.name == "COPY":
            *sources, target = step.argument.split()
            for each in sources:
                _copy(context / each, build / target)
        elif step.name == "RUN":
            done = _shell(step.argument, build, environment)
            if done.returncode:
                yield f"RUN {step.argument}: {done.stdout[-2000:]}"
                return
        elif step.name != "WORKDIR":
            yield f"{step.name} is not known here; expected ENV, ARG, COPY, RUN or WORKDIR"
    yield from _try(prefix, folder, environment)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


_USE = """
import numpy as np
from erasable.core import _jit, _kernel_folders
from erasable.linear_model import LogisticRegression
X = np.random.default_rng(0).normal(size=(60, 3))
LogisticRegression().fit(X, (X[:, 0] > 0).astype(int)).delete([3])
assert not (_kernel_folders.fitting() and _jit.n_compiled()), "kernels were compiled again"
"""


def _try(prefix: Path, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Use the library, without a home, and the command line."""
    homeless = {**environment, "HOME": "/nonexistent"}
    (folder / "use.py").write_text(_USE, encoding="utf-8")
    for line in (
        f"{prefix}/bin/python use.py",
        f"{prefix}/bin/erasable init workspace",
        f"{prefix}/bin/erasable report --workspace workspace",
    ):
        done = _shell(line, folder, homeless)
        if done.returncode:
            yield f"{line}: {done.stdout[-2000:]}"


def _shell(
    line: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-e", "-c", line], cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
