"""Records that take others, correct some, or exchange them, with all models that hold them."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sized
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from erasable.core._changing import Change, Exclusion, carry_out
from erasable.core._grid_kernels import NO_ROWS
from erasable.core.additions import corrected, joined_names, read_addition
from erasable.core.arrays import Flags, Ints
from erasable.core.attachment import Attachment
from erasable.core.changes import Delta
from erasable.core.deletion import Addition, Correction, Outcome, Replacement, Report
from erasable.core.errors import InvalidIdsError, InvalidInputError
from erasable.core.grown_table import grown
from erasable.core.ids import as_id_array, as_request, name_some
from erasable.core.inputs import RecordArrays
from erasable.core.lookup import HashIndex, IdIndex
from erasable.core.mapped.texts import Texts, as_array
from erasable.core.matrices import blank_of, blank_rows, copy_rows, memory_of, overwrite, to_dense
from erasable.core.messages import too_few
from erasable.core.passes import Stored
from erasable.core.row_arrays import begins, padded
from erasable.core.targets import check_target
from erasable.core.undecided_types import (
    refuse_mixed_numbers,
    refuse_rounded,
    refuse_rows_without_text,
)
from erasable.core.values import Accepts, refuse_unsuited

if TYPE_CHECKING:
    from erasable.core.attachment import HeldRecords
    from erasable.core.model import Model

_SPARE = 1 / 8  # share of rows that is allocated beyond those needed
_LEAST = 16


class _Part(NamedTuple):
    """What a change means for one attachment."""

    before: dict[str, Any]  # its attributes
    leaving: Ints
    arriving: Ints


class Growth:
    """Rows that come to records, and rows that leave with them: a `Change`."""

    def __init__(
        self,
        records: HeldRecords,
        table: RecordArrays,
        holders: list[Attachment],  # that hold the new rows from then on
        leaving: Ints = NO_ROWS,  # can be read until `finish`
        *,
        succeeds: bool = False,  # each new row takes the place of one that leaves, if that was live
    ) -> None:
        self._records, self._table = records, table
        self.erased, self._leaving = records._erased, leaving
        n, n_new = records.n_rows, table.ids.size
        self._reused = NO_ROWS if records.is_stored else _first(records._erased, n_new)
        self.n_rows = n + n_new - self._reused.size
        self.rows: Ints = self._reused
        if self.n_rows > n:
            self.rows = np.concatenate([self._reused, np.arange(n, self.n_rows)])
        # Whether no array changes its type, so that a model need not learn everything again.
        self.plain = (
            records.matrix.dtype == table.matrix.dtype
            and (records.y is None or table.y is None or records.y.dtype == table.y.dtype)
            and (table.weights is None or records.weights is not None)
        )
        self._before = dict(records.__dict__)
        self._parts: dict[Attachment, _Part] = {}
        others = [each for holder in records._holders if (each := holder()) is not None]
        for held in (*holders, *others):
            if held not in self._parts:
                self._parts[held] = self._part(held, succeeds)
        self._spare = records._spare
        self._made: list[Any] = []  # buffers with new rows alone or a copy of all
        self._left: list[Any] = []  # buffers that are to be overwritten

    def _part(self, held: Attachment, succeeds: bool) -> _Part:
        leaving, arriving = self._leaving, self.rows
        if leaving.size:
            was_live = held.live[leaving]
            leaving = _ascending(leaving[was_live])
            arriving = arriving[was_live] if succeeds else arriving
        return _Part(dict(held.__dict__), leaving, _ascending(arriving))

    # -- doing ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make room for the new rows, and exclude those that leave from all attachments."""
        if self.rows.size:
            self._extend()
        for held, part in self._parts.items():
            if self.n_rows > part.before["live"].size:
                held.live = padded(held.live, self.n_rows, keep=True)
                held._unreleased = padded(held._unreleased, self.n_rows, keep=True)
            if part.leaving.size:
                held.exclude(part.leaving)

    def _extend(self) -> None:
        """Put the new rows into the records."""
        records, table = self._records, self._table
        present, weights = records.weights, table.weights
        if weights is None and present is not None:
            weights = np.ones(self.rows.size)
        elif present is None and weights is not None:
            present = np.ones(records.n_rows)
        ids, groups, y = _joined(records.ids, table.ids), records.groups, records.y
        if groups is not None:
            groups = _joined(groups, table.groups)
        if y is not None and table.y is not None:
            y = y.astype(table.y.dtype, copy=False)
        index = records._id_index
        if isinstance(index, IdIndex):
            index.add(self.rows, table.ids.tolist(), records.ids, records._erased)
        # Flags come first: what is erased while the arrays are copied is erased there later.
        withdrawn = padded(records._withdrawn, self.n_rows, keep=True)
        erased = padded(records._erased, self.n_rows, keep=True)
        withdrawn[self._reused] = erased[self._reused] = False
        plain = type(records.matrix) is np.ndarray  # asked first: a dispatch takes longer
        changed = {
            "_withdrawn": withdrawn,
            "_erased": erased,
            "matrix": (_grown_dense if plain else _grown)(records.matrix, table.matrix, self),
            "ids": self.with_rows("ids", ids, table.ids),
            "y": self.with_rows("y", y, table.y),
            "weights": self.with_rows("weights", present, weights),
            "groups": self.with_rows("groups", groups, table.groups),
            "unsettled": table.unsettled,
            "_spare": self._spare,
            **_FORGOTTEN,
        }
        if isinstance(index, HashIndex) and records.ids.dtype == ids.dtype:
            changed["_id_index"] = index.grown(changed["ids"], self.rows, table.ids)
        elif not isinstance(index, IdIndex):
            changed["_id_index"] = None
        records.__dict__.update(changed)

    def delta(self, held: Attachment) -> Delta:
        """See `Change`."""
        _, leaving, arriving = self._parts[held]
        return Delta(leaving, arriving, moved=True)

    def arrive(self, held: Attachment) -> None:
        """See `Change`."""
        rows = self._parts[held].arriving
        held._unreleased[rows] = True
        held.admit(rows)

    def finish(self) -> None:
        """See `Change`."""
        if self._leaving.size:
            for held in self._parts:
                held._unreleased[self._leaving] = False
            self._records._let_go(self._leaving)
        for buffer in self._left:
            overwrite(buffer)

    def undo(self) -> None:
        """See `Change`."""
        records, inside = self._records, self._reused
        records.__dict__.update({**self._before, "_id_index": None, "_group_index": None})
        for held, part in self._parts.items():
            held.__dict__.update(part.before)
            held.live[inside] = held._unreleased[inside] = False
            held.live[part.leaving] = True
        records._withdrawn[inside] = records._erased[inside] = True
        if inside.size:
            blank_rows(records.matrix, inside)
            for array in (records.ids, records.y, records.weights, records.groups):
                if array is not None:
                    array[inside] = blank_of(array)
        for buffer in self._made:
            if not any(_shares(buffer, self._before[name]) for name in _ARRAYS):
                overwrite(buffer)
        for names in (records.ids, records.groups):
            if isinstance(names, Texts):
                names.empty_room()
        for name, buffer in records._spare.items():
            rest = buffer[self._before[name].shape[0] :]
            rest[...] = blank_of(buffer)
        records._sweep()

    # -- arrays --------------------------------------------------------------------------------

    def with_rows(self, name: str, array: Any, arriving: Any) -> Any:
        """Return an array with the new rows, in its own buffer where that has room."""
        if array is None:
            return None
        n, n_old = self.n_rows, array.shape[0]
        if isinstance(array, Texts):
            return self.replaced(name, array.grown(n, self.rows, arriving.tolist()))
        buffer = self._spare.get(name)
        if n_old == n and array is self._before[name]:
            made = array
        elif buffer is not None and buffer.shape[0] >= n and begins(array, buffer):
            made = buffer[:n]
        else:
            size = n if n_old == n else n + max(_LEAST, int(n * _SPARE))
            buffer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
            if array.dtype == object:
                buffer[...] = ""
            self.replaced(name, buffer)
            buffer[:n_old] = array
            made, self._spare = buffer[:n], {**self._spare, name: buffer}
        made[self.rows] = arriving
        return made

    def replaced(self, name: str, made: Any) -> Any:
        """Note what takes the place of an array; one of both is overwritten at the end."""
        self._made += memory_of(made)
        old = self._before[name]
        if old is not None and old is not made:
            self._left += [each for each in memory_of(old) if not _shares(each, made)]
        return made


