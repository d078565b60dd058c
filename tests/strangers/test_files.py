"""Files whose fields were changed: refused, or models that do no harm; a few hundred of them.

`tests/soak/files.py` uses ten thousand, in processes of their own.
"""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

import erasable
from erasable.cluster import DBSCAN, KMeans
from erasable.compose import ColumnTransformer
from erasable.core._schema import Anything, Fields
from erasable.core.artifact import read_artifact
from erasable.core.errors import ArtifactError
from erasable.core.estimator import Erasable
from erasable.decomposition import PCA
from erasable.ensemble import RandomForestClassifier
from erasable.feature_extraction import TfidfVectorizer
from erasable.kernel import NadarayaWatson
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import CategoricalNB
from erasable.neighbors import KernelDensity, KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from erasable.tree import DecisionTreeClassifier
from strangers.cases import Case, cases, prepare
from strangers.using import hold, mutated, rewritten, without_digest

FILES, EACH = 600, 50


@pytest.fixture(scope="module")
def prepared() -> list[Case]:
    return [prepare(case) for case in cases()]


def test_every_estimator_declares_a_schema_that_its_states_fit(prepared: list[Case]) -> None:
    used = set()
    for case in prepared:
        assert hold(case, case.file) is None, case.name
        model = erasable.load(io.BytesIO(case.file), case.records())
        parts = model.get_params(deep=True).values()
        for part in (model, *(part for part in parts if isinstance(part, Erasable))):
            if hasattr(part, "n_features_in_"):
                assert part._schema() is not None, case.name
                used.add(type(part))
    assert used >= {cls for _, cls, _ in erasable.all_estimators()}


@pytest.mark.parametrize("first", range(0, FILES, EACH))
def test_a_changed_file_is_refused_or_does_no_harm(first: int, prepared: list[Case]) -> None:
    own = [case for case in prepared if not case.name.startswith("scikit-learn")]
    failed = []
    for number in range(first, first + EACH):
        case = own[(number * 7) % len(own)]
        file, told = mutated(case, 17, number)
        wrong = hold(case, file)
        if wrong is not None:
            failed.append(f"{number}: {case.name}: {told}\n    {wrong}")
    assert not failed, "\n".join(failed)


X = np.arange(24.0).reshape(8, 3) % 7
Y = np.arange(8) % 2
GAPPED = np.where(X > 4, np.nan, X)
TEXTS = ["ink elm", "elm oak", "oak", "fir ink", "ash", "yew elm", "ash ash", "oak fir"]


def _set(*path: Any, to: Any) -> Any:
    def change(state: dict[str, Any]) -> None:
        *names, last = path
        for name in names:
            state = state[name]
        state[last] = to

    return change


CRAFTED = [
    (TfidfVectorizer(), TEXTS, _set("document_counts", 0, to=-5), "document_counts"),
    (TfidfVectorizer(), TEXTS, _set("document_counts", 0, to=9), "document_counts"),
    (TfidfVectorizer(), TEXTS, _set("n_features", to=2), "n_features"),
    (LogisticRegression(), X, _set("coefficients", (0, 0), to=np.nan), "coefficients"),
    (LogisticRegression(), X, _set("coefficients", (0, 0), to=np.inf), "coefficients"),
    (LogisticRegression(), X, _set("columns", "top", 0, to=2**40), "columns.top"),
    (OrdinalEncoder(), X, _set("n_features", to=10**9), "is_text"),
    (OrdinalEncoder(), X, _set("sizes", 0, to=-1), "sizes"),
    (RandomForestClassifier(2), X, _set("trees", "features", 0, to=3), "trees.features"),
    (RandomForestClassifier(2), X, _set("trees", "features", 0, to=-1), "trees.features"),
    (RandomForestClassifier(2), X, _set("n_features", to=10**9), "n_features"),
    *(
        (DecisionTreeClassifier(), GAPPED, change, "trees.gap_sides")
        for change in (
            _set("trees", "gap_sides", 0, to=3),
            _set("trees", "gap_sides", slice(None), to=0),
            _set("trees", "gap_sides", to=np.ones(2)),
            _set("trees", "gap_sides", to=np.ones(1, np.uint8)),
        )
    ),
    (CategoricalNB(), X, _set("n_features", to=10**9), "n_categories"),
    (Ridge(), X, _set("params", "alpha", to=np.zeros((2, 3))), "alpha"),
    (KNeighborsRegressor(2), X, _set("records", "X", (0, 0), to=np.nan), "records.X"),
    (KNeighborsRegressor(2), X, _set("records", "y", to=np.zeros(3)), "records.y"),
    (KernelDensity(), X, _set("records", "weights", 0, to=-1.0), "records.weights"),
    (KernelDensity(), X, _set("records", "weights", slice(None), to=0.0), "records.weights"),
    (DBSCAN(), X, _set("records", "weights", 0, to=-1.0), "records.weights"),
    (KMeans(2), X, _set("path", "centers", (0, 0, 0), to=np.inf), "path.centers"),
    (KMeans(2), X, _set("params", "n_clusters", to=3), "path.centers"),
    (StandardScaler(), X, _set("moments", "hh", 0, to=0), "moments.hh"),
    (PCA(2), X, _set("totals", 3, to=-1.0), "totals"),
    (PCA(2), X, _set("n_records", to=1), "n_records"),
    (MinMaxScaler(), X, _set("data_max", 0, to=-9.0), "data_max"),
    (MinMaxScaler(), X, _set("seed", to=3), "seed"),
    (MinMaxScaler(), X, _set("record_set", to=np.zeros(2)), "record_set"),
    (MinMaxScaler(), X, _set("more", to=1), "more"),
    (NadarayaWatson(), X, _set("params", "kernel", to="a"), "kernel"),
    (MinMaxScaler(), X, _set("params", to={}), "params.clip"),
    (
        make_pipeline(MinMaxScaler(), MaxAbsScaler()),
        X,
        _set("steps", "minmaxscaler", "n_records", to=3),
        "steps.minmaxscaler.n_records",
    ),
    (
        make_pipeline(MinMaxScaler(), KMeans(2)),
        X,
        _set("n_features", to=4),
        "steps.minmaxscaler.n_features",
    ),
]


