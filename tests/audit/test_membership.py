"""Attacks find what models have learned by heart, and nothing else."""

from __future__ import annotations

import json
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from erasable.audit import (
    RMIA,
    LiRA,
    audit_membership,
    leave_one_out_influence,
    plan_membership,
)
from erasable.audit._data import Sample, apart
from erasable.audit._shadows import Shadows, train_shadows
from erasable.audit._signals import LEAST, Signals, signals_of
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer
from erasable.core.errors import InvalidInputError, InvalidParameterError, TooFewRecordsError
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder, StandardScaler


def noise(n: int, seed: int = 0, d: int = 4) -> tuple[Any, Any]:
    """Return records whose targets cannot be learned but by heart."""
    source = np.random.default_rng(seed)
    return source.normal(size=(n, d)), source.integers(0, 2, n)


# -- signals ---------------------------------------------------------------------------------------


def test_signals_are_log_odds() -> None:
    p = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]])
    model = SimpleNamespace(classes_=[0, 1, 2], predict_proba=lambda X: p)
    sample = Sample.read((np.zeros((2, 1)), [0, 0]), "records")
    told = signals_of(model, sample)
    assert told.confidence == pytest.approx(np.log([0.7, LEAST]), abs=1e-5)
    assert told.logit[0] == pytest.approx(np.log(0.7 / 0.3))
    warm = signals_of(model, sample, temperature=2.0)
    assert warm.confidence[0] == pytest.approx(np.log(0.7**0.5 / (p[0] ** 0.5).sum()), abs=1e-5)


def test_decisions_are_taken_for_log_odds() -> None:
    X, y = noise(60)
    names = np.array(["no", "yes"])[y]
    model = LogisticRegression().fit(X, names)
    told = signals_of(model, Sample.read((X, names), "records")).logit
    p = model.predict_proba(X)[np.arange(60), y]
    assert told == pytest.approx(np.log(p / (1.0 - p)), abs=1e-9)
    margins = LinearSVC().fit(X, names)
    found = signals_of(margins, Sample.read((X, names), "records")).logit
    assert found == pytest.approx(margins.decision_function(X) * (2 * y - 1))


def test_other_models_bring_a_signal() -> None:
    X, y = noise(30)
    sample = Sample.read((X, y), "records")
    model = KMeans(n_clusters=2, random_state=0).fit(X)
    with pytest.raises(InvalidInputError, match="signal="):
        signals_of(model, sample)
    found = signals_of(model, sample, signal=lambda m, X, y: -m.transform(X).min(axis=1))
    assert found.logit == pytest.approx(-model.transform(X).min(axis=1))
    with pytest.raises(InvalidInputError, match=r"shape \(2,\)"):
        signals_of(model, sample, signal=lambda *_: [0.0, 1.0])


def test_one_against_one_decisions_are_no_log_odds() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = np.arange(80) % 4
    model = SVC(decision_function_shape="ovo").fit(X, y)
    with pytest.raises(InvalidInputError, match="predict_proba"):
        signals_of(model, Sample.read((X, y), "records"))


def test_classes_that_a_model_does_not_know() -> None:
    X, y = noise(40)
    model = GaussianNB().fit(X, y)
    sample = Sample.read((X, np.where(np.arange(40) == 3, 7, y)), "others")
    with pytest.raises(InvalidInputError, match=r"others has the targets 7, .*classes 0, 1;"):
        signals_of(model, sample)
    told = signals_of(model, sample, knows_all=False)
    known = signals_of(model, Sample.read((X, y), "others"))
    rest = np.arange(40) != 3
    assert told.confidence[3] == pytest.approx(np.log(LEAST), abs=1e-5)
    assert told.confidence[rest] == pytest.approx(known.confidence[rest], abs=2e-6)


def test_one_class_alone_tells_nothing() -> None:
    X, y = noise(40)[0], np.zeros(40, dtype=int)
    model = GaussianNB().fit(X, y)
    told = signals_of(model, Sample.read((X, y), "records"))
    assert np.unique(told.logit) == pytest.approx([-np.log(LEAST)])
    split = (X[:20], y[:20]), (X[20:], y[20:])
    report = audit_membership(model, *split, attack=LiRA(4), random_state=0)
    assert report["audited records"].separation is not None
    assert report["audited records"].separation.p_value == 1.0


