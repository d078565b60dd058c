"""What must not change: digests of every estimator, files of models, a workspace.

``python tests/reference/recorded.py KernelDensity`` adds a new estimator, and leaves all else as it
is. Without a name it records all of it anew. Do so only where a change of what is recorded is
meant: the tests here say that nothing else has changed.
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
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "compositions"), str(HERE.parent / "workspace")]

from grammar import KEPT, Leaf, Sentence, Writer, build, leaves  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402
from sklearn.utils import _safe_indexing  # noqa: E402
from sklearn.utils.validation import has_fit_parameter  # noqa: E402

import erasable  # noqa: E402
from erasable import Records  # noqa: E402
from erasable.core.errors import ArtifactError, ErasableError  # noqa: E402
from erasable.utils._checks.data_sets import STANDARD, DataSet, suited  # noqa: E402
from law_instances import instances_of  # noqa: E402
from mixed_visits import OF_TEXT, Mixed  # noqa: E402
from simulated_workers import Simulated, even, spread  # noqa: E402
from visits_table import OF_COUNTS, OF_DOCUMENTS, Visits, live  # noqa: E402

__all__ = ["DIGESTS", "MODELS", "PEOPLE", "WORKSPACE", "Life", "files", "life", "lives", "seeded"]

DIGESTS, MODELS, WORKSPACE = HERE / "digests.json", HERE / "models.zip", HERE / "workspace.tar.gz"
SEEDS = (7, 2**40 + 1)
PARTS = 5
PEOPLE = ["marker-patient-3", "marker-patient-5"]
"""The first was erased before the backup was made; the second asked, and waits."""

Life = Callable[[], list[str]]


class Data(NamedTuple):
    """Records in any form, and the rows of those that leave."""

    X: Any
    y: Any
    ids: Any
    groups: Any
    doomed: Any
    weights: Any = None

    @staticmethod
    def of(values: Any, rows: Any) -> Any:
        """Take rows of ids, targets or groups, where there are any."""
        return None if values is None else _safe_indexing(values, rows)

    def weighing(self, rows: Any) -> dict[str, Any]:
        """Return the weights of rows as an argument, where there are any."""
        return {} if self.weights is None else {"sample_weight": self.weights[rows]}


def _portable(estimator: Any) -> bool:
    """Tell whether all parts are ours: what others compute depends on the machine."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return not any(
        type(part).__module__.startswith(("sklearn.", "erasable.neural."))
        and not isinstance(part, FunctionTransformer)
        for part in parts
    )


def _estimators() -> Iterator[tuple[str, Any]]:
    """Yield a name and an estimator for all law instances."""
    for name, cls, tags in erasable.all_estimators():
        for number, estimator in enumerate(instances_of(name, cls, tags)):
            if _portable(estimator):
                yield f"{name} {number}", estimator


@cache
def _sentences() -> list[Sentence]:
    """Return compositions at random whose digests are the same on every machine."""
    written = [Writer(seed).write() for seed in range(KEPT)]
    return [each for each in written if not any(map(_is_theirs, leaves(each.node)))]


def _is_theirs(leaf: Leaf) -> bool:
    return leaf.name == "Normalizer" or "estimator" in dict(leaf.params)


def seeded(estimator: Any, seed: int = SEEDS[0]) -> Any:
    """Return an unfitted copy with a seed wherever there is none."""
    params = estimator.get_params(deep=True).items()
    unset = [key for key, value in params if key.endswith("random_state") and value is None]
    return clone(estimator).set_params(**dict.fromkeys(unset, seed))


def _told(model: Any, *steps: Callable[[], Any]) -> list[str]:
    """Take steps; return the digest after each, or the name of the error that refuses it."""
    found: list[str] = []
    for step in steps:
        try:
            step()
            found.append(model.digest().rpartition(":")[2][:16])
        except ErasableError as error:
            found.append(type(error).__name__)
            if len(found) == 1:  # the fit
                break
    return found


def life(model: Any, data: Data) -> list[str]:
    """Fit, delete some, correct others, and add the first again; return what `_told` does."""
    rest = np.setdiff1d(np.arange(len(data.ids)), data.doomed)[:3]
    gone = data.doomed
    few = gone[: rest.size]
    corrected = {"X": _safe_indexing(data.X, few)}
    if model.__sklearn_tags__().target_tags.required:
        corrected["y"] = data.of(data.y, few)
    return _told(
        model,
        lambda: model.fit(
            data.X, data.y, ids=data.ids, groups=data.groups, **data.weighing(slice(None))
        ),
        lambda: model.delete(data.of(data.ids, gone)),
        lambda: model.correct(data.of(data.ids, rest[: few.size]), **corrected),
        lambda: model.add(
            _safe_indexing(data.X, gone),
            data.of(data.y, gone),
            ids=data.of(data.ids, gone),
            groups=data.of(data.groups, gone),
            **data.weighing(gone),
        ),
    )


