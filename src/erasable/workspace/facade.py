"""The class `Workspace`; its methods import most of what they need, so opening one is fast."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised
from erasable.core.display import Listing, facts
from erasable.core.errors import LedgerError, WorkspaceBusyError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import consistency, log, receipts
from erasable.workspace.identity.canonical import declared
from erasable.workspace.ledger.address import Address
from erasable.workspace.ledger.engine import REVISION
from erasable.workspace.report import receipt_page
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
    from erasable.workspace.data.operation import Operation
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
    from erasable.workspace.targets.catalogue import TargetRow
    from erasable.workspace.targets.checking import ReturnedPeople
    from erasable.workspace.targets.erasing import Erased
    from erasable.workspace.targets.scanning import Scanned

_Result = TypeVar("_Result")


class Workspace:
    r"""Data sets, models and requests in a folder. Make one with `create` or `open`.

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
        if not isinstance(context, Context):
            raise WorkspaceError(
                f"a workspace was made of {type(context).__name__}; expected "
                "Workspace.open(path), or Workspace.create(path) for a new one"
            )
        self.context = context

    def __repr__(self) -> str:
        """Name the folder."""
        return f"Workspace({str(self.context.root)!r})"

    def _repr_html_(self) -> str:
        found = self.status()
        counts = {
            "data_sets": found["datasets"],
            "records": found["n_records"],
            "models": found["models"] or None,
            "requests": found["requests"] or None,
            "late": found["late"] or None,
            "on_hold": found["held"] or None,
            "next_due": found["next_due"],
            "stale": found["stale"] or None,
            "suppressed_identities": found["suppressed"],
        }
        return facts(f"workspace {self.context.root}", counts)

    # -- make and open -----------------------------------------------------------------------------

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
        """Make a workspace in a folder, which is created if it does not exist.

        Parameters
        ----------
        path : path-like
            The folder.
        export : str, default=None
            A folder outside of the workspace. After each batch of requests, the suppression list
            and the signed head of the log are written there; restoring a backup needs them.
        database : str, default=None
            URL of a PostgreSQL database, without a password, for the ledger. By default the ledger
            is a file in the folder.
        schema : str, default=None
            Schema of the database; by default "erasable".
        store : str, default=None
            URL of a place in an object store, such as ``s3://bucket/prefix``, for data and models.
            By default they are in the folder.

        Raises
        ------
        WorkspaceError
            The folder has a workspace already, or `export` is a folder of the workspace itself.
        WorkspaceServerError
            The database or the object store cannot be reached, or refuses access.
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
        """Open a workspace.

        Parameters
        ----------
        path : path-like, default="."
            Its folder.
        memory : int, default=None
            Bytes that the features of a model's records may take. Above that they are read block by
            block, if the model can learn that way. By default half of the machine's memory.
        dask : distributed.Client or str, default=None
            A Dask cluster, or its address: models that can learn block by block learn there.

        Raises
        ------
        NotInWorkspaceError
            The folder holds no workspace.
        WorkspaceVersionError
            A newer version of erasable made it, or `migrate` has to be called first.
        WorkspaceServerError
            The server of its ledger cannot be reached, or refuses access.
        EvidenceError
            The keys are not those of the workspace.
        """
        context = Context.open(path)
        context.memory = memory
        if dask is not None:
            from erasable.core.remote import dask_workers  # with pyarrow

            context.workers = dask_workers(dask)
        return cls(context)

    @classmethod
    def migrate(cls, path: str | os.PathLike[str] = ".") -> tuple[str, str]:
        """Bring the tables of a workspace's ledger up to date.

        `open` does this for a ledger in a file. A ledger in PostgreSQL is migrated only by this
        method, because others may still use it with an older version.

        Parameters
        ----------
        path : path-like, default="."
            The folder of the workspace.

        Returns
        -------
        before, after : str
            Revisions of the tables.
        """
        context = Context.find(path)
        before = context.ledger.revision()
        if before != REVISION:
            context.ledger.create()
        return before, context.ledger.revision()

    def status(self) -> dict[str, Any]:
        """Count data sets, models and requests, and what is due.

        Returns
        -------
        dict
            With the keys:

            - requests: counts by state
            - held, late: numbers of open requests on hold, and past their due date
            - waits_for_targets: counts by state of requests that are carried out, but for a target
            - targets: numbers of requests that wait for each target, by its name
            - next_due: datetime or None
            - datasets, n_records: numbers
            - models: counts by state
            - stale: names of models that learned from an earlier version of a data set
            - staleness: a dict for each of these, with model, n_versions, n_added, n_changed and
              n_removed
            - suppressed: number of entries of the suppression list
            - log_size: number of entries of the log
            - failed: counts of models and data sets that could not be updated, "waiting" (to be
              tried again) and "dead"
            - published: a dict for each published model, with model, to, version, registered,
              behind, superseded and error
            - hooks_due: names of models whose hooks the next `process` runs
            - restored: None, or for a restored workspace a dict with at, made_at, log_size and
              head_size
            - unreached: places outside of the workspace that may still hold erased data
        """
        from erasable.workspace.requests import status

        return status.status(self.context)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page, complete in itself, that shows the whole workspace."""
        from erasable.workspace.report import page

        page.write(self.context, path)

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
        types: Mapping[str, str] | None = None,
    ) -> DatasetChange:
        """Add a data set.

        Parameters
        ----------
        name : str
        source : path-like or str
            A CSV or TSV file, JSON lines, a Parquet file, a folder of Parquet files or its URL in
            an object store, or the URL of a database.
        id_column : str
            The column that names each record: integers or text, each value once. If it is also a
            subject column, its tokens are kept in an additional column, "ID.subject".
        subjects : sequence of str or (str, str)
            Columns that say whose records they are: a name ("patient", of type "id"), a name with a
            type ("sender:email"), or a pair. The type is what follows the last colon: for a column
            "J:R" write "J:R:id" or ("J:R", "id"). Columns of addresses and telephone numbers need a
            type; in "call:phone:DE" the country is that of numbers without a country code. Only
            tokens of the values are kept.
        files : sequence of str
            Columns that name PNG, JPEG or .npy files, relative to the folder of the source. The
            contents of the files are added to the data set, and are erased with their records.
        query : str, default=None
            What to select, if the source is a database.
        delimiter, decimal, encoding : str, default=None
            How a text file is written; `decimal` is "," or ".". By default as the file shows,
            otherwise a comma, a point and UTF-8. They are kept for `append` and `sync`.
        types : mapping of str to str, default=None
            Types of columns, by name: "text", "integer", "number", "boolean", "date", "timestamp"
            or "time". Other columns have the type of their values; in a text file it follows from
            the spelling of their cells.

        Returns
        -------
        DatasetChange
            With name, version, n_records, n_added, n_changed, n_removed, n_suppressed (records left
            out because their subjects have been erased), n_without_subject, warnings, models (that
            were updated) and stale (models that learned from an earlier version).

        Raises
        ------
        WorkspaceError
            The name is taken or not allowed.
        SourceError
            The source, or a file that it names, cannot be read, a column is missing, a type is
            unknown, or a value does not fit the type that its column was given.
        InvalidIdsError
            Ids or subjects are missing, repeat or have a wrong type, or a column without a type
            holds addresses or telephone numbers.
        """
        from erasable.workspace.data.datasets import AddDataset
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.data.sources import Source

        typed = [_typed(each) for each in subjects]
        dialect = Dialect.of(delimiter, decimal, encoding)
        found = Source.parse(os.fspath(source), query, dialect)
        return self._carry_out(
            AddDataset(
                self.context, name, found,
                id_column=id_column, subjects=typed, files=files, types=types,
            )
        )  # fmt: skip

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
        """Add new records to a data set: its next version.

        Parameters
        ----------
        name : str
        source : path-like or str
            See `add_dataset`.
        query : str, default=None
            What to select, if the source is a database.
        update_models : bool, default=False
            Update all models of the data set in the same transaction, except those with the policy
            "never". Models with the policy "at-once" are always updated.
        delimiter, decimal, encoding : str, default=None
            How a text file is written, if not as the one before.

        Returns
        -------
        DatasetChange
            See `add_dataset`.

        Raises
        ------
        WorkspaceError
            A model cannot be updated; nothing has changed.
        SourceError, InvalidIdsError
            See `add_dataset`.
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
        """Bring a data set up to date with its source: new, changed and removed records.

        Records of suppressed subjects that are still in the source are left out.

        Parameters
        ----------
        name : str
        source : path-like or str, default=None
            The complete source. By default where the data came from; it is needed if the source has
            moved, or if its credentials were not kept.
        query : str, default=None
            What to select, if the source is a database; by default the query before.
        update_models, delimiter, decimal, encoding
            See `append`.

        Returns
        -------
        DatasetChange
            See `add_dataset`. If nothing has changed, it describes the version before.
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

    def datasets(self) -> list[dict[str, Any]]:
        """Describe all data sets, sorted by name.

        Returns
        -------
        list of dict
            Each with name, version, n_records, source, id_column, subjects and created_at.
        """
        from erasable.workspace.data import catalogue

        with self.context.ledger.reading() as connection:
            return Listing(catalogue.datasets(connection))

    def dataset(self, name: str) -> dict[str, Any]:
        """Describe the data set `name`.

        Returns
        -------
        dict
            What `datasets` has, and columns (name and type of each), versions (number, cause,
            n_records, n_suppressed and created_at of each), models (names) and warnings.
        """
        from erasable.workspace.data import catalogue, column_types

        with self.context.ledger.reading() as connection:
            described = catalogue.dataset(connection, name)
            known = catalogue.find(connection, name)
            return {
                **described,
                "warnings": column_types.spelling_remarks(self.context, connection, known),
            }

    # -- models ------------------------------------------------------------------------------------

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
        """Train a model; if the name is known, train it again on the newest data.

        Parameters
        ----------
        name : str
        estimator : str, estimator or dict, default=None
            A name ("linear_model.Ridge"), several joined by "->" for a pipeline, a recipe as a dict
            or the path of a .json file, or an unfitted estimator or pipeline of erasable or
            scikit-learn. Or "module:function", a Python function that takes a pyarrow.Table and
            returns bytes or a fitted estimator of erasable. By default, as with the other
            parameters, as before.
        datasets : sequence of str
            Names of data sets; several must have the same columns.
        target : str, default=None
            The column to predict.
        features : sequence of str, default=None
            Columns to learn from. By default all except ids, subjects, the target, and text that is
            different in most records. With ``prepare="none"``, by default all numeric columns, or
            the one column of text for an estimator of documents.
        params : mapping, default=None
            Parameters of the estimator. Estimators among them are named:
            ``{"estimator": "sklearn.svm.SVC", "estimator__C": 2}``.
        prepare : {"auto", "none"}, default="auto"
            Whether steps that handle missing values, text, days and times are put before an
            estimator that cannot learn from the table as it is. A pipeline is left as it is.
        hook : str, default=None
            A command with ``{model}``, run after every update, without a shell.
        policy : {"at-once", "refresh", "never"}, default=None
            When the model is updated to new versions of its data sets; see `set_policy`. For a new
            model "refresh".

        Returns
        -------
        FittedVersion
            With name, version, n_records, seconds, features, target, commitment (to the digest),
            left_out (columns), warnings and prepared (what was done with which columns).

        Raises
        ------
        NotInWorkspaceError
            There is no such data set; or no such model, and no estimator was given.
        InvalidParameterError
            There is no such estimator or parameter.
        WorkspaceError
            Columns are missing or cannot be features, or the hook needs a shell or a program that
            is not there.
        InvalidDataError
            The estimator cannot learn from the records.
        """
        from erasable.workspace.models import fitting

        fitted = self._carry_out(
            fitting.Fit(
                self.context, name, estimator, datasets=datasets, target=target, features=features,
                params=params, prepare=prepare, hook=hook, policy=policy,
            )
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

        Parameters
        ----------
        name : str
        datasets : sequence of str
            The data sets that it is trained on.
        retrain : str, default=None
            A command with ``{data}``, a Parquet file, and ``{out}``, the file that the command
            writes the model to. It is run now and at every erasure, without a shell. Without a
            command the model is not covered by erasures, and every receipt says so.
        hook, policy
            See `fit`.

        Returns
        -------
        FittedVersion
            See `fit`.
        """
        from erasable.workspace.models import fitting

        return self._carry_out(
            fitting.Register(
                self.context, name, datasets=datasets, retrain=retrain, hook=hook, policy=policy
            )
        )

    def refresh(self, names: Sequence[str] | None = None) -> tuple[list[dict[str, Any]], list[str]]:
        """Update models to the newest versions of their data sets, one after the other.

        Parameters
        ----------
        names : sequence of str, default=None
            By default all stale models, except those with the policy "never".

        Returns
        -------
        updated : list of dict
            For each model that has changed: model, version, treatment, exactness, n_records,
            seconds.
        warnings : list of str
            Hooks and registries that failed.

        Raises
        ------
        NotInWorkspaceError
            There is no such model.
        WorkspaceError
            A model is retired, trained elsewhere or has the policy "never"; or it cannot be
            updated, and all others were.
        """
        from erasable.workspace.models import updating

        done = updating.refresh(self.context, names)
        return done, self._deliver_due() if done else []

    def set_policy(self, name: str, policy: str) -> None:
        """Set when a model is updated to new versions of its data sets.

        Parameters
        ----------
        name : str
        policy : {"at-once", "refresh", "never"}
            "at-once": in the transaction of each `append` and `sync`; "refresh": by `refresh`, or
            by `append` and `sync` with `update_models`; "never": by `fit` only.
        """
        from erasable.workspace.models import updating

        self._carry_out(updating.SetPolicy(self.context, name, policy))

    def retire(self, name: str) -> None:
        """Retire the model `name`: its file is erased, and later requests do not concern it.

        Raises
        ------
        NotInWorkspaceError
            There is no such model.
        WorkspaceError
            It is retired already.
        """
        from erasable.workspace.models import fitting

        self._carry_out(fitting.Retire(self.context, name))
        self._publish_due()

    def models(self) -> list[dict[str, Any]]:
        """Describe all models, sorted by name.

        Returns
        -------
        list of dict
            Each with name, kind, estimator, params, state ("ready", "stale", "retired" or
            "uncovered"), version, n_records, datasets (name: version), features, target,
            commitment, hook, policy, staleness (in words, or None) and created_at.
        """
        from erasable.workspace.models import overview

        with self.context.ledger.reading() as connection:
            return Listing(overview.models(connection))

    def model(self, name: str) -> dict[str, Any]:
        """Describe the model `name`.

        Returns
        -------
        dict
            What `models` has, and recipe, verified (a line: when it was verified with what result,
            and what came since), versions (a dict for each), measurements (what each
            deletion took), columns (what the first step does with which columns), left_out (columns
            that it does not learn from, with their types) and others_targets (features that other
            models predict, with the names of these models).
        """
        from erasable.workspace.models import overview

        with self.context.ledger.reading() as connection:
            return overview.model(connection, name)

    def predict(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        proba: bool = False,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> pa.Table:
        """Predict with a model for the records of a source.

        Parameters
        ----------
        name : str
        source : path-like or str
            See `add_dataset`.
        proba : bool, default=False
            Also return the probability of each class.
        delimiter, decimal, encoding : str, default=None
            How a text file is written; see `add_dataset`.

        Returns
        -------
        pyarrow.Table
            The id column, if the source has it; ``prediction``; and with `proba`
            ``probability_<class>`` for each class.
        """
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.models import using

        dialect = Dialect.of(delimiter, decimal, encoding)
        return using.predict(self.context, name, os.fspath(source), dialect, proba=proba)

    def export(self, name: str, path: str | os.PathLike[str]) -> list[str]:
        """Write a model to a file, without records, for prediction elsewhere.

        Parameters
        ----------
        name : str
        path : path-like
            Replaced if it exists. `erasable.load` reads the file of an estimator.

        Returns
        -------
        list of str
            Warnings: the model itself contains records, or values that only one record has.

        Raises
        ------
        NotInWorkspaceError
            There is no such model, or no file of it.
        WorkspaceError
            The path is in the workspace, a folder, or in a folder that does not exist.
        WorkspaceBusyError
            Another process is updating the model.
        WorkspaceDiskError
            The file cannot be written.
        """
        from erasable.workspace.models import using

        return using.export(self.context, name, path)

    def verify(self, names: Sequence[str] | None = None, *, retrain: bool = False) -> list[Verdict]:
        """Fit models again on the remaining records, and compare bit for bit.

        Parameters
        ----------
        names : sequence of str, default=None
            By default all models.
        retrain : bool, default=False
            Also run the commands of models that are trained elsewhere.

        Returns
        -------
        list of Verdict
            Sorted by name; each with model, verdict, detail (one line, or empty), seconds and
            holds. The verdict is "equal"; "different"; "damaged" (the file was altered); "other
            version" (made by other software or on another kind of machine); "approximate" (the
            estimator deletes approximately, and has done so); "not covered"; "not checked" (its
            command was not run); or "retired".
        """
        from erasable.workspace.models import verifying

        return verifying.verify(self.context, names, retrain=retrain)

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
        """Take in requests for erasure: one for each identity, or one for a condition; all or none.

        Parameters
        ----------
        values : sequence
            Identities. One that is not in any data set is taken in too, and answered "no match".
        type : str, default=None
            The type of the identities; by default all types that are in use are tried.
        reach : int, default=None
            How many people may share an identity for their other identities to be followed from it,
            by default 1; a request that meets an identity shared by more waits on hold. 0 follows
            nothing.
        regulation : str
            A name of `erasable.workspace.requests.regulations.REGULATIONS`, or "none": not due.
        where, dataset : str, default=None
            Instead of identities: a condition on the records of a data set.
        hold : str, default=None
            A reason why the request has to wait.
        received_at : datetime, default=None
            By default now.

        Returns
        -------
        list of Request
            Each with id, state, regulation, received_at, due_at, extended_at, hold, reason, matched
            (records erased), completed_at, types, corrects, reference, is_open and kind.

        Raises
        ------
        InvalidIdsError
            A value cannot be an identity, fits two people, or has a type that no data set has; or
            `reach` was given with a condition.
        InvalidInputError
            `reach` is negative or too large.
        NotInWorkspaceError
            There is no such data set.
        """
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
        """Take in one request for the correction of any number of records.

        Parameters
        ----------
        dataset : str
        source : path-like, default=None
            A file with the id of each record and the columns to correct.
        ids : sequence of int or str
            Instead of a file: the records.
        values : mapping of column to value, default=None
            New values of the records `ids`; None is a missing value.
        regulation, hold, received_at
            See `request`.
        delimiter, decimal, encoding : str, default=None
            How a text file is written, if not as those of the data set.

        Returns
        -------
        request : Request
            See `request`.
        warnings : list of str

        Raises
        ------
        NotInWorkspaceError
            There is no such data set.
        InvalidIdsError
            Records do not exist, or are named twice.
        InvalidDataError
            Columns do not exist, name records or people, or hold arrays; or values have another
            type.
        WorkspaceError
            All records have these values already.
        SourceError
            The file cannot be read.
        """
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.requests.corrections import Correct

        place = None if source is None else os.fspath(source)
        return self._carry_out(
            Correct(
                self.context, dataset, place, ids=ids, values=values, regulation=regulation,
                hold=hold, received_at=received_at,
                dialect=Dialect.of(delimiter, decimal, encoding),
            )
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
        """Say what requests would do; nothing is changed.

        Parameters
        ----------
        values, type, reach, where, dataset
            See `request`.

        Returns
        -------
        Preview
            With effects (target, name, n_records, treatment, exactness and estimated seconds for
            each data set, model and target, and n_others, rows of a target that refer to its
            records and leave with them), n_unmatched, types, searched (dataset, column and
            type), followed (how other identities were found), unseen (targets that could not be
            looked at), shared (why requests would wait on hold),
            identities (tokens) and seconds.
        """
        from erasable.workspace.identity import subjects
        from erasable.workspace.requests import intake, preview

        intake.check_reach(reach, where)
        with self.context.ledger.reading() as connection:
            wanted = intake.asked(self.context, connection, values, type, where, dataset)
            kinds = {each.type or type for each in intake.as_asks(values)}
            types = sorted({t for kind in kinds for t in subjects.types_tried(connection, kind)})
        return preview.preview(self.context, wanted, types, reach)

    def requests(self, states: Sequence[str] | None = None) -> list[Request]:
        """List requests, those due first at the top.

        Parameters
        ----------
        states : sequence of str, default=None
            Names of `erasable.workspace.ledger.states.STATES`, "on_hold",
            "waits_for_targets" or "late" (open, and past its due date); by default all.

        Returns
        -------
        list of Request
            See `request`.
        """
        from erasable.workspace.requests import intake

        with self.context.ledger.reading() as connection:
            return Listing(intake.listing(connection, states, self.context.now()))

    def deny(self, request: str, reason: str) -> Request:
        """Refuse a pending request, for a reason that is given in the answer."""
        from erasable.workspace.requests import answering

        return answering.deny(self.context, request, reason)

    def cancel(self, request: str, reason: str | None = None) -> Request:
        """Withdraw a pending request, because its requester wants that."""
        from erasable.workspace.requests import answering

        return answering.cancel(self.context, request, reason)

    def hold(self, request: str, reason: str) -> Request:
        """Put a pending request on hold, because of a legal duty or a doubtful identity, say."""
        from erasable.workspace.requests import answering

        return answering.hold(self.context, request, reason)

    def resume(self, request: str) -> Request:
        """Take a request off hold; raise WorkspaceError if it is not on hold."""
        from erasable.workspace.requests import answering

        return answering.resume(self.context, request)

    def extend(self, request: str, reason: str) -> Request:
        """Move the due date of a request, once, as its regulation allows.

        The requester must be told this, and the reason, before the request is due.

        Raises
        ------
        WorkspaceError
            The request was extended before, has no due date or is past it, or is not pending.
        """
        from erasable.workspace.requests import answering

        return answering.extend(self.context, request, reason)

    def process(self, only: Sequence[str] | None = None, *, n_jobs: int = 1) -> Processed:
        """Carry out every request that is pending and not on hold.

        Parameters
        ----------
        only : sequence of str, default=None
            Ids of requests; by default all.
        n_jobs : int, default=1
            Threads that prepare models; each may read the data of its model. The result is the
            same.

        Returns
        -------
        Processed
            With requests (ids), n_records (erased), n_corrected, n_unmatched, n_needless,
            n_kept_out, treatments (for each model: model, treatment, exactness, n_records,
            seconds), n_resumed, hooks (models whose hooks were run), seconds, phases and warnings.

        Raises
        ------
        InvalidInputError
            `n_jobs` is less than 1.
        WorkspaceBusyError
            Another process is at work.
        WorkspaceError
            A request of `only` is not there, answered, or on hold. Or a model or data set cannot
            be read or rewritten; the requests are pending again, and nothing has changed but the
            log.
        """
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
        """Carry out requests as they come, together with any number of other workers.

        Parameters
        ----------
        drain : bool, default=False
            Return when no task is pending, failing or claimed.
        poll : float, default=1.0
            Seconds between two looks for requests.
        attempts : int, default=5
            After this many failures a model or data set is dead, until `retry`.
        backoff : float, default=5.0
            Seconds before the second attempt; they double with each attempt.
        tell : callable, default=None
            Called after each turn with an object that has processed (see `process`), n_models
            (prepared for other workers), failure (see `retry`), error and busy.
        stopped : threading.Event, default=None
            If set from elsewhere, the method returns after the current task.
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
        """List workers and failures.

        Returns
        -------
        dict
            "at_work": who is at work on what; "failed": see `retry`.
        """
        from erasable.workspace.requests import worker

        return worker.tasks(self.context)

    def retry(self, names: Sequence[str] = ()) -> list[Failure]:
        """Try models, data sets and targets that failed again at once.

        Parameters
        ----------
        names : sequence of str
            Of models, data sets and targets; by default all that failed.

        Returns
        -------
        list of Failure
            Each with target ("model", "dataset" or "target"), name, state ("waiting" or "dead"),
            attempts, error, failed_at, again_at and n_requests.
        """
        from erasable.workspace.requests import failures

        return failures.retry(self.context, names)

    def history(self, dataset: str, *, since: datetime | None = None) -> History:
        """Count the people who asked to be erased, and those whose records a data set held.

        `erasable.selection.from_history` makes a staying model of the two counts. People are those
        named by the first subject column. Requests that were denied, cancelled, met no record of
        the data set or have a condition do not count.

        Parameters
        ----------
        dataset : str
        since : datetime, default=None
            Count requests received from then on, and leave out people who had left before. By
            default all since the data set was added.

        Returns
        -------
        History
            With dataset, requested, held, since, until and days.

        Raises
        ------
        NotInWorkspaceError
            There is no such data set.
        WorkspaceBusyError
            Another process is at work.
        WorkspaceError
            The data set has no subject column, or `since` is not in the past.
        """
        from erasable.workspace.requests import history

        return history.history(self.context, dataset, since)

    # -- people ------------------------------------------------------------------------------------

    def subject(self, value: Any, *, type: str | None = None) -> dict[str, Any]:
        """Say what is kept of a person.

        Parameters
        ----------
        value : str or int
            An identity.
        type : str, default=None
            Its type; by default all types that are in use are tried.

        Returns
        -------
        dict
            With the keys:

            - known: whether a data set has records of the person
            - types: the types that were tried
            - searched: the columns that were searched, each a dict with dataset, column and type
            - n_identities: number of identities of the person
            - followed: how other identities were found, each a dict with path and identities
            - shared: why a request would wait on hold, one line each
            - datasets, models, targets: numbers of records by name
            - unseen: targets that could not be looked at, and why, one line each
            - requests: ids of open requests
            - suppressed: entries of the suppression list, each a dict with type, request_id and
              since
        """
        from erasable.workspace.requests import preview

        return preview.describe_person(self.context, value, type)

    def scan_target(
        self, place: str, *, query: str | None = None, subjects: Sequence[str] = ()
    ) -> Scanned:
        """Find people whom the workspace knows, or has erased, in a place outside of it.

        Nothing is changed there or here. Columns of text and of whole numbers are compared with
        the pseudonyms of the workspace, under all types that it uses.

        Parameters
        ----------
        place : str
            A file or a folder of them, Parquet in an object store by its URL, or the URL of a
            database, with ``#table`` or for all of its tables.
        query : str, default=None
            The records of a database, instead of a table.
        subjects : sequence of str
            Columns to look at, as "mail:email"; without a type, of type id. By default all.

        Returns
        -------
        Scanned
            With columns: one for each column and type that has identities of people who are known
            or erased, or whose values look like addresses or telephone numbers. Each has place,
            column, type, n_rows (of the table), n_attributed (rows of people who are known or
            erased), n_known and n_erased (identities). And with warnings: a line for each of
            several tables that cannot be read, and each that may hide rows from the user.

        Raises
        ------
        SourceError
            The place cannot be read, or has not one of the columns.
        InvalidParameterError
            There is no such type.
        """
        from erasable.workspace.targets import scanning

        return scanning.scan(self.context, place, query, subjects)

    def add_target(
        self,
        name: str,
        place: str,
        subjects: Sequence[str],
        *,
        action: str = "delete",
        keep: Collection[str] = (),
        cascade: Collection[str] = (),
        may_empty: bool = False,
    ) -> TargetRow:
        """Add a place outside of the workspace that every later request erases people from, too.

        The place is read once, to see that it can be; nothing is changed there. The ledger keeps it
        without credentials: where requests are carried out, the environment variable
        ``ERASABLE_TARGET_NAME`` has the place with them.

        Parameters
        ----------
        name : str
        place : str
            A folder or file, the URL of a database as SQLAlchemy has it, or of another kind such as
            "chroma:FOLDER#COLLECTION"; see the page on targets in the documentation.
        subjects : sequence of str
            Fields that say whose a record is, as "mail:email", of a database
            "customers.mail:email"; without a type, of type id.
        action : {"delete", "null", "mask"}, default="delete"
            What becomes of the records; see `erase_target`.
        keep : collection of str
            Fields that null and mask leave as they are.
        cascade : collection of str
            Tables whose rows leave with the rows that they refer to.
        may_empty : bool, default=False
            Whether all records may be of one person; by default that is an error.

        Returns
        -------
        TargetRow
            With id, name, place and settings.

        Raises
        ------
        WorkspaceError
            There is a target of the name, or over the same records.
        SourceError
            The place cannot be read, or has not one of the fields.
        InvalidParameterError
            There is no such action or type.
        MissingPackageError
            The client of such a place is not installed.
        """
        from erasable.workspace.targets import adding, catalogue

        settings = catalogue.settings_of(subjects, action, keep, cascade, may_empty=may_empty)
        return adding.add(self.context, name, place, settings)

    def targets(self) -> list[dict[str, Any]]:
        """Return the targets, by name.

        Returns
        -------
        list of dict
            With name, place (without credentials), subjects, action, keep, cascade, may_empty,
            waiting (number of requests that are still to be carried out there), error (why the last
            attempt failed) and again_at.
        """
        from erasable.workspace.requests import owed

        return owed.targets(self.context)

    def check_target(self, name: str | None = None) -> list[ReturnedPeople]:
        """Find people on the suppression list who are in targets (again); nothing is changed.

        Parameters
        ----------
        name : str, default=None
            A target; by default all.

        Returns
        -------
        list of ReturnedPeople
            Each with target, n_people, n_records and error (None, or why it could not be read).
        """
        from erasable.workspace.targets import checking

        return checking.check(self.context, name)

    def remove_target(self, name: str, *, give_up: bool = False) -> list[str]:
        """Remove a target: later requests do not erase from it. Nothing is changed there.

        Parameters
        ----------
        name : str
        give_up : bool, default=False
            Also where requests are still to be carried out there: their receipts will say that it
            is not covered. By default that is an error.

        Returns
        -------
        list of str
            The requests that waited for it; `process` completes them.

        Raises
        ------
        NotInWorkspaceError
            There is no such target.
        WorkspaceError
            A request is still to be carried out there.
        WorkspaceBusyError
            Requests are carried out now, and `give_up` is True.
        """
        from erasable.workspace.requests import reaching
        from erasable.workspace.targets import adding

        given_up = reaching.give_up(self.context, name) if give_up else []
        adding.remove(self.context, name)
        return given_up

    def erase_target(
        self,
        place: str,
        subjects: Sequence[str] = (),
        *,
        action: str = "delete",
        cascade: Collection[str] = (),
        keep: Collection[str] = (),
        dry_run: bool = False,
    ) -> Erased:
        """Erase the people on the suppression list from a place outside of the workspace.

        In a database everything happens in one transaction, or nothing; rows that refer to deleted
        rows are deleted or lose the reference, as the foreign keys of the schema say. Then the
        place is asked to free what it can, and looked at again. The log has an entry before it and
        one of the result.

        Parameters
        ----------
        place : str
            The name of a target, or a place that need not be one; see `add_target`.
        subjects : sequence of str, default=()
            Fields that say whose records there are, as "mail:email", of a database
            "customers.mail:email"; without a type, of type id. An identity may be inside JSON, as
            in "docs.data.user:id". A target has its own.
        action : {"delete", "null", "mask"}, default="delete"
            What becomes of the rows. With "null" they stay, and all columns but those of keys and
            of `keep` become null; with "mask" texts become "erased" instead.
        cascade : collection of str
            Tables whose rows leave with the rows that they refer to, where the schema does not say
            what becomes of them.
        keep : collection of str
            Columns, as "city" or "customers.city", that are not overwritten.
        dry_run : bool, default=False
            Only say what would be done. In SQLite and PostgreSQL it is done, and taken back.

        Returns
        -------
        Erased
            With place, n_people (identities), changed (records by table), detached (rows that lose
            a reference, by column), triggers (of these tables, which may change other rows),
            verdict ("purged" or "deleted, not proved gone") and reason.

        Raises
        ------
        SourceError
            The place cannot be reached or changed, has not one of the tables or fields, or may
            hide rows from the user, or a row would be left that refers to a deleted one.
        NotInWorkspaceError
            No subject is given, and there is no such target.
        InvalidParameterError
            There is no such action or type, or `keep` or `cascade` is not for the action.
        """
        from erasable.workspace.targets import erasing

        return erasing.erase(
            self.context, place, subjects,
            action=action, cascade=cascade, keep=keep, dry_run=dry_run,
        )  # fmt: skip

    def link(
        self, value: Any, other: Any, *, type: str | None = None, other_type: str | None = None
    ) -> None:
        """State that two identities are one person.

        Parameters
        ----------
        value, other : str or int
            Identities.
        type, other_type : str, default=None
            Their types, by default "id"; an address needs a type.
        """
        from erasable.workspace.identity import subjects, value_formats

        subjects.link(
            self.context,
            value,
            value_formats.type_or_id(value, type),
            other,
            value_formats.type_or_id(other, other_type),
        )

    def suppressed(self) -> list[dict[str, Any]]:
        """Return the entries of the suppression list.

        Returns
        -------
        list of dict
            Each with token, type, request_id and since.
        """
        from erasable.workspace.identity import suppression

        with self.context.ledger.reading() as connection:
            return suppression.listing(connection)

    def suppression_list(self) -> dict[str, Any]:
        """Return the signed suppression list, to be kept outside of the workspace.

        Returns
        -------
        dict
            A DSSE envelope. It has tokens, and no identities.
        """
        from erasable.workspace.identity import external_files

        return external_files.export(self.context)

    def import_suppression_list(self, exported: Mapping[str, Any]) -> Imported:
        """Take in an exported suppression list, as after a backup was restored by other means.

        All people on it are suppressed. For those who have records here, requests without a due
        date are opened; carry them out with `process`.

        Parameters
        ----------
        exported : mapping
            The list.

        Returns
        -------
        Imported
            With n_listed (identities in the list), n_new (added to the suppression list),
            n_released (left out, because they were released since), n_mended, n_waiting (with
            records and an open request) and requests (opened).

        Raises
        ------
        EvidenceError
            The list was not signed by this workspace, or the workspace's own list was altered and
            cannot be repaired from it.
        WorkspaceBusyError
            Another process is at work.
        WorkspaceError
            A data set cannot be read.
        """
        from erasable.workspace.requests import restoring

        return restoring.import_list(self.context, exported)

    def release(self, value: Any, *, type: str | None = None) -> list[str]:
        """Remove a person from the suppression list: they have consented again.

        Parameters
        ----------
        value : str or int
            An identity.
        type : str, default=None

        Returns
        -------
        list of str
            Warnings: the exported list could not be written.
        """
        from erasable.workspace.identity import suppression
        from erasable.workspace.requests import external_updates

        suppression.release(self.context, value, type)
        return external_updates.export_list(self.context, ", and still names them")

    # -- removals of domains -----------------------------------------------------------------------

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
        """Choose the records whose removal takes a domain out of a data set; nothing is changed.

        Parameters
        ----------
        dataset : str
        where : str, default=None
            The domain as a condition on columns; see `erasable.workspace.data.conditions`.
        keywords : sequence of str, default=None
            The domain by words or phrases, ignoring case; one that ends in ``*`` is the beginning
            of a word. With `where`, the records that meet both.
        column : str, default=None
            The column of text with the keywords.
        features : sequence of str, default=None
            Columns to compare records by. By default `column`, the features of the models, all
            numeric columns, or the one column of text.
        components : int, default=None
            Compare text by this many components of its words; "maha-mu2" and "lr-maha" need it.
        fill : {"mean", "median", "most_frequent"}, default=None
            What missing numbers are replaced by to compare records. The data set stays as it is.
        score, budget, delta
            See `erasable.removal.DomainRemoval`.
        cost : str, default=None
            The column with the cost of deleting each record; `budget` is then the total cost
            allowed.
        retain_where : str, default=None
            Which other records are the wanted domain; by default all.
        retain_sample : int, default=None
            Compare the domain with only this many of them, drawn by their ids.
        fresh : str, default=None
            A data set, or a source as for `add_dataset`, with records that no model was trained on,
            to judge the removal by. Records that equal one of the data set are left out.
        random_state : int, default=0

        Returns
        -------
        RemovalPlan
            With dataset, version, n_records, n_forget (in the domain), n_retain (that it was
            compared with), ids (first to delete first), removal (the fitted `DomainRemoval`),
            features, components, left_out (columns), certificate, uncertified (why there is none),
            n_copies (records of the domain that stay and equal a removed one), preview (see
            `preview`), fresh and warnings. It holds records in memory, and is not kept in the
            workspace.

        Raises
        ------
        NotInWorkspaceError, SourceError, WorkspaceError, InvalidInputError, InvalidParameterError
            There is no such data set or column; fewer than two records are in the domain or remain;
            the budget is out of range or cannot be reached.
        WorkspaceBusyError
            Another process is at work.
        """
        from erasable.workspace.domains import planning

        return planning.plan(
            self.context, dataset, where=where, keywords=keywords, column=column, features=features,
            components=components, fill=fill, score=score, budget=budget, cost=cost,
            retain_where=retain_where, retain_sample=retain_sample, fresh=fresh, delta=delta,
            random_state=random_state,
        )  # fmt: skip

    def remove_domain(self, plan: RemovalPlan) -> Removed:
        r"""Erase the records of a plan from the data set and every model, and measure the effect.

        This is a request without a regulation: it is in the ledger and the log, and has a receipt.
        The records are suppressed from then on.

        Parameters
        ----------
        plan : RemovalPlan
            See `plan_removal`.

        Returns
        -------
        Removed
            With request (its id), n_records, treatments (see `process`), models (how removal and
            preservation are judged, for each model), seconds and warnings.

        Raises
        ------
        WorkspaceError
            The plan has no records, records have changed or requests for them were put on hold
            since it was made, or a model cannot be updated. Nothing has changed, and the request,
            if there was one, is cancelled.

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

    # -- selections --------------------------------------------------------------------------------

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
        r"""Choose records of a table to acquire, in view of later deletions.

        Parameters
        ----------
        source : path-like or str
            A table, as for `add_dataset`.
        k : int or float
            How many records to choose; with `cost`, the total cost allowed.
        staying : float or str
            How likely owners are to stay: a probability; one for each class, "yes=0.5,no=1"; one
            for each record, "column:NAME"; how many stay, "uniform:LOW:HIGH" or "point:N";
            "beta-binomial:ALPHA:BETA"; or the past requests of this workspace, "history:DATASET",
            or "history:DATASET:2026-03-31" for those since that day.
        id_column : str, default=None
            The column that names each record; by default rows are numbered from 0.
        subject : str, default=None
            The column of the owner; an owner stays or leaves with all their records.
        target : str, default=None
            The column of classes.
        features : sequence of str, default=None
            Columns to compare records by; by default all numeric columns without another role.
        fill : {"mean", "median", "most_frequent"}, default=None
            What missing numbers are replaced by; by default they are an error.
        scale : {"standard", "none"}, default="standard"
        utility : str, default="nearest-neighbor"
            Or "naive-bayes", "mutual-information", "variance-reduction".
        metric : {"euclidean", "sqeuclidean", "cosine"}, default=None
            For nearest neighbors; by default "euclidean".
        n_neighbors : int, default=None
            Keep only the similarities to this many nearest neighbors.
        objective : str, default="expected"
            Or "cvar:SHARE", the mean of that share of worst cases.
        samples : int, default=None
            How many samples of who stays are drawn where there is no closed form.
        held : sequence of str, default=()
            Ids of records of the table that are held already.
        cost : str, default=None
            The column with the cost of each record.
        random_state : int, default=0

        Returns
        -------
        ChosenRecords
            With ids (in the order chosen), gains, worth (selection, expected, expected_error,
            expected_exact, worst, worst_error and without_deletions of this selection and of one
            that ignores deletions), balance (of classes), n_records, features, texts, left_out,
            scaled, history, rows and metric.

        Raises
        ------
        SourceError, WorkspaceError, InvalidDataError
            The table cannot be read, lacks a column or values, or a parameter has a wrong form.

        Warns
        -----
        UserWarning
            Missing values are replaced, or the similarities take much memory.

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

    # -- backups and copies ------------------------------------------------------------------------

    def back_up(self, path: str | os.PathLike[str], *, with_keys: bool = False) -> BackedUp:
        """Write the whole workspace, as of one moment, into a file.

        Parameters
        ----------
        path : path-like
            A new file, or a folder in which the file gets a name of workspace and time.
        with_keys : bool, default=False
            Include the keys. Whoever finds the file can then tell who is in it, and sign.

        Returns
        -------
        BackedUp
            With path, size (bytes), made_at, rows (of each table), n_files, log_size, log_root and
            with_keys.

        Raises
        ------
        WorkspaceError
            The path exists or is in the workspace's folder, or the workspace does not verify.
        WorkspaceDiskError
            The file cannot be written.
        """
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
        """Make a workspace of a backup, and erase again who was erased since the backup was made.

        Parameters
        ----------
        backup : path-like
            A file that `back_up` wrote.
        path : path-like
            A folder that is empty or does not exist, or one in which a restore was interrupted.
        suppressions : mapping or None
            The newest suppression list that was exported. With None, people who were erased since
            the backup are in the workspace again.
        head : mapping, default=None
            The newest signed head of the log.
        keys : path-like, default=None
            The key file; by default the one that ERASABLE_KEYS names, or the one in the backup.
        database, schema, store
            See `create`.
        retire : sequence of str, default=()
            Models to retire, because they cannot be trained here.
        progress : callable, default=None
            ``progress(what, total)`` returns a context manager that yields ``advance(n)``.

        Returns
        -------
        Restored
            With path, made_at, log_size, head_size, n_listed (identities on the list), requests
            (carried out), n_records (erased again), verdicts (see `verify`), warnings and holds.

        Raises
        ------
        EvidenceError
            The backup, the keys, the list or the head do not verify or do not belong together;
            nothing was restored.
        WorkspaceError
            The folder, schema or place is in use, or a model cannot be trained without the erased
            records.
        """
        from erasable.workspace.backups import restore

        return restore.restore(
            backup, path, suppressions=suppressions, head=head, keys=keys,
            address=Address.of(database, schema),
            location=None if store is None else Location.parse(store), retire=retire,
            progress=progress,
        )  # fmt: skip

    def copy(
        self,
        path: str | os.PathLike[str],
        *,
        database: str,
        schema: str | None = None,
        store: str | None = None,
    ) -> Copied:
        """Copy the workspace to another folder, with the ledger in PostgreSQL; this one stays.

        Parameters
        ----------
        path : path-like
            A folder that is empty or does not exist.
        database, schema
            See `create`; the schema must be empty or not exist.
        store : str, default=None
            See `create`.

        Returns
        -------
        Copied
            With path, rows (of each table), n_files, n_receipts, log_size, log_root and hooks_due
            (models whose hooks are due in both workspaces).

        Raises
        ------
        WorkspaceError
            The folder, schema or place is in use, or the workspace does not verify.
        WorkspaceBusyError
            Another process is at work.
        WorkspaceServerError
            The database or the object store cannot be reached, or refuses access.
        """
        from erasable.workspace.backups import copying

        location = None if store is None else Location.parse(store)
        return copying.copy(self.context, path, Address.parse(database, schema), location)

    # -- published models --------------------------------------------------------------------------

    def publish(
        self,
        model: str,
        to: str,
        *,
        tracking_uri: str | None = None,
        delete_superseded: bool = False,
    ) -> tuple[Published, list[str]]:
        """Register a model in MLflow, now and after every update.

        Parameters
        ----------
        model : str
        to : str
            "mlflow:" and the name of a registered model, which is new or belongs to this model.
        tracking_uri : str, default=None
            URI of MLflow, without a password; by default MLFLOW_TRACKING_URI at each use.
        delete_superseded : bool, default=False
            Delete earlier versions and their files whenever a new one is registered.

        Returns
        -------
        published : Published
            With model, to, tracking_uri, delete_superseded, version, registered, superseded, error
            and log_size.
        warnings : list of str

        Raises
        ------
        NotInWorkspaceError
            There is no such model, or no file of it.
        WorkspaceError
            The model is not an estimator, the registered model belongs to another, or the URI is
            invalid.
        WorkspaceServerError
            MLflow is not installed, cannot be reached, or refuses access.
        """
        from erasable.workspace.models import publishing

        return publishing.publish(
            self.context, model, to, tracking_uri=tracking_uri, delete_superseded=delete_superseded
        )

    def stop_publishing(self, model: str) -> None:
        """Stop publishing a model; registered versions stay."""
        from erasable.workspace.models import publishing

        publishing.stop_publishing(self.context, model)

    # -- audits ------------------------------------------------------------------------------------

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

        The result is entered in the log, without ids of records; the report is not kept.

        Parameters
        ----------
        name : str
        fresh : path-like or str, default=None
            Records from the same source that the model has not learned from: a data set, or a
            source as for `add_dataset`. An audit of membership needs them.
        deleted : str, default=None
            The id of a request: test whether the model has forgotten what it erased. By default,
            test whether the model reveals records that it has learned from.
        records : path-like or str, default=None
            With `deleted`, a source of the erased records, for a model that deletes approximately:
            the workspace does not have them any more.
        attack : {"rmia", "lira"}, default=None
            The attack on membership; by default RMIA.
        references : int, default=None
            How many models are trained for comparison; by default as many as the attack or `level`
            needs.
        level : float, default=0.05
            The probability of a false alarm.
        seed : int, default=0
        ask, target : str, default=None
            For a model that a program made: a command that returns the probabilities of the classes
            of the column `target`; see `erasable.audit.BlackBox`. ``{model}`` is the file of the
            model.

        Returns
        -------
        AuditReport

        Raises
        ------
        NotInWorkspaceError
            There is no such model, file of it, or request.
        WorkspaceError
            The model has no scores, the request was not carried out or did not concern it, or
            records are missing or do not fit the model.
        InvalidParameterError, TooFewRecordsError
            See `erasable.audit.audit_membership` and `erasable.audit.audit_deletion`.
        """
        from erasable.workspace.audits import auditing, subjects

        asked = None
        if ask is not None and target is not None:
            asked = subjects.AskCommand(ask, target)
        elif ask is not None or target is not None:
            raise errors.InvalidParameterError(
                "one of ask and target was given; expected both, or neither"
            )

        return auditing.audit(
            self.context, name, fresh=None if fresh is None else os.fspath(fresh),
            deleted=deleted, records=None if records is None else os.fspath(records),
            attack=attack, references=references, level=level, seed=seed, ask=asked,
        )  # fmt: skip

    # -- evidence ----------------------------------------------------------------------------------

    def receipt(self, request: str) -> bytes:
        """Return the receipt of a completed request.

        Parameters
        ----------
        request : str
            Its id.

        Returns
        -------
        bytes
            A signed statement, JSON. A notebook shows what it says.

        Raises
        ------
        NotInWorkspaceError
            There is no such request.
        WorkspaceError
            It is not completed.
        TamperedError
            The receipt in the ledger is not the one that was signed.
        """
        from erasable.workspace.requests import intake

        with self.context.ledger.reading() as connection:
            known = intake.find(connection, request)
            body = receipts.fetch(connection, request)
        if body is None:
            advice = "; run `erasable process` first" if known.state == "pending" else ""
            raise errors.WorkspaceError(
                f"request {request} is {known.state.replace('_', ' ')}; expected one that is "
                f"completed, which has a receipt{advice}"
            )
        receipts.check_kept(body, request, self.public_key)
        return body

    def receipt_page(self, request: str) -> str:
        """Return the receipt of a completed request as a page of HTML, complete in itself.

        It is for people: the receipt is what is signed; see `receipt`, also for the errors.
        """
        return receipt_page.render(self.receipt(request), self.public_key)

    @property
    def public_key(self) -> bytes:
        """The key, PEM, with which anybody can check receipts and heads of the log."""
        return self.context.keys.public_pem

    def head(self) -> dict[str, Any]:
        """Sign the current log.

        Returns
        -------
        dict
            With workspace (its id), size (number of entries), root (of their Merkle tree,
            hexadecimal), time and envelope (the signature, DSSE).

        Raises
        ------
        TamperedError
            The log does not continue the last signed head, or has forged entries.
        """
        with self.context.ledger.transaction() as connection:
            return log.head(self.context, connection)

    def log_entries(self, since: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Return entries of the log, in order.

        Parameters
        ----------
        since : int, default=0
            The position of the first entry.
        limit : int, default=None
            The largest number of entries; by default all.

        Returns
        -------
        list of dict
            Each with position, kind, subject, at, and what this kind of entry has besides.
        """
        with self.context.ledger.reading() as connection:
            return log.entries(connection, since, limit)

    def verify_log(self, since: Mapping[str, Any] | None = None) -> list[str]:
        """Check the log, and compare the ledger, the suppression list and the data with it.

        Parameters
        ----------
        since : mapping, default=None
            A head that was signed earlier: also check that the log continues it.

        Returns
        -------
        list of str
            What is wrong; empty if nothing is.
        """
        from erasable.workspace.data.holders import compare_index_with_data
        from erasable.workspace.evidence import suppressions

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
        """Return oddities in the times of the log, one line each; they prove nothing."""
        try:
            return log.clock_remarks(self.context)
        except LedgerError:  # verify_log says so
            return []

    # -- operations --------------------------------------------------------------------------------

    def _carry_out(self, operation: Operation[_Result]) -> _Result:
        from erasable.workspace.data.operation import carry_out

        return carry_out(operation)

    def _deliver_due(self) -> list[str]:
        """Run hooks and register models that have changed; return what failed."""
        from erasable.workspace.requests import process

        try:
            return process.deliver_due(self.context).warnings
        except WorkspaceBusyError:  # who carries out requests does it
            return []

    def _delivered(self, changed: DatasetChange) -> DatasetChange:
        """Run hooks and register models if some were updated; add what failed to the warnings."""
        if not changed.models:
            return changed
        return replace(changed, warnings=(*changed.warnings, *self._deliver_due()))

    def _publish_due(self) -> None:
        """Register models that a registry lacks; warn if that fails."""
        from erasable.workspace.models import published

        if published.is_any_due(self.context):
            from erasable.workspace.models import publishing

            for message in publishing.publish_due(self.context):
                warnings.warn(message, UserWarning, stacklevel=3)


_REGION = re.compile(r"(.*):((?:[^:/]*/)?phone:[^:]*)", re.DOTALL)


def _typed(subject: str | tuple[str, str]) -> tuple[str, str | None]:
    if not isinstance(subject, str):
        return subject
    column, colon, kind = subject.rpartition(":")
    if not colon:
        return subject, None
    region = _REGION.fullmatch(subject)
    if region is not None:
        column, kind = region.groups()
    try:
        declared(kind)
        return column, kind
    except errors.InvalidParameterError as error:
        raise errors.InvalidParameterError(
            f"{error}; where the colon belongs to the name of the column, write '{subject}:id'"
        ) from None
