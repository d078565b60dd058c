"""Parameters that scikit-learn's estimators have and ours have not: ignored, or refused."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import sklearn.pipeline
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils import all_estimators

import erasable
from erasable.cluster import KMeans
from erasable.core._other_parameters import OTHER_PARAMETERS
from erasable.core.errors import ErasableError, InvalidParameterError
from erasable.core.estimator import Erasable
from erasable.ensemble import RandomForestRegressor
from erasable.linear_model import LogisticRegression, Ridge
from erasable.pipeline import Pipeline, make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.tree import DecisionTreeClassifier
from law_instances import instances_of

OURS = {name: (cls, tags) for name, cls, tags in erasable.all_estimators()}
THEIRS = dict(all_estimators())
X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.arange(40) % 2

EACH = pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, each) for name, others in OTHER_PARAMETERS.items() for each in others],
)


def made(name: str) -> Any:
    return instances_of(name, *OURS[name])[0]


def remade(name: str, **others: Any) -> Any:
    """An estimator that is given its own parameters and others."""
    model = made(name)
    return type(model)(**model.get_params(deep=False), **others)


@EACH
def test_the_default_of_scikit_learn_is_ignored(name: str, parameter: str) -> None:
    theirs = inspect.signature(THEIRS[name]).parameters
    if parameter not in theirs:
        pytest.skip("of another version of scikit-learn")
    if (name, parameter) == ("LinearSVR", "loss"):
        pytest.skip("the default has kinks, and is refused")
    with_default = remade(name, **{parameter: theirs[parameter].default})
    assert repr(with_default) == repr(made(name))
    assert parameter not in with_default.get_params()


@EACH
def test_other_values_are_ignored_or_refused(name: str, parameter: str) -> None:
    other = OTHER_PARAMETERS[name][parameter]
    if other.values is None:
        assert repr(remade(name, **{parameter: "whatever"})) == repr(made(name))
        return
    for value in other.values:
        remade(name, **{parameter: value})
    with pytest.raises(TypeError, match=rf"was given {parameter}='whatever'") as caught:
        remade(name, **{parameter: "whatever"})
    assert isinstance(caught.value, ErasableError)
    told = str(caught.value)
    own = [each for each in inspect.signature(OURS[name][0]).parameters]
    assert ", ".join(own) in told
    assert other.why in told
    assert "\n" not in told


@EACH
def test_the_class_that_a_hint_names_is_there(name: str, parameter: str) -> None:
    if OTHER_PARAMETERS[name][parameter].values is None:
        return
    with pytest.raises(InvalidParameterError) as caught:
        remade(name, **{parameter: object()})
    there = parameter in inspect.signature(THEIRS[name]).parameters
    assert str(caught.value).endswith("(...)) has it") is there
    if not there:
        return
    path = str(caught.value).partition("Refit(")[2].partition("(")[0]
    module, _, last = path.rpartition(".")
    assert getattr(__import__(module, fromlist=[last]), last) is THEIRS[name]


def test_the_table_has_no_parameter_of_ours() -> None:
    for name, others in OTHER_PARAMETERS.items():
        assert not others.keys() & inspect.signature(OURS[name][0]).parameters.keys()


def test_a_mistaken_name_is_told_with_what_there_is() -> None:
    with pytest.raises(InvalidParameterError, match="given n_cluster; expected n_clusters, max_it"):
        KMeans(n_cluster=3)
    with pytest.raises(TypeError, match="did you mean n_clusters"):
        KMeans(n_cluster=3)
    with pytest.raises(InvalidParameterError, match="expected steps; did you mean steps"):
        Pipeline([("a", StandardScaler())], steeps=1)
    model = make_pipeline(StandardScaler(), Ridge())
    with pytest.raises(ValueError, match="did you mean ridge__alpha"):
        model.set_params(alpha=3.0)
    with pytest.raises(InvalidParameterError, match=r"given 'a\\nb'; expected"):
        KMeans(**{"a\nb": 1})
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Pipeline()
    with pytest.raises(TypeError, match="positional arguments"):
        KMeans(3, 4)


def test_numbers_are_equal_and_booleans_are_none() -> None:
    KMeans(n_init=np.int64(1))
    DecisionTreeClassifier(ccp_alpha=0, min_weight_fraction_leaf=np.float32(0.0))
    LogisticRegression(warm_start=np.False_, l1_ratio=0.0)
    KMeans(n_init=np.str_("auto"), init=np.str_("k-means++"))
    for other in (True, 2, 1.5, None, "1", [1], np.array([1]), 10**400, float("nan"), b"auto"):
        with pytest.raises(InvalidParameterError):
            KMeans(n_init=other)
    with pytest.raises(InvalidParameterError):
        LogisticRegression(warm_start=0)


def test_a_model_is_the_same_with_what_is_ignored() -> None:
    plain = LogisticRegression().fit(X, Y)
    other = LogisticRegression(max_iter=5, tol=0.1, solver="saga", random_state=3, verbose=1)
    assert other.fit(X, Y).digest() == plain.digest()
    assert pickle.dumps(other) == pickle.dumps(plain)
    assert repr(other) == "LogisticRegression()"
    assert other.get_params() == plain.get_params()
    assert inspect.signature(LogisticRegression).parameters.keys() == other.get_params().keys()


def test_clones_and_set_params() -> None:
    model = clone(make_pipeline(StandardScaler(copy=False), KMeans(2, n_init=1), verbose=True))
    before = repr(model)
    model.set_params(kmeans__n_init="auto", standardscaler__copy=True, memory="here")
    assert repr(model) == before
    with pytest.raises(InvalidParameterError, match=r"n_init=10; .*KMeans\(\.\.\.\)\) has it"):
        model.set_params(kmeans__n_init=10)
    theirs = sklearn.pipeline.make_pipeline(StandardScaler(), Ridge())
    assert theirs.set_params(ridge__solver="lsqr", ridge__alpha=3.0)[-1].alpha == 3.0
    # All or nothing: what is known is not set where another parameter is refused.
    ridge = Ridge()
    with pytest.raises(InvalidParameterError):
        ridge.set_params(alpha=7.0, positive=True)
    assert ridge.alpha == 1.0
    assert ridge.set_params() is ridge
    with pytest.raises(ValueError, match="Invalid parameter 'part'"):
        ridge.set_params(alpha=7.0, part__alpha=1.0)
    assert ridge.alpha == 1.0
    with pytest.raises(InvalidParameterError):
        model.set_params(standardscaler__with_mean=False, kmeans__n_init=10)
    assert repr(model) == before


def test_a_search_over_what_is_ignored_finds_equal_models() -> None:
    grid = {"solver": ["lbfgs", "saga"], "max_iter": [10, 100]}
    search = GridSearchCV(LogisticRegression(), grid, cv=2).fit(X, Y)
    assert np.ptp(search.cv_results_["mean_test_score"]) == 0
    assert search.best_params_ == {"solver": "lbfgs", "max_iter": 10}
    with pytest.raises(InvalidParameterError, match="given solver='liblinear'"):
        GridSearchCV(LogisticRegression(), {"solver": ["liblinear"]}, cv=2).fit(X, Y)


class Own(KMeans):
    """A subclass of a user, with a parameter that the base refuses."""

    def __init__(self, n_clusters: int = 8, *, n_init: int = 7) -> None:
        super().__init__(n_clusters)
        self.n_init = n_init


class Logistic(LogisticRegression):
    """A subclass of a user that sets what its constructor does not take."""

    def __init__(self, *, strength: float = 0.5) -> None:
        super().__init__(C=strength)
        self.strength = strength


class Forest(RandomForestRegressor):
    """A subclass of a user that takes no parameters."""

    def __init__(self) -> None:
        super().__init__(5, min_samples_leaf=2, random_state=0)


class Clusters(KMeans):
    """A subclass of a user whose constructor takes others, too."""

    def __init__(self, *, n_clusters: int = 3, **others: Any) -> None:
        super().__init__(n_clusters, **others)


class Open(Erasable):
    """A subclass that takes what it is given."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def _fit_rows(self) -> None: ...

    def _update(self, delta: Any) -> None: ...


