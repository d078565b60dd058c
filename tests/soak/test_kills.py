"""The soak test finds what is broken: each of its checks has something that it catches."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from erasable.core.errors import TooFewRecordsError
from erasable.workspace.data import admission
from erasable.workspace.evidence import receipts
from erasable.workspace.identity import suppression
from erasable.workspace.models import deleting
from erasable.workspace.requests import process
from erasable.workspace.site import Site

pytestmark = pytest.mark.soak
FEW = ["--kills", "25", "--minutes", "4", "--seed", "3"]


@pytest.fixture
def kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    place = Path(__file__).with_name("kills.py")
    spec = importlib.util.spec_from_file_location("kills", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return module


def test_ours_passes(kills: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert kills.main(FEW) == 0
    assert "25 kills in" in capsys.readouterr().out


def test_too_few_kills_fail(kills: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert kills.main(["--kills", "500", "--minutes", "0"]) == 1
    assert "only 0 of 500 kills in time" in capsys.readouterr().out


def nothing_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "clean", lambda self: None)


def completed_before_the_purge(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(site: Site) -> list[str]:
        with site.ledger.reading() as connection:
            query = process.select(process.request_table.c.id)
            waiting = list(
                connection.execute(
                    query.where(process.request_table.c.state == "swapped")
                ).scalars()
            )
        with site.ledger.transaction() as connection:
            receipts.issue(site, connection, waiting, site.now())
        site.clean()
        return waiting

    monkeypatch.setattr(process, "finish", hasty)


def nobody_is_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission.suppression, "suppressed", lambda connection, tokens: set())


def models_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: object) -> None:
        raise TooFewRecordsError("no records are left; expected some; delete fewer")

    monkeypatch.setattr(deleting, "_without", never)


def nobody_is_suppressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suppression, "suppress", lambda *given: {})


@pytest.mark.parametrize(
    ("sabotage", "told"),
    [
        (nothing_is_removed, "nothing refers to|completed, but still there"),
        (completed_before_the_purge, "completed, but still there|full look"),
        # Who comes back is told at the sync, or, where that was killed, by what is there after it.
        (nobody_is_kept_out, "suppressed, expected|neither before nor after|still there"),
        (models_are_given_up, "is retired|verify said"),
        (nobody_is_suppressed, "kept out|suppressed, expected|still there"),
    ],
)
def test_what_is_broken_is_found(
    kills: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sabotage: Callable[[pytest.MonkeyPatch], None],
    told: str,
) -> None:
    sabotage(monkeypatch)
    assert kills.main(["--kills", "60", "--minutes", "4", "--seed", "3"]) == 1
    said = capsys.readouterr().out
    assert any(words in said for words in told.split("|")), said
