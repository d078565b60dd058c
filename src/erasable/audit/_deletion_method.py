"""The audit of a method by which models delete records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from erasable.audit._data import Sample
from erasable.audit._deletion_groups import Answers, Questions, renumbered, stack
from erasable.audit._deletion_statistics import (
    MemorisedTenth,
    bins_of,
    divergences,
    example_accuracy,
    example_areas,
    largest_delta,
    mean_distances,
)
from erasable.audit._deletion_verdicts import (
    UNSAID_OF_METHOD,
    most_exposed,
    verdict_of_method,
)
from erasable.audit._report import AuditReport, ReportGroup
from erasable.audit._sample_sizes import ATTACKS, plan_of_method, read_attacks, refuse_numbers
from erasable.audit._shadows import Recipe, fit
from erasable.audit._signals import Signal
from erasable.audit._statistics import permute_models
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError

__all__ = ["Method", "audit_deletion_method"]

Method = Callable[[Any, Any, Any, int], Any]
"""Trains a model of records, targets and a seed, and deletes some rows from it."""

_EXTRA = 5
_BELOW_SEED = 2**32


def audit_deletion_method(
    method: Any | Method,
    kept: Any,
    deleted: Any,
    *,
    recipe: Any | Recipe = None,
    fresh: Any = None,
    domain: Any = None,
    n_models: int = 32,
    n_retrained: int | None = None,
    attacks: Sequence[str] = ATTACKS,
    share: float = 0.9,
    control: bool = True,
    n_exchanges: int = 999,
    level: float = 0.05,
    signal: Signal | None = None,
    random_state: int = 0,
    n_jobs: int = 1,
) -> AuditReport:
    """Test whether a method of deletion leaves models like those trained without the records.

    `n_models` models learn from all records and delete some; `n_retrained` others never had them.
    Each learns from a part of the kept records of its own, with a seed of its own, so that an exact
    deletion is not compared with itself. Two attacks try to tell the arms apart: U-LiRA takes
    the log odds of each deleted record to be normal over the models of each arm, and guesses the
    arm of models that were held out; KLoM is the divergence between histograms of these log odds.
    Models are exchanged between the arms to estimate the effect of chance.

    Parameters
    ----------
    method : estimator or callable
        An estimator with `fit` and `delete`, as those of erasable; or
        ``method(X, y, deleted_rows, seed)``, which trains with all records, deletes some rows, and
        returns the model.
    kept, deleted : tuple of (X, y) or (X, y, ids)
    recipe : estimator or callable, default=None
        How models are trained without the records: an estimator, or ``recipe(X, y, seed)``. By
        default `method` is fitted, where it is an estimator.
    fresh : tuple of (X, y), default=None
        Records that no model learns from; they are reported separately.
    domain : array-like of bool, default=None
        Which kept records are of the same domain as the deleted ones; they are reported separately.
    n_models : int, default=32
        Number of models that delete; 4 or more. Published figures of KLoM take 100.
    n_retrained : int, default=None
        Number of models that never had the records. By default as many as delete.
    attacks : sequence of {"U-LiRA", "KLoM"}
    share : float, default=0.9
        The share of the kept records that each model learns from.
    control : bool, default=True
        Test models that learned from all records and deleted none in the same way. They show
        whether the test would find a method that does nothing, and which deleted records are
        memorised most. It trains ``n_models + 5`` models more.
    n_exchanges : int, default=999
        Number of exchanges of models to draw.
    level : float, default=0.05
        The probability of a false alarm.
    signal : callable, default=None
        ``signal(model, X, y)`` returns a number for each record, larger where the model is surer.
    random_state : int, default=0
        Draws parts, seeds and exchanges.
    n_jobs : int, default=1
        Threads that train models.

    Returns
    -------
    AuditReport
        Its verdict is "found" if the method does not delete completely, "not found" if nothing was
        found and the control was, and "cannot tell" otherwise. ``parameters["delta_at_most"]``
        bounds the delta for which the method may be a delta-deletion of these records, as Ginart
        et al. define it (1 where nothing is shown).

    Raises
    ------
    InvalidInputError
        Models have no scores, groups share records, fresh records are of unknown classes, or there
        is no recipe.
    InvalidParameterError
        Too few models or exchanges for the level, or another parameter.

    References
    ----------
    Hayes et al., "Inexact unlearning needs more careful evaluations to avoid a false sense of
    privacy", 2024; Georgiev et al., "Attribute-to-delete", 2024, section E.1; Ginart, Guan, Valiant
    and Zou, "Making AI Forget You", 2019, definition A.6.

    See Also
    --------
    audit_deletion : Judge one model.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.neighbors import KNeighborsClassifier
    >>> source = np.random.default_rng(0)
    >>> X, y = source.normal(size=(60, 2)), source.integers(2, size=60)
    >>> sets = (X[10:], y[10:]), (X[:10], y[:10])
    >>> neighbor = KNeighborsClassifier(1)
    >>> audit_deletion_method(neighbor, *sets, n_models=8).verdict
    'not found'
    >>> def deletes_nothing(X, y, rows, seed):
    ...     return KNeighborsClassifier(1).fit(X, y)
    >>> audit_deletion_method(deletes_nothing, *sets, recipe=neighbor, n_models=8).verdict
    'found'
    """
    start = time.perf_counter()
    refuse_numbers(level, random_state, n_jobs)
    n_retrained = n_models if n_retrained is None else n_retrained
    attacks = read_attacks(attacks)
    n_tests = len(attacks) * (2 if control else 1)
    plan = plan_of_method(level, n_tests, n_models, n_retrained, n_exchanges, share)
    is_estimator = hasattr(method, "fit") and hasattr(method, "delete")
    if not is_estimator and not callable(method):
        raise InvalidInputError(
            f"the method is a {type(method).__name__}; expected an estimator with fit and delete, "
            "or a function of records, targets, rows to delete and a seed"
        )
    if recipe is None and not is_estimator:
        raise InvalidInputError(
            "recipe is None and the method a function; expected how models are trained without "
            "the records"
        )
    source = np.random.default_rng(random_state)
    questions = Questions.read(kept, deleted, fresh, domain, source)
    trainer = _Trainer(method, method if recipe is None else recipe, questions, share)
    notes: list[str] = []

    def train(kind: str, n: int, noted: bool = False) -> Answers:
        seeds = source.integers(_BELOW_SEED, size=n).tolist()

        def one(seed: int, first: bool) -> Answers:
            model = trainer.train(kind, seed)
            if not first:
                return questions.ask(model, signal)
            answers, said = questions.ask_twice(model, signal)
            notes.extend(said)
            return answers

        tasks = (delayed(one)(seed, noted and k == 0) for k, seed in enumerate(seeds))
        return stack(Parallel(n_jobs=n_jobs, prefer="threads")(tasks))

    arms = train("deleted", n_models, noted=True), train("retrained", n_retrained)
    learned = train("everything", n_models + _EXTRA) if control else None
    picks = None if learned is None else learned.models(slice(n_models, None)).signals
    test = partial(
        _p_values, rows=questions.groups["deleted"], picks=picks, attacks=attacks,
        n_exchanges=n_exchanges, seed=int(source.integers(_BELOW_SEED)),
    )  # fmt: skip
    values = test(arms[0].signals, arms[1].signals)
    p_value = min(1.0, n_tests * min(values.values()))
    control_p = None
    if learned is not None:
        controls = test(learned.models(slice(n_models)).signals, arms[1].signals)
        control_p = min(1.0, n_tests * min(controls.values()))
    groups, exposed = _groups(questions, arms, picks, attacks, values, source)
    if learned is not None:
        groups += _groups(
            questions, (learned.models(slice(n_models)), arms[1]), None, attacks, {}, source,
            "control, deleted nothing: ", only="deleted",
        )[0]  # fmt: skip
    own = questions.groups["deleted"]
    delta = largest_delta(arms[0].signals[:, own], arms[1].signals[:, own], level)
    verdict, sentence = verdict_of_method(len(questions.deleted), p_value, control_p, level)
    if delta < 1.0:
        notes.append(
            f"Some models are at least {1.0 / delta:.2g} times as likely to come from this method "
            "as from training without the records, with the probability that the level says: the "
            f"delta of an approximate deletion (Ginart et al., A.6) is at most {delta:.2g}."
        )
    return AuditReport(
        "deletion", verdict, sentence, UNSAID_OF_METHOD, judged="method", access="recipe and data",
        attack=f"{' and '.join(attacks)}, {n_models} models against {n_retrained}", level=level,
        plan=plan, groups=groups, exposed=most_exposed(questions.deleted, exposed),
        notes=tuple(notes),
        parameters={
            "p_value": p_value, "p_value_of_control": control_p, "delta_at_most": delta,
            "n_models": n_models, "n_retrained": n_retrained, "share": share,
            "n_exchanges": n_exchanges, "random_state": random_state,
        },
        seconds=time.perf_counter() - start,
    )  # fmt: skip


# -- models ---------------------------------------------------------------------------------------


class _Trainer:
    """Trains the models of both arms, each on its own part of the kept records."""

    def __init__(self, method: Any, recipe: Any, questions: Questions, share: float) -> None:
        self._method, self._recipe = method, recipe
        self._kept, self._deleted = questions.kept, questions.deleted
        self._n = max(1, round(share * len(questions.kept)))

    def train(self, kind: str, seed: int) -> Any:
        source = np.random.default_rng(seed)
        part = self._kept.take(source.permutation(len(self._kept))[: self._n])
        seed = int(source.integers(_BELOW_SEED))
        if kind == "retrained":
            return fit(self._recipe, renumbered(part), seed)
        order = source.permutation(len(part) + len(self._deleted))
        everything = renumbered(part.join(self._deleted).take(order))
        if kind == "everything":
            return fit(self._recipe, everything, seed)
        return self._delete(everything, np.flatnonzero(order >= len(part)), seed)

    def _delete(self, everything: Sample, rows: Ints, seed: int) -> Any:
        if hasattr(self._method, "fit") and hasattr(self._method, "delete"):
            model = fit(self._method, everything, seed)
            model.delete(rows.tolist())
            return model
        return self._method(everything.X, everything.y, rows, seed)


# -- tests ----------------------------------------------------------------------------------------


def _p_values(
    first: Floats, second: Floats, *, rows: Ints, picks: Floats | None, attacks: Sequence[str],
    n_exchanges: int, seed: int,
) -> dict[tuple[str, str], float]:  # fmt: skip
    """Test each attack on the deleted records, and on the most memorised of them."""
    source = np.random.default_rng(seed)
    first, second = first[:, rows], second[:, rows]
    parts: dict[str, Any] = {"deleted": slice(None)}
    if picks is not None:
        both = np.concatenate([first, second])
        parts["most memorised"] = MemorisedTenth(picks[:, rows], both).rows

    def right(a: Floats, b: Floats) -> float:
        return float(example_accuracy(a, b, source).mean())

    def apart(a: Ints, b: Ints) -> float:
        return float(divergences(a, b).mean())

    found = {}
    for name, chosen in parts.items():
        a, b = first[:, chosen], second[:, chosen]
        for attack in attacks:
            statistic: Callable[[Any, Any], float] = right
            sides: tuple[Any, Any] = (a, b)
            if attack == "KLoM":
                bins = bins_of(np.concatenate([a, b]))
                statistic, sides = apart, (bins[: len(a)], bins[len(a) :])
            found[name, attack] = permute_models(*sides, statistic, n_draws=n_exchanges, seed=seed)
    return found


def _groups(
    questions: Questions, arms: tuple[Answers, Answers], picks: Floats | None,
    attacks: Sequence[str], values: dict[tuple[str, str], float], source: np.random.Generator,
    prefix: str = "", only: str | None = None,
) -> tuple[tuple[ReportGroup, ...], Floats]:  # fmt: skip
    """Measure each group, and return the area under the curve of each deleted record."""
    rows = {k: each for k, each in questions.groups.items() if only in (None, k)}
    own = rows["deleted"]
    if picks is not None:
        both = np.concatenate([arm.signals for arm in arms])[:, own]
        chosen = MemorisedTenth(picks[:, own], both).rows
        rows = {"deleted": own, "most memorised": own[chosen], **rows}
    groups, areas = [], np.zeros(own.size)
    for name, each in rows.items():
        a, b = (arm.signals[:, each] for arm in arms)
        measures: dict[str, float] = {"records": len(each)}
        if "U-LiRA" in attacks:
            of_records = example_areas(a, b, source)
            measures["U-LiRA accuracy"] = float(example_accuracy(a, b, source).mean())
            measures["U-LiRA AUC"] = float(of_records.mean())
            measures["U-LiRA AUC of the worst record"] = float(of_records.max())
            areas = of_records if name == "deleted" else areas
        if "KLoM" in attacks:
            bins = bins_of(np.concatenate([a, b]))
            of_records = divergences(bins[: len(a)], bins[len(a) :])
            measures["KLoM"] = float(of_records.mean())
            measures["KLoM, 95th percentile"] = float(np.quantile(of_records, 0.95))
            measures |= _floor(a, b)
            if "U-LiRA" not in attacks and name == "deleted":
                areas = of_records
        measures |= {
            f"p value of {attack}": values[name, attack]
            for attack in attacks
            if (name, attack) in values
        }
        outputs = [None if arm.outputs is None else arm.outputs[:, each] for arm in arms]
        if outputs[0] is not None and outputs[1] is not None:
            n = min(len(outputs[0]), len(outputs[1]))
            scale = arms[0].scale
            far = mean_distances(outputs[0][:n], outputs[1][:n], scale)
            floor = mean_distances(outputs[1], np.roll(outputs[1], 1, axis=0), scale)
            measures["distance"] = float(far.mean())
            measures["floor of the distance"] = float(floor.mean())
        groups.append(ReportGroup(prefix + name, None, measures))
    return tuple(groups), areas


def _floor(deleted: Floats, retrained: Floats) -> dict[str, float]:
    """Return KLoM of halves: of both arms, and of retrained models alone, which is its floor."""
    n = min(len(deleted), len(retrained) // 2)
    first, second, third = deleted[:n], retrained[:n], retrained[n : 2 * n]
    found = {}
    for name, a, b in (("KLoM of halves", first, second), ("its floor", third, second)):
        bins = bins_of(np.concatenate([a, b]))
        found[name] = float(divergences(bins[:n], bins[n:]).mean())
    return found
