"""What both kinds of ledger complain of, in the same words."""

from __future__ import annotations

from erasable.core.errors import LedgerError, WorkspaceDiskError


def no_disk(message: str) -> WorkspaceDiskError:
    """Return the error of a disk that fails.

    Examples
    --------
    >>> str(no_disk("No space left on device"))[:63]
    'the ledger cannot be written or read (No space left on device);'
    """
    return WorkspaceDiskError(
        f"the ledger cannot be written or read ({message}); expected a working disk with free "
        "space; mend that and run the command again"
    )


def broken(message: str) -> LedgerError:
    """Return the error of a ledger that is damaged, or none.

    Examples
    --------
    >>> str(broken("file is not a database"))[:55]
    'the ledger is damaged or is not a ledger (file is not a'
    """
    return LedgerError(
        f"the ledger is damaged or is not a ledger ({' '.join(message.split())}); expected one "
        "made by `erasable init`; restore it from a backup"
    )
