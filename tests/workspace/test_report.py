"""The page that shows a workspace: whole, honest, and without anybody's name."""

from __future__ import annotations

import base64
import json
import re
from datetime import timedelta
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from contexts import make_context, visits, write_csv

from erasable.core.errors import EvidenceError, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.models.published import Published, record_published
from erasable.workspace.report import receipt_page

VOID = {"meta", "br", "link", "path", "use", "rect"}


class Balanced(HTMLParser):
    """Demands that every tag that opens closes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass


@pytest.fixture
def page(tmp_path: Path) -> str:
    context, clock = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    write_csv(tmp_path / "visits.csv", visits(90))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    workspace.register("elsewhere", datasets=["visits"])
    workspace.request(["marker-patient-3", "nobody"])
    clock.at += timedelta(days=3)
    workspace.process()
    late = workspace.request(["marker-patient-5"])[0]
    workspace.hold(late.id, "<script>alert(1)</script>")
    clock.at += timedelta(days=60)
    workspace.verify()
    workspace.report(tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_it_shows_what_there_is(page: str) -> None:
    Balanced().feed(page)
    text = re.sub(r"<[^>]+>", " ", page)
    text = re.sub(r"\s+", " ", text)
    assert "1 past their due date" in text
    assert "2 completed requests" in text
    assert "3 records erased" in text
    assert "no match" in text
    assert "not covered" in text
    assert "GaussianNB" in text
    assert "equal" in text
    assert page.count("<svg") == 2


def test_it_needs_nothing_else_and_names_nobody(page: str) -> None:
    assert re.findall(r"(?:src|href)=[\"'](?!#)[^\"']+", page) == []
    assert "@import" not in page
    assert "<script" not in page
    assert "marker" not in page


def test_it_shows_what_is_to_be_seen_to(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    write_csv(tmp_path / "visits.csv", visits(90))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    on = {"datasets": ["visits"], "target": "sick"}
    workspace.fit("risk", "naive_bayes.GaussianNB", hook="false {model}", **on)
    workspace.request(["marker-patient-3"])
    assert workspace.process().warnings
    (tmp_path / "train.sh").write_text('cp "$1" "$2"')
    workspace.register(
        "ranker", datasets=["visits"], retrain=f"sh {tmp_path}/train.sh {{data}} {{out}}"
    )
    (tmp_path / "train.sh").unlink()
    workspace.request(["marker-patient-4"])
    workspace.work(drain=True, attempts=1)
    target = Published("risk", "mlflow:risk", None, False, 1, "7", ["5", "6"], None, 0)
    with context.ledger.transaction() as connection:
        record_published(context, connection, [target])
        restored = {"id": "B", "position": 0, "at": "2026-02-01T00:00:00Z", "made_at": "2026-01-01",
                    "log_size": 12, "head_size": None, "head_root": None, "list": None}  # fmt: skip
        context.ledger.set(connection, "restored", restored)
    workspace.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    Balanced().feed(page)
    rows = [
        re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row)).strip().replace("\N{EN DASH}", "-")
        for row in re.findall(r"<tr>(.*?)</tr>", page, re.S)
    ]
    assert "model ranker dead 1 1 erasable tasks says why" in rows
    assert "hook of risk due - - the next erasable process tries again" in rows
    assert "risk as mlflow:risk behind - - the next erasable process tries again" in rows
    assert "risk mlflow:risk 1 7 5, 6" in rows
    assert "on 2026-02-01, from a backup with 12 entries; no head was taken in" in page
    assert "marker" not in page


@pytest.fixture
def checked(tmp_path: Path) -> Workspace:
    """A workspace whose models were verified at different times, or never."""
    context, clock = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    write_csv(tmp_path / "visits.csv", visits(90))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    on = {"datasets": ["visits"], "target": "sick"}
    for name in ("again", "changed", "gone"):
        workspace.fit(name, "naive_bayes.GaussianNB", **on)
    workspace.register("elsewhere", datasets=["visits"])
    workspace.request(["marker-patient-3"])
    workspace.process()
    clock.pass_days(1)
    workspace.verify()
    workspace.retire("gone")
    clock.pass_days(1)
    workspace.request([f"marker-patient-{i}" for i in (4, 5, 6)])
    workspace.process()
    workspace.verify(["again"])
    workspace.fit("new", "naive_bayes.GaussianNB", **on)
    return workspace


def _verifications(page: str) -> dict[str, str]:
    section = page.partition("<h2>Verification</h2>")[2].partition("</section>")[0]
    found = {}
    for row in re.findall(r"<tr>(<td.*?)</tr>", section, re.S):
        name, _, rest = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row)).strip().partition(" ")
        found[name] = rest.strip()
    return found


def test_what_was_verified_is_said_of_each_model(checked: Workspace, tmp_path: Path) -> None:
    first, *others = sorted(checked.requests(), key=lambda each: each.received_at)
    later = sorted(each.id for each in others)
    equal = "it equalled, bit for bit, a model trained on the records that were left"
    checked.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "very model was trained again" not in page
    assert _verifications(page) == {
        "again": f"equal 2026-03-03, version 3: {equal} 4 requests, up to {later[-1]} unchanged",
        "changed": f"equal, then changed 2026-03-02, version 2: {equal} 1 request, "
        f"up to {first.id} version 3 is in use and not verified, after 3 requests: "
        + ", ".join(later),
        "elsewhere": "not covered trained elsewhere, without a command; never verified; "
        "4 requests did not reach it",
        "gone": "retired retired: its file is erased",
        "new": "not verified no verification is on record; no request reached it",
    }
    assert checked.model("changed")["verified"].endswith(", ".join(later))


def test_a_model_with_the_name_of_a_retired_one_has_nothing_of_it(
    checked: Workspace, tmp_path: Path
) -> None:
    for name in ("gone", "again"):
        if checked.model(name)["state"] != "retired":
            checked.retire(name)
        checked.fit(name, "tree.DecisionTreeClassifier", datasets=["visits"], target="sick")
        shown = checked.model(name)
        assert shown["verified"] == "no verification is on record; no request reached it"
        assert [each["cause"] for each in shown["versions"]] == ["fit"]
        assert [each["kind"] for each in shown["measurements"]] == ["fit"]
    checked.request(["marker-patient-8"])
    checked.process()
    checked.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert _verifications(page)["again"] == (
        "not verified no verification is on record; 1 request reached it"
    )
    checked.verify(["again"])
    assert "version 5: it equalled" in checked.model("again")["verified"]
    checked.retire("new")
    checked.fit("new", datasets=["visits"])  # the same model again
    assert len(checked.model("new")["versions"]) == 3


def test_the_audit_of_an_earlier_version_says_so(checked: Workspace, tmp_path: Path) -> None:
    checked.audit("changed", deleted=checked.requests()[0].id)
    checked.report(tmp_path / "page.html")
    assert "unchanged" in _audits(tmp_path / "page.html")
    checked.request(["marker-patient-8"])
    checked.process()
    checked.report(tmp_path / "page.html")
    assert "another version is in use, after 1 request" in _audits(tmp_path / "page.html")


def _audits(path: Path) -> str:
    page = path.read_text(encoding="utf-8")
    section = page.partition("<h2>Audits</h2>")[2].partition("</section>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", section))


def test_a_verification_without_a_version_is_not_on_record(checked: Workspace) -> None:
    """Those that earlier versions of erasable wrote."""
    context = checked.context
    with context.ledger.transaction() as connection:
        kept = context.ledger.get(connection, "verification")
        for each in kept["verdicts"]:
            del each["version"]
        context.ledger.set(connection, "verification", {"at": "2026-03-02", **kept})
    assert "no verification is on record" in checked.model("again")["verified"]


def test_nothing_is_to_be_seen_to(page: str) -> None:
    assert "To be seen to" not in page
    assert "Published" not in page
    assert "restored" not in page


def test_an_empty_workspace_has_a_page_too(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    workspace.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    Balanced().feed(text)
    assert text.count("None yet.") == 3
    assert "No model yet." in text
    with pytest.raises(WorkspaceError, match="make it first"):
        workspace.report(tmp_path / "nowhere" / "page.html")
    assert workspace.status()["requests"] == {}


def test_a_receipt_has_a_page(checked: Workspace) -> None:
    first = min(checked.requests(), key=lambda each: each.received_at)
    page = checked.receipt_page(first.id)
    Balanced().feed(page)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    statement = json.loads(checked.receipt(first.id))["envelope"]["payload"]
    for expected in (
        f"request {first.id}",
        "completed 2026-03-01, in time",
        "visits data set rewritten - 3",
        "again model deleted bitwise 3",
        "elsewhere model not covered unknown 0",
        "not covered elsewhere",
        "searched visits.patient (id)",
        sha256(base64.b64decode(statement)).hexdigest(),
    ):
        assert expected in text
    assert re.findall(r"(?:src|href)=", page) == []
    assert "<script" not in page
    assert "marker" not in page


def test_a_receipt_that_does_not_hold_has_no_page(checked: Workspace) -> None:
    body = checked.receipt(checked.requests()[0].id).replace(b'"sig":"', b'"sig":"AAAA', 1)
    with pytest.raises(EvidenceError, match="signature does not hold"):
        receipt_page.render(body, checked.public_key)


def test_the_page_of_a_correction_says_what_was_corrected(checked: Workspace) -> None:
    checked.fit("forest", "sklearn.tree.DecisionTreeClassifier", datasets=["visits"], target="sick")
    request, _ = checked.correct("visits", ids=["v60"], values={"age": 44})
    checked.process()
    text = re.sub(r"<[^>]+>", " ", checked.receipt_page(request.id))
    assert "Receipt of a correction" in text
    assert "age in visits" in text
    assert "Receipt of an erasure" not in text
    assert "one made from the corrected records" in text
    assert "without the records" not in text


def test_a_request_that_ended_otherwise_has_no_receipt(checked: Workspace) -> None:
    denied, waits = (checked.request([f"marker-patient-{i}"])[0].id for i in (9, 10))
    checked.deny(denied, "legal hold")
    with pytest.raises(WorkspaceError, match=r"is denied; .* which has a receipt$"):
        checked.receipt_page(denied)
    with pytest.raises(WorkspaceError, match=r"is pending; .*; run `erasable process` first$"):
        checked.receipt_page(waits)
