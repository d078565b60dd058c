"""Settings of torch: one at a time in a process, whatever the process has set before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

_lock = RLock()  # torch's settings and its generator are those of the process


def _renew_lock() -> None:
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):  # the thread that held it is not in the child
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def settled(threads: int | None = None) -> Iterator[None]:
    """Apply settings of torch, on so many threads; other calls wait."""
    with _lock:
        before, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        if threads is not None:
            torch.set_num_threads(threads)
        try:
            with torch.autocast("cpu", enabled=False):
                yield
        finally:
            torch.set_num_threads(before)
            torch.set_float32_matmul_precision(precision)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Make torch draw from a generator of this seed, by deterministic algorithms."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        exact = torch.are_deterministic_algorithms_enabled()
        warned = torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(exact, warn_only=warned)


def kind_of_machine() -> tuple[str, str]:
    """Return the version of torch, and the instructions of the processor that it uses."""
    return str(torch.__version__), torch.backends.cpu.get_cpu_capability()
