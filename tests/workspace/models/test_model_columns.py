from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from erasable.cluster import KMeans
from erasable.core.errors import InvalidDataError, TooFewRecordsError, WorkspaceError
from erasable.core.targets import read_target
from erasable.feature_extraction import CountVectorizer
from erasable.linear_model import Ridge
from erasable.pipeline import make_pipeline
from erasable.preprocessing import SimpleImputer
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.models.model_columns import (
    ModelColumns,
    ids_and_groups,
    ids_of,
    joined_table,
    target_of,
    without_records,
)

TYPES = {
    "visit": "string", "who": "string", "age": "int64", "dose": "double", "on": "bool",
    "note": "string", "day": "date32[day]", "cost": "double",
}  # fmt: skip


def described(name="visits", number=1, columns=None, subjects=(("who", "id"),)):
    columns = TYPES if columns is None else columns
    return DataSet(number, name, {}, "visit", subjects, tuple(columns.items()), 1, 1, None)


def records_of(design, tables, estimator):
    design.check(tables, estimator)
    made = ids_and_groups(tables)
    labels = target_of(tables, design.target)
    target = None if labels is None else read_target(labels, made.n_rows)
    return made.twin(design.values(tables), target)


def table(ids=("a", "b", "c"), **columns):
    n = len(ids)
    values = {
        "visit": list(ids), "who": ["p", None, "p"][:n], "age": [30, 40, 50][:n],
        "dose": [0.5, 1.5, 2.5][:n], "on": [True, False, True][:n], "note": ["x", "y z", "x"][:n],
        "cost": [1.0, 2.0, 3.0][:n],
    }  # fmt: skip
    return pa.table({**values, **columns})


def test_features_are_all_numbers_but_ids_subjects_and_target():
    chosen = ModelColumns.choose([described()], Ridge(), None, "cost")
    assert chosen == ModelColumns(("age", "dose", "on"), "cost", False, True, True)
    numbers = {**TYPES, "visit": "int64", "who": "int64"}
    assert ModelColumns.choose([described(columns=numbers)], KMeans(), None, None).features == (
        "age", "dose", "on", "cost",
    )  # fmt: skip


def test_the_one_column_of_text_is_the_documents():
    chosen = ModelColumns.choose([described()], CountVectorizer(), None, "cost")
    assert chosen == ModelColumns(("note",), "cost", True, True, True)
    two = described(columns={**TYPES, "letter": "string"})
    with pytest.raises(WorkspaceError, match="2 columns are text"):
        ModelColumns.choose([two], CountVectorizer(), None, None)
    assert ModelColumns.choose([two], CountVectorizer(), ["letter"], None).features == ("letter",)


@pytest.mark.parametrize(
    ("features", "target", "told"),
    [
        (["aeg"], None, "no column 'aeg'"),
        (["age"], "costs", "no column 'costs'"),
        (["visit"], None, "name records or people"),
        (["who", "age"], None, "name records or people"),
        (["age"], "who", "name records or people"),
        (["age", "age"], None, "named twice"),
        (["age"], "age", "named twice"),
        (["age"], "day", "date32"),
    ],
)
def test_columns_that_are_not_to_be_learned_from_are_refused(features, target, told):
    with pytest.raises(WorkspaceError, match=told):
        ModelColumns.choose([described()], KMeans(), features, target)


def test_days_are_numbers_to_a_model():
    design = ModelColumns.choose([described()], KMeans(), ["age", "day"], None)
    table = pa.table({"age": [41, 42], "day": [date(1970, 1, 3), None]})
    given = design.given(table)
    assert given["age"].equals(table["age"])
    np.testing.assert_array_equal(given["day"].to_numpy(), [2.0, np.nan])


def test_an_estimator_that_needs_a_target_asks_for_it():
    with pytest.raises(WorkspaceError, match="pass --target"):
        ModelColumns.choose([described()], Ridge(), None, None)


