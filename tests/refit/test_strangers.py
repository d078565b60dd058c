"""Files of wrapped estimators that somebody else may have written: what of them is believed."""

from __future__ import annotations

import io
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, LinearSVR
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

import erasable.naive_bayes
import erasable.pipeline
import erasable.preprocessing
from effort import examples
from erasable import Records, load
from erasable.compose import ColumnTransformer
from erasable.core.errors import ArtifactError
from erasable.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.ensemble._allotment import Bags
from erasable.refit import Refit
from erasable.refit._families import _FAMILIES
from naming import named
from refit.mutations import mutated, rewritten, saved
from refit.victims import outcomes

pytestmark = pytest.mark.filterwarnings("ignore")

N = 60
X = np.abs(np.random.default_rng(0).normal(size=(N, 3))) + (np.arange(N) % 3)[:, None] / 2
LINE = X @ [1.0, 2.0, 3.0]
TARGETS = {
    "numbers": LINE,
    "tables": np.column_stack([LINE, X[:, 0]]),
    "three words": np.array(["a", "bb", "ccc"], dtype=object)[np.arange(N) % 3],
    "flags": np.arange(N) % 2 == 0,
}

CHECKED: list[Any] = [
    LinearRegression(), LinearRegression(positive=True), LinearRegression(fit_intercept=False),
    Ridge(), Ridge(solver="sag"), Ridge(fit_intercept=False), Lasso(), ElasticNet(),
    RidgeClassifier(), RidgeClassifier(fit_intercept=False), LogisticRegression(),
    LogisticRegression(fit_intercept=False), SGDClassifier(max_iter=5),
    SGDClassifier(loss="modified_huber", max_iter=5), SGDRegressor(max_iter=5),
    LinearSVC(), LinearSVC(fit_intercept=False), LinearSVR(), LinearSVR(fit_intercept=False),
    GaussianNB(), MultinomialNB(), MultinomialNB(fit_prior=False), BernoulliNB(), ComplementNB(),
    DecisionTreeClassifier(), DecisionTreeClassifier(max_leaf_nodes=5, splitter="random"),
    DecisionTreeClassifier(ccp_alpha=0.02), DecisionTreeRegressor(),
    DecisionTreeRegressor(criterion="absolute_error", max_leaf_nodes=6), ExtraTreeClassifier(),
    ExtraTreeRegressor(), RandomForestClassifier(3),
    RandomForestClassifier(3, class_weight="balanced_subsample"), RandomForestRegressor(3),
    RandomForestRegressor(3, max_samples=0.5), ExtraTreesClassifier(2), ExtraTreesRegressor(2),
    KNeighborsClassifier(3), KNeighborsClassifier(3, algorithm="ball_tree", metric="manhattan"),
    KNeighborsRegressor(3, algorithm="brute"), RadiusNeighborsClassifier(3.0),
    RadiusNeighborsRegressor(3.0), DummyClassifier(), StandardScaler(),
    StandardScaler(with_mean=False, with_std=False), MinMaxScaler(), MaxAbsScaler(),
    RobustScaler(), RobustScaler(with_centering=False), PCA(2), PCA(2, whiten=True),
    make_pipeline(StandardScaler(), PCA(2), Ridge()),
    make_pipeline("passthrough", MinMaxScaler(), RandomForestClassifier(2)),
]  # fmt: skip
UNCHECKED: list[Any] = [
    SVC(), GradientBoostingClassifier(n_estimators=2),
    HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=3), KMeans(3),
    SGDClassifier(average=True), make_pipeline(StandardScaler(), SVC()),
]  # fmt: skip
ENSEMBLES: list[Any] = [
    BaggingClassifier(n_estimators=3, max_features=2, random_state=0),
    BaggingRegressor(KNeighborsRegressor(2), n_estimators=2, random_state=0),
    ShardedClassifier(SGDClassifier(max_iter=5), n_shards=2, n_slices=2, random_state=0),
    ShardedClassifier(DecisionTreeClassifier(), n_shards=30, random_state=0),
    ShardedRegressor(make_pipeline(StandardScaler(), Ridge()), n_shards=2, random_state=0),
]
UNCHECKED_ENSEMBLES: list[Any] = [
    BaggingClassifier(SVC(), n_estimators=2, random_state=0),
    ShardedClassifier(SVC(), n_shards=2, random_state=0),
]


def _target(model: Any, kind: str | None = None) -> Any:
    asked = getattr(model, "estimator", model)
    classifies = is_classifier(model) or is_classifier(asked)
    return TARGETS[kind or ("three words" if classifies else "numbers")]


