"""The audit of whether a model reveals which records it has learned from."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from erasable.audit._attacks import RMIA, LiRA, control_scores
from erasable.audit._data import Sample, apart
from erasable.audit._report import AuditReport, Exposed, ReportGroup
from erasable.audit._sample_sizes import (
    detectable_rate,
    discernible_area,
    records_for_rate,
    refuse_probability,
)
from erasable.audit._shadows import Recipe, Shadows, train_shadows
from erasable.audit._signals import Signal, Signals, refuse_unknown_targets, signals_of
from erasable.audit._statistics import RATES, Separation, separate, stands_out
from erasable.core.arrays import Floats
from erasable.core.errors import InvalidParameterError, TooFewRecordsError
from erasable.core.ids import shorten
from erasable.core.seeds import is_integer, seed_from
from erasable.core.threads import check_n_jobs

__all__ = ["audit_membership", "plan_membership"]

_N_EXPOSED = 20
_N_ASKED_TWICE = 200
_COARSE = 0.6
_BELOW_SEED = 2**63


def audit_membership(
    model: Any,
    members: Any,
    others: Any,
    *,
    attack: RMIA | LiRA | str = "rmia",
    recipe: Any | Recipe = None,
    pool: Any = None,
    paired: bool = False,
    signal: Signal | None = None,
    level: float = 0.05,
    power: float = 0.8,
    rates: Sequence[float] = RATES,
    random_state: Any = None,
    n_jobs: int = 1,
) -> AuditReport:
    """Tell whether a model reveals which records it has learned from, and which it reveals most.

    Parameters
    ----------
    model : object
        Trained, with `predict_proba` or `decision_function`, or a regressor, or any other with
        `signal`. It is only queried.
    members : tuple (X, y) or (X, y, ids)
        Records that the model has learned from: all of them, or a random part.
    others : tuple (X, y) or (X, y, ids)
        Records from the same source that it has not learned from.
    attack : {"rmia", "lira"}, RMIA or LiRA
    recipe : estimator or callable, default=None
        Trains the models to compare with: an estimator, or ``recipe(X, y, seed)``. By default a
        clone of the model.
    pool : tuple (X, y), default=None
        Records that the models to compare with learn from, besides members and others. RMIA and
        offline LiRA take half of the others, at random, where it is None, and audit the rest; for
        online LiRA members and others are in the pool in any case.
    paired : bool, default=False
        For online LiRA and an estimator of erasable: every audited record is deleted, exactly,
        from every shadow that has learned from it, which gives a shadow without it.
    signal : callable, default=None
        ``signal(model, X, y)`` returns the log-likelihood of each target.
    level : float, default=0.05
        The probability of a false alarm.
    power : float, default=0.8
        For the plan: the probability that a leak is found.
    rates : sequence of float, default=(0.01, 0.001)
        Rates of false positives to report.
    random_state : int, RandomState, Generator or None, default=None
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    AuditReport

    Raises
    ------
    InvalidInputError
        More than a tenth of the others, or of the pool, are members; targets unknown to the model;
        no scores.
    TooFewRecordsError
        Too few records to compare.

    See Also
    --------
    leave_one_out_influence : How much less sure a model is of each record without it.

    Notes
    -----
    The same attack runs on reference models in place of the audited one, each on records that it
    has not learned from, so that it must not tell members from others. Where it does, or does so
    nearly as well as with the audited model, the two groups differ for another reason, and the
    verdict is "cannot tell".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> source = np.random.default_rng(0)
    >>> X, y = source.normal(size=(800, 5)), source.integers(0, 2, 800)
    >>> model = DecisionTreeClassifier().fit(X[:300], y[:300])
    >>> report = audit_membership(model, (X[:300], y[:300]), (X[300:], y[300:]), random_state=0)
    >>> report.verdict, report["audited records"].separation.area > 0.7
    ('found', True)
    """
    began = time.perf_counter()
    attack = _attack(attack)
    inside, outside = Sample.read(members, "members"), Sample.read(others, "others")
    extra = None if pool is None else Sample.read(pool, "pool")
    source = np.random.default_rng(seed_from(random_state))
    _refuse_options(attack, paired, level)
    check_n_jobs(n_jobs)
    # Others that are equal to members stay: without them others would be rarer records than members
    # are, and any model is less sure of those.
    _, n_equal = apart(outside, inside)
    if extra is not None:
        extra = apart(apart(extra, inside)[0], outside)[0]
    elif not attack.online:
        order = source.permutation(len(outside))
        half = len(outside) // 2
        extra, outside = (outside.take(np.sort(part)) for part in (order[:half], order[half:]))
    n_inside, n_audited = len(inside), len(inside) + len(outside)
    plan = plan_membership(n_inside, len(outside), level=level, power=power, rates=rates)
    recipe = model if recipe is None else recipe
    base, asked = inside.join(outside), None
    if not attack.online and extra is not None:
        base, asked = extra, base
    elif extra is not None:
        base = base.join(extra)
    everything = base if asked is None else base.join(asked)
    for each in (inside, outside):
        refuse_unknown_targets(model, each, signal)
    signals = signals_of(model, everything, temperature=attack.temperature, signal=signal)
    shadows = train_shadows(
        recipe, base, asked, n_models=attack.n_models, seed=int(source.integers(_BELOW_SEED)),
        temperature=attack.temperature, signal=signal, n_jobs=n_jobs,
        paired=np.arange(n_audited if paired else 0),
    )  # fmt: skip
    n_pool = len(base)
    first = 0 if asked is None else n_pool

    def audited(scores: Floats) -> tuple[Floats, Floats]:
        part = scores[first : first + n_audited]
        return part[:n_inside], part[n_inside:]

    scores = attack.scores(signals, shadows, n_pool)
    found = separate(*audited(scores), rates=rates, level=level)
    without = audited(control_scores(attack, shadows, n_pool))
    control = separate(*without, rates=rates, level=level)
    better = stands_out(*audited(scores), without, rates=rates, level=level)
    groups = (
        ReportGroup("audited records", found),
        ReportGroup("control: models that have not learned from them", control),
    )
    verdict, sentence, unsaid = _verdict(found, control, better, level, power)
    shown = scores
    if isinstance(attack, RMIA):
        shown = attack.outdone(scores, n_pool)
    return AuditReport(
        "membership", verdict, sentence, unsaid, judged="model",
        access="recipe and data" if recipe is model else "data and black box",
        attack=str(attack) + (", paired by exact deletion" if paired else ""), level=level,
        plan=plan, groups=groups,
        exposed=_exposed(inside, audited(scores)[0], audited(shown)[0]),
        notes=_notes(model, everything, signals, shadows, signal, n_equal),
        parameters=asdict(attack), seconds=time.perf_counter() - began,
    )  # fmt: skip


def plan_membership(
    n_members: int,
    n_others: int,
    *,
    level: float = 0.05,
    power: float = 0.8,
    rates: Sequence[float] = RATES,
) -> tuple[str, ...]:
    """Return what so many records can show, before an audit.

    Raises
    ------
    InvalidParameterError
        Invalid counts or probabilities.
    TooFewRecordsError
        Not even an area of 1 would be found.

    Examples
    --------
    >>> for line in plan_membership(1000, 500):
    ...     print(line)
    an AUC of 0.544 or more is found with probability 0.8 at an error of 0.05
    at 1 % false positives, 1.9 % of the members or more are found with that probability
    at 0.1 % false positives nothing can be said: it needs 1000 other records, and there are 500
    """
    for name, value in (("level", level), ("power", power)):
        refuse_probability(name, value)
    for name, count in (("n_members", n_members), ("n_others", n_others)):
        if not is_integer(type(count)) or count < 1:
            raise InvalidParameterError(
                f"{name} is {shorten(count)}; expected a whole number, 1 or more"
            )
    if not isinstance(rates, Sequence) or isinstance(rates, str):
        raise InvalidParameterError(
            f"rates is {shorten(rates)}; expected a sequence of rates, such as (0.01, 0.001)"
        )
    smallest = discernible_area(n_members, n_others, level=level, power=power)
    if smallest >= 1.0:
        raise TooFewRecordsError(
            f"{n_members} members and {n_others} other records find nothing at an error of "
            f"{level:g}; expected more, such as 20 of each"
        )
    lines = [
        f"an AUC of {smallest:.3f} or more is found with probability {power:g} at an error of "
        f"{level:g}"
    ]
    for rate in rates:
        needed = records_for_rate(rate)
        at = f"at {100 * rate:g} % false positives"
        if n_others < needed:
            lines.append(
                f"{at} nothing can be said: it needs {needed} other records, and there are "
                f"{n_others}"
            )
            continue
        share = detectable_rate(n_members, rate, level=level, power=power)
        lines.append(
            f"{at}, {100 * share:.2g} % of the members or more are found with that probability"
        )
    return tuple(lines)


def _attack(given: Any) -> RMIA | LiRA:
    if isinstance(given, RMIA | LiRA):
        return given
    known: dict[Any, Any] = {"rmia": RMIA, "lira": LiRA}
    if not isinstance(given, str) or given not in known:
        raise InvalidParameterError(
            f"attack is {shorten(given)}; expected 'rmia', 'lira', RMIA(...) or LiRA(...)"
        )
    made: RMIA | LiRA = known[given]()
    return made


def _refuse_options(attack: RMIA | LiRA, paired: bool, level: float) -> None:
    if paired and not attack.online:
        raise InvalidParameterError(
            f"paired=True with {attack}, whose models have learned from no audited record; "
            "expected online LiRA"
        )
    refuse_probability("level", level)


def _verdict(
    found: Separation, control: Separation, better: bool, level: float, power: float
) -> tuple[str, str, str]:
    """Return the verdict, its sentence, and its limits."""
    smallest = discernible_area(found.n_members, found.n_others, level=level, power=power)
    if control.p_value <= level or (found.p_value <= level and not better):
        distinguish = "distinguish" if control.p_value <= level else "nearly distinguish"
        return (
            "cannot tell",
            "The audit cannot tell whether the model reveals its records: even models that have "
            f"not learned from them {distinguish} the two groups, so they may differ for another "
            "reason.",
            "It does not say that the model is safe. Take other records from the same source, at "
            "the same time and in the same way as those that the model has learned from.",
        )
    if found.p_value <= level:
        return (
            "found",
            f"The model reveals which records it has learned from: {_strength(found)}",
            "It does not say that values of the records can be read from the model, and a stronger "
            "attack may find more.",
        )
    if smallest > _COARSE:
        return (
            "cannot tell",
            f"The audit cannot tell: with {found.n_members} and {found.n_others} records it would "
            f"have noticed only a strong leak (an attacker right in {100 * smallest:.0f} of 100 "
            "pairs, where 50 is chance), and did not.",
            "It does not say that the model is safe. Audit more records.",
        )
    return (
        "not found",
        "The attack could not distinguish the records that the model has learned from and others; "
        f"it would probably have noticed an attacker who is right in {100 * smallest:.0f} of 100 "
        "pairs, where 50 is chance.",
        "It does not say that no attack can: single records may be exposed, and stronger attacks "
        "exist.",
    )


def _strength(found: Separation) -> str:
    right = 100 * max(found.area, 1.0 - found.area)
    sentence = (
        f"shown one of them and one other record, an attacker picks the right one {right:.0f} "
        "times of 100, where 50 is chance."
    )
    measured = [rate for rate in found.rates if not math.isnan(rate.estimate)]
    if measured and measured[0].low > measured[0].false_positives:
        best = measured[0]
        sentence = sentence[:-1] + (
            f"; {100 * best.estimate:.1f} % of them are found while {100 * best.false_positives:g} "
            "% of others are suspected."
        )
    return sentence


def _exposed(members: Sample, scores: Floats, shown: Floats) -> tuple[Exposed, ...]:
    known = np.flatnonzero(~np.isnan(scores))
    worst = known[np.argsort(-scores[known], kind="stable")][:_N_EXPOSED].tolist()
    ids = members.ids.tolist()
    return tuple(Exposed(ids[row], float(shown[row])) for row in worst)


def _notes(
    model: Any,
    asked: Sample,
    signals: Signals,
    shadows: Shadows,
    signal: Any,
    n_equal: int,
) -> tuple[str, ...]:
    """Return notes for the reader: on answers that vary, and shadows of another size."""
    notes = []
    if n_equal:
        notes.append(
            f"{n_equal} of the others are equal to members, so that the model may know them, too: "
            "it may reveal more than was measured"
        )
    rows = np.arange(min(len(asked), _N_ASKED_TWICE))
    again = signals_of(model, asked.take(rows), signal=signal).logit
    apart = float(np.abs(again - signals.logit[rows]).max())
    if apart > 1e-6 * max(1.0, float(np.abs(signals.logit).max())) and signal is None:
        unit = "log odds" if hasattr(model, "classes_") else "squared error"
        notes.append(
            f"asked again, the model answered otherwise, by up to {apart:.3g} in {unit}: it is "
            "random, or depends on the records that are asked together"
        )
    n_learned = int(shadows.members[0].sum())
    n_model = getattr(model, "n_records_", None)
    if n_model is not None and not 0.5 <= n_learned / n_model <= 2.0:
        notes.append(
            f"the models to compare with have learned from {n_learned} records, and the audited "
            f"one from {n_model}: a larger pool may find more"
        )
    return tuple(notes)
