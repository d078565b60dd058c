"""Exports of ensembles: their members, with their shares of the vote."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import Bunch

from erasable.core._column_choice import has_names
from erasable.core.errors import ExportError
from erasable.core.estimator import Erasable
from erasable.export._compositions import warn_of_held
from erasable.export._source import Source, set_names


def _members(source: Source) -> list[Any]:
    """Export the members."""
    found = []
    for each in source.model.estimators_:
        if isinstance(each, Erasable):
            found.append(source.part(each))
        else:
            warn_of_held(source, each)
            found.append(each)
    return found


def _encoded(member: Any, labels: NDArray[Any]) -> Any:
    """Have a fitted classifier answer with places in `labels`, as members of a bag do."""
    last = member
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    places = {label: place for place, label in enumerate(labels.tolist())}
    try:
        last.classes_ = np.array([places[label] for label in last.classes_.tolist()])
    except AttributeError:
        raise ExportError(
            f"the members are {type(last).__name__}, whose labels cannot be replaced by numbers, "
            "as scikit-learn has them in ensembles; expected classifiers with predict_proba, and "
            "records of every class for each; use others"
        ) from None
    return member


def _bag(members: list[Any], columns: list[Any], width: int, labels: Any) -> Any:
    theirs = BaggingRegressor if labels is None else BaggingClassifier
    made = theirs(clone(members[0]), len(members))
    if labels is not None:
        made.classes_, made.n_classes_ = labels, labels.size
        soft = all(hasattr(each, "predict_proba") for each in members)
        if not (soft and all(len(each.classes_) == labels.size for each in members)):
            members = [_encoded(each, labels) for each in members]
        made.estimator = clone(members[0])
    for each in members:
        _refuse_names(each)
        set_names(each, None)  # they are given columns of an array
    made.__dict__.update(
        estimator_=made.estimator,
        estimators_=members,
        estimators_features_=columns,
        n_features_in_=width,
    )
    return made


def _refuse_names(member: Any) -> None:
    """Raise ExportError if a part of a member chooses columns by name."""
    steps = [step for _, step in member.steps] if isinstance(member, Pipeline) else [member]
    for step in steps:
        if isinstance(step, ColumnTransformer) and any(
            has_names(columns) for *_, columns in step.transformers
        ):
            raise ExportError(
                "a member chooses columns by name, and scikit-learn gives arrays to members of "
                "bags, and of shards that lack a class; expected positions of columns"
            )


def bagging(source: Source) -> BaggingClassifier | BaggingRegressor:
    """Export bags that have records, whose members have equal votes."""
    model = source.model
    labels = getattr(model, "classes_", None)
    columns = model.estimators_features_
    return _bag(_members(source), columns, model.n_features_in_, labels)


def sharded_classifier(source: Source) -> VotingClassifier:
    """Export members that vote, each as much as its shard has records."""
    model, members = source.model, _members(source)
    labels, every = model.classes_, np.arange(model.n_features_in_)
    soft = all(hasattr(each, "predict_proba") for each in members)
    # One that does not know all classes, or gives no probabilities, votes as a bag of its own.
    members = [
        each
        if soft and len(each.classes_) == labels.size
        else _bag([each], [every], every.size, labels)
        for each in members
    ]
    made = _voting(source, VotingClassifier, members)
    made.voting, made.le_, made.classes_ = "soft", LabelEncoder().fit(labels), labels
    return made


def sharded_regressor(source: Source) -> VotingRegressor:
    """Export members whose mean is weighted by the records of their shards."""
    members = _members(source)
    if _n_outputs(members[0]) > 1:
        raise ExportError(
            "the ShardedRegressor predicts several targets, of which a VotingRegressor of "
            "scikit-learn predicts one; expected one; fit a model for each"
        )
    return _voting(source, VotingRegressor, members)


def _n_outputs(member: Any) -> int:
    """Return how many targets a fitted regressor of scikit-learn predicts, as far as it says."""
    while isinstance(member, Pipeline):
        member = member.steps[-1][1]
    if getattr(member, "outputs_2d_", False):
        return 2
    shape = np.shape(getattr(member, "coef_", 0.0))
    return int(getattr(member, "n_outputs_", shape[0] if len(shape) == 2 else 1))


def _voting(source: Source, theirs: type[Any], members: list[Any]) -> Any:
    parts = source.state["members"]
    names = [f"shard{number}" for number in parts]
    made = theirs(
        [*zip(names, members, strict=True)],
        weights=np.array([each["size"] for each in parts.values()]),
    )
    made.estimators_, made.named_estimators_ = members, Bunch(**dict(made.estimators))
    return made
