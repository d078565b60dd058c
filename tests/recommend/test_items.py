"""Counts and similarities of items, against Python's sets, scikit-learn, and refits."""

from __future__ import annotations

import io
import itertools
import math
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from scipy.sparse import coo_array, csr_array, vstack
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable import Records, load
from erasable.core.errors import (
    ArtifactError,
    DetachedError,
    InvalidDataError,
    InvalidInputError,
    MagnitudeError,
    UnknownIdError,
)
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder
from erasable.recommend import ItemNeighbors, _items
from erasable.recommend import _pair_kernels as kernels
from simulated_workers import Simulated, even, spread

Sets = dict[int, frozenset[int]]
"""The items of each user."""

N_ITEMS = 7
FORMULAS = {
    "cosine": lambda both, one, other, n: both / math.sqrt(one * other),
    "jaccard": lambda both, one, other, n: both / (one + other - both),
    "lift": lambda both, one, other, n: both * n / (one * other),
}


class Oracle:
    """What the model must say, from the sets themselves."""

    def __init__(self, users: Sets, similarity: str, most: int | None = None) -> None:
        holders = [{u for u, own in users.items() if i in own} for i in range(N_ITEMS)]
        self.counts = [len(each) for each in holders]
        self.similarities: dict[int, dict[int, float]] = {i: {} for i in range(N_ITEMS)}
        for i, j in itertools.permutations(range(N_ITEMS), 2):
            if both := len(holders[i] & holders[j]):
                told = FORMULAS[similarity](both, self.counts[i], self.counts[j], len(users))
                self.similarities[i][j] = told
        self.most = most

    @staticmethod
    def best(scores: dict[int, float], n: int | None) -> list[int]:
        return sorted(scores, key=lambda item: (-scores[item], item))[:n]

    def recommend(self, own: frozenset[int], n: int) -> tuple[list[int], list[float]]:
        scores: Counter[int] = Counter()
        for i in sorted(own):
            for j in self.best(self.similarities[i], self.most):
                scores[j] += self.similarities[i][j]  # type: ignore[assignment]
        lacked = {j: score for j, score in scores.items() if j not in own}
        best = self.best(lacked, n)
        return best, [lacked[j] for j in best]


def table(users: Sets, *, sparse: bool = False) -> Any:
    """Return a matrix in which any positive number says that a user has an item."""
    rows = np.zeros((len(users), N_ITEMS))
    for row, (user, own) in enumerate(users.items()):
        for item in own:
            rows[row, item] = 0.5 + (user + item) % 3
    return csr_array(rows) if sparse else rows


def fitted(users: Sets, *, sparse: bool = False, **params: Any) -> ItemNeighbors:
    return ItemNeighbors(**params).fit(table(users, sparse=sparse), ids=list(users))


def hold(model: ItemNeighbors, users: Sets) -> None:
    """Hold a model against the sets of its users, and against a fit."""
    oracle = Oracle(users, model.similarity, model.n_neighbors)
    assert model.item_counts_.tolist() == oracle.counts
    assert model.n_pairs_ == sum(map(len, oracle.similarities.values())) // 2
    for item, near in oracle.similarities.items():
        found, scores = model.similar_items(item, 3, return_scores=True)
        assert found.tolist() == oracle.best(near, 3)
        assert scores.tolist() == [near[other] for other in found.tolist()]
    told = [oracle.recommend(own, 3) for own in users.values()]
    for asked in ({"ids": list(users)}, {"X": table(users)}, {"X": table(users, sparse=True)}):
        items, sums = model.recommend(**asked, n=3, return_scores=True)
        pairs = zip(items, sums, strict=True)
        assert [(i.tolist(), s.tolist()) for i, s in pairs] == told
    fresh = fitted(users, similarity=model.similarity, n_neighbors=model.n_neighbors)
    assert model.digest() == fresh.digest()
    assert _file(model) == _file(fresh)


def _file(model: ItemNeighbors) -> bytes:
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


SETS = st.frozensets(st.integers(0, N_ITEMS - 1))
ACTS = st.tuples(
    st.sampled_from(["add", "delete", "correct", "replace", "pickle", "load"]),
    st.integers(0, 99),
    SETS,
)


