"""Where the node's packages (wire, coordinator, broker) lie, and how a process of ours comes to see them.

In the tree they stand beside this package. The wheel lays them under `odradek/_node`, a folder that only our own
processes put on their path, so a user's own `broker` or `wire` package and ours never meet.
"""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def node_home() -> Path:
    """The folder that holds wire/, coordinator/ and broker/."""
    installed = PACKAGE / "_node"
    return installed if installed.is_dir() else PACKAGE.parent


def put_first_on_path() -> None:
    """Make this process find our node's packages before any other of the same names."""
    home = str(node_home())
    if sys.path[:1] != [home]:
        sys.path.insert(0, home)
