"""No value of a departed record is left, whatever the change and the composition.

Every estimator, alone and behind steps that make tables, lives through deletions, additions,
corrections and replacements. After each change the values and ids of all records that left are
looked for in what can be reached from the model, in its pickle and state, and in its files. What a
fit on the records that are there shows as well is a coincidence.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from effort import SEED, THOROUGH, few
from erasable import load
from erasable.cluster import DivideAndConquerKMeans, KMeans
from erasable.cluster._tree import Merge
from erasable.compose import ColumnTransformer
from erasable.core.matrices import blank_rows
from erasable.core.persistent import Persistent
from erasable.core.values import Accepts
from erasable.ensemble import BaggingRegressor, ShardedRegressor
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import CategoricalNB
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import _tables, make_pipeline
from erasable.pipeline._engine import Engine, KeptTables
from erasable.preprocessing import (
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    SimpleImputer,
    StandardScaler,
)
from erasable.utils._checks.compare import fit
from erasable.utils._checks.data_sets import DataSet, suited
from erasable.utils._checks.files import files_showing
from erasable.utils._checks.reach import Marks, reachable, traces
from law_instances import first_instances, other_instances
from naming import named

pytestmark = pytest.mark.filterwarnings("ignore")

N, POOL = 14, 40
EVENTS = ["delete 1", "add 1", "delete 1", "correct 1", "load 0", "add 3", "delete 2", "replace 1",
          "load 0", "correct 2", "delete 1"]  # fmt: skip
KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "float64": ("marked", lambda X: X),
    "float32": ("marked", lambda X: X.astype(np.float32)),
    "words": ("marked, string ids", lambda X: X),  # where an estimator takes words
    "text beside numbers": ("marked", lambda X: _with_text(X)),
}


def _with_text(X: Any) -> Any:
    table = X.astype(object)
    table[:, 0] = [f"kind{int(cell)}" for cell in X[:, 0]]
    return table


class Life:
    """A model, which row of a pool each of its records has, and what departed."""

    def __init__(self, estimator: Any, kind: str, seed: int, folder: Path) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.estimator, self.path = estimator, folder / "model"
        # Odd numbers of 22 bits, which float32 and every grid hold unchanged.
        self.X = 2.0 * rng.integers(2**21, 2**22, (POOL, 3)) + 1.0
        self.X[:, 0] = rng.integers(0, 3, POOL)
        self.X[::2, 0] = 10 + np.arange(POOL)[::2]  # categories of one record
        self.y = 2.0 * rng.integers(2**21, 2**22, POOL) + 1.0
        ids = rng.integers(2**61, 2**62, POOL)
        name, made = KINDS[kind]
        pool = DataSet(name, made(self.X), self.y, ids, None, np.empty(0, dtype=np.int64))
        (self.pool,) = suited([pool], estimator)
        self.has_target = estimator.__sklearn_tags__().target_tags.required
        self.rows = {row: row for row in range(N)}
        self.unused = list(range(N, POOL))
        self.ids: set[int] = set()
        self.values: set[int] = set()
        self.model = fit(estimator, self.of(self.rows))

    def of(self, rows: dict[int, int]) -> DataSet:
        values = list(rows.values())
        taken = self.pool.take(np.array(values))
        return DataSet("left", taken.X, taken.y, self.pool.ids[list(rows)], None, taken.doomed)

    def act(self, event: str) -> None:
        kind, n = event.split()[0], int(event.split()[1])
        if kind == "load":
            self.model.save(self.path, records=True)
            self.model = load(self.path, records=True, trusted=True)
            return
        old = self.rng.choice(list(self.rows), n, replace=False).tolist() if kind != "add" else []
        new = [self.unused.pop() for _ in range(n)] if kind != "delete" else []
        given = self.pool.take(np.array(new, dtype=np.int64))
        after = dict(self.rows)
        if kind == "correct":
            after.update(zip(old, new, strict=True))
            y = given.y if self.has_target else None
            self.model.correct(self.pool.ids[old], given.X, y)
        else:
            after = {id: row for id, row in after.items() if id not in old}
            after.update(zip(new, new, strict=True))
            if kind == "delete":
                self.model.delete(self.pool.ids[old])
            elif kind == "add":
                self.model.add(given.X, given.y, ids=given.ids)
            else:
                self.model.replace(self.pool.ids[old], given.X, given.y, ids=given.ids)
        self.ids |= self.rows.keys() - after.keys()
        self.values |= set(self.rows.values()) - set(after.values())
        self.rows = after

    def left(self) -> set[str]:
        """Return where a departed record is still to be found."""
        if not self.values:
            return set()
        gone = list(self.values)
        values = (*self.X[gone, 1:].ravel().tolist(), *self.y[gone].tolist())
        ids = self.pool.ids[list(self.ids)].tolist()
        marks = Marks("a record that never was", values, tuple(ids))
        found = self._shown(self.model, self.path, marks)
        if found:
            fresh = fit(self.estimator, self.of(self.rows))
            found -= self._shown(fresh, self.path.with_name("fresh"), marks)
        return found

    @staticmethod
    def _shown(model: Any, path: Path, marks: Marks) -> set[str]:
        model.save(path, records=True)
        return traces(model, marks) | files_showing(path, marks)


def _behind(estimator: Any, *, sparse: bool = False) -> Any:
    """Put an estimator behind a table whose columns come and go with categories."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=sparse)
    return make_pipeline(
        ColumnTransformer([("kind", encoder, [0])], remainder="passthrough"), clone(estimator)
    )


