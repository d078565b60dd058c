"""Base of lazy models, whose state is their records; they compute at prediction."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from erasable.core._changing import not_its_records
from erasable.core._schema import Array, Fields, FieldType, Sizes, refuse
from erasable.core.arrays import Floats, Ints
from erasable.core.attachment import Attachment, HeldRecords
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import ErasableError, MagnitudeError
from erasable.core.estimator import Erasable
from erasable.core.ids import as_id_array
from erasable.core.records import Records
from erasable.core.values import refuse_unsuited
from erasable.core.weighted import Weighted

from ._memory import Memory
from ._stored import StoredMemory
from ._targets import LARGEST, StoredLabels, StoredNumbers, StoredWeights


class _Ids(FieldType):
    """Ids of records: integers, or integers and strings, each once."""

    def check(self, value: Any, at: str, sizes: Sizes) -> None:
        """See `FieldType.check`."""
        kind = value.dtype.name if isinstance(value, np.ndarray) else ""
        if kind in ("int64", "uint64"):
            Array(kind, ("n_records",)).check(value, at, sizes)
            ordered = np.sort(value)
            repeats = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
        elif kind == "object" and value.shape == (sizes["n_records"],):
            try:
                repeats = value.size - len(set(as_id_array(value.tolist()).tolist()))
            except (TypeError, ValueError):
                refuse(at, "other things", "integers and strings")
        else:
            refuse(at, value, f"an array of {sizes['n_records']} integers or strings")
        if repeats:
            refuse(at, f"{repeats} ids twice", "each once")


_RECORDS = Fields(
    {
        "X": Array("float64", ("n_records", "n_features"), least=-LARGEST, most=LARGEST),
        "ids": _Ids(),
    }
)
_LEAST_SCALE = 2.0**-500


class Lazy(Erasable):
    """Base of models that keep their records and learn nothing from them.

    The state is the records themselves, in an order of their own, so that a model can predict
    from its file, and a file holds every record. A subclass says what its targets are, numbers
    by default, and answers from ``_memory``.

    Where the model stands behind an affine step of a pipeline, it keeps the records before that
    step, and measures in the metric of those after it: ``_map`` is the step's (shift, scale).

    When half of the records that `fit` copied are gone, what is left is copied together, and the
    memory of the others is free. `Records` that others may hold, those of a user, a pipeline or a
    pickle, are not touched: there a deleted row is blank until they are let go.
    """

    _refit_from: ClassVar[tuple[int, float]] = (1000, 0.5)

    _takes_map: ClassVar[bool] = True
    _kind_of_targets: ClassVar[type[StoredLabels | StoredNumbers]] = StoredNumbers
    _owns_records: bool = False
    _restored: Memory | None = None

    # -- keeping and forgetting ----------------------------------------------------------------

    def _read_records(self, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any) -> Records:
        records = super()._read_records(X, y, sample_weight, ids, groups)
        self._owns_records = records is not X
        return records

    def _fit_rows(self) -> None:
        self._accelerator = self._memory_of(self._attached())

    def _targets(self, records: HeldRecords) -> NDArray[Any]:
        """Return what is kept of each row beside its values."""
        assert records.y is not None
        return records.y

    def _memory_of(self, held: Attachment) -> Memory:
        records, rows = held.records, held.live_rows()
        kind = StoredMemory if records.is_stored else Memory
        kind.refuse_large(records.matrix, rows, self._n_jobs)
        targets = self._kind_of_targets.fit(self._targets(records), rows)
        return kind(records.matrix, records.ids, held.live, targets)

    def _end_change(self) -> None:
        with contextlib.suppress(MemoryError):  # there is no hurry
            self._compact()

    def _update(self, delta: Delta) -> Outcome | None:
        held, memory, arriving = self._attached(), self._accelerator, delta.arriving
        records = held.records
        if delta.moved:
            memory.take_arrays(records.matrix, records.ids, held.live)
        if delta.leaving.size:
            memory.remove(delta.leaving)
        if arriving.size:
            Memory.refuse_large(records.matrix[arriving], np.arange(arriving.size))
            if not memory.add(self._targets(records), arriving):
                return None
        return Outcome("updated")

    def _compact(self) -> None:
        """Copy the live rows of the model's own records together, once half of them are gone."""
        held = self._attached()
        if not self._owns_records or 2 * held.n_live > held.records.n_rows:
            return
        rows = held.live_rows()
        fresh = held.copy_records().attach().of(self)
        fresh.vouched = held.vouched
        records = fresh.records
        memory = self._accelerator.moved(records.matrix, records.ids, fresh.live, rows)
        self.__dict__ = {**self.__dict__, "_held": fresh, "_accelerator": memory}

    @property
    def _memory(self) -> Memory:
        self._check_fitted()
        return self._accelerator if self._restored is None else self._restored

    def _schema(self) -> Fields:
        return Fields({"records": _RECORDS.joined(self._kind_of_targets.schema)})

    def _state(self) -> dict[str, Any]:
        return {"records": self._memory.state()}

    def _digest_state(self) -> dict[str, Any]:
        return self._memory.digest_state()

    def _pickled_state(self, held: Attachment | None) -> dict[str, Any]:
        """Leave out the records where a hold on them is kept, which says the same."""
        return self._state() if held is None else {}

    def _restore(self, state: dict[str, Any]) -> None:
        if self._held is None:
            found = state["records"]
            self._restored = Memory.from_state(found, self._kind_of_targets.from_state(found))
        else:
            self._accelerator = self._memory_of(self._held)

    def _reattach(self) -> None:
        held, memory = self._attached(), None
        with contextlib.suppress(ErasableError):
            refuse_unsuited(self, held.records.matrix, held.live, held.records.feature_names)
            memory = self._memory_of(held)
        if memory is None or not (held.vouched or memory.equals(self._memory)):
            raise not_its_records(self)
        self._accelerator, self._restored = memory, None

    @property
    def ids_(self) -> NDArray[Any]:
        """Ids of the records the model holds: in row order, or, without records, in its own.

        Returns
        -------
        ndarray of shape (n_records,), int64, uint64 or object
        """
        self._check_fitted()
        return super().ids_ if self._restored is None else self._restored.ids.copy()

    @property
    def n_samples_fit_(self) -> int:
        """Number of records the model holds."""
        return int(np.count_nonzero(self._memory.live))

    # -- asking --------------------------------------------------------------------------------

    def _read_queries(self, X: Any) -> Floats:
        """Read rows into the space of the records: those that come mapped are mapped back."""
        matrix = self._read_matrix(X)
        if self._comes_mapped(X):
            with np.errstate(over="ignore"):  # too far off, and refused as such
                matrix = self._unmapped(matrix)
        return np.ascontiguousarray(matrix, dtype=np.float64)

    @property
    def _inverse(self) -> Floats | None:
        """What a difference in a feature is multiplied by, where it is not 1."""
        if self._map is None:
            return None
        return 1.0 / np.maximum(self._map.scale, _LEAST_SCALE)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class WeightedLazy(Weighted, Lazy):
    """Base of the models that keep records with weights, in the place of targets."""

    _kind_of_targets = StoredWeights
    _reads_blocks = True
    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)

    def _targets(self, records: HeldRecords) -> NDArray[Any]:
        return np.ones(records.n_rows) if records.weights is None else records.weights

    def _fit_rows(self) -> None:
        self._refuse_weightless(np.empty(0, dtype=np.int64))
        super()._fit_rows()

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)


def refuse_far(far: Any) -> None:
    """Raise MagnitudeError if a query has no record at a distance that is a finite number."""
    if far.any():
        raise MagnitudeError(
            f"{int(far.sum())} rows of X are so far from the records that distances overflow; "
            "expected finite distances; scale X, or drop those rows"
        )
