"""Data sets: what comes in, what a version holds, and what an erasure takes out of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from contexts import make_context, visits, write_csv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import operations
from effort import examples
from erasable.core.errors import (
    InvalidIdsError,
    NotInWorkspaceError,
    SourceError,
    WorkspaceError,
)
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue, erasing, fragments
from erasable.workspace.data.conditions import Condition
from erasable.workspace.evidence import log
from erasable.workspace.identity import suppression
from erasable.workspace.ledger.bulk import delete_in
from erasable.workspace.ledger.schema import holding

SUBJECTS = [("patient", "id"), ("doctor", "id")]


def add(context: Context, folder: Path, columns: dict[str, list[Any]], name: str = "visits") -> Any:
    source = write_csv(folder / f"{name}.csv", columns)
    return operations.add(context, name, source, id_column="visit", subjects=SUBJECTS)


def rows(
    context: Context, version: int | None = None, name: str = "visits"
) -> dict[Any, dict[str, Any]]:
    with context.ledger.reading() as connection:
        known = catalogue.find(connection, name)
        table = catalogue.read_version(context, connection, known.id, version)
    return {row["visit"]: row for row in table.to_pylist()}


def erase(context: Context, wanted: erasing.Wanted, name: str = "visits") -> erasing.Erasure:
    with context.ledger.reading() as connection:
        known = catalogue.find(connection, name)
        erasure = erasing.find_records(context, connection, known.id, wanted)
    erasing.rewrite_fragments(context, erasure)
    with context.ledger.transaction() as connection:
        erasing.swap(context, connection, erasure)
        delete_in(connection, holding.c.token, wanted.tokens)
    context.clean()
    return erasure


def test_what_was_added_is_read_again(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    columns = visits(5000)
    change = add(context, tmp_path, columns)
    assert (change.version, change.n_records, change.n_suppressed) == (1, 5000, 0)
    found = rows(context)
    assert len(found) == 5000
    for i in (0, 17, 4999):
        row = found[f"v{i}"]
        assert row["age"] == columns["age"][i]
        assert row["weight"] == columns["weight"][i]
        assert row["patient"] == context.keys.token("id", columns["patient"][i])
        doctor = columns["doctor"][i]
        assert row["doctor"] == (None if doctor is None else context.keys.token("id", doctor))
    with context.ledger.reading() as connection:
        known = catalogue.find(connection, "visits")
        assert known.n_buckets == 2
        for part in catalogue.fragment_rows(connection, known.id):
            table = fragments.read(context, part.key, part.sha256)
            assert table["visit"].to_pylist() == sorted(table["visit"].to_pylist())
            buckets = {fragments.bucket_of(t, 2) for t in table["patient"].to_pylist()}
            assert buckets == {part.bucket}


def test_no_identity_is_kept(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    columns = visits(300)
    del columns["note"]
    add(context, tmp_path, columns)
    assert [
        path
        for path in context.root.rglob("*")
        if path.is_file() and b"marker" in path.read_bytes()
    ] == []


def test_append_makes_a_version_and_the_old_one_stays(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    add(context, tmp_path, visits(30))
    change = operations.append(
        context, "visits", write_csv(tmp_path / "m.csv", visits(12, start=30))
    )
    assert (change.version, change.n_records, change.n_added) == (2, 42, 12)
    assert (len(rows(context, 1)), len(rows(context, 2))) == (30, 42)


def test_append_refuses_ids_that_are_there(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    add(context, tmp_path, visits(30))
    before = sorted(context.store.list())
    with pytest.raises(InvalidIdsError, match=r"3 of 6 values of 'visit' .* sync"):
        operations.append(context, "visits", write_csv(tmp_path / "m.csv", visits(6, start=27)))
    assert sorted(context.store.list()) == before
    assert len(rows(context)) == 30


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c.pop("age"), "lacks age"),
        (lambda c: c.update(extra=c["age"]), "has extra besides"),
        (
            lambda c: c.update(age=["old"] * 6),
            "'age' holds 'old' in row 2, and 5 others that do not fit; expected whole numbers",
        ),
    ],
    ids=["missing", "new", "retyped"],
)
def test_changed_columns(tmp_path: Path, change: Any, told: str) -> None:
    context, _ = make_context(tmp_path / "ws")
    add(context, tmp_path, visits(30))
    columns = visits(6, start=30)
    change(columns)
    with pytest.raises(SourceError, match=told):
        operations.append(context, "visits", write_csv(tmp_path / "m.csv", columns))
    assert len(rows(context)) == 30


def test_names(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    add(context, tmp_path, visits(6))
    with pytest.raises(WorkspaceError, match="already"):
        add(context, tmp_path, visits(6))
    for name in ("", "../up", "a b", "x" * 49, "-a"):
        with pytest.raises(WorkspaceError, match="cannot be the name"):
            add(context, tmp_path, visits(6), name=name or "")
    with context.ledger.reading() as connection, pytest.raises(NotInWorkspaceError, match="visits"):
        catalogue.find(connection, "other")


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("visit", ["a", "b", "a"], "repeats 1 of its 3"),
        ("visit", ["a", None, "b"], "1 gap"),
        ("visit", [1.5, 2.5, 3.5], "expected"),
    ],
)
def test_bad_ids(tmp_path: Path, column: str, values: list[Any], told: str) -> None:
    context, _ = make_context(tmp_path / "ws")
    columns = visits(3)
    columns[column] = values
    path = tmp_path / "bad.parquet"
    import pyarrow.parquet as pq

    from erasable.workspace.data.sources import Source

    pq.write_table(pa.table(columns), path)
    with pytest.raises((InvalidIdsError, SourceError), match=told):
        operations.add(
            context, "bad", Source.parse(str(path)), id_column="visit", subjects=SUBJECTS
        )
    assert list(context.store.list()) == []
    with context.ledger.reading() as connection:
        assert catalogue.all_datasets(connection) == []


def test_sync_counts_and_ends_what_differs(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    columns = visits(60)
    add(context, tmp_path, columns)
    again = operations.sync(context, "visits", write_csv(tmp_path / "visits.csv", columns))
    assert (again.version, again.n_added, again.n_changed, again.n_removed) == (1, 0, 0, 0)
    changed = visits(66, start=3)  # v0 to v2 are gone, v60 to v68 are new
    changed["age"][5] = 99
    changed["doctor"][8] = None
    change = operations.sync(context, "visits", write_csv(tmp_path / "visits.csv", changed))
    assert (change.version, change.n_added, change.n_changed, change.n_removed) == (2, 9, 2, 3)
    assert len(rows(context)) == 66
    assert rows(context)["v8"]["age"] == 99
    # no model needs version 1, so nothing of it is kept
    assert rows(context, 1).keys() <= rows(context, 2).keys()


def test_suppressed_subjects_do_not_come_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There is no request, of which the log would know.
    monkeypatch.setattr("erasable.workspace.evidence.suppressions.check_list", lambda _: None)
    context, clock = make_context(tmp_path / "ws")
    add(context, tmp_path, visits(30))
    token = context.keys.token("id", "marker-patient-2")
    with context.ledger.transaction() as connection:
        suppression.suppress(connection, [(token, "id", "R-1")], clock())
    erase(context, erasing.Wanted({token: ["R-1"]}))
    change = operations.sync(context, "visits", write_csv(tmp_path / "visits.csv", visits(33)))
    assert (change.n_suppressed, change.n_records, change.n_added) == (3, 30, 3)
    more = visits(3, start=90)
    more["patient"] = ["marker-patient-2", "other", "other"]
    change = operations.append(context, "visits", write_csv(tmp_path / "m.csv", more))
    assert (change.n_suppressed, change.n_added) == (1, 2)


def test_an_erasure_reaches_every_version(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    add(context, tmp_path, visits(30))
    operations.append(context, "visits", write_csv(tmp_path / "m.csv", visits(30, start=30)))
    more = [
        context.keys.token("id", "marker-patient-2"),
        context.keys.token("id", "marker-patient-15"),
    ]
    erasure = erase(context, erasing.Wanted({more[0]: ["R-1"], more[1]: ["R-2", "R-1"]}))
    assert sorted(erasure.ids_at(1)) == ["v6", "v7", "v8"]
    assert sorted(erasure.ids_at(2)) == ["v45", "v46", "v47", "v6", "v7", "v8"]
    assert erasure.n_by_request() == {"R-1": 6, "R-2": 3}
    assert "R-2" not in erasure.n_by_request(1)
    assert (len(rows(context, 1)), len(rows(context, 2))) == (27, 54)
    data = b"".join(context.store.open(part) for part in stored(context))
    assert more[0].encode() not in data
    assert context.keys.token("id", "marker-patient-3").encode() in data


def stored(context: Context) -> list[Any]:
    from erasable.workspace.store.artifacts import StoredArtifact

    with context.ledger.reading() as connection:
        known = catalogue.all_datasets(connection)
        return [
            StoredArtifact(part.key, part.sha256)
            for each in known
            for part in catalogue.fragment_rows(connection, each.id)
        ]


def test_the_whole_of_a_data_set_can_go(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    add(context, tmp_path, visits(9))
    tokens = {context.keys.token("id", f"marker-patient-{i}"): [f"R-{i}"] for i in range(3)}
    erase(context, erasing.Wanted(tokens))
    assert rows(context) == {}
    assert list(context.store.list()) == []


def test_an_erasure_that_is_not_swapped_leaves_garbage_that_is_cleaned(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    add(context, tmp_path, visits(30))
    before = sorted(context.store.list())
    with context.ledger.reading() as connection:
        token = context.keys.token("id", "marker-patient-2")
        erasure = erasing.find_records(context, connection, 1, erasing.Wanted({token: ["R"]}))
    erasing.rewrite_fragments(context, erasure)
    assert len(list(context.store.list())) == len(before) + 1
    context.clean()
    assert sorted(context.store.list()) == before
    assert len(rows(context)) == 30


@settings(
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(data=st.data())
def test_against_a_table_in_memory(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Add, append, sync and erase at random, and keep the same in dictionaries."""
    folder = tmp_path_factory.mktemp("data")
    context, _ = make_context(folder / "ws")
    columns = visits(data.draw(st.integers(1, 40)), per_subject=data.draw(st.integers(1, 5)))
    add(context, folder, columns)
    known = {row["visit"]: row for row in pa.table(columns).to_pylist()}
    start = len(known)
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(["append", "sync", "erase", "where"]))
        if step == "append":
            new = visits(data.draw(st.integers(1, 9)), start=start)
            start += len(new["visit"])
            operations.append(context, "visits", write_csv(folder / "new.csv", new))
            known |= {row["visit"]: row for row in pa.table(new).to_pylist()}
        elif step == "sync" and known:
            kept = data.draw(st.lists(st.sampled_from(sorted(known)), min_size=1, unique=True))
            known = {visit: {**known[visit], "age": known[visit]["age"] + 1} for visit in kept}
            table = pa.Table.from_pylist(list(known.values()), pa.table(visits(9)).schema)
            source = write_csv(folder / "new.csv", table.to_pydict())
            operations.sync(context, "visits", source)
        elif step == "erase":
            people = [f"marker-patient-{i}" for i in range(15)] + ["marker-doctor-2", "nobody"]
            wanted = data.draw(st.lists(st.sampled_from(people), min_size=1, unique=True))
            erase(context, erasing.Wanted({context.keys.token("id", who): ["R"] for who in wanted}))
            known = {
                visit: row
                for visit, row in known.items()
                if row["patient"] not in wanted and row["doctor"] not in wanted
            }
        elif step == "where":
            age = data.draw(st.integers(20, 45))
            with context.ledger.reading() as connection:
                schema = catalogue.find(connection, "visits").schema
            condition = Condition.parse(f"age < {age}", schema)
            erase(context, erasing.Wanted({}, [("R", condition)]))
            known = {visit: row for visit, row in known.items() if row["age"] >= age}
    found = rows(context)
    assert found.keys() == known.keys()
    assert all(found[visit]["age"] == row["age"] for visit, row in known.items())
    assert log.verify_log(context) == []


