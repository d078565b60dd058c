"""Records made of partitions that workers read and keep."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.core.errors import ClusterError, InvalidDataError
from erasable.core.inputs import RecordArrays
from erasable.core.remote._jobs import BlockSource, ColumnLayout, Drop, Job
from erasable.core.remote._loading import Collect, Describe, Keep, collected
from erasable.core.remote._matrix import RemoteMatrix
from erasable.core.remote._workers import Workers, asked, placed
from erasable.core.stored_table import Uses, joint_type, kinds_of, refuse_others


def remote_table(workers: Workers, sources: Sequence[BlockSource], uses: Uses) -> RecordArrays:
    """Make a table of a source for each block, whose matrix is a `RemoteMatrix`.

    It raises the errors of `erasable.Records.from_dask`.
    """
    token = secrets.token_hex(8)
    names = list(workers.threads())
    if not names:
        raise ClusterError("the cluster has no workers; expected one or more; start some")
    where = placed(range(len(sources)), names, token)
    try:
        return _table(workers, token, sources, where, uses)
    except BaseException:
        with contextlib.suppress(ClusterError, OSError):
            workers.ask({name: Drop(token) for name in names})
        raise


def _table(
    workers: Workers,
    token: str,
    sources: Sequence[BlockSource],
    where: Mapping[int, str],
    uses: Uses,
) -> RecordArrays:
    own: dict[str, list[int]] = {}
    for number, worker in where.items():
        own.setdefault(worker, []).append(number)
    told: dict[int, tuple[pa.Schema, int, int]] = _all(
        workers,
        {
            worker: Describe(token, {number: sources[number] for number in numbers})
            for worker, numbers in own.items()
        },
    )
    schema = _schema(told)
    chosen = uses.chosen(schema, "the partitions")
    kind = np.dtype(joint_type(schema, chosen))
    layout = ColumnLayout(chosen, uses.others, kind, kinds_of(schema, chosen))
    hashes: dict[int, str] = _all(
        workers,
        {worker: Keep(token, layout, dict.fromkeys(numbers)) for worker, numbers in own.items()},
    )
    pad = secrets.randbits(128)
    told_rest = _all(workers, {worker: Collect(token, pad) for worker in own}, True)
    rest = {number: collected(data, pad, number) for number, data in told_rest.items()}
    order = range(len(sources))
    sizes = [told[number][1] for number in order]
    matrix = RemoteMatrix(
        workers, token, layout, sources, [hashes[number] for number in order], sizes, where
    )

    def read(name: str) -> pa.ChunkedArray:
        columns = [rest[number][name] for number in order if sizes[number]]
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks])

    return uses.table(matrix, schema, chosen, read, "the partitions")


def _all(workers: Workers, jobs: Mapping[str, Job], aside: bool = False) -> dict[int, Any]:
    """Return the answers of workers for each block; no worker may be lost yet."""
    answers = asked(workers, jobs, aside)
    if len(answers) < len(jobs):
        raise ClusterError(
            f"{len(jobs) - len(answers)} workers were lost while they read partitions; expected "
            "them to stay: the partitions may be too large for their memory; try "
            'frame.repartition(partition_size="100MB"), or workers with more memory'
        )
    return {number: told for answer in answers.values() for number, told in answer.items()}


def _schema(told: Mapping[int, tuple[pa.Schema, int, int]]) -> pa.Schema:
    """Return the columns of all partitions; those without rows have no types."""
    filled = [number for number in sorted(told) if told[number][1]]
    if not filled:
        raise InvalidDataError("the partitions hold no rows; expected one or more")
    schema = told[filled[0]][0]
    for number in filled[1:]:
        refuse_others(
            schema, told[number][0], f"partition {number + 1}", "convert them: frame.astype(...)"
        )
    return schema
