from __future__ import annotations

import sys

import pytest
from sqlalchemy import select

import operations
from erasable.core.errors import WorkspaceError
from erasable.tree import _estimators
from erasable.workspace.evidence import log
from erasable.workspace.evidence.ledger_checks import given
from erasable.workspace.ledger import schema
from erasable.workspace.models import deleting, estimates, verifying
from erasable.workspace.models.training import from_bytes
from erasable.workspace.store.accelerators import FOLDER
from workspace_models import (
    add_visits,
    erased,
    found,
    keys_in,
    loaded,
    prepared,
    take_out_of_data,
    written_down,
)

GONE = ["v3", "v4", "v5", "v77"]
LEFT = [i for i in range(120) if f"v{i}" not in GONE]
TRAIN = (
    "import sys, pyarrow.parquet as p; t = p.read_table(sys.argv[1]); "
    "open(sys.argv[2], 'w').write(','.join(map(str, t['visit'].to_pylist())))"
)
COMMAND = f'{sys.executable} -c "{TRAIN}" {{data}} {{out}}'
KINDS = {
    "linear": ("linear_model.Ridge", {"target": "cost"}, "deleted"),
    "logistic": ("linear_model.LogisticRegression", {"target": "sick"}, "deleted"),
    "bayes": ("naive_bayes.GaussianNB", {"target": "sick"}, "deleted"),
    "clusters": (
        "preprocessing.StandardScaler->cluster.KMeans",
        {"params": {"kmeans__n_clusters": 3}},
        "deleted",
    ),
    "words": (
        "feature_extraction.TfidfVectorizer,linear_model.LogisticRegression",
        {"target": "sick", "features": ["note"]},
        "deleted",
    ),
    "forest": (
        "sklearn.ensemble.RandomForestClassifier",
        {"target": "sick", "params": {"n_estimators": 3}, "prepare": "none"},
        "refitted",
    ),
    "shards": (
        "preprocessing.StandardScaler,ensemble.ShardedClassifier",
        {
            "target": "sick",
            "params": {
                "shardedclassifier__estimator": "sklearn.tree.DecisionTreeClassifier",
                "shardedclassifier__estimator__max_depth": "3",
                "shardedclassifier__n_shards": 3,
            },
        },
        "deleted",
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_left_is_what_a_fit_without_the_records_makes(visits, tmp_path, name):
    estimator, options, treatment = KINDS[name]
    operations.fit(visits, name, estimator, datasets=["visits"], **options)
    model, before = found(visits, name)
    made = erased(visits, name, GONE)
    assert (made.treatment, made.exactness) == (treatment, "bitwise")
    assert (made.n_deleted, made.n_records) == (4, 116)
    assert made.before == before.commitment
    # A workspace that never had the records, with the same recipe, is the oracle.
    from erasable.workspace.models import recipes
    from erasable.workspace.models.reading import Reader
    from erasable.workspace.models.training import train

    add_visits(visits, tmp_path, "never", LEFT)
    reader, design = Reader(visits), deleting.design_of(model)
    tables = reader.to_learn_from([2], design=design)
    again = train(visits, given(model.recipe), tables, design, reader.records)
    assert loaded(visits, name).digest() == again.digest
    untouched = recipes.make(model.recipe)
    assert untouched.get_params().keys() == loaded(visits, name).get_params().keys()
    _, after = found(visits, name)
    assert (after.number, after.cause, after.n_records) == (2, "erase", 116)
    assert after.dataset_versions == before.dataset_versions
    take_out_of_data(visits, GONE)
    assert [each.verdict for each in verifying.verify(visits)] == ["equal"]


@pytest.mark.parametrize(
    "estimator",
    ["tree.DecisionTreeClassifier", "preprocessing.StandardScaler,tree.DecisionTreeClassifier"],
)
def test_trees_that_lose_many_records_are_fitted_anew_and_are_the_same(
    visits, monkeypatch, estimator
):  # fmt: skip
    operations.fit(visits, "t", estimator, datasets=["visits"], target="sick")
    model, version = found(visits, "t")
    digests = {from_bytes(visits.store.open(prepared(visits, "t", GONE).stored)).digest()}
    visits.disk.remove_folder(FOLDER)
    for many, treatment in ((len(GONE), "refitted"), (len(GONE) + 1, "deleted")):
        monkeypatch.setattr(_estimators, "_MANY", many)
        assert deleting.foresee(visits, model, version, len(GONE)) == (treatment, "bitwise")
        made = prepared(visits, "t", GONE)
        visits.disk.remove_folder(FOLDER)
        assert (made.treatment, made.exactness, made.n_records) == (treatment, "bitwise", 116)
        digests.add(from_bytes(visits.store.open(made.stored)).digest())
    assert len(digests) == 1
    monkeypatch.setattr(_estimators, "_SHARE", len(GONE) / 120)  # too few of so many
    monkeypatch.setattr(_estimators, "_MANY", 1)
    assert deleting.foresee(visits, model, version, len(GONE)) == ("deleted", "bitwise")


def test_prepare_changes_no_pointer(visits):
    operations.fit(visits, "r", "linear_model.Ridge", datasets=["visits"], target="cost")
    rows = found(visits, "r")
    before = keys_in(visits)
    made = prepared(visits, "r", GONE)
    assert found(visits, "r") == rows
    assert keys_in(visits) - before == {made.stored.key}
    visits.clean()  # of a process that died here, nothing is left
    assert keys_in(visits) == before


def test_adopting_drops_the_file_and_the_salt_of_before(visits):
    operations.fit(visits, "r", "linear_model.Ridge", datasets=["visits"], target="cost")
    _, before = found(visits, "r")
    made = erased(visits, "r", GONE)
    visits.clean()
    models = {key for key in keys_in(visits) if key.startswith("models/")}
    assert models == {made.stored.key}
    with visits.ledger.reading() as connection:
        rows = connection.execute(select(schema.model_version)).all()
    assert [row.salt is None for row in rows] == [True, False]
    assert made.salt != before.salt


@pytest.mark.parametrize(
    ("estimator", "params", "n_left"),
    [("cluster.KMeans", {"n_clusters": 3}, 2), ("cluster.KMeans", {"n_clusters": 1}, 0),
     ("sklearn.cluster.KMeans", {"n_clusters": 3}, 2)],
)  # fmt: skip
def test_a_model_left_with_too_little_is_retired(visits, estimator, params, n_left):
    operations.fit(visits, "k", estimator, datasets=["visits"], params=params)
    made = erased(visits, "k", [f"v{i}" for i in range(120 - n_left)])
    assert (made.treatment, made.exactness, made.stored) == ("retired", "gone", None)
    assert f"would leave {n_left}; " in made.reason or "KMeans" in made.reason
    assert "\n" not in made.reason
    visits.clean()
    assert not [key for key in keys_in(visits) if key.startswith("models/")]
    model, version = found(visits, "k")
    assert (model.state, version.key, version.salt) == ("retired", None, None)
    with visits.ledger.reading() as connection:
        kinds = [each["kind"] for each in log.entries(connection)]
    assert kinds[-1] == "model-retired"
    assert [each.verdict for each in verifying.verify(visits)] == ["retired"]


def test_one_class_left_retires_a_classifier(visits):
    operations.fit(visits, "c", "sklearn.svm.SVC", datasets=["visits"], target="sick")
    sick = {f"v{i}" for i in range(120)} - {
        f"v{i}" for i in range(120) if _is_sick(i) == "no"
    }  # fmt: skip
    assert 0 < len(sick) < 120
    assert erased(visits, "c", sorted(sick)).treatment == "retired"


def _is_sick(i):
    from workspace_models import visit

    return visit(i)[7]


def test_a_command_is_run_again_on_what_is_left(visits):
    operations.register(visits, "theirs", datasets=["visits"], retrain=COMMAND)
    made = erased(visits, "theirs", GONE)
    assert (made.treatment, made.exactness) == ("retrained", "trained again")
    _, version = found(visits, "theirs")
    text = visits.store.open(version.stored).decode().split(",")
    assert text == sorted(f"v{i}" for i in LEFT)
    assert not list((visits.root / "scratch").iterdir())


def test_a_command_that_fails_changes_nothing(visits, tmp_path):
    marker = tmp_path / "marker"
    marker.write_text("")
    command = f"cp {marker} {{out}} {{data}}"  # cp refuses three files into one
    with pytest.raises(WorkspaceError):
        operations.register(visits, "theirs", datasets=["visits"], retrain=command)
    script = tmp_path / "once.sh"
    script.write_text(f"if test -f {marker}; then cp {script} $2; else exit 3; fi")
    command = f"sh {script} {{data}} {{out}}"
    operations.register(visits, "theirs", datasets=["visits"], retrain=command)
    marker.unlink()
    rows, before = found(visits, "theirs"), keys_in(visits)
    with pytest.raises(WorkspaceError, match="exited with 3"):
        prepared(visits, "theirs", GONE)
    assert (found(visits, "theirs"), keys_in(visits)) == (rows, before)
    assert not list((visits.root / "scratch").iterdir())


def test_a_model_that_is_not_covered_stays_as_it_is(visits):
    operations.register(visits, "far", datasets=["visits"])
    rows = found(visits, "far")
    made = erased(visits, "far", [])
    assert (made.treatment, made.exactness, made.stored) == ("not covered", "unknown", None)
    assert found(visits, "far") == rows


def test_a_model_of_another_algorithm_is_fitted_again(visits):
    operations.fit(
        visits, "r", "linear_model.Ridge", datasets=["visits"], target="cost", prepare="none"
    )
    with visits.ledger.transaction() as connection:
        connection.execute(
            schema.model_version.update().values(algorithm="erasable.linear_model.Ridge/0")
        )
    written_down(visits)
    made = erased(visits, "r", GONE)
    assert (made.treatment, made.exactness) == ("refitted", "bitwise")
    assert made.algorithm == "erasable.linear_model.Ridge/1"


def test_a_damaged_model_stops_the_erasure_with_advice(visits):
    operations.fit(visits, "r", "linear_model.Ridge", datasets=["visits"], target="cost")
    _, version = found(visits, "r")
    path = visits.root / "artifacts" / version.key
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    before = keys_in(visits)
    assert prepared(visits, "r", GONE).treatment == "deleted"  # by its accelerator
    visits.clean()
    visits.disk.remove_folder(FOLDER)
    with pytest.raises(WorkspaceError, match="altered or damaged"):
        prepared(visits, "r", GONE)
    assert keys_in(visits) == before


def test_several_data_sets_with_the_same_ids_lose_their_own(visits, tmp_path):
    add_visits(visits, tmp_path, "more", range(100, 140))
    operations.fit(visits, "b", "linear_model.Ridge", datasets=["visits", "more"], target="cost")
    model, version = found(visits, "b")
    made = deleting.prepare_model(visits, model, version, {1: ["v101"], 2: ["v130", "v101"]})
    assert (made.treatment, made.n_deleted, made.n_records) == ("deleted", 3, 157)
    with visits.ledger.transaction() as connection:
        deleting.adopt(visits, connection, made, visits.now())
    take_out_of_data(visits, ["v101"], 1)
    take_out_of_data(visits, ["v130", "v101"], 2)
    assert [each.verdict for each in verifying.verify(visits)] == ["equal"]


@pytest.mark.parametrize("name", KINDS)
def test_what_is_foreseen_is_what_happens(visits, name):
    estimator, options, _ = KINDS[name]
    operations.fit(visits, name, estimator, datasets=["visits"], **options)
    model, version = found(visits, name)
    foreseen = deleting.foresee(visits, model, version, len(GONE))
    made = prepared(visits, name, GONE)
    assert foreseen == (made.treatment, made.exactness)
    assert deleting.foresee(visits, model, version, 120) == ("retired", "gone")


def test_estimates_come_from_what_was_measured(visits):
    operations.fit(visits, "r", "linear_model.Ridge", datasets=["visits"], target="cost")
    with visits.ledger.transaction() as connection:
        connection.execute(schema.measurement.update().values(seconds=7.0))
        assert estimates.seconds_of_model(connection, 1, 3) == 7.0
        assert estimates.seconds_of_model(connection, 1, 0) == 0.0
        assert estimates.seconds_of_model(connection, 99, 3) is None
        for seconds in (1.0, 2.0, 40.0):
            estimates.note(connection, 1, "delete", 100, 4, seconds, visits.now())
        assert estimates.seconds_of_model(connection, 1, 3) == 2.0
        for seconds in (3.0,) * 5:
            estimates.note(connection, 1, "refit", 100, 4, seconds, visits.now())
        assert estimates.seconds_of_model(connection, 1, 3) == 3.0


def test_estimates_of_data_sets_come_from_their_rewriting(visits):
    with visits.ledger.transaction() as connection:
        assert estimates.seconds_of_dataset(connection, 1, 10) is None
        connection.execute(
            schema.measurement.insert().values(
                dataset_id=1, kind="rewrite", n_records=100, n_deleted=10, seconds=2.0,
                at=visits.now(),
            )
        )  # fmt: skip
        assert estimates.seconds_of_dataset(connection, 1, 0) == 0.0
        assert estimates.seconds_of_dataset(connection, 1, 5) == 1.0
        assert estimates.seconds_of_dataset(connection, 1, 10) == 2.0


def test_the_log_says_of_every_model_what_the_ledger_says(visits):
    from erasable.workspace.evidence.consistency import compare_ledger_with_log

    operations.fit(visits, "a", "linear_model.Ridge", datasets=["visits"], target="cost")
    operations.fit(visits, "b", "cluster.KMeans", datasets=["visits"], params={"n_clusters": 2})
    operations.register(visits, "c", datasets=["visits"])
    assert compare_ledger_with_log(visits) == []
    erased(visits, "a", GONE)
    erased(visits, "b", [f"v{i}" for i in range(119)])
    assert compare_ledger_with_log(visits) == []
    with visits.ledger.transaction() as connection:
        connection.execute(schema.model_version.update().values(n_records=7))
    assert compare_ledger_with_log(visits) != []


def test_models_of_a_batch_read_once_and_share_nothing(visits, monkeypatch):
    from erasable.workspace.models import reading

    for name, target in (("a", "cost"), ("b", "sick"), ("c", "cost")):
        kind = "linear_model.Ridge" if target == "cost" else "naive_bayes.GaussianNB"
        operations.fit(visits, name, kind, datasets=["visits"], target=target, features=["age"])
    visits.disk.remove_folder(FOLDER)
    alone = {name: prepared(visits, name, GONE) for name in "abc"}
    visits.disk.remove_folder(FOLDER)
    read = []
    table = reading.read_parts
    monkeypatch.setattr(
        reading, "read_parts", lambda *args: read.append(sorted(args[3])) or table(*args)
    )
    reader = reading.Reader(visits)
    for name in "abc":
        model, version = found(visits, name)
        made = deleting.prepare_model(visits, model, version, {1: GONE}, reader)
        assert made.stored.sha256 == alone[name].stored.sha256
    assert read == [["age", "cost", "patient", "visit"], ["sick"]]
