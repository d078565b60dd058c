"""Display of the removal of a domain: for people, for programs, and into files."""

from __future__ import annotations

from erasable.cli import show
from erasable.removal import RemovalReport
from erasable.workspace.domains.planning import RemovalPlan
from erasable.workspace.domains.removing import Removed

LARGE_BIAS, NOTHING = 0.05, 1e-12  # nats
CAUTION = (
    "Removing a domain is not erasing a person: records kept from the unwanted domain remain "
    "trained on."
)


def print_json(
    plan: RemovalPlan, removed: Removed | None, budget: str, output: str | None, plot: str | None
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
    """Print what would leave, how far that reaches, and whom it concerns."""
    fresh, trust = plan.fresh, plan.removal.trust_
    score = str(plan.removal.score)
    certificate = plan.certificate
    show.facts(
        [
            ("domain", f"{plan.n_forget:,} of {show.words(plan.n_records, 'record')}"),
            ("to stay", f"{show.words(plan.n_retain, 'record')} that it is contrasted with"),
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
        show.line("estimated with one covariance for all, in which a difference in spread is lost")
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
            f"{show.words(plan.n_copies, 'record')} of the domain would stay, equal to a chosen "
            "one in all but its id: what it teaches stays, too"
        )


def print_removed(removed: Removed) -> None:
    """Print what was done, and what it did to each model."""
    for each in removed.models:
        show.line(each.model)
        for remark in each.remarks:
            show.line(f"  {show.one_line(remark)}")
        if each.report is not None:
            _print_report(each.report)
        show.line()
    show.line(
        f"erased {show.words(removed.n_records, 'record')} in {show.seconds(removed.seconds)}, as "
        f"request {removed.request}; `erasable verify` holds the models against new ones"
    )


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
