"""Where the node's packages (wire, coordinator, broker) lie, and how a process of ours comes to see them.

In the tree they stand beside this package. The wheel lays them under `odradek/_node`, a folder that only our own
processes put on their path, so a user's own `broker` or `wire` package and ours never meet.
"""

from __future__ import annotations

import os
import sys

LIBRARIES = ("cramjam", "crc32c", "h11", "immutables", "re2", "uvloop", "xxhash", "yaml")
"""What the node's packages import beyond the standard library, some of it only when it is first needed."""

PACKAGE = os.path.dirname(os.path.abspath(__file__))


def node_home() -> str:
    """The folder that holds wire/, coordinator/ and broker/."""
    installed = os.path.join(PACKAGE, "_node")
    return installed if os.path.isdir(installed) else os.path.dirname(PACKAGE)


def is_tree() -> bool:
    """Whether this is the tree that people work in, not an installed package."""
    return os.path.isfile(os.path.join(node_home(), "dev.py"))


def put_first_on_path() -> None:
    """Make this process find our node's packages before any other of the same names."""
    if sys.path[:1] != [node_home()]:
        sys.path.insert(0, node_home())
