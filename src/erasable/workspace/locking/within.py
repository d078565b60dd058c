"""Refuse what a program of the user's asks of the workspace that runs it, and waits for its end.

A hook or a retraining command runs while its workspace is locked. A command of erasable in it would
wait for the lock, and the process that holds the lock would wait for the command.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from erasable.core.errors import WorkspaceBusyError, WorkspaceError
from erasable.workspace.locking.claims import Claim, Lock

_VARIABLE = "ERASABLE_RUN_BY"


def environment(root: Path) -> dict[str, str]:
    """Return the environment of a program that the workspace of a folder runs."""
    outer = os.environ.get(_VARIABLE)
    within = str(root) if outer is None else f"{outer}{os.pathsep}{root}"
    return {**os.environ, _VARIABLE: within}


@contextmanager
def hold(lock: Lock, claim: Claim, wait: float, root: Path) -> Iterator[None]:
    """Have a claim on the workspace of a folder inside the block; see `Lock.hold`.

    Raises
    ------
    WorkspaceBusyError
        Others have some of it for longer than `wait` seconds.
    WorkspaceError
        They have some of it, and the workspace runs this program.
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
