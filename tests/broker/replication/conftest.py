"""The node of the handler tests serves here as well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "handlers"))

from records_node import NOW_MS, RecordsNode


@pytest.fixture
def node() -> Iterator[RecordsNode]:
    """A node of one broker without topics."""
    records_node = RecordsNode()
    yield records_node
    records_node.replicas.close()
    records_node.log_manager.close(now_ms=NOW_MS)
    records_node.clock.close()
