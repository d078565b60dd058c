"""Messages about a change that was interrupted: each exception says in what state the change is.

The innermost block knows what it left behind, and a block around it may know better: the last
message counts.
"""

from __future__ import annotations

import traceback

_ANY = "nothing is half-done: look with `erasable status` what was done before you run it again"


def explain(error: BaseException, text: str) -> None:
    """Set the message about the change that an exception interrupted; the last one counts."""
    error.__notes__ = [text]


def explained(error: BaseException) -> str:
    """Return the message of `explain`, or what holds of every change: it is one transaction."""
    notes: list[str] = getattr(error, "__notes__", [])
    return " ".join(notes) or _ANY


def release(error: BaseException) -> None:
    """End the contexts that an interruption left half entered, before anything is undone.

    An interruption between the two steps of `with ledger.transaction()` leaves the transaction open
    for as long as a frame of the traceback refers to it. The next writer waits until it times out.

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
