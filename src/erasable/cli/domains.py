"""Command `erasable remove-domain`: remove a domain by its most characteristic records."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import typer

import erasable.cli.options as options
import erasable.cli.show as show
from erasable.cli.files import as_text, ids_text, load, perhaps
from erasable.cli.frame import command, fail, opened
from erasable.cli.options import FILL, FOLDER, JSON, SEED, argument, option, switch

if TYPE_CHECKING:  # they import scikit-learn
    from erasable.removal import DeletionsNeeded, RemovalReport, Sweep
    from erasable.workspace.domains.planning import RemovalPlan
    from erasable.workspace.domains.removing import Removed

LARGE_BIAS, NOTHING = 0.05, 1e-12  # nats
CAUTION = (
    "Removing a domain is not erasing a person: records kept from the unwanted domain remain "
    "trained on."
)


def print_json(
    plan: RemovalPlan,
    removed: Removed | None,
    budget: str,
    output: str | None,
    plot: str | None,
    swept: Sweep | None,
) -> None:
    """Print one object; its names are the same of a dry run, whose models have no report."""
    fresh = plan.fresh
    show.print_json(
        {
            **show.picked(plan, "dataset", "version"),
            "done": removed is not None,
            "request": None if removed is None else removed.request,
            **show.picked(plan, "n_records", "n_forget", "n_retain"),
            "n_selected": len(plan.ids),
            **show.picked(plan, "n_copies", "features", "components", "left_out"),
            "score": plan.removal.score,
            "budget": budget,
            "trust": plan.removal.trust_,
            "estimate": _estimates(plan),
            "sweep": swept
            and [
                show.picked(each, "score", "metric", "n_deleted", "median", "low", "high")
                for each in swept.points()
            ],
            "needed": swept
            and [
                show.picked(each, "score", "target", "confidence")
                | {n: _finite(getattr(each, n)) for n in ("n_deleted", "low", "high")}
                for each in _needed(plan, swept)
            ],
            **show.picked(plan, "certificate", "uncertified"),
            "fresh": fresh and show.picked(fresh, "n_forget", "n_retain", "n_left_out"),
            "effects": list(plan.preview.effects),
            "models": [
                {
                    **show.picked(each, "model", "remarks"),
                    "report": None if each.report is None else each.report.to_dict(),
                }
                for each in ([] if removed is None else removed.models)
            ],
            "treatments": [] if removed is None else removed.treatments,
            "seconds": plan.preview.seconds if removed is None else removed.seconds,
            "output": output,
            "plot": plot,
            "warnings": [*plan.warnings, *(removed.warnings if removed is not None else [])],
            "caution": CAUTION,
        }
    )


def print_plan(plan: RemovalPlan, budget: str) -> None:
    """Print the records that would leave, the removal that they reach, and its effects."""
    fresh, trust = plan.fresh, plan.removal.trust_
    score = str(plan.removal.score)
    certificate = plan.certificate
    show.facts(
        [
            ("domain", f"{plan.n_forget:,} of {show.words(plan.n_records, 'record')}"),
            ("to stay", f"{show.words(plan.n_retain, 'record')} that it is compared with"),
            ("compared by", _features(plan)),
            *(
                [("left out", f"{show.names(plan.left_out)}; --features names what to compare by")]
                if plan.left_out
                else []
            ),
            ("score", score if trust != trust else f"{score}; trust {trust:.2f} of 1"),
            (
                "chosen",
                f"{show.words(len(plan.ids), 'record')} ({len(plan.ids) / plan.n_forget:.1%} of "
                f"the domain), by {budget}",
            ),
            (
                "certified",
                f"nothing: {plan.uncertified}"
                if certificate is None
                else f"alpha at least {certificate.alpha:.4g}, epsilon at most "
                f"{certificate.epsilon:.4g} nats, but for {certificate.delta:.1%}, of Gaussians "
                "with a covariance each",
            ),
            (
                "fresh",
                "none: every record here was trained on; --fresh names others to judge by"
                if fresh is None
                else f"{fresh.n_forget:,} of the domain, {fresh.n_retain:,} others"
                + (f"; {fresh.n_left_out:,} left out, as copies" if fresh.n_left_out else ""),
            ),
        ]
    )
    show.line()
    estimates = _estimates(plan)
    show.table(
        ["estimate, in nats", "nothing deleted", "chosen", "all deleted"],
        [
            (name, *(_nats(estimates[at][key]) for at in ("nothing", "selected", "all")))
            for name, key in (("removal, alpha", "alpha"), ("shift, epsilon", "epsilon"))
        ],
        right="nothing deleted,chosen,all deleted",
    )
    if certificate is not None:
        show.line("estimated with one covariance for all, which ignores differences in spread")
    bias = plan.removal.n_features_in_ / (2 * plan.n_forget)
    if bias > LARGE_BIAS:
        show.line(
            f"with {plan.removal.n_features_in_:,} columns, alpha is too high by about {bias:.2g}"
        )
    show.line()
    show.effects(plan.preview.effects)
    show.line()
    if plan.n_copies:
        show.line(
            f"{show.words(plan.n_copies, 'record')} of the domain would stay that equal a chosen "
            "one in all but the id, so what they teach stays, too"
        )


def print_removed(removed: Removed) -> None:
    """Print the effect of a removal on each model."""
    for each in removed.models:
        show.line(each.model)
        for remark in each.remarks:
            show.line(f"  {show.one_line(remark)}")
        if each.report is not None:
            _print_report(each.report)
        show.line()
    show.line(
        f"erased {show.words(removed.n_records, 'record')} in {show.seconds(removed.seconds)}, as "
        f"request {removed.request}; `erasable verify` compares the models with new ones"
    )


def print_sweep(plan: RemovalPlan, swept: Sweep) -> None:
    """Print how much each score must delete for the removal that was chosen."""
    needed = _needed(plan, swept)
    records = f"deleted for alpha {_nats(plan.removal.alpha_)}"
    show.table(
        ["score", records, "from", "to"],
        [(each.score, *map(_records, (each.n_deleted, each.low, each.high))) for each in needed],
        right=f"{records},from,to",
    )
    show.line(
        f"medians over {len(swept.seeds)} seeds of the scores; from and to enclose them, "
        f"{100 * needed[0].confidence:.1f}% sure"
    )
    show.line()


def _needed(plan: RemovalPlan, swept: Sweep) -> list[DeletionsNeeded]:
    from erasable.removal import deletions_needed

    target = plan.removal.alpha_
    return [
        deletions_needed(name, target, swept, metric="alpha", rising=True) for name in swept.scores
    ]


def _records(value: float) -> str:
    return show.count(math.ceil(value)) if math.isfinite(value) else "not by all"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _print_report(report: RemovalReport) -> None:
    columns = ["", "records", *(report.heading(name) for name in report.metrics)]
    show.table(
        columns,
        [
            (
                each.group,
                show.count(each.n_records),
                *(
                    f"{each.before[name]:.3f} → {each.after[name]:.3f}"
                    if each.n_records
                    else show.NONE
                    for name in report.metrics
                ),
            )
            for each in report.groups
        ],
        right=",".join(columns[1:]),
    )


def _estimates(plan: RemovalPlan) -> dict[str, dict[str, float]]:
    removal, frontier = plan.removal, plan.removal.frontier_
    return {
        "nothing": {"alpha": float(frontier.alpha[0]), "epsilon": float(frontier.epsilon[0])},
        "selected": {"alpha": removal.alpha_, "epsilon": removal.epsilon_},
        "all": {"alpha": float(frontier.alpha[-1]), "epsilon": float(frontier.epsilon[-1])},
    }


def _nats(value: float) -> str:
    return f"{0.0 if abs(value) < NOTHING else value:.4g}"


def _features(plan: RemovalPlan) -> str:
    types = dict(plan.known.columns)
    texts = [name for name in plan.features if types[name] == "string"]
    numbers = [name for name in plan.features if name not in texts]
    parts = [f"{show.names(numbers)}, scaled"] if numbers else []
    if texts:
        whole = plan.components is None
        parts.append(
            f"the words of {', '.join(texts)}, by TF-IDF"
            + ("" if whole else f" in {show.words(int(plan.components or 0), 'component')}")
        )
    return "; ".join(parts)


app = typer.Typer()

BUDGET = "coverage:0.8"


@command(
    app,
    "remove-domain",
    example="erasable remove-domain messages --where \"label == 'spam'\" --budget 20%",
    panel="Requests",
)
def remove_domain(
    dataset: str = argument("DATASET", "The name of a data set."),
    condition: str | None = option(
        "CONDITION",
        'The records of the domain, as a condition like those of `erasable request`: "label '
        "== 'spam' and length > 100\".",
        "--where",
    ),
    keywords: str | None = option(
        "FILE",
        "The records of the domain, by words or phrases in the text of --column: a file with "
        "one a line. Case is ignored; 'prize' is the whole word, 'prize*' its beginning. With "
        "--where, the records that meet both.",
    ),
    column: str | None = option("COL", "The column of text for --keywords."),
    budget: str = option(
        "B",
        "How many are deleted: a number (100), a share of the domain (20%), coverage:SHARE of "
        "the total score, min-removal:ALPHA (the fewest that reach it), max-shift:EPSILON "
        "(the most removal within it), or cost:COLUMN:AMOUNT.",
        default=BUDGET,
    ),
    score: str = option(
        "S",
        "How records are ranked: density-ratio, mu2-distance, cos-mu2, maha-mu2, lr-cos, "
        "lr-maha, knn-ratio, norm, coreset, k-center, craig, gradmatch, ccs or random.",
        default="density-ratio",
    ),
    features: str | None = option(
        "A,B",
        "Columns to compare records by, with scaled numbers and TF-IDF of text. By default "
        "that of --column; or the features of models, except those in --where; or, without "
        "models, all numeric columns, or the one of text.",
    ),
    components: str | None = option(
        "N",
        "Compare text by N components of its words, such as 100; maha-mu2 and lr-maha need it.",
    ),
    fill: str | None = FILL,
    retain_where: str | None = option(
        "CONDITION", "Which other records are the wanted domain; by default all."
    ),
    retain_sample: str | None = option("N", "Compare the domain with only N of them, drawn by id."),
    fresh: str | None = option(
        "DATASET_OR_FILE",
        "Records that no model was trained on, to judge the removal by: another data set, or "
        "a source as for `dataset add`.",
    ),
    delta: str = option("P", "How often the certificate may be wrong.", default="0.05"),
    seed: str = SEED,
    output: str | None = option(
        "FILE",
        "Write the ids of the chosen records to a file, first to delete first: .txt, or .csv "
        "with their scores.",
    ),
    plot: str | None = option(
        "FILE",
        "Draw removal and shift by the number of deletions: .svg, .png or .pdf. With --sweep, "
        "removal by each score.",
    ),
    sweep: str | None = option(
        "A,B",
        "Compare scores, such as random,lr-maha: how many records each must delete for the "
        "removal of the chosen ones. Nothing is deleted.",
    ),
    yes: bool = switch("--yes", "Delete the records; without it nothing is changed (a dry run)."),
    folder: str = FOLDER,
    as_json: bool = JSON,
) -> None:
    """Remove a domain from a data set and its models by its most characteristic records."""
    options.check_files(output, plot)
    drawn = options.whole(seed, "--seed", least=0)
    least = options.number(delta, "--delta")
    sampled = None if retain_sample is None else options.whole(retain_sample, "--retain-sample", 2)
    reduced = None if components is None else options.whole(components, "--components")
    found = opened(folder)
    words = read_keywords(keywords)
    wanted, cost = read_budget(budget)
    from erasable.removal import SCORES

    compared = options.columns(sweep) or ()
    for name, given in [("--score", score), *(("--sweep", each) for each in compared)]:
        if given not in SCORES:
            fail(f"{name} is {show.one_line(given)[:60]!r}; expected one of {', '.join(SCORES)}")
    if compared and yes:
        fail("--sweep came with --yes; expected one of them: a sweep deletes nothing")
    with perhaps(output, folder) as ids_file, perhaps(plot, folder) as plot_file:
        plan = found.plan_removal(
            dataset, where=condition, keywords=words, column=column,
            features=options.columns(features), components=reduced, fill=fill, score=score,
            budget=wanted, cost=cost, retain_where=retain_where, retain_sample=sampled,
            fresh=fresh, delta=least, random_state=drawn,
        )  # fmt: skip
        if ids_file is not None:
            scores = plan.removal.scores_[plan.removal.selected_].tolist()
            columns_of = (plan.known.id_column, "score")
            ids_file.write_text(
                ids_text(str(output), plan.ids, columns_of, scores), encoding="utf-8"
            )
        swept = plan.sweep(dict.fromkeys([score, *compared])) if compared else None
        if plot_file is not None:
            drawing = plan.removal.plot() if swept is None else swept.plot("alpha")
            drawing.figure.savefig(plot_file, format=str(plot).rpartition(".")[2])
        removed = found.remove_domain(plan) if yes else None
    show.warn([*plan.warnings, *(removed.warnings if removed is not None else [])])
    if as_json:
        print_json(plan, removed, budget, output, plot, swept)
        return
    print_plan(plan, budget)
    if swept is not None:
        print_sweep(plan, swept)
    if removed is not None:
        print_removed(removed)
    for path in filter(None, (output, plot)):
        show.line(f"wrote {show.one_line(path)}")
    show.line(CAUTION)
    if removed is None:
        show.line(
            f"dry run: nothing was changed; --yes deletes {show.words(len(plan.ids), 'record')}"
            if plan.ids
            else "dry run: the budget is met without a deletion, so there is none to make"
        )


_FORMS = (
    "expected a number of records (100), a share of the domain (20% or 0.2), coverage:SHARE, "
    "min-removal:ALPHA, max-shift:EPSILON, or cost:COLUMN:AMOUNT"
)


def read_budget(text: str | None) -> tuple[Any, str | None]:
    """Return a budget and, for a budget of costs, the column of costs.

    >>> read_budget("100"), read_budget("20%"), read_budget("min-removal:0.5")
    ((100, None), (Share(share=0.2), None), (MinRemoval(alpha=0.5), None))
    >>> read_budget("cost:minutes:90")
    (90.0, 'minutes')
    """
    from erasable.removal import Coverage, MaxShift, MinRemoval, Share

    if text is None:
        return None, None
    given = text.strip()
    digits = given.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 100:
        return int(given), None
    kind, colon, rest = given.partition(":")
    if not colon:
        return Share(_number(text, given)), None
    if kind == "cost":
        column, _, amount = rest.rpartition(":")
        if not column:
            _refuse(text)
        return _number(text, amount, percent=False), column
    kinds = {"coverage": Coverage, "min-removal": MinRemoval, "max-shift": MaxShift}
    if kind not in kinds:
        _refuse(text)
    return kinds[kind](_number(text, rest, percent=kind == "coverage")), None


def read_keywords(path: str | None) -> list[str] | None:
    """Read keywords from a file, one a line; empty lines are skipped."""
    if path is None:
        return None
    text = as_text(load(path, "keywords, one a line"), repr(path), "keywords, one a line")
    found = [each.strip() for each in text.splitlines() if each.strip()]
    if not found:
        fail(f"{path!r} is empty; expected keywords, one a line")
    return found


def _number(text: str, part: str, *, percent: bool = True) -> float:
    percent = percent and part.endswith("%")
    try:
        value = float(part.removesuffix("%") if percent else part)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        _refuse(text)
    return value / 100 if percent else value


def _refuse(text: str) -> None:
    fail(f"--budget is {show.one_line(text)[:60]!r}; {_FORMS}")
