"""Describe models from the ledger, for lists and pages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from erasable.workspace.data import catalogue as data
from erasable.workspace.ledger.schema import measurement, model_version
from erasable.workspace.models import catalogue, policies, staleness, unused, written
from erasable.workspace.models.catalogue import Model


def models(connection: Connection) -> list[dict[str, Any]]:
    """Describe every model, sorted by name.

    A description has name, kind, estimator, state ("ready", "stale", "retired", "uncovered"),
    version, n_records, datasets (name: version), features, target, commitment, hook, policy,
    staleness (in words, or None) and created_at.
    """
    return [_described(connection, each) for each in catalogue.every(connection)]


def model(connection: Connection, name: str) -> dict[str, Any]:
    """Describe a model: what `models` says, its recipe, versions, and what erasures cost.

    Besides, `columns` has what is done with which columns first, by name; `left_out` has the
    columns that it does not learn from, with their types, and `others_targets` its features that
    other models predict, with their names.
    """
    found = catalogue.find(connection, name)
    v, m = model_version.c, measurement.c
    versions = select(
        v.number, v.cause, v.n_records, v.seconds, v.software, v.created_at, v.superseded_at
    )
    costs = select(m.kind, m.n_records, m.n_deleted, m.seconds, m.at)
    made = connection.execute(versions.where(v.model_id == found.id).order_by(v.number))
    took = connection.execute(costs.where(m.model_id == found.id).order_by(m.id))
    datasets = [data.get(connection, each) for each in found.datasets]
    return {
        **_described(connection, found),
        "left_out": unused.left_out(datasets, found.features, found.target),
        "others_targets": unused.targets_of_others(connection, name, datasets, found.features),
        "columns": written.by_columns(found.recipe) if found.kind == "estimator" else {},
        "recipe": found.recipe,
        "versions": [each._asdict() for each in made],
        "measurements": [each._asdict() for each in took],
    }


def _described(connection: Connection, found: Model) -> dict[str, Any]:
    version = catalogue.current(connection, found)
    described = [data.get(connection, each) for each in found.datasets]
    used = [None] * len(described) if version is None else version.dataset_versions
    behind = staleness.of(connection, found)
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
        "policy": None if version is None else policies.of(found),
        "staleness": None if behind is None else behind.words,
        "created_at": found.created_at,
    }
