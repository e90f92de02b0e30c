"""When the controller last heard of each broker: the part of its state that no record holds.

After a change of controllers every registered broker starts with a full session, as in Kafka's
BrokerHeartbeatManager.
"""

from __future__ import annotations

from typing import NamedTuple


class BrokerContact(NamedTuple):
    """A sign of life. `metadata_offset` is the last metadata record the broker has applied;
    `shutdown_offset` is the record that moved its partitions away, -1 if it is not stopping."""

    broker_id: int
    at_ms: int
    metadata_offset: int
    in_process: bool = False
    shutdown_offset: int = -1


class BrokerSessions:
    """The last contact of each broker. Fenced brokers have no session, however recent their contact;
    a broker in the controller's own process has one without end.
    """

    def __init__(self) -> None:
        self._contacts: dict[int, BrokerContact] = {}
        self._fenced: set[int] = set()

    def touch(self, contact: BrokerContact) -> None:
        """Note a sign of life."""
        self._contacts[contact.broker_id] = contact

    def set_fenced(self, broker_id: int, fenced: bool) -> None:
        """Follow the broker's registration: a fenced or removed broker has no session."""
        if fenced:
            self._fenced.add(broker_id)
        else:
            self._fenced.discard(broker_id)

    def contact(self, broker_id: int) -> BrokerContact | None:
        """The last contact, or None."""
        return self._contacts.get(broker_id)

    def is_valid(self, broker_id: int, now_ms: int, session_timeout_ms: int) -> bool:
        """Whether the broker has a session that has not lapsed."""
        contact = self._contacts.get(broker_id)
        if contact is None or broker_id in self._fenced:
            return False
        return contact.in_process or now_ms - contact.at_ms < session_timeout_ms

    def _expiring(self) -> list[tuple[int, int]]:
        """(last contact, broker id) of every session that can lapse."""
        return [
            (contact.at_ms, contact.broker_id)
            for contact in self._contacts.values()
            if not contact.in_process and contact.broker_id not in self._fenced
        ]

    def first_expiry_ms(self, session_timeout_ms: int) -> int | None:
        """When the next session lapses if nothing more is heard; None if none can."""
        oldest = min(self._expiring(), default=None)
        return None if oldest is None else oldest[0] + session_timeout_ms

    def first_expired(self, now_ms: int, session_timeout_ms: int) -> int | None:
        """The broker whose session has lapsed longest ago; None if none has."""
        oldest = min(self._expiring(), default=None)
        if oldest is None or now_ms - oldest[0] < session_timeout_ms:
            return None
        return oldest[1]

    def lowest_metadata_offset(self, broker_ids: list[int]) -> int:
        """The offset that all of these brokers have applied; -1 if one has not been heard of."""
        offsets = [
            contact.metadata_offset if (contact := self._contacts.get(broker_id)) else -1 for broker_id in broker_ids
        ]
        return min(offsets, default=2**63 - 1)
