"""Estimators that break the law in one way each: in their life, or in what they are given."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import polars as pl
from sklearn.utils.metadata_routing import UNUSED

from erasable.core.persistent import Persistent
from erasable.core.tape import Tape
from utils.controls import breaks
from utils.honest import Totals

# -- a model's life --------------------------------------------------------------------------------


@breaks("check_clone_and_params", "check_fit_again")
class Tinkerer(Totals):
    """Changes a parameter when it is fitted."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        super().fit(X, y, ids=ids, groups=groups)
        self.scale = int(self.scale)
        return self


@breaks("check_fit_again")
class Sediment(Totals):
    """Adds what it learned at the first fit to what it learns at the second."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        super().fit(X, y, ids=ids, groups=groups)
        former = getattr(self, "former", 0.0)
        self.former = float(self.totals_[0])
        self.totals_ = self.totals_ + former
        return self


@breaks("check_pickle", "check_deepcopy", "check_mixed_changes")
class OtherTape(Totals):
    """Comes back from a pickle with another tape."""

    def __setstate__(self, state):
        super().__setstate__(state)
        self._tape = Tape(1)


@breaks("check_deepcopy")
class Shallow(Totals):
    """Copies itself, but holds on to the original's records."""

    def __deepcopy__(self, memo):
        copy = type(self)(**self.get_params())
        copy.__dict__.update(self.__dict__)
        return copy


@breaks("check_deletes_from_files")
class Sleepwalker(Totals, Persistent):
    """Comes back from its files as another model."""

    def _after_reading(self):
        self.totals_ = self.totals_ + 1.0


_DIARIES: WeakKeyDictionary[Totals, list[object]] = WeakKeyDictionary()


@breaks("check_nothing_left_in_files")
class Diarist(Totals, Persistent):
    """Writes into its files which records it has deleted."""

    def _update(self, delta):
        rows = delta.leaving
        _DIARIES.setdefault(self, []).extend(self._held.records.ids[rows].tolist())
        return super()._update(delta)

    def _kept_attributes(self):
        return {**vars(self), "diary": _DIARIES.get(self, [])}


@breaks("check_load_predicts")
class Absent(Totals):
    """Predicts otherwise when it has no records."""

    def predict(self, X):
        return super().predict(X) + (self._held is None)


@breaks("check_load_deletes", "check_mixed_changes")
class Credulous(Totals):
    """Takes whatever records it is given for its own."""

    def _attach_to(self, records):
        self._held = records.attach()


# -- what comes in ---------------------------------------------------------------------------------


@breaks("check_callers_arrays")
class Overwriter(Totals):
    """Uses the caller's ids as a scratch pad."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        super().fit(X, y, ids=ids, groups=groups)
        if isinstance(ids, np.ndarray) and ids.flags.writeable:
            ids[:] = ids[::-1].copy()
        return self


@breaks("check_callers_arrays")
class Borrower(Totals):
    """Keeps the caller's array in the place of a copy."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        super().fit(X, y, ids=ids, groups=groups)
        if isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.writeable:
            self._held.records.matrix = X
        return self


@breaks("check_float32_input")
class Narrow(Totals):
    """Counts in the type of what came in."""

    def _fit_rows(self):
        super()._fit_rows()
        self.totals_ = self.totals_ + self._held.records.matrix.dtype.itemsize


@breaks("check_magnitudes")
class Boundless(Totals):
    """Adds up whatever comes, until the totals overflow."""

    def _refuse_large(self, matrix):
        pass


@breaks("check_memory_layout")
class Layout(Totals):
    """Learns in which order the values lay in memory."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        self.columns_first = isinstance(X, np.ndarray) and X.flags.f_contiguous
        return super().fit(X, y, ids=ids, groups=groups)

    def _fit_rows(self):
        super()._fit_rows()
        self.drawn_ = self.drawn_ + getattr(self, "columns_first", False)


@breaks("check_memory_layout", anywhere=True)
class Signed(Totals):
    """Tells -0.0 from 0.0."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        super().fit(X, y, ids=ids, groups=groups)
        if isinstance(X, np.ndarray | list):
            self._negative = int(np.signbit(X)[np.equal(X, 0)].sum())
        return self

    def _state(self):
        return {**super()._state(), "negative": getattr(self, "_negative", 0)}


@breaks("check_pandas")
class IndexBlind(Totals):
    """Passes over a pandas index."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        if isinstance(X, pd.DataFrame):
            X = X.reset_index(drop=True)
        return super().fit(X, y, ids=ids, groups=groups)


@breaks("check_polars")
class Nameless(Totals):
    """Loses the names of a polars frame."""

    def fit(self, X, y=None, *, ids=None, groups=None):
        super().fit(X, y, ids=ids, groups=groups)
        if isinstance(X, pl.DataFrame):
            del self.feature_names_in_
        return self


@breaks("check_metadata_routing")
class Unroutable(Totals):
    """Does not let ids be routed to `fit`."""

    __metadata_request__fit = {"ids": UNUSED}  # noqa: RUF012
