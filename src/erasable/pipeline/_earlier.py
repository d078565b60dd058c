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

from collections.abc import Sequence
from typing import Any

from erasable.core.estimator import Erasable
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.linear_model import LogisticRegression
from erasable.pipeline._stages import Link, Stage, compose
from erasable.preprocessing import MaxAbsScaler, OneHotEncoder, SimpleImputer

__all__ = ["MARK", "learned_wrong"]

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
    return any(_chain_learned_wrong(chain.stages) for chain in _chains(part))


def _chain_learned_wrong(stages: Sequence[Stage]) -> bool:
    read_wrong = False
    for stage in stages:
        read_wrong |= any(link.part == "raw" and _raw_wrong(link.step) for link in stage.table)
        read_wrong |= stage.mapped and any(_maps_in_part(link.step) for link in stage.maps)
        if stage.learns and (read_wrong or learned_wrong(stage.step) or _ignored_shift(stage)):
            return True
        read_wrong |= _applied_twice(stage.after)
    return False


def _raw_wrong(part: Any) -> bool:
    """Tell whether the raw part of a composition was applied twice within it."""
    last = [chain.stages[-1] for chain in _chains(part) if chain.stages]
    return any(_applied_twice(stage.after) or _raw_wrong(stage.step) for stage in last)


def _applied_twice(path: Sequence[Link]) -> bool:
    return any(link.part == "map" and not _repeats(link.step) for link in path)


def _repeats(part: Any) -> bool:
    """Tell whether the raw part of a transformer changes nothing of what it has made itself."""
    taken = _taken(part)
    return taken is not None and all(t < len(taken) and taken[t] == t for t in taken)


def _taken(part: Any) -> list[int] | None:
    """Return which columns the raw part of a transformer takes.

    None where it does anything to their values, but for filling gaps, which it does once.
    """
    if getattr(part, "_is_selection", False):
        return list(part.columns)
    if getattr(part, "_is_affine", False):
        return list(range(part.n_features_in_))
    if isinstance(part, SimpleImputer):
        kept = len(part.get_feature_names_out())
        return list(range(kept)) if kept == part.n_features_in_ else None
    taken: list[int] = []
    for chain in _chains(part):
        steps = [stage.step for stage in chain.stages]
        while steps and getattr(steps[-1], "_is_affine", False):
            steps.pop()
        own: list[int] | None = None
        for step in steps:
            found = None if getattr(step, "_is_affine", False) else _taken(step)
            if found is None:
                return None
            own = found if own is None else [own[t] for t in found]
        taken += own or []
    return taken if _chains(part) else None


def _maps_in_part(part: Any) -> bool:
    """Tell whether the map of a composition was taken for that of its last steps."""
    for chain in _chains(part):
        maps = chain.last_maps()
        if any(_maps_in_part(link.step) for link in maps):
            return True
        if part._is_affine and len(maps) < len(chain.stages):
            return True
    return False


def _ignored_shift(stage: Stage) -> bool:
    """Tell whether what the map subtracts from sparse values was not looked at."""
    step = stage.step
    if not (stage.mapped and stage.maps[0].part == "map"):
        return False
    if not isinstance(step, MaxAbsScaler | LogisticRegression):
        return False
    if isinstance(step, LogisticRegression) and step._at_fit("fit_intercept"):
        return False
    within = stage.maps[0].step.get_params().values()
    return any(map(_is_sparse, within)) and bool(compose(stage.maps)[0].any())


def _is_sparse(part: Any) -> bool:
    if isinstance(part, OneHotEncoder):
        return bool(part.sparse_output)
    return isinstance(part, CountVectorizer | TfidfVectorizer)


def _chains(part: Any) -> list[Any]:
    """Return the chains of a fitted composition; none of anything else."""
    chains = part.__dict__.get("_chains") if isinstance(part, Erasable) else None
    return [] if chains is None else list(chains.values())