# -- the ids of records are those of people --------------------------------------------------------


def customers(tmp_path: Path, rows: str = "17,3.5 18,4.5 007,1.5", head: str = "who,price") -> Path:
    path = tmp_path / "customers.csv"
    path.write_text("\n".join([head, *rows.split()]) + "\n")
    return path


def test_the_ids_of_records_may_name_people(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    source = customers(tmp_path)
    workspace.add_dataset("customers", source, id_column="who", subjects=["who"])
    orders = tmp_path / "orders.csv"
    orders.write_text("order,who\n1,17\n2,18\n3,17\n")
    workspace.add_dataset("orders", orders, id_column="order", subjects=["who"])
    assert workspace.dataset("customers")["subjects"] == [{"column": "who.subject", "type": "id"}]
    assert workspace.sync("customers", source).version == 1
    more = tmp_path / "more.csv"
    more.write_text("who,price\n19,2.5\n")
    assert workspace.append("customers", more).n_records == 4
    workspace.correct("customers", ids=["18"], values={"price": "8.5"})
    workspace.request(["17", "007"])
    assert workspace.process().n_records == 4
    change = workspace.sync("customers", source)
    assert (change.n_records, change.n_suppressed) == (1, 2)
    with workspace.context.ledger.reading() as connection:
        known = catalogue.find(connection, "customers")
        table = catalogue.read_version(workspace.context, connection, known.id)
    assert table["who"].to_pylist() == ["18"]
    assert table["who.subject"].to_pylist() == [workspace.context.keys.token("id", 18)]
    assert workspace.verify_log() == []


def test_ids_that_name_people_need_a_type_and_no_other_column_of_their_name(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    source = customers(tmp_path, "a@x.org,1 b@x.org,2")
    with pytest.raises(InvalidIdsError, match="subject column 'who' holds values that look like"):
        workspace.add_dataset("customers", source, id_column="who", subjects=["who"])
    source = customers(tmp_path, "17,1 18,2", "who,who.subject")
    with pytest.raises(SourceError, match=r"has a column 'who\.subject', as the tokens of"):
        workspace.add_dataset("customers", source, id_column="who", subjects=["who"])
    with pytest.raises(SourceError, match="name one twice"):
        workspace.add_dataset("customers", source, id_column="who", subjects=["who", "who"])
    assert workspace.datasets() == []
