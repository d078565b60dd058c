from __future__ import annotations

import sys

import pytest

import operations
from erasable.core.errors import NotInWorkspaceError
from erasable.workspace.evidence import commitments
from erasable.workspace.ledger import schema
from erasable.workspace.models import verifying
from workspace_models import add_visits, erased, found, take_out_of_data, written_down

COPY = f'{sys.executable} -c "import sys, shutil; shutil.copy(*sys.argv[1:])" {{data}} {{out}}'
CHANCE = f"{sys.executable} -c \"import sys, secrets; open(sys.argv[2], 'w').write(secrets.token_hex())\" {{data}} {{out}}"  # noqa: E501


@pytest.fixture
def ridge(visits):
    operations.fit(
        visits, "r", "linear_model.Ridge", datasets=["visits"], target="cost", prepare="none"
    )
    return visits


def judged(context, **options):
    (verdict,) = verifying.verify(context, **options)
    return verdict.verdict, verdict.detail


def change(context, **values):
    with context.ledger.transaction() as connection:
        connection.execute(schema.model_version.update().values(**values))
    written_down(context)


def test_a_model_is_equal_to_its_refit(ridge):
    assert judged(ridge) == ("equal", "")


def test_a_record_that_only_the_data_lost_is_found(ridge):
    take_out_of_data(ridge, ["v3"])
    verdict, detail = judged(ridge)
    assert verdict == "different"
    assert "n_records" in detail


def test_a_record_that_only_the_model_lost_is_found(ridge):
    erased(ridge, "r", ["v3"])
    assert judged(ridge)[0] == "different"
    take_out_of_data(ridge, ["v3"])
    assert judged(ridge)[0] == "equal"


def test_a_file_that_was_altered_is_damaged(ridge):
    _, version = found(ridge, "r")
    path = ridge.root / "artifacts" / version.key
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"x")
    assert judged(ridge)[0] == "damaged"
    path.unlink()
    assert judged(ridge)[0] == "damaged"
    path.write_bytes(data)
    assert judged(ridge)[0] == "equal"


def test_another_model_in_its_place_is_damaged_although_the_ledger_agrees(ridge):
    """Somebody who can write the ledger cannot know the commitment's digest is another's."""
    operations.fit(ridge, "other", "linear_model.Ridge", datasets=["visits"], target="cost",
                params={"alpha": 9})  # fmt: skip
    (_, mine), (_, other) = found(ridge, "r"), found(ridge, "other")
    with ridge.ledger.transaction() as connection:
        at = schema.model_version.c.model_id == mine.model_id
        connection.execute(
            schema.model_version.update().where(at).values(key=other.key, sha256=other.sha256)
        )
    written_down(ridge)
    assert [each.verdict for each in verifying.verify(ridge, ["r"])] == ["damaged"]


def test_another_recipe_comes_to_another_model(ridge):
    model, _ = found(ridge, "r")
    with ridge.ledger.transaction() as connection:
        connection.execute(
            schema.model.update().values(recipe={**model.recipe, "params": {"alpha": 4}})
        )
    written_down(ridge)
    assert judged(ridge)[0] == "different"


def test_other_software_that_comes_to_the_same_is_equal(ridge):
    _, version = found(ridge, "r")
    change(ridge, software={**version.software, "numpy": "1.0"})
    assert judged(ridge)[0] == "equal"


def test_other_software_that_comes_to_something_else_is_not_called_tampering(ridge):
    _, version = found(ridge, "r")
    change(ridge, software={**version.software, "numpy": "1.0"})
    take_out_of_data(ridge, ["v3"])
    verdict, detail = judged(ridge)
    assert (verdict, "numpy 1.0, here" in detail) == ("other version", True)


def test_another_version_of_the_algorithm_is_named(ridge, monkeypatch):
    from erasable.linear_model import Ridge

    monkeypatch.setattr(Ridge, "algorithm_version", 2)
    verdict, detail = judged(ridge)
    assert verdict == "other version"
    assert "erasable.linear_model.Ridge/1, here erasable.linear_model.Ridge/2" in detail


def test_a_stale_model_is_equal_on_its_version(ridge, tmp_path):
    from erasable.workspace.data.sources import Source
    from workspace_models import rows_of_visits

    (tmp_path / "new.csv").write_text(rows_of_visits(range(200, 210)))
    operations.append(ridge, "visits", Source.parse(str(tmp_path / "new.csv"), None))
    assert judged(ridge) == ("equal", "stale: fitted on visits 1, newest 2")


def test_commands_are_run_again_only_where_that_is_asked_for(visits):
    operations.register(visits, "copy", datasets=["visits"], retrain=COPY)
    operations.register(visits, "chance", datasets=["visits"], retrain=CHANCE)
    assert [each.verdict for each in verifying.verify(visits)] == ["not checked"] * 2
    again = verifying.verify(visits, retrain=True)
    assert [each.verdict for each in again] == ["different", "equal"]


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A module of the user's: what it makes of records may depend on more than these."""
    (tmp_path / "programs.py").write_text(
        "import secrets\n"
        "extra = b''\n"
        "def steady(table):\n    return str(table['visit'].to_pylist()).encode() + extra\n"
        "def chance(table):\n    return secrets.token_bytes(8)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import programs

    yield programs
    del sys.modules["programs"]


def test_a_function_that_is_not_deterministic_is_not_taken_for_tampering(visits, programs):
    operations.fit(visits, "m", "programs:chance", datasets=["visits"])
    verdict, detail = judged(visits)
    assert verdict == "different"
    assert "programs:chance is not deterministic: two refits differ from each other" in detail
    assert "no sign of tampering" in detail
    assert "\n" not in detail


def test_a_function_that_has_changed_may_have_been_tampered_with(visits, programs, monkeypatch):
    operations.fit(visits, "m", "programs:steady", datasets=["visits"])
    assert judged(visits) == ("equal", "")
    monkeypatch.setattr(programs, "extra", b"!")
    verdict, detail = judged(visits)
    assert verdict == "different"
    assert "it may have been tampered with, or its program has changed since" in detail
    assert "not deterministic" not in detail


def test_a_command_that_comes_to_something_else_may_do_so_for_two_reasons(visits):
    operations.register(visits, "chance", datasets=["visits"], retrain=CHANCE)
    verdict, detail = judged(visits, retrain=True)
    assert verdict == "different"
    assert "it may have been tampered with, or its program has changed since" in detail


def test_of_an_estimator_no_such_thing_is_said(ridge):
    take_out_of_data(ridge, ["v3"])
    assert "its program" not in judged(ridge)[1]


def test_what_is_not_covered_is_said(visits):
    operations.register(visits, "far", datasets=["visits"])
    assert judged(visits)[0] == "not covered"


def test_names_choose_models(ridge, tmp_path):
    operations.fit(ridge, "s", "preprocessing.StandardScaler", datasets=["visits"])
    assert [each.model for each in verifying.verify(ridge)] == ["r", "s"]
    assert [each.model for each in verifying.verify(ridge, ["s"])] == ["s"]
    with pytest.raises(NotInWorkspaceError, match="no model 'x'"):
        verifying.verify(ridge, ["x"])
    add_visits(ridge, tmp_path, "unused", range(3))


def test_commitments_need_their_salt(ridge):
    change(ridge, salt=commitments.commit("a")[0])
    assert judged(ridge)[0] == "damaged"
