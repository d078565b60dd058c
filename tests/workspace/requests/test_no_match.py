"""Nobody is told "no match" who is there, and "no match" says where it was looked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from sqlalchemy import create_engine, text

from erasable.core.errors import InvalidIdsError
from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from naming import named

PEOPLE = ["User1@example.com", "USER2@example.com", "user3@example.com"]

ADDRESSES = [
    "user2@example.com", "USER2@EXAMPLE.COM", "mailto:u@x.org", "Ann <ann@x.org>",
    "a@x.org, b@x.org", "a@x.org;b@x.org", "u3@\uff58.com", "u\uff20x.org", "u\u200b@x.o\u200brg",
    "u%40x.org",
]  # fmt: skip
TELEPHONES = ["+49 170 1234567", "(030) 123456", "0170/1234567", "0170-1234567", "555-010-4477"]
IDS = [
    "p1", "17", "0012345678", "001-0001", "01-001-001", "078-05-1120", "2024-0001-55",
    "1990-01-02", "ann@home", "v1@2", "Ann Smith",
]  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


def add(workspace: Workspace, subject: Any, values: list[str | None], name: str = "users") -> Any:
    source = workspace.context.root.parent / f"{name}.parquet"
    numbers = list(range(len(values)))
    pyarrow.parquet.write_table(pa.table({"n": numbers, "who": values}), source)
    return workspace.add_dataset(name, source, id_column="n", subjects=[subject])


def position(workspace: Workspace) -> int:
    return len(workspace.log_entries())


# -- data comes in ---------------------------------------------------------------------------------


@pytest.mark.backend("sqlite")
@pytest.mark.parametrize("value", ADDRESSES + TELEPHONES, ids=named)
def test_a_column_that_needs_a_type_asks_for_it(workspace: Workspace, value: str) -> None:
    before = position(workspace)
    told = "addresses" if value in ADDRESSES else "telephone numbers"
    with pytest.raises(InvalidIdsError, match=f"'who' holds values that look like {told}") as error:
        add(workspace, "who", [value])
    assert "who:id" in str(error.value)
    assert ("who:email" in str(error.value)) == (value in ADDRESSES)
    assert value not in str(error.value)
    assert (workspace.datasets(), position(workspace)) == ([], before)
    assert add(workspace, "who:id", [value]).warnings == ()


@pytest.mark.backend("sqlite")
@pytest.mark.parametrize("value", IDS, ids=named)
def test_a_column_of_ids_needs_none(workspace: Workspace, value: str) -> None:
    add(workspace, "who", [value])
    assert workspace.datasets()[0]["subjects"][0]["type"] == "id"


@pytest.mark.backend("sqlite")
def test_one_address_is_enough_and_one_telephone_number_is_not(workspace: Workspace) -> None:
    ids: list[str | None] = [f"p{i}" for i in range(20)]
    add(workspace, "who", [*ids, TELEPHONES[0], None])
    with pytest.raises(InvalidIdsError, match="addresses"):
        add(workspace, "who", [*ids, ADDRESSES[0]], "others")


def _sources(folder: Path) -> dict[str, str]:
    """Write the same people as every kind of source."""
    table = pa.table({"n": [0, 1, 2], "who": PEOPLE})
    rows = "".join(f"{n},{who}\n" for n, who in enumerate(PEOPLE))
    (folder / "a.csv").write_text("n,who\n" + rows)
    (folder / "a.tsv").write_text(("n,who\n" + rows).replace(",", "\t"))
    pyarrow.parquet.write_table(table, folder / "a.parquet")
    coded = table.set_column(1, "who", table["who"].dictionary_encode())
    pyarrow.parquet.write_table(coded, folder / "coded.parquet")
    for number, name in enumerate(PEOPLE):
        (folder / "parts" / f"who={name}").mkdir(parents=True)
        part = pa.table({"n": [number]})
        pyarrow.parquet.write_table(part, folder / "parts" / f"who={name}" / "a.parquet")
    engine = create_engine(f"sqlite:///{folder}/shop.db")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE users (n INTEGER, who TEXT)"))
        made = [{"n": n, "who": who} for n, who in enumerate(PEOPLE)]
        connection.execute(text("INSERT INTO users VALUES (:n, :who)"), made)
    engine.dispose()
    names = ("a.csv", "a.tsv", "a.parquet", "coded.parquet", "parts")
    return {
        **{name: str(folder / name) for name in names},
        "database": f"sqlite:///{folder}/shop.db#users",
    }


@pytest.mark.backend("sqlite")
@pytest.mark.parametrize(
    "kind", ["a.csv", "a.tsv", "a.parquet", "coded.parquet", "parts", "database"]
)
def test_every_kind_of_source_is_looked_at(workspace: Workspace, kind: str, tmp_path: Path) -> None:
    place = _sources(tmp_path)[kind]
    for subjects in (["who"], [("who", None)]):
        with pytest.raises(InvalidIdsError, match="look like addresses"):
            workspace.add_dataset("users", place, id_column="n", subjects=subjects)
    workspace.add_dataset("users", place, id_column="n", subjects=["who:email"])
    workspace.request(["user2@EXAMPLE.com"])
    assert workspace.process().n_records == 1


@pytest.mark.backend("sqlite")
@pytest.mark.parametrize("way", ["append", "sync"])
def test_addresses_that_come_later_are_told(workspace: Workspace, way: str, tmp_path: Path) -> None:
    add(workspace, "who", ["p1"])
    for number, value in enumerate(["p2", "Ann@x.org"], 7):
        source = tmp_path / "later.parquet"
        pyarrow.parquet.write_table(pa.table({"n": [number], "who": [value]}), source)
        told = getattr(workspace, way)("users", source).warnings
        assert bool(told) == ("@" in value)
        assert not any("Ann@x.org is" in each for each in told)


# -- somebody asks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ["request", "preview", "subject"])
@pytest.mark.parametrize(
    ("values", "type"),
    [
        (["user2@example.com"], None), (["nobody@example.com"], None),
        (["user2@example.com"], "email"), (["user2@example.com"], "staff/id"), (["17"], "integer"),
        (["p1", "user2@example.com"], None), (["mailto:u@x.org"], None),
    ],
    ids=named,
)  # fmt: skip
def test_an_identity_of_no_type_in_use_is_refused(
    workspace: Workspace, ask: str, values: list[str], type: str | None
) -> None:
    add(workspace, "who:id", PEOPLE)
    before = position(workspace)
    asked: Any = values[-1] if ask == "subject" else values
    with pytest.raises(InvalidIdsError, match=r"id \(users.who\).*--type id") as told:
        getattr(workspace, ask)(asked, type=type)
    assert values[-1] not in str(told.value)
    assert (workspace.requests(), position(workspace)) == ([], before)
    getattr(workspace, ask)(asked, type="id")  # the override


def test_a_type_of_a_link_is_in_use_for_those_that_are_linked(workspace: Workspace) -> None:
    add(workspace, "who", ["p1", "p2"])
    with pytest.raises(InvalidIdsError, match="no type was named"):
        workspace.link("p1", "ann@x.org")
    workspace.link("p1", "ann@x.org", other_type="email")
    for type in (None, "email"):
        with pytest.raises(InvalidIdsError, match="no data set has"):
            workspace.request(["bob@x.org"], type=type)
        workspace.request(["Ann@x.org"], type=type)
    assert workspace.process().n_unmatched == 0


def test_no_match_is_a_state_and_says_where_it_was_looked(workspace: Workspace) -> None:
    add(workspace, "who:email", PEOPLE)
    add(workspace, "who", ["p1"], "others")
    columns = [
        {"dataset": "others", "column": "who", "type": "id"},
        {"dataset": "users", "column": "who", "type": "email"},
    ]
    foreseen = workspace.preview(["user2@example.com", "gone"])
    assert (foreseen.n_unmatched, list(foreseen.searched)) == (1, columns)
    assert workspace.preview(["p1"]).n_unmatched == 0
    found, missed, named_id = (
        workspace.request([who], type=type)[0].id
        for who, type in (("user2@example.com", None), ("gone", None), ("User2@x.org", "id"))
    )
    (condition,) = workspace.request(where="n > 99", dataset="users")
    assert workspace.process().n_unmatched == 3
    states = {each.id: each.state for each in workspace.requests()}
    assert states == {
        found: "completed", missed: "no_match", named_id: "no_match", condition.id: "no_match"
    }  # fmt: skip
    assert [each.id for each in workspace.requests(["completed"])] == [found]
    assert len(workspace.requests(["no_match"])) == 3
    assert len(workspace.requests(["no_match", "completed"])) == 4
    assert workspace.status()["requests"] == {"completed": 1, "no_match": 3}
    says = {}
    for request in states:
        receipts.check(workspace.receipt(request), workspace.public_key)
        says[request] = receipts.show(workspace.receipt(request))
    assert [says[each]["outcome"] for each in states] == [
        "erased" if each == found else "no match" for each in states
    ]
    assert says[missed]["searched"] == columns
    assert says[named_id]["searched"] == columns[:1]
    assert says[condition.id]["searched"] is None
    assert workspace.verify_log() == []
    page = workspace.context.root.parent / "report.html"
    workspace.report(page)
    assert "3 without a match" in page.read_text()


def test_a_data_set_that_comes_between_the_search_and_the_receipt_was_not_searched(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies after the swap; its receipt is made when there are more data sets."""
    from erasable.workspace.requests import process

    add(workspace, "who", ["p1"])
    (asked,) = workspace.request(["p2"])
    with monkeypatch.context() as patched:
        patched.setattr(process, "finish", lambda context: [])
        workspace.process()
    add(workspace, "who", ["p2"], "others")
    workspace.process()
    assert receipts.show(workspace.receipt(asked.id))["searched"] == [
        {"dataset": "users", "column": "who", "type": "id"}
    ]


def test_several_addresses_as_one_identity_are_not_looked_for_as_an_id(
    workspace: Workspace,
) -> None:
    add(workspace, "who:email", PEOPLE)
    add(workspace, "who", ["p1"], "others")
    with pytest.raises(InvalidIdsError, match="address"):
        workspace.request(["User1@example.com, USER2@example.com"])
    assert workspace.requests() == []
