"""A text file is read in the dialect that was said, that it shows, or that the data set keeps."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import pytest

from erasable.core.errors import DialectWarning, ErasableError, InvalidParameterError, SourceError
from erasable.workspace import Workspace
from erasable.workspace.data import delimited
from erasable.workspace.data.catalogue import find, read_version
from erasable.workspace.data.column_types import ColumnTypes
from erasable.workspace.data.dialects import Dialect
from erasable.workspace.data.sources import Source

ROWS = [
    {"id": "a", "who": "p1", "price": 1.5, "n": 1, "city": "Köln", "y": 0},
    {"id": "b", "who": "p2", "price": 1234.0, "n": 2, "city": "A,B", "y": 1},
    {"id": "c", "who": "p3", "price": None, "n": 3, "city": 'say "x"', "y": 0},
]
LATER = [{"id": "d", "who": "p4", "price": 0.25, "n": 4, "city": "Århus", "y": 1}]


def text(
    rows: list[dict[str, Any]], delimiter: str = ";", decimal: str = ",", without: str = ""
) -> str:
    def cell(value: Any) -> str:
        shown = "" if value is None else str(value)
        if isinstance(value, float):
            shown = shown.replace(".", decimal)
        quoted = any(each in shown for each in (delimiter, '"'))
        return '"' + shown.replace('"', '""') + '"' if quoted else shown

    names = [name for name in rows[0] if name != without]
    lines = [names, *([cell(row[name]) for name in names] for row in rows)]
    return "\n".join(delimiter.join(line) for line in lines) + "\n"


def write(path: Path, written: str | bytes, encoding: str = "utf-8") -> Path:
    data = written if isinstance(written, bytes) else written.encode(encoding)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def read(path: Path, *said: str | None, needed: tuple[str, ...] = ("id",)) -> list[dict[str, Any]]:
    return list(Source.parse(str(path), dialect=Dialect.of(*said)).read(needed).to_pylist())


def told(path: Path, *said: str | None, needed: tuple[str, ...] = ("id",)) -> list[str]:
    """Return what is said of a file, without its name."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            read(path, *said, needed=needed)
        except SourceError:
            return ["refused"]
    assert all(each.category is DialectWarning for each in found)
    return [str(each.message).partition(f"{str(path)!r} ")[2] for each in found]


# -- what a file shows -----------------------------------------------------------------------------

SHOWN = {
    ";,": "is read with ';' between columns and decimal commas, as it shows",
    ";.": "is read with ';' between columns, as it shows",
    "\t,": "is read with tabs between columns and decimal commas, as it shows",
    "|.": "is read with '|' between columns, as it shows",
}


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("marks", SHOWN)
def test_what_is_certain_is_found_and_said(tmp_path: Path, marks: str, name: str) -> None:
    path = write(tmp_path / name, text(ROWS, *marks))
    assert told(path) == [SHOWN[marks]]
    with pytest.warns(DialectWarning):
        assert read(path) == ROWS
    assert told(path, *marks) == []  # who says it is not told


def test_a_plain_file_is_not_talked_of(tmp_path: Path) -> None:
    assert told(write(tmp_path / "x.csv", text(ROWS, ",", "."))) == []
    assert told(write(tmp_path / "x.tsv", text(ROWS, "\t", "."))) == []


@pytest.mark.parametrize(
    "written",
    [
        "id;a|id\n1;2|3\n",  # two others may be meant
        "id;a\n1;2;3\n",  # rows of another length
        "ident;a\n1;2\n",  # there is no such column either
    ],
)
def test_a_separator_is_not_guessed(tmp_path: Path, written: str) -> None:
    path = write(tmp_path / "x.csv", written)
    assert told(path) == ["refused"]
    assert told(write(path, "id,a;b,c\n1,2;3,4\n")) == []  # the usual one fits


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["1,5", "2"], [1.5, 2.0]),
        (["1,5", "NA", "", " ,5"], [1.5, None, None, 0.5]),
        (["0,125"], [0.125]),
        (["1,234", "2,0"], [1.234, 2.0]),
        (["-1,5e3", "inf"], [-1500.0, float("inf")]),
        (["1,234", "12,345"], ["1,234", "12,345"]),  # may be thousands
        (["1,5", "1.5"], ["1,5", "1.5"]),  # either
        (["1,5", "x"], ["1,5", "x"]),
        (["1,2,3"], ["1,2,3"]),
        (["1.5", "2"], [1.5, 2.0]),
    ],
)
@pytest.mark.filterwarnings("ignore::erasable.core.errors.DialectWarning")
def test_decimal_commas_are_found_where_they_are_certain(
    tmp_path: Path, cells: list[str], found: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = "id;v\n" + "".join(f"r{n};{cell}\n" for n, cell in enumerate(cells))
    path = write(tmp_path / "x.csv", written)
    assert [row["v"] for row in read(path)] == found
    for size in (8, 12, 20):  # wherever blocks begin
        monkeypatch.setattr(delimited, "_BLOCK", size)
        assert [row["v"] for row in read(path)] == found


def test_columns_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "id;price;version\na;1,5;2.5\n")
    first, second = told(path)
    assert first == SHOWN[";."]
    assert second.startswith("holds numbers with commas in 'price', which may be decimals or not")
    assert told(path, ";", ",") == []
    assert read(path, ";", ",")[0] == {"id": "a", "price": 1.5, "version": "2.5"}