def test_answers_that_are_no_numbers_are_refused() -> None:
    class Gaps(DecisionTreeClassifier):
        def predict_proba(self, X: Any) -> Any:
            p = super().predict_proba(X)
            p[:5] = np.nan
            return p

    X, y = noise(40)
    sample = Sample.read((X, y), "records")
    with pytest.raises(InvalidInputError, match="Gaps gave no finite number for 5 of 40 records"):
        signals_of(Gaps().fit(X, y), sample)
    several = MultiOutputClassifier(GaussianNB()).fit(X, np.column_stack([y, y]))
    with pytest.raises(InvalidInputError, match="has 2 targets for each record; expected one"):
        signals_of(several, sample)
    with pytest.raises(InvalidInputError, match=r"array of shape \(40, 2\); expected \(40,\)"):
        signals_of(LinearRegression().fit(X, np.column_stack([y, y])), sample)
    column = signals_of(LinearRegression().fit(X, y.reshape(-1, 1)), sample)
    assert column.logit == pytest.approx(signals_of(LinearRegression().fit(X, y), sample).logit)
    for wrong in (np.append(y[1:], np.nan), np.append(y[1:], None), np.full(40, "a")):
        with pytest.raises(InvalidInputError, match="records has targets that are no finite num"):
            signals_of(LinearRegression().fit(X, y), Sample.read((X, wrong), "records"))
    with pytest.raises(InvalidInputError, match="records has the targets None, and the model"):
        signals_of(GaussianNB().fit(X, y), Sample.read((X, [None, *y[1:]]), "records"))


def test_a_regressor_is_sure_where_it_is_near() -> None:
    X, y = noise(30)[0], np.arange(30.0)
    model = LinearRegression().fit(X, y)
    told = signals_of(model, Sample.read((X, y), "records"))
    errors = (model.predict(X) - y) ** 2
    assert told.logit == pytest.approx(-errors)
    assert told.confidence == pytest.approx(-errors / 2 / y.var())


# -- attacks, against formulas written out ---------------------------------------------------------


def some_shadows(n_models: int, n: int, seed: int = 0) -> Shadows:
    source = np.random.default_rng(seed)
    logit = source.normal(size=(n_models, n))
    members = source.random((n_models, n)).argsort(axis=0) < n_models // 2
    return Shadows(-np.log1p(np.exp(-logit)), logit + members, members)


def test_lira_is_the_ratio_of_two_normals() -> None:
    shadows, told = some_shadows(64, 5), np.linspace(-1.0, 2.0, 5)
    scores = LiRA(64).scores(Signals(told, told), shadows, 5)
    for j in range(5):
        inside = shadows.logit[shadows.members[:, j], j]
        outside = shadows.logit[~shadows.members[:, j], j]
        expected = norm.logpdf(told[j], inside.mean(), inside.std(ddof=1)) - norm.logpdf(
            told[j], outside.mean(), outside.std(ddof=1)
        )
        assert scores[j] == pytest.approx(expected)
    offline = LiRA(64, online=False).scores(Signals(told, told), shadows, 5)
    outside = shadows.logit[~shadows.members[:, 0], 0]
    assert offline[0] == pytest.approx((told[0] - outside.mean()) / outside.std(ddof=1))


def test_few_shadows_share_a_variance() -> None:
    shadows, told = some_shadows(8, 5), np.linspace(-1.0, 2.0, 5)
    scores = LiRA(8, online=False).scores(Signals(told, told), shadows, 5)
    away = [shadows.logit[~shadows.members[:, j], j] for j in range(5)]
    pooled = np.sqrt(sum(((x - x.mean()) ** 2).sum() for x in away) / sum(x.size - 1 for x in away))
    expected = [(t - x.mean()) / pooled for t, x in zip(told, away, strict=True)]
    assert scores == pytest.approx(expected)


@pytest.mark.parametrize("a", [0.0, 0.4, 1.0])
def test_rmia_is_the_share_of_the_population_outdone(a: float) -> None:
    """Equation 2 of the paper, pair by pair."""
    shadows = some_shadows(4, 9)
    members = shadows.members.copy()
    members[:, 6:] = False  # the last three are audited
    shadows = Shadows(shadows.confidence, shadows.logit, members)
    told = -np.random.default_rng(1).exponential(size=9)
    attack = RMIA(4, gamma=1.3, a=a)
    scores = attack.scores(Signals(told, told), shadows, 6)

    def ratio(j: int) -> float:
        without = np.exp(shadows.confidence[~members[:, j], j]).mean()
        return float(np.exp(told[j]) / (((1 + a) * without + (1 - a)) / 2))

    expected = [np.mean([ratio(x) / ratio(z) >= 1.3 for z in range(6)]) for x in range(9)]
    assert attack.outdone(scores, 6) == pytest.approx(expected)
    assert np.argsort(scores).tolist() == np.argsort([ratio(x) for x in range(9)]).tolist()


