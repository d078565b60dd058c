"""`DomainRemoval`: what a user of scikit-learn expects, ids, kinds of input, and clear errors."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from effort import few
from erasable.core.errors import DetachedError, ErasableError
from erasable.removal import DensityRatio, DomainRemoval, MaxShift, MinRemoval, RemovalWarning
from erasable.removal._domain import reliability
from erasable.removal._sets import Sets
from erasable.removal.scores import SCORES


def draw(n1: int = 80, n2: int = 60, d: int = 2, apart: float = 1.5) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n1, d)), rng.normal(size=(n2, d)) + apart


FORGET, RETAIN = draw()


def test_what_is_learnt() -> None:
    removal = DomainRemoval("mu2-distance", budget=5).fit(FORGET, RETAIN)
    assert removal.order_.tolist() == np.argsort(-removal.scores_, kind="stable").tolist()
    assert removal.selected_.tolist() == removal.order_[:5].tolist()
    assert removal.selected_ids_.tolist() == removal.selected_.tolist()
    assert removal.n_features_in_ == 2
    assert [len(part) for part in vars(removal.frontier_).values()] == [81] * 4
    assert removal.trust_ > 0.9
    assert removal.frontier_.share[[0, -1]].tolist() == [0.0, 1.0]


def test_clone_and_parameters() -> None:
    removal = DomainRemoval("lr-cos", budget=MinRemoval(0.1), random_state=3)
    same = clone(removal)
    assert same.get_params()["budget__alpha"] == 0.1
    assert same.set_params(budget__alpha=0.2).budget.alpha == 0.2
    assert removal.budget.alpha == 0.1
    named = set(inspect.signature(DomainRemoval).parameters)
    assert {key for key in removal.get_params(deep=False)} == named
    assert "lr-cos" in repr(removal)


@pytest.mark.parametrize("name", ["density-ratio", "random", "ccs"])
def test_the_seed_says_it_all(name: str) -> None:
    first, again, other = (
        DomainRemoval(name, budget=1, random_state=seed).fit(FORGET, RETAIN) for seed in (1, 1, 2)
    )
    assert first.order_.tolist() == again.order_.tolist()
    assert first.scores_.tolist() == again.scores_.tolist()
    assert first.order_.tolist() != other.order_.tolist()


def test_frames_give_ids_and_names() -> None:
    names = [f"visit-{i}" for i in range(80)]
    frame = pd.DataFrame(FORGET, columns=["age", "bmi"], index=names)
    removal = DomainRemoval("mu2-distance", budget=3)
    removal.fit(frame, pd.DataFrame(RETAIN, columns=["age", "bmi"]))
    assert removal.selected_ids_.tolist() == [names[row] for row in removal.order_[:3]]
    assert removal.feature_names_in_.tolist() == ["age", "bmi"]
    columned = pl.DataFrame({"id": names, "age": FORGET[:, 0], "bmi": FORGET[:, 1]})
    others = pl.DataFrame({"id": list(range(60)), "age": RETAIN[:, 0], "bmi": RETAIN[:, 1]})
    again = DomainRemoval("mu2-distance", budget=3).fit(columned, others, ids="id")
    assert again.selected_ids_.tolist() == removal.selected_ids_.tolist()
    assert not hasattr(again.fit(FORGET, RETAIN), "feature_names_in_")


@pytest.mark.parametrize("kind", [csr_array, csr_matrix, np.asfortranarray, np.ndarray.tolist])
def test_kinds_of_input(kind: Any) -> None:
    expected = DomainRemoval("mu2-distance", budget=4).fit(FORGET, RETAIN)
    removal = DomainRemoval("mu2-distance", budget=4).fit(kind(FORGET), kind(RETAIN))
    assert removal.selected_.tolist() == expected.selected_.tolist()
    np.testing.assert_allclose(removal.scores_, expected.scores_, rtol=1e-6)


def test_memory_mapped_arrays_are_not_copied(tmp_path: Path) -> None:
    for name, X in (("forget", FORGET), ("retain", RETAIN)):
        np.save(tmp_path / f"{name}.npy", X.astype(np.float32))
    forget, retain = (np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("forget", "retain"))
    removal = DomainRemoval("lr-maha", budget=2).fit(forget, retain)
    expected = DomainRemoval("lr-maha", budget=2).fit(np.array(forget), np.array(retain))
    assert removal.scores_.tolist() == expected.scores_.tolist()
    assert np.shares_memory(removal._tracer.sets.forget, forget)


def test_text_through_a_vectoriser() -> None:
    spam = ["win a prize now", "free prize win win", "cash prize free", "win cash now"] * 5
    ham = ["see you at noon", "lunch at noon", "see you now", "are you at lunch"] * 5
    vectorizer = TfidfVectorizer().fit(spam + ham)
    removal = DomainRemoval("cos-mu2", budget=0.25, random_state=0)
    removal.fit(vectorizer.transform(spam), vectorizer.transform(ham))
    assert len(removal.selected_) == 5
    assert removal.selected_.tolist() == sorted(removal.selected_.tolist())  # five equal texts


@pytest.mark.parametrize("name", list(SCORES))
def test_a_target_is_met_where_it_can_be(name: str) -> None:
    removal = DomainRemoval(name, budget=1, random_state=0).fit(FORGET, RETAIN)
    half = removal.frontier_.alpha[-1] / 2
    removal.set_params(budget=MinRemoval(half)).fit(FORGET, RETAIN)
    k = len(removal.selected_)
    assert removal.frontier_.alpha[k] >= half
    assert (removal.frontier_.alpha[:k] < half).all()
    removal.set_params(budget=MaxShift(0.05)).fit(FORGET, RETAIN)
    k = len(removal.selected_)
    within = removal.frontier_.epsilon <= 0.05
    assert within[k]
    assert removal.frontier_.alpha[k] == removal.frontier_.alpha[within].max()


@pytest.mark.thorough
@pytest.mark.parametrize("n_retain", [4, 15, 200])
def test_trust_is_what_another_sample_agrees(n_retain: int) -> None:
    """What one sample says of itself is, on average, how two samples agree."""
    rng = np.random.default_rng(n_retain)
    score = SCORES["mu2-distance"]
    told, measured = [], []
    for _ in range(few(90)):
        forget = rng.normal(size=(150, 5))
        both = []
        for _ in range(2):
            sets = Sets(forget, rng.normal(size=(n_retain, 5)))
            ranking = score.rank(sets, 0)
            told.append(reliability(sets, ranking, 0))
            both.append(ranking.scores)
        measured.append(spearmanr(*both)[0])
    assert abs(np.mean(told) - np.mean(measured)) < 0.1
    assert np.mean(told) < np.mean(measured) + 4 * np.std(measured) / np.sqrt(len(measured))


def test_trust_is_low_where_there_is_nothing_to_tell() -> None:
    """The control: two samples of one distribution, told apart by a classifier."""
    rng = np.random.default_rng(0)
    sets = Sets(rng.normal(size=(100, 4)), rng.normal(size=(100, 4)))
    classifier = DensityRatio(LogisticRegression())
    assert reliability(sets, classifier.rank(sets, 0), 0) < 0.6
    apart = Sets(sets.forget, sets.retain + 1.0)
    assert reliability(apart, classifier.rank(apart, 0), 0) > 0.9


def test_a_tiny_retain_set_is_warned_of() -> None:
    rng = np.random.default_rng(1)
    forget, retain = rng.normal(size=(100, 20)), rng.normal(size=(300, 20)) + 0.1
    with pytest.warns(RemovalWarning, match=r"trust_=0\.\d\d: other samples of this size \(100"):
        DomainRemoval(random_state=0).fit(forget, retain[:6])
    trusted = DomainRemoval("mu2-distance", budget=1).fit(forget, retain)
    assert trusted.trust_ > 0.9


@pytest.mark.parametrize("name", ["norm", "coreset", "k-center", "random", "craig", "ccs"])
def test_scores_without_a_contrast_are_not_judged(name: str) -> None:
    assert np.isnan(DomainRemoval(name, budget=1).fit(FORGET, RETAIN).trust_)


def test_a_pickle_holds_no_record() -> None:
    secret = np.full((1, 2), 7.123456789)
    removal = DomainRemoval("norm", budget=3).fit(np.concatenate([FORGET, secret]), RETAIN)
    data = pickle.dumps(removal)
    assert secret.tobytes() not in data
    assert np.float64(7.123456789).tobytes() not in data
    back = pickle.loads(data)
    assert back.frontier_.alpha.tolist() == removal.frontier_.alpha.tolist()
    assert back.selected_.tolist() == removal.selected_.tolist()
    with pytest.raises(DetachedError, match="fit it again"):
        _ = back.certificate_


def test_the_certificate_is_that_of_the_selection() -> None:
    certificates = pytest.importorskip("erasable.removal.certificates")
    removal = DomainRemoval("mu2-distance", budget=20, covariance="free", delta=0.1)
    found = removal.fit(FORGET, RETAIN).certificate_
    direct = certificates.certificate(FORGET, RETAIN, removal.order_[:20], 0.1)
    assert (found.alpha, found.epsilon) == (direct.alpha, direct.epsilon)
    assert found.alpha <= removal.frontier_.alpha[20]
    assert found.epsilon >= removal.frontier_.epsilon[20]


def test_a_plot_has_both_curves() -> None:
    removal = DomainRemoval("norm", budget=3).fit(FORGET, RETAIN)
    ax = removal.plot()
    assert [len(line.get_xdata()) for line in ax.lines] == [81, 81, 2]
    assert removal.plot(ax) is ax


NAN = FORGET.copy()
NAN[3, 1] = np.nan
BAD: list[tuple[Any, Any, dict[str, Any], str]] = [
    (FORGET[:0], RETAIN, {}, "in forget: Found array with 0 sample"),
    (FORGET, RETAIN[:0], {}, "in retain: Found array with 0 sample"),
    (FORGET[:1], RETAIN, {}, "forget has 1 record"),
    (FORGET, RETAIN[:1], {}, "retain has 1 record"),
    (NAN, RETAIN, {}, "in forget: .*NaN"),
    (FORGET, NAN, {}, "in retain: .*NaN"),
    (FORGET, RETAIN * np.inf, {}, "in retain: .*inf"),
    (FORGET, RETAIN[:, :1], {}, "in retain: 1 columns, and forget has 2"),
    (FORGET[:, 0], RETAIN, {}, "in forget: .*2D array"),
    (csr_array(FORGET), RETAIN, {}, "forget is sparse and retain is dense"),
    (FORGET, RETAIN, {"ids": range(3)}, "3 ids for the 80 rows of forget"),
    (FORGET, RETAIN, {"ids": [1] * 80}, "1 of the ids of forget is repeated"),
    (FORGET, RETAIN, {"ids": "name"}, "in forget: ids='name' names a column"),
    (FORGET, RETAIN, {"ids": (range(80), range(79, 139))}, "1 ids are in forget and in retain: 79"),
    (
        pd.DataFrame(FORGET, index=range(5, 85)),
        pd.DataFrame(RETAIN, index=range(60, 120)),
        {},
        "25 ids are in forget and in retain: 60, 61, 62",
    ),
    (FORGET * 0, RETAIN, {"score": "cos-mu2"}, "80 of 80 records of forget are all zero"),
    (FORGET, RETAIN * 0, {"score": "lr-maha"}, "covariance of retain is singular"),
    (FORGET, RETAIN, {"score": "best"}, "expected one of density-ratio"),
    (FORGET, RETAIN, {"budget": 81}, "from 1 to 80"),
    (FORGET, RETAIN, {"budget": 1.5}, "share=1.5"),
    (FORGET, RETAIN, {"budget": "all"}, "budget='all'"),
    (FORGET, RETAIN, {"budget": MinRemoval(99.0)}, r"alpha=99 cannot be reached; expected at most"),
    (FORGET, RETAIN, {"delta": 1.0}, "delta=1.0"),
    (FORGET, RETAIN, {"covariance": "diagonal"}, "covariance='diagonal'"),
    (FORGET, RETAIN, {"covariance": np.eye(2)}, "covariance=a ndarray"),
    (FORGET, RETAIN, {"random_state": "luck"}, "random_state='luck'"),
    (["a", "b"], ["c"], {}, "in forget: "),
    (np.ma.masked_less(FORGET, 0), RETAIN, {}, "in forget: X hides"),
    (FORGET * 1e200, RETAIN, {"score": "density-ratio"}, "beyond 2\\*\\*480"),
]  # fmt: skip


@pytest.mark.parametrize(("forget", "retain", "given", "message"), BAD)
def test_bad_input_changes_nothing(
    forget: Any, retain: Any, given: dict[str, Any], message: str
) -> None:
    parameters = {k: v for k, v in given.items() if k != "ids"}
    removal = DomainRemoval("mu2-distance", budget=2, random_state=0).fit(FORGET, RETAIN)
    learnt = {k: v for k, v in vars(removal).items() if k.endswith("_")}
    removal.set_params(**parameters)
    with pytest.raises(ErasableError, match=message) as caught:
        removal.fit(forget, retain, ids=given.get("ids"))
    assert "\n" not in str(caught.value)
    assert {k: v for k, v in vars(removal).items() if k.endswith("_")} == learnt


@pytest.mark.parametrize("covariance", ["shared", "free"])
def test_sets_that_do_not_vary(covariance: str) -> None:
    """There is nothing to remove, and nothing that shifts."""
    removal = DomainRemoval("norm", budget=2, covariance=covariance)
    removal.fit(np.ones((5, 2)), np.ones((4, 2)))
    assert removal.selected_.tolist() == [0, 1]
    assert removal.frontier_.alpha.tolist() == [0.0] * 6


def test_before_a_fit() -> None:
    for ask in ("frontier_", "certificate_"):
        with pytest.raises(NotFittedError):
            getattr(DomainRemoval(), ask)
    with pytest.raises(NotFittedError):
        DomainRemoval().plot()
