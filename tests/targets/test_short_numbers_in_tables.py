"""Whole numbers of few digits as identities: other columns of a table have the same numbers."""

from __future__ import annotations

import csv
import fnmatch
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from erasable.workspace.targets import decoding, kinds, residue, stores
from erasable.workspace.targets.avro import AvroFile
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.verdicts import PURGED
from people import erased

N = 120
WHO = 0  # whose number is the least of its column, in bounds of metadata
ROWS = pa.table({
    "person": range(N),
    "age": [at % 90 for at in range(N)],
    "visits": [1] * N,
    "text": [f"{at % 7} have said the same" for at in range(N)],
})  # fmt: skip


def _parquet(folder: Path) -> str:
    pq.write_table(ROWS, folder / "rows.parquet")
    return str(folder)


def _csv(folder: Path) -> str:
    pc.write_csv(ROWS, folder / "rows.csv")
    return str(folder)


def _json_lines(folder: Path) -> str:
    lines = (json.dumps(row) + "\n" for row in ROWS.to_pylist())
    (folder / "rows.jsonl").write_text("".join(lines))
    return str(folder)


def _by_folders(folder: Path) -> str:
    ds.write_dataset(
        ROWS, folder, format="parquet", partitioning=["person"], partitioning_flavor="hive",
        max_partitions=N,
    )  # fmt: skip
    return str(folder)


def _delta(folder: Path, **options: Any) -> str:
    deltalake = pytest.importorskip("deltalake", reason="extra delta")
    deltalake.write_deltalake(str(folder), ROWS, **options)
    return f"delta:{folder}"


def _delta_by_person(folder: Path) -> str:
    return _delta(folder, partition_by="person")


def _iceberg(folder: Path, *, by: str | None = None, rows: pa.Table = ROWS) -> str:
    sql = pytest.importorskip("pyiceberg.catalog.sql", reason="extra iceberg")
    transforms = pytest.importorskip("pyiceberg.transforms")
    uri = f"sqlite:///{folder}/catalog.db"
    catalog = sql.SqlCatalog("tests", uri=uri, warehouse=f"file://{folder}/tables")
    catalog.create_namespace("own")
    table = catalog.create_table("own.rows", schema=rows.schema)
    if by is not None:
        with table.update_spec() as spec:
            spec.add_field("person", transforms.parse_transform(by), "part")
    table.append(rows)
    catalog.close()
    return f"iceberg:{uri}#own.rows"


def _by_buckets(bucket: Any, source: Any) -> Callable[[pa.ChunkedArray], pa.ChunkedArray]:
    """Do what pyiceberg does with a package of its own, which may be missing."""
    of = bucket.transform(source)
    return lambda column: pa.chunked_array([pa.array(map(of, column.to_pylist()), pa.int32())])


def _iceberg_by_person(folder: Path) -> str:
    return _iceberg(folder, by="identity")


def _iceberg_by_bucket(folder: Path) -> str:
    return _iceberg(folder, by="bucket[8]")  # of which one has the number


PLACES: dict[str, tuple[Callable[[Path], str], str]] = {  # with a file that has the number
    "parquet": (_parquet, "rows.parquet"),
    "csv": (_csv, "rows.csv"),
    "json lines": (_json_lines, "rows.jsonl"),
    "folders": (_by_folders, f"person={WHO}/*.parquet"),
    "delta": (_delta, "*.parquet"),
    "delta by person": (_delta_by_person, f"person={WHO}/*.parquet"),
    "iceberg": (_iceberg, "tables/**/*-m0.avro"),
    "iceberg by person": (_iceberg_by_person, "tables/**/*-m0.avro"),
    "iceberg, its list": (_iceberg_by_person, "tables/**/snap-*.avro"),
    "iceberg by bucket": (_iceberg_by_bucket, "tables/**/*-m0.avro"),
}


