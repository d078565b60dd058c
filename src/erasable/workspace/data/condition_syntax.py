"""Syntax of conditions: SQL as sqlglot parses it, of which a whitelist of expressions is taken.

The law kept here: a condition is taken whole or refused. What is not on the whitelist, comments
included, is refused by name; a message repeats no literal, as it may be an identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, NoReturn, TypeVar

from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from erasable.core.errors import SourceError

_T = TypeVar("_T")

_MOST_NESTED = 30  # brackets and signs around each other: Python's stack holds some 45
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|['"]|[^\s'"=!<>]+""")
_WORD = re.compile(r"[^(),]+")
_OPERATOR = re.compile(r"\s*(?:[=<>]|!=)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T\S*)?")
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}(?::\S*)?")
_VALUE = re.compile(rf"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?|{_DATE.pattern}|{_CLOCK.pattern}")
_KEYWORDS = frozenset(
    ("and", "between", "escape", "false", "in", "is", "like", "not", "null", "or", "true")
)
_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOMENTS = (exp.DType.DATE, exp.DType.TIME, exp.DType.TIMESTAMP)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_PREFIXES = (*_OPENING, TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE)
_PIECES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Case, "a case distinction"),
    (exp.Anonymous, "a function"),
    (exp.Query, "a query"),
    (exp.Binary, "an operator"),
    (exp.Unary, "an operator"),
    (exp.Func, "a function"),
)
FORM = (
    "expected comparisons of a column with a value, joined by and, or, not, as in "
    "\"age >= 90 and city = 'Oslo'\""
)


class Literal(NamedTuple):
    """A value as it is written."""

    kind: str  # "text", "number", "moment" (a date or time), "word" (true, false, null) or "bare"
    word: str


def parse(
    text: str,
    names: Sequence[str],
    test: Callable[[str, str, Sequence[Literal]], _T],
    join: Callable[[str, Sequence[_T]], _T],
) -> _T:
    """Parse a condition on columns of these names; return what `test` and `join` make of it.

    `test` takes a column, an operator ("=", "!=", "<", "<=", ">", ">=", "in", "between", "like",
    "null" or "true") and its literals; the second of "like" is the escape character. `join` takes
    "and", "or" or "not", and its parts.
    """
    marked = _Marked(text, names)
    try:
        return _Reader(marked, test, join).read(_tree(marked))
    except RecursionError:
        raise _too_deep() from None


