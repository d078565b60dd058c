"""What raises leaves estimators as they were."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from erasable.core.stateful import Stateful


class AllOrNothing:
    """Gives estimators the attributes back that they had, where something is raised.

    It is entered twice, so that an interruption while they get them back is the first that counts.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> scaler = MinMaxScaler().fit([[1.0], [2.0]])
    >>> unchanged = AllOrNothing([scaler])
    >>> with unchanged, unchanged:
    ...     scaler.fit([])
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: ...
    >>> len(scaler.ids_)
    2
    """

    def __init__(self, estimators: Iterable[Stateful]) -> None:
        self._before = [(each, dict(each.__dict__)) for each in estimators]

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Undo what was raised meanwhile."""
        if kind is not None:
            for each, attributes in self._before:
                each.__dict__ = attributes
