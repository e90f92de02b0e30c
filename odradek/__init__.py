"""The face of Odradek: command line, embedded broker for tests, pytest plugin.

`odradek.Broker` is the embedded broker: `with odradek.Broker() as broker: broker.bootstrap_servers`.
Importing this package imports nothing of the node and nothing but the standard library.
"""

from odradek.failure import Failure
from odradek.launcher import Broker

__all__ = ["Broker", "Failure", "__version__"]

__version__ = "0.1.0"
