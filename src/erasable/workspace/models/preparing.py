"""Preparation of tables of numbers, text, days and times for models that learn from numbers.

The law kept here: the treatment of a column is decided at a fit, from its type and its values, and
is part of the recipe from then on; a deletion decides nothing. Later records never break it:
missing values are filled and unknown categories ignored, whether there were any or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from erasable.core.errors import InvalidParameterError, WorkspaceError
from erasable.core.ids import name_some
from erasable.core.params import class_path
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.features import (
    NUMBERS,
    TEXT,
    count_gaps,
    default_columns,
    is_time,
)
from erasable.workspace.identity.value_formats import Looks
from erasable.workspace.models import recipes
from erasable.workspace.models.model_columns import ModelColumns, identifying, stacked
from erasable.workspace.models.parameters import is_refit
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.recipes import Recipe
from erasable.workspace.models.written import Node, write_estimator

CHOICES = ("auto", "none")
"""Choices of a fit: "auto" prepares a table that a model cannot learn from as it is."""
OF = "prepares"
"""The entry of a recipe that says which recipe was asked for."""

_WORDS = 4
"""Text of so many words on average is read word by word."""
_FEW, _MOST = 10, 255
"""So many categories are never too many; more get no columns of their own in a dense table."""
_SHOWN = 6
"""Columns that are named for people."""
_NAMES = {
    "names": "text, another in most records",
    "addresses": "text that looks like addresses or telephone numbers",
}
"""Text that may name people, and tells nothing of others: no feature, unless it is named."""


def _node(path: str, **params: Any) -> Node:
    return {"estimator": f"erasable.{path}", "params": params}


# The mean would be scaled to nearly 0, which sums on a grid take for a loss of precision.
_FILL = _node("preprocessing.SimpleImputer", strategy="median", keep_empty_features=True)
_SCALE = _node("preprocessing.StandardScaler")
_BOUND = _node("preprocessing.MinMaxScaler", clip=True)
_ONE_HOT = _node("preprocessing.OneHotEncoder", handle_unknown="ignore")
_CODES = _node(
    "preprocessing.OrdinalEncoder", handle_unknown="use_encoded_value", unknown_value=-1,
    encoded_missing_value=-2,
)  # fmt: skip
_FILL_TEXT = _node(
    "preprocessing.SimpleImputer", missing_values=None, strategy="constant",
    keep_empty_features=True,
)  # fmt: skip
_WEIGH = _node("feature_extraction.TfidfVectorizer")

_STEPS: dict[str, dict[str, tuple[list[Node], str]]] = {
    "distances": {
        "numbers": ([_FILL, _SCALE], "filled and scaled"),
        "categories": ([_ONE_HOT], "one-hot"),
    },
    "counts": {
        "numbers": ([_FILL, _BOUND], "filled and brought to 0 to 1"),
        "categories": ([_ONE_HOT], "one-hot"),
    },
    "distributions": {
        "numbers": ([_FILL], "filled"),
        "categories": ([_ONE_HOT], "one-hot"),
    },
    "splits": {
        "numbers": ([_FILL], "filled"),
        "categories": ([_CODES], "numbered"),
    },
    "splits with gaps": {
        "numbers": ([], "as they are"),
        "categories": ([_CODES], "numbered"),
    },
}
"""Steps for each kind of column, by kind of model, with words; "texts" are `_WEIGH`ed."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """The decisions of a fit about the columns of a table."""

    recipe: Recipe | None  # of the pipeline; None if the model learns from the columns as they are
    features: tuple[str, ...]
    told: str = ""  # the treatment of the columns, in one line
    left_out: dict[str, str] = field(default_factory=dict)  # why columns are no features


def check_choice(prepare: str) -> None:
    """Refuse a choice that is not one of `CHOICES`."""
    if prepare not in CHOICES:
        raise InvalidParameterError(
            f"prepare is {str(prepare)[:40]!r}; expected {' or '.join(CHOICES)}"
        )


def prepare(
    reader: Reader,
    datasets: Sequence[DataSet],
    recipe: Recipe,
    features: Sequence[str] | None,
    target: str | None,
) -> Preparation | None:
    """Decide how a table is prepared for a model, and write that into its recipe.

    `recipe` is that of the model alone. The features are by default all columns except ids,
    subjects, the target, an index, and text that differs in most records. Return None if nothing is
    decided here: a pipeline prepares its table itself, as do estimators of documents or arrays; or
    all columns are numbers, and too many for memory.
    """
    model = recipes.make(recipe)
    kind = kind_of_model(model)
    if kind is None:
        return None
    types = dict(datasets[0].columns)
    readable = {name for name in types if _is_readable(name, datasets)}
    taken = identifying(datasets) | {target}
    chosen = list(features or default_columns(types, taken, list(types.values())))
    if features is None:
        chosen = [name for name in chosen if name in readable]
    numbers = [name for name in chosen if types.get(name) in NUMBERS]
    if not chosen or not readable.issuperset(chosen) or _are_stored(
        reader, datasets, model, numbers, target
    ):  # fmt: skip
        return None  # what is wrong with columns is said where they are chosen
    design = ModelColumns.choose(datasets, model, chosen, target)
    table = stacked(reader.tables([each.id for each in datasets], design=design), chosen)
    columns, left_out = _sorted(table, types, model, kind, named=bool(features))
    used = [name for name in chosen if name not in left_out]
    if not used:
        return None
    takes_gaps = get_tags(model).input_tags.allow_nan
    gaps = not takes_gaps and bool(count_gaps(table, columns["numbers"]))
    times = [name for name in used if is_time(types[name])]
    if used == columns["numbers"] and not (gaps or (times and _STEPS[kind]["numbers"][0])):
        told = _some([_told(name, types) for name in times])
        return Preparation(None, tuple(used), told, left_out)
    made, told = _in_front(model, columns, types, kind)
    whole = {"kind": "estimator", **made, OF: recipe}
    recipes.make(whole)
    return Preparation(whole, tuple(used), told, left_out)


def kind_of_model(estimator: BaseEstimator) -> str | None:
    """Return the kind of preparation that a model needs; None if it prepares its table itself.

    >>> from erasable.linear_model import Ridge
    >>> from erasable.pipeline import make_pipeline
    >>> from erasable.tree import DecisionTreeClassifier
    >>> kind_of_model(Ridge()), kind_of_model(DecisionTreeClassifier())
    ('distances', 'splits with gaps')
    >>> kind_of_model(make_pipeline(Ridge()))
    """
    inner: Any = estimator
    while isinstance(getattr(inner, "estimator", None), BaseEstimator):
        inner = inner.estimator
    path = class_path(type(inner))
    package, name = path.split(".")[1], type(inner).__name__
    tags = get_tags(estimator).input_tags
    learns = any(hasattr(inner, name) for name in ("predict", "fit_predict", "score_samples"))
    if (
        not (learns or package == "decomposition")
        or hasattr(inner, "steps")
        or not tags.two_d_array
    ):
        return None
    if name == "CategoricalNB" or package in ("feature_selection", "neural"):
        return None
    if path.startswith("erasable.") and getattr(inner, "categorical_features", None) is not None:
        return None
    if get_tags(inner).input_tags.positive_only:
        return "counts"
    if package in ("tree", "ensemble") and not hasattr(inner, "estimators"):
        # scikit-learn's boosting cannot learn from a column without any value.
        learns_gaps = tags.allow_nan and not tags.sparse and path.startswith("erasable.")
        return "splits with gaps" if learns_gaps else "splits"
    return "distributions" if name == "GaussianNB" else "distances"


def _is_readable(name: str, datasets: Sequence[DataSet]) -> bool:
    """Tell whether a column holds what can be prepared, and the same in all data sets."""
    found = {dict(each.columns).get(name, "") for each in datasets}
    kinds = (NUMBERS, (TEXT,), [kind for kind in found if is_time(kind)])
    return any(found <= set(kind) for kind in kinds)


def _are_stored(
    reader: Reader,
    datasets: Sequence[DataSet],
    model: BaseEstimator,
    numbers: Sequence[str],
    target: str | None,
) -> bool:
    """Tell whether the numbers of a table alone are more than memory is to hold."""
    if not numbers:
        return False
    design = ModelColumns.choose(datasets, model, numbers, target)
    tables = reader.to_learn_from([each.id for each in datasets], design=design)
    return not set(numbers) <= set(tables[0][1].column_names)


def _sorted(
    table: pa.Table, types: Mapping[str, str], model: BaseEstimator, kind: str, *, named: bool
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Sort columns by what is done with them, and say which are left out, and why."""
    sparse = _takes_sparse(model)
    looks = Looks([name for name in table.column_names if types[name] == TEXT])
    looks.add(table)
    columns: dict[str, list[str]] = {"numbers": [], "categories": [], "texts": []}
    left_out: dict[str, str] = {}
    for name in table.column_names:
        group, n = ("numbers", 0) if types[name] != TEXT else _kind_of_text(name, table, looks)
        if named and group in _NAMES:
            group = "categories"
        why = ""
        if group in _NAMES:
            why = _NAMES[group]
        elif group == "texts" and not sparse:
            why = f"long texts, and {_called(model)} takes no sparse counts of words"
        elif group == "categories" and n > _MOST and not (sparse or kind.startswith("splits")):
            why = f"{n:,} categories, and {_called(model)} takes no sparse columns"
        if not why:
            columns[group].append(name)
        elif named:
            raise WorkspaceError(
                f"the column {name_some([name])} holds {why}; expected what the model can "
                "learn from; leave it out, or choose a linear model"
            )
        else:
            left_out[name] = why
    return columns, left_out