def test_records_have_ids_groups_values_and_targets():
    records = records_of(
        ModelColumns(("age", "on"), "cost", False), [(described(), table())], Ridge()
    )
    assert records.ids.tolist() == ["a", "b", "c"]
    assert records.groups.tolist() == ["p", "record b", "p"]
    assert records.matrix.tolist() == [[30.0, 1.0], [40.0, 0.0], [50.0, 1.0]]
    assert records.y.tolist() == [1.0, 2.0, 3.0]
    assert records.feature_names == ["age", "on"]


def test_classes_are_text_or_numbers_and_documents_are_text():
    design = ModelColumns(("note",), "note2", True)
    columns = {**TYPES, "note2": "string"}
    made = table(note2=["yes", "no", "yes"])
    records = records_of(design, [(described(columns=columns), made)], CountVectorizer())
    assert records.matrix[:, 0].tolist() == ["x", "y z", "x"]
    assert records.y.tolist() == ["yes", "no", "yes"]


def test_integer_ids_stay_integers_and_no_subject_means_no_groups():
    known = described(columns={**TYPES, "visit": "int64"}, subjects=())
    made = table().set_column(0, "visit", pa.array([7, 8, 9]))
    records = records_of(ModelColumns(("age",), None, False), [(known, made)], KMeans())
    assert records.ids.dtype == np.int64
    assert records.groups is None


def test_gaps_are_counted_and_named():
    made = table(age=[None, 40, 50], dose=[None, float("nan"), 1.0], cost=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidDataError, match="2 of 3 records have gaps, in 'age', 'dose'"):
        records_of(ModelColumns(("age", "dose"), "cost", False), [(described(), made)], Ridge())
    filled = make_pipeline(SimpleImputer(), Ridge())
    records = records_of(
        ModelColumns(("age", "dose"), "cost", False), [(described(), made)], filled
    )
    assert np.isnan(records.matrix).sum() == 3
    with pytest.raises(InvalidDataError, match="1 of 3 records have gaps, in 'cost'"):
        records_of(
            ModelColumns(("age",), "cost", False),
            [(described(), table(cost=[None, 2.0, 3.0]))],
            filled,
        )


def test_no_records_are_too_few():
    with pytest.raises(TooFewRecordsError):
        records_of(
            ModelColumns(("age",), None, False), [(described(), table().slice(0, 0))], KMeans()
        )


def test_several_data_sets_share_columns_and_keep_ids_apart():
    both = [(described("a", 1), table()), (described("b", 2), table(ids=("a",)))]
    records = records_of(ModelColumns(("age", "dose"), None, False), both, KMeans())
    assert records.ids.tolist() == ["a/a", "a/b", "a/c", "b/a"]
    assert records.groups.tolist() == ["p", "record a/b", "p", "p"]
    assert ids_of([each for each, _ in both], {2: ["a"], 1: ["c"]}) == ["a/c", "b/a"]
    other = described("c", 3, {**TYPES, "extra": "double"})
    with pytest.raises(WorkspaceError, match="differ in the columns 'extra'"):
        ModelColumns.choose([described(), other], KMeans(), None, None)


def test_without_takes_out_what_is_named_and_nothing_else():
    both = [(described("a", 1), table()), (described("b", 2), table())]
    left = without_records(both, {1: ["b"], 2: ["a", "c"]})
    assert [part["visit"].to_pylist() for _, part in left] == [["a", "c"], ["b"]]


def test_one_table_for_programs_does_not_depend_on_the_order_of_rows():
    turned = table().take(pa.array([2, 0, 1]))
    assert joined_table([(described(), turned)]).equals(
        joined_table([(described(), table())]).combine_chunks()
    )
    both = [(described("b", 1), turned), (described("a", 2), table())]
    assert joined_table(both)["visit"].to_pylist() == ["a/a", "a/b", "a/c", "b/a", "b/b", "b/c"]
