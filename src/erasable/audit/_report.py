"""The report of an audit, of all kinds, and its page."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from erasable.audit._statistics import Rate, Separation
from erasable.core.arrays import Floats
from erasable.core.errors import InvalidInputError
from erasable.core.ids import shorten

__all__ = ["AuditReport", "Exposed", "ReportGroup", "page_of", "roc_svg"]

_LEAST = 1e-3
_N_POINTS = 200
_NONE = "–"  # noqa: RUF001
_WIDTH, _HEIGHT = 386, 360
_LEFT, _TOP, _SIDE = 52, 14, 300
_LABEL_GAP, _LONGEST_LABEL = 16, 42
_N_COLOURS = 5
_TONES = {"found": "bad", "not found": "good", "equal": "good"}

_STYLE = """
:root { --ink: #1f2937; --soft: #5b6472; --line: #e5e7eb; --paper: #ffffff; --ground: #f6f7f9;
  --good: #0f766e; --bad: #b91c1c; --warn: #92500a;
  --c0: #b91c1c; --c1: #1d4ed8; --c2: #0f766e; --c3: #7e22ce; --c4: #92500a; color-scheme: light; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e5e7eb; --soft: #a3acb9;
  --line: #374151; --paper: #1b2330; --ground: #111722; --good: #5eead4; --bad: #fca5a5;
  --warn: #fcd34d; --c0: #fca5a5; --c1: #93c5fd; --c2: #5eead4; --c3: #d8b4fe; --c4: #fcd34d;
  color-scheme: dark; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui,
  -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: anywhere; }
main { max-width: 860px; margin: 0 auto; padding: 32px 20px 56px; }
header p { margin: 0; color: var(--soft); }
h1 { font-size: clamp(21px, 3.2vw, 28px); line-height: 1.3; font-weight: 650; margin: 10px 0 14px; }
h1::before { content: ""; display: block; width: 56px; height: 5px; margin: 0 0 12px;
  background: var(--tone); }
.good { --tone: var(--good); } .bad { --tone: var(--bad); } .warn { --tone: var(--warn); }
header .unsaid { color: var(--ink); font-size: 16px; max-width: 44em; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; margin: 18px 0; }
h2 { font-size: 17px; font-weight: 650; margin: 0 0 8px; }
section p { color: var(--soft); margin: 0 0 10px; max-width: 46em; }
ul { margin: 0; padding-left: 20px; }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: 13px; vertical-align: top;
  padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); }
