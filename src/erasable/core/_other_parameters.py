"""Parameters of scikit-learn's estimators that ours have not: ignored, or refused with a hint.

The law kept here: an ignored parameter does not change a model, and it is not stored: neither
``get_params`` nor a digest nor a file has it.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.params import class_path, find_class


class Other(NamedTuple):
    """A parameter that scikit-learn's estimator has and ours has not."""

    why: str
    """Why ours has not; where values are refused, with what to do instead."""
    values: tuple[Any, ...] | None = None
    """Values that are ignored, because the model is what they ask for; None: all values."""

    def allows(self, value: Any) -> bool:
        """Tell whether a value changes nothing here."""
        if self.values is None:
            return True
        return any(_is(value, each) for each in self.values)


def _is(value: Any, known: Any) -> bool:
    """Tell whether a value is a known one; True is not 1, and NumPy's numbers are numbers."""
    if known is None:
        return value is None
    if isinstance(known, str):
        return isinstance(value, str) and value == known
    if isinstance(known, bool):
        return isinstance(value, bool | np.bool_) and value == known
    return isinstance(value, Real) and not isinstance(value, bool) and bool(value == known)


_COPIED = Other("records are always copied, as they are to be erased")
_QUIET = Other("nothing is printed")
_NOTHING_DRAWN = Other("nothing is drawn")
_ONE_SOLVER = Other("there is one solver, which runs to the end")
_NO_START = Other("a start would be a trace of what was deleted; call fit", (False,))
_FOUND = Other("how near records are found does not show in what is found")
_METRIC = Other("metrics with parameters are no exact formulas", (None,))
_SUMMED = Other("all records within reach are summed, exactly, however they are found")
_NOT_POSITIVE = Other("coefficients of one sign have no closed solution", (False,))
_BOUNDED = Other("a bound from above would hang every node on those beside it", (None,))
_TEXTS = Other("texts are strings: decode bytes first")
_RARE = Other("which categories are rare depends on all records", (None,))
_NO_ROUNDS = Other("there is one round of learning, which nothing can watch")

_K_MEANS = {
    "algorithm": Other("all algorithms lead to the same clusters"),
    "copy_x": _COPIED,
    "init": Other("centers are seeded by k-means++, so that a seed can leave", ("k-means++",)),
    "n_init": Other(
        "there is one run, of greedy seeding; fit with several values of random_state, and keep "
        "the model of the least inertia_",
        ("auto", 1),
    ),
    "verbose": _QUIET,
}
_OF_TREES = {
    "ccp_alpha": Other("what is pruned depends on the whole tree; set min_samples_leaf", (0,)),
    "max_leaf_nodes": Other(
        "which leaf is split next depends on all others; set max_depth", (None,)
    ),
    "min_weight_fraction_leaf": Other(
        "leaves are bounded by numbers of records; set min_samples_leaf, which may be a share", (0,)
    ),
    "monotonic_cst": _BOUNDED,
}
_TREE = {
    **_OF_TREES,
    "splitter": Other("set n_thresholds=1, which draws one for each feature", ("best",)),
}
_FOREST = {
    **_OF_TREES,
    "max_samples": Other(
        "bags are drawn record by record, so that their sizes are drawn, too; bag trees with "
        "erasable.ensemble.BaggingClassifier or BaggingRegressor, which have it",
        (None, 1.0),
    ),
    "oob_score": Other("a score is not a part of the model; use cross_val_score", (False,)),
    "verbose": _QUIET,
    "warm_start": _NO_START,
}
_BOOSTING = {
    "interaction_cst": Other("a node tries edges of all features", (None,)),
    "max_features": Other("set n_thresholds, which says how many edges a node tries", (1.0,)),
    "monotonic_cst": _BOUNDED,
    "scoring": Other("the loss, whose sums are exact, tells when to stop", ("loss",)),
    "verbose": _QUIET,
    "warm_start": _NO_START,
}
_BAG = {
    "bootstrap_features": Other("a column twice is a column", (False,)),
    "oob_score": Other(
        "out of bag are other records after every deletion; use cross_val_score", (False,)
    ),
    "verbose": _QUIET,
    "warm_start": _NO_START,
}
_NEIGHBORS = {"metric_params": _METRIC}
_LEAST_SQUARES = {"copy_X": _COPIED, "positive": _NOT_POSITIVE, "tol": _ONE_SOLVER}
_SUPPORT = {
    "dual": _ONE_SOLVER,
    "max_iter": Other("the optimum is found, however many steps that takes"),
    "random_state": _NOTHING_DRAWN,
    "tol": Other("the optimum is found, to a certified distance"),
    "verbose": _QUIET,
}
_VECTORIZER = {
    "decode_error": _TEXTS,
    "encoding": _TEXTS,
    "input": Other("a file is no record; read it, and pass its text", ("content",)),
}