def _life_of_stored(
    model: Any, table: Callable[[], Visits], columns: list[str] | None, where: str
) -> list[str]:
    """Fit on records of a file or on workers, and delete."""
    visits = table()
    columns = columns or list(visits.frame)
    with tempfile.TemporaryDirectory() as folder:
        if where == "workers":
            records = spread(visits.table, even(len(visits.ids), PARTS), Simulated(2), columns)
        else:
            pq.write_table(visits.table, f"{folder}/a.parquet", row_group_size=60)
            records = Records.from_parquet(
                folder, ids="id", target="label", groups="person", features=columns
            )
        steps = [partial(_delete, model, gone) for gone in visits.requests()]
        return _told(model, lambda: model.fit(records), *steps)


def _delete(model: Any, ids: Any) -> None:
    model.delete(live(model, ids))


def lives() -> Iterator[tuple[str, Life]]:
    """Yield the names and lives of which digests are kept."""
    for name, estimator in _estimators():
        seeds = SEEDS if _draws(estimator) else SEEDS[:1]
        for seed in seeds:
            for data in suited(STANDARD, estimator):
                model = seeded(estimator, seed)
                yield f"{name} seed {seed} on {data.name}", partial(life, model, _data(data))
        if has_fit_parameter(estimator, "sample_weight"):
            data = _data(suited(STANDARD[:1], estimator)[0])
            weights = np.random.default_rng(1).choice([0.0, 0.3, 1.0, 2.5], len(data.ids))
            model = seeded(estimator)
            yield f"{name} with weights", partial(life, model, data._replace(weights=weights))
        kind = name.split()[0]
        visits: Callable[[], Visits] = partial(Visits, counts=kind in OF_COUNTS, n=240)
        columns: Any = None
        if kind in OF_DOCUMENTS:
            visits, columns = Mixed, ["note"]
        for where in ("parquet", "workers"):
            model = seeded(estimator)
            yield f"{name} of {where}", partial(_life_of_stored, model, visits, columns, where)
    for name, (estimator, columns) in OF_TEXT.items():
        if _portable(estimator):
            for where in ("parquet", "workers"):
                model = seeded(estimator)
                yield f"{name} of {where}", partial(_life_of_stored, model, Mixed, columns, where)
    for each in _sentences():
        yield f"sentence {each.seed}", partial(life, seeded(build(each.node)), _said(each))


def _said(sentence: Sentence) -> Data:
    return Data(sentence.X, sentence.y, sentence.ids, None, np.arange(3))


def _data(data: DataSet) -> Data:
    return Data(data.X, data.y, data.ids, data.groups, data.doomed)


def _draws(estimator: Any) -> bool:
    return any(key.endswith("random_state") for key in estimator.get_params(deep=True))


def files() -> Iterator[tuple[str, Any, Data]]:
    """Yield names, estimators and records of which files are kept: one of each estimator."""
    for name, estimator in _estimators():
        if name.endswith(" 0"):
            yield name, seeded(estimator), _data(suited(STANDARD[:1], estimator)[0])
    for each in _sentences():
        if each.seed % 5 == 0:
            yield f"sentence {each.seed}", seeded(build(each.node)), _said(each)


def _write_digests(begin: str) -> None:
    kept = json.loads(DIGESTS.read_text()) if begin else {}
    kept |= {name: each() for name, each in lives() if name.startswith(begin)}
    lines = (f"{json.dumps(name)}: {json.dumps(found)}" for name, found in sorted(kept.items()))
    DIGESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _write_models(begin: str) -> None:
    with zipfile.ZipFile(MODELS, "a" if begin else "w", zipfile.ZIP_DEFLATED) as archive:
        there = set(archive.namelist())
        for name, model, data in files():
            if not name.startswith(begin) or name in there:
                continue
            with contextlib.suppress(ArtifactError):  # a file cannot carry its function
                model.fit(data.X, data.y, ids=data.ids, groups=data.groups)
                _put(archive, name, model)


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
        begin = f"{sys.argv[1]} " if sys.argv[1:] else ""
        _write_digests(begin)
        _write_models(begin)
        if not begin:
            _write_workspace()
    for path in (DIGESTS, MODELS, WORKSPACE):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