td { padding: 7px 12px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  font-variant-numeric: tabular-nums; }
tr:last-child td { border-bottom: 0; }
td.n, td small { white-space: nowrap; }
td small { display: block; color: var(--soft); font-size: 13px; }
.id { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
dl { display: grid; grid-template-columns: minmax(7em, max-content) 1fr; gap: 4px 18px; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; }
svg { display: block; width: 100%; max-width: 560px; height: auto; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  fill: var(--soft); }
svg .curve { fill: none; stroke-width: 2; } svg .grid { stroke: var(--line); }
svg .chance { stroke: var(--soft); stroke-dasharray: 2 4; }
svg .label { font-weight: 600; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
@media (max-width: 620px) {
  .groups thead { position: absolute; left: -9999px; }
  .groups tr, .groups td { display: block; padding-right: 0; }
  .groups tr { padding: 8px 0; border-bottom: 1px solid var(--line); }
  .groups tr:last-child { border-bottom: 0; }
  .groups td { border: 0; padding: 2px 0; }
  .groups td::before { content: attr(data-of) ": "; color: var(--soft); }
  .groups td:first-child::before { content: none; } .groups td:first-child { font-weight: 600; }
  .groups td small { display: inline; white-space: normal; }
}
@media print { body { background: #fff; } main { padding: 0; max-width: none; }
  section { break-inside: avoid; } }
"""


def page_of(report: AuditReport) -> str:
    """Return the HTML page of a report."""
    title = f"{report.question} of a {report.judged}"
    tone = _TONES.get(report.verdict, "warn")
    parts = [
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Audit: {_text(title)}</title>", f"<style>{_STYLE}</style>", "</head>", "<body>",
        "<main>", f'<header class="{tone}">',
        f"<p>Audit, {_text(title)}. Verdict: {_text(report.verdict)}.</p>",
        f"<h1>{_text(report.sentence)}</h1>",
        f'<p class="unsaid">{_text(report.unsaid)}</p>', "</header>",
        _listed("What it could find, said before it started", report.plan),
        _groups(report.groups), _curves(report.groups), _exposed(report),
        _listed("Notes", report.notes), _parameters(report), "</main>", "</body>", "</html>",
    ]  # fmt: skip
    return "\n".join(part for part in parts if part) + "\n"


def _listed(title: str, lines: tuple[str, ...]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return _section(title, f"<ul>{items}</ul>" if lines else "")


def _groups(groups: tuple[ReportGroup, ...]) -> str:
    """Return a table: the area, the rates and the other measures of each group."""
    rates = list(
        dict.fromkeys(
            rate.false_positives
            for group in groups
            if group.separation is not None
            for rate in group.separation.rates
        )
    )
    attacked = any(group.separation is not None for group in groups)
    measured = list(dict.fromkeys(name for group in groups for name in group.measures))
    heads = [
        "group", *(["AUC"] if attacked else []),
        *(f"found at {100 * rate:g} % false positives" for rate in rates), *measured,
    ]  # fmt: skip
    rows = []
    for group in groups:
        cells = [_text(group.name)]
        if attacked:
            cells.append(_area(group.separation))
        of = (
            {}
            if group.separation is None
            else {r.false_positives: r for r in group.separation.rates}
        )
        cells += [_rate(of.get(rate)) for rate in rates]
        cells += [_number(group.measures.get(name)) for name in measured]
        rows.append(cells)
    about = (
        "<p>AUC is how often an attacker who is shown a record of each kind picks the right one: "
        "0.5 is chance. In brackets: intervals.</p>"
        if attacked
        else ""
    )
    return _section("What was measured", about + _table(heads, rows) if groups else "")


def _table(heads: list[str], rows: list[list[str]]) -> str:
    named = [_text(head) for head in heads]
    head = "".join(f'<th scope="col">{name}</th>' for name in named)
    lines = []
    for row in rows:
        cells = zip(named, row, strict=True)
        lines.append("".join(f'<td data-of="{name}">{cell}</td>' for name, cell in cells))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table class="groups"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _area(found: Separation | None) -> str:
    if found is None or math.isnan(found.area):
        return _NONE
    return f"{found.area:.3f} <small>({found.low:.3f} to {found.high:.3f})</small>"


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return _NONE
    if math.isnan(rate.estimate):
        return f"not measured <small>(needs {rate.n_needed} other records)</small>"
    low, high = 100 * rate.low, 100 * rate.high
    return f"{100 * rate.estimate:.1f} % <small>({low:.1f} to {high:.1f})</small>"


def _number(value: Any) -> str:
    if value is None or not math.isfinite(value):
        return _NONE
    return _text(f"{value:.3g}")


def _exposed(report: AuditReport) -> str:
    if not report.exposed:
        return ""
    rows = "".join(
        f'<tr><td class="id"><bdi>{_text(each.id)}</bdi></td>'
        f'<td class="n">{_number(each.score)}</td></tr>'
        for each in report.exposed
    )
    table = (
        '<table><thead><tr><th scope="col">record</th><th scope="col">score</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    about = "<p>The records that the model reveals most, the worst first.</p>"
    return _section("Most exposed records", about + table)


def _parameters(report: AuditReport) -> str:
    facts = {
        "attack": report.attack, "with": report.access, "error": f"{report.level:g}",
        **report.parameters, "seconds": f"{report.seconds:.3g}",
    }  # fmt: skip
    shown = "".join(
        f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts.items()
    )
    return _section("How it was done", f"<dl>{shown}</dl>")


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{title}</h2>\n{body}\n</section>" if body else ""


# -- the curves ------------------------------------------------------------------------------------


def _curves(groups: tuple[ReportGroup, ...]) -> str:
    drawn = [(group.name, group.separation) for group in groups if group.separation is not None]
    if not drawn:
        return ""
    about = (
        "<p>The share of records found against the share of others that are suspected, both on "
        "logarithmic axes. A curve on the dotted line tells nothing; on the left an attacker is "
        "nearly never wrong.</p>"
    )
    return _section("Found against falsely suspected", about + roc_svg(drawn))


def roc_svg(drawn: list[tuple[str, Separation]]) -> str:
    """Draw ROC curves on logarithmic axes from 0.001 to 1, as SVG."""
    right, bottom = _LEFT + _SIDE, _TOP + _SIDE
    areas = "; ".join(f"{name}: area {found.area:.3f}" for name, found in drawn)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="roc-title roc-desc">',
        '<title id="roc-title">ROC curves on logarithmic axes</title>',
        f'<desc id="roc-desc">True positives against false positives. {_text(areas)}.</desc>',
    ]
    for tick in (1e-3, 1e-2, 1e-1, 1.0):
        x, y = _across(tick), _down(tick)
        name = f"{100 * tick:g} %"
        parts += [
            f'<line class="grid" x1="{x:g}" y1="{_TOP}" x2="{x:g}" y2="{bottom}"/>',
            f'<line class="grid" x1="{_LEFT}" y1="{y:g}" x2="{right}" y2="{y:g}"/>',
            f'<text x="{x:g}" y="{bottom + 18}" text-anchor="middle">{name}</text>',
            f'<text x="{_LEFT - 8}" y="{y + 4:g}" text-anchor="end">{name}</text>',
        ]
    middle = _TOP + _SIDE / 2
    parts += [
        f'<text x="{_LEFT + _SIDE / 2:g}" y="{bottom + 38}" text-anchor="middle">'
        "others falsely suspected</text>",
        f'<text x="10" y="{middle:g}" text-anchor="middle" '
        f'transform="rotate(-90 10 {middle:g})">records found</text>',
        f'<line class="chance" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{_TOP}"/>',
    ]
    labels = []
    for k, (name, found) in enumerate(drawn):
        points = thinned(found.curve)
        corners = " ".join(f"{_across(x):.1f},{_down(y):.1f}" for x, y in points.tolist())
        dash = f' stroke-dasharray="{7 - k % 3} {2 + k % 3}"' if k else ""
        colour = f"var(--c{k % _N_COLOURS})"
        parts.append(f'<polyline class="curve" stroke="{colour}"{dash} points="{corners}"/>')
        labels.append((_down(float(points[0, 1])), colour, name))
    parts += _labels(labels)
    return "\n".join([*parts, "</svg>"])


def _labels(labels: list[tuple[float, str, str]]) -> list[str]:
    """Write names where curves begin, one above another where they would overlap."""
    drawn, last = [], math.inf
    for y, colour, name in sorted(labels, key=lambda each: -each[0]):
        last = min(y - 8.0, last - _LABEL_GAP)
        short = name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"
        drawn.append((max(last, _TOP + 12.0), colour, short))
    return [
        f'<text class="label" x="{_LEFT + 8}" y="{y:.1f}" style="fill: {colour}">'
        f"{_text(name)}</text>"
        for y, colour, name in drawn
    ]


def thinned(curve: Floats) -> Floats:
    """Return a curve at rates of false positives that are evenly spaced on a logarithmic axis.

    >>> thinned(np.array([[0.0, 0.0], [0.0, 0.5], [1.0, 1.0]])).round(2).tolist()
    [[0.0, 0.5], [0.97, 0.5], [1.0, 1.0]]
    """
    at = np.geomspace(_LEAST, 1.0, _N_POINTS)
    at[[0, -1]] = _LEAST, 1.0
    # Of each rate, the most that is found without suspecting more others.
    found = curve[np.searchsorted(curve[:, 0], at, side="right") - 1, 1]
    points = np.column_stack([at, found])
    flat = np.zeros(len(points), dtype=bool)
    flat[1:-1] = (found[1:-1] == found[:-2]) & (found[1:-1] == found[2:])
    return points[~flat]


def _across(rate: float) -> float:
    return _LEFT + _SIDE * _place(rate)


def _down(rate: float) -> float:
    return _TOP + _SIDE * (1.0 - _place(rate))


def _place(rate: float) -> float:
    """Return the place of a rate on an axis, from 0 to 1; lower rates are at its beginning."""
    return 1.0 + math.log10(max(rate, _LEAST)) / 3.0


# -- texts -----------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    r"""Escape a text, with invisible characters written out: an id may be any text.

    >>> print(_text("<b>\u202e"))
    &lt;b&gt;\u202e
    """
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(value))
    return html.escape(shown)


@dataclass(frozen=True, slots=True, eq=False)
class ReportGroup:
    """Measures of a group of records.

    Attributes
    ----------
    name : str
        Such as "deleted", "retained", "fresh".
    separation : Separation or None
        How well the attack distinguishes its two sides; None without an attack.
    measures : dict of str to float
        Other numbers, by name.

    Examples
    --------
    >>> print(ReportGroup("fresh", None, {"distance": 0.25}))
    fresh: distance 0.25
    """

    name: str
    separation: Separation | None = None
    measures: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return one line, and one more for each rate."""
        parts = [f"{name} {value:.3g}" for name, value in self.measures.items()]
        lines = []
        if self.separation is not None:
            of = self.separation
            parts.insert(0, f"AUC {of.area:.3f} ({of.low:.3f} to {of.high:.3f})")
            lines = [f"  {'' if isnan(rate.estimate) else 'finds '}{rate}" for rate in of.rates]
        return "\n".join([f"{self.name}: {', '.join(parts)}", *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        found = None if self.separation is None else self.separation.to_dict()
        return {"name": self.name, "separation": found, "measures": _plain(dict(self.measures))}


@dataclass(frozen=True, slots=True)
class Exposed:
    """A record that the model reveals more than others.

    Attributes
    ----------
    id : int or str
    score : float
        Of the attack; the meaning is in its documentation.

    Examples
    --------
    >>> Exposed("ann", 0.9).id
    'ann'
    """

    id: int | str
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class AuditReport:
    """The result of an audit, with its limits.

    Attributes
    ----------
    question : str
        "membership", "deletion", "canaries" or "influence".
    verdict : {"found", "not found", "cannot tell", "equal"}
        "equal" where the digest is that of a refit, which proves it.
    sentence : str
        The verdict, for readers without statistics.
    unsaid : str
        Conclusions that it does not allow.
    judged : str
        "model" for one model, or "method" for the way in which models delete.
    access : str
        What the audit used: "recipe and data", "data and black box", or "black box".
    attack : str
        Such as "RMIA, 4 references".
    level : float
        The probability of a false alarm.
    plan : tuple of str
        Statements made before it started: what so many records or models can show.
    groups : tuple of ReportGroup
    exposed : tuple of Exposed
        The most exposed records, the worst first.
    notes : tuple of str
        Further information for the reader.
    parameters : dict
    seconds : float

    Examples
    --------
    >>> report = AuditReport(
    ...     "membership", "not found", "Nothing was found.", "Other attacks may find more.",
    ...     judged="model", access="recipe and data", attack="RMIA, 4 references", level=0.05)
    >>> print(report)
    Nothing was found.
    Other attacks may find more.
    <BLANKLINE>
    membership of a model, RMIA, 4 references, with recipe and data; error 0.05
    """

    question: str
    verdict: str
    sentence: str
    unsaid: str
    judged: str
    access: str
    attack: str
    level: float
    plan: tuple[str, ...] = ()
    groups: tuple[ReportGroup, ...] = ()
    exposed: tuple[Exposed, ...] = ()
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return a few lines, the verdict first."""
        what = f"{self.question} of a {self.judged}, {self.attack}, with {self.access}"
        lines = [self.sentence, self.unsaid, "", f"{what}; error {self.level:g}"]
        lines += [str(group) for group in self.groups]
        if self.exposed:
            worst = ", ".join(f"{shorten(each.id)} ({each.score:.3g})" for each in self.exposed[:5])
            lines.append(f"most exposed: {worst}")
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"before it started: {line}" for line in self.plan]
        return "\n".join(lines)

    def __getitem__(self, group: str) -> ReportGroup:
        """Return a group by its name."""
        for each in self.groups:
            if each.name == group:
                return each
        names = ", ".join(each.name for each in self.groups)
        raise InvalidInputError(f"there is no group {shorten(group)}; expected one of {names}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: all but the curves."""
        return {
            "question": self.question, "verdict": self.verdict, "sentence": self.sentence,
            "unsaid": self.unsaid, "judged": self.judged, "access": self.access,
            "attack": self.attack, "level": self.level, "plan": list(self.plan),
            "groups": [group.to_dict() for group in self.groups],
            "exposed": [
                {"id": _named(each.id), "score": _plain(each.score)} for each in self.exposed
            ],
            "notes": list(self.notes), "parameters": _plain(dict(self.parameters)),
            "seconds": self.seconds,
        }  # fmt: skip

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the report as JSON, and write it to a file if one is named."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as a page, complete in itself, and write it to a file if one is named.

        The page has no script and refers to nothing outside. It names the most exposed records.
        """
        page = page_of(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page


def _named(id: Any) -> int | str:
    """Return an id for JSON: numbers and texts as they are, others as text."""
    return id if isinstance(id, int | str) else str(id)


def _plain(values: Any) -> Any:
    """Return values for JSON: without NaN and NumPy types."""
    if isinstance(values, Mapping):
        return {str(name): _plain(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_plain(value) for value in values]
    if isinstance(values, np.generic):
        values = values.item()
    if isinstance(values, float) and not np.isfinite(values):
        return None
    if values is None or isinstance(values, bool | int | float | str):
        return values
    return repr(values)