FIRST = first_instances()
TABLES = [  # of any numbers: a CategoricalNB counts as many categories as the largest says
    each for each in FIRST if not (Accepts.of(each).documents or isinstance(each, CategoricalNB))
]
SPARSE = [each for each in FIRST if each.__sklearn_tags__().input_tags.sparse]
TREE = DivideAndConquerKMeans(2, width=2, height=2)
WORDS = make_pipeline(
    SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"), Ridge()
)
CODES = make_pipeline(
    make_pipeline(SimpleImputer(strategy="constant")), OrdinalEncoder(), KNeighborsClassifier(2)
)
SIDE = ColumnTransformer(
    [("kind", OneHotEncoder(sparse_output=False), [0]), ("rest", StandardScaler(), [1, 2])]
)
COMPOSED = [
    *((_behind(each), "float64") for each in TABLES),
    *((_behind(each, sparse=True), "float64") for each in SPARSE),
    *((_behind(each), "text beside numbers") for each in (Ridge(), KMeans(2), Ridge())),
    (make_pipeline(make_pipeline(_behind(StandardScaler())), KNeighborsClassifier(2)), "float64"),
    (make_pipeline(SIDE, SimpleImputer(), LogisticRegression()), "float32"),
    (ShardedRegressor(_behind(Ridge()), 2), "float64"),
    (BaggingRegressor(_behind(Ridge()), 2, bootstrap=False, max_samples=0.7), "float64"),
    (ShardedRegressor(WORDS, 2), "words"),
    (WORDS, "words"),
    (CODES, "words"),
]
ALONE = [
    *((each, kind) for each in [*FIRST, TREE] for kind in ("float64", "float32")),
    *((each, "words") for each in FIRST if Accepts.of(each).objects or Accepts.of(each).documents),
    # A class, of which some have a prior, may leave with its last record.
    *((each, "float64") for each in other_instances() if "prior" not in repr(each)),
]


def _live(estimator: Any, kind: str, seed: int, folder: Path) -> dict[str, set[str]]:
    """Return what is left after which event of a life, and compare the model at its end."""
    life, found = Life(estimator, kind, seed, folder), {}
    events = EVENTS if seed == 0 else life.rng.permutation(EVENTS).tolist()
    for at, event in enumerate(events):
        life.act(event)
        if left := life.left():
            found[f"{at}: {event}"] = left
    assert life.model.digest() == fit(estimator, life.of(life.rows)).digest()
    return found


@pytest.mark.thorough
@pytest.mark.sampled(24)
@pytest.mark.parametrize(("estimator", "kind"), [*COMPOSED, *ALONE], ids=named)
def test_nothing_of_a_departed_record_is_left(estimator: Any, kind: str, tmp_path: Path) -> None:
    assert _live(estimator, kind, SEED if THOROUGH else 0, tmp_path) == {}


def _of_an_emptied_node(seed: int, folder: Path) -> set[str]:
    """Return what a tree of height 2 keeps of five records of eight."""
    rng = np.random.default_rng(seed)
    X = (2.0 * rng.integers(2**21, 2**22, (8, 2)) + 1.0).astype(np.float32)
    ids, gone = rng.integers(2**61, 2**62, 8), rng.permutation(8)[:5]
    tree = clone(TREE).set_params(random_state=seed)
    marks = Marks(
        "a record that never was", tuple(X[gone].ravel().tolist()), tuple(ids[gone].tolist())
    )
    fresh = clone(tree).fit(np.delete(X, gone, axis=0), ids=np.delete(ids, gone))
    model = tree.fit(X, ids=ids)
    model.delete(ids[gone])
    return Life._shown(model, folder / "model", marks) - Life._shown(fresh, folder / "fresh", marks)


@pytest.mark.thorough
def test_a_node_below_which_all_left_keeps_nothing(tmp_path: Path) -> None:
    for seed in range(few(9)):
        assert _of_an_emptied_node(seed, tmp_path) == set()


