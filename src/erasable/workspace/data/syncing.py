"""Synchronization of a data set with its source: new, changed and gone records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import erasable.workspace.locking as locking
from erasable.workspace.context import Context
from erasable.workspace.data import fragments, gone_subjects
from erasable.workspace.data.catalogue import FragmentRow, find, fragment_rows
from erasable.workspace.data.datasets import (
    DatasetChange,
    as_fragment_rows,
    check_widened,
    put_part,
    record_version,
    register_fragments,
    removing_on_failure,
)
from erasable.workspace.data.differences import same_rows
from erasable.workspace.data.prepared_versions import Followers
from erasable.workspace.data.pulling import Ids, Pulled, pulled
from erasable.workspace.data.sources import Source
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.ledger.bulk import update_in
from erasable.workspace.ledger.schema import fragment


@dataclass(slots=True)
class _Compared:
    """Differences of a data set from its source.

    A record whose first subject is another one now has changed its bucket: it is gone in one and
    new in the other. No record is in two buckets of either side.
    """

    buckets: set[int] = field(default_factory=set)
    stored: list[dict[str, Any]] = field(default_factory=list)
    n_changed_in_place: int = 0
    come: Ids = field(default_factory=Ids)
    gone: Ids = field(default_factory=Ids)

    @property
    def n_moved(self) -> int:
        return self.come.n_shared(self.gone)

    @property
    def n_added(self) -> int:
        return len(self.come) - self.n_moved

    @property
    def n_changed(self) -> int:
        return self.n_changed_in_place + self.n_moved

    @property
    def n_removed(self) -> int:
        return len(self.gone) - self.n_moved

    def differ(self, before: pa.Table, after: pa.Table, id_column: str) -> bool:
        """Compare a bucket with its new records, both in the order of ids; count."""
        stays = pc.is_in(before[id_column], after[id_column])
        stayed = pc.is_in(after[id_column], before[id_column])
        same = same_rows(before.filter(stays), after.filter(stayed))
        n_same = pc.sum(same).as_py() or 0
        self.gone.add(before[id_column].filter(pc.invert(stays)))
        self.come.add(after[id_column].filter(pc.invert(stayed)))
        self.n_changed_in_place += len(same) - n_same
        return not n_same == before.num_rows == after.num_rows


def sync(
    context: Context, name: str, source: Source, followers: Followers | None = None
) -> DatasetChange:
    """Make the next version of a data set from its source, whole.

    Records of suppressed subjects that are still in the source are dropped.

    Parameters
    ----------
    context : Context
    name : str
    source : Source
        All of the records, not only those that are new.
    followers : Followers, default=None
        Who go with it, or it is not made.

    Returns
    -------
    Change
        Of the version as it was where nothing has changed.

    Raises
    ------
    SourceError, InvalidIdsError
        See `erasable.workspace.data.datasets.add`.
    """
    with context.lock(locking.datasets([name]), reads=[locking.ADMISSION]):
        context.clean()
        with context.ledger.reading() as connection:
            known = find(connection, name)
            present = fragment_rows(connection, known.id, known.version)
        with pulled(context, source, known) as found:
            check_widened(context, known, found.known)
            known = found.known
            compared = _compare(context, found, present)
            counts = found.n_suppressed, found.n_without_subject, found.remarks
            if not compared.buckets:
                return DatasetChange(name, known.version, found.n_records, 0, 0, 0, *counts)
        version = known.version + 1
        change = DatasetChange(
            name, version, found.n_records, compared.n_added, compared.n_changed,
            compared.n_removed, *counts,
        )  # fmt: skip
        ended = [part.id for part in present if part.bucket in compared.buckets]
        followers = followers or Followers()
        stays = [part for part in present if part.bucket not in compared.buckets]
        followers.prepare(
            replace(known, version=version), [*stays, *as_fragment_rows(compared.stored, version)]
        )
        with context.ledger.transaction() as connection:
            ledger_checks.check_one(context, connection, "dataset", name)
            update_in(connection, fragment.c.id, ended, until=version)
            record_version(context, connection, known.id, "sync", change, known)
            register_fragments(context, connection, known.id, version, compared.stored)
            followers.adopt(connection)
            gone_subjects.drop_unused(context, connection, known.id)
        gone_subjects.tidy(context, [known.id])
        context.clean()
    return change


def _compare(context: Context, found: Pulled, present: list[FragmentRow]) -> _Compared:
    """Write the buckets that differ, one after the other, and count the differences."""
    known, compared = found.known, _Compared()
    old: dict[int, list[FragmentRow]] = {}
    for part in present:
        old.setdefault(part.bucket, []).append(part)
    with (
        removing_on_failure(context, compared.stored),
        context.progress(f"comparing {known.name}", known.n_buckets) as advance,
    ):
        for number in range(known.n_buckets):
            after = found.bucket(number)
            read = [fragments.read(context, part.key, part.sha256) for part in old.get(number, [])]
            before = pa.concat_tables(
                [known.schema.empty_table(), *(t.cast(known.schema) for t in read)]
            )
            if compared.differ(before.sort_by(known.id_column), after, known.id_column):
                compared.buckets.add(number)
                if after.num_rows:
                    compared.stored.append(put_part(context, known, number, after))
            advance()
    return compared
