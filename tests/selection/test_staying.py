"""Staying models against the paper's recursion in exact fractions, and SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.selection import (
    BetaBinomial,
    Certain,
    Exchangeable,
    Expected,
    Groups,
    Independent,
    NearestNeighbor,
    PerClass,
    PointMass,
    SubsetSelector,
    Uniform,
    expected_utility,
    from_history,
    utility_distribution,
)
from erasable.selection.staying import Bound, Sampler, Staying, as_staying
from selection.enumeration import nearest, recursion, subsets

weights = st.lists(st.integers(0, 9), min_size=2, max_size=8).filter(any)


@settings(max_examples=40)
@given(weights)
def test_the_recursion_of_the_paper(counts: list[int]) -> None:
    r = [Fraction(each, sum(counts)) for each in counts]
    k, table = len(r) - 1, recursion(r)
    model = Exchangeable([float(each) for each in r])
    for t in range(k + 1):
        np.testing.assert_allclose(model.subset_pmf(t, k=k), np.array(table[t], float), atol=1e-13)
        assert model.size_pmf(t, k=k).sum() == pytest.approx(1)
    law = model.sizes(k)
    last_alone = [float(table[n][1]) for n in range(1, k + 1)]
    np.testing.assert_allclose(law.rank_weights(k), last_alone, atol=1e-13)
    for t in range(k):
        for stayed in range(t + 1):
            if table[t][stayed]:
                one_more = table[t + 1][stayed + 1] / table[t][stayed]
                (ours,) = law.next_stays(t, np.array([stayed]))
                assert ours == pytest.approx(float(one_more), abs=1e-12)


def test_hundreds_of_owners_leave_no_range_of_floats() -> None:
    k = 700
    r = [Fraction(a + 1, (k + 1) * (k + 2) // 2) for a in range(k + 1)]
    table = recursion(r)
    law = Exchangeable([float(each) for each in r]).sizes(k)
    for t in (1, 350, 699, 700):
        logs = [_log(each) for each in table[t]]
        np.testing.assert_allclose(law.log_subset_pmf(t), logs, rtol=1e-10)
    ours = law.rank_weights(k)
    np.testing.assert_allclose(ours, [float(table[n][1]) for n in range(1, k + 1)], rtol=1e-11)


def _log(value: Fraction) -> float:
    return (value.numerator.bit_length() - value.denominator.bit_length()) * np.log(2) + np.log(
        float(
            value / Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length())
        )
    )


@settings(max_examples=20)
@given(st.floats(0.2, 20), st.floats(0.2, 20), st.integers(1, 30))
def test_beta_binomial_is_that_of_scipy(alpha: float, beta: float, k: int) -> None:
    model = BetaBinomial(alpha, beta)
    r = scipy.stats.betabinom(k, alpha, beta).pmf(np.arange(k + 1))
    np.testing.assert_allclose(model.size_pmf(k), r, rtol=1e-9)
    given_by_sizes = Exchangeable(r / r.sum())
    for t in (1, k // 2, k):
        np.testing.assert_allclose(
            model.subset_pmf(t), given_by_sizes.subset_pmf(t, k=k), rtol=1e-7, atol=1e-15
        )
    np.testing.assert_allclose(
        model.sizes().rank_weights(k), given_by_sizes.sizes(k).rank_weights(k), rtol=1e-7
    )


def test_independent_owners_are_binomial() -> None:
    for s in (0.0, 0.3, 1.0):
        pmf = scipy.stats.binom(6, s).pmf(np.arange(7))
        np.testing.assert_allclose(Independent(s).size_pmf(6), pmf, atol=1e-12)
    assert Independent(0.3).sizes().rank_weights(3) == pytest.approx([0.3, 0.21, 0.147])
    assert Certain().sizes().rank_weights(3).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("model", "pmf"),
    [
        (Uniform(2, 4), [0, 0, 1 / 3, 1 / 3, 1 / 3]),
        (Uniform(0, 1), [0.5, 0.5, 0, 0, 0]),
        (PointMass(3), [0, 0, 0, 1, 0]),
        (Exchangeable([0.1, 0.2, 0.3, 0.2, 0.2]), [0.1, 0.2, 0.3, 0.2, 0.2]),
        (BetaBinomial(2, 1), scipy.stats.betabinom(4, 2, 1).pmf(range(5))),
        (Independent(0.7), scipy.stats.binom(4, 0.7).pmf(range(5))),
    ],
    ids=lambda each: type(each).__name__,
)
def test_samples_have_the_sizes_that_were_asked_for(model: Staying, pmf: list[float]) -> None:
    np.testing.assert_allclose(model.size_pmf(4, k=4), pmf, atol=1e-12)
    drawn = model.sample(4, 4000, random_state=1)
    seen = np.bincount(drawn.sum(axis=1), minlength=5)
    possible = np.array(pmf) > 0
    assert not seen[~possible].any()
    told = scipy.stats.chisquare(seen[possible], 4000 * np.array(pmf)[possible] / sum(pmf))
    assert told.pvalue > 1e-4 or possible.sum() == 1
    # No place in the order is better than another: each stays as often.
    each = drawn.mean(axis=0)
    assert np.ptp(each) < 0.06


def test_what_is_drawn_depends_on_the_record_alone() -> None:
    bound = Independent(0.5).bind(5)
    one, other = Sampler(bound, 200, 3), Sampler(bound, 200, 3)
    first = {j: one.add(j) for j in (0, 1, 2, 3, 4)}
    for j in (4, 2, 0):
        assert (other.add(j) == first[j]).all()
    assert (Sampler(bound, 200, 4).add(0) != first[0]).any()


def test_groups_stay_and_leave_together() -> None:
    model = Groups(["a", "b", "a", "c"], {"a": 0.5, "b": 1.0, "c": 0.0})
    drawn = model.sample(4, 300, random_state=0)
    assert (drawn[:, 0] == drawn[:, 2]).all()
    assert 0.4 < drawn[:, 0].mean() < 0.6
    assert drawn[:, 1].all()
    assert not drawn[:, 3].any()


def test_classes_have_laws_of_their_own() -> None:
    model = PerClass({1: BetaBinomial(1, 1), 0: Certain()})
    drawn = model.sample(6, 3000, labels=[0, 1, 1, 0, 1, 1], random_state=0)
    assert drawn[:, [0, 3]].all()
    sizes = np.bincount(drawn[:, [1, 2, 4, 5]].sum(axis=1), minlength=5)
    assert scipy.stats.chisquare(sizes).pvalue > 1e-4


def test_history_is_counted() -> None:
    assert from_history(3, 40) == BetaBinomial(38, 4)
    assert from_history({"b": 1}, {"a": 2, "b": 3}).models == {
        "a": BetaBinomial(3, 1),
        "b": BetaBinomial(3, 2),
    }
    assert as_staying(0.9) == Independent(0.9)
    assert as_staying({"a": 0.5}) == Independent({"a": 0.5})


BAD: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: Independent(1.1), InvalidParameterError, "expected a probability from 0 to 1"),
    (lambda: Independent(True), InvalidParameterError, "s=True"),
    (lambda: Independent([0.5, np.nan]), InvalidInputError, "holds 1 outside of"),
    (lambda: Independent([[0.5]]), InvalidInputError, "shape (1, 1)"),
    (lambda: Independent(["a"]), InvalidInputError, "holds no numbers"),
    (lambda: Independent({"a": 2}), InvalidParameterError, "s['a']=2"),
    (lambda: Independent({"a": 1.0}).bind(2), InvalidInputError, "pass y"),
    (lambda: Independent({"a": 1.0}).bind(2, labels=["a", "b"]), InvalidInputError, "no entry"),
    (lambda: Independent({"a": 1, "c": 1}).bind(1, labels=["a"]), InvalidInputError, "no record"),
    (lambda: Independent([0.5]).bind(2), InvalidInputError, "1 probabilities for 2 records"),
    (lambda: Independent([0.5]).subset_pmf(1), InvalidParameterError, "owners differ"),
    (lambda: Exchangeable([0.5, 0.4]), InvalidInputError, "sums to 0.9"),
    (lambda: Exchangeable([1.0]), InvalidInputError, "has 1 values"),
    (lambda: Exchangeable(0.5), InvalidInputError, "shape ()"),
    (lambda: Exchangeable([0.5, 0.5]).bind(9, k=3), InvalidParameterError, "2 values for k=3"),
    (lambda: Uniform(3, 2), InvalidParameterError, "low=3 is above high=2"),
    (lambda: Uniform(0, 9).bind(20, k=5), InvalidParameterError, "choose k=9 or more"),
    (lambda: PointMass(-1), InvalidParameterError, "a=-1"),
    (lambda: PointMass(4).subset_pmf(2), InvalidParameterError, "a=4 owners stay of k=2"),
    (lambda: BetaBinomial(0, 1), InvalidParameterError, "alpha=0"),
    (lambda: BetaBinomial(1, 1).subset_pmf(3, k=2), InvalidParameterError, "t=3 of k=2"),
    (lambda: PerClass({"a": Uniform(1, 2)}), InvalidParameterError, "how many of a class"),
    (lambda: PerClass({}), InvalidParameterError, "expected a mapping"),
    (lambda: Groups(["a"], 0.5).bind(2), InvalidInputError, "1 labels of groups for 2"),
    (lambda: Groups(["a", "b"], {"a": 1.0}).bind(2), InvalidInputError, "no probability"),
    (lambda: Groups([["a"]], 1.0), InvalidInputError, "shape (1, 1)"),
    (lambda: as_staying("often"), InvalidParameterError, "staying='often'"),
    (lambda: as_staying(None), InvalidParameterError, "staying=None"),
    (lambda: from_history(5, 3), InvalidInputError, "5 requests by 3 owners"),
    (lambda: from_history(-1, 3), InvalidInputError, "requested is -1"),
    (lambda: from_history({"a": 1}, 3), InvalidInputError, "count both in one way"),
    (lambda: from_history({"a": 1}, {"b": 3}), InvalidInputError, "no count"),
    (lambda: from_history([1], [3, 4], by=["a"]), InvalidInputError, "2 counts for 1 classes"),
]


@pytest.mark.parametrize(("wrong", "error", "told"), BAD, ids=[each[2] for each in BAD])
def test_bad_input_is_told(wrong: Callable[[], object], error: type[Exception], told: str) -> None:
    with pytest.raises(error) as caught:
        wrong()
    assert told in str(caught.value)
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_luck_may_go_by_the_order_of_choice() -> None:
    bound = Independent(0.5).bind(4)
    one, other = (Sampler(bound, 200, [3, 1], by_order=True) for _ in range(2))
    first, second = one.add(0), one.add(1)
    assert (other.add(3) == first).all()
    assert (other.add(0) == second).all()
    assert (first != second).any()
    together = Sampler(Groups([0, 0, 1], 0.5).bind(3), 200, 3, by_order=True)
    assert (together.add(0) == together.add(1)).all()


# -- groups with a law of their own ----------------------------------------------------------------

OWNER = np.array([0, 0, 1, 2, 2, 3, 3])
SIMILAR = np.random.default_rng(5).random((7, 7))
CLASSES = np.array([0, 0, 1, 0, 0, 1, 1])


def by_enumeration(stay_of: Callable[[tuple[int, ...]], float], chosen: list[int]) -> float:
    """Return the expectation over all sets of owners who stay; `stay_of` has their probability."""
    utility = nearest(SIMILAR, CLASSES.tolist())
    total = 0.0
    for owners in subsets(range(4)):
        total += stay_of(owners) * utility([j for j in chosen if OWNER[j] in owners])
    return total


def exchangeable(r: Sequence[float]) -> Callable[[tuple[int, ...]], float]:
    """r[a]: that a of the four owners stay."""
    return lambda owners: r[len(owners)] / math.comb(4, len(owners))


def of_each(s: Sequence[float]) -> Callable[[tuple[int, ...]], float]:
    return lambda owners: float(np.prod([s[i] if i in owners else 1 - s[i] for i in range(4)]))


BETA = [float(each) for each in betabinom(4, 2, 1).pmf(np.arange(5))]
OF_GROUPS: list[tuple[Staying, Callable[[tuple[int, ...]], float]]] = [
    (BetaBinomial(2, 1), exchangeable(BETA)),
    (PointMass(2), exchangeable([0, 0, 1, 0, 0])),
    (Uniform(1, 3), exchangeable([0, 1 / 3, 1 / 3, 1 / 3, 0])),
    (Exchangeable([0.1, 0.2, 0.3, 0.2, 0.2]), exchangeable([0.1, 0.2, 0.3, 0.2, 0.2])),
    (Independent([0.2, 0.9, 0.5, 0.7]), of_each([0.2, 0.9, 0.5, 0.7])),
    (Independent({0: 0.4, 1: 0.8}), of_each([0.4, 0.8, 0.4, 0.8])),
    (PerClass({0: 0.3, 1: Certain()}), of_each([0.3, 1.0, 0.3, 1.0])),
]


@pytest.mark.parametrize(("model", "stay_of"), OF_GROUPS, ids=lambda each: repr(each)[:40])
def test_groups_have_a_law_of_their_own(
    model: Staying, stay_of: Callable[[tuple[int, ...]], float]
) -> None:
    given: dict[str, Any] = {
        "X": SIMILAR, "y": CLASSES, "utility": NearestNeighbor("precomputed"),
        "staying": Groups(OWNER, model),
    }  # fmt: skip
    for chosen in ([0, 1, 2, 4, 5, 6], [3, 2, 0], [6, 5]):
        found = expected_utility(chosen, **given)
        assert found.exact
        assert found.value == pytest.approx(by_enumeration(stay_of, chosen))
    drawn = utility_distribution([0, 1, 2, 4, 5, 6], **given, n_samples=20_000, random_state=0)
    exact = by_enumeration(stay_of, [0, 1, 2, 4, 5, 6])
    assert drawn.mean() == pytest.approx(exact, abs=5 * drawn.std() / np.sqrt(20_000) + 1e-12)
    # The control: records that leave alone are worth something else.
    alone = {**given, "staying": Independent(0.5)}
    assert expected_utility([0, 1, 2, 4, 5, 6], **alone).value != pytest.approx(exact)


def test_records_of_a_group_stay_together_under_any_law() -> None:
    for model, _ in OF_GROUPS:
        stays = Groups(OWNER, model).sample(7, 200, labels=CLASSES, random_state=0)
        for owner in range(4):
            rows = stays[:, owner == OWNER]
            assert (rows == rows[:, :1]).all()
    two = Groups(OWNER, PointMass(2)).sample(7, 200, random_state=0)
    assert {len(set(OWNER[row])) for row in two} == {2}


def test_a_law_of_a_user_over_groups() -> None:
    class Rich(Staying):
        """The groups with more records are likelier to stay."""

        def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
            assert labels is None
            return Bound(np.linspace(0.1, 0.9, n))

    bound = Groups(OWNER, Rich()).bind(7, labels=CLASSES)
    np.testing.assert_allclose(bound.probability, np.linspace(0.1, 0.9, 4)[OWNER])
    assert bound.unit is not None
    assert bound.unit.tolist() == OWNER.tolist()
    nested = Groups(OWNER, Groups([0, 0, 1, 1], 0.5)).bind(7)
    assert nested.unit is not None
    assert nested.unit.tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_a_group_of_several_classes_has_no_law_by_class() -> None:
    model = Groups([0, 0, 1], PerClass({"a": 0.5, "b": 1.0}))
    assert model.bind(3, labels=["a", "a", "b"]).probability.tolist() == [0.5, 0.5, 1.0]
    with pytest.raises(InvalidInputError, match="1 groups have records of several classes, such"):
        model.bind(3, labels=["a", "b", "b"])
    with pytest.raises(InvalidInputError, match="there are no labels"):
        model.bind(3)
    with pytest.raises(InvalidInputError, match="s has 3 probabilities for 2 records"):
        Groups([0, 0, 1], Independent([0.1, 0.2, 0.3])).bind(3)


def test_classes_of_a_model_need_not_be_those_of_records() -> None:
    """Appendix E: who is held may leave, and who comes after is sure to stay."""
    held = ["held", "held", "new", "new", "held", "new", "new"]
    model = PerClass({"held": BetaBinomial(2, 1), "new": Certain()}, held)
    assert not model.by_class
    given: dict[str, Any] = {
        "X": SIMILAR, "y": CLASSES, "utility": NearestNeighbor("precomputed"), "staying": model,
        "objective": Expected(40_000), "random_state": 0,
    }  # fmt: skip
    chosen = [0, 1, 2, 3, 4]
    found = expected_utility(chosen, **given)
    p = [float(each) / math.comb(3, a) for a, each in enumerate(betabinom(3, 2, 1).pmf(range(4)))]
    utility = nearest(SIMILAR, CLASSES.tolist())
    exact = sum(p[len(stay)] * utility([*stay, 2, 3]) for stay in subsets([0, 1, 4]))
    assert found.value == pytest.approx(exact, abs=5 * found.standard_error)
    assert abs(exact - utility(chosen)) > 20 * found.standard_error  # the control
    with pytest.raises(InvalidInputError, match="labels have shape"):
        PerClass({"held": 0.5, "new": 1.0}, held[:3]).bind(7)


class Given(Staying):
    """Whatever it is given, as a model of the user's returns it."""

    def __init__(self, form: Any) -> None:
        self.form = form

    def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        return cast("Bound", self.form)


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (np.full(6, 0.5), "Given.bind returned .*; expected a Bound"),
        (Bound(np.full(2, 0.5)), "the form of 2 records for 6"),
        (Bound(np.full(9, 0.5)), "the form of 9 records for 6"),
        (Bound(np.full(6, 1.5)), r"outside \[0, 1\]"),
        (Bound(np.full(6, np.nan)), r"outside \[0, 1\]"),
        (Bound(np.full(6, 0.5), np.zeros(6, dtype=np.int64)), "block 0 and 0 laws"),
        (Bound(np.full(6, 0.5), np.zeros(2, dtype=np.int64)), "the form of"),
    ],
)
def test_a_model_of_the_user_that_is_no_form_for_the_records_is_refused(
    form: Any, told: str
) -> None:
    X = np.arange(6.0)[:, None]
    for staying in (Given(form), Groups(list("abcdef"), Given(form))):
        with pytest.raises(InvalidInputError, match=told):
            SubsetSelector(NearestNeighbor(), k=2, staying=staying).fit(X)
    listed = Given(Bound([0.5] * 6))  # type: ignore[arg-type]
    assert len(SubsetSelector(NearestNeighbor(), k=2, staying=listed).fit(X).selected_) == 2
