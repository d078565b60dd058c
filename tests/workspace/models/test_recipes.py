from __future__ import annotations

import json

import pytest
from sklearn.svm import SVC
from sklearn.utils import get_tags

from erasable import Refit
from erasable.core.errors import InvalidParameterError
from erasable.workspace.models import recipes
from erasable.workspace.models.names import find_estimator
from naming import named

X = [[float(i), float(i % 3)] for i in range(20)]
Y = ["a" if i % 4 else "b" for i in range(20)]

SGD = "sklearn.linear_model.SGDClassifier"
SHARDS = "ensemble.ShardedClassifier"
GOOD = [
    ("cluster.KMeans", {"n_clusters": "3"}, {"n_clusters": 3}),
    ("erasable.cluster.KMeans", {"tol": "1e-3"}, {"tol": 1e-3}),
    ("KMeans", {}, {}),
    ("linear_model.LogisticRegression", {"penalty": "None"}, {}),
    ("sklearn.svm.SVC", {"C": "0.5", "kernel": "linear"}, {"estimator__C": 0.5}),
    ("sklearn.svm.SVC", {"random_state": "3"}, {"random_state": 3}),
    (
        "preprocessing.StandardScaler -> linear_model.Ridge",
        {"ridge__alpha": "2"},
        {"ridge__alpha": 2},
    ),
    (
        "feature_extraction.TfidfVectorizer,linear_model.LogisticRegression",
        {"tfidfvectorizer__ngram_range": "[1, 2]"},
        {"tfidfvectorizer__ngram_range": (1, 2)},
    ),
    (
        "preprocessing.StandardScaler,sklearn.tree.DecisionTreeClassifier",
        {"decisiontreeclassifier__max_depth": "2", "decisiontreeclassifier__random_state": "5"},
        {
            "decisiontreeclassifier__estimator__max_depth": 2,
            "decisiontreeclassifier__random_state": 5,
        },
    ),
    (
        "sklearn.preprocessing.StandardScaler,sklearn.svm.SVC",
        {"svc__C": "3"},
        {"estimator__svc__C": 3},
    ),
    ("preprocessing.MinMaxScaler,preprocessing.MinMaxScaler", {"minmaxscaler-2__clip": "true"}, {}),
    (
        SHARDS,
        {"estimator__alpha": "1e-3", "estimator": SGD, "n_shards": "4"},
        {"estimator__alpha": 1e-3, "n_shards": 4},
    ),
    (
        SHARDS,
        {
            "estimator": f"sklearn.preprocessing.StandardScaler, {SGD}",
            "estimator__sgdclassifier__alpha": "1e-3",
        },
        {"estimator__sgdclassifier__alpha": 1e-3, "estimator__standardscaler__with_mean": True},
    ),
    (
        SHARDS,
        {"estimator": "erasable.ensemble.HistGradientBoostingClassifier", "estimator__max_iter": 7},
        {"estimator__max_iter": 7, "random_state": None},
    ),
    (
        SHARDS,
        {
            "estimator": "erasable.preprocessing.StandardScaler -> erasable.linear_model.Ridge",
            "estimator__ridge__alpha": "2",
        },
        {"estimator__ridge__alpha": 2},
    ),
    (
        "preprocessing.StandardScaler,ensemble.BaggingClassifier",
        {"baggingclassifier__estimator": SGD, "baggingclassifier__estimator__alpha": "1e-3"},
        {"baggingclassifier__estimator__alpha": 1e-3},
    ),
    (
        "sklearn.multiclass.OneVsRestClassifier",
        {
            "estimator": "sklearn.ensemble.AdaBoostClassifier",
            "estimator__estimator": SGD,
            "estimator__estimator__alpha": "1e-3",
        },
        {"estimator__estimator__estimator__alpha": 1e-3},
    ),
]


@pytest.mark.parametrize(
    ("estimator", "params", "kept"),
    [
        (
            "linear_model.LogisticRegression",
            {"max_iter": "9", "C": "2", "solver": "saga"},
            {"C": 2},
        ),
        (
            "preprocessing.StandardScaler -> linear_model.Ridge",
            {"standardscaler__copy": "false", "ridge__solver": "lsqr", "ridge__alpha": "2"},
            {"ridge__alpha": 2},
        ),
        ("sklearn.linear_model.LogisticRegression", {"max_iter": "9"}, {"max_iter": 9}),
        (
            "ensemble.BaggingClassifier",
            {"estimator": "erasable.linear_model.LogisticRegression", "estimator__max_iter": "9"},
            {"estimator": "erasable.linear_model.LogisticRegression"},
        ),
    ],
)
def test_a_recipe_has_no_parameter_that_is_ignored(estimator, params, kept):
    recipe = recipes.parse(estimator, params)
    assert recipe["params"] == kept
    assert recipes.parse(recipe) == recipe


@pytest.mark.parametrize(("estimator", "params", "expected"), GOOD, ids=named)
def test_names_and_parameters_make_estimators(estimator, params, expected):
    if "penalty" in params:
        with pytest.raises(InvalidParameterError, match="penalty"):
            recipes.parse(estimator, params)
        return
    recipe = recipes.parse(estimator, params)
    assert json.loads(json.dumps(recipe)) == recipe
    made = recipes.make(recipe).get_params()
    assert {name: made[name] for name in expected} == expected