def test_subclasses_have_parameters_of_their_own() -> None:
    assert clone(Own(n_init=9)).n_init == 9
    assert Own(verbose=1).set_params(n_init=4).n_init == 4
    with pytest.raises(InvalidParameterError, match="Own was given init='random'"):
        Own(init="random")
    assert Open(anything=1).given == {"anything": 1}


@pytest.mark.parametrize(
    ("model", "plain"),
    [
        (Logistic(), LogisticRegression(C=0.5)),
        (Forest(), RandomForestRegressor(5, min_samples_leaf=2, random_state=0)),
        (Clusters(random_state=0), KMeans(3, random_state=0)),
    ],
)
def test_a_subclass_may_set_what_it_does_not_take(model: Any, plain: Any) -> None:
    model, plain = model.fit(X, Y), plain.fit(X, Y)
    assert np.array_equal(model.predict(X), plain.predict(X))
    model.delete([3, 4])
    again = type(model)(**({"random_state": 0} if isinstance(model, Clusters) else {}))
    left = np.delete(np.arange(40), [3, 4])
    assert model.digest() == again.fit(X[left], Y[left], ids=left).digest()
    assert pickle.loads(pickle.dumps(model)).digest() == model.digest()
    with pytest.raises(InvalidParameterError, match="given tol; expected n_clusters; leave it out"):
        Clusters().set_params(tol=0.1)


def test_constants_of_a_subclass_are_in_its_digest() -> None:
    model = Logistic().fit(X, Y)
    model.C = 0.7  # type: ignore[misc]
    assert model.fit(X, Y).digest() != Logistic().fit(X, Y).digest()
