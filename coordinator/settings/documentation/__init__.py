"""One sentence for each setting, in our words. Loaded when somebody asks for documentation, never at start.

A table holds `name: sentence`, one a line.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from coordinator.settings import resources

_MODULES = {
    resources.BROKER: ("network", "log", "groups", "cluster", "node"),
    resources.TOPIC: ("topic",),
    resources.GROUP: ("group",),
    resources.CLIENT_METRICS: ("client_metrics",),
}


def documentation(kind: int, name: str) -> str | None:
    """What the setting `name` of a resource of this kind is for; None where there is nothing to say."""
    return _sentences(kind).get(name)


@cache
def _sentences(kind: int) -> dict[str, str]:
    sentences: dict[str, str] = {}
    for module in _MODULES.get(kind, ()):
        text: str = import_module(f"coordinator.settings.documentation.{module}").SENTENCES
        for line in text.splitlines():
            name, _, sentence = line.partition(": ")
            sentences[name] = sentence
    return sentences
