"""The base of boosting of classes and of numbers: learning, deletion, files and predictions."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core._schema import Array, Fields, refuse_many, refuse_unbounded
from erasable.core.arrays import Flags, Floats, Ints, Words
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidParameterError
from erasable.core.estimator import NEVER
from erasable.core.grid import MAX_ROWS, PrecisionWarning
from erasable.core.ids import shorten
from erasable.core.messages import refuse_many_records
from erasable.core.params import decode_params
from erasable.core.passes import storage
from erasable.core.tape import Stream
from erasable.core.weighted import power_below, weight_units
from erasable.tree._boosted._bins import Binned, Features, without_negative
from erasable.tree._boosted._flat import FlatBoostedTree, boosted_schema, boosting_hash
from erasable.tree._boosted._loss_kernels import Given
from erasable.tree._boosted._rounds import (
    HELD_OUT,
    IGNORED,
    LEARNED,
    Boosted,
    RoundParameters,
)
from erasable.tree._layout import WEIGHT_BITS
from erasable.tree._models import ModelOfTrees

_DEEPEST = 64
_NO_ROWS: Ints = np.empty(0, dtype=np.int64)
_NO_KEYS: Words = np.empty(0, dtype=np.uint64)
CONSTRAINTS: dict[str, Any] = {
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_leaf_nodes": [Interval(Integral, 2, 2**20, closed="both"), None],
    "max_depth": [Interval(Integral, 1, _DEEPEST, closed="both"), None],
    "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
    "l2_regularization": [Interval(Real, 0, None, closed="left")],
    "max_bins": [Interval(Integral, 2, 255, closed="both")],
    "n_thresholds": [Interval(Integral, 1, 254, closed="both")],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}


class Boosting(ModelOfTrees):
    """Base of both; a subclass says what it learns from.

    A round is a function of the predictions before it, of which all are whole numbers of units, of
    the targets, and of edges and draws that depend on values, names and paths. So records that
    leave or come are followed through the rounds; from the first one that changes it learns again.
    """

    _attaches_by_learning = True
    _refit_from = NEVER
    _kind_of_trees = FlatBoostedTree
    _loss: Any
    _declared: Flags
    _rounds_numbers = True
    _takes_words = False  # in every column, as estimators of categories alone
    categorical_features: Any

    # -- what a subclass implements ------------------------------------------------------------

    @abstractmethod
    def _find_loss(self) -> Any:
        """Return the loss of the live records, see `erasable.tree._boosted._losses.Loss`."""

    @abstractmethod
    def _loss_from(self, state: dict[str, Any]) -> Any:
        """Return the loss that a state tells of, as far as predictions need it."""

    @abstractmethod
    def _known_targets(self, rows: Ints) -> Ints:
        """Return what `Given.y` is for the loss, of live rows."""

    @abstractmethod
    def _change_targets(self, leaving: Ints, arriving: Ints) -> bool:
        """Take targets in, and forget others; true if those of the rest count otherwise now."""

    @abstractmethod
    def _target_schema(self) -> Fields:
        """Return what the state holds beside trees, map and start."""

    # -- learning and forgetting ---------------------------------------------------------------

    def _fit_rows(self) -> None:
        self._settings = decode_params(self._info.params)
        refuse_many_records(self._attached().n_live, MAX_ROWS, type(self).__name__)
        self._kept_flats = None
        numeric = self._attached().records.numeric
        self._declared = np.zeros(self.n_features_in_, np.bool_) if numeric is None else ~numeric
        self._targets = self._fit_targets()
        self._refuse_weightless(_NO_ROWS)
        self._loss = self._find_loss()
        self._accelerator = self._boosted()

    def _boosted(self) -> Boosted:
        held, settings = self._attached(), self._settings
        records = held.records
        live = held.live_rows()
        keys = self._record_keys()[live] if self._draws_by_record() else _NO_KEYS
        use = np.zeros(records.n_rows, dtype=np.uint8)
        use[live] = self._uses(live, keys)
        given = self._given(live, keys).placed(live, records.n_rows)
        binned = Binned.fit(
            records.matrix, use == LEARNED, use == HELD_OUT,
            Features(self._call_columns(), self._categorical()), int(settings["max_bins"]),
            self._tape,
        )  # fmt: skip
        depth = settings["max_depth"]
        with np.errstate(over="ignore"):  # which is as good as any large number
            l2 = float(np.ldexp(float(settings["l2_regularization"]), -self._weight_exponent()))
        plan = RoundParameters(
            learning_rate=float(settings["learning_rate"]),
            max_iter=int(settings["max_iter"]),
            max_depth=_DEEPEST if depth is None else int(depth),
            max_leaves=int(settings["max_leaf_nodes"] or 0),
            min_leaf=min(int(settings["min_samples_leaf"]), 2 * MAX_ROWS),
            n_thresholds=int(settings["n_thresholds"]),
            l2=l2,
            patience=int(settings["n_iter_no_change"]) if settings["early_stopping"] else 0,
            tol=float(settings["tol"]),
        )
        made = Boosted(plan, self._loss, given, binned, use, self._tape.seed)
        made.learn()
        return made

    def _draws_by_record(self) -> bool:
        """Tell whether something is drawn for each record, by its key."""
        return bool(self._settings["early_stopping"]) or self._weights_of(_NO_ROWS) is not None

    def _uses(self, rows: Ints, keys: Words) -> NDArray[np.uint8]:
        """Return what live rows are for; whether one is held out is drawn by its key."""
        use = np.full(rows.size, LEARNED, dtype=np.uint8)
        if self._settings["early_stopping"]:
            drawn = self._tape.child("held out").uniform(keys, Stream.LEAF, 0)
            use[drawn < self._settings["validation_fraction"]] = HELD_OUT
        if (weights := self._weights_of(rows)) is not None:
            use[weights <= self._least_weight] = IGNORED
        return use

    def _given(self, rows: Ints, keys: Words) -> Given:
        """Return targets and weights of live rows as whole numbers."""
        y, weights = self._known_targets(rows), self._weights_of(rows)
        if weights is None:
            return Given(y, _NO_ROWS, _NO_KEYS)
        return Given(y, weight_units(weights, self._weight_exponent() - WEIGHT_BITS), keys)

    def _weights_of(self, rows: Ints) -> Floats | None:
        """Return the weights of live rows, or of those that leave; None if all count alike."""
        weights = self._attached().records.weights
        return None if weights is None else weights[rows]

    def _counted_weights(self) -> Floats | None:
        held = self._attached()
        live = held.live_rows()
        if (weights := self._weights_of(live)) is None:
            return None
        counted = np.zeros(held.records.n_rows)
        counted[live] = weights
        return counted

    def _weight_exponent(self) -> int:
        """Return the exponent of the power of two above the largest weight; 0 without weights."""
        weights = self._counted_weights()
        return 0 if weights is None else power_below(float(weights.max())) + 1

    def _categorical(self) -> Flags:
        """Read `categorical_features`."""
        given, d = self._settings["categorical_features"], self.n_features_in_
        found: Flags = np.zeros(d, dtype=np.bool_)
        if given is None:
            return found
        if isinstance(given, str):
            return self._declared
        cells = np.asarray(given, dtype=object).reshape(-1).tolist()
        if cells and all(isinstance(cell, bool | np.bool_) for cell in cells) and len(cells) == d:
            return np.array(cells, dtype=np.bool_)
        names = {name: j for j, name in enumerate(self._column_names or [])}
        for cell in cells:
            whole = isinstance(cell, Integral) and not isinstance(cell, bool)
            place = int(cell) if whole else names.get(cell, d) if isinstance(cell, str) else d
            if not 0 <= place < d:
                raise InvalidParameterError(
                    f"categorical_features= holds {shorten(cell)}; expected numbers of columns "
                    f"from 0 to {d - 1}, names of columns, or True or False for each"
                )
            found[place] = True
        return found

    def _may_have(self, n_trees: int, most: int) -> bool:
        """Tell whether a model with `max_iter` rounds at most can have so many trees."""
        return n_trees == most or (n_trees < most and self._at_fit("early_stopping"))

    def _update(self, delta: Delta) -> Outcome | None:
        held, boosted, leaving, arriving = self._attached(), self._accelerator, *delta[:2]
        self._kept_flats = None
        gone = self._weights_of(leaving)
        if arriving.size:
            refuse_many_records(self._attached().n_live, MAX_ROWS, type(self).__name__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)  # it was given at fit
            anew = self._change_targets(leaving, arriving) or self._weights_change(gone, arriving)
            loss = self._loss if anew else self._find_loss()
        if anew or loss.scales != self._loss.scales:
            return None
        if delta.moved:
            boosted.make_room(held.records.n_rows)
        rows = storage(held.records.matrix).in_memory
        changed = _NO_ROWS
        if arriving.size:
            keys = _NO_KEYS
            if self._draws_by_record():
                keys = self._tape.record_keys(held.records.ids[arriving])
                if boosted.given.knows(keys, leaving):
                    return None  # `_record_keys` raises
            use = self._uses(arriving, keys)
            values, at = rows(arriving)
            changed = boosted.binned.add(values[at], arriving, use == LEARNED)
            boosted.take_in(arriving, use, self._given(arriving, keys))
        if leaving.size:
            values, at = rows(leaving)
            lost = boosted.binned.remove(values[at[boosted.use[leaving] == LEARNED]])
            changed = np.union1d(changed, lost) if changed.size else lost
        anew = changed.size > 0 or not np.array_equal(loss.start, self._loss.start)
        self._loss = boosted.loss = loss
        if anew:
            boosted.use[leaving] = IGNORED
            boosted.erase(leaving)
            learned, held_out = boosted.use == LEARNED, boosted.use == HELD_OUT
            boosted.binned.find(held.records.matrix, learned, held_out, changed)
            boosted.learn()
            return Outcome("refit", held.n_live, {"rounds": boosted.n_rounds})
        n_rounds = boosted.move(leaving, arriving)
        if n_rounds:
            return Outcome("resumed", held.n_live, {"rounds": n_rounds})
        return Outcome("updated")

    def _weights_change(self, gone: Floats | None, arriving: Ints) -> bool:
        """Tell whether what counts as a weight of 1 was another one with weights that left."""
        if gone is None or (weights := self._counted_weights()) is None:
            return False
        now = float(weights.max())
        weights[arriving] = 0.0
        before = max(float(weights.max()), float(gone.max(initial=np.finfo(float).tiny)))
        return now <= self._least_weight or power_below(before) != power_below(now)

    # -- keeping -------------------------------------------------------------------------------

    def _state_beside_trees(self) -> dict[str, Any]:
        """Return what the state holds beside trees."""
        found = {**self._targets.state(), "start": self._loss.start}
        return {**found, "categorical": self._declared} if self._reads_types() else found

    def _reads_types(self) -> bool:
        """Tell whether the types of columns say which are categories."""
        return isinstance(self._at_fit("categorical_features"), str)

    def _digest_state(self) -> dict[str, Any]:
        return {**self._state_beside_trees(), "trees": boosting_hash(self._flats())}

    def _schema(self) -> Fields:
        n_records = int(self._info.n_records or 0)
        refuse_many(n_records)
        refuse_unbounded(self)
        trees = boosted_schema(self.n_features_in_)
        start = Array("int64", (None,), least=-(2**30), most=2**30)
        declared = {"categorical": Array("bool", ("n_features",))} if self._reads_types() else {}
        own = Fields({"trees": trees, "start": start, **declared})
        return own.joined(self._target_schema())

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if self._reads_types():
            self._declared = state["categorical"]
        self._loss = self._loss_from(state)

    # -- what it is ----------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that NaN is taken, and text where there are categories."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = self.categorical_features is not None
        return tags

    @property
    def n_iter_(self) -> int:
        """Number of rounds."""
        return len(self._flats()) // max(1, int(self._loss.start.size))

    @property
    def do_early_stopping_(self) -> bool:
        """Whether records were set aside to tell when to stop."""
        self._check_fitted()
        return bool(self._at_fit("early_stopping"))

    @property
    def is_categorical_(self) -> Flags | None:
        """Which columns hold categories, shape (n_features,); None if there are none."""
        self._check_fitted()
        found = self._categorical()
        return found.copy() if found.any() else None

    @property
    def n_trees_per_iteration_(self) -> int:
        """Number of trees in a round: 1, or one for each class if there are more than two."""
        self._check_fitted()
        return int(self._loss.start.size)

    @property
    def feature_importances_(self) -> Floats:
        """What share of all splits is at each feature; zeros if there are none.

        Returns
        -------
        ndarray of shape (n_features,), float64
        """
        self._check_fitted()
        counts = np.zeros(self.n_features_in_)
        for flat in self._flats():
            counts += np.bincount(flat.features[flat.features >= 0], minlength=counts.size)
        shares: Floats = counts / max(float(counts.sum()), 1.0)
        return shares

    def _staged(self, X: Any) -> Iterator[Floats]:
        """Yield the raw predictions after each round, shape (n_rows, n_outputs)."""
        categorical = self._categorical()
        matrix = Features(self._call_columns(), categorical).numbers(self._read_matrix(X))
        matrix = self._own_units(X, matrix)
        if (matrix[:, categorical] < 0).any():
            matrix = matrix.copy()
            matrix[:, categorical] = without_negative(matrix[:, categorical])
        flats, start = self._flats(), self._loss.start
        m = start.size
        totals = np.repeat(start[:, np.newaxis], matrix.shape[0], axis=1)
        if not flats:
            yield totals.T * self._loss.unit
        for t in range(0, len(flats), max(m, 1)):
            for k in range(m):
                flats[t + k].add(matrix, totals[k])
            yield totals.T * self._loss.unit

    def _raw(self, X: Any) -> Floats:
        """Return the raw predictions of all rounds."""
        *_, raw = self._staged(X)
        return raw
