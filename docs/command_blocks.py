"""Run the command lines of a page, and write their output into it.

``python docs/command_blocks.py docs/start/getting-started.md`` runs every line that begins with
``$`` in a ``console`` block, one after another in one empty folder with the files of
``docs/data``, and rewrites the page. The tests compare the page with the output of the same run.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from readme_story import masked as without_times

DOCS = Path(__file__).resolve().parent
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
REQUEST = re.compile(r"R-[0-9A-Z]{10}")
SHOWN_FOLDER = "/home/ann/churn"
DATABASE = "postgresql://ann@db.example/models"
"""A placeholder for a database of PostgreSQL; see `run`."""


def pages() -> list[Path]:
    """Return the pages whose command lines run."""
    found = [path for path in DOCS.glob("*/*.md") if BLOCK.search(path.read_text("utf-8"))]
    return sorted(path for path in found if path.parent.name not in ("api", "papers"))


def lay_out(folder: Path) -> None:
    """Copy the files that pages use into a folder."""
    for path in (DOCS / "data").iterdir():
        shutil.copy(path, folder)


def commands(block: str) -> list[tuple[str, str]]:
    r"""Split a block into command lines and their output.

    Examples
    --------
    >>> commands("$ ls\na\nb\n\n$ true\n")
    [('ls', 'a\nb\n\n'), ('true', '')]
    """
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    lines = [re.match(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.DOTALL) for part in parts[1:]]
    return [(found[1], found[2]) for found in lines if found]


def printed_by(line: str, folder: Path) -> str:
    """Run a command line in a folder; return warnings and errors, then standard output."""
    from cli.running import erasable

    words, _, target = line.replace("\\\n", " ").partition(" > ")
    if words.startswith("erasable "):
        done = erasable(*shlex.split(words)[1:], folder=folder)
        if done.fault is not None:
            raise done.fault
        said = [each for each in done.stderr.splitlines() if re.match("error|warning", each)]
        out = done.stdout
    else:
        ran = subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True)
        said, out = ran.stderr.splitlines(), ran.stdout
    if target:
        (folder / target).write_text(out, encoding="utf-8")
        out = ""
    text = "\n".join([*said, *(each.rstrip() for each in out.splitlines())]).rstrip()
    return text.replace(str(folder), SHOWN_FOLDER).replace(str(folder.parent), "/home/ann")


def run(text: str, folder: Path, database: Callable[[], str]) -> str:
    """Return a page with the current output of its command lines, run in a folder.

    `database` returns the URL of an empty database of PostgreSQL.
    """
    folder = folder / "churn"
    folder.mkdir()
    lay_out(folder)
    url = database() if DATABASE in text else DATABASE
    ids: dict[str, str] = {}

    def block(found: re.Match[str]) -> str:
        parts = []
        for line, shown in commands(found[0]):
            line = REQUEST.sub(lambda each: ids.get(each[0], each[0]), line)
            now = printed_by(line.replace(DATABASE, url), folder).replace(url, DATABASE)
            ids.update(zip(REQUEST.findall(shown), REQUEST.findall(now), strict=False))
            parts.append(f"$ {line}\n{now}".rstrip() + "\n")
        return "\n".join(parts)

    return BLOCK.sub(block, text)


def masked(text: str) -> str:
    """Mask values that differ between runs: times, ids, hashes and keys.

    Examples
    --------
    >>> masked("root 0123456789abcdef0123, 12 ms")
    'root HASH, TIME'
    """
    text = re.sub(r"\b[0-9a-f]{12,}\b", "HASH", text)
    text = re.sub(r"^\d\d:\d\d:\d\d", "CLOCK", text, flags=re.MULTILINE)
    text = re.sub(r"^[A-Za-z0-9+/=]{40,}$", "KEY", text, flags=re.MULTILINE)
    return without_times(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE))


def main() -> int:
    """Write the named pages, or all."""
    tests = DOCS.parent / "tests"
    sys.path[:0] = [str(tests), str(tests / "workspace")]
    from postgres_server import running

    with running() as server:
        for page in [Path(each).resolve() for each in sys.argv[1:]] or pages():
            with tempfile.TemporaryDirectory() as folder:
                text = page.read_text("utf-8")
                written = run(text, Path(folder), lambda: str(server.url(server.database())))
                page.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
