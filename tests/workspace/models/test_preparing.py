"""Tables of numbers, text, days and times: models learn from them, and forget exactly."""

from __future__ import annotations

import csv
import json
import random
from datetime import date, datetime, time, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.base import clone

from cli.running import erasable, told
from effort import THOROUGH
from erasable.core.errors import InvalidParameterError, WorkspaceError
from erasable.core.estimator import Erasable
from erasable.workspace import Workspace
from erasable.workspace.identity.value_formats import Looks
from erasable.workspace.models import preparing, recipes, written
from erasable.workspace.models.names import names_of_erasable
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.training import from_bytes
from workspace_models import found

N = 90
WORDS = ["red", "green", "blue", "old", "new", "big", "small", "cat", "dog", "house", "tree"]
EPOCH = datetime(1970, 1, 1)
DRAWN = {
    "age": lambda rng: rng.randrange(90),
    "fee": lambda rng: round(rng.gauss(0, 3), 3),
    "agrees": lambda rng: rng.random() < 0.5,
    "since": lambda rng: date(2020, 1, 1) + timedelta(rng.randrange(2000)),
    "seen": lambda rng: datetime(2026, 1, 1, 9) + timedelta(minutes=rng.randrange(90_000)),
    "at": lambda rng: time(rng.randrange(24), rng.randrange(60)),
    "plan": lambda rng: rng.choice(["basic", "plus", "pro"]),
    "town": lambda rng: rng.choice(["Aix", "Bonn", "Cork", "Dole"]),
    "note": lambda rng: " ".join(rng.choices(WORDS, k=rng.randrange(4, 9))),
}
TEXTS = ("plan", "town", "note")
NOT_MODELS = (
    "compose.", "pipeline.", "preprocessing.", "feature_extraction.", "random_projection."
)  # fmt: skip
NAMES = [
    *(name for name in names_of_erasable() if not name.startswith(NOT_MODELS)),
    "sklearn.ensemble.HistGradientBoostingClassifier",
    "sklearn.linear_model.Lasso",
    "sklearn.naive_bayes.ComplementNB",
    "sklearn.svm.SVC",
    "sklearn.tree.DecisionTreeClassifier",
]
# They learn from codes, and from items.
UNPREPARED = {"naive_bayes.CategoricalNB", "recommend.ItemNeighbors"}


def drawn(rng, n=N):
    """Draw a table: some columns of each kind, with gaps in most of them."""
    names = [name for name in DRAWN if rng.random() < 0.7] or ["age", "plan"]
    holes = {name: rng.choice([0, 0.05, 0.3]) for name in names}
    return [
        {"visit": f"v{i}", "patient": f"p{i // 3}", "mail": f"p{i // 3}@x.org", "name": f"n{i}"}
        | {name: None if rng.random() < holes[name] else DRAWN[name](rng) for name in names}
        | {"sick": rng.choice(["yes", "no"]), "cost": round(rng.random(), 3)}
        for i in range(n)
    ]


def write(path, rows):
    """Write a file, in which gaps are null, or, of text in CSV, empty texts."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
        return path
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path


def number(value):
    """Return what a model is given for a value, by other ways than the workspace's."""
    if isinstance(value, datetime):
        return (value - EPOCH) / timedelta(days=1)
    if isinstance(value, date):
        return float((value - EPOCH.date()).days)
    if isinstance(value, time):
        return (value.hour * 60 + value.minute) / 60
    return value


def loaded(context, name):
    return from_bytes(context.store.open(found(context, name)[1].stored))


def frame(rows, columns, empty=""):
    """Return columns as a user would pass them; `empty` is a gap in a text."""
    texts = [name for name in columns if name in TEXTS]
    found = {name: [number(row[name]) for row in rows] for name in columns}
    for name in texts:
        found[name] = [empty if value is None else value for value in found[name]]
    return pd.DataFrame(found)


def fresh(context, model, rows, empty=""):
    """Fit the written recipe on records that were never in a workspace, but for tokens of people.

    Shares of records are drawn by these.
    """
    ((_, table),) = Reader(context).tables([1])
    tokens = dict(zip(table["visit"].to_pylist(), table["patient"].to_pylist(), strict=True))
    made = recipes.make(json.loads(json.dumps(model.recipe)))
    y = None if model.target is None else [row[model.target] for row in rows]
    return made.fit(
        frame(rows, model.features, empty), y,
        ids=[row["visit"] for row in rows], groups=[tokens[row["visit"]] for row in rows],
    )  # fmt: skip


