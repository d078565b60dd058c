"""Plans of removals: the records that would leave, and what that would achieve and concern."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, hstack, issparse
from sklearn.decomposition import TruncatedSVD
from sqlalchemy import Connection, select

import erasable.workspace.locking as locking
from erasable.core.errors import (
    InvalidDataError,
    InvalidIdsError,
    InvalidInputError,
    WorkspaceError,
)
from erasable.removal import Certificate, Cost, DomainRemoval, Sweep, sweep
from erasable.removal.budgets import as_budget
from erasable.removal.scores import as_score
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue
from erasable.workspace.data.catalogue import DataSet, record_type
from erasable.workspace.data.conditions import Condition
from erasable.workspace.data.features import (
    NUMBERS,
    TEXT,
    check_columns,
    check_fill,
    default_columns,
    fill_gaps,
    matrix,
    positive_column,
    refuse_gaps,
)
from erasable.workspace.domains.holdout import Fresh, alike, read_fresh, sample_rows
from erasable.workspace.domains.predicates import Predicate
from erasable.workspace.ledger.schema import request
from erasable.workspace.ledger.states import WAITING
from erasable.workspace.models.catalogue import models_of
from erasable.workspace.requests.batches import gather_batch
from erasable.workspace.requests.preview import Preview, preview


def choose_features(
    types: dict[str, str],
    named: Sequence[str] | None,
    column: str | None,
    learned: Collection[str] = (),
    others: Collection[str | None] = (),
) -> tuple[str, ...]:
    """Choose the columns that records are compared by; `types` has neither ids nor subjects.

    They are the ones named; or `column`, the one with keywords; or those `learned` by models; or,
    without models, every numeric column; or the one of text. `others`, such as columns of costs,
    are features only if they are named.

    >>> choose_features({"text": "string", "label": "string"}, None, None, others={"label"})
    ('text',)
    >>> types = {"age": "int64", "dose": "double", "note": "string"}
    >>> choose_features(types, None, None), choose_features(types, None, None, {"note", "age"})
    (('age', 'dose'), ('age', 'note'))
    """
    if named is not None:
        if not named:
            raise WorkspaceError("features name no column; expected one or more")
        check_columns(types, named)
        return tuple(named)
    if column is not None:
        check_columns(types, [column])
        return (column,)
    numbers, texts = default_columns(types, others), default_columns(types, others, [TEXT])
    seen = [name for name in types if name in learned and name in (*numbers, *texts)]
    if seen:
        return tuple(seen)
    if numbers:
        return tuple(numbers)
    if len(texts) == 1:
        return tuple(texts)
    raise WorkspaceError(
        f"no column of numbers is left to compare records by, and {len(texts)} of text, beside "
        "ids, subjects and those of the condition; expected numbers, or one of text; name some "
        "with --features"
    )


def make_vectors(table: pa.Table, features: Sequence[str], components: int | None = None) -> Any:
    """Make float64 vectors of records, of shape (n_records, n_columns); with text a csr_array.

    `table` has the records of both domains: numbers are scaled, and words weighted, by all of it.
    `components` reduces words to this many numbers. The same records in the same order have the
    same vectors.

    >>> import pyarrow as pa
    >>> make_vectors(pa.table({"age": [1, 3]}), ["age"]).tolist()
    [[-1.0], [1.0]]
    >>> texts = pa.table({"text": ["two words", "one two", "three words"]})
    >>> make_vectors(texts, ["text"]).shape, make_vectors(texts, ["text"], components=2).shape
    ((3, 4), (3, 2))
    """
    parts = []
    numbers = [name for name in features if str(table[name].type) != TEXT]
    if components is not None and len(numbers) == len(features):
        raise WorkspaceError(
            "components are asked for, and there is no text among what records are compared by; "
            "expected a column of text; name one with --features, or leave components out"
        )
    if numbers:
        refuse_gaps(table, numbers)
        parts.append(matrix(table, numbers))
    for name in features:
        if name not in numbers:
            words = _weighted(table[name].to_pylist(), name)
            parts.append(words if components is None else _reduced(words, components, name))
    if components is not None:
        return np.column_stack(parts)
    if len(parts) == 1:
        return parts[0]
    return csr_array(hstack(parts, format="csr"))


def _weighted(texts: Sequence[str | None], name: str) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        made = TfidfVectorizer().fit_transform([text or "" for text in texts])
    except ValueError:  # an empty vocabulary
        raise InvalidDataError(
            f"the column {name!r} has no word of two letters or more; expected text; name another "
            "with --features"
        ) from None
    return csr_array(made)


def _reduced(words: Any, components: int, name: str) -> Any:
    most = min(words.shape) - 1
    if isinstance(components, bool) or not isinstance(components, int) or components < 1:
        raise WorkspaceError(
            f"components={str(components)[:40]}; expected a whole number, 1 or more; pass 100"
        )
    if components > most:
        raise WorkspaceError(
            f"components={components}, and the {words.shape[1]} words of {name!r} in "
            f"{words.shape[0]} records have {most} at most; expected no more; pass {most}"
        )
    return TruncatedSVD(components, random_state=0).fit_transform(words)


@dataclass(frozen=True)
class RemovalPlan:
    """A removal that was planned and not carried out; it holds records in memory."""

    dataset: str
    version: int
    n_records: int
    n_forget: int  # in the domain
    n_retain: int  # other records that the domain was contrasted with
    ids: list[Any] = field(repr=False)  # first to delete first
    removal: DomainRemoval  # fitted
    features: tuple[str, ...]
    components: int | None
    left_out: tuple[str, ...]  # other columns of numbers or text; empty if features were named
    certificate: Certificate | None
    uncertified: str | None  # why there is no certificate
    # records of the domain that stay and equal, except for ids and subjects, one that leaves
    n_copies: int
    preview: Preview
    fresh: Fresh | None
    warnings: list[str]
    predicate: Predicate
    retain_where: str | None
    state: tuple[str, ...] = field(repr=False)
    known: DataSet = field(repr=False)
    vectors: tuple[Any, Any] = field(repr=False)  # of forget and retain, as they were compared

    def sweep(
        self, scores: Iterable[str], budgets: Any = None, *, metric: Any = None, seeds: Any = 6
    ) -> Sweep:
        """Compare scores by a metric of what is left; see `erasable.removal.sweep`."""
        for score in scores:
            _refuse_words(score, self.vectors[0])
        return sweep(list(scores), budgets, metric, *self.vectors, seeds=seeds)


def _refuse_words(score: Any, vectors: Any) -> None:
    """Refuse a score that needs a covariance, for sparse vectors of words."""
    if issparse(vectors) and getattr(as_score(score), "metric", None) == "mahalanobis":
        raise WorkspaceError(
            f"score={score!r} needs a covariance, and words have too many columns for one; "
            "expected components of them, or a cosine score; pass components=100, on the command "
            "line --components 100"
        )


def plan(
    context: Context,
    dataset: str,
    *,
    where: str | None = None,
    keywords: Sequence[str] | None = None,
    column: str | None = None,
    features: Sequence[str] | None = None,
    components: int | None = None,
    fill: str | None = None,
    score: Any = "density-ratio",
    budget: Any = None,
    cost: str | None = None,
    retain_where: str | None = None,
    retain_sample: int | None = None,
    fresh: str | None = None,
    delta: float = 0.05,
    random_state: int = 0,
) -> RemovalPlan:
    """Choose the records by which a domain would leave a data set; see `Workspace.plan_removal`."""
    as_score(score)
    check_fill(fill)
    predicate = Predicate.of(where, keywords, column)
    amount = _amount(cost, budget)
    with context.lock(reads=locking.datasets([dataset])), context.ledger.reading() as connection:
        known = catalogue.find(connection, dataset)
        state = state_of(connection, known)
        models = [each for each in models_of(connection, [known.id]) if each.is_live]
        learned = {name for each in models for name in each.features or ()}
        others = [
            *predicate.columns(known.schema, known.subject_columns),
            *columns_of(retain_where, known),
        ]
        chosen, left_out = _features(known, features, column, cost, learned, others)
        table = catalogue.read_version(context, connection, known.id)
    table = table.sort_by(known.id_column)
    given = None if fresh is None else read_fresh(context, fresh, known, table, predicate)
    mask = predicate.mask(table)
    forget = np.flatnonzero(mask)
    retain = _retained(table, known, mask, retain_where, retain_sample, random_state)
    _refuse_few(forget.size, retain.size, mask.size, known.name)
    compared = table.take(np.concatenate([forget, retain]))
    numbers = [name for name in chosen if str(compared[name].type) != TEXT]
    compared, messages = fill_gaps(compared, numbers, fill)
    both = make_vectors(compared, chosen, components)
    _refuse_words(score, both)
    if cost is not None:
        budget = Cost(positive_column(table, cost)[forget], amount)
    removal = DomainRemoval(score, budget=budget, delta=delta, random_state=random_state)
    vectors = both[: forget.size], both[forget.size :]
    names = table[known.id_column].take(forget).to_pylist()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        removal.fit(*vectors)
        certificate, uncertified = _certified(removal, issparse(both), components)
    ids = [names[row] for row in removal.selected_.tolist()]
    foreseen = preview(context, [(tokens_of(context, known.name, ids), None)])
    _refuse_confused(foreseen, len(ids), known)
    with context.ledger.reading() as connection:
        held = count_on_hold(context, connection, known, table.take(forget[removal.selected_]))
    messages = [*messages, *(on_hold(each, n) for each, n in held.items())]
    return RemovalPlan(
        known.name, known.version, table.num_rows, int(forget.size), int(retain.size), ids,
        removal, chosen, components, left_out, certificate, uncertified,
        _copies(table, known, forget, forget[removal.selected_]),
        foreseen, given, [*messages, *_user_warnings(raised)], predicate, retain_where, state,
        known, vectors,
    )  # fmt: skip


def tokens_of(context: Context, dataset: str, ids: Sequence[Any]) -> list[tuple[str, str]]:
    """Return what a request for some records asks for."""
    kind = record_type(dataset)
    return [(kind, token) for token in context.keys.tokens(kind, ids) if token is not None]


def on_hold(request: str, n: int) -> str:
    """Warn of records that would leave though a request on hold asks for them."""
    return (
        f"{n} of the records that would leave are asked for by request {request}, which is on "
        "hold: they would leave with the domain; look why it is on hold first"
    )


def count_on_hold(
    context: Context, connection: Connection, known: DataSet, records: pa.Table
) -> dict[str, int]:
    """Count the records that each request on hold asks for, by its id; others are left out.

    The subjects in `records` are tokens, as the data set keeps them.
    """
    waiting = request.c.state.in_(WAITING) & request.c.hold.is_not(None)
    rows = connection.execute(select(request).where(waiting)).all()
    batch = gather_batch(context, connection, rows, locking.datasets([known.name]))
    own = context.keys.tokens(record_type(known.name), records[known.id_column].to_pylist())
    columns = [own, *(records[column].to_pylist() for column in known.subject_columns)]
    counts = Counter(
        each
        for row in zip(*columns, strict=True)
        for each in {asked for token in row for asked in batch.tokens.get(token, ())}
    )
    for each, condition in batch.conditions.get(known.id, []):
        counts[each] += sum(condition.mask(records).to_pylist())
    return {each: n for each, n in sorted(counts.items()) if n}


def state_of(connection: Connection, known: DataSet) -> tuple[str, ...]:
    """Return what changes whenever a record of the newest version does."""
    return tuple(part.key for part in catalogue.fragment_rows(connection, known.id, known.version))


def _amount(cost: str | None, budget: Any) -> float:
    if cost is None:
        if budget is not None:
            as_budget(budget)
        return 0.0
    if isinstance(budget, bool) or not isinstance(budget, int | float):
        raise WorkspaceError(
            "costs came without an amount; expected a number as the budget: how much the records "
            "may cost together"
        )
    return float(budget)


def _features(
    known: DataSet,
    features: Sequence[str] | None,
    column: str | None,
    cost: str | None,
    learned: set[str],
    others: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    own = {known.id_column, *known.subject_columns}
    types = {name: kind for name, kind in known.columns if name not in own}
    if cost is not None and types.get(cost) not in NUMBERS:
        there = [repr(name) for name, kind in types.items() if kind in NUMBERS]
        raise WorkspaceError(
            f"there is no column of numbers {cost[:60]!r}; expected one of what each record costs, "
            f"of {', '.join(there[:20]) or 'which there is none'}"
        )
    chosen = choose_features(types, features, column, learned, {*others, cost})
    usable = [name for name, kind in types.items() if kind in (*NUMBERS, TEXT)]
    free = [name for name in usable if name not in {*others, cost, *chosen}]
    return chosen, tuple(free) if features is None else ()


def columns_of(where: str | None, known: DataSet) -> list[str]:
    """Return the columns of a condition, checked."""
    if where is None:
        return []
    return Condition.parse(where, known.schema, known.subject_columns).columns


def _retained(
    table: pa.Table, known: DataSet, mask: Any, where: str | None, n: int | None, seed: int
) -> Any:
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 2):
        raise WorkspaceError(f"retain_sample is {str(n)[:40]}; expected 2 records or more")
    stays = ~mask
    if where is not None:
        stays &= Condition.parse(where, table.schema).mask(table).to_numpy(False)
    rows = np.flatnonzero(stays)
    return rows if n is None else sample_rows(table[known.id_column].to_pylist(), rows, n, seed)


def _refuse_few(n_forget: int, n_retain: int, n_records: int, name: str) -> None:
    if n_forget < 2:
        raise WorkspaceError(
            f"the domain has {n_forget} of the {n_records} records of {name!r}; expected 2 or "
            "more, which make a distribution; correct what tells them, or erase a single record "
            "with `erasable request --where`"
        )
    if n_retain < 2:
        raise WorkspaceError(
            f"{n_retain} of the {n_records} records of {name!r} are to stay, beside {n_forget} of "
            "the domain; expected 2 or more to hold them against; correct what tells them, or "
            "erase all of the domain with `erasable request --where`"
        )


def _refuse_confused(foreseen: Preview, n: int, known: DataSet) -> None:
    """Refuse ids that differ by blanks alone, say: the workspace would take one for the other."""
    if foreseen.n_records != n:
        raise InvalidIdsError(
            f"the ids of {n} chosen records name {foreseen.n_records} of {known.name!r}, because "
            f"some of the column {known.id_column!r} differ by blanks or in form alone; expected "
            "ids that stay apart; rename them in the source, and add it anew"
        )


def _user_warnings(raised: Sequence[Any]) -> list[str]:
    """Return what users are to know, each once; deprecations are for developers."""
    users = (each for each in raised if issubclass(each.category, UserWarning))
    return list(dict.fromkeys(str(each.message) for each in users))


def _certified(
    removal: DomainRemoval, sparse: bool, components: int | None
) -> tuple[Certificate | None, str | None]:
    if sparse:
        return None, "vectors of words are sparse, and no covariance of them is fitted"
    if components is not None:
        return None, "components are fitted to the very records that would be certified"
    try:
        return removal.certificate_, None
    except InvalidInputError as error:
        return None, str(error).partition(";")[0]


def _copies(table: pa.Table, known: DataSet, forget: Any, selected: Any) -> int:
    own = {known.id_column, *known.subject_columns}
    (numbers,) = alike([table], [name for name in table.column_names if name not in own])
    kept = np.setdiff1d(forget, selected)
    return int(np.isin(numbers[kept], numbers[selected]).sum())