def test_a_is_tuned_on_a_reference() -> None:
    X, y = noise(400, d=3)
    sample = Sample.read((X, y), "pool")
    tree = DecisionTreeClassifier(min_samples_leaf=3)
    shadows = train_shadows(tree, sample, n_models=4, seed=0, temperature=2.0)
    tuned = RMIA().tuned(shadows, 400)
    assert tuned in np.linspace(0.0, 1.0, 11)
    assert RMIA(a=0.25).tuned(shadows, 400) == 0.25
    assert RMIA(1).tuned(shadows.of_models([0], 400), 400) == pytest.approx(1 / 3)


# -- shadows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        GaussianNB,
        lambda: KNeighborsClassifier(n_neighbors=3),
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["naive-bayes", "neighbours", "pipeline"],
)
def test_pairs_are_refits_bit_for_bit(make: Any) -> None:
    X, y = noise(60)
    pool = Sample.read((X, y), "pool")
    shadows = train_shadows(make(), pool, n_models=4, seed=2, paired=[0, 5, 59])
    assert shadows.without is not None
    assert np.isnan(shadows.without[:, [1, 2, 30]]).all()
    for k in range(4):
        for row in (0, 5, 59):
            left = np.flatnonzero(shadows.members[k])
            if row not in left:
                assert np.isnan(shadows.without[k, row])
                continue
            left = left[left != row]
            fresh = make().fit(X[left], y[left], ids=left)
            told = signals_of(fresh, pool.take([row])).logit
            assert shadows.without[k, row] == told[0]


def test_pairs_need_exact_deletion() -> None:
    pool = Sample.read(noise(40), "pool")
    with pytest.raises(InvalidInputError, match="DecisionTreeClassifier"):
        train_shadows(DecisionTreeClassifier(), pool, n_models=4, seed=0, paired=[0])


def test_every_record_is_in_half_of_the_shadows() -> None:
    X, y = noise(51)
    for n_models in (2, 4, 7):
        shadows = train_shadows(GaussianNB(), Sample.read((X, y), "p"), n_models=n_models, seed=1)
        assert (shadows.members.sum(axis=0) == n_models // 2).all()
    again = train_shadows(GaussianNB(), Sample.read((X, y), "p"), n_models=7, seed=1, n_jobs=2)
    assert np.array_equal(again.logit, shadows.logit)


# -- audits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ["rmia", RMIA(1), LiRA(16), LiRA(16, online=False)], ids=str)
def test_what_is_known_by_heart_is_found(attack: Any) -> None:
    X, y = noise(900)
    model = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    report = audit_membership(
        model, (X[:300], y[:300]), (X[300:], y[300:]), attack=attack, random_state=0
    )
    assert report.verdict == "found"
    assert "reveals which records" in report.sentence
    found = report["audited records"].separation
    assert found is not None
    assert found.area > 0.65
    told = json.loads(report.to_json())
    assert told["verdict"] == "found"
    assert told["groups"][0]["separation"]["area"] == found.area
    assert {each.id for each in report.exposed} <= set(range(300))
    control = report.groups[1]
    assert control.name.startswith("control")
    assert control.separation is not None
    assert control.separation.p_value > 0.001


@pytest.mark.parametrize("attack", ["rmia", LiRA(16)], ids=str)
def test_what_was_not_learned_is_not_found(attack: Any) -> None:
    """The negative control: the model has learned from other records."""
    alarms = 0
    for seed in range(15):
        X, y = noise(700, seed)
        model = DecisionTreeClassifier(random_state=0).fit(*noise(300, seed + 100))
        report = audit_membership(
            model, (X[:300], y[:300]), (X[300:], y[300:]), attack=attack, random_state=seed
        )
        alarms += report.verdict == "found"
    assert alarms <= 3  # of 15 at 0.05: more have a probability of 0.006


@pytest.mark.parametrize("attack", ["rmia", RMIA(1), LiRA(16), LiRA(16, online=False)], ids=str)
def test_groups_that_differ_anyway_are_not_a_leak(attack: Any) -> None:
    """Members are easier than others, for any model."""
    source = np.random.default_rng(0)
    X = source.normal(size=(1500, 2))
    y = (X[:, 0] > 0).astype(int)
    easy = np.abs(X[:, 0]) > 0.5
    members, others = np.flatnonzero(easy)[:400], np.flatnonzero(~easy)
    model = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X[members], y[members])
    pool = (source.normal(size=(600, 2)), source.integers(0, 2, 600))
    pool = (pool[0], (pool[0][:, 0] > 0).astype(int))
    report = audit_membership(
        model, (X[members], y[members]), (X[others], y[others]), random_state=0, pool=pool,
        recipe=GaussianNB(), attack=attack,
    )  # fmt: skip
    assert report.verdict == "cannot tell"
    assert "differ for another reason" in report.sentence