_ONE_DESCENT = Other("there is one way down: steps become shorter linearly, to 0")
_PERCEPTRON = {
    "beta_1": _ONE_DESCENT,
    "beta_2": _ONE_DESCENT,
    "early_stopping": Other("all records would decide when to stop; set max_iter", (False,)),
    "epsilon": _ONE_DESCENT,
    "learning_rate": _ONE_DESCENT,
    "max_fun": _ONE_DESCENT,
    "momentum": _ONE_DESCENT,
    "n_iter_no_change": Other("there are max_iter / batch_size steps"),
    "nesterovs_momentum": _ONE_DESCENT,
    "power_t": _ONE_DESCENT,
    "shuffle": Other("records take part in a step by their ids, in no order"),
    "solver": _ONE_DESCENT,
    "tol": Other("there are max_iter / batch_size steps"),
    "validation_fraction": Other("no records are set aside"),
    "verbose": _QUIET,
    "warm_start": _NO_START,
}
_PROJECTION = {
    "compute_inverse_components": Other(
        "projections are not inverted; use to_sklearn(), which has inverse_transform", (False,)
    ),
    "eps": Other("n_components is a number: by eps it would depend on the number of records"),
}

OTHER_PARAMETERS: Mapping[str, Mapping[str, Other]] = {
    "BaggingClassifier": _BAG,
    "BaggingRegressor": _BAG,
    "ColumnTransformer": {
        "force_int_remainder_cols": Other("columns are named as they were given"),
        "n_jobs": Other("set n_jobs of the transformers"),
        "transformer_weights": Other(
            "columns are not multiplied; put a MinMaxScaler with feature_range behind the "
            "transformer",
            (None,),
        ),
        "verbose": _QUIET,
    },
    "CountVectorizer": _VECTORIZER,
    "DBSCAN": {
        "algorithm": _FOUND,
        "leaf_size": _FOUND,
        "metric_params": _METRIC,
        "p": Other("set metric", (None,)),
    },
    "DecisionTreeClassifier": _TREE,
    "DecisionTreeRegressor": _TREE,
    "ExtraTreesClassifier": _FOREST,
    "ExtraTreesRegressor": _FOREST,
    "GaussianRandomProjection": _PROJECTION,
    "HistGradientBoostingClassifier": _BOOSTING,
    "HistGradientBoostingRegressor": {
        **_BOOSTING,
        "quantile": Other(
            "leaves would be quantiles of residuals, which sums do not tell", (None,)
        ),
    },
    "KMeans": _K_MEANS,
    "KNeighborsClassifier": _NEIGHBORS,
    "KNeighborsRegressor": _NEIGHBORS,
    "KernelDensity": {
        "algorithm": _SUMMED,
        "atol": _SUMMED,
        "breadth_first": _SUMMED,
        "leaf_size": _SUMMED,
        "metric_params": _METRIC,
        "rtol": _SUMMED,
    },
    "LinearRegression": _LEAST_SQUARES,
    "LogisticRegression": {
        "dual": _ONE_SOLVER,
        "intercept_scaling": _ONE_SOLVER,
        "l1_ratio": Other(
            "an optimum with another penalty is not smooth; set C alone", (None, 0, "warn")
        ),
        "max_iter": Other("the optimum is found, however many steps that takes"),
        "multi_class": Other(
            "classes are learned together; see sklearn.multiclass.OneVsRestClassifier",
            ("auto", "deprecated", "multinomial"),
        ),
        "penalty": Other(
            "an optimum with another penalty is not smooth; set a large C for nearly none",
            ("l2", "deprecated"),
        ),
        "random_state": _NOTHING_DRAWN,
        "solver": Other(
            "there is one solver, which finds the optimum; liblinear penalizes the intercept, too",
            ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"),
        ),
        "tol": Other("the optimum is found, to a certified distance"),
        "verbose": _QUIET,
        "warm_start": _NO_START,
    },
    "LinearSVC": {
        **_SUPPORT,
        "loss": Other(
            "the other hinge has kinks, at which no sums of records determine an optimum",
            ("squared_hinge",),
        ),
        "multi_class": Other("there is one model for each class, against all others", ("ovr",)),
        "penalty": Other("an optimum with another penalty is not smooth; set C alone", ("l2",)),
    },
    "LinearSVR": {
        **_SUPPORT,
        "loss": Other(
            "the other loss has kinks, at which no sums of records determine an optimum",
            ("squared_epsilon_insensitive",),
        ),
    },
    "MLPClassifier": _PERCEPTRON,
    "MLPRegressor": {
        **_PERCEPTRON,
        "loss": Other("errors are squared", ("squared_error",)),
    },
    "MaxAbsScaler": {
        "clip": Other(
            "values beyond those of the records stay what they are; clip them with NumPy", (False,)
        ),
        "copy": _COPIED,
    },
    "MinMaxScaler": {"copy": _COPIED},
    "NearestCentroid": {"metric": Other("medians of classes are no sums", ("euclidean",))},
    "OneHotEncoder": {
        "feature_name_combiner": Other(
            "names are one of the column and one of the category", ("concat",)
        ),
        "max_categories": _RARE,
        "min_frequency": _RARE,
    },
    "OrdinalEncoder": {"max_categories": _RARE, "min_frequency": _RARE},
    "PCA": {
        "copy": _COPIED,
        "iterated_power": _ONE_SOLVER,
        "n_oversamples": _ONE_SOLVER,
        "power_iteration_normalizer": _ONE_SOLVER,
        "random_state": _NOTHING_DRAWN,
        "svd_solver": Other("components are those of exact second moments"),
        "tol": _ONE_SOLVER,
    },
    "Pipeline": {
        "memory": Other("the tables between steps are kept in memory where a deletion needs them"),
        "transform_input": Other("metadata are not transformed", (None,)),
        "verbose": _QUIET,
    },
    "RandomForestClassifier": _FOREST,
    "RandomForestRegressor": _FOREST,
    "Ridge": {
        **_LEAST_SQUARES,
        "max_iter": _ONE_SOLVER,
        "random_state": _NOTHING_DRAWN,
        "solver": Other(
            "the solution is computed from exact sums; the choice of a solver does not change it"
        ),
    },
    "RobustScaler": {"copy": _COPIED},
    "SimpleImputer": {"copy": _COPIED},
    "SparseRandomProjection": {
        **_PROJECTION,
        "dense_output": Other("projections are dense: few of their values are 0"),
    },
    "StandardScaler": {"copy": _COPIED},
    "TfidfVectorizer": _VECTORIZER,
}
"""By the name of the estimator, of all versions of scikit-learn that are supported."""


