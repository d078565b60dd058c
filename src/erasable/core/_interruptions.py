"""What became of a change that was interrupted, for the message about the interruption.

The law kept here: the innermost block knows what it left behind, and a block around it may know
better: what is said last counts.
"""

from __future__ import annotations

import traceback

__all__ = ["explain", "explained", "release"]

_ANY = "nothing is half-done: look with `erasable status` what was done before you run it again"


def explain(error: BaseException, text: str) -> None:
    """Say what became of the change that an exception interrupted; replaces what was said before.

    Examples
    --------
    >>> error = KeyboardInterrupt()
    >>> explain(error, "its requests are in progress")
    >>> explain(error, "its requests are pending again")
    >>> explained(error)
    'its requests are pending again'
    """
    error.__notes__ = [text]


def explained(error: BaseException) -> str:
    """Return what was said, or what holds of every change: it is one transaction.

    Examples
    --------
    >>> explained(KeyboardInterrupt())
    'nothing is half-done: look with `erasable status` what was done before you run it again'
    """
    notes: list[str] = getattr(error, "__notes__", [])
    return " ".join(notes) or _ANY


def release(error: BaseException) -> None:
    """End the contexts that an interruption left half entered, before anything is undone.

    An interruption between the two steps of `with ledger.transaction()` leaves the transaction open
    for as long as a frame of the traceback refers to it. The next writer would wait until it times
    out.

    Examples
    --------
    >>> from contextlib import contextmanager
    >>> @contextmanager
    ... def transaction():
    ...     try:
    ...         yield
    ...     finally:
    ...         print("ended")
    >>> def enter():
    ...     entered = transaction()
    ...     entered.__enter__()
    ...     raise KeyboardInterrupt
    >>> try:
    ...     enter()
    ... except KeyboardInterrupt as error:
    ...     release(error)
    ended
    """
    if not isinstance(error, Exception):
        traceback.clear_frames(error.__traceback__)
