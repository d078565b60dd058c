"""The origin of a state that is being restored: the caller's own, or a file that may be anybody's.

A state of another library can crash the process: compiled code follows the indices in it
unchecked. Estimators that hold such states ask here whether they may take one as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from erasable.core.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a state."""

    trusted: bool  # taken as it is: a copy, a pickle, or a file for which the caller answers
    with_records: bool  # the records follow, of which the model can be fitted again

    def refuse(self, what: str, reason: str) -> None:
        """Raise ArtifactError for a state that is neither checked nor can be fitted again."""
        if not (self.trusted or self.with_records):
            raise ArtifactError(
                f"the file holds a fitted {what} that may be anything: {reason}; expected one that "
                "can be checked; pass load(path, records) to have it fitted again, or "
                "load(path, trusted=True) if the file is your own"
            )


TRUSTED = Origin(trusted=True, with_records=False)
_ORIGIN: ContextVar[Origin] = ContextVar("erasable_origin", default=TRUSTED)


def origin() -> Origin:
    """Return the origin of the state that is being restored; by default it is trusted."""
    return _ORIGIN.get()


@contextmanager
def reading(trusted: bool, with_records: bool) -> Iterator[None]:
    """Restore a state from a file within this context."""
    token = _ORIGIN.set(Origin(trusted, with_records))
    try:
        yield
    finally:
        _ORIGIN.reset(token)


class Naming:
    """An estimator with parameters that name functions, which it calls.

    A file that is not the caller's own may hold one only if its functions may be called.
    """

    def refuse_in_file(self) -> None:
        """Raise ArtifactError for a function that a file must not name."""
