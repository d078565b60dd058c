"""Removal and preservation: metrics against scikit-learn's, and choice joined to deletion."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import linear_model, metrics
from sklearn.feature_extraction.text import TfidfVectorizer as Words
from sklearn.naive_bayes import GaussianNB as Plain

from erasable.audit import equality
from erasable.cluster import KMeans
from erasable.core.errors import DetachedError, ErasableError
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB, MultinomialNB
from erasable.pipeline import make_pipeline
from erasable.removal import (
    Cost,
    DomainRemoval,
    RemovalReport,
    measure,
    removal_report,
    remove_domain,
)
from erasable.removal.evaluation import GROUPS, Comparison

RNG = np.random.default_rng(0)
N = 60
X = np.concatenate([RNG.normal(0, 1, (N, 2)), RNG.normal(1.5, 1, (N, 2))])
Y = np.repeat(["spam", "ham"], N)
FRESH_X = np.concatenate([RNG.normal(0, 1, (20, 2)), RNG.normal(1.5, 1, (30, 2))])
FRESH_Y = np.repeat(["spam", "ham"], [20, 30])
IDS = np.array([f"m{row}" for row in range(2 * N)])


def removal(budget: Any = 15, score: str = "mu2-distance") -> DomainRemoval:
    return DomainRemoval(score, budget=budget, random_state=0)


# -- measures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [GaussianNB(), Plain(), LogisticRegression()])
def test_measures_of_classifiers_are_those_of_scikit_learn(model: Any) -> None:
    model.fit(X, Y)
    groups = {"spam": (FRESH_X[:20], FRESH_Y[:20]), "ham": (FRESH_X[20:], list(FRESH_Y[20:]))}
    found = measure(model, groups, forget_label="spam")
    for name, rows in (("spam", slice(0, 20)), ("ham", slice(20, 50))):
        predicted, shares = model.predict(FRESH_X[rows]), model.predict_proba(FRESH_X[rows])
        loss = metrics.log_loss(FRESH_Y[rows], shares, labels=model.classes_)
        assert found[name]["log_loss"] == pytest.approx(loss)
        assert found[name]["accuracy"] == metrics.accuracy_score(FRESH_Y[rows], predicted)
    both = model.predict(FRESH_X)
    recall = metrics.recall_score(FRESH_Y, both, pos_label="spam")
    assert found["spam"]["predicted_forget"] == pytest.approx(recall)
    alarms = 1 - metrics.recall_score(FRESH_Y, both, pos_label="ham")
    assert found["ham"]["predicted_forget"] == pytest.approx(alarms)


def test_measures_of_regressors_are_mean_errors() -> None:
    y = X @ [1.0, 2.0] + RNG.normal(size=2 * N)
    model = Ridge().fit(X, y)
    found = measure(model, {"retain": (X, y)})["retain"]
    assert found == {
        "mean_absolute_error": pytest.approx(metrics.mean_absolute_error(y, model.predict(X)))
    }


def test_a_class_that_has_gone_counts_as_impossible() -> None:
    model = Plain().fit(X[N:], Y[N:])
    found = measure(model, {"gone": (X[:N], Y[:N])}, forget_label="spam")["gone"]
    assert found["accuracy"] == found["predicted_forget"] == 0.0
    assert found["log_loss"] == pytest.approx(52 * np.log(2))


def test_a_perfect_model_has_no_loss_and_no_minus_before_it() -> None:
    model = Plain().fit(X[N:], Y[N:])
    assert str(measure(model, {"all": (X[N:], Y[N:])})["all"]["log_loss"]) == "0.0"


@pytest.mark.parametrize("none", [None, (X[:0], Y[:0])])
def test_a_group_without_records_has_no_metrics(none: Any) -> None:
    model = GaussianNB().fit(X, Y)
    report = removal_report(model, model, {"retain": (X, Y), "fresh": none})
    assert report["fresh"].n_records == 0
    assert report["fresh"].before == report["fresh"].after == {}
    assert np.isnan(report["fresh"].change("accuracy"))
    assert str(report).splitlines()[-1].split() == ["fresh", "0", "-", "-"]


def test_without_probabilities_there_is_no_log_loss() -> None:
    model = linear_model.RidgeClassifier().fit(X, Y)
    assert sorted(measure(model, {"all": (X, Y)})["all"]) == ["accuracy"]


WRONG = [
    (lambda: measure(KMeans(2).fit(X), {"all": (X, Y)}), "predicts no target"),
    (lambda: measure("bayes", {"all": (X, Y)}), "str predicts no target"),
    (lambda: measure(Ridge().fit(X, X[:, 0]), {"all": (X, Y)}), "targets that are no numbers"),
    (
        lambda: remove_domain(Plain().fit(X, Y), removal(), X, Y, forget=Y == "spam"),
        "GaussianNB has no delete",
    ),
    (lambda: remove_domain(None, "norm", X, Y, forget=Y == "spam"), "pass DomainRemoval()"),
    (lambda: measure(Plain().fit(X, Y), {"all": (X, Y[:3])}), "3 targets"),
    (lambda: measure(Plain().fit(X, Y), {"all": X}), "no targets"),
    (lambda: measure(Plain().fit(X, Y), {"all": (X, None)}), "no targets"),
    (lambda: measure(Plain().fit(X, Y), {"all": (X, np.c_[Y, Y])}), "several for each"),
    (lambda: measure(Ridge().fit(X, X[:, 0]), {}, forget_label=1), "a regressor"),
    (lambda: removal_report({"a": {}}, {}, {"a": None}), "no measures of the group 'a'"),
    (lambda: RemovalReport(())["retain"], "no group 'retain'"),
]


@pytest.mark.parametrize(("call", "told"), WRONG, ids=[told for _, told in WRONG])
def test_errors_are_one_line(call: Any, told: str) -> None:
    with pytest.raises(ErasableError) as error:
        call()
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_report_as_a_table_and_as_plain_values() -> None:
    groups = (
        Comparison("fresh forget", 1200, {"predicted_forget": 0.9}, {"predicted_forget": 0.25}),
    )
    report = RemovalReport(groups, np.str_("spam"))
    assert str(report).splitlines()[1].split() == [
        "fresh",
        "forget",
        "1,200",
        "0.900",
        "->",
        "0.250",
    ]
    assert "predicted 'spam'" in str(report)
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["forget_label"] == "spam"
    assert plain["groups"]["fresh forget"]["after"] == {"predicted_forget": 0.25}
    assert groups[0].change("predicted_forget") == -0.65


# -- choice and deletion, joined -------------------------------------------------------------------


def test_what_is_chosen_is_what_is_deleted() -> None:
    model, chosen = GaussianNB().fit(X, Y, ids=IDS), removal()
    report = remove_domain(model, chosen, X, Y, forget=Y == "spam", ids=IDS, forget_label="spam")
    alone = removal().fit(X[:N], X[N:], ids=IDS[:N])
    assert chosen.selected_ids_.tolist() == alone.selected_ids_.tolist()
    left = ~np.isin(IDS, alone.selected_ids_)
    assert equality(model, GaussianNB().fit(X[left], Y[left], ids=IDS[left]))
    assert not equality(model, GaussianNB().fit(X, Y, ids=IDS))  # the check can fail
    assert [each.group for each in report.groups] == list(GROUPS)
    assert [each.n_records for each in report.groups] == [15, N - 15, N, 0, 0]
    before, after = Plain().fit(X, Y), Plain().fit(X[left], Y[left])
    groups = {
        "deleted forget": (X[:N][~left[:N]], Y[:N][~left[:N]]),
        "kept forget": (X[:N][left[:N]], Y[:N][left[:N]]),
        "retain": (X[N:], Y[N:]),
    }
    expected = removal_report(before, after, groups, forget_label="spam")
    for name in groups:
        for side in ("before", "after"):
            found, right = (getattr(each[name], side) for each in (report, expected))
            assert found == pytest.approx(right, rel=1e-6)


def test_records_may_come_in_any_order() -> None:
    order = RNG.permutation(2 * N)
    reports = []
    for rows in (np.arange(2 * N), order):
        A, b, names = X[rows], Y[rows], IDS[rows]
        model = GaussianNB().fit(A, b, ids=names)
        report = remove_domain(model, removal(), A, b, forget=b == "spam", ids=names)
        reports.append((report, model.digest()))
    # Scores by moments do not depend on the order of the rows.
    assert reports[0][1] == reports[1][1]
    for one, other in zip(*(each.groups for each, _ in reports), strict=True):
        assert one.n_records == other.n_records
        for side in ("before", "after"):
            assert getattr(one, side) == pytest.approx(getattr(other, side))


def test_fresh_records_are_those_that_are_given() -> None:
    model = GaussianNB().fit(X, Y)
    fresh = (FRESH_X, FRESH_Y, FRESH_Y == "spam")
    report = remove_domain(model, removal(), X, Y, forget=Y == "spam", fresh=fresh)
    assert report["fresh forget"].n_records == 20
    assert report["fresh retain"].n_records == 30
    now = metrics.accuracy_score(FRESH_Y[:20], model.predict(FRESH_X[:20]))
    assert report["fresh forget"].after["accuracy"] == now


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_ids_in_a_column_and_in_an_index(kind: Any) -> None:
    columns = {"id": IDS, "a": X[:, 0], "b": X[:, 1]}
    table = kind(columns)
    model, chosen = GaussianNB().fit(table, Y, ids="id"), removal()
    features = table.drop(columns="id") if kind is pd.DataFrame else table.drop("id")
    remove_domain(model, chosen, table, Y, forget=Y == "spam", ids="id")
    expected = removal().fit(X[:N], X[N:], ids=IDS[:N]).selected_ids_
    assert chosen.selected_ids_.tolist() == expected.tolist()
    assert not set(expected) & set(model.ids_.tolist())
    if kind is pd.DataFrame:
        indexed = features.set_axis(IDS)
        other = removal()
        remove_domain(GaussianNB().fit(indexed, Y), other, indexed, Y, forget=Y == "spam")
        assert other.selected_ids_.tolist() == expected.tolist()


def test_documents_go_through_a_vectoriser() -> None:
    rng = np.random.default_rng(1)
    words = np.array([f"word{i}" for i in range(30)])
    texts = [" ".join(rng.choice(words[:20] if row < N else words[10:], 6)) for row in range(2 * N)]
    model = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(texts, Y)
    chosen = removal(0.25, "density-ratio")
    features = Words().fit_transform(texts)
    remove_domain(model, chosen, texts, Y, forget=Y == "spam", features=features)
    left = np.setdiff1d(np.arange(2 * N), chosen.selected_ids_)
    again = make_pipeline(TfidfVectorizer(), MultinomialNB())
    again.fit([texts[row] for row in left], Y[left], ids=left)
    assert equality(model, again)


SPAM = Y == "spam"
REFUSED = [
    ({"forget": np.zeros(2 * N, bool)}, "no row"),
    ({"forget": np.ones(2 * N, bool)}, "every row"),
    ({"forget": np.arange(2 * N) == 3}, "1 record"),
    ({"forget": np.arange(N)}, "true or false"),
    ({"forget": SPAM[:5]}, "true or false"),
    ({"forget": [[True], [True, False]]}, "true or false"),
    ({"ids": 7}, "7 came in the place of"),
    ({"features": X[:5]}, "features have 5 rows"),
    ({"ids": IDS[:5]}, "5 ids"),
    ({"ids": "id"}, "id"),
    ({"ids": np.array([f"x{i}" for i in range(2 * N)])}, "x"),
    ({"fresh": (FRESH_X, FRESH_Y)}, "fresh is a tuple"),
    ({"fresh": (FRESH_X, FRESH_Y, FRESH_Y)}, "mask of fresh"),
    ({"fresh": (FRESH_X, FRESH_Y[:4], FRESH_Y == "spam")}, "fresh has 50 records and 4"),
]


@pytest.mark.parametrize(("changes", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_nothing_is_deleted_on_error(changes: dict[str, Any], told: str) -> None:
    model = GaussianNB().fit(X, Y, ids=IDS)
    before = model.digest()
    with pytest.raises(ErasableError, match=told):
        remove_domain(model, removal(), X, Y, **{"forget": SPAM, "ids": IDS, **changes})
    with pytest.raises(ErasableError, match="no targets"):
        remove_domain(model, removal(), X, None, forget=SPAM, ids=IDS)
    assert model.digest() == before


@pytest.mark.parametrize("part", ["y", "forget", "features"])
def test_labels_in_another_order_delete_nothing(part: str) -> None:
    """A Series that was shuffled marks other rows by its labels than by its places."""
    frame = pd.DataFrame(X, columns=["a", "b"], index=IDS)
    given: dict[str, Any] = {
        "y": pd.Series(Y, index=IDS), "forget": pd.Series(SPAM, index=IDS), "features": frame * 2,
    }  # fmt: skip
    model = GaussianNB().fit(frame, Y)
    before = model.digest()
    with pytest.raises(ErasableError, match=f"{part} (is|are) a .* in another order"):
        remove_domain(model, removal(), frame, **{**given, part: given[part][::-1]})
    assert model.digest() == before
    assert remove_domain(model, removal(), frame, **given)["deleted forget"].n_records == 15


def test_a_budget_that_cannot_be_reached_deletes_nothing() -> None:
    model = GaussianNB().fit(X, Y)
    before = model.digest()
    for budget in (1000, 0, 1.5, -0.1, "many"):
        with pytest.raises(ErasableError):
            remove_domain(model, removal(budget), X, Y, forget=SPAM)
    assert model.digest() == before


# -- what a selection reaches ----------------------------------------------------------------------


def test_what_is_reached_is_on_the_frontier() -> None:
    chosen = removal(20).fit(X[:N], X[N:])
    assert chosen.alpha_ == chosen.frontier_.alpha[20]
    assert chosen.epsilon_ == chosen.frontier_.epsilon[20]


def test_what_a_budget_reaches_that_passes_records_over() -> None:
    forget, retain = X[:N, 0], X[N:, 0]
    costs = np.ones(N)
    costs[removal().fit(forget[:, None], retain[:, None]).order_[1]] = 100.0
    chosen = removal(Cost(costs, 12.0)).fit(forget[:, None], retain[:, None])
    rows = chosen.selected_
    assert rows.tolist() != chosen.order_[: rows.size].tolist()
    # The Gaussian estimate by hand, with the variance within both sets.
    left = np.concatenate([np.delete(forget, rows), retain])
    within = np.concatenate([forget - forget.mean(), retain - retain.mean()])
    variance = within @ within / (2 * N - 2)
    for mean, found in ((forget.mean(), chosen.alpha_), (retain.mean(), chosen.epsilon_)):
        assert found == pytest.approx((left.mean() - mean) ** 2 / variance / 2, rel=1e-6)
    assert chosen.alpha_ != chosen.frontier_.alpha[rows.size]
    back = pickle.loads(pickle.dumps(chosen))
    with pytest.raises(DetachedError, match="unpickled without its records"):
        _ = back.alpha_
    plain = removal(7).fit(X[:N], X[N:])
    assert pickle.loads(pickle.dumps(plain)).alpha_ == plain.alpha_
