"""Messages about data: those of scikit-learn, on one line, with advice, without a value.

Each message of scikit-learn that can come up has an entry here; one without an entry is not
repeated, because it may print data. The words that `sklearn.utils.estimator_checks` looks for
stay as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from erasable.core import errors
from erasable.core.errors import (
    InvalidDataError,
    InvalidInputError,
    InvalidTypeError,
    MagnitudeError,
    TooFewRecordsError,
)
from erasable.core.ids import name_some, shorten

_TABLE = "expected a 2D array of shape (n_records, n_features)"
_NOT_2D = (
    "X is a {type} that does not have 2 dimensions; expected 2D array of shape (n_records, "
    "n_features); Reshape your data with X.reshape(-1, 1) for one feature, "
    "X.reshape(1, -1) for one row"
)
_SAME_FEATURES = "pass the features it was fitted on, in their order"

# Begin of a message, and its replacement; {message} is its first sentence.
_WORDINGS = {
    "Expected 2D array": _NOT_2D,
    "Expected a 2-dimensional": _NOT_2D,
    "Found array with dim": "{message}; reshape it with X.reshape(len(X), -1)",
    "Found array with 0": "{message}; pass one record or more, of one feature or more",
    "Found input variables with inconsistent": (
        "{message}; expected one target for each row; pass y in the order of the rows"
    ),
    "Complex data not supported": (
        "Complex data not supported; expected real numbers; pass X.real or abs(X)"
    ),
    "could not convert": (
        "X holds text that is not a number; expected numbers; encode or drop its columns"
    ),
    "int too large to convert": (
        "{data} holds integers that float64 cannot hold; expected numbers up to 1.8e308; divide "
        "them by a constant"
    ),
    "setting an array element": (
        "{data} holds rows of different lengths, or sequences in the place of numbers; "
        f"{_TABLE}; cut or fill up its rows"
    ),
    "Sparse data was passed": "{message}; Use '.toarray()' to convert to a dense numpy array",
    "The feature names should match": f"{{message}}; expected the same names; {_SAME_FEATURES}",
    "X does not contain any features": f"{{message}}; {_SAME_FEATURES}",
    "X has": f"{{message}}; {_SAME_FEATURES}",
    "Input y contains": "{message}; expected finite targets; drop those records, or fill them in",
    "y should be a 1d array": "{message}; expected one target for each row; pass one column of y",
    "float() argument must be": "{message}; expected numbers in X; encode or drop what is none",
    "Feature names are only supported": (
        "X has names of columns that are strings, and others that are not; expected strings; "
        "call X.columns = X.columns.astype(str)"
    ),
    "np.matrix": "X is a np.matrix; expected an array; pass np.asarray(X)",
}


def as_our_error(
    error: ValueError | TypeError | OverflowError, X: Any, y: Any = None
) -> InvalidDataError:
    """Turn an error that scikit-learn or NumPy raised for `X` and `y` into one of ours."""
    text = " ".join(str(error).split())
    wording = f"{{data}} cannot be read ({{error}}, {{type}}); {_TABLE}; pass an array of numbers"
    wording = next((w for opening, w in _WORDINGS.items() if text.startswith(opening)), wording)
    told = wording.format(
        message=text.partition(". ")[0].rstrip("."),
        data="X" if y is None else "X or y",
        type=type(X).__name__,
        error=type(error).__name__,
    )
    return (InvalidTypeError if isinstance(error, TypeError) else InvalidDataError)(told)


def too_few(name: str, least: int, parameter: str | None, left: int, n: int = 0) -> Exception:
    """Return the error that a model would have fewer records than it needs.

    `n` is how many it has, where records are deleted, and 0 where it is fitted.
    """
    told = f"deleting {n - left} of {n} records would leave {left}" if n else f"n_samples={left}"
    advice = "delete fewer" if n else "fit on more records"
    if parameter is not None:
        advice += f", or {'fit with' if n else 'set'} a smaller {parameter}"
    elif n and not left:
        advice += ", or drop the model, which then holds nobody"
    return TooFewRecordsError(f"{told}; {name} needs at least {least}; {advice}")


def refuse_no_columns(matrix: Any, name: str) -> None:
    """Raise InvalidDataError where the steps before have left no column to learn from."""
    if matrix.shape[1] == 0:
        raise InvalidDataError(
            f"Found array with 0 feature(s) (shape={tuple(matrix.shape)}) while a minimum of 1 is "
            f"required by {name}; pass one column or more, or leave out the step that drops them"
        )


def refuse_dates(values: Any, what: str) -> None:
    """Raise InvalidDataError for NumPy's dates and durations, which would be read as counts."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        kinds = {values.dtype.type}
    elif isinstance(values, np.ndarray):
        kinds = set(map(type, values.reshape(-1).tolist()))
    elif isinstance(values, list | tuple):
        kinds = {
            cell.dtype.type if isinstance(cell, np.ndarray) else type(cell)
            for row in values
            for cell in (row if isinstance(row, list | tuple) else (row,))
        }
    else:
        return
    for kind, told, unit in (
        (np.datetime64, "dates", "(X - np.datetime64('2000-01-01')) / np.timedelta64(1, 'D')"),
        (np.timedelta64, "durations", "X / np.timedelta64(1, 'D')"),
    ):
        if kind in kinds:
            raise InvalidDataError(
                f"{what} holds {told} (numpy.{kind.__name__}); expected numbers; say since when, "
                f"and in which unit: {unit.replace('X', what)}"
            )


