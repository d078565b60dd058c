"""Base of estimators made of others, which learn, delete and are saved as one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import _BaseComposition

from erasable.core._changing import AllOrNothing
from erasable.core._fit_info import base_state, map_state
from erasable.core._schema import DictOf, Fields, FieldType, Integer, Sizes, Within, refuse
from erasable.core.arrays import Ints, Values
from erasable.core.attachment import Attachment
from erasable.core.changes import Affine, Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.estimator import NEVER, Erasable
from erasable.core.ids import name_some
from erasable.core.params import as_encoded, check_params, encoded_parts
from erasable.core.partial import WeightedTransformer
from erasable.core.protocol import Learner
from erasable.pipeline._engine import Engine
from erasable.pipeline._layout import Layout, Nested, fuses, fusing
from erasable.pipeline._nodes import GraphNode, RecordsNode, Stateless, evaluate
from erasable.pipeline._stateless import made_ready, wants_width

_FUSED = "fused"
_WEIGHT = "sample_weight"


class Composition(_BaseComposition, Nested):
    """Base of `Pipeline` (steps in a row) and `ColumnTransformer` (parts side by side).

    A subclass says which parameter holds its parts and which of them do anything (`_parts`), and
    lays them out as a part of the graph (`_plan`). A part is fitted in place, and refuses to delete
    on its own. If a fit raises, every part is what it was before.
    """

    _refit_from: ClassVar[tuple[int, float]] = NEVER  # its parts choose

    _PARTS: ClassVar[str]
    _engine: Engine | None = None
    _fused: bool = True
    _fitted_parts: list[tuple[str, Any]]
    _named: frozenset[str] = frozenset()
    """Transformers that use weights in the running fit."""

    @abstractmethod
    def _parts(self) -> list[tuple[str, Any]]:
        """Return the names and estimators of the active parts."""

    @abstractmethod
    def _plan(self, source: GraphNode) -> Layout:
        """Lay out the parts."""

    @abstractmethod
    def _as_scikit_learn(self) -> Any:
        """Return a composition of scikit-learn, not fitted, of the same parts."""

    def _sk_visual_block_(self) -> Any:
        """Return what scikit-learn draws of it in a notebook."""
        return self._as_scikit_learn()._sk_visual_block_()

    @abstractmethod
    def _check_parts(self) -> None:
        """Refuse parts that cannot form a composition."""

    def _not_by_blocks(self, *, remote: bool) -> list[Learner]:
        """Return the parts that do not learn block by block."""
        parts = self._erasable_parts().values()
        return [found for part in parts for found in part._not_by_blocks(remote=remote)]

    # -- learning and forgetting ---------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
        **params: Any,
    ) -> Self:
        """Learn from records.

        Parameters
        ----------
        X : array-like, frame or Records of shape (n_records, n_features)
            What the parts take, copied; `Records` are shared instead.
        y : array-like of shape (n_records,), default=None
            Targets, where a part has any use for them.
        ids : array-like of int or str, or the name of a column, default=None
            Which record each row is. By default a pandas frame's index, or 0..n-1.
        groups : array-like of int or str, or the name of a column, default=None
            Which records leave together.
        **params : dict
            `sample_weight`, an array-like of shape (n_records,) or a float: how much each record
            counts, for every part that takes weights. Where one part alone does, it may be named,
            as scikit-learn has it: ``<part>__sample_weight``. A scaler takes weights only where it
            is named, with the same ones as the other parts.

        Returns
        -------
        self
            The fitted estimator. If anything raises, it is what it was before.

        Raises
        ------
        InvalidDataError, InvalidIdsError
            See `erasable.core.inputs.read_table`.
        InvalidInputError
            Another parameter, or weights of which no part makes use, or which several would use
            where one was named, or that differ.
        TooFewRecordsError
            Fewer records than the model needs.

        Examples
        --------
        >>> from erasable.linear_model import Ridge
        >>> from erasable.pipeline import make_pipeline
        >>> from erasable.preprocessing import StandardScaler
        >>> model = make_pipeline(StandardScaler(), Ridge(alpha=0.0))
        >>> X, y, weights = [[0.0], [1.0], [2.0]], [1.0, 3.0, 99.0], [1.0, 1.0, 0.0]
        >>> model.fit(X, y, ridge__sample_weight=weights).predict([[2.0]]).round(6)
        array([5.])
        """
        weights, named = self._weight_among(params)
        return self._fit(X, y, weights, ids, groups, named)

    def _weight_among(self, params: dict[str, Any]) -> tuple[Any, frozenset[str]]:
        """Return the weights among the parameters of `fit`, and the transformers that use them.

        The weights are those of the records, and the same for all parts.
        """
        if not params:
            return None, frozenset()
        takers, others = self._takers_of_weights(), self._takers_of_weights(by_name=True)
        whole = [_WEIGHT] if takers else []
        whole += [f"{takers[0]}__{_WEIGHT}"] if len(takers) == 1 else []
        named = {f"{name}__{_WEIGHT}": name for name in others}
        first, *rest = params.values()
        n_whole = sum(name in whole for name in params)
        if (
            params.keys() - named.keys() - set(whole)
            or n_whole != bool(takers)
            or not all(each is first or np.array_equal(each, first) for each in rest)
        ):
            told = (
                f"some of {', '.join(takers + others)} take weights, the same ones"
                if takers or others
                else "no part takes weights"
            )
            if takers and others:
                told += f", and {', '.join(others)} only beside the others"
            mistaken = [] if all("weight" in name for name in params) else ["ids", "groups"]
            raise InvalidInputError(
                f"fit was given {name_some(list(params))}; expected "
                f"{' or '.join([*mistaken, *whole, *named]) or 'none'}, as {told}"
            )
        chosen = frozenset(named[name] for name in params if name in named)
        return first, frozenset() if first is None else chosen

    def _takers_of_weights(self, *, by_name: bool = False) -> list[str]:
        """Return the parts that take weights, by the names of their parameters.

        With `by_name`, return those that take them only where they are named.
        """
        found = []
        for name, part in self._erasable_parts().items():
            if isinstance(part, Composition):
                inside = part._takers_of_weights(by_name=by_name)
                found += [f"{name}__{inner}" for inner in inside]
            elif part._takes_weights and isinstance(part, WeightedTransformer) == by_name:
                found.append(name)
        return found

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        ids: Any,
        groups: Any,
        named: frozenset[str] = frozenset(),
    ) -> Self:
        super()._validate_params()
        self._check_parts()
        self._refuse_approximate()
        unchanged = AllOrNothing(self._composed())
        with unchanged, unchanged:
            self._named = named
            return super()._fit(X, y, sample_weight, ids, groups)

    def _forget_learned(self, but: tuple[str, ...] = ()) -> None:
        super()._forget_learned((*but, "_named"))

    def _erasable_parts(self) -> dict[str, Erasable]:
        """Return the parts that learn, by name."""
        return {name: part for name, part in self._parts() if isinstance(part, Erasable)}

    def _validate_params(self) -> None:
        super()._validate_params()
        self._check_parts()
        self._refuse_approximate()
        for _, part in self._parts():
            if isinstance(part, Erasable):
                part._validate_params()
            elif hasattr(part, "_parameter_constraints"):
                check_params(part)

    def _refuse_approximate(self) -> None:
        for name, part in self._erasable_parts().items():
            if part.exactness == "approximate":
                raise InvalidParameterError(
                    f"{name} is a {type(part).__name__}, which forgets about, and deletions of a "
                    f"{type(self).__name__} are exact; expected estimators that are; use it alone"
                )

    def _check_names(self, items: list[Any]) -> None:
        try:
            self._validate_names([name for name, *_ in items])
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"{' '.join(str(error).split())}; expected a list of (name, estimator) with "
                "different names, without '__'; make_pipeline makes them up"
            ) from None

    @property
    def _takes_weights(self) -> bool:  # type: ignore[override]
        return any(
            part._takes_weights
            and (not isinstance(part, WeightedTransformer) or part.__dict__.get("_weighs", False))
            for part in self._erasable_parts().values()
        )

    def _learns_from(self) -> set[str]:
        parts = self._erasable_parts().values()
        return super()._learns_from().union(*(part._learns_from() for part in parts))

    @property
    def _reads_numbers(self) -> bool:
        parts = [
            part for part in self._erasable_parts().values() if get_tags(part).target_tags.required
        ]
        return bool(parts) and all(part._reads_numbers for part in parts)

    @property
    def _heeds_objects(self) -> bool:
        return any(part._heeds_objects for part in self._erasable_parts().values())

    def _draw_seed(self) -> None:
        for name, part in self._erasable_parts().items():
            part._forget_learned()
            if isinstance(part, Composition):
                inside = {each.partition("__") for each in self._named}
                part._named = frozenset(rest for outer, _, rest in inside if outer == name)
            elif isinstance(part, WeightedTransformer):
                part._weighs = name in self._named
            part._draw_seed()

    def _minimum_records(self) -> int:
        parts = self._erasable_parts().values()
        return max([1, *(part._minimum_records() for part in parts)])

    def _minimum_parameter(self) -> str | None:
        least = self._minimum_records()
        for name, part in self._erasable_parts().items():
            if part._minimum_records() == least:
                inner = part._minimum_parameter()
                return None if inner is None else f"{name}__{inner}"
        return None

    def _check_deletion(self, rows: Ints) -> None:
        for learning in self._layout.learners:
            learning.step._check_deletion(rows)

    def _fit_rows(self) -> None:
        assert self._held is not None
        self._fused = fuses()
        self._engine = self._accelerator = Engine(self._held)
        self._engine.learn(self)

    def _lay_out(self, source: GraphNode) -> None:
        self._sign = object()
        self._layout = self._plan(source)
        self._fitted_parts = self._parts()

    def _as_fitted(self, name: str, part: Any) -> Any:
        """Return a part with the parameters of `fit`; a part that learns stores them itself."""
        if isinstance(part, Erasable | str) or part is None:
            return part
        return as_encoded(part, self._encoded_parts()[name])

    def _update(self, delta: Delta) -> Outcome:
        assert self._engine is not None
        with fusing(self._fused):
            return self._engine.follow(self, delta)

    def _end_learning(self, engine: Engine) -> None:
        # As in scikit-learn, the steps that were passed are fitted, too.
        for name, part in self._parts():
            if isinstance(part, Erasable) or not wants_width(part):
                continue
            for row in self._rows():
                if name in dict(row.steps):
                    if isinstance(row.output, Stateless):  # which has not been used yet
                        engine.first_row(self, row.output)
                    made_ready(part, dict(row.steps)[name].n_features_in_)

    def _relearn(self, held: Attachment, affine: Affine | None = None) -> None:
        with fusing(self._fused):
            super()._relearn(held, affine)

    def _attach_engine(self) -> Engine:
        assert self._held is not None
        if self._engine is None or self._engine.held is not self._held:
            engine = Engine(self._held)
            engine.attach(self)
            self._engine = engine
        return self._engine

    def _reattach(self) -> None:
        with fusing(self._fused):
            engine = self._attach_engine()
            engine.prepare(self)
        self._accelerator = engine

    def _evaluate(self, node: GraphNode, rows: Values) -> Values:
        """Make rows of a node from rows of the input of the composition."""
        return evaluate(node, self._known(rows))

    def _known(self, rows: Values) -> Callable[[GraphNode], Values | None]:
        return lambda node: rows if node is self._layout.source else None

    def _make_ready(self) -> None:
        self._reattach()  # also parts may have lost their accelerators

    def _composed(self) -> list[Erasable]:
        """Return all estimators in it, at any depth."""
        return [part for part in self.get_params().values() if isinstance(part, Erasable)]

    def _state_beside_parts(self) -> dict[str, Any]:
        """Return the rest of the state, which tells how the parts learned."""
        return {} if self._fused else {_FUSED: 0}

    def _fits_sooner(self, n_gone: int, n_records: int) -> bool:
        parts = self._erasable_parts().values()
        return any(part._fits_sooner(n_gone, n_records) for part in parts)

    def _abandon(self) -> None:
        super()._abandon()
        for part in self._erasable_parts().values():
            part._abandon()

    # -- state ---------------------------------------------------------------------------------

    def _learners(self) -> Iterator[tuple[str, Erasable]]:
        for learning in self._layout.learners:
            yield learning.name, learning.step

    def _schema(self) -> Fields:
        parts = DictOf(Within({"algorithm_version", "feature_names", "n_features", "seed"}))

        def know_the_parts(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            strange = sorted(value[self._PARTS].keys() - self._erasable_parts().keys())
            if strange:
                refuse(f"{self._PARTS}.{strange[0]}", "a value", "no such field")

        told: dict[str, FieldType] = {_FUSED: Integer(0, 0)}
        return Fields({self._PARTS: parts}, told, (know_the_parts,))

    def _refuse_missing_parts(self) -> None:
        """Refuse a state that lacks a part that learns, or has a wider first part."""
        for name, step in self._learners():
            if "_info" not in step.__dict__:
                refuse(f"{self._PARTS}.{name}", "nothing", "a value")
        for at, step, width in self._first_steps():
            if isinstance(step, Erasable) and step.n_features_in_ != width:
                at = f"{self._PARTS}.{at}.n_features"
                refuse(at, step.n_features_in_, f"{width}, as it is given")

    @abstractmethod
    def _first_steps(self) -> Iterator[tuple[str, Any, int]]:
        """Yield the names of the parts that read its input, and their numbers of columns."""

    def _state(self) -> dict[str, Any]:
        return {
            self._PARTS: {name: _part(step) for name, step in self._learners()},
            **self._state_beside_parts(),
        }

    def _digest_state(self) -> dict[str, Any]:
        record_set = base_state(self)["record_set"]
        digests = {}
        for name, step in self._learners():
            step._info.id_set = record_set  # hashed once for all parts
            digests[name] = step.digest()
        return {self._PARTS: digests, **self._state_beside_parts()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._fused = _FUSED not in state
        encoded = self._encoded_parts()
        shared = {"n_records": self._info.n_records, "record_set": self._info.id_set}
        # Before the chains are laid out, which depends on how the parts were fitted.
        for name, part in self._parts():
            if name in state[self._PARTS]:
                own = {"params": encoded[name]["params"], **shared}
                whole = {**own, **state[self._PARTS][name]}
                part._adopt(whole, None, foreign=self._info.foreign)
                if isinstance(part, WeightedTransformer):
                    part._weighs = "weights" in whole
        with fusing(self._fused):
            self._lay_out_all(RecordsNode())
        if self._info.foreign:
            self._refuse_missing_parts()
        if self._held is not None:
            with fusing(self._fused):
                self._attach_engine()

    def _lay_out_all(self, source: GraphNode) -> None:
        """Lay out restored parts at any depth."""
        self._lay_out(source)
        for learning in self._layout.learners:
            if "_info" in learning.step.__dict__:
                learning.step._info.owner = self._sign
                if isinstance(learning.step, Composition):
                    learning.step._lay_out_all(learning.reads)

    def _lay_out_again(self, source: GraphNode) -> None:
        with fusing(self._fused):
            self._lay_out_all(source)

    def _encoded_parts(self) -> dict[str, Any]:
        """Return the parts as they were at `fit`, as plain values."""
        told = encoded_parts(self._info.params[self._PARTS])
        return {name: part for name, (part, *_) in told.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the parts' states with this one's, and only parameters in the parts."""
        if "_info" in self.__dict__:
            self._check_fitted()
        state: dict[str, Any] = super().__getstate__()
        if "_learned" in state:
            state[self._PARTS] = [
                tuple(clone(item) if isinstance(item, Erasable) else item for item in part)
                for part in getattr(self, self._PARTS)
            ]
        return state

    def _check_fitted(self) -> None:
        super()._check_fitted()
        fitted, parts = self._fitted_parts, self._parts()
        for (name, step), (_, part) in zip(fitted, parts, strict=False):
            learns = isinstance(step, Erasable)
            book = part.__dict__.get("_info") if learns else None
            if step is not part or (learns and getattr(book, "owner", 0) != self._sign):
                raise NotFittedError(
                    f"step {name!r} was replaced, or fitted on its own, since this "
                    f"{type(self).__name__} was fitted; expected it as it was; fit again"
                )
        if len(fitted) != len(parts):
            raise NotFittedError(
                f"{len(parts)} steps are here and {len(fitted)} were fitted; fit again"
            )


def named(parts: Sequence[Any]) -> list[tuple[str, Any]]:
    """Name parts after their types, with a number where several would have one name."""
    types = [each if isinstance(each, str) else type(each).__name__.lower() for each in parts]
    numbers = [types[: place + 1].count(name) for place, name in enumerate(types)]
    return [
        (f"{name}-{number}" if types.count(name) > 1 else name, part)
        for name, number, part in zip(types, numbers, parts, strict=True)
    ]


def _part(step: Erasable) -> dict[str, Any]:
    """Return the state of a part, without parameters and records, which the whole has."""
    return {
        "algorithm_version": step.algorithm_version,
        "feature_names": step._column_names,
        "n_features": step.n_features_in_,
        "seed": getattr(step, "seed_", None),
        **map_state(step),
        **step._state(),
    }
