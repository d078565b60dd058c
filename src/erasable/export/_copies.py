"""Exports whose fitted attributes are those of the model: scalers, linear models, naive Bayes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn.cluster
import sklearn.decomposition
import sklearn.kernel_approximation
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.neighbors
import sklearn.neural_network
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.random_projection
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning

from erasable.core.arrays import Floats
from erasable.core.errors import ExportError
from erasable.export._source import Source

_IMPOSSIBLE = -1e300
"""In the place of a logarithm of -inf, of which scikit-learn makes NaN where it is multiplied."""
_NARROWEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Copied:
    """A class of scikit-learn, and the fitted attributes that are those of the model.

    `more` returns attributes that are not, or not quite.
    """

    theirs: type[Any]
    attributes: tuple[str, ...]
    more: Callable[[Source], dict[str, Any]] = lambda source: {}

    def __call__(self, source: Source) -> Any:
        """Export a model."""
        made = self.theirs(**source.shared(self.theirs))
        found = {name: getattr(source.model, name) for name in self.attributes}
        made.__dict__.update(found, n_features_in_=source.model.n_features_in_)
        made.__dict__.update(self.more(source))
        return made


def _center(source: Source) -> dict[str, Any]:
    """With `quantize`, what is subtracted is another number than the mean."""
    center = source.model.center_
    return {} if center is None else {"mean_": center}


def _directions(source: Source) -> dict[str, Any]:
    """Return the components, longer or shorter where scikit-learn divides by another number.

    It divides by the deviation, and by at least the distance of 1.0 to the next number.
    """
    components = source.model.components_
    if source.at_fit("whiten"):
        deviations = np.sqrt(source.model.explained_variance_)
        eps = np.finfo(np.float64).eps
        least = eps * max(float(deviations.max()), 2.0**-960)
        own = np.where(deviations < least, 1.0, deviations)
        components *= (np.maximum(deviations, eps) / own)[:, None]
    return {"components_": components}


def _solver(source: Source) -> dict[str, Any]:
    return {"n_iter_": None, "solver_": "cholesky"}


def _gaussians(source: Source) -> dict[str, Any]:
    """Return means and variances by which a class without records is impossible.

    scikit-learn divides by variances, and takes the logarithm of probabilities.
    """
    theta, variance, prior = (
        getattr(source.model, name) for name in ("theta_", "var_", "class_prior_")
    )
    gone = (source.model.class_count_ == 0) | (prior == 0)
    theta[gone] = np.inf
    prior[gone] = _NARROWEST
    variance[variance == 0] = _NARROWEST if variance.any() else 1.0
    return {"theta_": theta, "var_": variance, "class_prior_": prior}


def _prior(source: Source) -> dict[str, Any]:
    prior = source.model.class_log_prior_
    prior[source.model.class_count_ == 0] = -np.inf
    return {"class_log_prior_": prior}


def _multinomial(source: Source) -> dict[str, Any]:
    return {**_prior(source), "feature_log_prob_": _finite(source.model.feature_log_prob_)}


def _bernoulli(source: Source) -> dict[str, Any]:
    logs = source.model.feature_log_prob_
    if (logs == 0).any():
        raise ExportError(
            "with alpha=0, all records of a class have some feature, so that BernoulliNB holds it "
            "for impossible to be without; scikit-learn's BernoulliNB predicts NaN then; fit with "
            "an alpha above 0"
        )
    return {**_prior(source), "feature_log_prob_": _finite(logs)}


def _finite(logs: Floats) -> Floats:
    return np.maximum(logs, _IMPOSSIBLE)


_NAIVE_BAYES = ("classes_", "class_count_")

STANDARD_SCALER = Copied(
    sklearn.preprocessing.StandardScaler,
    ("mean_", "var_", "scale_", "n_samples_seen_"),
    _center,
)
MIN_MAX_SCALER = Copied(
    sklearn.preprocessing.MinMaxScaler,
    ("data_min_", "data_max_", "data_range_", "min_", "scale_", "n_samples_seen_"),
)
MAX_ABS_SCALER = Copied(
    sklearn.preprocessing.MaxAbsScaler, ("max_abs_", "scale_", "n_samples_seen_")
)
ROBUST_SCALER = Copied(sklearn.preprocessing.RobustScaler, ("center_", "scale_"))
PRINCIPAL_COMPONENTS = Copied(
    sklearn.decomposition.PCA,
    (
        "mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_",
        "noise_variance_", "n_components_", "n_samples_",
    ),
    _directions,
)  # fmt: skip
GAUSSIAN_PROJECTION = Copied(
    sklearn.random_projection.GaussianRandomProjection, ("components_", "n_components_")
)
SPARSE_PROJECTION = Copied(
    sklearn.random_projection.SparseRandomProjection,
    ("components_", "n_components_", "density_"),
)
LINEAR_REGRESSION = Copied(sklearn.linear_model.LinearRegression, ("coef_", "intercept_", "rank_"))
RIDGE = Copied(sklearn.linear_model.Ridge, ("coef_", "intercept_"), _solver)
LOGISTIC_REGRESSION = Copied(
    sklearn.linear_model.LogisticRegression, ("classes_", "coef_", "intercept_", "n_iter_")
)
_LINEAR_SVR = Copied(sklearn.svm.LinearSVR, ("coef_", "intercept_", "n_iter_"))
LINEAR_SVC = Copied(sklearn.svm.LinearSVC, ("classes_", "coef_", "intercept_", "n_iter_"))
GAUSSIAN_NB = Copied(sklearn.naive_bayes.GaussianNB, (*_NAIVE_BAYES, "epsilon_"), _gaussians)
MULTINOMIAL_NB = Copied(
    sklearn.naive_bayes.MultinomialNB, (*_NAIVE_BAYES, "feature_count_"), _multinomial
)
BERNOULLI_NB = Copied(
    sklearn.naive_bayes.BernoulliNB, (*_NAIVE_BAYES, "feature_count_"), _bernoulli
)
CATEGORICAL_NB = Copied(
    sklearn.naive_bayes.CategoricalNB,
    (*_NAIVE_BAYES, "category_count_", "feature_log_prob_", "n_categories_"),
    _prior,
)
NEAREST_CENTROID = Copied(
    sklearn.neighbors.NearestCentroid,
    ("classes_", "centroids_", "class_prior_", "deviations_", "within_class_std_dev_"),
)


def linear_svr(source: Source) -> sklearn.svm.LinearSVR:
    """Export a support vector regression, whose loss is not the default one there."""
    made: sklearn.svm.LinearSVR = _LINEAR_SVR(source)
    return made.set_params(loss="squared_epsilon_insensitive", dual=False)


def random_fourier_ridge(source: Source) -> sklearn.pipeline.Pipeline:
    """Export waves and the ridge regression on them."""
    model = source.model
    waves = sklearn.kernel_approximation.RBFSampler(
        gamma=source.at_fit("gamma"), n_components=source.at_fit("n_components")
    )
    rows = np.zeros((1, model.n_features_in_))
    waves.set_params(random_state=0).fit(rows).set_params(random_state=None)
    waves.random_weights_, waves.random_offset_ = model.random_weights_, model.random_offset_
    ridge = sklearn.linear_model.Ridge(**source.shared(sklearn.linear_model.Ridge))
    ridge.coef_, ridge.intercept_ = model.coef_, model.intercept_
    ridge.__dict__.update(_solver(source), n_features_in_=waves.n_components)
    return sklearn.pipeline.Pipeline([("rbfsampler", waves), ("ridge", ridge)])


def perceptron(source: Source) -> Any:
    """Export the layers of a network; losses are not a part of it."""
    model = source.model
    theirs = getattr(sklearn.neural_network, type(model).__name__)
    shared = {name: value for name, value in source.shared(theirs).items() if name != "batch_size"}
    made = theirs(**{**shared, "max_iter": 1, "solver": "sgd", "random_state": 0})
    # Any records of these outputs will do, as what is learned of them is replaced.
    targets = np.zeros((2, model.n_outputs_) if model.n_outputs_ > 1 else 2)
    y = getattr(model, "classes_", targets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        made.fit(np.zeros((len(y), model.n_features_in_)), y)
    made.set_params(max_iter=shared["max_iter"], random_state=None)
    made.coefs_, made.intercepts_ = model.coefs_, model.intercepts_
    made.n_iter_ = model.n_iter_
    del made.loss_, made.loss_curve_, made.best_loss_, made.t_
    del made.validation_scores_, made.best_validation_score_
    return made


def k_means(source: Source) -> sklearn.cluster.KMeans:
    """Export centroids; the clusters of the records are not a part of it."""
    theirs, centers = sklearn.cluster.KMeans, source.model.cluster_centers_
    made = theirs(**{**source.shared(theirs), "n_clusters": centers.shape[0]})
    made.set_params(init="random", n_init=1, random_state=0)
    # Any records will do, as what is learned of them is replaced.
    made.fit(np.arange(centers.size, dtype=np.float64).reshape(centers.shape))
    made.set_params(init="k-means++", n_init="auto", random_state=None)
    made.cluster_centers_ = centers
    del made.labels_, made.inertia_, made.n_iter_
    return made
