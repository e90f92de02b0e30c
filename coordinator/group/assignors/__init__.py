"""Server-side assignors of consumer groups, by the names that clients and settings use."""

from __future__ import annotations

from coordinator.group.assignors.range import assign_range
from coordinator.group.assignors.specification import Assignor
from coordinator.group.assignors.uniform import assign_uniform

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
