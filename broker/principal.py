"""The identity a connection acts under.

Source: `org.apache.kafka.common.security.auth.KafkaPrincipal`.
Below `network`, `security` and `quotas`, which all speak of principals and may not import each other.
"""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """Type and name, written `User:alice` where Kafka writes a principal as text."""

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""Every connection of a listener without authentication (`KafkaPrincipal.ANONYMOUS`)."""
