"""Every recorded scenario, played to a node of ours: the answers are Apache Kafka's, field by field."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import odradek
from tests.parity.corpus import scenarios
from tests.parity.record import difference, play, stored, unserved


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with odradek.Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        yield host, int(port)


@pytest.mark.parametrize("name", list(scenarios()))
def test_answers_are_those_of_kafka(name: str, address: tuple[str, int]) -> None:
    if missing := unserved(stored(name)):
        pytest.skip(f"not served yet: {', '.join(sorted(missing))}")
    text = difference(name, play(name, scenarios()[name], address))
    assert not text, text
