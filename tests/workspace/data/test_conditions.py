"""Conditions against an oracle: plain Python on plain values."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core.errors import SourceError
from erasable.workspace.data.conditions import Condition
from naming import named

OPERATORS = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
SCHEMA = pa.schema(
    [
        ("n", pa.int64()), ("u", pa.uint64()), ("b", pa.int8()), ("x", pa.float64()),
        ("t", pa.string()), ("yes", pa.bool_()), ("day", pa.date32()),
        ("at", pa.timestamp("us")), ("zoned", pa.timestamp("us", "UTC")), ("a column", pa.int64()),
        ("who", pa.string()), ("ms", pa.time32("ms")), ("clock", pa.time64("us")),
        ("fine", pa.timestamp("ns")), ("none", pa.null()),
    ]
)  # fmt: skip

EDGES = [0, 1, -1, 127, 128, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64]
INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from([s * e for e in EDGES for s in (1, -1)]))
FLOATS = st.one_of(st.integers(-3, 3).map(float), st.floats(width=64))
TEXTS = st.one_of(
    st.sampled_from(["", "a", "A", "ab", "it's", 'say "x"', "null", "and", "\u00e9", "\U0001f600"]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=4),
)
DAYS = st.dates(date(2023, 12, 30), date(2024, 3, 2))
TIMES = st.datetimes(datetime(2024, 2, 28), datetime(2024, 3, 1))


def quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark * 2) + mark


def within(low: int, high: int):
    return INTEGERS.filter(lambda value: low <= value <= high)


NUMBERS = st.one_of(
    INTEGERS.map(str),
    st.decimals(-4, 4, places=2).map(str),
    st.sampled_from(["1e3", "-2E0", "+1", ".5", "2.", "9007199254740993", "1e25", "-1e30", "1e-9"]),
)
# column: (values, literals as they are written, what a literal means)
COLUMNS = {
    "n": (within(-(2**63), 2**63 - 1), NUMBERS, lambda w: Fraction(Decimal(w))),
    "u": (within(0, 2**64 - 1), NUMBERS, lambda w: Fraction(Decimal(w))),
    "b": (within(-128, 127), NUMBERS, lambda w: Fraction(Decimal(w))),
    "x": (FLOATS, NUMBERS, float),
    "t": (TEXTS, TEXTS.map(lambda t: quoted(t, "'")), lambda w: w[1:-1].replace("''", "'")),
    "yes": (
        st.booleans(),
        st.sampled_from(["true", "false", "TRUE", "False"]),
        lambda w: w.lower() == "true",
    ),
    "day": (
        DAYS,
        st.tuples(DAYS, st.booleans()).map(lambda d: f'"{d[0]}"' if d[1] else str(d[0])),
        lambda w: date.fromisoformat(w.strip('"')),
    ),
    "at": (
        TIMES,
        st.one_of(TIMES.map(datetime.isoformat), DAYS.map(str), TIMES.map(lambda t: f"'{t}'")),
        lambda w: datetime.fromisoformat(w.strip("'")),
    ),
    "fine": (TIMES, TIMES.map(datetime.isoformat), datetime.fromisoformat),
    "clock": (
        st.times(),
        st.one_of(st.times().map(time.isoformat), st.just("10:15")),
        time.fromisoformat,
    ),
    "zoned": (
        TIMES.map(lambda t: t.replace(tzinfo=UTC)),
        TIMES.map(datetime.isoformat),
        lambda w: datetime.fromisoformat(w).replace(tzinfo=UTC),
    ),
}  # fmt: skip


@st.composite
def comparisons(draw):
    """Draw a column, its values, how a comparison is written, and what it means for a value."""
    name = draw(st.sampled_from(list(COLUMNS)))
    values, literals, meaning = COLUMNS[name]
    column = draw(st.lists(st.none() | values, min_size=6, max_size=6))
    space = draw(st.sampled_from(["", " ", "\n "]))
    if draw(st.integers(0, 5)) == 0:
        sign = draw(st.sampled_from(["=", "==", "!="]))
        null = draw(st.sampled_from(["null", "NULL"]))
        return (
            name,
            column,
            f"{name}{space}{sign}{space}{null}",
            (lambda v: (v is None) == (sign != "!=")),
        )
    signs = ["=", "==", "!="] if name == "yes" else list(OPERATORS)
    sign = draw(st.sampled_from(signs))
    word = draw(literals)
    literal = meaning(word)
    return (
        name,
        column,
        f"{name}{space}{sign}{space}{word}",
        (lambda v: v is not None and OPERATORS[sign](v, literal)),
    )


@settings(max_examples=examples(600))
@given(comparisons())
def test_one_comparison_is_as_python_compares(drawn):
    name, column, text, meets = drawn
    schema = pa.schema([SCHEMA.field(name)])
    table = pa.table({name: pa.array(column, schema.field(name).type)}, schema)
    mask = Condition.parse(text, schema).mask(table)
    assert isinstance(mask, pa.BooleanArray)
    assert mask.to_pylist() == [meets(value) for value in column]


@settings(max_examples=examples(150))
@given(st.lists(comparisons(), min_size=2, max_size=4), st.sampled_from(["and", "AND", "And"]))
def test_comparisons_are_all_met(drawn, word):
    arrays, parts, expected = {}, [], [True] * 6
    for place, (name, column, text, meets) in enumerate(drawn):
        arrays[f"c{place}"] = pa.array(column, SCHEMA.field(name).type)
        parts.append(f"c{place}" + text[len(name) :])
        expected = [met and meets(v) for met, v in zip(expected, column, strict=True)]
    table = pa.table(arrays)
    condition = Condition.parse(f" {word} ".join(parts), table.schema)
    assert condition.mask(table).to_pylist() == expected


def test_chunks_and_no_records():
    table = pa.table({"n": pa.chunked_array([[1, None], [], [3]], pa.int64())})
    condition = Condition.parse("n >= 1 and n != 2", table.schema)
    assert condition.mask(table).to_pylist() == [True, False, True]
    assert condition.mask(table.slice(0, 0)).to_pylist() == []
    assert condition.mask(table).null_count == 0


def test_a_large_integer_is_not_rounded():
    table = pa.table({"n": [2**53, 2**53 + 1]})
    assert Condition.parse(f"n = {2**53}", table.schema).mask(table).to_pylist() == [True, False]
    met = Condition.parse(f"n > {2**53}.5", table.schema).mask(table)
    assert met.to_pylist() == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        "'a column'=3", '"a column" = 3', "n=3and n=4 and n=5".replace("3and", "3 and"),
        "n<-3", "n>+3", "t='and' and n=1", "t = \"it's\"", "t = 'say \"x\"'", "  n\t=\n1  ",
        "none = null", "none != null", "ms = null", "who = null",
    ],
    ids=named,
)  # fmt: skip
def test_forms_that_are_read(text):
    assert Condition.parse(text, SCHEMA).text == text


WRONG = {
    "": "empty", "   ": "empty", "n": "breaks off", "n =": "breaks off", "n = 1 and": "breaks off",
    "n = 1 n = 2": "word 4", "n = 1 or n = 2": "word 4", "= 1 n": "word 1", "n 1 =": "word 2",
    "n = = 1": "word 3", "n <> 1": "word 3", "n = 1 'and' n = 2": "word 4", "n ! 1": "without '='",
    "t = 'x": "quote", "t = \"x'": "quote", "m = 1": "which is not there",
    "t = x": "in quotes", "t = 17": "in quotes", "t = true": "in quotes",
    "n = '1'": "without quotes", "n = one": "without quotes", "n = true": "without quotes",
    "n = 2024-01-01": "without quotes", "n = nan": "without quotes", "x = inf": "without quotes",
    "x = 1e999": "at most", "x = 1e99999": "without quotes", "n = 0x10": "without quotes",
    "n = 1_000": "without quotes", "n = \uff11": "without quotes",
    "yes = 1": "one of these", "yes = 'true'": "one of these", "yes < true": "one of these",
    "day = 1": "a date", "day = 2023-02-30": "calendar", "day = 2024-01-01T10:00": "without a time",
    "day = '1/2/2024'": "a date", "at = yesterday": "a date", "at = 2024-01-01T25:00": "calendar",
    "at = 2024-01-01T10:00+02:00": "a date", "at = 2024-01-01T": "a date",
    "n < null": "expected '=' or '!='", "ms = 10": "a time of day", "ms = 24:00": "clock",
    "none = 1": "a column of",
    "t = '\ud800'": "valid Unicode",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=named)
def test_what_is_no_condition_is_refused_in_one_line(text):
    with pytest.raises(SourceError) as told:
        Condition.parse(text, SCHEMA)
    message = str(told.value)
    assert WRONG[text] in message
    assert "\n" not in message
    assert "; expected " in message


@pytest.mark.parametrize("column", SCHEMA.names)
def test_no_message_repeats_a_literal(column):
    with pytest.raises(SourceError) as told:
        Condition.parse(f"'{column}' = Bloggs", SCHEMA)
    assert "Bloggs" not in str(told.value)


def test_columns_of_tokens_are_refused():
    with pytest.raises(SourceError, match="kept as tokens"):
        Condition.parse("n = 1 and who = 'Ann'", SCHEMA, tokens=["who"])
    assert Condition.parse("n = 1", SCHEMA, tokens=["who"])


def test_a_column_twice_is_refused():
    with pytest.raises(SourceError, match="which is not there"):
        Condition.parse("n = 1", pa.schema([("n", pa.int64()), ("n", pa.int64())]))


@settings(max_examples=examples(500))
@given(st.text(st.sampled_from("nxt=!<>'\" \n1.e-+andule\\\0\u00e9"), max_size=30))
def test_any_text_is_read_or_refused_in_one_line(text):
    try:
        mask = Condition.parse(text, SCHEMA).mask(SCHEMA.empty_table())
    except SourceError as error:
        told = str(error)
    else:
        told = ""
        assert len(mask) == 0
    assert "\n" not in told


def test_times_of_a_day_are_compared_from_midnight():
    start = datetime(2024, 3, 1)
    table = pa.table({"at": pa.array([start, start + timedelta(hours=1)], pa.timestamp("us"))})
    for text, expected in [("at = 2024-03-01", [True, False]), ("at > 2024-03-01", [False, True])]:
        assert Condition.parse(text, table.schema).mask(table).to_pylist() == expected
