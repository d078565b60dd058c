"""What the commands have in common: options, the clock, resuming, storing, and pages.

What a part found is stored as soon as it was measured, with what it was measured by: its options,
and the checksums of the files that were read. A part for which all that is the same is not measured
again. From the parts an experiment's result is made, as pages have it, its numbers in a Parquet
file, and a page.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import itertools
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import figures
import numpy as np
import page
import report
import tidy
from data import ROOT, data_sets

from erasable.removal import SCORES

sys.path.append(str(ROOT))
plugged: Any = importlib.import_module("benchmarks.plugged")

Result = dict[str, Any]
Part = Callable[..., Result]
FOLDER = ROOT / "build" / "papers"
OWN = "module:name of "
OPTIONS = {
    "data": f"{OWN}a function that returns the data; or a folder with the data sets",
    "scores": f"scores of erasable.removal, or {OWN}one",
    "utilities": f"{OWN}what makes a utility, without parameters; each is measured apart",
    "estimators": f"{OWN}what makes an estimator, without parameters; each is measured apart",
    "seeds": "how many seeds",
    "budgets": "at which budgets: how many are chosen, or which shares are deleted",
}
"""What an experiment may take, as its `takes` says; a part gets it as a keyword argument.

"folder" in `takes` is ``--data`` with a folder. Of `utilities` and `estimators` a part gets one at
a time, as `utility` and `estimator`.
"""
ONE = ("data", "seeds")
INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""
NOTHING = "it takes none of such options"
EACH = {"utilities": "utility", "estimators": "estimator"}


def run(
    name: str,
    description: str | None,
    parts: Part | Mapping[str, Part],
    paper: Any = page,
    *,
    takes: Sequence[str] | Mapping[str, Sequence[str]] = (),
    more: Mapping[str, Any] | None = None,
) -> int:
    """Measure part by part, and store each; 2 if data are missing, 1 if a part of the user's fails.

    Parameters
    ----------
    paper : module
        What writes the page on a paper: it has `RESULTS`, where results lie, `printed`, tables as
        text, and `write`.
    takes : sequence of str, or dict of them by part
        Of `OPTIONS` and "folder", what parts have a use for.
    more : dict, optional
        Further parameters by which a part is measured.

    Notes
    -----
    A part returns what it adds to the experiment's result; one that goes on from stored trainings
    also says how many seconds all of them took, and as `unfinished` that some are left.
    """
    if not isinstance(parts, Mapping):
        parts = {"all": parts}
    by_part = {part: takes.get(part, ()) if isinstance(takes, Mapping) else takes for part in parts}
    parser, options = _options(name, description, by_part)
    given = {key: value for key in OPTIONS if (value := getattr(options, key)) is not None}
    if options.store and (options.quick or given):
        parser.error("--store is for what the paper's settings give, neither --quick nor others")
    if options.store and paper.RESULTS is None:
        parser.error("--store has no use here: stored results are those of the benchmark")
    chosen = _chosen(parser, options.parts, by_part, given)
    values, texts = _values(parser, given)
    folder = options.out or FOLDER / ("quick" if options.quick else "full")
    jobs = [(part, *each) for part in chosen for each in _each(values, texts)]
    try:
        done = []
        for at, (part, label, values_, of) in enumerate(jobs, 1):
            title = " ".join([part, *label])
            say(f"{name}: part {at} of {len(jobs)}, {title}")
            settings = {"quick": options.quick, **(more or {}), **of}
            path = folder / "parts" / f"{name}.{'-'.join([part, *label])}.json"
            record = stored(path, settings)
            if record is None:
                record = measure(path, parts[part], options.quick, values_, settings, label)
                for text, table in paper.printed(record["found"]):
                    print(f"{text}\n\n{table}\n")
                wall, spent = record["seconds"]
                say(f"{name}: {title} took {wall:.0f} s, {spent:.0f} s of the processor")
            else:
                say(f"{name}: {title} was finished before; without {path} it is measured anew")
            done.append((part, record))
            if options.store:
                found = report.merged(name, report.without_runs(record["found"]), paper.RESULTS)
                print(f"stored {report.save(name, found, paper.RESULTS)}")
                paper.write()
    except data_sets.MissingDataError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted; the same command goes on with the rest", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # anything may come from what was given
        if not given:
            raise
        print(f"{name}: {failed(error, title, folder / 'parts', name)}", file=sys.stderr)
        return 1
    written(name, description, done, folder, paper)
    return 0


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _options(
    name: str, description: str | None, parts: Mapping[str, Sequence[str]]
) -> tuple[_Parser, argparse.Namespace]:
    about = (description or "").partition("\n")[0]
    parser = _Parser(prog=name, description=about, allow_abbrev=False)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="few simulations, on part of the data")
    size.add_argument("--full", action="store_true", help="as the paper has it: the default")
    add = parser.add_argument
    add("--parts", nargs="+", choices=parts, help="what to measure")
    add("--out", type=Path, metavar="DIR", help="where results go; by default in build/papers")
    add("--store", action="store_true", help="also over the stored results, and write the page")
    taken = {option: [part for part in parts if option in parts[part]] for option in OPTIONS}
    for part in parts:
        if "folder" in parts[part] and part not in taken["data"]:
            taken["data"].append(part)
    for option, text in OPTIONS.items():
        kind = {"seeds": _count, "budgets": _budget}.get(option, str)
        of = "" if len(taken[option]) == len(parts) else f" (of {', '.join(taken[option])})"
        told = f"{text}{of}" if taken[option] else argparse.SUPPRESS
        add(f"--{option}", nargs=None if option in ONE else "+", type=kind, help=told)
    return parser, parser.parse_args()


def _count(text: str) -> int:
    """Read how many seeds."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text}; expected a whole number of 1 or more")
    return int(text)


