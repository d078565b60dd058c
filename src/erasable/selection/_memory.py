"""How much memory a computation would take is said before it starts."""

from __future__ import annotations

import os

from erasable.core.errors import InvalidInputError

__all__ = ["available_memory", "check_memory"]


def available_memory() -> float:
    """Return the bytes that a process may still take, as far as the system tells; or infinity.

    Examples
    --------
    >>> available_memory() > 0
    True
    """
    free = _available()
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            with open(limit) as most, open(used) as taken:
                free = min(free, float(most.read()) - float(taken.read()))
        except (OSError, ValueError):
            continue
    return free


def _available() -> float:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable"):
                    return 1024.0 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def check_memory(needed: float, what: str, advice: str) -> None:
    """Refuse what would not fit into memory.

    Raises
    ------
    InvalidInputError
        It needs more than there is.

    Examples
    --------
    >>> check_memory(1e18, "a matrix", "take fewer records")
    Traceback (most recent call last):
    erasable.core.errors.InvalidInputError: a matrix would take 931,322,574.6 GiB, and ...
    """
    free = available_memory()
    if needed > free:
        raise InvalidInputError(
            f"{what} would take {needed / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are free; "
            f"expected it to fit; {advice}"
        )
