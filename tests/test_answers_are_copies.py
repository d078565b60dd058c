"""What a model answers may be written to: the model, its digest and its file stay what they are."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler as TheirScaler

from erasable import Records, all_estimators
from erasable.core._class_sums import ByClass
from erasable.core.errors import ErasableError
from erasable.core.estimator import Erasable
from erasable.naive_bayes import GaussianNB
from erasable.preprocessing import MinMaxScaler
from erasable.refit import Refit
from law_instances import instances_of
from mixed_visits import OF_TEXT, Mixed
from readers import NO_ANSWER, queries, readers_of
from visits_table import OF_COUNTS, OF_DOCUMENTS, Visits

N = 48

Given = tuple[Visits, list[str]]


def cases() -> Iterator[Any]:
    for name, cls, tags in all_estimators():
        for number, model in enumerate(instances_of(name, cls, tags)):
            if name in OF_DOCUMENTS:
                yield pytest.param(model, (Mixed(), ["note"]), id=f"{name}-{number}")
            else:
                visits = Visits(n=N, counts=name in OF_COUNTS)
                yield pytest.param(model, (visits, list(visits.frame)), id=f"{name}-{number}")
    for name, (model, columns) in OF_TEXT.items():
        yield pytest.param(model, (Mixed(), columns), id=name)
    visits = Visits(n=N)
    for model in (TheirScaler(), IsolationForest(n_estimators=3), KNeighborsClassifier(2)):
        yield pytest.param(Refit(model), (visits, list(visits.frame)), id=f"Refit, {model}")


def arrays_in(answer: Any, known: set[int] | None = None) -> Iterator[Any]:
    """Yield every array of an answer, at any depth, but for those inside models of erasable."""
    known = set() if known is None else known
    if id(answer) in known or isinstance(answer, Erasable):
        return
    known.add(id(answer))
    if isinstance(answer, np.ndarray):
        yield answer
        inside = answer.ravel().tolist() if answer.dtype == object else []
    elif issparse(answer):
        inside = [answer.data, answer.indices, answer.indptr]
    elif isinstance(answer, pd.DataFrame):
        inside = [answer.to_numpy(copy=False)]
    elif isinstance(answer, dict):
        inside = list(answer.values())
    elif isinstance(answer, list | tuple | set):
        inside = list(answer)
    else:  # an estimator of scikit-learn
        inside = list(vars(answer).values()) if hasattr(answer, "get_params") else []
    for each in inside:
        yield from arrays_in(each, known)


def spoil(array: Any) -> int:
    """Write to an array, where that is possible; return how many values it has."""
    if array.size == 0 or not array.flags.writeable:
        return 0
    array[...] = {"O": "spoiled", "b": True, "U": "s", "S": b"s"}.get(array.dtype.kind, 77)
    return int(array.size)


def file_of(model: Any) -> bytes:
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def parts_of(model: Any) -> list[Any]:
    members = [*model.get_params().values(), *getattr(model, "estimators_", ())]
    return [model, *(each for each in members if isinstance(each, Erasable))]


def check(model: Any, given: Given) -> int:
    """Ask everything, and write to what comes; return how many values were written to."""
    visits, columns = given
    seeds = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    made = clone(model).set_params(**dict.fromkeys(seeds, 0))
    frame, kept = visits.frame[columns], np.arange(len(visits.ids)) != 3
    model = clone(made).fit(Records(frame, visits.y, ids=visits.ids))
    model.delete(visits.ids[[3]])
    fresh = clone(made).fit(Records(frame[kept], visits.y[kept], ids=visits.ids[kept]))
    written = 0
    for part in parts_of(model):
        if "_info" not in vars(part):
            continue
        for name, reader in readers_of(part).items():
            try:
                answer = reader(part, queries(frame), visits.y[:5].copy())
            except NO_ANSWER:
                continue
            written += sum(map(spoil, arrays_in(answer)))
            for each in parts_of(model):
                if "_info" in vars(each):
                    each._info.digest = None
            assert model.digest() == fresh.digest(), name
            assert file_of(model) == file_of(fresh), name
    assert answers(model, frame) == answers(fresh, frame)
    return written


def answers(model: Any, frame: Any) -> list[Any]:
    names = ("predict", "predict_proba", "transform", "get_feature_names_out", "classes_")
    told = []
    for name in names:
        try:
            answer = readers_of(model)[name](model, queries(frame), None)
        except (KeyError, *NO_ANSWER):
            continue
        told.append(repr([array.tolist() for array in arrays_in(answer)]))
    return told


@pytest.mark.sampled(9)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "given"), list(cases()))
def test_no_answer_is_a_part_of_the_model(model: Any, given: Given) -> None:
    assert check(model, given) > 50


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [MinMaxScaler(), Refit(KNeighborsClassifier(2))], ids=repr)
def test_names_and_labels_are_copies(model: Any) -> None:
    visits = Visits(n=N)
    check(model, (visits, list(visits.frame)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "cls", "name", "own"),
    [
        (GaussianNB(), Erasable, "feature_names_in_", lambda m: m.__dict__["feature_names_in_"]),
        (GaussianNB(), ByClass, "classes_", lambda m: m._labels),
        (Refit(KNeighborsClassifier(2)), Refit, "classes_", lambda m: m._estimator.classes_),
        (Refit(KNeighborsClassifier(2)), Refit, "estimator_", lambda m: m._estimator),
    ],
)
def test_an_answer_that_is_a_part_of_the_model_is_found(
    model: Any, cls: Any, name: str, own: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cls, name, property(own, getattr(cls, name).fset))
    visits = Visits(n=N)
    with pytest.raises((AssertionError, ErasableError)):
        check(model, (visits, list(visits.frame)))