def target_of(name):
    if name.startswith(("cluster.", "decomposition.")) or name.endswith("KernelDensity"):
        return None
    kinds = ("Regressor", "LinearRegression", "Ridge", "Segmented", "Nadaraya", "Lasso", "SVR")
    return "cost" if any(kind in name for kind in kinds) else "sick"


def params_of(name):
    if name.startswith("ensemble.Sharded"):
        inner = "Ridge" if "Regressor" in name else "LogisticRegression"
        return {"n_shards": 3, "estimator": f"erasable.linear_model.{inner}"}
    if name.startswith(("ensemble.", "cluster.")) and name != "cluster.DBSCAN":
        small = "max_iter" if "Gradient" in name else "n_estimators"
        return {"n_clusters": 3} if name.startswith("cluster.") else {small: 5}
    return {}


def fitted(tmp_path, rows, names, file="visits.csv", **options):
    workspace = Workspace.create(tmp_path / "ws")
    path = write(tmp_path / file, rows)
    workspace.add_dataset("visits", path, id_column="visit", subjects=["patient"])
    for at, name in enumerate(names):
        given = {"datasets": ["visits"], "target": target_of(name), "params": params_of(name)}
        workspace.fit(f"m{at}", name, **(given | options))
    return workspace


TURNS = 30 if THOROUGH else 3


@pytest.mark.parametrize("turn", range(TURNS))
def test_what_was_prepared_is_deleted_from_exactly(tmp_path, turn):
    """Drawn tables; every estimator is fitted on one in `make test`, and on ten in the soak."""
    rng = random.Random(turn)
    rows = drawn(rng)
    names = [name for name in NAMES[turn % 3 :: 3] if name not in UNPREPARED]
    file, empty = [("visits.csv", ""), ("visits.parquet", None)][turn % 2]
    workspace = fitted(tmp_path, rows, names, file)
    before = [loaded(workspace.context, f"m{at}").digest() for at in range(len(names))]
    gone = {f"p{rng.randrange(N // 3)}" for _ in range(2)}
    workspace.request(sorted(gone))
    workspace.process()
    left = [row for row in rows if row["patient"] not in gone]
    assert len(left) < len(rows)
    for at, name in enumerate(names):
        model, _ = found(workspace.context, f"m{at}")
        assert preparing.OF in model.recipe or "Gradient" in name
        now = loaded(workspace.context, f"m{at}").digest()
        assert now == fresh(workspace.context, model, left, empty).digest(), name
        assert now != before[at], name  # the control: the check can fail


TWINS = {
    "linear_model.Ridge": 1e-6,
    "linear_model.LinearRegression": 1e-6,
    "linear_model.LogisticRegression": None,
    "naive_bayes.GaussianNB": None,
    "naive_bayes.BernoulliNB": None,
    "naive_bayes.MultinomialNB": None,
    "neighbors.KNeighborsClassifier": None,
    "neighbors.KNeighborsRegressor": 1e-6,
}
HOMES = {
    "erasable.preprocessing.SimpleImputer": "sklearn.impute.SimpleImputer",
    "erasable.": "sklearn.",
}


def twin_of(recipe):
    text = json.dumps({name: recipe[name] for name in ("estimator", "params")})
    for ours, theirs in HOMES.items():
        text = text.replace(ours, theirs)
    return written.read_estimator(json.loads(text))


def test_predictions_are_those_of_scikit_learns_pipeline(tmp_path):
    rng = random.Random(7)
    rows = [row | {"plan": row.get("plan")} for row in drawn(rng)]
    columns = ["age", "fee", "since", "plan"]
    for row in rows:
        row |= {name: None if rng.random() < 0.1 else DRAWN[name](rng) for name in columns}
    workspace = fitted(tmp_path, rows, TWINS, features=columns)
    new = rows[:30] + [row | {"plan": "unheard of"} for row in rows[30:40]]
    write(tmp_path / "new.csv", [{name: row[name] for name in ("visit", *columns)} for row in new])
    for at, (name, near) in enumerate(TWINS.items()):
        model, _ = found(workspace.context, f"m{at}")
        twin = twin_of(model.recipe).fit(frame(rows, columns), [row[model.target] for row in rows])
        theirs = twin.predict(frame(new, columns))
        ours = workspace.predict(f"m{at}", tmp_path / "new.csv")["prediction"].to_pylist()
        if near is None:
            assert ours == theirs.tolist(), name
        else:
            np.testing.assert_allclose(ours, theirs, rtol=near, err_msg=name)


