"""A matrix whose blocks are in other processes, each in one of them.

The law kept here: the result of a pass is that of a pass in this process. When the process that had
a block is gone, another reads it again from its source; it has the same records in the same order,
or it is refused. Deleted rows are overwritten in each block before its next use.
"""

from __future__ import annotations

import io
import itertools
import pickle
import secrets
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce as fold
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from erasable.core._grid_kernels import NO_ROWS
from erasable.core._mixed import Mixed, stacked
from erasable.core.arrays import Flags, Ints
from erasable.core.block_cache import LastRead
from erasable.core.errors import ClusterError, InvalidDataError, InvalidInputError
from erasable.core.messages import refuse_not_finite
from erasable.core.passes import Block, Made, Partial, Pass, Remote, Stored
from erasable.core.remote._asking import Answer, Fetch, Forget, RunPass
from erasable.core.remote._jobs import BlockCall, BlockSource, ColumnLayout, Drop, Job, Shelf
from erasable.core.remote._loading import Keep
from erasable.core.remote._masking import mask, unmasked
from erasable.core.remote._workers import Workers, asked, lost_again, placed, refuse_raised
from erasable.core.row_arrays import PerRow, RowArray, Scratch, Written
from erasable.core.threads import in_threads


class CountedRows:
    """Rows that count in a pass, as a `mask`, and the `blocks` that have some.

    `alone` are the positions of these rows if they are fewer than the changes of the live rows that
    blocks know; otherwise None.
    """

    def __init__(self, live_rows: Ints | None, starts: Ints, said: Flags) -> None:
        n = int(starts[-1])
        self._starts = starts
        self.mask: Flags = np.ones(n, dtype=np.bool_)
        self.alone: Ints | None = None
        bounds = starts
        if live_rows is not None:
            bounds = np.searchsorted(live_rows, starts)
            self.mask[:] = False
            self.mask[live_rows] = True
            if live_rows.size < np.count_nonzero(self.mask != said):
                self.alone = live_rows
        self._ranks, self.sizes = bounds[:-1], np.diff(bounds)
        self.blocks: list[int] = np.flatnonzero(self.sizes).tolist()

    def block(self, number: int) -> Block:
        """Return a block without values, for cutting row arrays."""
        first, stop = self._starts[number : number + 2].tolist()
        size = int(self.sizes[number])
        every = size == stop - first
        rows = NO_ROWS if every else np.broadcast_to(np.int64(0), size)
        matrix = np.broadcast_to(np.float64(0.0), (stop - first, 1))
        return Block(matrix, rows, every, first, int(self._ranks[number]))


Bytes = NDArray[np.uint8]

_TRIES = 6
"""Attempts to send functions, or to bring blocks, without any answer of a worker."""

_ALONE = threading.Lock()

_GIVEN, _RETURNED = 2, 3  # parts of the stream of masks; blocks use other parts


def hidden(thing: Any, pad: int, number: int, part: int = _RETURNED) -> Bytes:
    """Pickle and mask an object."""
    buffer = io.BytesIO()
    pickle.dump(thing, buffer, protocol=5)
    data = np.frombuffer(buffer.getbuffer(), np.uint8)
    mask(data, pad, number, part)
    return data


def shown(data: Bytes, pad: int, number: int, part: int = _RETURNED) -> Any:
    """Undo `hidden`."""
    data = np.array(data)
    mask(data, pad, number, part)
    found = pickle.loads(data.data)
    data[:] = 0
    return found


@dataclass(frozen=True, repr=False)
class Call(Job):
    """Call functions, masked with `pad`; return their masked results."""

    loads = True
    pad: int
    functions: Mapping[int, Bytes]

    def run(self, shelf: Shelf, n_threads: int) -> dict[int, Bytes]:
        """See `Job`."""
        functions = {
            number: shown(data, self.pad, number, _GIVEN) for number, data in self.functions.items()
        }

        def call(number: int) -> Bytes:
            return hidden(functions[number](), self.pad, number)

        # The functions are unpickled by now, and with them the BLAS libraries that they use are
        # loaded, so that the limit reaches these. It holds for the whole process, and the first
        # job to end would lift it for the others: so a process runs one such job at a time.
        with _ALONE, threadpool_limits(1):
            return dict(zip(functions, in_threads(call, functions, n_threads), strict=True))


