"""Members of an ensemble as a file holds them: brought back, checked, or fitted again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier

from erasable.core._schema import Anything, Decimal, DictOf, Fields, Flag, Part, Sizes, Text, refuse
from erasable.core._schema_arrays import Array
from erasable.core._schema_models import classes, refuse_unbounded
from erasable.core.arrays import Ints
from erasable.core.errors import ArtifactError
from erasable.core.estimator import Erasable
from erasable.core.params import function_path
from erasable.core.records import Records
from erasable.core.stateful import Stateful
from erasable.core.tape import Tape
from erasable.ensemble._allotment import Allotment
from erasable.ensemble._members import Member
from erasable.ensemble._own import restored_own
from erasable.ensemble._plan import of_one_class
from erasable.refit._part import same
from erasable.refit._recipe import Recipe, not_of_records


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


def restored(
    state: dict[str, Any],
    *,
    recipe: Recipe,
    tape: Tape,
    columns: Ints | None,
    n_features: int,
    labels: NDArray[Any] | None,
) -> Member:
    """Rebuild a member from what `Member.state` gave.

    `recipe`, `n_features` and `labels` are the ensemble's; `columns` is None for all. The member
    has no estimator where that must be fitted again. Raise ArtifactError if it knows other classes
    than the ensemble, or can be neither checked nor fitted again.
    """
    tree, text, size = state["fitted"], state["text_columns"].tolist(), state["size"]
    if columns is not None:
        recipe, n_features = recipe.on(columns), columns.size
    if labels is not None and _is_of_one_class(tree):
        recipe = of_one_class(recipe)
    if isinstance(recipe.template, Erasable):
        made: Member = restored_own(state, recipe, tape, columns, n_features)
    else:
        found = recipe.restored(tree, text, tape, n_features)
        made = Member(tree, text, size, state["record_set"], columns, found)
    if labels is not None and made.estimator is not None:
        known = set(labels.tolist())
        if not known.issuperset(np.asarray(made.estimator.classes_).tolist()):
            raise _odd("a member that knows other classes")
    return made


def have_their_records(
    members: Mapping[int, Member], allotment: Allotment, records: Records
) -> bool:
    """Tell whether the members with records, and no others, have those that are allotted to them.

    It looks no further than the first that differs: a file can name any number of members.
    """
    n_found = 0
    for number in allotment.members():
        share = allotment.share(number)
        if not share.rows.size:
            continue
        own = members.get(number)
        if own is None or own.size != share.size(records.weights):
            return False
        if not np.array_equal(own.record_set, share.record_set(records.ids)):
            return False
        n_found += 1
    return n_found == len(members)


def refuse_other_members(
    read: Mapping[int, Member], learned: Mapping[int, Member | None], owner: str
) -> None:
    """Raise ArtifactError where members that were fitted again are not those of the file."""
    for number, member in learned.items():
        if member is None or not same(member.state(), read[number].state()):
            raise not_of_records(owner)


def _is_of_one_class(tree: Mapping[str, Any]) -> bool:
    if tree.get("class") != function_path(DummyClassifier):
        return False
    return np.size(tree["attributes"]["classes_"]) == 1


def _odd(what: str) -> ArtifactError:
    return ArtifactError(
        f"the file holds {what}; expected an ensemble as save() writes it; fit and save again"
    )
