"""Records in Parquet files and on workers take additions, corrections and replacements."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from erasable import Records, load
from erasable.cluster import KMeans, QuantizedKMeans, _stored
from erasable.compose import ColumnTransformer
from erasable.core.errors import InvalidDataError, TooFewRecordsError
from erasable.core.grown_table import Grown
from erasable.core.moments import Moments
from erasable.ensemble import HistGradientBoostingClassifier
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder, OrdinalEncoder, SimpleImputer, StandardScaler
from erasable.utils._checks.files import files_showing
from erasable.utils._checks.reach import Marks, traces
from naming import named
from simulated_workers import Simulated, even, spread
from visits_table import BLOCKWISE, make

pytestmark = pytest.mark.filterwarnings("ignore")

N, STORED = 60, 48
OTHERS = {"label", "id", "weight"}
BY_SUMS = {
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer", "GaussianNB",
    "BernoulliNB", "MultinomialNB", "NearestCentroid", "Ridge", "LinearRegression", "PCA",
    "RandomFourierRidge", "ItemNeighbors", "LogisticRegression", "OneHotEncoder", "OrdinalEncoder",
}  # fmt: skip
"""Estimators that update their sums; others learn again."""


def numbers() -> pd.DataFrame:
    """Return whole numbers, which are counts and categories, too, with labels and weights."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(np.abs(np.rint(rng.normal(size=(N, 3)) * 4)), columns=list("abc"))
    return frame.assign(label=np.arange(N) % 3, id=np.arange(N), weight=np.arange(N) % 4 + 0.5)


