"""The base of single trees and forests: growth, deletion, files and predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from erasable.core._schema import (
    MOST_QUANTA,
    Array,
    Depending,
    Fields,
    FieldType,
    Integer,
    Sizes,
    join,
    refuse,
    refuse_many,
    refuse_unbounded,
)
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.digest import state_root
from erasable.core.errors import ArtifactError, ErasableError
from erasable.core.grid import MAX_ROWS, PrecisionWarning
from erasable.core.messages import refuse_many_records
from erasable.core.params import decode_params
from erasable.core.passes import storage
from erasable.core.threads import in_threads
from erasable.core.weighted import weight_units
from erasable.tree._columns import TreeColumns
from erasable.tree._flat import GAP_SIDES, NO_SIDES, FlatTree, forest_hash, trees_schema
from erasable.tree._flat_kernels import importances
from erasable.tree._forest import ArrivingRecords, Draws, Forest, ForestRecords
from erasable.tree._grown import NO_UNITS
from erasable.tree._layout import SQUARES, WEIGHT_BITS, TreeRules
from erasable.tree._models import ModelOfClasses, ModelOfTrees
from erasable.tree._rules import CRITERIA, SUM_BITS, rules_for, unit_for
from erasable.tree._stored import StoredForest
from erasable.tree._targets import NumberTargets

_NO_ROWS: Ints = np.empty(0, dtype=np.int64)
_MANY, _SHARE = 20, 0.002  # of the records: from there on a loaded tree is slower than a new one


class TreeModel(ModelOfTrees):
    """Base of trees and forests; a subclass says what they learn, and how many trees there are.

    A node looks at ``max_features`` features, in an order drawn for its path and their names, and
    in each at ``n_thresholds`` of the distinct values that its records have, drawn by hashes of
    the values. The best threshold wins; of equals the feature whose name comes first, then the
    lowest. All of this is a function of the records in the node, its path, and the seed. A
    deletion asks the nodes on the record's way again, and grows again what is below those that
    answer otherwise.

    Behind a step of a pipeline that scales columns the trees are those of the columns as they were
    before: scales are positive, so that a threshold divides the records alike on both sides. Their
    thresholds are in the columns' own units, and no deletion changes them for the sake of a scale.
    """

    _refit_from: ClassVar[tuple[int, float]] = (100, 0.05)
    _gathered: ClassVar[int] = 2**20
    """Most stored records of a node that is grown in memory."""
    _kind_of_trees = FlatTree
    _unit: int | None = None
    """Exponent of what weights count in; None where records have none."""

    # -- what a subclass may implement ---------------------------------------------------------

    def _n_trees(self) -> int:
        return 1

    def _draws_bags(self) -> bool:
        return False

    # -- learning and forgetting ---------------------------------------------------------------

    def _learns_from(self) -> set[str]:
        return super()._learns_from() | ({"groups"} if self._draws_bags() else set())

    def _fit_rows(self) -> None:
        self._settings = decode_params(self._info.params)
        refuse_many_records(self._attached().n_live, MAX_ROWS, type(self).__name__)
        self._refuse_weightless(_NO_ROWS)
        self._targets = self._fit_targets()
        self._accelerator = self._grown()
        self._kept_flats = None

    def _rules(self) -> TreeRules:
        n, d = self._attached().n_live, self.n_features_in_
        return rules_for(self._settings, n, d, self._targets.quantum, self._find_unit())

    def _find_unit(self) -> int | None:
        held, weights = self._attached(), self._counted_weights()
        if weights is None:
            return None
        return unit_for(
            float(weights[held.live].max()), held.n_live, regression=self._is_regression(),
            bags=self._draws_bags(),
        )  # fmt: skip

    def _is_regression(self) -> bool:
        return CRITERIA[self._settings["criterion"]] == SQUARES

    def _units_of(self, rows: Ints) -> Ints:
        """Return the weights of live rows, or nothing where they have none."""
        weights = self._counted_weights()
        return NO_UNITS if weights is None else weight_units(weights[rows], self._unit or 0)

    def _bag_keys(self, rows: Ints) -> Words:
        """Return the keys by which rows get their weights in the bags: that of the group, or id.

        Zeros, where there are no bags.
        """
        if not self._draws_bags():
            return np.zeros(rows.size, dtype=np.uint64)
        records = self._attached().records
        return self._tape.record_keys(
            (records.ids if records.groups is None else records.groups)[rows]
        )

    def _grown(self, known: list[FlatTree] | None = None) -> Forest | StoredForest | None:
        held, targets = self._attached(), self._targets
        live, n_rows = held.live_rows(), held.records.n_rows
        names = self._call_columns()
        draws = Draws.of(self._tape, self._n_trees(), names, self._draws_bags())
        matrix, rules = held.records.matrix, self._rules()
        self._unit = rules.unit if rules.weighted else None
        units = NO_UNITS
        if rules.weighted:
            units = np.zeros(n_rows, dtype=np.int64)
            units[live] = self._units_of(live)
        records = ForestRecords(
            targets.values(n_rows), live, self._bag_keys(live), units, rules, draws,
            targets.n_stats, targets.class_weight, self._n_jobs,
        )  # fmt: skip
        if held.records.is_stored and n_rows > self._gathered:
            forest = StoredForest(matrix, records, self._tape, self._gathered)
            return forest if known is None else forest.matching(known)
        matrix = storage(matrix).whole_in_memory(live, self._n_jobs)
        columns = TreeColumns.fit(matrix, live, self._tape, self._n_jobs)
        return Forest.fit(columns, records, known)

    def _update(self, delta: Delta) -> Outcome | None:
        held, forest, targets = self._attached(), self._accelerator, self._targets
        leaving, arriving = delta.leaving, delta.arriving
        self._kept_flats = None
        if forest.has_to_learn_again or (arriving.size and not forest.can_add):
            return None
        if arriving.size:
            refuse_many_records(self._attached().n_live, MAX_ROWS, type(self).__name__)
            self._refuse_weightless(_NO_ROWS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)  # it was given at fit
            # What arrives is there before anything leaves: so a class stays of which all records
            # are corrected.
            if arriving.size and targets.add(held, arriving):
                return None
            y = targets.of(arriving)
            if targets.remove(held, leaving) or self._rules() != forest.rules:
                return None
        come = ArrivingRecords(arriving, y, self._bag_keys(arriving), self._units_of(arriving))
        nodes, records = forest.update(held, leaving, self._bag_keys(leaving), come, self._n_jobs)
        kept = targets.kept()
        if kept is not None:
            forest.keep_classes(kept, targets.class_weight)
        forest.forget(leaving)
        return Outcome("updated", records, {"nodes": nodes})

    def _fits_sooner(self, n_gone: int, n_records: int) -> bool:
        """Tell whether nearly every node that was just laid out would decide again."""
        return n_gone >= _MANY and n_gone > _SHARE * n_records

    # -- keeping -------------------------------------------------------------------------------

    def _state_beside_trees(self) -> dict[str, Any]:
        """Return what the state holds beside trees."""
        unit = {} if self._unit is None else {"unit": self._unit}
        return {**self._targets.state(), **unit}

    def _digest_state(self) -> dict[str, Any]:
        if self._accelerator is not None:
            trees = self._accelerator.hash()
        else:
            rules = self._known_rules()
            trees = forest_hash([flat.hash(rules) for flat in self._flats()])
        return {**self._state_beside_trees(), "trees": trees}

    def _schema(self) -> FieldType:
        n_records, n_trees = int(self._info.n_records or 0), self._n_trees()
        refuse_many(n_records)
        d = self.n_features_in_
        refuse_unbounded(self)
        kind = self._kind_of_targets
        weight = n_records * (MOST_WEIGHT if self._draws_bags() else 1)

        def schema(weight: int, **unit: FieldType) -> Fields:
            trees = tree_schema(n_trees, d, weight, regression=kind is NumberTargets)
            return kind.schema.joined(Fields({"trees": trees, **unit}))

        unit = Integer(-(2**11), 2**11)
        return Depending("unit", schema(weight), schema(weight << WEIGHT_BITS, unit=unit))

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._unit = state.get("unit")

    def _reattach(self) -> None:
        held, mine, flats = self._attached(), self._targets, self._flats()
        forest = None
        if held.records.y is not None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PrecisionWarning)  # it was given at fit
                    self._targets = self._fit_targets()
                if state_root(self._targets.state()) == state_root(mine.state()):
                    forest = self._grown(flats)
            except ErasableError:
                forest = None
        if forest is None:
            self._targets = mine
            raise ArtifactError(
                f"the records do not fill the leaves of the {type(self).__name__}; expected those "
                "it was fitted on, with their targets, weights and groups; pass Records(X, y, "
                "ids=..., sample_weight=..., groups=...) of unchanged records, or fit again"
            )
        self._accelerator, self._kept_flats = forest, None

    # -- what it is ----------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that NaN is taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def n_outputs_(self) -> int:
        """Number of targets, which is 1."""
        self._check_fitted()
        return 1

    def decision_path(self, X: Any) -> Any:
        """Return the nodes that rows pass, as scikit-learn's tree or forest numbers them.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        csr_matrix of shape (n_rows, n_nodes)
            1 where a row passes a node. Of a forest, a tuple of this for all trees side by side
            and an ndarray of shape (n_trees + 1,) of where the nodes of each tree begin.
        """
        return self.to_sklearn().decision_path(X)

    @property
    def feature_importances_(self) -> Floats:
        """How much impurity the splits at each feature take away, all together 1.

        Returns
        -------
        ndarray of shape (n_features,), float64
            The mean over trees that have a split; zeros if none has.
        """
        self._check_fitted()
        rules, total = self._known_rules(), np.zeros(self.n_features_in_)
        weights = self._targets.class_weight
        for flat in self._flats():
            own = np.zeros(self.n_features_in_)
            importances(flat.features, flat.leaves, rules, weights, own)
            if (whole := own.sum()) > 0.0:
                total += own / whole
        whole = total.sum()
        return total / whole if whole > 0.0 else total

    def _leaves(self, X: Any) -> Ints:
        """Return the number of each row's leaf in each tree."""
        return np.column_stack([found for _, found in self._found(X)])

    def _known_rules(self) -> TreeRules:
        """Return the rules, as far as the records need not be known for them."""
        quantum = self._targets.quantum
        return rules_for(self._settings, 1, self.n_features_in_, quantum, self._unit)

    def _found(self, X: Any) -> Iterator[tuple[FlatTree, Ints]]:
        """Yield every tree, and in which leaf of it each row is."""
        read = np.ascontiguousarray(self._read_matrix(X), dtype=np.float64)
        matrix = self._own_units(X, read)
        has_gaps, regression = bool(np.isnan(matrix.min(initial=0.0))), self._is_regression()

        def leaves(flat: FlatTree) -> tuple[FlatTree, Ints]:
            flags = flat.flags(regression=regression) if has_gaps else NO_SIDES
            return flat, flat.find(matrix, flags)

        return in_threads(leaves, self._flats(), self._n_jobs)


