"""Who is chosen: groups in a selection against groups in the data.

A selection that prefers owners who are likely to stay may leave groups out that are not, such as
the ill. The paper's impact statement asks to look; this is the look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from erasable.core.errors import InvalidInputError
from erasable.selection.staying import as_staying

__all__ = ["GroupBalance", "balance"]


@dataclass(frozen=True)
class GroupBalance:
    """One group.

    Attributes
    ----------
    group : object
    n_data, n_selected : int
        How many records of the group there are, and were chosen.
    share_data, share_selected : float
        Of all records, and of the chosen ones.
    share_staying : float
        Of those chosen who are expected to stay.
    ratio : float
        `share_selected` over `share_data`: below 1 the group is chosen less often than it occurs.

    Examples
    --------
    >>> GroupBalance("ill", 50, 5, 0.5, 0.25, 0.1, 0.5).ratio
    0.5
    """

    group: Any
    n_data: int
    n_selected: int
    share_data: float
    share_selected: float
    share_staying: float
    ratio: float


def balance(groups: Any, selected: Any, *, staying: Any = 1.0, y: Any = None) -> list[GroupBalance]:
    """Compare groups in a selection with groups in the data.

    Parameters
    ----------
    groups : array-like of shape (n_records,)
        The group of each record: a class, a region, an age.
    selected : array-like of int
        Rows that were chosen: `SubsetSelector.selected_`.
    staying : staying model, float, mapping or array-like, default=1.0
    y : array-like of shape (n_records,), default=None
        Classes, for staying models by class.

    Returns
    -------
    list of GroupBalance
        The group that is chosen least often for its size first.

    Raises
    ------
    InvalidInputError
        Rows that there are not.

    Examples
    --------
    >>> for each in balance(["ill", "ill", "well", "well"], [0, 2, 3]):
    ...     print(each.group, each.n_selected, round(each.ratio, 2))
    ill 1 0.67
    well 2 1.33
    """
    labels, rows = np.asarray(groups), np.asarray(selected)
    n = len(labels)
    if rows.ndim != 1 or not len(rows) or not np.issubdtype(rows.dtype, np.integer):
        raise InvalidInputError(
            f"selected is {rows.dtype} of shape {rows.shape}; expected rows that were chosen, one "
            "or more; pass selected_ of a selector"
        )
    if rows.min() < 0 or rows.max() >= n:
        raise InvalidInputError(
            f"selected names the row {int(rows.max())} of {n}; expected rows from 0 to {n - 1}; "
            "pass the groups of all records, not of the chosen ones alone"
        )
    stays = as_staying(staying).bind(n, k=len(rows), labels=y).probability[rows]
    made = []
    for group in sorted(set(labels.tolist()), key=str):
        of_group = labels == group
        chosen = of_group[rows]
        data, share = float(of_group.mean()), float(chosen.mean())
        staying_share = float(stays[chosen].sum() / stays.sum()) if stays.sum() else 0.0
        made.append(
            GroupBalance(
                group, int(of_group.sum()), int(chosen.sum()), data, share, staying_share,
                share / data,
            )
        )  # fmt: skip
    return sorted(made, key=lambda each: each.ratio)
