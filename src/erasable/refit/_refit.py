"""`Refit`: an estimator of scikit-learn that forgets by learning again from what is left."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, ClassVar, TypeVar

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if

from erasable.core._column_choice import Columns
from erasable.core._fit_info import DetachedAttributeError
from erasable.core._schema import Anything, Array, Fields, Flag, Text, refuse_unbounded
from erasable.core.arrays import Ints
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import ArtifactError, InvalidInputError
from erasable.core.estimator import NEVER
from erasable.core.weighted import Weighted
from erasable.refit._fitting import ask, refuse_chance
from erasable.refit._given import text_columns, weights_parameter
from erasable.refit._part import same
from erasable.refit._recipe import Recipe, not_of_records, refuse_what_is_no_estimator
from erasable.refit._tags import input_tags, target_tags, unread_by

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _where(name: str) -> Callable[[_Method], _Method]:
    """Show a method only where the estimator has one of this name."""
    decorator: Callable[[_Method], _Method] = available_if(
        lambda model: getattr(model._answering(), name)
    )
    return decorator


class Asking(Weighted):
    """The half of `Refit` that answers; it asks its fitted estimator."""

    estimator: Any
    _text: list[int]

    @_where("predict")
    def predict(self, X: Any) -> Any:
        """Predict with the estimator."""
        return self._ask("predict", X)

    @_where("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities with the estimator."""
        return self._ask("predict_proba", X)

    @_where("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithms of probabilities."""
        return self._ask("predict_log_proba", X)

    @_where("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the estimator."""
        return self._ask("decision_function", X)

    @_where("score_samples")
    def score_samples(self, X: Any) -> Any:
        """Score every row with the estimator."""
        return self._ask("score_samples", X)

    @_where("transform")
    def transform(self, X: Any) -> Any:
        """Transform with the estimator."""
        return self._ask("transform", X)

    def _answering(self) -> BaseEstimator:
        return self.__dict__.get("_estimator", self.estimator)

    def _ask(self, method: str, X: Any, *args: Any) -> Any:
        matrix = self._read_matrix(X)
        given = self._as_given(matrix, self._text)
        names = getattr(self, "feature_names_in_", None)
        return ask(self._fitted(), method, given, *args, matrix=matrix, names=names)

    @abstractmethod
    def _fitted(self) -> Any:
        """Return the fitted estimator, which is not to be changed."""

    @abstractmethod
    def _as_given(self, matrix: Any, text: list[int]) -> Any:
        """Return rows as the estimator gets them."""

    @abstractmethod
    def _sorted_rows(self) -> Ints:
        """Return the live rows in the order of their keys."""

    def _ask_about_records(self, method: str) -> Any:
        held = self._attached()
        matrix = held.records.matrix[held.live]
        given = self._as_given(matrix, self._text)
        return ask(self._fitted(), method, given, matrix=matrix)

    @_where("score")
    def score(self, X: Any, y: Any = None) -> float:
        """Score with the estimator.

        Parameters
        ----------
        X : as `fit` takes
        y : array-like of shape (n_rows,), default=None

        Returns
        -------
        float
        """
        return float(self._ask("score", X, *([] if y is None else [y])))

    @_where("inverse_transform")
    def inverse_transform(self, X: Any) -> Any:
        """Transform back with the estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features_out)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        return ask(self._fitted(), "inverse_transform", X, matrix=X)

    @_where("get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` makes."""
        if input_features is None and not hasattr(self._fitted(), "feature_names_in_"):
            input_features = getattr(self, "feature_names_in_", None)
        names: NDArray[Any] = self._fitted().get_feature_names_out(input_features)
        return names.copy()

    @_where("transform")
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> Any:
        """Fit, and transform the records as `transform` would; see `fit`."""
        self.fit(X, y, sample_weight, ids=ids, groups=groups)
        return self._ask_about_records("transform")

    @_where("fit_predict")
    def fit_predict(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> NDArray[Any]:
        """Fit, and return the cluster of each record, or what `predict` says of it; see `fit`."""
        self.fit(X, y, sample_weight, ids=ids, groups=groups)
        found: NDArray[Any]
        if hasattr(self._fitted(), "labels_"):
            found = self.labels_
        else:
            found = self._ask_about_records("predict")
        return found

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of a classifier."""
        classes: NDArray[Any] = deepcopy(self._fitted().classes_)
        return classes

    @property
    def offset_(self) -> Any:
        """What a detector of outliers subtracts from its scores."""
        return deepcopy(self._fitted().offset_)

    @property
    def labels_(self) -> NDArray[Any]:
        """Cluster of each record, in row order."""
        labels = np.asarray(self._fitted().labels_)
        place = np.searchsorted(self._attached().live_rows(), self._sorted_rows())
        out = np.zeros_like(labels)
        out[place] = labels
        return out

    @property
    def _marks_unread_text(self) -> bool:
        return False  # a composition of scikit-learn that reads no text takes none

    def _unread(self, columns: Columns) -> list[int]:
        return unread_by(self._at_fit("estimator"), columns)

    @property
    def _reads_numbers(self) -> bool:
        return False  # some estimators of scikit-learn keep the targets as they came

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        wrapped = self._at_fit("estimator")
        try:
            own = get_tags(wrapped)
        except (AttributeError, TypeError, ValueError):  # no estimator; fit will say so
            return tags
        for name in ("estimator_type", "classifier_tags", "regressor_tags"):
            setattr(tags, name, deepcopy(getattr(own, name)))
        tags.target_tags, tags.input_tags = target_tags(wrapped), input_tags(wrapped)
        if own.classifier_tags is not None:  # a table of 0 and 1 is several labels for a record
            tags.target_tags.multi_output |= own.classifier_tags.multi_label
        tags.transformer_tags = deepcopy(own.transformer_tags)
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


_SAMPLE = 200


class Refit(MetaEstimatorMixin, Asking):
    """Make any estimator of scikit-learn forget records exactly, by fitting it again.

    For models without a faster exact deletion, and as the baseline for those that have one.
    A deletion costs a fit to what is left. It equals never having seen the records, bit for bit,
    because a fit depends on the records alone: rows are sorted by a hash of their ids, every
    ``random_state`` is drawn from one seed, and one thread adds.

    Parameters
    ----------
    estimator : estimator of scikit-learn
        Classifier, regressor, clusterer, transformer, a pipeline of these, or a search over
        parameters; not changed. Estimators from elsewhere that keep to scikit-learn's interface
        work, too, if what they learn is arrays, numbers and text, and so do those of XGBoost and
        LightGBM, on CPUs. Functions among its parameters must have a name of their own.
    random_state : int, RandomState or None, default=None
        Seed of the tape from which all seeds are drawn; those that `estimator` has been given are
        not used. None draws one from the system, kept as ``seed_``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, what it learned and nothing else: a copy, made at each access.
    classes_ : ndarray of shape (n_classes,), of a classifier
        Labels of the live records.
    labels_ : ndarray of shape (n_records,), of a clusterer
        Cluster of each record, in row order.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, only if fitted on a frame
    seed_ : int

    Raises
    ------
    UnlearnableError
        From `fit`, and from `delete`, which then changes nothing: the estimator cannot learn from
        the records (too few, one class only). It is a TooFewRecordsError.
    InvalidParameterError
        From `fit`: the estimator is not deterministic, or holds things of which no plain copy can
        be made.

    See Also
    --------
    erasable.audit.refit : The same for any estimator of erasable, to compare with.

    Notes
    -----
    Methods are those of the estimator: `predict`, `transform`, `score` and so on. It is given
    float64, sparse matrices, lists of texts, or, where it names columns or has parts that are not
    scikit-learn's, a pandas frame (polars, where there is no pandas).

    `sample_weight` is passed on, sorted as the records are: to `fit`, or that of a pipeline's last
    step. An estimator that takes none there is not fitted with any.

    The state is the fitted attributes, walked into arrays, numbers and text. Left out is what is
    no function of the records: the times in ``cv_results_`` and ``refit_time_`` of a search,
    addresses, and counters of queries in the trees of nearest neighbours. Files hold no code. One
    made with another version of scikit-learn is refused, and so is one of an estimator whose
    class or functions are not scikit-learn's or NumPy's; such models can be pickled.

    A file may be anybody's, and a state of scikit-learn that was changed on purpose can crash the
    process. So `load` checks the states of linear models, naive Bayes, trees, forests, nearest
    neighbours, scalers, PCA and pipelines of these. Any other estimator is fitted again, with the
    parameters in the file: ``load(path, records)``. Only for a file of your own,
    ``load(path, trusted=True)`` takes the state as it is.

    Equal means equal on one kind of machine with the same versions of NumPy, SciPy and
    scikit-learn: unlike the other models of erasable, this one computes with BLAS.

    Records in files or on a cluster are refused, as the estimator is given all at once: pass
    ``records.in_memory()``, or use `erasable.ensemble.ShardedClassifier` or `ShardedRegressor`,
    which give it one shard at a time.

    XGBoost and LightGBM learn in one thread; LightGBM adds row by row, or column by column where
    `force_col_wise` is set. Of their models, the state holds the bytes that they write.

    The check for chance fits twice to 200 records, and only where a part of `estimator` is not
    scikit-learn's.

    Examples
    --------
    >>> from erasable.refit import Refit
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], ["a", "a", "b", "b", "c"]
    >>> model = Refit(RandomForestClassifier(10), random_state=0).fit(X, y, ids=[5, 6, 7, 8, 9])
    >>> model.delete([9]).action, model.classes_.tolist()
    ('refit', ['a', 'b'])
    >>> again = Refit(RandomForestClassifier(10), random_state=0)
    >>> model.digest() == again.fit(X[3::-1], y[3::-1], ids=[8, 7, 6, 5]).digest()
    True
    >>> model.predict([[0.0], [3.0]]).tolist()
    ['a', 'b']
    """

    _refit_from: ClassVar[tuple[int, float]] = NEVER  # it does
    _adds: ClassVar[bool] = False
    _updates_in_place: ClassVar[bool] = False
    _instead_of_memory: ClassVar[str] = (
        ", as the estimator of Refit is given all of them at once; where they are more than fits "
        "in memory, ShardedClassifier or ShardedRegressor gives it a shard at a time"
    )

    _parameter_constraints: ClassVar[dict[str, Any]] = {"estimator": [HasMethods("fit")]}

    _estimator: BaseEstimator
    _recipe: Recipe
    _tree: dict[str, Any]
    _text: list[int]
    _weighted: bool

    def __init__(self, estimator: Any, *, random_state: Any = None) -> None:
        self.estimator = estimator
        self.random_state = random_state

    # -- what is learned -----------------------------------------------------------------------

    @property
    def estimator_(self) -> BaseEstimator:
        """The fitted estimator, what it learned and nothing else: a copy, made at each access."""
        self._fitted()
        copied: BaseEstimator = self._recipe.copied(self._tree)
        return copied

    def _fitted(self) -> BaseEstimator:
        self._check_fitted()
        if "_estimator" not in self.__dict__:  # a step of a pipeline that has to learn anew
            raise DetachedAttributeError(
                f"the {type(self.estimator).__name__} of this {type(self).__name__} has not been "
                "fitted again since it was loaded; expected that; delete records, or load it with "
                "trusted=True if the file is your own"
            )
        return self._estimator

    def _validate_params(self) -> None:
        super()._validate_params()
        refuse_what_is_no_estimator(self.estimator, "Refit")

    @property
    def _takes_weights(self) -> bool:  # type: ignore[override]
        return weights_parameter(self.estimator) is not None

    def _learns_from(self) -> set[str]:
        # Of Records, targets are passed on to estimators that can do without, too.
        given = self._held is not None and self._held.records.y is not None
        return super()._learns_from() | ({"y"} if given else set())

    def _fit_rows(self) -> None:
        self._weighted = self._attached().records.weights is not None
        if self._weighted and not self._takes_weights:
            raise InvalidInputError(
                f"sample_weight was given, and {type(self.estimator).__name__} takes none in fit; "
                "expected none; leave sample_weight out, or use another estimator"
            )
        self._refuse_weightless(np.empty(0, dtype=np.int64))
        recipe = self._recipe = Recipe.of(self._at_fit("estimator"), self)
        rows = self._sorted_rows()
        sample = recipe.given(self._attached().records, rows[:_SAMPLE])
        refuse_chance(recipe.template, recipe.known, lambda: recipe.fit(self._tape, *sample))
        self._adopt_tree(*self._learn_again(rows))

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)

    def _update(self, delta: Delta) -> Outcome:
        self._adopt_tree(*self._learn_again(self._sorted_rows()))
        return Outcome("refit", self._attached().n_live, {"refits": 1})

    def _learn_again(self, rows: Ints) -> tuple[dict[str, Any], list[int]]:
        """Fit to rows, and return what was learned and which columns are text."""
        records = self._attached().records
        text = text_columns(records.matrix, rows)
        return self._recipe.fit(self._tape, *self._recipe.given(records, rows, text)), text

    def _adopt_tree(self, tree: dict[str, Any], text: list[int]) -> None:
        """Become what a fit came to: what the tree does not hold, no model keeps."""
        self._tree, self._text = tree, text
        self._estimator = self._recipe.fitted(tree)

    def _sorted_rows(self) -> Ints:
        held, keys = self._attached(), self._record_keys()
        live = held.live_rows()
        return live[np.argsort(keys[live], kind="stable")]

    def _as_given(self, matrix: Any, text: list[int]) -> Any:
        return self._recipe.show(matrix, text)

    def _schema(self) -> Fields:
        refuse_unbounded(self)
        columns = Array("int64", (None,), least=0, most=self.n_features_in_ - 1, ascending=True)
        parts = {"fitted": Anything(), "scikit_learn": Text(), "text_columns": columns}
        return Fields(parts, {"weighted": Flag((True,))})

    def _state(self) -> dict[str, Any]:
        return {
            "fitted": self._tree,
            "scikit_learn": sklearn.__version__,
            "text_columns": np.array(self._text, dtype=np.int64),
            **({"weighted": True} if self._weighted else {}),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        if state["scikit_learn"] != sklearn.__version__:
            raise ArtifactError(
                f"the model was fitted with scikit-learn {state['scikit_learn']}; expected "
                f"{sklearn.__version__}, which is here; fit again, or install the other"
            )
        self._weighted = state.get("weighted", False)
        self._recipe = Recipe.of(self._at_fit("estimator"), self)
        self._tree, self._text = state["fitted"], state["text_columns"].tolist()
        found = self._recipe.restored(self._tree, self._text, self._tape, self.n_features_in_)
        if found is not None:
            self._estimator = found

    @property
    def _has_to_fit_again(self) -> bool:  # type: ignore[override]
        return "_estimator" not in self.__dict__

    def _reattach(self) -> None:
        if self._weighted != (self._attached().records.weights is not None):
            was, are = ("with", "without") if self._weighted else ("without", "with")
            raise ArtifactError(
                f"the records come {are} weights; expected them {was}, as the model was fitted; "
                "pass Records(X, y, sample_weight=..., ids=...) of the records it was fitted on"
            )
        if "_estimator" not in self.__dict__:
            self._fit_again()

    def _fit_again(self) -> None:
        """Fit what the file holds as fitted, instead of taking it as it is."""
        tree, text = self._learn_again(self._sorted_rows())
        if text != self._text or not same(tree, self._tree):
            raise not_of_records(type(self).__name__)
        self._adopt_tree(tree, text)