MOST_WEIGHT = 255
"""Of a record in the bag of a tree."""


def tree_schema(n_trees: int, n_features: int, weight: int, *, regression: bool) -> FieldType:
    """Return the part for what `to_arrays` gives; the records of a tree weigh at most `weight`."""
    largest = min(weight, 2**48)
    limit = min(int(largest * 2 * MOST_QUANTA), 2**SUM_BITS)
    leaves = (
        Array("int64", (None, 2), least=-limit, most=limit)
        if regression
        else Array("int64", (None, "n_classes"), least=0, most=largest)
    )

    def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        weights = value["leaves"][:, 0] if regression else value["leaves"].sum(axis=1)
        if not ((weights > 0) & (weights <= largest)).all():
            refuse(join(at, "leaves"), "a leaf without records", f"weights up to {largest}")

    def schema(**sides: FieldType) -> Fields:
        trees = trees_schema(FlatTree, n_features, n_trees, leaves=leaves, **sides)
        return trees.joined(Fields({}, relations=(check,)))

    return Depending("gap_sides", schema(), schema(gap_sides=GAP_SIDES))


class TreeClassifier(ModelOfClasses, TreeModel):
    """Base of the classifiers."""

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        self._check_fitted()
        return self._targets.n_stats

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, for every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite numbers, or NaN for missing values.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; rows add up to 1. What the records in a row's leaf
            are, as a mean over the trees.
        """
        total: Any = 0.0
        for flat, found in self._found(X):
            total = total + self._targets.shares(flat.leaves[found])
        shares: Floats = total / self._n_trees()
        return shares

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; -inf where the class is impossible.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row; of several, the first in `classes_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the type of `classes_`.
        """
        return self._most_probable(self.predict_proba(X))


class TreeRegressor(RegressorMixin, TreeModel):
    """Base of the regressors."""

    _kind_of_targets = NumberTargets
    _targets: NumberTargets

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite numbers, or NaN for missing values.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            Means of the records in a row's leaf, and of the trees.
        """
        total: Any = 0.0
        for flat, found in self._found(X):
            total = total + self._targets.means(flat.leaves[found])
        means: Floats = total / self._n_trees()
        return means
