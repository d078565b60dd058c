"""Hooks: programs of the user that run after a model has changed.

The law kept here: the ledger has that a hook is due from the moment that the model changes until
the hook has succeeded. If a process dies before or during the hook, or the hook fails, it is run
again.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection

import erasable.workspace.locking as locking
from erasable.core.errors import ErasableError, TamperedError, WorkspaceBusyError
from erasable.workspace.context import Context
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.evidence.ledger_checks import Trusted
from erasable.workspace.locking.leases import OvertakenError
from erasable.workspace.models import catalogue
from erasable.workspace.store.disk import Disk

_NAME = "hooks_due"


def due(context: Context, connection: Connection) -> list[str]:
    """Return the models that have changed and have a hook to run, by name."""
    return [name for name in _every(context, connection) if hook_of(connection, name) is not None]


def hook_of(connection: Connection, name: str) -> str | None:
    """Return the hook of a model; None where it has none, or there is no such model any more."""
    model = catalogue.find_or_none(connection, name)
    return model.hook if model is not None and model.is_live else None


def add(context: Context, connection: Connection, name: str) -> None:
    """Write down that a model has changed, in the transaction that changes it."""
    before = _every(context, connection)
    if name not in before:
        context.ledger.set(connection, _NAME, sorted([*before, name]))


def discard(context: Context, connection: Connection, name: str) -> None:
    """Write down that no hook of a model is due: it has ended well, or the model is retired."""
    before = _every(context, connection)
    left = [each for each in before if each != name]
    if left != before:
        context.ledger.set(connection, _NAME, left)


def _every(context: Context, connection: Connection) -> list[str]:
    names: list[str] = context.ledger.get(connection, _NAME, [])
    return names


def run_due(context: Context, but: Collection[str] = ()) -> dict[str, str | None]:
    """Run the hooks that are due of models that still have one, except of the models in `but`.

    The command's ``{model}`` is a file with the model, without records, in a folder that is removed
    when the command has ended. Hold the lock of requests. Return None for each model whose hook
    succeeded, and otherwise the error, in a line.
    """
    with context.ledger.reading() as connection:
        ledger_checks.check_settings(
            context, connection
        )  # they name the models; `recorded` checks these
        names = [name for name in due(context, connection) if name not in but]
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = _run_alone(context, name)
        except (OvertakenError, TamperedError):
            raise
        except WorkspaceBusyError:
            found[name] = (
                f"the hook of {name!r} was not run, as the model is being changed; it is run by "
                "the next process"
            )
    return found


def _run_alone(context: Context, name: str) -> str | None:
    """Run a hook while no process changes the model; return what went wrong, if anything."""
    with context.lock(reads=locking.models([name]), wait=0.0):
        with context.ledger.reading() as connection:
            hook = hook_of(connection, name)
        message = None
        if hook is not None:
            message = _run(context, name, ledger_checks.recorded(context, name, hook, "hook"))
    if message is None:
        with context.ledger.transaction() as connection:
            discard(context, connection, name)
    return message


def _run(context: Context, name: str, hook: Trusted[str]) -> str | None:
    """Run a hook; return what went wrong, if anything."""
    from erasable.workspace.models import using  # imports scikit-learn
    from erasable.workspace.models.training import run as run_command

    try:
        with context.scratch() as folder:
            Disk(folder).write("model", using.open_model(context, name)[2])
            run_command(hook, context.root, model=folder / "model")
    except TamperedError:
        raise
    except ErasableError as error:
        message = " ".join(str(error).split())
        return f"the hook of {name!r} failed, and is run again by the next process: {message}"
    return None
