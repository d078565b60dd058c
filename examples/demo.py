"""The main job on the command line: 20 people leave a data set and four models, provably.

The data are scikit-learn's breast-cancer measurements, used as three visits of each of 190
patients, with days, sites and missing values. Lines that start with $ are the commands. The exit
status is 1 if a check finds a difference.
"""

from __future__ import annotations

import csv
import os
import shlex
import sys
import tempfile
from contextlib import ExitStack, redirect_stdout
from datetime import date, timedelta
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from erasable.cli.app import app

VISITS_EACH = 3
SITES = ("north", "south", "harbour")
GAPS_EVERY = 97
LEAVING = [f"patient-{number:03d}" for number in range(5, 185, 9)]

STORY = [
    "init",
    "dataset add visits visits.csv --id visit --subject patient",
    "model fit segments --dataset visits --estimator cluster.KMeans -p n_clusters=3",
    "model fit risk --dataset visits --target malignant"
    " --estimator linear_model.LogisticRegression",
    "model fit bayes --dataset visits --target malignant --estimator naive_bayes.GaussianNB",
    "model fit forest --dataset visits --target malignant"
    " --estimator sklearn.ensemble.RandomForestClassifier",
    "request --file leaving.txt",
    "process",
    "verify",
    "receipt show {request} --output receipt.json",
    "key > key.pem",
    "receipt check receipt.json --key key.pem",
]


def write_visits(path: Path) -> int:
    """Write the measurements as visits of patients; return how many there are."""
    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["visit", "patient", "seen", "site", *names, "malignant"])
        for number, (row, target) in enumerate(zip(data.data, data.target, strict=True)):
            patient = f"patient-{number // VISITS_EACH:03d}"
            seen, site = date(2024, 1, 1) + timedelta(number), SITES[number % len(SITES)]
            measured = [
                "" if (number + place) % GAPS_EVERY == 0 else value
                for place, value in enumerate(row)
            ]
            writer.writerow(
                [f"visit-{number:04d}", patient, seen, site, *measured, int(target == 0)]
            )
    return len(data.data)


def run(line: str) -> int:
    """Run one command of `erasable` as a shell would, and return its exit status."""
    command, _, target = line.partition(" > ")
    with ExitStack() as stack:
        if target:
            stack.enter_context(redirect_stdout(stack.enter_context(open(target, "w"))))
        try:
            app(shlex.split(command), prog_name="erasable")
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def first_request(workspace: Path) -> str:
    """Return the id of a request that was completed."""
    from erasable.workspace import Workspace

    return Workspace.open(workspace).requests(["completed"])[0].id


def tell(folder: Path) -> int:
    """Run the commands in a folder; return the first exit status that is not 0."""
    write_visits(folder / "visits.csv")
    (folder / "leaving.txt").write_text("\n".join(LEAVING) + "\n")
    request = None
    for line in STORY:
        if "{request}" in line:
            request = request or first_request(folder)
            line = line.format(request=request)
        print(f"$ erasable {line}", flush=True)
        status = run(line)
        print(flush=True)
        if status:
            return status
    return 0


def main() -> int:
    """Run the demonstration in a temporary folder."""
    print("(The first run on a machine compiles kernels for a minute.)\n")
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return tell(Path(folder))
        finally:
            os.chdir(before)


if __name__ == "__main__":
    sys.exit(main())
