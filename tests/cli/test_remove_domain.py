"""`erasable remove-domain`: a dry run first, then what it said, and errors that change nothing."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from domain_scene import TEXTS, bytes_of, make

from cli.fuzzing import commands
from cli.running import erasable, told
from erasable.cli import domains
from erasable.cli.domains import CAUTION
from erasable.core.errors import ErasableError
from erasable.removal import SCORES, Coverage, MaxShift, MinRemoval, Share
from erasable.workspace import Workspace
from naming import named

SHOP = ("messages", "--where", "label == 'shop'")
NORTH = ("visits", "--where", "ward == 'north'")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("remove-domain")
    make(folder)
    (folder / "offers.txt").write_text("\ufeffoffer1*\n\n  Offer2 \n")
    (folder / "empty.txt").write_text("\n \n")
    (folder / "bytes.txt").write_bytes(b"\xff\xfe")
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(template, tmp_path / "here")
    monkeypatch.setenv("ERASABLE_WORKSPACE", "ws")
    return tmp_path / "here"


# -- a sweep ---------------------------------------------------------------------------------------


def test_a_sweep_compares_scores_and_changes_no_byte(folder: Path) -> None:
    before = bytes_of(folder)
    args = (*NORTH, "--budget", "50%", "--score", "lr-maha", "--sweep", "random")
    found = told("remove-domain", *args, folder=folder)
    assert bytes_of(folder) == before
    needed = {each["score"]: each for each in found["needed"]}
    assert list(needed) == ["lr-maha", "random"]
    target = found["estimate"]["selected"]["alpha"]
    assert {each["target"] for each in found["needed"]} == {target}
    # The score of the plan needs what was chosen, but for lines between budgets.
    n = found["n_selected"]
    assert needed["lr-maha"]["n_deleted"] == pytest.approx(n, rel=0.1)
    assert needed["random"]["n_deleted"] > n
    plan = Workspace.open(folder / "ws").plan_removal(
        "visits", where="ward == 'north'", budget=0.5, score="lr-maha"
    )
    curves = plan.sweep(["lr-maha", "random"])
    assert [each["median"] for each in found["sweep"]] == [each.median for each in curves.points()]
    assert curves.values("lr-maha", "alpha")[0, -1] == plan.removal.frontier_.alpha[-1]
    plain = told("remove-domain", *NORTH, folder=folder)
    assert (plain["sweep"], plain["needed"]) == (None, None)
    shown = erasable("remove-domain", *args, "--plot", "curves.svg", folder=folder)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert (
        "medians over 6 seeds of the scores; from and to enclose them, 96.9% sure" in shown.stdout
    )
    assert (folder / "curves.svg").read_text().count("<path") > 10


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--sweep", "random,nrom"), "--sweep is 'nrom'; expected one of density-ratio"),
        (("--sweep", "random", "--yes"), "--sweep came with --yes"),
    ],
)
def test_a_sweep_that_cannot_be(folder: Path, args: tuple[str, ...], error: str) -> None:
    before = bytes_of(folder)
    found = erasable("remove-domain", *NORTH, *args, folder=folder)
    assert found.exit_code == 2
    assert error in found.stderr
    assert bytes_of(folder) == before


def test_words_have_no_covariance_to_sweep_by(folder: Path) -> None:
    found = erasable("remove-domain", *SHOP, "--sweep", "lr-maha", folder=folder)
    assert found.exit_code == 2
    assert "needs a covariance" in found.stderr


# -- a dry run -------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_happen_and_changes_no_byte(folder: Path) -> None:
    before = bytes_of(folder)
    args = (*SHOP, "--budget", "25%", "--fresh", "fresh_messages.csv")
    found = told("remove-domain", *args, folder=folder)
    shown = erasable("remove-domain", *args, folder=folder)
    assert bytes_of(folder) == before
    assert (shown.exit_code, shown.stderr) == (0, "")
    for line in (
        f"{TEXTS} of {2 * TEXTS} records", "20 records (25.0% of the domain), by 25%",
        "the words of text, by TF-IDF", "minutes; --features names what to compare by",
        "30 of the domain, 30 others", CAUTION,
        "dry run: nothing was changed; --yes deletes 20 records",
    ):  # fmt: skip
        assert line in shown.stdout
    assert (found["done"], found["request"], found["models"]) == (False, None, [])
    sizes = [found[f"n_{name}"] for name in ("records", "forget", "retain", "selected")]
    assert sizes == [2 * TEXTS, TEXTS, TEXTS, 20]
    assert {each["name"]: each["n_records"] for each in found["effects"]} == {
        "messages": 20, "bayes": 20, "linear": 20,
    }  # fmt: skip
    alphas = [found["estimate"][at]["alpha"] for at in ("nothing", "selected", "all")]
    assert alphas == sorted(alphas)
    assert found["caution"] == CAUTION
    assert CAUTION.startswith("Removing a domain is not erasing a person: records kept from the")
    assert found["certificate"] is None


def test_numbers_are_certified(folder: Path) -> None:
    found = told("remove-domain", *NORTH, "--budget", "80%", "--delta", "0.2", folder=folder)
    plan = Workspace.open(folder / "ws").plan_removal(
        "visits", where="ward == 'north'", budget=0.8, delta=0.2
    )
    certificate = plan.certificate
    assert certificate is not None
    assert found["certificate"] == {
        "alpha": certificate.alpha, "epsilon": certificate.epsilon, "delta": 0.2
    }  # fmt: skip
    assert certificate.alpha > 0
    shown = erasable("remove-domain", *NORTH, "--budget", "80%", "--delta", "0.2", folder=folder)
    assert f"alpha at least {certificate.alpha:.4g}" in shown.stdout
    assert "but for 20.0%" in shown.stdout


def test_a_choice_that_is_not_to_be_trusted_comes_with_a_warning(folder: Path) -> None:
    args = (*NORTH, "--budget", "9", "--retain-sample", "2")
    shown = erasable("remove-domain", *args, folder=folder)
    assert shown.stderr.startswith("warning: trust_=0.00: ")
    assert shown.stderr.count("\n") == 1
    assert told("remove-domain", *args, folder=folder)["warnings"]


BUDGETS: list[tuple[str, Any]] = [
    ("7", 7),
    ("20%", 0.2),
    ("0.2", 0.2),
    ("coverage:0.5", Coverage(0.5)),
    ("coverage:50%", Coverage(0.5)),
    ("min-removal:1.5", MinRemoval(1.5)),
    ("max-shift:0.3", MaxShift(0.3)),
]


@pytest.mark.parametrize(("text", "budget"), BUDGETS, ids=[each for each, _ in BUDGETS])
def test_budgets(folder: Path, text: str, budget: Any) -> None:
    found = told("remove-domain", *NORTH, "--budget", text, "--output", "ids.txt", folder=folder)
    plan = Workspace.open(folder / "ws").plan_removal(
        "visits", where="ward == 'north'", budget=budget
    )
    assert (folder / "ids.txt").read_text().splitlines() == list(map(str, plan.ids))
    assert found["n_selected"] == len(plan.ids)
    assert found["estimate"]["selected"]["alpha"] == plan.removal.alpha_


def test_components_of_text(folder: Path) -> None:
    options = (*SHOP, "--budget", "9", "--score", "lr-maha", "--components", "5")
    found = told("remove-domain", *options, "--output", "ids.txt", folder=folder)
    plan = Workspace.open(folder / "ws").plan_removal(
        "messages", where=SHOP[-1], budget=9, score="lr-maha", components=5
    )
    assert (folder / "ids.txt").read_text().splitlines() == list(map(str, plan.ids))
    assert (found["components"], found["certificate"]) == (5, None)


def test_a_budget_of_money(folder: Path) -> None:
    found = told("remove-domain", *SHOP, "--budget", "cost:minutes:10", "--output", "ids.txt",
                 folder=folder)  # fmt: skip
    table = pyarrow.csv.read_csv(folder / "messages.csv").to_pydict()
    costs = dict(zip(table["id"], table["minutes"], strict=True))
    ids = (folder / "ids.txt").read_text().split()
    assert sum(costs[each] for each in ids) <= 10
    assert len(ids) == found["n_selected"] > 2
    assert found["features"] == ["text"]


def test_keywords(folder: Path) -> None:
    args = ("messages", "--keywords", "offers.txt", "--column", "text", "--budget", "5")
    found = told("remove-domain", *args, folder=folder)
    texts = pyarrow.csv.read_csv(folder / "messages.csv")["text"].to_pylist()
    held = [
        any(word.startswith("offer1") or word == "offer2" for word in each.split())
        for each in texts
    ]
    assert found["n_forget"] == sum(held)
    both = told("remove-domain", *args, "--where", "minutes > 2", folder=folder)
    assert 2 <= both["n_forget"] < found["n_forget"]


def test_ids_scores_and_the_curve_go_into_files(folder: Path) -> None:
    args = (*NORTH, "--budget", "9", "--score", "lr-maha", "--seed", "3")
    found = told("remove-domain", *args, "--output", "ids.csv", "--plot", "curve.svg",
                 folder=folder)  # fmt: skip
    assert (found["output"], found["plot"], found["score"]) == ("ids.csv", "curve.svg", "lr-maha")
    with (folder / "ids.csv").open() as file:
        rows = list(csv.DictReader(file))
    scores = [float(each["score"]) for each in rows]
    assert scores == sorted(scores, reverse=True)
    assert list(rows[0]) == ["visit", "score"]
    assert len(rows) == 9
    assert (folder / "curve.svg").read_text().lstrip().startswith("<?xml")


# -- the removal -----------------------------------------------------------------------------------


def test_what_was_foreseen_is_done_and_proved(folder: Path) -> None:
    args = (*SHOP, "--budget", "20", "--fresh", "fresh_messages.csv", "--output", "ids.txt")
    foreseen = told("remove-domain", *args, folder=folder)
    expected = (folder / "ids.txt").read_text().split()
    done = told("remove-domain", *args, "--yes", folder=folder)
    assert (folder / "ids.txt").read_text().split() == expected
    for name in ("n_forget", "n_selected", "estimate", "trust", "effects", "caution"):
        assert done[name] == foreseen[name]
    assert done["done"]
    assert {each["model"]: each["treatment"] for each in done["treatments"]} == {
        "bayes": "deleted", "linear": "deleted",
    }  # fmt: skip
    for each in done["models"]:
        groups = each["report"]["groups"]
        assert each["report"]["forget_label"] == "shop"
        assert {name: group["n_records"] for name, group in groups.items()} == {
            "deleted forget": 20, "kept forget": TEXTS - 20, "retain": TEXTS,
            "fresh forget": 30, "fresh retain": 30,
        }  # fmt: skip
        loss = groups["deleted forget"]
        assert loss["after"]["log_loss"] > loss["before"]["log_loss"]
    kept = told("dataset", "show", "messages", folder=folder)["n_records"]
    assert kept == 2 * TEXTS - 20
    assert {each["verdict"] for each in told("verify", folder=folder)["models"]} == {
        "equal", "not covered",
    }  # fmt: skip
    assert told("log", "verify", folder=folder)["problems"] == []
    erasable("receipt", "show", done["request"], "--output", "receipt.json", folder=folder)
    (folder / "key.pem").write_text(erasable("key", folder=folder).stdout)
    checked = told("receipt", "check", "receipt.json", "--key", "key.pem", folder=folder)
    assert checked["holds"]
    again = told("dataset", "sync", "messages", folder=folder)
    assert (again["n_suppressed"], again["n_added"]) == (20, 0)


def test_what_is_shown_of_a_removal(folder: Path) -> None:
    shown = erasable("remove-domain", *NORTH, "--budget", "20", "--yes", folder=folder)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    for model in ("groups", "sick", "tree", "value"):
        assert model in lines
    assert "  not judged: it predicts no target" in lines
    assert any("mean absolute error" in line for line in lines)
    assert any(line.startswith("fresh forget") and line.split()[2:] == ["0", "-", "-"]
               for line in lines)  # fmt: skip
    assert "none: every record here was trained on" in shown.stdout
    assert "erased 20 records in " in shown.stdout
    assert lines[-1] == CAUTION
    assert "dry run" not in shown.stdout
    assert "patient-" not in shown.output


# -- what goes wrong -------------------------------------------------------------------------------

WRONG = [
    (("gone", "--where", "label == 'shop'"), "there is no data set 'gone'"),
    (("messages",), "nothing says which records are of the domain"),
    (("messages", "--where", "lable == 'shop'"), "'lable'"),
    (("messages", "--where", "label == 'shpo'"), "the domain has 0 of the 160 records"),
    (("messages", "--where", "label != 'shpo'"), "0 of the 160 records of 'messages' are to stay"),
    (("messages", "--where", "id == 'm7'"), "the domain has 1 of the 160 records"),
    (("messages", "--where", "label == shop"), "a literal in quotes"),
    (("messages", "--where", "__import__('os')"), "a function that conditions do not have"),
    (("messages", "--keywords", "gone.txt", "--column", "text"), "there is no file 'gone.txt'"),
    (("messages", "--keywords", "empty.txt", "--column", "text"), "'empty.txt' is empty"),
    (("messages", "--keywords", "bytes.txt", "--column", "text"), "not UTF-8"),
    (("messages", "--keywords", "offers.txt"), "name it with --column"),
    (("messages", "--keywords", "offers.txt", "--column", "body"), "there is no column 'body'"),
    (("messages", "--keywords", "offers.txt", "--column", "minutes"), "holds int64"),
    ((*SHOP, "--budget", "0"), "expected an integer from 1 to 80"),
    ((*SHOP, "--budget", "81"), "expected an integer from 1 to 80"),
    ((*SHOP, "--budget", "-3"), "n=-3"),
    ((*SHOP, "--budget", "120%"), "share=1.2"),
    ((*SHOP, "--budget", "some"), "--budget is 'some'; expected a number of records (100)"),
    ((*SHOP, "--budget", "share:2"), "--budget is 'share:2'"),
    ((*SHOP, "--budget", "coverage:nan"), "--budget is 'coverage:nan'"),
    ((*SHOP, "--budget", "coverage:"), "--budget is 'coverage:'"),
    ((*SHOP, "--budget", "min-removal:1e9"), "cannot be reached; expected at most"),
    ((*NORTH, "--budget", "cost:age:9", "--features", "dose"), "the cheapest record costs"),
    ((*SHOP, "--budget", "cost:9"), "--budget is 'cost:9'"),
    ((*SHOP, "--budget", "cost:gone:9"), "there is no column of numbers 'gone'"),
    ((*SHOP, "--score", "best"), "--score is 'best'; expected one of density-ratio"),
    ((*SHOP, "--delta", "1"), "delta=1.0"),
    ((*SHOP, "--delta", "often"), "--delta is 'often'"),
    ((*SHOP, "--seed", "x"), "--seed is 'x'"),
    ((*SHOP, "--retain-sample", "1"), "2 or more"),
    ((*SHOP, "--retain-where", "gone = 2"), "'gone'"),
    ((*SHOP, "--components", "0"), "--components is '0'"),
    ((*SHOP, "--score", "lr-maha"), "--components 100"),
    ((*SHOP, "--features", "gone"), "no column 'gone'"),
    ((*SHOP, "--features", ""), "no column"),
    ((*SHOP, "--fresh", "messages"), "itself"),
    ((*SHOP, "--fresh", "messages.csv"), "equal one of 'messages'"),
    ((*SHOP, "--fresh", "gone"), "or name a data set: messages, visits"),
    ((*SHOP, "--plot", "curve.gif"), "--plot is 'curve.gif'"),
    ((*SHOP, "--output", "ids.json"), "--output is 'ids.json'"),
    ((*SHOP, "--plot", "missing/curve.svg"), "missing/curve.svg"),
]


@pytest.mark.parametrize("sure", [(), ("--yes",)], ids=named)
@pytest.mark.parametrize(("args", "message"), WRONG, ids=[" ".join(each) for each, _ in WRONG])
def test_errors_are_one_line_and_change_nothing(
    template: Path,
    args: tuple[str, ...],
    message: str,
    sure: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ERASABLE_WORKSPACE", "ws")
    before, files = bytes_of(template), sorted(template.iterdir())
    result = erasable("remove-domain", *args, *sure, folder=template)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert result.stdout == ""
    assert bytes_of(template) == before
    assert sorted(template.iterdir()) == files


def test_the_help_names_every_score() -> None:
    (option,) = (each for each in commands()[("remove-domain",)].params if each.name == "score")
    listed = option.help.partition(": ")[2].rstrip(".").replace(" or ", ", ").split(", ")
    assert sorted(listed) == sorted(SCORES)


def test_json_and_errors_go_their_own_ways(folder: Path) -> None:
    result = erasable("remove-domain", *SHOP, "--budget", "99", "--json", folder=folder)
    assert (result.exit_code, result.stdout) == (2, "")
    found = json.loads(erasable("remove-domain", *SHOP, "--json", folder=folder).stdout)
    assert found["budget"] == "coverage:0.8"


def test_a_budget_that_needs_no_deletion(folder: Path) -> None:
    args = (*SHOP, "--budget", "min-removal:0")
    shown = erasable("remove-domain", *args, folder=folder)
    assert shown.stdout.endswith("the budget is met without a deletion, so there is none to make\n")
    before = bytes_of(folder)
    result = erasable("remove-domain", *args, "--yes", "--output", "ids.txt", folder=folder)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: the plan chooses no record")
    assert bytes_of(folder) == before
    assert not (folder / "ids.txt").exists()


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "%", "1e999", "nan", "cost::", "cost:a:", "20%%", "max-shift:5%", "min-removal:5%",
        "cost:minutes:50%",
    ],
)  # fmt: skip
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(ErasableError) as error:
        domains.read_budget(text)
    assert str(error.value).startswith("--budget is ")


def test_plain_budgets() -> None:
    assert domains.read_budget(" 12 ") == (12, None)
    assert domains.read_budget("9" * 40) == (int("9" * 40), None)
    assert domains.read_budget("cost:a:b:2.5") == (2.5, "a:b")
    share, column = domains.read_budget("12.5%")
    assert isinstance(share, Share)
    assert (share.share, column) == (0.125, None)