def no_target(estimator: Any) -> InvalidDataError:
    """Return the error that an estimator which needs targets has none."""
    return InvalidDataError(
        f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is "
        "None; expected one target for each row; pass y"
    )


def refuse_no_texts(cells: list[Any], where: str = "") -> None:
    """Raise InvalidDataError where documents are not strings."""
    if set(map(type, cells)) <= {str}:
        return
    if wrong := sum(not isinstance(cell, str) for cell in cells):
        raise InvalidDataError(
            f"{wrong} of {len(cells)} documents{where} are not strings; expected one text for each "
            "record; decode bytes, and fill or drop what is missing"
        )


def refuse_many_rows(n_rows: int, most: int) -> None:
    """Raise MagnitudeError where there are more rows than sums are exact for."""
    if n_rows > most:
        raise MagnitudeError(
            f"{n_rows} rows were given; sums are exact for at most {most} (2**27); split the data"
        )


def refuse_many_records(n_records: int, most: int, name: str) -> None:
    """Raise MagnitudeError where a model of trees gets as many records as it has no room for."""
    if n_records >= most:
        raise MagnitudeError(
            f"{n_records} records were given; {name} takes fewer than {most} "
            "(2**27); split the data, and fit a model to each part"
        )


def refuse_signature(function: Any, name: str, arguments: str) -> None:
    """Refuse anything but a function that can be called with `arguments`, such as "a, b"."""
    try:
        inspect.signature(function).bind(*arguments.split(", "))
    except ValueError:  # compiled functions may have no signature
        return
    except TypeError:
        raise errors.InvalidParameterError(
            f"{name}={shorten(function)} cannot be called as {name}({arguments}); expected a "
            f"function of ({arguments})"
        ) from None


def refuse_parameters(estimator: Any, method: str, given: Mapping[str, Any]) -> None:
    """Raise InvalidInputError for weights that an estimator does not take, else TypeError."""
    name = f"{type(estimator).__name__}.{method}"
    for parameter, value in given.items():
        if parameter != "sample_weight":
            raise TypeError(f"{name}() got an unexpected keyword argument {parameter!r}")
        if value is not None:
            tags = get_tags(estimator)
            known = tags.estimator_type is not None or tags.transformer_tags is not None
            raise InvalidInputError(
                f"{name} was given sample_weight; expected none, as all records count alike here; "
                "leave it out" + ", or wrap scikit-learn's estimator, where that takes weights: "
                "Refit(...).fit(X, y, sample_weight)" * known
            )


def name_columns(columns: Any, names: Sequence[str] | None) -> str:
    """Name the first three of some columns, by their names or their positions."""
    chosen = columns[:3].tolist()
    return ", ".join(f"column {j}" if names is None else shorten(names[j]) for j in chosen)


def refuse_huge_columns(
    huge: Any,
    limit: str,
    reason: str = "exact sums need",
    names: Sequence[str] | None = None,
) -> None:
    """Raise MagnitudeError where columns (flags in `huge`) hold values beyond a limit."""
    columns = np.flatnonzero(huge)
    if columns.size:
        raise MagnitudeError(
            f"{columns.size} columns hold values beyond {limit} ({name_columns(columns, names)}); "
            f"{reason} smaller magnitudes; divide such columns by a constant"
        )


def refuse_not_finite(values: Any, names: Sequence[str], gaps: bool = False) -> None:
    """Raise InvalidDataError if values are infinite, or NaN where there may be no gaps."""
    wrong = np.isinf(values) if gaps else ~np.isfinite(values)
    counts = wrong.sum(axis=0)
    if not counts.any():
        return  # only the sum overflowed
    kinds = " and ".join(
        kind
        for kind, there in (
            ("NaN", not gaps and np.isnan(values).any()),
            ("inf", np.isinf(values).any()),
        )
        if there
    )
    named = [names[j] for j in np.flatnonzero(counts).tolist()]
    columns = "column" if len(named) == 1 else "columns"
    raise InvalidDataError(
        f"X contains {kinds}: {int(counts.sum())} values in {columns} {name_some(named)} of a "
        f"block; expected finite numbers{' or gaps' if gaps else ''}; fill or drop them first"
    )
