"""Random command lines and damaged files, by the ten thousand: ``python tests/soak/fuzz.py``.

Prints one line for each kind, and ends with 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hypothesis import HealthCheck, Phase, given, seed, settings

from cli.fuzzing import Bench, command_lines
from cli.fuzzing_files import file_cases


def main(arguments: list[str] | None = None) -> int:
    """Run them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=None, help="by default another each time")
    chosen = parser.parse_args(arguments)
    begin = (lambda test: test) if chosen.seed is None else seed(chosen.seed)
    hurried = settings(
        max_examples=chosen.cases, deadline=None, database=None, print_blob=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))

        @begin
        @hurried
        @given(command_lines(bench.requests))
        def lines(drawn: tuple[list[str], str | None]) -> None:
            _count("command lines", bench.check(*drawn))

        @begin
        @hurried
        @given(file_cases(bench.template))
        def files(drawn: tuple[str, bytes, list[str]]) -> None:
            _count("files", bench.check_file(*drawn))

        return max(_run("command lines", lines), _run("files", files))


_SEEN: dict[str, int] = {}
_WRONG: dict[str, list[str]] = {}


def _count(kind: str, wrong: list[str]) -> None:
    _SEEN[kind] = _SEEN.get(kind, 0) + 1
    _WRONG.setdefault(kind, []).extend(wrong)


def _run(kind: str, check: object) -> int:
    began = time.monotonic()
    check()  # type: ignore[operator]
    wrong = _WRONG[kind]
    for each in wrong[:20]:
        print(each)
    took = time.monotonic() - began
    print(f"{_SEEN[kind]:,} {kind}: {len(wrong)} wrong, {took:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
