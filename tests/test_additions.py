"""Lives of every estimator, with additions and corrections: at their end stands one fit."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.preprocessing import FunctionTransformer

from effort import examples
from erasable import load
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer
from erasable.core.errors import InvalidInputError, TooFewRecordsError
from erasable.core.records import Records
from erasable.decomposition import PCA
from erasable.ensemble import RandomForestClassifier, RandomForestRegressor, ShardedRegressor
from erasable.feature_extraction import TfidfVectorizer
from erasable.kernel import RandomFourierRidge
from erasable.linear_model import LogisticRegression, Ridge, SegmentedRegression
from erasable.naive_bayes import GaussianNB, MultinomialNB
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from erasable.refit import Refit
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.utils._checks.compare import fit
from erasable.utils._checks.data_sets import STANDARD, DataSet, suited
from law_instances import first_instances
from naming import named

PAGE = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "add-and-correct.md"
FIRST = first_instances()
COMPOSED = [
    make_pipeline(StandardScaler(), Ridge()),
    make_pipeline(MinMaxScaler(), StandardScaler(), GaussianNB()),
    make_pipeline(StandardScaler(), KNeighborsClassifier(2)),
    make_pipeline(make_pipeline(MaxAbsScaler()), PCA(2), Ridge()),
    make_pipeline(FunctionTransformer(np.abs), StandardScaler(quantize=True), KMeans(2)),
    make_pipeline(
        ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [1, 2])]),
        LogisticRegression(),
    ),
    make_pipeline(
        ColumnTransformer(
            [
                ("a", make_pipeline(SimpleImputer(), StandardScaler(quantize=True)), [0]),
                ("b", OneHotEncoder(handle_unknown="ignore"), [1]),
            ],
            remainder="passthrough",
        ),
        LogisticRegression(),
    ),
    make_pipeline(make_pipeline(FunctionTransformer(np.abs), RobustScaler()), GaussianNB()),
    make_pipeline(FunctionTransformer(np.abs), MaxAbsScaler(), DecisionTreeClassifier()),
    make_pipeline(StandardScaler(), RandomForestRegressor(5)),
    make_pipeline(OrdinalEncoder(), MinMaxScaler(), Ridge()),
    make_pipeline(StandardScaler(), ShardedRegressor(TheirRidge(), 3)),
    make_pipeline(StandardScaler(), Refit(TheirRidge())),
]
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
SEPARATED = next(data for data in STANDARD if data.name == "separated")
OFFSET = next(data for data in STANDARD if data.name == "timestamps")


class Life:
    """A model, and which values each of its records has: those of a row of a pool."""

    def __init__(self, estimator: Any, pool: DataSet, n: int) -> None:
        self.estimator = estimator
        (self.pool,) = suited([pool], estimator)
        self.values: dict[int, int] = {row: row for row in range(n)}
        self.model = self.fresh()

    def of(self, values: dict[int, int]) -> DataSet:
        ids = np.array(list(values), dtype=np.int64)
        taken = self.pool.take(np.array(list(values.values()), dtype=np.int64))
        return DataSet("life", taken.X, taken.y, ids, None, np.empty(0, dtype=np.int64))

    def fresh(self) -> Any:
        return fit(self.estimator, self.of(self.values))

    def act(self, kind: str, at: int, to: int) -> None:
        """Do one thing to the model, and to what is known of it."""
        ids = list(self.values)
        old, row = ids[at % len(ids)], to % len(self.pool)
        new = 1000 + to if 1000 + to not in self.values else max(self.values) + 1
        after = dict(self.values)
        data = self.of({new: row})
        if kind == "pickle":
            self.model = pickle.loads(pickle.dumps(self.model))
            return
        if kind == "save":
            with TemporaryDirectory() as folder:
                self.model.save(Path(folder) / "model", records=True)
                self.model = load(Path(folder) / "model", True, trusted=True)
            return
        if kind in ("delete", "replace"):
            del after[old]
        if kind in ("add", "replace"):
            after[new] = row
        if kind == "correct":
            after[old] = row
        try:
            if kind == "add":
                self.model.add(data.X, data.y, ids=data.ids)
            elif kind == "delete":
                self.model.delete([old])
            elif kind == "replace":
                self.model.replace([old], data.X, data.y, ids=data.ids)
            else:
                targets = self.model.__sklearn_tags__().target_tags.required
                self.model.correct([old], data.X, data.y if targets else None)
        except TooFewRecordsError:
            before, self.values = self.values, after
            with pytest.raises(TooFewRecordsError):
                self.fresh()
            self.values = before
        else:
            self.values = after

    def check(self) -> None:
        assert self.model.digest() == self.fresh().digest()
        self.model._info.digest = self.model._info.id_set = None
        assert self.model.digest() == self.fresh().digest()


ACTS = st.tuples(
    st.sampled_from(["add", "add", "delete", "correct", "replace", "pickle", "save"]),
    st.integers(0, 99),
    st.integers(0, 99),
)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pool", [SEPARATED, OFFSET], ids=lambda data: data.name)
@pytest.mark.parametrize("estimator", [*FIRST, *COMPOSED], ids=lambda e: " ".join(str(e).split()))
@settings(max_examples=examples(10), phases=PHASES, deadline=None)
@given(acts=st.lists(ACTS, min_size=1, max_size=6), n=st.integers(14, 20))
def test_any_life_ends_at_one_fit(estimator: Any, pool: DataSet, acts: list[Any], n: int) -> None:
    try:
        life = Life(estimator, pool, n)
    except (TooFewRecordsError, InvalidInputError):
        return
    for act in acts:
        life.act(*act)
    life.check()


# What takes another way through an addition: draws of trees that are full or not, nodes that keep
# their counts, categories that are dropped, windows of quantiles, words that leave the vocabulary.
LARGER = [
    DecisionTreeClassifier(n_thresholds=4),
    DecisionTreeClassifier(max_features=1, n_thresholds=3, min_samples_leaf=2),
    DecisionTreeRegressor(n_thresholds=6, max_depth=4),
    RandomForestClassifier(4, n_thresholds=5),
    RandomForestRegressor(3, bootstrap=False, min_samples_split=9),
    OneHotEncoder(drop="first"),
    OneHotEncoder(drop="if_binary", sparse_output=False),
    OrdinalEncoder(),
    RobustScaler(quantile_range=(5.0, 80.0)),
    SimpleImputer(strategy="median", add_indicator=True),
    SimpleImputer(strategy="most_frequent", add_indicator=True, keep_empty_features=True),
    LogisticRegression(C=0.1),
    LogisticRegression(fit_intercept=False, class_weight={0: 2.0}),
]


def large_table(seed: int, estimator: Any) -> tuple[Any, Any]:
    """Columns of many values and of few, a constant one, one of rare values, and gaps."""
    rng = np.random.default_rng(seed)
    n = 900
    rows = np.column_stack(
        [
            rng.normal(size=n),
            rng.integers(0, 5, n),
            np.zeros(n),
            rng.normal(size=n) * (rng.random(n) < 0.05),
            rng.integers(0, 60, n) / 8,
        ]
    )
    if estimator.__sklearn_tags__().input_tags.allow_nan:
        rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows, (rows[:, 1] > 2) + (np.nan_to_num(rows[:, 0]) > rng.normal(size=n))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", LARGER, ids=lambda e: " ".join(str(e).split()))
@settings(max_examples=examples(3), phases=PHASES, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.sampled_from([40, 700]))
def test_larger_lives_are_updated(estimator: Any, seed: int, n: int) -> None:
    """No model learns again in a life with batches of all sizes."""
    rows, targets = large_table(seed, estimator)
    targets[:3] = [0, 1, 2]  # these stay, so that no class is new, and no target beyond the others
    rng, made = np.random.default_rng(seed), {}
    if "random_state" in estimator.get_params():
        made = {"random_state": 0}
    model = clone(estimator).set_params(**made).fit(rows[:n], targets[:n])
    live = set(range(n))
    for _ in range(12):
        size = int(rng.choice([1, 1, 4, 30]))
        others = np.setdiff1d(np.arange(len(rows)), list(live))
        new = rng.choice(others, min(size, others.size), replace=False).tolist()
        mortal = sorted(live - {0, 1, 2})
        old = rng.choice(mortal, min(size, len(mortal) // 2), replace=False).tolist()
        kind = rng.choice(["add", "delete", "replace", "correct"])
        if kind == "add":
            report: Any = model.add(rows[new], targets[new], ids=new, digest=False)
            live |= set(new)
        elif kind == "delete":
            report = model.delete(old, digest=False)
            live -= set(old)
        elif kind == "replace":
            report = model.replace(old, rows[new], targets[new], ids=new, digest=False)
            live = live - set(old) | set(new)
        else:
            learns = model.__sklearn_tags__().target_tags.required
            model.correct(old, rows[::-1][old], targets[::-1][old] if learns else None)
            report = model.correct(old, rows[old], targets[old] if learns else None)
        assert report.action in ("updated", "none")
    ids = sorted(live)
    fresh = clone(estimator).set_params(**made).fit(rows[ids], targets[ids], ids=ids)
    assert model.digest() == fresh.digest()


TARGETED = [
    (SegmentedRegression(3), False),
    (SegmentedRegression(2, alpha=0.0, max_iter=4), False),
    (make_pipeline(StandardScaler(quantize=True), SegmentedRegression(3)), False),
    (RandomFourierRidge(12), False),
    (RandomFourierRidge(12), True),
    (Ridge(), True),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["numbers", "integers", "two targets"])
@pytest.mark.parametrize("case", TARGETED, ids=lambda case: f"{' '.join(str(case[0]).split())}")
@settings(max_examples=examples(3), phases=PHASES, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_lives_with_targets_of_numbers(case: tuple[Any, bool], kind: str, seed: int) -> None:
    """Segments that records move between, and weights, some of which are 0."""
    estimator, weighted = case
    rng, n = np.random.default_rng(seed), 240
    rows = rng.normal(size=(2 * n, 3)) + 5.0 * rng.integers(0, 3, (2 * n, 1))
    targets: Any = np.abs(rows[:, 0] - 5.0) + rows[:, 1]
    if kind == "integers":
        targets = np.rint(targets * 8).astype(np.int64)
    elif kind == "two targets":
        targets = np.column_stack([targets, rows[:, 2] ** 2])
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 2 * n)
    rows[:3], weights[:3] = [[-90.0] * 3, [90.0] * 3, [0.0] * 3], 3.0  # these stay
    targets[:2] = 2000, -2000
    model = _made(estimator)

    def values(ids: list[int]) -> dict[str, Any]:
        return {"sample_weight": weights[ids]} if weighted else {}

    first = list(range(n))
    model.fit(rows[:n], targets[:n], ids=np.arange(n), **values(first))
    live, actions = set(first), []
    for _ in range(16):
        size = int(rng.choice([1, 1, 1, 5]))
        new = rng.permutation(np.setdiff1d(np.arange(2 * n), list(live)))[:size].tolist()
        old = rng.permutation(sorted(live - {0, 1, 2}))[:size].tolist()
        act = rng.choice(["add", "add", "delete", "replace", "correct"])
        if act == "add":
            told = values(new)
            actions.append(model.add(rows[new], targets[new], ids=new, **told).action)
            live |= set(new)
        elif act == "delete":
            model.delete(old)
            live -= set(old)
        elif act == "replace":
            model.replace(old, rows[new], targets[new], ids=new, **values(new))
            live = live - set(old) | set(new)
        else:
            model.correct(old, rows[::-1][old], targets[::-1][old])
            model.correct(old, rows[old], targets[old])
    ids = sorted(live)
    fresh = _made(estimator).fit(rows[ids], targets[ids], ids=ids, **values(ids))
    assert model.digest() == fresh.digest()
    assert len(actions) < 4 or actions.count("refit") < len(actions)


def _made(estimator: Any) -> Any:
    names = [name for name in estimator.get_params() if name.endswith("random_state")]
    return clone(estimator).set_params(**dict.fromkeys(names, 0))


@pytest.mark.parametrize("estimator", COMPOSED[:3], ids=lambda e: " ".join(str(e).split()))
def test_a_window_stays_in_its_buffer(estimator: Any) -> None:
    """Rows that come take the places of rows that went."""
    life = Life(estimator, SEPARATED, 20)
    for step in range(30):
        life.act("replace", 0, step)
    life.check()
    records = life.model._held.records
    assert records.n_rows <= 20 + 1
    assert len(records) == 20


# -- what the page says ----------------------------------------------------------------------------


def action_of(estimator: Any) -> str:
    """Add a record among others to a model, and say what that was."""
    (data,) = suited([STANDARD[-1]], estimator)
    first, last = data.take(np.arange(120)), data.take(np.array([125]))
    last = DataSet(last.name, first.X[7:8], first.y[7:8], last.ids, last.groups, last.doomed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(estimator, first)
        told = {} if last.groups is None else {"groups": last.groups}
        return str(model.add(last.X, last.y, ids=last.ids, **told).action)


def test_the_page_says_which_estimators_learn_again() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    compositions = {"ColumnTransformer", "Pipeline"}
    found = {
        type(each).__name__: action_of(each)
        for each in FIRST
        if type(each).__name__ not in compositions
    }
    told = {name: action for name, action in rows if name in found}
    assert told == found


# -- types and forms -------------------------------------------------------------------------------

X = np.random.default_rng(5).normal(size=(12, 3))
Y = np.arange(12) % 3


def grown(make: Any, first: Any, then: Any) -> str:
    model = make().fit(*first[:-1], ids=first[-1])
    model.add(*then[:-1], ids=then[-1])
    return str(model.digest())


@pytest.mark.parametrize(("one", "two"), [("f4", "f8"), ("f8", "f4"), ("f4", "f4")])
@pytest.mark.parametrize("make", [lambda: Ridge(), lambda: KMeans(2, random_state=0)])
def test_types_of_numbers_are_those_of_one_array(make: Any, one: str, two: str) -> None:
    first, then = X[:8].astype(one), X[8:].astype(two)
    whole = np.concatenate([first, then])
    ids = [np.arange(8), np.arange(8, 12)]
    found = grown(make, (first, Y[:8], ids[0]), (then, Y[8:], ids[1]))
    assert found == make().fit(whole, Y).digest()


def test_integers_become_floats_where_targets_are_numbers() -> None:
    y = [*range(8), 0.5, 1.5, 2.0, 3.0]
    model = Ridge().fit(X[:8], np.arange(8)).add(X[8:], y[8:], ids=range(8, 12), digest=False)
    assert model.action == "refit"
    found = grown(Ridge, (X[:8], np.arange(8), range(8)), (X[8:], y[8:], range(8, 12)))
    assert found == Ridge().fit(X, np.array(y)).digest()
    with pytest.raises(InvalidInputError, match="GaussianNB expected one type"):
        GaussianNB().fit(X, Y).add(X[:1], [1.0], ids=[99])


def test_names_of_records_become_objects() -> None:
    ids = [*range(8), "a", "b", -5, 2**63 + 4]
    found = grown(Ridge, (X[:8], Y[:8], ids[:8]), (X[8:], Y[8:], ids[8:]))
    assert found == Ridge().fit(X, Y, ids=ids).digest()


def test_weights_are_1_where_there_were_none() -> None:
    model = Ridge().fit(X[:8], Y[:8])
    model.add(X[8:], Y[8:], ids=range(8, 12), sample_weight=[1.0, 2.0, 0.0, 3.0])
    weights = [*[1.0] * 8, 1.0, 2.0, 0.0, 3.0]
    assert model.digest() == Ridge().fit(X, Y, weights).digest()
    model.correct([9], sample_weight=[5.0])
    weights[9] = 5.0
    assert model.digest() == Ridge().fit(X, Y, weights).digest()


def test_groups_are_those_of_one_fit() -> None:
    groups = np.arange(12) // 2
    make = lambda: ShardedRegressor(TheirRidge(), 3, random_state=0)  # noqa: E731
    model = make().fit(X[:8], Y[:8], groups=groups[:8])
    model.add(X[8:], Y[8:], ids=range(8, 12), groups=groups[8:])
    assert model.digest() == make().fit(X, Y, groups=groups).digest()
    model.delete(groups=[5])
    assert model.ids_.tolist() == list(range(10))


def test_no_rows_are_no_change() -> None:
    model = Ridge().fit(X, Y)
    assert model.add(X[:0], Y[:0], ids=[]).action == "none"
    assert model.replace([], X[:0], Y[:0], ids=[]).action == "none"
    assert model.replace([3], X[:0], Y[:0], ids=[]).action == "updated"
    kept = np.delete(np.arange(12), 3)
    assert model.digest() == Ridge().fit(X[kept], Y[kept], ids=kept).digest()


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"ids": [3]}, r"1 of the ids is there already: 3; expected new ones"),
        ({"X": X[:2], "y": Y[:2], "ids": [50, 50]}, r"1 of the ids is repeated"),
        ({"ids": None}, r"records were added without ids"),
        ({"X": X[:1, :2]}, r"X has 2 columns; expected 3"),
        ({"y": None}, r"y is missing"),
        ({"y": ["a"]}, r"y holds strings; expected integers"),
        ({"X": [[1.0, np.nan, 2.0]]}, r"NaN"),
        ({"X": [["a", "b", "c"]]}, r"a table of text; expected a table of numbers"),
        ({"groups": [1]}, r"the records came without groups"),
        ({"X": np.full((1, 3), 1e200)}, r"2\*\*480"),
        ({"sample_weight": [-1.0]}, r"negative"),
    ],
)
def test_bad_additions_change_nothing(told: dict[str, Any], message: str) -> None:
    model = GaussianNB().fit(X, Y)
    digest = model.digest()
    given: dict[str, Any] = {"X": X[:1], "y": Y[:1], "ids": [50], **told}
    with pytest.raises(InvalidInputError, match=message):
        model.add(given.pop("X"), given.pop("y"), **given)
    assert model.digest() == digest
    assert model.ids_.tolist() == list(range(12))
    model._info.digest = model._info.id_set = None
    assert model.digest() == digest


@pytest.mark.parametrize(
    "estimator", [e for e in FIRST if not e.__sklearn_tags__().target_tags.required], ids=named
)
def test_targets_alone_are_no_correction_of_a_model_without(estimator: Any) -> None:
    life = Life(estimator, SEPARATED, 20)
    before = life.model.digest()
    with pytest.raises(InvalidInputError, match=r"given y alone, and \w+ learns from no targets"):
        life.model.correct([3], y=[1.0])
    assert life.model.digest() == before


def test_a_class_that_was_left_out_is_refused() -> None:
    model = GaussianNB(classes=[0, 1, 2]).fit(X, Y)
    digest = model.digest()
    with pytest.raises(InvalidInputError, match="classes"):
        model.add(X[:1], [7], ids=[50])
    assert model.digest() == digest
    open_to_all = GaussianNB().fit(X, Y)
    assert open_to_all.add(X[:1], [7], ids=[50]).action == "refit"
    assert open_to_all.classes_.tolist() == [0, 1, 2, 7]


def test_who_still_holds_a_record_is_named() -> None:
    records = Records(X, Y)
    one, two = GaussianNB().fit(records), Ridge().fit(records)
    one.delete([4])
    with pytest.raises(InvalidInputError, match=r"deleted, and still held by Ridge"):
        records.add(X[:1], Y[:1], ids=[4])
    with pytest.raises(InvalidInputError, match=r"shared with Ridge; .* call records.add"):
        one.add(X[:1], Y[:1], ids=[50])
    two.delete([4])
    assert [each.action for each in records.add(X[:1], Y[:1], ids=[4])] == ["updated", "updated"]
    assert one.ids_.tolist() == two.ids_.tolist()


def test_a_model_without_records_refuses() -> None:
    served = Ridge().fit(X, Y)
    step = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)[0]
    served._held = None
    for model in (served, step):
        with pytest.raises(RuntimeError, match="records"):
            model.add(X[:1], Y[:1], ids=[50])


def test_buffers_that_are_left_are_overwritten() -> None:
    records = Records(X, Y, ids=[f"visit-{row}" for row in range(12)])
    left = records.matrix, records.y, records.ids
    model = Ridge().fit(records)
    model.add(X[:1], Y[:1], ids=["new"])
    assert all(not (array != ("" if array.dtype == object else 0)).any() for array in left)
    buffer = records.matrix.base
    model.add(X[:1], Y[:1], ids=["newer"])
    assert records.matrix.base is buffer


# -- other kinds of records ------------------------------------------------------------------------

WORDS = [
    " ".join(2 * letter for letter in letters)
    for letters in ("abc", "bcd", "cd", "aad", "eb", "ace", "dd", "b", "cef", "fa")
]


@pytest.mark.parametrize("make", [lambda: Ridge(), lambda: MultinomialNB(), lambda: MaxAbsScaler()])
def test_sparse_records_grow(make: Any) -> None:
    whole = csr_array(np.abs(X) * (X > 0.3))
    model = make().fit(whole[:8], Y[:8])
    model.add(whole[8:], Y[8:], ids=range(8, 12))
    model.replace([2], whole[[2]], Y[[2]], ids=[2])
    assert model.digest() == make().fit(whole, Y).digest()
    model.correct([3], whole[[4]])
    rows = [*range(3), 4, *range(4, 12)]
    assert model.digest() == make().fit(whole[rows], Y).digest()
    with pytest.raises(InvalidInputError, match="a table of numbers; expected a sparse matrix"):
        model.add(X[:1], Y[:1], ids=[50])


def test_a_sparse_window_stays_in_its_place() -> None:
    rows = csr_array(np.abs(np.tile(X, (8, 1))) * (np.tile(X, (8, 1)) > 0.3))
    model = MaxAbsScaler().fit(rows[:12])
    for at in range(60):
        model.replace([at], rows[[12 + at]], ids=[12 + at])
    records = model._held.records
    assert records.n_rows <= 13
    assert records.matrix.nnz <= rows[60:72].nnz + rows[72:73].nnz
    assert model.digest() == MaxAbsScaler().fit(rows[60:72], ids=range(60, 72)).digest()


@pytest.mark.parametrize(
    "make",
    [
        lambda: TfidfVectorizer(),
        lambda: make_pipeline(TfidfVectorizer(), MultinomialNB()),
        lambda: make_pipeline(TfidfVectorizer(quantize=True), LogisticRegression()),
    ],
)
def test_documents_with_new_words(make: Any) -> None:
    y = np.arange(10) % 2
    model = make().fit(WORDS[:7], y[:7])
    model.add(WORDS[7:], y[7:], ids=range(7, 10))
    assert model.digest() == make().fit(WORDS, y).digest()
    model.correct([0], ["xx yy zz"])
    assert model.digest() == make().fit(["xx yy zz", *WORDS[1:]], y).digest()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library: str) -> None:
    frames = pytest.importorskip(library)
    columns = {"town": list("abcabdabcdae"), "size": X[:, 0].tolist(), "id": list(range(12))}

    def frame(rows: Any) -> Any:
        return frames.DataFrame({name: [of[i] for i in rows] for name, of in columns.items()})

    def make() -> Any:
        parts = [
            ("town", OneHotEncoder(sparse_output=False), ["town"]),
            ("size", StandardScaler(), ["size"]),
        ]
        return make_pipeline(ColumnTransformer(parts), Ridge())

    model = make().fit(frame(range(8)), Y[:8], ids="id")
    model.add(frame(range(8, 12)), Y[8:], ids="id")
    assert model.digest() == make().fit(frame(range(12)), Y, ids="id").digest()
    with pytest.raises(InvalidInputError):
        model.add(frame([0])[["size", "town", "id"]], Y[:1], ids="id")
    with pytest.raises(InvalidInputError, match="names"):
        model.add([["a", 1.0]], Y[:1], ids=[50])


def test_records_beside_a_file(tmp_path: Path) -> None:
    for make in (
        Ridge,
        lambda: KNeighborsClassifier(2),
        lambda: make_pipeline(MinMaxScaler(), PCA()),
    ):
        model = make().fit(X[:8], Y[:8])
        model.save(tmp_path / "model", records=True)
        for row in range(8, 12):
            model = load(tmp_path / "model", True)
            model.add(X[[row]], Y[[row]], ids=[row])
            model.delete([row - 8])
            model.save(tmp_path / "model", records=True)
        fresh = make().fit(X[4:], Y[4:], ids=range(4, 12))
        assert load(tmp_path / "model", True).digest() == fresh.digest()
        fresh.save(tmp_path / "other")
        assert (tmp_path / "other").read_bytes() == (tmp_path / "model").read_bytes()


# -- partial_fit -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [GaussianNB, MultinomialNB, StandardScaler, MaxAbsScaler])
def test_partial_fit_is_one_fit(make: Any) -> None:
    rows, classifies = np.abs(X), issubclass(make, GaussianNB | MultinomialNB)
    more = {"classes": [0, 1, 2]} if classifies else {}
    model = make()
    for part in (slice(8, 12), slice(3), slice(3, 8)):
        model.partial_fit(rows[part], Y[part], ids=np.arange(12)[part], **more)
    assert model.digest() == make().fit(rows, Y if classifies else None).digest()
    with pytest.raises(InvalidInputError, match="ids are missing"):
        model.partial_fit(rows[:1], Y[:1])
    with pytest.raises(InvalidInputError, match="already"):
        model.partial_fit(rows[:1], Y[:1], ids=[3])


def test_partial_fit_refuses_other_classes() -> None:
    model = GaussianNB()
    with pytest.raises(InvalidInputError, match=r"1 classes that are not among classes=: '2'"):
        model.partial_fit(X, Y, classes=[0, 1], ids=range(12))
    assert not hasattr(model, "classes_")
