"""What a plan chooses, what it refuses, and that it changes no byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from domain_scene import NORTH, PLANS, SHOP, TEXTS, bytes_of, opened_in, plan_of, read
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer as Words

from erasable.core.errors import ErasableError, WorkspaceError
from erasable.removal import Cost, Coverage, DomainRemoval, MaxShift, MinRemoval

# -- a plan ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", PLANS, ids=lambda each: str(each["budget"]))
def test_a_plan_changes_no_byte(folder: Path, asked: dict[str, Any]) -> None:
    before = bytes_of(folder)
    plan = plan_of(opened_in(folder), folder, asked)
    assert bytes_of(folder) == before
    again = plan_of(opened_in(folder), folder, asked)
    assert again.ids == plan.ids
    opened_in(folder).request(["patient-1"])  # the check can fail
    assert bytes_of(folder) != before


def test_what_is_chosen_of_text_is_the_choice_of_domain_removal(folder: Path) -> None:
    plan = plan_of(opened_in(folder), folder, PLANS[0])
    data = read(folder, "messages")
    own = np.flatnonzero(data["label"] == "shop")
    other = np.flatnonzero(data["label"] != "shop")
    Z = Words().fit_transform(data["text"][np.concatenate([own, other])])
    right = DomainRemoval(budget=20, random_state=0)
    right.fit(Z[: own.size], Z[own.size :], ids=data["id"][own])
    assert plan.ids == right.selected_ids_.tolist()
    assert (plan.features, plan.left_out) == (("text",), ("minutes",))
    assert (plan.n_forget, plan.n_retain, plan.n_records) == (TEXTS, TEXTS, 2 * TEXTS)
    assert plan.certificate is None
    assert "sparse" in plan.uncertified
    effects = {each.name: each for each in plan.preview.effects}
    assert {name: each.n_records for name, each in effects.items()} == {
        "messages": 20, "bayes": 20, "linear": 20,
    }  # fmt: skip


def test_components_of_text_have_a_covariance(folder: Path) -> None:
    plan = opened_in(folder).plan_removal(
        "messages", where=SHOP, budget=20, score="lr-maha", components=5
    )
    data = read(folder, "messages")
    own = np.flatnonzero(data["label"] == "shop")
    other = np.flatnonzero(data["label"] != "shop")
    words = Words().fit_transform(data["text"][np.concatenate([own, other])])
    Z = TruncatedSVD(5, random_state=0).fit_transform(words)
    right = DomainRemoval("lr-maha", budget=20, random_state=0)
    right.fit(Z[: own.size], Z[own.size :], ids=data["id"][own])
    assert plan.ids == right.selected_ids_.tolist()
    assert (plan.features, plan.components, plan.removal.n_features_in_) == (("text",), 5, 5)
    assert plan.certificate is None
    assert "components are fitted to the very records" in plan.uncertified


@pytest.mark.parametrize(
    ("budget", "cost"),
    [(12, None), (0.25, None), (Coverage(0.6), None), (MinRemoval(1.4), None),
     (MaxShift(0.4), None), (40.0, "dose")],
)  # fmt: skip
def test_what_is_chosen_of_numbers_is_the_choice_of_domain_removal(
    folder: Path, budget: Any, cost: str | None
) -> None:
    plan = opened_in(folder).plan_removal("visits", where=NORTH, budget=budget, cost=cost)
    # Those that models learn from, but for what the records cost.
    assert plan.features == (("age",) if cost else ("age", "dose"))
    data = read(folder, "visits")
    own = np.flatnonzero(data["ward"] == "north")
    other = np.flatnonzero(data["ward"] != "north")
    X = np.column_stack([data[name] for name in plan.features])[np.concatenate([own, other])]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if cost is not None:
        budget = Cost(data[cost][own], budget)
    right = DomainRemoval(budget=budget, random_state=0)
    right.fit(X[: own.size], X[own.size :], ids=data["visit"][own])
    assert plan.ids == right.selected_ids_.tolist()
    assert plan.certificate == right.certificate_
    assert plan.removal.alpha_ == right.alpha_


def test_the_choice_is_one_of_records_and_not_of_how_they_came(folder: Path) -> None:
    workspace = opened_in(folder)
    lines = (folder / "visits.csv").read_text().splitlines()
    for name, rows in (("odd", lines[1::2]), ("even", lines[2::2])):
        (folder / f"{name}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    workspace.add_dataset("parts", folder / "odd.csv", id_column="visit", subjects=["patient"])
    workspace.append("parts", folder / "even.csv")
    asked: dict[str, Any] = {"where": NORTH, "budget": 25, "features": ["age", "dose"]}
    found = [workspace.plan_removal(name, **asked).ids for name in ("visits", "parts")]
    assert found[0] == found[1]


def test_retain_is_narrowed_by_a_condition_and_by_a_sample(folder: Path) -> None:
    workspace = opened_in(folder)
    whole = workspace.plan_removal("visits", where=NORTH, budget=20)
    narrow = workspace.plan_removal("visits", where=NORTH, budget=20, retain_where="sick = 0")
    few = workspace.plan_removal("visits", where=NORTH, budget=20, retain_sample=9)
    data = read(folder, "visits")
    assert narrow.n_retain == int(((data["ward"] != "north") & (data["sick"] == 0)).sum())
    assert (whole.n_retain, few.n_retain) == (60, 9)
    again = workspace.plan_removal("visits", where=NORTH, budget=20, retain_sample=9)
    assert again.ids == few.ids
    # Two records are no domain to learn of, and the plan says so.
    tiny = workspace.plan_removal("visits", where=NORTH, budget=20, retain_sample=2)
    assert [each.partition("=")[0] for each in tiny.warnings] == ["trust_"]
    assert tiny.uncertified == "retain has 2 records of 2 features"
    assert whole.warnings == []


def test_copies_that_would_stay_are_counted(folder: Path) -> None:
    data = read(folder, "messages")
    texts = data["text"].tolist()
    plan = opened_in(folder).plan_removal("messages", where=SHOP, budget=1)
    rows = [list(column) for column in zip(data["label"], texts, data["minutes"], strict=True)]
    of = dict(zip(data["id"], rows, strict=True))
    for n in range(1, 80, 13):
        plan = opened_in(folder).plan_removal("messages", where=SHOP, budget=n)
        gone = set(plan.ids)
        values = [of[each] for each in gone]
        kept = [i for i in of if of[i][0] == "shop" and i not in gone]
        assert plan.n_copies == sum(of[each] in values for each in kept)


def test_columns_of_conditions_are_no_features(folder: Path) -> None:
    workspace = opened_in(folder)
    plan = workspace.plan_removal("visits", where=NORTH, retain_where="age < 60", budget=5)
    assert plan.features == ("dose",)
    named = workspace.plan_removal(
        "visits", where=NORTH, retain_where="age < 60", budget=5, features=["age"]
    )
    assert (named.features, named.left_out) == (("age",), ())


# -- what goes wrong -------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"dataset": "gone"}, "no data set 'gone'"),
    ({"where": None}, "nothing says which records"),
    ({"where": "gone = 1"}, "'gone'"),
    ({"where": "label = 'none'"}, "the domain has 0 of the 160 records"),
    ({"where": "label != 'none'"}, "0 of the 160 records of 'messages' are to stay"),
    ({"where": "id = 'm3'"}, "the domain has 1 of"),
    ({"where": "id != 'm3'"}, "1 of the 160"),
    ({"keywords": ["offer1"]}, "without a column"),
    ({"keywords": [], "column": "text"}, "0 keywords"),
    ({"keywords": ["offer1"], "column": "minutes"}, "holds int64"),
    ({"features": ["gone"]}, "no column 'gone'"),
    ({"features": ["id"]}, "no column 'id'"),
    ({"features": ["text", "text"]}, "named twice"),
    ({"features": []}, "name no column"),
    ({"score": "best"}, "score='best'"),
    ({"score": "maha-mu2"}, "pass components=100"),
    ({"components": 0}, "components=0"),
    ({"components": True}, "components=True"),
    ({"components": 10**6}, "at most"),
    ({"components": 2, "features": ["minutes"]}, "no text"),
    ({"budget": 0}, "n=0"),
    ({"budget": 81}, "1 to 80"),
    ({"budget": 1.5}, "share=1.5"),
    ({"budget": "many"}, "budget='many'"),
    ({"budget": Coverage(0.0)}, "share=0.0"),
    ({"budget": MinRemoval(1e6)}, "expected at most"),
    ({"budget": MaxShift(-1.0)}, "epsilon=-1.0"),
    ({"budget": 5.0, "cost": "text"}, "no column of numbers 'text'"),
    ({"budget": 0.5, "cost": "minutes"}, "the cheapest record costs 1"),
    ({"budget": None, "cost": "minutes"}, "without an amount"),
    ({"delta": 0.0}, "delta=0.0"),
    ({"retain_where": "gone = 1"}, "'gone'"),
    ({"retain_where": "label = 'shop'"}, "0 of the 160 records of 'messages' are to stay"),
    ({"retain_sample": 1}, "retain_sample is 1"),
    ({"fresh": "messages"}, "is 'messages' itself|are 'messages' itself"),
    ({"fresh": "messages.csv"}, "all of the 160 fresh records equal one"),
    ({"fresh": "fresh_visits.csv"}, "lack the columns"),
    ({"fresh": "gone.csv"}, "is not there"),
    ({"fresh": "gone"}, "or name a data set"),
]


@pytest.mark.parametrize(("changes", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_what_cannot_be_planned_changes_nothing(
    template: Path, changes: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(template)
    before = bytes_of(template)
    asked: dict[str, Any] = {"dataset": "messages", "where": SHOP, "budget": 5, **changes}
    with pytest.raises(ErasableError, match=told) as error:
        opened_in(template).plan_removal(asked.pop("dataset"), **asked)
    assert "\n" not in str(error.value)
    assert bytes_of(template) == before


def test_gaps_and_infinity_are_refused_in_features_alone(folder: Path) -> None:
    rows = [f"{i},{i % 2},{'' if i == 3 else i},{i}" for i in range(20)]
    (folder / "gaps.csv").write_text("id,ward,age,dose\n" + "\n".join(rows) + "\n")
    workspace = opened_in(folder)
    workspace.add_dataset("gaps", folder / "gaps.csv", id_column="id")
    with pytest.raises(ErasableError, match="have gaps, in 'age'"):
        workspace.plan_removal("gaps", where="ward = 1", budget=2)
    assert workspace.plan_removal("gaps", where="ward = 1", budget=2, features=["dose"]).ids


def test_ids_that_the_workspace_takes_for_one_another_are_refused(folder: Path) -> None:
    rows = [f'"{"" if i % 2 else " "}r{i // 2}",{"a" if i < 20 else "b"},{i}' for i in range(40)]
    (folder / "blanks.csv").write_text("id,ward,age\n" + "\n".join(rows) + "\n")
    workspace = opened_in(folder)
    workspace.add_dataset("blanks", folder / "blanks.csv", id_column="id")
    with pytest.raises(ErasableError, match="differ by blanks"):
        workspace.plan_removal("blanks", where="ward = 'a'", budget=3)


@pytest.mark.parametrize("by", ["identity", "condition", "another column"])
def test_records_of_requests_on_hold_are_told(folder: Path, by: str) -> None:
    """Whoever has reason to keep a record is not to lose it with a domain unawares."""
    workspace = opened_in(folder)
    asked = {"where": NORTH, "budget": Coverage(0.5)}
    chosen = workspace.plan_removal("visits", **asked)
    assert not [told for told in chosen.warnings if "on hold" in told]
    data = read(folder, "visits")
    leaving = np.isin(data["visit"].astype(int), [int(each) for each in chosen.ids])
    patient = data["patient"][leaving][0]
    mine = data["patient"] == patient
    if by == "identity":
        (request,) = workspace.request([patient], hold="a court")
    elif by == "condition":
        dose = float(data["dose"][leaving][0])
        mine = data["dose"] >= dose
        (request,) = workspace.request(where=f"dose >= {dose!r}", dataset="visits", hold="a court")
    else:  # of somebody whose records stay
        stays = min(set(data["patient"]) - set(data["patient"][leaving]))
        (request,) = workspace.request([stays], hold="a court")
        mine = np.zeros(len(leaving), dtype=bool)
    told = [told for told in workspace.plan_removal("visits", **asked).warnings if "hold" in told]
    n = int((mine & leaving).sum())
    assert (n == 0) == (by == "another column")
    expected = f"{n} of the records that would leave are asked for by request {request.id}, which"
    assert [each.startswith(expected) for each in told] == [True] * bool(n)
    workspace.resume(request.id)
    again = workspace.plan_removal("visits", **asked).warnings
    assert not [each for each in again if "hold" in each]


def test_a_hold_that_came_after_the_plan_stops_the_removal(folder: Path) -> None:
    """The plan could not warn of it; one that does is carried out."""
    workspace = opened_in(folder)
    asked = {"where": NORTH, "budget": Coverage(0.5)}
    chosen = workspace.plan_removal("visits", **asked)
    data = read(folder, "visits")
    leaving = np.isin(data["visit"].astype(int), [int(each) for each in chosen.ids])
    before = workspace.dataset("visits")["n_records"]
    (request,) = workspace.request([data["patient"][leaving][0]], hold="a court")
    with pytest.raises(WorkspaceError, match=f"request {request.id}, which was put on hold"):
        workspace.remove_domain(chosen)
    assert workspace.dataset("visits")["n_records"] == before
    assert [each.id for each in workspace.requests()] == [request.id]
    warned = workspace.plan_removal("visits", **asked)
    assert workspace.remove_domain(warned).n_records == len(warned.ids)
