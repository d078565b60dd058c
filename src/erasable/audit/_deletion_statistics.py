"""Statistics that compare models that deleted records with models trained without them."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from erasable.audit._statistics import clopper_pearson
from erasable.core.arrays import Floats, Ints

__all__ = [
    "EPSILON",
    "N_BINS",
    "MemorisedTenth",
    "bins_of",
    "divergences",
    "example_accuracy",
    "example_areas",
    "largest_delta",
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
    """Rank models by signal for each record: 0 is below all others, 1 above; ties count half."""
    found: Floats = (rankdata(signals, axis=0) - 1.0) / (len(signals) - 1)
    return found


class MemorisedTenth:
    """The tenth of the records, at least one, of which training made models surest.

    `learned` has the signals of models trained with the records, `compared` those of all models
    between which the test exchanges, so that an exchange does not change which records are chosen.
    Signals have the shape (n_models, n_records).
    """

    def __init__(self, learned: Floats, compared: Floats) -> None:
        gained = learned.mean(axis=0) - compared.mean(axis=0)
        n = max(1, round(gained.size / 10))
        self.rows: Ints = np.sort(np.argsort(-gained, kind="stable")[:n])


# -- U-LiRA ----------------------------------------------------------------------------------------


def _held_out(deleted: Floats, retrained: Floats, source: np.random.Generator) -> list[Floats]:
    """Return likelihood ratios of held-out models: deleted, retrained; then of the other halves.

    For each record, the signals of each arm are normal, with means and variances of one half of its
    models; the other half is tested. With few models the variance is common to both arms.
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

    The mean of the accuracy on either arm, each of four models at least; ties count half, 0.5 is
    chance. Halves are drawn anew for each exchange of models, so that the order of models says
    nothing. Hayes, Shumailov, Triantafillou, Khalifa and Papernot, "Inexact unlearning needs more
    careful evaluations to avoid a false sense of privacy", 2024, section 4.
    """
    first, second, third, fourth = (np.sign(each) for each in _held_out(deleted, retrained, source))
    right = (first.mean(axis=0) - second.mean(axis=0), third.mean(axis=0) - fourth.mean(axis=0))
    found: Floats = 0.5 + (right[0] + right[1]) / 8
    return found


def example_areas(deleted: Floats, retrained: Floats, source: np.random.Generator) -> Floats:
    """Return the area under the ROC curve of U-LiRA for each record; see `example_accuracy`."""
    ratios = _held_out(deleted, retrained, source)
    areas = []
    for a, b in (ratios[:2], ratios[2:]):
        areas.append(np.sign(a[:, np.newaxis] - b[np.newaxis]).mean(axis=(0, 1)) / 2 + 0.5)
    found: Floats = (areas[0] + areas[1]) / 2
    return found


def largest_delta(deleted: Floats, retrained: Floats, level: float) -> float:
    """Bound the delta for which a method may be a delta-deletion, with probability 1 - `level`.

    Of a delta-deletion no event is 1 / delta times as likely as of retraining. The event is that a
    model is nearer to those that deleted than to the others, by the first half of each arm; it is
    counted in the second half. The bound is 1 where that shows nothing. Ginart, Guan, Valiant and
    Zou, "Making AI Forget You", 2019, definition A.6.
    """
    halves = [(each[: len(each) // 2], each[len(each) // 2 :]) for each in (deleted, retrained)]
    means = [half[0].mean(axis=0) for half in halves]
    middle, apart = (means[0] + means[1]) / 2, means[0] - means[1]
    near = [((half[1] - middle) * apart).mean(axis=1) > 0.0 for half in halves]
    intervals = [clopper_pearson(int(each.sum()), len(each), level) for each in near]
    low, high = intervals[0][0], intervals[1][1]
    return min(1.0, high / low) if low > 0.0 else 1.0


# -- KLoM ------------------------------------------------------------------------------------------


def bins_of(margins: Floats) -> Ints:
    """Return the bin of each margin, of 20 between the least and the largest of its record.

    Margins are clipped to [-100, 100] before. As the range is that of all models, an exchange of
    models does not change it.
    """
    clipped = np.clip(margins, -_MARGIN, _MARGIN)
    low, high = clipped.min(axis=0), clipped.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    bins: Ints = np.minimum((clipped - low) / width * N_BINS, N_BINS - 1).astype(np.int64)
    return bins


def divergences(deleted: Ints, retrained: Ints) -> Floats:
    """Return KLoM of each record, in nats, by bins of margins after deletion and retraining.

    The Kullback-Leibler divergence of the histogram of retrained models from that of models that
    deleted; `EPSILON` is added to the share of every bin, so it is 11.5 at most. Georgiev, Rinberg,
    Park, Garg, Ilyas, Madry and Neel, "Attribute-to-delete: machine unlearning via datamodel
    matching", 2024, section E.1.
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
    """Return the distance of predictions for each record, averaged over pairs of the k-th models.

    Predictions have the shape (n_models, n_records, n_outputs). A `scale` of 0.5 makes that of
    probabilities their total variation; it is 1 for numbers.
    """
    found: Floats = scale * np.abs(first - second).sum(axis=2).mean(axis=0)
    return found
