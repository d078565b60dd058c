"""Tell the user's own program that a model has changed.

The law kept here: whose hook is to run is in the ledger from the moment that the model is another,
until the hook has ended well. A process that dies before has it run by the next one; one that dies
during it, or a hook that fails, has it run again.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from erasable.core.errors import ErasableError, WorkspaceBusyError
from erasable.workspace import locking
from erasable.workspace.models import catalogue, using
from erasable.workspace.models.training import run as run_command
from erasable.workspace.site import Site
from erasable.workspace.store.disk import Disk

__all__ = ["due", "owe", "run_due"]

_DUE = "hooks_due"


def owe(site: Site, connection: Connection, names: Iterable[str]) -> None:
    """Write down, in the caller's transaction, that models have changed whose hooks are to run."""
    before = site.ledger.get(connection, _DUE, [])
    after = sorted({*before, *names})
    if after != before:
        site.ledger.set(connection, _DUE, after)


def due(site: Site, connection: Connection) -> list[str]:
    """Return the models whose hooks are to run, by name."""
    names: list[str] = site.ledger.get(connection, _DUE, [])
    return [name for name in names if _hook_of(connection, name) is not None]


def run_due(site: Site) -> tuple[list[str], list[str]]:
    """Run the hooks of models that have changed, and have a hook still.

    The command's ``{model}`` is a file with the model, without records, in a folder that is
    removed when the command has ended. Hold the lock of requests.

    Returns
    -------
    ran : list of str
        The models whose hooks have ended well.
    failed : list of str
        What went wrong, a line each. The models have changed all the same.
    """
    with site.ledger.reading() as connection:
        names = site.ledger.get(connection, _DUE, [])
    ran, failed = [], []
    for name in names:
        try:
            with site.lock(reads=locking.models([name])):
                with site.ledger.reading() as connection:
                    hook = _hook_of(connection, name)
                told = None if hook is None else _run(site, name, hook)
        except WorkspaceBusyError:  # it is being fitted; its hook stays due
            continue
        if told is not None:
            failed.append(told)
            continue
        with site.ledger.transaction() as connection:
            left = [each for each in site.ledger.get(connection, _DUE, []) if each != name]
            site.ledger.set(connection, _DUE, left)
        ran += [] if hook is None else [name]
    return ran, failed


def _hook_of(connection: Connection, name: str) -> str | None:
    model = catalogue.known(connection, name)
    return model.hook if model is not None and model.is_live else None


def _run(site: Site, name: str, hook: str) -> str | None:
    """Run a hook; return what went wrong, if anything."""
    try:
        with site.scratch() as folder:
            Disk(folder).write("model", using.opened(site, name)[2])
            run_command(hook, model=folder / "model")
    except ErasableError as error:
        told = " ".join(str(error).split())
        return f"the hook of {name!r} failed, and is run again by the next process: {told}"
    return None
