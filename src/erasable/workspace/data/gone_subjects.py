"""People without a record left: their tokens leave the ledger.

The law kept here: a person of whom no file of data holds a record has no token in the ledger, but
on the suppression list. Records go by an erasure, which knows at once whom it leaves without any,
or with a file that neither the newest version of a data set nor a model needs. Then the bucket is
noted as vacated, and looked through afterwards; corrections that wait lose the records of that
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow.compute as pc
from sqlalchemy import Connection, delete, insert, select

from erasable.workspace.context import Context
from erasable.workspace.data import waiting_corrections
from erasable.workspace.data.admission import tokens_in, tokens_of
from erasable.workspace.data.catalogue import fragment_rows, get
from erasable.workspace.data.erasing import Erasure
from erasable.workspace.evidence import seals
from erasable.workspace.identity.subjects import subjects_of
from erasable.workspace.ledger.bulk import delete_in, insert_missing, rows_in, values_held
from erasable.workspace.ledger.schema import (
    IN_USE,
    fragment,
    garbage,
    holding,
    identity,
    model,
    model_version,
    vacated,
)


def find_leavers(context: Context, erasure: Erasure) -> None:
    """Note which tokens an erasure takes out of which buckets."""
    known = erasure.dataset
    if not known.subjects or not erasure.found:
        return
    with context.ledger.reading() as connection:
        every_part = fragment_rows(connection, known.id)
    found = {each.part.id: each for each in erasure.found}
    for bucket in {each.part.bucket for each in erasure.found}:
        gone: set[str] = set()
        stay: set[str] = set()
        for part in every_part:
            if part.bucket != bucket:
                continue
            if part.id not in found:
                stay |= tokens_of(context, part, known)
                continue
            each = found[part.id]
            kept = each.table.filter(pc.invert(each.leaves))
            for column in known.subject_columns:
                gone.update(tokens_in(each.table[column].filter(each.leaves)))
                stay.update(tokens_in(kept[column]))
        erasure.vacated[bucket] = gone - stay


def forget_holdings(connection: Connection, dataset_id: int, gone: Mapping[int, set[str]]) -> None:
    """Forget that tokens are in buckets."""
    for bucket, tokens in gone.items():
        at = (holding.c.dataset_id == dataset_id) & (holding.c.bucket == bucket)
        delete_in(connection, holding.c.token, sorted(tokens), at)


def forget_unheld(connection: Connection, tokens: Iterable[str]) -> int:
    """Forget the people, of these tokens, of whom no data set holds a record; count their tokens.

    All tokens of such a person go, linked ones too.
    """
    asked = set(tokens)
    gone = asked - values_held(connection, holding.c.token, asked)
    subjects = set(subjects_of(connection, gone).values())
    owned = select(identity.c.subject).join(holding, holding.c.token == identity.c.token)
    there = {row.subject for row in rows_in(connection, owned, identity.c.subject, subjects)}
    return delete_in(connection, identity.c.subject, sorted(subjects - there))


def note_vacated(connection: Connection, dataset_id: int, buckets: Iterable[int]) -> None:
    """Note buckets that lost files, to be looked through by `tidy`."""
    wanted = sorted(set(buckets))
    if wanted:
        rows = {"dataset_id": [dataset_id] * len(wanted), "bucket": wanted}
        insert_missing(connection, vacated, rows)


def drop_unused(context: Context, connection: Connection, dataset_id: int) -> int:
    """Drop fragments that neither the newest version nor a model needs; return how many.

    Their buckets are noted for `tidy`.
    """
    wanted = {get(connection, dataset_id).version}
    query = select(model.c.datasets, model_version.c.dataset_versions).join(model_version, IN_USE)
    for datasets, versions in connection.execute(query.where(model.c.state == "ready")):
        wanted |= {v for d, v in zip(datasets, versions, strict=True) if d == dataset_id}
    unused = [
        part
        for part in fragment_rows(connection, dataset_id)
        if not any(part.belongs_to(version) for version in wanted)
    ]
    if unused:
        delete_in(connection, fragment.c.id, [part.id for part in unused])
        connection.execute(insert(garbage), [{"key": part.key} for part in unused])
        note_vacated(connection, dataset_id, [part.bucket for part in unused])
        seals.put(context, connection, "dataset", dataset_id)
    return len(unused)


def tidy(context: Context, dataset_ids: Iterable[int] | None = None) -> int:
    """Look through vacated buckets; forget people without a record; return how many tokens went.

    Hold locks of the data sets: no record may come in meanwhile. By default all data sets are
    looked through, and people in no bucket are forgotten, too.
    """
    with context.ledger.reading() as connection:
        wanted = list(connection.execute(select(vacated)).all())
    n = 0
    for dataset_id in sorted({row.dataset_id for row in wanted}):
        if dataset_ids is None or dataset_id in set(dataset_ids):
            buckets = {row.bucket for row in wanted if row.dataset_id == dataset_id}
            n += _tidy(context, dataset_id, buckets)
    if wanted and dataset_ids is None:
        with context.ledger.transaction() as connection:
            n += forget_unheld(connection, unheld(connection))
    return n


def unheld(connection: Connection) -> list[str]:
    """Return the tokens of people without a record in the index."""
    owners = select(identity.c.subject).join(holding, holding.c.token == identity.c.token)
    query = select(identity.c.token).where(identity.c.subject.not_in(owners))
    return list(connection.execute(query.order_by(identity.c.token)).scalars())


def _tidy(context: Context, dataset_id: int, buckets: set[int]) -> int:
    with context.ledger.reading() as connection:
        known = get(connection, dataset_id)
        every_part = fragment_rows(connection, dataset_id)
        present = [part for part in every_part if part.bucket in buckets]
        narrowed = waiting_corrections.narrow(context, connection, known, every_part)
        at = (holding.c.dataset_id == dataset_id) & holding.c.bucket.in_(sorted(buckets))
        stale: dict[int, set[str]] = {bucket: set() for bucket in buckets}
        for row in connection.execute(select(holding.c.token, holding.c.bucket).where(at)):
            stale[row.bucket].add(row.token)
    with context.progress(f"looking through {known.name}", len(present)) as advance:
        for part in present:
            stale[part.bucket] -= tokens_of(context, part, known)
            advance()
    with context.ledger.transaction() as connection:
        waiting_corrections.adopt(context, connection, narrowed)
        forget_holdings(connection, dataset_id, stale)
        at = (vacated.c.dataset_id == dataset_id) & vacated.c.bucket.in_(sorted(buckets))
        connection.execute(delete(vacated).where(at))
        return forget_unheld(connection, set().union(*stale.values()))
