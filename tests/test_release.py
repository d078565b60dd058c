"""What a release says of itself in several files; `make release-check` tries the rest."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import image_steps
import pytest
import release
import yaml

import erasable

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "packaging/Dockerfile").read_text(encoding="utf-8")


def test_files_name_one_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, day = re.findall(r"^## \[([\d.]+)\] - ([\d-]+)$", changelog, re.M)[0]
    assert version == erasable.__version__
    assert CITATION["version"] == erasable.__version__
    assert str(CITATION["date-released"]) == day
    assert RECIPE["context"]["version"] == erasable.__version__


def test_the_citation_has_what_its_schema_demands() -> None:
    assert {"cff-version", "message", "title", "authors"} <= CITATION.keys()
    assert CITATION["license"] == PROJECT["license"] == RECIPE["about"]["license"]
    assert (RECIPE["about"]["summary"], RECIPE["package"]["name"]) == (
        PROJECT["description"],
        PROJECT["name"],
    )


def _named(requirement: str) -> str:
    return requirement.replace(" ", "").lower()


def _differences(recipe: dict[str, Any], project: dict[str, Any]) -> set[str]:
    """Return the requirements that only one of a recipe of conda and a project has."""
    needs = [*project["dependencies"], *project["optional-dependencies"]["workspace"]]
    needs.append(f"python{project['requires-python']}")
    runs = [
        each.replace("${{ python_min }}", recipe["context"]["python_min"])
        for each in recipe["requirements"]["run"]
    ]
    return set(map(_named, needs)) ^ set(map(_named, runs))


def test_the_recipe_of_conda_needs_what_the_wheel_needs() -> None:
    assert _differences(RECIPE, PROJECT) == set()
    other = {**PROJECT, "dependencies": [*PROJECT["dependencies"], "requests>=2"]}
    assert _differences(RECIPE, other) == {"requests>=2"}


def test_the_recipe_of_conda_has_the_programs_of_the_wheel() -> None:
    programs = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == programs


def test_classifiers_name_every_python_from_the_lowest() -> None:
    versions = release.pythons()
    assert f">={versions[0]}" == PROJECT["requires-python"]
    minors = [int(each.split(".")[1]) for each in versions]
    assert minors == list(range(minors[0], minors[0] + len(minors)))
    highlights = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"Python {versions[0]} to {versions[-1]} on Linux" in highlights


def test_the_dockerfile_has_known_steps_and_a_user() -> None:
    steps = image_steps.steps(DOCKERFILE)
    known = {"ARG", "COPY", "ENV", "RUN", "WORKDIR"}
    assert {step.name for step in image_steps.first_stage(steps)} <= known
    after = [step for step in steps if step.name == "USER"]
    assert [step.argument for step in after] == ["erasable"]
    extras = re.findall(r"^ARG EXTRAS=(\S+)$", DOCKERFILE, re.M)[0].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()
    for step in image_steps.first_stage(steps):
        if step.name == "COPY":
            assert [each for each in step.argument.split()[:-1] if not (ROOT / each).exists()] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("FROM a\nENV A=1\nCOPY there there\nRUN test -f there && false\nFROM b\n", "RUN test"),
        ("FROM a\nADD there there\nFROM b\n", "ADD is not known"),
    ],
)
def test_a_step_that_fails_is_found(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(text)
    (tmp_path / "there").write_text("")
    found = list(image_steps.run_steps(tmp_path / "Dockerfile", tmp_path, tmp_path / "image"))
    assert found[0].startswith(problem)


def test_steps_run_in_their_folder(tmp_path: Path) -> None:
    text = "FROM a\nENV PREFIX=/opt/x B=2\nCOPY there there\nRUN test -f there \\\n && mkdir"
    text += ' "$PREFIX" && echo "$B" > "$PREFIX/told"\nFROM b\nRUN false\n'
    (tmp_path / "Dockerfile").write_text(text)
    (tmp_path / "there").write_text("")
    list(image_steps.run_steps(tmp_path / "Dockerfile", tmp_path, tmp_path / "image"))
    assert (tmp_path / "image/prefix/told").read_text() == "2\n"


def test_a_foreign_licence_is_found() -> None:
    packages = [
        {"Name": "numpy", "License": "BSD-3-Clause"},
        {"Name": "psycopg", "License": "LGPL-3.0-only"},
        {"Name": "tqdm", "License": "MPL-2.0 AND MIT"},
        {"Name": "other", "License": "MIT AND GPL-3.0-only"},
    ]
    assert list(release.foreign(packages)) == [
        "other is under MIT AND GPL-3.0-only; expected a licence compatible with BSD-3-Clause"
    ]
