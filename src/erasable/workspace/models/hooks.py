"""Tell the user's own program that a model has changed."""

from __future__ import annotations

from erasable.core.errors import ErasableError
from erasable.workspace.models import catalogue, using
from erasable.workspace.models.training import run as run_command
from erasable.workspace.site import Site
from erasable.workspace.store.disk import Disk

__all__ = ["run"]


def run(site: Site, name: str) -> str | None:
    """Run the hook of a model, if it has one and there is a model.

    The command's ``{model}`` is a file with the model, without records, in a folder that is
    removed when the command has ended.

    Returns
    -------
    str or None
        What went wrong, in one line. The model has changed all the same.
    """
    with site.ledger.reading() as connection:
        model = catalogue.find(connection, name)
    if model.hook is None or not model.is_live:
        return None
    try:
        with site.scratch() as folder:
            Disk(folder).write("model", using.opened(site, name)[2])
            run_command(model.hook, model=folder / "model")
    except ErasableError as error:
        return f"the hook of {name!r} failed: {' '.join(str(error).split())}"
    return None
