"""Available memory, and refusal of computations that would not fit into it."""

from __future__ import annotations

import os
from pathlib import Path

from erasable.core.errors import InvalidInputError


def available_memory(root: str = "/") -> float:
    """Return the bytes that the process may still take, as far as the system tells; or infinity.

    This is the least of what the machine and each control group of the process have left. Files
    that the system caches in memory count as free.
    """
    groups = Path(root, "sys/fs/cgroup")
    free = _of_machine(Path(root))
    for controller, path in _memberships(Path(root)):
        top = groups if controller == "" else groups / "memory"
        # In a container the path may be the host's and not exist: then the top group is ours.
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
    """Return the control groups that limit the memory of this process, as (version, path)."""
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
    """Return how many bytes a control group may still take; infinity where it has no limit."""
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
    """Raise InvalidInputError for a computation that needs more bytes than are available."""
    free = available_memory()
    if needed > free:
        raise InvalidInputError(
            f"{what} would take {needed / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are free; "
            f"expected it to fit; {advice}"
        )
