"""Conditions against an oracle: plain Python on plain values."""

from __future__ import annotations

import operator
import re
import sqlite3
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
        "none = null", "none != null", "ms = null", "who = null", "n <> 1", "n = 1 or n = 2",
        "3 < n", "3 < 'a column'", "'x' = t", "not (n = 1)", "((n)) = ((1))", "n in (1, 2.5, -3)",
        "\"a column\" is not null", "'a column' between 1 and 2", "t in (\"it's\", 'b')", "yes",
        "not yes and n = 1", "day = date '2024-01-01'", "at < timestamp '2024-01-01 10:00'",
        "t not like '%a%'", "t = 'n = 1 -- n'", "at in (2024-01-01, 2024-01-01T10:00)",
    ],
    ids=named,
)  # fmt: skip
def test_forms_that_are_read(text):
    assert Condition.parse(text, SCHEMA).text == text


WRONG = {
    "": "empty", "   ": "empty", "n": "an operator and a value", "n =": "breaks off",
    "n = 1 and": "breaks off", "n = 1 n = 2": "at its character 7", "= 1 n": "breaks off",
    "n 1 =": "at its character 3", "n = = 1": "at its character 5",
    "n = 1 'and' n = 2": "at its character", "n ! 1": "at its character",
    "n xor n": "at its character 3", "(n = 1": "breaks off", "n = 1)": "at its character 6",
    "t = 'x": "quote", "t = \"x'": "quote", "m = 1": "'m', which is not there",
    "t = Ann": "in quotes", "t = x": "two columns", "t = 17": "in quotes", "t = true": "in quotes",
    "t = 2024-01-01": "in quotes", "t in ('a', 3)": "in quotes", "t between 'a' and c": "in quotes",
    "n = '1'": "without quotes", "n = one": "without quotes", "n = true": "without quotes",
    "n = 2024-01-01": "without quotes", "n = nan": "without quotes", "x = inf": "without quotes",
    "n in (1, '2')": "without quotes", "n between 1 and '2'": "without quotes",
    "x = 1e999": "at most", "x = 1e99999": "without quotes", "n = 0x10": "at its character",
    "n = 1_000": "at its character", "n = \uff11": "without quotes", "n = 1e": "without quotes",
    "yes = 1": "one of these", "yes = 'true'": "one of these", "yes < true": "one of these",
    "yes between false and true": "one of these", "not t": "an operator and a value",
    "day = 1": "a date", "day = 2023-02-30": "calendar", "day = 2024-01-01T10:00": "without a time",
    "day = '1/2/2024'": "a date", "at = yesterday": "a date", "at = 2024-01-01T25:00": "calendar",
    "at = 2024-01-01T10:00+02:00": "a date", "at = 2024-01-01T": "a date",
    "n < null": "expected '=' or '!='", "ms = 10": "a time of day", "ms = 24:00": "clock",
    "none = 1": "a column of", "none in (1)": "a column of", "n like '1'": "a column of text",
    "t = '\ud800'": "valid Unicode", "t like '\ud800'": "valid Unicode",
    "t like n": "two columns", "n = b": "two columns", "b < n": "two columns",
    "n in (1, b)": "two columns", "t like 1": "in quotes", "t like null": "in quotes",
    "t like 'a!b' escape '!'": "before another character", "t like 'a!' escape '!'": "before",
    "t like 'a' escape ''": "one character", "t like 'a' escape 'ab'": "one character",
    "n in ()": "an empty list", "1 = 2": "a value in the place", "1 in (n)": "a value in the place",
    "null is null": "a value in the place", "n.b = 1": "several parts",
    '"n"."b" = 1': "several parts",
    "n = 1; n = 2": "several statements", "n = 1 -- n": "a comment", "n = 1 /* n */": "a comment",
    "-- n\nn = 1": "a comment", "lower(t) = 'a'": "a function (lower)", "f(t) = 'a'": "a function",
    "t = f(1)": "a function", "n + 1 = 2": "an operator (add)", "-n = 1": "an operator (neg)",
    "n = 1 + 1": "an operator (add)", "n = b - 1": "an operator (sub)", "n is true": "(is)",
    "n = (select 1)": "a query", "n in (select 1)": "(in)", "exists(select 1)": "(exists)",
    "t ilike 'a'": "an operator (ilike)", "t glob 'a'": "an operator (glob)",
    "t || t = 'a'": "(dpipe)",
    "case when n = 1 then true end": "a case distinction (case)",
    "n between symmetric 2 and 1": "(",
    "cast(n as text) = 'a'": "a function (cast)", "n::text = 'a'": "a function (cast)",
    "n = ?": "(placeholder)", "n = :a": "(placeholder)", "(n, b) = (1, 2)": "(tuple)",
    "n is distinct from 1": "an operator", "n = 1 = 2": "an operator (eq)",
    "t = 'a' 'b'": "a function",
    "n = any(1)": "(any)", "t like any ('a')": "(any)", "true": "(boolean)", "1": "(literal)",
    "(n = 1) is null": "(eq)", "day = cast('2024-01-01' as text)": "a function (cast)",
    "day > interval '1 day'": "(interval)", "`n` = 1": "at its character", "n = @a": "(parameter)",
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


NAMES = [
    "group", "a.b", "ward-3", "2nd", "date", "in", "and", "not", "dose(mg)", "\u00e9", "it's",
    'a "b"',
    "select", "1", "1.5", "_0", "__", "a,b", "2024-01-01", "Age", "age", "null", "true", "10:15",
    "#", "a;b",
    "--",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_that_sql_reads_otherwise(name):
    table = pa.table({"n": [0, 0, 0], name: [1, 2, None]})
    forms = [f"{quoted(name, mark)} > 1" for mark in "'\""]
    if not set(name) & set("'\" "):
        forms += [f"{name} > 1", f"n=0 and {name}>1", f"not n = 1 and {name} > 1"]
    for text in forms:
        assert Condition.parse(text, table.schema).mask(table).to_pylist() == [False, True, False]
    text = f"(n = 1 or {quoted(name, chr(34))} in (1, 3)) and n = 0"
    assert Condition.parse(text, table.schema).columns == ["n", name]
    assert Condition.parse(text, table.schema).mask(table).to_pylist() == [True, False, False]


@pytest.mark.parametrize("text", ["(" * 10_000 + "n = 1" + ")" * 10_000, "not " * 10_000 + "yes",
                                  "[" * 10_000, "n = " + "- " * 10_000 + "1",
                                  "case when " * 500 + "yes"], ids=len)  # fmt: skip
def test_what_is_nested_too_deeply_is_refused(text):
    with pytest.raises(SourceError, match="nested too deeply"):
        Condition.parse(text, SCHEMA)


def test_many_comparisons_need_no_depth():
    table = pa.table({"n": range(5)})
    text = " and ".join(f"n != {n}" for n in range(3, 4000))
    assert Condition.parse(text, table.schema).mask(table).to_pylist() == [True] * 3 + [False] * 2
    text = f"n in ({', '.join(map(str, range(3, 4000)))})"
    assert Condition.parse(text, table.schema).mask(table).to_pylist() == [False] * 3 + [True] * 2
    nested = "(" * 20 + "n = 1" + ")" * 20
    assert sum(Condition.parse(nested, table.schema).mask(table).to_pylist()) == 1


@pytest.mark.parametrize("name", ["1", "1e5", "-1", "2024-01-01", "10:15"])
def test_a_value_is_a_name_before_an_operator_alone(name):
    kind = {"2024-01-01": pa.date32(), "10:15": pa.time64("us")}.get(name, pa.int64())
    table = pa.table({"v": pa.array([None], kind), name: [True]})
    assert Condition.parse(f"v != {name}", table.schema).columns == ["v"]
    assert Condition.parse(f"{name} = true and v != {name}", table.schema).columns == [name, "v"]


def test_zeros_and_what_is_no_number():
    table = pa.table({"x": [0.0, -0.0, float("nan"), float("inf"), None]})
    for text, expected in {
        "x in (0)": [1, 1, 0, 0, 0], "x in (-0, 3)": [1, 1, 0, 0, 0],
        "x not in (0)": [0, 0, 1, 1, 0],
        "not x < 5": [0, 0, 1, 1, 0], "x != 0": [0, 0, 1, 1, 0],
        "x between 0 and 9": [1, 1, 0, 0, 0],
    }.items():  # fmt: skip
        assert Condition.parse(text, table.schema).mask(table).to_pylist() == expected


# -- the database as an oracle ---------------------------------------------------------------------

PATTERNS = st.text(st.sampled_from("aAb%_!.\\(\u00e9\U0001f600\n"), max_size=4)
CELLS = {
    "n": st.integers(-3, 3),
    "x": st.sampled_from([-1.5, -0.0, 0.0, 0.5, 1e300, float("inf")]),
    "t": st.one_of(st.sampled_from(["", "a", "A", "ab", "it's", "a%b", "a_b", "a\nb"]), PATTERNS),
    "yes": st.booleans(),
    "day": st.dates(date(2024, 2, 28), date(2024, 3, 1)),
    "at": st.sampled_from([datetime(2024, 3, 1, hour, 15 * hour) for hour in (0, 1, 2)]),
}  # fmt: skip
TYPES = {"n": "INTEGER", "x": "REAL", "t": "TEXT", "yes": "INTEGER", "day": "TEXT", "at": "TEXT"}


def for_sqlite(value):
    return value.isoformat(sep="T") if isinstance(value, datetime) else (
        str(value) if isinstance(value, date) else value)  # fmt: skip


@st.composite
def literals(draw, name):
    """Draw a literal: as we write it, and as SQLite does."""
    if draw(st.integers(0, 9)) == 0:
        return "null", "null"
    if name == "n":
        return (draw(NUMBERS.filter(lambda w: w[0] != "+")),) * 2
    value = draw(CELLS[name].filter(lambda v: v != float("inf")))
    if name == "x":
        return (repr(value),) * 2
    if name == "yes":
        return (str(value).lower(),) * 2
    written = quoted(str(for_sqlite(value)), "'")
    if name in ("day", "at"):
        word = {"day": "date", "at": "timestamp"}[name]
        forms = [written, written.strip("'"), f"{word} {written}", quoted(written[1:-1], '"')]
        return draw(st.sampled_from(forms)), written
    return draw(st.sampled_from([written, quoted(value, '"')])), written


@st.composite
def sql_tests(draw):
    name = draw(st.sampled_from(list(CELLS)))
    shown = draw(st.sampled_from([name, f'"{name}"', f"({name})"]))
    form = draw(st.sampled_from(["sign", "in", "between", "like", "null", "true", "mirrored"]))
    negated = draw(st.sampled_from(["", "not "]))
    if form == "null":
        return (f"{shown} is {negated}null",) * 2
    if form == "true":
        return ("yes",) * 2
    if form == "like":
        pattern = draw(PATTERNS)
        escaped = all(each in "%_!" for each in pattern.replace("!!", "")[1::1] if each == "!")
        text = f"t {negated}like {quoted(pattern, chr(39))}"
        whole = re.fullmatch(r"(?s)(?:[^!]|![%_!])*", pattern)
        return (f"{text} escape '!'" if whole and escaped and draw(st.booleans()) else text,) * 2
    if form == "in":
        found = draw(st.lists(literals(name), min_size=1, max_size=4))
        listed = [", ".join(each) for each in zip(*found, strict=True)]
        return tuple(f"{shown} {negated}in ({each})" for each in listed)
    if form == "between" and name != "yes":
        low, high = draw(literals(name)), draw(literals(name))
        return tuple(
            f"{shown} {negated}between {a} and {b}" for a, b in zip(low, high, strict=True)
        )
    signs = ["=", "!=", "<>", "=="] + (["<", "<=", ">", ">="] if name != "yes" else [])
    sign = draw(st.sampled_from(signs))
    ours, theirs = draw(literals(name).filter(lambda pair: pair[0] != "null"))
    if form == "mirrored" and ours[0] != '"':
        return f"{ours} {sign} {name}", f"{theirs} {sign} {name}"
    return f"{shown} {sign} {ours}", f"{shown} {sign} {theirs}"


@st.composite
def joined(draw, depth=3):
    """Draw a condition with and without parentheses: both have to know what binds tighter."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(sql_tests())
    parts = draw(st.lists(joined(depth - 1), min_size=1, max_size=3))
    words = draw(st.lists(st.sampled_from(["and", "or", "AND"]), min_size=2, max_size=2))
    around = draw(st.sampled_from(["{}", "({})", "not {}", "not ({})"]))
    texts = []
    for each in zip(*parts, strict=True):
        text = each[0]
        for word, part in zip(words, each[1:], strict=False):
            text = f"{text} {word} {part}"
        texts.append(around.format(text))
    return tuple(texts)


@settings(max_examples=examples(1000))
@given(joined(), st.data())
def test_a_condition_is_as_sqlite_reads_it(pair, data):
    ours, theirs = pair
    rows = [
        tuple(data.draw(st.none() | cells) for cells in CELLS.values())
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA case_sensitive_like = ON")
    database.execute(f"CREATE TABLE t ({', '.join(map(' '.join, TYPES.items()))})")
    kept = [tuple(map(for_sqlite, row)) for row in rows]
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", kept)
    found = database.execute(f"SELECT ({theirs}) FROM t ORDER BY rowid").fetchall()
    database.close()
    schema = pa.schema([SCHEMA.field(name) for name in CELLS])
    columns = zip(*rows, strict=True)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
    met = Condition.parse(ours, schema).mask(table)
    assert met.to_pylist() == [bool(value) for (value,) in found]


def test_columns_of_tokens_are_refused():
    with pytest.raises(SourceError, match="kept as tokens"):
        Condition.parse("n = 1 and who = 'Ann'", SCHEMA, tokens=["who"])
    assert Condition.parse("n = 1", SCHEMA, tokens=["who"])


def test_a_column_twice_is_refused():
    with pytest.raises(SourceError, match="which is not there"):
        Condition.parse("n = 1", pa.schema([("n", pa.int64()), ("n", pa.int64())]))


WORDS = [
    "n", "t", "yes", "day", "'a'", '"t"', "1", "2024-01-01", "(", ")", ",", "=", "<", "and", "or",
    "not",
    "in", "between", "like", "escape", "is", "null", "true", "case", "when", "then", "end",
    "select",
    "from", "date", "interval", "as", "*", "-", "::", ".", "cast(", "over", "array", "exists",
    "any",
    "lower(", "where", "join", "limit", "at time zone", "collate", "/*", "*/", "--", "ilike",
    "similar to",
]  # fmt: skip


@settings(max_examples=examples(500))
@given(
    st.one_of(
        st.text(
            st.sampled_from("nxt=!<>'\" \n1.e-+andule\\\0\u00e9(),[]{}*/%_;:`@#$|~"), max_size=30
        ),
        st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    )
)
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