@dataclass(frozen=True, repr=False)
class RunHidden(RunPass):
    """Run a pass whose results and row arrays hold values of records; return them masked."""

    loads = True

    def run(self, shelf: Shelf, n_threads: int) -> Answer:
        """See `Job`."""
        answer, pad = super().run(shelf, n_threads), secrets.randbits(128)
        answer.partial = hidden((answer.partial, answer.written), pad, 0), pad, 0
        answer.written = {}
        return answer


def called(workers: Workers, token: str, functions: Iterable[Callable[[], Made]]) -> Iterator[Made]:
    """Call functions, which can be pickled, on workers; yield their results.

    As many are in this process at once as workers have threads. Raise ClusterError if workers are
    lost again and again.
    """
    pad, rest = secrets.randbits(128), iter(enumerate(functions))
    waiting: dict[int, Bytes] = {}
    found: dict[int, Made] = {}
    wanted, left = 0, _TRIES
    while True:
        threads = workers.threads()
        if not threads:
            raise ClusterError("no worker is left; expected one or more; start some")
        room = max(0, sum(threads.values()) - len(waiting))
        for number, function in itertools.islice(rest, room):
            waiting[number] = hidden(function, pad, number, _GIVEN)
        if not waiting:
            return
        jobs = {
            worker: Call(token, pad, {number: waiting[number] for number in numbers})
            for worker, numbers in _dealt(list(waiting), threads).items()
        }
        answers = asked(workers, jobs, aside=True)
        left = _TRIES if answers else left - 1
        if not left:
            raise ClusterError(
                f"workers were lost again and again while they learned from the records of "
                f"{len(waiting)} members or nodes; expected them to stay: give workers more memory"
            )
        for answer in answers.values():
            for number, data in answer.items():
                found[number] = shown(data, pad, number)
                del waiting[number]
        while wanted in found:
            yield found.pop(wanted)
            wanted += 1


def _dealt(numbers: list[int], threads: Mapping[str, int]) -> dict[str, list[int]]:
    """Deal numbers to workers in turn, at most as many as they have threads."""
    own: dict[str, list[int]] = {}
    rest = iter(numbers)
    for turn in range(max(threads.values())):
        for worker in (name for name, count in threads.items() if count > turn):
            if (number := next(rest, None)) is None:
                return own
            own.setdefault(worker, []).append(number)
    return own


_BRIEF = 2**23
"""Values that a pass reads in about the time of a scheduler for a task."""


