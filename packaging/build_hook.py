"""Build hook of hatchling: put compiled kernels into the wheel.

``ERASABLE_WHEEL_KERNELS`` names the folder that ``kernels.py`` has made. Without it the wheel is
for all platforms, and kernels are compiled where they are used.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):  # type: ignore[misc]
    """Adds kernels to a wheel, which is then for one version of Python on one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folder, and name the platform."""
        folder = os.environ.get("ERASABLE_WHEEL_KERNELS")
        if not folder or version != "standard":  # an editable one compiles its own
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        where = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["force_include"][folder] = "erasable/_kernels"
        build_data["tag"] = f"{python}-{python}-{where}"
        build_data["pure_python"] = False
