"""Tables of lakes: one commit changes their rows, and then the files of older versions leave."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import pyarrow as pa

from erasable.core.errors import SourceError
from erasable.workspace.targets.addresses import refused_as
from erasable.workspace.targets.blobs import Store
from erasable.workspace.targets.columns import ArrowBatch, Batch, Keys, check_subjects, find_all
from erasable.workspace.targets.halving import Ranges, change_by_halves
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.overwriting import check_overwritten
from erasable.workspace.targets.protocol import People, Plan, Settings, Target
from erasable.workspace.targets.residue import Found
from erasable.workspace.targets.stores import linked, search

_ATTEMPTS = 20  # where others change the table meanwhile

Errors = tuple[type[Exception], ...]


class LakeTarget(Target):
    """A table whose data and history are files; `name` is that of the table."""

    name: str
    expected: ClassVar[str]  # of a table that can be read and changed, in messages
    no_table: ClassVar[str]  # where `shown` is put
    absent: ClassVar[Errors]  # that a client raises where there is no table
    conflicts: ClassVar[Errors]  # where another writer was faster

    def __init__(self, shown: str, settings: Settings) -> None:
        self.shown = shown
        self.settings = settings

    @abstractmethod
    def _table(self) -> Any:
        """Return the table as it is now."""

    @abstractmethod
    def _batches(self, table: Any) -> Iterable[pa.RecordBatch]:
        """Return the rows of the current version."""

    @abstractmethod
    def _where(self, keys: Keys) -> Any:
        """Return the condition for the rows of people."""

    @abstractmethod
    def _narrowed(self, where: Any, files: Sequence[Ranges]) -> Any:
        """Return a condition that is true of no rows of other files, if that can be said."""

    @abstractmethod
    def _ranges(self, table: Any) -> list[Ranges]:
        """Return the ranges of columns of the data files, those of the oldest first."""

    @abstractmethod
    def _change(self, table: Any, where: Any) -> None:
        """Delete rows, or overwrite them, in one commit."""

    @abstractmethod
    def _stores(self) -> list[Store]:
        """Return the places of all files."""

    def find(self, people: People) -> Plan:
        """Find the rows of people in the current version."""
        with self._explained("read"):
            table = self._table()

            def batches() -> Iterator[Batch]:
                for batch in self._batches(table):
                    if batch.num_rows:
                        yield ArrowBatch(pa.Table.from_batches([batch]))

            plan = find_all({self.name: batches}, self.settings, people)
            plan.reasons = linked(self._stores()) if plan else []
            return plan

    def erase(self, plan: Plan) -> None:
        """Delete rows, or overwrite them, in one commit if no other writer is faster."""
        if keys := plan.keys.get(self.name):
            where = self._where(keys)
            if self._is_done(lambda table: self._change(table, where)):
                return
            with self._explained("read"):
                files = self._ranges(self._table())

            def change(some: Sequence[Ranges]) -> bool:
                own = self._narrowed(where, some)
                return self._is_done(lambda table: self._change(table, own))

            self._refuse_unless(change_by_halves(files, change, _ATTEMPTS))

    def scan(self, marks: Marks, living: Marks) -> Found:
        """Look for values in all files, those of the history included."""
        with self._explained("read"):
            return search(self._stores(), marks, living)

    def _check(self, schema: pa.Schema) -> None:
        for subject in self.settings.subjects:
            check_subjects(schema, (subject,), (), repr(self.shown))
        check_overwritten(schema, self.settings, (), repr(self.shown))

    def _committed(self, change: Callable[[Any], None]) -> None:
        """Change the table as it is now; once more where another writer was faster."""
        self._until(lambda: self._is_done(change))

    def _until(self, is_done: Callable[[], bool]) -> None:
        """Try until no other writer was faster; refuse a table that is changed all the time."""
        self._refuse_unless(any(is_done() for _ in range(_ATTEMPTS)))

    def _is_done(self, change: Callable[[Any], None]) -> bool:
        """Change the table as it is now; tell whether no other writer was faster."""
        with self._explained("changed"):
            table = self._table()
            try:
                with self._attempt(table):
                    change(table)
            except self.conflicts:
                return False
        return True

    def _refuse_unless(self, is_done: bool) -> None:
        if not is_done:
            raise SourceError(
                f"the table {self.shown!r} is changed by others again and again; expected a moment "
                "without; the next attempt erases what is left"
            )

    def _attempt(self, table: Any) -> AbstractContextManager[None]:
        """Prepare for a change that may fail."""
        return nullcontext()

    def _kept_elsewhere(self) -> list[str]:
        """Remove what an earlier attempt left; return where older files may be."""
        reasons = []
        for store in self._stores():
            reasons += store.clean()
            if n := sum(blob.version is not None for blob in store.blobs()):
                reasons.append(f"the bucket keeps {n} older versions of objects")
        return reasons

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Raise SourceError for errors of a client and of the store."""
        place = f"the table {self.shown!r}"
        with refused_as(place, f"could not be {what}", self.expected, *self.conflicts):
            try:
                yield
            except self.absent:
                raise SourceError(self.no_table.format(repr(self.shown))) from None
