"""Bad input to naive Bayes: one line that says what was given, what was expected, what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from erasable import Records
from erasable.core.errors import (
    ErasableError,
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
    MagnitudeError,
    TooFewRecordsError,
)
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from naive_bayes.data import ALL, as_sparse

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
Y = [0, 1, 1]
INF, NAN = float("inf"), float("nan")

PARAMETERS = [
    (GaussianNB(priors=[0.5, 0.6]), InvalidParameterError, "do not add up to 1"),
    (GaussianNB(priors=[-0.5, 1.5]), InvalidParameterError, "Priors must be non-negative"),
    (GaussianNB(priors=[[0.5, 0.5]]), InvalidParameterError, "no list of probabilities"),
    (GaussianNB(priors=["a", "b"]), InvalidParameterError, "no list of probabilities"),
    (GaussianNB(priors=[NAN, 1.0]), InvalidParameterError, "no list of probabilities"),
    (GaussianNB(priors=[1.0]), InvalidInputError, "1 probabilities, and there are 2 classes"),
    (GaussianNB(priors=[0.2] * 5), TooFewRecordsError, "5 probabilities, and there are 2"),
    (GaussianNB(priors=[0.2] * 5, classes=[0, 1]), InvalidInputError, "must match number of cl"),
    (GaussianNB(priors="half"), InvalidParameterError, "'priors' parameter of GaussianNB must"),
    (GaussianNB(var_smoothing=-1.0), InvalidParameterError, "'var_smoothing' parameter"),
    (GaussianNB(var_smoothing=INF), InvalidParameterError, "'var_smoothing' parameter"),
    (GaussianNB(classes=[0]), InvalidDataError, "2 records have labels that are not among"),
    (GaussianNB(classes=[0, 1, 1]), InvalidInputError, "more than once"),
    (MultinomialNB(classes=["0", "1"]), InvalidInputError, "expected a list of numbers"),
    (MultinomialNB(class_prior=[0, 0]), InvalidParameterError, "not all of them 0"),
    (MultinomialNB(class_prior=[1, INF]), InvalidParameterError, "no list of probabilities"),
    (MultinomialNB(alpha=-1.0), InvalidParameterError, "'alpha' parameter of MultinomialNB must"),
    (MultinomialNB(alpha=INF), InvalidParameterError, "'alpha' parameter of MultinomialNB must"),
    (MultinomialNB(alpha=[1.0, -1.0]), InvalidParameterError, "alpha is a list that is no number"),
    (MultinomialNB(alpha=["a", "b"]), InvalidParameterError, "alpha is a list that is no number"),
    (MultinomialNB(alpha=[1.0] * 3), InvalidInputError, "3 numbers, and X has 2 features"),
    (BernoulliNB(alpha=[[1.0, 1.0]]), InvalidParameterError, "alpha is a list that is no number"),
    (BernoulliNB(binarize=-0.5), InvalidParameterError, "'binarize' parameter of BernoulliNB must"),
    (BernoulliNB(fit_prior="no"), InvalidParameterError, "'fit_prior' parameter"),
    (CategoricalNB(alpha=[1.0, 1.0]), InvalidParameterError, "'alpha' parameter of Categorical"),
    (CategoricalNB(min_categories=0), InvalidParameterError, "'min_categories' parameter"),
    (CategoricalNB(min_categories=[2.0, 3.0]), InvalidParameterError, "have integral type"),
    (CategoricalNB(min_categories=[0, 3]), InvalidParameterError, "whole numbers of 1 or more"),
    (CategoricalNB(min_categories=[3]), InvalidInputError, r"shape \(1,\), and X has 2 features"),
    (CategoricalNB(min_categories=[[3], [1, 2]]), InvalidParameterError, "whole numbers of 1"),
    (CategoricalNB(min_categories=2**60), MagnitudeError, "make more than 134217728 counts"),
]


@pytest.mark.parametrize(("model", "error", "told"), PARAMETERS, ids=lambda x: str(x)[:60])
def test_parameters(model: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told) as raised:
        model.fit(X, Y)
    assert isinstance(raised.value, ErasableError)
    assert "\n" not in str(raised.value)
    assert not hasattr(model, "classes_")


NEGATIVE = r"Negative values in data passed to {}: 1 of them"
DATA = [
    (MultinomialNB(), [[1.0, -2.0]], NEGATIVE.format("MultinomialNB")),
    (MultinomialNB(), as_sparse(np.array([[1.0, -2.0]])), NEGATIVE.format("MultinomialNB")),
    (CategoricalNB(), [[1.0, -2.0]], NEGATIVE.format("CategoricalNB")),
    (CategoricalNB(), [[1.0, 0.5]], "1 values that are no whole numbers"),
    (CategoricalNB(), [["a", "b"]], "X holds text"),
    (CategoricalNB(), [[1.0, NAN]], "X contains NaN"),
    (CategoricalNB(), as_sparse(X[:1]), "Sparse data was passed"),
    (BernoulliNB(binarize=None), [[1.0, 0.5]], "1 values other than 0 and 1"),
    (BernoulliNB(binarize=None), as_sparse(np.array([[2.0, 0.0]])), "1 values other than 0"),
    (GaussianNB(), as_sparse(X[:1]), "Sparse data was passed"),
    (GaussianNB(), [[1.0, INF]], "X contains inf"),
]


@pytest.mark.parametrize(("model", "rows", "told"), DATA, ids=lambda x: str(x)[:40])
def test_values(model: Any, rows: Any, told: str) -> None:
    """The same values are refused as records, by `fit` and by `predict`, which change nothing."""
    with pytest.raises(InvalidDataError, match=told) as raised:
        clone(model).fit(rows, [0])
    assert "\n" not in str(raised.value)
    ours = clone(model).fit(X, Y)
    digest = ours.digest()
    with pytest.raises(InvalidDataError, match=told):
        ours.predict(rows)
    with pytest.raises(InvalidDataError):
        ours.fit(rows, [0])
    assert ours.digest() == digest


def test_values_of_records_that_are_deleted_do_not_matter() -> None:
    rows, ids = np.vstack([X, [[-1.5, 0.5]]]), [5, 6, 7, 8]
    for form in (np.array, as_sparse):
        records = Records(form(rows), [*Y, 0], ids=ids)
        keeper = GaussianNB() if form is np.array else BernoulliNB()
        keeper.fit(records)
        BernoulliNB().fit(records).delete([8])
        for model in (MultinomialNB(), BernoulliNB(binarize=None), CategoricalNB()):
            if form is np.array or not isinstance(model, CategoricalNB):
                same = clone(model).fit(form(X), Y, ids=ids[:3])
                assert clone(model).fit(records).digest() == same.digest()


@pytest.mark.parametrize("model", [GaussianNB(), MultinomialNB()], ids=repr)
def test_values_that_are_too_large(model: Any) -> None:
    rows = [[1e200, 0.0], [1.0, 1.0]]
    with pytest.raises(MagnitudeError, match=r"beyond 2\*\*480 \(column 0\)"):
        clone(model).fit(rows, [0, 1])
    if isinstance(model, MultinomialNB):
        with pytest.raises(MagnitudeError, match=r"beyond 2\*\*480 \(column 0\)"):
            clone(model).fit(as_sparse(np.array(rows)), [0, 1])


def test_numbers_that_are_no_categories() -> None:
    frame = pd.DataFrame({"colour": [0, 1, 2], "zip": [10**9, 2, 3]})
    with pytest.raises(MagnitudeError, match=r"most in 'zip', 'colour'.* OrdinalEncoder"):
        CategoricalNB().fit(frame, Y)


def test_columns_of_text() -> None:
    frame = pd.DataFrame({"colour": ["red", "blue", "red"], "size": [0, 1, 0]})
    for given in (frame, frame.astype({"colour": "category"})):
        with pytest.raises(InvalidDataError, match=r"hold no numbers: .colour.; expected numbers"):
            CategoricalNB().fit(given, Y)


def test_an_unknown_category_is_told_by_the_name_of_its_column() -> None:
    frame = pd.DataFrame({"colour": [0, 1, 2], "size": [0, 1, 0]})
    model = CategoricalNB().fit(frame, Y)
    told = (
        r"1 columns \('size'\) hold categories that no record .* expected 0 to 1 there; .*min_cat"
    )
    with pytest.raises(InvalidDataError, match=told):
        model.predict_proba(pd.DataFrame({"colour": [1], "size": [7]}))


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_targets(model: Any) -> None:
    for y, told in (
        (None, "requires y to be passed"),
        ([0.5, 1.7, 2.2], "Unknown label type"),
        ([0, 1], "inconsistent numbers of samples"),
        ([[0, 1], [1, 0], [1, 1]], "y should be a 1d array"),
        ([0, 1, NAN], "Input y contains NaN"),
    ):
        with pytest.raises(InvalidDataError, match=told):
            clone(model).fit(X, y)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_weights_that_are_none_are_refused(model: Any) -> None:
    with pytest.raises(InvalidDataError, match="sample_weight has shape"):
        clone(model).fit(X, Y, [1, 1])
    with pytest.raises(InvalidDataError, match="negative for 1 records"):
        clone(model).fit(X, Y, [1, -1, 1])
    with pytest.raises(MagnitudeError, match=r"sample_weight is beyond 2\*\*480 for 2 records"):
        clone(model).fit(X, Y, [1, 2.0**481, 1e300])
    with pytest.raises(TooFewRecordsError, match="weights of all 3 records would be zero"):
        clone(model).fit(X, Y, 0.0)
    with pytest.raises(TooFewRecordsError, match="weights of all 3 records would be zero"):
        clone(model).fit(X, Y, [0.0, 1e-200, 0.0])
