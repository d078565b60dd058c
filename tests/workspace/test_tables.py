"""States, treatments and kinds of entries are tables: nothing lists them a second time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from erasable.workspace.evidence.entries import KINDS, THINGS
from erasable.workspace.ledger.schema import log_entry, measurement, request, task
from erasable.workspace.ledger.states import ANSWERED, OPEN, REFUSED, STATES
from erasable.workspace.ledger.treatments import ERASING, TREATMENTS, UNCOVERED, of_request

ROOT = Path(__file__).parents[2]
WORKSPACE = ROOT / "src" / "erasable" / "workspace"
STATE_NAMES = {each.name for each in STATES}


def literals(path: Path) -> Iterator[ast.expr]:
    """Return the texts, tuples, lists and sets that a module writes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Set):
            yield node


def texts(node: ast.expr) -> set[str]:
    items = [node] if isinstance(node, ast.Constant) else getattr(node, "elts", [])
    return {
        each.value
        for each in items
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def modules_but(*names: str) -> list[Path]:
    every = [*WORKSPACE.rglob("*.py"), *(WORKSPACE.parent / "cli").rglob("*.py")]
    return [path for path in every if str(path.relative_to(WORKSPACE.parent)) not in names]


def test_each_state_has_one_phase_and_fits_the_ledger() -> None:
    assert sorted([*OPEN, *ANSWERED, *REFUSED]) == sorted(STATE_NAMES)
    assert len(STATES) == len(STATE_NAMES)
    assert all(len(name) <= request.c.state.type.length for name in STATE_NAMES)


def test_no_other_module_lists_states() -> None:
    others = modules_but("workspace/ledger/states.py", "workspace/evidence/entries.py")
    listed = {
        path.name: texts(node)
        for path in others
        for node in literals(path)
        if len(texts(node) & (STATE_NAMES - {"completed"})) > 1
    }
    assert listed == {}


SAME_WORDS = {
    "workspace/evidence/statements.py": {"corrected"},  # outcome of a request
    "workspace/evidence/wording.py": {"corrected"},
    "workspace/audits/auditing.py": {"corrected"},
    "workspace/models/fitting.py": {"retired"},  # state of a model
    "workspace/models/kept_records.py": {"fitted"},  # parts of a record
    "workspace/models/unused.py": {"retired"},
    "workspace/models/updating.py": {"retired"},
    "workspace/models/using.py": {"retired"},
    "workspace/models/verified.py": {"not covered", "retired"},  # verdicts
    "workspace/models/verifying.py": {"not covered", "retired"},  # verdicts
    "workspace/models/versions.py": {"retired"},
    "workspace/requests/batches.py": {"retired"},
    "workspace/requests/preview.py": {"deleted"},  # records of a target
    "workspace/report/receipt_page.py": {"corrected"},
    "cli/models.py": {"retired"},
    "cli/targets.py": {"deleted"},  # rows of a database
}
"""Other things of the same names, by module."""


def test_no_other_module_names_treatments_or_kinds_of_measurements() -> None:
    names = TREATMENTS.keys() | {"rewrite", "refit", "retrain"}
    written = {
        str(path.relative_to(WORKSPACE.parent)): set().union(*map(texts, literals(path))) & names
        for path in modules_but("workspace/ledger/treatments.py")
    }
    assert {path: found for path, found in written.items() if found} == SAME_WORDS


def test_treatments_fit_the_ledger_and_each_other() -> None:
    assert UNCOVERED == ("not covered",)
    assert ERASING == ("delete", "refit", "retrain")
    for name, each in TREATMENTS.items():
        assert name == each.name
        assert len(name) <= task.c.treatment.type.length
        assert len(each.exactness) <= task.c.exactness.type.length
        assert len(each.measured_as) <= measurement.c.kind.type.length
        assert bool(each.measured_as) is each.is_covered
        for corrects in (False, True):
            one = of_request(each, corrects=corrects)
            assert TREATMENTS[one.name] is one
            assert one is each or (each.is_change and one.is_change)


def test_docs_name_each_state() -> None:
    page = (ROOT / "docs" / "workspace.md").read_text(encoding="utf-8")
    section = page.partition("## What happens to a request\n")[2].partition("\n## ")[0]
    assert [name for name in STATE_NAMES if name.replace("_", " ") not in section] == []


def test_every_kind_that_is_written_is_in_the_table() -> None:
    about = {name.partition("-")[0] for name in KINDS}
    kind = re.compile(rf"({'|'.join(about)})-[a-z]+")
    written = {
        text
        for path in modules_but("workspace/evidence/entries.py")
        for node in literals(path)
        for text in texts(node)
        if kind.fullmatch(text)
    }
    assert written - {"dataset-version", "model-version"} <= KINDS.keys()
    made = {"workspace", "request-denied", "request-cancelled"}  # and those of `datasets`
    made |= {"dataset-added", "dataset-appended", "dataset-synced"}
    made |= {"log-sealed"}  # in ledgers of earlier versions
    assert KINDS.keys() - written == made


def test_kinds_agree_with_the_tables_that_they_describe() -> None:
    for name, each in KINDS.items():
        assert name == each.name
        assert len(name) <= log_entry.c.kind.type.length
        assert set(each.states) <= STATE_NAMES
        assert {*each.columns} <= {*request.c.keys(), "scope"}
        assert each.describes in ("", "new", "all")
        if each.states or each.columns or each.describes:
            assert name.partition("-")[0] in THINGS
