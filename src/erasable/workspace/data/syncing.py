"""Bring a data set up to date with its source: what is new, changed or gone there."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, delete, insert, select, update

from erasable.workspace.data import fragments, nobody
from erasable.workspace.data.admission import admit, conform, read_source
from erasable.workspace.data.catalogue import DataSet, Part, find, get, parts
from erasable.workspace.data.datasets import Change, keep, put_part, record_version
from erasable.workspace.data.sources import Source
from erasable.workspace.ledger.schema import fragment, garbage, model, model_version
from erasable.workspace.site import Site

__all__ = ["drop_unused", "sync"]


@dataclass(slots=True)
class _Bucket:
    """A bucket whose records differ from those of the source."""

    number: int
    before: pa.Table
    after: pa.Table


def sync(site: Site, name: str, source: Source) -> Change:
    """Make the next version of a data set from its source, whole.

    Records of suppressed subjects that are still in the source are dropped.

    Parameters
    ----------
    site : Site
    name : str
    source : Source
        All of the records, not only those that are new.

    Returns
    -------
    Change
        Of the version as it was where nothing has changed.

    Raises
    ------
    SourceError, InvalidIdsError
        See `erasable.workspace.data.datasets.add`.
    """
    with site.lock():
        site.clean()
        with site.ledger.reading() as connection:
            known = find(connection, name)
            present = parts(connection, known.id, known.version)
        raw, known = conform(read_source(source, known.id_column, known.subjects), known)
        records, tokens, n_suppressed = admit(site, known, raw)
        differing = _compare(site, known, present, records)
        n_added, n_changed, n_removed = _count(differing, known.id_column)
        told = nobody.count(records, known), nobody.remarks(raw, known)
        if not differing:
            return Change(name, known.version, records.num_rows, 0, 0, 0, n_suppressed, *told)
        version = known.version + 1
        stored = []
        with site.progress(f"writing {name}", len(differing)) as advance:
            for each in differing:
                if each.after.num_rows:
                    stored.append(put_part(site, known, each.number, each.after))
                advance()
        change = Change(
            name, version, records.num_rows, n_added, n_changed, n_removed, n_suppressed, *told
        )
        numbers = {each.number for each in differing}
        ended = [part.id for part in present if part.bucket in numbers]
        with site.ledger.transaction() as connection:
            if ended:
                connection.execute(
                    update(fragment).where(fragment.c.id.in_(ended)).values(until=version)
                )
            record_version(site, connection, known.id, "sync", change, known)
            keep(connection, known.id, version, stored, tokens)
            drop_unused(connection, known.id)
        site.clean()
    return change


def drop_unused(connection: Connection, dataset_id: int) -> int:
    """Let go of fragments that neither the newest version nor a model needs; return how many."""
    wanted = {get(connection, dataset_id).version}
    query = select(model.c.datasets, model_version.c.dataset_versions).join(
        model_version,
        (model_version.c.model_id == model.c.id) & (model_version.c.number == model.c.version),
    )
    for datasets, versions in connection.execute(query.where(model.c.state == "ready")):
        wanted |= {v for d, v in zip(datasets, versions, strict=True) if d == dataset_id}
    unused = [
        part
        for part in parts(connection, dataset_id)
        if not any(part.belongs_to(version) for version in wanted)
    ]
    if unused:
        connection.execute(delete(fragment).where(fragment.c.id.in_([part.id for part in unused])))
        connection.execute(insert(garbage), [{"key": part.key} for part in unused])
    return len(unused)


def _compare(site: Site, known: DataSet, present: list[Part], records: pa.Table) -> list[_Bucket]:
    columns = [name for name, _ in known.columns]
    empty = records.select(columns).slice(0, 0)
    new = dict(
        fragments.partition(records, known.id_column, known.subject_columns, known.n_buckets)
    )
    old: dict[int, list[Part]] = {}
    for part in present:
        old.setdefault(part.bucket, []).append(part)
    differing = []
    for number in sorted(new.keys() | old.keys()):
        read = [fragments.read(site, part.key, part.sha256) for part in old.get(number, [])]
        before = pa.concat_tables([each.cast(known.schema) for each in read]) if read else empty
        before = before.sort_by(known.id_column).select(columns)
        after = new.get(number, empty).select(columns)
        if not before.equals(after):
            differing.append(_Bucket(number, before, after))
    return differing


def _count(differing: list[_Bucket], id_column: str) -> tuple[int, int, int]:
    """Count the records that are new, changed and gone, wherever they were and are."""
    if not differing:
        return 0, 0, 0
    before = pa.concat_tables([each.before for each in differing])
    after = pa.concat_tables([each.after for each in differing])
    stayed = pc.is_in(after[id_column], before[id_column])
    n_stayed = pc.sum(stayed).as_py() or 0
    left = before.filter(pc.is_in(before[id_column], after[id_column])).sort_by(id_column)
    right = after.filter(stayed).sort_by(id_column)
    same = None
    for a, b in zip(left.columns, right.columns, strict=True):
        equal = pc.or_(pc.fill_null(pc.equal(a, b), False), pc.and_(pc.is_null(a), pc.is_null(b)))
        same = equal if same is None else pc.and_(same, equal)
    n_same = (pc.sum(same).as_py() or 0) if same is not None else 0
    return after.num_rows - n_stayed, n_stayed - n_same, before.num_rows - n_stayed
