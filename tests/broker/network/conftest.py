"""Every network test runs on each event loop there is: they differ in when they call protocols."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import loop_factories


@pytest.fixture(autouse=True, params=list(loop_factories()))
def loop_factory(request: pytest.FixtureRequest) -> Any:
    """The loop the test runs on."""
    return loop_factories()[request.param]
