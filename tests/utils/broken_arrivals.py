"""Estimators that break the twin law in one way each: what they add or correct comes out wrong."""

from __future__ import annotations

import numpy as np

from erasable.core.deletion import Correction, Outcome
from erasable.core.errors import InvalidIdsError
from utils.controls import breaks
from utils.honest import Totals


class GrowingTotals(Totals):
    """Takes records in, and counts those that it was not told of as such."""

    def _seen(self, rows):
        return rows

    def _update(self, delta):
        rows = delta.arriving
        if not rows.size:
            return super()._update(delta)
        hidden = np.setdiff1d(rows, self._seen(rows))
        self._held.live[hidden] = False
        self._fit_rows()
        self._held.live[hidden] = True
        return Outcome("updated", rows_touched=self.count_)


@breaks("check_add_equals_fit", anywhere=True)
class Hasty(GrowingTotals):
    """Overlooks the last of a batch."""

    def _seen(self, rows):
        return rows[:-1] if len(rows) > 1 else rows


@breaks("check_add_and_delete", anywhere=True)
class AtTheEnd(GrowingTotals):
    """Takes for new only what comes after all others, and not what comes in an erased row."""

    def _fit_rows(self):
        super()._fit_rows()
        self._n_rows = getattr(self, "_n_rows", len(self._held.live))

    def _seen(self, rows):
        return rows[rows >= self._n_rows]


@breaks("check_correct_equals_fit", anywhere=True)
class Unmoved(Totals):
    """Says of all corrections that nothing was to be done."""

    def correct(self, ids, X=None, y=None, *, sample_weight=None, digest=True):
        same = self.digest()
        return Correction(np.array([]), self.exactness, "none", {}, 0, same, same, 0.0)


@breaks("check_mixed_changes", anywhere=True)
class Hoarder(Totals):
    """Keeps what is to be replaced."""

    def replace(self, delete, X, y=None, *, ids, groups=None, sample_weight=None, digest=True):
        return super().replace([], X, y, ids=ids, groups=groups, digest=digest)


@breaks("check_bad_additions", anywhere=True)
class Lenient(Totals):
    """Overlooks ids that are there already."""

    def add(self, X, y=None, *, ids, groups=None, sample_weight=None, digest=True):
        try:
            return super().add(X, y, ids=ids, groups=groups, digest=digest)
        except InvalidIdsError:
            return None


@breaks("check_shared_records_grow", anywhere=True)
class Loner(Totals):
    """Has records of its own before it adds to them, so that others do not follow."""

    def add(self, X, y=None, *, ids, groups=None, sample_weight=None, digest=True):
        self._held = self._held.copy_records().attach().of(self)
        return super().add(X, y, ids=ids, groups=groups, digest=digest)
