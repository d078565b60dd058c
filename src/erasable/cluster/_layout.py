"""The layout of a Lloyd run in memory: its levels, and the files of its records."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints, Ints32

BINS = 96
"""Bins of a group: 24 octaves of bounds, four bins an octave; the lowest takes the rest."""

FREE = -1
"""Stamp of a snapshot slot that holds no snapshot."""


class Rule(NamedTuple):
    """How centroids follow from sums, and when the run stops."""

    # floor_mass, step, phases: see `next_centers`; one row of `phases` per level
    floor_mass: float
    step: float
    phases: Floats
    shift: float  # stop when the squared movement of all centroids is at most this; negative: never
    # (n_features,), or empty; sums of squares; where given, stop as soon as the loss does not fall
    squares: Floats


class Levels(NamedTuple):
    """The run itself, in the first five. The first axis is the level.

    Where a level is not filed, `bounds`, `links` and `growth` are what a record can bear, its
    group, and what the metric has grown by since: see `_levels`. Where it is, see `_filing`.
    """

    centers: Floats
    sums: Floats
    counts: Ints
    losses: Floats
    labels: NDArray[np.uint16]
    bounds: NDArray[np.float32]
    links: Ints32
    growth: Floats
    tops: Ints


class RecordFiles(NamedTuple):
    """Records filed by the movement they can bear: see `_filing`. The first axis is the level."""

    head: Ints32
    lowest: NDArray[np.int16]
    stamps: Ints
    growth: Floats
    snapshots: Floats
    weights: Floats


Table = TypeVar("Table", Levels, RecordFiles)


def new_levels(n_levels: int, n: int, k: int, d: int) -> Levels:
    """Return levels with room for `n` positions; nothing is touched before it is used."""
    small = np.uint8 if k <= 256 else np.uint16 if k <= 65_536 else np.uint32
    return Levels(
        centers=np.zeros((n_levels, k, d)),
        sums=np.zeros((n_levels, k, d)),
        counts=np.zeros((n_levels, k), np.int64),
        losses=np.zeros(n_levels),
        labels=np.zeros((n_levels, n), small),
        bounds=np.zeros((n_levels, n), np.float32),
        links=np.zeros((n_levels, n), np.int32),
        growth=np.ones(n_levels),
        tops=np.zeros(n_levels, np.int64),
    )


def grown(before: Table, n_levels: int) -> Table:
    """Return levels or files with room for more levels; what is there is copied."""
    arrays = []
    old: NDArray[Any]
    for old in before:
        new = np.zeros((n_levels, *old.shape[1:]), old.dtype)
        new[: old.shape[0]] = old
        arrays.append(new)
    return type(before)(*arrays)


def new_files(n_levels: int, n: int, k: int, d: int, n_weights: int, pairs: bool) -> RecordFiles:
    """Return empty files.

    The number of snapshots is such that they and the heads of the lists stay small against the
    records: at least 3, and at most 16, or 8 where the metric may change and all have to be
    compared with it at every deletion.
    """
    groups = k * k if pairs else k
    slots = max(3, min(8 if n_weights else 16, 4 * n // (groups * BINS), n // (16 * k)))
    return RecordFiles(
        head=np.full((n_levels, slots, groups, BINS), -1, np.int32),
        lowest=np.full((n_levels, slots, groups), BINS, np.int16),
        stamps=np.full((n_levels, slots), FREE, np.int64),
        growth=np.ones((n_levels, slots)),
        snapshots=np.zeros((n_levels, slots, k, d)),
        weights=np.zeros((n_levels, slots, n_weights)),
    )