@pytest.mark.parametrize(("model", "X", "change", "field"), CRAFTED)
def test_the_message_names_the_field(model: Any, X: Any, change: Any, field: str) -> None:
    case = prepare(Case("", model, X, Y))
    file = rewritten(case.file, change)
    with pytest.raises(ArtifactError, match=f"'{field}"):
        erasable.load(io.BytesIO(file))
    assert hold(case, file) is None


def test_a_schema_that_misses_a_field_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    case = prepare(Case("", RobustScaler(), X, Y))
    unchanged = RobustScaler._schema

    def loose(model: Any) -> Fields:
        return Fields({"quantiles": Anything()})

    def short(model: Any) -> Fields:
        return Fields({})

    found = {}
    for name, schema in (("as it is", unchanged), ("loose", loose)):
        monkeypatch.setattr(RobustScaler, "_schema", schema)
        files = (mutated(case, 5, number)[0] for number in range(150))
        found[name] = sum(hold(case, file) is not None for file in files)
    assert found["as it is"] == 0
    assert found["loose"] > 0
    monkeypatch.setattr(RobustScaler, "_schema", short)
    with pytest.raises(ArtifactError, match=r"'quantiles' .* expected no such field"):
        erasable.load(io.BytesIO(case.file))


def test_a_pickle_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MinMaxScaler().fit(X)
    monkeypatch.setattr(MinMaxScaler, "_schema", lambda model: 1 / 0)
    assert copy.deepcopy(model).digest() == model.digest()


def test_steps_that_do_not_fit_together_are_refused() -> None:
    """The second step's own fields agree, but it takes two columns and is given three."""
    wide = prepare(Case("", make_pipeline(StandardScaler(), KMeans(2)), X, Y))
    narrow = prepare(Case("", make_pipeline(StandardScaler(), KMeans(2)), X[:, :2], Y))
    _, theirs = read_artifact(io.BytesIO(narrow.file))
    file = rewritten(wide.file, _set("steps", "kmeans", to=theirs["steps"]["kmeans"]))
    assert hold(wide, file) is None
    with without_digest(), pytest.raises(ArtifactError, match="make 3 columns; expected 2"):
        erasable.load(io.BytesIO(file), wide.records())


def test_outputs_of_a_loaded_column_transformer_are_where_they_were() -> None:
    """Fields of a file are in the order of the alphabet."""
    parts = [("z", PCA(2), [0, 1]), ("a", StandardScaler(), [2])]
    model = ColumnTransformer(parts).fit(X)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    again = erasable.load(file)
    assert list(again.output_indices_.items()) == list(model.output_indices_.items())
    assert again.output_indices_ == {"z": slice(0, 2), "a": slice(2, 3)}


@pytest.mark.parametrize(
    "change",
    [
        _set("trees", "gap_sides", slice(None), to=1),
        _set("trees", "gap_sides", slice(None), to=2),
        _set("trees", "thresholds", slice(None), to=np.finfo(np.float64).max),
        _set("trees", "thresholds", slice(None), to=1e300),
        _set("trees", "thresholds", slice(None), to=-1e300),
    ],
)
def test_trees_whose_gaps_go_elsewhere_are_refused(change: Any) -> None:
    """Thresholds above or below all values too, beside which only gaps are."""
    case = prepare(Case("", DecisionTreeClassifier(random_state=0), GAPPED, Y))
    file = rewritten(case.file, change)
    with without_digest(), pytest.raises(ArtifactError, match="records"):
        erasable.load(io.BytesIO(file), case.records())
    assert hold(case, file) is None
