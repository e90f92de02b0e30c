"""The codes in access rules and filters, and which of them mean nothing.

Source: DescribeAclsRequest, CreateAclsRequest and DeleteAclsRequest (`normalizeAndValidate`, `validate`): Kafka cannot
read a request with such a code, and closes its connection.
"""

from __future__ import annotations

from broker.security.authorizer import Operation, ResourceType

_RESOURCE_TYPES = frozenset(ResourceType) - {ResourceType.UNKNOWN}
_PATTERN_TYPES = frozenset({1, 2, 3, 4})  # ANY, MATCH, LITERAL, PREFIXED
_OPERATIONS = frozenset(Operation) - {Operation.UNKNOWN}
_PERMISSION_TYPES = frozenset({1, 2, 3})  # ANY, DENY, ALLOW


def unknown_code(resource_type: int, pattern_type: int, operation: int, permission_type: int) -> str | None:
    """Which of the codes is UNKNOWN or does not exist, as a clause; None if all are known."""
    for name, code, known in (
        ("resource type", resource_type, _RESOURCE_TYPES),
        ("pattern type", pattern_type, _PATTERN_TYPES),
        ("operation", operation, _OPERATIONS),
        ("permission type", permission_type, _PERMISSION_TYPES),
    ):
        if code not in known:
            return f"the {name} {code} is unknown"
    return None
