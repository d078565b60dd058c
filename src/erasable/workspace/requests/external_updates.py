"""Changes owed to other systems: hooks to run, models to register, the suppression list to export.

A task that fails does not undo the change. It is reported in a line; hooks and models stay due
until they succeed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from erasable.core.errors import EvidenceError, WorkspaceDiskError
from erasable.workspace.context import Context
from erasable.workspace.identity import external_files
from erasable.workspace.models import hooks, published, publishing


def is_due(context: Context) -> bool:
    """Tell whether a hook is to run, or a registry lacks the newest version of a model."""
    with context.ledger.reading() as connection:
        if hooks.due(context, connection):
            return True
    return published.is_any_due(context)


def deliver(
    context: Context,
    *,
    erased: bool = False,
    before: Mapping[str, str | None] | None = None,
    updated: Collection[str] = (),
) -> tuple[list[str], list[str]]:
    """Carry out all that is due; return models whose hooks were run, and warnings.

    Hold the lock of requests. With `erased`, also export the suppression list. `before` is what
    `hooks.run_due` returned earlier in this run: a hook that failed then is run again only if its
    model is in `updated`.
    """
    warnings = export_list(context) if erased else []
    earlier = before or {}
    failed = {name for name, error in earlier.items() if error is not None}
    found = {**earlier, **hooks.run_due(context, failed - set(updated))}
    warnings += [error for error in found.values() if error is not None]
    warnings += publishing.publish_due(context)
    return [name for name, error in found.items() if error is None], warnings


def export_list(context: Context, effect: str = "") -> list[str]:
    """Write the suppression list into the export folder; return warnings."""
    try:
        external_files.write(context)
    except (EvidenceError, WorkspaceDiskError) as error:  # what was asked is done, and written down
        return [f"the suppression list was not exported{effect}: {error}"]
    return []
