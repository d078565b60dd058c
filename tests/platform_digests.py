"""Print, as JSON, what is in effect here and the digests of estimators: see test_platforms.

Of those whose names are its arguments, or of all.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection

import numba
import numpy as np
from threadpoolctl import threadpool_info

from erasable.core.errors import TooFewRecordsError
from erasable.ensemble._composed import Composed
from erasable.refit import Refit
from erasable.utils._checks.compare import fit
from erasable.utils._checks.data_sets import suited
from erasable.utils.estimator_checks import LAW_DATA_SETS
from law_instances import first_instances


def digests(names: Collection[str]) -> dict[str, str]:
    """Digests after `fit` and after deletions, of each of these estimators on every data set.

    What is made of scikit-learn's estimators computes as they like, and a network as its kind of
    processor does, where there is torch at all: these are left out.
    """
    found = {}
    for estimator in first_instances():
        cls = type(estimator)
        if isinstance(estimator, Refit | Composed) or cls.__module__.startswith("erasable.neural."):
            continue
        if names and cls.__name__ not in names:
            continue
        for data in suited(LAW_DATA_SETS, estimator):
            name = f"{cls.__name__} on {data.name}"
            try:
                model = fit(estimator, data)
                found[name] = model.digest()
                model.delete(data.doomed_ids)
                found[f"{name}, after deletions"] = model.digest()
            except TooFewRecordsError:
                continue
    return found


def what_the_law_forbids() -> str:
    """Hash a product by BLAS, whose last bits depend on the machine: the negative control."""
    X = np.random.default_rng(5).normal(size=(301, 37))
    return hashlib.sha256((X.T @ X).tobytes()).hexdigest()


if __name__ == "__main__":
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    here = {
        "blas": sorted({pool.get("architecture") or "" for pool in blas}),
        "blas_threads": max((pool["num_threads"] for pool in blas), default=0),
        "numba": numba.config.CPU_NAME or "host",
        "numba_threads": numba.config.NUMBA_NUM_THREADS,
    }
    print(
        json.dumps(
            {"here": here, "product": what_the_law_forbids(), "digests": digests(sys.argv[1:])}
        )
    )