def _budget(text: str) -> float:
    """Read a number of records, or a share of them."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < np.inf or (value > 1 and value % 1):
        raise argparse.ArgumentTypeError(
            f"{text}; expected a number of records of 1 or more, or a share up to 1"
        )
    return value


def counts(budgets: Sequence[float] | None, default: Sequence[int]) -> tuple[int, ...]:
    """Return numbers of records, ascending: those given, or others."""
    if wrong := [each for each in budgets or () if each % 1]:
        raise ValueError(f"--budgets: {wrong[0]:g}; expected whole numbers of records here")
    return tuple(sorted({int(each) for each in budgets or default}))


def shares(budgets: Sequence[float]) -> list[float]:
    """Return shares of the records: those given."""
    if wrong := [each for each in budgets if each > 1]:
        raise ValueError(f"--budgets: {wrong[0]:g}; expected shares of the records here, up to 1")
    return list(budgets)


def _chosen(
    parser: _Parser, asked: Sequence[str] | None, takes: Mapping[str, Sequence[str]], given: Any
) -> list[str]:
    """Return the parts that take what is given; all that were asked for must take it."""
    needed = set(given) - {"data"}
    if "data" in given:
        needed.add("data" if ":" in given["data"] else "folder")
    parts = asked or list(takes)
    able = [part for part in parts if needed <= set(takes[part])]
    if not able or (asked and len(able) < len(asked)):
        told = [f"{part} takes {', '.join(map(_told, takes[part])) or 'none'}" for part in parts]
        each_takes = [set(takes[part]) for part in parts]
        useless = needed.difference(*each_takes) or needed
        named = ", ".join(sorted(f"--{'data' if key == 'folder' else key}" for key in useless))
        parser.error(f"no use for {named}: {'; '.join(told) if any(takes.values()) else NOTHING}")
    return able


def _told(option: str) -> str:
    return {"folder": "--data DIR", "data": "--data module:name"}.get(option, f"--{option}")


def _values(parser: _Parser, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Import what texts name; return values, and what they are known by when stored.

    A folder with data becomes that of this process, and is known by its files.
    """
    values, texts, code = dict(given), dict(given), {}
    if "data" in given and ":" not in given["data"]:
        os.environ["ERASABLE_DATA"] = values.pop("data")
        del texts["data"]
        if not data_sets.folder().is_dir():
            parser.error(f"--data {given['data']} is no folder; expected one, or module:name")
    for key in ("data", "scores", *EACH):
        loaded = {}
        for text in [texts[key]] if key == "data" and key in texts else texts.get(key, []):
            try:
                name, made = plugged.load(text, SCORES if key == "scores" else ())
            except argparse.ArgumentTypeError as error:
                parser.error(f"--{key}: {error}")
            loaded[name] = made or name
            if made is not None:
                origin = importlib.util.find_spec(text.partition(":")[0]).origin
                code[text] = data_sets.checksum(Path(origin))
        if loaded:
            values[key] = as_arrays(made, text) if key == "data" else loaded
    return values, texts | ({"code": code} if code else {})


def as_arrays(read: Any, text: str) -> Any:
    """Return a function that reads the data of the user's: lists become arrays, of one length."""

    @functools.wraps(read)
    def made() -> Any:
        found = read()
        if not isinstance(found, tuple):
            return found
        arrays = tuple(map(np.asarray, found))
        sizes = [each.shape[:1] for each in arrays]
        if len(set(sizes)) > 1 or () in sizes:
            raise ValueError(
                f"--data {text} returned arrays of shapes "
                f"{', '.join(str(each.shape) for each in arrays)}; expected as many rows in each"
            )
        return arrays

    return made


