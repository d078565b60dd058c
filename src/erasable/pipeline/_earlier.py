"""Compositions of which earlier versions learned a wrong model.

They cut a transformer that ends in a map of columns in two, what it does before (its raw part) and
the map, and applied the raw part a second time wherever another step that takes a map stood
between the transformer and whatever read the result: it learned from wrong values. They took a
pipeline of scalers with another pipeline of scalers in it for the inner one alone. And they did
not look at what a map subtracts from sparse values before a `MaxAbsScaler`, or before a
`LogisticRegression` without an intercept.

The states of these compositions have a mark since. A file without it is `outdated`: it loads with
its records, and learns again at its first deletion. All other states are what they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from erasable.core.estimator import Erasable
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.linear_model import LogisticRegression
from erasable.pipeline._layout import Layout, Learning
from erasable.pipeline._maps import EndMap, MapPart, compose
from erasable.pipeline._nested import Nested
from erasable.pipeline._nodes import Map, Node, Raw, Select, Stateless, Table, Transform
from erasable.preprocessing import MaxAbsScaler, OneHotEncoder, SimpleImputer

MARK = "composition"
"""Name of the mark in a state; its value is 2."""


def learned_wrong(part: Any) -> bool:
    """Tell whether earlier versions learned a wrong model of a fitted composition, or of a part.

    Examples
    --------
    >>> from erasable.decomposition import PCA
    >>> from erasable.pipeline import make_pipeline
    >>> from erasable.preprocessing import StandardScaler
    >>> X = [[1.0, 2.0], [3.0, 5.0], [4.0, 0.0], [0.5, 7.0]]
    >>> flat = make_pipeline(PCA(2), StandardScaler(), StandardScaler(), PCA(1))
    >>> nested = make_pipeline(make_pipeline(PCA(2), StandardScaler()), StandardScaler(), PCA(1))
    >>> learned_wrong(flat.fit(X)), learned_wrong(nested.fit(X))
    (False, True)
    """
    return any(map(_row_learned_wrong, _rows(part)))


def _row_learned_wrong(row: Layout) -> bool:
    read_wrong = False
    for learning in row.learners:
        step = learning.step
        reads = learning.reads
        if learning.tabled and isinstance(reads, Table) and isinstance(reads.input, Raw):
            read_wrong |= _raw_wrong(reads.input.step)
        read_wrong |= any(_maps_in_part(each.step) for each in learning.maps)
        if read_wrong or learned_wrong(step) or _ignored_shift(learning):
            return True
        read_wrong |= _applied_twice(learning.maps)
    return False


def _raw_wrong(part: Any) -> bool:
    """Tell whether the raw part of a composition was applied twice within it."""
    last = [row for row in _rows(part) if row.steps]
    return any(
        _applied_twice(_maps_before(row.output)) or _raw_wrong(row.steps[-1][1]) for row in last
    )


def _maps_before(node: Node) -> list[MapPart]:
    """Return the maps of columns between the last table and a node."""
    maps: list[MapPart] = []
    while isinstance(node, Transform | Stateless | Select | Map):
        maps += node.maps if isinstance(node, Map) else ()
        node = node.input
    return maps


def _applied_twice(maps: Iterable[MapPart]) -> bool:
    return any(isinstance(each, EndMap) and not _repeats(each.step) for each in maps)


def _repeats(part: Any) -> bool:
    """Tell whether the raw part of a transformer changes nothing of what it has made itself."""
    taken = _taken(part)
    return taken is not None and all(t < len(taken) and taken[t] == t for t in taken)


def _taken(part: Any) -> list[int] | None:
    """Return which columns the raw part of a transformer takes.

    None where it does anything to their values, but for filling gaps, which it does once.
    """
    if isinstance(part, Select):
        return list(part.selection.columns)
    if isinstance(part, Erasable) and part._is_map:
        return list(range(part.n_features_in_))
    if isinstance(part, SimpleImputer):
        kept = len(part.get_feature_names_out())
        return list(range(kept)) if kept == part.n_features_in_ else None
    taken: list[int] = []
    for row in _rows(part):
        steps = [step for _, step in row.steps]
        while steps and isinstance(steps[-1], Erasable) and steps[-1]._is_map:
            steps.pop()
        own = _selected(row)
        for step in steps:
            found = None if isinstance(step, Erasable) and step._is_map else _taken(step)
            if found is None:
                return None
            own = found if own is None else [own[t] for t in found]
        if own is None and not row.steps:  # a pipeline without steps
            own = list(range(part.n_features_in_))
        taken += own or []
    return taken if _rows(part) else None


def _selected(row: Layout) -> list[int] | None:
    """Return the columns of a part of a column transformer."""
    node = row.learners[0].reads if row.learners else row.output
    node = node.input if isinstance(node, Table) else node
    return _taken(node) if isinstance(node, Select) and node.input is row.source else None


def _maps_in_part(part: Any) -> bool:
    """Tell whether the map of a composition was taken for that of its last steps."""
    for row in _rows(part):
        if any(_maps_in_part(each.step) for each in row.maps):
            return True
        if part._is_map and len(row.maps) < len(row.steps):
            return True
    return False


def _ignored_shift(learning: Learning) -> bool:
    """Tell whether what the map subtracts from sparse values was not looked at."""
    step, maps = learning.step, learning.maps
    if not (maps and isinstance(maps[0], EndMap)):
        return False
    if not isinstance(step, MaxAbsScaler | LogisticRegression):
        return False
    if isinstance(step, LogisticRegression) and step._at_fit("fit_intercept"):
        return False
    within = maps[0].step.get_params().values()
    return any(map(_is_sparse, within)) and bool(compose(maps).shift.any())


def _is_sparse(part: Any) -> bool:
    if isinstance(part, OneHotEncoder):
        return bool(part.sparse_output)
    return isinstance(part, CountVectorizer | TfidfVectorizer)


def _rows(part: Any) -> list[Layout]:
    """Return the rows of steps of a fitted composition; none of anything else."""
    if not (isinstance(part, Nested) and "_layout" in part.__dict__):
        return []
    return list(part._rows())
