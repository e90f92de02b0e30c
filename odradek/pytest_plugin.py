"""The pytest plugin: a fixture `odradek` with a broker that is empty at the start of each test.

One node runs for the session (with pytest-xdist one for each worker, each on its own port); it starts when the first
test asks for it. Settings go into the ini file:

    [tool.pytest.ini_options]
    odradek_settings = ["num.partitions=3"]
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.failure import Failure
from odradek.launcher import Broker


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("odradek_settings", "Broker settings of the node behind the odradek fixture.", "linelist", [])


@pytest.fixture(scope="session")
def odradek_session(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """The node all tests of this process share; ask for it only to keep state from test to test."""
    settings: dict[str, str | int | bool] = {}
    for line in request.config.getini("odradek_settings"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"odradek_settings takes name=value lines, not {line!r}")
        settings[name.strip()] = value.strip()
    broker, fault = Broker(settings=settings), None
    try:
        broker.start()
    except Failure as failure:
        fault = str(failure)
    if fault is not None:  # outside of the handler: a chained traceback tells a tester nothing
        pytest.fail(f"odradek did not start: {fault}", pytrace=False)
    with broker:
        yield broker


@pytest.fixture
def odradek(odradek_session: Broker) -> Broker:
    """A broker that holds nothing: `.bootstrap_servers`, `.reset()`. A node that a test has ended is started anew."""
    if odradek_session.alive:
        odradek_session.reset()
    else:
        odradek_session.stop()
        odradek_session.start()
    return odradek_session
