"""`Workspace`: all a workspace can do, under one name; imported as it is asked for."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised
from erasable.core.errors import LedgerError, WorkspaceBusyError
from erasable.workspace.context import Context
from erasable.workspace.ledger.address import Address
from erasable.workspace.ledger.engine import REVISION
from erasable.workspace.store.location import Location
from erasable.workspace.store.own_files import refuse_own

if TYPE_CHECKING:
    import pyarrow as pa

    from erasable.audit import AuditReport
    from erasable.workspace.backups.backup import BackedUp
    from erasable.workspace.backups.copying import Copied
    from erasable.workspace.backups.restore import Restored
    from erasable.workspace.context import Progress
    from erasable.workspace.data.datasets import DatasetChange
    from erasable.workspace.domains.planning import RemovalPlan
    from erasable.workspace.domains.removing import Removed
    from erasable.workspace.models.fitting import FittedVersion
    from erasable.workspace.models.published import Published
    from erasable.workspace.models.verifying import Verdict
    from erasable.workspace.requests.failures import Failure
    from erasable.workspace.requests.history import History
    from erasable.workspace.requests.intake import Request
    from erasable.workspace.requests.preview import Preview
    from erasable.workspace.requests.process import Processed
    from erasable.workspace.requests.restoring import Imported
    from erasable.workspace.requests.worker import Done
    from erasable.workspace.selection.choice import ChosenRecords


class Workspace:
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

    def __init__(self, context: Context) -> None:
        self.context = context

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
    ) -> DatasetChange:
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
    ) -> DatasetChange:
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
    ) -> DatasetChange:
        """Bring a data set up to date; see `erasable.workspace.data.syncing.sync`, and `append`.

        `source` is asked for where its credentials were not kept, or where it has moved; a query
        that the data came by is kept.
        """
        from erasable.workspace.data import catalogue
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.data.sources import Source
        from erasable.workspace.evidence import ledger_checks
        from erasable.workspace.models import updating

        with self.context.ledger.reading() as connection:
            known = catalogue.find(connection, name).source
            ledger_checks.check_one(self.context, connection, "dataset", name)
        dialect = Dialect.of(delimiter, decimal, encoding)
        if source is None and query is None and dialect == Dialect():
            found = Source.from_json(known)
        else:
            place = known["place"] if source is None else os.fspath(source)
            if query is None and Source.takes_query(place):
                query = known.get("query")
            found = Source.parse(place, query, dialect)
        return self._delivered(updating.sync(self.context, name, found, every=update_models))

    def _delivered(self, changed: DatasetChange) -> DatasetChange:
        """Run hooks and register models where some were updated; add what failed."""
        if not changed.models:
            return changed
        return replace(changed, warnings=(*changed.warnings, *self._deliver_due()))

    def datasets(self) -> list[dict[str, Any]]:
        """Describe every data set."""
        from erasable.workspace.data import catalogue

        with self.context.ledger.reading() as connection:
            return catalogue.datasets(connection)

    def dataset(self, name: str) -> dict[str, Any]:
        """Describe a data set: its columns, versions and models; and what seems wrong with it."""
        from erasable.workspace.data import catalogue, column_types

        with self.context.ledger.reading() as connection:
            described = catalogue.dataset(connection, name)
            known = catalogue.find(connection, name)
            return {
                **described,
                "warnings": column_types.spelling_remarks(self.context, connection, known),
            }

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
        from erasable.workspace.evidence import log

        try:
            return log.clock_remarks(self.context)
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

    # -- models ----------------------------------------------------------------------------------

    def fit(
        self,
        name: str,
        estimator: Any = None,
        *,
        datasets: Sequence[str] = (),
        target: str | None = None,
        features: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        prepare: str = "auto",
        hook: str | None = None,
        policy: str | None = None,
    ) -> FittedVersion:
        """Train a model, or, under a name that is known, train it again on the newest data.

        `estimator` is a name, or an estimator or pipeline of erasable or scikit-learn itself, of
        which the recipe keeps classes and parameters as plain JSON; it stays unfitted. See
        `erasable.workspace.models.fitting.fit`.
        """
        from erasable.workspace.models import fitting

        fitted = fitting.fit(
            self.context, name, estimator, datasets=datasets, target=target, features=features,
            params=params, prepare=prepare, hook=hook, policy=policy,
        )  # fmt: skip
        self._publish_due()
        return fitted

    def register(
        self,
        name: str,
        *,
        datasets: Sequence[str],
        retrain: str | None = None,
        hook: str | None = None,
        policy: str | None = None,
    ) -> Any:
        """Register a model that is trained elsewhere.

        With `retrain`, a command with {data} and {out}, it is trained again at every erasure;
        without, it is not covered, and every receipt says so.
        """
        from erasable.workspace.models import fitting

        return fitting.register(
            self.context, name, datasets=datasets, retrain=retrain, hook=hook, policy=policy
        )

    def refresh(self, names: Sequence[str] | None = None) -> tuple[list[dict[str, Any]], list[str]]:
        """Have models follow to the newest versions of their data sets; return what, and warnings.

        See `erasable.workspace.models.updating.refresh`.
        """
        from erasable.workspace.models import updating

        done = updating.refresh(self.context, names)
        return done, self._deliver_due() if done else []

    def set_policy(self, name: str, policy: str) -> None:
        """Say when a model follows its data sets: "at-once", by "refresh", or "never"."""
        from erasable.workspace.models import updating

        updating.set_policy(self.context, name, policy)

    def retire(self, name: str) -> None:
        """Give a model up; see `erasable.workspace.models.fitting.retire`."""
        from erasable.workspace.models import fitting

        fitting.retire(self.context, name)
        self._publish_due()

    def models(self) -> list[dict[str, Any]]:
        """Describe every model."""
        from erasable.workspace.models import overview

        with self.context.ledger.reading() as connection:
            return overview.models(connection)

    def model(self, name: str) -> dict[str, Any]:
        """Describe a model: its recipe, data, versions and what deletions cost."""
        from erasable.workspace.models import overview

        with self.context.ledger.reading() as connection:
            return overview.model(connection, name)

    def predict(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> pa.Table:
        """Predict with a model for the records of a file; see `Workspace.add_dataset`."""
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.models import using

        dialect = Dialect.of(delimiter, decimal, encoding)
        return using.predict(self.context, name, os.fspath(source), dialect)

    def export(self, name: str, path: str | os.PathLike[str]) -> list[str]:
        """Write a model, without records, for prediction elsewhere; return warnings.

        See `erasable.workspace.models.using.export`.
        """
        from erasable.workspace.models import using

        return using.export(self.context, name, path)

    def verify(self, names: Sequence[str] | None = None, *, retrain: bool = False) -> list[Verdict]:
        """Fit models again on what is left, and compare bit for bit."""
        from erasable.workspace.models import verifying

        return verifying.verify(self.context, names, retrain=retrain)

    def _deliver_due(self) -> list[str]:
        """Run hooks and register models that have changed; return what failed."""
        from erasable.workspace.requests import process

        try:
            return process.deliver_due(self.context).warnings
        except WorkspaceBusyError:  # who carries out requests does it
            return []

    def _publish_due(self) -> None:
        """Register what a registry lacks; warn where that fails."""
        from erasable.workspace.models import published

        if published.is_any_due(self.context):
            from erasable.workspace.models import publishing

            for message in publishing.publish_due(self.context):
                warnings.warn(message, UserWarning, stacklevel=3)

    # -- requests ----------------------------------------------------------------------------------

    def request(
        self,
        values: Sequence[Any] = (),
        *,
        type: str | None = None,
        reach: int | None = None,
        regulation: str = "gdpr",
        where: str | None = None,
        dataset: str | None = None,
        hold: str | None = None,
        received_at: datetime | None = None,
    ) -> list[Request]:
        """Take requests in; see `erasable.workspace.requests.intake.acknowledge`."""
        from erasable.workspace.requests import intake

        return intake.acknowledge(
            self.context, values, type=type, reach=reach, regulation=regulation, where=where,
            dataset=dataset, hold=hold, received_at=received_at,
        )  # fmt: skip

    def correct(
        self,
        dataset: str,
        source: str | os.PathLike[str] | None = None,
        *,
        ids: Sequence[Any] = (),
        values: Mapping[str, Any] | None = None,
        regulation: str = "gdpr",
        hold: str | None = None,
        received_at: datetime | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> tuple[Request, list[str]]:
        """Take a correction in; return it, and warnings.

        See `erasable.workspace.requests.corrections.acknowledge`, and `Workspace.add_dataset` for
        how the file is written.
        """
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.requests import corrections

        place = None if source is None else os.fspath(source)
        return corrections.acknowledge(
            self.context, dataset, place, ids=ids, values=values, regulation=regulation, hold=hold,
            received_at=received_at, dialect=Dialect.of(delimiter, decimal, encoding),
        )  # fmt: skip

    def preview(
        self,
        values: Sequence[Any] = (),
        *,
        type: str | None = None,
        reach: int | None = None,
        where: str | None = None,
        dataset: str | None = None,
    ) -> Preview:
        """Say what requests would do, and change nothing."""
        from erasable.workspace.identity import subjects
        from erasable.workspace.requests import intake, preview

        intake.check_reach(reach, where)
        with self.context.ledger.reading() as connection:
            wanted = intake.asked(self.context, connection, values, type, where, dataset)
            kinds = {each.type or type for each in intake.as_asks(values)}
            types = sorted({t for kind in kinds for t in subjects.types_tried(connection, kind)})
        return preview.preview(self.context, wanted, types, reach)

    def process(self, only: Sequence[str] | None = None, *, n_jobs: int = 1) -> Processed:
        """Carry out what is asked; see `erasable.workspace.requests.process.process`."""
        from erasable.workspace.requests import process

        return process.process(self.context, only, n_jobs=n_jobs)

    def work(
        self,
        *,
        drain: bool = False,
        poll: float = 1.0,
        attempts: int = 5,
        backoff: float = 5.0,
        tell: Callable[[Done], None] | None = None,
        stopped: threading.Event | None = None,
    ) -> None:
        """Carry out requests as they come, beside any number of others who do.

        Parameters
        ----------
        drain : bool, default=False
            Return when no task is pending, failing or claimed.
        poll : float, default=1.0
            Seconds between two looks for requests.
        attempts : int, default=5
            After so many a model or data set that fails is dead, until `retry`.
        backoff : float, default=5.0
            Seconds to the second attempt; from one to the next it doubles.
        tell : callable, default=None
            Called with each `erasable.workspace.requests.worker.Done`.
        stopped : threading.Event, default=None
            Set from elsewhere, has this return after what is under way.
        """
        from erasable.workspace.requests.failures import RetryPolicy
        from erasable.workspace.requests.worker import Worker

        worker = Worker(self.context, RetryPolicy(attempts, backoff), poll)
        if tell is not None:
            worker.tell = tell
        if stopped is not None:
            worker.stopped = stopped
        worker.run(drain=drain)

    def tasks(self) -> dict[str, Any]:
        """Return who is at work on what ("at_work"), and what failed ("failed")."""
        from erasable.workspace.requests import worker

        return worker.tasks(self.context)

    def retry(self, names: Sequence[str] = ()) -> list[Failure]:
        """Have models and data sets that failed be tried again at once; by default all of them."""
        from erasable.workspace.requests import failures

        return failures.retry(self.context, names)

    def requests(self, states: Sequence[str] | None = None) -> list[Request]:
        """List requests, those due first at the top."""
        from erasable.workspace.requests import intake

        with self.context.ledger.reading() as connection:
            return intake.listing(connection, states)

    def deny(self, request: str, reason: str) -> Request:
        """Refuse a request."""
        from erasable.workspace.requests import answering

        return answering.deny(self.context, request, reason)

    def cancel(self, request: str, reason: str | None = None) -> Request:
        """Take a request back."""
        from erasable.workspace.requests import answering

        return answering.cancel(self.context, request, reason)

    def hold(self, request: str, reason: str) -> Request:
        """Have a request wait."""
        from erasable.workspace.requests import answering

        return answering.hold(self.context, request, reason)

    def resume(self, request: str) -> Request:
        """End the waiting of a request."""
        from erasable.workspace.requests import answering

        return answering.resume(self.context, request)

    def extend(self, request: str, reason: str) -> Request:
        """Move the due date of a request; see `erasable.workspace.requests.answering.extend`."""
        from erasable.workspace.requests import answering

        return answering.extend(self.context, request, reason)

    def history(self, dataset: str, *, since: datetime | None = None) -> History:
        """Count who asked to be erased, of how many that a data set held.

        `erasable.selection.from_history` makes a staying model of the two counts. See
        `erasable.workspace.requests.history.history`.
        """
        from erasable.workspace.requests import history

        return history.history(self.context, dataset, since)

    def select(
        self,
        source: str | os.PathLike[str],
        k: float,
        staying: float | str,
        *,
        id_column: str | None = None,
        subject: str | None = None,
        target: str | None = None,
        features: Sequence[str] | None = None,
        fill: str | None = None,
        scale: str = "standard",
        utility: str = "nearest-neighbor",
        metric: str | None = None,
        n_neighbors: int | None = None,
        objective: str = "expected",
        samples: int | None = None,
        held: Sequence[str] = (),
        cost: str | None = None,
        random_state: int = 0,
    ) -> ChosenRecords:
        r"""Choose the records of a table to acquire whose value survives the deletions to come.

        With `staying` as "history:DATASET" the past requests to this workspace say how many stay.
        See `erasable.workspace.selection.choice.select`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from erasable.workspace import Workspace
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows = [f"v{i},p{i // 2},{20 + i}" for i in range(40)]
        ...     visits = Path(folder, "visits.csv")
        ...     _ = visits.write_text("\n".join(["visit,patient,age", *rows]))
        ...     workspace = Workspace.create(Path(folder, "ws"))
        ...     _ = workspace.add_dataset("visits", visits, id_column="visit", subjects=["patient"])
        ...     _ = workspace.request(["p3", "p8"])
        ...     chosen = workspace.select(visits, 3, "history:visits", id_column="visit")
        >>> chosen.ids, chosen.features, [each.selection for each in chosen.worth]
        (['v20', 'v9', 'v32'], ('age',), ['anticipating', 'conventional'])
        """
        from erasable.workspace.selection import choice

        return choice.select(
            os.fspath(source), k, staying, id_column=id_column, subject=subject, target=target,
            features=features, fill=fill, scale=scale, utility=utility, metric=metric,
            n_neighbors=n_neighbors, objective=objective, samples=samples, held=held, cost=cost,
            random_state=random_state, history=lambda name, since: self.history(name, since=since),
        )  # fmt: skip

    # -- domains -----------------------------------------------------------------------------------

    def plan_removal(
        self,
        dataset: str,
        *,
        where: str | None = None,
        keywords: Sequence[str] | None = None,
        column: str | None = None,
        features: Sequence[str] | None = None,
        components: int | None = None,
        fill: str | None = None,
        score: Any = "density-ratio",
        budget: Any = None,
        cost: str | None = None,
        retain_where: str | None = None,
        retain_sample: int | None = None,
        fresh: str | None = None,
        delta: float = 0.05,
        random_state: int = 0,
    ) -> RemovalPlan:
        """Choose the records by which a domain would leave a data set, and change nothing.

        See `erasable.workspace.domains.planning.plan`.
        """
        from erasable.workspace.domains import planning

        return planning.plan(
            self.context, dataset, where=where, keywords=keywords, column=column, features=features,
            components=components, fill=fill, score=score, budget=budget, cost=cost,
            retain_where=retain_where, retain_sample=retain_sample, fresh=fresh, delta=delta,
            random_state=random_state,
        )  # fmt: skip

    def remove_domain(self, plan: RemovalPlan) -> Removed:
        r"""Erase the records of a plan from the data set and every model; say what that did.

        See `erasable.workspace.domains.removing.remove`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from erasable.workspace import Workspace
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows = [f"{i},{i % 2},{i * 7 % 40 + 20 * (i % 2)},{i % 4 // 2}" for i in range(60)]
        ...     _ = Path(folder, "visits.csv").write_text("\n".join(["id,ward,age,sick", *rows]))
        ...     workspace = Workspace.create(Path(folder, "ws"))
        ...     _ = workspace.add_dataset("visits", Path(folder, "visits.csv"), id_column="id")
        ...     _ = workspace.fit(
        ...         "risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick",
        ...         features=["age"],
        ...     )
        ...     plan = workspace.plan_removal("visits", where="ward = 1", budget=6)
        ...     done = workspace.remove_domain(plan)
        ...     print([(each.group, each.n_records) for each in done.models[0].report.groups[:3]])
        [('deleted forget', 6), ('kept forget', 24), ('retain', 30)]
        """
        from erasable.workspace.domains import removing

        return removing.remove(self.context, plan)

    # -- people ------------------------------------------------------------------------------------

    def link(
        self, value: Any, other: Any, *, type: str | None = None, other_type: str | None = None
    ) -> None:
        """Say that two identities are one person.

        Their types are "id" by default; an address needs one that is named.
        """
        from erasable.workspace.identity import subjects, value_formats

        subjects.link(
            self.context,
            value,
            value_formats.type_or_id(value, type),
            other,
            value_formats.type_or_id(other, other_type),
        )

    def subject(self, value: Any, *, type: str | None = None) -> dict[str, Any]:
        """Say what is kept of a person: records per data set, models, open requests."""
        from erasable.workspace.requests import preview

        return preview.describe_person(self.context, value, type)

    def suppressed(self) -> list[dict[str, Any]]:
        """List whose records are kept out, by token: token, type, request_id, since."""
        from erasable.workspace.identity import suppression

        with self.context.ledger.reading() as connection:
            return suppression.listing(connection)

    def suppression_list(self) -> dict[str, Any]:
        """Return the signed list of whose records are kept out, for a place elsewhere.

        It holds tokens, no identity.
        """
        from erasable.workspace.identity import external_files

        return external_files.export(self.context)

    def import_suppression_list(self, exported: Mapping[str, Any]) -> Imported:
        """Take in a list that `suppression_list` returned, as after a backup was restored.

        See `erasable.workspace.requests.restoring.import_list`.
        """
        from erasable.workspace.requests import restoring

        return restoring.import_list(self.context, exported)

    def release(self, value: Any, *, type: str | None = None) -> list[str]:
        """Let a person's records in again: they have given consent anew; return warnings.

        See `erasable.workspace.identity.suppression.release`. The list that is kept outside is
        written again.
        """
        from erasable.workspace.identity import suppression
        from erasable.workspace.requests import external_updates

        suppression.release(self.context, value, type)
        return external_updates.export_list(self.context, ", and still names them")

    # -- backups and published models ------------------------------------------------------------

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

    # -- audits ----------------------------------------------------------------------------------

    def audit(
        self,
        name: str,
        *,
        fresh: str | os.PathLike[str] | None = None,
        deleted: str | None = None,
        records: str | os.PathLike[str] | None = None,
        attack: str | None = None,
        references: int | None = None,
        level: float = 0.05,
        seed: int = 0,
        ask: str | None = None,
        target: str | None = None,
    ) -> AuditReport:
        """Test whether a model reveals its records, or has forgotten those of a request.

        A model that a program of the user's made is asked by the command `ask`, for
        probabilities of the classes of the column `target`.

        See `erasable.workspace.audits.auditing.audit`.
        """
        from erasable.core.errors import InvalidParameterError
        from erasable.workspace.audits import auditing, subjects

        asked = None
        if ask is not None and target is not None:
            asked = subjects.AskCommand(ask, target)
        elif ask is not None or target is not None:
            raise InvalidParameterError(
                "one of ask and target was given; expected both, or neither"
            )

        return auditing.audit(
            self.context, name, fresh=None if fresh is None else os.fspath(fresh),
            deleted=deleted, records=None if records is None else os.fspath(records),
            attack=attack, references=references, level=level, seed=seed, ask=asked,
        )  # fmt: skip


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
