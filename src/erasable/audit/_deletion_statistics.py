"""Statistics that compare models that deleted records with models trained without them."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from erasable.core.arrays import Floats, Ints

__all__ = [
    "EPSILON",
    "N_BINS",
    "MemorisedTenth",
    "bins_of",
    "divergences",
    "example_accuracy",
    "example_areas",
    "mean_distances",
    "uniform_ranks",
]

N_BINS = 20
EPSILON = 1e-5
"""Added to the share of every bin, so that an empty one has a logarithm."""
_MARGIN = 100.0
_FEWEST_FOR_VARIANCE = 64
_LEAST_SPREAD = 1e-6

# -- one model against others ---------------------------------------------------------------------


def uniform_ranks(signals: Floats) -> Floats:
    """Rank models by their signal, record by record: 0 is below all others, 1 above all.

    Parameters
    ----------
    signals : ndarray of shape (n_models, n_records)

    Returns
    -------
    ndarray of the same shape
        Share of the other models that are below, ties counted as half.

    Examples
    --------
    >>> uniform_ranks(np.array([[3.0], [1.0], [1.0]])).ravel()
    array([1.  , 0.25, 0.25])
    """
    found: Floats = (rankdata(signals, axis=0) - 1.0) / (len(signals) - 1)
    return found


class MemorisedTenth:
    """The records of which models are surest when trained with them, compared with without.

    Parameters
    ----------
    learned : ndarray of shape (n_models, n_records)
        Signals of models that were trained with the records.
    compared : ndarray of shape (n_models, n_records)
        Signals of all models between which the test exchanges, so that an exchange does not
        change which records are chosen.

    Attributes
    ----------
    rows : ndarray of int64
        The tenth with the largest difference of means, one record at least.

    Examples
    --------
    >>> MemorisedTenth(np.array([[0.0, 5.0, 0.0]]), np.zeros((2, 3))).rows
    array([1])
    """

    def __init__(self, learned: Floats, compared: Floats) -> None:
        gained = learned.mean(axis=0) - compared.mean(axis=0)
        n = max(1, round(gained.size / 10))
        self.rows: Ints = np.sort(np.argsort(-gained, kind="stable")[:n])


# -- U-LiRA ----------------------------------------------------------------------------------------


def _held_out(deleted: Floats, retrained: Floats, source: np.random.Generator) -> list[Floats]:
    """Return likelihood ratios of models that were held out, in two directions.

    Of each record, the signals of each arm are normal, with means and variances of one half of its
    models; the other half is tested. With few models the variance is common to both arms.

    Returns
    -------
    list of ndarray
        Of deleted models and of retrained ones, then of the other halves.
    """
    arms = [each[source.permutation(len(each))] for each in (deleted, retrained)]
    halves = [(each[: len(each) // 2], each[len(each) // 2 :]) for each in arms]
    found = []
    for fitted, tested in ((0, 1), (1, 0)):
        means = [half[fitted].mean(axis=0) for half in halves]
        if min(len(half[fitted]) for half in halves) < _FEWEST_FOR_VARIANCE:
            # With one variance, the ratio grows with this, and is 0 where this is.
            middle, apart = (means[0] + means[1]) / 2, means[0] - means[1]
            found += [(half[tested] - middle) * apart for half in halves]
            continue
        variances = [
            np.maximum(half[fitted].var(axis=0, ddof=1), _LEAST_SPREAD**2) for half in halves
        ]
        for half in halves:
            densities = [
                -0.5 * (half[tested] - mean) ** 2 / variance - 0.5 * np.log(variance)
                for mean, variance in zip(means, variances, strict=True)
            ]
            found.append(densities[0] - densities[1])
    return found


def example_accuracy(deleted: Floats, retrained: Floats, source: np.random.Generator) -> Floats:
    """Return how often U-LiRA guesses right, for each record, whether a model has deleted it.

    Parameters
    ----------
    deleted, retrained : ndarray of shape (n_models, n_records)
        Signals; four models in each at least.
    source : numpy.random.Generator
        Draws the halves. A test that exchanges models draws them anew each time, so that the order
        of models says nothing.

    Returns
    -------
    ndarray of shape (n_records,)
        Mean of the accuracy on either arm; ties count as half; 0.5 tells nothing.

    References
    ----------
    Hayes, Shumailov, Triantafillou, Khalifa and Papernot, "Inexact unlearning needs more careful
    evaluations to avoid a false sense of privacy", 2024, section 4.

    Examples
    --------
    >>> signals = np.arange(8.0).reshape(8, 1)
    >>> example_accuracy(signals + 100, signals, np.random.default_rng(0))
    array([1.])
    """
    first, second, third, fourth = (np.sign(each) for each in _held_out(deleted, retrained, source))
    right = (first.mean(axis=0) - second.mean(axis=0), third.mean(axis=0) - fourth.mean(axis=0))
    found: Floats = 0.5 + (right[0] + right[1]) / 8
    return found


def example_areas(deleted: Floats, retrained: Floats, source: np.random.Generator) -> Floats:
    """Return the area under the ROC curve of U-LiRA, for each record; see `example_accuracy`."""
    ratios = _held_out(deleted, retrained, source)
    areas = []
    for a, b in (ratios[:2], ratios[2:]):
        areas.append(np.sign(a[:, np.newaxis] - b[np.newaxis]).mean(axis=(0, 1)) / 2 + 0.5)
    found: Floats = (areas[0] + areas[1]) / 2
    return found


# -- KLoM ------------------------------------------------------------------------------------------


def bins_of(margins: Floats) -> Ints:
    """Return the bin of each margin, of 20 between the least and the largest of its record.

    Margins are clipped at -100 and 100 before. As the range is that of all models, an exchange of
    models does not change it.

    Examples
    --------
    >>> bins_of(np.array([[0.0], [10.0], [500.0]])).ravel()
    array([ 0,  2, 19])
    """
    clipped = np.clip(margins, -_MARGIN, _MARGIN)
    low, high = clipped.min(axis=0), clipped.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    bins: Ints = np.minimum((clipped - low) / width * N_BINS, N_BINS - 1).astype(np.int64)
    return bins


def divergences(deleted: Ints, retrained: Ints) -> Floats:
    """Return KLoM of each record: how far margins after deletion are from those of retraining.

    Parameters
    ----------
    deleted, retrained : ndarray of shape (n_models, n_records)
        Bins, see `bins_of`.

    Returns
    -------
    ndarray of shape (n_records,)
        Kullback-Leibler divergence, in nats, of the histogram of retrained models from that of
        models that deleted; `EPSILON` is added to the share of every bin. 11.5 at most.

    References
    ----------
    Georgiev, Rinberg, Park, Garg, Ilyas, Madry and Neel, "Attribute-to-delete: machine unlearning
    via datamodel matching", 2024, section E.1.

    Examples
    --------
    >>> divergences(np.array([[0], [0]]), np.array([[19], [19]])).round(1)
    array([11.5])
    """
    p, q = _shares(retrained), _shares(deleted)
    found: Floats = (p * np.log(p / q)).sum(axis=1)
    return found


def _shares(bins: Ints) -> Floats:
    n = bins.shape[1]
    places = (bins + np.arange(n) * N_BINS).ravel()
    counts = np.bincount(places, minlength=n * N_BINS).reshape(n, N_BINS)
    shares = counts / len(bins) + EPSILON
    found: Floats = shares / shares.sum(axis=1, keepdims=True)
    return found


# -- distances -------------------------------------------------------------------------------------


def mean_distances(first: Floats, second: Floats, scale: float) -> Floats:
    """Return how far apart predictions of models are, for each record; mean over pairs of models.

    Parameters
    ----------
    first, second : ndarray of shape (n_models, n_records, n_outputs)
        The k-th of one is paired with the k-th of the other.
    scale : float
        0.5 of probabilities, which makes it their total variation; 1 of numbers.

    Examples
    --------
    >>> mean_distances(np.array([[[0.9, 0.1]]]), np.array([[[0.5, 0.5]]]), 0.5)
    array([0.4])
    """
    found: Floats = scale * np.abs(first - second).sum(axis=2).mean(axis=0)
    return found
