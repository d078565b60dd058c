from __future__ import annotations

import json
import re
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, entropy, norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from erasable import linear_model, naive_bayes, neighbors
from erasable.audit import audit_deletion, audit_deletion_method
from erasable.audit._deletion_statistics import (
    MemorisedTenth,
    bins_of,
    divergences,
    example_accuracy,
    example_areas,
    mean_distances,
    uniform_ranks,
)
from erasable.core.errors import InvalidInputError, InvalidParameterError, TooFewRecordsError


def records(n=90, n_deleted=20, seed=0, width=3):
    """Return kept and deleted records of two classes, of which one label of five is wrong."""
    source = np.random.default_rng(seed)
    X = source.normal(size=(n, width))
    y = (X[:, 0] + 0.6 * source.normal(size=n) > 0).astype(int)
    return (X[n_deleted:], y[n_deleted:]), (X[:n_deleted], y[:n_deleted])


KEPT, DELETED = records()
ALL = np.concatenate([KEPT[0], DELETED[0]]), np.concatenate([KEPT[1], DELETED[1]])


class Told:
    """A model that is as sure of each record as it was told to be."""

    def __init__(self, values):
        self.values = values


def told(model, X, y):
    """Say how sure the model is: the first feature of a record is its number."""
    return model.values[np.asarray(X)[:, 0].astype(int)]


def numbered(n_kept=6, n_deleted=4):
    rows = np.arange(n_kept + n_deleted, dtype=float).reshape(-1, 1)
    y = np.arange(len(rows)) % 2
    return (rows[n_deleted:], y[n_deleted:]), (rows[:n_deleted], y[:n_deleted])


# -- statistics against what they are by definition ------------------------------------------------


def test_ranks_are_shares_of_the_others_that_are_below():
    signals = np.random.default_rng(0).integers(0, 4, size=(7, 5)).astype(float)
    for i, j in np.ndindex(7, 5):
        others = [signals[k, j] for k in range(7) if k != i]
        below = sum((x < signals[i, j]) + 0.5 * (x == signals[i, j]) for x in others)
        assert uniform_ranks(signals)[i, j] == pytest.approx(below / 6)


@pytest.mark.parametrize("seed", range(3))
def test_klom_is_the_divergence_of_histograms(seed):
    source = np.random.default_rng(seed)
    deleted = source.normal(1, 60, size=(30, 4))
    retrained = source.normal(0, 60, size=(25, 4))
    bins = bins_of(np.concatenate([deleted, retrained]))
    found = divergences(bins[:30], bins[30:])
    for k in range(4):
        a, b = (np.clip(each[:, k], -100, 100) for each in (deleted, retrained))
        ends = min(a.min(), b.min()), max(a.max(), b.max())
        p, q = (np.histogram(each, 20, ends)[0] / len(each) + 1e-5 for each in (b, a))
        assert found[k] == pytest.approx(entropy(p, q))


def test_klom_of_equal_margins_is_zero():
    bins = bins_of(np.full((8, 3), 7.0))
    assert divergences(bins[:4], bins[4:]).tolist() == [0.0] * 3


@pytest.mark.parametrize("n_models", [40, 1000], ids=["one variance", "two variances"])
def test_u_lira_on_gaussians_is_the_best_attack(n_models):
    source = np.random.default_rng(3)
    n = 2000 if n_models == 40 else 40
    deleted = source.normal(1.0, 1.0, size=(n_models, n))
    retrained = source.normal(0.0, 1.0, size=(n_models, n))
    accuracy = example_accuracy(deleted, retrained, source).mean()
    areas = example_areas(deleted, retrained, source).mean()
    assert accuracy == pytest.approx(norm.cdf(0.5), abs=0.02)
    assert areas == pytest.approx(norm.cdf(0.5**0.5), abs=0.03)


def test_u_lira_sees_a_variance_with_enough_models():
    source = np.random.default_rng(4)
    deleted, retrained = source.normal(0, 3, (2000, 10)), source.normal(0, 1, (2000, 10))
    bar = np.sqrt(2 * np.log(3) / (1 - 1 / 9))  # where the two densities cross
    best = 0.5 * (2 * norm.cdf(bar) - 1) + 0.5 * 2 * norm.cdf(-bar / 3)
    found = example_accuracy(deleted, retrained, source).mean()
    assert found == pytest.approx(best, abs=0.01)


