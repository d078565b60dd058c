"""Functions that make rows of a table from rows of the records, without the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from erasable.core._derived import Derived, RemoteDerived
from erasable.core.arrays import Values
from erasable.core.attachment import Attachment
from erasable.core.errors import InvalidInputError, UnsupportedStepError
from erasable.core.passes import Stored
from erasable.pipeline._layout import Learning, Nested
from erasable.pipeline._nodes import GraphNode, Output, Raw, RecordsNode, Stateless, evaluate
from erasable.pipeline._tables import equal

_PROBED = 64  # rows of stored records that give a table's width and dtype


class Making:
    """A function from rows of the records to rows of a node; it can be pickled."""

    def __init__(self, node: GraphNode, source: RecordsNode) -> None:
        self._node, self._source = node, source

    def __call__(self, rows: Any) -> Values:
        """Make rows of the node."""
        wide = rows if rows.dtype == object else rows.astype(np.float64, copy=False)
        return evaluate(self._node, lambda node: wide if node is self._source else None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Lay out the compositions again, which are pickled without their layouts."""
        self.__dict__.update(state)
        _lay_out(self._node)


def derived(held: Attachment, table: GraphNode, source: RecordsNode) -> Derived:
    """Return a table made of stored records, block by block, when it is read."""
    matrix: Stored = held.records.matrix
    make = Making(table, source)
    some = matrix[held.live_rows()[:_PROBED]]
    probe = make(some)
    stateless = [node.name for node in _all_above(table) if isinstance(node, Stateless)]
    if stateless:
        refuse_joint(stateless, make(some[:1]), probe[:1])
    kind = RemoteDerived if matrix.is_remote else Derived
    return kind(matrix, make, probe, held.live)


def refuse_joint(stateless: Sequence[str], alone: Values, among: Values) -> None:
    """Raise UnsupportedStepError if a row has another output when it is alone."""
    if not equal(alone, among):
        names = ", ".join(map(repr, reversed(stateless)))
        raise UnsupportedStepError(
            f"step {names} gives a row other values when it is alone, so it learns from the "
            "others or multiplies them as a whole; expected a function of each row; use an "
            "estimator of erasable, or transform the data before the pipeline"
        )


def refuse_sparse(learning: Learning, reads: Attachment) -> None:
    """Raise InvalidInputError if a step would learn otherwise from a sparse table in memory.

    Blocks of stored tables are made dense.
    """
    step, matrix = learning.step, reads.records.matrix
    if isinstance(step, Nested):  # its own steps are checked
        return
    if isinstance(matrix, Derived) and matrix.sparse and not step._as_if_dense:
        raise InvalidInputError(
            f"step {learning.name!r}, a {type(step).__name__}, makes another model of sparse "
            "tables, which are not made of stored records; expected a dense one, or "
            "LogisticRegression or naive Bayes on counts; set sparse_output=False in the encoders "
            "before it, or pass records.in_memory()"
        )


def _all_above(node: GraphNode) -> Iterator[GraphNode]:
    """Yield a node and all its inputs, at any depth."""
    yield node
    for each in node.inputs:
        yield from _all_above(each)


def _lay_out(node: GraphNode) -> None:
    if isinstance(node, Output | Raw):
        _lay_out(node.input)
        node.step._lay_out_again(node.input)
        return
    for each in node.inputs:
        _lay_out(each)
