"""Tell the user's own program that a model has changed.

The law kept here: whose hook is to run is in the ledger from the moment that the model is another,
until the hook has ended well. A process that dies before has it run by the next one; one that dies
during it, or a hook that fails, has it run again.
"""

from __future__ import annotations

from erasable.core.errors import ErasableError, WorkspaceBusyError
from erasable.workspace import locking
from erasable.workspace.models import owed, using
from erasable.workspace.models.training import run as run_command
from erasable.workspace.site import Site
from erasable.workspace.store.disk import Disk

__all__ = ["run_due"]


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
        names = owed.every(site, connection)
    ran, failed = [], []
    for name in names:
        try:
            with site.lock(reads=locking.models([name])):
                with site.ledger.reading() as connection:
                    hook = owed.hook_of(connection, name)
                told = None if hook is None else _run(site, name, hook)
        except WorkspaceBusyError:  # it is being fitted; its hook stays due
            continue
        if told is not None:
            failed.append(told)
            continue
        with site.ledger.transaction() as connection:
            owed.settle(site, connection, name)
        ran += [] if hook is None else [name]
    return ran, failed


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