def _kind_of_text(name: str, table: pa.Table, looks: Looks) -> tuple[str, int]:
    """Tell whether text is categories, texts to be read, or `_NAMES`; and of how many values."""
    column = table[name]
    n = pc.count_distinct(column, mode="only_valid").as_py()
    valid = len(column) - column.null_count
    if 2 * looks.n_addresses[name] > valid or name in looks.telephones:
        return "addresses", n
    words = pc.mean(pc.count_substring_regex(column, r"\S+")).as_py() or 0.0
    repeats = n < valid and n <= max(valid // 2, _FEW)
    if words >= _WORDS and (n > _FEW or not repeats):
        return "texts", n
    return ("categories" if repeats else "names"), n


def _in_front(
    model: BaseEstimator, columns: Mapping[str, list[str]], types: Mapping[str, str], kind: str
) -> tuple[Node, str]:
    """Put what prepares columns before a model; into each shard, where it learns in shards."""
    parts, told = [], []
    sparse = _takes_sparse(model)
    for group, (steps, words) in _STEPS[kind].items():
        if columns[group]:
            made = [each if sparse else _dense(each) for each in steps]
            parts.append([group, _row(made) if made else "passthrough", columns[group]])
            told.append(f"{_some([_told(name, types) for name in columns[group]])} {words}")
    for at, name in enumerate(columns["texts"], start=1):
        number = f"-{at}" if columns["texts"][1:] else ""
        parts.append([f"texts{number}", _row([_FILL_TEXT, _WEIGH]), [name]])
        told.append(f"{name} by the words in it")
    before = _node("compose.ColumnTransformer", transformers=parts)
    inside = class_path(type(model)).startswith("erasable.ensemble.Sharded")
    if not (inside and model.n_slices == 1):  # slices are learned by `partial_fit`
        steps_in_a_row = [["prepare", before], [_called(model).lower(), write_estimator(model)]]
        return _node("pipeline.Pipeline", steps=steps_in_a_row), "; ".join(told)
    learner = recipes.forgetting(model.estimator)
    steps_in_a_row = [["prepare", before], [_called(learner).lower(), write_estimator(learner)]]
    around = write_estimator(model)
    around["params"]["estimator"] = _node("pipeline.Pipeline", steps=steps_in_a_row)
    return around, "; ".join(told)


def _takes_sparse(model: BaseEstimator) -> bool:
    """Tell whether it learns from sparse tables, and the same from the same each time."""
    inner: Any = model
    while is_refit(inner):
        inner = inner.estimator
    # In sparse tables scikit-learn's looks for components from vectors that no seed sets.
    return bool(get_tags(model).input_tags.sparse) and type(inner).__name__ != "PCA"


def _dense(node: Node) -> Node:
    return {**_ONE_HOT, "params": {"sparse_output": False, **node["params"]}} if (
        node is _ONE_HOT
    ) else node  # fmt: skip


def _row(steps: Sequence[Node]) -> Node:
    if len(steps) == 1:
        return steps[0]
    named = [[step["estimator"].rpartition(".")[2].lower(), step] for step in steps]
    return _node("pipeline.Pipeline", steps=named)


def _called(model: Any) -> str:
    while is_refit(model):
        model = model.estimator
    return type(model).__name__


def _some(names: Sequence[str]) -> str:
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: _SHOWN - 1])} and {len(names) - _SHOWN + 1} others"


def _told(name: str, types: Mapping[str, str]) -> str:
    if not is_time(types[name]):
        return name
    return f"{name} in {'hours' if types[name].startswith('time6') else 'days'}"