def test_no_later_record_breaks_it(tmp_path):
    """Gaps and categories that the fit has not seen are in what comes, and in what is asked."""
    rng = random.Random(5)
    whole = [{**row, **{name: draw(rng) for name, draw in DRAWN.items()}} for row in drawn(rng)]
    names = ["linear_model.LogisticRegression", "ensemble.RandomForestClassifier",
             "naive_bayes.GaussianNB", "sklearn.svm.SVC"]  # fmt: skip
    workspace = fitted(tmp_path, whole[:60], names)
    before = [found(workspace.context, f"m{at}")[0].recipe for at in range(len(names))]
    more = [row | dict.fromkeys(DRAWN) for row in whole[60:75]]
    more += [row | {"plan": "unheard of", "note": "of words"} for row in whole[75:]]
    path = write(tmp_path / "more.csv", more)
    workspace.append("visits", path, update_models=True)
    for at, recipe in enumerate(before):
        model, _ = found(workspace.context, f"m{at}")
        assert model.recipe == recipe
        assert (
            loaded(workspace.context, f"m{at}").digest()
            == fresh(workspace.context, model, whole[:60] + more).digest()
        )
        assert len(workspace.predict(f"m{at}", path)) == len(more)
    workspace.request([row["patient"] for row in whole[:75:3]])  # all that was whole leaves
    workspace.process()
    assert {each.verdict for each in workspace.verify()} == {"equal"}


NUMBERS = ["linear_model.LogisticRegression", "ensemble.RandomForestClassifier", "cluster.KMeans"]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_without_gaps_are_left_as_they_are(tmp_path, name):
    rng = random.Random(3)
    rows = [{"visit": f"v{i}", "patient": f"p{i // 3}", "age": rng.randrange(90),
             "fee": rng.random(), "agrees": i % 3 > 0, "sick": i % 2}
            for i in range(40)]  # fmt: skip
    given = {"params": {**params_of(name), "random_state": 1}} if "linear" not in name else {}
    workspace = fitted(tmp_path, rows, [name], **given)
    plain = workspace.fit("plain", name, datasets=["visits"], target=target_of(name),
                          params=given.get("params"), prepare="none")  # fmt: skip
    model, _ = found(workspace.context, "m0")
    assert model.recipe == found(workspace.context, "plain")[0].recipe
    assert isinstance(model.recipe["estimator"], list)
    assert plain.prepared == ""
    assert loaded(workspace.context, "m0").digest() == loaded(workspace.context, "plain").digest()
    rows[3]["age"] = None
    gaps = write(tmp_path / "gaps.csv", rows)
    workspace.add_dataset("gaps", gaps, id_column="visit", subjects=["patient"])
    filled = workspace.fit("filled", name, datasets=["gaps"], target=target_of(name), **given)
    assert ("filled" in filled.prepared) == ("Forest" not in name)  # which takes them


