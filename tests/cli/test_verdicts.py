"""How `erasable verify` ends for each verdict: 0 says that every model was verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.running import erasable, make_tiny
from erasable.naive_bayes import GaussianNB
from erasable.workspace import Workspace
from erasable.workspace.models import verifying

ENDS = {
    "equal": (0, 0), "different": (1, 1), "other version": (1, 0),
    "damaged": (1, 1), "not covered": (0, 0), "not checked": (0, 0), "retired": (0, 0),
    "approximate": (0, 0),
}  # fmt: skip
"""Exit codes, without and with --allow-other-version."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verdicts")
    make_tiny(folder)
    return folder


def test_every_verdict_is_here() -> None:
    told = " ".join(str(Workspace.verify.__doc__).split())
    assert all(f'"{verdict}"' in told for verdict in ENDS)
    assert told.count('"') == 2 * len(ENDS)


@pytest.mark.parametrize("verdict", ENDS)
@pytest.mark.parametrize("allowed", [False, True])
def test_the_exit_code_follows_the_verdict(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, allowed: bool
) -> None:
    judged = [verifying.Verdict("risk", verdict, "", 0.1)]
    monkeypatch.setattr(verifying, "verify", lambda *_, **__: judged)
    given = ["--allow-other-version"] if allowed else []
    result = erasable("verify", *given, folder=tiny)
    assert result.exit_code == ENDS[verdict][allowed]
    assert ("not verified: risk" in result.stderr) == (verdict == "other version" and not allowed)


def test_a_model_of_other_software_is_not_verified(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GaussianNB, "algorithm_version", 99)
    result = erasable("verify", "risk", folder=tiny)
    assert result.exit_code == 1
    assert "other version" in result.stdout
    assert "--allow-other-version" in result.stderr
    assert erasable("verify", "risk", "--allow-other-version", folder=tiny).exit_code == 0
