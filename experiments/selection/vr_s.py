"""VR-S: regions of a map chosen to reduce the variance of all, figures 20 to 22 (b, d).

Usage: ``python experiments/selection/vr_s.py [--quick]``. It takes 1.5 GB of memory.
"""

from __future__ import annotations

import sys

import command
import regions

from erasable.selection import VarianceReduction

PARTS = regions.parts_of(
    "VR", lambda kernel, noise: VarianceReduction(kernel, noise=noise), by_variance=True
)

if __name__ == "__main__":
    sys.exit(command.run("vr-s", __doc__, PARTS, takes=("folder",)))
