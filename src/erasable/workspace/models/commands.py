"""Refuse commands of a user's that would not do what they seem to: they run without a shell."""

from __future__ import annotations

import difflib
import re
import shlex
import shutil
from pathlib import Path

from erasable.core.errors import WorkspaceError

_PART = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|\s+|.""", re.DOTALL)
_SIGNS = {
    "|": "a pipe", ">": "a redirection", "<": "a redirection", "&": "'&'", ";": "';'",
    "(": "a bracket", ")": "a bracket", "`": "a backquote", "$": "a variable", "*": "a pattern",
    "?": "a pattern", "[": "a pattern",
}  # fmt: skip
_PLACES = {"hook": ("model",), "command": ("data", "out")}
"""Names in braces for each kind of command; the names of the other kind are mistakes."""
_BRACES = re.compile(r"\{(\w+)\}")
_FIRST_SIGNS = {"~": "'~'", "#": "a comment"}  # where a word begins with them
_EXPANDED = re.compile(r"(?:\\.|[^\\$`])*([$`])", re.DOTALL)  # in double quotes
_SHELLS = ("ash", "bash", "dash", "fish", "ksh", "sh", "zsh")


def check_command(command: str, what: str) -> None:
    """Refuse a command that needs a shell, or whose program is not there.

    `what` is "hook" or "command".

    >>> check_command("true {model}", "hook")
    >>> check_command("true {model} && true", "hook")
    Traceback (most recent call last):
    erasable.core.errors.WorkspaceError: the hook 'true {model} && true' has '&', and is run ...
    """
    try:
        words = shlex.split(command)
    except ValueError:
        raise WorkspaceError(
            f"the {what} {command!r} cannot be run: a quote in it does not end; expected a program "
            "and its arguments; mend the quotes"
        ) from None
    if not words:
        raise WorkspaceError(f"the {what} is empty; expected a program and its arguments")
    found = _shell_syntax(command, any(Path(word).name in _SHELLS for word in words))
    if found is not None:
        raise WorkspaceError(
            f"the {what} {command!r} has {found}, and is run without a shell; expected a program "
            "and its arguments; write a script, or sh -c '...'; what is meant as it stands goes "
            "into single quotes"
        )
    _refuse_mistaken_place(command, what)
    if shutil.which(words[0]) is None:
        raise WorkspaceError(
            f"the {what} {command!r} cannot be run: its program {words[0]!r} is not there, or "
            "may not be executed; expected the path of a program, or the name of one in PATH"
        )


def _refuse_mistaken_place(command: str, what: str) -> None:
    """Refuse {modle}; other words in braces, as in awk '{print}', are the program's own."""
    names = _PLACES[what]
    others = {name for places in _PLACES.values() for name in places} - set(names)
    for word in _BRACES.findall(command):
        if word in others or (word not in names and difflib.get_close_matches(word, names)):
            known = " and ".join(f"{{{name}}}" for name in names)
            raise WorkspaceError(
                f"the {what} {command!r} has {{{word}}}; expected no other path than {known}"
            )


def _shell_syntax(command: str, for_shell: bool) -> str | None:
    """Name the first sign that a shell gives a meaning; in double quotes, a shell may be meant."""
    begins = True
    parts = _PART.findall(command)
    for at, part in enumerate(parts):
        if part == "\\\n" or (part.isspace() and "\n" in part and 0 < at < len(parts) - 1):
            return "a line break"
        if part.isspace():
            begins = True
            continue
        if begins and part in _FIRST_SIGNS:
            return _FIRST_SIGNS[part]
        if part in _SIGNS:
            return _SIGNS[part]
        if part[0] == '"' and not for_shell and (sign := _EXPANDED.match(part)):
            return _SIGNS[sign[1]]
        begins = False
    return None
