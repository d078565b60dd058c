"""Who may change what of a workspace, and who waits: a lock of its folder, or leases."""

from erasable.workspace.locking.claims import (
    ADMISSION,
    PUBLISHING,
    REQUESTS,
    STEPS,
    WHOLE,
    Claim,
    Lock,
    datasets,
    models,
)
from erasable.workspace.locking.folder import FolderLock
from erasable.workspace.locking.within import environment, hold

__all__ = [
    "ADMISSION",
    "PUBLISHING",
    "REQUESTS",
    "STEPS",
    "WHOLE",
    "Claim",
    "FolderLock",
    "Lock",
    "datasets",
    "environment",
    "hold",
    "models",
]
