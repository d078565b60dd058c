"""What an earlier commit wrote, kept in this folder: digests, files of models, a workspace.

``python tests/before/written.py`` writes all of it anew. Do so only where a change of what is
written is meant: the tests here say that nothing else has changed.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "compositions"), str(HERE.parent / "workspace")]

from grammar import KEPT, Sentence, Writer, build, leaves  # noqa: E402
from sklearn.base import clone  # noqa: E402

import erasable  # noqa: E402
from erasable.core.errors import ArtifactError, ErasableError  # noqa: E402
from erasable.ensemble._composed import Composed  # noqa: E402
from erasable.refit import Refit  # noqa: E402
from erasable.utils._checks.data_sets import STANDARD, suited  # noqa: E402
from law_instances import first_instances  # noqa: E402

__all__ = ["DIGESTS", "MODELS", "PEOPLE", "WORKSPACE", "cases", "digests", "digests_of", "fitted"]

DIGESTS, MODELS, WORKSPACE = HERE / "digests.json", HERE / "models.zip", HERE / "workspace.tar.gz"
SENTENCES = KEPT
PEOPLE = ["marker-patient-3", "marker-patient-5"]
"""The first was erased before the backup was made; the second asked, and waits."""


def estimators() -> Iterator[tuple[str, Any, Any]]:
    """Yield a name, an estimator of erasable's own, and a data set for it."""
    data = [each for each in STANDARD if each.name in ("separated", "duplicated rows")]
    # Those that were there then.
    names = {name.split()[1] for name in json.loads(DIGESTS.read_text())}
    known = [
        each
        for each in first_instances()
        if isinstance(each, Refit | Composed) or type(each).__name__ in names
    ]
    for number, estimator in enumerate(known):
        if not isinstance(estimator, Refit | Composed):
            for each in suited(data, estimator):
                yield f"{number} {type(estimator).__name__} on {each.name}", estimator, each


def sentences() -> Iterator[Sentence]:
    """Yield compositions at random whose digests are the same on every machine.

    What scikit-learn computes may differ in the last bit, or with its version.
    """
    for seed in range(SENTENCES):
        sentence = Writer(seed).write()
        theirs = [leaf.name == "Normalizer" or "estimator" in dict(leaf.params)
                  for leaf in leaves(sentence.node)]  # fmt: skip
        if not any(theirs):
            yield sentence


def cases() -> Iterator[tuple[str, Any, tuple[Any, Any, Any], Any]]:
    """Yield names, estimators, records as X, y and ids, and ids to delete."""
    for name, estimator, data in estimators():
        yield name, estimator, (data.X, data.y, data.ids), data.doomed_ids
    for each in sentences():
        yield f"sentence {each.seed}", build(each.node), (each.X, each.y, each.ids), each.ids[:3]


def fitted(estimator: Any, records: tuple[Any, Any, Any]) -> Any:
    """Return a copy of an estimator with seeds, fitted to records."""
    X, y, ids = records
    model = clone(estimator)
    for name, value in model.get_params(deep=True).items():
        if name.split("__")[-1] == "random_state" and value is None:
            model.set_params(**{name: 7})
    return model.fit(X, y, ids=ids)


def digests_of(model: Any, doomed: Any) -> list[str]:
    """Return the digest of a model, and that after a deletion, or the error that refuses it."""
    found = [model.digest()]
    try:
        model.delete(doomed)
    except ErasableError as error:
        return [*found, type(error).__name__]
    return [*found, model.digest()]


def digests(every: int = 1) -> dict[str, list[str]]:
    """Return digests after a fit and after deletions, by what was fitted; of every so many."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: digests_of(fitted(estimator, records), doomed)
            for name, estimator, records, doomed in islice(cases(), 0, None, every)
        }


def _write_models() -> None:
    with zipfile.ZipFile(MODELS, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, estimator, records, _ in cases():
            if name.endswith((" on separated", "0", "5")):
                with contextlib.suppress(ArtifactError):  # a file cannot carry its function
                    _put(archive, name, fitted(estimator, records))


def _put(archive: zipfile.ZipFile, name: str, model: Any) -> None:
    file = io.BytesIO()
    model.save(file)
    erasable.load(io.BytesIO(file.getvalue()))
    at = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
    archive.writestr(at, file.getvalue(), zipfile.ZIP_DEFLATED)


def _write_workspace() -> None:
    from contexts import make_context, visits, write_csv

    from erasable.workspace import Workspace

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        context, _ = make_context(root / "workspace")
        workspace = Workspace(context)
        write_csv(root / "visits.csv", visits(60))
        workspace.add_dataset(
            "visits", root / "visits.csv", id_column="visit", subjects=["patient"]
        )
        for name, estimator in (("risk", "GaussianNB"), ("near", "KNeighborsClassifier")):
            workspace.fit(name, estimator, datasets=["visits"], features=["age", "weight"],
                          target="sick")  # fmt: skip
        workspace.request(PEOPLE[:1])
        workspace.process()
        workspace.back_up(root / "backup", with_keys=True)
        workspace.request(PEOPLE[1:])
        (root / "list.json").write_text(json.dumps(workspace.suppression_list()))
        with tarfile.open(WORKSPACE, "w:gz") as archive:
            for name in ("workspace", "backup", "list.json"):
                archive.add(root / name, name)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        DIGESTS.write_text(json.dumps(digests(), indent=0, sort_keys=True) + "\n")
        _write_models()
        _write_workspace()
    for path in (DIGESTS, MODELS, WORKSPACE):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
