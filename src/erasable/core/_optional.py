"""Packages that `pip install erasable` leaves out, and the extras that install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from erasable.core.errors import MissingPackageError

__all__ = ["needs"]


@contextmanager
def needs(extra: str, user: str, *later: str) -> Iterator[None]:
    """Raise MissingPackageError where an import in the block, or a package of `later`, is missing.

    >>> with needs("plots", "a plot"):
    ...     import matplotlib_of_tomorrow
    Traceback (most recent call last):
    erasable.core.errors.MissingPackageError: a plot needs matplotlib_of_tomorrow, which is not
    installed; run `pip install 'erasable[plots]'`
    """
    try:
        yield
        for package in later:
            if find_spec(package) is None:
                raise ModuleNotFoundError(name=package)
    except MissingPackageError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).partition(".")[0]
        if package == "erasable":
            raise
        raise MissingPackageError(
            f"{user} needs {package}, which is not installed; "
            f"run `pip install 'erasable[{extra}]'`",
            name=error.name,
        ) from None