def test_decimal_commas_between_commas_are_said(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'id,v\na,"1,5"\n')
    assert read(path)[0]["v"] == "1,5"
    assert read(path, None, ",")[0]["v"] == 1.5


# -- encodings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_a_mark_tells_the_encoding(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, text(ROWS, ",", "."), "utf-16")
    assert told(path) == ["is read with the encoding UTF-16, as it shows"]
    with pytest.warns(DialectWarning):
        assert read(path) == ROWS
    assert read(write(tmp_path / name, text(ROWS, ",", "."), "utf-8-sig")) == ROWS


@pytest.mark.parametrize("encoding", ["latin1", "cp1252", "utf-16-le", "utf-32", "UTF8", "utf_16"])
def test_an_encoding_that_is_said_is_read(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "x.csv", text(ROWS, ",", "."), encoding)
    assert read(path, None, None, encoding) == ROWS


@pytest.mark.parametrize("encoding", ["latin1", "utf-16-le", "utf-32"])
def test_an_encoding_that_is_not_said_is_advised(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "x.csv", text(ROWS, ",", "."), encoding)
    with pytest.raises(
        SourceError, match=r"expected UTF-8; say `--encoding \S+`, or conv"
    ) as raised:
        read(path)
    advised = str(raised.value).partition("--encoding ")[2].partition("`")[0]
    assert read(path, None, None, advised) == ROWS


def test_a_wrong_encoding_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", text(ROWS, ",", "."), "latin1")
    with pytest.raises(SourceError, match="is not encoded in ascii; expected that in all of its"):
        read(path, None, None, "ascii")
    with pytest.raises(SourceError, match="is not encoded in punycode; expected that in all"):
        read(path, None, None, "punycode")
    path = write(tmp_path / "x.csv", text(ROWS, ",", "."), "utf-8-sig")
    with pytest.raises(SourceError, match="begins with the mark of UTF-8; expected text in latin1"):
        read(path, None, None, "latin1")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ((";;",), "the delimiter is ';;'; expected one character"),
        (("",), "the delimiter is ''; expected one character"),
        (('"',), "the delimiter is '\"'; expected one character"),
        (("7",), "the delimiter is '7'; expected one character"),
        (("x",), "the delimiter is 'x'; expected one character"),
        (("\n",), r"the delimiter is '\n'; expected one character"),
        (("é",), "the delimiter is 'é'; expected one character"),
        ((None, ";"), "the decimal mark is ';'; expected '.' or ','"),
        ((None, ""), "the decimal mark is ''; expected '.' or ','"),
        ((None, None, "latin-99"), "the encoding is 'latin-99'; expected one that Python knows"),
        ((None, None, "idna"), "the encoding is 'idna'; expected one that Python knows"),
        ((None, None, "hex"), "the encoding is 'hex'; expected one that Python knows"),
        ((None, None, "a\0b"), r"the encoding is 'a\x00b'; expected one that Python knows"),
        ((None, None, ""), "the encoding is ''; expected one that Python knows"),
    ],
)
def test_what_is_no_dialect_is_refused(said: tuple[str | None, ...], message: str) -> None:
    with pytest.raises(InvalidParameterError) as raised:
        Dialect.of(*said)
    assert str(raised.value).startswith(message)


def test_a_tab_has_three_names(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", text(ROWS, "\t", "."))
    for said in ("tab", r"\t", "\t"):
        assert read(path, said, ".") == ROWS


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "sqlite:///x.db#t"])
def test_what_is_no_text_file_has_no_dialect(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="a source that is no text file with separators"):
        Source.parse(name, dialect=Dialect(";"))