def test_u_lira_of_one_distribution_is_chance():
    source = np.random.default_rng(5)
    arms = source.normal(size=(2, 8, 4000))
    assert example_accuracy(*arms, source).mean() == pytest.approx(0.5, abs=0.01)
    assert example_areas(*arms, source).mean() == pytest.approx(0.5, abs=0.01)
    same = np.zeros((8, 3))
    assert example_accuracy(same, same, source).tolist() == [0.5] * 3


def test_distances_are_total_variation():
    source = np.random.default_rng(6)
    a, b = source.dirichlet([1, 1, 1], size=(2, 5, 4))
    by_hand = [
        np.mean([max(sum(p[list(event)]) - sum(q[list(event)])
                     for size in range(4) for event in combinations(range(3), size))
                 for p, q in zip(a[:, j], b[:, j], strict=True)])
        for j in range(4)
    ]  # fmt: skip
    assert mean_distances(a, b, 0.5) == pytest.approx(by_hand)


def test_the_most_memorised_are_those_that_training_changes_most():
    learned = np.zeros((3, 25))
    learned[:, [4, 11]] = 5.0
    assert MemorisedTenth(learned, np.zeros((4, 25))).rows.tolist() == [4, 11]


# -- p-values by enumeration -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_of_a_model_is_the_share_of_models_as_unusual(seed):
    kept, deleted = numbered()
    source = np.random.default_rng(seed)
    made = []

    def recipe(X, y, seed):
        made.append(source.integers(0, 3, size=10).astype(float))
        return Told(made[-1])

    model = Told(source.integers(0, 3, size=10) + 0.6)
    report = audit_deletion(
        model, kept, deleted, recipe=recipe, signal=told, n_controls=0, n_refits=19
    )
    all_models = [model.values, *made]
    unusual = []
    for one in all_models:
        ranks = []
        for j in range(4):
            others = [each[j] for each in all_models if each is not one]
            ranks.append(np.mean([(x < one[j]) + 0.5 * (x == one[j]) for x in others]))
        unusual.append(abs(np.mean(ranks) - 0.5))
    expected = sum(each >= unusual[0] - 1e-9 for each in unusual) / 20
    assert report.parameters["p_value"] == pytest.approx(expected)


def test_the_p_value_of_a_method_is_the_share_of_exchanges_as_large():
    kept, deleted = numbered()
    source = np.random.default_rng(8)
    arms = {"deleted": [], "retrained": []}

    def train(arm, shift):
        arms[arm].append(source.normal(shift, 1.0, size=10))
        return Told(arms[arm][-1])

    report = audit_deletion_method(
        lambda X, y, rows, seed: train("deleted", 1.0), kept, deleted, signal=told,
        recipe=lambda X, y, seed: train("retrained", 0.0), n_models=4, attacks="KLoM",
        control=False,
    )  # fmt: skip
    both = np.array(arms["deleted"] + arms["retrained"])[:, :4]

    def klom(chosen):
        left = [k for k in range(8) if k not in chosen]
        found = []
        for j in range(4):
            ends = both[:, j].min(), both[:, j].max()
            p, q = (np.histogram(both[list(rows), j], 20, ends)[0] / 4 + 1e-5
                    for rows in (left, chosen))  # fmt: skip
            found.append(entropy(p, q))
        return np.mean(found)

    values = [klom(chosen) for chosen in combinations(range(8), 4)]
    expected = sum(each >= values[0] - 1e-9 for each in values) / 70
    assert report.parameters["p_value"] == pytest.approx(expected)
    assert report["deleted"].measures["KLoM"] == pytest.approx(values[0])


# -- what has not deleted is found, what has is not ------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        KNeighborsClassifier(1),
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(10, random_state=0),
    ],
    ids=["nearest neighbour", "tree", "forest"],
)
def test_a_model_that_has_not_deleted_is_found(learner):
    learner.fit(*ALL)
    report = audit_deletion(learner, KEPT, DELETED)
    assert report.verdict == "found"
    assert report.parameters["p_value"] <= 0.05
    assert "surer" in report.sentence
    learner.fit(*KEPT)
    report = audit_deletion(learner, KEPT, DELETED)
    assert report.verdict == "not found"
    assert report.parameters["controls_found"] >= 8
    assert "needs 39 models that are trained again" in report.plan[0]


