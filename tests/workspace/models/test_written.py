"""Estimators as plain JSON: what is written makes the same again, and nothing else is written."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.pipeline import make_pipeline as peer_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.preprocessing import StandardScaler as PeerScaler
from sklearn.svm import SVC
from sklearn.utils.discovery import all_estimators

import operations
from cli.running import erasable, told
from erasable import Refit
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer, make_column_transformer
from erasable.core.errors import InvalidParameterError
from erasable.ensemble import ShardedClassifier
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import Pipeline, make_pipeline
from erasable.preprocessing import OneHotEncoder, SimpleImputer, StandardScaler
from erasable.workspace.models import recipes
from erasable.workspace.models.names import find_estimator, names_of_erasable
from erasable.workspace.models.verifying import verify
from erasable.workspace.models.written import read_estimator, write_estimator
from workspace_models import erased, found, loaded, take_out_of_data


def through_json(node):
    return json.loads(json.dumps(node, allow_nan=False))


def same(a, b):
    if isinstance(a, BaseEstimator):
        ours, theirs = a.get_params(deep=False), b.get_params(deep=False)
        return type(a) is type(b) and ours.keys() == theirs.keys() and all(
            same(ours[name], theirs[name]) for name in ours
        )  # fmt: skip
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def mixed(*, ours=True):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [
            ("numbers", numbers, ["age", "dose"]),
            ("wards", OneHotEncoder(handle_unknown="ignore"), ["ward"]),
            ("notes", TfidfVectorizer(ngram_range=(1, 2)), "note"),
        ]
    )
    return make_pipeline(columns, LogisticRegression(C=0.5) if ours else Peer(C=0.5))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_every_estimator_is_written_and_made_again():
    n = 0
    for cls in [*map(find_estimator, names_of_erasable()), *(cls for _, cls in all_estimators())]:
        try:
            one = cls()
        except TypeError:  # it is made of others, as those below
            continue
        n += 1
        node = write_estimator(one)
        assert node["params"] == {}
        assert same(read_estimator(through_json(node)), one)
    assert n > 200


PARTS = [
    mixed(),
    mixed(ours=False),
    make_pipeline(StandardScaler(), KMeans(3, random_state=7)),
    peer_pipeline(PeerScaler(), SVC(C=2.0, class_weight={0: 1.0, 1: 5.0})),
    Refit(SVC(class_weight={"estimator": 2.0}), random_state=3),
    VotingClassifier([("a", SVC()), ("b", Peer())], weights=[1, 2]),
    ShardedClassifier(make_pipeline(StandardScaler(), LogisticRegression()), n_shards=3),
    SimpleImputer(missing_values=-1, fill_value=float("inf")),
    SimpleImputer(missing_values=None, strategy="constant"),
    make_column_transformer((StandardScaler(), slice(0, 2)), ("passthrough", [2])),
    OneHotEncoder(categories=[["a", "b"], [float("nan")]]),
    make_pipeline(FunctionTransformer(np.log1p), Ridge()),
    Pipeline([("none", None), ("all", "passthrough"), ("ridge", Ridge(alpha=np.float64(2)))]),
]


@pytest.mark.parametrize("one", PARTS, ids=lambda one: type(one).__name__)
def test_parts_are_written_inside(one):
    node = write_estimator(one)
    again = read_estimator(through_json(node))
    assert write_estimator(again) == node
    if "ridge" not in getattr(one, "named_steps", {}):  # whose number was NumPy's
        assert same(again, one)


def test_arrays_become_lists():
    node = write_estimator(GaussianNB(priors=np.array([0.25, 0.75])))
    assert node["params"] == {"priors": [0.25, 0.75]}


class Own(BaseEstimator):
    pass


REFUSED = [
    (Own(), "the estimator is a .*Own; expected a public estimator"),
    (make_pipeline(StandardScaler(), Own()), "own is a .*Own"),
    (make_pipeline(FunctionTransformer(str.upper), Ridge()), "functiontransformer__func is a func"),
    (make_pipeline(FunctionTransformer(lambda x: x), Ridge()), "functiontransformer__func is a fu"),
    (KMeans(random_state=np.random.RandomState(0)), "random_state is a RandomState"),
    (
        make_column_transformer((StandardScaler(), make_column_selector("a"))),
        "standardscaler__columns is a make_column_selector",
    ),
    (SVC, "expected an estimator"),
    (17, "the estimator is 17"),
    ({"params": {}}, "expected"),
    ({"estimator": "os.system"}, "no estimator 'os.system'"),
    ({"estimator": "linear_model.Ridge", "params": {"alpa": 2}}, "did you mean alpha"),
    ({"estimator": "linear_model.Ridge", "params": [2]}, "expected"),
    ({"estimator": "pipeline.Pipeline"}, "without steps"),
    (
        {
            "estimator": "pipeline.Pipeline",
            "params": {"steps": [["a", {"estimator": "linear_model.Ridge", "params": {"b": 1}}]]},
        },
        "there is no parameter 'a__b'",
    ),
    ({"estimator": ["linear_model.Ridge", 3]}, "names of estimators"),
    (
        {"estimator": "linear_model.Ridge", "params": {"alpha": {"function": "os.system"}}},
        "alpha is",
    ),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_cannot_be_written_is_refused_on_one_line(given, message):
    with pytest.raises(InvalidParameterError, match=message) as caught:
        recipes.parse(given)
    assert "\n" not in str(caught.value)


STEP = ["scale", {"estimator": "preprocessing.StandardScaler"}]


@pytest.mark.parametrize(
    ("path", "name", "parts"),
    [
        ("pipeline.Pipeline", "steps", None),
        ("pipeline.Pipeline", "steps", 3),
        ("pipeline.Pipeline", "steps", []),
        ("pipeline.Pipeline", "steps", {"a": 1}),
        ("pipeline.Pipeline", "steps", [None]),
        ("pipeline.Pipeline", "steps", [STEP, ["ridge"]]),
        ("pipeline.Pipeline", "steps", [[*STEP, "age"]]),
        ("pipeline.Pipeline", "steps", [[1, STEP[1]]]),
        ("compose.ColumnTransformer", "transformers", "abc"),
        ("compose.ColumnTransformer", "transformers", [STEP]),
        ("compose.ColumnTransformer", "transformers", [[*STEP, None]]),
        ("sklearn.pipeline.FeatureUnion", "transformer_list", [["a"]]),
        ("sklearn.ensemble.VotingClassifier", "estimators", "all"),
    ],
)
def test_parts_of_another_form_are_refused(path, name, parts):
    with pytest.raises(InvalidParameterError, match=rf"^{name} holds .* a list of \[name, "):
        read_estimator({"estimator": path, "params": {name: parts}})


def test_parts_of_this_form_are_made():
    columns = {"estimator": "compose.ColumnTransformer", "params": {"transformers": [[*STEP, "a"]]}}
    steps = {"steps": [["columns", columns], ["ridge", {"estimator": "linear_model.Ridge"}]]}
    assert len(read_estimator({"estimator": "pipeline.Pipeline", "params": steps})) == 2


def test_parameters_are_set_in_what_is_passed():
    recipe = recipes.parse(mixed(ours=False), {"logisticregression__C": "3"})
    assert recipes.make(recipe)["logisticregression"].estimator.C == 3
    assert recipes.parse(recipe) == recipe


def test_what_learns_and_cannot_forget_is_refitted():
    assert same(recipes.make(recipes.parse(SVC(C=2.0))), Refit(SVC(C=2.0)))
    whole = peer_pipeline(PeerScaler(), SVC())
    assert same(recipes.make(recipes.parse(whole)), Refit(whole))
    last = recipes.make(recipes.parse(mixed(ours=False)))[-1]
    assert same(last, Refit(Peer(C=0.5)))


def test_names_and_objects_make_the_same(visits):
    operations.fit(visits, "a", "preprocessing.StandardScaler,naive_bayes.GaussianNB",
                datasets=["visits"], target="sick", features=["age", "dose"])  # fmt: skip
    operations.fit(visits, "b", make_pipeline(StandardScaler(), GaussianNB()),
                datasets=["visits"], target="sick", features=["age", "dose"])  # fmt: skip
    assert loaded(visits, "a").digest() == loaded(visits, "b").digest()


FEATURES = ["age", "dose", "ward", "note"]


@pytest.mark.parametrize("ours", [True, False])
def test_a_pipeline_is_fitted_deleted_from_and_verified(visits, tmp_path, ours):
    one = mixed(ours=ours)
    fitted = operations.fit(visits, "m", one, datasets=["visits"], target="sick")
    assert fitted.features == FEATURES  # which it asks for by name
    with pytest.raises(NotFittedError):
        one.digest()
    model, _ = found(visits, "m")
    assert through_json(model.recipe) == model.recipe
    gone = ["v0", "v1", "v2"]
    erased(visits, "m", gone)
    take_out_of_data(visits, gone)
    frame = pd.read_csv(tmp_path / "visits.csv")
    frame = frame[~frame["visit"].isin(gone)]
    fresh = recipes.make(found(visits, "m")[0].recipe)
    fresh.fit(frame[FEATURES], frame["sick"].tolist(), ids=frame["visit"].tolist())
    assert loaded(visits, "m").digest() == fresh.digest()
    assert [each.verdict for each in verify(visits, ["m"])] == ["equal"]


def test_a_recipe_is_edited_in_a_file_and_fitted_again(tmp_path):
    rows = "".join(f"{i},{i % 9},{'abc'[i % 3]},{i % 2}\n" for i in range(40))
    (tmp_path / "rows.csv").write_text("id,n,c,y\n" + rows)
    told("init", folder=tmp_path)
    told("dataset", "add", "rows", "rows.csv", "--id", "id", folder=tmp_path)
    parts = make_column_transformer((StandardScaler(), ["n"]), (OneHotEncoder(), ["c"]))
    (tmp_path / "recipe.json").write_text(
        json.dumps(write_estimator(make_pipeline(parts, Ridge())))
    )
    fit = ["model", "fit", "m", "--dataset", "rows", "--target", "y", "--features", "n,c"]
    told(*fit, "--estimator", "recipe.json", folder=tmp_path)
    shown = erasable("model", "show", "m", "--recipe", folder=tmp_path).stdout
    assert "seeds" not in json.loads(shown)
    edited = shown.replace("erasable.linear_model.Ridge", "linear_model.LinearRegression")
    (tmp_path / "edited.json").write_text(edited)
    told(*fit, "--estimator", "edited.json", folder=tmp_path)
    page = erasable("model", "show", "m", folder=tmp_path).stdout
    assert "ColumnTransformer -> erasable.linear_model.LinearRegression" in page
    assert "onehotencoder   OneHotEncoder of c" in page
    scaled = "columntransformer__standardscaler__with_std"
    told(*fit, "--estimator", "edited.json", "-p", f"{scaled}=false", folder=tmp_path)
    assert told("model", "show", "m", folder=tmp_path)["params"] == {scaled: False}
    for bad, text in (("none.json", None), ("bad.json", "{"), ("list.json", "[]")):
        if text is not None:
            (tmp_path / bad).write_text(text)
        result = erasable(*fit, "--estimator", bad, folder=tmp_path)
        assert result.exit_code == 2
        assert "expected" in result.stderr