def _fitted(model: Any, kind: str | None = None) -> Any:
    made = clone(model) if hasattr(model, "digest") else Refit(clone(model), random_state=0)
    return made.fit(X, _target(model, kind))


def _load(file: bytes, records: Any = None, *, trusted: bool = False) -> Any:
    return load(io.BytesIO(file), records, trusted=trusted)


def _assert_answers(loaded: Any, model: Any) -> None:
    assert loaded.digest() == model.digest()
    for method in ("predict", "predict_proba", "transform", "decision_function"):
        if hasattr(model, method):
            assert np.array_equal(getattr(loaded, method)(X), getattr(model, method)(X)), method


# --------------------------------------------------------------------------- what comes through


@pytest.mark.parametrize("estimator", CHECKED, ids=named)
def test_what_is_checked_is_loaded(estimator: Any) -> None:
    kinds = ("three words", "flags") if not is_regressor(estimator) else ("numbers", "tables")
    for kind in kinds:
        if kind == "tables" and isinstance(estimator, SGDRegressor | LinearSVR):
            continue  # they take one target
        model = _fitted(estimator, kind)
        _assert_answers(_load(saved(model)), model)


def test_every_family_is_tried() -> None:
    assert {type(each) for each in CHECKED} == set(_FAMILIES)


@pytest.mark.parametrize("model", ENSEMBLES, ids=named)
def test_members_that_are_checked_are_loaded(model: Any) -> None:
    fitted = _fitted(model)
    _assert_answers(_load(saved(fitted)), fitted)
    _assert_answers(_load(saved(fitted), Records(X, _target(model))), fitted)


@pytest.mark.parametrize("model", UNCHECKED + UNCHECKED_ENSEMBLES, ids=named)
def test_what_is_not_checked_is_trusted_or_fitted_again(model: Any) -> None:
    fitted = _fitted(model)
    file = saved(fitted)
    with pytest.raises(ArtifactError, match=r"pass load\(path, records\).* trusted=True") as caught:
        _load(file)
    assert "\n" not in str(caught.value)
    _assert_answers(_load(file, trusted=True), fitted)
    again = _load(file, Records(X, _target(model)))
    _assert_answers(again, fitted)
    for each in (again, fitted):
        each.delete([3])
    assert again.digest() == fitted.digest()


@pytest.mark.parametrize("model", [SVC(), UNCHECKED_ENSEMBLES[0]], ids=named)
def test_what_records_do_not_come_to_is_refused(model: Any) -> None:
    def change(state: dict[str, Any]) -> None:
        tree = state["members"]["0"] if "members" in state else state
        tree["fitted"]["attributes"]["_gamma"] = 0.25

    file = rewritten(saved(_fitted(model)), change)
    with pytest.raises(ArtifactError, match="not what a fit to the records comes to"):
        _load(file, Records(X, _target(model)))
    assert _load(file, trusted=True).predict(X).shape == (N,)


def test_a_step_of_a_pipeline_is_checked_too() -> None:
    scaler = erasable.preprocessing.StandardScaler()
    for last, checked in ((Ridge(), True), (SVC(), False)):
        model = erasable.pipeline.make_pipeline(scaler, Refit(last, random_state=0))
        file = saved(model.fit(X, y := _target(last)))
        if not checked:
            with pytest.raises(ArtifactError, match="pass load"):
                _load(file)
        else:
            assert np.array_equal(_load(file).predict(X), model.predict(X))
        again = _load(file, Records(X, y))
        again.delete([1, 2])
        model.delete([1, 2])
        _assert_answers(again, model)


# --------------------------------------------------------------------------- what is refused


def _at(state: dict[str, Any], *names: str) -> Any:
    found = state["fitted"]["attributes"]
    for name in names:
        found = found[name]
    return found


def _node(field: str, place: int, value: float) -> Any:
    def change(state: dict[str, Any]) -> None:
        nodes = _at(state, "tree_", "state", "values", "parts", "2")["fields"]
        nodes[field][place] = value

    return change


def _set(name: str, value: Any) -> Any:
    def change(state: dict[str, Any]) -> None:
        state["fitted"]["attributes"][name] = value

    return change


def _item(name: str, value: float) -> Any:
    def change(state: dict[str, Any]) -> None:
        state["fitted"]["attributes"][name].flat[0] = value

    return change


