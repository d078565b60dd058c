"""The column transformer: estimators side by side, each on columns of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import sklearn.compose
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import Bunch, Tags, get_tags
from sklearn.utils._param_validation import Interval

from erasable.core._column_choice import Columns, has_names, is_empty, is_selector, positions
from erasable.core._schema import Array, DictOf, Fields, FieldType, Integer, refuse_unbounded
from erasable.core.arrays import Flags
from erasable.core.attachment import Attachment
from erasable.core.changes import Affine
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.params import decode_param, encoded_parts
from erasable.core.protocol import Learner
from erasable.core.rows import Rows
from erasable.core.values import ANYTHING, Accepts
from erasable.pipeline._composition import Composition, named
from erasable.pipeline._engine import Engine
from erasable.pipeline._layout import Layout, Nested, lay_out
from erasable.pipeline._maps import Blocks, Widths
from erasable.pipeline._nodes import ColumnSelection, Concat, GraphNode, Select
from erasable.pipeline._stateless import check_steps, names_after
from erasable.pipeline._tables import as_table

_REST, _THRESHOLD = "remainder", "sparse_threshold"
_WORDS = ("drop", "passthrough")


class ColumnTransformer(TransformerMixin, Composition):
    """Give some columns to one transformer and others to another, and put the results together.

    A table of ages, incomes and cities needs scaling here and encoding there. A deletion takes the
    record out of every transformer at once, and hands on what changed: where scalers stand last in
    their columns, and the step behind takes a map of columns, nothing is scaled again; where a
    city loses its last record, its column goes.

    Parameters
    ----------
    transformers : list of (name, transformer, columns)
        Estimators of erasable, stateless transformers of scikit-learn, "drop" or "passthrough".
        Columns are a name, a position, a list or slice of these, a mask, or scikit-learn's
        `make_column_selector`, which chooses once, at `fit`. Transformers are fitted in place.
        Columns that none of them uses are not read.
    remainder : {"drop", "passthrough"} or transformer, default="drop"
        What to do with columns that no transformer takes.
    sparse_threshold : {0, 1}, default=1
        Whether the output is sparse where that of any transformer is (1), or always dense (0).
    verbose_feature_names_out : bool, default=True
        Whether names of output columns begin with the name of their transformer.

    Attributes
    ----------
    named_transformers_ : Bunch
        Transformers by name.
    output_indices_ : dict of str to slice
        Where the columns of each transformer are in the output.
    transformers_ : list of (name, transformer, columns)
        Fitted transformers, and "remainder" if columns are left.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    UnsupportedStepError
        From `fit`: a transformer learns from records but cannot delete them.
    InvalidInputError
        From `fit`: columns that are not there, or two transformers of one name.

    See Also
    --------
    make_column_transformer : Makes up the names.
    erasable.pipeline.Pipeline : Steps in a row.

    Notes
    -----
    Differs from scikit-learn's: whether the output is sparse does not depend on its density, which
    is that of the records; columns are not chosen by a function of your own; every column of a
    frame has to be there, in the order of `fit`.

    Examples
    --------
    >>> from erasable.compose import ColumnTransformer
    >>> from erasable.preprocessing import MaxAbsScaler, MinMaxScaler
    >>> scale = ColumnTransformer([("a", MinMaxScaler(), [0]), ("b", MaxAbsScaler(), [1])])
    >>> scale.fit_transform([[1.0, 10.0], [2.0, -20.0], [5.0, 40.0]], ids=["x", "y", "z"])
    array([[ 0.  ,  0.25],
           [ 0.25, -0.5 ],
           [ 1.  ,  1.  ]])
    >>> scale.delete(["z"]).action
    'updated'
    >>> scale.transform([[2.0, 10.0]])
    array([[1. , 0.5]])
    """

    _PARTS = "transformers"
    _checks_gaps = True  # in the columns that each part is given
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "transformers": [list],
        _THRESHOLD: [Interval(Real, 0, 1, closed="both")],
        "verbose_feature_names_out": ["boolean"],
    }
    _columns: dict[str, Any]
    _selected: dict[str, list[int]]
    """Columns that selectors chose at the fit, by the names of the transformers."""
    _selections: dict[str, ColumnSelection]
    _chains: dict[str, Layout]
    _widths: Widths

    def __init__(
        self,
        transformers: list[tuple[str, Any, Any]],
        *,
        remainder: Any = "drop",
        sparse_threshold: float = 1.0,
        verbose_feature_names_out: bool = True,
    ) -> None:
        self.transformers = transformers
        self.remainder = remainder
        self.sparse_threshold = sparse_threshold
        self.verbose_feature_names_out = verbose_feature_names_out

    def _as_scikit_learn(self) -> sklearn.compose.ColumnTransformer:
        if not self.__sklearn_is_fitted__():
            return sklearn.compose.ColumnTransformer(self.transformers, remainder=self.remainder)
        parts = self.transformers_
        if parts[-1][0] == _REST and isinstance(parts[-1][1], str) and parts[-1][1] == "drop":
            del parts[-1]
        return sklearn.compose.ColumnTransformer(parts)

    # -- parts ---------------------------------------------------------------------------------

    @property
    def _transformers(self) -> list[tuple[str, Any]]:
        try:
            return [(name, part) for name, part, _ in self.transformers]
        except (TypeError, ValueError):
            items: list[tuple[str, Any]] = self.transformers  # type: ignore[assignment]
            return items

    @_transformers.setter
    def _transformers(self, value: list[tuple[str, Any]]) -> None:
        columns = [columns for _, _, columns in self.transformers]
        self.transformers = [(*pair, c) for pair, c in zip(value, columns, strict=True)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the transformers, and with `deep` those by name and their parameters."""
        params: dict[str, Any] = self._get_params("_transformers", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set the transformers, one by its name, or a parameter as ``name__parameter``."""
        self._set_params("_transformers", **params)
        return self

    def _items(self) -> list[tuple[str, Any, Any]]:
        """Return the transformers; after a fit, with the columns of `fit`."""
        columns, items = self.__dict__.get("_columns"), self.transformers
        return items if columns is None else [(n, part, columns.get(n, [])) for n, part, _ in items]

    def _keep_columns(self) -> None:
        parts = encoded_parts(self._info.params["transformers"])
        self._columns = {name: decode_param(columns) for name, (_, columns) in parts.items()}
        selectors = {name: each for name, each in self._columns.items() if is_selector(each)}
        if "_selected" not in self.__dict__:
            types = None if self._held is None else self._held.records.types
            there = Columns(self.n_features_in_, self._column_names, types)
            self._selected = {n: positions(each, there, n) for n, each in selectors.items()}
        self._columns |= self._selected

    def _begin_again(self, held: Attachment, affine: Affine | None = None) -> None:
        # A selector chooses columns at a fit; later deletions keep them.
        chosen = self.__dict__.get("_selected") if "_info" in self.__dict__ else None
        super()._begin_again(held, affine)
        if chosen is not None:
            self._selected = chosen

    def _rest(self) -> Any:
        """Return `remainder`; after a fit, the word passed to `fit`, or the transformer."""
        book = self.__dict__.get("_info")
        word = None if book is None else book.params[_REST]
        return word if isinstance(word, str) else self.remainder

    def _chosen(self) -> list[tuple[str, Any, Any]]:
        """Return the transformers that have columns and do not drop them."""
        return [
            (name, part, columns)
            for name, part, columns in self._items()
            if not (isinstance(part, str) and part == "drop") and not is_empty(columns)
        ]

    def _parts(self) -> list[tuple[str, Any]]:
        parts = [(name, part) for name, part, _ in self._chosen() if not isinstance(part, str)]
        rest = self._rest()
        if not isinstance(rest, str) and _REST in self.__dict__.get("_chains", {_REST: None}):
            parts.append((_REST, rest))
        return parts

    @property
    def _without_effect(self) -> tuple[str, ...]:
        """Parameters left out of digests, so that these are as in versions without them."""
        return (_THRESHOLD,) if self.sparse_threshold == 1 else ()

    def _check_parts(self) -> None:
        if self.sparse_threshold not in (0, 1):
            raise InvalidParameterError(
                f"sparse_threshold is {self.sparse_threshold}; expected 1, for an output that is "
                "sparse where that of a transformer is, or 0, for a dense one; between them it "
                "would depend on the zeros of the records; set one of the two"
            )
        try:
            items = [(name, part) for name, part, _ in self.transformers]
        except (TypeError, ValueError):
            raise InvalidInputError(
                "transformers is no list of (name, transformer, columns); expected three items "
                "each; make_column_transformer makes up the names"
            ) from None
        self._check_names(items)
        for name, part in [*items, (_REST, self.remainder)]:
            if not (isinstance(part, str) and part in _WORDS):
                check_steps([(name, part), ("what follows", "passthrough")])

    def _plan(self, source: GraphNode) -> Layout:
        told = self._column_names
        places = {
            name: positions(columns, Columns(self.n_features_in_, told), name)
            for name, _, columns in self._items()
        }
        parts = [(name, part) for name, part, _ in self._chosen()]
        used = {place for found in places.values() for place in found}
        places[_REST] = [place for place in range(self.n_features_in_) if place not in used]
        rest = self._rest()
        if places[_REST] and not (isinstance(rest, str) and rest == "drop"):
            parts.append((_REST, rest))
        known = self._call_columns()
        self._selections, self._chains = {}, {}
        for name, part in parts:
            chosen = places[name]
            selection = ColumnSelection(
                chosen,
                [known[place] for place in chosen],
                _accepts_of(name, part, chosen),
                named=bool(told),
                n_features=self.n_features_in_,
            )
            steps = [] if isinstance(part, str) else [(name, self._as_fitted(name, part))]
            self._selections[name] = selection
            self._chains[name] = lay_out(source, Select(source, selection), steps)
        if "_widths" not in self.__dict__:
            self._widths = Widths({}, {})
        chains, widths = self._chains, self._widths
        maps = {name: chain.maps for name, chain in chains.items()}
        dense = self._info.params.get(_THRESHOLD, 1) == 0
        return Layout(
            source,
            tuple(learning for chain in chains.values() for learning in chain.learners),
            Concat(source, widths, {name: chain.output for name, chain in chains.items()}, dense),
            Concat(source, widths, {name: chain.raw for name, chain in chains.items()}, dense),
            (Blocks(widths, maps),) if any(maps.values()) else (),
            (),
            source,
            behind=False,
        )

    def _lay_out(self, source: GraphNode) -> None:
        self._keep_columns()
        super()._lay_out(source)

    def _unread(self, columns: Columns) -> list[int]:
        read: set[int] = set()
        named: set[int] = set()
        rest = self._rest()
        for name, part, chosen in [*self._items(), (_REST, rest, None)]:
            if chosen is None:
                chosen = [place for place in range(columns.size) if place not in named]
            else:
                chosen = positions(chosen, columns, name)
                named.update(chosen)
            unread: list[int] = []
            if isinstance(part, Learner):
                unread = part._unread(columns.at(chosen))
            if not (isinstance(part, str) and part == "drop"):
                left = set(range(len(chosen))).difference(unread)
                read.update(chosen[place] for place in left)
        return [place for place in range(columns.size) if place not in read]

    def _rows(self) -> Iterable[Layout]:
        return self._chains.values()

    def _first_steps(self) -> Iterator[tuple[str, Any, int]]:
        for name, chain in self._chains.items():
            for _, step in chain.steps:
                yield name, step, len(self._selections[name].columns)

    def _declare(self, numeric: Flags | None) -> None:
        for selection in self._selections.values():
            selection.declare(numeric)

    # -- learning and forgetting ---------------------------------------------------------------

    def _end_learning(self, engine: Engine) -> None:
        super()._end_learning(engine)
        self._widths.now = {
            name: int(engine.first_row(self, chain.raw).shape[1])
            for name, chain in self._chains.items()
        }

    def _start_change(self) -> None:
        super()._start_change()
        self._widths.before = dict(self._widths.now)

    def _end_change_of_steps(self, engine: Engine) -> None:
        for name, chain in self._chains.items():
            change = engine.of(chain.raw)
            if not change.known:
                self._widths.now[name] = int(engine.first_row(self, chain.raw).shape[1])
            elif change.origin is not None:
                self._widths.now[name] = change.origin.size

    def _state_beside_parts(self) -> dict[str, Any]:
        chosen = {name: np.array(each, dtype=np.int64) for name, each in self._selected.items()}
        found = {**super()._state_beside_parts(), "widths": dict(self._widths.now)}
        return {**found, "selected": chosen} if chosen else found

    def _schema(self) -> Fields:
        refuse_unbounded(self)
        parts: dict[str, FieldType] = {"widths": DictOf(Integer(0, 2**31 - 1))}
        if any(is_selector(columns) for _, _, columns in self._items()):
            most = self.n_features_in_ - 1
            parts["selected"] = DictOf(Array("int64", (None,), least=0, most=most))
        return super()._schema().joined(Fields(parts))

    def _restore(self, state: dict[str, Any]) -> None:
        selected = state.get("selected", {})
        self._selected = {name: places.tolist() for name, places in selected.items()}
        super()._restore(state)
        # In the order of the chains: that of a file is alphabetical.
        self._widths.now = {name: state["widths"][name] for name in self._chains}

    def _encoded_parts(self) -> dict[str, Any]:
        return {**super()._encoded_parts(), _REST: self._info.params[_REST]}

    # -- as a part of a pipeline ---------------------------------------------------------------

    @property
    def _asks_by_name(self) -> bool:
        inner = (part for _, part in self._parts() if isinstance(part, Nested))
        chosen = [*self.__dict__.get("_selected", ()), *(c for _, _, c in self._items())]
        return any(part._asks_by_name for part in inner) or any(map(has_names, chosen))

    @property
    def _ends_in_map(self) -> bool:
        return any(
            part._is_map or (isinstance(part, Nested) and part._ends_in_map)
            for part in self._erasable_parts().values()
        )

    # -- predictions ---------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Give every transformer its columns, and put the results side by side.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features_out), float64 or object; or csr_array
            What `set_output` asked for.
        """
        return self._evaluate(self._layout.output, as_table(self._read_matrix(X)))

    def fit_transform(self, X: Any, y: Any = None, *, ids: Any = None, groups: Any = None) -> Any:
        """Fit, and transform the records; see `fit` and `transform`."""
        self.fit(X, y, ids=ids, groups=groups)
        if hasattr(X, "columns") or not isinstance(X, Sequence | np.ndarray):
            held = self._attached()
            names = [name for name in (ids, groups) if isinstance(name, str)]
            if names or not hasattr(X, "columns"):
                return self.transform(Rows(held.records.matrix[held.live]))
        return self.transform(X)

    @property
    def named_transformers_(self) -> Bunch:
        """Transformers by name, "drop" and "passthrough" among them."""
        return Bunch(**{name: part for name, part, _ in self.transformers_})

    @property
    def transformers_(self) -> list[tuple[str, Any, Any]]:
        """Fitted transformers with their columns; last, that of the columns left, if any."""
        self._check_fitted()
        columns = Columns(self.n_features_in_, self._column_names)
        items = self._items()
        taken = {place for name, _, chosen in items for place in positions(chosen, columns, name)}
        left: list[Any] = [j for j in range(self.n_features_in_) if j not in taken]
        names = self._column_names
        if names is not None and all(has_names(chosen) for _, _, chosen in items):
            left = [names[place] for place in left]
        return [*items, *([(_REST, self._rest(), left)] if left else [])]

    @property
    def output_indices_(self) -> dict[str, slice]:
        """Slices of the output, by transformer; those of dropped columns are empty."""
        names = [name for name, _, _ in self.transformers_]
        found = self._places()
        return {**found, **{name: slice(0, 0) for name in names if name not in found}}

    def _places(self) -> dict[str, slice]:
        ends = np.cumsum([0, *self._widths.now.values()]).tolist()
        places = map(slice, ends, ends[1:])
        return dict(zip(self._widths.now, places, strict=True))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` makes of columns of these names.

        Returns
        -------
        ndarray of str
            ``"transformer__column"``, or without the transformer's name where that was asked for.
        """
        self._check_fitted()
        given = self._call_columns() if input_features is None else input_features
        names = np.asarray(given, dtype=object)
        out: list[str] = []
        verbose = self._at_fit("verbose_feature_names_out")
        for name, chain in self._chains.items():
            own = names_after(chain.steps, self._selections[name].names_out(names))
            prefix = f"{name}__" if verbose else ""
            out += [f"{prefix}{column}" for column in own]
        return np.array(out, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            inputs = [get_tags(part).input_tags for _, part in self._parts()]
        except (AttributeError, TypeError, ValueError):  # not transformers; fit will say so
            return tags
        tags.input_tags.categorical = True
        tags.input_tags.sparse = all(each.sparse for each in inputs)
        tags.input_tags.allow_nan = any(each.allow_nan for each in inputs)
        tags.target_tags.required = any(get_tags(p).target_tags.required for _, p in self._parts())
        tags.transformer_tags = deepcopy(tags.transformer_tags)
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _takes_words(self) -> bool:
        """Return whether every part takes columns of text."""
        return all(Accepts.of(part).objects for _, part in self._parts())


def make_column_transformer(*transformers: Any, **options: Any) -> ColumnTransformer:
    """Make a `ColumnTransformer` of pairs (transformer, columns), named after their types.

    Parameters
    ----------
    *transformers : tuples (transformer, columns)
    **options : remainder, verbose_feature_names_out

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> make_column_transformer((MinMaxScaler(), ["age"]))
    ColumnTransformer(transformers=[('minmaxscaler', MinMaxScaler(), ['age'])])
    """
    parts = named([part for part, _ in transformers])
    items = [(*part, columns) for part, (_, columns) in zip(parts, transformers, strict=True)]
    return ColumnTransformer(items, **options)


def _accepts_of(name: str, part: Any, places: list[int]) -> Accepts:
    """Return which types of its columns a part takes."""
    if not places:
        raise InvalidInputError(
            f"{name!r} has no columns; expected at least one; leave it out, or pass an empty list"
        )
    accepts = ANYTHING if isinstance(part, str) else Accepts.of(part)
    if accepts.documents and len(places) > 1:
        raise InvalidInputError(
            f"{name!r} reads texts and is given {len(places)} columns; expected one; "
            "make one transformer for each column"
        )
    return accepts
