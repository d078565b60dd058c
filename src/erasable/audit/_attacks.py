"""Membership inference attacks: RMIA and LiRA."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from erasable.audit._shadows import Shadows
from erasable.audit._signals import Signals
from erasable.audit._statistics import separate
from erasable.core.arrays import Floats
from erasable.core.errors import InvalidParameterError
from erasable.core.seeds import is_integer

__all__ = ["RMIA", "LiRA", "control_scores"]

_FEWEST_FOR_VARIANCE = 64
_UNTUNED = 1 / 3
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True)
class RMIA:
    """Compare how likely a record is for the model with how likely it is for reference models.

    The most powerful attack with few models [1]_. A record is suspected if it gains more from this
    model, compared with references that have not learned from it, than most records of the
    population do.

    Parameters
    ----------
    n_references : int, default=4
        Number of reference models, which learn from halves of the pool. With one, `a` is not tuned,
        and another is trained for the control.
    gamma : float, default=2.0
        The factor by which a record has to outdo one of the population.
    temperature : float, default=2.0
        Logarithms of probabilities are divided by it.
    a : float, default=None
        The mean over models with and without a record is estimated from the mean p over models
        without it by ``((1 + a) p + 1 - a) / 2``. By default it is tuned on a reference that
        takes the place of the model, whose records are known; 1/3 with one reference.

    References
    ----------
    .. [1] Zarifzadeh, Liu and Shokri, "Low-cost high-power membership inference attacks",
       ICML 2024, sections 3 and B.2.

    Examples
    --------
    >>> str(RMIA())
    'RMIA, 4 references'
    """

    n_references: int = 4
    gamma: float = 2.0
    temperature: float = 2.0
    a: float | None = None
    online: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        _refuse_count("n_references", self.n_references, 1)
        for name, value in (("gamma", self.gamma), ("temperature", self.temperature)):
            if not isinstance(value, Real) or not 0.0 < value < np.inf:
                raise InvalidParameterError(f"{name} is {value!r}; expected a number above 0")
        if self.a is not None and not (isinstance(self.a, Real) and 0.0 <= self.a <= 1.0):
            raise InvalidParameterError(f"a is {self.a!r}; expected None, or a number from 0 to 1")

    def __str__(self) -> str:
        """Return the name and the main parameter."""
        return f"RMIA, {self.n_references} reference{'s' * (self.n_references > 1)}"

    @property
    def n_models(self) -> int:
        """The number of models to train: with one reference, another for the control."""
        return max(2, self.n_references)

    def scores(self, told: Signals, shadows: Shadows, n_pool: int) -> Floats:
        """Score records of the pool, and those after them that are asked for.

        Parameters
        ----------
        told : Signals
            Of the audited model, of all records.
        shadows : Shadows
            The references.
        n_pool : int
            Number of records of the pool.

        Returns
        -------
        ndarray of shape (n_records,), float64
            Logarithm of what each record gains from the model. `outdone` makes it the score of
            the paper, which has the same order and more ties. NaN for records of the pool that
            every reference has learned from.
        """
        references = shadows.of_models(slice(self.n_references))
        return self._gains(told.confidence, references, self.tuned(references, n_pool))

    def tuned(self, shadows: Shadows, n_pool: int) -> float:
        """Return `a`: the given one, or the one that finds the records of a reference best."""
        if self.a is not None:
            return self.a
        if len(shadows.members) < 2:
            return _UNTUNED
        first, rest = shadows.of_models([0], n_pool), shadows.of_models(slice(1, None), n_pool)
        truth = first.members[0]
        best = (-1.0, _UNTUNED)
        for a in np.linspace(0.0, 1.0, 11).tolist():
            found = self._gains(first.confidence[0], rest, a)
            known = ~np.isnan(found)
            if known[truth].any() and known[~truth].any():
                area = separate(found[known & truth], found[known & ~truth], rates=()).area
                best = max(best, (area, a))
        return best[1]

    def outdone(self, scores: Floats, n_pool: int) -> Floats:
        """Return the share of the population, which is the pool, that each record outdoes.

        By the factor `gamma`, as in equation 2 of the paper.
        """
        population = np.sort(scores[:n_pool][~np.isnan(scores[:n_pool])])
        bars = scores - np.log(self.gamma)
        shares: Floats = np.searchsorted(population, bars, side="right") / max(1, population.size)
        return shares

    def _gains(self, told: Floats, shadows: Shadows, a: float) -> Floats:
        outside = ~shadows.members
        count = outside.sum(axis=0)
        sums = np.where(outside, np.exp(shadows.confidence), 0.0).sum(axis=0)
        without = sums / np.where(count, count, np.nan)
        gains: Floats = told - np.log(0.5 * ((1.0 + a) * without + (1.0 - a)))
        return gains


@dataclass(frozen=True)
class LiRA:
    """Compare how sure the model is of a record with how sure shadow models are, with and without.

    Of each record, the log odds of its target are taken to be normal over the models that have
    learned from it, and over those that have not; a score is the logarithm of the ratio of the two
    likelihoods [1]_.

    Parameters
    ----------
    n_shadows : int, default=64
        Number of shadow models, which learn from halves of the pool.
    online : bool, default=True
        The audited records are in the pool, so that half of the shadows have learned from each.
        Otherwise none has, and a score is how far the model is above them, in deviations.
    fixed_variance : bool, default=None
        Take one variance for all records. By default with fewer than 64 shadows.

    References
    ----------
    .. [1] Carlini, Chien, Nasr, Song, Terzis and Tramer, "Membership inference attacks from first
       principles", S&P 2022, section IV.

    Examples
    --------
    >>> str(LiRA(16, online=False))
    'offline LiRA, 16 shadows'
    """

    n_shadows: int = 64
    online: bool = True
    fixed_variance: bool | None = None
    temperature: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        _refuse_count("n_shadows", self.n_shadows, 4)

    def __str__(self) -> str:
        """Return the name and the main parameter."""
        return f"{'online' if self.online else 'offline'} LiRA, {self.n_shadows} shadows"

    @property
    def n_models(self) -> int:
        """The number of models to train."""
        return self.n_shadows

    def scores(self, told: Signals, shadows: Shadows, n_pool: int) -> Floats:
        """Score records; see `RMIA.scores`.

        Where a shadow was paired, it is among those without a record, too: as it is once the
        record is deleted.

        Returns
        -------
        ndarray of shape (n_records,), float64
            The likelihood ratio; offline, deviations. NaN of records without both kinds of shadow.
        """
        logit = shadows.logit
        outside = np.where(shadows.members, np.nan, logit)
        if shadows.without is not None:
            outside = np.concatenate([outside, shadows.without])
        mean_out, spread_out = self._normal(outside)
        if not self.online:
            deviations: Floats = (told.logit - mean_out) / spread_out
            return deviations
        mean_in, spread_in = self._normal(np.where(shadows.members, logit, np.nan))
        ratio: Floats = _log_density(told.logit, mean_in, spread_in) - _log_density(
            told.logit, mean_out, spread_out
        )
        return ratio

    def _normal(self, logits: Floats) -> tuple[Floats, Floats]:
        """Return means and deviations over models, NaN left out."""
        given = ~np.isnan(logits)
        count = given.sum(axis=0)
        mean = np.where(given, logits, 0.0).sum(axis=0) / np.where(count, count, np.nan)
        squares = (np.where(given, logits - mean, 0.0) ** 2).sum(axis=0)
        fixed = self.fixed_variance
        if fixed is None:
            fixed = self.n_shadows < _FEWEST_FOR_VARIANCE
        if fixed:
            freedom = max(1, int(np.maximum(count - 1, 0).sum()))
            spread = np.full(mean.shape, np.sqrt(float(squares.sum()) / freedom))
        else:
            spread = np.sqrt(squares / np.maximum(count - 1, 1))
        return mean, np.maximum(spread, _LEAST_SPREAD)


def control_scores(attack: RMIA | LiRA, shadows: Shadows, n_pool: int) -> Floats:
    """Score records by an attack on shadows that have not learned from them; NaN without one.

    Each record is scored as the first of the shadows that has not learned from it would be, by
    means of the other shadows.
    """
    scores = np.full(shadows.members.shape[1], np.nan)
    for k, learned in enumerate(shadows.members):
        wanted = np.isnan(scores) & ~learned
        if wanted.any():
            target = Signals(shadows.confidence[k], shadows.logit[k])
            scores[wanted] = attack.scores(target, shadows.but(k), n_pool)[wanted]
    return scores


def _log_density(x: Floats, mean: Floats, spread: Floats) -> Floats:
    found: Floats = -0.5 * ((x - mean) / spread) ** 2 - np.log(spread)
    return found


def _refuse_count(name: str, value: int, least: int) -> None:
    if not is_integer(type(value)) or value < least:
        raise InvalidParameterError(
            f"{name} is {value!r}; expected a whole number, {least} or more"
        )