def overfitted(seed):
    return DecisionTreeClassifier(random_state=seed)


def test_a_method_that_deletes_nothing_is_found():
    report = audit_deletion_method(
        lambda X, y, rows, seed: overfitted(seed).fit(X, y), KEPT, DELETED,
        recipe=overfitted(0), n_models=8, domain=KEPT[1] == 1, fresh=records(seed=9)[1],
    )  # fmt: skip
    assert report.verdict == "found"
    assert report.judged == "method"
    names = [group.name for group in report.groups]
    assert names[:5] == ["deleted", "most memorised", "same domain", "retained", "fresh"]
    averaged, memorised, domain, retained = (report[name].measures for name in names[:4])
    assert memorised["U-LiRA accuracy"] > averaged["U-LiRA accuracy"] > 0.55
    assert memorised["KLoM"] > averaged["KLoM"] > 2 * retained["KLoM"]
    assert memorised["distance"] > 2 * memorised["floor of the distance"]
    assert domain["records"] + retained["records"] == len(KEPT[1])
    assert json.loads(report.to_json())["verdict"] == "found"


def test_a_method_that_retrains_is_not_found():
    def retrains(X, y, rows, seed):
        return overfitted(seed).fit(np.delete(X, rows, axis=0), np.delete(y, rows))

    report = audit_deletion_method(retrains, KEPT, DELETED, recipe=overfitted(0), n_models=8)
    assert report.verdict == "not found"
    assert report.parameters["p_value_of_control"] <= 0.05


def test_a_method_that_knows_too_little_of_the_deleted_is_found():
    def knows_less(X, y, rows, seed):
        y = np.array(y)
        y[rows] = 1 - y[rows]
        return overfitted(seed).fit(X, y)

    report = audit_deletion_method(knows_less, KEPT, DELETED, recipe=overfitted(0), n_models=8)
    assert report.verdict == "found"


def test_exact_deletions_raise_few_alarms():
    p_values = []
    for seed in range(60):
        kept, deleted = records(30, 6, seed)
        report = audit_deletion_method(
            naive_bayes.GaussianNB(), kept, deleted, n_models=5, control=False,
            n_exchanges=99, random_state=seed,
        )  # fmt: skip
        p_values.append(report.parameters["p_value"])
    for level in (0.05, 0.2, 0.5):
        n_alarms = sum(each <= level for each in p_values)
        assert binomtest(n_alarms, 60, level, alternative="greater").pvalue > 0.001


def test_deletions_that_leave_a_trace_raise_alarms():
    def leaves_a_trace(X, y, rows, seed):
        return naive_bayes.GaussianNB().fit(X, y)

    found = 0
    for seed in range(10):
        kept, deleted = records(30, 6, seed)
        report = audit_deletion_method(
            leaves_a_trace, kept, deleted, recipe=naive_bayes.GaussianNB(), n_models=5,
            control=False, n_exchanges=99, random_state=seed,
        )  # fmt: skip
        found += report.verdict == "found"
    assert found >= 5


@pytest.mark.parametrize("levels", [2, 1000], ids=["ties", "no ties"])
@pytest.mark.parametrize("attack", ["U-LiRA", "KLoM"])
def test_p_values_of_exact_deletions_are_uniform_or_larger(attack, levels):
    kept, deleted = numbered()
    source = np.random.default_rng(levels)

    def made(*of):
        return Told(source.integers(0, levels, size=10).astype(float))

    p_values = [
        audit_deletion_method(
            made, kept, deleted, recipe=made, signal=told, n_models=4, attacks=attack,
            control=False, random_state=seed,
        ).parameters["p_value"]
        for seed in range(100)
    ]  # fmt: skip
    for level in (0.05, 0.1, 0.3, 0.5):
        n = sum(each <= level for each in p_values)
        assert binomtest(n, 100, level, alternative="greater").pvalue > 0.001
        if levels == 1000 and attack == "U-LiRA":  # few histograms of 4 models differ
            assert binomtest(n, 100, level - 0.02, alternative="less").pvalue > 0.001