@settings(max_examples=examples(200), deadline=None)
@given(
    first=st.lists(SETS, min_size=1, max_size=8),
    acts=st.lists(ACTS, max_size=8),
    similarity=st.sampled_from(sorted(FORMULAS)),
    most=st.none() | st.integers(1, 3),
    sparse=st.booleans(),
)
def test_any_history_is_one_fit(
    first: list[frozenset[int]], acts: Any, similarity: str, most: int | None, sparse: bool
) -> None:
    users = dict(enumerate(first))
    model = fitted(users, sparse=sparse, similarity=similarity, n_neighbors=most)
    for number, (kind, at, own) in enumerate(acts):
        old, new = list(users)[at % len(users)], 100 + number
        row = table({old if kind == "correct" else new: own}, sparse=sparse)
        if kind == "delete" and len(users) > 1:
            model.delete([old])
            del users[old]
        elif kind == "add":
            model.add(row, ids=[new])
            users[new] = own
        elif kind == "correct":
            model.correct([old], row)
            users[old] = own
        elif kind == "replace":
            model.replace([old], row, ids=[new])
            del users[old]
            users[new] = own
        elif kind == "pickle":
            model = pickle.loads(pickle.dumps(model))
        elif kind == "load":
            records = table(users, sparse=sparse), list(users)
            model = load(io.BytesIO(_file(model)), records)  # type: ignore[assignment]
        model.recommend()  # what was derived before the next act must not outlive it
    hold(model, {int(each): users[int(each)] for each in model.ids_})


@settings(max_examples=examples(60), deadline=None)
@given(first=st.lists(SETS, min_size=2, max_size=12), data=st.data())
def test_many_leave_and_come_at_once(first: list[frozenset[int]], data: Any) -> None:
    users = dict(enumerate(first))
    gone = data.draw(st.lists(st.sampled_from(sorted(users)), unique=True, max_size=len(users) - 1))
    model = fitted(users)
    model.delete(gone)
    left = {user: own for user, own in users.items() if user not in gone}
    hold(model, left)
    if gone:
        back = {user: users[user] for user in gone}
        model.add(table(back), ids=gone)
    hold(model, {int(each): users[int(each)] for each in model.ids_})


def test_a_pair_that_is_not_subtracted_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    users = {0: frozenset({0, 1, 2}), 1: frozenset({1, 2}), 2: frozenset({0, 2})}
    model = fitted(users)
    shift = kernels.shift

    def forgetful(starts: Any, items: Any, counts: Any, sets: Any, members: Any, step: int) -> int:
        return shift(starts, items, counts, np.minimum(sets, 2), members, step)

    monkeypatch.setattr(kernels, "shift", forgetful)
    model.delete([0])
    del users[0]
    with pytest.raises(AssertionError):
        hold(model, users)


# -- other libraries, and real data ----------------------------------------------------------------


def _films(folder: Path) -> tuple[csr_array, Any, Any]:
    ratings = pd.read_csv(folder / "movielens_small" / "ratings.csv.gz")
    users, ids = pd.factorize(ratings["userId"])
    films, names = pd.factorize(ratings["movieId"])
    return csr_array((ratings["rating"].to_numpy(), (users, films))), ids.to_numpy(), names


def test_similarities_are_those_of_scikit_learn(data_dir: Path) -> None:
    X, ids, _ = _films(data_dir)
    often = np.flatnonzero((X > 0).sum(axis=0) >= 60)
    X = X[:, often]
    model = ItemNeighbors().fit(X, ids=ids)
    theirs = NearestNeighbors(metric="cosine", algorithm="brute").fit((X > 0).T.astype(float))
    distances, places = theirs.kneighbors(n_neighbors=12)
    for item in range(often.size):
        found, scores = model.similar_items(item, 12, return_scores=True)
        np.testing.assert_allclose(1.0 - distances[item], scores, atol=1e-12)
        clear = scores > scores[-1] + 1e-9  # of equal ones, they may show others
        assert set(found[clear]) <= set(places[item])


