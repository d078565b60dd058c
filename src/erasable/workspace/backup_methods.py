"""Methods of `Workspace`: backups and published models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from erasable.workspace.ledger.address import Address
from erasable.workspace.store.location import Location

if TYPE_CHECKING:
    from erasable.workspace.backups.backup import BackedUp
    from erasable.workspace.backups.copying import Copied
    from erasable.workspace.backups.restore import Restored
    from erasable.workspace.context import Context, Progress
    from erasable.workspace.models.published import Published


class BackupMethods:
    """Backups and published models of a workspace; see `erasable.workspace.Workspace`.

    Parameters
    ----------
    context : Context
    """

    context: Context

    def back_up(self, path: str | os.PathLike[str], *, with_keys: bool = False) -> BackedUp:
        """Write all of it into a file; see `erasable.workspace.backups.backup.back_up`."""
        from erasable.workspace.backups import backup

        return backup.back_up(self.context, path, with_keys=with_keys)

    @staticmethod
    def restore(
        backup: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        suppressions: Mapping[str, Any] | None,
        head: Mapping[str, Any] | None = None,
        keys: str | os.PathLike[str] | None = None,
        database: str | None = None,
        schema: str | None = None,
        store: str | None = None,
        retire: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Restored:
        """Make a workspace of a backup, without those who were erased since.

        `suppressions` and `head` are what was exported last; see
        `erasable.workspace.backups.restore.restore`.
        """
        from erasable.workspace.backups import restore

        return restore.restore(
            backup, path, suppressions=suppressions, head=head, keys=keys,
            address=Address.of(database, schema),
            location=None if store is None else Location.parse(store), retire=retire,
            progress=progress,
        )  # fmt: skip

    def publish(
        self,
        model: str,
        to: str,
        *,
        tracking_uri: str | None = None,
        delete_superseded: bool = False,
    ) -> tuple[Published, list[str]]:
        """Register a model in MLflow, now and after every update.

        See `erasable.workspace.models.publishing.publish`.
        """
        from erasable.workspace.models import publishing

        return publishing.publish(
            self.context, model, to, tracking_uri=tracking_uri, delete_superseded=delete_superseded
        )

    def stop_publishing(self, model: str) -> None:
        """Publish a model no longer; what is registered stays."""
        from erasable.workspace.models import publishing

        publishing.stop(self.context, model)

    def copy(
        self,
        path: str | os.PathLike[str],
        *,
        database: str,
        schema: str | None = None,
        store: str | None = None,
    ) -> Copied:
        """Copy all of it to another folder, with the ledger in PostgreSQL; this one stays.

        Data and models are copied into that folder, or below the URL `store` of an object store.

        See `erasable.workspace.backups.copying.copy`.
        """
        from erasable.workspace.backups import copying

        location = None if store is None else Location.parse(store)
        return copying.copy(self.context, path, Address.parse(database, schema), location)