def test_p_values_of_one_model_are_uniform():
    kept, deleted = numbered()
    source = np.random.default_rng(1)

    def made(*of):
        return Told(source.normal(size=10))

    p_values = [
        audit_deletion(
            made(), kept, deleted, recipe=made, signal=told, n_controls=0
        ).parameters["p_value"]
        for _ in range(100)
    ]  # fmt: skip
    for level in (0.05, 0.1, 0.3, 0.5):
        n = sum(each <= level + 1e-9 for each in p_values)
        assert binomtest(n, 100, level).pvalue > 0.001


# -- the digest ------------------------------------------------------------------------------------


def deleting(**params):
    model = neighbors.KNeighborsClassifier(3, **params).fit(
        *ALL, ids=[f"id-{k}" for k in range(len(ALL[1]))]
    )
    model.delete([f"id-{k}" for k in range(len(KEPT[1]), len(ALL[1]))])
    return model


def refuses(X, y, seed):
    raise AssertionError("no model is trained where the digest tells")


@pytest.mark.parametrize("ids", [False, True])
def test_an_equal_digest_is_the_verdict(ids):
    kept = (*KEPT, [f"id-{k}" for k in range(len(KEPT[1]))]) if ids else KEPT
    model = deleting()
    before = model.digest()
    report = audit_deletion(model, kept, DELETED, recipe=refuses)
    assert report.verdict == "equal"
    assert report.attack == "digest"
    assert "bit for bit" in report.sentence
    assert model.digest() == before


def test_proceed_goes_on_after_an_equal_digest():
    report = audit_deletion(deleting(), KEPT, DELETED, proceed=True)
    assert report.verdict == "equal"
    assert report.parameters["p_value"] > 0.05
    assert any("digest outweighs" in note for note in report.notes)


def test_another_digest_is_no_proof_and_the_test_decides():
    model = deleting()
    shuffled = (*KEPT, [f"other-{k}" for k in range(len(KEPT[1]))])
    report = audit_deletion(model, shuffled, DELETED)
    assert report.verdict == "not found"
    assert any("digest is not that" in note for note in report.notes)


def test_a_model_that_still_holds_the_records_is_said_to():
    model = neighbors.KNeighborsClassifier(1).fit(*ALL)
    report = audit_deletion(model, KEPT, DELETED)
    assert report.verdict == "found"
    assert any("holds 90 records, and kept has 70" in note for note in report.notes)


# -- what cannot be told ---------------------------------------------------------------------------


def test_a_model_that_leaks_too_little_cannot_be_judged():
    kept, deleted = records(1003, 3, width=2)
    recipe = linear_model.LogisticRegression()
    report = audit_deletion_method(
        lambda X, y, rows, seed: recipe.fit(X, y), kept, deleted, recipe=recipe, n_models=5
    )
    assert report.verdict == "cannot tell"
    assert "even models that had not deleted them" in report.sentence


def test_a_model_that_leaks_too_little_among_its_refits_cannot_be_judged():
    kept, deleted = numbered()
    source = np.random.default_rng(0)

    def made(*of):
        return Told(source.normal(size=10))

    report = audit_deletion(
        Told(np.zeros(10)), kept, deleted, recipe=made, signal=told, n_controls=6
    )
    assert report.verdict == "cannot tell"
    assert re.search(r"of 6 models that had not deleted them it found only \d", report.sentence)


def test_without_controls_nothing_is_ruled_out():
    model = KNeighborsClassifier(1).fit(*KEPT)
    assert audit_deletion(model, KEPT, DELETED, n_controls=0).verdict == "cannot tell"
    report = audit_deletion_method(
        neighbors.KNeighborsClassifier(1), KEPT, DELETED, n_models=5, control=False
    )
    assert report.verdict == "cannot tell"
    assert "control=False" in report.sentence


def test_a_black_box_is_compared_with_fresh_records():
    class Box:
        def __init__(self, *sets):
            self._inner = KNeighborsClassifier(1).fit(*sets)
            self.classes_ = self._inner.classes_

        def predict_proba(self, X):
            return self._inner.predict_proba(X)

    fresh = records(80, 40, seed=5)[1]
    report = audit_deletion(Box(*ALL), KEPT, DELETED, fresh=fresh)
    assert (report.verdict, report.access) == ("found", "data and black box")
    report = audit_deletion(Box(*KEPT), KEPT, DELETED, fresh=fresh)
    assert report.verdict == "cannot tell"
    with pytest.raises(InvalidInputError, match="expected recipe="):
        audit_deletion(Box(*KEPT), KEPT, DELETED)


