"""What a compiled kernel depends on: the text of its module, and of all modules it imports.

A kernel takes in the functions it calls, the constants it reads and the layout of its named tuples.
numba looks at the kernel's own file alone, and would load a kernel whose callee has changed since:
after an upgrade, it would read fields of an array's description in another order.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]

# What follows `import` in brackets may take several lines. Imports within functions count as well.
_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.+|erasable\b\.?)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|.*)", re.MULTILINE
)


@cache
def fingerprint(path: str) -> str | None:
    """Hash a module of kernels, with all it imports of this package; None if it cannot be read.

    Parameters
    ----------
    path : str
        File of the module.
    """
    try:
        found = sources(path)
    except OSError:  # in an archive, or typed by hand
        return None
    texts = sorted(f"{each.name} {text}" for each, text in found.items())  # wherever they lie
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def sources(path: str) -> dict[Path, str]:
    """Return the hashes of a module, and of all modules that it imports of this package."""
    found: dict[Path, str] = {}
    waiting = [Path(path)]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each], imported = _read(each)
            waiting.extend(imported)
    return found


@cache
def _read(path: Path) -> tuple[str, tuple[Path, ...]]:
    """Return the hash of a file, and the files it imports from.

    Read once, when the first of its kernels is declared: what is compiled is the text of then.
    """
    text = path.read_bytes()
    imported: list[Path] = []
    for start, names, parts in _FROM.findall(text.decode(errors="replace")):
        folder = path.parents[len(start) - 1] if start.startswith(".") else _ROOT
        module = folder.joinpath(*names.split(".")) if names else folder
        if module.with_suffix(".py").is_file():
            imported.append(module.with_suffix(".py"))
        elif module.is_dir():
            modules = [module / f"{name}.py" for name in re.findall(r"\w+", parts)]
            imported += filter(Path.is_file, [module / "__init__.py", *modules])
    return hashlib.sha256(text).hexdigest(), tuple(imported)
