"""The golden messages of Apache Kafka, by name."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "messages" / "messages.jsonl.gz"


@cache
def golden_messages() -> dict[str, list[dict[str, Any]]]:
    """The vectors of each message, under Kafka's name of it."""
    vectors = defaultdict(list)
    for vector in map(json.loads, gzip.decompress(GOLDEN.read_bytes()).splitlines()):
        vectors[vector["message"]].append(vector)
    return vectors
