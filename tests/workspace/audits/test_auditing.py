"""Audits of models in a workspace: the same as by hand, entered in the log, and nothing kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from audit_scene import N, audits_of, erased, people
from contexts import make_context, write_csv

from erasable.audit import audit_membership
from erasable.core.errors import ErasableError, InvalidParameterError, WorkspaceError
from erasable.neighbors import KNeighborsClassifier
from erasable.workspace import Workspace
from erasable.workspace.evidence import entries


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    context, _ = make_context(tmp_path / "ws")
    made = Workspace(context)
    write_csv(tmp_path / "visits.csv", people(0, N))
    write_csv(tmp_path / "fresh.csv", people(N, 2 * N))
    made.add_dataset("visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"])
    made.fit(
        "near", "neighbors.KNeighborsClassifier", datasets=["visits"], target="sick",
        features=["dose", "weight"], params={"n_neighbors": 1},
    )  # fmt: skip
    return made


def test_it_is_the_audit_by_hand(workspace: Workspace, tmp_path: Path) -> None:
    report = workspace.audit("near", fresh=tmp_path / "fresh.csv", seed=3)

    def given(first: int, last: int) -> Any:
        table = pa.table(people(first, last)).sort_by("visit")
        X = np.column_stack([table["dose"].to_numpy(), table["weight"].to_numpy()])
        return X, np.array(table["sick"].to_pylist()), table["visit"].to_pylist()

    inside = given(0, N)
    model = KNeighborsClassifier(n_neighbors=1).fit(*inside[:2])
    fresh = pa.table(people(N, 2 * N))
    others = (
        np.column_stack([fresh["dose"].to_numpy(), fresh["weight"].to_numpy()]),
        np.array(fresh["sick"].to_pylist()),
    )
    by_hand = audit_membership(model, inside, others, random_state=3)
    assert report.verdict == by_hand.verdict == "found"
    assert report.groups[0].to_dict() == by_hand.groups[0].to_dict()
    assert report.exposed == by_hand.exposed
    assert {each.id for each in report.exposed} <= set(people(0, N)["visit"])


def test_records_that_differ_in_nothing_are_not_told_apart(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The negative control: a model that has not learned from either group."""
    write_csv(tmp_path / "other.csv", people(2 * N, 3 * N))
    workspace.add_dataset("other", tmp_path / "other.csv", id_column="visit")
    workspace.fit(
        "flat", "naive_bayes.GaussianNB", datasets=["other"], target="sick",
        features=["dose", "weight"],
    )  # fmt: skip
    write_csv(tmp_path / "more.csv", people(0, N))
    assert workspace.audit("flat", fresh=tmp_path / "more.csv").verdict != "found"


def test_mixed_columns_and_gaps(workspace: Workspace, tmp_path: Path) -> None:
    workspace.fit(
        "wards", "preprocessing.OneHotEncoder, naive_bayes.BernoulliNB", datasets=["visits"],
        target="sick", features=["ward"], params={"onehotencoder__handle_unknown": "ignore"},
    )  # fmt: skip
    workspace.fit(
        "filled", "preprocessing.SimpleImputer, neighbors.KNeighborsClassifier",
        datasets=["visits"], target="sick", features=["age", "dose"],
        params={"kneighborsclassifier__n_neighbors": 1},
    )  # fmt: skip
    assert workspace.audit("filled", fresh=tmp_path / "fresh.csv").verdict == "found"
    assert "records of" in _refused(workspace, "wards", fresh=tmp_path / "fresh.csv")


