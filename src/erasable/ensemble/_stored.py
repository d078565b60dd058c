"""What ensembles do where the features of records are stored elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.utils import get_tags

from erasable.core.passes import Block, Pass, Stored, run

if TYPE_CHECKING:
    from erasable.ensemble._composed import Composed


class _Gapless(Pass[None]):
    """Read every value and return nothing: reading a block raises an error where it has gaps."""

    def of_block(self, block: Block) -> None:
        return None

    def merge(self, one: None, other: None) -> None:
        return None


def refuse_stored_gaps(model: Composed) -> None:
    """Refuse gaps of stored records where members take none, as they are refused in memory."""
    held = model._attached()
    matrix = held.records.matrix
    if isinstance(matrix, Stored) and not get_tags(model).input_tags.allow_nan:
        run(_Gapless(), matrix, held.live_rows(), n_jobs=model.n_jobs)


def drop_copies(model: Composed) -> None:
    """Keep no records that members have learned from."""
    matrix = model._attached().records.matrix
    if isinstance(matrix, Stored):
        matrix.drop_copies()
