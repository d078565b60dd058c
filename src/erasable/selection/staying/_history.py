"""A staying model from the counts of past requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from erasable.core.errors import InvalidInputError
from erasable.core.ids import name_some, shorten
from erasable.selection._records import as_labels
from erasable.selection.staying._alike import BetaBinomial
from erasable.selection.staying._independent import PerClass
from erasable.selection.staying._model import Staying


def from_history(requested: Any, held: Any, *, by: Any = None) -> Staying:
    """Make a staying model from the number of past deletion requests and of data owners.

    The probability of staying has the posterior Beta(1 + stayed, 1 + left), from a uniform prior.
    With few owners in the past it is uncertain, and the selection anticipates that, too.

    Parameters
    ----------
    requested, held : int, or mapping of class to int
        Owners who requested deletion, and all owners, over a time as long as the one ahead.
    by : sequence of classes, default=None
        For counts in sequences: the class of each.

    Returns
    -------
    BetaBinomial or PerClass

    Raises
    ------
    InvalidInputError
        Invalid counts, more requests than owners, or classes that do not match.

    Examples
    --------
    >>> from_history(3, 40)
    BetaBinomial(alpha=38.0, beta=4.0)
    >>> from_history({"ill": 30, "well": 0}, {"ill": 40, "well": 60}).models["ill"]
    BetaBinomial(alpha=11.0, beta=31.0)
    >>> from_history([30, 0], [40, 60], by=["ill", "well"]).models["well"]
    BetaBinomial(alpha=61.0, beta=1.0)
    """
    if by is not None:
        requested, held = _by_class(requested, by, "requested"), _by_class(held, by, "held")
    if isinstance(requested, Mapping) != isinstance(held, Mapping):
        raise InvalidInputError(
            f"requested is a {type(requested).__name__} and held is a {type(held).__name__}; "
            "expected two numbers or two mappings; count both in one way"
        )
    if not isinstance(requested, Mapping):
        return _posterior(requested, held, "")
    if not held or requested.keys() - held.keys():
        unknown = sorted(requested.keys() - held.keys(), key=str)
        raise InvalidInputError(
            f"held has no count for the classes {name_some(unknown)}; expected how many owners "
            "there were of each; add them"
        )
    return PerClass(
        {
            label: _posterior(requested.get(label, 0), n, f" of {label!r}")
            for label, n in held.items()
        }
    )


def _by_class(counts: Any, by: Any, name: str) -> dict[Any, Any]:
    classes = as_labels(by, "by")
    if classes.ndim != 1:
        raise InvalidInputError(
            f"by has shape {classes.shape}; expected a list of classes, one for each count"
        )
    labels = classes.tolist()
    values = np.atleast_1d(as_labels(counts, name)).tolist()
    if len(labels) != len(values) or len(set(labels)) != len(labels):
        raise InvalidInputError(
            f"{name} has {len(values)} counts for {len(labels)} classes in by; expected one for "
            "each class, named once; pass them in the same order"
        )
    return dict(zip(labels, values, strict=True))


def _posterior(left: Any, held: Any, of: str) -> BetaBinomial:
    for name, value in (("requested", left), ("held", held)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
            raise InvalidInputError(
                f"{name}{of} is {shorten(value)}; expected a count, 0 or more; pass an integer"
            )
    if left > held:
        raise InvalidInputError(
            f"{left} requests{of} by {held} owners; expected no more requests than owners; count "
            "each owner once"
        )
    return BetaBinomial(1 + held - left, 1 + left)
