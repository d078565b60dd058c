"""The recipe of docs/how-to/receipt.md, which checks a receipt with openssl and a shell alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from contexts import make_context, visits, write_csv

from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "receipt.md"
VALID = "Signature Verified Successfully"


def _has_openssl() -> bool:
    """Tell whether openssl is here and signs raw input (OpenSSL 3; LibreSSL does not)."""
    if shutil.which("openssl") is None:
        return False
    told = subprocess.run(["openssl", "pkeyutl", "-help"], capture_output=True, text=True)
    return "-rawin" in told.stdout + told.stderr


pytestmark = pytest.mark.skipif(not _has_openssl(), reason="there is no openssl with -rawin")


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    """A folder with a receipt, a public key, and the key of another workspace."""
    workspace = Workspace(make_context(tmp_path / "ws")[0])
    write_csv(tmp_path / "visits.csv", visits(30))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    request = workspace.request(["marker-patient-3"])[0]
    workspace.process()
    folder = tmp_path / "sent"
    folder.mkdir()
    (folder / "receipt.json").write_bytes(workspace.receipt(request.id))
    (folder / "company.pub").write_bytes(workspace.public_key)
    (tmp_path / "other.pub").write_bytes(Workspace(make_context(tmp_path / "other")[0]).public_key)
    return folder


def run_recipe(folder: Path) -> subprocess.CompletedProcess[str]:
    recipe = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(recipe) == 1
    return subprocess.run(["sh", "-c", recipe[0]], cwd=folder, capture_output=True, text=True)


def test_the_recipe_accepts_a_receipt(sent: Path) -> None:
    done = run_recipe(sent)
    assert (done.returncode, done.stdout.strip()) == (0, VALID)
    statement = (sent / "statement.json").read_bytes()
    body = (sent / "receipt.json").read_bytes()
    assert sha256(statement).hexdigest().encode() in body  # the entry of the log names it
    assert receipts.show(body)["request"].encode() in statement


def test_a_changed_statement_is_refused(sent: Path) -> None:
    body = (sent / "receipt.json").read_bytes()
    start = body.index(b'"payload":"') + len(b'"payload":"') + 40
    changed = body[:start] + (b"A" if body[start : start + 1] != b"A" else b"B") + body[start + 1 :]
    (sent / "receipt.json").write_bytes(changed)
    done = run_recipe(sent)
    assert done.returncode != 0
    assert VALID not in done.stdout


def test_another_key_is_refused(sent: Path, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "other.pub", sent / "company.pub")
    done = run_recipe(sent)
    assert done.returncode != 0
    assert VALID not in done.stdout