def test_gaps_that_a_model_cannot_take_are_left_out(workspace: Workspace, tmp_path: Path) -> None:
    table = pa.table(people(N, 2 * N))
    holes = pa.array([None if i < 5 else v for i, v in enumerate(table["dose"].to_pylist())])
    at = table.column_names.index("dose")
    pyarrow.csv.write_csv(table.set_column(at, "dose", holes), tmp_path / "holes.csv")
    report = workspace.audit("near", fresh=tmp_path / "holes.csv")
    assert report.notes[0] == "5 of the fresh records have missing values, and were left out"
    assert sum((report.groups[0].separation.n_others, (N - 5) // 2)) == N - 5


def test_a_data_set_of_the_workspace_is_fresh(workspace: Workspace, tmp_path: Path) -> None:
    workspace.add_dataset("later", tmp_path / "fresh.csv", id_column="visit", subjects=["patient"])
    from_file = workspace.audit("near", fresh=tmp_path / "fresh.csv")
    named = workspace.audit("near", fresh="later")
    assert named.verdict == from_file.verdict == "found"


def test_the_log_names_no_record(workspace: Workspace, tmp_path: Path) -> None:
    report = workspace.audit("near", fresh=tmp_path / "fresh.csv", level=0.01)
    (entry,) = audits_of(workspace)
    assert (entry["subject"], entry["question"], entry["verdict"]) == (
        "near",
        "membership",
        "found",
    )
    assert (entry["attack"], entry["level"], entry["audited_version"]) == (report.attack, 0.01, 1)
    assert entry["audited_commitment"] == workspace.model("near")["commitment"]
    written = json.dumps(entry)
    assert report.exposed
    assert not [each for each in people(0, N)["visit"] if f'"{each}"' in written]
    assert "marker" not in written
    assert workspace.verify_log() == []
    keys = workspace.context.keys
    again = entries.audited(keys, 1, entry["audited_commitment"], report.to_dict())
    assert again["report"] == entry["report"]
    other = entries.audited(keys, 1, None, {**report.to_dict(), "seconds": 0.0})
    assert other["report"] != entry["report"]


def test_an_erasure_after_an_audit_leaves_nothing(workspace: Workspace, tmp_path: Path) -> None:
    report = workspace.audit("near", fresh=tmp_path / "fresh.csv")
    number = int(str(report.exposed[0].id)[1:])
    workspace.request([f"marker-patient-{number // 3}"])
    workspace.process()
    assert workspace.verify_log() == []
    assert [each.verdict for each in workspace.verify()] == ["equal"]
    held = b"".join(p.read_bytes() for p in (tmp_path / "ws").rglob("*") if p.is_file())
    assert f'"v{number}"'.encode() not in held
    assert f"marker-patient-{number // 3}".encode() not in held
    assert workspace.audit("near", fresh=tmp_path / "fresh.csv").verdict == "found"
    assert [each["audited_version"] for each in audits_of(workspace)] == [1, 2]


# -- deletions -------------------------------------------------------------------------------------


def test_an_exact_deletion_is_equal(workspace: Workspace) -> None:
    request = erased(workspace)
    report = workspace.audit("near", deleted=request)
    assert (report.question, report.verdict, report.attack) == ("deletion", "equal", "digest")
    (entry,) = audits_of(workspace)
    assert (entry["verdict"], entry["request"]) == ("equal", request)


@pytest.fixture
def pretends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A classifier that says it forgets approximately, and forgets nothing."""
    monkeypatch.setattr(KNeighborsClassifier, "exactness", "approximate")
    monkeypatch.setattr(KNeighborsClassifier, "delete", lambda *_, **__: None)


@pytest.mark.usefixtures("pretends")
def test_a_deletion_that_was_none_is_found(workspace: Workspace, tmp_path: Path) -> None:
    request = erased(workspace)
    assert workspace.verify()[0].verdict == "approximate"
    wanted = "no longer in the workspace"
    assert wanted in _refused(workspace, "near", deleted=request)
    write_csv(tmp_path / "erased.csv", people(0, 24))
    report = workspace.audit("near", deleted=request, records=tmp_path / "erased.csv")
    assert (report.question, report.verdict) == ("deletion", "found")
    assert {each.id for each in report.exposed} <= {f"v{i}" for i in range(24)}
    assert audits_of(workspace)[-1]["verdict"] == "found"


def test_a_refit_that_is_called_approximate_is_not_found(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the same audit of a model that has forgotten."""
    from erasable.workspace.models import verifying

    request = erased(workspace)
    verdict = verifying.Verdict("near", "approximate", "", 0.1)
    monkeypatch.setattr(verifying, "verify", lambda *_, **__: [verdict])
    monkeypatch.setattr(KNeighborsClassifier, "exactness", "approximate")
    write_csv(tmp_path / "erased.csv", people(0, 24))
    report = workspace.audit("near", deleted=request, records=tmp_path / "erased.csv")
    assert report.verdict != "found"


def test_a_command_is_run_again(workspace: Workspace) -> None:
    workspace.register("copy", datasets=["visits"], retrain="cp {data} {out}")
    request = erased(workspace)
    assert workspace.audit("copy", deleted=request).verdict == "equal"


# -- what cannot be audited ------------------------------------------------------------------------


def _refused(workspace: Workspace, name: str, **options: Any) -> str:
    before = len(workspace.log_entries())
    with pytest.raises(ErasableError) as caught:
        workspace.audit(name, **options)
    assert len(workspace.log_entries()) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_models_without_scores(workspace: Workspace, tmp_path: Path) -> None:
    both = {"datasets": ["visits"], "features": ["dose", "weight"]}
    workspace.fit("groups", "cluster.KMeans", params={"n_clusters": 2}, **both)
    workspace.fit("scaled", "preprocessing.StandardScaler", **both)
    workspace.register("copy", datasets=["visits"], retrain="cp {data} {out}")
    workspace.register("elsewhere", datasets=["visits"])
    fresh = tmp_path / "fresh.csv"
    for name in ("groups", "scaled"):
        assert "it predicts no target; expected" in _refused(workspace, name, fresh=fresh)
    assert "a program of its own made it" in _refused(workspace, "copy", fresh=fresh)
    assert "there is no file of the model" in _refused(workspace, "elsewhere", fresh=fresh)
    assert "there is no model 'gone'" in _refused(workspace, "gone", fresh=fresh)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "no fresh records were given"),
        ({"fresh": "visits"}, "are 'visits' itself"),
        ({"fresh": "missing.csv"}, "missing.csv"),
        ({"fresh": "visits.csv"}, "240 of the 240 records of others"),
        ({"fresh": "fresh.csv", "records": "visits.csv"}, "without a request"),
        ({"fresh": "fresh.csv", "attack": "best"}, "expected rmia or lira"),
        ({"fresh": "fresh.csv", "references": 0}, "n_references"),
        ({"fresh": "fresh.csv", "level": 1.5}, "level is 1.5"),
        ({"fresh": "narrow.csv"}, "lacks the columns dose, weight"),
        ({"fresh": "words.csv"}, "column 'dose' holds 'much' in row 2; expected numbers"),
        ({"deleted": "R-0000000000"}, "there is no request"),
        ({"deleted": "R-0000000000", "attack": "lira"}, "expected none with a request"),
    ],
)
def test_bad_input(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any], told: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("narrow.csv").write_text("visit,age,sick\nv1,3,no\n")
    Path("words.csv").write_text("dose,weight,sick\nmuch,1,no\n")
    assert told in _refused(workspace, "near", **options)


