"""Models of other programs are audited by a command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

from erasable.audit import BlackBox, audit_membership
from erasable.core.errors import InvalidInputError

ASK = """
import sys, numpy as np
known, labels = np.load(sys.argv[1] + "/X.npy"), np.load(sys.argv[1] + "/y.npy")
X = np.loadtxt(sys.argv[2], delimiter=",", skiprows=1, ndmin=2)
nearest = labels[((X[:, None] - known) ** 2).sum(axis=2).argmin(axis=1)]
p = np.column_stack([nearest == "no", nearest == "yes"]).astype(float)
np.savetxt(sys.argv[3], p, delimiter=",", header="no,yes", comments="")
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "ask.py").write_text(ASK)
    return tmp_path


def test_a_black_box_answers_as_its_model(files: Path) -> None:
    source = np.random.default_rng(0)
    X, y = source.normal(size=(400, 3)), source.choice(["no", "yes"], 400)
    model = KNeighborsClassifier(n_neighbors=1).fit(X[:150], y[:150])
    np.save(files / "X.npy", X[:150])
    np.save(files / "y.npy", y[:150])
    command = f"{sys.executable} {files}/ask.py {files} {{data}} {{out}}"
    box = BlackBox(command, ["no", "yes"])
    assert np.array_equal(box.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(box.predict_proba(pd.DataFrame(X)), model.predict_proba(X))
    split = (X[:150], y[:150]), (X[150:], y[150:])
    recipe = KNeighborsClassifier(n_neighbors=1)
    report = audit_membership(box, *split, recipe=recipe, random_state=0)
    assert report.verdict == "found"
    assert report.access == "data and black box"
    direct = audit_membership(model, *split, recipe=recipe, random_state=0)
    assert direct.groups[0].to_dict() == report.groups[0].to_dict()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise SystemExit('no model')", "ended with 1: no model"),
        (
            "open(sys.argv[2], 'w').write('a,b\\n0.5,0.5\\n')",
            "wrote 1 rows of 2 numbers; expected 3",
        ),
        ("open(sys.argv[2], 'w').write('a,b\\n' + 'nan,1\\n' * 3)", "wrote 3 rows"),
        ("open(sys.argv[2], 'w').write('a,b\\n' + 'x,1\\n' * 3)", "cannot be run or read"),
        ("pass", "cannot be run or read"),
    ],
    ids=["fails", "rows", "nan", "text", "nothing"],
)
def test_a_command_that_fails_is_one_clear_error(tmp_path: Path, code: str, told: str) -> None:
    (tmp_path / "ask.py").write_text(f"import sys\n{code}\n")
    box = BlackBox(f"{sys.executable} {tmp_path}/ask.py {{data}} {{out}}", [0, 1])
    with pytest.raises(InvalidInputError, match=told):
        box.predict_proba(np.zeros((3, 2)))


def test_commands_name_their_files() -> None:
    with pytest.raises(InvalidInputError, match=r"expected \{out\} in it"):
        BlackBox("ask {data}", [0, 1])
    with pytest.raises(InvalidInputError, match="cannot be run"):
        BlackBox("no-such-program {data} {out}", [0, 1]).predict_proba([[0.0]])


def test_texts_are_a_column(tmp_path: Path) -> None:
    code = "import csv, sys; rows = list(csv.reader(open(sys.argv[1])))\n"
    code += "open(sys.argv[2], 'w').write('a\\n' + ''.join(f'{len(r[0])}\\n' for r in rows[1:]))"
    (tmp_path / "ask.py").write_text(code)
    box = BlackBox(f"{sys.executable} {tmp_path}/ask.py {{data}} {{out}}", ["a"])
    assert box.predict_proba(["one, two", "é"]).ravel().tolist() == [8.0, 1.0]


@pytest.mark.parametrize(
    ("of", "told"),
    [
        ((5, ["a", "b"]), "the command is 5"),
        (("x {data} {out}", []), "one or more, each of them once"),
        (("x {data} {out}", ["a", "a"]), "one or more, each of them once"),
        (("x {data} {out}", ["a", "b"], -1.0), "timeout is -1.0"),
        (("x {data} {out}", ["a", "b"], "x"), "timeout is 'x'"),
    ],
)
def test_what_a_black_box_is_made_of(of: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        BlackBox(*of[:2], timeout=of[2] if len(of) > 2 else 600.0)


def test_a_command_that_cannot_be_read() -> None:
    with pytest.raises(InvalidInputError, match="No closing quotation"):
        BlackBox("x '{data} {out}", ["a", "b"]).predict_proba([[1.0]])