def test_paired_audits_of_models_of_erasable() -> None:
    X, y = noise(400)
    model = KNeighborsClassifier(n_neighbors=2).fit(X[:100], y[:100])
    report = audit_membership(
        model, (X[:100], y[:100]), (X[100:200], y[100:200]), pool=(X[200:], y[200:]),
        attack=LiRA(8), paired=True, random_state=0,
    )  # fmt: skip
    assert report.verdict == "found"
    assert report.attack.endswith("paired by exact deletion")


def test_any_table_can_be_audited() -> None:
    """Frames with text columns, texts, and sparse matrices; ids are those of the records."""
    source = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": source.normal(40, 10, 600), "town": source.choice(["Ulm", "Aue", "Hof"], 600)}
    )
    y = source.choice(["stays", "goes"], 600)
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["age"]), ("t", OneHotEncoder(sparse_output=False), ["town"])]
    )
    model = make_pipeline(columns, KNeighborsClassifier(n_neighbors=1)).fit(frame[:200], y[:200])
    names = [f"P{k}" for k in range(200)]
    report = audit_membership(
        model, (frame[:200], y[:200], names), (frame[200:], y[200:]), random_state=0
    )
    assert report.verdict == "found"
    assert {each.id for each in report.exposed} <= set(names)

    words = source.choice([f"w{k}" for k in range(300)], (400, 6))
    texts = [" ".join(each) for each in words]
    labels = source.integers(0, 2, 400)
    reader = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100.0))
    reader.fit(texts[:150], labels[:150])
    split = (texts[:150], labels[:150]), (texts[150:], labels[150:])
    assert audit_membership(reader, *split, random_state=0).verdict == "found"

    X = csr_array(np.round(source.normal(size=(400, 30))))
    heart = DecisionTreeClassifier(random_state=0).fit(X[:150], labels[:150])
    split = (X[:150], labels[:150]), (X[150:], labels[150:])
    assert audit_membership(heart, *split, random_state=0).verdict == "found"


def test_regressors_are_audited() -> None:
    source = np.random.default_rng(0)
    X, y = source.normal(size=(500, 3)), source.normal(size=500)
    model = DecisionTreeRegressor(random_state=0).fit(X[:200], y[:200])
    split = (X[:200], y[:200]), (X[200:], y[200:])
    report = audit_membership(model, *split, random_state=0)
    assert (report.verdict, report.notes) == ("found", ())
    assert audit_membership(Ridge().fit(X[:200], y[:200]), *split, random_state=0).verdict == (
        "not found"
    )


def test_ids_of_any_kind_are_told() -> None:
    X, y = noise(200)
    model = DecisionTreeClassifier(random_state=0).fit(X[:100], y[:100])
    ids: Any
    for ids in (
        [float("nan")] * 100, [b"\xff"] * 100, [None] * 100, ["<script>"] * 100,
        [7, *["a"] * 99], np.arange(100).astype("datetime64[D]"),
    ):  # fmt: skip
        members = (X[:100], y[:100], ids)
        report = audit_membership(model, members, (X[100:], y[100:]), random_state=0)
        told = json.loads(pickle.loads(pickle.dumps(report)).to_json())
        assert {each["id"] for each in told["exposed"]} <= {
            each if isinstance(each, int) else str(each) for each in list(ids)
        }
        assert "<script" not in report.to_html()
        assert str(report)


def test_threads_and_generators_change_nothing() -> None:
    X, y = noise(200)
    model = GaussianNB().fit(X[:100], y[:100])
    split = (X[:100], y[:100]), (X[100:], y[100:])
    seeds = [np.random.default_rng(5), np.random.default_rng(5), np.random.default_rng(6)]
    first, second, third = (
        audit_membership(model, *split, random_state=seed, n_jobs=jobs)
        for seed, jobs in zip(seeds, (1, 2, 1), strict=True)
    )
    assert first.to_dict() | {"seconds": 0} == second.to_dict() | {"seconds": 0}
    assert first.to_dict()["groups"] != third.to_dict()["groups"]