def texts() -> pd.DataFrame:
    """Return text, numbers and whole numbers, with gaps; a text and a gap come later."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.choice(["x", "y", "zz"], N),
            "b": np.round(rng.normal(size=N), 2),
            "c": rng.integers(0, 5, N),
        }
    )
    frame.loc[[4, 20, 51], "a"] = None
    frame.loc[[7, 54], "b"] = np.nan
    frame.loc[52, "a"] = "new"
    return frame.assign(label=np.arange(N) % 3, id=np.arange(N))


def documents() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    words = [" ".join([*rng.choice(list("abcdefgh"), 4), f"word{i % 7}"]) for i in range(N)]
    return pd.DataFrame({"text": words, "label": 0, "id": np.arange(N)})


def needs_target(estimator: Any) -> bool:
    return bool(estimator.__sklearn_tags__().target_tags.required)


def in_files(estimator: Any, frame: pd.DataFrame, folder: Path, **uses: Any) -> Records:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    frame.to_parquet(path, row_group_size=13, index=False)
    target = "label" if needs_target(estimator) else None
    features = [name for name in frame if name not in OTHERS]
    return Records.from_parquet(path, ids="id", target=target, features=features, **uses)


def on_workers(estimator: Any, frame: pd.DataFrame, folder: Path) -> Records:
    table = pa.Table.from_pandas(frame.assign(person=frame["id"]), preserve_index=False)
    features = [name for name in frame if name not in OTHERS]
    records = spread(table, even(len(frame), 4), Simulated(2), features)
    records.groups = None
    if not needs_target(estimator):
        records.y = None
    return records


class Life:
    """A model of stored records, and a frame with the values that its records should have."""

    def __init__(
        self, estimator: Any, frame: pd.DataFrame, made: Callable[..., Records], folder: Path,
        **uses: Any,
    ) -> None:  # fmt: skip
        self.estimator, self.made, self.folder, self.uses = estimator, made, folder, uses
        self.frame, self.live = frame.copy(), list(range(STORED))
        self.did: list[str] = []
        self.model = self.fresh()

    def fresh(self) -> Any:
        left = self.frame.iloc[self.live]
        return clone(self.estimator).fit(self.made(self.estimator, left, self.folder, **self.uses))

    def given(self, rows: Sequence[int]) -> dict[str, Any]:
        own = self.frame.iloc[list(rows)]
        found: dict[str, Any] = {"X": own[[name for name in own if name not in OTHERS]]}
        if needs_target(self.estimator):
            found["y"] = own["label"].to_numpy()
        if self.uses:
            found["sample_weight"] = own["weight"].to_numpy()
        return found

    def tell(self, report: Any) -> None:
        self.did.append(report.action)
        assert self.model.digest() == self.fresh().digest(), self.did

    def add(self, rows: Sequence[int]) -> None:
        report = self.model.add(**self.given(rows), ids=list(rows))
        self.live += rows
        self.tell(report)

    def delete(self, rows: Sequence[int]) -> None:
        report = self.model.delete(rows)
        self.live = [row for row in self.live if row not in rows]
        self.tell(report)

    def correct(self, rows: Sequence[int], like: Sequence[int]) -> None:
        types = self.frame.dtypes.to_dict()
        columns = [name for name in self.frame if name not in OTHERS]
        self.frame.loc[list(rows), columns] = self.frame.loc[list(like), columns].to_numpy()
        self.frame = self.frame.astype(types)
        self.tell(self.model.correct(list(rows), **self.given(rows)))

    def replace(self, rows: Sequence[int], others: Sequence[int]) -> None:
        report = self.model.replace(list(rows), **self.given(others), ids=list(others))
        self.live = [row for row in self.live if row not in rows] + list(others)
        self.tell(report)

    def run(self) -> list[str]:
        self.add([48, 49, 50, 51, 52])
        self.delete([3, 52])
        self.correct([5, 50], like=[7, 8])
        self.replace([6, 51], others=[56, 57, 58])
        return self.did


@pytest.mark.parametrize("made", [in_files, on_workers], ids=["files", "workers"])
@pytest.mark.parametrize("name", sorted(BLOCKWISE))
def test_changes_give_what_a_fit_gives(name: str, made: Any, tmp_path: Path) -> None:
    estimator = make(name)
    if not estimator._can_read_blocks(remote=made is on_workers):
        pytest.skip(f"{name} learns from records in memory")
    did = Life(estimator, numbers(), made, tmp_path).run()
    if name in BY_SUMS:
        assert set(did) == {"updated"}


LEARNS_MEMBERS = ("Bagging", "Sharded", "Refit")


@pytest.mark.parametrize("name", [n for n in sorted(BLOCKWISE) if not n.startswith(LEARNS_MEMBERS)])
def test_one_that_follows_learns_again_only_where_it_must(name: str, tmp_path: Path) -> None:
    """No digest shows that an estimator learns again, so its reports are asked."""
    life = Life(make(name), numbers(), in_files, tmp_path)
    for row in range(3, 9):
        life.correct([row], like=[row + 30])
    assert any(each != "refit" for each in life.did), life.did


def test_one_that_always_learns_again_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: a flag against following what is stored."""
    monkeypatch.setattr(Ridge, "_adds_stored", False)
    with pytest.raises(AssertionError, match="refit"):
        test_one_that_follows_learns_again_only_where_it_must("Ridge", tmp_path)


@pytest.mark.parametrize("made", [in_files, on_workers], ids=["files", "workers"])
@pytest.mark.parametrize(
    "estimator",
    [KMeans(3, random_state=0), KMeans(2, tol=0.01, random_state=1), QuantizedKMeans(3, epsilon=4)],
    ids=named,
)
def test_clusters_are_updated(estimator: Any, made: Any, tmp_path: Path) -> None:
    """They learn again only where the grid or a seed is another one."""
    life = Life(estimator.set_params(random_state=0), numbers(), made, tmp_path)
    for row in range(STORED, STORED + 6):
        life.add([row])
        life.correct([row - 20], like=[row - 30])
        life.replace([row - 40], others=[row + 6])
        life.delete([row])
    assert sum(each != "refit" for each in life.did) > len(life.did) / 2, life.did


