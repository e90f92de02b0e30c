"""Which nodes run on this machine: a file for each in a folder only this user can read, from ready to stop.

It holds the ready line, whose control_url carries the token, so that `odradek reset` finds the node by its port.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odradek.address import parse_address
from odradek.failure import Failure

HALF_WRITTEN_S = 60
LISTENING_TIMEOUT_S = 0.5


def running_folder() -> Path:
    """The folder of this user's running nodes."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isdir(base):
        return Path(base) / "odradek"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"odradek-{user}"


@contextlib.contextmanager
def announced(ready: dict[str, Any]) -> Iterator[None]:
    """Announce a ready node to the other commands until the block ends; where that cannot be, they do without."""
    files = []
    with contextlib.suppress(OSError):
        folder = running_folder()
        folder.mkdir(mode=0o700, exist_ok=True)
        if is_ours(folder):
            forget_ended(folder)
            for address in str(ready["bootstrap_servers"]).split(","):
                file = folder / f"{parse_address(address)[1]}.json"
                files.append(file)
                write_private(file, json.dumps(ready))
    try:
        yield
    finally:
        for file in files:
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)


def forget_ended(folder: Path) -> None:
    """Remove what nodes that were killed have left: files of nodes that nobody listens for any more."""
    for file in folder.glob("*.json*"):
        with contextlib.suppress(OSError, ValueError, KeyError, Failure):
            if file.suffix == ".json":
                is_left = not is_listening(announcement(file))
            else:
                is_left = time.time() - file.stat().st_mtime > HALF_WRITTEN_S
            if is_left:
                file.unlink()


def is_listening(ready: dict[str, Any]) -> bool:
    """Whether the node of a ready line, or another in its place, takes connections. (Its process id would not tell: a
    thread of another program may have it by now.)"""
    try:
        socket.create_connection(parse_address(ready["bootstrap_servers"].split(",")[0]), LISTENING_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def announcement(file: Path) -> dict[str, Any]:
    """The ready line of the node that announced itself in a file. Raises OSError, ValueError."""
    ready: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return ready


def is_ours(folder: Path) -> bool:
    """Whether nobody else can have put files there: in a shared temporary folder anyone may make its name first."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.lstat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o077


def write_private(file: str | os.PathLike[str], text: str) -> None:
    """Write a file that only this user can read, in one step: who waits for it never reads half of it."""
    unfinished = f"{os.fspath(file)}.{os.getpid()}"
    try:
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(unfinished, file)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def control_url_of(bootstrap_server: str) -> str:
    """The control address of the node at a port of this machine; raises Failure where none is announced."""
    host, port = parse_address(bootstrap_server)
    file = running_folder() / f"{port}.json"
    try:
        if not is_ours(file.parent):
            raise Failure(f"{file.parent} belongs to another user: give --control-url from the node's ready line.")
        ready = announcement(file)
        if not is_listening(ready):
            raise KeyError("a node that was killed has left it behind")
        return str(ready["control_url"])
    except (OSError, ValueError, KeyError):
        raise Failure(
            f"No node of yours runs at {host}:{port} on this machine (for another one give --control-url)."
        ) from None


def announced_control_url(address: str, cluster_id: str | None) -> str | None:
    """The control address of the node at an address, if it is this user's, of this cluster, and on this machine."""
    try:
        file = running_folder() / f"{parse_address(address)[1]}.json"
        if not is_ours(file.parent):
            return None
        ready = announcement(file)
        # A node that was killed leaves its file behind, and another one may have its port.
        return str(ready["control_url"]) if ready["cluster_id"] == cluster_id else None
    except (OSError, ValueError, KeyError, Failure):
        return None