def test_films_are_recommended_and_raters_leave(data_dir: Path) -> None:
    X, ids, _ = _films(data_dir)
    model = ItemNeighbors(n_neighbors=30).fit(X, ids=ids)
    has = (X > 0).astype(np.int32)
    together = csr_array(has.T @ has)
    assert 2 * model.n_pairs_ == together.nnz - X.shape[1]
    for item in (0, 40, 5000):
        others, both = model._pairs.of_item(item)
        row = together[[item]].toarray()[0]
        assert (row[others] == both).all()
        assert row.sum() == both.sum() + model.item_counts_[item]
    rng = np.random.default_rng(0)
    gone = rng.choice(ids, 40, replace=False)
    for portion in (gone[:1], gone[1:4], gone[4:]):
        model.delete(portion)
    stay = ~np.isin(ids, gone)
    assert model.digest() == ItemNeighbors(n_neighbors=30).fit(X[stay], ids=ids[stay]).digest()
    model.add(X[~stay], ids=ids[~stay])
    whole = ItemNeighbors(n_neighbors=30).fit(X, ids=ids)
    assert model.digest() == whole.digest()
    for user, items in zip(ids[:20], model.recommend(ids=ids[:20]), strict=True):
        assert items.size == 10
        assert not X[[ids.tolist().index(user)]][:, items].nnz


def test_films_that_were_held_out_are_recommended(data_dir: Path) -> None:
    """Of more users than by what all users like, where 5 films of each are not told."""
    X, ids, _ = _films(data_dir)
    rng, rows = np.random.default_rng(1), X.toarray() > 0
    out = [rng.choice(np.flatnonzero(row), 5, replace=False) for row in rows]
    for row, films in zip(rows, out, strict=True):
        row[films] = False
    found = ItemNeighbors(n_neighbors=50).fit(rows, ids=ids).recommend(n=10)
    popular = np.argsort(-rows.sum(axis=0), kind="stable")
    most = [popular[~row[popular]][:10] for row in rows]
    ours, by_popularity = (
        np.mean([np.isin(films, items).any() for films, items in zip(out, told, strict=True)])
        for told in (found, most)
    )
    assert ours > by_popularity + 0.1


# -- where the records are -------------------------------------------------------------------------


def _drawn(n: int = 300, d: int = 9) -> tuple[Any, Any, list[str]]:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, (n, d)) * (rng.random((n, d)) < np.linspace(0.02, 0.6, d))
    return X.astype(float), np.arange(n) * 3, [f"film {j}" for j in range(d)]