def test_what_takes_gaps_is_not_prepared_for_them(tmp_path):
    rows = [{"visit": i, "patient": i // 3, "age": None if i % 5 == 0 else i, "sick": i % 2}
            for i in range(40)]  # fmt: skip
    name = "ensemble.HistGradientBoostingClassifier"
    workspace = fitted(tmp_path, rows, [name], target="sick")
    assert preparing.OF not in found(workspace.context, "m0")[0].recipe
    for row in rows:
        row["since"] = date(2026, 1, 1) + timedelta(row["visit"])
    path = write(tmp_path / "days.csv", rows)
    workspace.add_dataset("days", path, id_column="visit", subjects=["patient"])
    made = workspace.fit("days", name, datasets=["days"], target="sick")
    assert (made.features, made.prepared) == (["age", "since"], "since in days")
    assert preparing.OF not in found(workspace.context, "days")[0].recipe


LONG = [" ".join([word, "is", "what", "it", "was"]) for word in WORDS]
KINDS = [
    (["a", "b", "a", None] * 5, "categories"),
    ([None] * 20, "names"),
    ([f"n{i}" for i in range(20)], "names"),
    ([f"n{i}" for i in range(19)] + ["n0"], "names"),
    ([f"n{i % 10}" for i in range(11)], "categories"),
    ([f"ann{i % 4}@x.org" for i in range(20)], "addresses"),
    ([f"+49 170 {1234567 + i % 4}" for i in range(20)], "addresses"),
    ([f"{LONG[i % 11]} {i}" for i in range(20)], "texts"),
    ([LONG[i % 3] for i in range(20)], "categories"),
    ([f"{LONG[i % 11]} a@x.org" if i < 5 else f"{LONG[i % 11]} {i}" for i in range(20)], "texts"),
]


@pytest.mark.parametrize(("values", "kind"), KINDS)
def test_text_is_categories_texts_or_names(values, kind):
    table = pa.table({"x": pa.array(values, pa.string())})
    looks = Looks(["x"])
    looks.add(table)
    assert preparing._kind_of_text("x", table, looks)[0] == kind


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    rng = random.Random(11)
    rows = [{**row, **{name: draw(rng) for name, draw in DRAWN.items()}} for row in drawn(rng)]
    return fitted(folder, rows, [])


def test_a_person_is_no_feature(mixed):
    made = mixed.fit("who", "linear_model.LogisticRegression", datasets=["visits"], target="sick")
    assert set(made.features) == {*DRAWN, "cost"}
    assert made.left_out == ["mail", "name"]
    (said,) = made.warnings
    assert "'mail' (text that looks like addresses or telephone numbers)" in said
    assert "'name' (text, another in most records)" in said
    named = mixed.fit("named", "naive_bayes.GaussianNB", datasets=["visits"], target="sick",
                      features=["age", "name"])  # fmt: skip
    assert named.features == ["age", "name"]


def test_what_takes_no_counts_says_so(mixed):
    made = mixed.fit("near", "neighbors.KNeighborsClassifier", datasets=["visits"], target="sick")
    assert "'note' (long texts, and KNeighborsClassifier takes no sparse counts" in made.warnings[0]
    with pytest.raises(WorkspaceError, match="'note' holds long texts, and KNeighborsClassifier"):
        mixed.fit("far", "neighbors.KNeighborsClassifier", datasets=["visits"], target="sick",
                  features=["age", "note"])  # fmt: skip


def test_the_same_fit_keeps_what_was_decided(mixed):
    def recipe(**more):
        given = {"datasets": ["visits"], "params": {"n_clusters": 2}} | more
        mixed.fit("again", "cluster.KMeans", **given)
        return found(mixed.context, "again")[0].recipe

    first = recipe()
    assert first["seeds"]
    assert recipe() == first
    mixed.fit("again")
    assert found(mixed.context, "again")[0].recipe == first
    mixed.fit("again", features=["age", "plan"])
    fewer = found(mixed.context, "again")[0]
    assert fewer.features == ["age", "plan"]
    assert fewer.recipe[preparing.OF] == first[preparing.OF]
    assert recipe() == fewer.recipe
    assert recipe(prepare="none")["estimator"] == ["erasable.cluster.KMeans"]


def test_a_pipeline_is_left_as_it_is(mixed):
    made = mixed.fit("own", "preprocessing.StandardScaler,naive_bayes.GaussianNB",
                     datasets=["visits"], target="sick")  # fmt: skip
    assert made.prepared == ""
    assert set(made.features) == {"age", "fee", "agrees", "cost"}


@pytest.mark.parametrize("which", ["from_dtype", ["plan", "town"]])
def test_boosting_that_names_its_categories_is_left_as_it_is(mixed, which):
    made = mixed.fit("grown", "ensemble.HistGradientBoostingClassifier", datasets=["visits"],
                     target="sick", features=["age", "plan", "town"],
                     params={"categorical_features": which, "max_iter": 3})  # fmt: skip
    assert made.prepared == ""
    version = found(mixed.context, "grown")[1]
    model = from_bytes(mixed.context.store.open(version.stored))
    assert model.n_features_in_ == 3
    assert mixed.verify(retrain=True)[-1].verdict == "equal"


def test_categories_that_are_named_are_features(mixed):
    made = mixed.fit("named", "ensemble.HistGradientBoostingClassifier", datasets=["visits"],
                     target="sick",
                     params={"categorical_features": ["town"], "max_iter": 2})  # fmt: skip
    assert set(made.features) == {"age", "fee", "agrees", "cost", "town"}


def test_each_shard_prepares_its_own_records(mixed):
    mixed.fit("shards", "ensemble.ShardedClassifier", datasets=["visits"], target="sick",
              params={"estimator": "sklearn.svm.SVC", "n_shards": 2})  # fmt: skip
    model = recipes.make(found(mixed.context, "shards")[0].recipe)
    assert list(model.estimator.named_steps) == ["prepare", "svc"]
    assert isinstance(clone(model.estimator[-1]), Erasable)


@pytest.mark.parametrize(
    "name", ["sklearn.decomposition.PCA", "sklearn.ensemble.HistGradientBoostingRegressor"]
)
def test_what_scikit_learn_cannot_repeat_or_learn_is_not_given_to_it(tmp_path, name):
    """A table of too few different rows, and a column in which nothing but gaps is left."""
    rows = [
        {"id": f"v{i}", "who": f"p{i}", "one": 1, "two": 2, "rare": 5.0 if i == 7 else None,
         "at": "abc"[i % 3], "y": i % 10}
        for i in range(60)
    ]  # fmt: skip
    workspace = Workspace.create(tmp_path / "ws")
    workspace.add_dataset(
        "visits", write(tmp_path / "a.parquet", rows), id_column="id", subjects=["who"]
    )
    workspace.fit("m", name, datasets=["visits"], target=target_of(name) and "y")
    for _ in range(3):
        assert [each.verdict for each in workspace.verify()] == ["equal"]
    workspace.request(["p7"])
    workspace.process()
    assert [each["state"] for each in workspace.models()] == ["ready"]
    assert [each.verdict for each in workspace.verify()] == ["equal"]


def test_an_unknown_choice_is_refused(mixed):
    with pytest.raises(InvalidParameterError, match="prepare is 'all'; expected auto or none"):
        mixed.fit("x", "cluster.KMeans", datasets=["visits"], prepare="all")


def test_the_command_line_says_what_it_did(tmp_path):
    rows = [{"id": i, "age": i % 60, "since": date(2020, 1, 1), "plan": "ab"[i % 2], "y": i % 2}
            for i in range(40)]  # fmt: skip
    write(tmp_path / "rows.csv", rows)
    told("init", folder=tmp_path)
    told("dataset", "add", "rows", "rows.csv", "--id", "id", folder=tmp_path)
    fit = ["model", "fit", "m", "--dataset", "rows", "--target", "y", "--estimator",
           "naive_bayes.GaussianNB"]  # fmt: skip
    printed = erasable(*fit, folder=tmp_path)
    assert printed.stdout.startswith("prepared: age, since in days filled; plan one-hot\n")
    assert printed.stderr == ""
    shown = erasable("model", "show", "m", folder=tmp_path).stdout
    assert "estimator   erasable.compose.ColumnTransformer -> erasable.naive_bayes.Gauss" in shown
    assert "numbers     SimpleImputer of age, since" in shown
    recipe = erasable("model", "show", "m", "--recipe", folder=tmp_path).stdout
    (tmp_path / "edited.json").write_text(recipe.replace("median", "most_frequent"))
    edited = ["model", "fit", "edited", "--dataset", "rows", "--target", "y", "--estimator"]
    found = told(*edited, "edited.json", folder=tmp_path)
    assert found["features"] == ["age", "since", "plan"]
    assert (
        "most_frequent" in erasable("model", "show", "edited", "--recipe", folder=tmp_path).stdout
    )
    none = erasable(*fit, "--prepare", "none", folder=tmp_path)
    assert "prepared" not in none.stdout
    assert "does not learn from 'since' (date32[day]), 'plan' (text)" in none.stderr


def test_columns_that_data_sets_have_in_common_are_features(tmp_path):
    rng = random.Random(2)
    rows = [{"visit": f"v{i}", "patient": f"p{i // 3}", "age": rng.randrange(90),
             "plan": rng.choice("ab"), "sick": i % 2} for i in range(60)]  # fmt: skip
    workspace = fitted(tmp_path, rows[:30], [])
    others = [row | {"plan": rng.randrange(3)} for row in rows[30:]]
    write(tmp_path / "others.csv", others)
    workspace.add_dataset("others", tmp_path / "others.csv", id_column="visit",
                          subjects=["patient"])  # fmt: skip
    made = workspace.fit("both", "naive_bayes.GaussianNB", datasets=["visits", "others"],
                         target="sick")  # fmt: skip
    assert made.features == ["age"]


def test_numbers_that_are_too_many_for_memory_are_left_where_they_are(mixed, monkeypatch):
    monkeypatch.setattr(mixed.context, "memory", 16 * N * 4)  # a fragment, and not all columns
    made = mixed.fit("large", "linear_model.Ridge", datasets=["visits"], target="cost")
    assert set(made.features) == {"age", "fee", "agrees"}
    assert made.prepared == ""
    assert preparing.OF not in found(mixed.context, "large")[0].recipe
    monkeypatch.setattr(mixed.context, "memory", None)
    assert mixed.fit("small", "linear_model.Ridge", datasets=["visits"], target="cost").prepared
