"""The pages of the site: all public objects are there, and command lines print what is shown."""

from __future__ import annotations

import importlib
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import command_blocks
import pytest

from cli.running import ROOT as ROOT_COMMAND
from optional import TORCH
from test_project import exported, is_inner, public_modules

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs"


def _named(identifier: str) -> list[Any]:
    """Return what an identifier of mkdocstrings shows: an object, or all that a module exports."""
    home, _, name = identifier.rpartition(".")
    if identifier in public_modules() and name not in importlib.import_module(home).__dict__.get(
        "__all__", ()
    ):
        return [thing for _, thing in exported(identifier)]
    return [getattr(importlib.import_module(home), name)]


def _missing_from(pages: list[str]) -> list[str]:
    identifiers = [each for page in pages for each in re.findall(r"^::: (\S+)$", page, re.M)]
    if not TORCH:
        identifiers = [each for each in identifiers if f"{each}.".split(".")[1] != "neural"]
    shown = {id(thing) for identifier in identifiers for thing in _named(identifier)}
    return [
        name
        for module in public_modules()
        if not is_inner(module)
        for name, thing in exported(module)
        if id(thing) not in shown
    ]


def test_every_public_object_is_in_the_reference() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (PAGES / "api").glob("*.md")]
    assert _missing_from(pages) == []
    without = [page.replace("::: erasable.cluster\n", "") for page in pages]
    assert "erasable.cluster.KMeans" in _missing_from(without)


def _tests_missing_from(page: str) -> list[str]:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    return [
        name
        for path, name in named
        if f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]


def test_every_erratum_names_a_test_that_exists() -> None:
    page = (PAGES / "papers" / "errata.md").read_text(encoding="utf-8")
    rows = [row for row in re.findall(r"^\| .*", page, re.M) if not row.startswith("| as printed")]
    assert len(rows) == 18
    assert all("::" in row for row in rows)
    assert _tests_missing_from(page) == []
    assert _tests_missing_from(page.replace("::test_half_of", "::test_all_of")) != []


@pytest.mark.parametrize("page", command_blocks.pages(), ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def database() -> str:
        server = request.getfixturevalue("server")
        return str(server.url(server.database()))

    text = page.read_text(encoding="utf-8")
    now = command_blocks.run(text, tmp_path, database)
    assert command_blocks.masked(now) == command_blocks.masked(text)


def test_another_output_is_found(tmp_path: Path) -> None:
    text = "```console\n$ head -n 1 churn.csv\ncustomer,mail\n```\n"
    now = command_blocks.run(text, tmp_path, str)
    assert command_blocks.masked(now) != command_blocks.masked(text)
    assert "customer,mail,since" in now


def _unknown_in(text: str) -> list[str]:
    """Return the command lines of a page that name a command or an option that there is not."""
    unknown = []
    for kind, block in re.findall(r"^```(.*?)\n(.*?)^```", text, re.M | re.DOTALL):
        if kind not in ("", "console"):
            continue
        for line in re.findall(r"^(?:\$ )?erasable ((?:.*\\\n)*.*)", block, re.M):
            words = shlex.split(line.replace("\\\n", " "), comments=True)
            command: Any = ROOT_COMMAND
            while hasattr(command, "commands") and words and words[0] in command.commands:
                command = command.commands[words.pop(0)]
            known = {option for param in command.params for option in param.opts} | {"--help"}
            asked = {word for word in words if word.startswith("--") and word != "--"}
            if (hasattr(command, "commands") and words[:1] != ["COMMAND"]) or not asked <= known:
                unknown.append(line)
    return unknown


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *PAGES.glob("**/*.md")], ids=lambda page: page.stem
)
def test_command_lines_name_commands_and_options_that_there_are(page: Path) -> None:
    assert _unknown_in(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("line", ["forget patient-7", "request --all", "model forget risk"])
def test_an_unknown_command_or_option_is_found(line: str) -> None:
    assert _unknown_in(f"```console\n$ erasable {line}\n```\n") == [line]


# -- for new contributors --------------------------------------------------------------------------

WALKTHROUGH = PAGES / "contributing" / "estimator.md"
PACKAGE = ROOT / "src" / "erasable"
SHOWN = [PACKAGE / name for name in ("neighbors/_centroid.py", "core/_class_sums.py")]


def _strange_blocks(page: str, source: str) -> list[str]:
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) > 5
    return [block for block in blocks if block not in source]


def test_the_walkthrough_shows_the_estimator_that_ships() -> None:
    page, source = WALKTHROUGH.read_text(), "".join(path.read_text() for path in SHOWN)
    assert _strange_blocks(page, source) == []
    assert _strange_blocks(page.replace("found.labels", "found.names"), source) != []


def test_the_page_on_storage_shows_the_example_that_runs() -> None:
    page = (PAGES / "contributing" / "storage.md").read_text()
    source = (ROOT / "examples" / "sqlite_storage.py").read_text()
    assert _strange_blocks(page, source) == []
    assert _strange_blocks(page.replace("lasting", "passing"), source) != []


@cache
def _defined() -> dict[str, set[str]]:
    """Return what each module defines, by its path."""
    files = [*(ROOT / "src" / "erasable").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    return {
        f"/{file.relative_to(ROOT).as_posix()}": {
            name
            for pair in re.findall(r"\b(?:def|class) (\w+)|\b(\w+) =", file.read_text())
            for name in pair
        }
        for file in files
    }


def _unknown_names(page: str) -> list[str]:
    """Return what a page names and there is not: modules, functions, and functions in modules."""
    everything = set().union(*_defined().values())

    def within(module: str) -> set[str]:
        parts = [names for path, names in _defined().items() if path.endswith(f"/{module}")]
        return set().union(*parts)

    functions = [name for pair in re.findall(r"`(?:(\w+)\.)?(\w+)`", page) for name in pair if name]
    placed = re.findall(r"`([\w/]+\.py)`,\s+`(\w+)(?:\.(\w+))?`", page)
    within_one = re.findall(r"`(\w+)(?:\.(\w+))?`(?:\*\*)?\s+in\s+`([\w/]+\.py)`", page)
    placed += [(module, *names) for *names, module in within_one]
    return [
        *(module for module in re.findall(r"`([\w/]+\.py)`", page) if not within(module)),
        *(name for name in functions if name not in everything),
        *(
            f"{name} in {module}"
            for module, *names in placed
            for name in filter(None, names)
            if name not in within(module)
        ),
    ]


def test_the_paths_name_what_there_is() -> None:
    page = (PAGES / "contributing" / "paths.md").read_text()
    assert _unknown_names(page) == []
    assert _unknown_names("`requests/vanished.py`, and `Engine.vanish`") == [
        "requests/vanished.py",
        "vanish",
    ]
    assert _unknown_names("`requests/process.py`, `Engine.finish`") == [
        "Engine in requests/process.py"
    ]
    assert _unknown_names("`concerned` in `requests/process.py`") == [
        "concerned in requests/process.py"
    ]