def ignoring_others(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor of an estimator: other parameters are ignored, or refused with a hint.

    Its signature, from which scikit-learn reads the parameters, is what it was.
    """
    own = inspect.signature(init).parameters
    if any(each.kind is each.VAR_KEYWORD for each in own.values()):
        return init
    known = [name for name in own if name != "self"]

    @functools.wraps(init)
    def initialize(self: Any, *args: Any, **given: Any) -> None:
        if given.keys() - own.keys():
            given = without_others(type(self), known, given)
        init(self, *args, **given)

    return initialize


def without_others(
    cls: type[Any], known: list[str], given: Mapping[str, Any], of_parts: Iterable[str] = ()
) -> dict[str, Any]:
    """Return those of some parameters that an estimator has; refuse others that change anything.

    `of_parts` are names of parameters of its parts, which a user may have meant.

    >>> from erasable.cluster import KMeans
    >>> without_others(KMeans, ["n_clusters"], {"n_clusters": 3, "n_init": "auto"})
    {'n_clusters': 3}
    """
    base = _with_twin(cls)
    others = {} if base is None else OTHER_PARAMETERS[base.__name__]
    for name, value in given.items():
        if name in known:
            continue
        if name not in others:
            raise InvalidParameterError(_unknown(cls, name, known, of_parts))
        if not others[name].allows(value):
            raise InvalidParameterError(_refused(cls, name, value, known))
    return {name: value for name, value in given.items() if name in known}


def _with_twin(cls: type[Any]) -> type[Any] | None:
    """Return the class of erasable that has an entry: the class itself, or one of its bases."""
    ours = (each for each in cls.__mro__ if each.__module__.startswith("erasable."))
    return next((each for each in ours if each.__name__ in OTHER_PARAMETERS), None)


def _listed(known: list[str]) -> str:
    return ", ".join(known) if known else "none"


def _unknown(cls: type[Any], name: str, known: list[str], of_parts: Iterable[str]) -> str:
    close = [each for each in of_parts if each.endswith(f"__{name}")]
    close = close[:3] or difflib.get_close_matches(name, known, 3)
    advice = f"did you mean {' or '.join(close)}?" if close else "leave it out"
    given = name if name.isidentifier() else shorten(name)
    return f"{cls.__name__} was given {given}; expected {_listed(known)}; {advice}"


def _refused(cls: type[Any], name: str, value: Any, known: list[str]) -> str:
    base = _with_twin(cls)
    assert base is not None
    other = OTHER_PARAMETERS[base.__name__][name]
    allowed = " or ".join(repr(each) for each in other.values or ())
    theirs = class_path(base).replace("erasable.", "sklearn.", 1)
    theirs = theirs.replace("feature_extraction.", "feature_extraction.text.")
    # Releases of scikit-learn differ, and other arguments may have to go with it.
    there = name in inspect.signature(find_class(theirs)).parameters
    return (
        f"{cls.__name__} was given {name}={shorten(value)}; expected {_listed(known)}, or "
        f"{name}={allowed}, which changes nothing; {other.why}"
    ) + (f"; Refit({theirs}(...)) has it" if there else "")
