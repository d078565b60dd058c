"""The audit of one model that claims to have deleted records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from erasable.audit._data import Sample
from erasable.audit._deletion_groups import Answers, Questions, renumbered, stack
from erasable.audit._deletion_statistics import MemorisedTenth, mean_distances, uniform_ranks
from erasable.audit._deletion_verdicts import (
    ELSEWHERE,
    UNSAID_OF_MODEL,
    count,
    equal_sentence,
    most_exposed,
    reaches,
    verdict_of_model,
)
from erasable.audit._equality import Equality, equality
from erasable.audit._report import AuditReport, ReportGroup
from erasable.audit._sample_sizes import plan_of_model, refuse_numbers
from erasable.audit._shadows import Recipe, fit
from erasable.audit._signals import Signal
from erasable.audit._statistics import (
    clopper_pearson,
    permute_models,
    separate,
)
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable

__all__ = ["audit_deletion"]

_BELOW_SEED = 2**32


def audit_deletion(
    model: Any,
    kept: Any,
    deleted: Any,
    *,
    recipe: Any | Recipe = None,
    fresh: Any = None,
    domain: Any = None,
    n_refits: int | None = None,
    n_controls: int = 10,
    level: float = 0.05,
    signal: Signal | None = None,
    proceed: bool = False,
    random_state: int = 0,
    n_jobs: int = 1,
) -> AuditReport:
    """Test whether a model that claims to have deleted records is like one trained without them.

    First by its digest, where it is an estimator of erasable. Then by `n_refits` models that are
    trained again on the kept records, with other seeds: if the deletion is complete, the model is
    one more of them, and as likely as any other to be the surest of the deleted records. The rank
    of the model's certainty among theirs is averaged over the deleted records, and over those that
    models memorise most, and compared with the same average of each other model.

    Parameters
    ----------
    model : trained model
        With `predict_proba` or `decision_function`, or a regressor; or anything with `signal`.
    kept, deleted : tuple of (X, y) or (X, y, ids)
        What the model was trained on after the deletion, and what it claims to have deleted.
        Without ids, kept records have those of the model, in its order.
    recipe : estimator or callable, default=None
        How the model was trained: an estimator, which is cloned and given other seeds, or
        ``recipe(X, y, seed)``, which returns a trained model. By default a clone of the model.
        Without a recipe, `deleted` is compared with `fresh`, which shows less.
    fresh : tuple of (X, y), default=None
        Records that the model has never seen, drawn as the deleted ones were.
    domain : array-like of bool, default=None
        Which kept records are of the same domain as the deleted ones; they are reported separately.
    n_refits : int, default=None
        Number of models that are trained again. By default as many as `level` needs.
    n_controls : int, default=10
        Number of models that are trained with all records and tested in the same way, to find
        whether the audit would notice a model that has not deleted; 0, or 2 and more.
    level : float, default=0.05
        The probability of a false alarm.
    signal : callable, default=None
        ``signal(model, X, y)`` returns a number for each record, larger where the model is surer.
    proceed : bool, default=False
        Go on where the digest has decided already.
    random_state : int, default=0
        Draws the seeds of the models.
    n_jobs : int, default=1
        Threads that train models.

    Returns
    -------
    AuditReport
        Its verdict is "equal" by digest, "found" if the deletion is not complete, "not found" if
        nothing was found and models that had not deleted were found in 80 % of the controls, and
        "cannot tell" otherwise.

    Raises
    ------
    InvalidInputError
        The model has no scores, groups share records, fresh records are of unknown classes, or
        there is neither a recipe nor fresh records.
    InvalidParameterError
        Too few refits for the level, or another parameter.

    See Also
    --------
    audit_deletion_method : Judge the method by which models delete.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.naive_bayes import GaussianNB
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = GaussianNB().fit(X, y)
    >>> _ = model.delete(range(10))
    >>> print(audit_deletion(model, (X[10:], y[10:]), (X[:10], y[:10])).verdict)
    equal
    """
    start = time.perf_counter()
    refuse_numbers(level, random_state, n_jobs)
    plan, n_refits = plan_of_model(level, n_refits, n_controls)
    source = np.random.default_rng(random_state)
    questions = Questions.read(kept, deleted, fresh, domain, source)
    answers, notes = questions.ask_twice(model, signal)
    own_ids = not isinstance(kept, Sample) and len(kept) == 2
    proof, said = _by_digest(model, questions.kept, own_ids)
    notes += said
    equal = equal_sentence(len(questions.kept), len(questions.deleted))
    if proof and not proceed:
        return AuditReport(
            "deletion", "equal", equal, ELSEWHERE, judged="model", access="recipe and data",
            attack="digest", level=level, notes=tuple(notes),
            parameters={"digest": proof.digests[0]}, seconds=time.perf_counter() - start,
        )  # fmt: skip
    if recipe is None and hasattr(model, "get_params") and hasattr(model, "fit"):
        recipe = clone(model)
    if recipe is None:
        return _against_fresh(model, questions, answers.signals[0], notes, level, start)
    refitted, learned = _train(recipe, questions, signal, n_refits, n_controls, source, n_jobs)
    tests = _Tests(questions.groups["deleted"], refitted.signals, learned)
    p_value = tests.p_value(answers.signals[0], None)
    found = reaches(p_value, level)
    n_found = 0
    if learned is not None:
        controls = [tests.p_value(each, k) for k, each in enumerate(learned.signals)]
        n_found = sum(reaches(each, level) for each in controls)
    if not np.ptp(refitted.signals, axis=0).any():
        notes.append(
            "all refits answered alike, so that any difference from them is found, however small"
        )
    groups, ranks = _groups(questions, answers, refitted, learned)
    if found and _differs_everywhere(groups):
        notes.append(
            "it differs from refits on records that were not deleted, too: so does a model that "
            "has not deleted, and one that was trained otherwise than by this recipe"
        )
    verdict, sentence = verdict_of_model(
        len(questions.deleted), found, p_value, ranks, n_refits, n_found, n_controls
    )
    if proof:
        notes.append(f"the test of the answers, which the digest outweighs, says: {sentence}")
        verdict, sentence = "equal", equal
    low, high = clopper_pearson(n_found, n_controls) if n_controls else (0.0, 1.0)
    return AuditReport(
        "deletion", verdict, sentence, UNSAID_OF_MODEL, judged="model", access="recipe and data",
        attack=f"rank among {n_refits} refits", level=level, plan=plan, groups=groups,
        exposed=most_exposed(questions.deleted, ranks), notes=tuple(notes),
        parameters={
            "p_value": p_value, "n_refits": n_refits, "n_controls": n_controls,
            "controls_found": n_found, "power_low": low, "power_high": high,
            "random_state": random_state,
        },
        seconds=time.perf_counter() - start,
    )  # fmt: skip


# -- the digest -----------------------------------------------------------------------------------


def _by_digest(model: Any, kept: Sample, ids_of_model: bool) -> tuple[Equality | None, list[str]]:
    """Compare a model with a fit on the kept records; None where no digest could be equal."""
    if not isinstance(model, Erasable) or model.exactness == "approximate":
        return None, []
    if len(model.ids_) != len(kept):
        return None, [f"the model holds {len(model.ids_)} records, and kept has {len(kept)}"]
    ids = model.ids_ if ids_of_model else kept.ids
    proof = equality(model, model._seeded_clone().fit(kept.X, kept.y, ids=ids))
    if proof:
        return proof, []
    return proof, [
        "its digest is not that of a fit on the kept records, with its parameters, seed and ids"
    ]


# -- against refits -------------------------------------------------------------------------------


def _train(
    recipe: Any, questions: Questions, signal: Signal | None, n_refits: int, n_controls: int,
    source: np.random.Generator, n_jobs: int,
) -> tuple[Answers, Answers | None]:  # fmt: skip
    kept = renumbered(questions.kept)
    everything = questions.kept.join(questions.deleted)
    everything = renumbered(everything.take(source.permutation(len(everything))))
    jobs = [kept] * n_refits + [everything] * n_controls
    seeds = source.integers(_BELOW_SEED, size=len(jobs)).tolist()

    def one(sample: Sample, seed: int) -> Answers:
        return questions.ask(fit(recipe, sample, seed), signal)

    answers = stack(
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(one)(sample, seed) for sample, seed in zip(jobs, seeds, strict=True)
        )
    )
    learned = answers.models(slice(n_refits, None)) if n_controls else None
    return answers.models(slice(n_refits)), learned


class _Tests:
    """Tests of one model against refits, corrected for their number."""

    def __init__(self, rows: Ints, refitted: Floats, learned: Answers | None) -> None:
        self._rows, self._refitted = rows, refitted[:, rows]
        self._learned = None if learned is None else learned.signals[:, rows]

    def p_value(self, signals: Floats, control: int | None) -> float:
        """Test a model; a `control` is left out of the models that find memorised records."""
        both = np.concatenate([signals[np.newaxis, self._rows], self._refitted])
        ranks = uniform_ranks(both)
        parts = [ranks]
        if self._learned is not None:
            learned = self._learned
            if control is not None:
                learned = np.delete(learned, control, axis=0)
            parts.append(ranks[:, MemorisedTenth(learned, both).rows])
        values = [permute_models(each[:1], each[1:], _unusual, n_draws=len(each)) for each in parts]
        return min(1.0, len(values) * min(values))


def _unusual(ranks: Floats, others: Floats) -> float:
    return abs(float(ranks.mean()) - 0.5)


def _groups(
    questions: Questions, answers: Answers, refitted: Answers, learned: Answers | None
) -> tuple[tuple[ReportGroup, ...], Floats]:
    """Measure each group, and return the ranks of the deleted records."""
    both = np.concatenate([answers.signals, refitted.signals])
    rows = dict(questions.groups)
    if learned is not None:
        own = rows["deleted"]
        chosen = MemorisedTenth(learned.signals[:, own], both[:, own]).rows
        rows = {"deleted": own, "most memorised": own[chosen], **rows}
    groups = []
    for name, each in rows.items():
        ranks = uniform_ranks(both[:, each])
        measures = {
            "records": len(each), "mean rank": float(ranks[0].mean()),
            "p value": permute_models(ranks[:1], ranks[1:], _unusual, n_draws=len(ranks)),
        }  # fmt: skip
        if answers.outputs is not None and refitted.outputs is not None:
            ours, theirs = answers.outputs[:, each], refitted.outputs[:, each]
            measures["distance"] = float(mean_distances(ours, theirs, answers.scale).mean())
            other = np.roll(theirs, 1, axis=0)
            measures["floor of the distance"] = float(
                mean_distances(theirs, other, answers.scale).mean()
            )
        groups.append(ReportGroup(name, None, measures))
    return tuple(groups), uniform_ranks(both[:, rows["deleted"]])[0]


def _differs_everywhere(groups: Sequence[ReportGroup]) -> bool:
    least = min(group.measures["p value"] for group in groups if group.name == "deleted")
    others = [group for group in groups if group.name in ("retained", "same domain", "fresh")]
    return all(group.measures["p value"] <= least for group in others)


# -- without a recipe -----------------------------------------------------------------------------


def _against_fresh(
    model: Any, questions: Questions, signals: Floats, notes: list[str], level: float, start: float
) -> AuditReport:  # fmt: skip
    rows = questions.groups.get("fresh")
    if rows is None:
        raise InvalidInputError(
            f"a {type(model).__name__} cannot be trained again and there are no fresh records; "
            "expected recipe=, or fresh= to compare the deleted records with"
        )
    own = signals[questions.groups["deleted"]]
    separation = separate(own, signals[rows], level=level)
    records = count(len(questions.deleted))
    verdict = "cannot tell"
    sentence = (
        f"This audit cannot tell whether the model has deleted {records}: it is as sure of fresh "
        "ones, and without its recipe it is unknown how sure it would be otherwise."
    )
    if reaches(separation.p_value, level):
        verdict = "found"
        sentence = (
            f"The model is not as sure of {records} as of fresh ones "
            f"(p = {separation.p_value:.3g}): if both were drawn alike, it still shows that it "
            "once had them."
        )
    unsaid = f"Deleted and fresh records may differ for other reasons. {UNSAID_OF_MODEL}"
    return AuditReport(
        "deletion", verdict, sentence, unsaid, judged="model", access="data and black box",
        attack="deleted against fresh records", level=level,
        groups=(ReportGroup("deleted", separation, {"records": separation.n_members}),),
        exposed=most_exposed(questions.deleted, own), notes=tuple(notes),
        parameters={"p_value": separation.p_value}, seconds=time.perf_counter() - start,
    )  # fmt: skip