@pytest.mark.parametrize(
    ("estimator", "change", "told"),
    [
        (Ridge(), _item("coef_", np.nan), "coef_ is not finite"),
        (Ridge(), _set("coef_", np.ones(4)), "coef_ has the shape"),
        (Ridge(), _set("coef_", np.array(["a"] * 3, dtype=object)), "coef_ are no numbers"),
        (Ridge(), _set("n_features_in_", 10**9), "n_features_in_ is out of range"),
        (Ridge(), _set("more_", 1), "more_ of Ridge is not checked"),
        (Ridge(), _set("alpha", 7.0), "alpha is not that of the model"),
        (LogisticRegression(), _set("classes_", np.array([2, 1, 0])), "classes_ are not sorted"),
        (GaussianNB(), _item("var_", -1.0), "var_ is out of range"),
        (GaussianNB(), _item("class_prior_", 0.9), "class_prior_ does not add up"),
        (MultinomialNB(), _item("feature_log_prob_", -9.0), "feature_log_prob_ does not add up"),
        (DecisionTreeClassifier(), _node("left_child", 0, 0), "nodes are no tree"),
        (DecisionTreeClassifier(), _node("right_child", 0, 2**40), "nodes are no tree"),
        (DecisionTreeClassifier(), _node("feature", 0, 3), "a node has no feature"),
        (DecisionTreeClassifier(), _node("n_node_samples", 0, 9), "n_node_samples do not add up"),
        (DecisionTreeClassifier(), _node("threshold", 0, np.nan), "threshold is not a number"),
        (KNeighborsClassifier(), _item("_y", 7), "_y is out of range"),
        (KNeighborsClassifier(), _item("_fit_X", 0.5), "not what a fit to its records gives"),
        (StandardScaler(), _item("scale_", 0.0), "scale_ is not positive"),
        (StandardScaler(), _set("mean_", None), "mean_ is missing"),
    ],
    ids=named,
)
def test_a_changed_field_is_refused_by_its_name(estimator: Any, change: Any, told: str) -> None:
    file = saved(_fitted(estimator))
    _load(file)  # a control: unchanged, it is loaded
    with pytest.raises(ArtifactError, match=told) as caught:
        _load(rewritten(file, change))
    assert "\n" not in str(caught.value)


def test_parameters_that_reach_out_are_refused(tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    caching = make_pipeline(StandardScaler(), Ridge(), memory=folder)
    model = Refit(caching, random_state=0).fit(X, LINE)
    with pytest.raises(ArtifactError, match="memory is a folder"):
        _load(saved(model))
    with pytest.raises(ArtifactError, match="memory is a folder"):
        _load(saved(model), Records(X, LINE))
    assert _load(saved(model), trusted=True).predict(X).shape == (N,)
    crowd = Refit(KNeighborsRegressor(n_jobs=10**9), random_state=0).fit(X, LINE)
    with pytest.raises(ArtifactError, match="n_jobs is out of range"):
        _load(saved(crowd))


def _with_params(**params: Any) -> Any:
    """Change parameters in a file, and nothing of what was fitted with them."""

    def change(state: dict[str, Any]) -> None:
        state["params"]["estimator"]["params"].update(params)

    return change


def _in_last_step(state: dict[str, Any]) -> None:
    steps = state["params"]["estimator"]["params"]["steps"]
    last = steps[-1]["__tuple__"][1] if isinstance(steps[-1], dict) else steps[-1][1]
    last["params"]["max_iter"] = 77


def _one_tree(state: dict[str, Any]) -> None:
    _at(state, "estimators_", "parts").pop("2")


def _without_parameter(state: dict[str, Any]) -> None:
    del state["fitted"]["attributes"]["n_estimators"]
    _with_params(n_estimators=77)(state)


@pytest.mark.parametrize(
    ("estimator", "change"),
    [
        (RandomForestClassifier(3), _with_params(n_estimators=77)),
        (RandomForestClassifier(3), _without_parameter),
        (RandomForestClassifier(3), _one_tree),
        (GradientBoostingClassifier(n_estimators=2), _with_params(n_estimators=77)),
        (SVC(), _with_params(max_iter=77)),
        (make_pipeline(StandardScaler(), SVC()), _in_last_step),
    ],
    ids=named,
)
def test_what_contradicts_its_parameters_is_not_fitted_again(estimator: Any, change: Any) -> None:
    """Fitted with any parameters that a file names, it could take for ever."""
    file = saved(_fitted(estimator))
    records = Records(X, _target(estimator))
    _load(file, records)  # a control: unchanged, it is loaded
    with pytest.raises(ArtifactError, match="that no fit gives"):
        _load(rewritten(file, change), records)


def test_bags_without_number_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    model = BaggingClassifier(n_estimators=3, random_state=0).fit(X, y := np.arange(N) % 3)
    records, asked = Records(X, y), []
    plain = Bags.share
    monkeypatch.setattr(Bags, "share", lambda *given: asked.append(given[1]) or plain(*given))
    _load(saved(model), records)
    assert asked == [0, 1, 2]  # a control

    def change(state: dict[str, Any]) -> None:
        state["params"]["n_estimators"] = 1000

    with pytest.raises(ArtifactError, match="not shared out among the bags"):
        _load(rewritten(saved(model), change), records)
    assert asked == [0, 1, 2, 0, 1, 2, 3]
    assert not isinstance(model._accelerator.allotment.members(), list)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda state: state["members"]["0"].update(size=-1), r"'members.0.size' .* holds -1"),
        (lambda state: state["classes"].update(labels=np.array([9, 8, 7])), "do not ascend"),
        (lambda state: state["classes"].update(counts=np.zeros(3, np.int64)), "holds 0"),
        (lambda state: state["classes"].update(labels=np.array([7, 8, 9])), "other classes"),
    ],
    ids=named,
)
def test_members_that_do_not_fit_their_ensemble(change: Any, told: str) -> None:
    model = ShardedClassifier(DecisionTreeClassifier(), n_shards=2, random_state=0)
    file = saved(model.fit(X, np.arange(N) % 3))
    with pytest.raises(ArtifactError, match=told):
        _load(rewritten(file, change))


