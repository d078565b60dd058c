"""The command line of a workspace whose data and models are in an object store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.running import erasable, make_tiny, told


@pytest.mark.soak
def test_a_life(s3: Any, tmp_path: Path) -> None:
    url = f"s3://{s3.bucket(versions='Enabled')}/clinic"
    rows = "".join(f"v{i},p{i // 2},{20 + i},{i % 2}\n" for i in range(40))
    (tmp_path / "visits.csv").write_text(f"visit,patient,age,sick\n{rows}")
    made = erasable("init", "--store", url, folder=tmp_path)
    assert made.exit_code == 0, made.output
    assert f"its data and models are in {url}" in made.stdout
    run = lambda *args: told(*args, folder=tmp_path)  # noqa: E731
    run("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "patient")
    run("model", "fit", "risk", "--dataset", "visits", "--estimator", "naive_bayes.GaussianNB",
        "--target", "sick")  # fmt: skip
    (request,) = run("request", "p7")["requests"]
    run("process")
    assert erasable("verify", folder=tmp_path).exit_code == 0
    assert erasable("log", "verify", folder=tmp_path).exit_code == 0
    says = run("receipt", "show", request["id"])["says"]
    assert says["out_of_reach"] == run("status")["unreached"]
    assert "access logs of the object store" in erasable("status", folder=tmp_path).stdout


@pytest.mark.soak
def test_a_copy(s3: Any, server: Any, database: str, tmp_path: Path) -> None:
    make_tiny(tmp_path)
    url = f"s3://{s3.bucket()}/team"
    args = ("workspace", "copy", "team", "--database", server.url(database), "--store", url)
    told(*args, folder=tmp_path)
    assert not (tmp_path / "team" / "artifacts").exists()
    assert told("requests", folder=tmp_path / "team") == told("requests", folder=tmp_path)
    assert erasable("verify", folder=tmp_path / "team").exit_code == 0


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("s3://zq:zq-secret@clinic", "without a password or key"),
        ("nonsense", "expected s3://BUCKET/PREFIX"),
        ("s3://clinic/models", "can be reached"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, expected: str
) -> None:
    for name, value in (
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_MAX_ATTEMPTS", "1"),
        ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    result = erasable("init", "--store", store, folder=tmp_path)
    assert (result.exit_code, result.stdout, result.fault) == (2, "", None)
    (line,) = result.stderr.splitlines()
    assert expected in line
    assert "zq-secret" not in line
    assert list(tmp_path.iterdir()) == []