def test_a_model_that_answers_at_random_is_told() -> None:
    class Random(DecisionTreeClassifier):
        def predict_proba(self, X: Any) -> Any:
            p = np.clip(super().predict_proba(X)[:, 1], 0.05, 0.95)
            p += source.uniform(-0.04, 0.04, p.size)
            return np.column_stack([1 - p, p])

    source = np.random.default_rng(0)
    X, y = noise(500)
    model = Random(random_state=0).fit(X[:200], y[:200])
    split = (X[:200], y[:200]), (X[200:], y[200:])
    report = audit_membership(model, *split, random_state=0)
    assert any("answered otherwise" in note for note in report.notes)
    steady = DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200])
    assert not audit_membership(steady, *split, random_state=0).notes


def test_overlaps_are_refused_and_a_few_equal_records_left_out() -> None:
    X, y = noise(300)
    model = GaussianNB().fit(X[:100], y[:100])
    with pytest.raises(InvalidInputError, match="100 of the 300 records of pool are records of"):
        audit_membership(model, (X[:100], y[:100]), (X[100:200], y[100:200]), pool=(X, y))
    again, labels = np.vstack([X[100:], X[:2]]), np.concatenate([y[100:], y[:2]])
    report = audit_membership(model, (X[:100], y[:100]), (again, labels), random_state=0)
    assert report.notes[0].startswith("2 of the others are equal to members, so that")
    found = report["audited records"].separation
    assert found is not None
    assert found.n_others == 101
    objects = X.astype(str).astype(object)
    same = Sample.read((np.array(objects.tolist(), object), y), "b")
    assert apart(Sample.read((objects[100:], y[100:]), "a"), same.take(range(100)))[1] == 0
    with pytest.raises(InvalidInputError, match="300 of the 300"):
        apart(Sample.read((objects, y), "a"), same)
    rest, n_equal = apart(Sample.read((again, labels), "a"), Sample.read((X[:100], y[:100]), "b"))
    assert (len(rest), n_equal) == (200, 2)


def test_records_with_gaps_are_known_again() -> None:
    def table() -> Any:
        return pd.DataFrame({"a": [np.nan, 1.0] * 20, "b": range(40), "c": ["x", None] * 20})

    y = np.zeros(40)
    for first, second in ((table(), table()), (table().to_numpy(object), table().to_numpy(object))):
        with pytest.raises(InvalidInputError, match="40 of the 40"):
            apart(Sample.read((first, y), "a"), Sample.read((second, y), "b"))
    other = table().assign(b=range(1, 41))
    assert apart(Sample.read((other, y), "a"), Sample.read((table(), y), "b"))[1] == 0


def test_common_records_raise_no_false_alarm() -> None:
    """One record of twelve is the same, and the model is sure of it; it has seen no member.

    If others that are equal to members were left out, most of these audits would raise an alarm.
    """

    def common(model: float, X: Any, y: Any) -> Any:
        return np.where(X[:, 0] == 0.0, model, -2.0 - np.abs(X[:, 0]))

    alarms = 0
    for seed in range(40):
        source = np.random.default_rng(seed)
        X, y = source.normal(size=(2400, 1)), np.zeros(2400)
        X[source.random(2400) < 0.08] = 0.0
        report = audit_membership(
            -0.1, (X[:800], y[:800]), (X[800:], y[800:]), signal=common, attack=RMIA(1),
            recipe=lambda X, y, seed: -2.0, random_state=seed,
        )  # fmt: skip
        alarms += report.verdict == "found"
    assert alarms <= 6  # of 40 at 0.05: more have a probability of 0.003


