"""Scenarios: plain functions named ``scenario_…`` that take a Player, grouped by subject."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from tests.parity.player import Player

Scenario = Callable[[Player], None]


def scenarios() -> dict[str, Scenario]:
    """Every scenario by name, in the order in which they stand."""
    found: dict[str, Scenario] = {}
    for module_info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        for name, value in vars(module).items():
            if name.startswith("scenario_"):
                found[name.removeprefix("scenario_").replace("_", "-")] = value
    return found
