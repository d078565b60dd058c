"""Every script of benchmarks/ and experiments/ runs, in a quick form, on a copy of the repository.

A script has a ``__main__`` block; other modules are what scripts import.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from effort import in_turn

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("benchmarks", "experiments")
LONGEST = 600  # seconds

QUICK = {
    "benchmarks/additions.py": "--quick --parts texts",
    "benchmarks/against_fits.py": "--only Ridge --repeats 1",
    "benchmarks/at_rest.py": "models --records 300 --features 3 --only Ridge",
    "benchmarks/audits.py": "--quick --parts alarms",
    "benchmarks/boosting.py": "rest --only adult",
    "benchmarks/cluster.py": "--records 2000 --deletions 2000 --repeats 1 --models KMeans",
    "benchmarks/cluster_plan.py": "--rows 500 1000 --workers 4 --models GaussianNB",
    "benchmarks/compositions.py": "",
    "benchmarks/corrections.py": "--records 2000",
    "benchmarks/estimators.py": "--twins ridge --results {out}",
    "benchmarks/first_call.py": "--only HistGradientBoostingRegressor StandardScaler",
    "benchmarks/forests.py": "adult",
    "benchmarks/from_parquet.py": "--records 2000 --features 3 --row-group 500 --only Ridge",
    "benchmarks/house.py": "--hops",
    "benchmarks/ingest.py": "--records 500 --dry",
    "benchmarks/networks.py": "--quick",
    "benchmarks/online_deletion.py": "--parts stream --data covertype --models kmeans "
    "--replicates 1 --deletions 5 --refits 1 --budget 5 --results {out}",
    "benchmarks/processes.py": None,  # of online_deletion.py
    "benchmarks/removal.py": "budgets",
    "benchmarks/selection.py": "--parts heap --rounds 1 --results {out}",
    "benchmarks/selection_gaussian.py": "--rounds 1 --k 100",
    "benchmarks/selection_processes.py": None,  # of selection.py
    "benchmarks/stored_selection.py": "--records 500 --features 3 --candidates 20 --picks 3",
    "benchmarks/target_rival.py": None,  # of targets.py
    "benchmarks/target_stores.py": None,  # of targets.py
    "benchmarks/targets.py": "sqlite",
    "benchmarks/threads.py": "Ridge --rows 2000 --columns 4 --rounds 1",
    "benchmarks/updates.py": "--records 500 --columns 3 --models Ridge",
    "benchmarks/workers.py": "--records 2000 --rounds 1 --dry",
    "benchmarks/workspace.py": "--records 500 --subjects 100 --requests 3 --backends sqlite --dry",
    "benchmarks/workspace_phases.py": None,  # of workspace.py
    "experiments/data_sets.py": "page",
    "experiments/deletion/deletion_page.py": "",
    "experiments/deletion/kmeans.py": "--quick --parts covertype",
    "experiments/papers.py": "nn-s",
    "experiments/removal/removal_page.py": "",
    "experiments/selection/page.py": "",
}
"""What is given to a script; "--quick" to those that are not here, None to a part of another."""
MINUTES = [
    *(
        f"benchmarks/{each}.py"
        for each in (
            "audits", "cluster", "corrections", "forests", "removal", "selection",
            "selection_gaussian", "stored_selection", "workers", "first_call", "workspace",
        )
    ),
    *(f"experiments/removal/{each}.py" for each in ("gaussians", "jigsaw", "sms")),
    *(
        f"experiments/selection/{each}.py"
        for each in ("nb_a", "nn_f", "nn_h", "nn_s", "vr_c", "nn_f_risk", "vr_s")
    ),
]  # fmt: skip
"""Take half a minute or more: each soak runs two or three others of them."""
NEEDS = {"benchmarks/networks.py": "torch", "experiments/removal/cifar.py": "torch"}


def scripts(root: Path = ROOT) -> list[str]:
    """Return the paths of all scripts, found by their last lines."""
    return sorted(
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        if re.search(r"^if __name__ == .__main__.:", path.read_text(encoding="utf-8"), re.MULTILINE)
    )


def run(root: Path, script: str, words: list[str], data: Path | None) -> str:
    """Run a script; return what it said where it failed, else nothing."""
    environment = os.environ | ({} if data is None else {"ERASABLE_DATA": str(data)})
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, *words],
        cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST,
    )  # fmt: skip
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what scripts read and write: results and pages stay as they are."""
    root = tmp_path_factory.mktemp("scripts")
    for folder in (*FOLDERS, "docs", "examples", "src", "tests"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", root)
    return root


@pytest.mark.soak
def test_only_scripts_have_a_quick_form() -> None:
    assert {*QUICK, *NEEDS, *MINUTES} <= set(scripts())


def in_this_soak() -> list[str]:
    later = {each for at, each in enumerate(MINUTES) if not in_turn(at, len(MINUTES) // 2)}
    parts = {each for each, form in QUICK.items() if form is None}
    return [each for each in scripts() if each not in later | parts]


@pytest.mark.soak
@pytest.mark.parametrize("script", in_this_soak())
def test_a_script_runs(copy: Path, tmp_path: Path, data_dir: Path, script: str) -> None:
    if script in NEEDS:
        pytest.importorskip(NEEDS[script], reason=f"{script} needs {NEEDS[script]}")
    form = QUICK.get(script, "--quick")
    assert form is not None
    words = shlex.split(form.format(out=shlex.quote(str(tmp_path))))
    assert run(copy, script, words, data_dir) == ""


@pytest.mark.soak
def test_a_script_that_fails_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "module.py").write_text("raise ValueError")
    failing = tmp_path / "benchmarks" / "failing.py"
    failing.write_text('if __name__ == "__main__":\n    import erasable.gone\n')
    assert scripts(tmp_path) == ["benchmarks/failing.py"]
    assert "No module named 'erasable.gone'" in run(tmp_path, "benchmarks/failing.py", [], None)