# --------------------------------------------------------------------------- in great numbers

ATTACKED = [
    Ridge(), LogisticRegression(), SGDClassifier(max_iter=5), GaussianNB(), MultinomialNB(),
    DecisionTreeClassifier(), RandomForestClassifier(2, max_depth=3), ExtraTreesRegressor(2),
    KNeighborsClassifier(3, algorithm="kd_tree"), KNeighborsRegressor(3, algorithm="ball_tree"),
    make_pipeline(StandardScaler(), PCA(2), Ridge()), DummyClassifier(), *UNCHECKED,
    *ENSEMBLES, UNCHECKED_ENSEMBLES[0],
]  # fmt: skip


def test_no_changed_file_ends_the_process_or_raises_anything_else(tmp_path: Path) -> None:
    whole = [saved(_fitted(each)) for each in ATTACKED]
    tried = [(mutated(file, seed), X) for file in whole for seed in range(examples(40))]
    told = outcomes([*tried, (whole[0], X)], tmp_path, trusted=False)
    assert set(told) <= {"refused", "loaded"}, sorted(set(told))
    assert told.count("refused") > len(tried) / 2
    assert told[-1] == "loaded"  # a control: the process loads what is unchanged


@pytest.mark.soak
def test_what_is_trusted_ends_the_process(tmp_path: Path) -> None:
    """A control: the same files, unchecked, do what they were written for."""
    file = saved(_fitted(DecisionTreeClassifier()))
    far = rewritten(file, _node("feature", 0, 2**60))
    round_and_round = rewritten(file, _node("left_child", 0, 0))
    round_and_round = rewritten(round_and_round, _node("right_child", 0, 0))
    files = [(each, X) for each in (far, round_and_round, file)]
    assert outcomes(files, tmp_path, trusted=True, limit=2.0) == [
        f"signal {signal.SIGSEGV.name}",
        f"signal {signal.SIGPROF.name}",
        "loaded",
    ]
    assert outcomes(files, tmp_path, trusted=False) == ["refused", "refused", "loaded"]


def test_what_is_not_checked_is_fitted_again_within_a_composition() -> None:
    """The next step's table is made with it, so it has to be fitted first."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    power = Refit(PowerTransformer(), random_state=0)
    parts = ColumnTransformer([("power", power, [0])], remainder="passthrough")
    model = erasable.pipeline.make_pipeline(parts, erasable.naive_bayes.GaussianNB())
    file = io.BytesIO()
    model.fit(X, y).save(file)
    rest = np.delete(np.arange(40), 3)
    refit = clone(model).fit(X[rest], y[rest], ids=rest)
    for trusted in (True, False):
        file.seek(0)
        loaded = load(file, (X, y), trusted=trusted)
        assert loaded.digest() == model.digest()
        loaded.delete([3])
        assert loaded.digest() == refit.digest()