@pytest.mark.parametrize("where", ["parquet", "workers"])
def test_stored_records_make_the_same_model(where: str, tmp_path: Path) -> None:
    X, ids, names = _drawn()
    columns = {name: X[:, j] for j, name in enumerate(names)}
    others = {"label": np.zeros(len(ids)), "person": ids // 7}
    stored = pa.table({"id": ids, **others, **columns})
    if where == "workers":
        records = spread(stored, even(len(ids), 5), Simulated(2), names)
    else:
        pq.write_table(stored, tmp_path / "a.parquet", row_group_size=70)
        records = Records.from_parquet(tmp_path, ids="id", features=names)
    model = ItemNeighbors().fit(records)
    frame = pd.DataFrame(columns, index=ids)
    assert model.digest() == ItemNeighbors().fit(frame).digest()
    gone = [3, 30, 33, 600]
    model.delete(gone)
    fresh = ItemNeighbors().fit(frame.drop(index=gone))
    assert model.digest() == fresh.digest()
    for one, other in zip(model.recommend(n=4), fresh.recommend(n=4), strict=True):
        assert one.tolist() == other.tolist()


def test_containers_make_the_same_model() -> None:
    X, ids, _ = _drawn()
    told = ItemNeighbors().fit(X, ids=ids).digest()
    for other in (X.astype(np.float32), csr_array(X), coo_array(X), X > 0, (X > 0) * 2.5):
        assert ItemNeighbors().fit(other, ids=ids).digest() == told
    order = np.random.default_rng(0).permutation(len(ids))
    assert ItemNeighbors().fit(X[order], ids=ids[order]).digest() == told


def test_erased_rows_of_shared_records_do_not_count() -> None:
    X, ids, _ = _drawn()
    records = Records(csr_array(X), ids=ids)
    one, other = ItemNeighbors().fit(records), ItemNeighbors("lift").fit(records)
    one.delete([3, 6])
    other.delete([6])
    left = ~np.isin(ids, [3, 6])
    assert one.digest() == ItemNeighbors().fit(X[left], ids=ids[left]).digest()


def test_it_is_the_end_of_a_pipeline() -> None:
    rows = [["a", "x"], ["b", "x"], ["a", "y"], ["c", "y"]]
    made = make_pipeline(OneHotEncoder(), ItemNeighbors())
    model = made.fit(rows, ids=[0, 1, 2, 3])
    model.delete([3])  # and with it, a column
    assert model.digest() == made.fit(rows[:3], ids=[0, 1, 2]).digest()
    assert model[-1].item_counts_.tolist() == [2, 1, 2, 1]


# -- questions -------------------------------------------------------------------------------------


def test_names_of_columns_are_names_of_items() -> None:
    X, ids, names = _drawn()
    named = ItemNeighbors().fit(pd.DataFrame(X, columns=names), ids=ids)
    plain = ItemNeighbors().fit(X, ids=ids)
    for item, name in enumerate(names):
        numbers = plain.similar_items(item)
        assert numbers.dtype == np.int64
        for asked in (item, np.int32(item), name):
            assert named.similar_items(asked).tolist() == [names[j] for j in numbers.tolist()]
    one, other = named.recommend(ids=[0, 3]), plain.recommend(X[:2])
    assert [each.tolist() for each in one] == [[names[j] for j in each] for each in other]
    answer = named.recommend(ids=[0])[0]
    answer[:] = "other"
    assert named.recommend(ids=[0])[0].tolist() != answer.tolist()


def test_a_model_without_its_records_recommends_for_rows() -> None:
    X, ids, _ = _drawn()
    model = ItemNeighbors().fit(X, ids=ids)
    loaded = load(io.BytesIO(_file(model)))
    assert isinstance(loaded, ItemNeighbors)
    for one, other in zip(loaded.recommend(X), model.recommend(), strict=True):
        assert one.tolist() == other.tolist()
    with pytest.raises(DetachedError):
        loaded.recommend(ids=[0])


def test_more_rows_than_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, ids, _ = _drawn()
    model = ItemNeighbors().fit(X, ids=ids)
    told = [each.tolist() for each in model.recommend()]
    monkeypatch.setattr(_items, "_ROWS", 7)
    assert [each.tolist() for each in model.recommend()] == told
    assert [each.tolist() for each in model.recommend(ids=ids[::-1])] == told[::-1]


def test_users_and_items_without_any() -> None:
    model = ItemNeighbors().fit(np.zeros((3, 2)))
    assert (model.n_pairs_, model.item_counts_.tolist()) == (0, [0, 0])
    assert model.similar_items(1).tolist() == []
    assert [each.tolist() for each in model.recommend()] == [[], [], []]
    model.add([[1.0, 1.0]], ids=[7])
    assert model.similar_items(1).tolist() == [0]
    model.delete([7])
    assert model.digest() == ItemNeighbors().fit(np.zeros((3, 2))).digest()


def test_what_cannot_be_asked() -> None:
    X, ids, names = _drawn()
    model = ItemNeighbors().fit(pd.DataFrame(X, columns=names), ids=ids)
    for item in (-1, 9, True, 1.0, "film 9", None):
        with pytest.raises(InvalidInputError, match=r"is no column; .*, or a name of a column"):
            model.similar_items(item)
    with pytest.raises(
        InvalidInputError, match=r"is no column; expected a number from 0 to 8; pass one$"
    ):
        ItemNeighbors().fit(X).similar_items("film 1")
    for n in (0, True, 2.0, "a", None, [1]):
        with pytest.raises(InvalidInputError, match=r"^n=.*; expected an integer of 1 or more; "):
            model.similar_items(0, n)
        with pytest.raises(InvalidInputError, match=r"^n=.*; expected an integer of 1 or more; "):
            model.recommend(n=n)
    with pytest.raises(InvalidInputError, match=r"X and ids were given"):
        model.recommend(X, ids=ids)
    with pytest.raises(UnknownIdError):
        model.recommend(ids=[1])
    with pytest.raises(InvalidInputError, match=r"given sample_weight; .*; leave it out$"):
        ItemNeighbors().fit(X, sample_weight=np.ones(len(X)))


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_negative_values_are_refused(sparse: bool) -> None:
    X, ids, _ = _drawn()
    wrong = X.copy()
    wrong[4, :2] = -1.0
    if sparse:
        X, wrong = csr_array(X), csr_array(wrong)
    with pytest.raises(InvalidDataError, match=r"Negative values .* 2 of them"):
        ItemNeighbors().fit(wrong, ids=ids)
    model, row = ItemNeighbors().fit(X, ids=ids), wrong[4:5]
    before = model.digest()
    calls: list[Callable[[], Any]] = [
        lambda: model.add(row, ids=[1]),
        lambda: model.correct([3], row),
        lambda: model.replace([3], row, ids=[1]),
        lambda: model.recommend(row),
    ]
    for call in calls:
        with pytest.raises(InvalidDataError, match=r"Negative values .* 2 of them"):
            call()
    assert model.digest() == before
    assert model.delete([0], digest=False).action == "updated"


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_items, "MAX_PAIRS", 6)
    model = ItemNeighbors().fit([[1, 1, 1, 0], [0, 0, 1, 1]][:1])  # 3 pairs, and 3 items
    before = model.digest()
    with pytest.raises(InvalidDataError, match=r"8 pairs of items .* at most 6"):
        model.add([[0, 0, 1, 1]], ids=[5])
    assert model.digest() == before
    model.add([[1, 0, 1, 0]], ids=[6])
    with pytest.raises(InvalidDataError, match=r"8 pairs of items .* at most 6"):
        ItemNeighbors().fit([[1, 1, 1, 0], [0, 0, 1, 1]])


