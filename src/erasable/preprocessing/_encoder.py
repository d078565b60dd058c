"""Base of the encoders: the categories of each column, which deletions take away."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array

from erasable.core._changing import not_its_records
from erasable.core._schema import Fields
from erasable.core.arrays import Ints, Ints32, Values
from erasable.core.changes import NOTHING, Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.core.estimator import Erasable
from erasable.core.ids import name_some, shorten
from erasable.core.messages import as_our_error
from erasable.core.tables import Table
from erasable.preprocessing._categories import (
    UNKNOWN,
    Categories,
    find,
    fixed_labels,
    state_of,
)
from erasable.preprocessing._saved_state import categories_schema


class Encoder(TransformerMixin, Erasable):
    """Base of the encoders.

    A subclass says with `_lay_out` what it makes of the codes of categories, and brings that up
    to date in `_follow`.
    """

    _reads_blocks = True
    _refit_from: ClassVar[tuple[int, float]] = (1000, 0.5)

    categories: Any
    dtype: Any
    handle_unknown: str
    _labels: list[NDArray[Any]]
    _counts: Ints

    # -- what a subclass implements ------------------------------------------------------------

    @abstractmethod
    def _lay_out(self) -> None:
        """Derive from `_labels` what `_encode` needs."""

    @abstractmethod
    def _follow(self, moved: dict[int, Ints], codes: Ints32 | None) -> TableChange:
        """Lay out anew, and return what changed; see `Categories`."""

    @abstractmethod
    def _encode(self, codes: Ints32) -> Values:
        """Make the output of codes of shape (n_rows, n_features)."""

    # -- what is learned -----------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        try:
            kind = np.dtype(self.dtype).kind
        except TypeError:
            kind = "O"
        if kind not in "fiu":
            raise InvalidParameterError(
                f"dtype={shorten(self.dtype)} is no type of numbers; expected float64, int32 or "
                "the like; pass dtype=np.float64"
            )

    @property
    def _heeds_objects(self) -> bool:
        return not isinstance(self._at_fit("categories"), str)  # text among numbers is refused

    def _fit_rows(self) -> None:
        self._take(self._find_categories())
        self._lay_out()

    def _find_categories(self, *, text: bool = False) -> Categories:
        """Find them in the records; where there is `text`, in objects that hold numbers alone."""
        held, names, fixed = self._attached(), self._call_columns(), None
        table = Table(held.records.matrix, held.live_rows, names=names)
        given = self._at_fit("categories")
        if not isinstance(given, str):
            fixed = fixed_labels(given, names, objects=text or table.matrix.dtype == object)
        categories = Categories.fit(table, fixed)
        self._refuse_unknown_records(categories)
        return categories

    def _refuse_unknown_records(self, categories: Categories) -> None:
        if categories.fixed and self._at_fit("handle_unknown") == "error":
            self._refuse_unknown(self._attached().n_live - categories.known(), "fit")

    def _take(self, categories: Categories) -> None:
        self._accelerator = categories
        self._labels, self._counts = categories.labels, categories.counts

    def _update(self, delta: Delta) -> Outcome | None:
        categories, n_before = self._accelerator, self._counts.size
        if categories.update(Table.of(self._attached()), delta) is None:
            return None
        if delta.arriving.size:
            self._refuse_unknown_records(categories)
        self._take(categories)
        moved = categories.moved
        self._change = self._follow(moved, categories.codes) if moved else NOTHING
        n_new = sum(int(np.count_nonzero(former == UNKNOWN)) for former in moved.values())
        counts = {}
        if delta.leaving.size:
            counts["categories_gone"] = n_before - self._counts.size + n_new
        if delta.arriving.size:
            counts["categories_new"] = n_new
        return Outcome("updated", self._attached().n_live if moved else 0, counts)

    def _schema(self) -> Fields:
        fixed = not isinstance(self._at_fit("categories"), str)
        return categories_schema(fixed=fixed)

    def _state(self) -> dict[str, Any]:
        return state_of(self._labels, self._counts)

    def _restore(self, state: dict[str, Any]) -> None:
        ends = np.cumsum(state["sizes"])
        self._labels = [
            part.astype(object if is_text else np.float64)
            for part, is_text in zip(
                np.split(state["categories"], ends[:-1]), state["is_text"].tolist(), strict=True
            )
        ]
        self._counts = state["counts"]
        self._lay_out()

    def _reattach(self) -> None:
        found = self._find_categories(text=any(known.dtype == object for known in self._labels))
        mine, theirs = self._state(), found.state()
        if any(repr(mine[name].tolist()) != repr(theirs[name].tolist()) for name in mine):
            raise not_its_records(self)
        self._take(found)

    # -- what follows --------------------------------------------------------------------------

    @property
    def categories_(self) -> list[NDArray[Any]]:
        """Categories of each column."""
        self._check_fitted()
        return [labels.copy() for labels in self._labels]

    def transform(self, X: Any) -> Values:
        """Encode rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Text, numbers and gaps.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features_out), of type `dtype`
            A new one, or the container of `set_output`.

        Raises
        ------
        InvalidDataError
            Categories that no record has, where `handle_unknown` is "error"; another width.
        """
        matrix = self._read_matrix(X)
        codes = np.zeros(matrix.shape, dtype=np.int32, order="F")
        for j, labels in enumerate(self._labels):
            codes[:, j] = find(labels, matrix[:, j])
        if self._at_fit("handle_unknown") == "error":
            self._refuse_unknown(np.count_nonzero(codes == UNKNOWN, axis=0), "transform")
        return self._encode(codes)

    def _transform_held(self, rows: Ints) -> Values | None:
        if self._accelerator is None:
            self._reattach()
        codes = self._accelerator.codes
        return None if codes is None else self._encode(codes[rows])

    def _refuse_unknown(self, counts: Ints, when: str) -> None:
        if not counts.any():
            return
        names = self._call_columns()
        named = name_some([names[j] for j in np.flatnonzero(counts).tolist()])
        expected = "those of fit" if when == "transform" else "those of categories="
        raise InvalidDataError(
            f"Found unknown categories in {int(counts.sum())} values of columns {named} during "
            f"{when}; expected {expected}; drop those rows, or set handle_unknown"
        )

    def _read_encoded(self, X: Any, width: int, **accepted: Any) -> Any:
        """Read what `transform` returned."""
        self._check_fitted()
        try:
            matrix = check_array(X, **accepted)
        except (TypeError, ValueError) as error:
            raise as_our_error(error, X) from None
        if matrix.shape[1] != width:
            raise InvalidDataError(
                f"Shape of the passed X data is not correct. Expected {width} columns, got "
                f"{matrix.shape[1]}; pass what transform returned"
            )
        return matrix

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []  # it is that of the parameter
        return tags
