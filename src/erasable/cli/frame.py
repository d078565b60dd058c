"""Commands with their options and examples, and their errors and exit codes."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import erasable.cli.interrupts as interrupts
from erasable.cli.progress import Meter
from erasable.cli.show import one_line
from erasable.cli.streams import OutputStream, forgiving
from erasable.core._interruptions import explained as became
from erasable.core.errors import ErasableError, TamperedError, WorkspaceError

IDENTITIES = frozenset({"identities", "identity", "other"})
"""Parameters that hold identities: nothing that was typed is repeated where there is one."""


def explained(error: typer.TyperException) -> str:
    """Return one line about an error in the command line.

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


DEBUG = "ERASABLE_DEBUG"
COMPLETE = "_ERASABLE_COMPLETE"
"""Set by what `erasable --install-completion` adds to the shell's start-up file."""

ORDER = [
    "init", "status", "report", "key", "workspace", "backup", "restore", "dataset", "model",
    "select", "request", "correct", "process", "work", "tasks", "retry", "remove-domain",
    "requests", "deny", "cancel", "hold", "extend", "verify",
    "audit", "receipt", "log", "subject", "suppress", "target", "compile",
]  # fmt: skip
"""The commands as the help lists them."""

_REQUEST = re.compile("R-[0-9A-Z]{10}")


class _AsTyped:
    """A parameter type that passes on the text as typed.

    Typer would load pydantic for this, which takes a sixth of a second.
    """

    def __init__(self, several: bool) -> None:
        self.several = several

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if not self.several:
            return _checked(value)
        return [_checked(each) for each in value or ()]


