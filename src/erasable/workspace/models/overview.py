"""Descriptions of models from the ledger, for lists and pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from erasable.workspace.data import catalogue as data
from erasable.workspace.data.catalogue import get
from erasable.workspace.ledger.schema import dataset_version, measurement, model_version
from erasable.workspace.models import catalogue, verified
from erasable.workspace.models.catalogue import Model


@dataclass(frozen=True, slots=True)
class Staleness:
    """Changes of the data sets of a model since the versions that it learned from.

    Erasures and corrections are not counted: the model has followed them.

    >>> Staleness("risk", 2, 10, 0, 1).words
    '10 added, 1 removed'
    >>> Staleness("risk", 1, None, None, None).words
    '1 version behind'
    """

    model: str
    n_versions: int  # that it is behind
    # records, summed over the versions; None if an earlier erasable did not count
    n_added: int | None
    n_changed: int | None
    n_removed: int | None

    @property
    def words(self) -> str:
        """The counts in words."""
        if self.n_added is None:
            return f"{self.n_versions} version{'' if self.n_versions == 1 else 's'} behind"
        told = [
            f"{n:,} {verb}"
            for n, verb in (
                (self.n_added, "added"),
                (self.n_changed, "changed"),
                (self.n_removed, "removed"),
            )
            if n
        ]
        return ", ".join(told) or "no record differs"


def staleness_of(connection: Connection, model: Model) -> Staleness | None:
    """Return how far a model is behind; None if it is not, or cannot be."""
    version = catalogue.current(connection, model) if model.is_live else None
    if version is None:
        return None
    v = dataset_version.c
    behind, counts = 0, [0, 0, 0]
    known = True
    for id, used in zip(model.datasets, version.dataset_versions, strict=True):
        newest = get(connection, id).version
        if newest == used:
            continue
        behind += newest - used
        later = (v.dataset_id == id) & (v.number > used) & (v.number <= newest)
        columns = (v.n_added, v.n_changed, v.n_removed)
        told = connection.execute(
            select(func.count(v.n_added), *(func.sum(each) for each in columns)).where(later)
        ).one()
        known &= told[0] == newest - used
        counts = [a + int(b or 0) for a, b in zip(counts, told[1:], strict=True)]
    if not behind:
        return None
    return Staleness(model.name, behind, *(counts if known else (None, None, None)))


def is_stale(connection: Connection, model: Model) -> bool:
    """Tell whether a model learned from an earlier version of a data set."""
    return staleness_of(connection, model) is not None


def stale_models(connection: Connection) -> list[Staleness]:
    """Return how far each stale model is behind, sorted by name."""
    found = (staleness_of(connection, each) for each in catalogue.every(connection))
    return [each for each in found if each is not None]


def models(connection: Connection) -> list[dict[str, Any]]:
    """Describe every model, sorted by name; see `Workspace.models`."""
    return [_described(connection, each) for each in catalogue.every(connection)]


def model(connection: Connection, name: str) -> dict[str, Any]:
    """Describe a model; see `Workspace.model`."""
    from erasable.workspace.models import unused, written  # import scikit-learn

    found = catalogue.find(connection, name)
    v, m = model_version.c, measurement.c
    versions = select(
        v.number, v.cause, v.n_records, v.seconds, v.software, v.created_at, v.superseded_at
    )
    costs = select(m.kind, m.n_records, m.n_deleted, m.seconds, m.at)
    own = (v.model_id == found.id) & (v.number >= verified.first_version(connection, found))
    made = connection.execute(versions.where(own).order_by(v.number))
    own = (m.model_id == found.id) & (m.at >= found.created_at)
    took = connection.execute(costs.where(own).order_by(m.id))
    datasets = [data.get(connection, each) for each in found.datasets]
    return {
        **_described(connection, found),
        "left_out": unused.left_out(datasets, found.features, found.target),
        "others_targets": unused.targets_of_others(connection, name, datasets, found.features),
        "columns": written.by_columns(found.recipe) if found.kind == "estimator" else {},
        "recipe": found.recipe,
        "verified": verified.line(connection, found),
        "versions": [each._asdict() for each in made],
        "measurements": [each._asdict() for each in took],
    }


def _described(connection: Connection, found: Model) -> dict[str, Any]:
    from erasable.workspace.models import written  # imports scikit-learn

    version = catalogue.current(connection, found)
    described = [data.get(connection, each) for each in found.datasets]
    used = [None] * len(described) if version is None else version.dataset_versions
    behind = staleness_of(connection, found)
    state = found.state if behind is None else "stale"
    recipe = found.recipe
    named = recipe.get("estimator") or recipe.get("entry") or recipe.get("command") or ""
    params = recipe.get("params", {})
    if found.kind == "estimator" and isinstance(named, str):  # made of parts
        part = {"estimator": named, "params": params}
        named, params = written.chain(part), written.settings(part)
    return {
        "name": found.name,
        "kind": found.kind,
        "estimator": " -> ".join(named) if isinstance(named, list) else named,
        "params": params,
        "state": state,
        "version": found.version,
        "n_records": None if version is None else version.n_records,
        "datasets": {each.name: number for each, number in zip(described, used, strict=True)},
        "features": found.features,
        "target": found.target,
        "commitment": None if version is None else version.commitment,
        "hook": found.hook,
        "policy": None if version is None else catalogue.policy_of(found),
        "staleness": None if behind is None else behind.words,
        "created_at": found.created_at,
    }
