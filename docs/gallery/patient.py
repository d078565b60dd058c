# %% [markdown]
# # A patient leaves a risk model
#
# A patient comes to a clinic several times, and each visit is a row of the table. Deleting one
# visit leaves most of what the model knows about the patient. Deleting the patient leaves nothing.
#
# The patients are the 569 of scikit-learn's breast cancer data. Their visits are simulated: one to
# eight visits each, whose measurements vary a little.

# %%
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

from erasable.audit import equality
from erasable.linear_model import LogisticRegression
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.workspace import Workspace

data = load_breast_cancer(as_frame=True)
rng = np.random.default_rng(0)
visits_of = rng.integers(1, 9, size=len(data.data))
patients = np.repeat([f"patient-{i:03d}" for i in range(len(data.data))], visits_of)
X = data.data.loc[np.repeat(data.data.index, visits_of)]
X *= rng.normal(1, 0.02, size=X.shape)
X.index = [f"visit-{i:04d}" for i in range(len(X))]
y = pd.Series(data.target_names[np.repeat(data.target, visits_of)], X.index)
X.iloc[:6, :4].assign(patient=patients[:6], diagnosis=y[:6])

# %% [markdown]
# ## Train, with patients as groups
#
# The index of the frame is the id of each visit. `groups` says to whom a visit belongs.

# %%
model = make_pipeline(StandardScaler(), LogisticRegression(C=10.0))
model.fit(X, y, groups=patients)
print(f"{len(X):,} visits of {len(visits_of)} patients")

# %% [markdown]
# ## Delete visit by visit
#
# These are the six patients with eight visits about whom the model is least certain. For each of
# them, a copy of the model deletes one visit after another, and predicts the risk at their first
# visit after each deletion.

# %%
many = [name for name, count in pd.Series(patients).value_counts().items() if count == 8]
first_visits = X[~pd.Series(patients, X.index).duplicated()].set_axis(pd.unique(patients))
malignant = list(model.classes_).index("malignant")
risk = pd.Series(model.predict_proba(first_visits)[:, malignant], first_visits.index)
unsure = (risk[many] - 0.5).abs().nsmallest(6).index


def risks(patient):
    """Return the risk of a patient after each deletion of one of their visits."""
    own = X[patients == patient]
    copy = make_pipeline(StandardScaler(), LogisticRegression(C=10.0)).fit(X, y, groups=patients)
    found = [copy.predict_proba(own[:1])[0, malignant]]
    for visit in own.index:
        copy.delete([visit], digest=False)
        found.append(copy.predict_proba(own[:1])[0, malignant])
    return found


paths = {patient: risks(patient) for patient in unsure}
figure, axes = plt.subplots(figsize=(7, 3.4))
for patient, path in paths.items():
    axes.plot(path, "o-", markersize=4, label=patient)
axes.set(xlabel="visits deleted", ylabel="risk that the model predicts", ylim=(0, 1))
axes.legend(frameon=False, fontsize=8, bbox_to_anchor=(1, 1))
plt.show()

# %% [markdown]
# One deletion changes little, because the other visits say the same. Only with the last visit does
# the prediction become that of a model that has never seen the patient.
#
# ## Delete the patient
#
# One call deletes all visits of a patient.

# %%
leaving = unsure[0]
deletion = model.delete(groups=[leaving])
deletion

# %% [markdown]
# `equality` trains the model again on the remaining records and compares the digests.

# %%
stays = patients != leaving
never_seen = make_pipeline(StandardScaler(), LogisticRegression(C=10.0))
never_seen.fit(X[stays], y[stays], groups=patients[stays])
print(equality(model))
print("the model that never saw the patient is the same:", model.digest() == never_seen.digest())

# %% [markdown]
# ## The same as a request, with a receipt
#
# In a workspace the patient asks once. The request is carried out in the data set and in each model
# that was trained on it, and a signed receipt says so. It names no person.

# %%
with tempfile.TemporaryDirectory() as folder:
    X.assign(patient=patients, diagnosis=y).to_csv(f"{folder}/visits.csv", index_label="visit")
    workspace = Workspace.create(f"{folder}/clinic")
    workspace.add_dataset("visits", f"{folder}/visits.csv", id_column="visit", subjects=["patient"])
    workspace.fit(
        "risk", "linear_model.LogisticRegression", datasets=["visits"], target="diagnosis"
    )
    (request,) = workspace.request([leaving])
    workspace.process()
    receipt = workspace.receipt(request.id)
receipt

# %% [markdown]
# ## Copies distort validation, too
#
# If visits of one patient are on both sides of a split, a model is tested on people whom it knows.
# Nearest neighbours show this best.

# %%
nearest = make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=1))
by_visit = cross_val_score(nearest, X, y, cv=KFold(5, shuffle=True, random_state=0)).mean()
by_patient = cross_val_score(nearest, X, y, groups=patients, cv=GroupKFold(5)).mean()
print(f"accuracy {by_visit:.3f} if visits are split, {by_patient:.3f} if patients are split")

# %% [markdown]
# ## What to take from it
#
# - **Delete the person, not the row.** Pass `groups` at `fit`, and delete by group. If the table
#   does not name the person, group equal rows: `table.groupby(list(table.columns)).ngroup()`.
# - **Look for copies before you delete**: `table.duplicated().sum()` counts them.
# - **Split by person when you validate.**
# - On the command line, `erasable dataset add visits visits.csv --id visit --subject patient`
#   names the person, and `erasable request patient-049` deletes all their visits. The script
#   `examples/heart_disease.py` does this for a public table in which 302 patients are 1,025 rows.