def _checked(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise typer.BadParameter("it is not UTF-8") from None
        if "\0" in value:
            raise typer.BadParameter("it holds a zero byte")
    return value


class _Plain:
    """What commands and groups have in common: parameters that are taken as they were typed."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return --help."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        return None if option is None else _as_typed(option)


class Command(_Plain, TyperCommand):
    """A command whose parameters are texts, lists of texts, and switches."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            _as_typed(param)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is given twice: the second would replace the first unseen."""
        given = args[: args.index("--")] if "--" in args else args
        params: list[Any] = list(self.params)
        for param in params:
            is_option = param.param_type_name == "option"
            if not is_option or param.type_descriptor.annotation is bool or param.multiple:
                continue
            for name in param.opts:
                n = sum(each == name or each.startswith(f"{name}=") for each in given)
                if n > 1:
                    raise typer.BadParameter(
                        f"{name} is given {n} times; expected once"
                        + (": join conditions with 'and'" if name == "--where" else "")
                    )
        return list(super().parse_args(ctx, args))


class NoSuchCommandError(typer.BadParameter):
    """A group has no command of the name that was given."""

    def __init__(self, name: str, ctx: Any) -> None:
        super().__init__(name, ctx=ctx)
        self.name = name


class CommandGroup(_Plain, TyperGroup):
    """Commands in the order they were registered."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return a command that is there, or say which name was given."""
        if not args[0].startswith("-") and args[0] not in self.commands:
            raise NoSuchCommandError(args[0], ctx)
        return super().resolve_command(ctx, args)


def _as_typed(param: Any) -> Any:
    kind = param.type_descriptor.annotation
    param._runtime_param = _AsTyped(several=kind not in (str, bool))
    if kind is bool:
        param.metavar = ""  # the help says "<bool>" otherwise
    elif param.param_type_name == "argument":
        param.display_type_rich = lambda ctx: None
    return param


class Root(CommandGroup):
    """The whole command line: errors are one line, with an exit code of docs/cli.md."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options that need no command."""
        params: list[Any] = super().get_params(ctx)
        return [
            _as_typed(param) if param.type_descriptor.annotation is bool else param
            for param in params
        ]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of `ORDER`, which the help keeps."""
        return sorted(self.commands, key=ORDER.index)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *_: Any,
        **__: Any,
    ) -> NoReturn:
        """Run a command line, and exit."""
        if COMPLETE in os.environ:  # a shell asks what could come next
            super().main(args, prog_name)
        given = list(sys.argv[1:] if args is None else args) or ["--help"]
        with forgiving() as output, interrupts.raised(), _quiet_warnings():
            try:
                with self.make_context(prog_name or "erasable", given) as context:
                    self.invoke(context)
                code = 0
            except Exception as error:
                code = _report(error)
            except KeyboardInterrupt as error:
                code = _interrupted(error)
            code = _told(output, code)
        sys.exit(code)


def command(
    app: typer.Typer, name: str, *, example: str, panel: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command with its example, which its help and the documentation show.

    >>> app = typer.Typer()
    >>> @command(app, "greet", example="erasable greet")
    ... def greet() -> None:
    ...     pass
    >>> app.registered_commands[0].epilog
    'Example: `erasable greet`'
    """
    return app.command(name, cls=Command, epilog=f"Example: `{example}`", rich_help_panel=panel)


def opened(folder: str, memory: int | None = None, dask: str | None = None) -> Any:
    """Open the workspace, with a progress display; see `Workspace.open`."""
    from erasable.workspace import Workspace

    workspace = Workspace.open(folder, memory=memory, dask=dask)
    workspace.context.progress = Meter(sys.stderr)
    return workspace


def fail(message: str) -> NoReturn:
    """Raise an error of the command line."""
    raise WorkspaceError(message)


def request_id(given: str) -> str:
    """Return the id of a request; other texts may be identities, and are not repeated."""
    if not _REQUEST.fullmatch(given):
        fail(
            "that is no id of a request; expected R- and ten letters or digits, as was printed "
            "when it was taken in; list them with `erasable requests`"
        )
    return given


# -- how it ends -----------------------------------------------------------------------------------


def _report(error: Exception) -> int:
    """Report an error; return the exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if os.environ.get(DEBUG):
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, typer.TyperException):
        return _say(explained(error))
    if isinstance(error, TamperedError):
        _say(str(error))
        return 1  # as `log verify` ends, which finds the same
    if isinstance(error, ErasableError):
        return _say(str(error) or type(error).__name__)
    if isinstance(error, MemoryError):
        return _say(
            "the memory ran out; expected enough for the data and models concerned; nothing is "
            "half-done: give it more, and run it again"
        )
    if isinstance(error, OSError):
        named = "" if error.filename is None else f"{os.fsdecode(error.filename)!r}: "
        reason = error.strerror or type(error).__name__
        return _say(
            f"{named}{reason}; expected a file or folder that can be used; check its path and "
            "permissions, and that the disk has space"
        )
    return _say(
        f"erasable has a fault ({type(error).__name__}); expected none; set {DEBUG}=1 to see "
        "where, and report it"
    )


def _say(message: str) -> int:
    sys.stderr.write(f"error: {one_line(message)}\n")
    return 2


def _interrupted(error: KeyboardInterrupt) -> int:
    """Report an interruption; return the exit code."""
    _say(f"the command was interrupted; expected it to end; {became(error)}")
    return interrupts.exit_code(error)


def _told(output: OutputStream, code: int) -> int:
    """Return the exit code, considering whether the output could be written."""
    output.flush()
    if output.failed is None or code != 0:
        return code
    if not isinstance(output.failed, BrokenPipeError):  # else its reader has left, and knows
        reason = getattr(output.failed, "strerror", None) or str(output.failed)
        _say(
            f"standard output cannot be written ({reason}); expected a place for what the command "
            "prints; it has done what it was asked for, and some of what it printed is lost"
        )
    return 3


@contextlib.contextmanager
def _quiet_warnings() -> Iterator[None]:
    """Tell warnings in one line each, without the place in the code."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        sys.stderr.write(f"warning: {one_line(str(message))}\n")

    before, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = before