class RemoteMatrix(Remote):
    """Rows in blocks, each in the memory of a worker.

    `token` is the name of the records; `where` maps blocks to workers; `hashes` are those of
    `_loading.Keep`. For each row this keeps a bit for live and one for deleted.
    """

    def __init__(
        self,
        workers: Workers,
        token: str,
        layout: ColumnLayout,
        sources: Sequence[BlockSource],
        hashes: Sequence[str],
        sizes: Sequence[int],
        where: Mapping[int, str],
    ) -> None:
        self._workers, self._token, self._layout = workers, token, layout
        self._sources, self._hashes, self._where = list(sources), list(hashes), dict(where)
        self.dtype = layout.dtype
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.shape = int(self.starts[-1]), len(layout.features)
        self._lock = threading.RLock()
        # The state of the blocks: live rows, their version, and row arrays.
        self._said: Flags = np.ones(self.shape[0], dtype=np.bool_)
        self._versions = [0] * len(self._sources)
        self._has: weakref.WeakKeyDictionary[RowArray, set[int]] = weakref.WeakKeyDictionary()
        self._doubtful: set[int] = set()
        self._behind: set[int] = set()  # blocks in which deleted rows may still be
        self._strays = False  # whether workers may have blocks that moved to others
        self._last: LastRead | None = None
        weakref.finalize(self, _drop, workers, token).atexit = False

    def __repr__(self) -> str:
        """Show the size, never a value."""
        return f"RemoteMatrix(shape={self.shape}, n_blocks={len(self._sources)})"

    @property
    def kinds(self) -> str:
        """See `Stored`."""
        return self._layout.kinds

    # -- reading -------------------------------------------------------------------------------

    def block(
        self, number: int, columns: Sequence[int] | None = None, *, gaps: bool = False
    ) -> Any:
        """Copy a block; all columns, or some of them."""
        chosen = None if columns is None else list(columns)
        found = self._fetch({number: None}, chosen)[number]
        if not (gaps or isinstance(found, Mixed) or np.isfinite(found.sum())):
            names = self._layout.features
            refuse_not_finite(found, names if chosen is None else [names[j] for j in chosen])
        return found

    def __getitem__(self, rows: Ints) -> Any:
        """Copy rows, and cache them until `forget`: a deletion reads them several times."""
        last = self._last
        if last is not None and (known := last.of(rows)) is not None:
            return known
        found: Any = np.empty((rows.size, self.shape[1]), self.dtype)
        blocks = np.searchsorted(self.starts, rows, side="right") - 1
        own = {number: np.flatnonzero(blocks == number) for number in np.unique(blocks).tolist()}
        wanted = {number: rows[at] - self.starts[number] for number, at in own.items()}
        fetched = self._fetch(wanted)
        if self.dtype == object and fetched:
            order = np.concatenate([own[number] for number in fetched])
            found = stacked(list(fetched.values()))[np.argsort(order)].own()
        else:
            for number, values in fetched.items():
                found[own[number]] = values
        self._last = LastRead(rows.copy(), found)
        return found

    def prepare(self, rows: Ints) -> None:
        """Read rows before they are deleted."""
        self[rows]

    def drop_copies(self) -> None:
        """Keep no rows that were read."""
        self._last = None

    def take(self, rows: Ints) -> Stored:
        """Refuse: rows that one model deletes are overwritten for all."""
        _refuse_copies()

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        """Refuse."""
        _refuse_copies()

    def __reduce__(self) -> NoReturn:
        """Refuse."""
        _refuse_copies()

    def _fetch(
        self, rows: Mapping[int, Ints | None], columns: list[int] | None = None
    ) -> dict[int, Any]:
        found: dict[int, Any] = {}
        pad = secrets.randbits(128)

        def job(numbers: list[int]) -> Fetch:
            return Fetch(self._token, pad, {number: rows[number] for number in numbers}, columns)

        for answer in self._rounds(rows, job, aside=True):
            found |= answer.partial
        return {number: unmasked(values, pad, number) for number, values in found.items()}

    # -- passes --------------------------------------------------------------------------------

    def run(
        self,
        pass_: Pass[Partial],
        live_rows: Ints | None = None,
        columns: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ) -> Partial:
        """See `erasable.core.passes.run`."""
        arrays = pass_.row_arrays()
        with self._lock:
            counts = CountedRows(live_rows, self.starts, self._said)
            if not counts.blocks:
                chosen = None if columns is None else tuple(columns)
                width = self.shape[1] if columns is None else len(columns)
                return pass_.of_block(
                    Block(np.empty((0, width), self.dtype), NO_ROWS, False, columns=chosen)
                )
            chosen_columns = None if columns is None else list(columns)

            def job(numbers: list[int]) -> RunPass:
                calls = {number: self._call(number, counts, arrays) for number in numbers}
                alive = frozenset(each.key for each in self._has)
                told = self._token, pass_, calls, chosen_columns, alive, self._layout.features
                return RunHidden(*told) if pass_.finds_records else RunPass(*told)

            brief = int(counts.sizes.max()) * self.shape[1] * len(counts.blocks) <= _BRIEF
            partials: list[Partial] = []
            writes = [each for each in arrays if isinstance(each, Written)]
            aside, hides = bool(writes) or brief or pass_.finds_records, pass_.finds_records
            for answer in self._rounds(counts.blocks, job, aside):
                told = shown(*answer.partial) if hides else (answer.partial, answer.written)
                partials.append(told[0])
                for number, parts in told[1].items():
                    block = counts.block(number)
                    for each in writes:
                        each.cut(block)[...] = parts[each.key]
        return fold(pass_.merge, partials)

    def call(self, functions: Iterable[Callable[[], Made]]) -> Iterator[Made]:
        """See `erasable.core.passes.Remote`."""
        return called(self._workers, self._token, functions)

    @property
    def n_calls(self) -> int:
        """See `erasable.core.passes.Remote`."""
        return max(1, sum(self._workers.threads().values()))

    def _call(self, number: int, counts: CountedRows, arrays: Sequence[RowArray]) -> BlockCall:
        """Return the changes for a block since its last call, and record them as sent."""
        block = counts.block(number)
        first, stop = self.starts[number : number + 2].tolist()
        doubtful = number in self._doubtful
        said = self._said[first:stop]
        rows, toggled, before = None, NO_ROWS, self._versions[number]
        if counts.alone is not None:
            rows = counts.alone[block.rank : block.rank + block.size] - first
        else:
            toggled = np.flatnonzero(counts.mask[first:stop] != said)
            said[toggled] ^= True
            self._versions[number] += int(toggled.size > 0)
        kept, passing = {}, {}
        for each in arrays:
            if isinstance(each, PerRow):
                known = self._has.setdefault(each, set())
                if doubtful or number not in known:
                    kept[each.key] = each.cut(block)
                known.add(number)
            elif isinstance(each, Scratch):
                self._has.setdefault(each, set()).add(number)
            elif not isinstance(each, Written):
                passing[each.key] = each.cut(block)
        self._doubtful.discard(number)
        mask = np.packbits(said) if doubtful else None
        return BlockCall(
            first, block.rank, rows, before, self._versions[number], toggled, mask, kept, passing
        )

    # -- lost workers --------------------------------------------------------------------------

    def _rounds(self, numbers: Iterable[int], job_of: Any, aside: bool) -> Iterable[Answer]:
        """Call all blocks, and again those whose worker is lost; yield complete answers."""
        with self._lock:
            waiting = set(numbers)
            left = _TRIES
            while left:
                left -= 1
                self._bring(waiting)
                self._catch_up(waiting)
                if not waiting <= self._where.keys():
                    continue
                own = self._by_worker(waiting)
                jobs = {worker: job_of(blocks) for worker, blocks in own.items()}
                try:
                    answers = self._workers.ask(jobs, aside)
                except BaseException:  # a worker without an answer may still be busy
                    self._lose(waiting)
                    raise
                refuse_raised(answers)
                for worker, blocks in own.items():
                    answer = answers.get(worker)
                    if answer is None:
                        self._lose(blocks)
                    elif answer.missing or answer.doubtful:
                        self._lose(answer.missing)
                        self._doubtful.update(blocks)
                    else:
                        waiting.difference_update(blocks)
                        left = _TRIES
                        yield answer
                if not waiting:
                    return
            raise lost_again(len(waiting))

    def _by_worker(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        own: dict[str, list[int]] = {}
        for number in sorted(numbers):
            own.setdefault(self._where[number], []).append(number)
        return own

    def _lose(self, numbers: Iterable[int]) -> None:
        """Mark blocks as lost; they come back in their first state, without deleted rows."""
        for number in numbers:
            self._where.pop(number, None)
            self._strays = True

    def _bring(self, numbers: Iterable[int]) -> None:
        """Let workers read blocks again that no worker has."""
        left = _TRIES
        while lost := [number for number in numbers if number not in self._where]:
            if not left:
                raise lost_again(len(lost))
            left -= 1
            workers = self._workers.threads()
            if not workers:
                raise ClusterError("no worker is left; expected one or more; start some")
            own: dict[str, list[int]] = {}
            for number, worker in placed(lost, list(workers), self._token).items():
                own.setdefault(worker, []).append(number)
            jobs = {worker: self._keep(blocks) for worker, blocks in own.items()}
            for worker, hashes in asked(self._workers, jobs).items():
                for number, found in hashes.items():
                    if found != self._hashes[number]:
                        raise InvalidDataError(
                            f"partition {number + 1} has other records than when they were first "
                            "read; expected them unchanged while models learn from them; make the "
                            "records again, and fit again"
                        )
                    self._arrive(number, worker)
                    left = _TRIES

    def _keep(self, numbers: list[int]) -> Keep:
        sources = {number: self._sources[number] for number in numbers}
        hashes = {number: self._hashes[number] for number in numbers}
        gone = {number: self._gone_of(number) for number in numbers}
        return Keep(self._token, self._layout, sources, hashes, gone)

    def _arrive(self, number: int, worker: str) -> None:
        self._where[number] = worker
        first, stop = self.starts[number : number + 2].tolist()
        self._said[first:stop] = True
        self._versions[number] = 0
        self._behind.discard(number)
        for known in self._has.values():
            known.discard(number)

    def _gone_of(self, number: int) -> Ints:
        if self.gone is None:
            return NO_ROWS
        first, stop = self.starts[number : number + 2].tolist()
        return np.flatnonzero(self.gone[first:stop])

    # -- deleting ------------------------------------------------------------------------------

    def forget(self, rows: Ints) -> None:
        """Overwrite rows that no model holds; a failure is repaired by the next call.

        It follows a deletion, and so does not raise.
        """
        with self._lock:
            super().forget(rows)
            self._behind.update(np.unique(np.searchsorted(self.starts, rows, "right") - 1).tolist())
            try:
                self._catch_up(list(self._behind))
            except Exception as error:
                warnings.warn(
                    f"deleted records could not be overwritten on all workers "
                    f"({type(error).__name__}); this is done with the next fit or deletion",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def _catch_up(self, numbers: Iterable[int]) -> None:
        """Overwrite deleted rows in blocks in which they may still be."""
        behind = [number for number in numbers if number in self._behind]
        if not behind and not self._strays:
            return
        own: dict[str, set[int]] = {worker: set() for worker in self._workers.threads()}
        for number, worker in self._where.items():
            if worker in own:
                own[worker].add(number)
        late = set(behind)
        jobs: dict[str, Job] = {
            worker: Forget(
                self._token,
                {number: self._gone_of(number) for number in blocks & late},
                frozenset(blocks),
            )
            for worker, blocks in own.items()
            if self._strays or blocks & late
        }
        answers = asked(self._workers, jobs, aside=True)
        for worker, answer in answers.items():
            self._lose(answer.missing)
            for number in own[worker] & late:
                self._behind.discard(number)
                for known in self._has.values():
                    known.discard(number)
        for number in late:
            if self._where.get(number) not in answers:  # its worker is lost
                self._lose([number])
                self._behind.discard(number)
        self._strays = False


def _refuse_copies() -> NoReturn:
    raise InvalidInputError(
        "records on a cluster cannot be copied or pickled, and neither can a model that holds "
        "them; expected records in memory; pass records.in_memory(), or save the model"
    )


def _drop(workers: Workers, token: str) -> None:
    """Let all workers drop the blocks of a matrix that is gone, without waiting."""

    def drop() -> None:
        try:
            workers.ask({name: Drop(token) for name in workers.threads()})
        except Exception:  # the cluster is gone, and the blocks with it
            return

    threading.Thread(target=drop, daemon=True).start()
