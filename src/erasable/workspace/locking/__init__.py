"""Claims on parts of a workspace, by a lock of its folder or by leases.

A hook or a retraining command runs while its workspace is locked. A command of erasable in it
would deadlock with the process that holds the lock, so it is refused.
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
"""The claim on the whole workspace."""

REQUESTS = "requests"
"""A process that carries out requests claims this first, then their data sets and models."""

ADMISSION = "admission"
"""Shared while records are added; claimed exclusively to change who is kept out."""

PUBLISHING = "publishing"
"""Claimed by the process that registers models elsewhere."""

STEPS = "steps"
"""Shared by workers that prepare a model for the process that carries out requests."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Data sets and models to be changed and to be read; "*" is the whole workspace."""

    changes: frozenset[str]  # no other process has any of these meanwhile
    reads: frozenset[str]  # no process changes these meanwhile; others may read them

    @classmethod
    def of(cls, changes: Iterable[str] = (), *, reads: Iterable[str] = ()) -> Claim:
        """Make a claim; without arguments, on the whole workspace. Changes include reads."""
        own = frozenset(changes)
        read = frozenset(reads) - own
        return cls(own, read) if own or read else cls(frozenset({WHOLE}), read)

    def __or__(self, other: Claim) -> Claim:
        return Claim.of(self.changes | other.changes, reads=self.reads | other.reads)

    def covers(self, other: Claim) -> bool:
        """Tell whether a holder of this claim has the other, too."""
        if WHOLE in self.changes:
            return True
        return other.changes <= self.changes and other.reads <= self.changes | self.reads


class Lock(Protocol):
    """Grants claims to one process at a time."""

    @property
    def owner(self) -> str:
        """The current holder, for the names of files; empty if there can be only one."""

    def hold(self, claim: Claim, wait: float) -> AbstractContextManager[None]:
        """Hold a claim inside the block; raise WorkspaceBusyError after `wait` seconds."""

    def others(self) -> set[str]:
        """Return the owners of files that are at work now, without our own."""


def datasets(names: Iterable[str]) -> list[str]:
    """Return the names of data sets in a claim."""
    return [f"dataset:{name}" for name in names]


def models(names: Iterable[str]) -> list[str]:
    """Return the names of models in a claim."""
    return [f"model:{name}" for name in names]


_VARIABLE = "ERASABLE_RUN_BY"


def environment(root: Path) -> dict[str, str]:
    """Return the environment of a program that the workspace of a folder runs."""
    outer = os.environ.get(_VARIABLE)
    within = str(root) if outer is None else f"{outer}{os.pathsep}{root}"
    return {**os.environ, _VARIABLE: within}


@contextmanager
def hold(lock: Lock, claim: Claim, wait: float, root: Path) -> Iterator[None]:
    """Hold a claim on the workspace of a folder inside the block; see `Lock.hold`.

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