def test_an_arrival_that_no_race_sees_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: added records never become candidates."""
    monkeypatch.setattr(_stored, "admit", lambda *_: True)
    life = Life(KMeans(3, random_state=0), numbers(), in_files, tmp_path)
    with pytest.raises(AssertionError):
        life.add(list(range(STORED, N)))


TABLE = ColumnTransformer(
    [
        ("kind", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["a"]),
        ("rest", SimpleImputer(), ["b", "c"]),
    ]
)
BOOSTING = HistGradientBoostingClassifier(
    max_iter=3, random_state=0, categorical_features="from_dtype"
)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(TABLE, Ridge()),
        make_pipeline(TABLE, LogisticRegression()),
        make_pipeline(TABLE, StandardScaler()),
        BOOSTING,
    ],
    ids=named,
)
def test_text_and_gaps_are_added(estimator: Any, tmp_path: Path) -> None:
    Life(estimator, texts(), in_files, tmp_path).run()


GIVEN = [["zz", "y", "x", "new", np.nan], np.append(np.unique(texts()["b"].dropna()), np.nan)]
UPDATED = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", drop="first"),
    OneHotEncoder(categories=[*GIVEN, [0, 1, 2, 3, 4]]),
    OrdinalEncoder(),
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="most_frequent", missing_values="x", add_indicator=True),
    CountVectorizer(),
    CountVectorizer(ngram_range=(1, 2), max_features=12, min_df=2),
    CountVectorizer(vocabulary=["word3", "nowhere", "word1"], binary=True),
    TfidfVectorizer(max_df=9),
]
"""Estimators that update counts of text, numbers and gaps, which come and go."""


@pytest.mark.parametrize("made", [in_files, on_workers], ids=["files", "workers"])
@pytest.mark.parametrize("estimator", UPDATED, ids=named)
def test_counts_of_text_and_gaps_are_updated(estimator: Any, made: Any, tmp_path: Path) -> None:
    frame = documents() if isinstance(estimator, CountVectorizer) else texts()
    if estimator.get_params().get("missing_values") == "x":
        frame = frame.fillna({"a": "x", "b": 0.0})
    assert set(Life(estimator, frame, made, tmp_path).run()) == {"updated"}


def test_an_addition_to_stored_text_is_refused_as_a_whole(tmp_path: Path) -> None:
    life = Life(OneHotEncoder(categories=[["x", "y", "zz", np.nan], *GIVEN[1:], [0, 1, 2, 3, 4]]),
                texts(), in_files, tmp_path)  # fmt: skip
    before = life.model.digest()
    with pytest.raises(InvalidDataError, match="unknown categories in 1 values of columns 'a'"):
        life.model.add(**life.given([51, 52]), ids=[51, 52])
    assert life.model.digest() == before
    life.add([48, 49])


@pytest.mark.parametrize(
    "estimator", [StandardScaler(), GaussianNB(), LogisticRegression()], ids=named
)
def test_weights_are_added(estimator: Any, tmp_path: Path) -> None:
    did = Life(estimator, numbers(), in_files, tmp_path, sample_weight="weight").run()
    assert set(did) == {"updated"}


def test_a_model_is_kept_with_what_was_added(tmp_path: Path) -> None:
    life = Life(GaussianNB(), numbers(), in_files, tmp_path)
    life.add([48, 49, 50])
    life.model.save(tmp_path / "model", records=True)
    life.model = load(tmp_path / "model", records=True, trusted=True)
    life.delete([49])
    life.correct([50, 2], like=[7, 8])
    life.model.save(tmp_path / "model", records=True)
    life.model = load(tmp_path / "model", records=True, trusted=True)
    life.add([55])
    assert life.model.digest() == life.fresh().digest()


@pytest.mark.parametrize("made", [in_files, on_workers], ids=["files", "workers"])
@pytest.mark.parametrize("name", ["GaussianNB", "LogisticRegression", "KMeans"])
def test_additions_follow_one_another(name: str, made: Any, tmp_path: Path) -> None:
    life = Life(make(name), numbers(), made, tmp_path)
    for row in range(STORED, STORED + 4):
        life.add([row])
    life.delete([STORED, STORED + 2])
    life.add([STORED + 5])
    life.replace([STORED + 1, 3], others=[STORED + 6])


def test_a_table_of_stored_rows_forgets_what_was_added(tmp_path: Path) -> None:
    """A row in the files leaves before others are added, and these leave again."""
    frame, steps = numbers(), make_pipeline(OrdinalEncoder(), StandardScaler(), Ridge())
    held, others = frame.iloc[:STORED], frame.iloc[STORED:]
    model = clone(steps).fit(in_files(steps, held, tmp_path))
    model.delete([0])
    model.add(others[list("abc")], others["label"], ids=others["id"])
    model.delete(others["id"])
    left = held.iloc[1:]
    again = clone(steps).fit(left[list("abc")], left["label"], ids=left["id"])
    assert model.digest() == again.digest()


def test_groups_leave_with_what_was_added(tmp_path: Path) -> None:
    frame = numbers().assign(person=np.arange(N) // 4)
    frame.to_parquet(tmp_path / "some.parquet", index=False)
    features = ["a", "b", "c"]
    whole = Records.from_parquet(
        tmp_path / "some.parquet", ids="id", target="label", groups="person", features=features
    )
    frame.iloc[:46].to_parquet(tmp_path / "few.parquet", index=False)
    few = Records.from_parquet(
        tmp_path / "few.parquet", ids="id", target="label", groups="person", features=features
    )
    model, more = GaussianNB().fit(few), frame.iloc[46:]
    model.add(more[features], more["label"], ids=more["id"], groups=more["person"])
    model.delete(groups=[11])  # two of its records were added
    fresh = GaussianNB().fit(whole)
    fresh.delete(groups=[11])
    assert model.digest() == fresh.digest()


@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression()], ids=named)
@pytest.mark.parametrize("change", ["delete", "correct", "replace"])
def test_nothing_of_an_added_record_stays(change: str, estimator: Any, tmp_path: Path) -> None:
    life = Life(estimator, numbers(), in_files, tmp_path)
    marks = Marks("an added record", (4194301.0, 4194305.0, 4194309.0), ())
    life.frame.loc[50, ["a", "b", "c"]] = marks.values
    life.add([49, 50])
    there = traces(life.model, marks)
    assert there
    if change == "delete":
        life.delete([50])
    elif change == "correct":
        life.correct([50], like=[7])
    else:
        life.replace([50], others=[55])
    assert traces(life.model, marks) == set()
    life.model.save(tmp_path / "model", records=True)
    assert files_showing(tmp_path / "model", marks) == set()


@pytest.mark.parametrize("made", [in_files, on_workers], ids=["files", "workers"])
@pytest.mark.parametrize("estimator", [Ridge(), OneHotEncoder()], ids=named)
def test_records_are_replaced_by_none(estimator: Any, made: Any, tmp_path: Path) -> None:
    frame = texts() if isinstance(estimator, OneHotEncoder) else numbers()
    life = Life(estimator, frame, made, tmp_path)
    life.replace([1], others=[])
    life.add([48])
    life.replace([2, 48], others=[])


COPIES = {"pickle": lambda model: pickle.loads(pickle.dumps(model)), "deepcopy": copy.deepcopy}
"""Ways to a model of some of the rows of a stored table."""


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression()], ids=named)
def test_a_copy_keeps_nothing_of_what_leaves_it(estimator: Any, way: str, tmp_path: Path) -> None:
    life = Life(estimator, numbers(), in_files, tmp_path)
    marks = Marks("an added record", (4194301.0, 4194305.0, 4194309.0), ())
    life.frame.loc[50, ["a", "b", "c"]] = marks.values
    life.add([49, 50])
    life.delete([3])  # a copy has some of the rows
    life.model = COPIES[way](life.model)
    assert traces(life.model, marks)
    life.delete([50])
    assert traces(life.model, marks) == set()


def test_a_pickle_has_no_added_record_that_another_model_holds(tmp_path: Path) -> None:
    records = in_files(GaussianNB(), numbers().iloc[:STORED], tmp_path)
    models = [StandardScaler().fit(records), GaussianNB().fit(records)]
    marks = Marks("an added record", (4194301.0, 4194305.0, 4194309.0), ())
    given = pd.DataFrame([marks.values], columns=list("abc"))
    records.add(given, [0], ids=[50])
    models[0].delete([50])
    assert traces(pickle.loads(pickle.dumps(models[1])), marks)
    assert traces(pickle.loads(pickle.dumps(models[0])), marks) == set()


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize(
    "estimator", [OneHotEncoder(handle_unknown="ignore"), make_pipeline(TABLE, Ridge())], ids=named
)
def test_a_copy_of_stored_text_is_changed(estimator: Any, way: str, tmp_path: Path) -> None:
    life = Life(estimator, texts(), in_files, tmp_path)
    for row in (48, 49):
        life.delete(list(range(13 * (row - 48), 13 * (row - 47))))  # a row group
        life.model = COPIES[way](life.model)
        life.add([row, row + 2])
    life.model = COPIES[way](life.model)
    life.correct([50, 40], like=[7, 8])
    life.replace([41, 51], others=[56, 57, 58])


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_addition_that_fails_changes_nothing(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(StandardScaler(), numbers(), in_files, tmp_path)
    before = life.model.digest()

    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Moments, "accumulate", fail)
        with pytest.raises(error):
            life.model.add(**life.given([48, 49]), ids=[48, 49])
    assert life.model.digest() == before
    assert not isinstance(life.model._attached().records.matrix, Grown)
    life.add([48, 49])


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("a", 5, "column 'a' has a number; expected text"),
        ("b", "five", "the columns 'b' of X hold numbers where those of the records hold text"),
        ("c", 2.5, "column 'c' has 2.5; expected whole numbers"),
    ],
)
def test_types_are_those_of_the_stored_records(
    column: str, value: Any, told: str, tmp_path: Path
) -> None:
    life = Life(OrdinalEncoder(), texts(), in_files, tmp_path)
    before = life.model.digest()
    given = life.given([48, 49])
    given["X"] = given["X"].astype({column: type(value) if column == "c" else object})
    given["X"].loc[48, column] = value
    with pytest.raises(InvalidDataError, match=told):
        life.model.add(**given, ids=[48, 49])
    assert life.model.digest() == before


def test_numbers_that_float32_does_not_hold_are_refused(tmp_path: Path) -> None:
    frame = numbers().astype({name: np.float32 for name in "abc"})
    life = Life(StandardScaler(), frame, in_files, tmp_path)
    X = life.given([48])["X"].astype(np.float64)
    life.model.add(X, ids=[48])
    with pytest.raises(InvalidDataError, match="numbers that float32 does not hold"):
        life.model.add(X + 0.1, ids=[49])
    assert life.model.n_samples_seen_ == STORED + 1


def test_models_that_share_stored_records_follow_them(tmp_path: Path) -> None:
    frame = numbers()
    records = in_files(GaussianNB(), frame.iloc[:STORED], tmp_path)
    models = [StandardScaler().fit(records), GaussianNB().fit(records)]
    more = frame.iloc[STORED:]
    records.add(more[["a", "b", "c"]], more["label"], ids=more["id"])
    whole = in_files(GaussianNB(), frame, tmp_path)
    for model in models:
        assert model.digest() == clone(model).fit(whole).digest()


def test_a_table_that_loses_what_was_added_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: a table whose added rows are not read."""
    life = Life(GaussianNB(), numbers(), in_files, tmp_path)
    monkeypatch.setattr(Grown, "__getitem__", lambda self, rows: np.zeros((rows.size, 3)))
    with pytest.raises(AssertionError):
        life.add([48, 49])


def test_too_few_records_are_refused(tmp_path: Path) -> None:
    life = Life(StandardScaler(), numbers(), in_files, tmp_path)
    with pytest.raises(TooFewRecordsError):
        life.model.delete(range(STORED))
    life.add([48])