BAD = [
    ("cluster.KMaens", {}, "did you mean cluster.KMeans"),
    ("sklearn.cluster.KMaens", {}, "did you mean sklearn.cluster.KMeans"),
    ("os.system", {}, "no estimator 'os.system'"),
    ("sklearn.os.path", {}, "no estimator"),
    ("sklearn.base.clone", {}, "no estimator"),
    ("sklearn.utils._testing.os", {}, "no estimator"),
    ("", {}, "no estimator was named"),
    (" -> ", {}, "no estimator was named"),
    ("pipeline.Pipeline", {}, "cannot be made without steps"),
    ("cluster.KMeans", {"n_cluster": "3"}, "did you mean n_clusters"),
    ("preprocessing.StandardScaler,linear_model.Ridge", {"alpha": "3"}, "ridge__alpha"),
    ("preprocessing.StandardScaler,linear_model.Ridge", {"ridge__positive": "true"}, "Refit"),
    ("sklearn.svm.SVC", {"estimator": "3"}, "no parameter 'estimator'"),
    ("sklearn.svm.SVC", {"estimator__C": "3"}, "did you mean C"),
    ("sklearn.preprocessing.MinMaxScaler,sklearn.svm.SVC", {"svc": "3"}, "no parameter 'svc'"),
    (SHARDS, {}, "the parameter estimator; set estimator=sklearn"),
    (SHARDS, {"estimator": "3"}, "estimator=3"),
    (SHARDS, {"estimator": "SGDClassifier"}, f"did you mean {SGD}[?]"),
    (
        SHARDS,
        {"estimator": "linear_model.Ridge"},
        "did you mean sklearn.linear_model.Ridge or erasable.linear_model.Ridge[?]",
    ),
    (SHARDS, {"estimator": "erasable.linear_model.Rigde"}, "no estimator"),
    (
        SHARDS,
        {"estimator": "erasable.tree.DecisionTreeClassifier", "estimator__random_state": "1"},
        "did you mean random_state",
    ),
    (SHARDS, {"estimator": "sklearn.svm.SVM"}, "no estimator 'sklearn.svm.SVM'"),
    (SHARDS, {"estimator": "sklearn.os.path"}, "no estimator"),
    (SHARDS, {"estimator": SVC()}, "did you mean sklearn.svm.SVC[?]"),
    (SHARDS, {"estimator": SVC}, "did you mean sklearn.svm.SVC[?]"),
    (SHARDS, {"estimator": SGD, "estimator__alfa": "1"}, "did you mean estimator__alpha"),
    (SHARDS, {"estimator": SGD, "estimator__random_state": "1"}, "did you mean random_state"),
    (
        "cluster.KMeans,ensemble.ShardedClassifier",
        {"estimator": SGD},
        "set shardedclassifier__estimator=",
    ),
]


@pytest.mark.parametrize(("estimator", "params", "told"), BAD, ids=named)
def test_what_is_unknown_is_told_on_one_line_with_what_there_is(estimator, params, told):
    with pytest.raises(InvalidParameterError, match=told) as caught:
        recipes.parse(estimator, params)
    assert "\n" not in str(caught.value)
    assert "; expected " in str(caught.value)


def test_every_estimator_of_erasable_is_found_by_its_name():
    from erasable.cluster import KMeans
    from erasable.naive_bayes import GaussianNB

    for cls, home in ((KMeans, "cluster"), (GaussianNB, "naive_bayes")):
        for name in (f"{home}.{cls.__name__}", f"erasable.{home}.{cls.__name__}", cls.__name__):
            assert find_estimator(name) is cls


def test_estimators_of_scikit_learn_are_refitted_and_stateless_ones_are_not():
    alone = recipes.make(recipes.parse("sklearn.svm.SVC"))
    assert isinstance(alone, Refit)
    assert get_tags(alone).target_tags.required
    row = recipes.make(recipes.parse("sklearn.preprocessing.Normalizer,linear_model.Ridge"))
    assert [type(step).__name__ for _, step in row.steps] == ["Normalizer", "Ridge"]


@pytest.mark.parametrize(
    "estimator",
    ["cluster.KMeans", "preprocessing.StandardScaler,cluster.KMeans", "sklearn.svm.SVC"],
)
def test_seeds_that_were_drawn_stay_in_the_recipe(estimator):
    recipe = recipes.parse(estimator)
    first = recipes.make(recipe).fit(X, Y)
    kept = json.loads(json.dumps(recipes.with_seeds(recipe, first)))
    assert kept["seeds"]
    again = recipes.make(kept).fit(X, Y)
    assert again.digest() == first.digest()
    assert recipes.with_seeds(kept, again) == kept
    other = recipes.make(recipe).fit(X, Y)  # the control: without them it is another model
    assert other.digest() != first.digest()


@pytest.mark.parametrize("text", ["nothing", "a:b:c", "a b:c", "a:", ":b", "../x:f"])
def test_an_entry_point_is_a_module_and_a_function(text):
    with pytest.raises(InvalidParameterError, match="module:function"):
        recipes.parse_entry(text)


@pytest.mark.parametrize("entry", ["no_such_module:f", "json:no_such_function", "math:pi"])
def test_an_entry_point_that_is_not_there_is_told(entry):
    with pytest.raises(InvalidParameterError, match="expected"):
        recipes.find_entry(entry)


@pytest.mark.parametrize("command", ["train", "train {data}", "train {out}"])
def test_a_command_says_where_data_and_model_go(command):
    with pytest.raises(InvalidParameterError, match="lacks"):
        recipes.parse_command(command)
