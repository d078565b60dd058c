"""MI-S: regions of a map chosen for the information they give, figures 20 to 22 (a, c).

Usage: ``python experiments/selection/mi_s.py [--quick]``.
"""

from __future__ import annotations

import sys

import command
import regions

from erasable.selection import MutualInformation

PARTS = regions.parts_of(
    "MI", lambda kernel, noise: MutualInformation(kernel, gamma=1 / noise), by_variance=False
)

if __name__ == "__main__":
    sys.exit(command.run("mi-s", __doc__, PARTS, takes=("folder",)))
