"""The face of Odradek: command line, embedded broker for tests, pytest plugin.

`odradek.Broker` is the embedded broker: `with odradek.Broker() as broker: broker.bootstrap_servers`.
Importing this package imports nothing of the node, and what embeds a broker only when it is named: the start of a node
passes through here too, and is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.failure import Failure
    from odradek.launcher import Broker

__all__ = ["Broker", "Failure", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Broker":
        from odradek.launcher import Broker

        return Broker
    if name == "Failure":
        from odradek.failure import Failure

        return Failure
    raise AttributeError(f"module 'odradek' has no attribute {name!r}")
