"""Recipes by which estimators of scikit-learn learn: from what, in which form, with which seeds.

A recipe is made at `fit` and used for every deletion, so that parameters that are set later concern
the next fit. `Refit` follows one with all records, the ensembles one with those of each member.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from erasable.core._mixed import Mixed
from erasable.core.arrays import Floats, Ints
from erasable.core.attachment import HeldRecords
from erasable.core.classes import narrowed
from erasable.core.errors import ArtifactError, InvalidParameterError
from erasable.core.estimator import Erasable
from erasable.core.tape import Tape
from erasable.core.trust import Naming, origin
from erasable.core.values import Accepts
from erasable.refit._boosters import boosted_parts, undeclared
from erasable.refit._codec import decode, encode
from erasable.refit._fitting import learn, seeded
from erasable.refit._given import as_given, needs_frame, text_columns, weights_parameter
from erasable.refit._names import Known, known_to, parts_of
from erasable.refit._part import ContradictionError, UncheckedError, refuse_contradictions

_MOST_JOBS = 1024


@dataclass(frozen=True, eq=False)
class Recipe:
    """An estimator that is not fitted, and what it takes."""

    template: BaseEstimator  # as it was at `fit`; not to be changed
    known: Known  # the classes and functions it is made of; see `known_to`
    # names of the columns of the frame that it needs; None: it takes arrays
    columns: list[str] | None
    documents: bool  # does it learn from a list of texts?

    @classmethod
    def of(cls, estimator: BaseEstimator, owner: Erasable) -> Self:
        """Copy an estimator as it is now; its `owner` has the names of the columns."""
        template = clone(estimator)
        known = known_to(template)
        columns = owner._column_names
        columns = columns if needs_frame(template, known, columns) else None
        return cls(template, known, columns, Accepts.of(owner).documents)

    def on(self, columns: Ints) -> Recipe:
        """Return the recipe for some of the columns."""
        if self.columns is None:
            return self
        return replace(self, columns=[self.columns[column] for column in columns.tolist()])

    def show(self, matrix: Any, text: list[int]) -> Any:
        """Turn rows into the form in which the estimator learns and predicts; see `as_given`."""
        return as_given(matrix, names=self.columns, text=text, documents=self.documents)

    def given(
        self,
        records: HeldRecords,
        rows: Ints,
        text: list[int] | None = None,
        columns: Ints | None = None,
    ) -> tuple[Any, NDArray[Any] | None, Floats | None]:
        """Read records: rows as the estimator takes them, their targets, their weights."""
        if text is None:
            text = text_columns(records.matrix, rows)
        matrix = records.matrix[rows]
        if isinstance(matrix, Mixed):
            matrix = matrix.objects()
        X = self.show(matrix if columns is None else matrix[:, columns], text)
        y, weights = (None if own is None else own[rows] for own in (records.y, records.weights))
        return X, None if y is None else narrowed(y), weights

    def fit(
        self, tape: Tape, X: Any, y: NDArray[Any] | None, weights: Floats | None
    ) -> dict[str, Any]:
        """Fit a copy, and return what it learned as plain values; see `learn`."""
        name = weights_parameter(self.template)
        named = {} if weights is None or name is None else {name: weights}
        fitted = learn(seeded(self.template, tape), "fit", X, y, **named)
        tree: dict[str, Any] = encode(fitted, self.known)
        return tree

    def begin(self, tape: Tape) -> BaseEstimator:
        """Return a copy with its seeds, for `go_on`."""
        return seeded(self.template, tape)

    def go_on(
        self, estimator: BaseEstimator, X: Any, y: NDArray[Any] | None, **named: Any
    ) -> dict[str, Any]:
        """Have a copy learn more records, and return its fitted state as plain values."""
        learned = learn(estimator, "partial_fit", X, y, **named)
        tree: dict[str, Any] = encode(learned, self.known)
        return tree

    def fitted(self, tree: dict[str, Any]) -> Any:
        """Turn what was learned here into an estimator; it shares the arrays."""
        return decode(tree, self.known)

    def copied(self, tree: dict[str, Any]) -> Any:
        """Turn what was learned here into an estimator that may be changed."""
        return self.fitted(copy.deepcopy(tree))

    def restored(self, tree: Any, text: list[int], tape: Tape, n_features: int) -> Any:
        """Turn saved values into an estimator, if that can be done without harm; None: fit again.

        Raise ArtifactError if the file is not trusted, and it contradicts its parameters, or cannot
        be checked and no records follow.
        """
        source = origin()
        if source.trusted:
            return self.fitted(tree)
        refuse_reaching_out(self.template)
        # Late, because it imports the families that it checks, all of them.
        from erasable.refit._families import checked

        try:
            template = seeded(self.template, tape)
            refuse_contradictions(tree, template, self.known)
            if text or self.documents:
                raise UncheckedError("estimators of text are not checked")
            return checked(tree, template, self.known, n_features, self.columns)
        except ContradictionError as error:  # fitted again, it could take for ever
            raise ArtifactError(
                f"the file holds a fitted {type(self.template).__name__} that no fit gives: "
                f"{error}; expected an unchanged file; take it from a backup, or pass trusted=True "
                "to load(path) if the file is your own"
            ) from None
        except UncheckedError as error:
            source.refuse(type(self.template).__name__, str(error))
        return None


def refuse_reaching_out(template: BaseEstimator) -> None:
    """Refuse parameters with which an estimator reads files, or starts any number of threads."""
    boosted = boosted_parts(template)
    for part in parts_of(template):
        if not isinstance(part, BaseEstimator):
            continue
        if isinstance(part, Naming):
            part.refuse_in_file()
        params = part.get_params(deep=False)
        fault = None
        if params.get("memory") is not None:  # pickles are read from there
            fault = "memory is a folder"
        elif params.get("input") in ("filename", "file"):
            fault = f"input is a {params['input']}"
        elif part in boosted and (names := undeclared(part)):  # some of them are files
            fault = f"{names[0]} is none of its declared parameters"
        elif not -_MOST_JOBS <= (params.get("n_jobs") or 0) <= _MOST_JOBS:
            fault = "n_jobs is out of range"
        if fault is not None:
            raise ArtifactError(
                f"the file holds a {type(part).__name__} whose {fault}; expected one that only "
                "computes; pass trusted=True to load(path) if the file is your own"
            )


def not_of_records(owner: str) -> ArtifactError:
    """Make the error for a model that a fit to its records does not come to."""
    return ArtifactError(
        f"the {owner} in the file is not what a fit to the records comes to; expected an unchanged "
        "file, and the records it was fitted on; pass trusted=True to load(path, records) if both "
        "are your own, and it was fitted on another machine"
    )


def refuse_what_is_no_estimator(given: Any, wrapper: str, *, own: bool = False) -> None:
    """Raise InvalidParameterError for what is no estimator; `own` permits one of erasable."""
    if type(given).__module__.startswith("catboost."):
        raise InvalidParameterError(
            f"estimator is a {type(given).__name__} of CatBoost, which writes the time and a "
            "random name into each fitted model; expected one whose fits to the same records are "
            "equal; use XGBoost, LightGBM or HistGradientBoostingClassifier"
        )
    if isinstance(given, type) or not isinstance(given, BaseEstimator):
        what = "the class" if isinstance(given, type) else "a"
        name = given.__name__ if isinstance(given, type) else type(given).__name__
        raise InvalidParameterError(
            f"estimator is {what} {name}; expected an estimator of scikit-learn's interface; "
            f"pass an instance, such as {wrapper}({name if what != 'a' else 'Ridge'}())"
        )
    for part in [] if own and isinstance(given, Erasable) else parts_of(given):
        if isinstance(part, Erasable):
            raise InvalidParameterError(
                f"estimator holds a {type(part).__name__} of erasable, which can delete by "
                f"itself; expected estimators of scikit-learn; use it without {wrapper}, or in "
                "erasable.pipeline"
            )
    try:
        clone(given)
    except (RuntimeError, TypeError):
        raise InvalidParameterError(
            f"estimator is a {type(given).__name__}, which sklearn.base.clone cannot copy; "
            "expected one whose constructor keeps its parameters as they are; let it check and "
            "convert them in fit"
        ) from None
