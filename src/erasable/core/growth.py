"""More rows in records, and other rows in the place of some: prepared, done, and undone.

A new row takes the place of one that was erased, or comes at the end, where there may be room
that was left for it. A buffer that becomes too small is copied into a larger one, and overwritten.
Everything is done twice without harm, since Python may break off at any line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from erasable.core.additions import joined_names
from erasable.core.arrays import Flags, Ints
from erasable.core.attachment import Attachment
from erasable.core.inputs import Table
from erasable.core.lookup import HashIndex, IdIndex
from erasable.core.mapped.texts import Texts, as_array
from erasable.core.row_arrays import begins, padded
from erasable.core.sparse import blank_of, blank_rows, overwrite, parts

if TYPE_CHECKING:
    from erasable.core.records import Records

__all__ = ["Growth"]

_SPARE = 1 / 8  # of the rows, are made beside those that are needed
_LEAST = 16


class Growth:
    """Rows that come to records, and those that leave with them.

    Parameters
    ----------
    records : Records
    table : Table
        What comes, of the types that all rows together are to have.
    holders : list of Attachment
        Those that hold the new rows from then on.
    leaving : ndarray of int64, or None
        Rows that leave; they can be read until `finish`.
    succeeds : bool
        Whether each new row takes the place of the one that leaves, for those that hold that.

    Attributes
    ----------
    rows : ndarray of shape (n_new,), int64
        Where the new rows are.
    plain : bool
        Whether no type of any array changes, and a model need not learn everything again.

    Examples
    --------
    >>> from erasable import Records
    >>> from erasable.core.additions import read_addition
    >>> records = Records([[1.0], [2.0]], ids=["a", "b"])
    >>> held = records.attach()
    >>> growth = Growth(records, read_addition(records, [[3.0]], None, None, ["c"], None), [held])
    >>> growth.begin()
    >>> rows = growth.arrive(held)
    >>> growth.finish()
    >>> records.matrix.tolist(), held.ids
    ([[1.0], [2.0], [3.0]], array(['a', 'b', 'c'], dtype=object))
    """

    def __init__(
        self,
        records: Records,
        table: Table,
        holders: list[Attachment],
        leaving: Ints | None = None,
        *,
        succeeds: bool = False,
    ) -> None:
        self._records, self._table, self._holders = records, table, holders
        self.leaving = np.empty(0, dtype=np.int64) if leaving is None else leaving
        self._succeeds = succeeds
        n, n_new = records.n_rows, table.matrix.shape[0]
        free = _first(records._erased, n_new)
        n_more = n_new - free.size
        self.rows: Ints = np.concatenate([free, np.arange(n, n + n_more)]) if n_more else free
        self._n_rows = n + n_more
        self.plain = (
            records.matrix.dtype == table.matrix.dtype
            and (records.y is None or table.y is None or records.y.dtype == table.y.dtype)
            and (table.weights is None or records.weights is not None)
        )
        self._before = dict(records.__dict__)
        self._held = [(each, dict(each.__dict__)) for each in holders]
        self._others = [
            each
            for each in (holder() for holder in records._holders)
            if each is not None and not any(each is one for one in holders)
        ]
        self._held += [(each, dict(each.__dict__)) for each in self._others]
        self._was_live = {id(each): each.live[self.leaving] for each, _ in self._held}
        self._made: list[Any] = []  # buffers with new rows alone or a copy of all
        self._left: list[Any] = []  # buffers that are to be overwritten

    # -- doing ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Have room for the new rows, and take those that leave out of what is held."""
        records, table = self._records, self._table
        spare = dict(records._spare)
        weights = table.weights
        if weights is None and records.weights is not None:
            weights = np.ones(self.rows.size)
        present = records.weights
        if present is None and weights is not None:
            present = np.ones(records.n_rows)
        ids, groups = _joined(records.ids, table.ids), records.groups
        if groups is not None and table.groups is not None:
            groups = _joined(groups, table.groups)
        y = records.y
        if y is not None and table.y is not None:
            y = y.astype(table.y.dtype, copy=False)
        matrix = records.matrix.astype(table.matrix.dtype, copy=False)
        new = {
            "matrix": self._stacked(matrix) if issparse(matrix) else None,
            "ids": self._with("ids", ids, table.ids, spare),
            "y": self._with("y", y, table.y, spare),
            "weights": self._with("weights", present, weights, spare),
            "groups": self._with("groups", groups, table.groups, spare),
        }
        if new["matrix"] is None:
            new["matrix"] = self._with("matrix", matrix, table.matrix, spare)
        for name, array in new.items():
            old = self._before[name]
            if old is not None and old is not array:
                self._left += [each for each in _memory(old) if not _shares(each, array)]
        flags = {name: self._flags(self._before[name]) for name in ("_withdrawn", "_erased")}
        changed = {**new, **flags, "unsettled": table.unsettled, "_spare": spare}
        index = records._id_index
        if isinstance(index, IdIndex):
            if self.rows.size:
                index.add(self.rows, self._table.ids.tolist(), ids, records._erased)
        elif isinstance(index, HashIndex) and records.ids.dtype == ids.dtype:
            changed["_id_index"] = index.grown(new["ids"], self.rows, table.ids)
        else:
            changed["_id_index"] = None
        forgotten = dict.fromkeys(["_id_set", "_group_index", "source", "_cells"])
        records.__dict__.update({**changed, **forgotten})
        for held, was in self._held:
            live, leaving = self._flags(was["live"]), self.leaving_of(held)
            if leaving.size:
                live[leaving] = False
            n_live = was["n_live"] - int(leaving.size)
            unreleased = self._flags(was["_unreleased"])
            held.__dict__.update(live=live, n_live=n_live, _unreleased=unreleased)

    def arrive(self, held: Attachment) -> Ints:
        """Have a model hold the new rows; return them."""
        rows = self.rows_of(held)
        held._unreleased[rows] = True
        if held.live[rows].any():
            held.readmit(rows)  # where that was begun before
        else:
            held.admit(rows)
        return rows

    def rows_of(self, held: Attachment) -> Ints:
        """Return the new rows that a model is to hold, ascending."""
        rows = self.rows
        if self._succeeds:
            rows = rows[self._was_live[id(held)]]
        return _ascending(rows)

    def leaving_of(self, held: Attachment) -> Ints:
        """Return the rows that leave a model, ascending."""
        leaving = self.leaving
        return leaving if leaving.size == 0 else _ascending(leaving[self._was_live[id(held)]])

    def finish(self) -> None:
        """Overwrite what was left, once all models have followed."""
        if self.leaving.size:
            for held, _ in self._held:
                held._unreleased[self.leaving] = False
            self._records._let_go(self.leaving)
        for buffer in self._left:
            overwrite(buffer)

    def undo(self) -> None:
        """Put everything back; models still have to learn again."""
        records = self._records
        records.__dict__.update({**self._before, "_id_index": None, "_group_index": None})
        inside = self.rows[self.rows < records.n_rows]
        for held, was in self._held:
            held.__dict__.update(was)
            held.live[inside] = held._unreleased[inside] = False
            held.live[self.leaving_of(held)] = True
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

    def _flags(self, flags: Flags) -> Flags:
        """Return flags with room for the new rows, which are not set."""
        longer: Flags = padded(flags, self._n_rows, keep=True)
        longer[self.rows] = False
        return longer

    def _stacked(self, matrix: csr_array) -> csr_array:
        """Put new rows where they are to be; rows that were erased take no room any more."""
        n, n_new = matrix.shape[0], self.rows.size
        source = np.full(self._n_rows, n + n_new)  # a row without values
        present = np.flatnonzero(~self._records._erased)
        source[present], source[self.rows] = present, n + np.arange(n_new)
        blank = csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
        made = csr_array(vstack([matrix, self._table.matrix, blank], format="csr")[source])
        made.has_canonical_format = True
        self._made += _memory(made)
        return made

    def _with(self, name: str, array: Any, arriving: Any, spare: dict[str, Any]) -> Any:
        """Return an array with the new rows, in its own buffer where that has room."""
        if array is None:
            return None
        n = self._n_rows
        if isinstance(array, Texts):
            grown = array.grown(n, self.rows, arriving.tolist())
            self._made += _memory(grown)
            return grown
        buffer = spare.get(name)
        if array.shape[0] == n and array is self._before[name]:
            made = array
        elif buffer is not None and begins(array, buffer) and buffer.shape[0] >= n:
            made = buffer[:n]
        else:
            size = n if array.shape[0] == n else n + max(_LEAST, int(n * _SPARE))
            buffer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
            if array.dtype == object:
                buffer[...] = ""
            self._made.append(buffer)
            buffer[: array.shape[0]] = array
            made, spare[name] = buffer[:n], buffer
        made[self.rows] = arriving.astype(array.dtype, copy=False)
        return made


_ARRAYS = ("matrix", "ids", "y", "weights", "groups")


def _first(flags: Flags, n: int) -> Ints:
    """Return the first places that are set, at most n."""
    if n != 1:
        return np.flatnonzero(flags)[:n]
    at = int(flags.argmax())  # which stops at the first
    return np.array([at] if flags[at] else [], dtype=np.int64)


def _ascending(rows: Ints) -> Ints:
    return rows if rows.size < 2 else np.sort(rows)


def _joined(some: Any, others: NDArray[Any]) -> Any:
    """Return ids or groups in the type that they have together with others."""
    if isinstance(some, Texts):
        if set(map(type, others.tolist())) <= {str}:
            return some
        some = as_array(some)
    return some.astype(joined_names(some, others), copy=False)


def _memory(array: Any) -> list[NDArray[Any]]:
    """Return the arrays that hold what is to be overwritten."""
    if isinstance(array, Texts):
        return array.parts()
    return list(parts(array)) if issparse(array) else [array]


def _shares(buffer: NDArray[Any], array: Any) -> bool:
    return array is not None and any(np.may_share_memory(buffer, one) for one in _memory(array))
