"""How much memory a computation would take is said before it starts."""

from __future__ import annotations

import os
from pathlib import Path

from erasable.core.errors import InvalidInputError


def available_memory(root: str = "/") -> float:
    """Return the bytes that a process may still take, as far as the system tells; or infinity.

    That is what the machine has left, or the tightest of the control groups that the process is
    in. Files that the system keeps in memory count as free: it gives them up when asked.

    Parameters
    ----------
    root : str, default="/"
        Where the system's own folders are.

    Examples
    --------
    >>> available_memory() > 0
    True
    """
    groups = Path(root, "sys/fs/cgroup")
    free = _of_machine(Path(root))
    for controller, path in _memberships(Path(root)):
        top = groups if controller == "" else groups / "memory"
        # In a container the path may be the host's, which is not there: then the top is ours.
        for folder in {top, *(top.joinpath(*path[: n + 1]) for n in range(len(path)))}:
            free = min(free, _of_group(folder, _FILES[controller]))
    return max(free, 0.0)


_FILES = {
    "": ("memory.max", "memory.current", ("inactive_file", "active_file", "slab_reclaimable")),
    "memory": (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
}
"""Limit, usage and what can be had back of it, by control groups of version 2 and of version 1."""


def _memberships(root: Path) -> list[tuple[str, list[str]]]:
    """Return the control groups that limit the memory of this process: a version, and a path."""
    found: list[tuple[str, list[str]]] = []
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return found
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "" or "memory" in controllers.split(","):
            steps = [step for step in path.split("/") if step and step != ".."]
            found.append(("memory" if controllers else "", steps))
    return found


def _of_group(folder: Path, files: tuple[str, str, tuple[str, ...]]) -> float:
    """Return what a control group may still take; infinity where it has no limit."""
    limit, used, reclaimable = files
    try:
        most, taken = float((folder / limit).read_text()), float((folder / used).read_text())
    except (OSError, ValueError):  # "max", too
        return float("inf")
    try:
        lines = [line.split() for line in (folder / "memory.stat").read_text().splitlines()]
        kept = sum(float(line[1]) for line in lines if line and line[0] in reclaimable)
    except (OSError, ValueError, IndexError):
        kept = 0.0
    return most - max(taken - kept, 0.0)


def _of_machine(root: Path) -> float:
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
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
