"""Preparation of the models of a batch, in this process or shared with workers as steps.

The law kept here: a step is prepared by one worker at a time, and counts once. The result is in the
row of the step before the worker's lease ends; the batch puts all results in place, or none.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from dataclasses import asdict
from typing import Any

from sqlalchemy import delete, insert, select, update

import erasable.workspace.locking as locking
from erasable.core import _interruptions
from erasable.core.errors import (
    ErasableError,
    LedgerError,
    TamperedError,
    WorkspaceBusyError,
)
from erasable.core.threads import in_threads
from erasable.workspace.context import Context
from erasable.workspace.data import erasing
from erasable.workspace.evidence import ledger_checks, seals
from erasable.workspace.ledger.schema import model, step
from erasable.workspace.locking.leases import label
from erasable.workspace.models import catalogue, deleting
from erasable.workspace.models.catalogue import NOT_THE_MODELS, Model, Version
from erasable.workspace.models.following import Arriving
from erasable.workspace.models.reading import Reader
from erasable.workspace.requests.batches import Batch, Models
from erasable.workspace.requests.failures import BatchFailure
from erasable.workspace.store.artifacts import StoredArtifact

_seconds: ContextVar[dict[str, float] | None] = ContextVar("seconds", default=None)


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Measure the phases inside of the block; yields their seconds, by their names.

    >>> with measured() as seconds:
    ...     with phase("one"), phase("two"):
    ...         pass
    >>> sorted(seconds)
    ['one', 'two']
    """
    found: dict[str, float] = {}
    token = _seconds.set(found)
    try:
        yield found
    finally:
        _seconds.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Count the time of the block to a phase; a phase inside of another counts to both."""
    began = time.perf_counter()
    try:
        yield
    finally:
        found = _seconds.get()
        if found is not None:
            found[name] = found.get(name, 0.0) + time.perf_counter() - began


_PATIENCE = 0.05  # seconds between two looks at what others have done


def prepare_batch(
    context: Context, batch: Batch, *, shared: bool, n_jobs: int = 1
) -> dict[int, deleting.Prepared] | BatchFailure:
    """Write the fragments that remain of a batch, then its models; return these by their ids.

    `shared` offers the models to every worker, except those of corrections, which others cannot
    read yet; `n_jobs` threads prepare what is not shared. Raise OvertakenError if another process
    has the batch.
    """
    if shared and not batch.corrections:
        return _share(context, batch)
    with phase("rewriting data"):
        for erasure in batch.erasures:
            erasing.rewrite_fragments(context, erasure)
    # Those that learn from the same columns come one after the other: they read them once.
    models = sorted(batch.models, key=lambda each: each[0].features or [])
    found = {}
    with (
        context.progress("updating models", len(models)) as advance,
        closing(_prepared_in_threads(context, batch, models, n_jobs)) as outcomes,
    ):
        for (row, _, _), prepared in zip(models, outcomes, strict=True):
            if isinstance(prepared, BatchFailure):
                return prepared
            found[row.id] = prepared
            advance()
    return found


def _prepared_in_threads(
    context: Context, batch: Batch, models: Models, n_jobs: int
) -> Generator[deleting.Prepared | BatchFailure]:
    """Prepare models, in their order; what fails first among them is the same for any `n_jobs`."""
    held, readers, one_at_a_time = batch.held(), threading.local(), threading.Lock()
    ahead = None
    if batch.corrections:
        with context.ledger.reading() as connection:
            ahead = batch.ahead(connection)

    def prepare(each: tuple[Model, Version | None, dict[int, list[Any]]]) -> Any:
        row, version, ids = each
        if not hasattr(readers, "own"):
            readers.own = Reader(context, held)
            readers.ahead = Reader(context, held, ahead)
        arriving = None
        try:
            if batch.corrections:
                with context.ledger.reading() as connection:
                    arriving = batch.arriving(connection, row, version, readers.ahead)
        except NOT_THE_MODELS:
            raise
        except ErasableError as error:
            return BatchFailure("model", row.id, row.name, " ".join(str(error).split()), error)
        alone = one_at_a_time if n_jobs > 1 and deleting.goes_alone(row) else nullcontext()
        with alone, phase(f"model {row.name}"):
            return _prepare_or_fail(context, row, version, ids, readers.own, arriving)

    if n_jobs == 1:
        yield from map(prepare, models)
        return
    here = copy_context()  # in which phases are measured
    yield from in_threads(lambda each: here.copy().run(prepare, each), models, n_jobs)


def _share(context: Context, batch: Batch) -> dict[int, deleting.Prepared] | BatchFailure:
    models = batch.models
    wanted = _offer(context, batch)
    try:
        for erasure in batch.erasures:
            erasing.rewrite_fragments(context, erasure)
        reader = Reader(context, batch.held())
        with context.progress("updating models", len(models)) as advance:
            n_done = 0
            while True:
                help_out(context, reader, batch.name)
                rows = _steps(context, batch.name)
                if len(rows) < len(models):
                    _refuse(context, batch)
                failed = next((row for row in rows if row.state == "failed"), None)
                if failed is not None:
                    _take_back(context, batch)
                    return BatchFailure("model", failed.model_id, failed.name, failed.error)
                done = [row for row in rows if row.state == "done"]
                advance(len(done) - n_done)
                n_done = len(done)
                if n_done == len(models):
                    return {row.model_id: _prepared(context, row, wanted) for row in done}
                context.ledger.pause(_PATIENCE)
    except BaseException as error:
        _interruptions.release(error)
        with suppress(ErasableError):  # else the next process that carries out requests does it
            _take_back(context, batch)
        raise


def help_out(context: Context, reader: Reader | None = None, batch: str | None = None) -> int:
    """Prepare models of the current batch, or of `batch`, that no worker has; return how many."""
    n = 0
    reader = reader or Reader(context)
    for row in _steps(context, batch):
        if row.state != "planned":
            continue
        with ExitStack() as stack:
            own = [f"step:{row.batch}:{row.model_id}"]
            try:
                stack.enter_context(context.lock(own, reads=[locking.STEPS], wait=0))
            except WorkspaceBusyError:  # another worker is at it
                continue
            n += _take_step(context, row, reader)
    return n


def _refuse(context: Context, batch: Batch) -> None:
    """Say that steps are gone: others were given the batch, or the ledger was changed."""
    context.ledger.pause(0.0)
    raise LedgerError(
        f"steps of the batch {batch.name!r} are gone; expected one for each of its models, until "
        "it ends; see who changes the ledger besides"
    )


def _offer(context: Context, batch: Batch) -> StoredArtifact:
    """Write down what is to be done, and, in a file, which records are to go."""
    gone: dict[str, dict[str, list[Any]]] = {}
    for row, version, ids in batch.models:
        if version is not None:
            for dataset, number in zip(row.datasets, version.dataset_versions, strict=True):
                if dataset in ids:
                    gone.setdefault(str(dataset), {})[str(number)] = ids[dataset]
    wanted = context.store.put("batches", json.dumps(gone).encode())
    rows = [
        {
            "model_id": row.id, "batch": batch.name, "wanted_key": wanted.key,
            "wanted_sha256": wanted.sha256, "state": "planned",
        }
        for row, _, _ in batch.models
    ]  # fmt: skip
    if rows:
        with context.ledger.transaction() as connection:
            connection.execute(insert(step), rows)
    return wanted


def _steps(context: Context, batch: str | None) -> list[Any]:
    """Return steps; those that learn from the same columns come one after the other."""
    query = select(step, model.c.name, model.c.features).join(model, model.c.id == step.c.model_id)
    if batch is not None:
        query = query.where(step.c.batch == batch)
    with context.ledger.reading() as connection:
        rows = connection.execute(query.order_by(step.c.model_id)).all()
    return sorted(rows, key=lambda row: row.features or [])


def _take_step(context: Context, row: Any, reader: Reader) -> int:
    """Prepare a model, and hand it in; return whether there was something to do."""
    at = (step.c.model_id == row.model_id) & (step.c.batch == row.batch)
    still = at & (step.c.state == "planned")
    with context.ledger.reading() as connection:
        if connection.execute(select(step.c.model_id).where(still)).first() is None:
            return 0
        ledger_checks.check(context, connection)
        of = catalogue.find(connection, row.name)
        version = catalogue.current(connection, of)
    values: dict[str, Any]
    prepared = _prepare_or_fail(context, of, version, _gone(context, row, of, version), reader)
    if isinstance(prepared, BatchFailure):
        values = {"state": "failed", "error": prepared.error}
    else:
        key = None if prepared.stored is None else prepared.stored.key
        result = asdict(prepared)
        seal = seals.of_step(context.keys, _sealed(row, result))
        values = {"state": "done", "key": key, "result": {**result, "seal": seal}}
    with context.ledger.transaction() as connection:
        connection.execute(update(step).where(still).values(worker=label(), **values))
    return 1


def _prepare_or_fail(
    context: Context,
    of: Model,
    version: Version | None,
    gone: dict[int, list[Any]],
    reader: Reader,
    arriving: Arriving | None = None,
) -> deleting.Prepared | BatchFailure:
    """Prepare a model; see `erasable.workspace.models.deleting.prepare_model`."""
    more = () if arriving is None else (arriving,)
    try:
        return deleting.prepare_model(context, of, version, gone, reader, *more)
    except NOT_THE_MODELS:
        raise
    except ErasableError as error:
        cause: Exception = error
        line = " ".join(str(error).split())
    except Exception as error:  # what it says may hold values of records
        cause = error
        line = f"its program failed with {type(error).__name__}; run it by hand to see where"
    return BatchFailure("model", of.id, of.name, line, cause)


def _gone(context: Context, row: Any, of: Model, version: Version | None) -> dict[int, list[Any]]:
    if version is None:
        return {}
    wanted = json.loads(context.store.open(StoredArtifact(row.wanted_key, row.wanted_sha256)))
    return {
        dataset: wanted[str(dataset)][str(number)]
        for dataset, number in zip(of.datasets, version.dataset_versions, strict=True)
        if str(dataset) in wanted
    }


def _sealed(row: Any, result: dict[str, Any]) -> dict[str, Any]:
    """Return what a worker vouches for: what it made, of which model, without which records."""
    names = ("model_id", "batch", "wanted_key", "wanted_sha256")
    return {**{name: getattr(row, name) for name in names}, "result": result}


def _prepared(context: Context, row: Any, wanted: StoredArtifact) -> deleting.Prepared:
    """Return what a worker handed in; raise TamperedError if its seal or its task is another."""
    result = {**row.result}
    seal = result.pop("seal", None)
    asked = (row.wanted_key, row.wanted_sha256) == (wanted.key, wanted.sha256)
    if not asked or seal != seals.of_step(context.keys, _sealed(row, result)):
        raise TamperedError(
            f"the ledger was tampered with: what was handed in for model {row.model_id} is not "
            "what a worker made; expected that; nothing was put in its place, run `erasable log "
            "verify`, and restore the ledger from a backup"
        )
    stored = result["stored"]
    return deleting.Prepared(
        **{**result, "stored": None if stored is None else StoredArtifact(**stored)}
    )


def _take_back(context: Context, batch: Batch) -> None:
    """Take back the steps of a batch; files made for them are garbage, and are cleaned."""
    with context.ledger.transaction() as connection:
        connection.execute(delete(step).where(step.c.batch == batch.name))
