"""Every command has help and an example, and is in the documentation as it is."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.fuzzing import commands
from cli.running import erasable
from naming import named

ROOT = Path(__file__).resolve().parent.parent.parent
PATHS = sorted(commands())
EXPECTED = [
    "init", "status", "report", "key", "verify", "audit", "select", "request", "correct",
    "process", "model refresh", "model policy",
    "remove-domain",
    "requests", "deny", "cancel", "hold", "extend", "dataset add", "dataset append", "dataset sync",
    "dataset list", "dataset show", "model fit", "model list", "model show", "model predict",
    "model register", "model export", "model retire", "receipt show", "receipt check", "log show",
    "log verify", "log head", "subject show", "subject link", "suppress list", "suppress release",
    "suppress export", "suppress import", "workspace migrate", "workspace copy",
    "target scan", "target add", "target list", "target check", "target remove", "target erase",
    "work", "tasks", "retry", "backup", "restore", "model publish", "compile",
]  # fmt: skip


def _page_module() -> Any:
    spec = importlib.util.spec_from_file_location("cli_page", ROOT / "docs" / "cli_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


page = _page_module()


def _sections() -> dict[tuple[str, ...], str]:
    text = page.PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^## erasable (.*)$", text, flags=re.MULTILINE)[1:]
    return {tuple(name.split()): body for name, body in zip(parts[::2], parts[1::2], strict=True)}


SECTIONS = _sections()


def test_the_commands_are_those_of_the_design() -> None:
    assert sorted(tuple(each.split()) for each in EXPECTED) == PATHS


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_help(path: tuple[str, ...]) -> None:
    result = erasable(*path, "--help")
    assert result.exit_code == 0, result.output
    assert "Usage: " in result.stdout
    assert "Example: " in result.stdout
    for param in commands()[path].params:
        if param.name != "help":
            assert param.help, f"{param.name} has no help"


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_the_example_is_of_this_command_and_is_understood(path: tuple[str, ...]) -> None:
    command = commands()[path]
    match = re.fullmatch(r"Example: `erasable (.+)`", command.epilog)
    assert match, command.epilog
    args = shlex.split(match[1].partition(" > ")[0])
    assert tuple(args[: len(path)]) == path
    command.make_context("erasable", args[len(path) :])


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_every_command_has_json_and_workspace(path: tuple[str, ...]) -> None:
    options = {option for param in commands()[path].params for option in param.opts}
    assert {"--json", "--workspace"} <= options


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_the_page_shows_every_command_and_option(path: tuple[str, ...]) -> None:
    section = SECTIONS[path]
    command = commands()[path]
    assert command.help in section
    assert f"$ erasable {' '.join(path)}" in section
    assert "`--json`: " in section
    for param in command.params:
        if param.name not in ("help", "folder", "as_json"):
            assert param.help.replace("|", r"\|") in section, param.name


def test_the_page_shows_no_command_that_is_gone() -> None:
    assert sorted(SECTIONS) == PATHS


@pytest.mark.soak
def test_json_has_the_names_that_the_page_says(tmp_path: Path, server: Any) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    page.lay_out(folder)
    seen: dict[tuple[str, ...], str] = {}

    def run(args: list[str]) -> str:
        result = erasable(*args, folder=folder)
        assert result.exit_code == 0, result.output
        return result.stdout

    for line, args in page.tour(run, lambda: server.url(server.database())):
        path = page.path_of(args)
        found = json.loads(run([*args, "--json"]))
        if path == ("key",):
            (folder / "workspace.pub").write_text(found["public_key"])
        seen.setdefault(path, page.keys(found))
        assert "patient-" not in json.dumps(found), line
    assert sorted(seen) == PATHS
    for path, names in seen.items():
        documented = SECTIONS[path].rpartition("`--json`: ")[2].strip()
        assert documented == names, path


def test_python_m_erasable() -> None:
    line = [sys.executable, "-m", "erasable", "--help"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "right" not in done.stderr
    assert "dataset" in done.stdout


@pytest.mark.parametrize("args", [["--help"], ["status"]], ids=named)
def test_what_a_user_waits_for_imports_little(args: list[str], tmp_path: Path) -> None:
    erasable("init", folder=tmp_path)
    script = (
        "import sys\nfrom erasable.cli.app import app\n"
        "try:\n    app(sys.argv[1:], prog_name='erasable')\nexcept SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "slow = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'numba', 'pandas', 'matplotlib',\n"
        "        'pydantic', 'cryptography', 'securesystemslib', 'alembic', 'jinja2',\n"
        "        'sqlglot', 'phonenumbers'}\n"
        "found = sorted(slow & set(sys.modules))\n"
        "assert not found, found\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


SINGLE = [
    (path, param.opts[0])
    for path, command in sorted(commands().items())
    for param in command.params
    if param.param_type_name == "option" and not param.is_flag and not param.multiple
]


def test_options_of_one_value_are_many() -> None:
    assert len(SINGLE) > 60
    assert (("request",), "--where") in SINGLE


@pytest.mark.parametrize(("path", "option"), SINGLE, ids=named)
def test_an_option_given_twice_is_refused(path: tuple[str, ...], option: str) -> None:
    for given in ([option, "a", option, "b"], [f"{option}=a", option, "b"]):
        result = erasable(*path, *given)
        assert result.exit_code == 2
        assert f"{option} is given 2 times; expected once" in result.output


def test_what_follows_two_dashes_is_no_option(tmp_path: Path) -> None:
    result = erasable("request", "--where", "a", "--", "--where", folder=tmp_path)
    assert "times" not in result.output
