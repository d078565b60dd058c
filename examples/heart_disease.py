"""A patient leaves a diagnosis model, with every copy of the record.

The common table of heart disease has 1,025 rows, of which 302 are distinct; the others are exact
copies. Deleting one copy leaves the effect of the others. So copies get one subject, named by a
hash of the row, and the subject is deleted as a group. The exit status is 1 if the model is then
not equal to a refit without the patient.

It needs pandas, and the data: a folder ``heart_disease`` with ``heart.csv.gz`` in the one that
ERASABLE_DATA names.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import clone

from erasable.linear_model import LogisticRegression
from erasable.model_selection import leave_one_out
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def read_visits() -> pd.DataFrame:
    """Read the table, with an id for each row and a subject for each distinct one."""
    folder = Path(os.environ.get("ERASABLE_DATA") or DATA)
    if not folder.is_dir():
        sys.exit(f"no data at {folder}; set ERASABLE_DATA to the folder that holds it")
    visits = pd.read_csv(folder / "heart_disease" / "heart.csv.gz")
    visits["subject"] = [
        f"patient-{hashlib.sha256(repr(row).encode()).hexdigest()[:8]}"
        for row in visits.itertuples(index=False)
    ]
    visits.index = [f"row-{number:04d}" for number in range(len(visits))]
    return visits


def fit(model: Any, visits: pd.DataFrame) -> Any:
    """Fit a clone; the index names the records, and a column the subjects."""
    return clone(model).fit(visits.drop(columns="target"), visits["target"], groups="subject")


def hash_of(model: Any) -> str:
    """Return the hash of a digest."""
    return str(model.digest().rpartition(":")[2])


def main() -> int:
    """Run the example; 0 if the digests were equal, 1 if not."""
    visits = read_visits()
    copies = visits["subject"].value_counts()
    patient = copies.index[0]
    print(f"{len(visits)} rows, of which {len(copies)} are distinct: let each be a patient.")

    untrained = make_pipeline(StandardScaler(), LogisticRegression())
    model = fit(untrained, visits)
    table, target = visits.drop(columns=["target", "subject"]), visits["target"]
    by_row, by_patient = leave_one_out(untrained, table, target), leave_one_out(model)
    print("\nHow often is a diagnosis right, of somebody whom the model has not seen?")
    print(f"  leaving out a row at a time      {by_row.score:.3f}  (but copies of it stay)")
    print(f"  leaving out a patient at a time  {by_patient.score:.3f}")

    never = fit(untrained, visits[visits["subject"] != patient])
    own = visits.index[visits["subject"] == patient]

    def risk(model: Any) -> float:
        return float(model.predict_proba(table.loc[own[:1]])[0, 1])

    print(f"\n{patient} is there {len(own)} times. The model tells this patient's risk as")
    print(f"  {risk(model):.4f}  before anything is deleted")
    model.delete([own[0]])
    incomplete = model.digest() != never.digest()
    print(f"  {risk(model):.4f}  after one row is deleted")
    deletion = model.delete(groups=[patient])
    complete = model.digest() == never.digest()
    print(f"  {risk(model):.4f}  after all rows of the patient are deleted")
    print(f"  {risk(never):.4f}  if it has never seen the patient")

    print("\nIs it the model that has never seen the patient?")
    print(f"  after one row is deleted  {'no' if incomplete else 'YES'}")
    print(f"  after {len(deletion.ids)} more are deleted {'yes' if complete else 'NO'}, by digest:")
    print(f"    deleted  {hash_of(model)}")
    print(f"    refit    {hash_of(never)}")
    return 0 if incomplete and complete else 1


if __name__ == "__main__":
    sys.exit(main())
