"""What somebody wants to have for themselves, or to read while nobody changes it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

WHOLE = "*"
"""Stands for all there is, and all there may be."""

REQUESTS = "requests"
"""Whoever carries out requests claims this, and then what they concern."""

ADMISSION = "admission"
"""Whoever lets records in reads this meanwhile; whoever says who is kept out claims it."""

PUBLISHING = "publishing"
"""Whoever registers models elsewhere claims this."""

STEPS = "steps"
"""Whoever prepares a model for whoever carries out requests reads this meanwhile."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is changed, and what is only read; nothing at all stands for the whole workspace.

    Attributes
    ----------
    changes : frozenset of str
        Nobody else has any of these meanwhile.
    reads : frozenset of str
        Nobody changes these meanwhile; others may read them, too.

    Examples
    --------
    >>> Claim.of(models(["risk"]), reads=datasets(["visits"]))
    Claim(changes=frozenset({'model:risk'}), reads=frozenset({'dataset:visits'}))
    >>> Claim.of().changes
    frozenset({'*'})
    """

    changes: frozenset[str]
    reads: frozenset[str]

    @classmethod
    def of(cls, changes: Iterable[str] = (), *, reads: Iterable[str] = ()) -> Claim:
        """Make a claim; what is changed need not be said to be read, too."""
        own = frozenset(changes)
        read = frozenset(reads) - own
        return cls(own, read) if own or read else cls(frozenset({WHOLE}), read)

    def covers(self, other: Claim) -> bool:
        """Tell whether who has this one has the other, too.

        Examples
        --------
        >>> small = Claim.of(["model:risk"])
        >>> Claim.of().covers(small), small.covers(Claim.of())
        (True, False)
        """
        if WHOLE in self.changes:
            return True
        return other.changes <= self.changes and other.reads <= self.changes | self.reads


class Lock(Protocol):
    """Lends what is claimed to one process at a time."""

    @property
    def owner(self) -> str:
        """Who holds a claim now, for the names of their files; empty where there can be but one."""

    def hold(self, claim: Claim, wait: float) -> AbstractContextManager[None]:
        """Have a claim inside the block.

        Raises
        ------
        WorkspaceBusyError
            Others have some of it for longer than `wait` seconds.
        """

    def others(self) -> set[str]:
        """Return the owners of files who are at work now, but for ourselves."""


def datasets(names: Iterable[str]) -> list[str]:
    """Return what data sets are called in a claim."""
    return [f"dataset:{name}" for name in names]


def models(names: Iterable[str]) -> list[str]:
    """Return what models are called in a claim."""
    return [f"model:{name}" for name in names]
