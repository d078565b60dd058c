"""Whether the file that is being read is the caller's own, or may be anybody's.

A state of another library can crash the process when it is brought back: compiled code follows
the indices in it unchecked. What holds such states asks here whether it may take one as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from erasable.core.errors import ArtifactError

__all__ = ["TRUSTED", "Naming", "Origin", "origin", "reading"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a state comes from.

    Attributes
    ----------
    trusted : bool
        Whether it is taken as it is: a copy, a pickle, or a file for which the caller answers.
    with_records : bool
        Whether the records follow, of which the model can be fitted again.

    Examples
    --------
    >>> origin() == Origin(trusted=True, with_records=False)
    True
    """

    trusted: bool
    with_records: bool

    def refuse(self, what: str, reason: str) -> None:
        """Raise ArtifactError for a state that is neither checked nor can be fitted again.

        Examples
        --------
        >>> Origin(trusted=False, with_records=True).refuse("SVC", "it is not checked")
        >>> Origin(trusted=False, with_records=False).refuse("SVC", "it is not checked")
        Traceback (most recent call last):
        erasable.core.errors.ArtifactError: the file holds a fitted SVC that may be anything: ...
        """
        if not (self.trusted or self.with_records):
            raise ArtifactError(
                f"the file holds a fitted {what} that may be anything: {reason}; expected one that "
                "can be checked; pass load(path, records) to have it fitted again, or "
                "load(path, trusted=True) if the file is your own"
            )


TRUSTED = Origin(trusted=True, with_records=False)
_ORIGIN: ContextVar[Origin] = ContextVar("erasable_origin", default=TRUSTED)


def origin() -> Origin:
    """Return where the state that is being restored comes from; by default it is trusted.

    Examples
    --------
    >>> origin().trusted
    True
    """
    return _ORIGIN.get()


@contextmanager
def reading(trusted: bool, with_records: bool) -> Iterator[None]:
    """Restore a state from a file.

    Examples
    --------
    >>> with reading(trusted=False, with_records=True):
    ...     origin()
    Origin(trusted=False, with_records=True)
    >>> origin() == TRUSTED
    True
    """
    token = _ORIGIN.set(Origin(trusted, with_records))
    try:
        yield
    finally:
        _ORIGIN.reset(token)


class Naming:
    """An estimator with parameters that name functions, which it calls.

    Files may hold such an estimator. Of a file that is not the caller's own it is asked whether the
    functions may be called.

    Examples
    --------
    >>> Naming().refuse_in_file()
    """

    def refuse_in_file(self) -> None:
        """Raise ArtifactError for a function that a file must not name."""