def _grown_dense(matrix: Any, arriving: Any, growth: Growth) -> Any:
    """Return a matrix with new rows."""
    return growth.with_rows("matrix", matrix.astype(arriving.dtype, copy=False), arriving)


_grown = singledispatch(_grown_dense)


@_grown.register
def _(matrix: csr_array, arriving: csr_array, growth: Growth) -> csr_array:
    """Return a sparse matrix with new rows; erased rows take no room any more."""
    n, n_new = matrix.shape[0], growth.rows.size
    source = np.full(growth.n_rows, n + n_new)  # a row without values
    present = np.flatnonzero(~growth.erased)
    source[present], source[growth.rows] = present, n + np.arange(n_new)
    own = matrix.astype(arriving.dtype, copy=False)
    blank = csr_array((1, matrix.shape[1]), dtype=arriving.dtype)
    made = csr_array(vstack([own, arriving, blank], format="csr")[source])
    made.has_canonical_format = True
    return growth.replaced("matrix", made)


@_grown.register
def _(matrix: Stored, arriving: Any, growth: Growth) -> Any:
    return growth.replaced("matrix", grown(matrix, arriving))


_FORGOTTEN = dict.fromkeys(["_id_set", "_group_index", "source", "_cells"])
_ARRAYS = ("matrix", "ids", "y", "weights", "groups")


