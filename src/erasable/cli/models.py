"""Commands `erasable model`, `verify` and `audit`: train, use, publish and check models."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

import erasable.cli.options as options
import erasable.cli.show as show
from erasable.cli.files import perhaps, replacing
from erasable.cli.frame import CommandGroup, command, fail, opened, request_id
from erasable.cli.options import (
    DASK,
    DECIMAL,
    DELIMITER,
    ENCODING,
    FOLDER,
    JSON,
    MEMORY,
    SEED,
    argument,
    columns,
    option,
    pairs,
    size,
    switch,
)

app = typer.Typer()

SHOWN = 20
"""Predictions that are printed for people."""

NAME = argument("NAME", "The name of the model.")
DATASETS = option("D,...", "The data sets it learns from, with the same columns.", "--dataset")
POLICY = option(
    "P",
    "When it is updated to new versions of its data sets: at-once (with each append and "
    "sync), refresh (by `erasable model refresh` or --update-models; the default) or never.",
)
HOOK = option("CMD", "A command with {model}, run after each update, without a shell.")

group = typer.Typer(cls=CommandGroup, help="Train, look at, use and export models.")

app.add_typer(group, name="model", rich_help_panel="Data and models")


@command(app, "verify", example="erasable verify risk", panel="Evidence")
def verify(
    names: list[str] | None = argument("NAME", "Models; by default all.", default=None),
    retrain: bool = switch(
        "--retrain", "Also run the commands of models that are trained elsewhere."
    ),
    allow_other_version: bool = switch(
        "--allow-other-version",
        "Accept models that cannot be compared, because other software or another kind of "
        "machine made them.",
    ),
    memory: str | None = MEMORY,
    dask: str | None = DASK,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Fit models again on the remaining records, and compare; exit code 1 if any is not equal."""
    found = opened(folder, size(memory), dask).verify(list(names or ()) or None, retrain=retrain)
    unknown = [each.model for each in found if each.verdict == "other version"]
    if unknown and not allow_other_version:
        show.warn(
            [
                f"not verified: {', '.join(unknown)}: other software or another kind "
                "of machine made what cannot be compared with a fit of here and now; fit them "
                "again, or pass --allow-other-version"
            ]
        )
    else:
        unknown = []
    differ = [each for each in found if not each.holds] + unknown
    if as_json:
        show.print_json({"equal": not differ, "models": [each.to_json() for each in found]})
    else:
        show.verdicts(found)
    if differ:
        raise typer.Exit(1)


