"""Groups of records about which an audit of a deletion asks models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from erasable.audit._data import Sample, apart
from erasable.audit._signals import Signal, predicts_numbers, signals_of
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError, TooFewRecordsError
from erasable.core.ids import shorten

__all__ = ["Answers", "Questions", "renumbered", "stack"]

_MOST_ASKED = 1000
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of models."""

    # (n_models, n_records): log odds of the target; for regressors minus the squared
    # error, in variances of the targets
    signals: Floats
    # (n_models, n_records, n_outputs): probabilities or predictions, if models have them
    outputs: Floats | None
    scale: float  # see `mean_distances`

    def models(self, chosen: Any) -> Answers:
        """Return the answers of some models."""
        outputs = None if self.outputs is None else self.outputs[chosen]
        return Answers(self.signals[chosen], outputs, self.scale)


@dataclass(frozen=True, eq=False)
class Questions:
    """The records about which models are asked, and their groups."""

    kept: Sample
    deleted: Sample
    asked: Sample  # deleted records come first
    groups: Mapping[str, Ints]  # rows of `asked`
    labels: NDArray[Any]  # all targets of kept and deleted records
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls, kept: Any, deleted: Any, fresh: Any, domain: Any, source: np.random.Generator
    ) -> Questions:
        """Read the input of a user, and refuse groups that are empty or the same."""
        notes = []
        kept, deleted = Sample.read(kept, "kept"), Sample.read(deleted, "deleted")
        deleted, n_equal = apart(deleted, kept)
        if n_equal:
            notes.append(
                f"{n_equal} deleted records are equal to kept ones, from which the model may know "
                "them; they were left out"
            )
        rows = {"retained": np.arange(len(kept))}
        if domain is not None:
            flags = np.asarray(domain)
            if flags.dtype != np.bool_ or flags.shape != (len(kept),):
                raise InvalidParameterError(
                    f"domain is {shorten(domain)}; expected a flag for each of the {len(kept)} "
                    "kept records"
                )
            rows = {"same domain": np.flatnonzero(flags), "retained": np.flatnonzero(~flags)}
            for name, each in rows.items():
                if each.size == 0:
                    raise TooFewRecordsError(
                        f"no kept record is {name}; expected one at least, or domain=None"
                    )
        asked, groups = deleted, {"deleted": np.arange(len(deleted))}
        for name, each in rows.items():
            if each.size > _MOST_ASKED:
                notes.append(f"of {each.size} records {name}, {_MOST_ASKED} were asked for")
                each = np.sort(source.choice(each, _MOST_ASKED, replace=False))
            groups[name] = np.arange(len(asked), len(asked) + each.size)
            asked = asked.join(kept.take(each))
        if fresh is not None:
            fresh = Sample.read(fresh, "fresh")
            fresh, n_equal = apart(fresh, kept)
            if n_equal:
                notes.append(f"{n_equal} fresh records, equal to kept ones, left out")
            _, n_equal = apart(fresh, deleted)  # which stay: deleted ones equal to fresh ones do
            if n_equal:
                notes.append(f"{n_equal} fresh records are equal to deleted ones")
            groups["fresh"] = np.arange(len(asked), len(asked) + len(fresh))
            asked = asked.join(fresh)
        labels = np.unique(np.concatenate([kept.y, deleted.y]))
        return cls(kept, deleted, asked, groups, labels, tuple(notes))

    @property
    def variance(self) -> float:
        """The variance of the targets of kept and deleted records."""
        return float(np.var(np.concatenate([self.kept.y, self.deleted.y]))) or 1.0

    def ask(self, model: Any, signal: Signal | None) -> Answers:
        """Return a model's answers; targets that only fresh records have are refused."""
        if hasattr(model, "classes_"):
            strange = np.setdiff1d(self.asked.y, self.labels)
            if strange.size:
                raise InvalidInputError(
                    f"fresh has the targets {shorten(strange.tolist()[:5])}, which no record of "
                    "kept or deleted has; expected records of the same classes"
                )
        found = signals_of(model, self.asked, signal=signal, knows_all=False)
        outputs, scale = self._outputs(model)
        signals = found.logit[np.newaxis]
        if signal is None:  # of any unit; and a difference in the last bits is a tie
            unit = 1.0 if hasattr(model, "classes_") else self.variance
            signals = np.round(signals / unit, _DIGITS)
        return Answers(signals, None if outputs is None else outputs[np.newaxis], scale)

    def ask_twice(self, model: Any, signal: Signal | None) -> tuple[Answers, list[str]]:
        """Ask one model, and return its answers and notes on it and on the records."""
        notes = list(self.notes)
        answers = self.ask(model, signal)
        first, second = answers.signals, self.ask(model, signal).signals
        if not np.array_equal(first, second):
            apart = float(np.abs(first - second).max())
            notes.append(
                "asked twice for the same records, the model gave other answers, up to "
                f"{apart:.3g} apart in log odds; the audit counts that as spread between models"
            )
        if hasattr(model, "classes_") and len(self.labels) > 1 and len(set(self.deleted.y)) == 1:
            label = shorten(self.deleted.y.tolist()[0])
            notes.append(
                f"all deleted records are of the class {label}: what changes for them may change "
                "for all records of the class; pass others as fresh or as the domain, and compare"
            )
        return answers, notes

    def _outputs(self, model: Any) -> tuple[Floats | None, float]:
        X = self.asked.X
        if hasattr(model, "classes_"):
            if hasattr(model, "predict_proba"):
                made = np.asarray(model.predict_proba(X), dtype=np.float64)
            elif hasattr(model, "decision_function"):
                odds = np.asarray(model.decision_function(X), dtype=np.float64)
                made = np.column_stack([expit(-odds), expit(odds)])
                if odds.ndim > 1:
                    made = softmax(odds, axis=1)
            else:
                return None, 1.0
            classes = np.asarray(model.classes_)
            if made.shape[1] != len(classes):
                return None, 1.0
            found = np.zeros((len(made), len(self.labels)))
            known = np.isin(classes, self.labels)
            found[:, np.searchsorted(self.labels, classes[known])] = made[:, known]
            return found, 0.5
        if predicts_numbers(model):
            return np.asarray(model.predict(X), dtype=np.float64).reshape(len(self.asked), -1), 1.0
        return None, 1.0


def stack(answers: list[Answers]) -> Answers:
    """Put the answers of several models together."""
    outputs = [each.outputs for each in answers if each.outputs is not None]
    return Answers(
        np.concatenate([each.signals for each in answers]),
        np.concatenate(outputs) if len(outputs) == len(answers) else None,
        answers[0].scale,
    )


def renumbered(sample: Sample) -> Sample:
    """Replace ids by places, because the ids of two samples may be the same."""
    return replace(sample, ids=np.arange(len(sample)))
