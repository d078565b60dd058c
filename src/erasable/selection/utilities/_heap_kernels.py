"""Kernels of a heap of records by upper bounds of their gains; ties go to the lower number."""

from __future__ import annotations

from erasable.core._jit import borrowing, inlined
from erasable.core.arrays import Floats, Ints


@inlined
def _goes_before(gain: float, item: int, other_gain: float, other: int) -> bool:
    return gain > other_gain or (gain == other_gain and item < other)


@inlined
def sink(at: int, n: int, bound: Floats, heap: Ints) -> None:
    """Move the entry down until it goes before both below it."""
    item = heap[at]
    gain = bound[item]
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and _goes_before(
            bound[heap[child + 1]], heap[child + 1], bound[heap[child]], heap[child]
        ):
            child += 1
        if not _goes_before(bound[heap[child]], heap[child], gain, item):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item


@borrowing
def make_heap(bound: Floats, heap: Ints) -> None:
    """Order a heap of records by their bounds."""
    for at in range(len(heap) // 2 - 1, -1, -1):
        sink(at, len(heap), bound, heap)


@borrowing
def remove_top(n: int, bound: Floats, heap: Ints) -> None:
    """Remove the first of n entries; n - 1 are left."""
    heap[0] = heap[n - 1]
    if n > 1:
        sink(0, n - 1, bound, heap)
