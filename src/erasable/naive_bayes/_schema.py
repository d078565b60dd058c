"""Schemas of the counts and sums in the file of a naive Bayes classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from erasable.core._schema import Depending, Fields, Part, Sizes, refuse
from erasable.core._schema_arrays import Array
from erasable.core._schema_models import MOST_QUANTA, classes, refuse_many, tops
from erasable.core.arrays import Floats, Ints


def naive_bayes_schema(
    n_records: int, counted: Callable[[int, bool], Fields], prior: Floats | None, *, fixed: bool
) -> Part:
    """Return the schema of a classifier.

    `counted` is called with the number of records, and whether they have weights. `fixed` tells
    whether the user has named all classes.
    """
    refuse_many(n_records)

    def suit_the_prior(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        if prior is not None and prior.size != sizes["n_classes"]:
            refuse("classes.labels", value["classes"]["labels"], f"{prior.size}, as in the prior")

    def schema(*, weighted: bool) -> Part:
        parts = {"classes": classes(n_records, fixed=fixed)}
        parts |= {"weights": _weights_schema(n_records)} if weighted else {}
        own = Fields(parts, relations=(suit_the_prior,))
        return own.joined(counted(n_records, weighted))

    return Depending("weights", schema(weighted=False), schema(weighted=True))


def _weights_schema(n_records: int) -> Fields:
    """Return the schema of what `ClassWeights.state` gives."""

    def weigh_something(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        if not value["sums"].any():
            refuse(f"{at}.sums", "zeros", "a class that weighs more")

    most = int(n_records * MOST_QUANTA)
    parts = {"top": tops(1), "sums": Array("int64", ("n_classes",), least=0, most=most)}
    return Fields(parts, relations=(weigh_something,))


def totals_of(state: dict[str, Any]) -> Ints:
    """Return the number of records of each class in a state, or the sum of their weights."""
    totals: Ints = state["weights"]["sums"] if "weights" in state else state["classes"]["counts"]
    return totals
