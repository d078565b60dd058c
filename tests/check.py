"""Run what a change to one estimator needs: ``make check NAME=Ridge``.

Its source is held to the style, the tests of its package that name it are run, and of the tests
that all estimators have in common those of this one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import erasable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def main(name: str, workers: str) -> int:
    """Check an estimator; return the exit code."""
    found = {each: cls for each, cls, _ in erasable.all_estimators()}
    if name not in found:
        print(f"there is no estimator {name!r}; expected one of {', '.join(sorted(found))}")
        return 2
    package = found[name].__module__.split(".")[1]
    source = ROOT / "src" / "erasable" / package
    own = [path for path in sorted((HERE / package).glob("test_*.py")) if name in path.read_text()]
    tools = Path(sys.executable).parent
    style = list(map(str, (source, *own)))
    tests = list(map(str, (source, *own, *sorted(HERE.glob("test_*.py")))))
    commands = [
        [tools / "ruff", "check", *style],
        [tools / "ruff", "format", "--check", *style],
        [tools / "mypy", "--strict", "src"],
        [tools / "pytest", "-n", workers, f"--estimator={name}", *tests],
    ]
    return max(subprocess.run(command, cwd=ROOT, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
