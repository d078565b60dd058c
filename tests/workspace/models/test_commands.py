"""Commands that need a shell, or a program that is not there, are refused when they are named."""

from __future__ import annotations

import itertools
import os
import random
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import operations
from erasable.core.errors import WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.models import fitting
from erasable.workspace.models.fitting import check_command

NEEDS_A_SHELL = {
    "cat {model} | wc -c": "a pipe", "cat {model} > copy": "a redirection",
    "cat < {model}": "a redirection", "cat {model} 2>log": "a redirection",
    "cat {model} && true": "'&'", "cat {model} &": "'&'", "cat {model}; true": "';'",
    "cat {model} || true": "a pipe", "(cat {model})": "a bracket", "cp {model} $HOME": "a variable",
    "cp {model} ${HOME}/x": "a variable", 'cp {model} "$HOME/x"': "a variable",
    'cp {model} "a`pwd`"': "a backquote", "cp {model} `pwd`": "a backquote",
    "cp {model} $(pwd)": "a variable", "cp *.txt out": "a pattern", "cp a?.txt out": "a pattern",
    "cp [ab].txt out": "a pattern", "cp {model} ~/x": "'~'", "~/bin/publish {model}": "'~'",
    "cat {model} # publish": "a comment", "cat {model}\ntrue": "a line break",
}  # fmt: skip

RUN_AS_THEY_ARE = [
    "cat {model}", "cat '{model}' 'a | b > c'", 'cat "a && b; c" {model}', "cat a~b x#y {model}",
    "sh -c 'cat {model} | wc -c > \"$HOME\"'", 'sh -c "cat {model} > $HOME/x"',
    "/bin/sh -c 'true && true'", r"cat a\ b \$HOME \* {model}", "cat 'it''s' {model}",
    'cat "costs \\$5" {model}', "cat {model}\n",
]  # fmt: skip


@pytest.mark.parametrize("command", NEEDS_A_SHELL)
def test_what_needs_a_shell_is_refused(command: str) -> None:
    with pytest.raises(WorkspaceError) as raised:
        check_command(command, "hook")
    told = str(raised.value)
    if "~/bin" not in command:
        assert f"has {NEEDS_A_SHELL[command]}, and is run without a shell" in told
    assert "sh -c '...'" in told


@pytest.mark.parametrize("command", RUN_AS_THEY_ARE)
def test_what_needs_none_is_taken(command: str) -> None:
    check_command(command, "hook")


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("cat {modle}", "hook"), ("cat {Model}", "hook"), ("cat {data}", "hook"),
        ("cat {out}", "hook"), ("cp {dat} {out}", "command"), ("cp {model} {out}", "command"),
    ],
)  # fmt: skip
def test_a_mistaken_path_is_refused(command: str, what: str) -> None:
    with pytest.raises(WorkspaceError, match=r"expected no other path than \{"):
        check_command(command, what)


@pytest.mark.parametrize(
    ("command", "what"),
    [("cat {model} {model}", "hook"), ("cp {data} {out}", "command"), ("awk '{print}'", "hook")],
)
def test_other_braces_are_the_programs_own(command: str, what: str) -> None:
    check_command(command, what)


@pytest.mark.parametrize("command", ["", "   ", "'", 'cat "{model}'])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(WorkspaceError, match=r"is empty|does not end"):
        check_command(command, "hook")


def test_a_program_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("nothing-like-this {model}", "./publish {model}", "A=1 cat {model}", "/ {m}"):
        with pytest.raises(WorkspaceError, match="is not there, or may not be executed"):
            check_command(command, "hook")
    script = tmp_path / "publish"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(WorkspaceError, match="may not be executed"):
        check_command("./publish {model}", "hook")
    script.chmod(0o755)
    check_command("./publish {model}", "hook")
    check_command(f"{script} {{model}}", "hook")


def _made_up(n: int) -> list[str]:
    """Return command lines of all signs that shells know, in and out of quotes."""
    draw = random.Random(17)
    pieces = [*"|&;<>()$`*?[]~#={}!\\ab \n", " ", " ", "a.txt", "'", '"', "$HOME", "$(pwd)", "\\$"]
    return ["cat " + "".join(draw.choices(pieces, k=draw.randint(1, 7))) for _ in range(n)]


def _misread(lines: list[str], folder: Path, check: Callable[[str, str], None]) -> list[str]:
    """Return those that are taken, and that a real shell splits into other words than we do."""
    taken = []
    for line in lines:
        try:
            check(line, "hook")
        except WorkspaceError:
            continue
        taken.append(line)
    script = "\n".join(
        f"(printf '<%s>' {line.strip().removeprefix('cat')} ); echo; echo --" for line in taken
    )
    done = subprocess.run(
        ["sh"], input=script, cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": "/home/somebody"},
    )  # fmt: skip
    said = done.stdout.split("\n--\n")
    ours = ["".join(f"<{word}>" for word in shlex.split(line)[1:]) or "<>" for line in taken]
    assert len(taken) > 50
    return [line for line, a, b in itertools.zip_longest(taken, said[:-1], ours) if a != b]


def test_a_shell_would_read_what_is_taken_as_the_same_words(tmp_path: Path) -> None:
    """The oracle is the shell of the machine."""
    for name in ("a", "b", "a.txt", "ab"):
        (tmp_path / name).touch()
    assert _misread(_made_up(1500), tmp_path, check_command) == []


@pytest.mark.parametrize("sign", ["*", "?", "$"])
def test_the_shell_tells_a_sign_that_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str
) -> None:
    """A negative control, of signs that are harmless to run."""
    (tmp_path / "a").touch()
    monkeypatch.delitem(fitting._SIGNS, sign)
    line = {"*": "cat a*", "?": "cat ?", "$": "cat $HOME"}[sign]
    assert _misread([line] * 60, tmp_path, check_command)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (
            operations.fit,
            {"estimator": "naive_bayes.GaussianNB", "target": "sick", "hook": "a | b"},
        ),
        (operations.register, {"hook": "cat {model} > copy"}),
        (operations.register, {"retrain": "cp {data} {out} && true"}),
        (operations.register, {"retrain": "nothing-like-this {data} {out}"}),
    ],
)
def test_registration_refuses_and_changes_nothing(
    visits: Context, call: Any, options: dict[str, Any]
) -> None:
    before = _models(visits)
    with pytest.raises(WorkspaceError, match=r"without a shell|is not there"):
        call(visits, "new", datasets=["visits"], **options)
    assert _models(visits) == before


def _models(context: Context) -> list[Any]:
    from erasable.workspace.models import catalogue

    with context.ledger.reading() as connection:
        return list(catalogue.every(connection))
