"""Checks and conversions for steps that do not learn in passes, where the features are stored.

The law kept here: such a step gets the same input as from records in memory, and gaps are refused
in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.utils import get_tags

from erasable.core.messages import refuse_no_texts
from erasable.core.passes import Block, Pass, run, storage

if TYPE_CHECKING:
    from erasable.core.estimator import Erasable


class _Gapless(Pass[None]):
    """Read every value and return nothing: reading a block raises an error where it has gaps."""

    def of_block(self, block: Block) -> None:
        return None

    def merge(self, one: None, other: None) -> None:
        return None


class _Documents(_Gapless):
    """Read every document, and raise an error where one is missing."""

    takes_gaps = True

    def of_block(self, block: Block) -> None:
        refuse_no_texts(block.matrix[block.positions, 0].tolist())


def refuse_stored_gaps(model: Erasable) -> None:
    """Refuse gaps of stored records that parts do not take, as in memory."""
    held, tags = model._attached(), get_tags(model).input_tags
    if held.records.is_stored and not tags.allow_nan:
        pass_ = _Documents() if tags.string and not tags.two_d_array else _Gapless()
        run(pass_, held.records.matrix, held.live_rows(), n_jobs=model._n_jobs)


def drop_copies(model: Erasable) -> None:
    """Drop copies of records that parts have learned from."""
    storage(model._attached().records.matrix).drop_copies()