def _first(flags: Flags, n: int) -> Ints:
    """Return the first positions that are set, at most n."""
    if n != 1:
        return np.flatnonzero(flags)[:n]
    at = int(flags.argmax())  # which stops at the first
    return np.array([at] if flags[at] else [], dtype=np.int64)


def _ascending(rows: Ints) -> Ints:
    return rows if rows.size < 2 else np.sort(rows)


def _joined(some: Any, others: Any) -> Any:
    """Return ids or groups in the type that they have together with others."""
    if isinstance(some, Texts):
        if set(map(type, others.tolist())) <= {str}:
            return some
        some = as_array(some)
    return some.astype(joined_names(some, others), copy=False)


def _shares(buffer: NDArray[Any], array: Any) -> bool:
    return array is not None and any(np.may_share_memory(buffer, one) for one in memory_of(array))


_Kind = TypeVar("_Kind", bound=Report)


class RecordsChange:
    """A change of records: of all models that hold them, or of one that alone holds them."""

    def __init__(self, records: HeldRecords, model: Model | None, *, digest: bool) -> None:
        self._began = time.perf_counter()
        self._records, self._digest = records, digest
        self._asked = model  # None: all that there are

    def _models(self) -> list[tuple[Attachment, Model]]:
        """Return the models that hold records, with their attachments."""
        if self._asked is not None and len(self._records._holders) == 1:
            return [(self._asked._attached(), self._asked)]
        holders = [each() for each in self._records._holders]
        known = [
            (held, held.model()) for held in holders if held is not None and held.model is not None
        ]
        return [(held, model) for held, model in known if model is not None and model._held is held]

    def add(self, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any) -> list[Addition]:
        """Add records; see `erasable.core.estimator.Erasable.add`."""
        if _is_empty(X) and _is_empty(ids):
            return self._do(Addition, None, NO_ROWS, self._records.ids[:0])
        table = read_addition(self._records, X, self._target(y), sample_weight, ids, groups)
        self._refuse_known(table.ids, NO_ROWS)
        self._refuse_shared("records.add(...)")
        return self._do(Addition, table, NO_ROWS, table.ids)

    def prepared(self, table: RecordArrays | None, leaving: Ints) -> Change:
        """Return a change of the records of one model that is ready for it, checked, not begun.

        `table` has new ids, which were read as those that are there; None: no records arrive.
        """
        model = self._asked
        assert model is not None
        held = model._attached()
        _refuse_few(held, model, leaving, 0 if table is None else table.ids.size, succeeds=False)
        if table is None:
            model._check_deletion(leaving)
            return Exclusion(held, leaving)
        _check(model, self._records, table)
        return Growth(self._records, table, [held], leaving, succeeds=False)

    def replace(
        self, leaving: Any, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any
    ) -> list[Replacement]:
        """Delete records and add others; see `erasable.core.estimator.Erasable.replace`."""
        if _is_empty(X) and _is_empty(ids):
            none = copy_rows(self._records.matrix, NO_ROWS)
            table = self._records._table().take(NO_ROWS, none)
        else:
            table = read_addition(self._records, X, self._target(y), sample_weight, ids, groups)
        rows = self._rows(leaving)
        self._refuse_known(table.ids, rows)
        self._refuse_shared("records.replace(...)")
        gone = self._records.ids[rows].tolist()
        return self._do(Replacement, table, rows, as_id_array([*gone, *table.ids.tolist()]))

    def correct(self, ids: Any, X: Any, y: Any, sample_weight: Any) -> list[Correction]:
        """Correct records; see `erasable.core.estimator.Erasable.correct`."""
        rows = self._rows(ids)
        records = self._records
        if rows.size == 0:
            return self._do(Correction, None, rows, records.ids[rows])
        if X is None and sample_weight is None and y is not None and self._target(y) is None:
            raise InvalidInputError(
                f"correct was given y alone, and {type(self._asked).__name__} learns from no "
                "targets; expected X or sample_weight"
            )
        was = records._table().take(rows, copy_rows(records.matrix, rows))
        table = corrected(records, was, X, self._target(y), sample_weight)
        others = _differing(was, table)
        n_others = np.count_nonzero(others)
        if n_others == 0:
            return self._do(Correction, None, rows[others], records.ids[rows[others]])
        if n_others < rows.size:
            rows, table = rows[others], table.take(others)
        self._refuse_shared("records.correct(...)")
        return self._do(Correction, table, rows, table.ids, succeeds=True)

    # -- what is refused -----------------------------------------------------------------------

    def _target(self, y: Any) -> Any:
        """Ignore targets, as `fit` does, where the one model that is asked learns from none."""
        if y is None or self._records.y is not None or self._asked is None:
            return y
        return y if self._asked._info.target_tags(self._asked)[0] else None

    def _rows(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Return the row of each id that is to be deleted or corrected."""
        if self._asked is not None:
            return self._asked._attached().rows(ids)
        wanted = as_request(ids)
        rows = self._records._rows_of_ids(wanted)
        gone = (rows < 0) | self._records._withdrawn[rows]
        if gone.any():
            self._records.attach().rows(wanted)  # raises UnknownIdError
        return rows

    def _refuse_known(self, ids: NDArray[Any], leaving: NDArray[np.int64]) -> None:
        records, names = self._records, ids.tolist()
        rows = records._rows_of_ids(names)
        if max(rows.tolist(), default=-1) < 0:
            return
        there = (rows >= 0) & ~records._erased[rows]
        if there.any() and leaving.size:
            there &= ~np.isin(rows, leaving)
        if not there.any():
            return
        known = [names[i] for i in np.flatnonzero(there).tolist()]
        one = len(known) == 1
        if not records._withdrawn[rows[there]].all():
            raise InvalidIdsError(
                f"{len(known)} of the ids {'is' if one else 'are'} there already: "
                f"{name_some(known)}; expected new ones; use correct to change records"
            )
        holders = self._names(rows[there], but=None)
        raise InvalidIdsError(
            f"{len(known)} of the ids {'is' if one else 'are'} deleted, and still held by "
            f"{holders}; expected ids that nobody holds; delete them there first"
        )

    def _refuse_shared(self, advice: str) -> None:
        if self._asked is None or len(self._models()) == 1:
            return
        if self._names(None, but=self._asked):
            gc.collect()  # models in reference cycles that nobody uses
        if names := self._names(None, but=self._asked):
            raise InvalidInputError(
                f"the records are shared with {names}; expected records that "
                f"{type(self._asked).__name__} alone holds; call {advice}, which all models follow"
            )

    def _names(self, rows: NDArray[np.int64] | None, but: Model | None) -> str:
        """Name the models that hold any of some rows, or any rows at all."""
        names = [
            type(model).__name__
            for held, model in self._models()
            if model is not but and (held._unreleased if rows is None else held.live[rows]).any()
        ]
        return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")

    # -- doing ---------------------------------------------------------------------------------

    def _do(
        self,
        kind: type[_Kind],
        table: RecordArrays | None,
        leaving: NDArray[np.int64],
        ids: NDArray[Any],
        *,
        succeeds: bool = False,
    ) -> list[_Kind]:
        asked = self._asked
        models = self._models() if asked is None else [(asked._attached(), asked)]
        if table is None or (table.ids.size == 0 and leaving.size == 0):
            after = before = self._digests(models)
            outcomes = [Outcome("none")] * len(models)
        else:
            for held, model in models:
                _check(model, self._records, table)
                _refuse_few(held, model, leaving, 0 if succeeds else table.ids.size, succeeds)
            for _, model in models:
                model._make_ready()
            before = self._digests(models)
            holders = [held for held, _ in models]
            growth = Growth(self._records, table, holders, leaving, succeeds=succeeds)
            outcomes = carry_out(growth, models)
            after = self._digests(models)
        seconds = time.perf_counter() - self._began
        return [
            kind(
                ids, model.exactness, outcome.action, outcome.counts, outcome.rows_touched,
                first, last, seconds,
            )
            for (_, model), outcome, first, last in zip(
                models, outcomes, before, after, strict=True
            )
        ]  # fmt: skip

    def _digests(self, models: list[tuple[Attachment, Model]]) -> list[str | None]:
        return [model.digest() if self._digest else None for _, model in models]


def _check(model: Model, records: HeldRecords, table: RecordArrays) -> None:
    """Refuse what a model cannot learn from, although the records may hold it."""
    name = type(model).__name__
    if table.ids.size == 0:
        return
    matrix = table.matrix
    has_numbers = isinstance(matrix, np.ndarray) and matrix.dtype != object
    if not (has_numbers and np.isfinite(matrix).all()):  # else the model has learned from one
        refuse_unsuited(model, matrix, np.ones(table.ids.size, bool), records.feature_names)
    if table.weights is not None and not model._takes_weights:
        raise InvalidInputError(
            f"sample_weight was given, of which {name} makes no use; expected none; leave it out"
        )
    if "X" in table.unsettled and model._heeds_objects:
        refuse_rows_without_text(name)
    if "rounded" in table.unsettled and Accepts.of(model).exact:
        refuse_rounded(name)
    if table.y is None or records.y is None:
        return
    same = table.y.dtype == records.y.dtype
    if same and table.y.dtype.kind != "f" and "y" not in table.unsettled:
        return
    requires, classifies = model._info.target_tags(model)
    if requires:
        if "y" in table.unsettled and not model._reads_numbers:
            refuse_mixed_numbers(name)
        if not same or (table.y.dtype.kind == "f" and classifies):
            check_target(model, table.y)


def _refuse_few(
    held: Attachment, model: Model, leaving: NDArray[np.int64], n_new: int, succeeds: bool
) -> None:
    least = model._minimum_records()
    n_gone = 0 if succeeds or not leaving.size else int(np.count_nonzero(held.live[leaving]))
    if (left := held.n_live - n_gone + n_new) < least:
        name, parameter = type(model).__name__, model._minimum_parameter()
        raise too_few(name, least, parameter, left, held.n_live)


def _differing(was: RecordArrays, table: RecordArrays) -> NDArray[np.bool_]:
    """Return which rows have other values in a table than they had."""
    found = _differs(to_dense(was.matrix), to_dense(table.matrix))
    for mine, others in ((was.y, table.y), (was.weights, table.weights)):
        if others is not None:
            found |= _differs(np.ones(others.size) if mine is None else mine, others)
    return found


def _differs(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows differ; NaN does not differ from NaN."""
    differ = np.asarray(one != other, dtype=np.bool_)
    if one.dtype == object:
        kinds = [type(a) is not type(b) for a, b in zip(one.ravel(), other.ravel(), strict=True)]
        differ |= np.array(kinds).reshape(one.shape)
    if not {one.dtype.kind, other.dtype.kind} <= set("biu"):
        differ &= np.asarray((one == one) | (other == other), dtype=np.bool_)
    if differ.ndim == 2:
        differ = np.logical_or.reduce(differ, axis=1)
    return differ


def _is_empty(values: Any) -> bool:
    """Tell whether an array, a frame or a list has no rows."""
    if isinstance(values, str) or values is None:
        return False
    shape = getattr(values, "shape", None)
    return bool(shape[0] == 0 if shape else isinstance(values, Sized) and len(values) == 0)
