"""What a target or a cell is depends on the declaration or the live records, for every estimator.

Mixtures of types, of which a deletion takes the odd ones, are handed in through every container.
Either `fit` refuses them, or each deletion keeps the law, and what is left is accepted and is saved
and loaded.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.naive_bayes import BernoulliNB as SklearnBernoulliNB
from sklearn.neighbors import KNeighborsRegressor as SklearnKNeighborsRegressor
from sklearn.pipeline import make_pipeline as make_sklearn_pipeline
from sklearn.preprocessing import OneHotEncoder as SklearnOneHotEncoder
from sklearn.preprocessing import TargetEncoder

import erasable
from effort import THOROUGH
from erasable.audit import equality
from erasable.cluster import KMeans
from erasable.compose import make_column_transformer
from erasable.core import classes, targets, undecided_types
from erasable.core._changing import learn_anew
from erasable.core.errors import ArtifactError, InvalidDataError, InvalidIdsError, InvalidInputError
from erasable.core.records import Records
from erasable.core.values import Accepts
from erasable.ensemble import BaggingClassifier, ShardedClassifier, ShardedRegressor
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.linear_model import LinearRegression, LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import Pipeline, make_pipeline
from erasable.preprocessing import OneHotEncoder, OrdinalEncoder, SimpleImputer, StandardScaler
from erasable.preprocessing._fills import Modes
from erasable.refit import Refit
from erasable.utils._checks.compare import seeded
from law_instances import first_instances

pytestmark = pytest.mark.filterwarnings("ignore")

N, ODD = 16, [4, 11, 14]
"""How many records there are, and which of them have values of another type."""
PORTIONS = ([4], [14, 2, 11])
"""What is deleted: odd ones alone, and with others, until none is left."""
IDS = 100 + 3 * np.arange(N)
FIRST = first_instances()
SUPERVISED = [e for e in FIRST if e.__sklearn_tags__().target_tags.required]
WRAPPING = ("Bagging", "Refit", "Sharded")


def named(estimator: Any) -> str:
    return " ".join(str(estimator).split())


# -- containers ------------------------------------------------------------------------------------


def objects(values: list[Any]) -> Any:
    array = np.array([*values, None], dtype=object)[:-1].copy()
    return array if not isinstance(values[0], list) else np.array(values, dtype=object)


UNDECLARED: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "pandas objects": lambda values: pd.Series(values, dtype=object),
    "polars objects": lambda values: pl.Series(values, dtype=pl.Object),
}


def part(given: Any, rows: Any) -> Any:
    """Return some rows in the same container, whose declared type stays."""
    if isinstance(given, list | tuple):
        return type(given)(given[row] for row in rows)
    return given.iloc[rows] if hasattr(given, "iloc") else given[rows]


# -- the check -------------------------------------------------------------------------------------


def keeps_the_law(estimator: Any, X: Any, y: Any = None, *, records: bool = False) -> bool:
    """Tell whether `fit` takes the data; if so, assert the law, and that what is left is taken."""

    def fit(rows: Any) -> Any:
        own = part(X, rows), None if y is None else part(y, rows)
        model = seeded(estimator)
        if records:
            return model.fit(Records(*own, ids=IDS[rows]))
        return model.fit(*own, ids=IDS[rows])

    rows = np.arange(N)
    try:
        model = fit(rows)
    except InvalidInputError:
        return False
    for portion in PORTIONS:
        model.delete(IDS[portion])
        rows = np.setdiff1d(rows, portion)
        assert_same(model, fit(rows))
    given = part(X, rows), None if y is None else part(y, rows)
    read = given if estimator.__sklearn_tags__().target_tags.required else given[:1]
    for held in (Records(*given, ids=IDS[rows]), (*read, IDS[rows])):
        loaded = erasable.load(BytesIO(saved(model)), held)
        assert_same(loaded, model)
        assert saved(loaded) == saved(model)
    loaded.delete([IDS[rows[0]]])
    assert_same(loaded, fit(rows[1:]))
    learn_anew(loaded, loaded._attached(), None)  # as an interrupted deletion does
    assert_same(loaded, fit(rows[1:]))
    return True


def saved(model: Any) -> bytes:
    file = BytesIO()
    model.save(file)
    return file.getvalue()


def assert_same(model: Any, fresh: Any) -> None:
    assert model.digest() == fresh.digest()
    for name in ("ids_", "classes_", "statistics_"):
        if hasattr(fresh, name):
            assert types_of(getattr(model, name)) == types_of(getattr(fresh, name))


def types_of(found: Any) -> list[Any]:
    return [each.dtype for each in (found if isinstance(found, list) else [found])]


# -- targets ---------------------------------------------------------------------------------------

MIXED_TARGETS: dict[str, tuple[Any, Any, Any]] = {
    "integers and a string": (0, 1, "1"),
    "integers and a boolean": (0, 1, True),
    "booleans and an integer": (False, True, 1),
    "floats and a boolean": (0.0, 1.0, True),
    "strings and a boolean": ("no", "yes", False),
    "strings and NaN": ("no", "yes", np.nan),
    "integers and a large one": (0, 1, 2**63),
    "integers and a larger one": (0, 1, 2**64),
    "strings and a lone surrogate": ("no", "yes", "\ud800"),
}
MIXED_NUMBERS = {
    "integers and a float": (0, 1, 1.0),
    "integers and a NumPy float": (0, 1, np.float32(2.0)),
    "floats and an integer": (0.0, 1.0, 1),
}
OF_ONE_TYPE = {
    "integers": (0, 1, 2),
    "floats": (0.0, 1.0, 2.0),
    "booleans": (False, True, True),
    "NumPy booleans": (False, True, np.True_),
    "integers of NumPy": (0, 1, np.uint64(1)),
    "floats of NumPy": (0.0, 1.0, np.float32(2.0)),
    "strings": ("no", "yes", "never"),
    "strings of NumPy": ("no", "yes", np.str_("yes")),
}
DECLARED: dict[str, Any] = {
    "uint64": np.array([0, 1] * (N // 2), dtype=np.uint64),
    "float64": np.array([0, 1] * (N // 2), dtype=np.float64),
    "float32": np.array([0, 1] * (N // 2), dtype=np.float32),
    "bool": np.array([0, 1] * (N // 2), dtype=bool),
    "int8": np.array([0, 1] * (N // 2), dtype=np.int8),
    "Int64": pd.Series([0, 1] * (N // 2), dtype="Int64"),
    "Float64": pd.Series([0, 1] * (N // 2), dtype="Float64"),
    "boolean": pd.Series([False, True] * (N // 2), dtype="boolean"),
    "polars UInt64": pl.Series([0, 1] * (N // 2), dtype=pl.UInt64),
}


def values_of(one: Any, other: Any, odd: Any) -> list[Any]:
    values = [one, other] * (N // 2)
    for row in ODD:
        values[row] = odd
    return values


def numbers_for(estimator: Any) -> Any:
    """Return an X that an estimator takes."""
    table = np.random.default_rng(3).integers(0, 4, size=(N, 3)).astype(np.float64)
    if Accepts.of(estimator).documents:
        return [" ".join(f"word{int(cell)}" for cell in row) for row in table]
    return table


def takes_mixed_numbers(estimator: Any) -> bool:
    kind = estimator.__sklearn_tags__().estimator_type
    return bool(kind == "regressor") and not type(estimator).__name__.startswith(WRAPPING)


@pytest.mark.parametrize("estimator", SUPERVISED, ids=named)
def test_targets_of_several_types_are_refused(estimator: Any) -> None:
    X = numbers_for(estimator)
    for told, kinds in {**MIXED_TARGETS, **MIXED_NUMBERS}.items():
        fits = told in MIXED_NUMBERS and takes_mixed_numbers(estimator)
        for container, make in UNDECLARED.items():
            if fits and container != "list":
                continue  # see the next test
            y = make(values_of(*kinds))
            assert keeps_the_law(estimator, X, y) == fits, (told, container)


@pytest.mark.parametrize("estimator", SUPERVISED, ids=named)
def test_targets_are_a_function_of_the_live_records(estimator: Any) -> None:
    X, regresses = numbers_for(estimator), estimator.__sklearn_tags__().estimator_type
    accepted = [item for item in OF_ONE_TYPE.items() if item[0].endswith("of NumPy")]
    if takes_mixed_numbers(estimator):
        accepted += MIXED_NUMBERS.items()
    # One container for each: that all of them are read alike is told without a model below.
    for place, (told, kinds) in enumerate(accepted):
        container = list(UNDECLARED)[place % len(UNDECLARED)]
        fits = regresses != "regressor" or not isinstance(kinds[0], str)
        y = UNDECLARED[container](values_of(*kinds))
        assert keeps_the_law(estimator, X, y, records=place % 2 == 1) == fits, (told, container)
    large = np.array(values_of(0, 1, 2**63), dtype=np.uint64)
    assert keeps_the_law(estimator, X, large)
    assert keeps_the_law(estimator, X, large, records=True)


@pytest.mark.parametrize("told", [*OF_ONE_TYPE, *MIXED_NUMBERS])
def test_undeclared_targets_are_read_alike_from_every_container(told: str) -> None:
    values = values_of(*{**OF_ONE_TYPE, **MIXED_NUMBERS}[told])
    read = [targets.read_target(make(values), N) for make in UNDECLARED.values()]
    kind = str if isinstance(values[0], str) else float if told in MIXED_NUMBERS else None
    for each in read:
        assert each.dtype == read[0].dtype
        assert list(map(type, each.tolist())) == [kind or type(values[0])] * N
        assert each.tolist() == values
    mixed = [targets.mixes_numbers(make(values)) for make in UNDECLARED.values()]
    assert set(mixed) == {told in MIXED_NUMBERS}


@pytest.mark.parametrize("told", DECLARED)
def test_a_declared_type_decides_alone(told: str) -> None:
    for estimator in (GaussianNB(), KNeighborsClassifier(2), Ridge()):
        assert keeps_the_law(estimator, numbers_for(estimator), DECLARED[told])


def test_targets_in_columns_have_a_type_each() -> None:
    X = numbers_for(GaussianNB())
    table = [[i % 2, float(i % 3)] for i in range(N)]
    assert keeps_the_law(KNeighborsClassifier(2), X, table)
    assert keeps_the_law(KNeighborsClassifier(2), X, objects(table))
    frame = pd.DataFrame(table, columns=["a", "b"]).astype({"b": bool})
    assert keeps_the_law(KNeighborsClassifier(2), X, frame)
    table[ODD[0]][0] = 1.0
    assert not keeps_the_law(KNeighborsClassifier(2), X, table)
    assert keeps_the_law(LinearRegression(), X, table)
    large = np.array([[i % 2, i % 3] for i in range(N)], dtype=np.uint64)
    large[ODD, 1] = 2**63
    assert keeps_the_law(KNeighborsClassifier(2), X, large)
    assert keeps_the_law(Refit(SklearnKNeighborsRegressor(2)), X, large)


@pytest.mark.parametrize("estimator", [e for e in SUPERVISED if takes_mixed_numbers(e)], ids=named)
def test_regressors_are_the_same_for_integers_and_floats(estimator: Any) -> None:
    X, y = numbers_for(estimator), np.arange(N) % 5
    of_integers, of_floats = (seeded(estimator).fit(X, y.astype(kind)) for kind in (int, float))
    assert of_integers.digest() == of_floats.digest()


def test_regressors_of_others_are_not() -> None:
    X, y = numbers_for(Ridge()), np.arange(N) % 5
    model = Refit(SklearnKNeighborsRegressor(2), random_state=0)
    digests = {model.fit(X, y.astype(kind)).digest() for kind in (int, float)}
    assert len(digests) == 2


def test_classes_that_are_fixed_are_of_the_type_of_the_targets() -> None:
    X = numbers_for(GaussianNB())
    y = np.array(values_of(0, 1, 2**63), dtype=np.uint64)
    for estimator in (GaussianNB(classes=[0, 1, 2**63]), LogisticRegression(classes=[0, 1, 2**63])):
        assert keeps_the_law(estimator, X, y)
    for wrong in ([0, 0.5, 1], [0, 1, "2"], [-1, 0, 1, 2**63], [0, 1, 2**64]):
        with pytest.raises(InvalidInputError, match="classes="):
            GaussianNB(classes=wrong).fit(X, np.arange(N) % 2)
    with pytest.raises(InvalidInputError, match="classes="):
        GaussianNB(classes=[0, 2]).fit(X, np.arange(N) % 2 == 0)


def test_records_of_which_another_model_holds_more_are_read_as_what_is_left() -> None:
    X, rest = numbers_for(GaussianNB()), np.setdiff1d(np.arange(N), ODD)
    large = np.array(values_of(0, 1, 2**63), dtype=np.uint64)
    continuous = np.array(values_of(0.0, 1.0, 0.5))
    sharded = ShardedClassifier(SklearnLogisticRegression(), n_shards=2, random_state=0)
    refit = Refit(SklearnLogisticRegression(), random_state=0)
    for y in (large, continuous):
        records = Records(X, y, ids=IDS)
        holder, other = Ridge().fit(records), Ridge().fit(records)
        other.delete(IDS[ODD])
        for estimator in (GaussianNB(), KNeighborsClassifier(2), sharded, refit):
            model = seeded(estimator).fit(records)
            assert_same(model, seeded(estimator).fit(X[rest], y[rest], ids=IDS[rest]))
        assert holder.digest() == Ridge().fit(X, y, ids=IDS).digest()


def test_members_are_taught_the_type_of_their_own_records() -> None:
    X, large = numbers_for(GaussianNB()), np.array(values_of(0, 1, 2**63), dtype=np.uint64)
    for seed in range(6):
        sliced = ShardedClassifier(SklearnBernoulliNB(), n_shards=2, n_slices=3, random_state=seed)
        assert keeps_the_law(sliced, X, large)
        bagged = BaggingClassifier(SklearnBernoulliNB(), n_estimators=2, random_state=seed)
        assert keeps_the_law(bagged, X, large)
        regressor = ShardedRegressor(SklearnKNeighborsRegressor(1), n_shards=2, random_state=seed)
        assert keeps_the_law(regressor, X, large)


def test_a_pipeline_reads_targets_as_all_of_its_steps_do() -> None:
    X, y = numbers_for(Ridge()), values_of(0, 1, 1.0)
    assert keeps_the_law(make_pipeline(StandardScaler(), Ridge()), X, y)
    assert not keeps_the_law(make_pipeline(StandardScaler(), GaussianNB()), X, y)
    for wrapped in (SklearnKNeighborsRegressor(2), TargetEncoder(cv=2)):
        assert not keeps_the_law(make_pipeline(StandardScaler(), Refit(wrapped)), X, y)
    for before in (_encoded(), make_column_transformer((_encoded(), [0]), (StandardScaler(), [1]))):
        assert not keeps_the_law(make_pipeline(before, Ridge()), X, y)
        assert keeps_the_law(make_pipeline(before, Ridge()), X, np.array(y, dtype=float))


def _encoded() -> Any:
    """Return a step before the last that keeps classes of the type of the targets."""
    return Refit(TargetEncoder(cv=2))


def test_records_of_mixed_numbers_serve_regressors() -> None:
    X, y = numbers_for(Ridge()), values_of(0, 1, 1.0)
    records = Records(X, y, ids=IDS)
    assert Ridge().fit(records).digest() == Ridge().fit(X, np.array(y, float), ids=IDS).digest()
    for refusing in (GaussianNB(), Refit(SklearnKNeighborsRegressor())):
        for given in (records, pickle.loads(pickle.dumps(records)), records.take(np.arange(3))):
            with pytest.raises(
                InvalidDataError, match=r"float, int; .* np.asarray\(y, dtype=float"
            ):
                refusing.fit(given)
    file = BytesIO()
    GaussianNB().fit(X, np.array(y, dtype=int), ids=IDS).save(file)
    with pytest.raises(ArtifactError, match="float, int"):
        erasable.load(BytesIO(file.getvalue()), records)


def test_weights_are_numbers_whatever_they_came_as() -> None:
    X, y = numbers_for(GaussianNB()), np.arange(N) % 2
    weights = values_of(1, 2.5, True)
    rest = np.setdiff1d(np.arange(N), ODD)
    for made in (weights, objects(weights), pd.Series(weights, dtype=object)):
        model = GaussianNB().fit(X, y, sample_weight=made, ids=IDS)
        model.delete(IDS[ODD])
        fresh = GaussianNB().fit(X[rest], y[rest], sample_weight=part(made, rest), ids=IDS[rest])
        assert_same(model, fresh)


# -- ids and groups --------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["x", 2**63, 2**64 - 1, -5, np.uint8(200)])
def test_ids_and_groups_count_by_themselves(odd: Any) -> None:
    X, y = numbers_for(GaussianNB()), np.arange(N) % 2
    ids, groups = list(range(N)), [i // 2 for i in range(N)]
    ids[4], groups[4] = odd, odd
    rest = np.setdiff1d(np.arange(N), [4])
    for estimator in (KNeighborsClassifier(2), KMeans(2), *SUPERVISED[:2]):
        model = seeded(estimator).fit(X, y, ids=ids, groups=groups)
        model.delete([int(odd) if isinstance(odd, np.integer) else odd])
        fresh = seeded(estimator).fit(
            X[rest], y[rest], ids=part(ids, rest), groups=part(groups, rest)
        )
        assert_same(model, fresh)
        model.delete(groups=[0])


# -- cells -----------------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[Any, Any, Any]] = {
    "text": ("a", "b", "c"),
    "text and gaps": ("a", "b", None),
    "gaps and text": (None, None, "a"),
    "numbers": (1, 2, 3),
    "gaps and a number": (None, None, 7),
    "a boolean among numbers": (1, 0, True),
    "a float among integers": (1, 2, 1.0),
    "a boolean among gaps": (None, None, False),
    "text and a number": ("a", "b", 1),
    "numbers and text": (1, 2, "a"),
    "large integers": (2**53, 2**53 + 1, 2.0**53),
    "huge integers": (1, 2, 2**70),
    "a text that is a number": (1.5, 2.5, "1.5"),
    "text of NumPy": ("a", "b", np.str_("b")),
    "a lone surrogate": ("a", "b", "\ud800"),
}
OTHERS = {"numbers": [float(i % 4) for i in range(N)], "text": [f"t{i % 3}" for i in range(N)]}
TABLES: dict[str, Callable[[list[list[Any]]], Any]] = {
    "list": lambda rows: rows,
    "objects": objects,
    "frame": lambda rows: pd.DataFrame(
        {"a": pd.Series([row[0] for row in rows], dtype=object), "b": [row[1] for row in rows]}
    ),
}
TAKING_OBJECTS = [
    OneHotEncoder(),
    OneHotEncoder(categories=[["a", "b"], ["t0", "t1", "t2"]], handle_unknown="ignore"),
    OrdinalEncoder(),
    SimpleImputer(strategy="most_frequent", add_indicator=True),
    SimpleImputer(strategy="constant", keep_empty_features=True),
    SimpleImputer(strategy="most_frequent", missing_values="a"),
    make_column_transformer((SimpleImputer(strategy="constant"), [0]), (OneHotEncoder(), [1])),
    make_column_transformer(
        (OrdinalEncoder(), [0]), (SimpleImputer(strategy="most_frequent"), [1])
    ),
    make_column_transformer((OneHotEncoder(), [0]), (StandardScaler(), [1])),
    make_pipeline(
        SimpleImputer(strategy="constant"), OneHotEncoder(sparse_output=False), KMeans(2)
    ),
    make_pipeline(OneHotEncoder(sparse_output=False), GaussianNB()),
    Refit(make_sklearn_pipeline(SklearnOneHotEncoder(), SklearnBernoulliNB())),
]


def tables(column: str, other: str) -> list[list[Any]]:
    values = values_of(*COLUMNS[column])
    return [[value, beside] for value, beside in zip(values, OTHERS[other], strict=True)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("estimator", TAKING_OBJECTS, ids=named)
def test_cells_are_a_function_of_the_live_records(estimator: Any) -> None:
    y, taken = np.arange(N) % 2, set()
    for place, column in enumerate(COLUMNS):
        for container, make in TABLES.items():
            # Of text or numbers beside it, and records or none, one for each container in turn.
            other, records = list(OTHERS)[place % 2], place // 2 % 2 == (container == "list")
            X = make(tables(column, other))
            try:
                if keeps_the_law(estimator, X, y, records=records):
                    taken.add(column)
            except Exception as error:
                error.add_note(f"{column} beside {other}, in a {container}, {records=}")
                raise
    assert "text" in taken or "numbers" in taken
    assert "a lone surrogate" not in taken


@pytest.mark.parametrize("estimator", FIRST, ids=named)
def test_numbers_in_objects_are_a_function_of_the_live_records(estimator: Any) -> None:
    if Accepts.of(estimator).documents:
        return
    table, y = numbers_for(estimator), np.arange(N) % 2
    mixed = table.astype(object)
    mixed[ODD, 1] = [True, 1, np.float32(1.0)]
    for X in (mixed, mixed.tolist()):
        assert keeps_the_law(estimator, X, y)
    mixed[ODD, 1] = "1"
    keeps_the_law(estimator, mixed, y)


ARRAYS = {
    "numbers": (1, 2, 3),
    "booleans": (True, False, True),
    "floats": (0.5, 1.5, 0.5),
    "numbers and gaps": (1, 1, None),
    "text and gaps": ("a", "b", None),
}


@pytest.mark.thorough
@pytest.mark.parametrize("column", ARRAYS)
def test_a_loaded_model_changes_as_one_that_was_not_saved(column: str) -> None:
    """What a table of objects was declared to be comes back with the model."""
    X, y = objects([[value, value] for value in values_of(*ARRAYS[column])]), np.arange(N) % 2
    first, later = np.arange(N - 2), np.arange(N - 2, N)
    for estimator in TAKING_OBJECTS[: 8 if THOROUGH else 6]:
        try:
            model = seeded(estimator).fit(X[first], y[first], ids=IDS[first])
        except InvalidInputError:
            continue  # a marker that is text, among numbers
        for given in (Records(X[first], y[first], ids=IDS[first]), (X[first], IDS[first])):
            loaded = erasable.load(BytesIO(saved(model)), given)
            assert saved(loaded) == saved(model)
            assert equality(loaded).equal
            loaded.add(X[later], y[later], ids=IDS[later])
            assert_same(loaded, seeded(estimator).fit(X, y, ids=IDS))
            loaded.correct(IDS[:1], X[1:2])
            loaded.delete(IDS[4:])
            fresh = seeded(estimator).fit(X[[1, 1, 2, 3]], y[[1, 1, 2, 3]], ids=IDS[:4])
            assert_same(loaded, fresh)


def test_records_that_became_numbers_are_not_those_of_a_table_of_objects() -> None:
    X = objects([[1, True], [2, False], [2, False]])
    model = SimpleImputer(strategy="most_frequent").fit(X)
    records = Records(X)
    StandardScaler().fit(records)
    with pytest.raises(ArtifactError, match="dense float64 as X; expected objects"):
        erasable.load(BytesIO(saved(model)), records)


def test_control_of_the_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Records, "read_as_objects", lambda self: None)
    for column in ("numbers", "booleans"):
        with pytest.raises(ArtifactError):
            test_a_loaded_model_changes_as_one_that_was_not_saved(column)


def test_how_text_with_gaps_is_declared() -> None:
    imputer = SimpleImputer(strategy="constant")
    rows = tables("gaps and text", "numbers")
    for undeclared in (rows, Records(rows), Records(objects(rows))):
        with pytest.raises(InvalidDataError, match="some rows of X hold text and others none"):
            imputer.fit(undeclared)
    for declared in (objects(rows), pd.DataFrame(rows), Records(pd.DataFrame(rows))):
        imputer.fit(declared)


def test_the_most_frequent_number_is_found_by_category() -> None:
    values = [[2.0**53], [2.0**53], [2**53], [7], [7]]
    model = SimpleImputer(strategy="most_frequent").fit(objects(values), ids=list("abcde"))
    model.delete(["a", "b"])
    fresh = SimpleImputer(strategy="most_frequent").fit(objects(values[2:]), ids=list("cde"))
    assert model.digest() == fresh.digest()


@pytest.mark.parametrize("params", [{"strategy": "most_frequent"}, {"strategy": "constant"}])
@pytest.mark.parametrize("fill", [None, 3, 2.5, np.float32(0.1), True, "x", 2**70, -0.0])
def test_fills_of_mixed_frames_are_loaded(params: dict[str, Any], fill: Any) -> None:
    frame = pd.DataFrame({"text": ["a", "b", "a", None], "number": [1, 2, 2, 3]})
    frame = frame.assign(gaps=[0.5, np.nan, 0.5, 1.0], flag=[True, False, True, True])
    for table in (frame, pl.from_pandas(frame), frame.to_numpy(dtype=object)):
        model = SimpleImputer(**params, fill_value=fill).fit(table, ids=list("abcd"))
        file = BytesIO()
        model.save(file)
        loaded = erasable.load(BytesIO(file.getvalue()), (table, list("abcd")))
        loaded.delete(["c"])
        model.delete(["c"])
        assert loaded.digest() == model.digest()


@pytest.mark.parametrize(
    "encoder",
    [
        OrdinalEncoder(categories=[objects([np.int64(1), np.float32(2.0), None])]),
        OrdinalEncoder(categories=[objects([np.False_, np.True_, 2])]),
        OrdinalEncoder(categories=[[np.int8(1), np.longdouble(2)]]),
        SimpleImputer(strategy="constant", fill_value=np.longdouble(0.5)),
        SimpleImputer(strategy="constant", fill_value=np.True_),
    ],
    ids=named,
)
def test_numbers_of_numpy_in_parameters_have_a_digest(encoder: Any) -> None:
    X = [[1], [2], [1]]
    model = encoder.fit(X)
    model.delete([2])
    assert model.digest() == encoder.fit(X[:2]).digest()
    file = BytesIO()
    model.save(file)
    assert erasable.load(BytesIO(file.getvalue())).digest() == model.digest()


def test_other_objects_in_parameters_are_refused() -> None:
    for wrong in ([(1, 2), 3], [objects([1]), 2], [{1: 2}, 3], [1j, 2]):
        with pytest.raises(InvalidInputError, match="parameter categories is"):
            OrdinalEncoder(categories=[objects(wrong)]).fit([[1], [2]])
    with pytest.raises(InvalidInputError, match="cannot be cast to the input data"):
        SimpleImputer(strategy="constant", fill_value=10**400).fit([[1], [2]])


# -- text that UTF-8 cannot encode -----------------------------------------------------------------

BROKEN = "\ud800"
NUMBERS = np.arange(6.0).reshape(3, 2)
WORDS = objects([["a", "b"], ["c", BROKEN], ["a", "b"]])
LONE_SURROGATES: dict[str, Callable[[], Any]] = {
    "y": lambda: GaussianNB().fit(NUMBERS, ["a", BROKEN, "b"]),
    "y, an array": lambda: GaussianNB().fit(NUMBERS, np.array(["a", BROKEN, "b"])),
    "classes": lambda: GaussianNB(classes=["a", BROKEN]).fit(NUMBERS, ["a", "a", "a"]),
    "ids": lambda: StandardScaler().fit(NUMBERS, ids=["a", BROKEN, "b"]),
    "an index": lambda: StandardScaler().fit(
        pd.DataFrame(NUMBERS, index=pd.Index(["a", BROKEN, "b"], dtype=object))
    ),
    "groups": lambda: StandardScaler().fit(NUMBERS, groups=["a", BROKEN, 7]),
    "names": lambda: StandardScaler().fit(
        pd.DataFrame(NUMBERS, columns=pd.Index(["a", BROKEN], dtype=object))
    ),
    "cells": lambda: OneHotEncoder().fit(WORDS),
    "cells, a list": lambda: OrdinalEncoder().fit(WORDS.tolist()),
    "cells, a frame": lambda: OneHotEncoder().fit(pd.DataFrame(WORDS, dtype=object)),
    "cells, records": lambda: Records(WORDS),
    "documents": lambda: CountVectorizer(analyzer="char").fit(["a", f"b {BROKEN}", "c"]),
    "documents, weighed": lambda: TfidfVectorizer().fit(objects(["ab", f"b {BROKEN}", "cd"])),
    "documents, records": lambda: Records(["a", f"b {BROKEN}", "c"]),
    "a fill": lambda: SimpleImputer(strategy="constant", fill_value=BROKEN).fit(WORDS[:1]),
    "a marker": lambda: SimpleImputer(strategy="constant", missing_values=BROKEN).fit(WORDS[:1]),
    "categories": lambda: OneHotEncoder(categories=[["a", BROKEN], ["b"]]).fit(WORDS[:1]),
    "an array of categories": lambda: OneHotEncoder(
        categories=[objects(["a", BROKEN]), ["b"]], handle_unknown="ignore"
    ).fit(WORDS[:1]),
    "a vocabulary": lambda: CountVectorizer(vocabulary={BROKEN: 0, "b": 1}).fit(["a", "b"]),
    "weights of classes": lambda: LogisticRegression(class_weight={BROKEN: 2.0, "a": 1.0}).fit(
        NUMBERS, ["a", "b", "a"]
    ),
    "the name of a step": lambda: erasable.pipeline.Pipeline([(BROKEN, StandardScaler())]).fit(
        NUMBERS
    ),
}


@pytest.mark.parametrize("where", LONE_SURROGATES)
def test_lone_surrogates_are_refused_by_fit(where: str) -> None:
    error = InvalidIdsError if where in ("ids", "an index", "groups") else InvalidInputError
    with pytest.raises(error, match="1 text with lone surrogates") as caught:
        LONE_SURROGATES[where]()
    str(caught.value).encode()


def test_other_characters_are_not_refused() -> None:
    for text in ("", "\U0001f600", "\ufffe", "\0", "K\xf6ln"):
        model = GaussianNB().fit(NUMBERS, [text, "a", "a"], ids=[text, "b", "c"])
        assert model.delete([text]).digest_after == model.digest()


# -- negative controls -----------------------------------------------------------------------------


def test_control_of_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = numbers_for(GaussianNB()), objects(values_of(0, 1, 1.0))
    assert not keeps_the_law(GaussianNB(), X, y)
    monkeypatch.setattr(targets, "_typed", lambda undeclared: np.array(undeclared.tolist()))
    monkeypatch.setattr(undecided_types, "mixes_numbers", lambda y: False)
    for kinds in ((0, 1, 1.0), (False, True, 1), (0, 1, "1")):
        with pytest.raises(AssertionError):
            keeps_the_law(GaussianNB(), X, objects(values_of(*kinds)))


@pytest.mark.parametrize("odd", [1.0, 2.0, 2**63])
def test_control_of_regressors(monkeypatch: pytest.MonkeyPatch, odd: Any) -> None:
    monkeypatch.setattr(Refit, "_reads_numbers", True)
    monkeypatch.setattr(targets, "_typed", lambda undeclared: np.array(undeclared.tolist()))
    refit = Refit(SklearnKNeighborsRegressor(2))
    with pytest.raises(AssertionError):
        keeps_the_law(refit, numbers_for(refit), objects(values_of(0, 1, odd)))


def test_control_of_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pipeline, "_reads_numbers", True)
    with pytest.raises(AssertionError):
        keeps_the_law(
            make_pipeline(_encoded(), Ridge()), numbers_for(Ridge()), values_of(0, 1, 1.0)
        )


def test_control_of_large_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "narrowed", lambda values: values)
    y = np.array(values_of(0, 1, 2**63), dtype=np.uint64)
    with pytest.raises(AssertionError):
        keeps_the_law(GaussianNB(), numbers_for(GaussianNB()), y)


def test_control_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, imputer = tables("gaps and text", "numbers"), SimpleImputer(strategy="constant")
    assert not keeps_the_law(imputer, rows)
    monkeypatch.setattr(undecided_types, "_has_rows_without_text", lambda *given: False)
    for records in (False, True):
        with pytest.raises(AssertionError):
            keeps_the_law(imputer, rows, records=records)


def test_control_of_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    find = Modes._find

    def of_numpy(self: Any, j: int) -> None:
        find(self, j)
        self._modes[j] = np.float64(self._modes[j])

    monkeypatch.setattr(Modes, "_find", of_numpy)
    X = objects(tables("numbers", "numbers"))
    with pytest.raises(erasable.core.errors.ArtifactError):
        keeps_the_law(SimpleImputer(strategy="most_frequent"), X)


def test_control_of_surrogates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "refuse_surrogates", lambda *given: None)
    with pytest.raises(UnicodeEncodeError):
        GaussianNB().fit(NUMBERS, ["a", BROKEN, "b"]).digest()
