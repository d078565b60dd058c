"""Holders of records: read from all of the data, and compared with the ledger's index.

The law kept here: every token in the records of a data set is an identity of the ledger, and is
held in the bucket where its records are. An erasure would miss people whom the index lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from sqlalchemy import Connection, select

from erasable.core.errors import WorkspaceDiskError, WorkspaceError, WorkspaceServerError
from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.admission import tokens_in, tokens_of
from erasable.workspace.data.catalogue import (
    DataSet,
    FragmentRow,
    all_datasets,
    fragment_rows,
    record_type,
)
from erasable.workspace.data.gone_subjects import unheld
from erasable.workspace.ledger.bulk import rows_in, values_held
from erasable.workspace.ledger.schema import fragment, holding, identity, vacated


def tokens_held(context: Context, connection: Connection, tokens: Mapping[str, str]) -> set[str]:
    """Return which tokens any version of any data set holds; every fragment is read.

    `tokens` maps tokens of people, or of records (see
    `erasable.workspace.data.catalogue.record_type`), to types.
    """
    found: set[str] = set()
    for known in all_datasets(connection):
        named = record_type(known.name)
        of_records = {token for token, kind in tokens.items() if kind == named}
        columns = known.subject_columns + ([known.id_column] if of_records else [])
        fragments_of = fragment_rows(connection, known.id) if tokens and columns else []
        with context.progress(f"looking through {known.name}", len(fragments_of)) as advance:
            for part in fragments_of:
                table = fragments.read(context, part.key, part.sha256, columns)
                for column in known.subject_columns:
                    found.update(tokens.keys() & tokens_in(table[column]))
                if of_records:
                    ids = table[known.id_column].to_pylist()
                    found.update(of_records.intersection(context.keys.tokens(named, ids)))
                advance()
    return found


def missing_in_index(
    context: Context, connection: Connection, tokens: Mapping[str, str], found_elsewhere: Set[str]
) -> set[str]:
    """Return which tokens are in the data where the index lacks them.

    The bucket of a person, as the first subject of a data set, follows from the token. It is read
    in each data set where the index does not have the token there. People who are in other columns
    alone are found by `compare_index_with_data`. `found_elsewhere` are tokens of people with other
    records: they need not wait for a damaged data set in which the index does not have them.
    """
    found: set[str] = set()
    for known in all_datasets(connection):
        kind = known.subjects[0][1] if known.subjects else None
        of_kind = {token for token, of in tokens.items() if of == kind}
        at = {token: fragments.bucket_of(token, known.n_buckets) for token in of_kind}
        wanted = of_kind - _indexed(connection, known.id, at)
        buckets = {at[token] for token in wanted}
        for part in fragment_rows(connection, known.id) if buckets else []:
            if part.bucket in buckets:
                try:
                    found |= wanted & tokens_of(context, part, known)
                except (WorkspaceDiskError, WorkspaceServerError):
                    raise
                except WorkspaceError:
                    if not {t for t in wanted if at[t] == part.bucket} <= found_elsewhere:
                        raise
    return found


def _indexed(connection: Connection, dataset_id: int, at: Mapping[str, int]) -> set[str]:
    """Return the tokens that the index has in their own buckets."""
    query = select(holding.c.token, holding.c.bucket).where(holding.c.dataset_id == dataset_id)
    rows = rows_in(connection, query, holding.c.token, sorted(at))
    return {row.token for row in rows if at[row.token] == row.bucket}


def compare_index_with_data(context: Context) -> list[str]:
    """Return a line for each fault of the index of people; read every fragment.

    Errors of the disk or the server are raised.
    """
    found = []
    with context.ledger.reading() as connection:
        for known in all_datasets(connection):
            if known.subjects:
                found += _compare(context, connection, known)
        nobody = set(unheld(connection))
        if nobody and not found:
            found.append(f"{_HOLDS.format(n=len(nobody))}; {_ADVICE[_is_to_tidy(connection)]}")
    return found


_HOLDS = "the ledger holds {n} pseudonyms of people of whom no record is left"
_ADVICE = {
    True: "expected none; run `erasable process`, which removes them",
    False: "expected none; restore the ledger from a backup",
}


def _is_to_tidy(connection: Connection) -> bool:
    return connection.execute(select(vacated.c.bucket).limit(1)).first() is not None


def _compare(context: Context, connection: Connection, known: DataSet) -> list[str]:
    query = select(holding.c.token, holding.c.bucket).where(holding.c.dataset_id == known.id)
    index = {(token, bucket) for token, bucket in connection.execute(query)}
    tokens: set[str] = set()
    missed: set[str] = set()
    seen: set[tuple[str, int]] = set()
    found = []
    for part in fragment_rows(connection, known.id):
        try:
            own = tokens_of(context, part, known)
        except (WorkspaceDiskError, WorkspaceServerError):
            raise
        except WorkspaceError as error:
            if _is_still_used(context, part):  # and not replaced by a process at work beside us
                found.append(f"data set {known.name!r}: {error}")
            continue
        missed |= {token for token in own if (token, part.bucket) not in index}
        tokens |= own
        seen |= {(token, part.bucket) for token in own}
    missed |= tokens - values_held(connection, identity.c.token, tokens)
    if missed:
        found.append(
            f"data set {known.name!r} has records of {len(missed)} of its {len(tokens)} people "
            "that the ledger does not know to be there: their erasure would miss them; restore "
            "the ledger from a backup"
        )
    elif not found and index - seen:
        n = len({token for token, _ in index - seen})
        found.append(
            f"data set {known.name!r}: {_HOLDS.format(n=n)} where it says; "
            f"{_ADVICE[_is_to_tidy(connection)]}"
        )
    return found


def _is_still_used(context: Context, part: FragmentRow) -> bool:
    with context.ledger.reading() as connection:
        kept = select(fragment.c.id).where(fragment.c.key == part.key)
        return connection.execute(kept).first() is not None
