"""`Workspace`: all a workspace can do, under one name; imported as it is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised
from erasable.core.errors import LedgerError
from erasable.workspace.audit_methods import AuditMethods
from erasable.workspace.backup_methods import BackupMethods
from erasable.workspace.context import Context
from erasable.workspace.ledger.address import Address
from erasable.workspace.ledger.engine import REVISION
from erasable.workspace.model_methods import ModelMethods
from erasable.workspace.request_methods import RequestMethods
from erasable.workspace.store.location import Location
from erasable.workspace.store.own import refuse_own

if TYPE_CHECKING:
    from erasable.workspace.data.datasets import Change


class Workspace(ModelMethods, RequestMethods, BackupMethods, AuditMethods):
    r"""Data sets, models and requests in a folder; `create` and `open` are the ways to it.

    Parameters
    ----------
    context : Context

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = "visit,patient,age,sick\n" + "".join(
    ...         f"v{i},p{i // 2},{30 + i},{i % 2}\n" for i in range(40)
    ...     )
    ...     _ = Path(folder, "visits.csv").write_text(rows)
    ...     workspace = Workspace.create(Path(folder, "ws"))
    ...     _ = workspace.add_dataset(
    ...         "visits", Path(folder, "visits.csv"), id_column="visit", subjects=["patient"]
    ...     )
    ...     _ = workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    ...     request = workspace.request(["p7"])[0]
    ...     done = workspace.process()
    ...     [each["treatment"] for each in done.treatments], done.n_records
    ...     [verdict.verdict for verdict in workspace.verify()]
    (['deleted'], 2)
    ['equal']
    """

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        export: str | None = None,
        database: str | None = None,
        schema: str | None = None,
        store: str | None = None,
    ) -> Self:
        """Make a workspace in a folder, which is made too if it is not there.

        Into `export`, a folder elsewhere, what a restored backup needs is written by each batch.
        The ledger is a file in the folder, or, with `database`, the URL of a PostgreSQL database
        without a password, in a `schema` of that, by default "erasable". Data and models are in
        the folder, or, with `store`, below a URL of an object store: ``s3://bucket/prefix``.

        Raises
        ------
        WorkspaceError
            There is one already, or `export` is a folder of the workspace's own.
        WorkspaceServerError
            The server of the database, or the object store, cannot be reached, or refuses.
        """
        if export is not None:
            refuse_own(export, path)
        location = None if store is None else Location.parse(store)
        context = Context.create(path, Address.of(database, schema), location)
        if export is not None:
            with context.ledger.transaction() as connection:
                context.ledger.set(connection, "export", os.path.abspath(export))
        return cls(context)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str] = ".", *, memory: int | None = None, dask: Any = None
    ) -> Self:
        """Open a workspace; see `erasable.workspace.context.Context.open` for what may be wrong.

        `memory` is how many bytes the features of a model's records may take; above that they are
        read block by block, where the model can learn so. By default half of the machine's. `dask`,
        a `distributed.Client` or an address, has such models learn on the workers of a cluster.
        """
        context = Context.open(path)
        context.memory = memory
        if dask is not None:
            from erasable.core.remote import dask_workers  # with pyarrow

            context.workers = dask_workers(dask)
        return cls(context)

    @classmethod
    def migrate(cls, path: str | os.PathLike[str] = ".") -> tuple[str, str]:
        """Bring the tables of a workspace's ledger up to date; return revisions, before and after.

        A ledger that is a file is brought up to date by `open`, too. One in PostgreSQL is not,
        because others may be at work on it with an older version.
        """
        context = Context.find(path)
        before = context.ledger.revision()
        if before != REVISION:
            context.ledger.create()
        return before, context.ledger.revision()

    # -- data sets ---------------------------------------------------------------------------------

    def add_dataset(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        id_column: str,
        subjects: Sequence[str | tuple[str, str]] = (),
        files: Sequence[str] = (),
        query: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> Change:
        """Take a data set in; see `erasable.workspace.data.datasets.add`.

        `subjects` are names of columns, alone ("patient", of type "id"; where its values look like
        addresses or telephone numbers a type is needed) or with a type ("sender:email"); what is
        behind the last colon is the type, so that a column "J:R" is "J:R:id", or ("J:R", "id").

        `delimiter`, `decimal` ("," or ".") and `encoding` say how a text file is written; where
        they are left out, that is as the file shows, or else a comma, a point and UTF-8. The data
        set keeps it: later files are read so unless they show, or `append` and `sync` are told,
        something else.
        """
        from erasable.workspace.data import datasets
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.data.sources import Source

        typed = [_typed(each) for each in subjects]
        dialect = Dialect.of(delimiter, decimal, encoding)
        found = Source.parse(os.fspath(source), query, dialect)
        return datasets.add(
            self.context, name, found, id_column=id_column, subjects=typed, files=files
        )

    def append(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        query: str | None = None,
        update_models: bool = False,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> Change:
        """Add new records to a data set; see `erasable.workspace.models.updating.append`.

        Models that follow at once are updated with it; with `update_models` all others, too, but
        those that never follow.
        """
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.data.sources import Source
        from erasable.workspace.models import updating

        dialect = Dialect.of(delimiter, decimal, encoding)
        found = Source.parse(os.fspath(source), query, dialect)
        changed = updating.append(self.context, name, found, every=update_models)
        return self._delivered(changed)

    def sync(
        self,
        name: str,
        source: str | os.PathLike[str] | None = None,
        *,
        query: str | None = None,
        update_models: bool = False,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> Change:
        """Bring a data set up to date; see `erasable.workspace.data.syncing.sync`, and `append`.

        `source` is asked for where its credentials were not kept, or where it has moved; a query
        that the data came by is kept.
        """
        from erasable.workspace.data import catalogue
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.data.sources import Source
        from erasable.workspace.evidence import reliance
        from erasable.workspace.models import updating

        with self.context.ledger.reading() as connection:
            known = catalogue.find(connection, name).source
            reliance.check_one(self.context, connection, "dataset", name)
        dialect = Dialect.of(delimiter, decimal, encoding)
        if source is None and query is None and dialect == Dialect():
            found = Source.from_json(known)
        else:
            place = known["place"] if source is None else os.fspath(source)
            if query is None and Source.takes_query(place):
                query = known.get("query")
            found = Source.parse(place, query, dialect)
        return self._delivered(updating.sync(self.context, name, found, every=update_models))

    def _delivered(self, changed: Change) -> Change:
        """Run hooks and register models where some were updated; add what failed."""
        if not changed.models:
            return changed
        return replace(changed, warnings=(*changed.warnings, *self._deliver_due()))

    def datasets(self) -> list[dict[str, Any]]:
        """Describe every data set."""
        from erasable.workspace.data import overview

        with self.context.ledger.reading() as connection:
            return overview.datasets(connection)

    def dataset(self, name: str) -> dict[str, Any]:
        """Describe a data set: its columns, versions and models; and what seems wrong with it."""
        from erasable.workspace.data import catalogue, overview, spellings

        with self.context.ledger.reading() as connection:
            described = overview.dataset(connection, name)
            known = catalogue.find(connection, name)
            return {**described, "warnings": spellings.remarks(self.context, connection, known)}

    # -- evidence ----------------------------------------------------------------------------------

    def receipt(self, request: str) -> bytes:
        """Return the receipt of a completed request, to be handed out.

        Raises
        ------
        NotInWorkspaceError
            There is no such request.
        WorkspaceError
            It is not completed.
        TamperedError
            The ledger has another receipt for it than the one that was signed.
        """
        from erasable.workspace.evidence import receipts
        from erasable.workspace.requests import intake

        with self.context.ledger.reading() as connection:
            known = intake.find(connection, request)
            body = receipts.fetch(connection, request)
        if body is None:
            raise errors.WorkspaceError(
                f"request {request} is {known.state.replace('_', ' ')}; expected one that is "
                "completed, which has a receipt; run `erasable process` first"
            )
        receipts.check_kept(body, request, self.public_key)
        return body

    @property
    def public_key(self) -> bytes:
        """The key, PEM, with which anybody checks receipts and heads of the log."""
        return self.context.keys.public_pem

    def head(self) -> dict[str, Any]:
        """Sign what the log is now."""
        from erasable.workspace.evidence import log

        with self.context.ledger.transaction() as connection:
            return log.head(self.context, connection)

    def log_entries(self, since: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Return entries of the log."""
        from erasable.workspace.evidence import log

        with self.context.ledger.reading() as connection:
            return log.entries(connection, since, limit)

    def verify_log(self, since: Mapping[str, Any] | None = None) -> list[str]:
        """Check the log; the ledger against it and the data; the log against an older head."""
        from erasable.workspace.data.holders import compare_index_with_data
        from erasable.workspace.evidence import consistency, log, suppressions

        looks = [
            log.verify_log, consistency.compare_ledger_with_log,
            suppressions.compare_list_with_log, compare_index_with_data,
        ]  # fmt: skip
        messages: list[str] = []
        for look in looks:
            try:
                messages += look(self.context)
            except LedgerError as error:  # a value that is none of its column
                messages.append(str(error))
        since_then = [] if since is None else log.verify_since(self.context, since)
        return list(dict.fromkeys(messages)) + since_then

    def remarks(self) -> list[str]:
        """Say what is odd about the times of the log, and proves nothing, a line each."""
        from erasable.workspace.evidence import clock

        try:
            return clock.remarks(self.context)
        except LedgerError:  # verify_log says so
            return []

    # -- all of it ---------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Count what there is, and what is due."""
        from erasable.workspace.requests import status

        return status.status(self.context)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page, complete in itself, that shows all of it."""
        from erasable.workspace.report import page

        page.write(self.context, path)


def _typed(subject: str | tuple[str, str]) -> tuple[str, str | None]:
    if not isinstance(subject, str):
        return subject
    column, colon, kind = subject.rpartition(":")
    if not colon:
        return subject, None
    from erasable.workspace.identity.canonical import check_type

    try:
        return column, check_type(kind)
    except errors.InvalidParameterError as error:
        raise errors.InvalidParameterError(
            f"{error}; where the colon belongs to the name of the column, write '{subject}:id'"
        ) from None
