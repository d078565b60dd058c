"""Writes docs/papers/selection.md from whichever results there are.

The words about an experiment are in `words/NAME.md`; `{table_7}`, `{figure_4}`, `{note_x}`,
`{settings}` and the names of facts stand in them for what was measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import report

ROOT = report.HERE.parent.parent
DOCS = ROOT / "docs" / "papers"
WORDS = report.HERE / "words"
RESULTS = report.RESULTS

HEAD = """# Selection that anticipates deletions: the paper's experiments

<!-- Written by experiments/selection/page.py from experiments/selection/results; do not edit. -->

Sim, Fan, Tian, Jaillet and Low, *Deletion-Anticipative Data Selection with a Limited Budget*, ICML
2024, choose records with a large remaining utility after later deletions. This page repeats the
experiments of section 5 and appendix H with `erasable.selection`, on the same data, and compares
the numbers with the paper's; MI-S and VR-S use another map. The counterexamples of appendices D.1
and F are `examples/departures_that_break_greedy.py` and `examples/greedy_falls_short.py`.

- **DS**: the conventional selection, which anticipates no deletions. **EDADS**: the largest
  expected utility. **CVaR**: the largest expected utility in the worst share alpha of cases
  (RA-DADS in the paper). **random**: a random selection with the class shares of the data, ten
  times.
- Utilities in tables 7 to 11 are exact expectations, not simulated. Metrics are means over
  simulations, ± their standard deviation; figures have bands of two standard errors. In tables 12
  to 14 both are means of 50 runs (table 13: 20) of 10,000 fresh samples, ± the deviation over runs.
- The better of two numbers of this page is bold, for any difference.
- If nobody stays there is no model, and its metric counts as 0.

| experiment | command | seconds |
|---|---|---:|
{commands}
"""


def text(results: dict[str, dict[str, Any]], words: Path = WORDS) -> str:
    """Return the page."""
    commands = "\n".join(
        f"| {name.upper()} | `python experiments/selection/{name.replace('-', '_')}.py` "
        f"| {sum(result['seconds'].values()):,} |"
        for name, result in results.items()
    )
    parts = [HEAD.format(commands=commands)]
    for name, result in results.items():
        there = (words / f"{name}.md").read_text(encoding="utf-8")
        parts.append(there.format_map(Filled(fillings(name, result))))
    return "\n".join(parts)


def printed(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the titles and the text of the tables of what was found, and of further ones."""
    tables = [
        (f"Table {number}", report.table(number, given))
        for number, given in found.get("tables", {}).items()
    ]
    notes = found.get("notes", {}).items()
    return tables + [(key, report.markdown(given["head"], given["rows"])) for key, given in notes]


class Filled(dict[str, str]):
    """What stands for names in the words; a name of something that was not measured says so."""

    def __missing__(self, key: str) -> str:
        return "*(not measured)*"


def fillings(name: str, result: dict[str, Any]) -> dict[str, str]:
    """Return what stands for the names in the words about an experiment."""
    made = {key: str(value) for key, value in result.get("facts", {}).items()}
    made["settings"] = "\n".join(f"- {what}: {value}" for what, value in result["settings"].items())
    for number, given in result["tables"].items():
        made[f"table_{number}"] = report.table(number, given)
    for key, given in result.get("notes", {}).items():
        made[f"note_{key}"] = report.markdown(given["head"], given["rows"])
    for number, given in result["figures"].items():
        file = figures.file_of(name, number)
        made[f"figure_{number}"] = f"![{given['title']}](figures/{file})\n*{given['title']}.*"
    return made


def write(docs: Path = DOCS) -> None:
    """Write the page and its figures."""
    results = report.load()
    files = []
    for name, result in results.items():
        files += figures.draw(name, result, docs / "figures")
    (docs / "selection.md").write_text(text(results), encoding="utf-8")
    print(f"wrote {docs / 'selection.md'} and {len(files)} figures")


if __name__ == "__main__":
    write()
