"""Say in our words what is wrong with a command line, without repeating what may be an identity."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import typer

IDENTITIES = frozenset({"identities", "identity", "other"})
"""Parameters that hold identities: nothing that was typed is repeated where there is one."""


def explained(error: typer.TyperException) -> str:
    """Return the line that tells of an error in the command line.

    >>> explained(typer.BadParameter("it is not UTF-8"))
    'a value cannot be read: it is not UTF-8; expected plain text; see `erasable --help`'
    """
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "erasable"
    see = f"see `{path} --help`"
    private = context is not None and _takes_identities(context.command)
    kind = type(error).__name__
    if kind == "NoSuchCommandError":
        return _no_such_command(error, context, path)
    if kind == "NoSuchOption":
        return _no_such_option(error, private, see)
    if kind == "MissingParameter":
        return f"{_named(error)} is missing; expected a value for it; {see}"
    if kind == "BadParameter":
        return f"{_named(error)} cannot be read: {error.message}; expected plain text; {see}"
    if kind in ("BadOptionUsage", "BadArgumentUsage"):
        option = getattr(error, "option_name", "an option")
        if "does not take" in error.message:  # it comes without its command
            return f"{option} came with a value; expected none after it; {see}"
        return f"{option} came without a value; expected one after it; {see}"
    if kind == "UsageError" and context is not None:
        if hasattr(context.command, "commands"):
            names = ", ".join(context.command.list_commands(context))
            return f"a command is missing after `{path}`; expected one of: {names}; name one"
        usage = " ".join(context.command.collect_usage_pieces(context))
        return (
            f"there are more arguments than `{path}` takes; expected {usage}; put quotes around "
            "a text with spaces"
        )
    return f"{error.message.rstrip('.')}; expected another command line; {see}"


def _takes_identities(command: Any) -> bool:
    return any(param.name in IDENTITIES for param in command.params)


def _named(error: Any) -> str:
    param = getattr(error, "param", None)
    if param is None:
        return "a value"
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return str(param.metavar or param.name.upper()).strip("[].")


def _no_such_option(error: Any, private: bool, see: str) -> str:
    close = ", ".join(sorted(error.possibilities or ()))
    expected = f"perhaps {close}" if close else "one that the help lists"
    if private:
        return (
            f"there is an option that is not known; expected {expected}; {see}, and put -- before "
            "an identity that begins with '-'"
        )
    return f"there is no option {error.option_name!r}; expected {expected}; {see}"


def _no_such_command(error: Any, context: Any, path: str) -> str:
    known = context.command.list_commands(context)
    close = ", ".join(f"`{name}`" for name in get_close_matches(error.name, known))
    advice = f"did you mean {close}?" if close else f"see `{path} --help`"
    return (
        f"there is no command {error.name[:40]!r} in `{path}`; expected one of: "
        f"{', '.join(known)}; {advice}"
    )