# -- negative controls -----------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_grid_that_stays_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Merge.fit

    def keeping(self: Merge, children: Any, weighted: bool) -> int:
        before, n = self.grid, own(self, children, weighted)
        self.grid = self.grid or before
        return n

    monkeypatch.setattr(Merge, "fit", keeping)
    found = [_of_an_emptied_node(seed, tmp_path) for seed in range(few(9))]
    assert any(any("grid" in place for place in places) for places in found)


def test_room_of_a_table_that_was_replaced_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeptTables, "_leave", lambda self, node: None)
    found = _live(_behind(Ridge()), "float64", 0, tmp_path)
    assert any("_room" in place for places in found.values() for place in places)
    assert any("the file" in place for places in found.values() for place in places)


def test_room_of_objects_in_files_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeptTables, "_kept_attributes", Persistent._kept_attributes)
    assert _live(WORDS, "words", 0, tmp_path)


@pytest.mark.parametrize("owns", [True, False])
def test_a_small_sparse_table_lies_in_its_room(owns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy copies an array that is less than half of its buffer; values stay in the buffer."""
    if not owns:  # the negative control
        monkeypatch.setattr(
            _tables, "csr_of", lambda *arrays: csr_array(arrays[:3], shape=arrays[3])
        )
    scratch: dict[str, Any] = {}
    table = csr_array(np.array([[1.0, 2.0], [0.0, 0.0]]))
    table = _tables.filled(table, np.array([1]), csr_array(np.array([[3.0, 4.0]])), scratch)
    table = _tables.lengthened(table, 3, scratch)
    assert table.toarray().tolist() == [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]
    blank_rows(table, np.array([0, 1]))
    assert bool(scratch["data"].any()) is not owns


@pytest.mark.parametrize("keeps", [False, True])
def test_members_that_get_their_records_again_look_at_these(
    keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was interrupted while members got their records gives all of them copies once more."""
    if keeps:  # the negative control
        attach = Engine._attach

        def keeping(self: Engine, part: Any) -> None:
            before = [(each.step, each.step._accelerator) for each in part._layout.learners]
            attach(self, part)
            for step, accelerator in before:
                step._accelerator = accelerator

        monkeypatch.setattr(Engine, "_attach", keeping)
    X = np.arange(1.0, 61.0).reshape(20, 3) / 7.0
    pair = make_pipeline(StandardScaler(), Ridge())
    model = ShardedRegressor(pair, 2, random_state=0).fit(X, X[:, 0])
    model = copy.deepcopy(model)
    for _ in range(2):
        model._reattach()
    model.delete([3])
    assert _shows(model, X[3]) is keeps


def _shows(model: Any, values: Any) -> bool:
    """Tell whether an array that can be reached from a model has one of some values."""
    arrays = [thing for _, thing in reachable(model) if isinstance(thing, np.ndarray)]
    return any(each.dtype == float and bool(np.isin(values, each).any()) for each in arrays)


@pytest.mark.parametrize("how", ["zeros", "twice"])
@pytest.mark.parametrize("keeps", [False, True])
def test_no_value_is_left_behind_those_of_a_sparse_table(
    how: str, keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SciPy moves values to the front where zeros or twins go, and keeps what was behind them."""
    if keeps:  # the negative control
        monkeypatch.setattr(csr_array, "copy", lambda self: self)
    n, last = 400, 7.123456789
    data, columns = np.arange(1.0, 2 * n + 1), np.tile([0, 1], n)
    data[0], data[-1] = 0.0 if how == "zeros" else 5.0, last
    columns[1] = 0 if how == "twice" else 1
    X = csr_array((data, columns, np.arange(0, 2 * n + 1, 2)), shape=(n, 2))
    model = MaxAbsScaler().fit(X)
    model.delete([n - 1])
    model.save(tmp_path / "model", records=True)
    files = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    in_files = any(np.float64(last).tobytes() in each for each in files)
    assert (_shows(model, [last]), in_files) == (keeps, keeps)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_sparse_table_from_files_is_not_moved_together(keeps: bool, tmp_path: Path) -> None:
    """SciPy does so where it finds the same column twice in a row, as in one that was erased."""
    last, X = 7.123456789, np.arange(1.0, 801.0).reshape(400, 2)
    X[-1, -1] = last
    MaxAbsScaler().fit(csr_array(X)).save(tmp_path / "model", records=True)
    model = load(tmp_path / "model", True)
    model.delete([0])
    if keeps:  # the negative control
        model._held.records.matrix.has_canonical_format = False
    model._held.records.matrix.sum_duplicates()
    model.delete([399])
    assert _shows(model, [last]) is keeps
