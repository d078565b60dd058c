"""Under a back end of threads, every model is the one that is made without."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier as PlainBagging
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ensemble.meeting import Meeting
from erasable import Refit
from erasable.ensemble import BaggingClassifier, ShardedClassifier
from erasable.refit import _fitting

_rng = np.random.default_rng(11)
X = _rng.normal(size=(90, 6))
Y = (X[:, 0] + _rng.normal(size=90) > 0).astype(np.int64)

DRAWING: dict[str, Any] = {
    "LinearSVC": LinearSVC(dual=True, max_iter=30),
    "liblinear": LogisticRegression(solver="liblinear", dual=True, max_iter=30),
    "SVC": SVC(probability=True),
    "a pipeline": make_pipeline(StandardScaler(), LinearSVC(dual=True, max_iter=30)),
    "one that calibrates": CalibratedClassifierCV(cv=2),
    "a search": GridSearchCV(
        LogisticRegression(max_iter=30), {"solver": ["liblinear"], "C": [0.5, 2.0]}, cv=2
    ),
    "bags of LinearSVC": PlainBagging(LinearSVC(dual=True, max_iter=30), 4, n_jobs=2),
    "one against the rest": OneVsRestClassifier(LinearSVC(dual=True, max_iter=30), n_jobs=2),
    "from elsewhere": Meeting(),
}
SAFE: dict[str, Any] = {
    "a tree": DecisionTreeClassifier(max_features=1),
    "a forest": RandomForestClassifier(3, n_jobs=2),
    "lbfgs": LogisticRegression(),
    "SGD": SGDClassifier(max_iter=5),
}

Made = Callable[[Any], Any]
MODELS: dict[str, Made] = {
    "shards": lambda base: ShardedClassifier(base, 3, n_jobs=2, random_state=0),
    "bags": lambda base: BaggingClassifier(base, n_estimators=3, n_jobs=2, random_state=0),
    "refit": lambda base: Refit(base, random_state=0),
}

pytestmark = pytest.mark.filterwarnings("ignore")


def _alone(make: Made, base: Any) -> Any:
    """Make a model in one thread, without the lock, or any job."""
    plain = clone(base)
    plain.set_params(**{name: None for name in plain.get_params() if name.endswith("n_jobs")})
    with joblib.parallel_config(backend="sequential", n_jobs=1):
        return make(plain).fit(X, Y)


def _learned(model: Any) -> Any:
    """What was learned, but for the parameters: these differ in n_jobs."""
    members = model.estimators_ if hasattr(model, "estimators_") else [model.estimator_]
    found = []
    for each in members:
        each = each[-1] if hasattr(each, "steps") else each
        for inner in getattr(each, "calibrated_classifiers_", None) or [each]:
            inner = getattr(inner, "estimator", None) if inner is not each else inner
            for part in getattr(inner, "estimators_", None) or [inner]:
                part = getattr(part, "best_estimator_", part)
                for name in ("coef_", "probA_", "draws_"):
                    if hasattr(part, name):
                        found.append(np.asarray(getattr(part, name)))
    return [array.tolist() for array in found]


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("kind", MODELS)
def test_threads_do_not_disturb_each_other(kind: str, name: str) -> None:
    make, base = MODELS[kind], DRAWING[name]
    right = _learned(_alone(make, base))
    assert right
    with joblib.parallel_config(backend="threading", n_jobs=2):
        model = make(clone(base)).fit(X, Y)
        assert _learned(model) == right
        model.delete([4, 9])
        left = make(clone(base)).fit(np.delete(X, [4, 9], 0), np.delete(Y, [4, 9]), ids=model.ids_)
    assert model.digest() == left.digest()


@pytest.mark.parametrize("name", SAFE)
def test_safe_ones_need_not_wait(name: str) -> None:
    assert not _fitting.draws_from_process(SAFE[name])
    alone = ShardedClassifier(SAFE[name], 3, random_state=0).fit(X, Y)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert ShardedClassifier(SAFE[name], 3, random_state=0).fit(X, Y).digest() == alone.digest()


@pytest.mark.parametrize("name", DRAWING)
def test_the_others_are_known(name: str) -> None:
    assert _fitting.draws_from_process(DRAWING[name])


def test_models_in_threads_of_the_users_wait_for_each_other() -> None:
    right = Refit(Meeting(), random_state=0).fit(X, Y).digest()

    def fit(_: int) -> str:
        return str(Refit(Meeting(), random_state=0).fit(X, Y).digest())

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(fit, range(2))) == {right}


def test_without_the_lock_threads_would_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    monkeypatch.setattr(_fitting, "draws_from_process", lambda estimator: False)
    base = Meeting(patience=30.0)
    alone = ShardedClassifier(base, 2, random_state=0).fit(X, Y)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        model = ShardedClassifier(base, 2, n_jobs=2, random_state=0).fit(X, Y)
    assert model.digest() != alone.digest()
