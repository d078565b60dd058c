"""Data of visits, and erasures without requests, for the tests of models in a workspace."""

from __future__ import annotations

import io
import math

import pyarrow as pa
import pyarrow.compute as pc

import erasable
import operations
from erasable.workspace.data import catalogue as data
from erasable.workspace.data import fragments
from erasable.workspace.data.sources import Source
from erasable.workspace.evidence import seals
from erasable.workspace.ledger import schema
from erasable.workspace.models import catalogue, deleting, versions

COLUMNS = ["visit", "patient", "age", "dose", "treated", "ward", "note", "sick", "cost"]
WARDS = ["north", "south", "east"]


def visit(i):
    """Values of a visit: what each column holds follows from its number."""
    age = 20 + (i * 37) % 61
    dose = round(math.sin(i) * 3, 3)
    sick = "yes" if (age + 10 * dose + (i * 13) % 17) > 55 else "no"
    note = f"word{i % 7} word{i % 11} common"
    return [f"v{i}", f"p{i // 3}", age, dose, "true" if i % 2 else "false",
            WARDS[i % 3], note, sick, round(age * 1.5 + dose, 3)]  # fmt: skip


def rows_of_visits(numbers, columns=COLUMNS):
    lines = [",".join(columns)]
    for i in numbers:
        values = dict(zip(COLUMNS, visit(i), strict=True))
        lines.append(",".join(str(values[name]) for name in columns))
    return "\n".join(lines) + "\n"


def found(context, name):
    """Return the model and its version in use."""
    with context.ledger.reading() as connection:
        model = catalogue.find(connection, name)
        return model, catalogue.current(connection, model)


def loaded(context, name):
    return erasable.load(io.BytesIO(context.store.open(found(context, name)[1].stored)))


def prepared(context, name, ids, dataset=1):
    model, version = found(context, name)
    return deleting.prepare_model(context, model, version, {dataset: list(ids)})


def erased(context, name, ids, dataset=1):
    """Take records out of a model and adopt it; the data set keeps them."""
    made = prepared(context, name, ids, dataset)
    with context.ledger.transaction() as connection:
        deleting.adopt(context, connection, made, context.now())
    return made


def take_out_of_data(context, ids, dataset=1):
    """Rewrite the fragments of a data set without some records."""
    with context.ledger.reading() as connection:
        known = data.get(connection, dataset)
        parts = data.fragment_rows(connection, dataset)
    for part in parts:
        table = fragments.read(context, part.key, part.sha256)
        leaves = pc.is_in(table[known.id_column], pa.array(ids, table[known.id_column].type))
        kept = table.filter(pc.invert(leaves))
        stored = fragments.write(context, known.name, kept)
        with context.ledger.transaction() as connection:
            connection.execute(
                schema.fragment.update()
                .where(schema.fragment.c.id == part.id)
                .values(key=stored.key, sha256=stored.sha256, n_records=kept.num_rows)
            )
            seals.put(context, connection, "dataset", dataset)


def written_down(context):
    """Have the log say of every model what its rows are now: another version made it so."""
    with context.ledger.transaction() as connection:
        for model in catalogue.every(connection):
            versions.log_model(context, connection, "model-updated", model.name, context.now())


def add_visits(context, folder, name, numbers, columns=COLUMNS, subjects=(("patient", "id"),)):
    path = folder / f"{name}.csv"
    path.write_text(rows_of_visits(numbers, columns))
    source = Source.parse(str(path), None)
    operations.add(context, name, source, id_column="visit", subjects=list(subjects))


def keys_in(context):
    return set(context.store.list())