def test_bad_input_is_one_clear_error() -> None:
    X, y = noise(100)
    model = GaussianNB().fit(X[:50], y[:50])
    split = (X[:50], y[:50]), (X[50:], y[50:])
    with pytest.raises(InvalidInputError, match=r"expected \(X, y\)"):
        audit_membership(model, X, y)
    with pytest.raises(InvalidInputError, match="targets of shape"):
        audit_membership(model, (X[:50], y), split[1])
    with pytest.raises(InvalidParameterError, match="'rmia', 'lira'"):
        audit_membership(model, *split, attack="lora")
    with pytest.raises(InvalidParameterError, match="expected online LiRA"):
        audit_membership(model, *split, paired=True)
    with pytest.raises(InvalidParameterError, match="level"):
        audit_membership(model, *split, level=5)
    with pytest.raises(TooFewRecordsError, match="find nothing"):
        audit_membership(model, (X[:2], y[:2]), (X[50:54], y[50:54]))
    wrong: Any
    for wrong in ({"n_references": 0}, {"gamma": 0.0}, {"temperature": -1.0}, {"a": 2.0}):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            RMIA(**wrong)
    for wrong in ({"gamma": "2"}, {"temperature": np.inf}, {"a": "1"}):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            RMIA(**wrong)
    for wrong in ({"level": "x"}, {"level": None}, {"power": 2.0}, {"rates": 0.01}):
        with pytest.raises(InvalidParameterError, match=f"{next(iter(wrong))} is"):
            audit_membership(model, *split, **wrong)
    with pytest.raises(InvalidInputError, match="false positives is 'x'"):
        audit_membership(model, *split, rates=("x",))
    for wrong in ((0, 10), (10, -5), ("a", 10), (10.5, 10)):
        with pytest.raises(InvalidParameterError, match="expected a whole number, 1 or more"):
            plan_membership(*wrong)
    with pytest.raises(InvalidInputError, match="expected a function"):
        audit_membership(model, *split, signal="x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="of dtype <U1; expected a number for each"):
        audit_membership(model, *split, signal=lambda model, X, y: np.full(len(y), "a"))
    with pytest.raises(InvalidInputError, match="members has the records 'x'; expected a table"):
        audit_membership(model, ("x", [1]), split[1])
    with pytest.raises(InvalidParameterError, match="n_shadows"):
        LiRA(3)
    with pytest.raises(InvalidInputError, match="recipe"):
        audit_membership(model, *split, recipe=3)
    with pytest.raises(InvalidInputError, match="members has the targets 7"):
        audit_membership(model, (X[:50], np.where(np.arange(50) < 1, 7, y[:50])), split[1])


def test_a_half_of_one_class_is_one_clear_error() -> None:
    X, y = noise(60)[0], (np.arange(60) % 30 == 0).astype(int)
    split = (X[:30], y[:30]), (X[30:], y[30:])
    model = LogisticRegression().fit(*split[0])
    with pytest.raises(
        TooFewRecordsError, match=r"its [67] records, .* all of the class 0; expected"
    ):
        audit_membership(model, *split, random_state=0)
    tree = DecisionTreeClassifier(random_state=0).fit(*split[0])  # which can learn from one class
    assert audit_membership(tree, *split, random_state=0).verdict == "cannot tell"


def test_a_plan_says_what_cannot_be_measured() -> None:
    lines = plan_membership(1000, 50)
    assert "needs 100 other records, and there are 50" in lines[1]


# -- influence -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [GaussianNB, lambda: KNeighborsClassifier(3)], ids=["nb", "knn"])
def test_influence_is_that_of_refits(make: Any) -> None:
    X, y = noise(30)
    ids = [f"P{k}" for k in range(30)]
    model = make().fit(X, y, ids=ids)
    digest = model.digest()
    found = leave_one_out_influence(model)
    assert model.digest() == digest
    for k in range(30):
        left = np.arange(30) != k
        alone = Sample.read((X[[k]], y[[k]]), "record")
        fresh = make().fit(X[left], y[left], ids=np.array(ids)[left])
        change = signals_of(model, alone).logit - signals_of(fresh, alone).logit
        assert found.changes[k] == change[0]
    some = leave_one_out_influence(model, ["P7", "P3"])
    assert dict(zip(some.ids, some.changes, strict=True)) == {
        name: found.changes[int(name[1:])] for name in ("P7", "P3")
    }


def test_influence_needs_exact_deletion_and_targets() -> None:
    X, y = noise(30)
    with pytest.raises(InvalidInputError, match="deletes exactly"):
        leave_one_out_influence(DecisionTreeClassifier().fit(X, y))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="without targets"):
        leave_one_out_influence(KMeans(n_clusters=2, random_state=0).fit(X))


def test_threads_are_a_number() -> None:
    X, y = noise(80)
    model = GaussianNB().fit(X[:40], y[:40])
    for wrong in (0, "two"):
        with pytest.raises(InvalidParameterError, match="n_jobs="):
            audit_membership(model, (X[:40], y[:40]), (X[40:], y[40:]), n_jobs=wrong)  # type: ignore[arg-type]