def test_too_many_users_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_items, "MAX_ROWS", 3)
    with pytest.raises(MagnitudeError):
        ItemNeighbors().fit(np.ones((4, 2)))
    model = ItemNeighbors().fit(np.ones((3, 2)))
    with pytest.raises(MagnitudeError):
        model.add([[1.0, 1.0]], ids=[9])


STARTS, ITEMS, COUNTS = [0, 1, 3, 3], [0, 0, 1], [2, 1, 2]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("starts", [1, 1, 3, 3]),
        ("starts", [0, 1, 3, 4]),
        ("starts", [0, 3, 1, 3]),
        ("starts", [0, 1, 3]),
        ("items", [0, 1, 0]),
        ("items", [0, 1, 1]),
        ("items", [1, 0, 1]),
        ("items", [0, 0, 2]),
        ("items", [0, 0, 9]),
        ("items", [0, 0, 0]),
        ("counts", [2, 3, 2]),
        ("counts", [1, 2, 2]),
        ("counts", [2, 0, 2]),
        ("counts", [2, 1, 9]),
    ],
)
def test_a_crafted_state_is_refused(field: str, value: list[int]) -> None:
    X = [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    model = ItemNeighbors().fit(X)
    state = model.state()
    assert [state[name].tolist() for name in ("starts", "items", "counts")] == [
        STARTS, ITEMS, COUNTS,
    ]  # fmt: skip
    ItemNeighbors()._adopt(model.state(), None, foreign=True)
    state[field] = np.array(value, dtype=state[field].dtype)
    with pytest.raises(ArtifactError, match=f"'{field}'"):
        ItemNeighbors()._adopt(state, None, foreign=True)


@parametrize_with_checks(
    [ItemNeighbors()],
    expected_failed_checks=lambda model: {},
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def test_deletions_and_additions_touch_no_other_record() -> None:
    X = _drawn()[0]
    X = vstack([csr_array(X)] * 2).toarray()  # no pair is of one user alone
    model = ItemNeighbors().fit(X)
    counts = model._pairs.counts
    report = model.delete([4, 5], digest=False)
    assert (report.action, report.rows_touched) == ("updated", 0)
    assert model._pairs.counts is counts  # subtracted in place
    report_of_add = model.add(X[4:6], ids=[4, 5], digest=False)
    assert (report_of_add.action, report_of_add.rows_touched) == ("updated", 0)
    assert model._pairs.counts is counts
