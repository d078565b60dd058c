"""What the members in the file of an ensemble must be, but for what scikit-learn has fitted."""

from __future__ import annotations

from typing import Any

from erasable.core._schema import Anything, Decimal, DictOf, Fields, Flag, Part, Sizes, Text, refuse
from erasable.core._schema_arrays import Array
from erasable.core._schema_models import classes, refuse_unbounded
from erasable.core.stateful import Stateful

__all__ = ["ensemble_schema"]


def ensemble_schema(model: Stateful, n_members: int, *, classifies: bool) -> Fields:
    """Return the schema of an ensemble of at most so many members."""
    refuse_unbounded(model)
    n_records, n_features = int(model._info.n_records or 0), model.n_features_in_

    def be_of_the_ensemble(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        for name in value["members"]:
            if not (name.isdecimal() and name == str(int(name)) and int(name) < n_members):
                refuse(f"members.{name}", "a value", f"members from 0 to {n_members - 1}")
        if not value["members"]:
            refuse("members", "no fields", "a member or more")

    member = {
        "fitted": Anything(),
        "record_set": Array("uint64", (2,)),
        "size": Decimal(least=2.0**-1000),
        "text_columns": Array("int64", (None,), least=0, most=n_features - 1, ascending=True),
    }
    parts: dict[str, Part] = {"members": DictOf(Fields(member)), "scikit_learn": Text()}
    if classifies:
        parts["classes"] = classes(n_records, every=False)
    return Fields(parts, {"weighted": Flag((True,))}, (be_of_the_ensemble,))