# -- data sets -------------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


def add(workspace: Workspace, path: Path, **said: str) -> None:
    workspace.add_dataset("d", path, id_column="id", subjects=["who"], **said)


def content(workspace: Workspace) -> list[dict[str, Any]]:
    with workspace.context.ledger.reading() as connection:
        whole = read_version(workspace.context, connection, find(connection, "d").id)
    return sorted(whole.drop_columns(["who"]).to_pylist(), key=lambda row: str(row["id"]))


def expected(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "who"} for row in rows]


def kept(workspace: Workspace) -> dict[str, str]:
    return dict(workspace.dataset("d")["source"].get("dialect", {}))


def test_a_data_set_keeps_its_dialect(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", text(ROWS), "latin1")
    add(workspace, path, delimiter=";", decimal=",", encoding="latin1")
    assert kept(workspace) == {"delimiter": ";", "decimal": ",", "encoding": "latin1"}
    workspace.append("d", write(tmp_path / "y.csv", text(LATER), "latin1"))  # says nothing
    assert content(workspace) == expected(*ROWS, *LATER)
    assert workspace.sync("d").n_removed == 1
    assert content(workspace) == expected(*ROWS)


def test_what_is_found_is_kept(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.warns(DialectWarning, match="decimal commas"):
        add(workspace, write(tmp_path / "x.csv", text(ROWS)))
    assert kept(workspace) == {"delimiter": ";", "decimal": ","}
    # That a comma is a decimal one does not show here.
    lone = [{**LATER[0], "price": 1.234}]
    workspace.append("d", write(tmp_path / "y.csv", text(lone)))
    assert content(workspace) == expected(*ROWS, *lone)


@pytest.mark.parametrize("marks", [",.", ";.", "|,", "\t."])
def test_a_later_file_may_show_another(workspace: Workspace, tmp_path: Path, marks: str) -> None:
    add(workspace, write(tmp_path / "x.csv", text(ROWS)), delimiter=";", decimal=",")
    path = write(tmp_path / "y.csv", text(LATER, *marks))
    with pytest.warns(DialectWarning, match="as it shows"):
        workspace.append("d", path)
    assert content(workspace) == expected(*ROWS, *LATER)
    assert kept(workspace) == {"delimiter": ";", "decimal": ","}


def test_what_a_later_file_does_not_show_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    add(workspace, write(tmp_path / "x.csv", text(ROWS)), delimiter=";", decimal=",")
    lone = write(tmp_path / "y.csv", text([{**LATER[0], "price": 1.234}], ";", "."))
    with pytest.raises(SourceError, match=r"'price' holds '1\.234' in row 2; expected numbers"):
        workspace.append("d", lone)
    workspace.append("d", lone, decimal=".")
    assert content(workspace)[-1]["price"] == 1.234


def test_text_in_utf8_is_not_read_in_the_encoding_of_a_data_set(
    workspace: Workspace, tmp_path: Path
) -> None:
    add(workspace, write(tmp_path / "x.csv", text(ROWS, ",", "."), "latin1"), encoding="latin1")
    path = write(tmp_path / "y.csv", text(LATER, ",", "."))
    with pytest.raises(SourceError, match="is text in UTF-8, and the data set is read in latin1"):
        workspace.append("d", path)
    workspace.append("d", path, encoding="utf-8")
    assert content(workspace) == expected(*ROWS, *LATER)
    workspace.append("d", write(tmp_path / "z.csv", "id,who,price,n,city,y\nf,p,1,1,x,1\n"))


def test_other_commands_read_in_the_dialect_too(workspace: Workspace, tmp_path: Path) -> None:
    add(workspace, write(tmp_path / "x.csv", text(ROWS)), delimiter=";", decimal=",")
    workspace.fit("m", "naive_bayes.GaussianNB", datasets=["d"], features=["n"], target="y")
    for without in ("", "id"):
        path = write(tmp_path / "p.csv", text(LATER, without=without))
        assert workspace.predict("m", path).num_rows == 1
    with workspace.context.ledger.reading() as connection:
        types = ColumnTypes.of(find(connection, "d"), exact=True)  # fresh records of an audit
    fresh = Source.parse(str(write(tmp_path / "f.csv", "price;n\n1,234;5\n"))).read(types=types)
    assert fresh.to_pylist() == [{"price": 1.234, "n": 5}]
    workspace.correct("d", write(tmp_path / "c.csv", "id;price\nb;3,5\n"))
    other = write(tmp_path / "o.csv", "id|price\nc|4.5\n", "utf-16-le")
    workspace.correct("d", other, delimiter="|", decimal=".", encoding="utf-16-le")
    workspace.process()
    assert [row["price"] for row in content(workspace)] == [1.5, 3.5, 4.5]


@pytest.mark.filterwarnings("ignore::erasable.core.errors.DialectWarning")
def test_nothing_is_changed_by_what_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", text(ROWS))
    for said in ({"delimiter": "ab"}, {"encoding": "nowhere"}, {"delimiter": "|"}):
        with pytest.raises(ErasableError):
            add(workspace, path, **said)
    assert workspace.datasets() == []


# -- a first line that names the separator ---------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin1"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_line_that_names_the_separator(tmp_path: Path, encoding: str, end: str) -> None:
    """As Excel writes it: it is no record, and not the names of columns."""
    said = (None, None, encoding) if encoding == "latin1" else ()
    for mark in ";\t|^":
        plain = text(ROWS, mark, ".").replace("\n", end)
        path = write(tmp_path / "x.csv", f"sep={mark}{end}{plain}", encoding)
        assert "between columns" in told(path, *said)[0]
        with pytest.warns(DialectWarning):
            assert read(path, *said) == ROWS
        assert read(path, mark, ".", encoding) == ROWS  # who says it is not told
    path = write(tmp_path / "x.csv", f"sep=,{end}" + text(ROWS, ",", ".").replace("\n", end))
    assert told(path) == ["begins with 'sep=,', which is no record, and left out"]
    for mark in "a7.§":  # the name of a column
        path = write(tmp_path / "x.csv", f"sep={mark}\n1\n", "utf-8")
        name = f"sep={mark}"
        assert (told(path, needed=(name,)), read(path, needed=(name,))) == ([], [{name: "1"}])
    for wrong in ('1;"two\nli"nes\n', "1;2;3\n"):
        with pytest.raises(SourceError, match="row 2"):
            read(write(path, f"sep=;\nid;a\n{wrong}"), ";")


# -- columns that become text ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["$3", *["4.5"] * 9], "1 of 10 cells is no number, first '$3' in row 2"),
        (
            ["4", "", *["4.5"] * 18, "n.a.", "-?"],
            "2 of 21 cells are no numbers, first 'n.a.' in row 22",
        ),
        (["1.234,5", "2.000,25"], "2 of 2 cells are no numbers, first '1.234,5' in row 2"),
        (["$3", "$4,000.50"], "2 of 2 cells are no numbers, first '$3' in row 2"),
        (
            ["05.03.2024", "5/3/2024"],
            "2 of 2 cells are days of another form, first '05.03.2024' in row 2",
        ),
        (["1,5", "2,5"], "2 of 2 cells are no numbers, first '1,5' in row 2"),
        (["x", *["4.5"] * 8], None),  # 8 of 9
        (["12", "a", "b"], None),
        (["192.168.1.1", "10.0.0.1"], None),
        (["2024-03-05", "2024-03-06"], None),
        (["7", "NA", ""], None),
        (["", ""], None),
    ],
)  # fmt: skip
def test_numbers_that_become_text_are_said(
    workspace: Workspace, tmp_path: Path, cells: list[str], said: str | None
) -> None:
    rows = "".join(f'{n},p{n},"{cell}"\n' for n, cell in enumerate(cells))
    path = write(tmp_path / "x.csv", f"id,who,price\n{rows}")
    found = added(workspace, path)
    if said is None:
        assert found == []
        return
    assert len(found) == 1
    assert f": 'price' ({said}); expected numbers as 1234.5" in found[0]
    assert "\n" not in found[0]


def added(workspace: Workspace, path: Path, **said: str) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        add(workspace, path, **said)
    return [str(each.message) for each in found if each.category is DialectWarning]


def test_many_columns_that_become_text_are_counted(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, also where a file is read in many blocks."""
    monkeypatch.setattr(delimited, "_BLOCK", 200)
    names = ["id", "who", *"abcde"]
    rows = [[str(n), f"5{n}", *(["$1"] * 5 if n % 2 else ["x"] + ["2.5"] * 4)] for n in range(60)]
    lines = [";".join(row) for row in [names, *rows]]
    (said,) = added(workspace, write(tmp_path / "x.csv", "\n".join(lines)), delimiter=";")
    told = "30 of 60 cells are no numbers, first '$1' in row 3"
    columns = ", ".join(f"{name!r} ({told})" for name in "bcd")
    assert f": {columns}, 1 other; expected" in said  # of 'a' half is text