# -- other models and records ----------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e5])
def test_a_regressor_in_any_unit(unit):
    kept, deleted = ((X, X[:, 0] * unit + X[:, 1] * 0.3 * unit) for X, _ in (KEPT, DELETED))
    both = [np.concatenate(each) for each in zip(kept, deleted, strict=True)]
    report = audit_deletion(
        DecisionTreeRegressor().fit(*both), kept, deleted, recipe=DecisionTreeRegressor(),
    )  # fmt: skip
    assert report.verdict == "found"
    assert report["deleted"].measures["distance"] == pytest.approx(
        unit * report["deleted"].measures["distance"] / unit
    )
    assert report["deleted"].measures["distance"] > 0.01 * unit
    kinder = audit_deletion(Ridge().fit(*kept), kept, deleted)
    assert kinder.verdict == "not found"


def test_a_class_that_left_whole():
    X, y = np.array(ALL[0]), np.array(ALL[1])
    gone = X[:, 2] > 1
    y[gone] = 2
    model = KNeighborsClassifier(1).fit(X, y)
    report = audit_deletion(model, (X[~gone], y[~gone]), (X[gone], y[gone]))
    assert report.verdict == "found"
    assert any("of the class 2" in note for note in report.notes)


def test_a_model_with_margins_alone():
    report = audit_deletion(RidgeClassifier().fit(*KEPT), KEPT, DELETED)
    assert report.verdict == "not found"
    assert "distance" in report["deleted"].measures


def test_ids_of_the_exposed_are_those_of_the_records():
    ids = [f"person-{k}" for k in range(len(DELETED[1]))]
    report = audit_deletion(KNeighborsClassifier(1).fit(*ALL), KEPT, (*DELETED, ids))
    assert len(report.exposed) == 10
    assert {each.id for each in report.exposed} < set(ids)


def test_the_same_seed_is_the_same_report():
    sets = (neighbors.KNeighborsClassifier(2), KEPT, DELETED)
    first, again, other = (
        audit_deletion_method(*sets, n_models=5, random_state=seed).to_dict() for seed in (3, 3, 4)
    )
    for each in (first, again, other):
        del each["seconds"]
    assert first == again
    assert first["groups"] != other["groups"]


def test_threads_change_nothing():
    sets = (RandomForestClassifier(3).fit(*ALL), KEPT, DELETED)
    first, second = (audit_deletion(*sets, n_jobs=n).to_dict()["groups"] for n in (1, 2))
    assert first == second


def test_a_black_box_that_answers_otherwise_each_time_is_noted():
    source = np.random.default_rng(0)

    def noisy(model, X, y):
        return source.normal(size=len(y))

    report = audit_deletion(
        object(), KEPT, DELETED, recipe=lambda X, y, seed: object(), signal=noisy, n_controls=0
    )
    assert any("asked twice" in note for note in report.notes)
    steady = audit_deletion(KNeighborsClassifier(1).fit(*KEPT), KEPT, DELETED)
    assert not any("asked twice" in note for note in steady.notes)


def test_many_kept_records_are_asked_for_in_part():
    kept, deleted = records(1500, 10)
    report = audit_deletion(
        naive_bayes.GaussianNB().fit(*kept), kept, deleted, n_controls=2, proceed=True
    )
    assert report["retained"].measures["records"] == 1000
    assert "of 1490 records retained, 1000 were asked for" in report.notes


# -- bad input -------------------------------------------------------------------------------------

