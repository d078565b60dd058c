"""Records whose blocks are in the memory of other processes: the workers of a cluster.

A `BlockSource` says where the records of a block come from, and `Workers` how processes are asked;
another engine than Dask implements these two. `remote_table` has workers read the
sources, and makes a matrix of them to which `erasable.core.passes.run` hands whole passes.
"""

from typing import Any

from erasable.core.remote._jobs import BlockSource, Job, do
from erasable.core.remote._table import remote_table
from erasable.core.remote._workers import Workers

__all__ = ["BlockSource", "Job", "Workers", "dask_workers", "do", "remote_table"]


def dask_workers(cluster: Any) -> Workers:
    """Return the workers of a Dask cluster.

    Parameters
    ----------
    cluster : distributed.Client or str
        A client, or the address of a scheduler.

    Raises
    ------
    ClusterError
        It does not answer, or its workers have other versions.

    Examples
    --------
    >>> dask_workers("nowhere")
    Traceback (most recent call last):
    erasable.core.errors.ClusterError: no cluster answers at 'nowhere'; expected the address ...
    """
    from erasable.core.remote._dask import workers_of  # which imports dask

    return workers_of(cluster)
