"""The whole flow: a plan changes nothing, and after it no model has ever seen the records."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from domain_scene import NORTH, PLANS, SHOP, TEXTS, bytes_of, opened_in, plan_of, read
from sklearn import metrics

import erasable
from erasable.core.errors import WorkspaceError
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import MultinomialNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.removal import MinRemoval
from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from erasable.workspace.ledger.schema import identity
from erasable.workspace.models import deleting
from erasable.workspace.models.using import open_model
from erasable.workspace.requests import batches, process


def model_of(workspace: Workspace, name: str) -> Any:
    return erasable.load(io.BytesIO(open_model(workspace.context, name)[2]))


def fitted(folder: Path, name: str, gone: Any) -> Any:
    """Fit a model of the scene on all records but some, from the source, without the workspace."""
    if name in ("bayes", "linear"):
        data = read(folder, "messages")
        left = ~np.isin(data["id"], gone)
        last = MultinomialNB() if name == "bayes" else LogisticRegression()
        model = make_pipeline(TfidfVectorizer(), last)
        return model.fit(data["text"][left].tolist(), data["label"][left], ids=data["id"][left])
    data = read(folder, "visits")
    left = ~np.isin(data["visit"], gone)
    X, ids = probe(data).loc[left], data["visit"][left]
    if name == "value":
        return Ridge().fit(X, data["cost"][left], ids=ids)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return model.fit(X, data["sick"][left], ids=ids)


def probe(data: dict[str, Any]) -> Any:
    return pd.DataFrame({name: data[name] for name in ("age", "dose")})


def same(model: Any, other: Any, X: Any) -> bool:
    return np.array_equal(model.predict(X), other.predict(X)) and (
        not hasattr(model, "predict_proba")
        or np.array_equal(model.predict_proba(X), other.predict_proba(X))
    )


# -- fresh records ---------------------------------------------------------------------------------


def test_fresh_records_are_no_copies_of_those_that_were_trained_on(folder: Path) -> None:
    mixed = [pyarrow.csv.read_csv(folder / f"{n}.csv") for n in ("fresh_messages", "messages")]
    n = mixed[0].num_rows
    kept = pa.concat_tables([mixed[0], mixed[1].slice(0, 17)])
    renamed = kept.set_column(0, "id", pa.array([f"x{i}" for i in range(kept.num_rows)]))
    pyarrow.csv.write_csv(renamed, folder / "mixed.csv")
    plan = opened_in(folder).plan_removal(
        "messages", where=SHOP, budget=5, fresh=str(folder / "mixed.csv")
    )
    assert plan.fresh.n_left_out == 17
    assert (plan.fresh.n_forget, plan.fresh.n_retain) == (n // 2, n // 2)


def test_a_data_set_that_a_model_was_trained_on_is_not_fresh_to_it(folder: Path) -> None:
    workspace = opened_in(folder)
    workspace.add_dataset("later", folder / "fresh_messages.csv", id_column="id")
    workspace.fit(
        "both", "feature_extraction.TfidfVectorizer->naive_bayes.MultinomialNB",
        datasets=["messages", "later"], target="label", features=["text"],
    )  # fmt: skip
    done = workspace.remove_domain(
        workspace.plan_removal("messages", where=SHOP, budget=10, fresh="later")
    )
    found = {each.model: each for each in done.models}
    assert found["bayes"].report["fresh forget"].n_records == 30
    assert found["both"].report["fresh forget"].n_records == 0
    assert "no record is fresh" in found["both"].remarks[0]
    assert [each.verdict for each in workspace.verify(["both"])] == ["equal"]


# -- a removal -------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", PLANS, ids=lambda each: str(each["budget"]))
def test_models_are_those_that_never_saw_the_records(folder: Path, asked: dict[str, Any]) -> None:
    workspace = opened_in(folder)
    names = ("bayes", "linear") if asked["dataset"] == "messages" else ("sick", "value")
    probes = {
        name: read(folder, "messages")["text"].tolist()
        if asked["dataset"] == "messages"
        else probe(read(folder, "visits"))
        for name in names
    }
    plan = plan_of(workspace, folder, asked)
    done = workspace.remove_domain(plan)
    assert done.n_records == len(plan.ids)
    gone = np.array(plan.ids, dtype=str)
    for name in names:
        after = model_of(workspace, name)
        assert same(after, fitted(folder, name, gone), probes[name])
        assert not same(after, fitted(folder, name, gone[1:]), probes[name])
        assert not same(after, fitted(folder, name, []), probes[name])
    verdicts = {each.model: each.verdict for each in workspace.verify()}
    assert verdicts.pop("ranker") == "not covered"
    assert set(verdicts.values()) == {"equal"}
    assert workspace.verify_log() == []
    checked = receipts.check(workspace.receipt(done.request), workspace.public_key)
    assert checked.statement["predicate"]["records"] == len(plan.ids)
    ids = workspace.plan_removal(**{**asked, "budget": 1.0, "cost": None, "fresh": None}).ids
    assert not {str(each) for each in ids} & set(gone)


def test_the_report_is_that_of_models_before_and_after(folder: Path) -> None:
    workspace = opened_in(folder)
    plan = plan_of(workspace, folder, PLANS[0])
    done = workspace.remove_domain(plan)
    gone = np.array(plan.ids)
    data, fresh = read(folder, "messages"), read(folder, "fresh_messages")
    leaves = np.isin(data["id"], gone)
    shop = data["label"] == "shop"
    rows = {
        "deleted forget": (data, leaves), "kept forget": (data, shop & ~leaves),
        "retain": (data, ~shop), "fresh forget": (fresh, fresh["label"] == "shop"),
        "fresh retain": (fresh, fresh["label"] != "shop"),
    }  # fmt: skip
    for judged in done.models:
        models = {
            "before": fitted(folder, judged.model, []),
            "after": fitted(folder, judged.model, gone),
        }
        assert [each.group for each in judged.report.groups] == list(rows)
        for name, (table, mask) in rows.items():
            group = judged.report[name]
            assert group.n_records == mask.sum()
            texts, labels = table["text"][mask].tolist(), table["label"][mask]
            for side, model in models.items():
                found = getattr(group, side)
                predicted = model.predict(texts)
                assert found["accuracy"] == metrics.accuracy_score(labels, predicted)
                assert found["predicted_forget"] == np.mean(predicted == "shop")
                shares = model.predict_proba(texts)
                loss = metrics.log_loss(labels, shares, labels=model.classes_)
                assert found["log_loss"] == pytest.approx(loss)
        assert judged.report["deleted forget"].change("log_loss") > 0


def test_models_that_cannot_be_judged_are_named(folder: Path) -> None:
    workspace = opened_in(folder)
    workspace.register("program", datasets=["visits"], retrain="cp {data} {out}")
    done = workspace.remove_domain(plan_of(workspace, folder, PLANS[2]))
    found = {each.model: each for each in done.models}
    assert sorted(found) == ["groups", "program", "sick", "tree", "value"]
    for name, told in (("groups", "predicts no target"), ("program", "a program of its own")):
        assert found[name].report is None
        assert told in found[name].remarks[0]
    assert found["value"].report.metrics == ("mean_absolute_error",)
    assert found["value"].report.forget_label is None
    assert found["sick"].report.forget_label is None  # both classes are in the ward
    treated = {each["model"]: each["treatment"] for each in done.treatments}
    assert treated == {
        "groups": "deleted", "program": "retrained", "ranker": "not covered", "sick": "deleted",
        "tree": "refitted", "value": "deleted",
    }  # fmt: skip


def test_a_model_of_an_older_version_is_judged_by_its_own_records(folder: Path) -> None:
    workspace = opened_in(folder)
    workspace.append("messages", folder / "fresh_messages.csv")
    plan = workspace.plan_removal("messages", where=SHOP, budget=20)
    assert plan.n_forget == TEXTS + 30
    done = workspace.remove_domain(plan)
    gone = sum(each.startswith("m") for each in plan.ids)
    report = next(each for each in done.models if each.model == "bayes")
    assert report.remarks == ("stale: fitted on version 1, newest 2",)
    assert report.report["deleted forget"].n_records == gone
    assert report.report["kept forget"].n_records == TEXTS - gone
    assert same(
        model_of(workspace, "bayes"), fitted(folder, "bayes", plan.ids), ["offer1 word1", "word2"]
    )


def test_who_was_removed_is_kept_out(folder: Path) -> None:
    workspace = opened_in(folder)
    plan = plan_of(workspace, folder, PLANS[0])
    workspace.remove_domain(plan)
    change = workspace.sync("messages")
    assert (change.n_suppressed, change.n_added) == (20, 0)
    listed = workspace.suppression_list()
    assert not workspace.import_suppression_list(listed).requests  # nothing has come back


def test_a_plan_that_chooses_nothing_is_not_carried_out(folder: Path) -> None:
    workspace = opened_in(folder)
    plan = workspace.plan_removal("messages", where=SHOP, budget=MinRemoval(0.0))
    assert plan.ids == []
    before = bytes_of(folder)
    with pytest.raises(WorkspaceError, match="chooses no record"):
        workspace.remove_domain(plan)
    assert bytes_of(folder) == before


def test_requests_of_others_still_wait(folder: Path) -> None:
    workspace = opened_in(folder)
    plan = plan_of(workspace, folder, PLANS[0])
    other = next(f"m{i}" for i in range(2 * TEXTS) if f"m{i}" not in plan.ids)
    (waiting,) = workspace.request(where=f"id = '{other}'", dataset="messages")
    assert workspace.remove_domain(plan).n_records == 20
    states = {each.id: each.state for each in workspace.requests()}
    assert states.pop(waiting.id) == "pending"
    assert list(states.values()) == ["completed"]
    assert workspace.process().n_records == 1


def test_a_model_that_too_few_records_are_left_of_is_retired(folder: Path) -> None:
    workspace = opened_in(folder)
    workspace.add_dataset("few", folder / "fresh_visits.csv", id_column="visit")
    workspace.fit(
        "pieces", "cluster.KMeans", datasets=["few"], params={"n_clusters": "49"},
        features=["age", "dose"],
    )  # fmt: skip
    done = workspace.remove_domain(workspace.plan_removal("few", where=NORTH, budget=10))
    assert [each["treatment"] for each in done.treatments] == ["retired"]


def test_all_of_a_domain_may_go(folder: Path) -> None:
    workspace = opened_in(folder)
    done = workspace.remove_domain(workspace.plan_removal("messages", where=SHOP, budget=1.0))
    assert done.n_records == TEXTS
    (report,) = (each.report for each in done.models if each.model == "bayes")
    assert report["kept forget"].n_records == 0
    assert report["deleted forget"].after["predicted_forget"] == 0.0
    assert report["retain"].after["accuracy"] == 1.0


def test_no_byte_of_what_was_removed_is_left(folder: Path) -> None:
    workspace = opened_in(folder)
    plan = plan_of(workspace, folder, PLANS[0])
    data = read(folder, "messages")
    leaves = np.isin(data["id"], plan.ids)
    texts = set(data["text"][leaves]) - set(data["text"][~leaves])
    held = [each for each in data["text"][~leaves] if not any(each in text for text in texts)]
    workspace.remove_domain(plan)
    whole = b"".join(p.read_bytes() for p in (folder / "ws").rglob("*") if p.is_file())
    assert not [each for each in texts if each.encode() in whole and not _within(each, held)]
    assert all(each.encode() in whole for each in held)  # the check can fail


def _within(text: str, held: list[str]) -> bool:
    return any(text in each for each in held)


@pytest.mark.parametrize(("at", "is_done"), [("swap", False), ("finish", True)])
def test_an_interrupted_removal_is_cancelled_or_ended_by_the_next_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at: str, is_done: bool
) -> None:
    """Interrupted before or after its records were erased."""
    workspace = opened_in(folder)
    plan = plan_of(workspace, folder, PLANS[0])

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(process, at, interrupt)
        with pytest.raises(KeyboardInterrupt):
            workspace.remove_domain(plan)
    (request,) = workspace.requests()
    assert request.state == ("swapped" if is_done else "cancelled")
    assert workspace.dataset("messages")["n_records"] == 2 * TEXTS - 20 * is_done
    assert opened_in(folder).process().requests == [request.id] * is_done
    assert {each.verdict for each in workspace.verify(["bayes", "linear"])} == {"equal"}


def test_without_models_numbers_are_compared_or_the_one_text(folder: Path) -> None:
    workspace = opened_in(folder)
    for name in ("bayes", "linear"):
        workspace.retire(name)
    plan = workspace.plan_removal("messages", where=SHOP, budget=5)
    assert (plan.features, plan.left_out) == (("minutes",), ("text",))
    assert [each.target for each in plan.preview.effects] == ["dataset"]
    other = workspace.plan_removal("messages", where="label = 'shop' and minutes > 2", budget=5)
    assert (other.features, other.left_out) == (("text",), ())
    assert workspace.remove_domain(plan).models == []


# -- what goes wrong -------------------------------------------------------------------------------


def changed_by_request(workspace: Workspace) -> None:
    workspace.request(where="id = 'm7'", dataset="messages")
    workspace.process()


def changed_by_append(workspace: Workspace) -> None:
    folder = Path(workspace.context.root).parent
    workspace.append("messages", folder / "fresh_messages.csv")


@pytest.mark.parametrize("change", [changed_by_request, changed_by_append])
def test_a_plan_of_other_records_is_not_carried_out(
    folder: Path, change: Callable[[Workspace], None]
) -> None:
    workspace = opened_in(folder)
    plan = plan_of(workspace, folder, PLANS[0])
    change(opened_in(folder))
    before = bytes_of(folder)
    with pytest.raises(WorkspaceError, match="have changed since"):
        workspace.remove_domain(plan)
    assert bytes_of(folder) == before


def test_a_model_that_cannot_be_updated_stops_it_and_nothing_waits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = opened_in(folder)
    plan = plan_of(workspace, folder, PLANS[0])
    before = {name: model_of(workspace, name).digest() for name in ("bayes", "linear")}

    def fail(*_: Any, **__: Any) -> None:
        raise WorkspaceError("no; expected yes; try")

    with monkeypatch.context() as broken:
        broken.setattr(deleting, "prepare_model", fail)
        with pytest.raises(WorkspaceError, match="no; expected yes"):
            workspace.remove_domain(plan)
    (request,) = workspace.requests()
    assert (request.state, request.matched) == ("cancelled", None)
    assert workspace.process().requests == []
    assert workspace.dataset("messages")["n_records"] == 2 * TEXTS
    assert {name: model_of(workspace, name).digest() for name in before} == before
    assert workspace.verify_log() == []
    assert workspace.remove_domain(plan).n_records == 20  # it was none of the plan's fault


def test_a_request_may_be_for_more_records_than_a_statement_takes(folder: Path) -> None:
    row = SimpleNamespace(tokens=[("record.messages/id", f"{n:032x}") for n in range(260_000)])
    with opened_in(folder).context.ledger.holding() as connection:  # nothing of it stays
        assert not batches._is_doubtful(connection, row)
        two = [("id", "1" * 64), ("staff/id", "2" * 64)]
        for kind, token in two:
            new = identity.insert().values(token=token, type=kind, subject=token[:32])
            connection.execute(new)
        row.tokens += two
        assert batches._is_doubtful(connection, row)
