"""The types of columns of text files follow from their cells, by rules that say what parses."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.workspace.data.cell_types import RULES, fitting
from erasable.workspace.data.column_types import DECLARED, parse_cells
from erasable.workspace.data.sources import Source

FIXED = [
    "", "NA", "None", "null", "Null", "nan", "-nan", "NAN", "nan(3)", "inf", "-Infinity", "+inf",
    "infinit",
    "5", "+5", "-5", "007", "-0", "+0", "5.", ".5", "-.5", "+.5", "1e5", "1E+5", "1e", "e5",
    "1e999", "1e-999",
    "1_000", "1,000", "1.000,5", "1,5", ",5", "1 000", "0x1F", "1d5", "\uff11", "--5", " 5 ",
    "\t5", "\u00a05",
    "5\n", " ", "0", "1", "true", "True", "TRUE", "tRUE", " true", "t",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "9007199254740992", "9007199254740993",
    "+9007199254740993",
    "9007199254740993.0", "-9007199254740993", "100000000000000000000000", "1" * 400,
    "0." + "1" * 400, "0" * 30,
    "00000000000000009007199254740993", "2024-01-02", " 2024-01-02 ", "2024-1-2", "2024-02-30",
    "2024-02-29",
    "2023-02-29", "1900-02-29", "2000-02-29", "0000-02-29", "2024-13-01", "0000-01-01",
    "9999-12-31",
    "10000-01-01", "20240102", "2024/01/02", "02.01.2024", "2024-01-02 10", "2024-01-02T10:15",
    "2024-01-02 10:15:30", "2024-01-02t10:15", "2024-01-02 10:15:30.123456",
    "2024-01-02 10:15:30.1234567",
    "2024-01-02 10:15:30.1234567890", "2024-01-02 10:15:30.", "2024-01-02 24:00",
    "2024-01-02 10:15:60",
    "2024-01-02Z", "2024-01-02 10Z", "2024-01-02 10+02", "2024-01-02 10:15:30.1234567Z",
    "2024-01-02 10:15:30+0200", "2024-01-02 10:15:30-02:00", "2024-01-02 10:15:30+24:00",
    "2024-01-02+02:00",
    "1600-01-01 10:00", "1677-09-21 00:12:43.9", "1677-09-21 00:12:44",
    "2262-04-11 23:47:16.854775807",
    "2262-04-11 23:47:16.854775808", "2262-04-12 00:00:00.1234567+02:00",
    "1677-09-21 00:12:44.0000001+02:00",
    "10:15", "10:15:30", "10:15:30.123456", "10:15:30.1234567", "24:00", "1:15", "10", "10Z",
]  # fmt: skip
TWO = st.integers(0, 99).map("{:02}".format)
PARTS = st.one_of(
    TWO, TWO, st.sampled_from(["2024", "1677", "2262", "0000", "-", "-", ":", ":", ".", ",", " ",
    "T", "Z", "+", "e",
                               "0", "1", "9", "29", "02", "00"])
)  # fmt: skip
MOMENTS = st.builds(
    "{}-{:02}-{:02}{}{:02}{}{:02}{}{}".format,
    st.sampled_from(["2024", "1900", "1677", "1678", "2261", "2262", "0001"]),
    st.integers(0, 13), st.integers(0, 32), st.sampled_from("T  t"), st.integers(0, 25),
    st.sampled_from(["::", ":", ":", ""]), st.integers(0, 61),
    st.sampled_from(["", ":30", ":30.5", ":30.123456", ":60", ":16.854775807", ":59.1234567"]),
    st.sampled_from(["", "", "Z", "+02", "-0230", "+14:00", "z", " Z", "+2"]),
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-(2**65), 2**65).map(str), st.floats().map(repr), st.floats().map("{:.3e}".format),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.integers(0, 10**24).map("{:030}".format),
)  # fmt: skip
CELL = st.one_of(
    st.sampled_from(FIXED),
    st.lists(PARTS, max_size=7).map("".join),
    MOMENTS,
    NUMBERS,
    st.text(max_size=6),
)


def parses(cells: list[str], kind: pa.DataType, decimal: str) -> bool:
    """Tell whether Arrow takes cells as a type: this decided before there were rules."""
    try:
        parse_cells(pa.array(cells, pa.string()), kind, decimal)
    except (pa.ArrowException, ValueError):
        return False
    return True


def check(cells: list[str], decimal: str) -> None:
    found = [each.kind for each in fitting(RULES, pa.array(cells, pa.string()), decimal)]
    assert found == [each.kind for each in RULES if parses(cells, each.kind, decimal)], cells


@pytest.mark.parametrize("decimal", [".", ","])
def test_each_cell_fits_the_types_that_it_parses_as(decimal: str) -> None:
    for cell in FIXED:
        check([cell], decimal)


@settings(max_examples=examples(3000))
@given(st.lists(CELL, min_size=1, max_size=3), st.sampled_from(".,"))
def test_cells_fit_the_types_that_they_parse_as(cells: list[str], decimal: str) -> None:
    check(cells, decimal)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ("007,1", "int64"), ("1,-1", "int64"), ("1,9223372036854775808", "uint64"), ("1,true",
        "bool"),
        ("1,0", "int64"), ("1,1.5", "double"), ("1,NA", "int64"), ("1,1e5", "double"), ("1,None",
        "string"),
        ("-1,9223372036854775808", "string"), ("1.5,9007199254740993", "string"), ("NA,null",
        "double"),
        ("2024-01-02,2024-01-03", "date32[day]"), ("2024-01-02,2024-01-03 10:00", "timestamp[us]"),
        ("2024-01-02 10:00Z,2024-01-03 10:00+02:00", "timestamp[us]"), ("10:15,10:16:30",
        "time64[us]"),
        ("2024-01-02 10:00Z,2024-01-03 10:00", "string"), ("2024-01-02,1", "string"), ("1_000,1",
        "string"),
        ("2024-01-02 10:00:00.1234567,2024-01-02", "timestamp[ns]"), ("TRUE,NA", "bool"), ("t,f",
        "string"),
    ],
)  # fmt: skip
def test_types_of_columns(tmp_path: Path, cells: str, kind: str) -> None:
    from erasable.workspace.data.admission import plain_columns

    path = tmp_path / "d.csv"
    for some in (cells.split(","), cells.split(",")[::-1]):
        path.write_text("id,x\n" + "".join(f"r{n},{cell}\n" for n, cell in enumerate(some)))
        found = plain_columns(Source.parse(str(path)).read(["id"]))
        assert str(found["x"].type) == kind


def test_the_order_of_blocks_does_not_matter(tmp_path: Path) -> None:
    """A type that an early block rules out stays so, whatever comes later."""
    for some in (["1", "true", "2"], ["2", "1", "true"], ["true", "1", "2"]):
        left = list(RULES)
        for cell in some:
            left = fitting(left, pa.array([cell]), ".")
        assert left == []


def test_a_rule_that_reads_the_first_cells_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = pa.array(["1"] * 150 + ["x"])
    assert fitting(RULES, cells, ".") == []
    monkeypatch.setattr(pc, "unique", lambda some: some[:100])
    assert fitting(RULES, cells, ".") != []


def test_the_documentation_names_the_types_in_their_order() -> None:
    page = (Path(__file__).parents[3] / "docs" / "workspace.md").read_text()
    table = page[page.index("| every cell |") :]
    rows = re.findall(r"^ *\| [^|]+ \| `([a-z0-9]+)` \| (?:`([a-z]+)`)? *\|$", table, re.MULTILINE)
    kinds = [str(each.kind) for each in RULES[1:]]
    named = [re.sub(r"(32|64)?\[.*", "", kind) if "[" in kind else kind for kind in kinds]
    assert [kind for kind, _ in rows] == [*dict.fromkeys(named), "string"]
    plain = {"date": "date32[day]", "time": "time64[us]", "timestamp": "timestamp[us]"}
    declared = {name: plain.get(kind, kind) for kind, name in rows if name}
    assert declared == {name: str(kind) for name, kind in DECLARED.items()}
