"""Runs a node in this process: the only module of the face that names the node's parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from odradek.failure import BAD_SETTING, Failure
from odradek.node_home import LIBRARIES


def load(*, file: str | None, sets: Sequence[str], data: str | None) -> Any:
    """The settings of a node; in memory unless a place for its data is named anywhere. Raises Failure."""
    from broker.config import ConfigError, load_config

    try:
        config = load_config(file=file, sets=sets, data_directory=data)
        if not any(config.is_set(name) for name in ("log.dirs", "log.dir", "odradek.memory")):
            config = load_config(file=file, sets=[*sets, "odradek.memory=true"])
        return config
    except ConfigError as error:
        raise Failure(str(error), BAD_SETTING) from None


def require_libraries() -> None:
    """Raise ModuleNotFoundError for what would be missed at some later request. Without uvloop a node runs, slower."""
    for name in LIBRARIES:
        if name != "uvloop" and find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def serve(config: Any, on_ready: Callable[[Mapping[str, Any]], None], *, stop_with_stdin: bool) -> None:
    """Start the node, say so, serve until it is told to stop. Raises Failure where it cannot start."""
    require_libraries()
    from broker.network.listener import CannotListen
    from broker.process import log_to_stderr, run
    from broker.server import Server
    from broker.storage.files import StorageFault
    from wire.errors import KafkaError

    log_to_stderr()
    try:
        run(Server(config), on_ready=on_ready, stop_with_stdin=stop_with_stdin)
    except CannotListen as error:
        way_out = "; take another with --port (0: a free one)" if error.is_taken else ""
        raise Failure(f"{error}{way_out}.") from None
    except (StorageFault, KafkaError) as error:
        raise Failure(str(error)) from None
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise Failure(f"The node cannot run: {error.strerror or str(error) or type(error).__name__}{place}.") from None
