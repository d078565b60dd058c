"""Claims on parts of a workspace, by a lock of its folder or by leases.

A hook or a retraining command runs while its workspace is locked. A command of erasable in it would
wait for the lock, and the process that holds the lock would wait for the command: it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from erasable.core.errors import WorkspaceBusyError, WorkspaceError

WHOLE = "*"
"""Stands for all there is, and all there may be."""

REQUESTS = "requests"
"""A process that carries out requests claims this first, then what the requests concern."""

ADMISSION = "admission"
"""Shared while records are added; claimed exclusively to change who is kept out."""

PUBLISHING = "publishing"
"""Claimed by the process that registers models elsewhere."""

STEPS = "steps"
"""Shared by workers that prepare a model for the process that carries out requests."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is changed, and what is only read; nothing at all stands for the whole workspace.

    Attributes
    ----------
    changes : frozenset of str
        No other process has any of these meanwhile.
    reads : frozenset of str
        No process changes these meanwhile; others may read them, too.

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
        """Tell whether a holder of this claim has the other, too.

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
        """The holder of a claim now, for the names of files; empty where there can be but one."""

    def hold(self, claim: Claim, wait: float) -> AbstractContextManager[None]:
        """Have a claim inside the block; raise WorkspaceBusyError after `wait` seconds."""

    def others(self) -> set[str]:
        """Return the owners of files that are at work now, without our own."""


def datasets(names: Iterable[str]) -> list[str]:
    """Return what data sets are called in a claim."""
    return [f"dataset:{name}" for name in names]


def models(names: Iterable[str]) -> list[str]:
    """Return what models are called in a claim."""
    return [f"model:{name}" for name in names]


_VARIABLE = "ERASABLE_RUN_BY"


def environment(root: Path) -> dict[str, str]:
    """Return the environment of a program that the workspace of a folder runs."""
    outer = os.environ.get(_VARIABLE)
    within = str(root) if outer is None else f"{outer}{os.pathsep}{root}"
    return {**os.environ, _VARIABLE: within}


@contextmanager
def hold(lock: Lock, claim: Claim, wait: float, root: Path) -> Iterator[None]:
    """Have a claim on the workspace of a folder inside the block; see `Lock.hold`.

    Raise WorkspaceError if others have it and the workspace runs this program.
    """
    is_within = str(root) in os.environ.get(_VARIABLE, "").split(os.pathsep)
    with ExitStack() as held:
        try:
            held.enter_context(lock.hold(claim, 0.0 if is_within else wait))
        except WorkspaceBusyError:
            if not is_within:
                raise
            raise WorkspaceError(
                "this command was run by a hook or command of the workspace that it is for, which "
                "waits for its end; expected one that only looks, or takes a request in; run it "
                "after that command"
            ) from None
        yield
