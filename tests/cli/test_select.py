"""`erasable select`: the choice is that of the selector, and what is said of it is true."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from cli.running import erasable, make_tiny, told
from erasable.selection import (
    BetaBinomial,
    CVaR,
    Expected,
    Groups,
    Independent,
    NaiveBayes,
    NearestNeighbor,
    PerClass,
    PointMass,
    SubsetSelector,
    Uniform,
    balance,
    expected_utility,
)
from erasable.workspace import Workspace
from naming import named

N = 120
DATA = load_breast_cancer()
X = DATA.data[:N, :4]
Y = np.where(DATA.target[:N] == 1, "well", "ill")
RNG = np.random.default_rng(0)
STAYS = np.round(RNG.random(N), 2)
COSTS = np.round(1 + 4 * RNG.random(N), 1)
STAGE = RNG.integers(0, 3, N)
SITES = np.array(["north", "south", "west"])[RNG.integers(0, 3, N)]
IDS = [f"v{row:03d}" for row in range(N)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("select")
    columns: dict[str, Any] = {"visit": IDS, "state": Y.tolist()}
    columns |= {f"x{number}": column for number, column in enumerate(X.T)}
    whole = pa.table(
        {**columns, "stay": STAYS, "cost": COSTS, "stage": STAGE, "site": SITES.tolist()}
    )
    pyarrow.csv.write_csv(pa.table(columns), place / "plain.csv")
    pyarrow.csv.write_csv(whole, place / "visits.csv")
    pyarrow.parquet.write_table(whole, place / "visits.parquet")
    (place / "held.txt").write_text("v003\nv050\n")
    return place


BASE = ("plain.csv", "--id", "visit")
FEATURES = ("--features", "x0,x1,x2,x3")


def select(folder: Path, *args: str) -> dict[str, Any]:
    return told("select", *args, folder=folder)


def scaled() -> np.ndarray:
    return np.asarray(StandardScaler().fit_transform(X))


def chosen(utility: Any, given: Any, y: Any = None, held: Any = None, **params: Any) -> list[str]:
    selector = SubsetSelector(utility, random_state=0, **params).fit(given, y, ids=IDS)
    if held is not None:
        selector.fit(given, y, ids=IDS, selected=held)
    return [str(each) for each in selector.selected_ids_]


STAYING = [
    ("0.6", Independent(0.6)),
    ("ill=0.5,well=1", Independent({"ill": 0.5, "well": 1.0})),
    ("ill=beta-binomial:4:2, well=0.9", PerClass({"ill": BetaBinomial(4, 2), "well": 0.9})),
    ("uniform:4:9", Uniform(4, 9)),
    ("point:5", PointMass(5)),
    ("beta-binomial:0.5:2", BetaBinomial(0.5, 2)),
    ("column:stay", Independent(STAYS)),
]


@pytest.mark.parametrize(("text", "staying"), STAYING, ids=[each[0] for each in STAYING])
def test_the_choice_is_that_of_the_selector(folder: Path, text: str, staying: Any) -> None:
    args = ("visits.csv", "--id", "visit", "--target", "state", *FEATURES)
    found = select(folder, *args, "--k", "9", "--staying", text)
    Z, y = scaled(), Y.tolist()
    assert found["selected"] == chosen(NearestNeighbor(), Z, y, k=9, staying=staying)
    plain = chosen(NearestNeighbor(), Z, y, k=9)
    for each, ids in zip(found["worth"], (found["selected"], plain), strict=True):
        right = expected_utility(ids, Z, y, utility=NearestNeighbor(), staying=staying, ids=IDS)
        assert each["expected"] == pytest.approx(right.value)
        assert each["expected_error"] == right.standard_error == 0.0
        whole = expected_utility(ids, Z, y, utility=NearestNeighbor(), ids=IDS)
        assert each["without_deletions"] == pytest.approx(whole.value)
        assert each["worst"] is None
    rows = [IDS.index(each) for each in found["selected"]]
    right_shares = [each.share_staying for each in balance(Y, rows=rows, staying=staying, y=Y)]
    assert [each["share_staying"] for each in found["balance"]] == pytest.approx(right_shares)
    assert sum(each["n_selected"] for each in found["balance"]) == 9


def test_to_anticipate_pays(folder: Path) -> None:
    args = (*BASE, "--target", "state", "--k", "8")
    ours, theirs = select(folder, *args, "--staying", "ill=0.3,well=1")["worth"]
    assert ours["expected"] > theirs["expected"]
    assert ours["without_deletions"] < theirs["without_deletions"]


def test_nobody_leaves(folder: Path) -> None:
    (only,) = select(folder, *BASE, "--k", "5", "--staying", "1")["worth"]
    assert only["expected"] == pytest.approx(only["without_deletions"], rel=1e-14)


UTILITIES = [
    (["--metric", "cosine"], NearestNeighbor("cosine"), scaled()),
    (["--n-neighbors", "7"], NearestNeighbor(n_neighbors=7), scaled()),
    (["--scale", "none"], NearestNeighbor(), X),
]


@pytest.mark.parametrize(("args", "utility", "given"), UTILITIES, ids=lambda each: str(each)[:20])
def test_options_of_utilities(folder: Path, args: list[str], utility: Any, given: Any) -> None:
    found = select(folder, *BASE, "--k", "6", "--staying", "0.5", *args)
    assert found["selected"] == chosen(utility, given, k=6, staying=0.5)
    assert found["scaled"] == ("none" not in args)
    assert found["left_out"] == ["state"]


def test_columns_of_other_units_change_nothing_unless_they_are_asked_to(
    folder: Path, tmp_path: Path
) -> None:
    table = pyarrow.csv.read_csv(folder / "plain.csv")
    at = table.schema.get_field_index("x0")
    thousands = pa.array(table["x0"].to_numpy() * 1024)
    pyarrow.csv.write_csv(table.set_column(at, "x0", thousands), tmp_path / "plain.csv")
    args = (*BASE, "--k", "10", "--staying", "0.5")
    assert select(tmp_path, *args)["selected"] == select(folder, *args)["selected"]
    raw = [select(each, *args, "--scale", "none")["selected"] for each in (folder, tmp_path)]
    assert raw[0] != raw[1]


def test_categories_for_naive_bayes(folder: Path) -> None:
    args = ("visits.csv", "--id", "visit", "--target", "state", "--utility", "naive-bayes")
    found = select(folder, *args, "--features", "stage,site", "--k", "7", "--staying", "0.4")
    table = np.array(list(zip(STAGE.tolist(), SITES.tolist(), strict=True)), dtype=object)
    assert found["selected"] == chosen(NaiveBayes(), table, Y.tolist(), k=7, staying=0.4)


def test_text_is_categories_where_it_is_named(folder: Path) -> None:
    args = ("visits.csv", "--id", "visit", "--k", "7", "--staying", "0.4")
    found = select(folder, *args, "--features", "x0,site")
    codes = (SITES[:, None] == np.unique(SITES)).astype(float)
    table = np.column_stack([scaled()[:, 0], codes])
    assert found["selected"] == chosen(NearestNeighbor(), table, k=7, staying=0.4)


@pytest.mark.parametrize("utility", ["mutual-information", "variance-reduction"])
def test_what_is_sampled_says_its_error(folder: Path, utility: str) -> None:
    args = (*BASE, "--k", "4", "--staying", "0.5", "--utility", utility, "--samples", "300")
    found = select(folder, *args)
    ours, theirs = found["worth"]
    for each in (ours, theirs):
        assert 0 < each["expected_error"] < 0.1 * each["expected"]
        assert each["expected"] < each["without_deletions"]
    assert select(folder, *args) == found  # the same seed, the same choice
    assert "±" in erasable("select", *args, folder=folder).stderr


def test_worst_cases(folder: Path) -> None:
    args = (*BASE, "--k", "5", "--staying", "0.4", "--objective", "cvar:0.2", "--samples", "200")
    found = select(folder, *args)
    goal = CVaR(0.2, 200)
    assert found["selected"] == chosen(
        NearestNeighbor(), scaled(), k=5, staying=0.4, objective=goal
    )
    for each in found["worth"]:
        assert each["worst"] < each["expected"]
        assert each["worst_error"] > 0
        assert each["expected_error"] == 0
        assert each["expected_exact"] is True
    shown = erasable("select", *args, folder=folder).stderr
    assert "worst cases" in shown
    rarely = [each if each != "0.4" else "0.01" for each in args]  # then nobody stays in the worst
    assert "0.0000 ± 0" in erasable("select", *rarely, folder=folder).stderr
    assert goal.samples_needed() == Expected(200).samples_needed()


def test_held_records_and_costs(folder: Path) -> None:
    args = ("visits.csv", "--id", "visit", *FEATURES, "--staying", "0.5")
    found = select(folder, *args, "--k", "5", "--held", "held.txt", "--target", "state")
    held = ["v003", "v050"]
    right = chosen(NearestNeighbor(), scaled(), Y.tolist(), held=held, k=5, staying=0.5)
    assert found["selected"] == right
    assert not {*held} & {*found["selected"]}
    assert sum(each["n_selected"] for each in found["balance"]) == 7  # all that are then held
    both = expected_utility(
        [*held, *right], scaled(), Y.tolist(), utility=NearestNeighbor(), staying=0.5, ids=IDS
    )
    assert found["worth"][0]["expected"] == pytest.approx(both.value)
    bought = select(folder, *args, "--k", "12.5", "--cost", "cost")["selected"]
    assert bought == chosen(NearestNeighbor(), scaled(), k=12.5, staying=0.5, costs=COSTS)
    assert sum(COSTS[IDS.index(each)] for each in bought) <= 12.5


def test_ids_go_through_pipes(folder: Path) -> None:
    first = erasable("select", *BASE, "--k", "3", "--staying", "0.5", folder=folder)
    assert first.exit_code == 0
    ids = first.stdout.splitlines()
    assert len(ids) == 3
    assert set(ids) <= set(IDS)
    assert "after deletions" in first.stderr
    args = (*BASE, "--k", "2", "--staying", "0.5", "--held", "-")
    more = erasable("select", *args, folder=folder, stdin=first.stdout)
    assert more.exit_code == 0
    both = [*ids, *more.stdout.splitlines()]
    assert both == select(folder, *BASE, "--k", "5", "--staying", "0.5")["selected"]


def test_people_leave_with_all_of_their_records(folder: Path) -> None:
    args = ("visits.csv", "--id", "visit", "--subject", "stage", "--features", "x0,x1,x2,x3")
    found = select(folder, *args, "--k", "5", "--staying", "0.5")
    together = Groups(STAGE, 0.5)
    assert found["selected"] == chosen(NearestNeighbor(), scaled(), k=5, staying=together)
    assert found["selected"] != chosen(NearestNeighbor(), scaled(), k=5, staying=0.5)
    table = pyarrow.csv.read_csv(folder / "visits.csv")
    share = pa.array([[0.9, 0.4, 0.2][stage] for stage in STAGE])
    pyarrow.csv.write_csv(table.append_column("share", share), folder / "shares.csv")
    found = select(folder, "shares.csv", *args[1:], "--k", "5", "--staying", "column:share")
    differ = Groups(STAGE, {0: 0.9, 1: 0.4, 2: 0.2})
    assert found["selected"] == chosen(NearestNeighbor(), scaled(), k=5, staying=differ)


def test_people_have_the_laws_of_owners(folder: Path, tmp_path: Path) -> None:
    args = ("--id", "visit", "--subject", "stage", "--features", "x0,x1,x2,x3", "--k", "5")
    found = select(folder, "visits.csv", *args, "--staying", "beta-binomial:3:1")
    together = Groups(STAGE, BetaBinomial(3, 1))
    assert found["selected"] == chosen(NearestNeighbor(), scaled(), k=5, staying=together)
    assert found["worth"][0]["expected"] != pytest.approx(
        select(folder, "visits.csv", *args, "--staying", "0.75")["worth"][0]["expected"]
    )
    table = pyarrow.csv.read_csv(folder / "visits.csv")
    kind = ["a" if stage else "b" for stage in STAGE]
    pyarrow.csv.write_csv(table.append_column("kind", pa.array(kind)), tmp_path / "kinds.csv")
    by_class = ("--target", "kind", "--staying", "a=0.4,b=beta-binomial:3:1")
    found = select(tmp_path, "kinds.csv", *args, *by_class)
    each = Groups(STAGE, PerClass({"a": 0.4, "b": BetaBinomial(3, 1)}))
    selector = SubsetSelector(NearestNeighbor(), k=5, staying=each).fit(scaled(), kind, ids=IDS)
    assert found["selected"] == selector.selected_ids_.tolist()


def test_records_of_nobody_are_on_their_own(tmp_path: Path) -> None:
    rows = ["0,a", "0,a", "0,", "0,", "1,b"]
    (tmp_path / "t.csv").write_text("x,who\n" + "\n".join(rows) + "\n")
    args = ("t.csv", "--subject", "who", "--k", "5", "--staying", "0.5", "--scale", "none")
    utility = select(tmp_path, *args)["worth"][0]["expected"]
    # Three owners have x = 0, for four records; one has x = 1.
    assert utility == pytest.approx(4 * (1 - 0.5**3) + 0.5)


def test_rows_are_numbered_where_there_are_no_ids(folder: Path) -> None:
    args = ("plain.csv", "--features", "x0,x1", "--k", "3", "--staying", "0.5")
    numbers = select(folder, *args)["selected"]
    assert [IDS[int(row)] for row in numbers] == select(folder, *args, "--id", "visit")["selected"]


def test_the_command_prints_what_the_library_selects(folder: Path, tmp_path: Path) -> None:
    args = ("visits.csv", "--id", "visit", "--target", "state", "--k", "4", "--held", "held.txt")
    printed = select(folder, *args, "--staying", "ill=0.5,well=1", "--metric", "cosine")
    found = Workspace.create(tmp_path / "clinic").select(
        folder / "visits.csv", 4, "ill=0.5,well=1", id_column="visit", target="state",
        metric="cosine", held=["v003", "v050"],
    )  # fmt: skip
    assert (printed["selected"], printed["n_records"]) == (found.ids, found.n_records)
    assert printed["features"] == list(found.features)
    assert printed["worth"] == [asdict(each) for each in found.worth]


def test_csv_and_parquet_are_alike(folder: Path) -> None:
    args = ("--id", "visit", "--target", "state", "--k", "4", "--staying", "ill=0.5,well=1")
    texts = [select(folder, name, *args) for name in ("visits.csv", "visits.parquet")]
    assert texts[0] == texts[1]


def test_classes_may_be_numbers(folder: Path) -> None:
    args = ("visits.parquet", "--id", "visit", "--target", "stage", *FEATURES)
    found = select(folder, *args, "--k", "6", "--staying", "0=0.5,1=0.9,2=1")
    staying = Independent({0: 0.5, 1: 0.9, 2: 1.0})
    assert found["selected"] == chosen(
        NearestNeighbor(), scaled(), STAGE.tolist(), k=6, staying=staying
    )


def test_files_are_written_whole(folder: Path, tmp_path: Path) -> None:
    args = ("select", str(folder / "plain.csv"), "--id", "visit", "--k", "6", "--staying", "0.5")
    ids = erasable(*args, folder=tmp_path).stdout
    lines = erasable(*args, "--output", "ids.txt", folder=tmp_path)
    assert (tmp_path / "ids.txt").read_text() == ids
    assert "v" not in lines.stdout.splitlines()
    assert "wrote ids.txt" in lines.stdout
    assert lines.stderr == ""
    assert erasable(*args, "--output", "ids.csv", folder=tmp_path).exit_code == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "ids.csv").read_text())))
    assert "".join(f"{row['visit']}\n" for row in rows) == ids
    gains = [float(row["gain"]) for row in rows]
    assert sum(gains) == pytest.approx(told(*args, folder=tmp_path)["worth"][0]["expected"])
    assert erasable(*args, "--plot", "curve.svg", folder=tmp_path).exit_code == 0
    drawn = (tmp_path / "curve.svg").read_text()
    assert "</svg>" in drawn


@pytest.fixture
def own_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        yield


@pytest.mark.usefixtures("own_warnings")
def test_more_than_there_are(folder: Path) -> None:
    result = erasable("select", *BASE, "--k", "500", "--staying", "0.5", folder=folder)
    assert result.exit_code == 0
    first, *_ = result.stderr.splitlines()
    assert first == "warning: k=500 of 120 records: all of them are chosen"
    assert result.stderr.count("warning") == 1
    assert sorted(result.stdout.splitlines()) == IDS
    assert "as much after deletions, as much if nobody leaves" in result.stderr


def test_large_tables_are_told_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from erasable.workspace.selection import choice

    monkeypatch.setattr(choice, "LARGE", 8 * N**2 - 1)
    args = ("select", *BASE, "--k", "3", "--staying", "0.5")
    whole = erasable(*args, folder=folder)
    assert whole.stderr.startswith("warning: the similarities of all pairs take 0.0 GiB; --n-ne")
    for more in (["--target", "state"], ["--n-neighbors", "9"]):
        assert "warning" not in erasable(*args, *more, folder=folder).stderr


def test_what_records_are_compared_by_is_told(folder: Path) -> None:
    args = ("select", "visits.csv", "--id", "visit", "-k", "3", "--staying", "0.5")
    shown = erasable(*args, folder=folder).stderr
    assert "numbers   x0, x1, x2, x3, stay, cost, stage; scaled to mean 0" in shown
    assert "left out  state, site; these are no numbers" in shown
    named = erasable(*args, "--features", "x0,site", "--scale", "none", folder=folder).stderr
    assert "numbers     x0; as they are\ncategories  site\n" in named
    assert "left out" not in named


def test_many_classes_are_not_all_printed(folder: Path, tmp_path: Path) -> None:
    rows = "\n".join(f"{row},{row % 40}" for row in range(400))
    (tmp_path / "many.csv").write_text(f"x,class\n{rows}\n")
    args = ("select", "many.csv", "--target", "class", "--k", "5", "--staying", "0.5")
    assert "... 28 more, chosen more often" in erasable(*args, folder=tmp_path).stderr
    assert len(told(*args, folder=tmp_path)["balance"]) == 40


def test_a_workspace_tells_who_leaves(tmp_path: Path) -> None:
    make_tiny(tmp_path)  # of 30 patients one is erased, two have asked
    args = ("visits.csv", "--id", "visit", "--features", "age,dose", "--k", "5")
    found = select(tmp_path, *args, "--staying", "history:visits")
    assert found["history"] == [
        "3 of 30 people in visits asked to leave in less than a day; the same is anticipated for "
        "a time as long"
    ]
    model = select(tmp_path, *args, "--staying", "beta-binomial:28:4")
    assert model["selected"] == found["selected"]
    assert model["worth"] == found["worth"]
    since = select(tmp_path, *args, "--staying", "history:visits:2020-01-01")
    assert since["selected"] == found["selected"]
    by_class = "0=history:visits,1=1"
    assert select(tmp_path, *args, "--target", "sick", "--staying", by_class)["history"]


PLAIN = ("visits.csv", "--id", "visit")
HERE = (*PLAIN, "--staying", "0.5")  # an option that is given twice is refused
BAD = [
    (["visits.csv", "--staying", "0.5"], "--k is missing"),
    (["visits.csv", "--k", "3"], "--staying is missing"),
    (["gone.csv", "--k", "3", "--staying", "0.5"], "is not there"),
    ([*HERE, "--k", "0"], "--k is '0'"),
    ([*HERE, "--k", "2.5"], "--k is '2.5'"),
    ([*HERE, "--k", "-1", "--cost", "cost"], "expected a number above 0"),
    ([*HERE, "--k", "0.5", "--cost", "cost"], "the cheapest record costs"),
    ([*HERE, "--k", "3", "--cost", "site"], "holds string; expected numbers"),
    ([*HERE, "--k", "3", "--cost", "stage"], "expected a number above 0 in each row"),
    ([*PLAIN, "--k", "3", "--staying", "1.5"], "a probability lies from 0 to 1"),
    ([*PLAIN, "--k", "3", "--staying", "nan"], "--staying is 'nan'"),
    ([*PLAIN, "--k", "3", "--staying", "60%"], "expected a probability as 0.6"),
    ([*PLAIN, "--k", "3", "--staying", "ill=0.5"], "there is no --target"),
    ([*PLAIN, "--k", "3", "--target", "state", "--staying", "ill=0.5"], "for the class 'well'"),
    ([*PLAIN, "--k", "3", "--target", "state", "--staying", "ill=1,bad=1"], "the class 'bad'"),
    ([*PLAIN, "--k", "3", "--target", "state", "--staying", "ill=1,ill=1"], "each class once"),
    ([*PLAIN, "--k", "3", "--target", "state", "--staying", "ill=1,x"], "has 'x', which is no"),
    ([*PLAIN, "--k", "3", "--staying", "column:gone"], "there is no column 'gone'"),
    ([*PLAIN, "--k", "3", "--staying", "column:x0"], "not a probability from 0 to 1"),
    ([*PLAIN, "--k", "3", "--staying", "uniform:5:4"], "exchange them"),
    ([*PLAIN, "--k", "3", "--staying", "uniform:a:4"], "are whole numbers"),
    ([*PLAIN, "--k", "3", "--staying", "point:4"], "choose k=4 or more"),
    ([*PLAIN, "--k", "3", "--staying", "beta-binomial:0:1"], "alpha=0"),
    ([*PLAIN, "--k", "3", "--staying", "history:visits"], "holds no workspace"),
    ([*PLAIN, "--k", "3", "--staying", "history:visits:may"], "has the day 'may'"),
    ([*PLAIN, "--k", "3", "--subject", "site", "--staying", "point:3"], "a number of records"),
    ([*PLAIN, "--k", "3", "--subject", "site", "--staying", "a=1"], "there is no --target"),
    (
        [*PLAIN, "--k", "3", "--subject", "site", "--target", "state", "--staying", "ill=1,well=1"],
        "3 of 3 people have records of several classes",
    ),
    ([*PLAIN, "--k", "3", "--subject", "site", "--staying", "column:stay"], "between records of"),
    ([*HERE, "--k", "3", "--target", "gone"], "has no column 'gone'"),
    ([*HERE, "--k", "3", "--target", "x0"], "holds decimal numbers"),
    (
        ["visits.csv", "--staying", "0.5", "--k", "3", "--target", "visit"],
        "has 120 different values in 120 records",
    ),
    ([*HERE, "--k", "3", "--target", "visit"], "named twice"),
    ([*HERE, "--k", "3", "--features", "x0,gone"], "there is no column 'gone'"),
    ([*HERE, "--k", "3", "--features", "x0,x0"], "named twice"),
    ([*HERE, "--k", "3", "--features", "visit"], "named twice"),
    (["visits.csv", "--k", "3", "--staying", "1", "--features", "visit"], "different texts"),
    (["visits.csv", "--staying", "0.5", "--k", "3", "--id", "site"], "repeats 117 of its 120"),
    (["visits.csv", "--staying", "0.5", "--k", "3", "--id", "x0"], "repeats"),
    ([*HERE, "--k", "3", "--utility", "best"], "--utility is 'best'"),
    ([*HERE, "--k", "3", "--utility", "naive-bayes"], "there is no --target"),
    (
        [*HERE, "--k", "3", "--utility", "naive-bayes", "--target", "state"],
        "holds decimal numbers",
    ),
    ([*HERE, "--k", "3", "--metric", "manhattan"], "--metric is 'manhattan'"),
    (
        [*HERE, "--k", "3", "--metric", "cosine", "--utility", "variance-reduction"],
        "with nearest-neighbor alone",
    ),
    ([*HERE, "--k", "3", "--n-neighbors", "0"], "--n-neighbors is '0'"),
    ([*HERE, "--k", "3", "--objective", "worst"], "expected 'expected', or cvar:SHARE"),
    ([*HERE, "--k", "3", "--objective", "cvar:0"], "write cvar:0.2"),
    ([*HERE, "--k", "3", "--samples", "1"], "--samples is '1'"),
    ([*HERE, "--k", "3", "--scale", "log"], "--scale is 'log'"),
    ([*HERE, "--k", "3", "--seed", "x"], "--seed is 'x'"),
    ([*HERE, "--k", "3", "--held", "gone.txt"], "there is no file 'gone.txt'"),
    ([*HERE, "--k", "3", "--held", "plain.csv"], "ids that are in no row"),
    ([*HERE, "--k", "3", "--output", "ids.json"], "ends in .txt, .csv"),
    ([*HERE, "--k", "3", "--plot", "curve"], "ends in .svg, .png, .pdf"),
    ([*HERE, "--k", "3", "--output", "gone/ids.txt"], "No such file or directory"),
]


def once(args: list[str]) -> list[str]:
    """Return arguments in which an option that is given twice has its last value alone."""
    given = {args[i]: i for i in range(1, len(args), 2)}
    return [args[0], *(each for i in sorted(given.values()) for each in args[i : i + 2])]


@pytest.mark.parametrize(("args", "said"), [(once(args), said) for args, said in BAD], ids=named)
def test_mistakes_are_told_in_one_line(folder: Path, args: list[str], said: str) -> None:
    before = sorted(folder.iterdir())
    result = erasable("select", *args, folder=folder)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert "; expected " in line, line
    assert sorted(folder.iterdir()) == before


CELLS = [
    ("1,a\n,b\n", [], "1 of 2 records have gaps, in 'x'"),
    ("1,a\nnan,b\n", [], "1 of 2 records have gaps, in 'x'"),
    ("1,a\ninf,b\n", [], "hold infinity"),
    ("1,a\ninf,b\n", ["--scale", "none"], "hold infinity"),
    ("1e308,a\n-1e308,b\n", [], "too large to compute with"),
    ("one,a\ntwo,b\n", [], "holds numbers"),
    ("2026-03-01,a\n2026-03-02,b\n", ["--features", "x"], "hold date32[day]"),
    ("", [], "has no records"),
]


@pytest.mark.parametrize(("cells", "args", "said"), CELLS, ids=named)
def test_what_cells_may_hold(tmp_path: Path, cells: str, args: list[str], said: str) -> None:
    (tmp_path / "t.csv").write_text(f"x,name\n{cells}")
    result = erasable("select", "t.csv", "--k", "1", "--staying", "0.5", *args, folder=tmp_path)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert said in line


def test_one_object_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "ids.txt")
    args = ("select", *BASE, "--k", "500", "--staying", "0.5", "--output", out, "--json")
    result = erasable(*args, folder=folder)
    found = json.loads(result.stdout)
    assert found["n_selected"] == N
    assert found["selected"] == []
    assert found["output"] == out
    assert result.stderr.startswith("warning: ")