@pytest.mark.parametrize("kind", PLACES)
def test_numbers_of_other_columns_name_nobody(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a file of before is told."""
    if "bucket" in kind:
        transforms = pytest.importorskip("pyiceberg.transforms", reason="extra iceberg")
        monkeypatch.setattr(transforms.BucketTransform, "pyarrow_transform", _by_buckets)
    make, pattern = PLACES[kind]
    folder = tmp_path / "place"
    folder.mkdir()
    place = make(folder)
    (file,) = folder.glob(pattern)
    before = tmp_path / "before"
    shutil.copy(file, before)
    with kinds.opened(place, Settings((Subject("person", "integer"),))) as target:
        plan, verdict = erased(target, WHO, str(WHO))
        assert plan.changed
        assert (verdict.word, verdict.reason) == (PURGED, None)
        file.parent.mkdir(exist_ok=True)
        shutil.copy(before, file.with_name(f"again-{file.name}"))
        found = target.scan(plan.marks, plan.living)
    assert found.n_left == 1
    assert found.where


# -- object stores ---------------------------------------------------------------------------------

MANY = pa.table({
    "person": range(20), "age": [17] * 20, "visits": [at % 3 + 16 for at in range(20)],
    "text": ["17 have said the same"] * 20,
})  # fmt: skip
IN_BUCKETS = {  # with an object that has the number
    "parquet": "part-17.parquet",
    "csv": "day=17/rows.csv",
    "json lines": "rows.jsonl",
    "folders": "person=17/part-17.parquet",
    "folders of csv": "person=17/day=17/rows.csv",
    "folders of json lines": "day=16/person=17/rows.jsonl",
    "delta": "*.parquet",
    "delta by person": "person=17/*.parquet",
    "iceberg": "data/*.parquet",
}


def _put_rows(s3: Any, bucket: str, kind: str, folder: Path) -> str:
    """Write rows into a bucket; return their place."""
    place = f"s3://{bucket}/{_above(kind)}/lake"
    if kind.startswith("delta"):
        deltalake = pytest.importorskip("deltalake", reason="extra delta")
        by = "person" if kind == "delta by person" else None
        deltalake.write_deltalake(place, MANY, partition_by=by)
        return f"delta:{place}"
    if kind == "iceberg":
        sql = pytest.importorskip("pyiceberg.catalog.sql", reason="extra iceberg")
        uri = f"sqlite:///{folder}/catalog.db"
        catalog = sql.SqlCatalog(
            "tests", uri=uri, warehouse=f"s3://{bucket}/none", **{"s3.endpoint": s3.url}
        )
        catalog.create_namespace("own")
        catalog.create_table("own.rows", schema=MANY.schema, location=place).append(MANY)
        catalog.close()
        return f"iceberg:{uri}#own.rows"
    for name, rows in _named(kind).items():
        data = io.BytesIO()
        if name.endswith(".parquet"):
            pq.write_table(rows, data)
        elif name.endswith(".csv"):
            pc.write_csv(rows, data)
        else:
            data.write("".join(f"{json.dumps(row)}\n" for row in rows.to_pylist()).encode())
        key = f"{_above(kind)}/lake/{name}"
        s3.client.put_object(Bucket=bucket, Key=key, Body=data.getvalue())
    return place


def _above(kind: str) -> str:
    """Return the name of a folder above a place, which says nothing of it.

    Files of Iceberg have the whole path: there "person=17" would say what it says elsewhere.
    """
    return "17/day=17" if kind == "iceberg" else "person=17"


def _named(kind: str) -> dict[str, pa.Table]:
    """Return the rows of each object."""
    if not kind.startswith("folders"):
        return {IN_BUCKETS[kind]: MANY}
    names = (IN_BUCKETS[kind].replace("person=17", f"person={at}") for at in range(20))
    rows = MANY.drop_columns("person")
    return {name: rows.slice(at, 1) for at, name in enumerate(names)}


def _people_in(objects: dict[str, bytes]) -> list[int]:
    """Return the people of all rows of objects, as other readers find them."""
    found: list[int] = []
    for key, data in objects.items():
        if key.endswith(".parquet") and "_delta_log" not in key:
            rows = pq.ParquetFile(io.BytesIO(data)).read()
        elif key.endswith(".csv"):
            rows = pa.Table.from_pylist(list(csv.DictReader(io.StringIO(data.decode()))))
        elif key.endswith(".jsonl"):
            rows = pa.Table.from_pylist([json.loads(line) for line in data.splitlines()])
        else:
            assert not re.search(rb'person\\*"?[:=] *\\*"?17\b', data)
            continue
        of_folder = re.search(r"person=(\d+)/", key)
        own = rows["person"].to_pylist() if "person" in rows.schema.names else None
        found += map(int, own or [of_folder[1]] * len(rows) if of_folder else own or [])
    return sorted(found)


@pytest.mark.parametrize("kind", IN_BUCKETS)
def test_numbers_of_other_columns_in_an_object_store(
    s3: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: an object of before is told."""
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")  # of Delta
    bucket = s3.bucket()
    place = _put_rows(s3, bucket, kind, tmp_path)

    def objects() -> dict[str, bytes]:
        every = {key.partition("?")[0]: data for key, data in s3.everything(bucket).items()}
        return {key.removeprefix(f"{_above(kind)}/lake/"): data for key, data in every.items()}

    before = objects()
    (name,) = fnmatch.filter(before, IN_BUCKETS[kind])
    with kinds.opened(place, Settings((Subject("person", "integer"),))) as target:
        plan, verdict = erased(target, 17, "17")
        assert sum(plan.changed.values()) == 1
        assert _people_in(objects()) == [at for at in range(20) if at != 17]
        assert (verdict.word, verdict.reason) == (PURGED, None)
        folder, _, own = name.rpartition("/")
        again = "/".join(filter(None, (_above(kind), "lake", folder, f"again-{own}")))
        s3.client.put_object(Bucket=bucket, Key=again, Body=before[name])
        found = target.scan(plan.marks, plan.living)
    assert (found.n_left, found.where) == (
        1,
        ["*" if re.search(r"\b17\b", own) else f"again-{own}"],
    )


FOLDERS = {  # of a file of which others have the number, and whether it names the person 17
    "person=3/day=17/rows": False,
    "day=17/person=3/rows": False,
    "person=3/17": False,
    "person=3/17 rows": False,
    "person=3/person=17/rows": True,
    f"person=17/{'x' * 200}/rows": True,
    "day=3/person=17/rows": True,
}


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("is_local", [True, False], ids=["folder", "objects"])
def test_numbers_in_names_of_folders(
    tmp_path: Path, name: str, ending: str, is_local: bool
) -> None:
    data = io.BytesIO()
    if ending == ".parquet":
        pq.write_table(pa.table({"age": [17]}), data)
    else:
        data.write(b"age\n17\n" if ending == ".csv" else b'{"age": 17}\n')
    fsspec = pytest.importorskip("fsspec", reason="extra objects")
    fs = fsspec.filesystem("file" if is_local else "memory")
    root = str(tmp_path)
    fs.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
    fs.pipe_file(f"{root}/{name}{ending}", data.getvalue())
    marks = Marks()
    marks.add(17, column="person")
    found = stores.search([stores.opened_store(root if is_local else f"memory:/{root}")], marks,
                          Marks())  # fmt: skip
    assert (found.n_left, found.compared) == (FOLDERS[name], True)


def test_folders_above_a_place_give_no_columns(tmp_path: Path) -> None:
    """They are no names of the place: a table without the column may have it anywhere."""
    path = tmp_path / "person=3" / "place" / "rows.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"age": [17]}), path)
    marks = Marks()
    marks.add(17, column="person")
    for root, is_there in ((path.parent, True), (tmp_path, False)):
        assert residue.search([path], marks, Marks(), {path: root}).n_left == is_there


TEXTS = {  # of files, and whether they have the person 17
    "rows.csv": ("age,person\n17,3\n17,4\n", False),
    "quoted.csv": ('person;text\n3;"a\n17;b"\n', True),  # as the next line could be a row
    "lines.csv": ('person,text,age\n3,"a ""17"",\n17 b\n",4\n4,c,17\n', False),
    "lines with.csv": ('person,text,age\n3,"a\n17 b",4\n17,"c\nd",4\n', True),
    "open.csv": ('person,text,age\n3,5" wide,4\n17,c,4\n4,5" long,4\n', True),
    "never closed.csv": ('person,text,age\n3,"wide,4\n17,c,4\n4,c,4\n', True),
    "other.csv": ("age,user\n17,3\n", True),  # without the column, any
    "signs.csv": ("person^age\n3^17\n", True),
    "float.csv": ("\ufeffperson,age\n17.0,3\n", True),
    "rows.jsonl": ('{"person": 3, "age": 17}\n{"age": 17}\n', False),
    "twice.jsonl": ('{"person": 17, "person": 3}\n', True),
    "within.jsonl": ('{"of": {"person": {"number": 17}}}\n', True),
    "names.json": ('{"17": {"age": 3}}', True),
    "text.jsonl": ('{"said": "{\\"person\\": 17}"}\n', True),
    "path.json": ('{"path": "person=17/part-0.parquet", "size": 3}', True),
    "summary.json": ('{"partitions.person=17/": "added=1"}', True),
    "bucket.json": ('{"partitions.person_bucket=17/": "added=1"}', False),
    "indented.json": ('{\n "person": 3,\n "age": 17,\n "of": {\n  "size": 17\n }\n}', False),
    "list.json": ('{\n "person": [\n  17\n ]\n}', True),
    "words.txt": ("the person 3 is 17\n", True),
    "carriage returns.csv": ("person,age\r3,4\r17,4\r", True),
    "padded.csv": ("person,age\n017,3\n", True),
    "empty last.tsv": ("person\tage\tcity\n3\t17\t\n", False),
    "long name.csv": ("x" * 200_000 + ",person\n17,3\n", True),  # no header that is read
    "payload.csv": ('age,said,person\n3,"{""person"": 17}",4\n', True),
    "ids.json": ("[3, 17]", True),
    "renamed.jsonl": ('{"user": 17, "age": 3}\n', True),  # without the name, any
    "split.json": ('{"columns": ["person", "age"], "data": [[17, 3]]}', True),
    "pairs.json": ('{"key": "person", "value": 17}', True),
    "columns.json": (json.dumps({"age": {"0": 3}, "person": {"0": 17}}, indent=1), True),
    "others.json": (json.dumps({"age": {"0": 17}, "person": {"0": 3}}, indent=1), False),
    "mark.jsonl": ('\ufeff{"person": 3, "age": 17}\n', False),
    "mark.json": ('\ufeff{\n "person": 3,\n "age": 17\n}', False),
    "joined.json": ('{"person": 3, "age": 17}{"person": 4, "age": 17}', False),
    "joined with.json": ('{"person": 3, "age": 17}{"person": 17}', True),
    "cut off.json": ('{\n "person": 3,\n "age": 17,\n', True),  # as it cannot be read
    "escaped.jsonl": (r'{"person": "\u0031\u0037"}', True),
    "escaped.json": ('{\n "person": ' + r'"\u0031\u0037"' + "\n}", True),
    "again.jsonl": ('{"person": 3, ' + ", ".join(['"age": 17'] * 5_000) + "}\n", False),
    "again with.jsonl": ('{"age": 3, ' + ", ".join(['"person": 17'] * 5_000) + "}\n", True),
    "deep.jsonl": ('{"age": 17, "person": ' + "[" * 5_000 + "]" * 5_000 + "}\n", True),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_numbers_in_texts(
    tmp_path: Path, name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "AT_ONCE", size)
    content, is_there = TEXTS[name]
    assert _n_left(tmp_path / name, content.encode(), "person") == is_there


def _n_left(path: Path, content: bytes, column: str, identity: object = 17) -> int:
    path.write_bytes(content)
    marks = Marks()
    marks.add(identity, column=column)
    found = residue.search([path], marks, Marks())
    assert found.compared
    return found.n_left


@pytest.mark.parametrize(
    ("rows", "is_there"),
    [
        ({"person": 3, "of": {"person": 17}}, True),
        ({"person": 3, "of": [{"person": 17}]}, True),
        ({"person": 17, "of": {"person": 3}}, True),  # its last name
        ({"person": 3, "other": {"size": 17}}, False),
        ({"size": 17}, True),
        ({"of": {"person": 3, "size": 17}}, False),
        ({"person": 3, "in": {"of": {"person": 17}, "size": 4}}, True),
        ({"of": {"size": 3, "pairs": [{"key": "person", "value": 17}]}}, True),
        ({"person": {"number": 17}, "size": 4}, True),
        ({"person": 3, "said": '{"person": 17}'}, True),
        ({"person": 3, "said": '{"person": 3, "age": 17}'}, False),
        ({"said": ['{"person": "17"}']}, True),
    ],
)
def test_numbers_in_columns_within_others(
    tmp_path: Path, rows: dict[str, Any], is_there: bool
) -> None:
    path = tmp_path / "within.parquet"
    pq.write_table(pa.Table.from_pylist([rows]), path)
    assert _n_left(path, path.read_bytes(), "of.person") == is_there


@pytest.mark.parametrize(
    ("identity", "value"),
    [
        *((17, each) for each in ("17.0", " 17 ", "017", "+17", "1.7e1", 17.0, Decimal("17.00"))),
        (17.0, "17"), (Decimal("17.00"), "17"), ("17.0", "17"), ("17", 17), ("17", 17.0),
        ("ann", " ann"), ("a/b", "a/b"),
    ],
)  # fmt: skip
def test_an_identity_is_found_as_another_type_or_spelling(
    tmp_path: Path, identity: object, value: object
) -> None:
    path = tmp_path / "rows.parquet"
    for column, is_there in (("person", True), ("age", False)):
        row = {"person": 3 if column == "age" else value, "age": value}
        pq.write_table(pa.Table.from_pylist([row]), path)
        assert _n_left(path, path.read_bytes(), "person", identity) == is_there


def test_keys_of_maps_and_notes_of_files_are_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    people = pa.array([3])
    for key, is_there in (("person", True), ("age", False)):
        of = pa.array([[(key, 17)]], pa.map_(pa.string(), pa.int64()))
        for table in (
            pa.table({"person": people, "of": of}),
            pa.table({"person": people}).replace_schema_metadata({key: "17"}),
            pa.table({"person": people}).replace_schema_metadata({"of": json.dumps({key: 17})}),
        ):
            pq.write_table(table, path)
            assert _n_left(path, path.read_bytes(), "person") == is_there


def test_signs_that_json_escapes(tmp_path: Path) -> None:
    text = json.dumps({"person": "a/b"}).replace("/", r"\/")
    assert json.loads(text) == {"person": "a/b"}
    assert _n_left(tmp_path / "rows.jsonl", text.encode(), "person", "a/b")
    text = json.dumps({"person": "zoé"}).replace("e9", "E9")
    assert json.loads(text) == {"person": "zoé"}
    assert _n_left(tmp_path / "rows.jsonl", text.encode(), "person", "zoé")
    assert not _n_left(tmp_path / "rows.jsonl", text.replace("zo", "z").encode(), "person", "zoé")


@pytest.mark.parametrize("encoding", ["gbk", "shift_jis", "cp1252"])
def test_texts_of_other_encodings_are_not_compared(tmp_path: Path, encoding: str) -> None:
    name = "é" if encoding == "cp1252" else "日"
    path = tmp_path / "rows.csv"
    for start in ("", "id,"):
        path.write_bytes(f"{start}{name},person\n1,{name}\n".encode(encoding))
        marks = Marks()
        marks.add(name, column="person")
        assert not residue.search([path], marks, Marks()).compared


def test_names_of_members_of_an_archive(tmp_path: Path) -> None:
    for name, number, is_there in (
        ("person=17", 4, True), ("age=17", 4, False), ("age=17", 17, False), ("age=4", 17, False),
    ):  # fmt: skip
        with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
            archive.writestr(f"{name}/rows.csv", f"person,age\n3,{number}\n")
        assert _n_left(tmp_path / "rows.zip", Path(archive.filename).read_bytes(), "person") == (
            is_there
        )


@pytest.mark.parametrize("folder", ["_delta_log", "_delta_log/_sidecars"])
@pytest.mark.parametrize("form", [json.dumps, dict])
def test_statistics_in_checkpoints(tmp_path: Path, folder: str, form: Callable[[Any], Any]) -> None:
    for column, is_there in (("person", True), ("age", False)):
        least = 17 if form is json.dumps else Decimal("17.0")
        path = tmp_path / folder / "part.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        add = {"path": "a", "stats": form({"numRecords": 17, "minValues": {column: least}})}
        pq.write_table(pa.Table.from_pylist([{"add": add}]), path)
        assert _n_left(path, path.read_bytes(), "person") == is_there


def test_decimals_in_the_partitions_of_a_manifest(tmp_path: Path) -> None:
    rows = pa.table({"person": pa.array([Decimal("17.00")], pa.decimal128(38, 2)), "age": [3]})
    _iceberg(tmp_path, by="identity", rows=rows)
    (path,) = tmp_path.glob("tables/**/*-m0.avro")
    data = path.read_bytes()
    with path.open("rb") as file:
        found = AvroFile(file)
        n, block = next(found.blocks())
        bounds = {
            value for names, value in found.values(n, block) if names[-2:-1] == ("partition",)
        }
    assert bounds == {(1_700).to_bytes(16, "big")}
    assert _n_left(path, data, "person", 17)
    assert not _n_left(path, data, "person", 1_700)


def _long(n: int) -> bytes:
    """Write a number as Avro 1.11 says."""
    n, found = (n << 1) ^ (n >> 63), b""
    while n > 127:
        found, n = found + bytes([n & 127 | 128]), n >> 7
    return found + bytes([n])


_ENTRY = {"type": "record", "name": "manifest_entry"}


@pytest.mark.parametrize(
    ("fields", "n", "block", "is_compared"),
    [
        ([{"name": "a", "type": "int"}], 1, _long(3), True),
        ([{"name": "a", "type": "int"}], -1, _long(3), False),
        ([{"name": "a", "type": "int"}], 1, _long(3) + _long(17), False),
        ([{"name": "a", "type": {"type": "array", "items": "null"}}], 1, _long(1 << 60), False),
        ([], 1 << 60, b"", False),
        ([{"name": "a", "type": ["null", "manifest_entry"]}], 1, _long(1) * 5_000, False),
        ([{"name": "a", "type": "manifest_entry"}], 1, b"\0", False),
    ],
    ids=["whole", "less than none", "more bytes", "no end", "no bytes", "deep", "in itself"],
)
@pytest.mark.parametrize("spec", ["[]", '[{"name": "a", "source-id": 1, "transform": 3}]'])
def test_a_damaged_manifest_is_not_compared(
    tmp_path: Path, fields: list[Any], n: int, block: bytes, is_compared: bool, spec: str
) -> None:
    metadata = {
        "avro.schema": json.dumps({**_ENTRY, "fields": fields}), "format-version": "2",
        "schema": "null", "partition-spec": spec,
    }  # fmt: skip
    pairs = (text.encode() for pair in metadata.items() for text in pair)
    head = b"Obj\1" + _long(4) + b"".join(_long(len(each)) + each for each in pairs) + b"\0"
    sync = b"s" * 16
    path = tmp_path / "own-m0.avro"
    path.write_bytes(head + sync + _long(n) + _long(len(block)) + block + sync)
    marks = Marks()
    marks.add(17, column="person")
    assert residue.search([path], marks, Marks()).compared == (is_compared and spec == "[]")


def test_a_short_value_is_compared_in_the_columns_of_all_searches() -> None:
    marks = Marks()
    for column in ("person", "friend"):
        other = Marks()
        other.add(17, column=column)
        marks.add_all(other)
    (value,) = marks.short.values()
    assert value.near == {"person", "friend"}


def test_values_of_a_manifest_are_those_that_iceberg_reads(tmp_path: Path) -> None:
    io = pytest.importorskip("pyiceberg.io.pyarrow", reason="extra iceberg")
    manifest = pytest.importorskip("pyiceberg.manifest")
    _iceberg(tmp_path)
    (path,) = tmp_path.glob("tables/**/*-m0.avro")
    with path.open("rb") as file:
        found = AvroFile(file)
        read = [pair for n, block in found.blocks() for pair in found.values(n, block)]
    listed = next(iter(tmp_path.glob("tables/**/snap-*.avro")))
    files = io.PyArrowFileIO()
    (entry,) = next(manifest.read_manifest_list(files.new_input(str(listed)))).fetch_manifest_entry(
        files
    )
    own = entry.data_file
    by_path: dict[str, list[Any]] = {}
    for names, value in read:
        by_path.setdefault(".".join(names), []).append(value)
    assert by_path["data_file.file_path"] == [own.file_path]
    assert by_path["data_file.record_count"] == [own.record_count] == [N]
    for name in ("lower_bounds", "upper_bounds", "value_counts"):
        pairs = zip(
            by_path[f"data_file.{name}.key"], by_path[f"data_file.{name}.value"], strict=True
        )
        assert dict(pairs) == getattr(own, name)
