from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from erasable import audit
from erasable.core.errors import DetachedError, InvalidInputError
from integer_sums import IntegerSums, PlainSums, SortedValues

X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])


def test_a_model_equals_its_refit():
    model = IntegerSums(least=2).fit(X, ids=[*"abcd"], groups=[1, 1, 2, 2])
    model.delete(["b"])
    result = audit.equality(model)
    assert result
    assert result.equal
    assert result.differences == ()
    assert str(result).startswith(f"equal: {result.n_components} components, digest ")


def test_a_refit_is_a_new_model():
    model = IntegerSums(random_state=None).fit(X, ids=[*"abcd"], groups=[1, 1, 2, 2])
    model.delete(["b"])
    fresh = audit.refit(model)
    assert type(fresh) is IntegerSums
    assert fresh.seed_ == model.seed_
    fresh.delete(groups=[1])
    assert model.ids_.tolist() == ["a", "c", "d"]
    assert model._held.records.matrix[0].tolist() == [1, 10]


def test_a_model_that_did_not_forget_is_found_out():
    model = PlainSums().fit(X)
    model.delete([1])
    model.sums_ = model.sums_ + np.array([2, 0])
    model._info.digest = None
    result = audit.equality(model)
    assert not result
    assert [difference.name for difference in result.differences] == ["sums"]
    assert "different: 1 of " in str(result)
    assert "  sums: 1 of 2 values\n" in str(result)


class Floats(PlainSums):
    def _state(self):
        return {"sums": self.sums_ * 1.0, "inner": {"first": int(self.sums_[0])}}


class More(PlainSums):
    def _state(self):
        return {"sums": self.sums_, "label": "x" * 100}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (
            Floats().fit(X),
            Floats().fit(X + np.array([0, 1])),
            ["sums: 1 of 2 values, at most 4 apart"],
        ),
        (
            Floats().fit(X),
            Floats().fit(X + np.array([1, 0])),
            ["inner.first: 10 and 14", "sums: 1 of 2 values, at most 4 apart"],
        ),
        (
            PlainSums().fit(X),
            PlainSums().fit(X[:, :1]),
            ["n_features: 2 and 1", "sums: int64 of shape (2,) and int64 of shape (1,)"],
        ),
        (
            PlainSums().fit(X),
            More().fit(X),
            [
                "class: audit.test_equality.PlainSums and audit.test_equality.More",
                "label: only in the second",
            ],
        ),
        (
            IntegerSums(random_state=1).fit(X),
            IntegerSums(random_state=1, least=2).fit(X),
            ["params.least: 1 and 2"],
        ),
    ],
)
def test_differences_are_named(one, other, expected):
    result = audit.equality(one, other)
    assert not result.equal
    told = [str(difference) for difference in result.differences]
    assert told[-1].split(":")[0] == expected[-1].split(":")[0]
    if expected[0].startswith("class"):
        assert told[0].startswith("class: ")
        assert told[1:] == expected[1:]
    else:
        assert told == expected


def test_negative_zero_is_a_difference():
    class Zero(PlainSums):
        sign = 1.0

        def _state(self):
            return {"zero": np.array([0.0 * self.sign])}

    one, other = Zero().fit(X), Zero()
    other.sign = -1.0
    result = audit.equality(one, other.fit(X))
    assert [str(difference) for difference in result.differences] == [
        "zero: 1 of 1 values, at most 0 apart"
    ]


def test_digests_that_disagree_with_equal_states_are_reported():
    model = PlainSums().fit(X)
    other = PlainSums().fit(X)
    other._info.digest = "stale"
    result = audit.equality(model, other)
    assert not result
    assert str(result.differences[0]) == "digest: the states are equal, the digests are not"


def test_long_values_are_cut():
    other = More().fit(X)
    other._state = lambda: {"sums": other.sums_, "label": "y" * 100}
    other._info.digest = None
    [difference] = audit.equality(More().fit(X), other).differences
    assert len(str(difference)) < 150


def test_what_cannot_be_refitted(tmp_path):
    with pytest.raises(NotFittedError):
        audit.refit(PlainSums())
    SortedValues().fit(X).save(tmp_path / "m")
    with pytest.raises(DetachedError):
        audit.equality(SortedValues.load(tmp_path / "m"))


def test_other_models_have_no_refit_and_no_digest():
    model = PlainSums().fit(X)
    for wrong in (
        lambda: audit.refit("x"),
        lambda: audit.equality(3),
        lambda: audit.equality(model, X),
    ):
        with pytest.raises(InvalidInputError, match="expected an estimator of erasable"):
            wrong()
