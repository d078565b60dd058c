"""The half of records that lets others join them, and corrects them, in all models at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from erasable.core._adding import RecordsChange
from erasable.core.deletion import Addition, Correction, Replacement
from erasable.core.kept import Kept

if TYPE_CHECKING:
    from erasable.core.records import Records

__all__ = ["GrowingRecords"]


class GrowingRecords(Kept):
    """The half of `Records` that changes with all models that hold them, or with none.

    Examples
    --------
    >>> from erasable import Records
    >>> records = Records([[1.0], [2.0]], ids=["a", "b"])
    >>> reports = records.add([[4.0]], ids=["c"])
    >>> len(records), reports
    (3, [])
    """

    @abstractmethod
    def _grown(self) -> Records:
        """Return the records themselves."""

    def add(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any],
        groups: str | Iterable[Any] | None = None,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> list[Addition]:
        """Add records, which all models that hold these learn from: all, or none of them.

        Parameters and errors are those of `Erasable.add`.

        Returns
        -------
        list of Addition
            One for each model, in the order in which they were fitted.

        Examples
        --------
        >>> from erasable.preprocessing import MaxAbsScaler, MinMaxScaler
        >>> from erasable import Records
        >>> records = Records([[1.0], [2.0]], ids=["a", "b"])
        >>> models = [scaler.fit(records) for scaler in (MinMaxScaler(), MaxAbsScaler())]
        >>> reports = records.add([[4.0]], ids=["c"])
        >>> len(reports), [model.transform([[2.0]]).item() for model in models]
        (2, [0.3333333333333333, 0.5])
        """
        return RecordsChange(self._grown(), None, digest=digest).add(X, y, sample_weight, ids, groups)

    def correct(
        self,
        ids: Iterable[Any],
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> list[Correction]:
        """Correct records in all models that hold them; see `add` and `Erasable.correct`.

        Examples
        --------
        >>> from erasable import Records
        >>> records = Records([[1.0], [2.0]], ids=["a", "b"])
        >>> records.correct(["a"], [[5.0]])
        []
        >>> records.attach().ids, records.take(records.attach().rows(["a"])).matrix
        (array(['b', 'a'], dtype=object), array([[5.]]))
        """
        return RecordsChange(self._grown(), None, digest=digest).correct(ids, X, y, sample_weight)

    def replace(
        self,
        delete: Iterable[Any],
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any],
        groups: str | Iterable[Any] | None = None,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> list[Replacement]:
        """Delete records and add others in all models; see `add` and `Erasable.replace`.

        Examples
        --------
        >>> from erasable import Records
        >>> records = Records([[1.0], [2.0]], ids=["a", "b"])
        >>> records.replace(["a"], [[5.0]], ids=["c"])
        []
        >>> records.attach().ids
        array(['b', 'c'], dtype=object)
        """
        change = RecordsChange(self._grown(), None, digest=digest)
        return change.replace(delete, X, y, sample_weight, ids, groups)
