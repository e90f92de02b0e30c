"""The codes in access rules and filters, and which of them make a request unreadable.

Source: DescribeAclsRequest, CreateAclsRequest and DeleteAclsRequest (`normalizeAndValidate`, `validate`): Kafka
compares with the code of UNKNOWN alone, and closes the connection. A code without a name passes there, and here.
"""

from __future__ import annotations

UNKNOWN = 0
"""In each of the four: resource type, pattern type, operation, permission type."""


def unknown_code(resource_type: int, pattern_type: int, operation: int, permission_type: int) -> str | None:
    """Which of the codes is UNKNOWN, as a clause; None if none is."""
    for name, code in (
        ("resource type", resource_type),
        ("pattern type", pattern_type),
        ("operation", operation),
        ("permission type", permission_type),
    ):
        if code == UNKNOWN:
            return f"the {name} is UNKNOWN"
    return None
