"""Synchronization of a data set with its source: new, changed and gone records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from erasable.workspace.data import fragments
from erasable.workspace.data.catalogue import FragmentRow
from erasable.workspace.data.datasets import DatasetChange, NextVersion, put_part
from erasable.workspace.data.differences import same_rows
from erasable.workspace.data.pulling import Ids, Pulled


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


class Sync(NextVersion):
    """Make the next version of a data set of all records of its source.

    Records of suppressed subjects that are still in the source are left out. Without a difference,
    the version stays.
    """

    cause = "sync"

    def compare(self, found: Pulled) -> DatasetChange:
        """See `NextVersion`."""
        compared = self._compared(found)
        self._stored = compared.stored
        for part in self._present:
            (self._ended if part.bucket in compared.buckets else self._stays).append(part)
        return DatasetChange(
            self._name, self._known.version + bool(compared.buckets), found.n_records,
            compared.n_added, compared.n_changed, compared.n_removed,
            found.n_suppressed, found.n_without_subject, found.remarks,
        )  # fmt: skip

    def _compared(self, found: Pulled) -> _Compared:
        """Write the buckets that differ, one after the other, and count the differences."""
        known, compared = found.known, _Compared()
        old: dict[int, list[FragmentRow]] = {}
        for part in self._present:
            old.setdefault(part.bucket, []).append(part)
        with self.context.progress(f"comparing {known.name}", known.n_buckets) as advance:
            for number in range(known.n_buckets):
                after = found.bucket(number)
                read = [
                    fragments.read(self.context, part.key, part.sha256)
                    for part in old.get(number, [])
                ]
                before = pa.concat_tables(
                    [known.schema.empty_table(), *(t.cast(known.schema) for t in read)]
                )
                if compared.differ(before.sort_by(known.id_column), after, known.id_column):
                    compared.buckets.add(number)
                    if after.num_rows:
                        compared.stored.append(put_part(self.context, known, number, after))
                advance()
        return compared