@command(
    group,
    "fit",
    example="erasable model fit risk --dataset visits --estimator "
    "linear_model.LogisticRegression --target sick -p C=0.5",
)
def fit(
    name: str = NAME,
    dataset: list[str] | None = DATASETS,
    estimator: str | None = option(
        "DOTTED",
        "An estimator of erasable, or of scikit-learn (sklearn.svm.SVC), which is refitted; "
        "several, joined by commas, make a pipeline; or module:function; or a recipe.json "
        "file, as `erasable model show --recipe` writes it.",
    ),
    target: str | None = option("COL", "The column to predict."),
    features: str | None = option(
        "A,B",
        "Columns to learn from; by default all except ids, subjects, the target, an index, "
        "and text that differs in most records.",
    ),
    prepare: str = option(
        "HOW",
        "auto: missing values are filled, and text and times become numbers, if the estimator "
        "cannot learn from them as they are; none: it learns from the numeric columns only. "
        "Pipelines are left as they are.",
        default="auto",
    ),
    params: list[str] | None = option(
        "NAME=VALUE",
        "A parameter; may be repeated. An estimator is given by its name, and its parameters "
        "with a prefix: -p estimator=sklearn.svm.SVC -p estimator__C=2.",
        "-p",
        "--param",
    ),
    hook: str | None = HOOK,
    policy: str | None = POLICY,
    memory: str | None = MEMORY,
    dask: str | None = DASK,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Train a model; if the name is known, train it again on the newest data."""
    _print_fitted(
        opened(folder, size(memory), dask).fit(
            name,
            estimator,
            datasets=_split(dataset),
            target=target,
            features=columns(features),
            params=_params(params),
            prepare=prepare,
            hook=hook,
            policy=policy,
        ),
        as_json,
    )


@command(
    group,
    "register",
    example="erasable model register ranker --dataset visits "
    "--retrain 'python train.py {data} {out}'",
)
def register(
    name: str = NAME,
    dataset: list[str] | None = DATASETS,
    retrain: str | None = option(
        "CMD",
        "A command that trains it at every erasure, without a shell: {data} is a Parquet file "
        "with the records, and {out} the file that it writes the model to. Paths of files are "
        "made absolute. Without a command the model is not covered, and every receipt says so.",
    ),
    hook: str | None = HOOK,
    policy: str | None = POLICY,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Register a model that is trained elsewhere."""
    made = opened(folder).register(
        name, datasets=_split(dataset), retrain=retrain, hook=hook, policy=policy
    )
    if retrain is None and not as_json:
        show.line(f"{name}: registered as not covered; every receipt will say so")
        return
    _print_fitted(made, as_json)


@command(group, "refresh", example="erasable model refresh risk")
def refresh(
    names: list[str] | None = argument(
        "NAME",
        "Models; by default all stale ones, except those with the policy never.",
        default=None,
    ),
    memory: str | None = MEMORY,
    dask: str | None = DASK,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Update models to the newest versions of their data sets."""
    done, warnings = opened(folder, size(memory), dask).refresh(list(names or ()) or None)
    show.warn(warnings)
    if show.printed(as_json, {"models": done, "warnings": warnings}):
        return
    if done:
        show.treatments(done)
    else:
        show.line("nothing to do: no model to refresh is stale")


@command(group, "policy", example="erasable model policy risk at-once")
def policy(
    name: str = NAME,
    policy: str = argument("POLICY", "at-once, refresh or never; see `erasable model fit`."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Set when a model is updated to new versions of its data sets."""
    opened(folder).set_policy(name, policy)
    told = {
        "at-once": f"{name} follows with each append and sync from now on",
        "refresh": f"{name} follows when `erasable model refresh` or --update-models says so",
        "never": f"{name} stays as it was fitted, but for erasures",
    }
    show.answer(as_json, {"model": name, "policy": policy}, told[policy])


@command(group, "list", example="erasable model list")
def list_models(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """List the models."""
    found = opened(folder).models()
    if show.printed(as_json, {"models": found}):
        return
    show.table(
        ["name", "state", "version", "estimator", "data", "records", "trained"],
        [
            (
                each["name"], each["state"], each["version"], each["estimator"],
                ", ".join(each["datasets"]),
                show.count(each["n_records"]), show.day(each["created_at"]),
            )
            for each in found
        ],
        right="version,records",
    )  # fmt: skip


@command(group, "show", example="erasable model show risk")
def show_model(
    name: str = NAME,
    recipe: bool = switch("--recipe", "Print only its recipe, as JSON, to edit and fit it again."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Show a model: its recipe, its data, its versions, and the time that deletions took."""
    found = opened(folder).model(name)
    if recipe:
        # A fit of it draws its own seeds, unless random_state is set.
        show.print_json({name: each for name, each in found["recipe"].items() if name != "seeds"})
        return
    if show.printed(as_json, found):
        return
    _print_model(found)


@command(group, "predict", example="erasable model predict risk new.csv --output risks.csv")
def predict(
    name: str = NAME,
    source: str = argument("SOURCE", "Records: a CSV, JSON lines or Parquet file."),
    output: str | None = option("FILE", "Write them to a .csv or .parquet file."),
    proba: bool = switch("--proba", "Also the probability of each class, in columns of their own."),
    delimiter: str | None = DELIMITER,
    decimal: str | None = DECIMAL,
    encoding: str | None = ENCODING,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Predict for the records of a file."""
    if output is not None and not output.endswith((".csv", ".parquet")):
        fail(
            f"{output!r} ends neither in .csv nor in .parquet; expected one of them; name the "
            "file so"
        )
    with perhaps(output, folder) as place:
        found = opened(folder).predict(
            name, source, proba=proba, delimiter=delimiter, decimal=decimal, encoding=encoding
        )
        if place is not None:
            _write(found, place, as_parquet=str(output).endswith(".parquet"))
    if as_json:
        rows = [] if output is not None else found.to_pylist()
        show.print_json({"model": name, "n": found.num_rows, "path": output, "predictions": rows})
    elif output is not None:
        show.line(f"wrote {show.words(found.num_rows, 'prediction')} to {output}")
    else:
        head = found.slice(0, SHOWN).to_pylist()
        show.table(found.column_names, [list(row.values()) for row in head])
        if found.num_rows > SHOWN:
            show.line(f"... {found.num_rows - SHOWN:,} more; write them with --output FILE")


@command(group, "export", example="erasable model export risk risk.model")
def export(
    name: str = NAME,
    path: str = argument("PATH", "The file to write."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Write a model without records, for prediction elsewhere."""
    with replacing(path, folder) as place:
        messages = opened(folder).export(name, place)
    show.warn(messages)
    show.answer(
        as_json, {"model": name, "path": path, "warnings": messages}, f"wrote {show.one_line(path)}"
    )


@command(group, "retire", example="erasable model retire risk")
def retire(name: str = NAME, folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Retire a model: its file is erased, and later requests do not concern it."""
    opened(folder).retire(name)
    show.answer(as_json, {"model": name, "state": "retired"}, f"{name} is retired")


@command(
    group,
    "publish",
    example="erasable model publish risk --to mlflow:risk --tracking-uri http://mlflow:5000",
)
def publish(
    name: str = NAME,
    to: str = option(
        "mlflow:NAME",
        "A registered model of MLflow, which is created. `none` stops publishing; registered "
        "versions stay.",
        default=...,
    ),
    tracking_uri: str | None = option(
        "URI", "URI of MLflow, without a password; by default MLFLOW_TRACKING_URI at each use."
    ),
    delete_superseded: bool = switch(
        "--delete-superseded",
        "Delete earlier versions and their files whenever there is a new one.",
    ),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Register a model in MLflow, now and after every fit and erasure that changes it."""
    if to == "none":
        opened(folder).stop_publishing(name)
        show.answer(
            as_json,
            {"model": name, "to": None},
            f"{name} is published no longer; what is registered stays",
        )
        return
    done, messages = opened(folder).publish(
        name, to, tracking_uri=tracking_uri, delete_superseded=delete_superseded
    )
    show.warn(messages)
    if as_json:
        said = show.picked(done, "to", "version", "registered", "superseded")
        show.print_json({"model": name, **said, "warnings": messages})
        return
    show.line(f"{name} version {done.version} is version {done.registered} of {done.to}")
    if not delete_superseded:
        show.line("versions before the newest stay there, with what they learned")


def _split(given: list[str] | None) -> list[str]:
    return [name for each in given or () for name in columns(each) or () if name]


def _params(given: list[str] | None) -> dict[str, str] | None:
    return pairs(given, "-p") or None


def _print_fitted(fitted: Any, as_json: bool) -> None:
    show.warn(fitted.warnings)
    if show.printed(as_json, asdict(fitted)):
        return
    if fitted.prepared:
        show.line(f"prepared: {fitted.prepared}")
    learned = "" if not fitted.features else f" on {show.words(len(fitted.features), 'feature')}"
    target = f" to predict {fitted.target}" if fitted.target else ""
    show.line(
        f"{fitted.name} version {fitted.version}: {show.words(fitted.n_records, 'record')}"
        f"{learned}{target}, {show.seconds(fitted.seconds)}"
    )


def _listed(columns: Any) -> str:
    return ", ".join(map(str, columns)) if isinstance(columns, list) else str(columns)


def _write(table: Any, place: Path, *, as_parquet: bool) -> None:
    from erasable.core._arrow_files import write_csv, write_parquet

    (write_parquet if as_parquet else write_csv)(table, place)


def _print_model(found: dict[str, Any]) -> None:
    data = ", ".join(
        name if version is None else f"{name} version {version}"
        for name, version in found["datasets"].items()
    )
    params = ", ".join(
        f"{name}={value}"
        for name, value in found["params"].items()
        if "prepare__" not in name  # of steps that were not asked for
    )
    columns = [
        (name, f"{' -> '.join(path.rpartition('.')[2] for path in paths)} of {_listed(given)}")
        for name, (paths, given) in found["columns"].items()
    ]
    others = {
        name: f"{name} (the target of {', '.join(models)})"
        for name, models in found["others_targets"].items()
    }
    features = [others.get(name, name) for name in found["features"] or ()]
    show.facts(
        [
            ("name", found["name"]),
            ("state", found["state"]),
            ("estimator", found["estimator"] or found["kind"]),
            *columns,
            ("parameters", params or "as they are by default"),
            ("data", data),
            ("features", ", ".join(features) or show.NONE),
            ("left out", ", ".join(found["left_out"]) or show.NONE),
            ("target", found["target"] or show.NONE),
            ("records", show.count(found["n_records"])),
            ("behind by", found["staleness"] or show.NONE),
            ("follows", found["policy"] or show.NONE),
            ("hook", found["hook"] or show.NONE),
            ("verified", found["verified"]),
        ]
    )
    if found["versions"]:
        show.line()
        show.table(
            ["version", "by", "records", "time", "date"],
            [
                (
                    each["number"], each["cause"], show.count(each["n_records"]),
                    show.seconds(each["seconds"]), show.day(each["created_at"]),
                )
                for each in found["versions"]
            ],
            right="version,records,time",
        )  # fmt: skip


@command(app, "audit", example="erasable audit risk --fresh new.csv", panel="Evidence")
def audit(
    name: str = NAME,
    fresh: str | None = option(
        "DATASET_OR_FILE",
        "Records from the same source that the model has not learned from: another data set, or a "
        "source as for `dataset add`.",
    ),
    deleted: str | None = option(
        "REQUEST",
        "Test whether the model has forgotten what this request erased. Without it, test "
        "whether the model reveals the records that it has learned from, which needs --fresh.",
    ),
    records: str | None = option(
        "FILE",
        "With --deleted: the erased records, for a model that deletes approximately. The "
        "workspace no longer has them.",
    ),
    attack: str | None = option("A", "The attack on membership: rmia, by default, or lira."),
    references: str | None = option(
        "N",
        "How many models are trained for comparison: by default 4 for rmia, 64 for lira, and "
        "as many as --level needs for a deletion.",
    ),
    level: str = option("P", "The probability of a false alarm.", default="0.05"),
    ask: str | None = option(
        "CMD",
        "For a model that your own program made: a command that asks it, with {model}, its "
        "file, {data}, a CSV file of records, and {out}, a CSV file that it writes with the "
        "probability of each class, in the order of their names.",
    ),
    target: str | None = option("COLUMN", "With --ask: the column that the model predicts."),
    html: str | None = option(
        "FILE", "Write a page, complete in itself. It names the most exposed records."
    ),
    seed: str = SEED,
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Test whether a model reveals its records, or has forgotten those of a request."""
    drawn = options.whole(seed, "--seed", least=0)
    error = options.number(level, "--level")
    if error >= 1.0:
        fail(f"--level is {show.one_line(level)[:60]!r}; expected a probability below 1")
    n_models = None if references is None else options.whole(references, "--references")
    asked = None if deleted is None else request_id(deleted)
    with perhaps(html, folder) as place:
        found: Any = opened(folder).audit(
            name, fresh=fresh, deleted=asked, records=records, attack=attack,
            references=n_models, level=error, seed=drawn, ask=ask, target=target,
        )  # fmt: skip
        if place is not None:
            found.to_html(place)
    if show.printed(as_json, found.to_dict()):
        return
    for line in str(found).splitlines():
        show.line(line)
    if html is not None:
        show.line(f"wrote {show.one_line(html)}")
