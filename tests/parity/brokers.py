"""The two brokers that are compared: Apache Kafka and a node of this tree, each started for the comparison."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import odradek

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "compat-tests" / "reference"))

from reference import VERSION, NotStarted, Reference

__all__ = ["VERSION", "NotStarted", "Reference", "address_of", "apache_kafka", "own_node"]


@contextlib.contextmanager
def apache_kafka(running: str | None = None) -> Iterator[tuple[str, int]]:
    """The address of Apache Kafka: one that runs at HOST:PORT, else one started for this and ended after it."""
    if running:
        yield address_of(running)
        return
    with Reference() as kafka:
        yield address_of(kafka.bootstrap_servers)


@contextlib.contextmanager
def own_node(running: str | None = None) -> Iterator[tuple[str, int]]:
    """The address of a node with default settings: one that runs at HOST:PORT, else one started for this."""
    if running:
        yield address_of(running)
        return
    with odradek.Broker() as broker:
        yield address_of(broker.bootstrap_servers)


def address_of(text: str) -> tuple[str, int]:
    """Host and port of a text HOST:PORT; raises NotStarted."""
    host, _, port = text.rpartition(":")
    if not (host and port.isdigit()):
        raise NotStarted(f"A broker's address is HOST:PORT, not {text!r}.")
    return host, int(port)