def test_a_request_that_is_not_carried_out(workspace: Workspace, tmp_path: Path) -> None:
    waits = workspace.request(["marker-patient-3"])[0].id
    assert "is pending; expected one that was" in _refused(workspace, "near", deleted=waits)
    none = workspace.request(["nobody"])[0].id
    workspace.cancel(waits)
    write_csv(tmp_path / "apart.csv", people(3 * N, 4 * N))
    workspace.add_dataset("apart", tmp_path / "apart.csv", id_column="visit", subjects=["patient"])
    other = workspace.request([f"marker-patient-{N + 5}"])[0].id
    workspace.process()
    assert _refused(workspace, "near", deleted=none).endswith(
        "is no match; expected one that was carried out"
    )
    assert "erased no record of the model" in _refused(workspace, "near", deleted=other)


def test_errors_of_one_kind(workspace: Workspace) -> None:
    with pytest.raises(InvalidParameterError):
        workspace.audit("near")
    with pytest.raises(WorkspaceError):
        workspace.audit("near", fresh="visits")


def test_the_report_shows_the_newest_audit(workspace: Workspace, tmp_path: Path) -> None:
    def page() -> str:
        workspace.report(tmp_path / "page.html")
        return (tmp_path / "page.html").read_text()

    assert "<h2>Audits</h2>" not in page()
    workspace.audit("near", fresh=tmp_path / "fresh.csv")
    assert "RMIA, 4 references, error 0.05" in page()
    request = erased(workspace)
    workspace.audit("near", deleted=request)
    shown = page()
    part = shown[shown.index("<h2>Audits</h2>") : shown.index("<h2>Log</h2>")]
    assert "RMIA" not in part
    assert "equal</span>" in part
    assert "digest, error 0.05" in part