def _each(values: Mapping[str, Any], texts: Mapping[str, Any]) -> list[tuple[Any, Any, Any]]:
    """Return the labels, the arguments and the texts of each utility and estimator."""
    several = [
        [(EACH[key], name, made, text)
         for (name, made), text in zip(values[key].items(), texts[key], strict=True)]
        for key in EACH if key in values
    ]  # fmt: skip
    rest = {key: value for key, value in values.items() if key not in EACH}
    told = {key: text for key, text in texts.items() if key not in EACH}
    return [
        (
            [name for _, name, _, _ in combination],
            rest | {key: made for key, _, made, _ in combination},
            told | {key: text for key, _, _, text in combination},
        )
        for combination in itertools.product(*several)
    ]


def stored(path: Path, settings: Mapping[str, Any]) -> Result | None:
    """Return what was stored of a part, if it was measured by the same settings and data."""
    if not path.exists():
        return None
    record: Result = json.loads(path.read_text(encoding="utf-8"))
    same = record["settings"] == settings and not record["found"].get("unfinished")
    for file, of in record["files"].items():
        same = same and data_sets.checksum(data_sets.path(file)) == of
    return record if same else None


def failed(error: Exception, title: str, folder: Path, name: str) -> str:
    """Write the traceback of an error to a file; return a line on the error."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.error.txt"
    path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    frames = traceback.extract_tb(error.__traceback__)
    known = (str(ROOT), sys.prefix, sys.base_prefix, "<")
    frame = ([each for each in frames if not each.filename.startswith(known)] or frames)[-1]
    at = f"{Path(frame.filename).name}, line {frame.lineno}"
    notes = [note for note in getattr(error, "__notes__", ()) if "\n" not in note]
    text = "; ".join([" ".join(str(error).split()), *notes])
    return f"{title} failed: {type(error).__name__}: {text} ({at}; the traceback is in {path})"


def measure(
    path: Path,
    part: Part,
    quick: bool,
    values: Mapping[str, Any],
    settings: Mapping[str, Any],
    label: Sequence[str],
) -> Result:
    """Measure a part, and store it at once: a file is whole, or as it was."""
    began, spent = time.perf_counter(), _spent()
    found = part(quick, **values)
    own = {key: given for key, given in settings.items() if key in (*OPTIONS, *EACH.values())}
    if own:
        found["settings"] = found.get("settings", {}) | {
            key: " ".join(map(str, given)) if isinstance(given, list) else str(given)
            for key, given in own.items()
        }
    wall, spent = time.perf_counter() - began, _spent() - spent
    found.setdefault("seconds", {path.stem.partition(".")[2]: round(wall)})
    files = {file: data_sets.checksum(data_sets.path(file)) for file in data_sets.read}
    record = {"settings": settings, "files": files, "seconds": [wall, spent]}
    record["found"] = labelled(found, label)
    path.parent.mkdir(parents=True, exist_ok=True)
    report.save(f"{path.stem}.part", record, path.parent).replace(path)
    result: Result = json.loads(path.read_text(encoding="utf-8"))
    return result


def _spent() -> float:
    """Return the seconds of the processor, also of processes that have ended."""
    return sum(os.times()[:4])


def labelled(found: Result, label: Sequence[str]) -> Result:
    """Add the names of a utility and an estimator to those of figures, tables and notes."""
    if not label:
        return found
    told = ", ".join(label)
    named = {
        key: {f"{number}-{'-'.join(label)}": given for number, given in found[key].items()}
        for key in ("figures", "notes")
        if key in found
    }
    for given in named.get("figures", {}).values():
        given["title"] = f"{given['title']}: {told}"
    return {key: value for key, value in found.items() if key != "tables"} | named


def written(
    name: str, description: str | None, done: Sequence[Any], folder: Path, paper: Any
) -> None:
    """Write the result of the parts, their numbers as rows, and a page."""
    result = report.EMPTY
    for _, record in done:
        result = report.added(result, record["found"])
    report.save(name, report.without_runs(result), folder)
    rows = [row for part, record in done for row in tidy.rows(name, part, record)]
    tidy.frame(rows).to_parquet(folder / f"{name}.parquet", index=False)
    files = figures.draw(name, result, folder / "figures", "papers")
    spent = sum(record["seconds"][1] for _, record in done)
    lines = [f"## {(description or name).partition(chr(10))[0]}\n"]
    lines += [f"- {what}: {value}" for what, value in result["settings"].items()]
    lines.append(f"- seconds of the processor: {spent:.0f}\n")
    lines += [f"![{file}](figures/{file})\n" for file in files]
    lines += [f"### {title}\n\n{text}\n" for title, text in paper.printed(result)]
    (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
    say(f"{name}: {folder / name}.md, .json and .parquet ({len(rows):,} numbers)")


def say(text: str) -> None:
    """Tell how far the experiment is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
