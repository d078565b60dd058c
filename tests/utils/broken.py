"""Estimators that break the law in one way each: in deleting, in reporting, in erasing.

Those of `broken_life.py` break it in a model's life and in what comes in. `controls.py` says which
check each of them is for, and which others see the damage as well.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from erasable.core.records import Records
from erasable.core.seeds import draw_seed
from erasable.core.tape import Tape
from utils.controls import breaks
from utils.honest import Totals

# -- the law itself --------------------------------------------------------------------------------


@breaks("check_delete_equals_refit", anywhere=True)
class Drifting(Totals):
    """Subtracts from a float64 sum: the sum of what is left comes out otherwise."""

    def _update(self, delta):
        rows = delta.leaving
        totals = self.totals_ - self._held.records.matrix[rows].sum(axis=0)
        outcome = super()._update(delta)
        self.totals_ = totals
        return outcome


@breaks("check_deletion_order", anywhere=True)
class Ordered(Totals):
    """Remembers the last three deletions, and errs where the ids went down."""

    def _fit_rows(self):
        super()._fit_rows()
        self._went = getattr(self, "_went", [])

    def _update(self, delta):
        rows = delta.leaving
        self._went = [*self._went, *self._held.records.ids[rows].tolist()][-3:]
        outcome = super()._update(delta)
        if len(rows) == 1 and len(self._went) == 3 and sorted(self._went)[::-1] == self._went:
            self.totals_ = self.totals_ + 1.0
        return outcome


@breaks("check_batch_split", anywhere=True)
class Hurried(Totals):
    """Forgets the last of a batch of seven."""

    def _update(self, delta):
        rows = delta.leaving
        outcome = super()._update(delta)
        if len(rows) == 7:
            self.totals_ = self.totals_ + self._held.records.matrix[rows[-1]]
        return outcome


@breaks(
    "check_row_order",
    "check_add_equals_fit",
    "check_add_and_delete",
    "check_correct_equals_fit",
    "check_mixed_changes",
    "check_shared_records_grow",
)
class FirstRow(Totals):
    """Learns the first row, whichever record that is."""

    def _fit_rows(self):
        super()._fit_rows()
        self.drawn_ = self._live()[0]


@breaks("check_groups")
class LonelyGroup(Totals):
    """Deletes one record of each group."""

    def delete(self, ids=None, *, groups=None, digest=True):
        if groups is None:
            return super().delete(ids, digest=digest)
        rows = [self._held.select(groups=[group])[0] for group in groups]
        return super().delete(self._held.records.ids[rows].tolist(), digest=digest)


@breaks("check_smallest_legal_set", "check_long_sequence")
class Bottomless(Totals):
    """Can be deleted down to nothing at all."""

    def _minimum_records(self):
        return 0

    def _fit_rows(self):
        if self._held.n_live:
            super()._fit_rows()
        else:
            self.count_ = 0
            self.totals_ = self.totals_ * 0


@breaks("check_smallest_legal_set", "check_load_deletes", "check_mixed_changes")
class Stubborn(Totals):
    """Refuses to fall below half of what it was fitted on; a refit would take it."""

    def _minimum_records(self):
        return max(2, self._held.records.n_rows // 2)


@breaks("check_long_sequence", anywhere=True)
class Tired(Totals):
    """Stops after twenty deletions."""

    def _fit_rows(self):
        super()._fit_rows()
        self._left = 20

    def _update(self, delta):
        left, old = self._left - 1, self.totals_
        outcome = super()._update(delta)
        self._left = left
        if left < 0:
            self.totals_ = old
        return outcome


@breaks("check_fitted_attributes", "check_row_order")
class StaleLabels(Totals):
    """Computes `labels_` once and for all."""

    @property
    def labels_(self):
        if "_labels" not in self.__dict__:
            self._labels = super().labels_
        return self._labels


@breaks("check_predicting_after_deletion", anywhere=True)
class StaleMean(Totals):
    """Keeps what it needs to predict from the first prediction on."""

    def predict(self, X):
        if "_mean" not in self.__dict__:
            self._mean = self.totals_ / self.count_
        return np.sum(self._read_matrix(X) > self._mean, axis=1)


# -- ids, refusals, reports ------------------------------------------------------------------------


@breaks("check_id_types")
class Typist(Totals):
    """Learns in what type of array the ids came."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        self.narrow = isinstance(ids, np.ndarray) and ids.dtype == np.int32
        return super().fit(X, y, ids=ids, groups=groups)

    def _fit_rows(self):
        super()._fit_rows()
        self.drawn_ = self.drawn_ + getattr(self, "narrow", False)


@breaks("check_bad_ids_change_nothing")
class Lenient(Totals):
    """Passes over ids that it does not know."""

    def delete(self, ids=None, *, groups=None, digest=True):
        if ids is not None and len(ids) > 1:
            known = set(self.ids_.tolist())
            ids = [record for record in ids if not isinstance(record, int | str) or record in known]
        return super().delete(ids, groups=groups, digest=digest)


@breaks("check_bad_ids_change_nothing")
class HalfWay(Totals):
    """Finds out that an id is unknown when it has deleted those before it."""

    def delete(self, ids=None, *, groups=None, digest=True):
        known, wanted = self.ids_.tolist(), [] if ids is None else list(ids)
        if len(wanted) > 1 and wanted[0] in known and wanted[-1] not in known:
            super().delete(wanted[:1])
        return super().delete(ids, groups=groups, digest=digest)


@breaks("check_bad_fit_changes_nothing")
class Emptied(Totals):
    """Forgets what it learned before it looks at the new data."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        self._forget_learned()
        return super().fit(X, y, ids=ids, groups=groups)


@breaks("check_delete_nothing")
class Busy(Totals):
    """Reports a refit when there was nothing to delete."""

    def delete(self, ids=None, *, groups=None, digest=True):
        deletion = super().delete(ids, groups=groups, digest=digest)
        if deletion.action == "none":
            deletion = dataclasses.replace(deletion, action="refit")
        return deletion


@breaks("check_deletion_record")
class Untruthful(Totals):
    """Reports the digest after as the one before."""

    def delete(self, ids=None, *, groups=None, digest=True):
        deletion = super().delete(ids, groups=groups, digest=digest)
        return dataclasses.replace(deletion, digest_before=deletion.digest_after)


@breaks("check_digest_names_version")
class Timeless(Totals):
    """Calls every version of itself the first."""

    def digest(self):
        return super().digest().replace(f"/{self.algorithm_version}:", "/1:")


@breaks("check_seed")
class Redrawing(Totals):
    """Draws anew at every deletion where no seed was given."""

    def _update(self, delta):
        if self.random_state is None:
            self._tape = Tape(draw_seed())
        return super()._update(delta)


# -- erasure ---------------------------------------------------------------------------------------


@breaks("check_nothing_left", "check_nothing_left_in_files")
class Hoarder(Totals):
    """Keeps a copy of what it learned from."""

    def _fit_rows(self):
        super()._fit_rows()
        if "_kept" not in self.__dict__:
            self._kept = [{"matrix": self._live()}]


@breaks("check_shared_records")
class Wiper(Totals):
    """Overwrites a record at once, whoever else may hold it."""

    def _update(self, delta):
        rows = delta.leaving
        outcome = super()._update(delta)
        self._held.records.matrix[rows] = 0
        return outcome


@breaks("check_erased_by_the_last")
class Clinging(Totals):
    """Holds shared records twice and lets go once."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        super().fit(X, y, ids=ids, groups=groups)
        if isinstance(X, Records):
            self._second = X.attach()
        return self
