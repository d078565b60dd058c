"""A request erases the whole person: what records and links join, in every data set and model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from effort import SEED
from erasable.core.errors import InvalidIdsError, InvalidInputError, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.backups.restore import restore
from erasable.workspace.data import fragments, persons
from erasable.workspace.evidence import receipts
from erasable.workspace.ledger.schema import holding, identity
from erasable.workspace.requests import process

CUSTOMERS = ("customer:id", "mail:email")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


def write(workspace: Workspace, name: str, rows: str) -> Path:
    source = workspace.context.root.parent / f"{name}.csv"
    source.write_text("\n".join(rows.split()) + "\n")
    return source


def add(workspace: Workspace, name: str, rows: str, *subjects: str) -> None:
    workspace.add_dataset(name, write(workspace, name, rows), id_column="n", subjects=subjects)


def shop(workspace: Workspace) -> None:
    """Ann is customer 17 with two orders, Bob is 18 with one; a model learns from the orders."""
    add(workspace, "customers", "n,customer,mail 1,17,ann@x.org 2,18,bob@x.org", *CUSTOMERS)
    rows = "n,customer,price 1,17,3.5 2,17,4.5 3,18,1.5 4,19,9.5 5,20,7.5"
    add(workspace, "orders", rows, "customer:id")


def sizes(workspace: Workspace) -> dict[str, int]:
    assert workspace.verify_log() == []
    return {each["name"]: each["n_records"] for each in workspace.datasets()}


def token(workspace: Workspace, type: str, value: Any) -> str:
    return workspace.context.keys.token(type, value)


def carried_out(workspace: Workspace, *asked: str, **given: Any) -> dict[str, Any]:
    """Have one request carried out, and return what its receipt says."""
    (request,) = workspace.request(asked, **given)
    assert workspace.process().requests == [request.id]
    return receipts.show(workspace.receipt(request.id))


# -- what is followed ------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["ann@x.org", "17"])
def test_a_request_by_any_identity_erases_the_person_everywhere(
    workspace: Workspace, asked: str
) -> None:
    shop(workspace)
    workspace.fit("prices", "preprocessing.StandardScaler", datasets=["orders"], features=["price"])
    foreseen = workspace.preview([asked])
    assert {each.name: each.n_records for each in foreseen.effects} == {
        "customers": 1, "orders": 2, "prices": 2,
    }  # fmt: skip
    says = carried_out(workspace, asked)
    assert sizes(workspace) == {"customers": 1, "orders": 3}
    assert all(each.holds for each in workspace.verify())
    source, to = ("mail", "customer") if asked == "ann@x.org" else ("customer", "mail")
    types = {"customer": "id", "mail": "email"}
    assert says["followed"] == [
        {
            "dataset": "customers", "from": source, "from_type": types[source], "to": to,
            "to_type": types[to], "identities": 1,
        }
    ]  # fmt: skip
    assert [list(each["path"]) for each in foreseen.followed] == [
        [{k: v for k, v in says["followed"][0].items() if k != "identities"}]
    ]
    theirs = {token(workspace, "email", "ann@x.org"), token(workspace, "id", 17)}
    assert {each["token"] for each in workspace.suppressed()} == theirs


def test_only_erases_the_identity_as_it_was_given(workspace: Workspace) -> None:
    shop(workspace)
    workspace.link("ann@x.org", "ann@y.org", type="email", other_type="email")
    add(workspace, "letters", "n,mail 1,ann@y.org", "mail:email")
    says = carried_out(workspace, "ann@x.org", reach=0)
    assert sizes(workspace) == {"customers": 1, "orders": 5, "letters": 1}
    assert says["followed"] == []
    assert [each["type"] for each in workspace.suppressed()] == ["email"]


@pytest.mark.parametrize("asked", ["17", "ann@x.org", "c-1", "ann@y.org"])
def test_it_is_followed_through_data_sets_in_a_chain_and_links(
    workspace: Workspace, asked: str
) -> None:
    shop(workspace)
    add(workspace, "cards", "n,mail,card 1,ann@x.org,c-1 2,bob@x.org,c-2", "mail:email",
        "card:exact")  # fmt: skip
    add(workspace, "trips", "n,card 1,c-1 2,c-1 3,c-2", "card:exact")
    add(workspace, "letters", "n,mail 1,ann@y.org 2,bob@x.org", "mail:email")
    workspace.link("ann@x.org", "ann@y.org", type="email", other_type="email")
    says = carried_out(workspace, asked)
    left = {"customers": 1, "orders": 3, "cards": 1, "trips": 1, "letters": 1}
    assert sizes(workspace) == left
    assert sum(each["identities"] for each in says["followed"]) == 3
    assert (None in {each["dataset"] for each in says["followed"]}) is True
    assert workspace.preview(["bob@x.org"]).n_records == 5


@pytest.mark.parametrize(
    "subjects",
    [("customer:shop/id", "mail:email"), ("customer:email", "mail:email")],
    ids=["of two namespaces", "of one type"],
)
def test_identities_that_name_two_people_are_not_followed(
    workspace: Workspace, subjects: Sequence[str]
) -> None:
    """A negative control."""
    add(workspace, "customers", "n,customer,mail 1,ann@x.org,bob@x.org", *subjects)
    add(workspace, "letters", "n,mail 1,ann@x.org 2,bob@x.org", "mail:email")
    assert carried_out(workspace, "bob@x.org", type="email")["followed"] == []
    assert sizes(workspace) == {"customers": 0, "letters": 1}


# -- who shares an identity ------------------------------------------------------------------------

HOUSE = "n,customer,mail 1,17,home@x.org 2,18,home@x.org 3,19,eve@x.org"


@pytest.mark.parametrize("asked", ["17", "home@x.org"])
def test_a_shared_address_is_asked_about(workspace: Workspace, asked: str) -> None:
    add(workspace, "customers", HOUSE, *CUSTOMERS)
    add(workspace, "orders", "n,customer 1,17 2,18 3,19", "customer:id")
    (line,) = workspace.preview([asked]).shared
    assert workspace.preview([asked]).n_records == {"17": 2, "home@x.org": 2}[asked]
    assert "customers.mail (email) is shared by 2 people in customers.customer (id)" in line
    (request,) = workspace.request([asked])
    done = workspace.process()
    assert done.requests == []
    (told,) = done.warnings
    assert told == f"{request.id} was not carried out, and is on hold: {line}"
    assert sizes(workspace) == {"customers": 3, "orders": 3}
    (kept,) = workspace.requests()
    assert (kept.label, kept.note) == ("on hold", line)
    workspace.resume(request.id)
    assert workspace.process().warnings == [told]  # nothing has been answered
    workspace.cancel(request.id)
    carried_out(workspace, asked, reach=2)
    assert sizes(workspace) == {"customers": 1, "orders": 1}


def test_a_request_that_is_on_hold_goes_on_once_they_are_linked(workspace: Workspace) -> None:
    add(workspace, "customers", HOUSE, *CUSTOMERS)
    (request,) = workspace.request([17])
    workspace.process()
    workspace.link(17, 18)
    workspace.resume(request.id)
    assert workspace.process().requests == [request.id]
    assert sizes(workspace) == {"customers": 1}


def test_who_is_linked_is_one_person_and_shares_nothing(workspace: Workspace) -> None:
    add(workspace, "customers", HOUSE, *CUSTOMERS)
    workspace.link(17, 18)
    assert workspace.preview([17]).shared == ()
    assert len(carried_out(workspace, "17")["followed"]) == 2
    assert sizes(workspace) == {"customers": 1}


def test_one_of_a_batch_that_is_asked_about_keeps_no_other_waiting(workspace: Workspace) -> None:
    add(workspace, "customers", HOUSE, *CUSTOMERS)
    held, other = workspace.request([17, 19])
    assert workspace.process().requests == [other.id]
    assert {each.id: each.label for each in workspace.requests()} == {
        held.id: "on hold", other.id: "completed",
    }  # fmt: skip
    assert sizes(workspace) == {"customers": 2}


def test_a_person_may_have_several_addresses(workspace: Workspace) -> None:
    """The first column says whose a record is, also where it is a gap in some."""
    rows = "n,customer,mail,card 1,17,a@x.org, 2,17,b@x.org,c-1 3,,b@x.org,c-2 4,18,d@x.org,c-3"
    add(workspace, "customers", rows, *CUSTOMERS, "card:exact")
    assert workspace.preview(["c-2"]).n_identities == 5
    carried_out(workspace, "c-2")
    assert sizes(workspace) == {"customers": 1}


def test_a_record_that_names_two_people_is_asked_about(workspace: Workspace) -> None:
    columns = ("who:id", "sender:email", "receiver:email")
    rows = "n,who,sender,receiver 1,17,a@x.org,b@x.org 2,18,c@x.org,c@x.org 3,19,d@x.org,"
    add(workspace, "letters", rows, *columns)
    (line,) = workspace.preview([17]).shared
    assert "letters.who (id) is shared by 2 people in letters" in line
    assert [bool(workspace.preview([x]).shared) for x in ("a@x.org", 18, 19)] == [1, 0, 0]
    assert workspace.preview([18]).n_identities == workspace.preview([19]).n_identities == 2


@pytest.mark.parametrize("reach", [-1, 1.0, True, "2", 10**12])
def test_a_reach_that_is_none_is_refused(workspace: Workspace, reach: Any) -> None:
    shop(workspace)
    with pytest.raises(InvalidInputError, match="reach is"):
        workspace.request([17], reach=reach)
    with pytest.raises(InvalidInputError, match="reach is"):
        workspace.preview([17], reach=reach)
    with pytest.raises(InvalidIdsError, match="a reach was given with a condition"):
        workspace.request(where="price > 3", dataset="orders", reach=0)
    assert workspace.requests() == []


# -- when it is looked at --------------------------------------------------------------------------


def test_an_identity_that_a_sync_brings_after_the_request_is_followed(workspace: Workspace) -> None:
    shop(workspace)
    workspace.request(["ann@x.org"])
    rows = "n,mail,card 1,ann@x.org,c-1 2,bob@x.org,c-2"
    add(workspace, "cards", rows, "mail:email", "card:exact")
    add(workspace, "trips", "n,card 1,c-1 2,c-2", "card:exact")
    rows = "n,customer,mail 1,17,ann@x.org 2,18,bob@x.org 3,17,ann@z.org"
    workspace.sync("customers", write(workspace, "customers", rows))
    add(workspace, "letters", "n,mail 1,ann@z.org 2,bob@x.org", "mail:email")
    workspace.process()
    left = {"customers": 1, "orders": 3, "cards": 1, "trips": 1, "letters": 1}
    assert sizes(workspace) == left


def test_a_correction_that_joins_two_people_is_asked_about(workspace: Workspace) -> None:
    shop(workspace)
    assert workspace.preview([17]).n_identities == 2
    rows = "n,customer,mail 1,17,ann@x.org 2,18,ann@x.org"
    workspace.sync("customers", write(workspace, "customers", rows))
    assert "2 people" in workspace.preview([17]).shared[0]
    workspace.request([17])
    workspace.process()
    assert sizes(workspace) == {"customers": 2, "orders": 5}


def test_a_version_that_a_model_keeps_joins_identities(workspace: Workspace) -> None:
    rows = "n,customer,mail,age 1,17,old@x.org,30 2,18,bob@x.org,40 3,19,eve@x.org,50"
    add(workspace, "customers", rows, *CUSTOMERS)
    add(workspace, "letters", "n,mail 1,old@x.org 2,new@x.org 3,bob@x.org", "mail:email")
    scaler = "preprocessing.StandardScaler"
    workspace.fit("ages", scaler, datasets=["customers"], features=["age"])
    source = write(workspace, "customers", rows.replace("old@", "new@"))
    workspace.sync("customers", source)
    carried_out(workspace, "new@x.org")
    assert sizes(workspace) == {"customers": 2, "letters": 1}
    assert all(each.holds for each in workspace.verify())


@pytest.mark.parametrize("looks_again", [True, False], ids=["ours", "one that does not look again"])
def test_a_link_that_is_made_while_a_batch_is_prepared_is_followed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, looks_again: bool
) -> None:
    shop(workspace)
    add(workspace, "letters", "n,mail 1,ann@y.org", "mail:email")
    prepare = process._find_and_prepare

    def late(*given: Any) -> Any:
        monkeypatch.setattr(process, "_find_and_prepare", prepare)
        found = prepare(*given)
        workspace.link("ann@x.org", "ann@y.org", type="email", other_type="email")
        return found

    monkeypatch.setattr(process, "_find_and_prepare", late)
    if not looks_again:
        monkeypatch.setattr(process, "check_claimed", lambda *given: None)
    carried_out(workspace, "17")
    assert sizes(workspace)["letters"] == (0 if looks_again else 1)


def test_a_data_set_that_cannot_be_read_keeps_its_people_waiting(workspace: Workspace) -> None:
    shop(workspace)
    add(workspace, "letters", "n,mail 1,eve@x.org", "mail:email")
    with workspace.context.ledger.reading() as connection:
        (part,) = fragments_of(workspace, connection, "customers")
    path = workspace.context.root / "artifacts" / part.key
    path.chmod(0o600)
    path.write_bytes(b"no Parquet")
    ann, eve = workspace.request(["ann@x.org", "eve@x.org"])
    with pytest.raises(WorkspaceError, match="1 other request was carried out"):
        workspace.process()
    states = {each.id: each.state for each in workspace.requests()}
    assert states == {ann.id: "pending", eve.id: "completed"}


def fragments_of(workspace: Workspace, connection: Any, name: str) -> Any:
    from erasable.workspace.data import catalogue

    return catalogue.fragment_rows(connection, catalogue.find(connection, name).id)


# -- what is left ----------------------------------------------------------------------------------


def test_nothing_is_left_of_what_was_joined(workspace: Workspace) -> None:
    shop(workspace)
    theirs = {token(workspace, "email", "ann@x.org"), token(workspace, "id", 17)}
    (request,) = workspace.request(["ann@x.org"])
    workspace.process()
    with workspace.context.ledger.reading() as connection:
        for table in (identity, holding):
            kept = set(connection.execute(select(table.c.token)).scalars())
            assert kept.isdisjoint(theirs)
    (row,) = [each for each in workspace.requests() if each.id == request.id]
    assert row.state == "completed"
    body = workspace.receipt(request.id)
    log = str(workspace.log_entries()).encode()
    assert not any(each.encode() in body + log for each in [*theirs, "ann@x.org"])


def test_who_was_joined_is_erased_again_from_a_backup(workspace: Workspace, tmp_path: Path) -> None:
    shop(workspace)
    workspace.back_up(tmp_path / "backup.zip", with_keys=True)
    carried_out(workspace, "ann@x.org")
    listed = workspace.suppression_list()
    done = restore(tmp_path / "backup.zip", tmp_path / "again", suppressions=listed)
    assert done.n_records == 3
    assert sizes(Workspace.open(tmp_path / "again")) == {"customers": 1, "orders": 3}


def test_who_asked_alone_is_erased_alone_from_a_backup(
    workspace: Workspace, tmp_path: Path
) -> None:
    add(workspace, "customers", HOUSE, *CUSTOMERS)
    workspace.back_up(tmp_path / "backup.zip", with_keys=True)
    carried_out(workspace, "17", reach=0)
    listed = workspace.suppression_list()
    restore(tmp_path / "backup.zip", tmp_path / "again", suppressions=listed)
    assert sizes(Workspace.open(tmp_path / "again")) == {"customers": 2}


# -- people who share identities in chains, circles and stars --------------------------------------

TYPES = ("id", "email", "exact", "integer", "staff/id", "staff/exact")
Who = tuple[str, str]  # type, value
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]  # types, and rows of values, "" for a gap


def reference(tables: Iterable[Table]) -> Callable[[Who], frozenset[Who]]:
    """Return who is whose, by union-find over all pairs of every row."""
    parent: dict[Who, Who] = {}

    def root(who: Who) -> Who:
        while parent.setdefault(who, who) != who:
            who = parent[who]
        return who

    for types, rows in tables:
        for row in rows:
            named = [(t, v) for t, v in zip(types, row, strict=True) if v]
            for one in named:
                root(one)
            for one, other in combinations(named, 2):
                spaces = [
                    each[0].partition("/")[0] if "/" in each[0] else "" for each in (one, other)
                ]
                if one[0] != other[0] and spaces[0] == spaces[1]:
                    parent[root(one)] = root(other)
    return lambda who: frozenset(each for each in parent if root(each) == root(who))


def value(type: str, person: int, k: int) -> str:
    number = 1000 * person + k
    return f"p{number}@x.org" if type.endswith("email") else str(number)


def people(rng: random.Random) -> Iterator[Table]:
    """Make data sets whose records join identities in one of three shapes, and some at random."""
    for _ in range(rng.randint(2, 4)):
        types = tuple(rng.choices(TYPES, k=rng.randint(1, 3)))
        rows = []
        shape, middle = rng.choice(["chain", "circle", "star", "any"]), rng.randrange(len(types))
        for person, k in product(range(4), range(rng.randint(1, 3))):
            places = {
                "chain": [k + i % 2 for i in range(3)],
                "circle": [(k + i) % 3 for i in range(3)],
                "star": [0 if i == middle else k for i in range(3)],
                "any": [rng.randrange(4) for _ in range(3)],
            }[shape]
            owner = person if rng.random() < 0.9 else rng.randrange(4)
            rows.append(
                tuple(
                    "" if rng.random() < 0.1 else value(t, person if i else owner, places[i])
                    for i, t in enumerate(types)
                )
            )
        yield types, rows


def joined_tables(workspace: Workspace, seed: int) -> list[Table]:
    tables = list(people(random.Random(1000 * (SEED - 1) + seed)))
    for number, (types, rows) in enumerate(tables):
        names = [f"c{i}" for i in range(len(types))]
        lines = [",".join(["n", *names])]
        lines += [",".join([str(i), *row]) for i, row in enumerate(rows)]
        subjects = [f"{name}:{t}" for name, t in zip(names, types, strict=True)]
        add(workspace, f"t{number}", " ".join(lines), *subjects)
    return tables


def records_of(tables: Sequence[Table], person: Iterable[Who]) -> Counter[str]:
    wanted = set(person)
    return Counter(
        f"t{number}"
        for number, (types, rows) in enumerate(tables)
        for row in rows
        if wanted.intersection(zip(types, row, strict=True))
    )


def differing(workspace: Workspace, tables: Sequence[Table]) -> list[str]:
    """Tell where a request would erase other records than those of the person, or be asked."""
    owners, found = reference(tables), []
    every = {
        (t, v)
        for types, rows in tables
        for row in rows
        for t, v in zip(types, row, strict=True)
        if v
    }
    asked: dict[frozenset[Who], set[bool]] = {}
    for type, name in sorted(every):
        person = owners((type, name))
        foreseen = workspace.preview([name], type=type, reach=1000)
        effects = Counter({each.name: each.n_records for each in foreseen.effects})
        if effects != records_of(tables, person) or foreseen.n_identities != len(person):
            found.append(f"{type} {name}")
        by_default = workspace.preview([name], type=type)
        asked.setdefault(person, set()).add(bool(by_default.shared))
        if not by_default.shared and by_default.n_identities != len(person):
            found.append(f"{type} {name}, by default")
    return found + [
        f"{sorted(p)} is asked about or not" for p, each in asked.items() if len(each) > 1
    ]


@pytest.mark.sampled(10)
@pytest.mark.backend("sqlite")
@pytest.mark.parametrize("seed", range(40))
def test_any_identity_of_a_person_erases_the_same_records_and_nobody_elses(
    workspace: Workspace, seed: int
) -> None:
    tables = joined_tables(workspace, seed)
    assert differing(workspace, tables) == []
    rng = random.Random(seed)
    who = rng.choice(
        sorted((t, v) for types, rows in tables for v, t in zip(rows[0], types, strict=True) if v)
    )
    gone = records_of(tables, reference(tables)(who))
    carried_out(workspace, who[1], type=who[0], reach=1000)
    assert sizes(workspace) == {
        f"t{i}": len(rows) - gone[f"t{i}"] for i, (_, rows) in enumerate(tables)
    }


def not_through_columns_behind_the_first(known: Any) -> Any:
    joins = persons_joining(known)
    return {} if len(joins) > 2 else joins


persons_joining = persons.joining


@pytest.mark.backend("sqlite")
@pytest.mark.parametrize(
    ("name", "breaks"),
    [
        ("joining", not_through_columns_behind_the_first),
        ("may_be_one_person", lambda one, other: one != other),
        ("_owners_of", lambda *_: []),
    ],
    ids=["misses a column", "takes namespaces for one", "asks nobody"],
)
def test_what_follows_others_than_the_reference_is_found(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, name: str, breaks: Any
) -> None:
    """A negative control."""
    tables: list[Table] = [
        (("id", "email", "exact"), [("1", "a@x.org", "c1"), ("2", "a@x.org", "c2")]),
        (("id", "staff/exact"), [("1", "9"), ("3", "9")]),
    ]
    for number, (types, rows) in enumerate(tables):
        names = [f"c{i}" for i in range(len(types))]
        lines = [",".join(["n", *names]), *(f"{i},{','.join(r)}" for i, r in enumerate(rows))]
        subjects = [f"{name}:{t}" for name, t in zip(names, types, strict=True)]
        add(workspace, f"t{number}", " ".join(lines), *subjects)
    assert differing(workspace, tables) == []
    monkeypatch.setattr(persons, name, breaks)
    wrong = differing(workspace, tables)
    asked = [bool(workspace.preview([1], type="id").shared)]
    assert wrong or asked == [False]


def test_each_fragment_is_read_once_however_many_are_followed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "n,customer,mail " + " ".join(f"{i},{i},p{i}@x.org" for i in range(60))
    add(workspace, "customers", rows, *CUSTOMERS)
    read: Counter[str] = Counter()

    def counted(context: Any, key: str, *given: Any) -> Any:
        read[key] += 1
        return original(context, key, *given)

    original = fragments.read
    monkeypatch.setattr(persons.fragments, "read", counted)
    with workspace.context.ledger.reading() as connection:
        asked = [([("id", token(workspace, "id", i))], None) for i in range(50)]
        found = persons.persons_of(workspace.context, connection, asked)
    assert [len(each.identities) for each in found.people] == [2] * 50
    assert set(read.values()) == {1}
