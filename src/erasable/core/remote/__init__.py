"""Records whose blocks are in the memory of other processes: the workers of a cluster.

A `BlockSource` is the origin of the records of a block, and `Workers` sends jobs to processes;
another engine than Dask implements these two. `remote_table` has workers read the sources, and
makes a matrix of them, to which `erasable.core.passes.run` sends whole passes.
"""

from typing import Any

from erasable.core._optional import needs
from erasable.core.remote._jobs import BlockSource, Job, do
from erasable.core.remote._table import remote_table
from erasable.core.remote._workers import Workers

__all__ = ["BlockSource", "Job", "Workers", "dask_workers", "do", "remote_table"]


def dask_workers(cluster: Any) -> Workers:
    """Return the workers of a Dask cluster, by a client or the address of a scheduler.

    Raise ClusterError if it does not answer, or its workers have other versions.
    """
    with needs("dask", "a cluster"):
        from erasable.core.remote._dask import workers_of  # which imports dask

    return workers_of(cluster)
