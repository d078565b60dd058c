"""Methods of `Workspace`: requests, selections, removals of domains, and people."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from erasable.workspace.context import Context

if TYPE_CHECKING:
    from erasable.workspace.domains.planning import RemovalPlan
    from erasable.workspace.domains.removing import Removed
    from erasable.workspace.requests.failures import Failure
    from erasable.workspace.requests.history import History
    from erasable.workspace.requests.intake import Request
    from erasable.workspace.requests.preview import Preview
    from erasable.workspace.requests.process import Processed
    from erasable.workspace.requests.restoring import Imported
    from erasable.workspace.requests.working import Done
    from erasable.workspace.selection.choice import Selection


class RequestMethods:
    """Requests, selections and people; see `erasable.workspace.Workspace`.

    Parameters
    ----------
    context : Context
    """

    def __init__(self, context: Context) -> None:
        self.context = context

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
            Called with each `erasable.workspace.requests.working.Done`.
        stopped : threading.Event, default=None
            Set from elsewhere, has this return after what is under way.
        """
        from erasable.workspace.requests.failures import Patience
        from erasable.workspace.requests.working import Worker

        worker = Worker(self.context, Patience(attempts, backoff), poll)
        if tell is not None:
            worker.tell = tell
        if stopped is not None:
            worker.stopped = stopped
        worker.run(drain=drain)

    def tasks(self) -> dict[str, Any]:
        """Return who is at work on what ("at_work"), and what failed ("failed")."""
        from erasable.workspace.requests import working

        return working.tasks(self.context)

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
    ) -> Selection:
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
        from erasable.workspace.identity import looks, subjects

        subjects.link(
            self.context,
            value,
            looks.type_or_id(value, type),
            other,
            looks.type_or_id(other, other_type),
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
        from erasable.workspace.identity import outside

        return outside.export(self.context)

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
        from erasable.workspace.requests import outbox

        suppression.release(self.context, value, type)
        return outbox.export_list(self.context, ", and still names them")