class _Marked:
    """A condition as SQL: names become words that SQL does not know, dates are quoted.

    >>> marked = _Marked("group = 'a' and at > 2026-03-01", ["group", "at"])
    >>> marked.sql
    "_0 = 'a' and _1 > timestamp '2026-03-01'"
    >>> marked.column("_1"), marked.place(13)
    ('at', 17)
    """

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self._names = names
        self._places = {name: at for at, name in enumerate(names)}
        self._mark = "_"
        while self._mark in text:
            self._mark += "_"
        self._shifts: list[tuple[int, int]] = []  # where SQL was put in, and where the text goes on
        parts, n, end = list[str](), 0, 0
        for start, stop, sql in self._changes(text):
            parts += [text[end:start], sql]
            n += start - end + len(sql)
            self._shifts.append((n, stop))
            end = stop
        self.sql = "".join([*parts, text[end:]])

    def column(self, word: str) -> str | None:
        """Return the name that a word stands for, if any."""
        number = word.removeprefix(self._mark)
        return self._names[int(number)] if number != word and number.isdecimal() else None

    def place(self, at: int) -> int:
        """Return the number of the character, from 1, that a place in the SQL came from."""
        shifts = [(sql, text) for sql, text in self._shifts if sql <= at]
        sql, text = shifts[-1] if shifts else (0, 0)
        return text + at - sql + 1

    def _changes(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the begin and end of each word to replace, and the SQL for it."""
        for piece in _PIECE.finditer(text):
            whole = piece[0]
            if whole in "'\"":
                raise SourceError(f"the condition has a quote that does not end; {FORM}")
            if whole[0] in "'\"":
                continue
            words = [piece] if self._is_name(piece) else _WORD.finditer(text, *piece.span())
            for word in words:
                if self._is_name(word):
                    yield *word.span(), f"{self._mark}{self._places[word[0]]}"
                elif _DATE.fullmatch(word[0]):
                    yield *word.span(), f"timestamp '{word[0]}'"
                elif _CLOCK.fullmatch(word[0]):
                    yield *word.span(), f"time '{word[0]}'"

    def _is_name(self, word: re.Match[str]) -> bool:
        if word[0] not in self._places:
            return False
        has_meaning = _VALUE.fullmatch(word[0]) or word[0].lower() in _KEYWORDS
        return not has_meaning or _OPERATOR.match(word.string, word.end()) is not None


def _tree(marked: _Marked) -> exp.Expr:
    sql, dialect = marked.sql, Dialect.get_or_raise(None)
    try:
        tokens = dialect.tokenize(sql)
        _check_tokens(tokens)
        parser = dialect.parser(error_level=ErrorLevel.IMMEDIATE, error_message_context=len(sql))
        found = parser.parse_into(exp.Condition, tokens, sql)
    except ParseError as error:
        place = marked.place(len(error.errors[0]["start_context"])) if error.errors else 1
        raise SourceError(
            f"the condition is no condition at its character {place}, or breaks off; {FORM}"
        ) from None
    except SqlglotError:
        raise SourceError(f"the condition cannot be divided into words; {FORM}") from None
    if len(found) != 1 or found[0] is None:
        what = "several statements" if len(found) > 1 else "nothing in it: it is empty"
        raise SourceError(f"the condition has {what}; {FORM}")
    return found[0]


def _check_tokens(tokens: Sequence[Token]) -> None:
    """Refuse comments, which would hide a part, and what is nested too deeply to parse."""
    depth = signs = 0
    for token in tokens:
        if token.comments:
            raise SourceError(f"the condition has a comment; {FORM}")
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        signs = signs + 1 if token.token_type in _PREFIXES else 0
        if max(depth, signs) > _MOST_NESTED:
            raise _too_deep()


def _too_deep() -> SourceError:
    return SourceError(
        f"the condition is nested too deeply; expected at most {_MOST_NESTED} parentheses or signs "
        "around each other"
    )


class _Reader(Generic[_T]):
    """Reads a tree of sqlglot; see `parse`."""

    def __init__(
        self,
        marked: _Marked,
        test: Callable[[str, str, Sequence[Literal]], _T],
        join: Callable[[str, Sequence[_T]], _T],
    ) -> None:
        self._marked = marked
        self._test = test
        self._join = join

    def read(self, node: exp.Expr) -> _T:
        """Read a condition."""
        node = node.unnest()
        kind = type(node)
        if kind in (exp.And, exp.Or):
            _check_parts(node, "this", "expression")
            return self._join(node.key, [self.read(part) for part in node.flatten()])
        if kind is exp.Not:
            return self._join("not", [self.read(node.this)])
        if kind in _SIGNS:
            _check_parts(node, "this", "expression")
            return self._compared(node)
        if kind is exp.In:
            _check_parts(node, "this", "expressions")
            if not node.expressions:
                raise SourceError(f"the condition has an empty list; {FORM}")
            return self._test(self._column(node.this), "in", self._literals(node.expressions))
        if kind is exp.Between:
            _check_parts(node, "this", "low", "high")
            bounds = [node.args["low"], node.args["high"]]
            return self._test(self._column(node.this), "between", self._literals(bounds))
        if kind is exp.Escape and type(node.this) is exp.Like:
            return self._like(node.this, node.expression)
        if kind is exp.Like:
            return self._like(node)
        if kind is exp.Is and type(node.expression) is exp.Null:
            return self._test(self._column(node.this), "null", [])
        if kind is exp.Column:
            return self._test(self._column(node), "true", [])
        _refuse(node)

    def _compared(self, node: exp.Expr) -> _T:
        sign, left, right = _SIGNS[type(node)], node.this.unnest(), node.expression.unnest()
        for side in (left, right):
            if not (self._may_name(side) or _is_value(side)):
                _refuse(side)
        if not self._may_name(left) or (_is_text(left) and self._is_column(right)):
            left, right, sign = right, left, _MIRRORED[sign]
        return self._test(self._column(left), sign, [self._literal(right)])

    def _like(self, node: exp.Expr, escape: exp.Expr | None = None) -> _T:
        _check_parts(node, "this", "expression", "negate")
        words = [node.expression, *([] if escape is None else [escape])]
        made = self._test(self._column(node.this), "like", self._literals(words))
        return self._join("not", [made]) if node.args.get("negate") else made

    def _is_column(self, node: exp.Expr) -> bool:
        """Tell whether a node is the name of a column, without quotes."""
        return isinstance(node, exp.Column) and self._marked.column(node.name) is not None

    def _may_name(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) or _is_text(node)

    def _column(self, node: exp.Expr) -> str:
        node = node.unnest()
        if not self._may_name(node):
            if _is_value(node):
                raise SourceError(f"the condition has a value in the place of a column; {FORM}")
            _refuse(node)
        if isinstance(node, exp.Column):
            if len(node.parts) > 1:
                raise SourceError(
                    f"the condition has a name of several parts; {FORM}, and quotes around a name "
                    "that has a point"
                )
            if not node.this.args.get("quoted"):
                return self._marked.column(node.name) or node.name
        return node.name

    def _literals(self, nodes: Sequence[exp.Expr]) -> list[Literal]:
        return [self._literal(node.unnest()) for node in nodes]

    def _literal(self, node: exp.Expr) -> Literal:
        if type(node) is exp.Neg and _is_value(node):
            return Literal("number", f"-{node.this.name}")
        if type(node) is exp.Literal:
            return Literal("text" if node.is_string else "number", node.name)
        if type(node) is exp.Null:
            return Literal("word", "null")
        if type(node) is exp.Boolean:
            return Literal("word", "true" if node.this else "false")
        if type(node) is exp.Cast and _is_value(node):
            return Literal("moment", node.this.name)
        if isinstance(node, exp.Column):
            if self._is_column(node):
                raise SourceError(f"the condition compares two columns; {FORM}")
            is_text = len(node.parts) == 1 and node.this.args.get("quoted")
            return Literal("text", node.name) if is_text else Literal("bare", "")
        _refuse(node)


def _is_text(node: exp.Expr) -> bool:
    return type(node) is exp.Literal and bool(node.is_string)


def _is_value(node: exp.Expr) -> bool:
    """Tell whether a node is a literal, with its sign or type."""
    if type(node) is exp.Neg:
        return type(node.this) is exp.Literal and not node.this.is_string
    if type(node) is exp.Cast:
        return (
            not _has_more(node, "this", "to") and node.to.this in _MOMENTS and _is_text(node.this)
        )
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)


def _check_parts(node: exp.Expr, *known: str) -> None:
    """Refuse an expression with parts that conditions have not, such as ``between symmetric``."""
    if _has_more(node, *known):
        _refuse(node)


def _has_more(node: exp.Expr, *known: str) -> bool:
    return any(part and name not in known for name, part in node.args.items())


def _refuse(node: exp.Expr) -> NoReturn:
    piece = next((piece for kind, piece in _PIECES if isinstance(node, kind)), "a piece")
    named = "" if type(node) is exp.Anonymous else f" ({node.key})"
    raise SourceError(f"the condition has {piece}{named} that conditions do not have; {FORM}")
