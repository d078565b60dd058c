"""What is said of a model that cannot be judged, or not by every record; and nothing untrue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from domain_scene import NORTH, PLANS, bytes_of, opened_in, plan_of

from erasable.core.errors import WorkspaceError
from erasable.workspace.domains import judging


def test_a_model_that_saw_none_of_the_records_is_as_it_was(folder: Path) -> None:
    """Those that leave came after it was fitted: no version is made, and nobody interfered."""
    workspace = opened_in(folder)
    rows = "".join(f"a{i},advert,banner{i % 7} word{i % 5},{1 + i % 3}\n" for i in range(20))
    (folder / "adverts.csv").write_text(f"id,label,text,minutes\n{rows}")
    workspace.append("messages", folder / "adverts.csv")
    plan = workspace.plan_removal("messages", where="label = 'advert'", budget=5, score="random")
    done = workspace.remove_domain(plan)
    assert done.n_records == 5
    assert [each.model for each in done.models] == ["bayes", "linear"]
    for each in done.models:
        assert each.remarks == ("stale: fitted on version 1, newest 2",)
        retain = each.report["retain"]
        assert retain.before == retain.after


@pytest.mark.parametrize("seen", [True, False])
def test_a_model_that_another_command_has_changed_is_told(folder: Path, seen: bool) -> None:
    """The control: another request for its records is carried out."""
    workspace = opened_in(folder)
    judges = judging.make_judges(workspace.context, plan_of(workspace, folder, PLANS[0]))
    workspace.request(where="minutes = 1", dataset="messages")
    workspace.process()
    (found,) = (each.after(seen) for each in judges if each.name == "bayes")
    assert ("another command changed the model meanwhile" in found.remarks) is not seen


def test_fresh_records_that_a_model_cannot_take_stop_it_before_anything_has_changed(
    folder: Path,
) -> None:
    workspace = opened_in(folder)
    rows = [f"{i},{'a' if i % 2 else 'b'},{'red' if i % 3 else 'blue'},{i % 5}" for i in range(60)]
    head = "id,ward,colour,age\n"
    (folder / "colours.csv").write_text(head + "\n".join(rows) + "\n")
    (folder / "green.csv").write_text(head + "x1,a,green,3\nx2,b,green,4\n")
    workspace.add_dataset("colours", folder / "colours.csv", id_column="id")
    workspace.fit(
        "hue", "sklearn.preprocessing.OneHotEncoder->sklearn.tree.DecisionTreeClassifier",
        datasets=["colours"], target="age", features=["colour"],
    )  # fmt: skip
    asked: dict[str, Any] = {"where": "ward = 'a'", "budget": 3, "score": "random"}
    plan = workspace.plan_removal("colours", **asked, fresh=str(folder / "green.csv"))
    before = bytes_of(folder)
    with pytest.raises(WorkspaceError, match="'hue' cannot be judged") as error:
        workspace.remove_domain(plan)
    assert "\n" not in str(error.value)
    assert bytes_of(folder) == before
    assert workspace.remove_domain(workspace.plan_removal("colours", **asked)).n_records == 3


def test_an_odd_model_after_the_deletion_is_told_and_hides_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = opened_in(folder)
    plan = plan_of(workspace, folder, PLANS[0])

    def fail(*_: Any, **__: Any) -> None:
        raise TypeError("odd\nindeed")

    monkeypatch.setattr(judging, "removal_report", fail)
    done = workspace.remove_domain(plan)
    assert done.n_records == 20
    assert {each.remarks for each in done.models} == {("not judged: odd indeed",)}


def test_many_records_are_judged_by_a_sample(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = opened_in(folder)
    monkeypatch.setattr(judging, "MOST", 13)
    done = workspace.remove_domain(plan_of(workspace, folder, PLANS[0]))
    (found,) = (each for each in done.models if each.model == "bayes")
    assert [each.n_records for each in found.report.groups] == [13] * 5
    assert "retain: judged by 13 of 80 records, drawn by id" in found.remarks


def test_fresh_records_with_gaps_are_left_out(folder: Path) -> None:
    table = pyarrow.csv.read_csv(folder / "fresh_visits.csv").to_pydict()
    table["age"][0] = table["sick"][1] = None
    pyarrow.csv.write_csv(pa.table(table), folder / "gappy.csv")
    workspace = opened_in(folder)
    plan = workspace.plan_removal("visits", where=NORTH, budget=10, fresh=str(folder / "gappy.csv"))
    found = {each.model: each for each in workspace.remove_domain(plan).models}
    for name, n in (("sick", 48), ("value", 49)):  # of these, cost has no gap
        groups = [found[name].report[f"fresh {each}"] for each in ("forget", "retain")]
        assert sum(each.n_records for each in groups) == n
        assert f"{50 - n} fresh records have missing values" in found[name].remarks[0]