MODEL = KNeighborsClassifier(1).fit(*KEPT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_refits": 20}, r"n_refits is 20; expected 39 or more"),
        ({"n_refits": 18, "n_controls": 0}, r"n_refits is 18; expected 19 or more"),
        ({"level": 0.001, "n_refits": 64}, r"n_refits is 64; expected 1999 or more"),
        ({"n_controls": 1}, r"n_controls is 1; expected 0, or 2 and more"),
        ({"n_refits": True}, r"n_refits is True; expected a whole number"),
        ({"level": 5}, r"level is 5; expected an error from 0 to 1"),
        ({"random_state": -1}, r"random_state is -1"),
        ({"domain": [True]}, r"domain is a list; expected a flag for each of the 70"),
    ],
)
def test_parameters_of_a_model(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        audit_deletion(MODEL, KEPT, DELETED, recipe=refuses, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_models": 3}, r"n_models is 3; expected a whole number, 4 or more"),
        ({"n_models": 4}, r"n_retrained is 4; expected 5 or more: an error of 0.05 with 4"),
        ({"n_exchanges": 50}, r"n_exchanges is 50; expected 79 or more"),
        ({"attacks": ["MIA"]}, r"expected one or both of U-LiRA, KLoM"),
        ({"attacks": []}, r"expected one or both of U-LiRA, KLoM"),
        ({"share": 0.0}, r"share is 0.0; expected a number above 0"),
    ],
)
def test_parameters_of_a_method(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        audit_deletion_method(neighbors.KNeighborsClassifier(1), KEPT, DELETED, **changes)


def test_a_method_that_is_none():
    with pytest.raises(InvalidInputError, match="the method is a int; expected an estimator"):
        audit_deletion_method(3, KEPT, DELETED)
    with pytest.raises(InvalidInputError, match="recipe is None and the method a function"):
        audit_deletion_method(lambda X, y, rows, seed: MODEL, KEPT, DELETED)


def test_parameters_of_another_type():
    with pytest.raises(InvalidParameterError, match="attacks is 5"):
        audit_deletion_method(KNeighborsClassifier(1), KEPT, DELETED, attacks=5)
    with pytest.raises(InvalidParameterError, match="share is 'x'"):
        audit_deletion_method(KNeighborsClassifier(1), KEPT, DELETED, share="x")


def test_records_that_are_shared():
    both = tuple(np.concatenate([a, b[:3]]) for a, b in zip(KEPT, DELETED, strict=True))
    with pytest.raises(InvalidInputError, match="3 of the 20 records of deleted are records of ke"):
        audit_deletion(MODEL, both, DELETED, recipe=refuses)
    with pytest.raises(InvalidInputError, match="20 of the 20 records of fresh are records of del"):
        audit_deletion(MODEL, KEPT, DELETED, recipe=refuses, fresh=DELETED)


def test_a_copy_that_is_kept_is_left_out():
    copied = tuple(np.concatenate([a, b[:1]]) for a, b in zip(KEPT, DELETED, strict=True))
    report = audit_deletion(KNeighborsClassifier(1).fit(*copied), copied, DELETED)
    assert report["deleted"].measures["records"] == 19
    assert any(note.startswith("1 deleted records are equal to kept") for note in report.notes)


def test_fresh_records_that_are_equal_to_deleted_ones_stay():
    """As deleted ones that are equal to fresh ones do: otherwise the two would not be alike."""
    X, y = DELETED
    again = np.vstack([X + 1, X[:1]]), np.append(y, y[0])

    def first_feature(model, X, y):
        return X[:, 0]

    report = audit_deletion(object(), KEPT, DELETED, fresh=again, signal=first_feature)
    assert report["deleted"].separation.n_others == 21
    assert "1 fresh records are equal to deleted ones" in report.notes


def test_groups_that_are_empty():
    with pytest.raises(TooFewRecordsError, match="no kept record is same domain"):
        audit_deletion(MODEL, KEPT, DELETED, domain=np.zeros(70, dtype=bool))
    with pytest.raises(TooFewRecordsError, match="no kept record is retained"):
        audit_deletion(MODEL, KEPT, DELETED, domain=np.ones(70, dtype=bool))
    with pytest.raises(InvalidInputError, match="deleted has no records"):
        audit_deletion(MODEL, KEPT, (np.empty((0, 3)), []))


def test_labels_that_no_other_record_has():
    fresh = DELETED[0] + 1, np.full(20, 7)
    with pytest.raises(InvalidInputError, match=r"fresh has the targets .*, which no record of"):
        audit_deletion(MODEL, KEPT, DELETED, fresh=fresh, recipe=refuses)


def test_a_model_without_scores():
    with pytest.raises(InvalidInputError, match="neither predict_proba nor decision_function"):
        audit_deletion(object(), KEPT, DELETED, recipe=refuses)
    with pytest.raises(InvalidInputError, match="neither predict_proba nor decision_function"):
        audit_deletion_method(lambda *of: object(), KEPT, DELETED, recipe=lambda *of: object())
