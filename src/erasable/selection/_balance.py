"""Balance of a selection: shares of groups in it against their shares in the data.

A selection that prefers owners who are likely to stay may leave out groups that are not, such as
the ill; the paper's impact statement asks to check that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from erasable.core.display import Listing
from erasable.core.errors import InvalidInputError
from erasable.core.frames import as_series, index_of
from erasable.selection._records import as_labels, codes_of, read_ids, read_selection
from erasable.selection.staying._independent import as_staying


@dataclass(frozen=True)
class GroupBalance:
    """The share of one group in the data and in a selection.

    Attributes
    ----------
    group : object
    n_data, n_selected : int
        How many records of the group there are, and were chosen.
    share_data, share_selected : float
        Of all records, and of the chosen ones.
    share_staying : float
        Of the chosen records that are expected to stay.
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


def balance(
    groups: Any,
    selected: Any = None,
    *,
    rows: Any = None,
    ids: Any = None,
    staying: Any = 1.0,
    y: Any = None,
) -> Listing[GroupBalance]:
    """Compare groups in a selection with groups in the data.

    Parameters
    ----------
    groups : array-like of shape (n_records,)
        The group of each record: a class, a region, an age.
    selected : array-like of ids, default=None
        The records that were chosen: `SubsetSelector.selected_ids_`.
    rows : array-like of int, or boolean mask of shape (n_records,), default=None
        The positions of those that were chosen, in place of `selected`.
    ids : array-like of shape (n_records,), default=None
        The id of each record; by default the index of a pandas series of groups, or 0..n-1.
    staying : staying model, float, mapping or array-like, default=1.0
    y : array-like of shape (n_records,), default=None
        Classes, for staying models by class.

    Returns
    -------
    list of GroupBalance
        The group that is chosen least often for its size first. A notebook shows it as a table.

    Raises
    ------
    InvalidInputError
        No record is selected, or an unknown one.

    See Also
    --------
    SubsetSelector.balance : The same for the records that a selector chose.

    Examples
    --------
    >>> for each in balance(["ill", "ill", "well", "well"], [0, 2, 3]):
    ...     print(each.group, each.n_selected, round(each.ratio, 2))
    ill 1 0.67
    well 2 1.33
    """
    labels, names = _read_groups(groups, ids, by_index=rows is None)
    chosen_rows = read_selection(selected, rows, names)
    if not len(chosen_rows):
        raise InvalidInputError("no record is selected; expected one or more")
    bound = as_staying(staying).bound(len(labels), k=len(chosen_rows), labels=y)
    stays = bound.probability[chosen_rows]
    made = []
    for group in sorted(set(labels.tolist()), key=str):
        of_group = labels == group
        chosen = of_group[chosen_rows]
        data, share = float(of_group.mean()), float(chosen.mean())
        staying_share = float(stays[chosen].sum() / stays.sum()) if stays.sum() else 0.0
        made.append(
            GroupBalance(
                group, int(of_group.sum()), int(chosen.sum()), data, share, staying_share,
                share / data,
            )
        )  # fmt: skip
    return Listing(sorted(made, key=lambda each: each.ratio))


def _read_groups(groups: Any, ids: Any, *, by_index: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the group and the id of each record."""
    labels = as_labels(groups, "groups")
    if labels.ndim != 1 or not len(labels):
        raise InvalidInputError(
            f"groups have shape {labels.shape}; expected one group for each record"
        )
    codes_of(labels, "groups")
    series = as_series(groups)
    index = None if series is None else index_of(series)
    names = read_ids(labels, index if ids is None and by_index else ids)[1]
    if index is not None and ids is not None:
        theirs = index.tolist()
        if theirs != names.tolist() and set(theirs) == set(names.tolist()):
            raise InvalidInputError(
                "groups are a Series with the ids in another order; expected the order of the "
                "records; pass groups.loc[ids]"
            )
    return labels, names
