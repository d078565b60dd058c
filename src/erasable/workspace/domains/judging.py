"""Judging of models: how they do on each group of records, before a removal and after.

The law kept here: a model is judged by records of its own version of the data, and by fresh ones; a
model that cannot be judged is named, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import is_classifier, is_regressor

import erasable.workspace.locking as locking
from erasable.core.errors import WorkspaceError
from erasable.removal import RemovalReport, measure, removal_report
from erasable.removal.evaluation import GROUPS
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue as data
from erasable.workspace.data.conditions import Condition
from erasable.workspace.domains.holdout import sample_rows
from erasable.workspace.domains.planning import RemovalPlan, columns_of
from erasable.workspace.models import catalogue
from erasable.workspace.models.deleting import design_of
from erasable.workspace.models.model_columns import ModelColumns, target_of
from erasable.workspace.models.training import from_bytes
from erasable.workspace.models.using import open_model

MOST = 10_000
"""Records of a group that a model is judged by, drawn by their ids where there are more."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The effect of a removal on a model."""

    model: str
    report: RemovalReport | None  # None if the model cannot be judged
    remarks: tuple[str, ...]  # why it cannot, or what the report does not show


class Judge:
    """The judge of one live model: made before a removal, asked after it."""

    def __init__(self, context: Context, plan: RemovalPlan, name: str) -> None:
        self._site, self._plan, self.name = context, plan, name
        self.remarks: list[str] = []
        self._before: Any = None
        self._model, self._version, stored = open_model(context, name)
        design = design_of(self._model)
        self._fitted: Any = None if design is None else from_bytes(stored)
        reason = unfit(design, self._fitted)
        if design is None or reason is not None:
            self.remarks.append(f"not judged: {reason}")
            return
        self._design = design
        self._groups, self._label = self._grouped()
        try:
            self._before = measure(self._fitted, self._groups, forget_label=self._label)
        except ValueError as error:  # also of scikit-learn's own
            raise WorkspaceError(
                f"the model {name!r} cannot be judged: {_line(error)}; nothing was changed"
            ) from error

    def after(self, updated: bool) -> Judged:
        """Judge the model as it is now; raise nothing, because the records are gone by now.

        `updated` says whether the removal made a new version of the model.
        """
        if self._before is None:
            return Judged(self.name, None, tuple(self.remarks))
        try:
            _, version, stored = open_model(self._site, self.name)
            if version.number != self._version.number + updated:
                self.remarks.append("another command changed the model meanwhile")
            report = removal_report(
                self._before, from_bytes(stored), self._groups, forget_label=self._label
            )
        except Exception as error:  # whatever it is, the records are gone, and that is to be said
            return Judged(self.name, None, (*self.remarks, f"not judged: {_line(error)}"))
        return Judged(self.name, report, tuple(self.remarks))

    def _grouped(self) -> tuple[dict[str, Any], Any]:
        """Return records and targets by group, and the label of the domain if it is one class."""
        table = self._trained_on()
        known = self._plan.known
        forget = self._plan.predicate.mask(table)
        ids = table[known.id_column].to_pylist()
        gone = set(self._plan.ids)
        leaves = np.fromiter((name in gone for name in ids), bool, len(ids))
        stays = ~forget
        where = self._plan.retain_where
        if where is not None:
            stays &= Condition.parse(where, table.schema).mask(table).to_numpy(False)
        found: dict[str, Any] = dict.fromkeys(GROUPS)
        masks = {"deleted forget": leaves, "kept forget": forget & ~leaves, "retain": stays}
        for name, mask in masks.items():
            found[name] = self._group(table, np.flatnonzero(mask), ids, name)
        self._add_fresh(found)
        return found, self._label_of(table, forget)

    def _trained_on(self) -> pa.Table:
        known, plan = self._plan.known, self._plan
        numbers = dict(zip(self._model.datasets, self._version.dataset_versions, strict=True))
        number = numbers[known.id]
        if number != known.version:
            self.remarks.append(f"stale: fitted on version {number}, newest {known.version}")
        wanted = [
            known.id_column, *plan.predicate.columns(known.schema, known.subject_columns),
            *columns_of(plan.retain_where, known), *self._design.features, str(self._design.target),
        ]  # fmt: skip
        with self._site.ledger.reading() as connection:
            table = data.read_version(
                self._site, connection, known.id, number, list(dict.fromkeys(wanted))
            )
        return table.sort_by(known.id_column)

    def _group(self, table: pa.Table, rows: Any, ids: list[Any] | None, name: str) -> Any:
        if rows.size > MOST:
            names = ids if ids is not None else list(range(table.num_rows))
            self.remarks.append(f"{name}: judged by {MOST:,} of {rows.size:,} records, drawn by id")
            rows = sample_rows(names, rows, MOST, 0)
        if not rows.size:
            return None
        part = table.take(rows)
        return self._design.given(part), target_of([(self._plan.known, part)], self._design.target)

    def _add_fresh(self, found: dict[str, Any]) -> None:
        fresh = self._plan.fresh
        if fresh is None:
            return
        if fresh.dataset_id in self._model.datasets:
            self.remarks.append(
                "no record is fresh: the model was trained on those that were named"
            )
            return
        usable = self._design.complete(fresh.table, self._fitted)
        if not usable.all():
            n = int((~usable).sum())
            self.remarks.append(f"{n:,} fresh records have missing values, and were left out")
        for name, mask in (("fresh forget", fresh.forget), ("fresh retain", ~fresh.forget)):
            rows = np.flatnonzero(mask & usable)
            found[name] = self._group(fresh.table, rows, None, name)

    def _label_of(self, table: pa.Table, forget: Any) -> Any:
        """Return the class of the domain, where all of it is of one."""
        if not is_classifier(self._fitted) or not forget.any():
            return None
        part = table.take(np.flatnonzero(forget))
        labels = np.unique(np.asarray(target_of([(self._plan.known, part)], self._design.target)))
        return labels[0] if labels.size == 1 else None


def make_judges(context: Context, plan: RemovalPlan) -> list[Judge]:
    """Measure every live model of a data set, before a removal."""
    with context.ledger.reading() as connection:
        concerned = catalogue.models_of(connection, [plan.known.id])
        names = [each.name for each in concerned if each.is_live]
    with context.lock(reads=locking.models(names) or locking.datasets([plan.known.name])):
        return [Judge(context, plan, name) for name in names]


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def unfit(design: ModelColumns | None, fitted: Any) -> str | None:
    """Say why a model cannot be judged, None where it can."""
    if design is None:
        return "a program of its own made it"
    if design.target is None or not (is_classifier(fitted) or is_regressor(fitted)):
        return "it predicts no target"
    return None
