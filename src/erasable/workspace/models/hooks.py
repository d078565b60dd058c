"""Tell the user's own program that a model has changed.

The law kept here: whose hook is to run is in the ledger from the moment that the model is another,
until the hook has ended well. A process that dies before has it run by the next one; one that dies
during it, or a hook that fails, has it run again.
"""

from __future__ import annotations

from collections.abc import Collection

from erasable.core.errors import ErasableError, TamperedError, WorkspaceBusyError
from erasable.workspace import locking
from erasable.workspace.evidence import reliance
from erasable.workspace.evidence.reliance import Trusted
from erasable.workspace.locking.leases import OvertakenError
from erasable.workspace.models import pending_hooks, using
from erasable.workspace.models.training import run as run_command
from erasable.workspace.site import Site
from erasable.workspace.store.disk import Disk


def run_due(site: Site, but: Collection[str] = ()) -> dict[str, str | None]:
    """Run the hooks of models that have changed, and have a hook still.

    The command's ``{model}`` is a file with the model, without records, in a folder that is
    removed when the command has ended. Hold the lock of requests.

    Parameters
    ----------
    site : Site
    but : collection of str, default=()
        Models whose hooks stay due.

    Returns
    -------
    dict of str to str or None
        For each model None where its hook has ended well, or what went wrong, in a line. The model
        has changed all the same.
    """
    with site.ledger.reading() as connection:
        reliance.check_settings(site, connection)  # they name the models; `recorded` checks these
        names = [name for name in pending_hooks.due(site, connection) if name not in but]
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = _run_alone(site, name)
        except (OvertakenError, TamperedError):
            raise
        except WorkspaceBusyError:
            found[name] = (
                f"the hook of {name!r} was not run, as the model is being changed; it is run by "
                "the next process"
            )
    return found


def _run_alone(site: Site, name: str) -> str | None:
    """Run a hook while nobody changes the model; return what went wrong, if anything."""
    with site.lock(reads=locking.models([name]), wait=0.0):
        with site.ledger.reading() as connection:
            hook = pending_hooks.hook_of(connection, name)
        message = None
        if hook is not None:
            message = _run(site, name, reliance.recorded(site, name, hook, "hook"))
    if message is None:
        with site.ledger.transaction() as connection:
            pending_hooks.discard(site, connection, name)
    return message


def _run(site: Site, name: str, hook: Trusted[str]) -> str | None:
    """Run a hook; return what went wrong, if anything."""
    try:
        with site.scratch() as folder:
            Disk(folder).write("model", using.opened(site, name)[2])
            run_command(hook, site.root, model=folder / "model")
    except TamperedError:
        raise
    except ErasableError as error:
        message = " ".join(str(error).split())
        return f"the hook of {name!r} failed, and is run again by the next process: {message}"
    return None
