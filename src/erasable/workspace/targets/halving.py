"""Changes of a lake beside other writers: of all its files at once, or of fewer.

A commit conflicts with what others have added or replaced since, where its predicate may be true of
it. So a predicate has the ranges of the columns of its files, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Ranges = Mapping[str, tuple[Any, Any]]
"""The least and the greatest value of columns of a file that have no null."""


def hull(files: Sequence[Ranges]) -> dict[str, tuple[Any, Any]]:
    """Return the ranges of several files together, of the columns that all of them have.

    >>> hull([{"id": (1, 5), "day": (2, 2)}, {"id": (4, 9)}])
    {'id': (1, 9)}
    """
    names = set[str]().union(*files).intersection(*files)
    return {
        name: (min(each[name][0] for each in files), max(each[name][1] for each in files))
        for name in sorted(names)
    }


def change_by_halves(
    files: Sequence[Ranges], change: Callable[[Sequence[Ranges]], bool], n_attempts: int
) -> bool:
    """Change the rows of files, of half of them where another writer was faster.

    `change` returns whether nobody was; of one file it is tried several times.
    """
    if len(files) < 2:
        return any(change(files) for _ in range(n_attempts))
    if change(files):
        return True
    half = len(files) // 2
    return all(change_by_halves(some, change, n_attempts) for some in (files[:half], files[half:]))
