"""Compile the kernels that a wheel carries: ``python packaging/kernels.py FOLDER``.

They are compiled for levels of processors (see `erasable.core._kernel_folders`), and put into
FOLDER by the folders of the package. Without levels for this kind of machine it is left empty.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

import erasable
from erasable.core._kernel_folders import Level, levels, packed

PACKAGE = Path(erasable.__file__).resolve().parent


def compile_for(level: Level, folder: Path, names: list[str]) -> None:
    """Compile all kernels, or those of some estimators, as for a processor of a level."""
    code = (
        "import sys; from erasable.utils.compiling import compile_kernels; "
        "compile_kernels(sys.argv[1:] or None)"
    )
    subprocess.run(
        [sys.executable, "-c", code, *names],
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(folder),
            "NUMBA_CPU_NAME": level.name,
            "NUMBA_CPU_FEATURES": level.flattened,
        },
        check=True,
    )


def arrange(made: Path, folder: Path) -> int:
    """Put what numba has written into the folders of the package; return the number of kernels."""
    n_kernels = 0
    for each in (PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir())):
        written = made / UserProvidedCacheLocator.get_suitable_cache_subpath(str(each / "a.py"))
        if written.is_dir():
            place = folder / each.relative_to(PACKAGE)
            for file in sorted(written.iterdir()):
                place.mkdir(parents=True, exist_ok=True)
                is_kernel = file.suffix == ".nbc"
                content = file.read_bytes()
                (place / file.name).write_bytes(packed(content) if is_kernel else content)
                n_kernels += is_kernel
    return n_kernels


def main(folder: Path, names: list[str]) -> None:
    """Compile for every level, one after the other, as they share indexes."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as made:
        for level in levels():
            compile_for(level, Path(made), names)
        print(f"{arrange(Path(made), folder)} kernels in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
