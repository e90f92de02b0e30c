"""Which requests clients have sent since somebody asked to be told: an interceptor, so that nobody pays for it before.

What passes through is told by API and version; the answers of the control endpoint and the column "sent by" of
docs/support.md come from it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from wire.api import API_SPECS

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


class SentRequests:
    """Counts requests by API and version."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, int]] = Counter()

    async def before(self, request: Any, context: RequestContext) -> None:
        """Count it, and let it pass."""
        header = context.header
        self._counts[header.api_key, header.api_version] += 1

    async def after(self, request: Any, response: Any, context: RequestContext) -> Any:
        """The answer as it is."""
        return response

    def told(self) -> dict[str, dict[str, int]]:
        """How many requests there were: API name → version → count."""
        told: dict[str, dict[str, int]] = {}
        for (key, version), count in sorted(self._counts.items()):
            told.setdefault(API_SPECS[key].name, {})[str(version)] = count
        return told
