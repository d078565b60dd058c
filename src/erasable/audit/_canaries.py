"""Canaries: marked records that are inserted and deleted, to test whether a deletion works."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import type_of_target

from erasable.audit._data import Sample, is_text
from erasable.audit._report import AuditReport, Exposed, ReportGroup
from erasable.audit._sample_sizes import discernible_area, refuse_probability
from erasable.audit._signals import Signal, signals_of
from erasable.audit._statistics import RATES, Separation, separate
from erasable.core.arrays import Ints
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.core.frames import as_frame
from erasable.core.ids import shorten
from erasable.core.seeds import is_integer, seed_from

__all__ = ["Canaries", "audit_canaries", "make_canaries"]

_N_WORDS, _N_LETTERS = 12, 8
_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


@dataclass(frozen=True, slots=True, eq=False)
class Canaries:
    """Records that were made to be found, half of them to be inserted.

    Attributes
    ----------
    inserted, held_back : Sample
        Drawn at random, so that only the insertion distinguishes them.

    Examples
    --------
    >>> canaries = make_canaries([[0.0, 1.0], [2.0, 3.0]] * 20, [0, 1] * 20, 8, random_state=0)
    >>> X, y, rows = canaries.insert([[0.0, 1.0], [2.0, 3.0]] * 20, [0, 1] * 20)
    >>> X.shape, rows.tolist()
    ((48, 2), [40, 41, 42, 43, 44, 45, 46, 47])
    """

    inserted: Sample
    held_back: Sample

    def insert(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], Ints]:
        """Return records and targets with those to be inserted after them, and their rows.

        Without ids, `fit` takes rows for ids, so that these are what is to be deleted.
        """
        given = Sample.read((X, y), "X")
        both = given.join(self.inserted)
        return both.X, both.y, np.arange(len(given), len(both))


def make_canaries(X: Any, y: Any, n: int = 50, *, random_state: Any = None) -> Canaries:
    """Make records that a model has to learn by heart, as there is nothing to learn from them.

    - **Tables**: every column is drawn from its own values, independently of the others, and so
      is the target.
    - **Texts**: made-up words, which no other text has.
    - **Images** (arrays of three dimensions or more): every pixel is drawn from the range of the
      pixels.

    Targets are drawn uniformly from the classes; of a regression, from its values.

    Parameters
    ----------
    X : array, frame, or list of str
        The records that the model learns from.
    y : array-like of shape (n_records,)
    n : int, default=50
        Number to insert; as many are held back.
    random_state : int, RandomState, Generator or None, default=None

    Raises
    ------
    InvalidParameterError
        `n` is less than 4: too few to compare.
    InvalidDataError
        A sparse matrix, for which canaries cannot be made; targets with gaps.

    Examples
    --------
    >>> canaries = make_canaries(["win a prize", "see you at ten"], ["spam", "ham"], 4)
    >>> len(canaries.inserted), len(canaries.held_back), len(canaries.inserted.X[0].split())
    (4, 4, 12)
    """
    if not is_integer(type(n)) or n < 4:
        raise InvalidParameterError(f"n is {n!r}; expected a whole number, 4 or more")
    given = Sample.read((X, y), "X")
    source = np.random.default_rng(seed_from(random_state))
    if issparse(given.X):
        raise InvalidDataError(
            "X is a sparse matrix; expected texts, a table or images, as the pipeline before it "
            "takes them"
        )
    n_gaps = sum(value is None or value != value for value in given.y.tolist())
    if n_gaps:
        raise InvalidDataError(f"y has {n_gaps} gaps in {len(given)} targets; expected none")
    made = _records(given, 2 * n, source)
    discrete = type_of_target(given.y) in ("binary", "multiclass")
    targets = source.choice(np.unique(given.y) if discrete else given.y, 2 * n)
    ids = np.array([f"canary-{k}" for k in range(2 * n)], dtype=object)
    both = Sample(made, targets.astype(given.y.dtype), ids, "canaries")
    order = source.permutation(2 * n)
    return Canaries(both.take(order[:n]), both.take(order[n:]))


def _records(given: Sample, n: int, source: np.random.Generator) -> Any:
    if is_text(given.X):
        words = source.choice(_LETTERS, (n, _N_WORDS, _N_LETTERS))
        return [" ".join("".join(word) for word in text) for text in words]
    frame = as_frame(given.X)
    if frame is not None:
        columns = [
            frame[source.integers(len(frame), size=n).tolist()].get_column(name)
            for name in frame.columns
        ]
        first = frame[[0] * n]
        return first.with_columns(*columns).to_native()
    if given.X.ndim < 3:
        table = given.X.reshape(len(given), -1)
        rows = source.integers(len(given), size=(n, table.shape[1]))
        return table[rows, np.arange(table.shape[1])].reshape(n, *given.X.shape[1:])
    low, high = given.X.min(), given.X.max()
    shape = (n, *given.X.shape[1:])
    if given.X.dtype.kind in "iub":
        return source.integers(int(low), int(high), shape, endpoint=True).astype(given.X.dtype)
    return source.uniform(low, high, shape).astype(given.X.dtype)


def audit_canaries(
    model: Any,
    canaries: Canaries,
    *,
    before: Any = None,
    signal: Signal | None = None,
    level: float = 0.05,
    power: float = 0.8,
) -> AuditReport:
    """Tell whether a model still knows records that were inserted to be deleted.

    Parameters
    ----------
    model : object
        After the deletion: trained, with scores; see `audit_membership`.
    canaries : Canaries
    before : object, default=None
        The model with the canaries, which shows whether it knew them at all.
    signal : callable, default=None
        ``signal(model, X, y)`` returns the log-likelihood of each target.
    level : float, default=0.05
        The probability of a false alarm. Nothing else can raise one, because chance alone chose
        which canaries were inserted.
    power : float, default=0.8
        For the plan.

    Returns
    -------
    AuditReport

    Raises
    ------
    InvalidInputError
        Models without scores, or that do not know the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.neighbors import KNeighborsClassifier
    >>> source = np.random.default_rng(0)
    >>> X, y = source.normal(size=(200, 4)), source.integers(0, 2, 200)
    >>> canaries = make_canaries(X, y, random_state=0)
    >>> marked, targets, rows = canaries.insert(X, y)
    >>> model = KNeighborsClassifier(n_neighbors=1).fit(marked, targets)
    >>> audit_canaries(model, canaries).verdict
    'found'
    >>> _ = model.delete(rows)
    >>> audit_canaries(model, canaries).verdict
    'not found'
    """
    began = time.perf_counter()
    for name, value in (("level", level), ("power", power)):
        refuse_probability(name, value)
    if not isinstance(canaries, Canaries):
        raise InvalidParameterError(
            f"canaries is {shorten(canaries)}; expected what make_canaries returned"
        )
    after, scores = _compare(model, canaries, signal, level)
    groups = [ReportGroup("after the deletion", after)]
    knew = None
    if before is not None:
        knew, _ = _compare(before, canaries, signal, level)
        groups.append(ReportGroup("before the deletion", knew))
    n = len(canaries.inserted)
    smallest = discernible_area(n, len(canaries.held_back), level=level, power=power)
    verdict, sentence, unsaid = _verdict(after, knew, level, smallest)
    order = np.argsort(-scores, kind="stable")[:20].tolist()
    ids = canaries.inserted.ids.tolist()
    return AuditReport(
        "canaries", verdict, sentence, unsaid, judged="model", access="black box",
        attack=f"{n} canaries against {len(canaries.held_back)} that were never inserted",
        level=level,
        plan=(
            f"an AUC of {smallest:.3f} or more is found with probability {power:g} at an error of "
            f"{level:g}",
        ),
        groups=tuple(groups),
        exposed=tuple(Exposed(ids[row], float(scores[row])) for row in order),
        parameters={"n": n}, seconds=time.perf_counter() - began,
    )  # fmt: skip


def _compare(
    model: Any, canaries: Canaries, signal: Signal | None, level: float
) -> tuple[Separation, NDArray[np.float64]]:
    inserted, held_back = (
        signals_of(model, each, signal=signal).logit
        for each in (canaries.inserted, canaries.held_back)
    )
    return separate(inserted, held_back, rates=RATES, level=level), inserted


def _verdict(
    after: Separation, before: Separation | None, level: float, smallest: float
) -> tuple[str, str, str]:
    if after.p_value <= level:
        return (
            "found",
            "The model still knows records that were deleted from it: it distinguishes them from "
            "records that it has never seen.",
            "It does not say how much of ordinary records is left: canaries are made to be found.",
        )
    if before is not None and before.p_value > level:
        return (
            "cannot tell",
            "The audit cannot tell whether the deletion worked: the model did not know the "
            "canaries before it either.",
            "It does not say that the model knows no record. Take more canaries.",
        )
    return (
        "not found",
        "After the deletion the canaries cannot be distinguished from records that the model has "
        "never seen.",
        "It does not say that nothing is left: a trace that is right in fewer than "
        f"{100 * smallest:.0f} of 100 pairs, where 50 is chance, would not have been found."
        + ("" if before is not None else " Nor does it say whether the model knew them before."),
    )
